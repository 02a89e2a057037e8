//! What is run on the testbed.

/// How an object is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// A plain remote read: nothing is checked.
    Read,
    /// A SABRe.
    Sabre,
    /// A SABRe whose R2P2 reads the version before the data ("no speculation").
    WithoutSpeculation,
    /// FaRM's: each block has a copy of the version; the reader compares and strips them.
    LineVersions,
    /// DrTM's: the object is locked by a compare-and-swap, read, and unlocked.
    LockAndRead,
    /// Pilaf's: the object has a checksum, which the reader computes again.
    Checksum,
}

impl Method {
    /// Blocks of an object with so many bytes of data. A header has capacity in the first block: bytes are as the paper counts
    /// them, by which an object of 128 B is a SABRe of two blocks.
    pub(super) const fn blocks(self, bytes: u32) -> u32 {
        /// Bytes of data in a block that has a version, too.
        const STRIPPED: u32 = 56;
        match self {
            Self::LineVersions => bytes.div_ceil(STRIPPED),
            _ => bytes.div_ceil(super::chip::BLOCK as u32),
        }
    }

    /// Whether it is an operation of an engine beside the memory.
    pub(super) const fn is_sabre(self) -> bool {
        matches!(self, Self::Sabre | Self::WithoutSpeculation)
    }
}

/// What a reader does besides the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Nothing (section 7.1).
    Transfer,
    /// It has clean data before it goes on (section 7.2).
    Clean,
    /// It looks a key up and uses the object (sections 2.3 and 7.3).
    Lookup,
}

/// Which object is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// One after the other, so that those of a large memory are never in the cache.
    InTurn,
    /// Any, evenly.
    Any,
}

/// Where the objects are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Where {
    /// On the other chip.
    Remote,
    /// On the readers' own chip: they load them.
    Local,
}

/// A run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// How objects are read.
    pub method: Method,
    /// What else readers do.
    pub work: Work,
    /// Where objects are.
    pub location: Where,
    /// Bytes of data of an object.
    pub bytes: u32,
    /// Objects.
    pub objects: u32,
    /// Which is next.
    pub choice: Choice,
    /// Reading threads, a core each.
    pub readers: u8,
    /// Operations that a reading thread has in flight.
    pub outstanding: u8,
    /// Writing threads, a core each on the chip with the objects. Each writes objects of its own.
    pub writers: u8,
}

impl Load {
    /// Objects in a memory that is eight times the last-level cache: none is in the cache when its turn comes.
    pub const fn large(bytes: u32) -> u32 {
        (16 << 20) / bytes
    }
}
