//! Buckets: which record holds a key.
//!
//! ```text
//! byte 0    header    inner (1 bit) | zero (23 bits) | number of the last record linked (40 bits)
//! byte 8    children  address of four buckets, in an inner bucket
//! byte 16   ids       one word a slot: tag of the key's hash (24 bits) | number (40 bits); 0 is a free slot
//! then      addresses one word a slot
//! ```
//!
//! A bucket never crosses a block, so a look at it and a change of it are atomic. It starts as a leaf. A leaf
//! that is full becomes an inner bucket, once and for good: its entries go to four new leaves, by two more bits
//! of their tags. So a key belongs to exactly one leaf at any moment, and *checking that a key is absent and
//! linking it is one atomic change of one block*; chains of overflow buckets would not have that.
//!
//! What must always hold:
//! - A key has at most one entry.
//! - A leaf's number never falls, is at least that of each of its entries, and grows with every [`link`].
//! - Inner buckets never change, and buckets are not freed before the store is destroyed: a path once walked
//!   stays valid.

use rackmem::{BlockSize, GlobalAddr, Window};

use super::hash::{KeyHash, TAG_BITS};

/// Buckets that a full one is split into.
pub(super) const CHILDREN: u64 = 4;
/// Bits of the tag that choose one of them.
const CHILD_BITS: u32 = CHILDREN.ilog2();
/// How often buckets can be split: then the tag has no bits left.
pub(super) const DEEPEST: u32 = TAG_BITS / CHILD_BITS;

const HEADER: usize = 16;
const LARGEST: usize = 256;
/// Slots of the largest bucket.
const MOST_SLOTS: usize = (LARGEST - HEADER) / 16;

const INNER: u64 = 1 << 63;
const NUMBER_BITS: u32 = 64 - TAG_BITS;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// The id of a record: the tag of its key's hash, and a number that the records of one key never repeat at
/// one address. Never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RecordId(pub(super) u64);

impl RecordId {
    fn number(self) -> u64 {
        self.0 & NUMBER_MASK
    }

    #[inline]
    fn tag(self) -> u64 {
        self.0 >> NUMBER_BITS
    }
}

/// Where a record is, and which one it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) id: RecordId,
    pub(super) addr: GlobalAddr,
}

impl Entry {
    /// The entry in two words of memory, unless they are no entry.
    pub(super) fn from_words(id: u64, addr: u64) -> Option<Self> {
        (id != 0 && addr != 0).then_some(Self { id: RecordId(id), addr: GlobalAddr::from_bits(addr) })
    }
}

/// The size of the store's buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Geometry {
    bytes: usize,
}

impl Geometry {
    /// Buckets of 256 bytes, or of a block where blocks are smaller.
    pub(super) fn of(block: BlockSize) -> Self {
        Self { bytes: block.len().min(LARGEST) }
    }

    /// Bytes in a bucket: a power of two.
    #[inline]
    pub(super) fn bytes(self) -> usize {
        self.bytes
    }

    /// Entries that a bucket has capacity for.
    #[inline]
    pub(super) fn slots(self) -> usize {
        (self.bytes - HEADER) / 16
    }

    #[inline]
    fn id_at(slot: usize) -> usize {
        HEADER + slot * 8
    }

    #[inline]
    fn addr_at(self, slot: usize) -> usize {
        HEADER + (self.slots() + slot) * 8
    }

    fn slot_of(self, bucket: &Window<'_>, entry: Entry) -> Option<usize> {
        (0..self.slots()).find(|slot| {
            bucket.word(Self::id_at(*slot)) == entry.id.0
                && bucket.word(self.addr_at(*slot)) == entry.addr.bits()
        })
    }

    fn free_slot(self, bucket: &Window<'_>) -> Option<usize> {
        (0..self.slots()).find(|slot| bucket.word(Self::id_at(*slot)) == 0)
    }

    fn set_slot(self, bucket: &Window<'_>, slot: usize, id: u64, addr: u64) {
        bucket.set_word(Self::id_at(slot), id);
        bucket.set_word(self.addr_at(slot), addr);
    }

    /// The child of an inner bucket at `depth` that takes the keys with this tag.
    #[inline]
    pub(super) fn child(self, children: GlobalAddr, tag: u64, depth: u32) -> GlobalAddr {
        children + (tag >> (depth * CHILD_BITS) & (CHILDREN - 1)) * self.bytes as u64
    }
}

/// What a look into a bucket found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scan {
    /// Look there instead.
    Inner {
        /// The first of its children.
        children: GlobalAddr,
    },
    /// What concerns the key.
    Leaf(Leaf),
}

/// A leaf, as far as it concerns one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Leaf {
    /// The number of the last record linked.
    number: u64,
    /// The entry that may be the key's.
    pub(super) entry: Option<Entry>,
}

impl Leaf {
    /// The id for a record that is to be linked next. The scan must have been made after the record's memory
    /// was allocated: then every earlier record at that address has a lower number.
    pub(super) fn next_id(&self, hash: KeyHash) -> RecordId {
        RecordId(hash.tag() << NUMBER_BITS | ((self.number + 1) & NUMBER_MASK))
    }
}

/// Looks for the entry of a key. `others` are entries with the same tag that are known to be other keys'.
#[inline]
pub(super) fn scan(bucket: &Window<'_>, geometry: Geometry, tag: u64, others: &[Entry]) -> Scan {
    let header = bucket.word(0);
    if header & INNER != 0 {
        return Scan::Inner { children: GlobalAddr::from_bits(bucket.word(8)) };
    }
    let entry = (0..geometry.slots()).find_map(|slot| {
        let id = RecordId(bucket.word(Geometry::id_at(slot)));
        if id.tag() != tag {
            return None;
        }
        let entry = Entry { id, addr: GlobalAddr::from_bits(bucket.word(geometry.addr_at(slot))) };
        (!others.contains(&entry)).then_some(entry)
    });
    Scan::Leaf(Leaf { number: header & NUMBER_MASK, entry })
}

/// What became of a change of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Changed {
    /// It was made, or was not necessary any more.
    Done,
    /// The bucket is not as the scan found it: scan again.
    Outdated,
    /// No slot is free.
    Full,
}

/// Links a new record, in the place of a dead one of the same key if there is one. `seen` is the scan that
/// found no other entry of the key: as long as the number is the same, none was added.
pub(super) fn link(
    bucket: &Window<'_>,
    geometry: Geometry,
    seen: &Leaf,
    dead: Option<Entry>,
    new: Entry,
) -> Changed {
    if bucket.word(0) != seen.number {
        return Changed::Outdated;
    }
    let slot = dead.and_then(|dead| geometry.slot_of(bucket, dead)).or_else(|| geometry.free_slot(bucket));
    let Some(slot) = slot else { return Changed::Full };
    geometry.set_slot(bucket, slot, new.id.0, new.addr.bits());
    bucket.set_word(0, new.id.number());
    Changed::Done
}

/// Lets the entry of a forwarded record point to its successor, if it does not yet.
pub(super) fn swing(bucket: &Window<'_>, geometry: Geometry, old: Entry, new: Entry) -> Changed {
    let header = bucket.word(0);
    if header & INNER != 0 {
        return Changed::Outdated;
    }
    if let Some(slot) = geometry.slot_of(bucket, old) {
        geometry.set_slot(bucket, slot, new.id.0, new.addr.bits());
        bucket.set_word(0, header.max(new.id.number()));
    }
    Changed::Done
}

/// Removes the entry of a dead record, if it is still there.
pub(super) fn unlink(bucket: &Window<'_>, geometry: Geometry, dead: Entry) -> Changed {
    if bucket.word(0) & INNER != 0 {
        return Changed::Outdated;
    }
    if let Some(slot) = geometry.slot_of(bucket, dead) {
        geometry.set_slot(bucket, slot, 0, 0);
    }
    Changed::Done
}

/// The words of a bucket at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Snapshot {
    words: [u64; LARGEST / 8],
    geometry: Geometry,
}

impl Snapshot {
    /// Copies a bucket.
    pub(super) fn of(bucket: &Window<'_>, geometry: Geometry) -> Self {
        let mut words = [0; LARGEST / 8];
        for (at, word) in words[..geometry.bytes() / 8].iter_mut().enumerate() {
            *word = bucket.word(at * 8);
        }
        Self { words, geometry }
    }

    /// The children of an inner bucket.
    pub(super) fn children(&self) -> Option<GlobalAddr> {
        (self.words[0] & INNER != 0).then_some(GlobalAddr::from_bits(self.words[1]))
    }

    /// The entries of a leaf.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let (ids, addrs) = self.words[HEADER / 8..].split_at(self.geometry.slots());
        ids.iter().zip(addrs).filter_map(|(id, addr)| Entry::from_words(*id, *addr))
    }

    /// The contents of the four leaves that this leaf at `depth` is split into.
    pub(super) fn split(&self, depth: u32) -> Vec<u8> {
        let mut children = Vec::with_capacity(self.geometry.bytes() * 4);
        for child in 0..CHILDREN {
            let mut words = [0; LARGEST / 8];
            words[0] = self.words[0];
            let mine =
                self.entries().filter(|e| e.id.tag() >> (depth * CHILD_BITS) & (CHILDREN - 1) == child);
            for (slot, entry) in mine.enumerate() {
                words[Geometry::id_at(slot) / 8] = entry.id.0;
                words[self.geometry.addr_at(slot) / 8] = entry.addr.bits();
            }
            children.extend(words[..self.geometry.bytes() / 8].iter().flat_map(|word| word.to_le_bytes()));
        }
        children
    }

    /// Makes the leaf an inner bucket, if it is still as it was when the snapshot was taken.
    pub(super) fn become_inner(&self, bucket: &Window<'_>, children: GlobalAddr) -> bool {
        let unchanged = Self::of(bucket, self.geometry) == *self;
        if unchanged {
            bucket.set_word(0, self.words[0] | INNER);
            bucket.set_word(8, children.bits());
        }
        unchanged
    }
}

const _: () = assert!(MOST_SLOTS == 15 && DEEPEST == 12);

#[cfg(test)]
mod tests;
