//! Where what is. Sizes and offsets are in words of 8 bytes.
//!
//! ```text
//! page 0    magic, slots, bytes of a key, bytes of a value, salt
//! pages     the index: 16 bits of each slot, four to a word: 0, or a tag of its key's hash
//! pages     slots: version, lengths, key, value, the last two padded to whole words
//! ```
//! A slot begins at a cache line, and lies in one page if it fits.

use super::MappedStoreConfig;

/// Word 0 of a store that is complete.
pub(super) const MAGIC: u64 = 0x6b76_6d61_7070_6564;

const PAGE: u64 = 512;
const LINE: u64 = 8;
/// Slots of a word of the index.
pub(super) const GROUP: u64 = 4;

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
    /// Seven of eight slots are for the keys: the index has few lines, which stay in the processor's caches, and a
    /// search ends soon.
    pub(super) fn of(config: &MappedStoreConfig) -> Self {
        let MappedStoreConfig { expected_keys, key_bytes, value_bytes, salt } = *config;
        let slots = (expected_keys.min(u64::MAX >> 8) * 8).div_ceil(7).next_multiple_of(GROUP).max(GROUP);
        Self { slots, key_bytes, value_bytes, salt }
    }

    /// Where the index begins.
    pub(super) const fn index() -> usize {
        PAGE as usize
    }

    /// Its words.
    pub(super) const fn groups(&self) -> u64 {
        self.slots / GROUP
    }

    /// The first word of a slot's value.
    pub(super) const fn value(&self) -> usize {
        2 + self.key_bytes.div_ceil(8)
    }

    pub(super) const fn slot_words(&self) -> u64 {
        ((self.value() + self.value_bytes.div_ceil(8)) as u64).next_multiple_of(LINE)
    }

    const fn per_page(&self) -> u64 {
        let fit = PAGE / self.slot_words();
        if fit == 0 { 1 } else { fit }
    }

    const fn first_slot(&self) -> u64 {
        PAGE + self.groups().next_multiple_of(PAGE)
    }

    /// How slots are placed.
    pub(super) const fn places(&self) -> Places {
        let (per_page, pages) = (self.per_page(), self.slot_words().div_ceil(PAGE));
        Places {
            first: self.first_slot(),
            per_page,
            stride: PAGE / per_page / LINE * LINE,
            skip: pages * PAGE,
        }
    }

    /// All of it.
    pub(super) const fn bytes(&self) -> u64 {
        let places = self.places();
        let slots = self.slots.div_ceil(places.per_page).saturating_mul(places.skip);
        slots.saturating_add(self.first_slot()).saturating_mul(8)
    }
}

/// How slots are placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Places {
    first: u64,
    per_page: u64,
    stride: u64,
    skip: u64,
}

impl Places {
    /// The first word of a slot.
    #[inline]
    pub(super) const fn of(&self, slot: u64) -> usize {
        (self.first + slot / self.per_page * self.skip + slot % self.per_page * self.stride) as usize
    }
}
