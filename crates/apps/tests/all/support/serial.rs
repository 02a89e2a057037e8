//! Whether transactions that have committed are serializable: their dependency graph, by the versions that they have read
//! and written, has no cycle.
//!
//! A key that is not there has a version, too: it is the first one of a key that is inserted, and the last one of a key that is
//! deleted. So a test never inserts what was deleted.

use std::collections::BTreeMap;

use apps::tx::{Footprint, Table};

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// Two transactions have written the same version.
    LostUpdate(u128),
    /// A transaction has read what none has committed.
    DirtyRead(u128),
    /// These depend on each other in a circle.
    Cycle(Vec<usize>),
}

/// The version of a key that was not there yet, or is not any more.
fn absent(key: u128, is_inserted: &impl Fn(u128) -> bool) -> u64 {
    if is_inserted(key) { 0 } else { u64::MAX }
}

/// Judges transactions. `is_inserted` says which keys were not there at first; all others were, with version 1.
pub(crate) fn judge(done: &[Footprint], is_inserted: impl Fn(u128) -> bool) -> Result<(), Wrong> {
    // Writers of each key, by version.
    let mut writers: BTreeMap<(Table, u128), BTreeMap<u64, usize>> = BTreeMap::new();
    for (number, footprint) in done.iter().enumerate() {
        for (table, key, version) in &footprint.writes {
            let version = version.unwrap_or(u64::MAX);
            let before = writers.entry((*table, *key)).or_default().insert(version, number);
            if before.is_some_and(|before| before != number) {
                return Err(Wrong::LostUpdate(*key));
            }
        }
    }
    let mut edges = vec![Vec::new(); done.len()];
    for of_key in writers.values() {
        for (before, after) in of_key.values().zip(of_key.values().skip(1)) {
            edges[*before].push(*after);
        }
    }
    for (number, footprint) in done.iter().enumerate() {
        for (table, key, version) in &footprint.reads {
            let version = version.unwrap_or_else(|| absent(*key, &is_inserted));
            let first = if is_inserted(*key) { 0 } else { 1 };
            let of_key = writers.get(&(*table, *key));
            let writer = of_key.and_then(|of_key| of_key.get(&version)).copied();
            if version != first && writer.is_none() {
                return Err(Wrong::DirtyRead(*key));
            }
            if let Some(writer) = writer {
                edges[writer].push(number);
            }
            let later = of_key.and_then(|of_key| of_key.range(version.saturating_add(1)..).next());
            if let Some((_, later)) = later.filter(|_| version < u64::MAX) {
                edges[number].push(*later);
            }
        }
    }
    cycle(&edges).map_or(Ok(()), |cycle| Err(Wrong::Cycle(cycle)))
}

/// The transactions that are left when those on which nothing depends are taken away, again and again.
fn cycle(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut left: Vec<usize> = (0..edges.len()).collect();
    loop {
        let depends =
            |number: &usize| edges[*number].iter().any(|to| to != number && left.binary_search(to).is_ok());
        let next: Vec<usize> = left.iter().copied().filter(depends).collect();
        if next.len() == left.len() {
            return (!left.is_empty()).then_some(left);
        }
        left = next;
    }
}
