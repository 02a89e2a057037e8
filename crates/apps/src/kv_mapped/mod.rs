//! A key-value store in mapped memory: what a program can build of plain atomics that all nodes of a rack share.
//!
//! A table in one coherent allocation, which every node maps. A lookup is loads through pointers; a change takes the version of the
//! key's slot by compare-exchange. Mapped memory has the language's memory model across nodes (`docs/mapped.md`), so nothing here but
//! [`MappedStore::create`] and [`MappedStore::open`] knows that there are nodes. It runs where memory can be mapped: in processes
//! that have joined a rack.
//!
//! | file | holds |
//! | --- | --- |
//! | `layout.rs` | where what is |
//! | `operations.rs` | the index, and what can be done with a key |
//! | `slot.rs` | a slot: its key, its value, and the version in front of them |
//! | `error.rs` | what can go wrong |
//!
//! # Why operations are linearizable per key
//! An entry of the index never changes once it is set, nor does the key in its slot. Who adds a key goes along the entries from where
//! its hash points, fills a slot that nobody else knows of, and sets the first free entry by compare-exchange. Whoever adds the same
//! key tries the same entry; one wins, and the other finds the key there. So no key has two slots. A slot is written by one thread at
//! a time, and its version is odd meanwhile.
//!
//! | operation | takes effect when |
//! | --- | --- |
//! | a change of a key that was never there | its entry is set |
//! | any other change, and one that finds a deleted key | the version becomes even |
//! | `get` | the version is read the first time of two between which it stays the same, and even |
//! | anything that finds no entry | the free entry is read |
//!
//! # What is lost
//! A deleted key keeps its slot: the store has room for so many different keys. Each node that adds keys may leave some slots unused,
//! for which there is room.
//!
//! A writer that dies or is suspended in the middle of a value leaves it half-written. Who needs that key waits for 5 s, and then gets
//! [`Error::Abandoned`], for ever if the writer is dead. Other keys go on. If the rack lost a page with the writer's node, or all of
//! the table with the node that created it, an access ends the process, as it does in all mapped memory.
//!
//! ```no_run
//! use apps::kv_mapped::{MappedStore, MappedStoreConfig};
//! use rackmem::{NodeId, Rack, RackFile};
//!
//! let rack = Rack::join(&RackFile::read("rack.toml")?, NodeId(1))?;
//! let store = MappedStore::create(&rack, &mut rack.here(), &MappedStoreConfig::default())?;
//! store.put(b"visits", &[41])?;
//!
//! // Any other process of the rack needs the address of its root, and has the store open once.
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

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rackmem::{Discipline, GlobalAddr, Mapping, NodeHandle, NodeId, Rack};

use self::layout::{Layout, MAGIC};

pub use self::error::Error;

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
    /// Bytes that such a store takes, all of them in the memory of one node, on a rack of so many nodes.
    pub fn bytes(&self, nodes: usize) -> u64 {
        Layout::of(self, nodes).bytes()
    }
}

/// What entries of the index can say where it is: 2^32 lines.
const MOST: u64 = 64 << 32;
/// How long a writer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store, open in this process. Its threads share it.
pub struct MappedStore<M = Mapping> {
    root: GlobalAddr,
    layout: Layout,
    /// Which one writes.
    node: NodeId,
    patience: Duration,
    /// Slots that were given out to this process and that are in no entry.
    spare: Mutex<Vec<u64>>,
    memory: M,
}

impl MappedStore {
    /// A new store, in the memory of the handle's node.
    ///
    /// # Errors
    /// [`Error::Map`] where memory cannot be mapped; [`Error::Memory`] if the node has no room, or fails; [`Error::KeyTooLong`] if
    /// keys are to be longer than 4 MiB.
    pub fn create(rack: &Rack, handle: &mut NodeHandle, config: &MappedStoreConfig) -> Result<Self, Error> {
        let (layout, most) = (Layout::of(config, handle.nodes()), slot::LONGEST_KEY);
        if config.key_bytes > most {
            return Err(Error::KeyTooLong { len: config.key_bytes, most });
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
        let opened = written.map_err(Error::from).and_then(|()| Self::open(rack, handle, root));
        if opened.is_err() {
            // Why it is not there says more than why it cannot be freed.
            let _ = handle.free(root);
        }
        opened
    }

    /// The store whose root is there, which [`MappedStore::root`] has named. A process has it open once at a time.
    ///
    /// # Errors
    /// [`Error::NotAStore`]; [`Error::Map`] where memory cannot be mapped, or where it is open in this process; [`Error::Memory`] if
    /// the rack's memory fails.
    pub fn open(rack: &Rack, handle: &mut NodeHandle, root: GlobalAddr) -> Result<Self, Error> {
        if handle.read_word(root)? != MAGIC {
            return Err(Error::NotAStore { root });
        }
        let mut word = |at: u64| handle.read_word(root + at * 8);
        let (slots, key_bytes) = (word(1)?, word(2)? as usize);
        let (value_bytes, salt) = (word(3)? as usize, word(4)?);
        let layout = Layout { slots, key_bytes, value_bytes, salt };
        let memory = rack.map(root, layout.bytes() as usize)?;
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
        Self { root, layout, node, patience: PATIENCE, spare: Mutex::default(), memory }
    }

    /// The store's address, for [`MappedStore::open`].
    pub const fn root(&self) -> GlobalAddr {
        self.root
    }
}
