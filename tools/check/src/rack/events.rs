//! What happened last to one block or lock, for whoever asks why a run failed.
//!
//! A run is not slowed down by it: a case gives one run, so what is to be told of a failure is found in a second one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// So many are kept: under faults, and after their end.
const MOST: usize = 20;

#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    /// What the last event was about.
    last: Cell<Option<u64>>,
    watching: bool,
    watched: Option<u64>,
    kept: RefCell<VecDeque<String>>,
    /// Those before the faults ended, if they have.
    before: Vec<String>,
}

impl Events {
    pub(super) fn watch(&mut self, about: Option<u64>) {
        (self.watching, self.watched) = (true, about);
    }

    /// An event; true if it is to be kept.
    pub(super) fn note(&self, about: Option<u64>) -> bool {
        if about.is_some() {
            self.last.set(about);
        }
        self.watching && about.is_some() && about == self.watched
    }

    pub(super) fn keep(&self, line: String) {
        let mut kept = self.kept.borrow_mut();
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    /// The faults end: what happened last under them is not lost among what follows.
    pub(super) fn end_faults(&mut self) {
        self.before = self.kept.take().into();
    }

    pub(super) fn kept(&self) -> Vec<String> {
        self.before.iter().chain(&*self.kept.borrow()).cloned().collect()
    }

    pub(super) fn last_about(&self) -> Option<u64> {
        self.last.get()
    }
}
