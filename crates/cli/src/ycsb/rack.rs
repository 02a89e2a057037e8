//! The key-value store on an embedded rack, as the clients see it.

use rackmem::{BlockSize, Config, ConfigError, Counters, Nanos, NodeId, Rack};

use super::args::Args;
use super::engine::{RackSession, Store, chain_config, locked_config, mapped_config, objects_config};
use super::store::Traffic;
use super::workload::Workload;
use crate::fault::Fault;
use crate::processes::place::RackSpec;
use crate::size::Bytes;

/// A rack with an empty store for one workload.
pub(crate) struct StoreRack {
    rack: Rack,
    store: Store,
    threads: usize,
}

impl StoreRack {
    /// A fresh rack, with capacity for the workload's records.
    pub(crate) fn start(args: &Args, memory: Bytes, workload: &Workload) -> Result<Self, Fault> {
        let rack = Rack::embedded(spec(args, memory).config()).map_err(impossible)?;
        let engine = args.engine(workload);
        let store = Store::create(&rack, &mut rack.node(NodeId(0)), engine, workload)
            .map_err(|error| Fault::failed(format_args!("cannot create the key-value store: {}", error.0)))?;
        Ok(Self { rack, store, threads: args.threads })
    }

    /// A handle for each client, node by node.
    pub(crate) fn sessions(&self) -> Vec<RackSession> {
        let nodes = u16::try_from(self.rack.config().nodes).expect("a rack has at most 64 nodes");
        let clients = (0..nodes).flat_map(|node| std::iter::repeat_n(NodeId(node), self.threads));
        let session = |node| RackSession::new(&self.rack, self.rack.node(node), self.store.clone());
        clients.map(session).collect()
    }

    /// What the rack has counted so far; complete once the handles that were used are gone.
    pub(crate) fn traffic(&self) -> Traffic {
        let appends = self.rack.steering_counts().unwrap_or_default().into();
        Traffic { appends, ..node_traffic(&self.rack.counters()) }
    }
}

/// What the places of one process have counted.
pub(crate) fn node_traffic(counters: &Counters) -> Traffic {
    let protocol = counters.protocol();
    Traffic {
        hits: counters.hits(),
        misses: counters.misses(),
        switch_packets: counters
            .switch
            .as_ref()
            .map_or(0, |switch| switch.packets_received + switch.packets_sent),
        home_packets: protocol.home_received + protocol.home_sent,
        ..Traffic::default()
    }
}

/// The rack that the flags ask for, with this much memory on each node.
pub(crate) fn spec(args: &Args, memory: Bytes) -> RackSpec {
    RackSpec {
        nodes: args.nodes,
        block_bytes: args.block_size.bytes(),
        cache: args.cache.0,
        memory: memory.0,
        copies: args.memory_copies(),
        switch_entries: args.switch_entries,
        directory: args.directory,
        queue: args.queue,
        peek: args.peek,
        // An engine with locks has as much room as one with a cache.
        lock_copies: args.cache.0,
        lock_region: RackSpec::LOCK_REGION,
        own_first: 0,
        steering: args.steers(),
        seed: args.seed,
    }
}

/// A configuration that cannot be, with the flag that changes it.
pub(crate) fn impossible(error: ConfigError) -> Fault {
    let flags = match error {
        ConfigError::Nodes { .. } => "--nodes",
        ConfigError::Cache { .. } => "--cache or --block-size",
        ConfigError::Memory { .. } => "--records or --block-size (memory is what the records need)",
        ConfigError::SwitchEntries { .. } => "--switch-entries or --directory",
        _ => "see rackmem ycsb --help",
    };
    Fault::usage(format_args!("{error}\n  flags: {flags}"))
}

/// Memory of each node that the workload's records need, with capacity to spare: it is taken from the system only
/// as it is used.
pub fn memory_for(nodes: usize, block: BlockSize, workload: &Workload) -> Bytes {
    /// A key, and what the store keeps beside key and value; and per key in the bucket array.
    const BESIDE_VALUE: u64 = 64;
    const BUCKETS_PER_KEY: u64 = 64;
    /// Each node has chunks of each home that are not full (two-level allocation: 32 MiB, section 6 of the
    /// paper), or smaller ones where a home's memory is small.
    const CHUNK: u64 = 32 << 20;
    let block = block.bytes();
    let record = workload.record_len() as u64 + BESIDE_VALUE + workload.names.digits as u64;
    // Records that share a block fill at least half of it; larger ones have blocks of their own.
    let record = if record <= block / 2 { record * 2 } else { record.next_multiple_of(block) };
    let records = workload.expected_records().saturating_mul(record + BUCKETS_PER_KEY);
    // Buckets that locks carry are rounded up, and some go on in further ones.
    let locked = locked_config(workload);
    let buckets = locked.buckets(nodes).saturating_mul(locked.bucket_bytes() as u64);
    let nodes = nodes as u64;
    let most = records.saturating_mul(2).max(buckets.saturating_add(buckets / 2));
    Bytes(most.div_ceil(nodes).saturating_add(nodes * 2 * CHUNK))
}

/// The same where the records are in objects, each with its header.
pub(crate) fn memory_for_objects(args: &Args, workload: &Workload) -> Bytes {
    /// Chunks of allocators.
    const BESIDE: u64 = 64 << 20;
    let config = objects_config(workload);
    let bucket = config.bucket_bytes() as u64 * 5 / 4 + 256;
    Bytes(config.objects_on_each(args.nodes).saturating_mul(bucket).saturating_add(BESIDE))
}

/// The same where the records are in mapped memory, all of them in that of node 0.
pub fn memory_for_mapped(workload: &Workload) -> Bytes {
    /// Chunks of allocators.
    const BESIDE: u64 = 64 << 20;
    Bytes(mapped_config(workload).bytes().saturating_add(BESIDE))
}

/// The same where the records are in chains.
pub(crate) fn memory_for_chains(args: &Args, workload: &Workload) -> Bytes {
    /// Chunks of allocators.
    const BESIDE: u64 = 128 << 20;
    /// Behind a part of the units that is not the last one there is capacity for the largest slot.
    const MARGIN: u64 = 2 << 20;
    let config = chain_config(workload, args.chains());
    Bytes((config.bytes_on_each(quarantine(args)) + MARGIN) * config.copies as u64 + BESIDE)
}

/// How long slots of chains rest on the rack that the flags ask for.
pub(crate) fn quarantine(args: &Args) -> Nanos {
    let steers = args.steers();
    let config = Config {
        steering: steers.map(|how| how.keys),
        steer_reads: steers.is_some_and(|how| how.reads),
        ..Config::default()
    };
    config.least_quarantine(Nanos::from_millis(args.chains().lease.into()))
}
