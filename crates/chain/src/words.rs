//! What a metadata server knows, as words: so that a new backup gets it.
//!
//! Each thing is put as words, and taken from words as it was put. What must always hold: what is taken is what was put, and of
//! nonsense nothing is taken.

use alloc::vec;
use alloc::vec::Vec;

use wire::Nanos;
use wire::chains::{EntryKind, EntryVersion, Location, Word};

use crate::metadata::ClientId;
use crate::{Answer, Replica, Verb};

/// Words that are taken one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a>(pub(crate) &'a [u64]);

/// A use of a slot, in a word.
pub const fn slot(at: Location, version: EntryVersion) -> u64 {
    (at.to_bits() as u64) << 8 | version.0 as u64
}

/// Reads it.
pub fn slot_of(word: u64) -> Option<(Location, EntryVersion)> {
    Some((Location::from_bits(u32::try_from(word >> 8).ok()?)?, EntryVersion(word as u8)))
}

impl Words<'_> {
    /// The next one.
    pub(crate) fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn location(&mut self) -> Option<Location> {
        Location::from_bits(u32::try_from(self.word()?).ok()?)
    }

    pub(crate) fn slot(&mut self) -> Option<(Location, EntryVersion)> {
        slot_of(self.word()?)
    }

    pub(crate) fn client(&mut self) -> Option<ClientId> {
        self.word().map(ClientId)
    }

    pub(crate) fn time(&mut self) -> Option<Nanos> {
        self.word().map(Nanos)
    }

    pub(crate) fn kind(&mut self) -> Option<EntryKind> {
        match self.word()? {
            1 => Some(EntryKind::Value),
            2 => Some(EntryKind::Deleted),
            _ => None,
        }
    }

    /// Some of one kind, as [`put_all`] has put them.
    pub(crate) fn all<T, C: FromIterator<T>>(
        &mut self,
        mut take: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<C> {
        let many = self.word()?;
        (0..many).map(|_| take(self)).collect()
    }
}

/// Puts how many there are, and then each.
pub(crate) fn put_all<T>(
    out: &mut Vec<u64>,
    all: impl ExactSizeIterator<Item = T>,
    mut put: impl FnMut(&mut Vec<u64>, T),
) {
    out.push(all.len() as u64);
    all.for_each(|it| put(out, it));
}

/// Puts a verb of a walk, for a copy.
pub(crate) fn put_verb(out: &mut Vec<u64>, replica: Replica, verb: Verb) {
    match verb {
        Verb::Read(at) => out.extend([u64::from(replica.0) << 1, at.to_bits().into()]),
        Verb::CompareSwap { at, expected, new } => {
            out.extend([
                u64::from(replica.0) << 1 | 1,
                at.to_bits().into(),
                expected.to_bits(),
                new.to_bits(),
            ]);
        }
        Verb::Write(..) => unreachable!("walks write no entries"),
    }
}

/// Takes one.
pub(crate) fn verb_of(words: &mut Words<'_>) -> Option<(Replica, Verb)> {
    let what = words.word()?;
    let (replica, at) = (Replica(u8::try_from(what >> 1).ok()?), words.location()?);
    let verb = match what & 1 {
        0 => Verb::Read(at),
        _ => {
            let expected = Word::from_bits(words.word()?)?;
            Verb::CompareSwap { at, expected, new: Word::from_bits(words.word()?)? }
        }
    };
    Some((replica, verb))
}

/// What the metadata server says.
pub fn answer_words(answer: &Answer) -> Vec<u64> {
    match answer {
        Answer::Found(at, version) => vec![1, slot(*at, *version)],
        Answer::FoundSome(at, version, others) => {
            let others = others.iter().flat_map(|(key, at, version)| [*key, slot(*at, *version)]);
            [7, slot(*at, *version)].into_iter().chain(others).collect()
        }
        Answer::Absent => vec![2],
        Answer::Slots(slots) => {
            [3].into_iter().chain(slots.iter().map(|(at, version)| slot(*at, *version))).collect()
        }
        Answer::Created => vec![4],
        Answer::Linked => vec![5],
        Answer::Free(version) => vec![6, u64::from(version.0)],
    }
}

/// Reads it.
pub fn answer_of(words: &[u64]) -> Option<Answer> {
    match *words {
        [1, word] => slot_of(word).map(|(at, version)| Answer::Found(at, version)),
        [7, word, ref others @ ..] => {
            let (others, []) = others.as_chunks::<2>() else { return None };
            let other = |[key, word]: &[u64; 2]| slot_of(*word).map(|(at, version)| (*key, at, version));
            let (at, version) = slot_of(word)?;
            others
                .iter()
                .map(other)
                .collect::<Option<_>>()
                .map(|others| Answer::FoundSome(at, version, others))
        }
        [2] => Some(Answer::Absent),
        [3, ref slots @ ..] => {
            slots.iter().map(|word| slot_of(*word)).collect::<Option<_>>().map(Answer::Slots)
        }
        [4] => Some(Answer::Created),
        [5] => Some(Answer::Linked),
        [6, version] => u8::try_from(version).ok().map(|version| Answer::Free(EntryVersion(version))),
        _ => None,
    }
}
