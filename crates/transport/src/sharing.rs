//! Memory that peers of one machine share: whoever makes it publishes it under a name, others obtain and map it, and then all
//! of them load and store there.
//!
//! Only transports between processes of one machine have it ([`crate::Transport::sharing`]). What must always hold: memory stays
//! what it is for as long as somebody has it mapped, whoever dies (no access faults), and whoever made it can find out from
//! the kernel whether a peer still has it mapped, and so may still write there ([`SharedMemory::claim`]).

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use wire::Nanos;

use crate::PeerId;
#[cfg(target_os = "linux")]
use crate::shm::{claim, mapping::Mapping};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;

/// The way of a peer to the memory of others on its machine. Threads share it.
pub trait Sharing: Send + Sync {
    /// Whose it is.
    fn me(&self) -> PeerId;

    /// Lets others obtain the memory by this name from now on. What had the name before is withdrawn.
    ///
    /// # Panics
    /// If this process did not make the memory.
    fn publish(&self, name: u64, memory: Arc<SharedMemory>);

    /// Lets nobody obtain it any more. Who has it keeps it. Returns whether there was such a name.
    fn withdraw(&self, name: u64) -> bool;

    /// Obtains what another node has published by this name, and maps it. A node has a memory mapped once at a time: as long
    /// as it has, or a former incarnation of its process has, it is refused.
    ///
    /// Waits for the other peer, at most so long; whatever that peer does, or does not.
    ///
    /// # Errors
    /// See [`NotObtained`].
    fn obtain(&self, from: PeerId, name: u64, timeout: Nanos) -> Result<Arc<SharedMemory>, NotObtained>;
}

/// Who has memory mapped that another process has made. Each has a place of its own in what the kernel knows about that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mapper {
    /// The process of a peer.
    Peer(PeerId),
    /// A process that is no peer, an application: by the number of its seat at this memory, below [`Mapper::SEATS`]. Another
    /// one has the seat when nobody has it any more.
    Application(u8),
}

impl Mapper {
    /// Applications that may have one memory mapped at a time.
    pub const SEATS: u8 = 62;

    /// All seats of applications.
    pub fn seats() -> impl Iterator<Item = Self> {
        (0..Self::SEATS).map(Self::Application)
    }

    /// Its place: no other's.
    pub(crate) const fn place(self) -> u8 {
        match self {
            Self::Peer(peer) => peer.to_wire(),
            Self::Application(seat) => PeerId::COUNT as u8 + seat,
        }
    }

    pub(crate) fn of_place(place: u8) -> Option<Self> {
        let seat = |place: u8| place.checked_sub(PeerId::COUNT as u8).filter(|seat| *seat < Self::SEATS);
        PeerId::from_wire(place).map(Self::Peer).or_else(|| seat(place).map(Self::Application))
    }
}

impl From<PeerId> for Mapper {
    fn from(peer: PeerId) -> Self {
        Self::Peer(peer)
    }
}

/// Why memory was not obtained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotObtained {
    /// No process is that peer now, or it went away before it answered.
    Unreachable,
    /// It did not answer in time.
    TimedOut,
    /// It has published nothing by this name.
    NotPublished,
    /// This node has it mapped already, or a former incarnation of it still has. Tried again for as long as there was time.
    Claimed,
    /// What came is no answer of a peer of this rack, or no memory that is safe to map. Counted as
    /// [`crate::Cause::Malformed`].
    Malformed,
    /// The system refused something, here or there.
    System(io::ErrorKind),
}

impl fmt::Display for NotObtained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("no process is that peer now"),
            Self::TimedOut => f.write_str("that peer did not answer in time"),
            Self::NotPublished => f.write_str("that peer has published nothing by this name"),
            Self::Claimed => {
                f.write_str("this node, or a former incarnation of it, has the memory mapped already")
            }
            Self::Malformed => f.write_str("what came is no memory that is safe to map"),
            Self::System(kind) => write!(f, "the system refused: {kind}"),
        }
    }
}

impl std::error::Error for NotObtained {}

/// Memory of which others may have a view. Unmapped when it is dropped; the memory itself goes with its last view.
#[derive(Debug)]
pub struct SharedMemory {
    #[cfg(target_os = "linux")]
    mapping: Mapping<AtomicU64>,
    /// Whoever made it has the file, too: to give it away, and to claim.
    #[cfg(target_os = "linux")]
    file: Option<OwnedFd>,
    /// Whoever has obtained it: as whom.
    #[cfg(target_os = "linux")]
    mapper: Option<Mapper>,
    /// There is none on other systems.
    #[cfg(not(target_os = "linux"))]
    never: std::convert::Infallible,
}

/// No process of a peer, or none in a seat, has the memory mapped, nor will one for as long as this is there.
#[derive(Debug)]
#[must_use = "it ends when this is dropped"]
pub struct Claim<'a> {
    memory: &'a SharedMemory,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    mapper: Mapper,
}

impl SharedMemory {
    /// New memory of zeroes, rounded up to whole pages.
    ///
    /// # Errors
    /// If the system has no more memory, descriptors or addresses, or is none that has such memory.
    #[cfg(target_os = "linux")]
    pub fn create(words: usize) -> io::Result<Self> {
        let bytes = words.max(1).checked_mul(8).and_then(|bytes| bytes.checked_next_multiple_of(PAGE));
        let bytes = bytes.filter(|bytes| *bytes <= MOST).ok_or(io::ErrorKind::OutOfMemory)?;
        let (file, mapping) = Mapping::create("rackmem-region", bytes)?;
        mapping.populate();
        Ok(Self { mapping, file: Some(file), mapper: None })
    }

    /// There is none on this system.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn create(_words: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// All of it.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        #[cfg(target_os = "linux")]
        return self.mapping.words();
        #[cfg(not(target_os = "linux"))]
        match self.never {}
    }

    /// True if this process made it.
    pub fn is_own(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.file.is_some();
        #[cfg(not(target_os = "linux"))]
        match self.never {}
    }

    /// As whom this process has obtained it. None: it made it.
    pub fn mapper(&self) -> Option<Mapper> {
        #[cfg(target_os = "linux")]
        return self.mapper;
        #[cfg(not(target_os = "linux"))]
        match self.never {}
    }

    /// Takes the place of a peer's processes, or of an application: none has the memory mapped, and none will while the claim is
    /// there. None if one has: it lives, or has not been stopped for good. The kernel says so, no process has to answer. It may say so a
    /// moment longer than it is true.
    ///
    /// # Errors
    /// If the system cannot tell.
    ///
    /// # Panics
    /// If this process did not make the memory.
    pub fn claim(&self, mapper: impl Into<Mapper>) -> io::Result<Option<Claim<'_>>> {
        let mapper = mapper.into();
        #[cfg(target_os = "linux")]
        return Ok(claim::take(self.file(), mapper.place())?.then_some(Claim { memory: self, mapper }));
        #[cfg(not(target_os = "linux"))]
        {
            let _ = mapper;
            match self.never {}
        }
    }
}

#[cfg(target_os = "linux")]
impl SharedMemory {
    /// A descriptor for another process, with its claim on it: for a node's the node's, for an application's (who asks as an
    /// observer) any that is free. None if there is none.
    pub(crate) fn lend(&self, to: PeerId) -> io::Result<Option<(OwnedFd, Mapper)>> {
        if to == PeerId::OBSERVER {
            return claim::lend(self.file(), Mapper::seats());
        }
        claim::lend(self.file(), std::iter::once(to.into()))
    }

    /// What was lent to us, if it is safe to map.
    pub(crate) fn borrowed(file: OwnedFd, mapper: Mapper) -> io::Result<Self> {
        let mapping = Mapping::open_finished(&file, PAGE, MOST)?;
        mapping.populate();
        // The mapping keeps the file, and the claim on it.
        Ok(Self { mapping, file: None, mapper: Some(mapper) })
    }

    fn file(&self) -> &OwnedFd {
        self.file.as_ref().expect("this process made the memory")
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        claim::give_back(self.memory.file(), self.mapper.place());
        #[cfg(not(target_os = "linux"))]
        match self.memory.never {}
    }
}

/// Memory comes in whole pages.
#[cfg(target_os = "linux")]
const PAGE: usize = 4096;
/// More at once is nobody's honest wish: 1 TiB.
#[cfg(target_os = "linux")]
const MOST: usize = 1 << 40;
