//! Block locks of attached applications: the daemon holds them, for as long as the application lives.

use std::sync::Arc;

use wire::GlobalAddr;

use super::client::{AttachedHandle, Conversation};
use super::message::{Answer, Operation};
use crate::error::Error;
use crate::lock::LockMode;

/// A block lock that is held, until this is dropped or the application dies.
#[must_use = "the lock is released when this is dropped"]
pub struct AttachedLock {
    conversation: Arc<Conversation>,
    number: u32,
}

impl AttachedHandle {
    /// Takes the lock of the block that `addr` is in, and waits for it as long as it takes.
    ///
    /// # Errors
    /// [`Error::TooManyLocks`], [`Error::Unallocated`], [`Error::NoSuchNode`], [`Error::Detached`].
    pub fn lock_block(&mut self, addr: GlobalAddr, mode: LockMode) -> Result<AttachedLock, Error> {
        self.take_lock(addr, mode, false)?.ok_or(Error::Detached)
    }

    /// Takes the lock of the block that `addr` is in, if nobody holds it in a conflicting mode.
    ///
    /// # Errors
    /// As for [`AttachedHandle::lock_block`].
    pub fn try_lock_block(
        &mut self,
        addr: GlobalAddr,
        mode: LockMode,
    ) -> Result<Option<AttachedLock>, Error> {
        self.take_lock(addr, mode, true)
    }

    fn take_lock(
        &mut self,
        addr: GlobalAddr,
        mode: LockMode,
        once: bool,
    ) -> Result<Option<AttachedLock>, Error> {
        match self.ask_one(&Operation::Lock { addr, mode, once })? {
            Answer::Locked(number) => Ok(Some(AttachedLock { conversation: self.conversation(), number })),
            Answer::Busy if once => Ok(None),
            _ => Err(Error::Detached),
        }
    }
}

impl Drop for AttachedLock {
    fn drop(&mut self) {
        self.conversation.unlock(self.number);
    }
}
