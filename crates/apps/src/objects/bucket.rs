//! A bucket's bytes: a head, and slots of one length.
//!
//! ```text
//!   tag 64 | the next one: its tag 40, its number + 1: 24, or 0 for none | which slots are in use 64 | slots
//!   slot    bytes of the key 16 | 16 zero | bytes of the value 32 | key | value | up to a multiple of 8
//! ```
//! One slot more than keys: so a value is changed beside what it was, and which of the two slots is in use changes with one word.
//!
//! What must always hold: a key is in one slot at most of those in use, and one slot at least is in use by none. A bucket that can be read
//! changes by slots that are not in use and by one word of its head, which is written last ([`rackmem::ByteObjects::FRONT`]). So a writer
//! that dies midway has changed nothing, or all. Whatever the bytes are, nothing here reads beyond them.

use super::ObjectStoreConfig;

/// Bytes in front of the slots.
const HEAD: usize = 24;
const _: () = assert!(HEAD == rackmem::ByteObjects::FRONT, "the head is what is written last");
const SLOT_HEAD: usize = 8;

/// Words of the head.
const TAG: usize = 0;
const NEXT: usize = 1;
const USED: usize = 2;

/// Bits of a tag in what says where a chain goes on.
const TAG_BITS: u32 = 40;
/// There are fewer further buckets than this.
pub(super) const MOST_NUMBERS: u64 = (1 << (u64::BITS - TAG_BITS)) - 1;
/// Slots for keys that a bucket may have: there is one more.
pub(super) const MOST_SLOTS: usize = 63;

/// How long everything is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
    /// Keys that there is capacity for.
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

impl Next {
    /// The tag that the `count`th bucket gets which is given out, from 0.
    pub(super) const fn tag_of(count: u64) -> u64 {
        (count + 1) & ((1 << TAG_BITS) - 1)
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"))
}

fn set_word(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn tag(bytes: &[u8]) -> u64 {
    word(bytes, TAG)
}

pub(super) fn set_tag(bytes: &mut [u8], tag: u64) {
    set_word(bytes, TAG, tag);
}

#[inline]
pub(super) fn next(bytes: &[u8]) -> Option<Next> {
    let next = word(bytes, NEXT);
    let number = (next >> TAG_BITS).checked_sub(1)?;
    Some(Next { number, tag: next & ((1 << TAG_BITS) - 1) })
}

pub(super) fn set_next(bytes: &mut [u8], next: Option<Next>) {
    set_word(bytes, NEXT, next.map_or(0, |next| (next.number + 1) << TAG_BITS | next.tag));
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
        HEAD + (self.slots + 1) * self.slot_bytes()
    }

    /// Which slots are in use, of those that there are.
    fn used(&self, bytes: &[u8]) -> u64 {
        word(bytes, USED) & (u64::MAX >> (MOST_SLOTS - self.slots))
    }

    fn slots<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
        let used = self.used(bytes);
        let all = bytes[HEAD..].chunks_exact(self.slot_bytes()).enumerate();
        all.filter(move |(at, _)| used >> at & 1 == 1)
    }

    /// The slot of a key.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8], key: &[u8]) -> Option<usize> {
        let len = (key.len() as u16).to_le_bytes();
        let is_it = |slot: &[u8]| slot[..2] == len && slot[SLOT_HEAD..SLOT_HEAD + key.len()] == *key;
        self.slots(bytes).find(|(_, slot)| is_it(slot)).map(|(at, _)| at)
    }

    /// The keys in it, with their values.
    pub(super) fn entries<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.slots(bytes).map(|(at, slot)| {
            let len = usize::from(u16::from_le_bytes([slot[0], slot[1]]));
            (&slot[SLOT_HEAD..][..len.min(self.key_bytes)], self.value(bytes, at))
        })
    }

    /// There is capacity for another key.
    pub(super) fn has_room(&self, bytes: &[u8]) -> bool {
        (self.used(bytes).count_ones() as usize) < self.slots
    }

    /// No key is in it.
    pub(super) fn is_empty(&self, bytes: &[u8]) -> bool {
        self.used(bytes) == 0
    }

    /// The value in a slot.
    #[inline]
    pub(super) fn value<'a>(&self, bytes: &'a [u8], slot: usize) -> &'a [u8] {
        let slot = &bytes[HEAD + slot * self.slot_bytes()..][..self.slot_bytes()];
        let len = u32::from_le_bytes(slot[4..8].try_into().expect("four bytes")) as usize;
        &slot[SLOT_HEAD + self.key_bytes..][..len.min(self.value_bytes)]
    }

    /// Puts a key and its value into a slot that is not in use, which is so from now on, in the place of the one that has the key.
    ///
    /// # Panics
    /// If it is not there, and there is no capacity for another one.
    pub(super) fn set(&self, bytes: &mut [u8], former: Option<usize>, key: &[u8], value: &[u8]) {
        let used = self.used(bytes);
        let free = used.trailing_ones() as usize;
        assert!(
            free <= self.slots && (former.is_some() || self.has_room(bytes)),
            "a slot is free: {used:#b}"
        );
        let slot = &mut bytes[HEAD + free * self.slot_bytes()..][..self.slot_bytes()];
        slot[..2].copy_from_slice(&(key.len() as u16).to_le_bytes());
        slot[4..8].copy_from_slice(&(value.len() as u32).to_le_bytes());
        slot[SLOT_HEAD..][..key.len()].copy_from_slice(key);
        slot[SLOT_HEAD + self.key_bytes..][..value.len()].copy_from_slice(value);
        let gone = former.map_or(0, |former| 1 << former);
        set_word(bytes, USED, used & !gone | 1 << free);
    }

    /// Empties a slot.
    pub(super) fn clear(&self, bytes: &mut [u8], slot: usize) {
        set_word(bytes, USED, self.used(bytes) & !(1 << slot));
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
        form.set(&mut bytes, None, b"abcd", b"");
        form.set(&mut bytes, None, b"abcde", b"hello world");
        assert!(form.has_room(&bytes));
        form.set(&mut bytes, None, b"", b"x");
        assert_eq!(form.find(&bytes, b"abcde"), Some(1));
        assert_eq!(form.find(&bytes, b"abcd"), Some(0));
        assert_eq!(form.find(&bytes, b""), Some(2), "the empty key is a key");
        assert_eq!(form.find(&bytes, b"abc"), None);
        assert_eq!(form.value(&bytes, 1), b"hello world");
        assert_eq!(form.value(&bytes, 0), b"");
        assert!(!form.has_room(&bytes));
        form.clear(&mut bytes, 1);
        assert_eq!((form.find(&bytes, b"abcde"), form.has_room(&bytes)), (None, true));
        let entries: Vec<_> = form.entries(&bytes).collect();
        assert_eq!(entries, [(&b"abcd"[..], &b""[..]), (b"", b"x")]);
    }

    #[test]
    fn a_change_of_a_bucket_that_was_begun_has_changed_nothing_and_its_head_changes_by_one_word() {
        let (form, mut bytes) = form();
        let mut dice = random::Random::new(3);
        let mut last = None;
        for round in 0..2000_u32 {
            let key = [b'a' + dice.below(4) as u8];
            let before = bytes.clone();
            match form.find(&bytes, &key) {
                Some(slot) if dice.below(3) == 0 => form.clear(&mut bytes, slot),
                former if former.is_some() || form.has_room(&bytes) => {
                    form.set(&mut bytes, former, &key, &round.to_le_bytes());
                }
                // There is another key.
                _ => set_next(&mut bytes, Some(Next { number: u64::from(round), tag: 7 })),
            }
            let heads = (0..3).filter(|at| word(&before, *at) != word(&bytes, *at)).count();
            assert!(heads <= 1, "{before:?} {bytes:?}");
            // All of it but the head, with the head of before.
            let begun = [&before[..HEAD], &bytes[HEAD..]].concat();
            assert!(form.entries(&begun).eq(form.entries(&before)), "{before:?} {bytes:?}");
            assert_eq!(next(&begun), next(&before));
            last = Some(form.entries(&bytes).count());
        }
        assert!(last.is_some());
    }

    #[test]
    fn where_a_chain_goes_on_is_kept_beside_the_slots() {
        let (form, mut bytes) = form();
        assert_eq!(next(&bytes), None);
        for at in [Next { number: 0, tag: 7 }, Next { number: MOST_NUMBERS - 1, tag: (1 << TAG_BITS) - 1 }] {
            set_next(&mut bytes, Some(at));
            set_tag(&mut bytes, 9);
            assert_eq!((next(&bytes), tag(&bytes)), (Some(at), 9));
            assert!(form.is_empty(&bytes));
        }
        assert_eq!(Next::tag_of((1 << TAG_BITS) - 2), (1 << TAG_BITS) - 1);
    }
}
