//! A rack: nodes with threads and agents, NICs and links, a switch, and what runs on them, in virtual time.
//!
//! It runs on one thread of one machine. A [`System`] is the memory system under test; workers are futures, one a
//! thread, that use it through their [`Handle`]s. The rack owns time, order, hardware and faults.
//!
//! | file | holds |
//! | --- | --- |
//! | `setup` | how a rack is set up |
//! | `state` | the state, the event loop, how the system is called |
//! | `event` | events, messages in flight |
//! | `network` | the way of a message |
//! | `machine`, `server` | a node's hardware; a processor's queue |
//! | `worker` | threads, their clocks, and how far those run ahead |
//! | `handle` | what application code runs on |
//! | `faults` | machines stop and come back |
//! | `budget` | where the time of operations goes |
//! | `report`, `histogram`, `trace` | what a run did; what an observer is told |
//!
//! What must always hold: a run is fixed by its setup, its system, its workers and its seed. Of events of one moment,
//! the one that was pushed first happens first.

mod budget;
mod event;
mod faults;
mod handle;
mod histogram;
mod machine;
mod network;
mod report;
mod server;
mod setup;
mod state;
mod trace;
mod worker;

use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::rc::Rc;

use wire::{Nanos, NodeId};

use crate::fault::Rules;
use crate::system::{Fault, System, ThreadId};
use state::{Next, RackState};
use worker::Phase;

pub use budget::Budget;
pub use handle::{Handle, Inside};
pub use histogram::Histogram;
pub use report::{Counts, Ended, RackReport};
pub use setup::{Blocks, Setup};
pub use trace::{Observer, Trace};

type Worker = Pin<Box<dyn Future<Output = ()>>>;

/// When a run ends, if its workers do not end before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// When all of them have ended.
    WorkersDone,
    /// At this time.
    Time(Nanos),
    /// After so many operations ([`Handle::finished`]) from here on.
    Operations(u64),
}

/// A rack with a memory system on it.
pub struct Rack<S: System> {
    state: Rc<RefCell<RackState<S>>>,
    workers: Vec<Option<Worker>>,
    measured_from: Nanos,
}

impl<S: System> Rack<S> {
    /// A rack at time zero.
    ///
    /// # Panics
    /// If such a rack cannot be.
    pub fn new(setup: Setup, system: S) -> Self {
        setup.assert_possible();
        let state = RackState::new(setup, system);
        let workers = state.threads.iter().map(|_| None).collect();
        Self { state: Rc::new(RefCell::new(state)), workers, measured_from: Nanos::ZERO }
    }

    /// Puts a worker on a thread. It begins now.
    ///
    /// # Panics
    /// If the thread has one already.
    pub fn spawn<F>(&mut self, thread: ThreadId, worker: impl FnOnce(Handle<S>) -> F)
    where
        S: 'static,
        F: Future<Output = ()> + 'static,
    {
        let place = &mut self.workers[usize::from(thread.0)];
        assert!(place.is_none(), "{thread:?} has a worker");
        *place = Some(Box::pin(worker(Handle::new(Rc::clone(&self.state), thread))));
        let state = &mut *self.state.borrow_mut();
        let clock = state.clock(thread).max(state.now);
        (state.thread(thread).phase, state.thread(thread).finished) = (Phase::Ready, clock);
        state.schedule(thread);
    }

    /// Puts a worker on a thread, runs the rack until this worker has ended, and returns what it returned.
    ///
    /// # Panics
    /// If it never ends.
    pub fn run_one<T, F>(&mut self, thread: ThreadId, worker: impl FnOnce(Handle<S>) -> F) -> T
    where
        S: 'static,
        T: 'static,
        F: Future<Output = T> + 'static,
    {
        let result = Rc::new(Cell::new(None));
        let (theirs, handle) = (Rc::clone(&result), Handle::new(Rc::clone(&self.state), thread));
        let worker = worker(handle);
        self.spawn(thread, |_| async move { theirs.set(Some(worker.await)) });
        self.prepare(Until::WorkersDone);
        while self.workers[usize::from(thread.0)].is_some() {
            assert!(self.step(), "the worker on {thread:?} waits for what will never happen");
        }
        result.take().expect("a worker that has ended left its result")
    }

    /// Runs.
    pub fn run(&mut self, until: Until) -> RackReport {
        self.prepare(until);
        while self.workers.iter().any(Option::is_some) {
            if !self.step() {
                break;
            }
        }
        let state = &mut *self.state.borrow_mut();
        let ended = if self.workers.iter().all(Option::is_none) {
            Ended::WorkersDone
        } else if state.operations_left == 0 {
            Ended::Operations
        } else if state.end != Nanos::MAX {
            Ended::Time
        } else {
            Ended::Stuck
        };
        let end = match ended {
            Ended::Time => state.end,
            Ended::WorkersDone => state.latest_clock(),
            Ended::Operations | Ended::Stuck => state.now,
        };
        state.report(ended, end.saturating_sub(self.measured_from))
    }

    fn prepare(&mut self, until: Until) {
        let state = &mut *self.state.borrow_mut();
        (state.end, state.operations_left) = match until {
            Until::WorkersDone => (Nanos::MAX, u64::MAX),
            Until::Time(end) => (end, u64::MAX),
            Until::Operations(count) => (Nanos::MAX, count),
        };
    }

    /// Lets things happen until a worker has done something. False if there is nothing more to happen.
    fn step(&mut self) -> bool {
        let next = self.state.borrow_mut().advance();
        match next {
            Next::Poll(thread) => self.poll(thread),
            Next::Drop(node) => {
                let state = self.state.borrow();
                let threads = state.servers.iter().zip(&mut self.workers);
                let gone: Vec<_> = threads
                    .filter(|(server, _)| server.node == node)
                    .map(|(_, worker)| worker.take())
                    .collect();
                // Workers may look at the rack when they are dropped.
                drop(state);
                drop(gone);
            }
            Next::Nothing => return false,
        }
        true
    }

    fn poll(&mut self, thread: ThreadId) {
        let place = &mut self.workers[usize::from(thread.0)];
        let Some(worker) = place else { return };
        self.state.borrow_mut().thread(thread).phase = Phase::Running;
        match worker.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(()) => {
                *place = None;
                self.state.borrow_mut().ended(thread);
            }
            Poll::Pending => {
                let phase = self.state.borrow_mut().thread(thread).phase;
                assert_ne!(phase, Phase::Running, "{thread:?} awaits something that is not its handle's");
            }
        }
    }

    // Settings

    /// What happens to messages from here on.
    pub fn set_rules(&mut self, rules: Rules<S::Message>) {
        self.state.borrow_mut().rules = rules;
    }

    /// Lets a machine stop or come back at this time.
    pub fn schedule(&mut self, at: Nanos, fault: Fault) {
        self.state.borrow_mut().schedule_fault(at, fault);
    }

    /// Tells `observer` whatever happens from here on.
    pub fn observe(&mut self, observer: Observer<S::Message>) {
        self.state.borrow_mut().observer = Some(observer);
    }

    /// Counts and times begin anew.
    pub fn measure_from_here(&mut self) {
        let state = &mut *self.state.borrow_mut();
        self.measured_from = state.now;
        state.clear_counts();
    }

    // Getters

    /// The time.
    pub fn now(&self) -> Nanos {
        self.state.borrow().now
    }

    /// How the rack was set up.
    pub fn setup(&self) -> Setup {
        self.state.borrow().setup.clone()
    }

    /// The threads of a node.
    pub fn threads_of(&self, node: NodeId) -> impl Iterator<Item = ThreadId> + use<S> {
        let threads = self.state.borrow().setup.threads;
        let first = node.index() * threads;
        (first..first + threads)
            .map(|thread| ThreadId(u16::try_from(thread).expect("fewer than 2^16 threads")))
    }

    /// Looks at what runs on the rack.
    pub fn with_system<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.state.borrow().system)
    }

    /// Changes what runs on the rack, out of time: to prepare a run.
    pub fn with_system_mut<R>(&mut self, change: impl FnOnce(&mut S) -> R) -> R {
        let state = &mut *self.state.borrow_mut();
        let result = change(&mut state.system);
        for index in 0..state.machines.len() {
            state.arm(NodeId(u16::try_from(index).expect("at most 64 nodes")));
        }
        result
    }

    /// Messages in flight.
    pub fn in_flight(&self) -> u32 {
        self.state.borrow().flights.len()
    }
}
