//! A distributed key-value store on coherent memory (Concordia, section 7.3).
//!
//! The store is a distributed array of buckets; a key is hashed to a bucket, and the bucket says where the
//! key's record is. The paper's store puts locks of the memory system around this. This one needs none: every
//! step is one atomic look at, or one atomic change of, a part of one block ([`Memory::inspect`],
//! [`Memory::update`]), so no operation ever waits for another one to finish, and a worker that stops in the
//! middle of an operation holds up nobody.
//!
//! # In memory
//! - The *root* holds the geometry, and never changes after [`KvStore::create`]; every handle has a copy.
//! - *Buckets* map a key to its *entry*: a record's address and id (the `bucket` module). Entries of a key lie
//!   in one block at any time, so a key is looked up and linked atomically. The array is spread over the nodes
//!   in pieces. Buckets that overflow are split into four.
//! - *Records* hold a key and its value (the `record` module). Small ones (not larger than a block) are
//!   changed in place, larger ones are replaced. A record is *live*, then either *dead* (the key was deleted)
//!   or *forwarded* (the key's value is in the successor now).
//!
//! # Why operations are linearizable per key
//! The record of a key at a moment is the one in its entry, or the last successor of that one. The key is
//! present exactly while that record is live. Each operation takes effect at one atomic step:
//!
//! | operation | takes effect when |
//! | --- | --- |
//! | `get`, key present | the record is seen live (a large one: seen live again after all of it was read) |
//! | `put`, `update_in_place`, `read_modify_write` in place | the value is changed inside its block |
//! | the same with another record | the old record is forwarded to the new one |
//! | `put`, `insert`, key absent | the entry is linked |
//! | `delete` | the record dies |
//! | anything that finds nothing | the bucket is seen without an entry, or the entry's record died |
//!
//! 1. *No pointer is mistaken.* Entries, successors and records carry ids that the records of one key never
//!    repeat at one address, and each step checks the id (in the record's seal) in the block that it looks at
//!    or changes. So an access through an outdated entry finds the record that was meant, or finds that it is
//!    gone ([`Error::Unallocated`](rackmem::Error::Unallocated) too means gone), and begins again at the
//!    bucket. Ids are numbered by the bucket: a new record's number is one more than the bucket's, read *after*
//!    the record's memory was allocated. Whatever record was at that address before was published with a
//!    number that the bucket had reached before the memory was given back.
//! 2. *No key has two entries.* Linking fails if any record was linked to the leaf since it was scanned, and
//!    an entry of the key that the scan did find belongs to a dead record, whose place the new entry takes.
//! 3. *Who changes a key, first completes what another began.* After a record was forwarded, its entry is
//!    swung to the successor by the one who forwarded it, or by the first other worker that wants to change
//!    the key; only then does anyone change the successor. So a successor dies, is forwarded or is freed only
//!    after it is linked. Readers just follow.
//! 4. *A dead record in an entry means absent.* It was linked when the bucket was read. If it was dead then,
//!    the key was absent then; if it died later, the key was absent when it died. Both lie inside the
//!    operation.
//! 5. *Memory is given back by one worker*: whoever killed or forwarded a record frees it, after its entry was
//!    swung or removed (by anyone). Nothing leads there any more but outdated pointers, see 1.
//! 6. *Loops end.* Operations begin again only after another operation made progress. If a record is gone, and
//!    the next scan still finds the same entry, then it was linked all the time and should have been there:
//!    that is an error of the memory, and reported.
//!
//! # Costs
//! Apart from hashing, a `get` of a small record is one look at a bucket and one at the record, from where the
//! value is copied straight to the caller. Changes in place are one look and one change. Replacing a record
//! changes three blocks. Buckets take 32 bytes a key at the expected number of keys; a record takes 16 bytes
//! in addition to its key and value, which are rounded up to whole words and allocation sizes.
//!
//! # Not here
//! No scans in order (keys are hashed; [`KvStore::keys`] lists them), no expiry, no transactions over several keys. Buckets that were split are not
//! merged again before [`KvStore::destroy`]. A worker that stops for good inside an operation leaks at most the
//! two records that it had in hand.
//!
//! # Example
//! ```
//! use apps::kv::{KvConfig, Error, KvStore};
//! use rackmem::Memory;
//!
//! async fn visits<M: Memory>(mem: &mut M) -> Result<u8, Error> {
//!     let store = KvStore::create(mem, &KvConfig { expected_keys: 1000, ..KvConfig::default() }).await?;
//!     store.put(mem, b"visits", &[41]).await?;
//!
//!     // Another worker, on any node, needs only the root's address.
//!     let same = KvStore::open(mem, store.root()).await?;
//!     let mut value = Vec::new();
//!     same.read_modify_write(mem, b"visits", &mut value, |count| count[0] += 1).await?;
//!
//!     let found = store.get(mem, b"visits", &mut value).await?;
//!     assert!(found);
//!     store.delete(mem, b"visits").await?;
//!     Ok(value[0])
//! }
//! ```
//!
//! [`Memory::inspect`]: rackmem::Memory::inspect
//! [`Memory::update`]: rackmem::Memory::update

mod bucket;
mod change;
mod delete;
mod descriptor;
mod destroy;
mod draft;
mod error;
mod get;
pub(crate) mod hash;
mod keys;
mod leaf;
mod put;
mod record;
mod retry;

use std::sync::Arc;

use rackmem::{BlockSize, GlobalAddr, Memory};

use bucket::{Entry, Geometry};
use hash::KeyHash;
use record::Seal;

pub use error::Error;

/// Where the memory of records comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// From a node chosen by the key: records are spread evenly.
    #[default]
    Spread,
    /// From the node of the worker that writes the record.
    Local,
}

/// What a store is created with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KvConfig {
    /// How many keys the bucket array is made for. With more keys the store stays correct; lookups then take
    /// one more look at a bucket for every fourfold of it.
    pub expected_keys: u64,
    /// Where the memory of records comes from.
    pub placement: Placement,
    /// How many nodes, the first ones, have the store's memory; none is all. Nodes that come and go take theirs with them.
    pub homes: Option<u16>,
    /// Stirred into the hash. Draw it at random if keys come from people who may wish to overload a bucket.
    pub salt: u64,
}

impl Default for KvConfig {
    fn default() -> Self {
        Self { expected_keys: 1 << 16, placement: Placement::Spread, homes: None, salt: 0 }
    }
}

/// A handle of a store: where its buckets are. Cheap to clone; every worker on every node can have one, and
/// they may be used at the same time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KvStore {
    root: GlobalAddr,
    block: BlockSize,
    geometry: Geometry,
    placement: Placement,
    /// 0 is all.
    homes: u16,
    salt: u64,
    /// What seals are made with: different for every store.
    seal_key: u64,
    buckets: u64,
    /// Base-2 logarithm of the buckets in a piece of the array.
    piece_shift: u32,
    pieces: Arc<[GlobalAddr]>,
}

fn homes(given: u16, mem: &impl Memory) -> u16 {
    let all = u16::try_from(mem.nodes()).expect("a rack has fewer than 2^16 nodes");
    if given == 0 { all } else { given.min(all) }
}

impl KvStore {
    /// The store's address, for [`KvStore::open`].
    pub fn root(&self) -> GlobalAddr {
        self.root
    }

    /// The longest value that any store takes.
    pub const LONGEST_VALUE: usize = record::LONGEST_VALUE;

    /// The longest key that this store takes: 1024 bytes, and 32 less than a block.
    pub fn longest_key(&self) -> usize {
        record::LONGEST_KEY.min(self.block.len() - 32)
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> Result<KeyHash, Error> {
        let most = self.longest_key();
        if key.len() > most {
            return Err(Error::KeyTooLong { len: key.len(), most });
        }
        Ok(KeyHash::of(key, self.salt))
    }

    /// How many nodes have its memory, the first ones.
    fn homes(&self, mem: &impl Memory) -> u16 {
        homes(self.homes, mem)
    }

    /// The bucket at which the search for a key begins.
    #[inline]
    fn bucket(&self, hash: KeyHash) -> GlobalAddr {
        self.bucket_at(hash.below(self.buckets))
    }

    #[inline]
    fn bucket_at(&self, index: u64) -> GlobalAddr {
        let inside = index & ((1 << self.piece_shift) - 1);
        let piece = usize::try_from(index >> self.piece_shift).expect("pieces are counted in memory");
        self.pieces[piece] + inside * self.geometry.bytes() as u64
    }

    #[inline]
    fn seal(&self, entry: Entry) -> Seal {
        Seal::of(entry, self.seal_key)
    }

    /// From a record's first byte to the end of its block: small records lie inside it as a whole.
    #[inline]
    fn window(&self, record: GlobalAddr) -> usize {
        record::rest_of_block(record, self.block)
    }
}
