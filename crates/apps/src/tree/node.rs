//! A node of the tree: one block. Runs inside one look at, or one change of, it.
//!
//! ```text
//! byte 0    version << 32 | dead << 31 | level << 16 | entries
//! byte 8    the node on the right, or 0
//! byte 16   high key, if there is one on the right
//! byte 32   entries, by key: 16 bytes of key, 8 of value
//! ```
//! An entry of an inner node has the first key of a child's range, and the child. The first entry has whatever is in front
//! of the second one, too.
//!
//! What must always hold: a look at bytes that are just being changed gives any result, but no panic, and stays inside.

use rackmem::{GlobalAddr, Window};

const RIGHT: usize = 8;
const HIGH: usize = 16;
const ENTRIES: usize = 32;
const ENTRY: usize = 24;
const DEAD: u64 = 1 << 31;
const VERSION: u64 = 1 << 32;

/// How many entries a block has room for.
pub(super) const fn capacity(block: usize) -> usize {
    (block - ENTRIES) / ENTRY
}

/// What a look at a node came to.
pub(super) enum Look<R> {
    /// The key belongs to this node.
    Here(R),
    /// The key belongs to this one, or to one on its right.
    Right(GlobalAddr),
}

/// What a node holds, copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Content {
    pub(super) level: u64,
    pub(super) entries: Vec<(u128, u64)>,
    /// The high key, and the node on the right.
    pub(super) end: Option<(u128, GlobalAddr)>,
}

/// A block, seen as a node.
pub(super) struct Node<'w>(Window<'w>);

impl<'w> Node<'w> {
    pub(super) const fn new(window: &Window<'w>) -> Self {
        Self(*window)
    }

    /// Changes with every change of the node.
    pub(super) fn version(&self) -> u64 {
        self.0.word(0) >> 32
    }

    pub(super) fn level(&self) -> u64 {
        self.0.word(0) >> 16 & 0x7fff
    }

    pub(super) fn count(&self) -> usize {
        (self.0.word(0) as u16 as usize).min(capacity(self.0.len()))
    }

    pub(super) fn is_full(&self) -> bool {
        self.count() == capacity(self.0.len())
    }

    fn right(&self) -> Option<GlobalAddr> {
        Some(GlobalAddr::from_bits(self.0.word(RIGHT))).filter(|right| !right.is_null())
    }

    /// The high key, and the node on the right.
    pub(super) fn end(&self) -> Option<(u128, GlobalAddr)> {
        self.right().map(|right| (self.wide(HIGH), right))
    }

    /// The node on the right, if the key is not this node's.
    #[inline]
    pub(super) fn right_of(&self, key: u128) -> Option<GlobalAddr> {
        let (high, right) = self.end()?;
        (self.0.word(0) & DEAD != 0 || key >= high).then_some(right)
    }

    #[inline]
    pub(super) fn key(&self, index: usize) -> u128 {
        self.wide(ENTRIES + index * ENTRY)
    }

    #[inline]
    pub(super) fn value(&self, index: usize) -> u64 {
        self.0.word(ENTRIES + index * ENTRY + 16)
    }

    /// Where the key is, or would be.
    #[inline]
    pub(super) fn find(&self, key: u128) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle).cmp(&key) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Which child the way to the key goes to.
    pub(super) fn child(&self, key: u128) -> GlobalAddr {
        let index = self.find(key).unwrap_or_else(|index| index.saturating_sub(1));
        GlobalAddr::from_bits(self.value(index))
    }

    pub(super) fn content(&self) -> Content {
        let entries = (0..self.count()).map(|index| (self.key(index), self.value(index))).collect();
        Content { level: self.level(), entries, end: self.end() }
    }

    #[inline]
    fn wide(&self, at: usize) -> u128 {
        u128::from(self.0.word(at)) << 64 | u128::from(self.0.word(at + 8))
    }

    fn set_wide(&self, at: usize, value: u128) {
        self.0.set_word(at, (value >> 64) as u64);
        self.0.set_word(at + 8, value as u64);
    }

    fn set_entry(&self, index: usize, (key, value): (u128, u64)) {
        self.set_wide(ENTRIES + index * ENTRY, key);
        self.set_value(index, value);
    }

    /// Changes an entry's value: of an inner node, the child that it leads to.
    pub(super) fn set_value(&self, index: usize, value: u64) {
        self.0.set_word(ENTRIES + index * ENTRY + 16, value);
    }

    /// Writes a new version, with so many entries.
    fn set_head(&self, level: u64, count: usize) {
        let version = self.0.word(0) & !(VERSION - 1);
        self.0.set_word(0, version.wrapping_add(VERSION) | level << 16 | count as u64);
    }

    /// Everything anew.
    pub(super) fn set(&self, content: &Content) {
        for (index, entry) in content.entries.iter().enumerate() {
            self.set_entry(index, *entry);
        }
        let (high, right) = content.end.unwrap_or((0, GlobalAddr::NULL));
        self.set_wide(HIGH, high);
        self.0.set_word(RIGHT, right.bits());
        self.set_head(content.level, content.entries.len());
    }

    /// Puts an entry where there is none, with room for it.
    pub(super) fn insert(&self, index: usize, entry: (u128, u64)) {
        for to in (index..self.count()).rev() {
            self.set_entry(to + 1, (self.key(to), self.value(to)));
        }
        self.set_entry(index, entry);
        self.set_head(self.level(), self.count() + 1);
    }

    /// Takes an entry away.
    pub(super) fn remove(&self, index: usize) {
        for from in index + 1..self.count() {
            self.set_entry(from - 1, (self.key(from), self.value(from)));
        }
        self.set_head(self.level(), self.count() - 1);
    }

    /// Ends the node.
    pub(super) fn die(&self) {
        self.0.set_word(0, self.0.word(0) | DEAD);
    }

    /// Leads past a node on the right that is dead.
    pub(super) fn set_right(&self, right: GlobalAddr) {
        self.0.set_word(RIGHT, right.bits());
        self.set_head(self.level(), self.count());
    }
}
