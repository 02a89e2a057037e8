//! Key names, and which records are there while a run inserts more.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// YCSB's hash of a record number: FNV-1a over its eight bytes, then the absolute value of the signed result.
pub(crate) fn fnv_hash(number: u64) -> u64 {
    fnv_1a(&number.to_le_bytes()).cast_signed().unsigned_abs()
}

/// FNV-1a with 64 bits.
pub(crate) fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// How record numbers become keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct KeyNames {
    /// `insertorder=ordered`: the number itself instead of its hash.
    pub(crate) ordered: bool,
    /// `zeropadding`: digits that a number is filled up to.
    pub(crate) digits: usize,
}

impl KeyNames {
    /// Replaces `key` by the name of a record, `user` and a number.
    pub(crate) fn write(&self, record: u64, key: &mut Vec<u8>) {
        let number = if self.ordered { record } else { fnv_hash(record) };
        key.clear();
        let written = if self.digits <= 1 {
            write!(key, "user{number}")
        } else {
            write!(key, "user{number:0digits$}", digits = self.digits)
        };
        written.expect("writing to memory cannot fail");
    }
}

/// Numbers new records, and knows up to where all of them are there: a record counts once its insert and every
/// insert before it have returned (YCSB's `AcknowledgedCounterGenerator`), so that no client asks for a record
/// that another one is still inserting.
#[derive(Debug)]
pub(crate) struct InsertSequence {
    next: AtomicU64,
    last: AtomicU64,
    /// Inserted, but after one that is not yet.
    ahead: Mutex<BTreeSet<u64>>,
}

impl InsertSequence {
    /// After `records` records, numbered from 0, were loaded.
    pub(crate) fn after(records: u64) -> Self {
        assert!(records > 0, "requests need a record to ask for");
        Self { next: AtomicU64::new(records), last: AtomicU64::new(records - 1), ahead: Mutex::default() }
    }

    /// The number of a new record.
    pub(crate) fn begin(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The insert of `record` has returned.
    pub(crate) fn acknowledge(&self, record: u64) {
        let mut ahead = self.ahead.lock().expect("nothing panics while it holds this lock");
        ahead.insert(record);
        let mut last = self.last.load(Ordering::Relaxed);
        while ahead.remove(&(last + 1)) {
            last += 1;
        }
        // Release: whoever sees the number also sees whatever the insert did in this process.
        self.last.store(last, Ordering::Release);
    }

    /// The last record up to which all are there.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_that_ycsb_computes() {
        // Published FNV-1a vectors, and YCSB's name for its first records.
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        let mut key = Vec::new();
        let names = KeyNames { ordered: false, digits: 1 };
        for (record, name) in [(0, "user6284781860667377211"), (1, "user8517097267634966620")] {
            names.write(record, &mut key);
            assert_eq!(key, name.as_bytes());
        }
    }

    #[test]
    fn ordered_keys_are_plain_numbers_padded_on_request() {
        let mut key = Vec::new();
        KeyNames { ordered: true, digits: 1 }.write(42, &mut key);
        assert_eq!(key, b"user42");
        KeyNames { ordered: true, digits: 6 }.write(42, &mut key);
        assert_eq!(key, b"user000042");
    }

    #[test]
    fn a_record_is_there_only_when_all_before_it_are() {
        let sequence = InsertSequence::after(10);
        assert_eq!((sequence.begin(), sequence.begin(), sequence.begin(), sequence.last()), (10, 11, 12, 9));
        sequence.acknowledge(11);
        assert_eq!(sequence.last(), 9);
        sequence.acknowledge(10);
        assert_eq!(sequence.last(), 11);
        sequence.acknowledge(12);
        assert_eq!(sequence.last(), 12);
    }
}
