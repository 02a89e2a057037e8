//! Layouts of objects and the object store, over every kind of rack: one process, processes that reach each other's memory, processes
//! that ask each other's NICs, also over a network that loses, doubles and reorders.
#![cfg(target_os = "linux")]

#[path = "../../../../../crates/rackmem/tests/all/networked/rig.rs"]
#[allow(dead_code, reason = "nothing is killed here")]
mod bad_network;
#[path = "../../../../../crates/rackmem/tests/all/networked/lies.rs"]
#[allow(dead_code, reason = "nobody lies here")]
mod lies;
#[path = "../../../../../crates/rackmem/tests/all/places/rig.rs"]
#[allow(dead_code, reason = "every node is asked for its own handle")]
mod places;
mod store;
mod torn;

use rackmem::rack_file::TransportKind;
use rackmem::{Config, NodeHandle, NodeId, Rack};

/// Racks of three nodes.
pub(crate) enum Racks {
    Inline(Rack),
    Places(places::Places),
    BadNetwork(Box<bad_network::Processes>),
}

impl Racks {
    pub(crate) fn inline() -> Self {
        let config = Config { nodes: 3, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
        Self::Inline(Rack::embedded(config).unwrap())
    }

    pub(crate) fn shared_memory() -> Self {
        Self::Places(places::Places::start("near", TransportKind::SharedMemory, ""))
    }

    pub(crate) fn udp() -> Self {
        Self::Places(places::Places::start("far", TransportKind::Udp, ""))
    }

    pub(crate) fn bad_network() -> Self {
        Self::BadNetwork(Box::new(bad_network::Processes::start_on(3, true)))
    }

    /// A handle for a thread of a node.
    pub(crate) fn node(&self, node: u16) -> NodeHandle {
        match self {
            Self::Inline(rack) => rack.node(NodeId(node)),
            Self::Places(places) => places.nodes[usize::from(node)].here(),
            Self::BadNetwork(processes) => processes.nodes[usize::from(node)].here(),
        }
    }
}
