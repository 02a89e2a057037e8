//! Who is in the rack: what the control plane tells every node at the start of an epoch.

use alloc::vec::Vec;

use wire::{Copyset, Incarnation, NodeId, SwitchEpoch};

/// The rack from an epoch on. The control plane makes one for every change (a switch or a node stopped, or
/// started again) and hands it to all live nodes, in any order and at any time. A node may miss one if it gets a
/// later one instead.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct View {
    /// The incarnation of the switch that begins.
    pub epoch: SwitchEpoch,
    /// The incarnation that each node is in; `None`: it is down.
    pub incarnations: Vec<Option<Incarnation>>,
    /// The node that shadows the switch's TAG array.
    pub shadow: NodeId,
}

impl View {
    /// The nodes that are up.
    pub fn live(&self) -> Copyset {
        self.nodes().filter(|node| self.incarnations[node.index()].is_some()).collect()
    }

    /// The nodes that are down.
    pub fn down(&self) -> Copyset {
        self.nodes().filter(|node| self.incarnations[node.index()].is_none()).collect()
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.incarnations.len())
            .map(|node| NodeId(u16::try_from(node).expect("a rack has at most 64 nodes")))
    }
}
