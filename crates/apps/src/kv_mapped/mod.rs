//! A key-value store in mapped memory: what a program can build of plain atomics that all nodes of a rack share.
//!
//! A table in one coherent allocation, which every node maps. A lookup is loads through pointers; a change takes the
//! version of the key's slot by compare-exchange. Mapped memory has the language's memory model across nodes
//! (`docs/mapped.md`), so nothing here but [`MappedStore::create`] and [`MappedStore::open`] knows that there are
//! nodes. It runs where memory can be mapped: in processes that have joined a rack.
//!
//! | file | holds |
//! | --- | --- |
//! | `layout.rs` | where what is |
//! | `operations.rs` | the index, and what can be done with a key |
//! | `slot.rs` | a slot: its key, its value, and the version in front of them |
//! | `error.rs` | why there is no store |
//!
//! # Why operations are linearizable per key
//! A key is searched for group by group, from where its hash points to the first group with a free slot. Who adds a
//! key claims that slot: one compare-exchange puts the key's tag beside those of the whole group, so none of them has
//! changed since they were looked at. A claimed slot belongs to the first of all keys with its tag that is written
//! there, and to none other ever; a writer whose key was not first goes on. So no key has two slots, and slots in
//! front of a key's are never free again.
//!
//! A slot is written by one thread at a time. Its version is odd meanwhile, and becomes even with the end of it.
//!
//! | operation | takes effect when |
//! | --- | --- |
//! | anything that locks the key's slot | the version becomes even |
//! | `get` of a key that has a slot | the version is read, even, and does not change before all is copied |
//! | what finds no slot of the key | a claimed slot is read that has no key, or the group with a free slot |
//!
//! # What is lost
//! A deleted key keeps its slot: the store has room for so many different keys.
//!
//! A writer that dies or is suspended in the middle of a value leaves it half-written. Who needs that key waits for
//! 5 s, and then gets [`Error::Abandoned`], for ever if the writer is dead. Other keys go on. If the rack lost a page
//! with the writer's node, or all of the table with the node that created it, an access ends the process, as it does
//! in all mapped memory.
//!
//! ```no_run
//! use apps::kv_mapped::{MappedStore, MappedStoreConfig};
//! use rackmem::{NodeId, Rack, RackFile};
//!
//! let rack = Rack::join(&RackFile::read("rack.toml")?, NodeId(1))?;
//! let store = MappedStore::create(&rack, &mut rack.here(), &MappedStoreConfig::default())?;
//! store.put(b"visits", &[41])?;
//!
//! // In another process of the rack, which was told the address of the root.
//! let same = MappedStore::open(&rack, &mut rack.here(), store.root())?;
//! let mut value = Vec::new();
//! same.read_modify_write(b"visits", &mut value, |count| count[0] += 1)?;
//! assert!(store.get(b"visits", &mut value)? && value == [42]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod layout;
mod operations;
mod slot;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rackmem::{Discipline, GlobalAddr, Mapping, NodeHandle, NodeId, Rack};

use self::layout::{Layout, MAGIC, Places};

pub use self::error::OpenError;
use crate::kv::Error;

/// What a store is created with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappedStoreConfig {
    /// How many keys there may ever be, deleted ones included.
    pub expected_keys: u64,
    /// Bytes of the longest key, up to 4 MiB.
    pub key_bytes: usize,
    /// Bytes of the longest value. Every value takes so many.
    pub value_bytes: usize,
    /// Stirred into the hash.
    pub salt: u64,
}

impl Default for MappedStoreConfig {
    fn default() -> Self {
        Self { expected_keys: 1 << 16, key_bytes: 16, value_bytes: 128, salt: 0 }
    }
}

impl MappedStoreConfig {
    /// Bytes that such a store takes, all of them in the memory of one node.
    pub fn bytes(&self) -> u64 {
        Layout::of(self).bytes()
    }
}

/// What can be mapped of a node's memory.
const MOST: u64 = 512 << 30;
/// How long a writer may take.
const LONGEST_WRITE: Duration = Duration::from_secs(5);

/// A store, open in this process. Its threads share it.
pub struct MappedStore<M = Mapping> {
    root: GlobalAddr,
    layout: Layout,
    places: Places,
    /// Which one writes.
    node: NodeId,
    longest_write: Duration,
    memory: M,
}

impl MappedStore {
    /// A new store, in the memory of the handle's node.
    ///
    /// # Errors
    /// [`OpenError::Map`] where memory cannot be mapped; [`Error::Memory`] if the node has no room, or fails;
    /// [`Error::KeyTooLong`] if keys are to be longer than 4 MiB.
    pub fn create(
        rack: &Rack,
        handle: &mut NodeHandle,
        config: &MappedStoreConfig,
    ) -> Result<Self, OpenError> {
        let (layout, most) = (Layout::of(config), slot::LONGEST_KEY);
        if config.key_bytes > most {
            return Err(Error::KeyTooLong { len: config.key_bytes, most }.into());
        }
        let len = layout.bytes();
        if len > MOST {
            return Err(rackmem::Error::BadSize { len, most: MOST }.into());
        }
        let root = handle.alloc(len, handle.id(), Discipline::Coherent)?;
        let words = [layout.slots, layout.key_bytes as u64, layout.value_bytes as u64, layout.salt];
        // All other memory is zero, as it has to be.
        let mut words = (1..).zip(words).chain([(0, MAGIC)]);
        let written = words.try_for_each(|(word, value)| handle.write_word(root + word * 8, value));
        let opened = written.map_err(OpenError::from).and_then(|()| Self::open(rack, handle, root));
        if opened.is_err() {
            // Why it is not there says more than why it cannot be freed.
            let _ = handle.free(root);
        }
        opened
    }

    /// The store whose root is there, which [`MappedStore::root`] has named. A process has it open once at a time.
    ///
    /// # Errors
    /// [`Error::NotAStore`]; [`OpenError::Map`] where memory cannot be mapped, or where it is open in this process;
    /// [`Error::Memory`] if the rack's memory fails.
    pub fn open(rack: &Rack, handle: &mut NodeHandle, root: GlobalAddr) -> Result<Self, OpenError> {
        if handle.read_word(root)? != MAGIC {
            return Err(Error::NotAStore { root }.into());
        }
        let mut word = |at: u64| handle.read_word(root + at * 8);
        let (slots, key_bytes) = (word(1)?, word(2)? as usize);
        let (value_bytes, salt) = (word(3)? as usize, word(4)?);
        let layout = Layout { slots, key_bytes, value_bytes, salt };
        let memory = rack.map(root, layout.bytes() as usize).map_err(OpenError::Map)?;
        Ok(Self::over(memory, root, layout, handle.id()))
    }

    /// Gives the store's memory back. Whoever still has it open ends with its next access.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub fn destroy(self, handle: &mut NodeHandle) -> Result<(), Error> {
        handle.write_word(self.root, 0)?;
        let root = self.root;
        drop(self);
        Ok(handle.free(root)?)
    }
}

impl<M: AsRef<[AtomicU64]>> MappedStore<M> {
    fn over(memory: M, root: GlobalAddr, layout: Layout, node: NodeId) -> Self {
        Self { root, layout, node, places: layout.places(), longest_write: LONGEST_WRITE, memory }
    }

    /// The store's address, for [`MappedStore::open`].
    pub const fn root(&self) -> GlobalAddr {
        self.root
    }
}
