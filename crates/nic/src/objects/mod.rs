//! Whole-object reads, validated where the memory is (SABRes: single-site atomic bulk reads; sections 3 to 5 of the paper).
//!
//! The engine stands beside the memory of the node that a SABRe asks. It reads the object's blocks, has each sent to the
//! requester as it comes, and ends with a verdict: whole, or torn by a writer. It never tries again; that is for the
//! requester to decide (section 5.1).
//!
//! A writer takes an object by making its version odd (compare-and-swap from even v to v + 1), changes it, and ends with
//! v + 2. So an object is whole if all its blocks are of one even version. What could go wrong is Figure 2 of the paper: data are
//! read, a writer comes and goes, and then the version is read. Three ways out, one [`Mode`] each:
//!
//! | mode | reads | what guards the data that are read before the version is known |
//! | --- | --- | --- |
//! | [`Mode::Speculative`] | everything at once | the memory tells of writes: a stream buffer watches what was read in the *window of vulnerability*, from asking for the version to having it |
//! | [`Mode::VersionFirst`] | the version, then the data, then the version | nothing is read before |
//! | [`Mode::Locked`] | a reader's lock and everything at once | as the first; afterwards the lock keeps writers out |
//!
//! `VersionFirst` asks nothing of the memory but loads in order. It is how the memory of an ordinary processor is read, and
//! in the simulated testbed it is the paper's variant without speculation.
//!
//! | file | what |
//! | --- | --- |
//! | `mod.rs` | what goes in and out, and the sizes |
//! | `table.rs` | active transfers: registering, requests that fold into one, what is asked of the memory next |
//! | `transfer.rs` | one transfer: its stream buffer, its version, its verdict |
//! | `arriving.rs` | blocks, versions, locks and invalidations come from the memory |
//!
//! What must always hold: a verdict "whole" is given only if every block was read while the object had the version that
//! was read; each transfer gets one verdict, after its last block; no more blocks go out than were asked for.

mod arriving;
mod table;
mod transfer;

pub use table::Engine;

use wire::Nanos;

/// Bytes of a block: the unit of the memory's coherence.
pub const BLOCK: u64 = 64;

/// An attempt to read an object, in the whole rack. Attempts are never resumed: who tries again takes a new number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Attempt {
    /// Whose it is: what the driver tells requesters apart by.
    pub requester: u32,
    /// Which of that requester's.
    pub number: u64,
}

/// An object, as a SABRe names it: whole blocks of the memory, beside each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object {
    /// Its first block, in blocks from the beginning of the memory.
    pub first: u64,
    /// Its blocks: at least one.
    pub blocks: u32,
    /// Which of them has the version. A property of the memory region (section 4.2).
    pub header: u32,
}

/// How the version and the data are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Together. Only for a memory that tells of every write to what was read from it, before it lets the writer go on, and
    /// after the reply that carries what is overwritten.
    Speculative,
    /// The version first, and once more at the end.
    VersionFirst,
    /// Under a lock in the object's header that keeps writers out and that readers share; data are read while the lock is
    /// asked for. Needs what [`Mode::Speculative`] needs.
    Locked,
}

/// The sizes of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SabreConfig {
    /// How objects are read.
    pub mode: Mode,
    /// Active transfers, each with a stream buffer.
    pub transfers: u8,
    /// Blocks that a stream buffer watches: at most 64.
    pub depth: u32,
    /// A transfer that waits so long for its requester is given up: the requester is gone.
    pub timeout: Nanos,
}

impl SabreConfig {
    /// The paper's: 16 stream buffers of 32 blocks (section 5.1). How long a requester may be away it does not say.
    pub const PAPER: Self =
        Self { mode: Mode::Speculative, transfers: 16, depth: 32, timeout: Nanos::from_millis(10) };
}

/// A transfer's row in the table: what the memory's answers are marked with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Row(pub u8);

/// What the engine asks of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// A block. The header's has the version in it.
    Block {
        /// For this transfer.
        row: Row,
        /// In blocks from the beginning of the memory.
        block: u64,
        /// Which of the object's it is.
        index: u32,
    },
    /// Only the version, with which the answer to [`Load::Block`] of the header began.
    Version {
        /// For this transfer.
        row: Row,
        /// The block with the header.
        block: u64,
    },
    /// The reader's lock in the header, if no writer has it.
    Lock {
        /// For this transfer.
        row: Row,
        /// The block with the header.
        block: u64,
    },
}

/// What an engine wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A block has come: it goes to the requester.
    Reply {
        /// For this attempt.
        attempt: Attempt,
        /// Which of the object's.
        index: u32,
    },
    /// A block that was asked for is not read, because it is known that the object is torn: an answer without it.
    Empty {
        /// For this attempt.
        attempt: Attempt,
        /// Which of the object's.
        index: u32,
    },
    /// The last answer.
    Verdict {
        /// For this attempt.
        attempt: Attempt,
        /// All blocks are of one version.
        whole: bool,
    },
    /// The reader's lock is given back.
    Unlock {
        /// The block with the header.
        block: u64,
    },
}

/// Why a request was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Every transfer is in use: try again.
    Full,
    /// An object of no blocks, or without a header, or that ends beyond the memory's addresses.
    Malformed,
    /// This attempt is registered already, or an attempt of this requester that is later.
    Repeated,
    /// No such attempt is registered.
    Unknown,
    /// More blocks were asked for than the object has.
    TooMany,
}

/// What an engine has counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Transfers that were registered.
    pub registered: u64,
    /// Verdicts: whole.
    pub whole: u64,
    /// Verdicts: torn.
    pub torn: u64,
    /// Of those: because of an invalidation in the window of vulnerability.
    pub invalidated: u64,
    /// Of those: because a writer had the object.
    pub written: u64,
    /// Of those: because the version was another one at the end.
    pub changed: u64,
    /// Headers that were read once more.
    pub read_again: u64,
    /// Requests that were refused for want of a transfer.
    pub full: u64,
    /// Requests that were refused for any other reason.
    pub refused: u64,
    /// Transfers that were given up because their requester was gone.
    pub given_up: u64,
}
