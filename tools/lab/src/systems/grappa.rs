//! Grappa as a subject.

use sim::coherence::Contents;
use sim::rack::Setup;
use simulated::Shape;
use wire::BlockSize;

use super::subject::{Subject, Tally};
use crate::grappa::{Costs, Grappa, GrappaConfig};
use crate::load::past::Resident;

/// The machines of a rack like this, with so many bytes of memory on each node.
pub(super) fn machines(
    setup: &Setup,
    costs: Costs,
    block: Option<BlockSize>,
    memory: u64,
    contents: Contents,
) -> Grappa {
    let defaults = GrappaConfig::new(setup.nodes);
    let block = block.unwrap_or(defaults.block);
    Grappa::new(GrappaConfig { threads: setup.threads, block, memory, contents, costs, ..defaults })
}

impl Subject for Grappa {
    fn shape(&self) -> Shape {
        let config = self.config();
        // The first block of a home is no one's.
        Shape { nodes: config.nodes, block_size: config.block, memory: config.memory + config.block.bytes() }
    }

    fn room(&self) -> u64 {
        0
    }

    fn hold(&mut self, _: impl Iterator<Item = Resident>) {}

    fn tally(&self) -> Tally {
        Tally { hits: self.counters().local, ..Tally::default() }
    }
}
