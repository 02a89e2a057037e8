//! Records: one key and its value, in memory of their own.
//!
//! ```text
//! byte 0   seal       who this is: a mix of the store, the address, and the record's id
//! byte 8   header     state (2 bits) | room / 16 (17 bits) | key bytes (11 bits) | value bytes (32 bits)
//! byte 16  key, padded with zeroes to whole words; in a forwarded record: id and address of its successor
//!          value
//! ```
//!
//! What must always hold:
//! - Nothing is believed of a record before its seal was compared with the one that the bucket's entry implies,
//!   in the same atomic look. For one store and address, different ids have different seals (the mix is a
//!   bijection of the id), so one incarnation of a record is never taken for another. Bytes that were never
//!   a record's header have the right seal with probability 2^-64.
//! - Header and key lie in one block. A record that fits into a block as a whole is *small* and is changed in
//!   place; a larger one never changes between its publication and its death.
//! - Live becomes dead or forwarded, once, and nothing ever becomes live again: memory that is reused is
//!   zeroed first, and zero is no state that a record can have.

use rackmem::{BlockSize, GlobalAddr, Window};
use random::mix;

use super::bucket::Entry;
use super::hash::last_word;

/// Bytes before the key.
pub(super) const HEADER: usize = 16;
/// The least that a record occupies: a forwarded one holds its successor behind the header.
const LEAST_ROOM: usize = 32;
/// The longest key in any store.
pub(super) const LONGEST_KEY: usize = 1024;
/// The longest value in any store.
pub(super) const LONGEST_VALUE: usize = 1 << 30;

const STATE: u32 = 62;
const ROOM: u32 = 43;
const KEY: u32 = 32;

const LIVE: u64 = 1;
const DEAD: u64 = 2;
const FORWARDED: u64 = 3;

/// What a record's first word must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seal(u64);

impl Seal {
    /// The seal of the record that `entry` points to. `key` is the store's.
    #[inline]
    pub(super) fn of(entry: Entry, key: u64) -> Self {
        Self(mix(entry.id.0 ^ mix(entry.addr.bits() ^ key)))
    }
}

/// How a record's memory is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Bytes in the key.
    pub(super) key: usize,
    /// Bytes in the value.
    pub(super) value: usize,
    /// Bytes that a small record may grow to; 0 for one that is larger than a block.
    pub(super) room: usize,
}

impl Shape {
    /// The shape of a new record.
    pub(super) fn new(key: usize, value: usize, block: BlockSize) -> Self {
        let shape = Self { key, value, room: 0 };
        let len = shape.len();
        // Allocators round sizes up, to four steps a doubling: ask for all of it, as room to grow in place.
        let step = (len.next_power_of_two() / 8).max(16);
        let room = len.next_multiple_of(step).max(LEAST_ROOM).min(block.len());
        Self { room: if len <= block.len() { room } else { 0 }, ..shape }
    }

    /// Where the value starts.
    #[inline]
    pub(super) fn value_at(&self) -> usize {
        HEADER + self.key.next_multiple_of(8)
    }

    /// Bytes in use.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.value_at() + self.value
    }

    /// Bytes to allocate.
    pub(super) fn allocation(&self) -> u64 {
        self.len().max(self.room) as u64
    }

    /// True if the record lies in one block and is changed in place.
    #[inline]
    pub(super) fn is_small(&self) -> bool {
        self.room != 0
    }

    /// True if a value of so many bytes may be written in place of this one: there is space for it, and not so
    /// much more space that memory would be wasted.
    #[inline]
    pub(super) fn takes(&self, value: usize) -> bool {
        let len = self.value_at() + value;
        len <= self.room && self.room <= 2 * len + 64
    }

    #[inline]
    fn to_word(self, state: u64) -> u64 {
        state << STATE | (self.room as u64 / 16) << ROOM | (self.key as u64) << KEY | self.value as u64
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Self {
            key: (word >> KEY & 0x7ff) as usize,
            value: (word & 0xffff_ffff) as usize,
            room: (word >> ROOM & 0x1_ffff) as usize * 16,
        }
    }

    /// The first bytes of a live record.
    pub(super) fn live_header(self, seal: Seal) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&seal.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.to_word(LIVE).to_le_bytes());
        bytes
    }

    /// Compares the record's key.
    #[inline]
    fn key_is(&self, record: &Window<'_>, key: &[u8]) -> bool {
        let (words, tail) = key.as_chunks::<8>();
        let padded = HEADER + words.len() * 8;
        // The last word is padded with zeroes in the record too.
        self.key == key.len()
            && words_are(record, HEADER, words)
            && (tail.is_empty() || record.word(padded) == last_word(key))
    }

    /// Compares a live small record's value.
    pub(super) fn value_is(&self, record: &Window<'_>, value: &[u8]) -> bool {
        let (words, tail) = value.as_chunks::<8>();
        let mut last = [0; 8];
        let last = &mut last[..tail.len()];
        if self.value != value.len() || !words_are(record, self.value_at(), words) {
            return false;
        }
        record.read(self.value_at() + words.len() * 8, last);
        last == tail
    }
}

/// Compares words in place.
#[inline]
fn words_are(record: &Window<'_>, at: usize, words: &[[u8; 8]]) -> bool {
    words.iter().enumerate().all(|(index, word)| record.word(at + index * 8) == u64::from_le_bytes(*word))
}

/// What a look at a record's header and key found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Examined {
    /// The record of this key, in use.
    Live(Shape),
    /// The record of this key, deleted.
    Dead,
    /// Whatever key it has is now in this record.
    Forwarded(Entry),
    /// A record of another key with the same tag.
    OtherKey,
    /// Not the record that was expected here: its memory was freed, and perhaps reused.
    Stale,
    /// More of the block has to be looked at. Not if all the rest of it was.
    Longer,
}

/// Looks at the record in `record`, which must be the rest of its block.
///
/// Bytes that are just being changed give any result, but no panic; a live small record, and the header and
/// key of a large one, lie inside the window.
#[inline]
pub(super) fn examine(record: &Window<'_>, seal: Seal, key: &[u8]) -> Examined {
    examine_part(record, record.len(), seal, key)
}

/// The same for the first bytes of the `rest` of its block, at least [`LEAST_ROOM`] of them. What is found in place lies
/// inside the window.
#[inline]
pub(super) fn examine_part(record: &Window<'_>, rest: usize, seal: Seal, key: &[u8]) -> Examined {
    if record.word(0) != seal.0 {
        return Examined::Stale;
    }
    let word = record.word(8);
    let shape = Shape::from_word(word);
    let state = word >> STATE;
    if state == FORWARDED {
        return match Entry::from_words(record.word(HEADER), record.word(HEADER + 8)) {
            Some(successor) => Examined::Forwarded(successor),
            None => Examined::Stale,
        };
    }
    let inside = if shape.is_small() {
        shape.len() <= shape.room && shape.room <= rest
    } else {
        shape.value_at() <= rest
    };
    if !inside {
        return Examined::Stale;
    }
    let needed = if shape.is_small() { shape.len() } else { shape.value_at() };
    if needed > record.len() {
        return Examined::Longer;
    }
    if !shape.key_is(record, key) {
        return Examined::OtherKey;
    }
    match state {
        LIVE => Examined::Live(shape),
        DEAD => Examined::Dead,
        _ => Examined::Stale,
    }
}

/// Whose record it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Named {
    /// This key's, which is there.
    Live(Vec<u8>),
    /// Of a key that was deleted.
    Dead,
    /// Of the key that this one is of.
    Forwarded(Entry),
    /// Not the record that was expected here.
    Stale,
}

/// Looks whose record is in `record`, which must be the rest of its block.
pub(super) fn named(record: &Window<'_>, seal: Seal) -> Named {
    let word = record.word(8);
    let (shape, state) = (Shape::from_word(word), word >> STATE);
    if record.word(0) != seal.0 || HEADER + shape.key > record.len() {
        return Named::Stale;
    }
    match state {
        LIVE => {
            let mut key = vec![0; shape.key];
            record.read(HEADER, &mut key);
            Named::Live(key)
        }
        DEAD => Named::Dead,
        FORWARDED => Entry::from_words(record.word(HEADER), record.word(HEADER + 8))
            .map_or(Named::Stale, Named::Forwarded),
        _ => Named::Stale,
    }
}

/// Writes a live small record's new value, which it [takes](Shape::takes).
#[inline]
pub(super) fn set_value(record: &Window<'_>, shape: Shape, value: &[u8]) {
    if shape.value != value.len() {
        record.set_word(8, Shape { value: value.len(), ..shape }.to_word(LIVE));
    }
    record.write(shape.value_at(), value);
}

/// Ends a live record. Its key stays, so that whoever still looks knows which key is gone.
pub(super) fn kill(record: &Window<'_>, shape: Shape) {
    record.set_word(8, shape.to_word(DEAD));
}

/// Ends a live record in favour of its successor.
pub(super) fn forward(record: &Window<'_>, successor: Entry) {
    record.set_word(8, FORWARDED << STATE);
    record.set_word(HEADER, successor.id.0);
    record.set_word(HEADER + 8, successor.addr.bits());
}

/// How much of its block is looked at for a record first, by a reader with a buffer for a value of so many bytes.
#[inline]
pub(super) fn first_look(key: &[u8], value: usize) -> usize {
    const LEAST: usize = 192;
    (HEADER + key.len().next_multiple_of(8) + value.next_multiple_of(8)).max(LEAST)
}

/// Bytes from `addr` to the end of its block.
#[inline]
pub(super) fn rest_of_block(addr: GlobalAddr, block: BlockSize) -> usize {
    block.len() - block.offset_in_block(addr)
}
