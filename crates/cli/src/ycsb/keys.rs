//! Key names, and which records are there while a run inserts more.

use std::collections::BTreeSet;
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
pub struct KeyNames {
    /// `insertorder=ordered`: the number itself instead of its hash.
    pub ordered: bool,
    /// `zeropadding`: digits that a number is filled up to.
    pub digits: usize,
}

impl KeyNames {
    /// Replaces `key` by the name of a record, `user` and a number.
    pub fn write(&self, record: u64, key: &mut Vec<u8>) {
        let number = if self.ordered { record } else { fnv_hash(record) };
        // By hand: a name is drawn for every operation, and the standard library's formatting takes as long as a read.
        let text = decimal(number);
        let shortest = text.iter().position(|digit| *digit != b'0').unwrap_or(MOST_DIGITS - 1);
        key.clear();
        key.extend_from_slice(b"user");
        // Zeroes that are not in `text` already.
        if self.digits > MOST_DIGITS {
            key.resize(key.len() + self.digits - MOST_DIGITS, b'0');
        }
        key.extend_from_slice(&text[shortest.min(MOST_DIGITS - self.digits.min(MOST_DIGITS))..]);
    }
}

/// Digits of the largest number.
const MOST_DIGITS: usize = 24;

/// A number with all digits that there may be, zeroes in front.
fn decimal(number: u64) -> [u8; MOST_DIGITS] {
    const PART: u64 = 100_000_000;
    let parts = [number / PART / PART, number / PART % PART, number % PART];
    let mut text = [0; MOST_DIGITS];
    for (eight, part) in text.as_chunks_mut::<8>().0.iter_mut().zip(parts) {
        *eight = eight_digits(part);
    }
    text
}

/// The digits of a number below 10^8: split into halves again and again, both at once.
fn eight_digits(number: u64) -> [u8; 8] {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    // 10486 / 2^20 is near enough to 1 / 100 for numbers below 10,000, and 103 / 2^10 to 1 / 10 for those below 100.
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | (twos - tens * 10) << 8;
    (ones | 0x3030_3030_3030_3030).to_le_bytes()
}

/// Numbers new records, and knows up to where all of them are there: a record counts once its insert and every
/// insert before it have returned (YCSB's `AcknowledgedCounterGenerator`), so that no client asks for a record
/// that another one is still inserting.
///
/// Where clients are in several processes, the new records go round: each process numbers one, then the next process. It is told now and
/// then how many the others have inserted.
#[derive(Debug)]
pub(crate) struct InsertSequence {
    loaded: u64,
    part: u64,
    parts: u64,
    /// How many of this part were begun, and how many are there, one after the other.
    begun: AtomicU64,
    done: AtomicU64,
    /// How many of each other part are there, at least.
    of_others: AtomicU64,
    /// Inserted, but after one that is not yet.
    ahead: Mutex<BTreeSet<u64>>,
}

impl InsertSequence {
    /// After `records` records, numbered from 0, were loaded.
    pub(crate) fn after(records: u64) -> Self {
        Self { of_others: AtomicU64::new(u64::MAX), ..Self::of_part(records, (0, 1)) }
    }

    /// The same for one of so many processes.
    pub(crate) fn of_part(records: u64, (part, parts): (u64, u64)) -> Self {
        assert!(records > 0, "requests need a record to ask for");
        let [begun, done, of_others] = [0; 3].map(AtomicU64::new);
        Self { loaded: records, part, parts, begun, done, of_others, ahead: Mutex::default() }
    }

    /// The number of a new record.
    pub(crate) fn begin(&self) -> u64 {
        self.loaded + self.begun.fetch_add(1, Ordering::Relaxed) * self.parts + self.part
    }

    /// The insert of `record` has returned.
    pub(crate) fn acknowledge(&self, record: u64) {
        let mut ahead = self.ahead.lock().expect("nothing panics while it holds this lock");
        ahead.insert((record - self.loaded) / self.parts);
        let mut done = self.done.load(Ordering::Relaxed);
        while ahead.remove(&done) {
            done += 1;
        }
        // Release: whoever sees the number also sees whatever the insert did in this process.
        self.done.store(done, Ordering::Release);
    }

    /// The last record up to which all are there.
    pub(crate) fn last(&self) -> u64 {
        let of_each = self.done().min(self.of_others.load(Ordering::Acquire));
        self.loaded - 1 + of_each * self.parts
    }

    /// How many of this part are there.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// Of each other part so many are there, and all threads of the rack find them.
    pub(crate) fn others_have(&self, records: u64) {
        self.of_others.fetch_max(records, Ordering::Release);
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
    fn a_name_is_what_the_standard_library_formats_for_any_number_and_padding() {
        let mut key = Vec::new();
        let around_powers = (0..20).flat_map(|power| {
            let number = 10_u64.pow(power);
            [number - 1, number, number + 1, 7 * (number / 10)]
        });
        let drawn = (0..1000).map(|at: u64| fnv_hash(at) >> (at % 64));
        for number in around_powers.chain(drawn).chain(0..10_000).chain([u64::MAX, u64::MAX - 1]) {
            for digits in [0, 1, 2, 6, 19, 20, 21, 24, 25, 33] {
                KeyNames { ordered: true, digits }.write(number, &mut key);
                assert_eq!(String::from_utf8_lossy(&key), format!("user{number:0digits$}"));
            }
        }
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

    #[test]
    fn of_several_processes_none_asks_for_what_another_one_has_not_inserted() {
        let [first, second] = [0, 1].map(|part| InsertSequence::of_part(10, (part, 2)));
        assert_eq!([first.begin(), second.begin(), first.begin(), second.begin()], [10, 11, 12, 13]);
        first.acknowledge(12);
        first.acknowledge(10);
        assert_eq!((first.done(), first.last(), second.last()), (2, 9, 9));
        second.acknowledge(11);
        second.others_have(first.done());
        first.others_have(second.done());
        assert_eq!((first.last(), second.last()), (11, 11));
        first.others_have(0);
        assert_eq!(first.last(), 11, "what is there stays there");
    }
}
