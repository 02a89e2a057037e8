//! Cuts the history of a key that failed to the part that shows why: first the smallest prefix, then as few of
//! its operations as possible.
//!
//! What must always hold: whatever is left is not linearizable by itself, and is left out only what cannot be
//! the reason: a history that is linearizable stays so without it.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Instant;

use wire::Nanos;

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
        // What returned last, of what looks the same.
        let culprit = &operations[register.events[last].access as usize];
        let at =
            prefix.iter().rposition(|operation| operation == culprit).expect("it returned in the prefix");
        let core = self.shrink(&prefix, at);
        let named = |operation: &Operation<()>| {
            let Operation { client, op, invoke, ret, .. } = *operation;
            Operation { client, key: key.clone(), op, invoke, ret }
        };
        Violation {
            key: key.clone(),
            initial: self.initial,
            culprit: named(culprit),
            prefix: prefix.iter().map(named).collect(),
            core: core.into_iter().map(|index| named(&prefix[index])).collect(),
            other_keys,
        }
    }

    fn fails(&self, operations: &OneKey) -> bool {
        let register = Register::new(self.initial, operations);
        matches!(search::run(&register, self.configurations, self.deadline), Outcome::Violation { .. })
    }

    /// The operations that are needed for the prefix to fail, or nearly so.
    fn shrink(&self, prefix: &OneKey, culprit: usize) -> Vec<usize> {
        // An update that may also find the key absent is easier to explain: if the history fails even so, it is
        // not about presence, and far more can be left out.
        let lenient = |operation: &Operation<()>| match operation.op {
            Op::Update { value: Some(value) } => Operation { op: Op::Insert { value }, ..operation.clone() },
            _ => operation.clone(),
        };
        let relaxed: OneKey = prefix.iter().map(lenient).collect();
        if self.fails(&relaxed) {
            let mut kept = self.leave_out(&relaxed);
            if self.blames(prefix, &kept, culprit) {
                return kept;
            }
            // Updates without any insert look wrong by themselves. One is mostly enough.
            let inserts = (0..prefix.len()).filter(|&index| makes_present(&prefix[index].op));
            kept.extend(inserts.min_by_key(|&index| prefix[index].ret.unwrap_or(Nanos::MAX)));
            kept.sort_unstable();
            kept.dedup();
            if self.blames(prefix, &kept, culprit) {
                return kept;
            }
        }
        self.leave_out(prefix)
    }

    /// Whether the operations kept are fine but for the return of the culprit, as the whole prefix is.
    fn blames(&self, prefix: &OneKey, kept: &[usize], culprit: usize) -> bool {
        let pick = |&index: &usize| {
            let operation = prefix[index].clone();
            Operation { ret: operation.ret.filter(|_| index != culprit), ..operation }
        };
        let register = Register::new(self.initial, &kept.iter().map(pick).collect::<OneKey>());
        search::run(&register, self.configurations, self.deadline) == Outcome::Linearizable
    }

    /// Leaves out what it can, in ever smaller pieces; returns the indices of the rest.
    fn leave_out(&self, operations: &OneKey) -> Vec<usize> {
        let mut order: Vec<usize> = (0..operations.len()).collect();
        let mut work = 0;
        let mut piece = order.len().div_ceil(2);
        while piece > 0 {
            let mut start = 0;
            while start < order.len() {
                work += order.len();
                if work > SHRINK_WORK {
                    piece = 1;
                    break;
                }
                match self.without(operations, &order, start..order.len().min(start + piece)) {
                    // What now stands at `start` has not been tried.
                    Some(smaller) => order = smaller,
                    None => start += piece,
                }
            }
            piece /= 2;
        }
        order
    }

    /// What is left without a piece of the operations, if that still fails and was allowed. Writes whose value is
    /// still observed stay, or an observer would be blamed for what was only left out.
    fn without(&self, operations: &OneKey, order: &[usize], piece: Range<usize>) -> Option<Vec<usize>> {
        let mut kept: Vec<bool> = (0..order.len()).map(|at| !piece.contains(&at)).collect();
        let op = |at: usize| &operations[order[at]].op;
        let mut seen = Seen::default();
        (0..order.len()).filter(|&at| kept[at]).for_each(|at| seen.add(&operations[order[at]]));
        loop {
            let absence = self.origin_of_absence(operations, order, &seen);
            let again: Vec<usize> = piece
                .clone()
                .filter(|&at| !kept[at])
                .filter(|&at| match produces(op(at)) {
                    Some(Some(digest)) => seen.digests.contains(&digest),
                    Some(None) => {
                        absence.is_some_and(|begin| operations[order[at]].ret.is_none_or(|ret| ret >= begin))
                    }
                    None => false,
                })
                .collect();
            if again.is_empty() {
                break;
            }
            for at in again {
                kept[at] = true;
                seen.add(&operations[order[at]]);
            }
        }
        let smaller: Vec<usize> = (0..order.len()).filter(|&at| kept[at]).map(|at| order[at]).collect();
        let loses_presence = piece.clone().any(|at| !kept[at] && makes_present(op(at)));
        let rest: OneKey = smaller.iter().map(|&index| operations[index].clone()).collect();
        let allowed = rest.len() < order.len() && (!loses_presence || self.stays_present(&rest));
        (allowed && self.fails(&rest)).then_some(smaller)
    }

    /// If someone saw the key absent: deletes that returned before this cannot be the reason, because something
    /// was written for certain between them and the first who saw it.
    fn origin_of_absence(&self, operations: &OneKey, order: &[usize], seen: &Seen) -> Option<Nanos> {
        let first = seen.absent?;
        if self.initial.is_some() {
            return Some(Nanos::ZERO); // Without any delete, it would look as if absence came from nowhere.
        }
        let writes =
            order.iter().map(|&index| &operations[index]).filter(|write| produces(&write.op).is_some());
        let complete = writes.filter(|write| write.ret.is_some_and(|ret| ret < first));
        Some(complete.map(|write| write.invoke).max().unwrap_or(Nanos::ZERO))
    }

    /// Whether each update that succeeded finds the key present without any insert that was left out.
    fn stays_present(&self, operations: &OneKey) -> bool {
        let is_update = |operation: &&Operation<()>| matches!(operation.op, Op::Update { value: Some(_) });
        let Some(first_update) = operations.iter().filter(is_update).map(|update| update.invoke).min() else {
            return true;
        };
        let has_deletes = operations.iter().any(|operation| operation.op == Op::Delete);
        let was_inserted = operations.iter().any(|operation| {
            makes_present(&operation.op) && operation.ret.is_some_and(|ret| ret < first_update)
        });
        !has_deletes && (self.initial.is_some() || was_inserted)
    }
}

/// What some operations observed.
#[derive(Default)]
struct Seen {
    digests: HashSet<Digest>,
    /// When the first of those that found the key absent was invoked.
    absent: Option<Nanos>,
}

impl Seen {
    fn add(&mut self, operation: &Operation<()>) {
        match observes(&operation.op) {
            Some(Some(digest)) => {
                self.digests.insert(digest);
            }
            Some(None) => {
                self.absent = Some(self.absent.map_or(operation.invoke, |first| first.min(operation.invoke)));
            }
            None => {}
        }
    }
}

/// The value that an operation must find, if any.
fn observes(op: &Op) -> Option<Option<Digest>> {
    match *op {
        Op::Read { value } | Op::Rmw { value, .. } => Some(value),
        Op::Update { value: None } => Some(None),
        Op::Insert { .. } | Op::Update { value: Some(_) } | Op::Delete => None,
    }
}

/// The value that an operation leaves, if it changes it.
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
/// in flight.
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
