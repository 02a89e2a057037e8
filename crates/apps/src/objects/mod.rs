//! A read-mostly store of objects, as FaRM's: a hash index whose buckets are read whole, one-sidedly.
//!
//! Runs wherever its caller runs; the buckets lie in the memories of all nodes, and no thread there takes part in a lookup. A key
//! is hashed to a bucket, and a bucket is one object: looking a key up is one read of a whole object. How objects are kept, and
//! what makes a read whole, is the layout's business ([`Layout`]): [`Sabres`] are the rack's own objects; others are in the lab.
//!
//! | file | holds |
//! | --- | --- |
//! | `layout.rs` | [`Layout`] and [`Versioned`]: what the store needs of objects |
//! | `sabres.rs` | [`Sabres`]: objects as the rack has them |
//! | `bucket.rs` | a bucket's bytes |
//! | `chain.rs` | a bucket with the further ones behind it, and how both change |
//! | `spare.rs` | further buckets: who gets which |
//! | `operations.rs` | what can be done with a key |
//! | `error.rs` | what can go wrong |
//!
//! # Why operations are linearizable
//! Where a bucket is full it goes on in further ones, of the same home. A further bucket never changes while it is in a chain: whoever changes a key in one writes
//! a fresh one beside it. So every change is one conditional write of the chain's first bucket, "if its version is still the one that I have read",
//! and takes effect with that. A lookup takes effect when it reads the first bucket: each further bucket has a tag, which differs each time that
//! it is given out, and the one before it says which tag it must have; a reader that finds another one begins again.
//!
//! A writer that dies before its conditional write has changed nothing, and some further buckets are given to nobody again.
//!
//! ```
//! use apps::objects::{ObjectStoreConfig, ObjectStore, Sabres};
//! use rackmem::{NodeId, Rack};
//!
//! let rack = Rack::embedded(rackmem::Config { nodes: 2, memory: 8 << 20, ..rackmem::Config::default() })?;
//! let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
//! let mut store = ObjectStore::<Sabres>::create(&mut here, &ObjectStoreConfig { expected_keys: 100, ..ObjectStoreConfig::default() })?;
//! store.put(&mut here, b"visits", &[41])?;
//!
//! let (mut same, mut value) = (ObjectStore::<Sabres>::open(&mut there, store.root())?, Vec::new());
//! same.update(&mut there, b"visits", &mut value, |count| count[0] += 1)?;
//! assert!(store.get(&mut here, b"visits", &mut value)? && value == [42]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bucket;
mod chain;
mod error;
mod layout;
mod operations;
mod sabres;
mod spare;

use std::sync::Arc;

use rackmem::{Discipline, GlobalAddr, NodeHandle, NodeId};

use self::bucket::Form;
use self::spare::Spare;
use crate::kv::hash::KeyHash;

pub use self::error::Error;
pub use self::layout::{Layout, Versioned};
pub use self::sabres::Sabres;

/// What a store is created with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectStoreConfig {
    /// How many keys the buckets are made for. There is capacity for some more in further buckets.
    pub expected_keys: u64,
    /// Bytes of the longest key.
    pub key_bytes: usize,
    /// Bytes of the longest value.
    pub value_bytes: usize,
    /// Keys that a bucket has capacity for.
    pub slots: usize,
    /// Stirred into the hash.
    pub salt: u64,
}

impl Default for ObjectStoreConfig {
    fn default() -> Self {
        Self { expected_keys: 1 << 16, key_bytes: 16, value_bytes: 128, slots: 4, salt: 0 }
    }
}

/// Of so many slots, as many are taken by the keys that a store is made for: fuller buckets would overflow too often.
const FULL: (u64, u64) = (3, 5);
/// One further bucket for so many.
const SPARE: u64 = 4;
/// And these.
const LEAST_SPARE: u64 = 16 + spare::RESERVE;

const MAGIC: u64 = 0x6f62_6a65_6374_7321;
/// Words of the root in front of the addresses of each node.
const WORDS: u64 = 8;

impl ObjectStoreConfig {
    /// Bytes of a bucket.
    pub fn bucket_bytes(&self) -> usize {
        Form::of(self).bytes()
    }

    /// Buckets on each of so many nodes, and further ones.
    fn on_each(&self, nodes: usize) -> (u64, u64) {
        let slots = self.slots as u64 * FULL.0;
        let each = (self.expected_keys * FULL.1).div_ceil(slots).div_ceil(nodes as u64).max(1);
        (each, each / SPARE + LEAST_SPARE)
    }

    /// Objects that each of so many nodes has, of [`ObjectStoreConfig::bucket_bytes`] each.
    pub fn objects_on_each(&self, nodes: usize) -> u64 {
        let (each, spare) = self.on_each(nodes);
        each + spare
    }

    fn check(&self) -> Result<(), Error> {
        let longest = rackmem::ByteObjects::LONGEST;
        let possible = (1..=usize::from(u16::MAX) - 1).contains(&self.key_bytes)
            && self.value_bytes < 1 << 20
            && (1..=4096).contains(&self.slots)
            && self.bucket_bytes() <= longest;
        if possible { Ok(()) } else { Err(Error::BadBuckets { most: longest }) }
    }
}

/// One node's part of a store.
struct Part<L> {
    /// Buckets, and behind them the further ones.
    buckets: L,
    spare: Spare,
}

/// A handle of a store. Cheap to clone; each thread has its own, and a `NodeHandle`.
pub struct ObjectStore<L> {
    root: GlobalAddr,
    salt: u64,
    form: Form,
    /// Buckets on each node that are not further ones.
    each: u64,
    parts: Arc<[Part<L>]>,
    /// What was read last, and what the layout needs to read it.
    bucket: Vec<u8>,
    raw: Vec<u8>,
}

impl<L> Clone for ObjectStore<L> {
    fn clone(&self) -> Self {
        let Self { root, salt, form, each, .. } = *self;
        let (parts, bucket) = (Arc::clone(&self.parts), vec![0; form.bytes()]);
        Self { root, salt, form, each, parts, bucket, raw: Vec::new() }
    }
}

impl<L: Versioned> ObjectStore<L> {
    /// A new store, its buckets spread over all nodes.
    ///
    /// # Errors
    /// If such buckets cannot be, or the rack's memory fails, or is full.
    pub fn create(node: &mut NodeHandle, config: &ObjectStoreConfig) -> Result<Self, Error> {
        config.check()?;
        let nodes = node.nodes();
        let (each, spare) = config.on_each(nodes);
        let root = node.alloc((WORDS + 2 * nodes as u64) * 8, node.id(), Discipline::Coherent)?;
        for home in 0..nodes as u64 {
            let id = NodeId(u16::try_from(home).expect("at most 64 nodes"));
            let buckets = L::create(node, (each + spare) as usize, config.bucket_bytes(), id)?;
            let spares = Spare::create(node, spare, id)?;
            node.write_word(root + (WORDS + 2 * home) * 8, buckets.addr().bits())?;
            node.write_word(root + (WORDS + 2 * home + 1) * 8, spares.addr().bits())?;
        }
        let sizes = [config.slots, config.key_bytes, config.value_bytes].map(|size| size as u64);
        let words = [L::ID, sizes[0], sizes[1], sizes[2], each, config.salt];
        for (word, value) in (1..).zip(words) {
            node.write_word(root + word * 8, value)?;
        }
        node.write_word(root, MAGIC)?;
        Self::open(node, root)
    }

    /// The store whose root is there, which [`ObjectStore::root`] has named.
    ///
    /// # Errors
    /// [`Error::NotAStore`], also for one of another layout, or if the rack's memory fails.
    pub fn open(node: &mut NodeHandle, root: GlobalAddr) -> Result<Self, Error> {
        if node.read_word(root)? != MAGIC || node.read_word(root + 8)? != L::ID {
            return Err(Error::NotAStore { root });
        }
        let mut word = |at: u64| node.read_word(root + at * 8);
        let (slots, key, value) = (word(2)? as usize, word(3)? as usize, word(4)? as usize);
        let (each, salt) = (word(5)?, word(6)?);
        let form = Form::of(&ObjectStoreConfig {
            slots,
            key_bytes: key,
            value_bytes: value,
            ..ObjectStoreConfig::default()
        });
        let mut parts = Vec::new();
        for home in 0..node.nodes() as u64 {
            let at = WORDS + 2 * home;
            let buckets = GlobalAddr::from_bits(node.read_word(root + at * 8)?);
            let spare = GlobalAddr::from_bits(node.read_word(root + (at + 1) * 8)?);
            parts.push(Part {
                buckets: L::open(node, buckets, form.bytes())?,
                spare: Spare::open(node, spare)?,
            });
        }
        let bucket = vec![0; form.bytes()];
        Ok(Self { root, salt, form, each, parts: parts.into(), bucket, raw: Vec::new() })
    }

    /// The store's address, for [`ObjectStore::open`].
    pub fn root(&self) -> GlobalAddr {
        self.root
    }

    /// The node and the bucket of a key.
    #[inline]
    fn locate(&self, key: &[u8]) -> Result<(usize, usize), Error> {
        let most = self.form.key_bytes;
        if key.len() > most {
            return Err(Error::KeyTooLong { len: key.len(), most });
        }
        let at = KeyHash::of(key, self.salt).below(self.each * self.parts.len() as u64) as usize;
        Ok((at % self.parts.len(), at / self.parts.len()))
    }
}
