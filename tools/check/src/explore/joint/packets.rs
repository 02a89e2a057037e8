//! Packets in flight, of both protocols, as numbers.

use node::{LockMessage, Message};
use switch::{coherence, locks};
use wire::{LockKind, NodeId, PacketKind, SwitchEpoch};

use super::Both;
use crate::explore::engine::{Packets, end, lock_end};
use crate::explore::hashing::Interner;
use crate::explore::world::Item;

/// A packet in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Packet {
    /// With the node that it goes to; `None`: the switch.
    Block(Message, Option<NodeId>),
    Lock(LockMessage),
}

/// What it is between two passes through the switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Again {
    Block(coherence::Resubmit),
    Lock(locks::Resubmit),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum InFlight {
    New(Packet),
    Again(Again),
}

impl Packet {
    fn from(&self) -> Option<NodeId> {
        match self {
            Self::Block(message, _) => message.packet.from.node(),
            Self::Lock(message) => message.packet.from.node(),
        }
    }

    /// The node that it goes to; `None`: the switch.
    pub(super) fn to(&self) -> Option<NodeId> {
        match self {
            Self::Block(_, to) => *to,
            Self::Lock(message) => message.packet.to.node(),
        }
    }

    /// The epoch that it was sent in.
    pub(super) fn epoch(&self) -> SwitchEpoch {
        match self {
            Self::Block(message, _) => message.packet.epoch,
            Self::Lock(message) => message.packet.epoch,
        }
    }

    pub(super) const fn is_lock(&self) -> bool {
        matches!(self, Self::Lock(_))
    }

    /// It says to the home of this memory that there is no more to report.
    pub(super) fn ends_reports_to(&self) -> Option<NodeId> {
        match self {
            Self::Block(Message { packet, .. }, _)
                if packet.kind == PacketKind::Report && packet.event == PacketKind::Close =>
            {
                Some(packet.tag.home())
            }
            _ => None,
        }
    }

    /// It is a report after a restart, or the answer to one.
    pub(super) const fn is_report(&self) -> bool {
        match self {
            Self::Block(message, _) => {
                matches!(message.packet.kind, PacketKind::Report | PacketKind::ReportAck)
            }
            Self::Lock(message) => {
                matches!(message.packet.kind, LockKind::Report | LockKind::Reported | LockKind::LastReport)
            }
        }
    }
}

/// All packets, by number.
pub(super) struct Known(Interner<InFlight>);

impl Known {
    pub(super) fn new() -> Self {
        Self(Interner::new())
    }

    fn of(&self, item: Item) -> &InFlight {
        self.0.get(item)
    }
}

impl Packets<Both> for Known {
    fn message(&mut self, packet: &Packet) -> Option<Item> {
        Some(self.0.intern(InFlight::New(*packet)).0)
    }

    fn resubmit(&mut self, again: &Again) -> Item {
        self.0.intern(InFlight::Again(*again)).0
    }

    fn packet(&self, item: Item) -> Packet {
        match self.of(item) {
            InFlight::New(packet) => *packet,
            InFlight::Again(again) => unreachable!("it is between two passes: {again:?}"),
        }
    }

    fn again(&self, item: Item) -> Again {
        match self.of(item) {
            InFlight::Again(again) => *again,
            InFlight::New(packet) => unreachable!("it has made no pass: {packet:?}"),
        }
    }

    fn to(&self, item: Item) -> Option<NodeId> {
        self.packet(item).to()
    }

    fn way(&self, item: Item) -> (u16, u16) {
        let place = |node: Option<NodeId>| node.map_or(u16::MAX, |node| node.0);
        let packet = self.packet(item);
        (place(packet.from()), place(packet.to()))
    }

    fn tell(&self, item: Item) -> String {
        match self.of(item) {
            InFlight::New(Packet::Block(Message { packet, data }, _)) => {
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
                    "{:?}{of} #{} of node {} slot {}, {} -> {}: {:?}{status} {:?} {:?} arg {:#x}, epoch {}{data}",
                    packet.kind,
                    packet.seq.0,
                    requester.node.0,
                    requester.slot.0,
                    end(packet.from),
                    end(packet.to),
                    packet.tag,
                    packet.global_status,
                    packet.copyset,
                    packet.arg,
                    packet.epoch.0,
                )
            }
            InFlight::New(Packet::Lock(LockMessage { packet, data })) => {
                let data = data.map_or(String::new(), |data| format!(", data {}", data.0));
                format!(
                    "lock {:?} t{} {:?}, {} -> {}: node {}, epoch {}, {:?}{data}",
                    packet.kind,
                    packet.term.0,
                    packet.mode,
                    lock_end(packet.from),
                    lock_end(packet.to),
                    packet.node.0,
                    packet.epoch.0,
                    packet.status,
                )
            }
            InFlight::Again(Again::Block(again)) => {
                format!("{:?} of {:?}", again.packet.kind, again.packet.event)
            }
            InFlight::Again(Again::Lock(again)) => {
                format!("lock {:?}, approved {}", again.packet.kind, again.approved)
            }
        }
    }
}
