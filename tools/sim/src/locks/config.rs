//! What can be set.

use node::Retransmission;
use wire::{Nanos, NodeId, SwitchEpoch};

use super::costs::Costs;
use crate::home::Contents;

/// A rack's locks.
#[derive(Clone, Debug)]
pub struct SimLocksConfig {
    /// Nodes, 1 to 64.
    pub nodes: usize,
    /// Application threads on each.
    pub threads: usize,
    /// Bytes of the region that each lock guards, where it says nothing else.
    pub len: u32,
    /// What is kept of regions.
    pub contents: Contents,
    /// Bytes of cache on every node.
    pub cache: u64,
    /// Entries of the switch's directory.
    pub switch_entries: usize,
    /// Whether entries go to the switch.
    pub in_switch: bool,
    /// How many threads of the holder may go before a node that waits, one after another.
    pub preference: u32,
    /// A lock stays where it was used last.
    pub keeps: bool,
    /// The background thread of a node that handles what no thread waits for.
    pub agent: u8,
    /// Homes are memory blades: their NICs answer, and no processor.
    pub blades: bool,
    /// The epoch that the rack begins in.
    pub epoch: SwitchEpoch,
    /// When lost packets are sent again.
    pub retransmission: Retransmission,
    /// What takes how much processor time.
    pub costs: Costs,
    /// Keep what the properties need: for small runs.
    pub check: bool,
}

impl SimLocksConfig {
    /// The paper's settings (GCS, section 5): ten threads and 512 MB of cache on each node, regions of 1 KB.
    pub const fn new(nodes: usize) -> Self {
        Self {
            nodes,
            threads: 10,
            len: 1024,
            contents: Contents::Stamps,
            cache: 512 << 20,
            switch_entries: 64 << 10,
            in_switch: true,
            preference: 0,
            keeps: true,
            agent: 0,
            blades: true,
            epoch: SwitchEpoch(0),
            retransmission: Retransmission::AfterRoundTrips {
                floor: Nanos::from_micros(200),
                most: Nanos::MAX,
            },
            costs: Costs::PAPER,
            check: false,
        }
    }

    pub(super) fn of_node(&self, id: NodeId) -> node::locks::LockNodeConfig {
        node::locks::LockNodeConfig {
            in_switch: self.in_switch,
            preference: self.preference,
            keeps: self.keeps,
            retransmission: self.retransmission,
            epoch: self.epoch,
            ..node::locks::LockNodeConfig::new(id, self.nodes)
        }
    }
}
