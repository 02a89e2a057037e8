//! The key-value store on an embedded rack, as the clients see it.

use apps::kv::{Config as KvConfig, KvStore};
use rackmem::{Config, ConfigError, Memory, NodeHandle, NodeId, Rack, block_on};

use super::args::{Args, Directory};
use super::store::{Session, StoreError, Traffic};
use super::workload::Workload;
use crate::fault::Fault;
use crate::size::Bytes;

/// A rack with an empty store for one workload.
pub(crate) struct StoreRack {
    rack: Rack,
    store: KvStore,
    threads: usize,
}

impl StoreRack {
    /// A fresh rack, with room for the workload's records.
    pub(crate) fn start(args: &Args, memory: Bytes, workload: &Workload) -> Result<Self, Fault> {
        let config = Config {
            nodes: args.nodes,
            block_size: args.block_size,
            cache: args.cache.0,
            memory: memory.0,
            switch_entries: args.switch_entries,
            directory: match args.directory {
                Directory::Auto => rackmem::Directory::Auto,
                Directory::Switch => rackmem::Directory::Switch,
                Directory::Home => rackmem::Directory::Home,
            },
            queue: args.queue,
            seed: args.seed,
            ..Config::default()
        };
        let rack = Rack::embedded(config).map_err(impossible)?;
        let expected_keys = workload.expected_records();
        let store = block_on(KvStore::create(
            &mut rack.node(NodeId(0)),
            &KvConfig { expected_keys, ..KvConfig::default() },
        ))
        .map_err(|error| Fault::failed(format_args!("cannot create the key-value store: {error}")))?;
        Ok(Self { rack, store, threads: args.threads })
    }

    /// A handle for each client, node by node.
    pub(crate) fn sessions(&self) -> Vec<RackSession<NodeHandle>> {
        let nodes = u16::try_from(self.rack.config().nodes).expect("a rack has at most 64 nodes");
        let clients = (0..nodes).flat_map(|node| std::iter::repeat_n(NodeId(node), self.threads));
        clients
            .map(|node| RackSession {
                memory: self.rack.node(node),
                store: self.store.clone(),
                scratch: Vec::new(),
            })
            .collect()
    }

    /// What the rack has counted so far; complete once the handles that were used are gone.
    pub(crate) fn traffic(&self) -> Traffic {
        let counters = self.rack.counters();
        let protocol = counters.protocol();
        Traffic {
            hits: counters.hits(),
            misses: counters.misses(),
            switch_packets: counters.switch.map_or(0, |switch| switch.packets_received + switch.packets_sent),
            home_packets: protocol.home_received + protocol.home_sent,
        }
    }
}

/// A configuration that cannot be, with the flag that changes it.
fn impossible(error: ConfigError) -> Fault {
    let flags = match error {
        ConfigError::Nodes { .. } => "--nodes",
        ConfigError::Cache { .. } => "--cache or --block-size",
        ConfigError::Memory { .. } => "--records or --block-size (memory is what the records need)",
        ConfigError::SwitchEntries { .. } => "--switch-entries or --directory",
        _ => "see rackmem ycsb --help",
    };
    Fault::usage(format_args!("{error}\n  flags: {flags}"))
}

/// Memory of each node that the workload's records need, with room to spare: it is taken from the system only
/// as it is used.
pub(crate) fn memory_for(args: &Args, workload: &Workload) -> Bytes {
    /// A key, and what the store keeps beside key and value; and per key in the bucket array.
    const BESIDE_VALUE: u64 = 64;
    const BUCKETS_PER_KEY: u64 = 64;
    /// Each node has chunks of each home that are not full (two-level allocation: 32 MiB, section 6 of the
    /// paper), or smaller ones where a home's memory is small.
    const CHUNK: u64 = 32 << 20;
    let block = args.block_size.bytes();
    let record = workload.record_len() as u64 + BESIDE_VALUE + workload.names.digits as u64;
    // Records that share a block fill at least half of it; larger ones have blocks of their own.
    let record = if record <= block / 2 { record * 2 } else { record.next_multiple_of(block) };
    let records = workload.expected_records().saturating_mul(record + BUCKETS_PER_KEY);
    let nodes = args.nodes as u64;
    Bytes((records.div_ceil(nodes).saturating_mul(2)).saturating_add(nodes * 2 * CHUNK))
}

/// One client's handle of the rack, and the store on it.
pub(crate) struct RackSession<M> {
    memory: M,
    store: KvStore,
    /// What read-modify-write works in.
    scratch: Vec<u8>,
}

impl<M: Memory> Session for RackSession<M> {
    #[inline]
    fn read(&mut self, key: &[u8], into: &mut Vec<u8>) -> Result<bool, StoreError> {
        block_on(self.store.get(&mut self.memory, key, into)).map_err(StoreError::new)
    }

    fn insert(&mut self, key: &[u8], record: &[u8]) -> Result<(), StoreError> {
        block_on(self.store.put(&mut self.memory, key, record)).map(|_| ()).map_err(StoreError::new)
    }

    fn update(&mut self, key: &[u8], at: usize, bytes: &[u8]) -> Result<bool, StoreError> {
        block_on(self.store.update_in_place(&mut self.memory, key, at, bytes)).map_err(StoreError::new)
    }

    fn modify(&mut self, key: &[u8], change: impl FnMut(&mut Vec<u8>)) -> Result<bool, StoreError> {
        block_on(self.store.read_modify_write(&mut self.memory, key, &mut self.scratch, change))
            .map_err(StoreError::new)
    }
}
