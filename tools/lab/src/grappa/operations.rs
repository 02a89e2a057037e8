//! What a core does for its own worker and for those of others.
//!
//! A delegate carries a closure in Grappa. Here the closure stays with the thread that gave it: when the delegate is
//! executed, at its block's core, the thread is woken, runs the closure on the home's memory at that moment, and sends
//! the reply in that core's name. What must always hold: this happens once for each operation.

use node::{Access, Window};
use sim::system::{Call, Operation, Outcome, Progress, ThreadId};
use wire::{BlockTag, GlobalAddr, Nanos, Refusal};

use super::Grappa;
use super::message::{Body, Message};
use crate::home::Asked;

/// How far a thread's operation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// There is none.
    Idle,
    /// Its delegate is on its way.
    Asked,
    /// Its delegate is at the core of its block.
    Executing,
    /// The reply is on its way.
    Executed,
    /// The reply is there.
    Answered,
    /// It waits for a lock.
    Locking,
    /// It holds the lock.
    Locked,
    /// It does not get it.
    Refused,
}

impl Grappa {
    fn phase(&mut self, thread: ThreadId) -> &mut Phase {
        &mut self.threads[usize::from(thread.0)]
    }

    pub(super) fn operate(
        &mut self,
        call: &mut Call<'_, Message>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        let at_once = self.config.costs.access;
        match operation {
            Operation::Touch { addr, len, access, with } => {
                self.touch(call, thread, (*addr, *len, *access), *with)
            }
            Operation::Alloc { len, home, .. } => match self.machines[home.index()].heap.alloc(*len) {
                Some(addr) => Progress::Done(Outcome::Allocated(addr, true), at_once),
                None => Progress::Failed(Refusal::OutOfMemory),
            },
            // Nothing is allocated twice, so there is nothing to take back.
            Operation::Free { .. } => Progress::Done(Outcome::Done, at_once),
            Operation::Region(_) | Operation::Own(_) => Progress::Failed(Refusal::WrongDiscipline),
            Operation::Lock { addr, write, once } => self.lock(call, thread, *addr, *write, *once),
            Operation::Unlock { token } => {
                let (tag, write) = (BlockTag::from_bits(*token & !1), *token & 1 == 1);
                let core = self.owner(tag);
                if core == thread {
                    self.on_unlock(call, core, tag, write);
                } else {
                    self.send(call, thread, core, Body::Unlock { tag, write });
                }
                Progress::Done(Outcome::Done, self.config.costs.list)
            }
        }
    }

    fn touch(
        &mut self,
        call: &mut Call<'_, Message>,
        thread: ThreadId,
        (addr, len, access): (GlobalAddr, usize, Access),
        with: &mut dyn FnMut(&Window<'_>),
    ) -> Progress {
        let tag = self.config.block.tag(addr);
        let (core, block) = (self.owner(tag), self.index(tag));
        let at = self.config.block.offset_in_block(addr);
        match *self.phase(thread) {
            Phase::Idle if core == thread => {
                self.machines[tag.home().index()].memory.touch(block, at, len, access, with);
                self.counters.local += 1;
                return Progress::Done(Outcome::Done, self.config.costs.access);
            }
            Phase::Idle => {
                call.charge(self.config.costs.asking());
                self.send(call, thread, core, Body::Delegate { asker: thread });
                *self.phase(thread) = Phase::Asked;
            }
            Phase::Executing => {
                self.machines[tag.home().index()].memory.touch(block, at, len, access, with);
                self.counters.delegates += 1;
                self.send(call, core, thread, Body::Reply);
                *self.phase(thread) = Phase::Executed;
            }
            Phase::Asked | Phase::Executed => {}
            Phase::Answered => {
                *self.phase(thread) = Phase::Idle;
                return Progress::Done(Outcome::Done, Nanos::ZERO);
            }
            other => unreachable!("{thread:?} wants to access memory and is at {other:?}"),
        }
        Progress::Waits
    }

    /// A delegate is at the core of its block.
    pub(super) fn on_delegate(&mut self, call: &mut Call<'_, Message>, asker: ThreadId) {
        let before = core::mem::replace(self.phase(asker), Phase::Executing);
        assert_eq!(before, Phase::Asked, "a delegate of {asker:?} is executed once");
        call.wake(asker);
    }

    pub(super) fn on_reply(&mut self, call: &mut Call<'_, Message>, asker: ThreadId) {
        let before = core::mem::replace(self.phase(asker), Phase::Answered);
        assert_eq!(before, Phase::Executed, "a delegate of {asker:?} is answered once");
        call.wake(asker);
    }

    fn lock(
        &mut self,
        call: &mut Call<'_, Message>,
        thread: ThreadId,
        addr: GlobalAddr,
        write: bool,
        once: bool,
    ) -> Progress {
        let tag = self.config.block.tag(addr);
        let (core, token) = (self.owner(tag), Outcome::Locked(tag.bits() | u64::from(write)));
        match *self.phase(thread) {
            Phase::Idle if core == thread => {
                match self.machines[tag.home().index()].locks.ask(tag, thread, write, once) {
                    Asked::Granted => return Progress::Done(token, self.config.costs.access),
                    Asked::Refused => return Progress::Failed(Refusal::Locked),
                    Asked::Queued => *self.phase(thread) = Phase::Locking,
                }
            }
            Phase::Idle => {
                call.charge(self.config.costs.asking());
                self.send(call, thread, core, Body::Lock { asker: thread, tag, write, once });
                *self.phase(thread) = Phase::Locking;
            }
            Phase::Locking => {}
            Phase::Locked => {
                *self.phase(thread) = Phase::Idle;
                return Progress::Done(token, Nanos::ZERO);
            }
            Phase::Refused => {
                *self.phase(thread) = Phase::Idle;
                return Progress::Failed(Refusal::Locked);
            }
            other => unreachable!("{thread:?} wants a lock and is at {other:?}"),
        }
        Progress::Waits
    }

    pub(super) fn on_lock(
        &mut self,
        call: &mut Call<'_, Message>,
        core: ThreadId,
        asker: ThreadId,
        tag: BlockTag,
        write: bool,
        once: bool,
    ) {
        match self.machines[tag.home().index()].locks.ask(tag, asker, write, once) {
            Asked::Granted => self.send(call, core, asker, Body::LockReply { granted: true }),
            Asked::Refused => self.send(call, core, asker, Body::LockReply { granted: false }),
            Asked::Queued => {}
        }
    }

    pub(super) fn on_unlock(
        &mut self,
        call: &mut Call<'_, Message>,
        core: ThreadId,
        tag: BlockTag,
        write: bool,
    ) {
        for next in self.machines[tag.home().index()].locks.release(tag, write) {
            if next == core {
                self.on_lock_reply(call, next, true);
            } else {
                self.send(call, core, next, Body::LockReply { granted: true });
            }
        }
    }

    pub(super) fn on_lock_reply(&mut self, call: &mut Call<'_, Message>, asker: ThreadId, granted: bool) {
        *self.phase(asker) = if granted { Phase::Locked } else { Phase::Refused };
        call.wake(asker);
    }
}
