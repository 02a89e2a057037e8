//! What of an allocation side tells one state from another, for checkers that explore all states.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::{Nanos, Seq};

use super::reclaim::Job;
use super::{Allocation, Freeing, Pending};
use crate::allocator::Allocator;
use crate::coherence::canonical::FAR;
use crate::coherence::canonical::rest::{rows, set_rows};

/// All of it but the times.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AllocationState {
    allocator: Allocator,
    seqs: Vec<(u32, Seq)>,
    pending: Vec<(u32, Option<Pending>)>,
    frees: Vec<(u32, Option<Freeing>)>,
    reclaim: VecDeque<Job>,
    retrying: u64,
}

impl Allocation {
    pub(crate) fn save(&self) -> AllocationState {
        let mut pending = rows(&self.pending, &None);
        pending
            .iter_mut()
            .filter_map(|(_, it)| it.as_mut())
            .for_each(|it| it.deadline = armed(it.is_armed()));
        AllocationState {
            allocator: self.allocator.clone(),
            seqs: rows(&self.seqs, &Seq::NONE),
            pending,
            frees: rows(&self.frees, &None),
            reclaim: self.reclaim.clone(),
            retrying: self.retrying,
        }
    }

    pub(crate) fn load(&mut self, state: &AllocationState) {
        self.allocator.clone_from(&state.allocator);
        set_rows(&mut self.seqs, Seq::NONE, &state.seqs);
        set_rows(&mut self.pending, None, &state.pending);
        set_rows(&mut self.frees, None, &state.frees);
        self.reclaim.clone_from(&state.reclaim);
        self.retrying = state.retrying;
        let calls_are_repeated = self.pending.iter().flatten().any(Pending::is_armed);
        (self.due, self.retry) = (armed(calls_are_repeated), armed(state.retrying != 0));
    }

    /// Every call in flight is overdue, and threads that wait for a chunk look again.
    pub(crate) fn make_due(&mut self) {
        for pending in self.pending.iter_mut().flatten().filter(|it| it.is_armed()) {
            (pending.deadline, self.due) = (Nanos::ZERO, Nanos::ZERO);
        }
        if self.retrying != 0 {
            self.retry = Nanos::ZERO;
        }
    }
}

impl AllocationState {
    pub(crate) fn is_armed(&self) -> bool {
        self.pending.iter().filter_map(|(_, it)| it.as_ref()).any(Pending::is_armed) || self.retrying != 0
    }
}

impl Pending {
    fn is_armed(&self) -> bool {
        self.deadline != Nanos::MAX
    }
}

fn armed(is: bool) -> Nanos {
    if is { FAR } else { Nanos::MAX }
}
