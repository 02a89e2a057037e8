//! Locks by messages: the daemon holds them, for as long as the application lives and has not left them.
//!
//! The thread that has a lock with its bytes has a copy of them ([`LockCopies::own`]), which looks to it as a node's copy does. What
//! it has written there goes back with the message that it leaves. If it dies before that, nothing of it counts. What must
//! always hold: each copy that somebody is inside of is in [`Attached::held`].

use std::sync::Arc;

use live::actor::Wait;
use live::memory::locks::{Entered, LockCopies};
use node::Window;
use wire::{GlobalAddr, Mode, NodeId, region_bytes};

use super::answer::Answer;
use super::client::{Attached, Held};
use super::conversation::Conversation;
use super::operation::{Operation, lock_mode};
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::LockMode;

/// A block lock that the daemon holds.
pub(crate) struct AskedLock {
    conversation: Arc<Conversation>,
    lock: u32,
}

impl Drop for AskedLock {
    fn drop(&mut self) {
        self.conversation.tell(&Operation::Unlock { lock: self.lock });
    }
}

impl NodeHandle {
    pub(crate) fn ask_for_block_lock(
        &self,
        addr: GlobalAddr,
        mode: LockMode,
        once: bool,
    ) -> Result<Option<(AskedLock, Option<NodeId>)>, Error> {
        let conversation = self.conversation()?;
        self.ask(&Operation::Lock { addr, mode, once }, |answer| match answer {
            Answer::Locked(lock, died) => {
                Some(Some((AskedLock { conversation: Arc::clone(conversation), lock }, died)))
            }
            Answer::Busy if once => Some(None),
            _ => None,
        })
    }

    /// Takes a lock with its bytes. None: not within the wait, or the lock is not lost any more.
    pub(crate) fn ask_to_enter<'a>(
        &self,
        copies: &'a LockCopies,
        (addr, len): (GlobalAddr, u32),
        (mode, wait): (Mode, Wait),
        is_headed: bool,
    ) -> Result<Option<Entered<'a>>, Error> {
        let bytes = region_bytes(len) as usize;
        let operation = Operation::Enter { addr, len: len as usize, mode: lock_mode(mode), wait, is_headed };
        let held = self.ask(&operation, |answer| match answer {
            Answer::Held(lock, died, contents) if contents.len() == bytes => {
                Some(Some((lock, died, contents)))
            }
            Answer::Busy if wait != Wait::Forever => Some(None),
            _ => None,
        })?;
        let Some((lock, died, contents)) = held else { return Ok(None) };
        let copy = copies.own(len, mode);
        Window::new(copy.words(), 0, bytes).write(0, &contents);
        let conversation = Arc::clone(self.conversation()?);
        self.asking().attached().held().insert(copy.number(), Held { conversation, lock, died });
        Ok(Some(copy))
    }
}

impl Attached {
    /// The node that has died, or was taken for dead, with a thread inside to write: nobody has written since.
    pub(crate) fn writer_that_died(&self, copy: u32) -> Option<NodeId> {
        self.held().get(&copy).and_then(|held| held.died)
    }

    /// A thread has left its copy.
    pub(crate) fn left(&self, copies: &LockCopies, copy: Entered<'_>, mode: Mode) {
        let Held { conversation, lock, .. } = self.take_held(copy);
        let written = (mode == Mode::Write).then(|| {
            let mut bytes = vec![0; size_of_val(copy.words())];
            Window::new(copy.words(), 0, bytes.len()).read(0, &mut bytes);
            bytes
        });
        copies.disown(copy);
        conversation.tell(&Operation::Leave { lock, bytes: written.as_deref() });
    }

    /// A thread that is inside to write ends the lock, or it is lost once more.
    pub(crate) fn end_lock(
        &self,
        copies: &LockCopies,
        copy: Entered<'_>,
        is_lost: bool,
    ) -> Result<(), Error> {
        let Held { conversation, lock, .. } = self.take_held(copy);
        let _ = copy.leave(Mode::Write);
        copies.disown(copy);
        conversation.done(&Operation::End { lock, is_lost })
    }

    fn take_held(&self, copy: Entered<'_>) -> Held {
        let held = self.held().remove(&copy.number());
        held.unwrap_or_else(|| panic!("copy {} is nobody's", copy.number()))
    }
}
