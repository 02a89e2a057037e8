//! What can go wrong, said so that the caller can do something about it.

use std::fmt;
use std::time::Duration;

use transport::Refusal;
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId};

use crate::config::ConfigError;

/// Why an operation on the rack's memory failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The address belongs to no allocation, or to one that was freed.
    Unallocated {
        /// The address.
        addr: GlobalAddr,
    },
    /// The address belongs to an allocation of another discipline.
    WrongDiscipline {
        /// The address.
        addr: GlobalAddr,
        /// What the operation needs.
        needs: Discipline,
    },
    /// The address names a node that the rack does not have.
    NoSuchNode {
        /// The address.
        addr: GlobalAddr,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A word operation on an address that is not a multiple of 8.
    Unaligned {
        /// The address.
        addr: GlobalAddr,
    },
    /// An operation that works inside one block was asked to cross a block boundary.
    CrossesBlocks {
        /// The address.
        addr: GlobalAddr,
        /// Bytes asked for.
        len: usize,
        /// The rack's block size.
        block: BlockSize,
    },
    /// The range leaves the memory of its home.
    OutOfRange {
        /// The address.
        addr: GlobalAddr,
        /// Bytes asked for.
        len: u64,
    },
    /// An allocation of this size cannot be: nothing, or more than a node can give in one piece.
    BadSize {
        /// Bytes asked for.
        len: u64,
        /// The most that can be asked for.
        most: u64,
    },
    /// The home has no memory left for this.
    OutOfMemory {
        /// Bytes asked for.
        len: u64,
        /// Whose memory.
        home: u16,
    },
    /// The address is not the start of an allocation.
    NotAnAllocation {
        /// The address.
        addr: GlobalAddr,
    },
    /// The block's latest contents died with the node that had them. It stays so until its allocation is freed.
    Lost {
        /// The address.
        addr: GlobalAddr,
    },
    /// The node that the address belongs to is down.
    NodeDown {
        /// The address.
        addr: GlobalAddr,
    },
    /// The other nodes take this one for dead: it was not heard of for too long. What it had cached is void, what it
    /// wrote may be lost. Join the rack anew.
    Fenced,
    /// The connection to the home of this address failed in the middle, or its home was too long silent: nobody knows whether the
    /// operation was executed. Later ones go over a new connection.
    Broken {
        /// The address.
        addr: GlobalAddr,
    },
    /// Whoever wrote the object last died meanwhile, or is believed to be dead: it is half-written. It can be read again when
    /// somebody has written the whole object.
    HalfWritten {
        /// The address of the objects.
        addr: GlobalAddr,
        /// Which of them.
        index: usize,
    },
    /// There are not so many words or objects there.
    OutOfBounds {
        /// Which was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// Another number of bytes is guarded by the lock, or is that of the objects or of the value, at this address.
    WrongLength {
        /// The address.
        addr: GlobalAddr,
        /// Bytes that were named.
        len: u64,
    },
    /// A lock cannot guard so many bytes here.
    RegionTooLong {
        /// Bytes that were named.
        len: u64,
        /// The most there can be.
        most: u64,
    },
    /// This node already holds as many block locks as it has requester slots for.
    TooManyLocks {
        /// How many it can hold.
        most: usize,
    },
    /// Of this node's mapped pages as many are pinned as may be.
    TooManyPinned {
        /// How many may be.
        most: usize,
    },
    /// Mapped memory with copies is pinned to be written: until that ends nothing of it is protected, nor copied.
    PinnedToWrite {
        /// What is pinned.
        addr: GlobalAddr,
    },
    /// Slots of a store of chains would be in quarantine for too short a time: somebody may still use what was known of them.
    QuarantineTooShort {
        /// What was asked for.
        quarantine: Nanos,
        /// The shortest time, on a rack that steers like this one.
        least: Nanos,
    },
    /// A store of chains cannot have so many copies.
    TooManyCopies {
        /// What was asked for.
        copies: usize,
        /// Different nodes that were named for its memory.
        memories: usize,
    },
    /// As many threads of this node are clients of chains as can be.
    TooManyClients {
        /// How many can be.
        most: usize,
    },
    /// The rack keeps no copies of memory.
    NoCopies,
    /// The daemon serves as many threads of applications as it can.
    TooManyAttached {
        /// How many that is.
        most: usize,
    },
    /// This application was attached to a node whose daemon has ended, or has ended the connection. What was in flight may
    /// have happened or not; locks are released. Attach again.
    Detached,
}

impl Error {
    /// What a refusal means to whoever asked for `len` bytes at `addr`. For whoever implements [`crate::Memory`].
    pub fn refused(why: wire::Refusal, addr: GlobalAddr, len: u64) -> Self {
        match why {
            wire::Refusal::WrongDiscipline => Self::WrongDiscipline { addr, needs: Discipline::Coherent },
            wire::Refusal::OutOfMemory => Self::OutOfRange { addr, len },
            wire::Refusal::NotAnAllocation => Self::NotAnAllocation { addr },
            wire::Refusal::Lost => Self::Lost { addr },
            wire::Refusal::WrongLength => Self::WrongLength { addr, len },
            wire::Refusal::NodeDown => Self::NodeDown { addr },
            _ => Self::Unallocated { addr },
        }
    }

    /// What it means to whoever asked for a lock over them.
    pub fn refused_lock(why: wire::Refusal, addr: GlobalAddr, len: u32) -> Self {
        match why {
            wire::Refusal::WrongDiscipline => Self::WrongDiscipline { addr, needs: Discipline::Locked },
            why => Self::refused(why, addr, u64::from(len)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unallocated { addr } => {
                write!(
                    f,
                    "address {addr} belongs to no allocation (never allocated, or freed): use an address from alloc, before its free"
                )
            }
            Self::WrongDiscipline { addr, needs } => {
                write!(
                    f,
                    "address {addr} was not allocated with discipline {needs:?}: allocate it so, or use the operations of its own discipline"
                )
            }
            Self::NoSuchNode { addr, nodes } => {
                write!(
                    f,
                    "address {addr} names node {}, but the rack has nodes 0 to {}",
                    addr.home().0,
                    nodes - 1
                )
            }
            Self::Unaligned { addr } => {
                write!(f, "address {addr} is not a multiple of 8: use read and write for unaligned bytes")
            }
            Self::CrossesBlocks { addr, len, block } => {
                write!(
                    f,
                    "{len} bytes at {addr} cross a block boundary (blocks are {block}): split the range, or choose a larger block size"
                )
            }
            Self::OutOfRange { addr, len } => {
                write!(f, "{len} bytes at {addr} leave the memory of their node")
            }
            Self::BadSize { len, most } => {
                write!(f, "an allocation of {len} bytes is not possible: ask for 1 to {most} bytes")
            }
            Self::OutOfMemory { len, home } => {
                write!(
                    f,
                    "node {home} has no room for {len} more bytes: free something, choose another home, or give the nodes more memory"
                )
            }
            Self::NotAnAllocation { addr } => {
                write!(
                    f,
                    "address {addr} is not the start of an allocation: free takes exactly what alloc returned, once"
                )
            }
            Self::Lost { addr } => {
                write!(
                    f,
                    "the latest contents of address {addr} died with the node that had changed them: restore them from elsewhere into a new allocation, and free this one"
                )
            }
            Self::NodeDown { addr } => {
                write!(f, "address {addr} is on node {}, which is down", addr.home().0)
            }
            Self::Fenced => {
                write!(
                    f,
                    "the rest of the rack has declared this node dead, because it was not heard of for too long: join again"
                )
            }
            Self::WrongLength { addr, len } => {
                write!(
                    f,
                    "the lock, the objects or the value at {addr} is not of {len} bytes: all threads of a rack name one length for them; a lock's address is a multiple of 8"
                )
            }
            Self::RegionTooLong { len, most } => {
                write!(
                    f,
                    "a lock cannot guard {len} bytes: {most} is the most on this rack; split the data, or raise `lock_region` (up to 1 MiB)"
                )
            }
            Self::Broken { addr } => {
                write!(
                    f,
                    "the connection to node {} failed while it was asked about {addr}: the operation may have been executed, or not",
                    addr.home().0
                )
            }
            Self::HalfWritten { addr, index } => {
                write!(
                    f,
                    "object {index} at {addr} was left half-written by a node that died: write the whole object to use it again"
                )
            }
            Self::OutOfBounds { index, count } => {
                write!(f, "there is no number {index}: the allocation has numbers 0 to {}", count - 1)
            }
            Self::TooManyLocks { most } => {
                write!(f, "this node already holds {most} block locks: release some first")
            }
            Self::NoCopies => f.write_str(
                "this rack keeps no copies of memory: write copies = 2 into [rack] of its file, at all of its places",
            ),
            Self::TooManyPinned { most } => write!(
                f,
                "{most} mapped blocks are pinned, a quarter of what this node can cache: pin less at a time, or give nodes more `cache`"
            ),
            Self::PinnedToWrite { addr } => write!(
                f,
                "{addr} is mapped and pinned, and what has been written there cannot be copied before that ends: end the pin, and then sync"
            ),
            Self::QuarantineTooShort { quarantine, least } => {
                let (quarantine, least) = (quarantine.0 / 1_000_000, least.0.div_ceil(1_000_000));
                write!(
                    f,
                    "slots in quarantine for {quarantine} ms would be used anew while somebody still reads them: {least} ms, or a shorter lease"
                )
            }
            Self::TooManyCopies { copies, memories } => {
                let most = crate::ChainsConfig::MOST_COPIES;
                write!(
                    f,
                    "{copies} copies in the memories of {memories} nodes: name a different node for each copy, and ask for 1 to {most}"
                )
            }
            Self::TooManyClients { most } => {
                write!(f, "this node already has {most} clients of chains: drop some first")
            }
            Self::TooManyAttached { most } => {
                write!(f, "the daemon already serves {most} threads of applications: drop some handles first")
            }
            Self::Detached => {
                write!(
                    f,
                    "the daemon that this application was attached to has ended the connection: attach again"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

/// Why a process could not join a rack.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// The rack cannot be set up this way.
    Config(ConfigError),
    /// The rack has no such node.
    NoSuchNode {
        /// The node asked for.
        node: NodeId,
        /// How many nodes there are.
        nodes: usize,
    },
    /// The switch did not answer, or did not begin with this node.
    NoAnswer {
        /// How long was waited.
        timeout: Duration,
        /// Where the switch was expected, if that is known.
        address: Option<String>,
        /// What came from there was not made with this rack's key.
        other_key: bool,
    },
    /// The switch's rack file has no such node.
    Unlisted {
        /// The node asked for.
        node: NodeId,
    },
    /// The switch has other settings, or is of another version: the two refuse each other, and always will.
    Refused(Refusal),
}

impl From<ConfigError> for JoinError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl JoinError {
    /// Somebody has to do something elsewhere, who cannot know while this process goes on trying.
    pub(crate) fn tell_once(&self, told: &mut bool) {
        if matches!(self, Self::Unlisted { .. }) && !std::mem::replace(told, true) {
            tracing::warn!(target: "rackmem", "{self}");
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::NoSuchNode { node, nodes } => {
                write!(f, "this rack has nodes 0 to {}, and no {node}", nodes - 1)
            }
            Self::NoAnswer { timeout, address, other_key } => {
                let at = address.as_ref().map_or_else(String::new, |address| format!(" at {address}"));
                let why = if *other_key {
                    "what came from it could not be authenticated: compare the files that `key` in the rack file names"
                } else {
                    "see that it runs, that it is at this address, and that nobody else is this node"
                };
                write!(f, "the switch{at} has not let this node in within {} s: {why}", timeout.as_secs())
            }
            Self::Unlisted { node } => write!(
                f,
                "the switch's rack file has no {node}: append its [[node]] there, too; the switch reads it again while the node calls"
            ),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for JoinError {}
