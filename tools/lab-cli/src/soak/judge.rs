//! Decides whether a round's history is linearizable, key by key.

use std::collections::BTreeMap;
use std::time::Duration;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::Nanos;

use super::log::{Did, Entry};
use cli::fault::Fault;

/// A key's value at a moment at which nobody worked on it.
pub(super) type Values = BTreeMap<u64, u64>;

/// What a round's history says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    pub(super) operations: u64,
    pub(super) unknown: u64,
    pub(super) worst: Duration,
}

/// Judges the histories of all clients, given the values that the keys began with; keys that are not among them were
/// new in this round, and began as zero.
pub(super) fn judge(began: &Values, clients: &[(u64, Vec<Entry>)]) -> Result<Judged, Fault> {
    let mut history: Vec<Operation<u64>> = Vec::new();
    let mut judged = Judged { operations: 0, unknown: 0, worst: Duration::ZERO };
    let mut keys: BTreeMap<u64, u64> = began.clone();
    for (client, entries) in clients {
        for entry in entries {
            keys.entry(entry.key).or_insert(0);
            judged.operations += 1;
            match entry.ret {
                Some(ret) => judged.worst = judged.worst.max(ret - entry.invoke),
                None => judged.unknown += 1,
            }
            let op = match entry.did {
                Did::Read(value) => Op::Read { value: Some(value) },
                Did::Wrote(value) => Op::Insert { value },
                Did::Changed(old, new) => Op::Rmw { value: Some(old), new },
            };
            // One that did not return can overlap everything that its client did later, after all.
            let client = if entry.ret.is_some() { *client } else { u64::MAX - history.len() as u64 };
            history.push(Operation {
                client,
                key: entry.key,
                op,
                invoke: Nanos(entry.invoke.nanos()),
                ret: entry.ret.map(|ret| Nanos(ret.nanos())),
            });
        }
    }
    for (key, value) in keys {
        let (invoke, ret) = (Nanos(0), Some(Nanos(0)));
        history.push(Operation { client: u64::MAX / 2, key, op: Op::Insert { value }, invoke, ret });
    }
    match check_history(&history, Limits::default()) {
        Verdict::Linearizable { .. } => Ok(judged),
        verdict => Err(Fault::failed(format_args!("the history of this round is wrong: {verdict}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cli::clock::Moment;

    fn entry(did: Did, invoke: u64, ret: Option<u64>) -> Entry {
        Entry { key: 1, did, invoke: Moment::of_nanos(invoke), ret: ret.map(Moment::of_nanos) }
    }

    #[test]
    fn a_value_may_come_from_the_round_before_or_from_a_change_that_never_returned() {
        let began = Values::from([(1, 7)]);
        let reader = vec![entry(Did::Read(7), 1, Some(2)), entry(Did::Read(9), 5, Some(6))];
        let killed = vec![entry(Did::Wrote(9), 1, None)];
        let judged = judge(&began, &[(0, reader), (1, killed)]).unwrap();
        assert_eq!((judged.operations, judged.unknown), (3, 1));
    }

    #[test]
    fn a_stale_read_is_wrong() {
        let began = Values::from([(1, 7)]);
        let writer = vec![entry(Did::Wrote(9), 1, Some(2))];
        let reader = vec![entry(Did::Read(7), 3, Some(4))];
        assert!(matches!(judge(&began, &[(0, writer), (1, reader)]), Err(Fault::Failed(_))));
    }
}
