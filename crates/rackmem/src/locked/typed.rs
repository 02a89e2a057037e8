//! A value behind a lock that carries it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use live::actor::Wait;
use wire::{GlobalAddr, Mode, Nanos, NodeId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::error::LockError;
use super::header::{self, Flaw, Making};
use super::inside::{Came, Inside, Rare, Region, Stayed, at_most};
use super::making::{Counts, make_region};
use super::view::Within;
use crate::error::Error;
use crate::handle::NodeHandle;

/// A value of the rack behind a reader-writer lock, which moves to whoever takes it together with the value.
///
/// Threads of all nodes use it, each through its own handle; a `Locked` may be shared by threads, and another process makes
/// its own from the address. Values are plain: any bytes are one ([`FromBytes`]), and every byte counts ([`IntoBytes`]).
///
/// ```
/// # use rackmem::{Config, Locked, NodeId, Rack};
/// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
/// let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
/// let counter = Locked::new(&mut here, NodeId(1), [0u64, 0])?;
/// counter.write(&mut here).unwrap()[0] += 1;
/// counter.write(&mut there).unwrap()[1] += 10;
/// assert_eq!(*counter.read(&mut here).unwrap(), [1, 10]);
///
/// // Another process gets at it by its address.
/// let same = Locked::<[u64; 2]>::at(&there, counter.addr())?;
/// assert_eq!(same.read(&mut there).unwrap()[1], 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Who is served
/// In the order in which they ask, readers together. Whoever waits is passed by every other waiter a bounded number of times.
///
/// # Two at a time
/// A thread may hold any number of locks; taking them in one order everywhere keeps threads from waiting for each other in a
/// circle, which nothing here finds out. A thread that takes a lock that it holds for writing waits for itself.
pub struct Locked<T> {
    region: Region,
    making: Making,
    value: PhantomData<fn(T) -> T>,
}

/// The value, to be read. The lock is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct LockedReadGuard<'a, T> {
    within: Within<'a, T, false>,
}

/// The value, to be written. The lock is released when this is dropped; if that happens in a panic, it is poisoned.
#[must_use = "the lock is released when this is dropped"]
#[repr(C)]
pub struct LockedWriteGuard<'a, T> {
    within: Within<'a, T, true>,
    note: Note,
}

/// What is to be remembered until a writer leaves, in one word, so that most look at it once: twice the time at which it came in, if that
/// is wanted, and 1 if the thread was panicking then.
#[derive(Clone, Copy)]
struct Note(u64);

impl Note {
    #[inline(always)]
    fn new() -> Self {
        Self(u64::from(std::thread::panicking()))
    }

    fn with(self, since: Option<Nanos>) -> Self {
        Self(self.0 | since.map_or(0, |since| since.0.max(1) << 1))
    }

    const fn since(self) -> Option<Nanos> {
        if self.0 > 1 { Some(Nanos(self.0 >> 1)) } else { None }
    }
}

/// Of the write grants that need no message, so many go until one is timed: a power of two. Others take long enough to time them all.
const UNTIMED: u64 = 256;

impl<T: FromBytes + IntoBytes + KnownLayout + Immutable> Locked<T> {
    /// Bytes of memory that one takes.
    pub const BYTES: u64 = (header::BYTES + size_of::<T>().next_multiple_of(8)) as u64;

    /// A new one in the memory of `home`, with this value.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::NoSuchNode`], [`Error::NodeDown`], [`Error::RegionTooLong`].
    pub fn new(handle: &mut NodeHandle, home: NodeId, value: T) -> Result<Self, Error> {
        let header = Making::header(0, handle.inner.epoch());
        let addr = make_region(handle, home, (Self::BYTES, Counts::All), header, value.as_bytes())?;
        Self::at(handle, addr)
    }

    /// The one at this address, which [`Locked::addr`] has named: the type has to be the same.
    ///
    /// # Errors
    /// [`Error::Unaligned`], [`Error::NoSuchNode`], [`Error::OutOfRange`]. Whether there is one is found out when it is taken.
    pub fn at(handle: &NodeHandle, addr: GlobalAddr) -> Result<Self, Error> {
        Self::made(handle, addr, Making::ANY)
    }

    /// The one at this address that was made then.
    pub(crate) fn made(handle: &NodeHandle, addr: GlobalAddr, making: Making) -> Result<Self, Error> {
        Ok(Self { region: Region::headed(handle, addr, Self::BYTES)?, making, value: PhantomData })
    }

    /// Its address, for other processes.
    pub const fn addr(&self) -> GlobalAddr {
        self.region.addr()
    }

    /// Waits for the value, and gives its memory back. Whoever waits for it, or asks later, is told that there is no such
    /// lock ([`Error::Unallocated`]). A lost one can be freed, too.
    ///
    /// # Errors
    /// If the lock cannot be taken, or its address is not what [`Locked::new`] has allocated.
    pub fn free(self, handle: &mut NodeHandle) -> Result<(), Error> {
        self.region.free(handle)
    }

    /// Waits for the value, to read it together with others.
    ///
    /// # Errors
    /// [`LockError::Poisoned`]; [`LockError::Failed`] if there is no such lock ([`Error::Unallocated`],
    /// [`Error::WrongDiscipline`], [`Error::WrongLength`]), or no more ([`Error::Lost`], [`Error::NodeDown`],
    /// [`Error::Fenced`]).
    #[inline]
    pub fn read(&self, handle: &mut NodeHandle) -> Result<LockedReadGuard<'_, T>, LockError> {
        match self.region.enter_here(handle, Mode::Read) {
            Some(came) => LockedReadGuard::of(came, self.making),
            None => self.patient_reader(handle),
        }
    }

    /// Waits for the value, to write it alone.
    ///
    /// # Errors
    /// As for [`Locked::read`].
    #[inline]
    pub fn write(&self, handle: &mut NodeHandle) -> Result<LockedWriteGuard<'_, T>, LockError> {
        match self.region.enter_here(handle, Mode::Write) {
            Some(came) => LockedWriteGuard::of(came, self.making),
            None => self.patient_writer(handle),
        }
    }

    /// The value to read, unless somebody is writing or waits to. (A message may have to travel.)
    ///
    /// # Errors
    /// As for [`Locked::read`].
    #[inline]
    pub fn try_read(&self, handle: &mut NodeHandle) -> Result<Option<LockedReadGuard<'_, T>>, LockError> {
        match self.region.enter_here(handle, Mode::Read) {
            Some(came) => LockedReadGuard::of(came, self.making).map(Some),
            None => self.reader(handle, Wait::Not),
        }
    }

    /// The value to write, unless somebody has it or waits for it. (A message may have to travel.)
    ///
    /// # Errors
    /// As for [`Locked::read`].
    #[inline]
    pub fn try_write(&self, handle: &mut NodeHandle) -> Result<Option<LockedWriteGuard<'_, T>>, LockError> {
        match self.region.enter_here(handle, Mode::Write) {
            Some(came) => LockedWriteGuard::of(came, self.making).map(Some),
            None => self.writer(handle, Wait::Not),
        }
    }

    /// Waits for the value at most so long, to read it.
    ///
    /// # Errors
    /// As for [`Locked::read`].
    pub fn read_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<LockedReadGuard<'_, T>>, LockError> {
        self.reader(handle, at_most(most))
    }

    /// Waits for the value at most so long, to write it.
    ///
    /// # Errors
    /// As for [`Locked::read`].
    pub fn write_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<LockedWriteGuard<'_, T>>, LockError> {
        self.writer(handle, at_most(most))
    }

    /// Waits for the value, to read it, also if it is poisoned.
    ///
    /// # Errors
    /// If the lock cannot be taken.
    pub fn read_poisoned(&self, handle: &mut NodeHandle) -> Result<LockedReadGuard<'_, T>, Error> {
        let inside = self.enter_anyhow(handle, Mode::Read)?;
        Ok(LockedReadGuard { within: Within::new(inside.into_came()) })
    }

    /// Waits for the value, to write it, also if it is poisoned. It stays so until [`Locked::clear_poison`].
    ///
    /// # Errors
    /// If the lock cannot be taken.
    pub fn write_poisoned(&self, handle: &mut NodeHandle) -> Result<LockedWriteGuard<'_, T>, Error> {
        let inside = self.enter_anyhow(handle, Mode::Write)?;
        inside.granted();
        let came = inside.into_came();
        Ok(LockedWriteGuard { note: timed(came.rare(), Note::new()), within: Within::new(came) })
    }

    /// True if a thread has panicked while it held this for writing.
    ///
    /// # Errors
    /// If the lock cannot be taken: it is looked at inside.
    pub fn is_poisoned(&self, handle: &mut NodeHandle) -> Result<bool, Error> {
        let inside = self.enter_anyhow(handle, Mode::Read)?;
        Ok(self.making.check(inside.words()).is_err())
    }

    /// The value is right again.
    ///
    /// # Errors
    /// If the lock cannot be taken.
    pub fn clear_poison(&self, handle: &mut NodeHandle) -> Result<(), Error> {
        header::clear_poison(self.enter_anyhow(handle, Mode::Write)?.words());
        Ok(())
    }

    /// Enters, also if the value is poisoned.
    fn enter_anyhow(&self, handle: &mut NodeHandle, mode: Mode) -> Result<Inside<'_>, Error> {
        let inside = self.enter(handle, mode, Wait::Forever)?.expect("this wait has no end");
        match self.making.check(inside.words()) {
            Err(Flaw::Another) => Err(Error::Lost { addr: self.addr() }),
            _ => Ok(inside),
        }
    }

    fn enter(&self, handle: &mut NodeHandle, mode: Mode, wait: Wait) -> Result<Option<Inside<'_>>, Error> {
        self.region.enter(handle, mode, wait)
    }

    #[inline(always)]
    fn patient_reader(&self, handle: &mut NodeHandle) -> Result<LockedReadGuard<'_, T>, LockError> {
        let (stayed, _) = come(&self.region, self.making, handle, Mode::Read)?;
        Ok(LockedReadGuard { within: Within::new(Came::of((&self.region, stayed))) })
    }

    #[inline(always)]
    fn patient_writer(&self, handle: &mut NodeHandle) -> Result<LockedWriteGuard<'_, T>, LockError> {
        let (stayed, note) = come(&self.region, self.making, handle, Mode::Write)?;
        Ok(LockedWriteGuard { within: Within::new(Came::of((&self.region, stayed))), note })
    }

    fn reader(
        &self,
        handle: &mut NodeHandle,
        wait: Wait,
    ) -> Result<Option<LockedReadGuard<'_, T>>, LockError> {
        let come = come_within(&self.region, self.making, handle, (Mode::Read, wait))?;
        let at = |(stayed, _)| Came::of((&self.region, stayed));
        Ok(come.map(|it| LockedReadGuard { within: Within::new(at(it)) }))
    }

    fn writer(
        &self,
        handle: &mut NodeHandle,
        wait: Wait,
    ) -> Result<Option<LockedWriteGuard<'_, T>>, LockError> {
        let come = come_within(&self.region, self.making, handle, (Mode::Write, wait))?;
        let at = |stayed| Came::of((&self.region, stayed));
        Ok(come.map(|(stayed, note)| LockedWriteGuard { within: Within::new(at(stayed)), note }))
    }
}

/// Comes in by the long way, for as long as it takes. What it answers is not a guard: that would have to lie in memory also for those who
/// come in by the short one.
#[cold]
#[inline(never)]
fn come(
    region: &Region,
    making: Making,
    handle: &mut NodeHandle,
    mode: Mode,
) -> Result<(Stayed, Note), LockError> {
    come_within(region, making, handle, (mode, Wait::Forever)).map(|come| come.expect("this wait has no end"))
}

/// The same within a time: None if that was too short.
#[cold]
#[inline(never)]
fn come_within(
    region: &Region,
    making: Making,
    handle: &mut NodeHandle,
    (mode, wait): (Mode, Wait),
) -> Result<Option<(Stayed, Note)>, LockError> {
    let Some(inside) = region.enter(handle, mode, wait)? else { return Ok(None) };
    if let Err(flaw) = making.check(inside.words()) {
        return Err(refused(inside.into_came().rare(), flaw));
    }
    let mut note = Note(0);
    if mode == Mode::Write {
        inside.granted();
        note = timed(inside.came().rare(), Note::new());
    }
    Ok(Some((inside.stay(), note)))
}

impl<'a, T> LockedReadGuard<'a, T> {
    #[inline(always)]
    fn of(came: Came<'a>, making: Making) -> Result<Self, LockError> {
        match making.check(came.words()) {
            Ok(()) => Ok(Self { within: Within::new(came) }),
            Err(flaw) => Err(refused(came.rare(), flaw)),
        }
    }

    /// Of a lock with copies: the node that has died, or was taken for dead, while one of its threads was inside to write, if nobody has
    /// written since. What it had begun is not here: the value is that of the last release.
    pub fn writer_that_died(&self) -> Option<NodeId> {
        self.within.came().writer_that_died()
    }
}

impl<'a, T> LockedWriteGuard<'a, T> {
    #[inline(always)]
    fn of(came: Came<'a>, making: Making) -> Result<Self, LockError> {
        match making.check(came.words()) {
            Ok(()) => {
                let fence = header::granted(came.words());
                let mut note = Note::new();
                if fence.is_multiple_of(UNTIMED) {
                    note = timed(came.rare(), note);
                }
                Ok(Self { within: Within::new(came), note })
            }
            Err(flaw) => Err(refused(came.rare(), flaw)),
        }
    }

    /// The fencing number of this grant: no write grant of this value, before or after, by whomever, has had or will have it, and
    /// later ones have larger ones. A store outside the rack that remembers the largest one it was shown, and refuses what comes with
    /// a smaller one, is not changed by a holder that was taken for dead and does not know it yet.
    pub fn fence(&self) -> u64 {
        header::fence(self.within.came().words())
    }

    /// Of a lock with copies: the node that has died, or was taken for dead, while one of its threads was inside to write, if nobody has
    /// written since. What it had begun is not here: the value is that of the last release.
    pub fn writer_that_died(&self) -> Option<NodeId> {
        self.within.came().writer_that_died()
    }
}

#[cold]
#[inline(never)]
fn timed(rare: Rare<'_>, note: Note) -> Note {
    note.with(Came::of(rare).watched_since())
}

/// A writer is about to leave of whom something is to be remembered.
#[cold]
#[inline(never)]
fn leaves_noted(rare: Rare<'_>, note: Note) {
    let came = Came::of(rare);
    if note.0 & 1 == 0 && std::thread::panicking() {
        header::poison(came.words());
    }
    note.since().into_iter().for_each(|since| came.held_since(since));
}

#[cold]
#[inline(never)]
fn refused(rare: Rare<'_>, flaw: Flaw) -> LockError {
    let inside = Came::of(rare).stays();
    let addr = inside.addr();
    match flaw {
        Flaw::Poisoned => LockError::Poisoned { addr },
        Flaw::Another => Error::Lost { addr }.into(),
    }
}

impl<T> Clone for Locked<T> {
    fn clone(&self) -> Self {
        Self { region: self.region.clone(), making: self.making, value: PhantomData }
    }
}

impl<T> fmt::Debug for Locked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").field("addr", &self.region.addr()).finish_non_exhaustive()
    }
}

impl<T: FromBytes + Immutable> Deref for LockedReadGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.within.value()
    }
}

impl<T: FromBytes + Immutable> Deref for LockedWriteGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.within.value()
    }
}

impl<T: FromBytes + IntoBytes + Immutable> DerefMut for LockedWriteGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.within.value_mut()
    }
}

impl<T> Drop for LockedWriteGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.note.0 != 0 || std::thread::panicking() {
            leaves_noted(self.within.came().rare(), self.note);
        }
        self.within.leave();
    }
}

impl<T> Drop for LockedReadGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.within.leave();
    }
}

impl<T: FromBytes + Immutable + fmt::Debug> fmt::Debug for LockedReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: FromBytes + Immutable + fmt::Debug> fmt::Debug for LockedWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
