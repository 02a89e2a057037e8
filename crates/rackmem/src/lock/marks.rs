//! Who was inside of the lock of a block with copies to write, so that whoever takes it next is told if that node has died.
//!
//! ```text
//!   root    the fifth word of the memory's first block: the first table
//!   table   the next table | whose it is, a node in one life | marks: blocks that it has locked to write, or 0
//!   mark    the address of a block, and in its low bits how many had died with that lock before
//! ```
//!
//! A node has a table in each memory of whose blocks it takes locks. A mark is written before the thread is let in, and taken away
//! before the lock is released: what survives of a node is a prefix of its writes, so whenever something survives that was written
//! under the lock, the mark does, or all of it does. What must always hold: only its owner writes an address into a table, and whoever
//! has the lock takes away that of an owner who has died.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::{BlockSize, Discipline, GlobalAddr, NodeId, SlotId};

use crate::error::Error;
use crate::handle::NodeHandle;
use crate::rack::{Inner, Rack};

/// Where the first table is said, in the memory's first block. The words before are those of names (`named/kept.rs`).
const ROOT: u64 = 4 * 8;
/// As many as a node can have locked at a time.
const MARKS: usize = SlotId::FOR_LOCKS;
/// In front of the marks.
const HEAD: usize = 2;
const TABLE_BYTES: u64 = 8 * (HEAD + MARKS) as u64;
/// The bits of a mark that count deaths: no block is smaller.
const DEATHS: u64 = BlockSize::MIN.bytes() - 1;

/// What a process knows of marks, by memory.
#[derive(Default)]
pub(crate) struct Marks(Mutex<BTreeMap<NodeId, Known>>);

#[derive(Default)]
struct Known {
    /// The life of the memory in which this is so.
    life: u32,
    /// This node's table, and which of its marks are free.
    own: Option<(GlobalAddr, Vec<usize>)>,
    /// In which epoch, and one more, tables were looked at last.
    looked_in: u64,
    left: Vec<Left>,
}

/// The mark of a node that has died.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) node: NodeId,
    mark: u64,
    at: GlobalAddr,
}

impl Left {
    fn is_of(&self, block: GlobalAddr) -> bool {
        self.mark & !DEATHS == block.bits()
    }
}

/// A mark of this node, and those of others who have died, as long as the lock is held.
#[derive(Debug)]
pub(super) struct Marked {
    table: GlobalAddr,
    mark: usize,
    left: Vec<Left>,
}

impl Marks {
    fn known(&self) -> MutexGuard<'_, BTreeMap<NodeId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn owner(node: NodeId, life: u32) -> u64 {
    (node.0 as u64) << 32 | life as u64
}

impl NodeHandle {
    /// This node's thread has the lock of a block with copies: what those have left who had it and have died. The last one comes first.
    pub(super) fn marks_of_dead(&mut self, block: GlobalAddr) -> Result<Vec<Left>, Error> {
        let memory = block.home();
        let inner = Arc::clone(&self.inner);
        let (epoch, life) = (u64::from(inner.epoch()) + 1, inner.life_of(memory).unwrap_or(0));
        let known = |inner: &Inner| {
            let mut all = inner.marks.known();
            let known = all.entry(memory).or_default();
            if known.life != life {
                *known = Known { life, ..Known::default() };
            }
            (known.looked_in == epoch).then(|| {
                let of_block = known.left.iter().filter(|left| left.is_of(block));
                of_block.copied().collect::<Vec<_>>()
            })
        };
        let left = match known(&inner) {
            Some(left) => left,
            None => {
                let left = self.look_for_marks(memory)?;
                let mut all = inner.marks.known();
                let known = all.entry(memory).or_default();
                (known.looked_in, known.left) = (epoch, left);
                known.left.iter().filter(|left| left.is_of(block)).copied().collect()
            }
        };
        // Somebody may have been told of it before, and have released the lock.
        let mut still = Vec::with_capacity(left.len());
        for left in left {
            if self.read_word(left.at)? == left.mark {
                still.push(left);
            }
        }
        still.sort_unstable_by_key(|left| Reverse(left.mark & DEATHS));
        Ok(still)
    }

    /// Says that this node has the lock of a block to write, in which those have died.
    pub(super) fn mark(&mut self, block: GlobalAddr, left: Vec<Left>) -> Result<Marked, Error> {
        let memory = block.home();
        let inner = Arc::clone(&self.inner);
        let free = |inner: &Inner| {
            let mut all = inner.marks.known();
            let (table, free) = all.get_mut(&memory)?.own.as_mut()?;
            Some((*table, free.pop()))
        };
        let (table, mark) = match free(&inner) {
            Some(own) => own,
            None => {
                let table = self.own_table(memory)?;
                let mut all = inner.marks.known();
                // Another thread may have got one meanwhile: then this one stays without marks until its owner has died.
                all.entry(memory).or_default().own.get_or_insert_with(|| (table, (0..MARKS).collect()));
                drop(all);
                free(&inner).expect("there is one now")
            }
        };
        let mark = mark.ok_or(Error::TooManyLocks { most: MARKS })?;
        let deaths = left.first().map_or(0, |last| ((last.mark & DEATHS) + 1).min(DEATHS));
        let marked = Marked { table, mark, left };
        if let Err(why) = self.write_word(place(table, mark), block.bits() | deaths) {
            marked.give_back(&inner);
            return Err(why);
        }
        Ok(marked)
    }

    /// The marks in tables of nodes that have died.
    fn look_for_marks(&mut self, memory: NodeId) -> Result<Vec<Left>, Error> {
        let mut left = Vec::new();
        self.each_table(memory, |handle, table, words| {
            if !handle.is_life(words[1]) {
                let node = NodeId((words[1] >> 32) as u16);
                let marks = words[HEAD..].iter().enumerate().filter(|(_, mark)| **mark != 0);
                left.extend(marks.map(|(at, mark)| Left { node, mark: *mark, at: place(table, at) }));
            }
            Ok(false)
        })?;
        Ok(left)
    }

    /// A table for this node: one of a life that is over and has left no mark, or a new one.
    fn own_table(&mut self, memory: NodeId) -> Result<GlobalAddr, Error> {
        let me = owner(self.node, self.inner.joined().map_or(0, |node| node.incarnation().0));
        let mut found = None;
        self.each_table(memory, |handle, table, words| {
            if handle.is_life(words[1]) || words[HEAD..].iter().any(|block| *block != 0) {
                return Ok(false);
            }
            let of_dead = words[1];
            let is_ours = handle.update(table + 8, 8, |word| {
                let is_so = word.word(0) == of_dead;
                if is_so {
                    word.set_word(0, me);
                }
                is_so
            })?;
            found = is_ours.then_some(table);
            Ok(is_ours)
        })?;
        if let Some(table) = found {
            return Ok(table);
        }
        let table = self.alloc(TABLE_BYTES, memory, Discipline::Coherent)?;
        self.write_word(table + 8, me)?;
        let root = GlobalAddr::new(memory, ROOT);
        loop {
            let first = self.read_word(root)?;
            self.write_word(table, first)?;
            let is_first = self.update(root, 8, |word| {
                let is_so = word.word(0) == first;
                if is_so {
                    word.set_word(0, table.bits());
                }
                is_so
            })?;
            if is_first {
                return Ok(table);
            }
        }
    }

    /// Looks at one table after the other, until it says that this is enough.
    fn each_table(
        &mut self,
        memory: NodeId,
        mut look: impl FnMut(&mut Self, GlobalAddr, &[u64; HEAD + MARKS]) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut next = self.read_word(GlobalAddr::new(memory, ROOT))?;
        while next != 0 {
            let table = GlobalAddr::from_bits(next);
            let words: [u64; HEAD + MARKS] = self.read_value(table)?;
            if look(self, table, &words)? {
                break;
            }
            next = words[0];
        }
        Ok(())
    }

    /// True if that life of a node goes on, as far as this one knows.
    fn is_life(&self, of: u64) -> bool {
        let Some(node) = self.inner.joined() else { return false };
        let incarnations = &node.view().incarnations;
        let alive = incarnations.get((of >> 32) as usize).copied().flatten();
        alive.is_some_and(|incarnation| incarnation.0 == of as u32)
    }
}

/// Where a mark is.
fn place(table: GlobalAddr, mark: usize) -> GlobalAddr {
    table + 8 * (HEAD + mark) as u64
}

impl Marked {
    /// The lock is about to be released. What is not written is of a node that is gone, or of memory that is.
    pub(super) fn take_away(self, inner: &Arc<Inner>, node: NodeId) {
        let mut handle = Rack { inner: Arc::clone(inner) }.node(node);
        for left in &self.left {
            let _ = handle.write_word(left.at, 0);
        }
        let _ = handle.write_word(place(self.table, self.mark), 0);
        self.give_back(inner);
    }

    fn give_back(&self, inner: &Inner) {
        let mut all = inner.marks.known();
        let own = all.get_mut(&self.table.home()).and_then(|known| known.own.as_mut());
        // The memory may have begun anew, and this node have another table there.
        if let Some((_, free)) = own.filter(|(table, _)| *table == self.table) {
            free.push(self.mark);
        }
    }
}
