//! Chains: versions of a value in memory without a processor, each with the place of the next one in its first word.
//!
//! In the memory that a NIC gives to others; written and read by clients, by a metadata server and, in flight, by a switch that
//! steers. What must always hold: eight bytes are always a chain word, and a word of zero bits but for the entry's version is
//! that of a tail.
//!
//! ```text
//!  word    0 4 | next 32 | 0 1 | next's version 8 | entry's version 8 | transaction 10 | option 1
//!           63   59    28   27   26            19   18             11   10            1   0
//!  entry   word 64 | key 64 | location 32, length 24, kind 8 | value, up to the end of the slot
//! ```

use core::fmt;

/// Where an entry is: in a slot of one of sixteen sizes, of 64 bytes to 2 MiB. Memory is counted in units of 64 bytes.
///
/// ```text
///   class 4 | unit 28
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(u32);

/// Bytes of a unit, and of a slot of class 0.
pub const UNIT: u64 = 64;
/// Units that can be told apart; the first one is nobody's.
pub const UNITS: u32 = 1 << 28;
/// Bytes in front of an entry's value.
pub const ENTRY_HEAD: u32 = 24;

impl Location {
    /// The slot of this class at a unit.
    ///
    /// # Panics
    /// If there is no such class or unit.
    pub const fn new(class: Class, unit: u32) -> Self {
        assert!(unit > 0 && unit < UNITS, "units are numbered from 1");
        Self((class.0 as u32) << 28 | unit)
    }

    /// What stands in a word; none: no slot is there.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits & (UNITS - 1) == 0 { None } else { Some(Self(bits)) }
    }

    /// The slot's size.
    pub const fn class(self) -> Class {
        Class((self.0 >> 28) as u8)
    }

    /// Where it begins, in units.
    pub const fn unit(self) -> u32 {
        self.0 & (UNITS - 1)
    }

    /// Where it begins, in bytes from the beginning of the memory.
    pub const fn offset(self) -> u64 {
        self.unit() as u64 * UNIT
    }

    /// As it stands in a word.
    pub const fn to_bits(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{}", self.offset(), self.class().bytes())
    }
}

/// How large a slot is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(u8);

impl Class {
    /// How many there are.
    pub const COUNT: usize = 16;

    /// The class with this number.
    pub const fn new(number: u8) -> Option<Self> {
        if number < 16 { Some(Self(number)) } else { None }
    }

    /// The smallest slots that a value of so many bytes fits; none if it is too long.
    pub const fn of_value(bytes: u32) -> Option<Self> {
        let Some(entry) = bytes.checked_add(ENTRY_HEAD) else { return None };
        let units = (entry as u64).div_ceil(UNIT).next_power_of_two();
        Self::new(units.trailing_zeros() as u8)
    }

    /// That of slots of so many bytes.
    pub const fn of_slot(bytes: u32) -> Option<Self> {
        let units = bytes as u64 / UNIT;
        if !(bytes as u64).is_multiple_of(UNIT) || !units.is_power_of_two() {
            return None;
        }
        Self::new(units.trailing_zeros() as u8)
    }

    /// Which one.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Bytes of a slot.
    pub const fn bytes(self) -> u64 {
        UNIT << self.0
    }

    /// Units of a slot.
    pub const fn units(self) -> u32 {
        1 << self.0
    }
}

/// Counts the uses of a slot, and comes round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EntryVersion(pub u8);

impl EntryVersion {
    /// That of the slot's next use.
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// What stands behind an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Next {
    /// Nothing: it is the tail.
    Tail,
    /// A later version.
    Entry(Location, EntryVersion),
    /// Nothing, and nothing ever will: the key was deleted, and its chain has ended.
    Closed,
}

/// The first word of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Word {
    /// The version that comes after it.
    pub next: Next,
    /// Which use of its slot the entry is.
    pub entry: EntryVersion,
    /// For whoever replicates entries: not looked at here, and kept.
    pub transaction: u16,
}

/// The location that says that a chain has ended: no slot of 2 MiB fits there.
const CLOSED: u32 = u32::MAX;

impl Word {
    /// The word of a tail.
    pub const fn tail(entry: EntryVersion) -> Self {
        Self { next: Next::Tail, entry, transaction: 0 }
    }

    /// The same entry, with this behind it.
    pub const fn followed_by(self, next: Next) -> Self {
        Self { next, ..self }
    }

    /// As it stands in memory.
    pub const fn to_bits(self) -> u64 {
        let (next, version) = match self.next {
            Next::Tail => (0, 0),
            Next::Entry(location, version) => (location.0, version.0),
            Next::Closed => (CLOSED, 0),
        };
        (next as u64) << 28
            | (version as u64) << 19
            | (self.entry.0 as u64) << 11
            | ((self.transaction & 0x3ff) as u64) << 1
    }

    /// What stands in memory. None: that is no chain word, or one of another use of it (reserved bits, the option, a location
    /// that cannot be).
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits & (0xf << 60 | 1 << 27 | 1) != 0 {
            return None;
        }
        let (next, version) = ((bits >> 28) as u32, EntryVersion((bits >> 19) as u8));
        let next = match next {
            0 if version.0 == 0 => Next::Tail,
            CLOSED if version.0 == 0 => Next::Closed,
            next if next & (UNITS - 1) != 0 => Next::Entry(Location(next), version),
            _ => return None,
        };
        let transaction = (bits >> 1 & 0x3ff) as u16;
        Some(Self { next, entry: EntryVersion((bits >> 11) as u8), transaction })
    }
}

/// What a compare-and-swap of a chain's word is answered: what the word was, or what a switch that steers says. Its words have the
/// option bit, which no word in memory has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// The word was this.
    Original(u64),
    /// The entry was appended behind this one.
    Steered(Location, EntryVersion),
    /// The entry is in no chain, and under its number it must never be: others may stand behind it.
    Refused,
    /// Nobody knows what was swapped.
    Indeterminate,
}

impl Reply {
    const REFUSED: u64 = Word { next: Next::Closed, entry: EntryVersion(0), transaction: 0 }.to_bits() | 1;
    const INDETERMINATE: u64 = Word::tail(EntryVersion(0)).to_bits() | 1;

    /// As it stands in the acknowledgement.
    pub const fn to_bits(self) -> u64 {
        match self {
            Self::Original(word) => word,
            Self::Steered(behind, version) => {
                let next = Next::Entry(behind, version);
                Word { next, entry: EntryVersion(0), transaction: 0 }.to_bits() | 1
            }
            Self::Refused => Self::REFUSED,
            Self::Indeterminate => Self::INDETERMINATE,
        }
    }

    /// What stands in an acknowledgement.
    pub const fn from_bits(bits: u64) -> Self {
        match (bits, Word::from_bits(bits & !1)) {
            (Self::REFUSED, _) => Self::Refused,
            (Self::INDETERMINATE, _) => Self::Indeterminate,
            (_, Some(Word { next: Next::Entry(behind, version), .. })) if bits & 1 != 0 => {
                Self::Steered(behind, version)
            }
            _ => Self::Original(bits),
        }
    }
}

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum EntryKind {
    /// A value.
    Value = 1,
    /// The key was deleted.
    Deleted = 2,
}

/// What stands in front of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryHead {
    /// The place in the chain.
    pub word: Word,
    /// Whose version it is.
    pub key: u64,
    /// Where it is: a switch that steers may send a read to another entry than the one that was asked for.
    pub at: Location,
    /// Bytes of the value: fewer than 2^24.
    pub len: u32,
    /// What it is.
    pub kind: EntryKind,
}

impl EntryHead {
    /// Its words.
    pub const fn to_words(&self) -> [u64; 3] {
        let rest = (self.at.0 as u64) << 32 | (self.len as u64 & 0xff_ffff) << 8 | self.kind as u64;
        [self.word.to_bits(), self.key, rest]
    }

    /// Reads it. None: nobody writes such words.
    pub const fn from_words([word, key, rest]: [u64; 3]) -> Option<Self> {
        let Some(word) = Word::from_bits(word) else { return None };
        let Some(at) = Location::from_bits((rest >> 32) as u32) else { return None };
        let kind = match rest as u8 {
            1 => EntryKind::Value,
            2 => EntryKind::Deleted,
            _ => return None,
        };
        Some(Self { word, key, at, len: (rest >> 8) as u32 & 0xff_ffff, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_is_one_is_read_as_it_was_written() {
        let places = [(0, 1), (3, 77), (15, UNITS - (1 << 15))];
        let entries = places.map(|(class, unit)| Location::new(Class::new(class).unwrap(), unit));
        let nexts = [Next::Tail, Next::Closed].into_iter();
        let nexts = nexts.chain(entries.map(|location| Next::Entry(location, EntryVersion(255))));
        for next in nexts {
            for (entry, transaction) in [(0, 0), (1, 1), (255, 0x3ff)] {
                let word = Word { next, entry: EntryVersion(entry), transaction };
                assert_eq!(Word::from_bits(word.to_bits()), Some(word));
                for reserved in [60, 61, 62, 63, 27, 0] {
                    assert_eq!(Word::from_bits(word.to_bits() | 1 << reserved), None);
                }
            }
        }
        assert_eq!(Word::tail(EntryVersion(5)).to_bits(), 5 << 11, "all zeroes but the entry's version");
        assert_eq!(Word::from_bits(7 << 19), None, "a version of nothing");
        assert_eq!(Word::from_bits(1 << 56), None, "unit 0 is nobody's");
    }

    #[test]
    fn what_a_switch_says_is_never_taken_for_a_word() {
        let behind = Location::new(Class::new(2).unwrap(), 77);
        for reply in [Reply::Steered(behind, EntryVersion(255)), Reply::Refused, Reply::Indeterminate] {
            assert_eq!(Reply::from_bits(reply.to_bits()), reply);
            assert_eq!(Word::from_bits(reply.to_bits()), None);
        }
        for word in [Word::tail(EntryVersion(3)), Word::tail(EntryVersion(0)).followed_by(Next::Closed)] {
            assert_eq!(Reply::from_bits(word.to_bits()), Reply::Original(word.to_bits()));
        }
    }

    #[test]
    fn a_value_gets_the_smallest_slot_that_it_fits() {
        let class = |bytes| Class::of_value(bytes).map(Class::bytes);
        assert_eq!([0, 40, 41, 104, 105].map(class), [64, 64, 128, 128, 256].map(Some));
        assert_eq!(class(1 << 20), Some(2 << 20));
        assert_eq!(class((2 << 20) - ENTRY_HEAD), Some(2 << 20));
        assert_eq!(class((2 << 20) - ENTRY_HEAD + 1), None);
        assert_eq!(class(u32::MAX), None);
        assert_eq!(
            [64, 128, 2 << 20].map(|bytes| Class::of_slot(bytes).map(Class::bytes)),
            [64, 128, 2 << 20].map(Some)
        );
        assert_eq!([0, 63, 96, 192, 4 << 20].map(Class::of_slot), [None; 5]);
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        for kind in [EntryKind::Value, EntryKind::Deleted] {
            let at = Location::new(Class::new(15).unwrap(), UNITS - 1);
            let head = EntryHead { word: Word::tail(EntryVersion(9)), key: u64::MAX, at, len: 1 << 21, kind };
            assert_eq!(EntryHead::from_words(head.to_words()), Some(head));
        }
        assert!(EntryHead::from_words([0, 0, 1 << 32 | 1]).is_some());
        assert_eq!(EntryHead::from_words([0, 0, 1 << 32 | 3]), None, "of another kind");
        assert_eq!(EntryHead::from_words([1, 0, 1 << 32 | 1]), None, "no word");
        assert_eq!(EntryHead::from_words([0, 0, 1]), None, "nowhere");
    }
}
