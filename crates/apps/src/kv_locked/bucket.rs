//! A bucket's bytes: the records in them, one after the other.
//!
//! ```text
//! 0..8    bytes that records take
//! 8..16   address of the bucket that goes on where this one is full, or 0
//! 16..    records: length of the key, length of the value (4 bytes each), key, value; each padded to whole words
//! ```
//!
//! What must always hold: records fill the bytes that word 0 says, without gaps; no key is there twice.

use rackmem::GlobalAddr;

/// Bytes before the first record.
pub(super) const HEAD: usize = 16;
/// Bytes of a record before its key.
const LENGTHS: usize = 8;

/// Where a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Location {
    start: usize,
    value: usize,
    value_len: usize,
    end: usize,
}

impl Location {
    /// Bytes that the record takes.
    pub(super) const fn bytes(self) -> usize {
        self.end - self.start
    }
}

/// Bytes that a record takes.
pub(super) fn record_bytes(key: usize, value: usize) -> usize {
    (LENGTHS + key + value).next_multiple_of(8)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a word has 8 bytes"))
}

fn length(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a length has 4 bytes")) as usize
}

/// An empty bucket.
pub(super) fn clear(bytes: &mut [u8]) {
    bytes[..HEAD].fill(0);
}

fn used(bytes: &[u8]) -> usize {
    word(bytes, 0) as usize
}

fn set_used(bytes: &mut [u8], used: usize) {
    bytes[..8].copy_from_slice(&(used as u64).to_le_bytes());
}

/// Where the bucket goes on.
pub(super) fn next(bytes: &[u8]) -> Option<GlobalAddr> {
    Some(word(bytes, 8)).filter(|next| *next != 0).map(GlobalAddr::from_bits)
}

/// It goes on there.
pub(super) fn set_next(bytes: &mut [u8], next: GlobalAddr) {
    bytes[8..16].copy_from_slice(&next.bits().to_le_bytes());
}

/// The record of a key.
#[inline]
pub(super) fn find(bytes: &[u8], key: &[u8]) -> Option<Location> {
    let (mut start, until) = (HEAD, HEAD + used(bytes));
    while start < until {
        let (key_len, value_len) = (length(bytes, start), length(bytes, start + 4));
        let end = start + record_bytes(key_len, value_len);
        let value = start + LENGTHS + key_len;
        if key_len == key.len() && bytes[start + LENGTHS..value] == *key {
            return Some(Location { start, value, value_len, end });
        }
        start = end;
    }
    None
}

/// The value of a record.
#[inline]
pub(super) fn value(bytes: &[u8], location: Location) -> &[u8] {
    &bytes[location.value..location.value + location.value_len]
}

/// The same, to be changed.
pub(super) fn value_mut(bytes: &mut [u8], location: Location) -> &mut [u8] {
    &mut bytes[location.value..location.value + location.value_len]
}

/// Takes a record out.
pub(super) fn remove(bytes: &mut [u8], location: Location) {
    let until = HEAD + used(bytes);
    bytes.copy_within(location.end..until, location.start);
    set_used(bytes, used(bytes) - (location.end - location.start));
}

/// Bytes that are free.
pub(super) fn room(bytes: &[u8]) -> usize {
    bytes.len() - HEAD - used(bytes)
}

/// Adds a record. There has to be capacity.
pub(super) fn add(bytes: &mut [u8], key: &[u8], value: &[u8]) {
    let start = HEAD + used(bytes);
    let len = |len: usize| u32::try_from(len).expect("a bucket is not that large").to_le_bytes();
    let at_value = start + LENGTHS + key.len();
    bytes[start..start + 4].copy_from_slice(&len(key.len()));
    bytes[start + 4..start + LENGTHS].copy_from_slice(&len(value.len()));
    bytes[start + LENGTHS..at_value].copy_from_slice(key);
    bytes[at_value..at_value + value.len()].copy_from_slice(value);
    set_used(bytes, used(bytes) + record_bytes(key.len(), value.len()));
}

/// The keys and values of all records.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let (mut start, until) = (HEAD, HEAD + used(bytes));
    std::iter::from_fn(move || {
        (start < until).then(|| {
            let (key_len, value_len) = (length(bytes, start), length(bytes, start + 4));
            let record = &bytes[start + LENGTHS..][..key_len + value_len];
            start += record_bytes(key_len, value_len);
            record.split_at(key_len)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_found_until_it_is_taken_out() {
        let mut bytes = vec![0xff; 256];
        clear(&mut bytes);
        assert_eq!((room(&bytes), next(&bytes), find(&bytes, b"a")), (240, None, None));
        for (key, value) in [(&b"a"[..], &b"first"[..]), (b"", b"no name"), (b"ab", b"")] {
            add(&mut bytes, key, value);
        }
        let of = |bytes: &[u8], key: &[u8]| find(bytes, key).map(|location| value(bytes, location).to_vec());
        assert_eq!(of(&bytes, b""), Some(b"no name".to_vec()));
        assert_eq!(of(&bytes, b"ab"), Some(Vec::new()));
        let middle = find(&bytes, b"").unwrap();
        remove(&mut bytes, middle);
        assert_eq!((of(&bytes, b""), of(&bytes, b"a")), (None, Some(b"first".to_vec())));
        assert_eq!(of(&bytes, b"ab"), Some(Vec::new()));
        assert!(records(&bytes).eq([(&b"a"[..], &b"first"[..]), (b"ab", b"")]));
        let first = find(&bytes, b"a").unwrap();
        value_mut(&mut bytes, first).copy_from_slice(b"FIRST");
        assert_eq!(of(&bytes, b"a"), Some(b"FIRST".to_vec()));
        assert_eq!(room(&bytes), 240 - record_bytes(1, 5) - record_bytes(2, 0));
        set_next(&mut bytes, GlobalAddr::from_bits(4096));
        assert_eq!((next(&bytes), records(&bytes).count()), (Some(GlobalAddr::from_bits(4096)), 2));
    }
}
