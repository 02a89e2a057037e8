//! The memory: heads of entries, in slots of one class; and what must be true of chains, looked at where it cannot be hidden.
//!
//! At the server. What must always hold: an append goes behind an entry of its own key, and an entry is appended once. What does not is
//! counted, and a run in which something is has no numbers. (Where a switch steers, an entry may be appended behind one that is in no chain
//! yet, or never comes into one: then it is in none, either, and its client must not be told that it is.)

use chain::Outcome;
use nic::verbs::{Memory, Refused, Regions, Slot as Kept};
use wire::chains::{Class, EntryHead, EntryKind, Location, Next, UNIT, Word};
use wire::roce::{Key, Verdict};

use super::event::Words;

/// The address of unit 0.
pub(super) const BASE: u64 = 1 << 40;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    words: Words,
    /// Which version of its key it is: from 1. 0: it is in no chain.
    position: u64,
    /// It is behind another entry.
    is_appended: bool,
}

/// The memory.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    class: Class,
    slots: Vec<Slot>,
    /// Appends, and compare-and-swaps that found another word.
    pub(super) appended: u64,
    pub(super) failed: u64,
    /// Appends to another key's chain, of another use of a slot, or of an entry that was appended already.
    pub(super) astray: u64,
}

impl Entries {
    pub(super) const fn new(class: Class) -> Self {
        Self { class, slots: Vec::new(), appended: 0, failed: 0, astray: 0 }
    }

    pub(super) const fn class(&self) -> Class {
        self.class
    }

    fn slot(&mut self, at: Location) -> &mut Slot {
        assert_eq!(at.class(), self.class, "all values are of one size");
        let index = ((at.unit() - 1) / self.class.units()) as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::default());
        }
        &mut self.slots[index]
    }

    /// The slot at an address of the region.
    pub(super) fn location(&self, address: u64) -> Location {
        let unit = u32::try_from((address - BASE) / UNIT).expect("an address of the region");
        Location::new(self.class, unit)
    }

    pub(super) const fn address(at: Location) -> u64 {
        BASE + at.offset()
    }

    pub(super) fn read(&mut self, at: Location) -> Words {
        self.slot(at).words
    }

    pub(super) fn write(&mut self, at: Location, words: Words) {
        *self.slot(at) = Slot { words, position: 0, is_appended: false };
    }

    /// Which version of its key an entry is; 0 if it is in no chain.
    pub(super) fn position(&mut self, at: Location) -> u64 {
        self.slot(at).position
    }

    /// The entry begins a chain.
    pub(super) fn begin(&mut self, at: Location) {
        self.slot(at).position = 1;
    }

    /// An entry has come into its chain, and with it what stands behind it.
    fn follow(&mut self, from: Location, position: u64) {
        let (mut at, mut position) = (from, position);
        loop {
            let it = self.slot(at);
            it.position = position;
            match Word::from_bits(it.words[0]).map(|word| word.next) {
                Some(Next::Entry(next, _)) => (at, position) = (next, position + 1),
                _ => return,
            }
        }
    }

    /// Writes the word of an entry, which must be that of a tail: whatever else stands there is lost.
    pub(super) fn put_word(&mut self, at: Location, word: u64) {
        let found = self.slot(at).words[0];
        let expected = Word::from_bits(word).map(|word| Word::tail(word.entry).to_bits());
        self.astray += u64::from(expected != Some(found));
        self.swap(at, found, word);
    }

    /// Swaps the word of an entry, and returns what it was.
    pub(super) fn swap(&mut self, at: Location, compare: u64, swap: u64) -> u64 {
        let front = *self.slot(at);
        let original = front.words[0];
        if original != compare {
            self.failed += 1;
            return original;
        }
        self.slot(at).words[0] = swap;
        self.appended += 1;
        let Some(Word { next: Next::Entry(next, version), .. }) = Word::from_bits(swap) else {
            return original;
        };
        let it = self.slot(next);
        let is_it = Word::from_bits(it.words[0]).is_some_and(|word| word.entry == version);
        let is_well = is_it && it.words[1] == front.words[1] && !it.is_appended && it.position == 0;
        it.is_appended = true;
        self.astray += u64::from(!is_well);
        if front.position > 0 && is_well {
            self.follow(next, front.position + 1);
        }
        original
    }
}

/// What stands at the beginning of an entry of this head, whose value begins with its key.
pub(super) fn words(head: &EntryHead) -> Words {
    let [word, key, rest] = head.to_words();
    [word, key, rest, if head.kind == EntryKind::Value { head.key } else { 0 }]
}

/// What a client makes of it.
pub(super) const fn outcome([word, key, rest, _]: Words) -> Outcome {
    Outcome::Read(EntryHead::from_words([word, key, rest]))
}

/// The words as the NIC of the server sees them.
impl Memory for Entries {
    fn read_word(&mut self, _: Key, address: u64) -> u64 {
        let at = self.location(address);
        self.read(at)[0]
    }

    fn compare_swap(&mut self, _: Key, address: u64, compare: u64, swap: u64) -> u64 {
        let at = self.location(address);
        self.swap(at, compare, swap)
    }

    fn fetch_add(&mut self, key: Key, address: u64, add: u64) -> u64 {
        let (at, original) = (self.location(address), self.read_word(key, address));
        self.slot(at).words[0] = original.wrapping_add(add);
        original
    }

    fn atomics(&mut self, _: &Regions, _: Kept) -> Result<u32, Refused> {
        Err(Refused::Invalid)
    }

    fn snapshot(&mut self, _: Key, _: u64, _: u32, _: Kept) -> Result<Verdict, Refused> {
        Err(Refused::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::chains::EntryVersion;

    const CLASS: Class = Class::new(4).unwrap();

    fn memory() -> (Entries, [Location; 4]) {
        let mut entries = Entries::new(CLASS);
        let places = [0, 1, 2, 3].map(|slot| Location::new(CLASS, 1 + slot * CLASS.units()));
        for (at, key) in places.into_iter().zip([7, 7, 7, 8]) {
            let word = Word::tail(EntryVersion(5));
            let head = EntryHead { word, key, at, len: 1000, kind: EntryKind::Value };
            entries.write(at, words(&head));
        }
        entries.begin(places[0]);
        (entries, places)
    }

    fn append(entries: &mut Entries, to: Location, at: Location, version: u8) -> bool {
        let expected = Word::tail(EntryVersion(5));
        let new = expected.followed_by(Next::Entry(at, EntryVersion(version)));
        entries.swap(to, expected.to_bits(), new.to_bits()) == expected.to_bits()
    }

    #[test]
    fn appends_are_counted_and_have_positions() {
        let (mut entries, [a, b, c, _]) = memory();
        assert!(append(&mut entries, a, b, 5) && append(&mut entries, b, c, 5));
        assert!(!append(&mut entries, a, c, 5), "it is no tail");
        assert_eq!([a, b, c].map(|at| entries.position(at)), [1, 2, 3]);
        assert_eq!((entries.appended, entries.failed, entries.astray), (2, 1, 0));
    }

    #[test]
    fn what_stands_behind_an_entry_comes_into_the_chain_with_it() {
        let (mut entries, [a, b, c, _]) = memory();
        assert!(append(&mut entries, b, c, 5));
        assert_eq!([b, c].map(|at| entries.position(at)), [0, 0], "in no chain");
        assert!(append(&mut entries, a, b, 5));
        assert_eq!([b, c].map(|at| entries.position(at)), [2, 3]);
        assert_eq!(entries.astray, 0);
    }

    #[test]
    fn an_append_to_another_chain_or_of_another_use_or_of_what_is_in_a_chain_is_astray() {
        for (at, version) in [(3, 5), (1, 6), (0, 5)] {
            let (mut entries, places) = memory();
            assert!(append(&mut entries, places[0], places[at], version));
            assert_eq!(entries.astray, 1, "{at} {version}");
        }
    }
}
