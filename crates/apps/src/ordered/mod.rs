//! An ordered store in coherent memory: records by key, and scans over ranges of keys.
//!
//! A [`Tree`] leads from each key to its record, which lies in one block, with its length in front. Keys have 16 bytes. A record is read
//! and changed where it is, by one atomic look or change.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | the operations |
//! | `error.rs` | what can go wrong |
//!
//! # What must always hold
//! 1. What the tree leads to is a record of this store, and stays that: whoever was led there finds it, however late.
//! 2. A record says whether there is a value. A value that is put, changed or deleted becomes so in one step, in its record.
//!
//! So each operation on one key is linearizable. A [scan](OrderedStore::scan) finds each record as it is at some moment of the scan; all
//! of them together are not those of one moment. What is there all the time is found.
//!
//! # Not here
//! A deleted key keeps its record, for when it is put again: the memory is not given back.
//!
//! ```
//! use apps::ordered::{OrderedError, OrderedStore};
//! use rackmem::Memory;
//!
//! async fn ages<M: Memory>(mem: &mut M) -> Result<Vec<u128>, OrderedError> {
//!     let store = OrderedStore::create(mem, 16).await?;
//!     for (age, name) in [(40, "zoe"), (20, "ann"), (30, "bob")] {
//!         store.put(mem, age, name.as_bytes()).await?;
//!     }
//!     let mut found = Vec::new();
//!     store.scan(mem, 25, 10, |age, _name| found.push(age)).await?;
//!     Ok(found)
//! }
//! # use rackmem::{Config, NodeId, Rack, block_on};
//! # let rack = Rack::embedded(Config { nodes: 2, ..Config::default() })?;
//! # assert_eq!(block_on(ages(&mut rack.node(NodeId(0))))?, [30, 40]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;

use rackmem::{Discipline, GlobalAddr, Memory, NodeId, Window};
use random::mix;

pub use error::OrderedError;

use crate::tree::Tree;

/// In front of a record: 0, or 1 and the length of its value.
const HEAD: usize = 8;
/// A root: this, where the tree's root is, and the bytes of a record.
const MARK: u64 = u64::from_le_bytes(*b"ordered\x01");
const ROOT: u64 = 24;

/// A handle of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderedStore {
    tree: Tree,
    root: GlobalAddr,
    record_bytes: usize,
}

impl OrderedStore {
    /// The longest records in such blocks.
    pub const fn longest_record(block_bytes: usize) -> usize {
        block_bytes - HEAD
    }

    /// An empty store whose values have at most so many bytes. Its memory is spread over all nodes of the rack.
    ///
    /// # Errors
    /// [`OrderedError::NoBlock`], and if the rack's memory fails or is full.
    ///
    /// # Panics
    /// If blocks have fewer than 256 bytes.
    pub async fn create<M: Memory>(mem: &mut M, record_bytes: usize) -> Result<Self, OrderedError> {
        let most = Self::longest_record(mem.block_size().len());
        if record_bytes > most {
            return Err(OrderedError::NoBlock { record_bytes, most });
        }
        let tree = Tree::create(mem).await?;
        let root = mem.alloc(ROOT, mem.node(), Discipline::Coherent).await?;
        mem.update(root, ROOT as usize, |window| {
            window.set_word(8, tree.root().bits());
            window.set_word(16, record_bytes as u64);
            window.set_word(0, MARK);
        })
        .await?;
        Ok(Self { tree, root, record_bytes })
    }

    /// The one at an address.
    ///
    /// # Errors
    /// [`OrderedError::NotAStore`], and if the rack's memory fails.
    pub async fn open<M: Memory>(mem: &mut M, root: GlobalAddr) -> Result<Self, OrderedError> {
        let words = mem.inspect(root, ROOT as usize, |window| [0, 8, 16].map(|at| window.word(at))).await?;
        let most = Self::longest_record(mem.block_size().len());
        let [mark, tree, record_bytes] = words;
        match usize::try_from(record_bytes) {
            Ok(record_bytes) if mark == MARK && record_bytes <= most => {
                Ok(Self { tree: Tree::at(GlobalAddr::from_bits(tree)), root, record_bytes })
            }
            _ => Err(OrderedError::NotAStore { root }),
        }
    }

    /// Its address, for [`OrderedStore::open`].
    pub const fn root(&self) -> GlobalAddr {
        self.root
    }

    /// Replaces `into` by the value of a key. False, and nothing is there: it has none.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub async fn get<M: Memory>(
        &self,
        mem: &mut M,
        key: u128,
        into: &mut Vec<u8>,
    ) -> Result<bool, OrderedError> {
        into.clear();
        match self.tree.get(mem, key).await? {
            Some(record) => self.copy(mem, GlobalAddr::from_bits(record), into).await,
            None => Ok(false),
        }
    }

    /// Gives a key this value. True: it has had one.
    ///
    /// # Errors
    /// [`OrderedError::TooLong`], and if the rack's memory fails or is full.
    pub async fn put<M: Memory>(&self, mem: &mut M, key: u128, value: &[u8]) -> Result<bool, OrderedError> {
        let most = self.record_bytes;
        if value.len() > most {
            return Err(OrderedError::TooLong { len: value.len(), most });
        }
        if let Some(record) = self.tree.get(mem, key).await? {
            return self.set(mem, GlobalAddr::from_bits(record), value).await;
        }
        let home = mix(key as u64 ^ (key >> 64) as u64) % mem.nodes() as u64;
        let record = mem.alloc((HEAD + most) as u64, NodeId(home as u16), Discipline::Coherent).await?;
        self.set(mem, record, value).await?;
        while !self.tree.insert(mem, key, record.bits()).await? {
            // Somebody else has added the key meanwhile, and it is never taken away.
            if let Some(other) = self.tree.get(mem, key).await? {
                mem.free(record).await?;
                return self.set(mem, GlobalAddr::from_bits(other), value).await;
            }
        }
        Ok(false)
    }

    /// Takes the value of a key away. False: it has none.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub async fn delete<M: Memory>(&self, mem: &mut M, key: u128) -> Result<bool, OrderedError> {
        let Some(record) = self.tree.get(mem, key).await? else { return Ok(false) };
        let had = mem.update(GlobalAddr::from_bits(record), HEAD, |window| {
            let head = window.word(0);
            window.set_word(0, 0);
            head != 0
        });
        Ok(had.await?)
    }

    /// Writes over a part of a value, from byte `at` on: as much as it has there. False: there is none.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub async fn update_in_place<M: Memory>(
        &self,
        mem: &mut M,
        key: u128,
        at: usize,
        bytes: &[u8],
    ) -> Result<bool, OrderedError> {
        let Some(record) = self.tree.get(mem, key).await? else { return Ok(false) };
        let most = self.record_bytes;
        let write = |window: &Window<'_>| {
            let Some(len) = len_of(window, most) else { return false };
            if let Some(room) = len.checked_sub(at) {
                window.write(HEAD + at, &bytes[..bytes.len().min(room)]);
            }
            true
        };
        Ok(mem.update(GlobalAddr::from_bits(record), HEAD + most, write).await?)
    }

    /// Changes a value atomically. False, and nothing is called: there is none. `change` has the block alone meanwhile: it must be short,
    /// and use the rack's memory by no other ways.
    ///
    /// # Errors
    /// [`OrderedError::TooLong`], and the value is as it was; and if the rack's memory fails.
    pub async fn read_modify_write<M: Memory>(
        &self,
        mem: &mut M,
        key: u128,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bool, OrderedError> {
        let Some(record) = self.tree.get(mem, key).await? else { return Ok(false) };
        let most = self.record_bytes;
        let changed = mem.update(GlobalAddr::from_bits(record), HEAD + most, |window| {
            let Some(len) = len_of(window, most) else { return Ok(false) };
            let mut value = vec![0; len];
            window.read(HEAD, &mut value);
            change(&mut value);
            if value.len() > most {
                return Err(OrderedError::TooLong { len: value.len(), most });
            }
            set(window, &value);
            Ok(true)
        });
        changed.await?
    }

    /// Shows the values of the first `most` keys from `from` on that have some, in the order of the keys. How many were shown.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub async fn scan<M: Memory>(
        &self,
        mem: &mut M,
        from: u128,
        most: usize,
        mut each: impl FnMut(u128, &[u8]),
    ) -> Result<usize, OrderedError> {
        let (mut from, mut shown, mut value) = (from, 0, Vec::new());
        while shown < most {
            let wanted = most - shown;
            let found = self.tree.scan(mem, from, wanted, u128::MAX).await?;
            for (key, record) in &found {
                if self.copy(mem, GlobalAddr::from_bits(*record), &mut value).await? {
                    each(*key, &value);
                    shown += 1;
                }
            }
            // Keys without values were among them.
            match found.last().and_then(|(last, _)| last.checked_add(1)) {
                Some(next) if found.len() == wanted => from = next,
                _ => break,
            }
        }
        Ok(shown)
    }

    /// The value in a record, if there is one.
    async fn copy<M: Memory>(
        &self,
        mem: &mut M,
        record: GlobalAddr,
        into: &mut Vec<u8>,
    ) -> Result<bool, OrderedError> {
        let most = self.record_bytes;
        let copy = |window: &Window<'_>| {
            let len = len_of(window, most);
            into.resize(len.unwrap_or_default(), 0);
            window.read(HEAD, into);
            len.is_some()
        };
        Ok(mem.inspect(record, HEAD + most, copy).await?)
    }

    /// Sets the value in a record. True: there was one.
    async fn set<M: Memory>(
        &self,
        mem: &mut M,
        record: GlobalAddr,
        value: &[u8],
    ) -> Result<bool, OrderedError> {
        let most = self.record_bytes;
        let had = mem.update(record, HEAD + most, |window| {
            let had = len_of(window, most).is_some();
            set(window, value);
            had
        });
        Ok(had.await?)
    }
}

/// The length of the value in a record, if there is one. What is looked at may be changing.
fn len_of(window: &Window<'_>, most: usize) -> Option<usize> {
    let len = usize::try_from(window.word(0).checked_sub(1)?).ok()?;
    Some(len.min(most))
}

fn set(window: &Window<'_>, value: &[u8]) {
    window.set_word(0, value.len() as u64 + 1);
    window.write(HEAD, value);
}
