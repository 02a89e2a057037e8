//! What application threads do: accesses, allocations, locks.
//!
//! Runs in the application thread. What must always hold: an operation takes effect in one call, on contents that the
//! thread may access then.

use node::{Access, Window};
use sim::system::{Call, Operation, Outcome, Processor, Progress, ThreadId};
use wire::{BlockTag, GlobalAddr, Nanos, NodeId, Refusal};

use super::cache::{LineId, LineState};
use super::config::HandOver;
use super::message::{Body, Message};
use super::{Gam, Rules};
use crate::home::Asked;

/// Where a woken thread finds what it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Served {
    /// In this line of its node's cache.
    Line(LineId),
    /// In its node's own memory.
    Home,
}

/// A thread's request for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Locking {
    #[default]
    Idle,
    Asked,
    Granted,
    Refused,
}

/// A thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thread {
    pub(super) served: Option<Served>,
    pub(super) locking: Locking,
}

impl<R: Rules> Gam<R> {
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
            Operation::Alloc { len, home, .. } => match self.machine(*home).heap.alloc(*len) {
                Some(addr) => Progress::Done(Outcome::Allocated(addr, true), at_once),
                None => Progress::Failed(Refusal::OutOfMemory),
            },
            // Nothing is allocated twice, so there is nothing to take back.
            Operation::Free { .. } => Progress::Done(Outcome::Done, at_once),
            Operation::Region(_) | Operation::Own(_) => Progress::Failed(Refusal::WrongDiscipline),
            Operation::Lock { addr, write, once } => self.lock(call, thread, *addr, *write, *once),
            Operation::Unlock { token } => {
                let (tag, write) = (BlockTag::from_bits(*token & !1), *token & 1 == 1);
                let node = self.node_of(thread);
                if tag.home() == node {
                    self.on_unlock(call, node, tag, write);
                } else {
                    self.send(call, Processor::Thread(thread), node, tag.home(), tag, Body::Unlock { write });
                }
                Progress::Done(Outcome::Done, at_once)
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
        let (node, tag) = (self.node_of(thread), self.config.block.tag(addr));
        let at = self.config.block.offset_in_block(addr);
        match self.threads[usize::from(thread.0)].served.take() {
            Some(Served::Home) => {
                self.touch_home(tag, at, len, access, with);
                self.on_served(call, thread, tag);
                return Progress::Done(Outcome::Done, Nanos::ZERO);
            }
            Some(Served::Line(line)) => {
                let enough = match self.machine(node).cache.line(line).state {
                    LineState::Dirty => true,
                    LineState::Shared | LineState::Upgrading | LineState::Overtaken => {
                        access == Access::Shared
                    }
                    other => unreachable!("a pinned line stays: {other:?}"),
                };
                if enough {
                    self.touch_line(node, line, (at, len, access), with);
                }
                self.on_accessed(call, node, line);
                if enough {
                    return Progress::Done(Outcome::Done, Nanos::ZERO);
                }
            }
            None => {}
        }
        if tag.home() == node {
            let block = self.index(tag);
            let directory = &self.machine(node).directory;
            if directory.admits(block, access) && !directory.in_transition(block) {
                self.touch_home(tag, at, len, access, with);
                self.counters.hits += 1;
                return Progress::Done(Outcome::Done, self.config.costs.access);
            }
        } else if let Some(line) = self.machine(node).cache.find(tag) {
            let cache = &mut self.machine(node).cache;
            let state = cache.line(line).state;
            if state == LineState::Dirty || state == LineState::Shared && access == Access::Shared {
                cache.used(line);
                self.touch_line(node, line, (at, len, access), with);
                self.counters.hits += 1;
                return Progress::Done(Outcome::Done, self.config.costs.access);
            }
        }
        self.counters.misses += 1;
        call.charge(self.config.costs.access);
        let by = Processor::Thread(thread);
        match self.config.hand_over {
            HandOver::Direct => self.demand(call, by, thread, tag, access),
            HandOver::Queue => self.send(call, by, node, node, tag, Body::Work { thread, access }),
        }
        Progress::Waits
    }

    fn touch_line(
        &mut self,
        node: NodeId,
        line: LineId,
        (at, len, access): (usize, usize, Access),
        with: &mut dyn FnMut(&Window<'_>),
    ) {
        let cache = &mut self.machine(node).cache;
        let (tag, before) = (cache.line(line).tag, cache.blocks.stamp(line as usize));
        cache.blocks.touch(line as usize, at, len, access, with);
        self.note_write(tag, access, before);
    }

    fn touch_home(
        &mut self,
        tag: BlockTag,
        at: usize,
        len: usize,
        access: Access,
        with: &mut dyn FnMut(&Window<'_>),
    ) {
        let block = self.index(tag);
        let memory = &mut self.machine(tag.home()).memory;
        let before = memory.stamp(block);
        memory.touch(block, at, len, access, with);
        self.note_write(tag, access, before);
    }

    /// Keeps count of a block's writes from outside. A write to anything but the latest contents loses one.
    fn note_write(&mut self, tag: BlockTag, access: Access, before: u32) {
        if self.config.check && access == Access::Modified {
            let latest = self.latest.entry(tag).or_default();
            assert_eq!(before, *latest, "a write of {tag:?} met contents that were not the latest");
            *latest += 1;
        }
    }

    fn lock(
        &mut self,
        call: &mut Call<'_, Message>,
        thread: ThreadId,
        addr: GlobalAddr,
        write: bool,
        once: bool,
    ) -> Progress {
        let (node, tag) = (self.node_of(thread), self.config.block.tag(addr));
        let token = Outcome::Locked(tag.bits() | u64::from(write));
        let state = &mut self.threads[usize::from(thread.0)].locking;
        match core::mem::take(state) {
            Locking::Granted => return Progress::Done(token, Nanos::ZERO),
            Locking::Refused => return Progress::Failed(Refusal::Locked),
            Locking::Asked => {
                *state = Locking::Asked;
                return Progress::Waits;
            }
            Locking::Idle => {}
        }
        if tag.home() == node {
            match self.machine(node).locks.ask(tag, thread, write, once) {
                Asked::Granted => return Progress::Done(token, self.config.costs.access),
                Asked::Refused => return Progress::Failed(Refusal::Locked),
                Asked::Queued => {}
            }
        } else {
            self.send(
                call,
                Processor::Thread(thread),
                node,
                tag.home(),
                tag,
                Body::Lock { thread, write, once },
            );
        }
        call.charge(self.config.costs.access);
        self.threads[usize::from(thread.0)].locking = Locking::Asked;
        Progress::Waits
    }

    pub(super) fn on_lock(
        &mut self,
        call: &mut Call<'_, Message>,
        home: NodeId,
        tag: BlockTag,
        thread: ThreadId,
        write: bool,
        once: bool,
    ) {
        match self.machine(home).locks.ask(tag, thread, write, once) {
            Asked::Granted => self.answer_lock(call, home, tag, thread, true),
            Asked::Refused => self.answer_lock(call, home, tag, thread, false),
            Asked::Queued => {}
        }
    }

    pub(super) fn on_unlock(
        &mut self,
        call: &mut Call<'_, Message>,
        home: NodeId,
        tag: BlockTag,
        write: bool,
    ) {
        for thread in self.machine(home).locks.release(tag, write) {
            self.answer_lock(call, home, tag, thread, true);
        }
    }

    fn answer_lock(
        &mut self,
        call: &mut Call<'_, Message>,
        home: NodeId,
        tag: BlockTag,
        thread: ThreadId,
        granted: bool,
    ) {
        let node = self.node_of(thread);
        if node == home {
            return self.on_lock_answer(call, thread, granted);
        }
        let by = self.agent_of(home, tag);
        self.send(call, by, home, node, tag, Body::LockAnswer { thread, granted });
    }

    pub(super) fn on_lock_answer(&mut self, call: &mut Call<'_, Message>, thread: ThreadId, granted: bool) {
        self.threads[usize::from(thread.0)].locking =
            if granted { Locking::Granted } else { Locking::Refused };
        call.wake(thread);
    }
}
