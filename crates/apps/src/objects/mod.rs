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
//! | `whole.rs` | what can be done with all of it: listing keys, taking it apart |
//!
//! # Why operations are linearizable
//! Where a bucket is full it goes on in further ones, of the same home. A further bucket never changes while it is in a chain: whoever changes a key in one writes
//! a fresh one beside it. So every change is one conditional write of the chain's first bucket, "if its version is still the one that I have read",
//! and takes effect with that. A lookup takes effect when it reads the first bucket: each further bucket has a tag, which differs each time that
//! it is given out, and the one before it says which tag it must have; a reader that finds another one begins again.
//!
//! A writer that dies before its conditional write has changed nothing, and some further buckets are given to nobody again. One that dies in
//! it has changed nothing, or all (`bucket.rs`).
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
mod layout;
mod operations;
mod sabres;
mod spare;
mod whole;

use std::sync::Arc;

use rackmem::{Discipline, GlobalAddr, NodeHandle, NodeId};

use self::bucket::Form;
use self::spare::Spare;
use crate::kv::hash::KeyHash;

pub use crate::kv::Error;

pub use self::layout::{Layout, Versioned};
pub use self::sabres::Sabres;
pub use self::whole::Entries;

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
    /// It lies on the first so many nodes, those that do not come and go. None: on all that the rack began with.
    pub homes: Option<u16>,
    /// Stirred into the hash.
    pub salt: u64,
}

impl Default for ObjectStoreConfig {
    fn default() -> Self {
        Self { expected_keys: 1 << 16, key_bytes: 16, value_bytes: 128, slots: 4, homes: None, salt: 0 }
    }
}

/// Of so many slots, as many are taken by the keys that a store is made for: fuller buckets would overflow too often.
const FULL: (u64, u64) = (3, 5);
/// One further bucket for so many.
const SPARE: u64 = 4;
/// And these.
const LEAST_SPARE: u64 = 16 + spare::RESERVE;

const MAGIC: u64 = 0x6f62_6a65_6374_7322;
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
        let each = self.expected_keys.saturating_mul(FULL.1).div_ceil(slots).div_ceil(nodes as u64).max(1);
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
            && (1..=bucket::MOST_SLOTS).contains(&self.slots)
            && self.bucket_bytes() <= longest;
        if possible { Ok(()) } else { Err(Error::BadBuckets { most: longest }) }
    }

    /// Further buckets on each of so many nodes have numbers.
    fn check_count(&self, homes: usize) -> Result<(), Error> {
        let (_, spare) = self.on_each(homes);
        let len = spare.saturating_mul(self.bucket_bytes() as u64);
        let too_large = Error::Memory(rackmem::Error::OutOfMemory { len, home: 0 });
        if spare < bucket::MOST_NUMBERS { Ok(()) } else { Err(too_large) }
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
    /// A new store, its buckets spread over its homes.
    ///
    /// # Errors
    /// If such buckets cannot be, or the rack's memory fails, or is full: then nothing of it stays allocated that can be freed.
    pub fn create(node: &mut NodeHandle, config: &ObjectStoreConfig) -> Result<Self, Error> {
        config.check()?;
        let homes = config.homes.map_or(node.nodes(), usize::from).clamp(1, node.nodes());
        config.check_count(homes)?;
        let (each, spare) = config.on_each(homes);
        let len = config.bucket_bytes();
        let root = node.alloc((WORDS + 2 * homes as u64) * 8, NodeId(0), Discipline::Coherent)?;
        let form = Form::of(config);
        let mut store = Self {
            root,
            salt: config.salt,
            form,
            each,
            parts: Arc::default(),
            bucket: vec![0; len],
            raw: Vec::new(),
        };
        let mut parts = Vec::new();
        let mut made = (0..homes as u16).map(NodeId).try_for_each(|home| {
            let buckets = L::create(node, (each + spare) as usize, len, home)?;
            match Spare::create(node, spare, home) {
                Ok(spare) => parts.push(Part { buckets, spare }),
                Err(why) => return buckets.free(node).map_err(Error::from).and(Err(why)),
            }
            Ok(())
        });
        store.parts = parts.into();
        made = made.and_then(|()| store.describe(node));
        if let Err(why) = made {
            // What is lost by now cannot be freed.
            let _ = store.destroy(node);
            return Err(why);
        }
        Ok(store)
    }

    /// Writes its root, for those who open it.
    fn describe(&self, node: &mut NodeHandle) -> Result<(), Error> {
        let sizes = [self.form.slots, self.form.key_bytes, self.form.value_bytes].map(|size| size as u64);
        let places = self.parts.iter().flat_map(|part| [part.buckets.addr(), part.spare.addr()]);
        let words = [L::ID, sizes[0], sizes[1], sizes[2], self.each, self.salt, self.parts.len() as u64];
        for (word, value) in (1..).zip(words.into_iter().chain(places.map(GlobalAddr::bits))) {
            node.write_word(self.root + word * 8, value)?;
        }
        node.write_word(self.root, MAGIC)?;
        // No more is in anybody's cache, which could die with its node.
        Ok(node.send_home(self.root, (WORDS + 2 * self.parts.len() as u64) * 8)?)
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
        let (each, salt, homes) = (word(5)?, word(6)?, word(7)?);
        if !(1..=bucket::MOST_SLOTS).contains(&slots) || homes > u64::from(u16::MAX) {
            return Err(Error::NotAStore { root });
        }
        let form = Form::of(&ObjectStoreConfig {
            slots,
            key_bytes: key,
            value_bytes: value,
            ..ObjectStoreConfig::default()
        });
        let mut parts = Vec::new();
        for home in 0..homes {
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

    /// What it was created with, or something that comes to the same.
    pub fn config(&self) -> ObjectStoreConfig {
        let Form { key_bytes, value_bytes, slots } = self.form;
        let homes = self.parts.len();
        ObjectStoreConfig {
            expected_keys: self.each * homes as u64 * slots as u64 * FULL.0 / FULL.1,
            key_bytes,
            value_bytes,
            slots,
            homes: Some(homes as u16),
            salt: self.salt,
        }
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
