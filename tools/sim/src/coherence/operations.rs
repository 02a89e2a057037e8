//! What a thread's operation does: hit, or ask the node's machines and wait.
//!
//! What must always hold: a thread that waits for a slot is woken when the slot's operation is over; a frame that was
//! pinned for a thread is unpinned by its access, and agents that wait for that are called.

use node::{Access, Effect, FrameId, Moment, Node, Outcome, Started, Window};
use wire::{GlobalAddr, Nanos, NodeId, Refusal, Rules, SlotId};

use super::store::StoreOf;
use super::{FlowCc, SimMessage};
use crate::home::Contents;
use crate::system::{self, Call, Operation, Progress, ThreadId};

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    Nothing,
    /// Its own operation, in this slot.
    Slot(SlotId),
    /// Another thread's, which fetches the same block.
    Join(SlotId),
    /// A free slot.
    Room,
    /// Nothing more: it may look at how its operation ended.
    Over(SlotId, Outcome),
}

/// Whether a thread waited for what another one of its node had asked for.
pub(super) struct Joined(pub(super) bool);

/// Who waits for what, on all nodes.
pub(super) struct Waits {
    threads_of_node: usize,
    waits: Vec<Wait>,
    /// How many threads of each node wait for a free slot.
    rooms: Vec<u16>,
    slots_of_node: usize,
    /// The thread whose operation a slot works on, or worked on last.
    owners: Vec<ThreadId>,
}

impl Waits {
    pub(super) fn new(nodes: usize, threads: usize, lock_slots: usize) -> Self {
        let slots = SlotId::PER_NODE + lock_slots;
        let thread = |index: usize| ThreadId(u16::try_from(index).expect("fewer than 2^16 threads"));
        Self {
            threads_of_node: threads,
            waits: vec![Wait::Nothing; nodes * threads],
            rooms: vec![0; nodes],
            slots_of_node: slots,
            owners: (0..nodes * slots).map(|row| thread(row / slots * threads)).collect(),
        }
    }

    /// The node's threads are gone.
    pub(super) fn forget(&mut self, node: NodeId) {
        let first = node.index() * self.threads_of_node;
        self.waits[first..first + self.threads_of_node].fill(Wait::Nothing);
        self.rooms[node.index()] = 0;
    }

    /// A slot may have become free: those that wait for one try again. Not only the end of an operation frees a slot, the
    /// acknowledgement of its last unlock does, too.
    pub(super) fn try_for_room(&mut self, node: NodeId, mut wake: impl FnMut(ThreadId)) {
        if core::mem::take(&mut self.rooms[node.index()]) == 0 {
            return;
        }
        let first = node.index() * self.threads_of_node;
        for index in first..first + self.threads_of_node {
            if self.waits[index] == Wait::Room {
                self.waits[index] = Wait::Nothing;
                wake(ThreadId(u16::try_from(index).expect("fewer than 2^16 threads")));
            }
        }
    }

    pub(super) fn node_of(&self, thread: ThreadId) -> NodeId {
        NodeId(thread.0 / u16::try_from(self.threads_of_node).expect("fewer than 2^16 threads"))
    }

    pub(super) fn owner(&self, node: NodeId, slot: SlotId) -> ThreadId {
        self.owners[node.index() * self.slots_of_node + slot.index()]
    }

    fn own(&mut self, node: NodeId, slot: SlotId, thread: ThreadId) {
        self.owners[node.index() * self.slots_of_node + slot.index()] = thread;
    }

    /// How the thread's operation ended, if it did.
    pub(super) fn outcome(&mut self, thread: ThreadId) -> Option<Outcome> {
        match core::mem::replace(self.wait(thread), Wait::Nothing) {
            Wait::Over(_, outcome) => Some(outcome),
            _ => None,
        }
    }

    fn wait(&mut self, thread: ThreadId) -> &mut Wait {
        &mut self.waits[usize::from(thread.0)]
    }

    /// A slot's operation is over.
    pub(super) fn completed(
        &mut self,
        node: NodeId,
        slot: SlotId,
        outcome: Outcome,
        mut wake: impl FnMut(ThreadId, Joined),
    ) {
        let first = node.index() * self.threads_of_node;
        for index in first..first + self.threads_of_node {
            let wait = &mut self.waits[index];
            let joined;
            (*wait, joined) = match *wait {
                Wait::Slot(own) if own == slot => (Wait::Over(slot, outcome), Joined(false)),
                Wait::Join(joined) if joined == slot => (Wait::Nothing, Joined(true)),
                _ => continue,
            };
            wake(ThreadId(u16::try_from(index).expect("fewer than 2^16 threads")), joined);
        }
    }
}

impl<R: Rules> FlowCc<R> {
    pub(super) fn attempt_operation(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        let node = self.waits.node_of(thread);
        loop {
            match core::mem::replace(self.waits.wait(thread), Wait::Nothing) {
                Wait::Nothing => {}
                Wait::Over(slot, outcome) => match self.end(call, (node, thread), slot, outcome, operation) {
                    Some(progress) => return progress,
                    None => continue,
                },
                waits => {
                    *self.waits.wait(thread) = waits;
                    return Progress::Waits;
                }
            }
            if let Some(progress) = self.begin(call, node, thread, operation) {
                return progress;
            }
        }
    }

    /// How an operation that went through the machines ended. `None`: it has to be tried again.
    fn end(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        (node, thread): (NodeId, ThreadId),
        slot: SlotId,
        outcome: Outcome,
        operation: &mut Operation<'_>,
    ) -> Option<Progress> {
        let done = |outcome| Some(Progress::Done(outcome, Nanos::ZERO));
        match (outcome, operation) {
            (Outcome::Retry, _) => None,
            (Outcome::Pinned(frame), Operation::Touch { addr, len, access, with }) => {
                Some(self.access_pinned(call, node, frame, (*addr, *len), *access, with))
            }
            (Outcome::Peeked(_), Operation::Touch { addr, len, with, .. }) => {
                self.look(thread, (*addr, *len), with);
                Some(Progress::Done(system::Outcome::Done, self.config.costs.access))
            }
            (Outcome::Locked, _) => done(system::Outcome::Locked(slot.0.into())),
            (Outcome::Allocated { addr, zeroed, .. }, _) => done(system::Outcome::Allocated(addr, zeroed)),
            (Outcome::Freed, _) => done(system::Outcome::Done),
            (Outcome::Failed(why), _) => Some(Progress::Failed(why)),
            (outcome, _) => panic!("an operation on {node} ended with {outcome:?}"),
        }
    }

    /// Tries an operation from its beginning. `None`: look at what it waits for.
    fn begin(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        node: NodeId,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Option<Progress> {
        let started = match operation {
            Operation::Touch { addr, len, access, with } => {
                let tag = self.config.block.tag(*addr);
                if let Some((frame, have)) = self.memories[node.index()].cache.lookup(tag)
                    && have >= *access
                {
                    self.hits += 1;
                    self.access(node, frame, (*addr, *len), *access, with);
                    return Some(Progress::Done(system::Outcome::Done, self.config.costs.access));
                }
                if tag.home().index() >= self.nodes.len() {
                    return Some(Progress::Failed(Refusal::Unallocated));
                }
                call.charge(self.config.costs.miss);
                let access = *access;
                let words = (self.config.block.offset_in_block(*addr), *len);
                if access == Access::Shared
                    && let Some(latest) = &mut self.latest
                {
                    latest.reads(thread, tag);
                }
                match self.start(call, node, thread, |node, at, store, out| match access {
                    Access::Shared => node.on_read(at, tag, words, store, out),
                    Access::Modified => node.on_access(at, tag, access, store, out),
                }) {
                    Started::Pinned(frame) => {
                        let Operation::Touch { addr, len, access, with } = operation else { unreachable!() };
                        return Some(self.access_pinned(call, node, frame, (*addr, *len), *access, with));
                    }
                    started => started,
                }
            }
            Operation::Alloc { len, home, discipline } => {
                let (len, home, discipline) = (*len, *home, *discipline);
                call.charge(self.config.costs.other);
                self.start(call, node, thread, |node, at, store, out| {
                    node.on_alloc(at, len, home, discipline, store, out)
                })
            }
            Operation::Free { addr } => {
                let addr = *addr;
                call.charge(self.config.costs.other);
                self.start(call, node, thread, |node, at, store, out| {
                    node.on_free(at, (addr, None), store, out)
                })
            }
            // Locks that carry their data are another system's: see `joint`.
            Operation::Region(_) | Operation::Own(_) => {
                return Some(Progress::Failed(Refusal::WrongDiscipline));
            }
            Operation::Lock { addr, write, once } => {
                let (block, write, once) = (self.config.block.tag(*addr), *write, *once);
                call.charge(self.config.costs.miss);
                self.start(call, node, thread, |node, at, store, out| {
                    node.on_lock(at, block, write, once, store, out)
                })
            }
            Operation::Unlock { token } => {
                let slot = SlotId(u16::try_from(*token).expect("a token that a lock gave"));
                call.charge(self.config.costs.release);
                self.call_node(call, node, |node, at, store, out| node.on_release(at, slot, store, out));
                return Some(Progress::Done(system::Outcome::Done, Nanos::ZERO));
            }
        };
        match started {
            Started::Join(slot) => *self.waits.wait(thread) = Wait::Join(slot),
            Started::Full => {
                *self.waits.wait(thread) = Wait::Room;
                self.waits.rooms[node.index()] += 1;
            }
            // What is waited for is noted; or the block is there by now.
            Started::Slot(_) | Started::Retry | Started::Pinned(_) => {}
        }
        None
    }

    /// Starts an operation in the machines. A slot has its owner, and the owner waits for it, before anything that the
    /// machines want done is done.
    pub(super) fn start(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        node: NodeId,
        thread: ThreadId,
        input: impl FnOnce(&mut Node<R>, Moment, &mut StoreOf<'_>, &mut Vec<Effect>) -> Started,
    ) -> Started {
        let started = self.input(call, node, input);
        if let Started::Slot(slot) = started {
            self.waits.own(node, slot, thread);
            *self.waits.wait(thread) = Wait::Slot(slot);
        }
        self.hand_on(call, node);
        started
    }

    /// Accesses a frame that is pinned for the thread, and lets go of it.
    fn access_pinned(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        node: NodeId,
        frame: FrameId,
        range: (GlobalAddr, usize),
        access: Access,
        with: &mut dyn FnMut(&Window<'_>),
    ) -> Progress {
        self.access(node, frame, range, access, with);
        if self.memories[node.index()].cache.unpin(frame) {
            self.call_node(call, node, |node, at, store, out| node.on_unpinned(at, frame, store, out));
        }
        Progress::Done(system::Outcome::Done, self.config.costs.access)
    }

    /// A read of what a PEEK brought.
    fn look(
        &mut self,
        thread: ThreadId,
        (addr, len): (GlobalAddr, usize),
        with: &mut dyn FnMut(&Window<'_>),
    ) {
        let block = self.config.block;
        let (stamp, words) = self.shown.to(thread);
        if let Some(latest) = &self.latest {
            latest.peeked(thread, block.tag(addr), stamp);
        }
        with(&Window::new(words.unwrap_or(&self.zeroes), block.offset_in_block(addr), len));
    }

    /// The access itself. The frame has the block, with the right that it takes.
    fn access(
        &mut self,
        node: NodeId,
        frame: FrameId,
        (addr, len): (GlobalAddr, usize),
        access: Access,
        with: &mut dyn FnMut(&Window<'_>),
    ) {
        let block = self.config.block;
        let memory = &mut self.memories[node.index()];
        memory.cache.touch(frame);
        let tag = block.tag(addr);
        if access == Access::Modified {
            self.writes = self.writes.wrapping_add(1).max(1);
            memory.cache.set_stamp(frame, self.writes);
        }
        if let Some(latest) = &mut self.latest {
            latest.accessed(tag, access, memory.cache.stamp(frame));
        }
        let start = block.offset_in_block(addr);
        match self.config.contents {
            Contents::Bytes => with(&Window::new(memory.frame_words(block, frame), start, len)),
            Contents::Stamps => {
                let window = Window::new(&self.zeroes, start, len);
                with(&window);
                if access == Access::Modified {
                    window.zero();
                }
            }
        }
    }
}
