//! GAM as a subject.

use node::Access;
use sim::coherence::Contents;
use sim::rack::Setup;
use simulated::Shape;
use wire::{BlockSize, NodeId};

use super::subject::{Subject, Tally};
use crate::gam::{Costs, Gam, GamConfig};
use crate::load::past::Resident;

/// The machines of a rack like this, with so many bytes of cache and of memory on each node.
pub(super) fn machines(
    setup: &Setup,
    costs: Costs,
    (block, agents): (Option<BlockSize>, u8),
    (cache, memory): (u64, u64),
    contents: Contents,
) -> Gam {
    let defaults = GamConfig::new(setup.nodes);
    let block = block.unwrap_or(defaults.block);
    Gam::new(GamConfig { threads: setup.threads, agents, block, cache, memory, contents, costs, ..defaults })
}

impl Subject for Gam {
    fn shape(&self) -> Shape {
        let config = self.config();
        // The first block of a home is no one's.
        Shape { nodes: config.nodes, block_size: config.block, memory: config.memory + config.block.bytes() }
    }

    /// A node does not cache the blocks that it is home of, so it has that much more room for the others.
    fn room(&self) -> u64 {
        let config = self.config();
        let (nodes, frames) = (config.nodes as u64, config.cache / config.block.bytes());
        if nodes == 1 { 0 } else { frames * nodes / (nodes - 1) }
    }

    fn hold(&mut self, residents: impl Iterator<Item = Resident>) {
        let mut copies = vec![Vec::new(); self.config().nodes];
        for Resident { addr, access, nodes } in residents {
            debug_assert!(access == Access::Shared || nodes.len() == 1, "one writer");
            nodes.iter().for_each(|node| copies[node.index()].push((addr, access)));
        }
        for (node, copies) in (0..).map(NodeId).zip(copies) {
            self.preload_cache(node, &copies);
        }
    }

    fn tally(&self) -> Tally {
        let counters = self.counters();
        Tally {
            hits: counters.hits,
            home_packets: counters.home_messages,
            refused: 0,
            evictions: counters.evicted_shared + counters.evicted_dirty,
            switch_entries: 0,
        }
    }
}
