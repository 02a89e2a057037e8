//! Whoever waits is passed a bounded number of times.

use crate::locks::{Plan, Want};

/// Who waits, and how many got in since.
#[derive(Clone, Debug)]
pub struct Waits {
    waiting: Vec<Option<Waiting>>,
    most: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    want: Want,
    passed: u64,
}

impl Waits {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { waiting: vec![None; plan.nodes * plan.threads], most: 0 }
    }

    pub(crate) fn begin(&mut self, thread: usize, want: Want, _: usize) {
        self.waiting[thread] = Some(Waiting { want, passed: 0 });
    }

    pub(crate) fn end(&mut self, thread: usize) {
        self.waiting[thread] = None;
    }

    /// A thread gets in: all others that wait for that lock were passed once more.
    pub(crate) fn entered(&mut self, thread: usize, want: Want) -> Result<(), String> {
        self.end(thread);
        for waiting in self.waiting.iter_mut().flatten().filter(|waiting| waiting.want.lock == want.lock) {
            waiting.passed += 1;
            self.most = self.most.max(waiting.passed);
        }
        Ok(())
    }

    /// The most threads that went before one that waited.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }
}
