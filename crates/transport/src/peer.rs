//! Who can send and receive: the peers of a rack.

use core::fmt;

use wire::{Copyset, Endpoint, NodeId};

/// A peer of the rack, as transports number them: nodes by their number, then the switch, then a peer for whoever
/// only asks how the rack is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(u8);

impl PeerId {
    /// How many peers there can be.
    pub const COUNT: usize = Copyset::NODES + 2;
    /// The switch.
    pub const SWITCH: Self = Self(Copyset::NODES as u8);
    /// Somebody who asks the switch how the rack is.
    pub const OBSERVER: Self = Self(Copyset::NODES as u8 + 1);

    /// A node.
    ///
    /// # Panics
    /// If a rack cannot have that many nodes.
    pub const fn node(node: NodeId) -> Self {
        assert!(node.index() < Copyset::NODES);
        Self(node.0 as u8)
    }

    /// Where an endpoint is.
    pub const fn of(endpoint: Endpoint) -> Self {
        match endpoint.node() {
            Some(node) => Self::node(node),
            None => Self::SWITCH,
        }
    }

    /// The node, if it is one.
    pub const fn as_node(self) -> Option<NodeId> {
        if self.index() < Copyset::NODES { Some(NodeId(self.0 as u16)) } else { None }
    }

    /// For tables with [`PeerId::COUNT`] rows.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Wire form.
    pub const fn to_wire(self) -> u8 {
        self.0
    }

    /// The peer with this wire form.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        if (byte as usize) < Self::COUNT { Some(Self(byte)) } else { None }
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.as_node(), *self) {
            (Some(node), _) => write!(f, "{node}"),
            (None, Self::SWITCH) => f.write_str("the switch"),
            (None, _) => f.write_str("an observer"),
        }
    }
}

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

sorted::key!(PeerId: u8 = |it| it.0);
