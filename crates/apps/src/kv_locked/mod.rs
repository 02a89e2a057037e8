//! A key-value store whose buckets are regions behind locks that carry them: the second engine beside [`kv`](crate::kv).
//!
//! A key is hashed to a bucket, and a bucket is one region with its records in it ([`LockedBytes`]). Whoever works on a key has
//! the lock of its bucket, and with it all that there is to look at, by one message at most. Where records do not fit
//! their bucket, it goes on in further ones; the first one's lock is held for all of them.
//!
//! [`kv`](crate::kv) needs no locks and reads small records from their blocks; this one moves a whole bucket with each change of its
//! holder. docs/locks.md says which is faster when.
//!
//! # Why operations are linearizable
//! Each takes effect while it holds the lock of the key's first bucket: to read together with other readers, to change
//! anything alone. No operation holds more than that lock and one further bucket of the same chain, which nobody takes
//! without the first, so nobody waits in a circle.
//!
//! ```
//! use apps::kv_locked::{LockedStoreConfig, LockedStore};
//! use rackmem::{NodeId, Rack};
//!
//! let rack = Rack::embedded(rackmem::Config { nodes: 2, memory: 8 << 20, ..rackmem::Config::default() })?;
//! let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
//! let store = LockedStore::create(&mut here, &LockedStoreConfig { expected_keys: 100, ..LockedStoreConfig::default() })?;
//! store.put(&mut here, b"visits", &[41])?;
//!
//! let (same, mut value) = (LockedStore::open(&mut there, store.root())?, Vec::new());
//! same.read_modify_write(&mut there, b"visits", &mut value, |count| count[0] += 1)?;
//! assert!(store.get(&mut here, b"visits", &mut value)? && value == [42]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bucket;
mod listing;
mod operations;

use std::sync::Arc;

use rackmem::{Discipline, GlobalAddr, LockedBytes, NodeHandle, NodeId};

pub use listing::Record;

use crate::kv::Error;
use crate::kv::hash::KeyHash;

/// What a store is created with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockedStoreConfig {
    /// How many keys the buckets are made for. With more keys the store stays correct; buckets then go on in further ones.
    pub expected_keys: u64,
    /// Bytes of a key and its value together, about.
    pub record_bytes: usize,
    /// Stirred into the hash.
    pub salt: u64,
}

impl Default for LockedStoreConfig {
    fn default() -> Self {
        Self { expected_keys: 1 << 16, record_bytes: 128, salt: 0 }
    }
}

/// The longest key.
const LONGEST_KEY: usize = 1024;
/// The largest bucket: what every rack of processes carries by default.
const LARGEST_BUCKET: usize = 64 << 10;
/// The smallest: beside this the lock itself costs more.
const SMALLEST_BUCKET: usize = 256;
/// Records that a bucket has capacity for, and how many keys there are for four of them. So that few buckets are too full, although
/// keys are spread as they come.
const RECORDS: usize = 3;
const KEYS_FOR_FOUR_BUCKETS: u64 = 5;

const MAGIC: u64 = 0x6b76_6c6f_636b_6564;

impl LockedStoreConfig {
    /// The most that a key and its value take together in any store.
    pub const LONGEST_RECORD: usize = LARGEST_BUCKET - bucket::HEAD - 8;

    /// Bytes of each bucket of such a store.
    pub fn bucket_bytes(&self) -> usize {
        let records = RECORDS * bucket::record_bytes(self.record_bytes, 0);
        // Copies are kept in pieces of powers of two.
        (bucket::HEAD + records).next_power_of_two().clamp(SMALLEST_BUCKET, LARGEST_BUCKET)
    }

    /// How many buckets it has, on a rack of so many nodes.
    pub fn buckets(&self, nodes: usize) -> u64 {
        let buckets = (self.expected_keys * 4).div_ceil(KEYS_FOR_FOUR_BUCKETS).max(1);
        buckets.next_multiple_of(nodes as u64)
    }
}

/// A handle of a store. Cheap to clone; the threads of a process share one, each with a `NodeHandle` of its own.
#[derive(Clone)]
pub struct LockedStore {
    root: GlobalAddr,
    salt: u64,
    bucket_bytes: usize,
    buckets: Arc<[LockedBytes]>,
}

/// The words of the root.
const WORDS: u64 = 4;

impl LockedStore {
    /// A new store, its buckets spread over all nodes.
    ///
    /// # Errors
    /// If the rack's memory fails, or is full. What was allocated until then is given back.
    pub fn create(handle: &mut NodeHandle, config: &LockedStoreConfig) -> Result<Self, Error> {
        let mut allocated = Vec::new();
        let root = Self::allocate(handle, config, &mut allocated);
        root.and_then(|root| Self::open(handle, root)).inspect_err(|_| {
            for addr in allocated {
                // Nobody has seen it. If it cannot be given back, its node is gone.
                let _ = handle.free(addr);
            }
        })
    }

    /// Makes the root and the buckets.
    fn allocate(
        handle: &mut NodeHandle,
        config: &LockedStoreConfig,
        allocated: &mut Vec<GlobalAddr>,
    ) -> Result<GlobalAddr, Error> {
        let nodes = handle.nodes() as u64;
        let (len, count) = (config.bucket_bytes(), config.buckets(handle.nodes()));
        let each = count / nodes;
        let root = handle.alloc((WORDS + nodes) * 8, handle.id(), Discipline::Coherent)?;
        allocated.push(root);
        for node in 0..nodes {
            let home = NodeId(u16::try_from(node).expect("at most 64 nodes"));
            let piece = handle.alloc(each * len as u64, home, Discipline::Locked)?;
            allocated.push(piece);
            for bucket in 0..each {
                let lock = handle.rwlock(piece + bucket * len as u64, len)?;
                bucket::clear(&mut lock.write(handle)?);
            }
            handle.write_word(root + (WORDS + node) * 8, piece.bits())?;
        }
        for (word, value) in (1..).zip([len as u64, each, config.salt]) {
            handle.write_word(root + word * 8, value)?;
        }
        handle.write_word(root, MAGIC)?;
        Ok(root)
    }

    /// The store whose root is there, which [`LockedStore::root`] has named.
    ///
    /// # Errors
    /// [`Error::NotAStore`], or if the rack's memory fails.
    pub fn open(handle: &mut NodeHandle, root: GlobalAddr) -> Result<Self, Error> {
        if handle.read_word(root)? != MAGIC {
            return Err(Error::NotAStore { root });
        }
        let bucket_bytes = handle.read_word(root + 8)? as usize;
        let (each, salt) = (handle.read_word(root + 16)?, handle.read_word(root + 24)?);
        let mut pieces = Vec::new();
        for node in 0..handle.nodes() as u64 {
            pieces.push(GlobalAddr::from_bits(handle.read_word(root + (WORDS + node) * 8)?));
        }
        let buckets = (0..each)
            .flat_map(|bucket| pieces.iter().map(move |piece| *piece + bucket * bucket_bytes as u64))
            .map(|addr| handle.rwlock(addr, bucket_bytes))
            .collect::<Result<_, _>>()?;
        Ok(Self { root, salt, bucket_bytes, buckets })
    }

    /// The store's address, for [`LockedStore::open`].
    pub fn root(&self) -> GlobalAddr {
        self.root
    }

    /// The longest key: 1024 bytes, and not more than a bucket holds.
    pub fn longest_key(&self) -> usize {
        LONGEST_KEY.min(self.most_record())
    }

    /// What makes another store like this one: with buckets of this size, and on a rack of as many nodes as many of them.
    pub fn config(&self) -> LockedStoreConfig {
        let each = (self.bucket_bytes - bucket::HEAD) / RECORDS / 8 * 8;
        LockedStoreConfig {
            expected_keys: self.buckets.len() as u64 * KEYS_FOR_FOUR_BUCKETS / 4,
            record_bytes: each - bucket::record_bytes(0, 0),
            salt: self.salt,
        }
    }

    /// The most that a key and its value take together.
    pub(crate) fn most_record(&self) -> usize {
        self.bucket_bytes - bucket::HEAD - bucket::record_bytes(0, 0)
    }

    /// The bucket of a key.
    #[inline]
    fn bucket(&self, key: &[u8]) -> Result<&LockedBytes, Error> {
        let most = self.longest_key();
        if key.len() > most {
            return Err(Error::KeyTooLong { len: key.len(), most });
        }
        let at = KeyHash::of(key, self.salt).below(self.buckets.len() as u64);
        Ok(&self.buckets[at as usize])
    }
}
