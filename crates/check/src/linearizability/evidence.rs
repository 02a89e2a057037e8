//! Cuts the history of a key that failed to the part that shows why: first the smallest prefix, then as few of
//! its operations as possible.
//!
//! What must always hold: whatever is left is not linearizable by itself, and is left out only what cannot be
//! the reason: a history that is linearizable stays so without it.

use std::time::Instant;

use super::register::Register;
use super::search::{self, Outcome};
use super::{OneKey, Violation};
use crate::history::{Digest, Op, Operation};

/// Work allowed for leaving out operations, in operations checked: a few seconds.
const SHRINK_WORK: usize = 4_000_000;

/// How to check parts of the history.
pub(super) struct Evidence {
    pub(super) initial: Option<Digest>,
    pub(super) configurations: usize,
    pub(super) deadline: Option<Instant>,
}

impl Evidence {
    /// The evidence against a key that failed at `event` of its register.
    pub(super) fn gather<K: Clone>(
        &self,
        key: K,
        operations: &OneKey,
        event: usize,
        other_keys: usize,
    ) -> Violation<K> {
        let register = Register::new(self.initial, operations);
        let returns: Vec<usize> =
            (event..register.events.len()).filter(|&at| register.events[at].is_return).collect();
        // The search looks ahead, so it may fail before the history does: what is certain is that no earlier
        // prefix fails, that the whole does, and that a prefix fails if a shorter one does.
        let (mut passes, mut fails) = (0, returns.len() - 1);
        while passes < fails {
            let middle = usize::midpoint(passes, fails);
            if self.fails(&prefix(&register, operations, returns[middle])) {
                fails = middle;
            } else {
                passes = middle + 1;
            }
        }
        let last = returns[fails];
        let prefix = prefix(&register, operations, last);
        let core = self.shrink(&prefix);
        let named = |operations: &OneKey| -> Vec<Operation<K>> {
            operations
                .iter()
                .map(|&Operation { client, op, invoke, ret, .. }| Operation {
                    client,
                    key: key.clone(),
                    op,
                    invoke,
                    ret,
                })
                .collect()
        };
        let culprit = operations[register.events[last].access as usize].clone();
        let culprit = named(&vec![culprit]).remove(0);
        Violation { key: key.clone(), initial: self.initial, culprit, prefix: named(&prefix), core: named(&core), other_keys }
    }

    fn fails(&self, operations: &OneKey) -> bool {
        let register = Register::new(self.initial, operations);
        matches!(search::run(&register, self.configurations, self.deadline), Outcome::Violation { .. })
    }

    /// Leaves out what it can, in ever smaller pieces.
    fn shrink(&self, prefix: &OneKey) -> OneKey {
        let mut core = prefix.clone();
        let mut work = 0;
        let mut piece = core.len().div_ceil(2);
        while piece > 0 {
            let mut start = 0;
            while start < core.len() {
                work += core.len();
                if work > SHRINK_WORK {
                    return core;
                }
                let removed = start..core.len().min(start + piece);
                match self.without(&core, removed) {
                    // What now stands at `start` has not been tried.
                    Some(smaller) => core = smaller,
                    None => start += piece,
                }
            }
            piece /= 2;
        }
        core
    }

    /// The operations without a piece of them, if that still fails and is allowed. Writes whose value is still
    /// observed stay, or an observer would be blamed for what was only left out.
    fn without(&self, operations: &OneKey, piece: std::ops::Range<usize>) -> Option<OneKey> {
        let mut kept: Vec<bool> = (0..operations.len()).map(|index| !piece.contains(&index)).collect();
        let mut observed: std::collections::HashSet<Option<Digest>> = std::collections::HashSet::new();
        let observe = |op: &Op| match *op {
            Op::Read { value } | Op::Rmw { value, .. } => Some(value),
            Op::Update { value: None } => Some(None),
            _ => None,
        };
        observed.extend(operations.iter().zip(&kept).filter(|(_, kept)| **kept).filter_map(|(o, _)| observe(&o.op)));
        loop {
            let mut again = false;
            for index in piece.clone() {
                if !kept[index] && produces(&operations[index].op).is_some_and(|value| observed.contains(&value)) {
                    kept[index] = true;
                    again |= observe(&operations[index].op).is_some_and(|value| observed.insert(value));
                }
            }
            if !again {
                break;
            }
        }
        let smaller: OneKey =
            operations.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(operation, _)| operation.clone()).collect();
        let removed = operations.iter().zip(&kept).filter(|(_, kept)| !**kept).map(|(operation, _)| operation);
        let allowed = smaller.len() < operations.len()
            && (!removed.into_iter().any(|operation| makes_present(&operation.op)) || self.stays_present(&smaller));
        (allowed && self.fails(&smaller)).then_some(smaller)
    }

    /// Whether each update that succeeded finds the key present without any insert that was left out.
    fn stays_present(&self, operations: &OneKey) -> bool {
        let is_update = |operation: &&Operation<()>| matches!(operation.op, Op::Update { value: Some(_) });
        let Some(first_update) = operations.iter().filter(is_update).map(|update| update.invoke).min() else {
            return true;
        };
        let has_deletes = operations.iter().any(|operation| operation.op == Op::Delete);
        let was_inserted = operations
            .iter()
            .any(|operation| makes_present(&operation.op) && operation.ret.is_some_and(|ret| ret < first_update));
        !has_deletes && (self.initial.is_some() || was_inserted)
    }
}

fn produces(op: &Op) -> Option<Option<Digest>> {
    match *op {
        Op::Insert { value } | Op::Update { value: Some(value) } => Some(Some(value)),
        Op::Rmw { value, new } => (value != Some(new)).then_some(Some(new)),
        Op::Delete => Some(None),
        Op::Read { .. } | Op::Update { value: None } => None,
    }
}

fn makes_present(op: &Op) -> bool {
    matches!(op, Op::Insert { .. } | Op::Rmw { value: None, .. })
}

/// What was known right after an event, in the order of invocation: an operation that returns later is still
/// under way.
fn prefix(register: &Register, operations: &OneKey, last: usize) -> OneKey {
    let mut returned = vec![false; operations.len()];
    let mut invoked = vec![false; operations.len()];
    for event in &register.events[..=last] {
        let at = if event.is_return { &mut returned } else { &mut invoked };
        at[event.access as usize] = true;
    }
    let mut prefix: OneKey = (0..operations.len())
        .filter(|&index| invoked[index])
        .map(|index| {
            let operation = operations[index].clone();
            Operation { ret: operation.ret.filter(|_| returned[index]), ..operation }
        })
        .collect();
    prefix.sort_by_key(|operation| operation.invoke);
    prefix
}
