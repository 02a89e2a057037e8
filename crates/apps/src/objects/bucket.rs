//! A bucket's bytes: a head, and slots of one length.
//!
//! ```text
//!   tag 64 | the next one's tag 64 | the next one's number + 1: 64, 0 for none | slots
//!   slot    bytes of the key + 1: 16, 0 for none | 16 zero | bytes of the value 32 | key | value | up to a multiple of 8
//! ```
//! What must always hold: a key is in one slot at most. Whatever the bytes are, nothing here reads beyond them.

use super::ObjectStoreConfig;

/// Bytes in front of the slots.
const HEAD: usize = 24;
const SLOT_HEAD: usize = 8;

/// How long everything is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
    pub(super) slots: usize,
}

/// Where a chain goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Next {
    /// Which further bucket.
    pub(super) number: u64,
    /// What its tag must be.
    pub(super) tag: u64,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"))
}

fn set_word(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn tag(bytes: &[u8]) -> u64 {
    word(bytes, 0)
}

pub(super) fn set_tag(bytes: &mut [u8], tag: u64) {
    set_word(bytes, 0, tag);
}

#[inline]
pub(super) fn next(bytes: &[u8]) -> Option<Next> {
    let number = word(bytes, 2).checked_sub(1)?;
    Some(Next { number, tag: word(bytes, 1) })
}

pub(super) fn set_next(bytes: &mut [u8], next: Option<Next>) {
    set_word(bytes, 1, next.map_or(0, |next| next.tag));
    set_word(bytes, 2, next.map_or(0, |next| next.number + 1));
}

impl Form {
    pub(super) const fn of(config: &ObjectStoreConfig) -> Self {
        Self { key_bytes: config.key_bytes, value_bytes: config.value_bytes, slots: config.slots }
    }

    const fn slot_bytes(&self) -> usize {
        (SLOT_HEAD + self.key_bytes + self.value_bytes).next_multiple_of(8)
    }

    /// Bytes of a bucket.
    pub(super) const fn bytes(&self) -> usize {
        HEAD + self.slots * self.slot_bytes()
    }

    fn slots<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        bytes[HEAD..].chunks_exact(self.slot_bytes())
    }

    /// The slot of a key.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8], key: &[u8]) -> Option<usize> {
        let len = (key.len() as u16 + 1).to_le_bytes();
        self.slots(bytes).position(|slot| slot[..2] == len && slot[SLOT_HEAD..SLOT_HEAD + key.len()] == *key)
    }

    /// The keys in it, with their values.
    pub(super) fn entries<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        (0..self.slots).filter_map(|at| {
            let slot = &bytes[HEAD + at * self.slot_bytes()..];
            let len = usize::from(u16::from_le_bytes([slot[0], slot[1]])).checked_sub(1)?;
            Some((&slot[SLOT_HEAD..][..len.min(self.key_bytes)], self.value(bytes, at)))
        })
    }

    /// A slot that no key has.
    pub(super) fn free_slot(&self, bytes: &[u8]) -> Option<usize> {
        self.slots(bytes).position(|slot| slot[..2] == [0; 2])
    }

    /// No key is in it.
    pub(super) fn is_empty(&self, bytes: &[u8]) -> bool {
        self.slots(bytes).all(|slot| slot[..2] == [0; 2])
    }

    /// The value in a slot.
    #[inline]
    pub(super) fn value<'a>(&self, bytes: &'a [u8], slot: usize) -> &'a [u8] {
        let slot = &bytes[HEAD + slot * self.slot_bytes()..][..self.slot_bytes()];
        let len = u32::from_le_bytes(slot[4..8].try_into().expect("four bytes")) as usize;
        &slot[SLOT_HEAD + self.key_bytes..][..len.min(self.value_bytes)]
    }

    /// Puts a key and its value into a slot.
    pub(super) fn set(&self, bytes: &mut [u8], slot: usize, key: &[u8], value: &[u8]) {
        let slot = &mut bytes[HEAD + slot * self.slot_bytes()..][..self.slot_bytes()];
        slot[..2].copy_from_slice(&(key.len() as u16 + 1).to_le_bytes());
        slot[4..8].copy_from_slice(&(value.len() as u32).to_le_bytes());
        slot[SLOT_HEAD..][..key.len()].copy_from_slice(key);
        slot[SLOT_HEAD + self.key_bytes..][..value.len()].copy_from_slice(value);
    }

    /// Empties a slot.
    pub(super) fn clear(&self, bytes: &mut [u8], slot: usize) {
        bytes[HEAD + slot * self.slot_bytes()..][..2].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> (Form, Vec<u8>) {
        let form = Form::of(&ObjectStoreConfig {
            key_bytes: 5,
            value_bytes: 11,
            slots: 3,
            ..ObjectStoreConfig::default()
        });
        (form, vec![0; form.bytes()])
    }

    #[test]
    fn what_is_put_into_slots_is_found_there_and_nothing_else_is() {
        let (form, mut bytes) = form();
        form.set(&mut bytes, 1, b"abcde", b"hello world");
        form.set(&mut bytes, 0, b"abcd", b"");
        form.set(&mut bytes, 2, b"", b"x");
        assert_eq!(form.find(&bytes, b"abcde"), Some(1));
        assert_eq!(form.find(&bytes, b"abcd"), Some(0));
        assert_eq!(form.find(&bytes, b""), Some(2), "the empty key is a key");
        assert_eq!(form.find(&bytes, b"abc"), None);
        assert_eq!(form.value(&bytes, 1), b"hello world");
        assert_eq!(form.value(&bytes, 0), b"");
        assert_eq!(form.free_slot(&bytes), None);
        form.clear(&mut bytes, 1);
        assert_eq!((form.find(&bytes, b"abcde"), form.free_slot(&bytes)), (None, Some(1)));
    }

    #[test]
    fn where_a_chain_goes_on_is_kept_beside_the_slots() {
        let (form, mut bytes) = form();
        assert_eq!(next(&bytes), None);
        set_next(&mut bytes, Some(Next { number: 0, tag: 7 }));
        set_tag(&mut bytes, 9);
        assert_eq!((next(&bytes), tag(&bytes)), (Some(Next { number: 0, tag: 7 }), 9));
        assert!(form.is_empty(&bytes));
    }
}
