//! Where what is. Sizes and offsets are in words of 8 bytes.
//!
//! ```text
//! page 0    [`MAGIC`], slots, bytes of a key, bytes of a value, salt; [`NEXT`]: slots that were given out
//! pages     the index: entries of one word, two for each slot; 0, or a slot's first line and a hash's low half
//! pages     slots: version, lengths, key, value, the last two padded to whole words
//! ```
//! A slot begins at a cache line, and lies in one page if it fits.

use super::MappedStoreConfig;

/// Word 0 of a store that is complete.
pub(super) const MAGIC: u64 = 0x6b76_6d61_7070_6564;
/// The word that counts the slots that were given out, in a line of its own.
pub(super) const NEXT: usize = 8;

const PAGE: u64 = 512;
const LINE: u64 = 8;
/// Slots are given out by so many pages, so that nodes that add keys do not fight for pages.
const PAGES_AT_ONCE: u64 = 4;

/// The sizes of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) slots: u64,
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
    /// Of the hash.
    pub(super) salt: u64,
}

impl Layout {
    /// Room for all keys, also if each of so many nodes keeps slots that it does not use.
    pub(super) fn of(config: &MappedStoreConfig, nodes: usize) -> Self {
        let MappedStoreConfig { expected_keys, key_bytes, value_bytes, salt } = *config;
        let of_one = Self { slots: 1, key_bytes, value_bytes, salt };
        let (at_once, most) = (of_one.at_once(), u64::MAX >> 8);
        let slots = expected_keys.min(most).next_multiple_of(at_once) + nodes as u64 * at_once;
        Self { slots, ..of_one }
    }

    /// The first word of a slot's value.
    pub(super) const fn value(&self) -> usize {
        2 + self.key_bytes.div_ceil(8)
    }

    pub(super) const fn slot_words(&self) -> u64 {
        ((self.value() + self.value_bytes.div_ceil(8)) as u64).next_multiple_of(LINE)
    }

    fn per_page(&self) -> u64 {
        (PAGE / self.slot_words()).max(1)
    }

    /// Slots that are given out at once.
    pub(super) fn at_once(&self) -> u64 {
        self.per_page() * PAGES_AT_ONCE
    }

    /// Where the index begins.
    pub(super) const fn index() -> usize {
        PAGE as usize
    }

    /// Entries of the index: half of them are free when all slots are taken.
    pub(super) const fn entries(&self) -> u64 {
        self.slots.saturating_mul(2)
    }

    const fn first_slot(&self) -> u64 {
        self.entries().saturating_add(PAGE - 1) / PAGE * PAGE + PAGE
    }

    /// The line at which a slot begins.
    pub(super) fn line(&self, slot: u64) -> u64 {
        let (pages, stride) = (self.slot_words().div_ceil(PAGE), PAGE / self.per_page() / LINE);
        self.first_slot() / LINE
            + slot / self.per_page() * pages * (PAGE / LINE)
            + slot % self.per_page() * stride
    }

    /// The first word of a line.
    pub(super) const fn word(line: u64) -> usize {
        (line * LINE) as usize
    }

    /// All of it.
    pub(super) fn bytes(&self) -> u64 {
        let pages = (self.slots / self.per_page()).saturating_mul(self.slot_words().div_ceil(PAGE));
        pages.saturating_mul(PAGE).saturating_add(self.first_slot()).saturating_mul(8)
    }
}
