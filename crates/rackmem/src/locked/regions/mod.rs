//! A lock over several regions of any size, which come and go and grow while it is held to write (GCS, section 3.1.2).
//!
//! One transfer brings all of them: they lie packed behind each other, with a list of them in front, and what is behind the last
//! one does not travel ([`wire::SIZED`]). The list is data like the rest. So whoever is inside sees a list and the regions that
//! belong to it, of one version, whatever dies or is lost on the way.
//!
//! | file | holds |
//! | --- | --- |
//! | `list.rs` | where what is: the list, and how it changes |
//! | `guards.rs` | the regions while the lock is held |
//! | `held.rs` | the same, without a borrow |
//! | `mapped.rs` | regions behind pointers |
//! | `parts.rs` | [`LockedParts`]: each region of one type |
//! | `error.rs` | why a list was not changed |

mod error;
mod guards;
mod held;
mod list;
pub(crate) mod mapped;
mod parts;

use std::time::Duration;

use live::actor::Wait;
use wire::{GlobalAddr, Mode, NodeId};

pub use error::RegionsError;
pub use guards::{RegionsReadGuard, RegionsWriteGuard};
pub use held::HeldRegions;
pub use mapped::{MappedReadGuard, MappedRegions, MappedWriteGuard};
pub use parts::{LockedParts, Many, Part, Parts, PartsGuard, PartsReadGuard, PartsWriteGuard};

use super::bytes::LockedBytes;
use super::error::LockError;
use super::header::{self, Flaw, Making};
use super::held::HeldLock;
use super::inside::{Inside, Region, at_most};
use super::making::{Counts, make_region};
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::LockMode;

/// A reader-writer lock over up to [`LockedRegions::MOST`] regions of bytes.
///
/// ```
/// # use rackmem::{Config, LockedRegions, NodeId, Rack};
/// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
/// # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
/// let lock = LockedRegions::new(&mut here, NodeId(1), 4096)?;
/// {
///     let mut regions = lock.write(&mut here).unwrap();
///     let names = regions.push(5).unwrap();
///     regions.get_mut(names).unwrap().copy_from_slice(b"hello");
///     let numbers = regions.push_values(&[1u64, 2, 3]).unwrap();
///     regions.resize(numbers, 4 * 8).unwrap();
/// }
/// let regions = lock.read(&mut there).unwrap();
/// assert_eq!(regions.get(0), Some(&b"hello"[..]));
/// assert_eq!(regions.values::<u64>(1), Some(&[1, 2, 3, 0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LockedRegions {
    region: Region,
    making: Making,
}

impl LockedRegions {
    /// The tag of one that has a name.
    pub const TAG: &str = "rackmem::LockedRegions";
    /// How many regions there may be.
    pub const MOST: usize = list::MOST;
    /// Bytes of room that each region takes beside its own, which are rounded up to a multiple of 8.
    pub const ENTRY: usize = list::ENTRY * 8;

    /// A new one without regions, in the memory of `home`. There is room for so many bytes: of all regions, and [`LockedRegions::ENTRY`]
    /// for each. Those that are not used take memory and do not travel.
    ///
    /// # Errors
    /// As for [`Locked::new`](crate::Locked::new).
    pub fn new(handle: &mut NodeHandle, home: NodeId, room: usize) -> Result<Self, Error> {
        Self::beginning(handle, home, room, &Self::begins())
    }

    /// The same, with a list of regions, and these, behind its header.
    fn beginning(handle: &mut NodeHandle, home: NodeId, room: usize, begins: &[u8]) -> Result<Self, Error> {
        let header = Making::header(0, handle.inner.epoch());
        let (bytes, needed) = (Self::bytes(room), (header::BYTES + begins.len()) as u64);
        if needed > bytes {
            return Err(Error::BadSize { len: needed, most: bytes });
        }
        let addr = make_region(handle, home, (bytes, Counts::AsItSays), header, begins)?;
        Self::at(handle, addr, room)
    }

    /// What follows the header where there are no regions.
    pub(crate) fn begins() -> Vec<u8> {
        list::filled(&[])
    }

    /// The one at this address, with the room that it was made with.
    ///
    /// # Errors
    /// As for [`Locked::at`](crate::Locked::at).
    pub fn at(handle: &NodeHandle, addr: GlobalAddr, room: usize) -> Result<Self, Error> {
        Self::made(handle, addr, room, Making::ANY)
    }

    pub(crate) fn made(
        handle: &NodeHandle,
        addr: GlobalAddr,
        room: usize,
        making: Making,
    ) -> Result<Self, Error> {
        Ok(Self { region: Region::sized(handle, addr, Self::bytes(room))?, making })
    }

    /// Bytes of memory that one with so much room takes.
    pub(crate) const fn bytes(room: usize) -> u64 {
        (room as u64).saturating_add((list::LIST * 8) as u64)
    }

    /// How much room there is in so many bytes.
    pub(crate) const fn room_of(bytes: u64) -> usize {
        bytes.saturating_sub((list::LIST * 8) as u64) as usize
    }

    /// Bytes that there is room for.
    pub const fn room(&self) -> usize {
        self.region.bytes() - list::LIST * 8
    }

    /// The same lock as bytes, the list among them: for bindings, which take it as they take others ([`NodeHandle::locked_bytes`]), and
    /// make its guards those of regions ([`RegionsWriteGuard::of_bytes`]).
    pub fn as_bytes(&self) -> LockedBytes {
        LockedBytes { region: self.region.clone(), len: self.region.bytes() }
    }

    pub(super) fn of_region(region: &Region) -> Option<Self> {
        region.is_sized().then(|| Self { region: region.clone(), making: Making::ANY })
    }

    /// Its address, for other processes.
    pub const fn addr(&self) -> GlobalAddr {
        self.region.addr()
    }

    /// Waits for the lock, and gives its memory back.
    ///
    /// # Errors
    /// As for [`Locked::free`](crate::Locked::free).
    pub fn free(self, handle: &mut NodeHandle) -> Result<(), Error> {
        self.region.free(handle)
    }

    /// Waits for the regions, to read them together with others.
    ///
    /// # Errors
    /// As for [`Locked::read`](crate::Locked::read); [`Error::Broken`] if the memory was used for something else.
    pub fn read(&self, handle: &mut NodeHandle) -> Result<RegionsReadGuard<'_>, LockError> {
        self.reader(handle, Wait::Forever).map(|guard| guard.expect("this wait has no end"))
    }

    /// Waits for the regions, to write and to change them alone.
    ///
    /// # Errors
    /// As for [`LockedRegions::read`].
    pub fn write(&self, handle: &mut NodeHandle) -> Result<RegionsWriteGuard<'_>, LockError> {
        self.writer(handle, Wait::Forever).map(|guard| guard.expect("this wait has no end"))
    }

    /// The regions to read, unless somebody is writing or waits to.
    ///
    /// # Errors
    /// As for [`LockedRegions::read`].
    pub fn try_read(&self, handle: &mut NodeHandle) -> Result<Option<RegionsReadGuard<'_>>, LockError> {
        self.reader(handle, Wait::Not)
    }

    /// The regions to write, unless somebody has them or waits for them.
    ///
    /// # Errors
    /// As for [`LockedRegions::read`].
    pub fn try_write(&self, handle: &mut NodeHandle) -> Result<Option<RegionsWriteGuard<'_>>, LockError> {
        self.writer(handle, Wait::Not)
    }

    /// Waits for the regions at most so long, to read them.
    ///
    /// # Errors
    /// As for [`LockedRegions::read`].
    pub fn read_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<RegionsReadGuard<'_>>, LockError> {
        self.reader(handle, at_most(most))
    }

    /// Waits for the regions at most so long, to write them.
    ///
    /// # Errors
    /// As for [`LockedRegions::read`].
    pub fn write_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<RegionsWriteGuard<'_>>, LockError> {
        self.writer(handle, at_most(most))
    }

    /// Waits for the lock, at most so long, and holds it without a borrow, as [`LockedBytes::hold`](crate::LockedBytes::hold) does.
    ///
    /// # Errors
    /// As for [`LockedRegions::read`].
    pub fn hold(
        &self,
        handle: &mut NodeHandle,
        mode: LockMode,
        most: Duration,
    ) -> Result<Option<HeldRegions>, LockError> {
        let region = (self.region.clone(), self.region.bytes());
        let Some(held) = HeldLock::enter(handle, region, mode, at_most(most), None)? else { return Ok(None) };
        match self.making.check(held.look().words()) {
            Ok(()) if held.is_to_write() => held.granted(),
            Ok(()) => {}
            Err(Flaw::Poisoned) => return Err(LockError::Poisoned { addr: self.addr() }),
            Err(Flaw::Another) => return Err(Error::Lost { addr: self.addr() }.into()),
        }
        Ok(Some(HeldRegions::of(held)))
    }

    /// Waits for the regions, to write them, also if they are poisoned. They are not any more.
    ///
    /// # Errors
    /// If the lock cannot be taken; [`Error::Broken`] if there is no list any more.
    pub fn write_poisoned(&self, handle: &mut NodeHandle) -> Result<RegionsWriteGuard<'_>, Error> {
        let inside = self.enter(handle, Mode::Write, Wait::Forever)?.expect("this wait has no end");
        match self.making.check(inside.words()) {
            Err(Flaw::Another) => Err(Error::Lost { addr: self.addr() }),
            _ => {
                header::clear_poison(inside.words());
                RegionsWriteGuard::of(inside)
            }
        }
    }

    fn reader(&self, handle: &mut NodeHandle, wait: Wait) -> Result<Option<RegionsReadGuard<'_>>, LockError> {
        let inside = self.enter_whole(handle, Mode::Read, wait)?;
        Ok(inside.map(RegionsReadGuard::of).transpose()?)
    }

    fn writer(
        &self,
        handle: &mut NodeHandle,
        wait: Wait,
    ) -> Result<Option<RegionsWriteGuard<'_>>, LockError> {
        let inside = self.enter_whole(handle, Mode::Write, wait)?;
        Ok(inside.map(RegionsWriteGuard::of).transpose()?)
    }

    /// Enters, unless the regions are poisoned or others than those that were meant.
    fn enter_whole(
        &self,
        handle: &mut NodeHandle,
        mode: Mode,
        wait: Wait,
    ) -> Result<Option<Inside<'_>>, LockError> {
        let Some(inside) = self.enter(handle, mode, wait)? else { return Ok(None) };
        match self.making.check(inside.words()) {
            Ok(()) => Ok(Some(inside)),
            Err(Flaw::Poisoned) => Err(LockError::Poisoned { addr: self.addr() }),
            Err(Flaw::Another) => Err(Error::Lost { addr: self.addr() }.into()),
        }
    }

    fn enter(&self, handle: &mut NodeHandle, mode: Mode, wait: Wait) -> Result<Option<Inside<'_>>, Error> {
        match self.region.enter_here(handle, mode) {
            Some(came) => Ok(Some(came.stays())),
            None => self.region.enter(handle, mode, wait),
        }
    }
}
