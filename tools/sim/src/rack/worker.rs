//! Application threads: a clock each, and how far it may run ahead of the rest of the rack.
//!
//! # Hits do not go through the event queue
//! After an operation that needed nobody else, a thread's clock moves on and the thread goes on at once, as long as
//! its clock is not behind its *horizon*. Only then does it put itself into the queue and lets others happen.
//!
//! With `run_ahead` zero the horizon is the next event of the queue: everything takes effect in the order of its
//! time, and a history of operations may be checked against its times.
//!
//! Otherwise the horizon is the earliest pending event that concerns the thread's node, but no more than `run_ahead`
//! after the event that happens now. Why that is sound:
//! - What the caches of a node do with a hit depends on the node's own state only. That changes by its threads, and
//!   by events at the node: messages that arrive or have been handled, deadlines.
//! - Those that are pending are not run past.
//! - One that is not pending yet is caused by an event elsewhere, which is not earlier than now, and its message has
//!   at least the way from the switch to the node before it. `run_ahead` is not longer than that
//!   ([`Setup::lookahead`](super::Setup::lookahead)).
//!
//! So a hit takes effect before every event at its node with a later time, and after every one with an earlier time:
//! no thread can read what is not valid at its clock. The threads of one node, though, may see each other's
//! hits, and messages between processors of that node, up to `run_ahead` out of order.

use core::task::Poll;

use wire::{Nanos, NodeId, Refusal};

use super::event::{Event, ServerId};
use super::state::RackState;
use super::trace::Trace;
use crate::system::{Operation, Outcome, Progress, RegionOperation, System, ThreadId};

/// What a thread is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// It has no worker.
    Idle,
    /// It will go on when its time comes.
    Ready,
    /// It goes on this moment.
    Running,
    /// It waits to be woken.
    Waiting,
}

/// A thread.
pub(super) struct Thread {
    pub(super) phase: Phase,
    /// Its [`Event::Resume`] is in the queue.
    pub(super) armed: bool,
    /// Where its worker is asleep: until when.
    pub(super) asleep_until: Nanos,
    /// Operations on memory that took effect.
    pub(super) accesses: u64,
    /// Operations of the application.
    pub(super) operations: u64,
    /// When the last of them ended, or its worker began.
    pub(super) finished: Nanos,
}

impl Thread {
    pub(super) const fn new() -> Self {
        Self {
            phase: Phase::Idle,
            armed: false,
            asleep_until: Nanos::ZERO,
            accesses: 0,
            operations: 0,
            finished: Nanos::ZERO,
        }
    }
}

impl<S: System> RackState<S> {
    pub(super) fn node_of(&self, thread: ThreadId) -> NodeId {
        self.servers[usize::from(thread.0)].node
    }

    /// The thread's clock.
    pub(super) fn clock(&self, thread: ThreadId) -> Nanos {
        self.servers[usize::from(thread.0)].free
    }

    pub(super) fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        &mut self.threads[usize::from(thread.0)]
    }

    /// A thread that is ready goes on when its clock says so, unless it has messages to handle first.
    pub(super) fn schedule(&mut self, thread: ThreadId) {
        let server = &self.servers[usize::from(thread.0)];
        let it = &mut self.threads[usize::from(thread.0)];
        if it.phase == Phase::Ready && !it.armed && server.current.is_none() {
            it.armed = true;
            self.queue.push(
                server.free.max(it.asleep_until).max(self.now),
                Event::Resume(thread, server.incarnation),
            );
        }
    }

    /// The thread has nothing to do until then but to handle messages.
    pub(super) fn sleep(&mut self, thread: ThreadId, until: Nanos) {
        let it = self.thread(thread);
        (it.phase, it.asleep_until) = (Phase::Ready, until);
        self.schedule(thread);
    }

    /// A call wants a waiting thread to try again. Word from another processor of the node takes a hand-over.
    pub(super) fn wake(&mut self, by: Option<ServerId>, at: Nanos, thread: ThreadId) {
        if self.thread(thread).phase != Phase::Waiting {
            return;
        }
        self.thread(thread).phase = Phase::Ready;
        let own = ServerId(thread.0);
        if by != Some(own) {
            let heard = at + self.setup.hand_over;
            let server = self.server(own);
            server.free = server.free.max(heard);
        }
        if let Some(budgets) = &mut self.budgets {
            budgets.woke(thread, if by == Some(own) { Nanos::ZERO } else { self.setup.hand_over });
        }
        self.schedule(thread);
    }

    /// The latest clock at which the thread may act now.
    fn horizon(&self, thread: ThreadId) -> Nanos {
        if self.operations_left == 0 {
            return Nanos::ZERO;
        }
        let horizon = if self.run_ahead == Nanos::ZERO {
            self.queue.peek_time().unwrap_or(Nanos::MAX)
        } else {
            let node = self.node_of(thread);
            self.machines[node.index()].next_event().min(self.now + self.run_ahead)
        };
        horizon.min(self.end)
    }

    /// A thread tries its operation, or lets others go first.
    pub(super) fn attempt(
        &mut self,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Poll<Result<Outcome, Refusal>> {
        let own = ServerId(thread.0);
        let clock = self.clock(thread);
        debug_assert_eq!(self.thread(thread).phase, Phase::Running, "only the worker that is polled acts");
        if clock > self.horizon(thread) {
            self.thread(thread).phase = Phase::Ready;
            self.schedule(thread);
            return Poll::Pending;
        }
        self.thread(thread).phase = Phase::Waiting;
        self.begin_budget(clock);
        let progress = self.call(Some(own), clock, |system, call| system.attempt(call, thread, operation));
        self.arm(self.node_of(thread));
        if self.setup.check {
            self.system.invariants();
        }
        let result = match progress {
            Progress::Done(outcome, time) => {
                self.observe(clock, &Trace::Done { thread, outcome });
                self.server(own).free += time;
                if let Some(budgets) = &mut self.budgets {
                    budgets.accessed(thread, time);
                }
                self.thread(thread).accesses += 1;
                Ok(outcome)
            }
            Progress::Failed(why) => Err(why),
            Progress::Waits => {
                self.observe(clock, &Trace::Waits { thread });
                return Poll::Pending;
            }
        };
        self.thread(thread).phase = Phase::Running;
        Poll::Ready(result)
    }

    /// The worker that is polled lets go of a lock, and does not wait for its turn.
    pub(super) fn leave_now(&mut self, thread: ThreadId, token: u64) {
        if self.thread(thread).phase != Phase::Running {
            return;
        }
        let clock = self.clock(thread);
        self.begin_budget(clock);
        let mut leave = Operation::Region(RegionOperation::Leave { token });
        let own = Some(ServerId(thread.0));
        self.call(own, clock, |system, call| system.attempt(call, thread, &mut leave));
        self.arm(self.node_of(thread));
    }

    /// The thread's worker is over.
    pub(super) fn ended(&mut self, thread: ThreadId) {
        self.thread(thread).phase = Phase::Idle;
    }
}
