//! Regions that a program reaches through pointers while it holds their lock.
//!
//! A region that a lock has taken in has an address of the rack. There a process that has joined sees it, where coherent memory would be
//! mapped, so a pointer into it holds in every process. The pages are the process's own ([`GuardedRange`]): the bytes of the lock's copy
//! are copied to them by whoever comes in, and back by whoever leaves after writing.
//!
//! What must always hold: pages are accessible only while a thread of this process is inside, and to be written only while it is alone;
//! and they show the version of the regions that this thread found.
//!
//! Unsafe code: the pages as plain bytes.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use live::memory::pages::{self, Addresses, GuardedRange, Refused};
use live::networked::NotMapped;
use wire::GlobalAddr;

use super::{LockedRegions, RegionsReadGuard, RegionsWriteGuard};
use crate::handle::NodeHandle;
use crate::locked::error::LockError;
use crate::locked::inside::Version;
use crate::mapping::MapError;

/// The views of this process, by the addresses of their locks.
#[derive(Default)]
pub(crate) struct AllViews(Mutex<BTreeMap<GlobalAddr, Weak<Views>>>);

/// What this process sees of one lock's regions.
struct Views {
    lock: GlobalAddr,
    addresses: Addresses,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Threads that use them: several read, or one writes.
    inside: usize,
    views: Vec<View>,
}

/// A region.
struct View {
    from: GlobalAddr,
    range: GuardedRange,
    /// What the pages hold; None: that is not known.
    version: Option<Version>,
}

/// A lock over regions, those of which it has taken in ([`RegionsWriteGuard::take_in`]) this process sees through pointers: while it holds
/// the lock by this, and not otherwise. Cheap to clone.
///
/// A region is where [`Rack::pointer_to`](crate::Rack::pointer_to) says of the memory that it was taken from, in every process. An access
/// while the lock is not held, or a store while it is held to read, ends the process with a line that names the lock.
#[derive(Clone)]
pub struct MappedRegions {
    lock: LockedRegions,
    views: Arc<Views>,
}

/// The regions, to be read. The lock is released when this is dropped, and pointers to them are void.
#[must_use = "the lock is released when this is dropped"]
pub struct MappedReadGuard<'a> {
    mapped: &'a MappedRegions,
    regions: RegionsReadGuard<'a>,
}

/// The regions, to be written. The lock is released when this is dropped, and pointers to them are void.
#[must_use = "the lock is released when this is dropped"]
pub struct MappedWriteGuard<'a> {
    mapped: &'a MappedRegions,
    regions: RegionsWriteGuard<'a>,
}

impl LockedRegions {
    /// Lets this process, which has joined a rack of processes, see what the lock has taken in through pointers. That memory is whole
    /// pages: who allocates a multiple of the rack's block size has them.
    ///
    /// # Errors
    /// [`MapError`] says what stands in the way, and what to do about it.
    pub fn map(&self) -> Result<MappedRegions, MapError> {
        let rack = self.region.rack();
        if rack.attached().is_some() {
            return Err(MapError::Attached);
        }
        let node = rack.joined().ok_or(MapError::Embedded)?;
        Addresses::can_guard(rack.config.block_size).map_err(refused)?;
        let addresses = node.addresses().map_err(MapError::NotMapped)?;
        Ok(MappedRegions { lock: self.clone(), views: rack.views.of(self.addr(), addresses) })
    }
}

impl AllViews {
    fn of(&self, lock: GlobalAddr, addresses: Addresses) -> Arc<Views> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(views) = all.get(&lock).and_then(Weak::upgrade) {
            return views;
        }
        all.retain(|_, views| views.strong_count() > 0);
        let views = Arc::new(Views { lock, addresses, state: Mutex::default() });
        all.insert(lock, Arc::downgrade(&views));
        views
    }
}

impl MappedRegions {
    /// Waits for the regions, to read them together with others.
    ///
    /// # Errors
    /// [`MapError::Lock`] as for [`LockedRegions::read`]; else why a region cannot be mapped.
    pub fn read(&self, handle: &mut NodeHandle) -> Result<MappedReadGuard<'_>, MapError> {
        self.to_read(self.lock.read(handle)?)
    }

    /// Waits for the regions, to write and to change them alone.
    ///
    /// # Errors
    /// As for [`MappedRegions::read`].
    pub fn write(&self, handle: &mut NodeHandle) -> Result<MappedWriteGuard<'_>, MapError> {
        self.to_write(self.lock.write(handle)?)
    }

    /// Waits for the regions at most so long, to read them.
    ///
    /// # Errors
    /// As for [`MappedRegions::read`].
    pub fn read_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<MappedReadGuard<'_>>, MapError> {
        self.lock.read_timeout(handle, most)?.map(|regions| self.to_read(regions)).transpose()
    }

    /// Waits for the regions at most so long, to write them.
    ///
    /// # Errors
    /// As for [`MappedRegions::read`].
    pub fn write_timeout(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
    ) -> Result<Option<MappedWriteGuard<'_>>, MapError> {
        self.lock.write_timeout(handle, most)?.map(|regions| self.to_write(regions)).transpose()
    }

    fn to_read<'a>(&'a self, regions: RegionsReadGuard<'a>) -> Result<MappedReadGuard<'a>, MapError> {
        self.show(&regions, false)?;
        Ok(MappedReadGuard { mapped: self, regions })
    }

    fn to_write<'a>(&'a self, regions: RegionsWriteGuard<'a>) -> Result<MappedWriteGuard<'a>, MapError> {
        self.show(&regions, true)?;
        Ok(MappedWriteGuard { mapped: self, regions })
    }

    /// Shows the regions of a lock that this process holds, of this lock: for bindings. Whoever has had them shown to read calls
    /// [`hide`](Self::hide) before it leaves, and to write [`take_back`](Self::take_back).
    ///
    /// # Errors
    /// Why one cannot be mapped: then none is.
    pub fn show(&self, regions: &RegionsReadGuard<'_>, writes: bool) -> Result<(), MapError> {
        let mut state = self.views.state();
        // Who is beside others reads what they read.
        if state.inside == 0 || writes {
            assert_eq!(state.inside, 0, "whoever writes is alone");
            let shown = self.views.arrange(&mut state, regions).and_then(|()| state.show(regions, writes));
            shown.inspect_err(|_| state.hide())?;
        }
        state.inside += 1;
        Ok(())
    }

    /// A thread that reads is about to leave.
    pub fn hide(&self) {
        let mut state = self.views.state();
        state.inside -= 1;
        if state.inside == 0 {
            state.hide();
        }
    }

    /// A thread that writes is about to leave, or to change the list: what it has written becomes that of the regions.
    pub fn take_back(&self, regions: &mut RegionsWriteGuard<'_>) {
        let mut state = self.views.state();
        if std::mem::take(&mut state.inside) == 0 {
            // They could not be shown.
            return;
        }
        for number in 0..regions.len() {
            let from = regions.taken_from(number);
            let view = state.views.iter_mut().find(|view| Some(view.from) == from);
            if let Some((view, bytes)) = view.zip(regions.get_mut(number)) {
                view.range.copy_to(bytes);
                view.version = regions.version();
            }
        }
        state.hide();
    }

    /// Where this process sees a region of the lock while it is shown. None: it is not.
    pub fn pointer(&self, regions: &RegionsReadGuard<'_>, number: usize) -> Option<*mut u8> {
        let from = regions.taken_from(number)?;
        let state = self.views.state();
        let view = state.views.iter().find(|view| view.from == from);
        view.filter(|_| state.inside > 0).map(|view| view.range.as_ptr())
    }
}

impl Views {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a view of every region that was taken in, and of nothing else.
    fn arrange(&self, state: &mut State, regions: &RegionsReadGuard<'_>) -> Result<(), MapError> {
        let taken = || {
            (0..regions.len())
                .filter_map(|number| Some((regions.taken_from(number)?, regions.get(number)?.len())))
        };
        state.views.retain(|view| taken().any(|region| region == (view.from, view.range.len())));
        for (from, len) in taken() {
            if state.views.iter().any(|view| view.from == from) {
                continue;
            }
            if len == 0 || ![from.bits(), len as u64].iter().all(|it| it.is_multiple_of(pages::PAGE as u64)) {
                return Err(MapError::NoPages { addr: from, len });
            }
            let range = GuardedRange::open(&self.addresses, (from, len), self.lock);
            let range = range.map_err(|why| MapError::NotMapped(NotMapped::Range(why)))?;
            state.views.push(View { from, range, version: None });
        }
        Ok(())
    }
}

impl State {
    /// Fills pages that hold another version than that which was found, and lets them be used.
    fn show(&mut self, regions: &RegionsReadGuard<'_>, writes: bool) -> Result<(), MapError> {
        let found = regions.version().map(|version| version.before(writes));
        let allow =
            |view: &View, writes| view.range.allow(writes).map_err(|why| refused(Refused::Failed(why)));
        for number in 0..regions.len() {
            let from = regions.taken_from(number);
            let Some(view) = self.views.iter_mut().find(|view| Some(view.from) == from) else { continue };
            if view.version.is_none() || view.version != found {
                view.version = None;
                allow(view, true)?;
                view.range.fill(regions.get(number).expect("it is there"));
                view.version = found;
            }
            allow(view, writes)?;
            if writes {
                // Until they are taken back.
                view.version = None;
            }
        }
        Ok(())
    }

    fn hide(&self) {
        self.views.iter().for_each(|view| view.range.forbid());
    }
}

fn refused(why: Refused) -> MapError {
    MapError::NotMapped(NotMapped::Refused(Arc::new(why)))
}

impl From<LockError> for MapError {
    fn from(why: LockError) -> Self {
        Self::Lock(why)
    }
}

impl<'a> MappedReadGuard<'a> {
    /// Where a region is in every process that maps it. None: there is no such region, or it was made by the lock and has no address.
    pub fn as_ptr(&self, number: usize) -> Option<*const u8> {
        self.mapped.pointer(&self.regions, number).map(<*mut u8>::cast_const)
    }

    /// The regions, which are the same: what is in the lock's own copy.
    pub const fn regions(&self) -> &RegionsReadGuard<'a> {
        &self.regions
    }
}

impl Drop for MappedReadGuard<'_> {
    fn drop(&mut self) {
        self.mapped.hide();
    }
}

impl<'a> MappedWriteGuard<'a> {
    /// Where a region is in every process that maps it, as for [`MappedReadGuard::as_ptr`].
    pub fn as_mut_ptr(&mut self, number: usize) -> Option<*mut u8> {
        self.mapped.pointer(&self.regions, number)
    }

    /// The bytes of a region.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut [u8]> {
        let len = self.regions.get(number)?.len();
        match self.mapped.pointer(&self.regions, number) {
            // SAFETY: the pages are shown to this thread alone until the lock is left, for which this has to be dropped. The borrow is
            // unique, and who has pointers into the region is told that they are void while references are used.
            Some(first) => Some(unsafe { std::slice::from_raw_parts_mut(first, len) }),
            None => self.regions.get_mut(number),
        }
    }

    /// Changes the list of regions, or looks at it: takes memory in, gives it back, adds regions, takes some away. Pointers to regions are
    /// void meanwhile.
    ///
    /// # Errors
    /// Why a region cannot be mapped after that: then the lock is held, and none is.
    pub fn change<R>(&mut self, work: impl FnOnce(&mut RegionsWriteGuard<'a>) -> R) -> Result<R, MapError> {
        self.mapped.take_back(&mut self.regions);
        let done = work(&mut self.regions);
        self.mapped.show(&self.regions, true)?;
        Ok(done)
    }
}

impl Drop for MappedWriteGuard<'_> {
    fn drop(&mut self) {
        self.mapped.take_back(&mut self.regions);
    }
}
