//! What a thread's operation does: enter through the gate, or ask the node's machines and wait.
//!
//! What must always hold: a thread that was let in is woken once, and told so once.

use core::sync::atomic::AtomicU64;
use std::collections::VecDeque;

use node::Window;
use node::locks::Ticket;
use wire::{GlobalAddr, Mode, Nanos, NodeId, Refusal, Rules};

use super::{Locks, SimMessage};
use crate::system::{Call, Operation, Outcome, Processor, Progress, RegionOperation, ThreadId, Want};

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    Nothing,
    /// To get into this lock, which is perhaps lost; or for its end.
    Asked(Asked),
    /// It is in. It takes this time until it goes on.
    Entered(Nanos),
    Failed(Refusal),
    Over,
}

/// A lock, how it is wanted, and whether it was told to be lost.
type Asked = (GlobalAddr, Mode, bool);

/// Who waits for what, on all nodes.
pub(super) struct Waits {
    threads_of_node: usize,
    waits: Vec<Wait>,
    /// By node: threads that have asked, in the order in which they did.
    asked: Vec<VecDeque<(GlobalAddr, ThreadId)>>,
    /// What a wake-up by another thread takes.
    wake: Nanos,
}

impl Waits {
    pub(super) fn new(nodes: usize, threads: usize, wake: Nanos) -> Self {
        Self {
            threads_of_node: threads,
            waits: vec![Wait::Nothing; nodes * threads],
            asked: vec![VecDeque::new(); nodes],
            wake,
        }
    }

    pub(super) fn node_of(&self, thread: ThreadId) -> NodeId {
        NodeId(thread.0 / u16::try_from(self.threads_of_node).expect("fewer than 2^16 threads"))
    }

    /// The thread of a node that has waited for a lock the longest.
    pub(super) fn first(&self, node: NodeId, lock: GlobalAddr) -> Option<ThreadId> {
        self.asked[node.index()].iter().find(|(asked, _)| *asked == lock).map(|(_, thread)| *thread)
    }

    /// The node's threads are gone.
    pub(super) fn forget(&mut self, node: NodeId) {
        let first = node.index() * self.threads_of_node;
        self.waits[first..first + self.threads_of_node].fill(Wait::Nothing);
        self.asked[node.index()].clear();
    }

    fn ask(&mut self, thread: ThreadId, asked: Asked) {
        self.waits[usize::from(thread.0)] = Wait::Asked(asked);
        let node = self.node_of(thread);
        self.asked[node.index()].push_back((asked.0, thread));
    }

    fn answer(&mut self, thread: u32, with: Wait) -> (ThreadId, Asked) {
        let id = ThreadId(u16::try_from(thread).expect("a ticket is a thread's number"));
        let node = self.node_of(id);
        let Wait::Asked(asked) = core::mem::replace(&mut self.waits[usize::from(id.0)], with) else {
            panic!("{id:?} is told {with:?} and has not asked");
        };
        self.asked[node.index()].retain(|(_, thread)| *thread != id);
        (id, asked)
    }

    /// A thread was let in by this processor. Its own has paid for that already.
    pub(super) fn entered(&mut self, thread: u32, by: Processor) -> (ThreadId, Asked) {
        let own = matches!(by, Processor::Thread(id) if u32::from(id.0) == thread);
        self.answer(thread, Wait::Entered(if own { Nanos::ZERO } else { self.wake }))
    }

    /// A thread gets no lock.
    pub(super) fn failed(&mut self, thread: u32, why: Refusal) -> ThreadId {
        self.answer(thread, Wait::Failed(why)).0
    }

    /// What a thread asked for is done.
    pub(super) fn over(&mut self, thread: u32) -> ThreadId {
        self.answer(thread, Wait::Over).0
    }
}

/// A held lock as a number, and back.
fn token(lock: GlobalAddr, mode: Mode) -> u64 {
    debug_assert_eq!(lock.bits() & 1, 0, "regions are aligned");
    lock.bits() | u64::from(mode == Mode::Write)
}

const fn of_token(token: u64) -> (GlobalAddr, Mode) {
    (GlobalAddr::from_bits(token & !1), if token & 1 == 1 { Mode::Write } else { Mode::Read })
}

impl<R: Rules> Locks<R> {
    pub(super) fn attempt_operation(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        let node = self.waits.node_of(thread);
        match operation {
            Operation::Lock { addr, write, once } => {
                let mode = if *write { Mode::Write } else { Mode::Read };
                let want = if *once { Want::Tries } else { Want::Waits };
                self.enter(call, (node, thread), (*addr, self.config.len), (mode, want))
            }
            Operation::Unlock { token } => self.leave(call, (node, thread), *token),
            Operation::Region(RegionOperation::Enter { addr, len, mode, want }) => {
                self.enter(call, (node, thread), (*addr, *len), (*mode, *want))
            }
            Operation::Region(RegionOperation::Show { token, start, len, with }) => {
                let (lock, _) = of_token(*token);
                with(&Window::new(self.copies[node.index()].words(lock), *start, *len));
                Progress::Done(Outcome::Done, self.config.costs.access)
            }
            Operation::Region(RegionOperation::Leave { token }) => self.leave(call, (node, thread), *token),
            Operation::Region(RegionOperation::End { token, lost }) => {
                self.end(call, (node, thread), *token, *lost)
            }
            Operation::Touch { addr, len, with, .. } => {
                let cost = self.config.costs.access;
                self.show(node, *addr, *len, *with);
                Progress::Done(Outcome::Done, cost)
            }
            Operation::Alloc { len, home, .. } => {
                if *len != u64::from(self.config.len) {
                    return Progress::Failed(Refusal::WrongLength);
                }
                match self.allocate(*home) {
                    Some(lock) => Progress::Done(Outcome::Allocated(lock, true), Nanos::ZERO),
                    None => Progress::Failed(Refusal::OutOfMemory),
                }
            }
            // Regions are not used twice, so there is nothing to take back.
            Operation::Free { .. } => Progress::Done(Outcome::Done, Nanos::ZERO),
            Operation::Own(_) => Progress::Failed(Refusal::WrongDiscipline),
        }
    }

    fn enter(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        (node, thread): (NodeId, ThreadId),
        lock: (GlobalAddr, u32),
        (mode, want): (Mode, Want),
    ) -> Progress {
        let held = Outcome::Locked(token(lock.0, mode));
        if self.waits.waits[usize::from(thread.0)] == Wait::Nothing {
            let reclaims = want == Want::Reclaims;
            let copies = &mut self.copies[node.index()];
            if !reclaims && let Some(entered) = copies.enter(lock, mode, call.now) {
                self.hits += 1;
                if let Some(properties) = &mut self.properties {
                    properties.entered((thread, false), (lock.0, mode), copies.seen(lock.0));
                }
                return Progress::Done(held, entered.saturating_sub(call.now) + self.config.costs.enter);
            }
            call.charge(self.config.costs.ask);
            self.waits.ask(thread, (lock.0, mode, reclaims));
            let ticket = Ticket(thread.0.into());
            let by = (node, Processor::Thread(thread));
            self.call_node(call, by, |node, at, store, out| match want {
                Want::Reclaims => node.on_reclaim(at, ticket, lock, store, out),
                _ => node.on_lock(at, (ticket, mode, want == Want::Tries), lock, store, out),
            });
        }
        self.told(thread, held)
    }

    /// What a thread that has asked was told, if it was.
    fn told(&mut self, thread: ThreadId, held: Outcome) -> Progress {
        let wait = &mut self.waits.waits[usize::from(thread.0)];
        match core::mem::replace(wait, Wait::Nothing) {
            Wait::Entered(time) => Progress::Done(held, time),
            Wait::Failed(why) => Progress::Failed(why),
            Wait::Over => Progress::Done(Outcome::Done, Nanos::ZERO),
            still => {
                *wait = still;
                Progress::Waits
            }
        }
    }

    fn leave(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        (node, thread): (NodeId, ThreadId),
        held: u64,
    ) -> Progress {
        let (lock, mode) = of_token(held);
        let wrote = (mode == Mode::Write).then(|| {
            self.writes += 1;
            self.writes
        });
        if let Some(properties) = &mut self.properties {
            properties.left(thread, (lock, mode), wrote);
        }
        call.charge(self.config.costs.leave);
        if !self.config.keeps && mode == Mode::Read {
            // The copy goes, and nobody has to be told.
            call.charge(self.config.costs.unmap);
        }
        let now = call.now + self.config.costs.leave;
        if let Some(all_left) = self.copies[node.index()].leave(lock, mode, now, wrote) {
            call.charge(all_left.saturating_sub(now));
            let by = (node, Processor::Thread(thread));
            self.call_node(call, by, |node, at, store, out| node.on_left(at, lock, store, out));
        }
        Progress::Done(Outcome::Done, Nanos::ZERO)
    }

    fn end(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        (node, thread): (NodeId, ThreadId),
        held: u64,
        lost: bool,
    ) -> Progress {
        let (lock, mode) = of_token(held);
        assert_eq!(mode, Mode::Write, "only a writer is alone");
        if self.waits.waits[usize::from(thread.0)] == Wait::Nothing {
            if let Some(properties) = &mut self.properties {
                properties.ended(lock, 1);
            }
            self.copies[node.index()].end(lock);
            self.waits.ask(thread, (lock, mode, false));
            let ticket = Ticket(thread.0.into());
            let by = (node, Processor::Thread(thread));
            self.call_node(call, by, |node, at, store, out| {
                node.on_free(at, (ticket, lost), lock, store, out);
            });
        }
        self.told(thread, Outcome::Done)
    }

    /// The bytes of a region that a thread of the node is in: zeroes, and the number of the last write in the first word.
    fn show(&mut self, node: NodeId, addr: GlobalAddr, len: usize, with: &mut dyn FnMut(&Window<'_>)) {
        let (stamp, _) = self.copies[node.index()].seen(addr);
        let words: Vec<AtomicU64> =
            (0..len.div_ceil(8)).map(|word| AtomicU64::new(if word == 0 { stamp } else { 0 })).collect();
        with(&Window::new(&words, 0, len));
    }
}
