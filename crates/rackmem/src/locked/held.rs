//! A lock that is held without a reference to whatever it was taken through: [`LockMemory`] on a live rack, and bindings.

use std::mem::ManuallyDrop;

use live::actor::Wait;
use wire::{GlobalAddr, Mode, Nanos, NodeId};

use super::inside::{Inside, Region, Stayed};
use super::view;
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::LockMode;
use crate::memory::LockMemory;

/// A lock that is held, with its bytes ([`LockMemory`], [`LockedBytes::hold`](crate::LockedBytes::hold)). It is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct HeldLock {
    region: Region,
    inside: Stayed,
    len: usize,
    /// There is nothing to leave any more.
    has_ended: bool,
    /// Since when it is held to write, if somebody wants to know.
    since: Option<Nanos>,
}

impl HeldLock {
    /// Takes a lock. A thread that has asked for it before, and did not get it, waits since then.
    pub(super) fn enter(
        handle: &mut NodeHandle,
        (region, len): (Region, usize),
        mode: LockMode,
        wait: Wait,
        since: Option<Nanos>,
    ) -> Result<Option<Self>, Error> {
        let mode = mode.into();
        let inside = match region.enter_here(handle, mode) {
            Some(came) => Some(came.stays()),
            None => region.enter_since(handle, mode, wait, since)?,
        };
        let held = inside.map(|inside| {
            let since = if mode == Mode::Write { inside.came().watched_since() } else { None };
            (inside.stay(), since)
        });
        Ok(held.map(|(inside, since)| Self { region, inside, len, has_ended: false, since }))
    }

    /// The same for whoever serves others, of a length as it is said between places: a part of the region may count.
    pub(crate) fn enter_for(
        handle: &mut NodeHandle,
        (addr, len): (GlobalAddr, usize),
        mode: LockMode,
        wait: Wait,
        since: Option<Nanos>,
    ) -> Result<Option<Self>, Error> {
        let region = Region::of_said(handle, addr, len as u64)?;
        let bytes = region.bytes();
        Self::enter(handle, (region, bytes), mode, wait, since)
    }

    /// A copy of its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        view::bytes(&self.look(), self.len).to_vec()
    }

    /// A writer has come in to a region with a header: its fencing number grows.
    pub(crate) fn granted(&self) {
        self.look().granted();
    }

    /// It is held to write.
    pub fn is_to_write(&self) -> bool {
        self.inside.mode == Mode::Write
    }

    /// Of a lock with copies: the node that has died, or was taken for dead, while one of its threads was inside to write, if nobody has
    /// written since.
    pub fn writer_that_died(&self) -> Option<NodeId> {
        self.look().came().writer_that_died()
    }

    /// Replaces its bytes. False: it is not held to write, or has not so many.
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        let fits = self.is_to_write() && bytes.len() == self.len;
        if fits {
            view::bytes_mut(&mut self.look(), bytes.len()).copy_from_slice(bytes);
        }
        fits
    }

    /// Ends the lock, which is held to write; or it is lost, once more.
    pub(crate) fn end(mut self, handle: &mut NodeHandle, is_lost: bool) -> Result<(), Error> {
        self.has_ended = true;
        Inside::again(&self.region, self.inside).end(handle, is_lost)
    }

    /// The thread, which stays inside.
    pub(super) fn look(&self) -> ManuallyDrop<Inside<'_>> {
        ManuallyDrop::new(Inside::again(&self.region, self.inside))
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if !self.has_ended {
            let inside = Inside::again(&self.region, self.inside);
            self.since.into_iter().for_each(|since| inside.came().held_since(since));
        }
    }
}

impl LockMemory for NodeHandle {
    type Held = HeldLock;

    async fn lock(&mut self, addr: GlobalAddr, len: usize, mode: LockMode) -> Result<HeldLock, Error> {
        let region = Region::new(self, addr, len as u64)?;
        let held = HeldLock::enter(self, (region, len), mode, Wait::Forever, None)?;
        Ok(held.expect("this wait has no end"))
    }

    async fn try_lock(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mode: LockMode,
    ) -> Result<Option<HeldLock>, Error> {
        let region = Region::new(self, addr, len as u64)?;
        HeldLock::enter(self, (region, len), mode, Wait::Not, None)
    }

    async fn lock_anew(&mut self, addr: GlobalAddr, len: usize) -> Result<HeldLock, Error> {
        let region = Region::new(self, addr, len as u64)?;
        let inside = region.enter_alone(self)?.0.stay();
        Ok(HeldLock { region, inside, len, has_ended: false, since: None })
    }

    async fn unlock(&mut self, held: HeldLock) {
        drop(held);
    }

    async fn read_locked(&mut self, held: &HeldLock, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&view::bytes(&held.look(), held.len)[at..at + into.len()]);
    }

    async fn write_locked(&mut self, held: &mut HeldLock, at: usize, bytes: &[u8]) {
        let len = held.len;
        view::bytes_mut(&mut held.look(), len)[at..at + bytes.len()].copy_from_slice(bytes);
    }

    async fn free_locked(&mut self, addr: GlobalAddr, len: usize) -> Result<(), Error> {
        Region::new(self, addr, len as u64)?.free(self)
    }
}
