//! A lock that is held without a reference to whatever it was taken through: [`LockMemory`] on a live rack.

use std::mem::ManuallyDrop;

use live::actor::Wait;
use wire::{GlobalAddr, Mode, NodeId};

use super::inside::{Inside, Region};
use super::view;
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::LockMode;
use crate::memory::LockMemory;

/// A lock that is held, with its bytes ([`LockMemory`]). It is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct HeldLock {
    region: Region,
    /// On which node, and how.
    inside: (NodeId, Mode),
    len: usize,
}

impl HeldLock {
    fn enter(
        handle: &mut NodeHandle,
        (addr, len): (GlobalAddr, usize),
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Self>, Error> {
        let (region, mode) = (Region::new(handle, addr, len as u64)?, mode.into());
        let inside = match region.enter_here(handle, mode) {
            Some(inside) => Some(inside),
            None => region.enter(handle, mode, wait)?,
        };
        let inside = inside.map(Inside::stay);
        Ok(inside.map(|inside| Self { region, inside, len }))
    }

    /// The thread, which stays inside.
    fn look(&self) -> ManuallyDrop<Inside<'_>> {
        ManuallyDrop::new(Inside::again(&self.region, self.inside))
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        drop(Inside::again(&self.region, self.inside));
    }
}

impl LockMemory for NodeHandle {
    type Held = HeldLock;

    async fn lock(&mut self, addr: GlobalAddr, len: usize, mode: LockMode) -> Result<HeldLock, Error> {
        let held = HeldLock::enter(self, (addr, len), mode, Wait::Forever)?;
        Ok(held.expect("this wait has no end"))
    }

    async fn try_lock(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mode: LockMode,
    ) -> Result<Option<HeldLock>, Error> {
        HeldLock::enter(self, (addr, len), mode, Wait::Not)
    }

    async fn lock_anew(&mut self, addr: GlobalAddr, len: usize) -> Result<HeldLock, Error> {
        let region = Region::new(self, addr, len as u64)?;
        let inside = region.enter_alone(self)?.0.stay();
        Ok(HeldLock { region, inside, len })
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
