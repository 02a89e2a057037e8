//! What a snapshot is of, and what it promises.
//!
//! ```text
//!   about   kind 1 | version of the type 4 | bytes of each element 8 | elements 8 | of a store: its configuration 4 x 8
//!           | length of the type's tag 2 | tag | length of the name 2 | name
//! ```

use std::fmt;

use rackmem::{Discipline, LockedRegions, NamedSpec, Region};

use super::error::Error;
use crate::kv::KvStore;
use crate::kv_locked::LockedStore;
use crate::named::Rooted;
use crate::objects::{ObjectStore, Sabres};

/// What can be saved. Their numbers are in files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// A [`Locked`](rackmem::Locked).
    Locked = 1,
    /// [`LockedRegions`].
    Regions = 2,
    /// A [`Value`](rackmem::Value).
    Value = 3,
    /// A [`Region`].
    Region = 4,
    /// [`Words`](rackmem::Words).
    Words = 5,
    /// [`Objects`](rackmem::Objects), or [`ByteObjects`](rackmem::ByteObjects).
    Objects = 6,
    /// A [`KvStore`].
    Store = 7,
    /// A [`LockedStore`].
    LockedStore = 8,
    /// An [`ObjectStore`].
    ObjectStore = 9,
}

const KINDS: [Kind; 9] = [
    Kind::Locked,
    Kind::Regions,
    Kind::Value,
    Kind::Region,
    Kind::Words,
    Kind::Objects,
    Kind::Store,
    Kind::LockedStore,
    Kind::ObjectStore,
];

/// Of what a snapshot is one moment. Each part is as it was at some moment between the beginning and the end of the saving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Moment {
    /// All of it.
    Whole = 1,
    /// Each block of memory.
    Block = 2,
    /// Each word.
    Word = 3,
    /// Each object.
    Object = 4,
    /// Each key with its value: one that was there all the time is in it, one that came or went meanwhile may be.
    Key = 5,
    /// All keys of each bucket, as of a key.
    Bucket = 6,
}

const MOMENTS: [Moment; 6] =
    [Moment::Whole, Moment::Block, Moment::Word, Moment::Object, Moment::Key, Moment::Bucket];

impl Moment {
    pub(super) fn of(number: u8) -> Option<Self> {
        MOMENTS.into_iter().find(|moment| *moment as u8 == number)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "all of one moment",
            Self::Block => "each block of one moment",
            Self::Word => "each word of one moment",
            Self::Object => "each object of one moment",
            Self::Key => "each key of one moment",
            Self::Bucket => "each bucket of one moment",
        })
    }
}

impl Kind {
    /// That of what a name says; None if it cannot be saved.
    pub fn of(spec: &NamedSpec) -> Option<Self> {
        let is = |tag: &str| {
            spec.tag.strip_prefix(tag).is_some_and(|more| more.is_empty() || more.starts_with(' '))
        };
        let is_store = |tag| spec.version == 1 && spec.tag == tag && spec.value_len() == 8;
        Some(match spec.discipline {
            Discipline::Locked if is(LockedRegions::TAG) => Self::Regions,
            Discipline::Locked => Self::Locked,
            Discipline::Coherent if is_store(KvStore::TAG) => Self::Store,
            Discipline::Coherent if is_store(LockedStore::TAG) => Self::LockedStore,
            Discipline::Coherent if is_store(ObjectStore::<Sabres>::TAG) => Self::ObjectStore,
            Discipline::Coherent if is(Region::TAG) => Self::Region,
            Discipline::Coherent => Self::Value,
            Discipline::Word => Self::Words,
            Discipline::Object => Self::Objects,
            _ => return None,
        })
    }

    const fn discipline(self) -> Discipline {
        match self {
            Self::Locked | Self::Regions => Discipline::Locked,
            Self::Value | Self::Region | Self::Store | Self::LockedStore | Self::ObjectStore => {
                Discipline::Coherent
            }
            Self::Words => Discipline::Word,
            Self::Objects => Discipline::Object,
        }
    }

    /// True if it is kept by several nodes, where a handle [keeps copies](rackmem::NodeHandle::keep_copies).
    pub const fn can_have_copies(self) -> bool {
        // Of a store in locks, many are in one allocation; one of objects is objects.
        !matches!(self, Self::Words | Self::Objects | Self::LockedStore | Self::ObjectStore)
    }

    /// True if it has entries: a store keys, and a lock regions. All else is so many bytes.
    pub const fn has_entries(self) -> bool {
        matches!(self, Self::Regions | Self::Store | Self::LockedStore | Self::ObjectStore)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Locked => "value behind a lock",
            Self::Regions => "regions behind a lock",
            Self::Value => "value",
            Self::Region => "region",
            Self::Words => "words",
            Self::Objects => "objects",
            Self::Store => "key-value store",
            Self::LockedStore => "key-value store in locks",
            Self::ObjectStore => "key-value store of objects",
        })
    }
}

/// What a snapshot is of.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct About {
    /// The name that it had. It may be brought back under another one.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// What its name said.
    pub spec: NamedSpec,
    /// With what its store was made.
    pub(super) config: [u64; 4],
}

/// Bytes in front of the tag.
const FIXED: usize = 1 + 4 + 8 + 8 + 32;

impl About {
    pub(super) fn of(name: &str, spec: &NamedSpec) -> Result<Self, Error> {
        let kind = Kind::of(spec).ok_or_else(|| {
            let (name, spec) = (name.to_owned(), Box::new(spec.clone()));
            Error::Unlistable { name, spec }
        })?;
        Ok(Self { name: name.to_owned(), kind, spec: spec.clone(), config: [0; 4] })
    }

    /// Bytes of its content; None if those are entries, or more than can be counted.
    pub(super) fn content(&self) -> Option<u64> {
        let (len, count) = (self.spec.value_len(), self.spec.count);
        match self.kind {
            Kind::Locked | Kind::Value | Kind::Region => Some(len),
            Kind::Words => len.checked_mul(count)?.checked_next_multiple_of(8),
            Kind::Objects => len.checked_mul(count),
            _ => None,
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let NamedSpec { count, tag, version, .. } = &self.spec;
        let mut bytes = vec![self.kind as u8];
        bytes.extend(version.to_le_bytes());
        bytes.extend([self.spec.value_len(), *count].map(u64::to_le_bytes).concat());
        bytes.extend(self.config.map(u64::to_le_bytes).concat());
        for text in [tag, &self.name] {
            let len = u16::try_from(text.len()).expect("tags and names are short");
            bytes.extend(len.to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::parsed(bytes).ok_or(Error::Malformed { what: "it does not say what it is of" })
    }

    fn parsed(bytes: &[u8]) -> Option<Self> {
        let (fixed, rest) = bytes.split_first_chunk::<FIXED>()?;
        let kind = KINDS.into_iter().find(|kind| *kind as u8 == fixed[0])?;
        let (version, words) = fixed[1..].split_first_chunk::<4>()?;
        let [len, count, config @ ..] = words.as_chunks::<8>().0 else { return None };
        let config: [[u8; 8]; 4] = config.try_into().ok()?;
        let (tag, rest) = text(rest)?;
        let (name, rest) = text(rest)?;
        let discipline = kind.discipline();
        let header = NamedSpec::untyped(discipline, 0, 1).len;
        let len = u64::from_le_bytes(*len).checked_add(header)?;
        let count = u64::from_le_bytes(*count);
        let spec = NamedSpec { discipline, len, count, tag, version: u32::from_le_bytes(*version) };
        let about = Self { name, kind, spec, config: config.map(u64::from_le_bytes) };
        let is_alone = about.spec.count == 1 || matches!(kind, Kind::Words | Kind::Objects);
        let is_one = is_alone && (kind.has_entries() || about.content().is_some());
        (Kind::of(&about.spec) == Some(kind) && is_one && rest.is_empty()).then_some(about)
    }
}

fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
    Some((std::str::from_utf8(text).ok()?.to_owned(), rest))
}
