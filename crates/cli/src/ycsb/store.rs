//! What a workload needs of a key-value store, so that the clients can be tested without a rack.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why an operation of the store failed, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoreError(pub(crate) String);

impl StoreError {
    /// From whatever the store says.
    pub(crate) fn new(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// One client's way into the store. Every operation is linearizable per key.
pub(crate) trait Session {
    /// Replaces `into` by a copy of the whole record; false if there is none.
    fn read(&mut self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, StoreError>;

    /// Sets the whole record, whether or not there was one.
    fn insert(&mut self, key: &[u8], record: &[u8]) -> Result<(), StoreError>;

    /// Overwrites a part of the record; false if there is none.
    fn update(&mut self, key: &[u8], at: usize, bytes: &[u8]) -> Result<bool, StoreError>;

    /// Changes the record atomically; false if there is none. The closure may run more than once, each time on
    /// the record as it is; the last run counts.
    fn modify(&mut self, key: &[u8], change: impl FnMut(&mut Vec<u8>)) -> Result<bool, StoreError>;

    /// Shows so many records, from this key on, in the order of keys. How many there were. Not of one moment: each record is whole.
    fn scan(&mut self, key: &[u8], most: u64, each: impl FnMut(&[u8])) -> Result<u64, StoreError>;

    /// Round trips that the last operation took, where the store counts them.
    fn trips(&self) -> Option<u32> {
        None
    }
}

/// What a rack has counted since it started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Traffic {
    /// Accesses that found their block in their node's cache with the rights that they needed.
    pub(crate) hits: u64,
    /// Accesses that did not.
    pub(crate) misses: u64,
    /// Coherence packets that the switch received and sent.
    pub(crate) switch_packets: u64,
    /// Coherence packets that the home agents received and sent.
    pub(crate) home_packets: u64,
    /// What the switch did with appends to chains.
    pub(crate) appends: Appends,
}

/// What a switch has done with appends to chains.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Appends {
    /// Sent to the tail.
    pub(crate) steered: u64,
    /// Of those, the ones that would have gone elsewhere.
    pub(crate) moved: u64,
    /// Passed as they were.
    pub(crate) unsteered: u64,
    /// Answered as refused.
    pub(crate) refused: u64,
    /// Answered as indeterminate.
    pub(crate) doubted: u64,
    /// Reads that were sent to the tail.
    pub(crate) reads: u64,
}

impl Appends {
    fn each(&self, other: &Self, what: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            steered: what(self.steered, other.steered),
            moved: what(self.moved, other.moved),
            unsteered: what(self.unsteered, other.unsteered),
            refused: what(self.refused, other.refused),
            doubted: what(self.doubted, other.doubted),
            reads: what(self.reads, other.reads),
        }
    }
}

impl From<rackmem::SteeringCounts> for Appends {
    fn from(counts: rackmem::SteeringCounts) -> Self {
        let rackmem::SteeringCounts { steered, moved, unsteered, refused, indeterminate, reads, .. } = counts;
        Self { steered, moved, unsteered, refused, doubted: indeterminate, reads }
    }
}

impl Traffic {
    /// Adds what another process has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.switch_packets += other.switch_packets;
        self.home_packets += other.home_packets;
        self.appends = self.appends.each(&other.appends, |mine, others| mine + others);
    }

    /// What was counted since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            switch_packets: self.switch_packets - earlier.switch_packets,
            home_packets: self.home_packets - earlier.home_packets,
            appends: self.appends.each(&earlier.appends, |now, then| now.saturating_sub(then)),
        }
    }

    /// The share of accesses that hit; none without accesses.
    pub(crate) fn hit_rate(&self) -> Option<f64> {
        ratio(self.hits, self.hits + self.misses)
    }
}

/// `part / whole`, if that is a number.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    let ratio = part as f64 / whole as f64;
    (whole > 0).then_some(ratio)
}

/// A store in plain memory, for the tests of the clients.
#[cfg(test)]
pub(crate) mod mock {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;

    /// Records by key, and how often each operation ran.
    #[derive(Default)]
    pub(crate) struct MockStore {
        pub(crate) records: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
        /// Inserts fail once this many records are there.
        pub(crate) full_at: Option<usize>,
    }

    impl Session for &MockStore {
        fn read(&mut self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, StoreError> {
            let records = self.records.lock().unwrap();
            into.clear();
            Ok(records.get(key).map(|record| into.extend_from_slice(record)).is_some())
        }

        fn insert(&mut self, key: &[u8], record: &[u8]) -> Result<(), StoreError> {
            let mut records = self.records.lock().unwrap();
            if self.full_at.is_some_and(|most| records.len() >= most) {
                return Err(StoreError::new("the mock is full"));
            }
            records.insert(key.to_vec(), record.to_vec());
            Ok(())
        }

        fn update(&mut self, key: &[u8], at: usize, bytes: &[u8]) -> Result<bool, StoreError> {
            self.modify(key, |record| record[at..at + bytes.len()].copy_from_slice(bytes))
        }

        fn modify(&mut self, key: &[u8], mut change: impl FnMut(&mut Vec<u8>)) -> Result<bool, StoreError> {
            let mut records = self.records.lock().unwrap();
            let Some(record) = records.get_mut(key) else { return Ok(false) };
            // As a store may do after losing a race: the first result is thrown away.
            change(&mut record.clone());
            change(record);
            Ok(true)
        }

        fn scan(&mut self, key: &[u8], most: u64, mut each: impl FnMut(&[u8])) -> Result<u64, StoreError> {
            let records = self.records.lock().unwrap();
            let found = records.range(key.to_vec()..).take(most as usize);
            Ok(found.map(|(_, record)| each(record)).count() as u64)
        }
    }

    #[test]
    fn traffic_is_counted_from_a_point_on() {
        let appends = |steered| Appends { steered, ..Appends::default() };
        let earlier =
            Traffic { hits: 10, misses: 5, switch_packets: 3, home_packets: 1, appends: appends(2) };
        let later =
            Traffic { hits: 40, misses: 15, switch_packets: 13, home_packets: 1, appends: appends(9) };
        let run = later.since(&earlier);
        assert_eq!(
            run,
            Traffic { hits: 30, misses: 10, switch_packets: 10, home_packets: 0, appends: appends(7) }
        );
        assert_eq!((run.hit_rate(), Traffic::default().hit_rate()), (Some(0.75), None));
    }
}
