//! Packets under way, of both protocols, as numbers.

use node::{DataRef, LockMessage, Message};
use switch::{flowcc, locks};
use wire::{Endpoint, Kind, LockEnd, LockKind, NodeId, SwitchEpoch};

use crate::explore::hashing::Interner;
use crate::explore::world::Item;

/// A packet under way, or between two passes through the switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Packet {
    Block(Message),
    Lock(LockMessage),
    BlockAgain(flowcc::Resubmit),
    LockAgain(locks::Resubmit, Option<DataRef>),
}

impl Packet {
    /// The node that it goes to; `None`: the switch.
    pub(super) fn to(&self) -> Option<NodeId> {
        match self {
            Self::Block(message) => message.packet.to.node(),
            Self::Lock(message) => message.packet.to.node(),
            Self::BlockAgain(_) | Self::LockAgain(..) => None,
        }
    }

    /// The epoch that it was sent in.
    pub(super) fn epoch(&self) -> SwitchEpoch {
        match self {
            Self::Block(message) => message.packet.epoch,
            Self::Lock(message) => message.packet.epoch,
            Self::BlockAgain(again) => again.packet.epoch,
            Self::LockAgain(again, _) => again.packet.epoch,
        }
    }

    pub(super) const fn is_again(&self) -> bool {
        matches!(self, Self::BlockAgain(_) | Self::LockAgain(..))
    }

    pub(super) const fn is_lock(&self) -> bool {
        matches!(self, Self::Lock(_) | Self::LockAgain(..))
    }

    /// It is a report after a restart, or the answer to one.
    pub(super) const fn is_report(&self) -> bool {
        match self {
            Self::Block(message) => matches!(message.packet.kind, Kind::Report | Kind::ReportAck),
            Self::Lock(message) => {
                matches!(message.packet.kind, LockKind::Report | LockKind::Reported | LockKind::LastReport)
            }
            Self::BlockAgain(_) | Self::LockAgain(..) => false,
        }
    }

    /// From which place to which it goes: between the same two, packets may have an order.
    fn way(&self) -> (bool, u16, u16) {
        let place = |node: Option<NodeId>| node.map_or(u16::MAX, |node| node.0);
        let from = match self {
            Self::Block(message) => message.packet.from.node(),
            Self::Lock(message) => message.packet.from.node(),
            Self::BlockAgain(_) | Self::LockAgain(..) => None,
        };
        (self.is_again(), place(from), place(self.to()))
    }

    /// For a trace.
    pub(super) fn tell(&self) -> String {
        match self {
            Self::Block(Message { packet, data }) => {
                let of = if packet.kind == packet.event {
                    String::new()
                } else {
                    format!(" of {:?}", packet.event)
                };
                let status =
                    if packet.status.is_granted() { String::new() } else { format!(" {:?}", packet.status) };
                let data = data.map_or(String::new(), |data| format!(", data {}", data.0));
                let requester = packet.requester;
                format!(
                    "{:?}{of} #{} of node {} slot {}, {} -> {}{status} {:?} {:?} arg {:#x}, epoch {}{data}",
                    packet.kind,
                    packet.seq.0,
                    requester.node.0,
                    requester.slot.0,
                    endpoint(packet.from),
                    endpoint(packet.to),
                    packet.global_status,
                    packet.copyset,
                    packet.arg,
                    packet.epoch.0,
                )
            }
            Self::Lock(LockMessage { packet, data }) => {
                let data = data.map_or(String::new(), |data| format!(", data {}", data.0));
                format!(
                    "lock {:?} t{} {:?}, {} -> {}: node {}, epoch {}, {:?}{data}",
                    packet.kind,
                    packet.tenure.0,
                    packet.mode,
                    lock_end(packet.from),
                    lock_end(packet.to),
                    packet.node.0,
                    packet.epoch.0,
                    packet.status,
                )
            }
            Self::BlockAgain(again) => format!("{:?} of {:?}", again.packet.kind, again.packet.event),
            Self::LockAgain(again, _) => format!("lock {:?}, approved {}", again.packet.kind, again.approved),
        }
    }
}

fn endpoint(end: Endpoint) -> String {
    match end {
        Endpoint::Switch => "switch".into(),
        Endpoint::Requester(node) => format!("requester {}", node.0),
        Endpoint::CacheAgent(node) => format!("agent {}", node.0),
        Endpoint::HomeAgent(node) => format!("home {}", node.0),
        Endpoint::Allocator(node) => format!("allocator {}", node.0),
        Endpoint::Shadow(node) => format!("shadow {}", node.0),
    }
}

fn lock_end(end: LockEnd) -> String {
    match end {
        LockEnd::Switch => "switch".into(),
        LockEnd::Agent(node) => format!("agent {}", node.0),
        LockEnd::Home(node) => format!("home {}", node.0),
    }
}

pub(super) struct Packets(Interner<Packet>);

impl Packets {
    pub(super) fn new() -> Self {
        Self(Interner::new())
    }

    pub(super) fn of(&self, item: Item) -> &Packet {
        self.0.get(item)
    }

    pub(super) fn item(&mut self, packet: Packet) -> Item {
        self.0.intern(packet).0
    }

    pub(super) fn way(&self, item: Item) -> (bool, u16, u16) {
        self.of(item).way()
    }
}
