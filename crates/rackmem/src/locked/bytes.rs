//! A region of plain bytes behind a lock that carries it.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use live::actor::Wait;
use wire::{GlobalAddr, Mode, NodeId};

use super::header;
use super::held::HeldLock;
use super::inside::{InsideTo, Region, at_most};
use super::regions::LockedRegions;
use super::view;
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::LockMode;

/// A reader-writer lock over `len` bytes at an address of an allocation of [`Discipline::Locked`](crate::Discipline::Locked).
/// Not poisoned by panics: there is no space for a mark, and there may be no bytes at all.
///
/// ```
/// # use rackmem::{Config, Discipline, NodeId, Rack};
/// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
/// # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
/// let addr = here.alloc(100, NodeId(1), Discipline::Locked)?;
/// let lock = here.rwlock(addr, 100)?;
/// lock.write(&mut here)?[..5].copy_from_slice(b"hello");
/// assert_eq!(&lock.read(&mut there)?[..5], b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LockedBytes {
    pub(super) region: Region,
    pub(super) len: usize,
}

/// The bytes, to be read. The lock is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct BytesReadGuard<'a> {
    pub(super) inside: InsideTo<'a, false>,
    pub(super) len: usize,
}

/// The bytes, to be written. The lock is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct BytesWriteGuard<'a> {
    pub(super) inside: InsideTo<'a, true>,
    pub(super) len: usize,
}

impl NodeHandle {
    /// The lock over `len` bytes at `addr`. All threads of the rack have to name one length for a lock; 0 is one, too: then
    /// the lock guards whatever the application says. What the bytes are before they are first written is not defined,
    /// if the memory was used before.
    ///
    /// # Errors
    /// [`Error::Unaligned`], [`Error::NoSuchNode`], [`Error::OutOfRange`], [`Error::RegionTooLong`].
    pub fn rwlock(&self, addr: GlobalAddr, len: usize) -> Result<LockedBytes, Error> {
        Ok(LockedBytes { region: Region::new(self, addr, len as u64)?, len })
    }

    /// The lock over a [`Locked`](crate::Locked) of so many bytes at `addr`, for bindings, which have no types. Its bytes are behind two
    /// words: whether they are poisoned is the lowest bit of the first, its others are the number under which a lock with a name was made
    /// ([`NamedInfo::making`](crate::NamedInfo::making)); the second is the fencing number, which every write grant raises.
    ///
    /// # Errors
    /// As for [`NodeHandle::rwlock`].
    pub fn locked_bytes(&self, addr: GlobalAddr, len: usize) -> Result<LockedBytes, Error> {
        let len = len.saturating_add(header::BYTES);
        Ok(LockedBytes { region: Region::headed(self, addr, len as u64)?, len })
    }
}

impl LockedBytes {
    /// Where the bytes are.
    pub const fn addr(&self) -> GlobalAddr {
        self.region.addr()
    }

    /// The lock over regions that this is ([`LockedRegions::as_bytes`]); None if it is another one.
    pub fn regions(&self) -> Option<LockedRegions> {
        LockedRegions::of_region(&self.region)
    }

    /// How many.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Waits for the lock, and ends it, also if it is lost. Whoever waits for it, or asks later, gets a new one: the same bytes
    /// may be locked anew, with another length, too. To be called before the allocation that the bytes lie in is freed; if others
    /// may still ask for it, [`LockedBytes::free`] leaves them no time for that.
    ///
    /// # Errors
    /// If the lock cannot be taken.
    pub fn end(self, handle: &mut NodeHandle) -> Result<(), Error> {
        self.region.end(handle)
    }

    /// Waits for the lock, and gives back the allocation that begins where the bytes do. Whoever waits for the lock, or asks later,
    /// is told that there is no such lock ([`Error::Unallocated`]). A lost one can be freed, too.
    ///
    /// # Errors
    /// If the lock cannot be taken, or its address is not that of an allocation.
    pub fn free(self, handle: &mut NodeHandle) -> Result<(), Error> {
        self.region.free(handle)
    }

    /// Waits for the bytes, to read them together with others.
    ///
    /// # Errors
    /// If there is no such lock ([`Error::Unallocated`], [`Error::WrongDiscipline`], [`Error::WrongLength`]), or no more
    /// ([`Error::Lost`], [`Error::NodeDown`], [`Error::Fenced`]).
    #[inline]
    pub fn read(&self, handle: &mut NodeHandle) -> Result<BytesReadGuard<'_>, Error> {
        self.reader(handle, Wait::Forever).map(|guard| guard.expect("this wait has no end"))
    }

    /// Waits for the bytes, to write them alone.
    ///
    /// # Errors
    /// As for [`LockedBytes::read`].
    #[inline]
    pub fn write(&self, handle: &mut NodeHandle) -> Result<BytesWriteGuard<'_>, Error> {
        self.writer(handle, Wait::Forever).map(|guard| guard.expect("this wait has no end"))
    }

    /// The bytes to read, unless somebody is writing or waits to. (A message may have to travel.)
    ///
    /// # Errors
    /// As for [`LockedBytes::read`].
    pub fn try_read(&self, handle: &mut NodeHandle) -> Result<Option<BytesReadGuard<'_>>, Error> {
        self.reader(handle, Wait::Not)
    }

    /// The bytes to write, unless somebody has them or waits for them. (A message may have to travel.)
    ///
    /// # Errors
    /// As for [`LockedBytes::read`].
    pub fn try_write(&self, handle: &mut NodeHandle) -> Result<Option<BytesWriteGuard<'_>>, Error> {
        self.writer(handle, Wait::Not)
    }

    /// Waits for the bytes at most so long, to read them.
    ///
    /// # Errors
    /// As for [`LockedBytes::read`].
    pub fn read_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<BytesReadGuard<'_>>, Error> {
        self.reader(handle, at_most(most))
    }

    /// Waits for the bytes at most so long, to write them.
    ///
    /// # Errors
    /// As for [`LockedBytes::read`].
    pub fn write_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<BytesWriteGuard<'_>>, Error> {
        self.writer(handle, at_most(most))
    }

    /// Waits for the lock, at most so long, and holds it without a borrow: for bindings whose languages have no scopes that end. A
    /// thread that asks again by the same handle waits since it asked first.
    ///
    /// # Errors
    /// As for [`LockedBytes::read`].
    pub fn hold(
        &self,
        handle: &mut NodeHandle,
        mode: LockMode,
        most: Duration,
    ) -> Result<Option<HeldLock>, Error> {
        let guarded = (self.region.clone(), self.len);
        let held = HeldLock::enter(handle, guarded, mode, at_most(most), None)?;
        if let Some(held) = held.as_ref().filter(|held| self.region.is_headed() && held.is_to_write()) {
            held.granted();
        }
        Ok(held)
    }

    /// The bytes to read, if they are here and free, and as they should be: for bindings, which tell the ways apart. They are looked at
    /// before there is a guard, so that one is made where it stays. None: [`LockedBytes::read`] waits for them.
    #[inline(always)]
    pub fn read_here(
        &self,
        handle: &NodeHandle,
        is_right: impl FnOnce(&[AtomicU64]) -> bool,
    ) -> Option<BytesReadGuard<'_>> {
        let inside = self.region.enter_here_if(handle, Mode::Read, is_right)?.stays();
        Some(BytesReadGuard { inside: InsideTo::new(inside), len: self.len })
    }

    /// The bytes to write, as [`LockedBytes::read_here`]. Of [`NodeHandle::locked_bytes`], the caller raises the fencing number: it looks at
    /// the header anyway.
    #[inline(always)]
    pub fn write_here(
        &self,
        handle: &NodeHandle,
        is_right: impl FnOnce(&[AtomicU64]) -> bool,
    ) -> Option<BytesWriteGuard<'_>> {
        let inside = self.region.enter_here_if(handle, Mode::Write, is_right)?.stays();
        Some(BytesWriteGuard { inside: InsideTo::new(inside), len: self.len })
    }

    #[inline(always)]
    fn reader(&self, handle: &mut NodeHandle, wait: Wait) -> Result<Option<BytesReadGuard<'_>>, Error> {
        let inside = match self.region.enter_here(handle, Mode::Read) {
            Some(came) => Some(came.stays()),
            None => self.region.enter(handle, Mode::Read, wait)?,
        };
        Ok(inside.map(|inside| BytesReadGuard { inside: InsideTo::new(inside), len: self.len }))
    }

    #[inline(always)]
    fn writer(&self, handle: &mut NodeHandle, wait: Wait) -> Result<Option<BytesWriteGuard<'_>>, Error> {
        let inside = match self.region.enter_here(handle, Mode::Write) {
            Some(came) => Some(came.stays()),
            None => self.region.enter(handle, Mode::Write, wait)?,
        };
        if let Some(inside) = &inside
            && self.region.is_headed()
        {
            inside.granted();
        }
        Ok(inside.map(|inside| BytesWriteGuard { inside: InsideTo::new(inside), len: self.len }))
    }
}

impl BytesReadGuard<'_> {
    /// The words that the bytes lie in.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.inside.words()
    }

    /// Of a lock with copies: the node that has died, or was taken for dead, while one of its threads was inside to write, if nobody has
    /// written since. What it had begun is not here: the bytes are those of the last release.
    pub fn writer_that_died(&self) -> Option<NodeId> {
        self.inside.came().writer_that_died()
    }
}

impl Deref for BytesReadGuard<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        view::bytes(&self.inside, self.len)
    }
}

impl BytesWriteGuard<'_> {
    /// The words that the bytes lie in.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.inside.words()
    }

    /// Of a lock with copies: the node that has died, or was taken for dead, while one of its threads was inside to write, if nobody has
    /// written since. What it had begun is not here: the bytes are those of the last release.
    pub fn writer_that_died(&self) -> Option<NodeId> {
        self.inside.came().writer_that_died()
    }
}

impl Deref for BytesWriteGuard<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        view::bytes(&self.inside, self.len)
    }
}

impl DerefMut for BytesWriteGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        view::bytes_mut(&mut self.inside, self.len)
    }
}
