//! Flags, what they ask for, and whether the rack and the machine have the memory for it.

use apps::tpcc::Scale;
use apps::tx::MOST_CLIENTS;
use rackmem::{BlockSize, Config};

use crate::bench::nodes::{available, spec};
use cli::fault::Fault;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;
use cli::ycsb::block_size;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Nodes of the rack
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) nodes: u16,

    /// Threads of each node, each with a warehouse
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) threads: u16,

    /// What is between the nodes
    #[arg(long, value_enum, default_value = "inline")]
    pub(super) transport: TransportKind,

    /// How often an item or a customer is another warehouse's, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub(super) distribution: u64,

    /// A warehouse has so many times fewer rows than specified; 1 is the specification
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=Scale::MOST))]
    scale: u64,

    /// Transactions of each thread in each round
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(super) transactions: u64,

    /// Rounds, in each of which rack and plain memory take turns; the medians are printed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) rounds: u64,

    /// Nodes that keep each row, index and log: 2 or 3, which then outlives one or two of them (only with --transport shm or udp)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=3))]
    pub(super) copies: u16,

    /// The unit of coherence
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = block_size)]
    pub(super) block_size: BlockSize,

    /// Bytes of each node's memory; what the database needs by default
    #[arg(long)]
    memory: Option<Bytes>,

    /// Bytes of each node's cache; by default as much as the database, up to 1 GiB
    #[arg(long)]
    cache: Option<Bytes>,

    /// Fixes the rows, and what is asked for
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,

    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

/// Bytes of a client's log: deliveries and stock levels take up to 20 KiB.
pub(super) const LOG: u64 = 64 << 10;
/// Smaller blocks have too few entries of an index.
const LEAST_BLOCK: u64 = 512;

impl Args {
    /// How many rows there are.
    pub(super) fn scale(&self) -> Result<Scale, Fault> {
        let (nodes, threads) = (self.nodes, self.threads);
        let warehouses = usize::from(nodes) * usize::from(threads);
        if warehouses > MOST_CLIENTS {
            return Err(Fault::usage(format_args!(
                "--nodes {nodes} --threads {threads}: {warehouses} threads are too many, a lock has a bit for each of {MOST_CLIENTS}; name fewer threads"
            )));
        }
        if self.block_size.bytes() < LEAST_BLOCK {
            return Err(Fault::usage(format_args!(
                "--block-size {}: nodes of indices need blocks of {} or more",
                Bytes(self.block_size.bytes()),
                Bytes(LEAST_BLOCK)
            )));
        }
        Ok(Scale { warehouses: warehouses as u64, shrink: self.scale })
    }

    /// Bytes of the database after all rounds.
    fn needed(&self, scale: Scale) -> u64 {
        scale.bytes_needed(self.transactions * self.rounds, self.block_size.bytes(), LOG)
    }

    /// Bytes of the plain memory beside the rack.
    pub(super) fn plain_bytes(&self, scale: Scale) -> u64 {
        self.needed(scale)
    }

    /// The rack for it. Says what is missing if there is too little memory.
    pub(super) fn rack(&self, scale: Scale) -> Result<RackSpec, Fault> {
        /// Chunks of allocators.
        const CHUNK: u64 = 32 << 20;
        if self.copies > 1 && self.transport == TransportKind::Inline {
            return Err(Fault::usage(format_args!(
                "--copies {}: memory has copies where nodes are processes; use --transport shm or udp",
                self.copies
            )));
        }
        let (nodes, needed) = (u64::from(self.nodes), self.needed(scale));
        // Homes are drawn by chance, so some nodes have a little more.
        let share = needed / nodes + needed / nodes / 8 + nodes * 2 * CHUNK;
        let memory = self.memory.map_or(share, |bytes| bytes.0);
        let of = format!(
            "{} warehouses with 1/{} of the specified rows, and {} transactions of each",
            scale.warehouses,
            scale.shrink,
            self.transactions * self.rounds
        );
        if memory < share {
            return Err(Fault::usage(format_args!(
                "--memory {} is too little: {of}, need {} on each of {nodes} nodes; leave out --memory, or name a larger --scale or fewer --transactions",
                Bytes(memory),
                Bytes(share),
            )));
        }
        let cache = self.cache.map_or(needed.min(1 << 30), |bytes| bytes.0).next_multiple_of(1 << 20);
        // Memory is taken as it is used: what the rack has, its caches, and the plain memory.
        let all = (1 + u64::from(self.copies)) * needed + nodes * cache.min(needed);
        if let Some(free) = available().filter(|free| *free < all) {
            return Err(Fault::usage(format_args!(
                "this machine has {} of memory free, and {of}, need {} on {nodes} nodes with their caches, and once more without a rack; name a larger --scale, or fewer nodes, threads or transactions",
                Bytes(free),
                Bytes(all),
            )));
        }
        let spec = RackSpec {
            nodes: self.nodes.into(),
            memory,
            cache,
            copies: self.copies.into(),
            switch_entries: entries(needed / self.block_size.bytes()),
            seed: self.seed,
            ..spec(self.block_size)
        };
        spec.check().map_err(Fault::usage)?;
        Ok(spec)
    }
}

/// Entries of the switch for so many blocks: no more than a chip has room for. The homes have those of all other blocks.
fn entries(blocks: u64) -> usize {
    let most = Config::default().switch_entries;
    usize::try_from(blocks).unwrap_or(most).clamp(1 << 16, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_any_size_has_a_rack_whose_switch_there_can_be() {
        for blocks in [0, 1 << 16, 1 << 20, u64::MAX] {
            let spec = RackSpec { switch_entries: entries(blocks), ..spec(BlockSize::DEFAULT) };
            assert_eq!(spec.check(), Ok(()), "{blocks} blocks");
        }
    }
}
