//! Drives a baseline without time: the test, or chance, picks which message arrives next.
//!
//! What must always hold: a message arrives once; a thread that was woken tries again; nothing else happens.

// Each test file uses a part of it.
#![allow(dead_code)]

use node::{Access, Window};
use sim::system::{Action, Call, Operation, Outcome, Place, Progress, Random, System, ThreadId};
use wire::{Discipline, GlobalAddr, Nanos, NodeId, Refusal};

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    /// Reads the first word of a block.
    Read(GlobalAddr),
    /// Adds one to it.
    Add(GlobalAddr),
    /// Takes a lock, for writing or not, waiting or not.
    Lock(GlobalAddr, bool, bool),
    /// Releases it.
    Unlock(u64),
}

/// How a task ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    pub(crate) thread: ThreadId,
    pub(crate) task: Task,
    pub(crate) result: Result<Outcome, Refusal>,
    /// How often its closure ran, and what it saw last.
    pub(crate) runs: u32,
    pub(crate) saw: u64,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    task: Task,
    ready: bool,
    runs: u32,
    saw: u64,
}

/// A system, what is in flight in it, and its threads.
pub(crate) struct Driver<S: System> {
    pub(crate) system: S,
    pub(crate) in_flight: Vec<S::Message>,
    jobs: Vec<Option<Job>>,
    pub(crate) ended: Vec<Ended>,
    pub(crate) random: Random,
    seed: u64,
}

impl<S: System> Driver<S> {
    pub(crate) fn new(system: S, threads: usize, seed: u64) -> Self {
        let random = Random::new(seed);
        Self { system, in_flight: Vec::new(), jobs: vec![None; threads], ended: Vec::new(), random, seed }
    }

    fn call<T>(&mut self, input: impl FnOnce(&mut S, &mut Call<'_, S::Message>) -> T) -> T {
        let mut actions = Vec::new();
        let call = &mut Call {
            now: Nanos::ZERO,
            actions: &mut actions,
            charged: Nanos::ZERO,
            random: &mut self.random,
        };
        let result = input(&mut self.system, call);
        for action in actions {
            match action {
                Action::Send(message) => self.in_flight.push(message),
                Action::Resubmit(message) => panic!("only a switch resubmits: {message:?}"),
                Action::Wake(thread, _) => {
                    if let Some(job) = &mut self.jobs[usize::from(thread.0)] {
                        job.ready = true;
                    }
                }
            }
        }
        result
    }

    /// Allocates memory.
    pub(crate) fn alloc(&mut self, home: u16, len: u64) -> GlobalAddr {
        let mut operation = Operation::Alloc { len, home: NodeId(home), discipline: Discipline::Coherent };
        match self.call(|system, call| system.attempt(call, ThreadId(0), &mut operation)) {
            Progress::Done(Outcome::Allocated(addr, _), _) => addr,
            other => panic!("an allocation ended with {other:?}"),
        }
    }

    pub(crate) fn is_idle(&self, thread: u16) -> bool {
        self.jobs[usize::from(thread)].is_none()
    }

    /// Gives a thread something to do, and lets it try.
    pub(crate) fn start(&mut self, thread: u16, task: Task) {
        let before = self.jobs[usize::from(thread)].replace(Job { task, ready: true, runs: 0, saw: 0 });
        assert!(before.is_none(), "thread {thread} has something to do");
        self.attempt(ThreadId(thread));
    }

    /// Threads that were woken and have not tried again.
    pub(crate) fn ready(&self) -> Vec<ThreadId> {
        (0..)
            .zip(&self.jobs)
            .filter(|(_, job)| job.is_some_and(|job| job.ready))
            .map(|(t, _)| ThreadId(t))
            .collect()
    }

    pub(crate) fn attempt(&mut self, thread: ThreadId) {
        let mut job = self.jobs[usize::from(thread.0)].expect("the thread has something to do");
        let (mut runs, mut saw) = (job.runs, job.saw);
        job.ready = false;
        self.jobs[usize::from(thread.0)] = Some(job);
        let adds = matches!(job.task, Task::Add(_));
        let mut with = |window: &Window<'_>| {
            runs += 1;
            saw = window.word(0);
            if adds {
                window.set_word(0, saw + 1);
            }
        };
        let mut operation = match job.task {
            Task::Read(addr) => Operation::Touch { addr, len: 8, access: Access::Shared, with: &mut with },
            Task::Add(addr) => Operation::Touch { addr, len: 8, access: Access::Modified, with: &mut with },
            Task::Lock(addr, write, once) => Operation::Lock { addr, write, once },
            Task::Unlock(token) => Operation::Unlock { token },
        };
        let progress = self.call(|system, call| system.attempt(call, thread, &mut operation));
        let result = match progress {
            Progress::Done(outcome, _) => Ok(outcome),
            Progress::Failed(why) => Err(why),
            Progress::Waits => {
                let job = self.jobs[usize::from(thread.0)].as_mut().expect("it waits");
                (job.runs, job.saw) = (runs, saw);
                return;
            }
        };
        self.jobs[usize::from(thread.0)] = None;
        self.ended.push(Ended { thread, task: job.task, result, runs, saw });
    }

    /// Lets the first message arrive that fits, and nothing else happen.
    pub(crate) fn deliver(&mut self, fits: impl Fn(&S::Message) -> bool) -> S::Message {
        let at = self.in_flight.iter().position(fits);
        let at = at.unwrap_or_else(|| panic!("no such message among {:?}", self.in_flight));
        self.deliver_at(at)
    }

    fn deliver_at(&mut self, at: usize) -> S::Message {
        let message = self.in_flight.remove(at);
        let envelope = self.system.envelope(&message);
        assert!(envelope.to != Place::Switch, "no baseline has a program in the switch");
        self.call(|system, call| system.on_message(call, &message));
        message
    }

    /// Lets all threads that were woken try again.
    pub(crate) fn attempt_all(&mut self) {
        for thread in self.ready() {
            self.attempt(thread);
        }
    }

    /// Lets everything happen in the order in which it was sent. Returns the messages.
    pub(crate) fn settle(&mut self) -> Vec<S::Message> {
        let mut delivered = Vec::new();
        loop {
            self.attempt_all();
            if self.in_flight.is_empty() {
                return delivered;
            }
            delivered.push(self.deliver_at(0));
        }
    }

    /// Lets one thing happen by chance: any message arrives, or any woken thread tries again. False if there is
    /// nothing left to happen.
    pub(crate) fn step(&mut self) -> bool {
        let ready = self.ready();
        let choices = ready.len() + self.in_flight.len();
        if choices == 0 {
            return false;
        }
        match self.random.below(choices as u64) as usize {
            pick if pick < ready.len() => self.attempt(ready[pick]),
            pick => {
                self.deliver_at(pick - ready.len());
            }
        }
        true
    }

    /// How to see a failure again.
    pub(crate) fn replay(&self) -> String {
        format!("seed {}", self.seed)
    }

    /// Does a task from start to end, with nothing else in flight.
    pub(crate) fn run(&mut self, thread: u16, task: Task) -> (Vec<S::Message>, Ended) {
        self.start(thread, task);
        let messages = self.settle();
        let ended = *self.ended.last().expect("it ended");
        assert_eq!((ended.thread.0, ended.task), (thread, task), "it ended, and was the last to do so");
        (messages, ended)
    }
}
