//! Whoever stands in a queue is passed a bounded number of times.
//!
//! A node stands in a lock's queue once, for all its threads, and takes one of them (or its readers together) a round. So
//! while a thread waits, and its node is in the queue or keeps it, no other thread gets in before it more often than a
//! node has threads, once more for what was in flight when it came, and once for every further node: a MOVE is denied
//! when the directory has noted one more, and each time the holder's readers that have come since go with those at the
//! queue's head. So many times more often as the holder may prefer its own.

use wire::{NodeId, Rules};

use crate::locks::{Locks, Plan, Thread, Want};
use crate::rack::Faults;

/// Who waits, and who got in since.
#[derive(Clone, Debug)]
pub struct Waits {
    waiting: Vec<Option<Waiting>>,
    /// No thread may pass another more often than that.
    bound: u64,
    most: u64,
    /// Where nothing is lost, repeated or given up, the bound is checked.
    checked: bool,
}

#[derive(Clone, Debug)]
struct Waiting {
    want: Want,
    /// Its node stands in the queue, or keeps it.
    in_queue: bool,
    /// How often each thread has passed it since.
    passed: Vec<u64>,
}

impl Waits {
    pub(crate) fn new(plan: &Plan) -> Self {
        let threads = plan.rack.threads as u64;
        // Beside the one that waits, and the holder.
        let others = plan.rack.nodes.saturating_sub(2) as u64;
        Self {
            waiting: vec![None; plan.rack.nodes * plan.rack.threads],
            bound: (threads + 1 + others) * (1 + u64::from(plan.world.preference)),
            most: 0,
            checked: plan.rack.faults == Faults::default() && plan.rack.restarts.is_never(),
        }
    }

    pub(crate) fn begin(&mut self, thread: usize, want: Want) {
        let passed = vec![0; self.waiting.len()];
        self.waiting[thread] = Some(Waiting { want, in_queue: false, passed });
    }

    pub(crate) fn end(&mut self, thread: usize) {
        self.waiting[thread] = None;
    }

    /// A thread gets in: all others that wait for that lock were passed once more.
    pub(crate) fn entered(&mut self, thread: usize, want: Want) -> Result<(), String> {
        self.end(thread);
        for (other, waiting) in self.waiting.iter_mut().enumerate() {
            let Some(waiting) = waiting.as_mut().filter(|it| it.in_queue && it.want.lock == want.lock) else {
                continue;
            };
            waiting.passed[thread] += 1;
            self.most = self.most.max(waiting.passed[thread]);
            if self.checked && waiting.passed[thread] > self.bound {
                let times = waiting.passed[thread];
                return Err(format!("thread {thread} has passed thread {other} {times} times: {want:?}"));
            }
        }
        Ok(())
    }

    /// The most times that a thread passed one that stood in a queue.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }
}

/// Notes who stands in a queue now: not whoever has been served, and waits for what is on its way.
pub(super) fn check<R: Rules>(locks: &mut Locks<R>) {
    for thread in 0..locks.threads.len() {
        let Thread::Waiting(want) = locks.threads[thread] else { continue };
        let (node, (lock, _)) = (locks.node_of(thread), locks.locks[want.lock]);
        let holding = |node: NodeId| {
            let view = locks.facts.nodes[node.index()][want.lock].view.as_ref();
            view.and_then(|view| view.holding.as_ref())
        };
        if holding(node).is_some_and(|holding| holding.moving) {
            // Whoever comes now stands nowhere, if the MOVE has been approved; whoever has come before does in either case.
            continue;
        }
        let holds = holding(node).is_some();
        let entry = locks.facts.entry(want.lock, lock.home());
        // The directory's bit alone may be that of an earlier request, and the queue's of one that is served by now.
        let holder = entry.and_then(|entry| entry.holder).and_then(holding);
        let queued = holder.is_some_and(|holding| holding.queue.contains(node));
        let stands = queued && entry.is_some_and(|entry| entry.waiting.contains(node));
        if let Some(waiting) = &mut locks.waits.waiting[thread] {
            let in_queue = holds || stands;
            if in_queue && !waiting.in_queue {
                // Perhaps anew: a copy that was to end before it came is not taken.
                waiting.passed.fill(0);
            }
            waiting.in_queue = in_queue;
        }
    }
}
