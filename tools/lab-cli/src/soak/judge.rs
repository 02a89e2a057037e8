//! Decides whether a round's history is linearizable, key by key.
//!
//! With copies, a node that died has done a prefix of what it did. What it did before its last `sync`, or before a write of it
//! that somebody else has seen, it has done; of what came later, writes may have happened, and reads say nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::Nanos;

use super::log::{Did, Entry};
use cli::clock::Moment;
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
/// new in this round, and began as zero. `died`: the clients of each node that died, and whose words outlive it.
pub(super) fn judge(
    began: &Values,
    clients: &[(u64, Vec<Entry>)],
    died: &[Range<u64>],
) -> Result<Judged, Fault> {
    let mut history: Vec<Operation<u64>> = Vec::new();
    let mut judged = Judged { operations: 0, unknown: 0, worst: Duration::ZERO };
    let mut keys: BTreeMap<u64, u64> = began.clone();
    let cuts: Vec<Cut> = died.iter().map(|of| Cut::of(clients, of)).collect();
    for (client, entries) in clients {
        let cut = died.iter().zip(&cuts).find(|(of, _)| of.contains(client)).map(|(_, cut)| cut);
        for entry in entries {
            let Some(entry) = cut.map_or(Some(*entry), |cut| cut.survives(entry)) else { continue };
            if entry.did != Did::Synced {
                keys.entry(entry.key).or_insert(0);
            }
            judged.operations += 1;
            match entry.ret {
                Some(ret) => judged.worst = judged.worst.max(ret - entry.invoke),
                None => judged.unknown += 1,
            }
            let op = match entry.did {
                Did::Read(value) => Op::Read { value: Some(value) },
                Did::Wrote(value) => Op::Insert { value },
                Did::Changed(old, new) => Op::Rmw { value: Some(old), new },
                Did::Synced => continue,
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

/// What of a dead node's operations is certain.
struct Cut {
    /// Before this, all.
    at: Moment,
    /// What it wrote and others have seen.
    seen: BTreeSet<u64>,
}

impl Cut {
    /// Of these clients, as all say.
    fn of(clients: &[(u64, Vec<Entry>)], dead: &Range<u64>) -> Self {
        let entries = |of_dead: bool| {
            let whose = clients.iter().filter(move |(client, _)| dead.contains(client) == of_dead);
            whose.flat_map(|(_, entries)| entries)
        };
        let saw = |entry: &Entry| match entry.did {
            Did::Read(value) | Did::Changed(value, _) => Some(value),
            Did::Wrote(_) | Did::Synced => None,
        };
        let seen: BTreeSet<u64> = entries(false).filter_map(saw).collect();
        let certain = entries(true).filter(|entry| match entry.did {
            Did::Wrote(value) | Did::Changed(_, value) => seen.contains(&value),
            Did::Synced => true,
            Did::Read(_) => false,
        });
        Self { at: certain.map(|entry| entry.invoke).max().unwrap_or(Moment::of_nanos(0)), seen }
    }

    /// The operation as far as it is certain; `None`: it says nothing.
    fn survives(&self, entry: &Entry) -> Option<Entry> {
        match entry.did {
            _ if entry.ret.is_some_and(|ret| ret <= self.at) => Some(*entry),
            Did::Wrote(value) | Did::Changed(_, value) if self.seen.contains(&value) => Some(*entry),
            Did::Wrote(_) | Did::Changed(..) => Some(Entry { ret: None, ..*entry }),
            Did::Read(_) | Did::Synced => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(did: Did, invoke: u64, ret: Option<u64>) -> Entry {
        Entry { key: 1, did, invoke: Moment::of_nanos(invoke), ret: ret.map(Moment::of_nanos) }
    }

    #[test]
    fn a_value_may_come_from_the_round_before_or_from_a_change_that_never_returned() {
        let began = Values::from([(1, 7)]);
        let reader = vec![entry(Did::Read(7), 1, Some(2)), entry(Did::Read(9), 5, Some(6))];
        let killed = vec![entry(Did::Wrote(9), 1, None)];
        let judged = judge(&began, &[(0, reader), (1, killed)], &[]).unwrap();
        assert_eq!((judged.operations, judged.unknown), (3, 1));
    }

    #[test]
    fn a_stale_read_is_wrong() {
        let began = Values::from([(1, 7)]);
        let writer = vec![entry(Did::Wrote(9), 1, Some(2))];
        let reader = vec![entry(Did::Read(7), 3, Some(4))];
        assert!(matches!(judge(&began, &[(0, writer), (1, reader)], &[]), Err(Fault::Failed(_))));
    }

    fn of(key: u64, did: Did, invoke: u64, ret: u64) -> Entry {
        Entry { key, did, invoke: Moment::of_nanos(invoke), ret: Some(Moment::of_nanos(ret)) }
    }

    /// Clients 0 and 1 are of a node that died; client 9 lives on, and reads this afterwards.
    fn after_a_death(dead: [Vec<Entry>; 2], found: [(u64, u64); 2]) -> bool {
        let [first, second] = dead;
        let found = found.map(|(key, value)| of(key, Did::Read(value), 100, 101)).to_vec();
        judge(&Values::new(), &[(0, first), (1, second), (9, found)], std::slice::from_ref(&(0..2))).is_ok()
    }

    #[test]
    fn a_dead_node_has_done_a_prefix() {
        let wrote = || [vec![of(1, Did::Wrote(5), 1, 2), of(2, Did::Wrote(6), 3, 4)], vec![]];
        assert!(after_a_death(wrote(), [(1, 0), (2, 0)]), "neither");
        assert!(after_a_death(wrote(), [(1, 5), (2, 0)]), "the first");
        assert!(after_a_death(wrote(), [(1, 5), (2, 6)]), "both");
        assert!(!after_a_death(wrote(), [(1, 0), (2, 6)]), "the second without the first");
        // The same of two threads, one after the other; and at the same time.
        let two = |from| [vec![of(1, Did::Wrote(5), 1, 4)], vec![of(2, Did::Wrote(6), from, 9)]];
        assert!(!after_a_death(two(5), [(1, 0), (2, 6)]));
        assert!(after_a_death(two(3), [(1, 0), (2, 6)]));
    }

    #[test]
    fn what_was_synced_or_seen_is_there() {
        let synced = |from| {
            [
                vec![of(1, Did::Wrote(5), 1, 4), of(2, Did::Wrote(6), 20, 21)],
                vec![of(0, Did::Synced, from, 9)],
            ]
        };
        assert!(!after_a_death(synced(5), [(1, 0), (2, 0)]), "it was synced");
        assert!(after_a_death(synced(3), [(1, 0), (2, 0)]), "that may have begun before");
        assert!(after_a_death(synced(5), [(1, 5), (2, 0)]));
        // What a thread of the dead node has read says nothing, unless others have seen something later.
        let read = || [vec![of(1, Did::Wrote(5), 1, 2)], vec![of(1, Did::Read(5), 3, 4)]];
        assert!(after_a_death(read(), [(1, 0), (2, 0)]));
        let read = || {
            [vec![of(1, Did::Wrote(5), 1, 2)], vec![of(1, Did::Read(0), 3, 4), of(2, Did::Wrote(7), 6, 7)]]
        };
        assert!(!after_a_death(read(), [(1, 5), (2, 7)]), "it read what was not there any more");
    }
}
