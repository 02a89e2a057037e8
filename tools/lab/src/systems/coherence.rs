//! FlowCC as a subject.

use node::{Access, Peeks};
use rackmem::{Directory, GlobalAddr};
use sim::coherence::{AGENTS, Contents, Costs, FlowCc, FlowCcConfig, Placement};
use sim::rack::Setup;
use simulated::Shape;

use super::subject::{Subject, Tally};
use crate::load::past::Resident;

/// Which FlowCC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlowCcKind {
    /// The paper's.
    Concordia,
    /// The paper's, without the switch.
    HomeOnly,
    /// With our own options.
    Rackmem,
}

/// The machines of a rack like this, with so many bytes of cache and of memory on each node.
pub(super) fn machines(
    setup: &Setup,
    costs: Costs,
    kind: FlowCcKind,
    room: (u64, u64),
    contents: Contents,
) -> FlowCc {
    FlowCc::new(config(setup, costs, kind, room, contents))
}

/// What these machines are told.
pub(crate) fn config(
    setup: &Setup,
    costs: Costs,
    kind: FlowCcKind,
    (cache, memory): (u64, u64),
    contents: Contents,
) -> FlowCcConfig {
    assert!(setup.agents >= AGENTS, "FlowCC has two agents on a node");
    let of_node = FlowCcConfig::new(setup.nodes);
    let directory = if kind == FlowCcKind::HomeOnly { Directory::Home } else { Directory::Auto };
    let ours = kind == FlowCcKind::Rackmem;
    let placement = if ours { Placement::Even } else { Placement::ByChance };
    let peeks = if ours { Peeks::LEARNED } else { Peeks::NEVER };
    let config = FlowCcConfig {
        cache,
        memory,
        contents,
        directory,
        placement,
        queue: ours,
        persistent: ours,
        peeks,
        costs,
        ..of_node
    };
    FlowCcConfig { threads: setup.threads, ..config }
}

impl Subject for FlowCc {
    fn shape(&self) -> Shape {
        let config = self.config();
        Shape { nodes: config.nodes, block_size: config.block, memory: config.memory }
    }

    fn room(&self) -> u64 {
        self.config().cache / self.config().block.bytes()
    }

    fn hold(&mut self, residents: impl Iterator<Item = Resident>) {
        let mut preload = self.preload(1);
        for Resident { addr, access, nodes } in residents {
            debug_assert!(access == Access::Shared || nodes.len() == 1, "one writer");
            nodes.iter().for_each(|node| preload.install(node, addr, access));
        }
        preload.report();
    }

    fn hot(&mut self, addr: GlobalAddr) {
        if self.config().directory == Directory::Auto {
            self.preload(1).to_switch(addr);
        }
    }

    fn tally(&self) -> Tally {
        let sum = self.counters();
        let events = |kind: wire::PacketKind| sum.events[kind as usize];
        Tally {
            hits: self.hits(),
            home_packets: sum.home_received + sum.home_sent,
            refused: sum.refused.iter().sum(),
            evictions: events(wire::PacketKind::EvictShared) + events(wire::PacketKind::EvictModified),
            switch_entries: self.switch().occupancy() as u64,
        }
    }
}
