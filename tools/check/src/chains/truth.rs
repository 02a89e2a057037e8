//! What clients have asked of stores, and what they were told: looked at from outside.
//!
//! What must always hold: for each key of each store there is an order of its operations that explains all answers
//! ([`linearizability`](crate::linearizability)); no value is put together of two; nobody reads what was put somewhere else.

use std::collections::BTreeMap;

use wire::Nanos;

use crate::history::{Op, Operation};
use crate::linearizability::{Limits, Verdict, check_history};

/// A key of a store.
pub(super) type KeyOf = (u64, u64);

/// All operations there were; and whatever did not hold.
#[derive(Debug, Default)]
pub(super) struct Truth {
    history: Vec<Option<Operation<KeyOf>>>,
    /// Where each value was put.
    values: BTreeMap<u64, KeyOf>,
    next: u64,
    /// What did not hold first.
    pub(super) wrong: Option<String>,
}

impl Truth {
    pub(super) fn fails(&mut self, why: impl FnOnce() -> String) {
        self.wrong.get_or_insert_with(why);
    }

    /// A number that nobody has.
    pub(super) fn unique(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// An operation begins.
    pub(super) fn begins(&mut self, now: Nanos, client: u64, key: KeyOf, op: Op) -> usize {
        if let Op::Insert { value } = op {
            self.values.insert(value, key);
        }
        self.history.push(Some(Operation { client, key, op, invoke: now, ret: None }));
        self.history.len() - 1
    }

    /// It ends.
    pub(super) fn ends(&mut self, now: Nanos, at: usize) {
        self.history[at].as_mut().expect("it has begun").ret = Some(now);
    }

    /// A get ends.
    pub(super) fn reads(&mut self, now: Nanos, at: usize, found: Option<&[u64]>) {
        let operation = self.history[at].as_mut().expect("it has begun");
        let key = operation.key;
        operation.op = Op::Read { value: found.map(|words| words[0]) };
        operation.ret = Some(now);
        let Some(words) = found else { return };
        let is_one = words.iter().all(|word| *word == words[0]);
        if !is_one || self.values.get(&words[0]) != Some(&key) {
            let put = self.values.get(&words[0]).copied();
            self.fails(|| format!("a get of {key:?} returns {words:?}, which was put to {put:?}"));
        }
    }

    /// It was not done.
    pub(super) fn was_not_done(&mut self, at: usize) {
        self.history[at] = None;
    }

    /// Some order explains all answers.
    pub(super) fn check(&self) -> Result<(), String> {
        let history: Vec<_> = self.history.iter().flatten().cloned().collect();
        match check_history(&history, Limits::default()) {
            Verdict::Linearizable { .. } => Ok(()),
            other => Err(format!("chains: {other}")),
        }
    }
}
