//! Which engine keeps the records: coherent memory, with an order of keys or without, regions that locks carry, mapped memory, objects,
//! or chains.

use std::sync::Arc;

use apps::chains::{ChainStore, ChainStoreConfig};
use apps::kv::{KvConfig, KvStore};
use apps::kv_locked::{LockedStore, LockedStoreConfig};
use apps::kv_mapped::{MappedStore, MappedStoreConfig};
use apps::objects::{ObjectStore, ObjectStoreConfig, Sabres};
use apps::ordered::OrderedStore;
use clap::ValueEnum;
use rackmem::{BlockSize, GlobalAddr, Nanos, NodeHandle, NodeId, Rack, block_on};
use serde::{Deserialize, Serialize};

use super::store::{Session, StoreError};
use super::workload::Workload;

/// What `--store` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Choice {
    /// Ordered for workloads with scans, locked for records that do not fit a block, coherent for others
    Auto,
    /// Records in coherent memory, without locks
    Coherent,
    /// The same with an order of keys: for scans
    Ordered,
    /// Buckets behind locks that carry them
    Locked,
    /// A table in mapped memory, reached through pointers (only with --transport shm or udp)
    Mapped,
    /// Buckets that are objects: a lookup reads one whole, where the memory is; for what is read much more than written
    Objects,
    /// Versions in chains, in the memory of node 0, or of some nodes, where nothing but a NIC looks at them
    Chain,
}

/// An engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// `apps::kv`.
    Coherent,
    /// `apps::ordered`.
    Ordered,
    /// `apps::kv_locked`.
    Locked,
    /// `apps::kv_mapped`.
    Mapped,
    /// `apps::objects`.
    Objects,
    /// `apps::chains`, whose clients use what they know for so long.
    Chain(Chains),
}

/// How a store of chains is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Chains {
    /// Milliseconds for which clients use what they know.
    pub lease: u32,
    /// Clients of the whole rack.
    pub clients: usize,
    /// Nodes whose memories it has, and in how many of them each record is.
    pub memories: usize,
    /// Of each version.
    pub copies: u8,
}

impl Engine {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coherent => "coherent",
            Self::Ordered => "ordered",
            Self::Locked => "locked",
            Self::Mapped => "mapped",
            Self::Objects => "objects",
            Self::Chain(_) => "chain",
        }
    }
}

impl Choice {
    /// The engine for a workload, on a rack with such blocks.
    pub fn engine(self, workload: &Workload, block: BlockSize, chains: Chains) -> Engine {
        match self {
            Self::Coherent => Engine::Coherent,
            Self::Ordered => Engine::Ordered,
            Self::Locked => Engine::Locked,
            Self::Mapped => Engine::Mapped,
            Self::Objects => Engine::Objects,
            Self::Chain => Engine::Chain(chains),
            Self::Auto if workload.mix.scans() => Engine::Ordered,
            Self::Auto => by_default(workload, block),
        }
    }
}

/// Records that lie in one block are read and changed where they are. Longer ones take a miss for each block, and a change replaces
/// all of them: there a lock that brings the whole record is faster, several times where much is written (docs/locks.md has the
/// measurements), as long as a bucket holds it.
fn by_default(workload: &Workload, block: BlockSize) -> Engine {
    /// What the store keeps beside a key and its value.
    const BESIDE: usize = 16;
    let record = locked_config(workload).record_bytes;
    let longest = apps::kv_locked::LockedStoreConfig::LONGEST_RECORD;
    if record + BESIDE > block.len() && record <= longest { Engine::Locked } else { Engine::Coherent }
}

/// Bytes of a key that are not in a workload's records.
const KEY_BYTES: usize = 24;

fn key_bytes(workload: &Workload) -> usize {
    KEY_BYTES.max(workload.names.digits + 4)
}

/// How a store for this workload is created in regions that locks carry.
pub(crate) fn locked_config(workload: &Workload) -> LockedStoreConfig {
    LockedStoreConfig {
        expected_keys: workload.expected_records(),
        record_bytes: workload.record_len() + key_bytes(workload),
        ..LockedStoreConfig::default()
    }
}

/// The same in mapped memory.
pub(crate) fn mapped_config(workload: &Workload) -> MappedStoreConfig {
    MappedStoreConfig {
        expected_keys: workload.expected_records(),
        key_bytes: key_bytes(workload),
        value_bytes: workload.record_len(),
        ..MappedStoreConfig::default()
    }
}

/// The same in objects.
pub(crate) fn objects_config(workload: &Workload) -> ObjectStoreConfig {
    ObjectStoreConfig {
        expected_keys: workload.expected_records(),
        key_bytes: key_bytes(workload),
        value_bytes: workload.record_len(),
        ..ObjectStoreConfig::default()
    }
}

/// The same in chains.
pub(crate) fn chain_config(workload: &Workload, chains: Chains) -> ChainStoreConfig {
    /// More than a thread puts in a second on any rack, and more bytes than all of them do on one machine.
    const PUTS: u64 = 20_000;
    const MOST: u64 = 512 << 20;
    let config = ChainStoreConfig {
        expected_keys: workload.expected_records(),
        record_bytes: workload.record_len() + key_bytes(workload),
        lease: Nanos::from_millis(chains.lease.into()),
        homes: (0..64).map(NodeId).take(chains.memories).collect(),
        copies: chains.copies.into(),
        server: NodeId(0),
        ..ChainStoreConfig::default()
    };
    let written = (chains.clients as u64 * PUTS).saturating_mul(config.slot_bytes());
    ChainStoreConfig { written_in_a_second: written.min(MOST), ..config }
}

/// A store.
#[derive(Clone)]
pub(crate) enum Store {
    Coherent(KvStore),
    Ordered(OrderedStore),
    Locked(LockedStore),
    Mapped(Arc<MappedStore>),
    Objects(ObjectStore<Sabres>),
    Chain(Box<ChainStore>),
}

impl Store {
    /// A new one, with capacity for the workload's records.
    pub(crate) fn create(
        rack: &Rack,
        handle: &mut NodeHandle,
        engine: Engine,
        workload: &Workload,
    ) -> Result<Self, StoreError> {
        match engine {
            Engine::Coherent => {
                keep_copies(rack, handle);
                let config = KvConfig { expected_keys: workload.expected_records(), ..KvConfig::default() };
                block_on(KvStore::create(handle, &config)).map(Self::Coherent).map_err(StoreError::new)
            }
            Engine::Ordered => {
                keep_copies(rack, handle);
                let store = block_on(OrderedStore::create(handle, workload.record_len()));
                store.map(Self::Ordered).map_err(StoreError::new)
            }
            Engine::Locked => LockedStore::create(handle, &locked_config(workload))
                .map(Self::Locked)
                .map_err(StoreError::new),
            Engine::Mapped => {
                let store = MappedStore::create(rack, handle, &mapped_config(workload));
                store.map(Arc::new).map(Self::Mapped).map_err(StoreError::new)
            }
            Engine::Objects => ObjectStore::create(handle, &objects_config(workload))
                .map(Self::Objects)
                .map_err(StoreError::new),
            Engine::Chain(chains) => {
                let store = ChainStore::create(handle, &chain_config(workload, chains));
                store.map(Box::new).map(Self::Chain).map_err(StoreError::new)
            }
        }
    }

    /// One that is there already.
    pub(crate) fn open(
        rack: &Rack,
        handle: &mut NodeHandle,
        engine: Engine,
        root: GlobalAddr,
    ) -> Result<Self, StoreError> {
        match engine {
            Engine::Coherent => {
                block_on(KvStore::open(handle, root)).map(Self::Coherent).map_err(StoreError::new)
            }
            Engine::Ordered => {
                block_on(OrderedStore::open(handle, root)).map(Self::Ordered).map_err(StoreError::new)
            }
            Engine::Locked => LockedStore::open(handle, root).map(Self::Locked).map_err(StoreError::new),
            Engine::Mapped => {
                let store = MappedStore::open(rack, handle, root);
                store.map(Arc::new).map(Self::Mapped).map_err(StoreError::new)
            }
            Engine::Objects => ObjectStore::open(handle, root).map(Self::Objects).map_err(StoreError::new),
            Engine::Chain(_) => {
                ChainStore::open(handle, root).map(Box::new).map(Self::Chain).map_err(StoreError::new)
            }
        }
    }

    /// Its address.
    pub(crate) fn root(&self) -> GlobalAddr {
        match self {
            Self::Coherent(store) => store.root(),
            Self::Ordered(store) => store.root(),
            Self::Locked(store) => store.root(),
            Self::Mapped(store) => store.root(),
            Self::Objects(store) => store.root(),
            Self::Chain(store) => store.root(),
        }
    }
}

/// In a rack with copies, all of a store in coherent memory has them.
fn keep_copies(rack: &Rack, handle: &mut NodeHandle) {
    handle.keep_copies(rack.config().copies > 1).expect("the rack has copies");
}

/// One client's handle of the rack, and the store on it.
pub(crate) struct RackSession {
    handle: NodeHandle,
    store: Store,
    /// What read-modify-write works in.
    scratch: Vec<u8>,
}

impl RackSession {
    /// A client's way into this store.
    pub(crate) fn new(rack: &Rack, mut handle: NodeHandle, store: Store) -> Self {
        if matches!(store, Store::Coherent(_) | Store::Ordered(_)) {
            keep_copies(rack, &mut handle);
        }
        Self { handle, store, scratch: Vec::new() }
    }
}

impl Session for RackSession {
    #[inline]
    fn read(&mut self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, StoreError> {
        match &mut self.store {
            Store::Coherent(store) => block_on(store.get(&mut self.handle, key, into)),
            Store::Ordered(store) => {
                return block_on(store.get(&mut self.handle, ordered_key(key), into))
                    .map_err(StoreError::new);
            }
            Store::Locked(store) => store.get(&mut self.handle, key, into),
            Store::Mapped(store) => store.get(key, into),
            Store::Objects(store) => {
                return store.get(&mut self.handle, key, into).map_err(StoreError::new);
            }
            Store::Chain(store) => {
                return store.get(&mut self.handle, key, into).map_err(StoreError::new);
            }
        }
        .map_err(StoreError::new)
    }

    fn insert(&mut self, key: &[u8], record: &[u8]) -> Result<(), StoreError> {
        match &mut self.store {
            Store::Coherent(store) => block_on(store.put(&mut self.handle, key, record)),
            Store::Ordered(store) => {
                let put = block_on(store.put(&mut self.handle, ordered_key(key), record));
                return put.map(drop).map_err(StoreError::new);
            }
            Store::Locked(store) => store.put(&mut self.handle, key, record),
            Store::Mapped(store) => store.put(key, record),
            Store::Objects(store) => {
                return store.put(&mut self.handle, key, record).map(drop).map_err(StoreError::new);
            }
            Store::Chain(store) => {
                return store.put(&mut self.handle, key, record).map_err(StoreError::new);
            }
        }
        .map(|_| ())
        .map_err(StoreError::new)
    }

    fn update(&mut self, key: &[u8], at: usize, bytes: &[u8]) -> Result<bool, StoreError> {
        match &self.store {
            Store::Coherent(store) => block_on(store.update_in_place(&mut self.handle, key, at, bytes)),
            Store::Ordered(store) => {
                let key = ordered_key(key);
                return block_on(store.update_in_place(&mut self.handle, key, at, bytes))
                    .map_err(StoreError::new);
            }
            Store::Locked(store) => store.update_in_place(&mut self.handle, key, at, bytes),
            Store::Mapped(store) => store.update_in_place(key, at, bytes),
            Store::Objects(_) => {
                return self.modify(key, |record| record[at..at + bytes.len()].copy_from_slice(bytes));
            }
            Store::Chain(_) => return Err(StoreError(WHOLE.to_owned())),
        }
        .map_err(StoreError::new)
    }

    fn modify(&mut self, key: &[u8], change: impl FnMut(&mut Vec<u8>)) -> Result<bool, StoreError> {
        let scratch = &mut self.scratch;
        match &mut self.store {
            Store::Coherent(store) => {
                block_on(store.read_modify_write(&mut self.handle, key, scratch, change))
            }
            Store::Ordered(store) => {
                let key = ordered_key(key);
                return block_on(store.read_modify_write(&mut self.handle, key, change))
                    .map_err(StoreError::new);
            }
            Store::Locked(store) => store.read_modify_write(&mut self.handle, key, scratch, change),
            Store::Mapped(store) => store.read_modify_write(key, scratch, change),
            Store::Objects(store) => {
                return store.update(&mut self.handle, key, scratch, change).map_err(StoreError::new);
            }
            Store::Chain(_) => return Err(StoreError(WHOLE.to_owned())),
        }
        .map_err(StoreError::new)
    }

    fn scan(&mut self, key: &[u8], most: u64, mut each: impl FnMut(&[u8])) -> Result<u64, StoreError> {
        let Store::Ordered(store) = &self.store else { return Err(StoreError(UNORDERED.to_owned())) };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let found = block_on(store.scan(&mut self.handle, ordered_key(key), most, |_, record| each(record)));
        found.map(|found| found as u64).map_err(StoreError::new)
    }

    fn trips(&self) -> Option<u32> {
        match &self.store {
            Store::Chain(store) => Some(store.trips()),
            _ => None,
        }
    }
}

/// Digits of the longest number in a key of a store with an order.
pub(crate) const MOST_ORDERED_DIGITS: usize = 32;

/// The key in a store with an order, which is that of the text: `user` and a number, whose digits take four bits each, from above.
fn ordered_key(key: &[u8]) -> u128 {
    let digits = key.strip_prefix(b"user").unwrap_or(key).iter().take(MOST_ORDERED_DIGITS);
    let place = |(at, digit): (usize, &u8)| u128::from((digit & 0xf) + 1) << (124 - 4 * at);
    digits.enumerate().map(place).sum()
}

/// What stores without an order cannot do.
const UNORDERED: &str = "this store has no order of keys";

/// What chains cannot do.
const WHOLE: &str = "a chain's values are replaced as a whole";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_an_ordered_store_are_in_the_order_of_their_texts() {
        let texts =
            ["user0", "user00", "user1", "user10", "user109", "user11", "user6284781860667377211", "user9"];
        assert!(texts.is_sorted());
        assert!(texts.map(|text| ordered_key(text.as_bytes())).is_sorted_by(|one, other| one < other));
    }

    #[test]
    fn records_that_do_not_fit_a_block_are_behind_locks_if_a_bucket_holds_them() {
        let of = |field_len: usize, block: u64| {
            let workload = Workload { field_len, ..Workload::letter('A').unwrap() };
            let chains = Chains { lease: 1, clients: 1, memories: 1, copies: 1 };
            Choice::Auto.engine(&workload, BlockSize::new(block).unwrap(), chains)
        };
        assert_eq!(of(100, 4096), Engine::Coherent);
        assert_eq!(of(100, 512), Engine::Locked);
        assert_eq!((of(1000, 4096), of(1000, 16384)), (Engine::Locked, Engine::Coherent));
        assert_eq!(of(10_000, 4096), Engine::Coherent, "no bucket is that large");
        let (scans, chains) =
            (Workload::letter('E').unwrap(), Chains { lease: 1, clients: 1, memories: 1, copies: 1 });
        assert_eq!(Choice::Auto.engine(&scans, BlockSize::DEFAULT, chains), Engine::Ordered);
    }
}
