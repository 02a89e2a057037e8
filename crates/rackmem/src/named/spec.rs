//! What a name says of what it names.

use std::fmt;

use live::chains::Wanted;
use wire::{Discipline, GlobalAddr, Incarnation, NodeId};

use super::making::VALUE_HEADER;
use super::region::Region;
use crate::locked::{Counts, LockedRegions, header};

/// What is named: its discipline, how long it is, and of which type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedSpec {
    /// How it is used.
    pub discipline: Discipline,
    /// Bytes of each element, with what is in front of it ([`NamedSpec::value_len`]).
    pub len: u64,
    /// How many elements.
    pub count: u64,
    /// What the elements are: by default what Rust calls the type.
    pub tag: String,
    /// The version of their layout.
    pub version: u32,
}

/// A name and what it names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NamedInfo {
    /// The name.
    pub name: String,
    /// What it names.
    pub spec: NamedSpec,
    /// Where that is.
    pub addr: GlobalAddr,
    /// Which of all that were ever made under this name: later ones have larger numbers.
    pub making: u64,
    /// The node on which it was made.
    pub maker: NodeId,
    /// How many nodes have it, as long as all are up; 1: it dies with its node.
    pub copies: u8,
    /// In which life of its memory, or of a store's first node, it was made.
    pub(crate) life: u32,
    /// How often it has been opened.
    pub opened: u64,
}

impl NamedInfo {
    /// True of a store with copies: it may have outlived the memory that it was made in.
    pub(super) const fn is_lasting_store(&self) -> bool {
        matches!(self.spec.discipline, Discipline::Chain) && self.copies > 1
    }

    /// Whom one looks for who looks for the store that this is.
    pub(super) const fn store(&self, failed_too: bool) -> Wanted {
        Wanted { addr: self.addr, life: Some(Incarnation(self.life)), failed_too }
    }
}

impl NamedSpec {
    /// The longest tag, in bytes.
    pub const LONGEST_TAG: usize = 64;

    /// True if it is memory that is mapped: behind its header is the rest of a block, so that it begins with one.
    pub(super) fn is_region(&self) -> bool {
        self.tag.strip_prefix(Region::TAG).is_some_and(|more| more.is_empty() || more.starts_with(' '))
    }

    /// Of a lock: how much of its region counts.
    pub(super) fn counts(&self) -> Counts {
        let more = self.tag.strip_prefix(LockedRegions::TAG);
        match more.is_some_and(|more| more.is_empty() || more.starts_with(' ')) {
            true => Counts::AsItSays,
            false => Counts::All,
        }
    }

    /// Of no type: so many elements (1, where there is no more than one) of so many bytes. Those of locks are whole words.
    pub fn untyped(discipline: Discipline, value_len: u64, count: u64) -> Self {
        let len = match discipline {
            Discipline::Locked => value_len.checked_next_multiple_of(8).unwrap_or(u64::MAX),
            _ => value_len,
        };
        let len = len.saturating_add(header_of(discipline));
        Self { discipline, len, count, tag: String::new(), version: 0 }
    }

    /// Bytes of each element that are the application's.
    pub fn value_len(&self) -> u64 {
        self.len.saturating_sub(header_of(self.discipline))
    }

    /// True if what is there is what somebody means who says this. Whoever opens something need not know how many elements it has, or
    /// what only bytes are in, how long they are: he says 0.
    pub(super) fn suits(&self, asked: &Self) -> bool {
        self.discipline == asked.discipline
            && (asked.len == 0 || self.len == asked.len)
            && (asked.count == 0 || self.count == asked.count)
            && self.tag == asked.tag
            && self.version == asked.version
    }
}

impl fmt::Display for NamedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { discipline, count, tag, version, .. } = self;
        let len = self.value_len();
        match count {
            0 => write!(f, "{discipline:?}, {len} B each")?,
            1 => write!(f, "{discipline:?}, {len} B")?,
            _ => write!(f, "{discipline:?}, {count} of {len} B")?,
        }
        if !tag.is_empty() {
            write!(f, ", type {tag}")?;
        }
        if *version > 0 { write!(f, ", version {version}") } else { Ok(()) }
    }
}

/// Bytes in front of each element.
const fn header_of(discipline: Discipline) -> u64 {
    match discipline {
        Discipline::Locked => header::BYTES as u64,
        Discipline::Coherent => VALUE_HEADER as u64,
        _ => 0,
    }
}

/// A type's tag: its name, of a long one the end.
pub(super) fn tag_of<T>() -> String {
    tag_within::<T>(NamedSpec::LONGEST_TAG)
}

/// The same, of so many bytes at most.
pub(super) fn tag_within<T>(most: usize) -> String {
    let name = std::any::type_name::<T>();
    let from = (name.len().saturating_sub(most)..).find(|from| name.is_char_boundary(*from));
    name[from.expect("the end is a boundary")..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_suits_who_asks_for_it_and_nobody_else() {
        let there =
            NamedSpec { discipline: Discipline::Word, len: 8, count: 5, tag: "u64".into(), version: 1 };
        assert!(there.suits(&there) && there.suits(&NamedSpec { count: 0, ..there.clone() }));
        for other in [
            NamedSpec { discipline: Discipline::Object, ..there.clone() },
            NamedSpec { len: 4, ..there.clone() },
            NamedSpec { count: 4, ..there.clone() },
            NamedSpec { tag: "i64".into(), ..there.clone() },
            NamedSpec { version: 2, ..there.clone() },
        ] {
            assert!(!there.suits(&other), "{other}");
        }
    }

    #[test]
    fn tags_are_short() {
        type Long = [[[Option<std::collections::BTreeMap<String, Vec<Option<String>>>>; 3]; 4]; 5];
        assert_eq!(tag_of::<u64>(), "u64");
        assert!(tag_of::<Long>().len() <= NamedSpec::LONGEST_TAG);
    }
}
