//! The fields of headers, for those who look at some of them where they lie, or change them there: a switch's parser
//! and deparser.
//!
//! [`HeaderFields::place`] says where a field lies in the layout that the packet's `encode` writes; [`Headed`] does the same
//! to a packet that has been taken apart.

use crate::addr::{BlockTag, GlobalAddr};
use crate::coherence::{GlobalStatus, PacketKind, Status};
use crate::copyset::Copyset;
use crate::ids::{Endpoint, NodeId, Seq, SwitchEpoch};
use crate::locks::{LockEnd, LockKind, LockPacket, Mode, Term};
use crate::packet::Packet;

crate::listed! {
    /// A field of the header, as a number.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[allow(missing_docs, reason = "the names are those of the packet's fields")]
    pub enum HeaderField {
        Kind,
        Event,
        Status,
        Provider,
        InSwitch,
        Repeated,
        GlobalStatus,
        Tag,
        Copyset,
        Seq,
        RequesterNode,
        RequesterSlot,
        Epoch,
        Payload,
        Arg,
    }
}

/// Where a field lies: in a little-endian word of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The word's first byte.
    pub at: usize,
    /// Its bytes: 1, 2, 4 or 8.
    pub bytes: usize,
    /// The bit, if the field is only one of the word's.
    pub bit: Option<u32>,
}

impl Place {
    /// A field that is a word of its own.
    pub const fn word(at: usize, bytes: usize) -> Self {
        Self { at, bytes, bit: None }
    }

    const fn flag(at: usize, bit: u32) -> Self {
        Self { at, bytes: 1, bit: Some(bit) }
    }
}

/// The fields of one kind of header.
pub trait HeaderFields: Copy {
    /// The word that names the node to which a packet goes, and the one that names the agent there.
    const TO: (Place, Place);
    /// The same of the sender.
    const FROM: (Place, Place);

    /// Where it lies.
    fn place(self) -> Place;
}

/// A packet that has been taken apart: its fields as numbers.
pub trait Headed: Copy {
    /// Its header's fields.
    type Field: HeaderFields;

    /// The value of a field.
    fn field(&self, field: Self::Field) -> u64;

    /// Sets a field.
    ///
    /// # Panics
    /// If the field has no such value: whoever rewrites a packet knows what it writes.
    fn set_field(&mut self, field: Self::Field, value: u64);

    /// It is for this agent of a node.
    fn send_to(&mut self, agent: u8, node: u64);

    /// It is from this one.
    fn send_from(&mut self, agent: u8, node: u64);
}

impl HeaderFields for HeaderField {
    const TO: (Place, Place) = (Place::word(38, 2), Place::word(41, 1));
    const FROM: (Place, Place) = (Place::word(36, 2), Place::word(40, 1));

    fn place(self) -> Place {
        match self {
            Self::Kind => Place::word(3, 1),
            Self::Event => Place::word(4, 1),
            Self::Status => Place::word(5, 1),
            Self::Provider => Place::flag(6, 0),
            Self::InSwitch => Place::flag(6, 1),
            Self::Repeated => Place::flag(6, 2),
            Self::GlobalStatus => Place::word(7, 1),
            Self::Tag => Place::word(8, 8),
            Self::Copyset => Place::word(16, 8),
            Self::Seq => Place::word(24, 8),
            Self::RequesterNode => Place::word(32, 2),
            Self::RequesterSlot => Place::word(34, 2),
            Self::Epoch => Place::word(44, 4),
            Self::Payload => Place::word(52, 4),
            Self::Arg => Place::word(56, 8),
        }
    }
}

impl Headed for Packet {
    type Field = HeaderField;

    #[inline(always)]
    fn field(&self, field: HeaderField) -> u64 {
        match field {
            HeaderField::Kind => self.kind as u64,
            HeaderField::Event => self.event as u64,
            HeaderField::Status => self.status.to_wire() as u64,
            HeaderField::Provider => self.provider as u64,
            HeaderField::InSwitch => self.in_switch as u64,
            HeaderField::Repeated => self.repeated as u64,
            HeaderField::GlobalStatus => self.global_status as u64,
            HeaderField::Tag => self.tag.bits(),
            HeaderField::Copyset => self.copyset.bits(),
            HeaderField::Seq => self.seq.0,
            HeaderField::RequesterNode => self.requester.node.0 as u64,
            HeaderField::RequesterSlot => self.requester.slot.0 as u64,
            HeaderField::Epoch => self.epoch.0 as u64,
            HeaderField::Payload => self.payload as u64,
            HeaderField::Arg => self.arg,
        }
    }

    #[inline(always)]
    fn set_field(&mut self, field: HeaderField, value: u64) {
        let byte = value as u8;
        match field {
            HeaderField::Kind => self.kind = PacketKind::from_wire(byte).expect("a kind"),
            HeaderField::Event => self.event = PacketKind::from_wire(byte).expect("a kind"),
            HeaderField::Status => self.status = Status::from_wire(byte).expect("a status"),
            HeaderField::Provider => self.provider = value != 0,
            HeaderField::InSwitch => self.in_switch = value != 0,
            HeaderField::Repeated => self.repeated = value != 0,
            HeaderField::GlobalStatus => {
                self.global_status = GlobalStatus::from_wire(byte).expect("a state of a block");
            }
            HeaderField::Tag => self.tag = BlockTag::from_bits(value),
            HeaderField::Copyset => self.copyset = Copyset::from_bits(value),
            HeaderField::Seq => self.seq = Seq(value),
            HeaderField::RequesterNode => self.requester.node.0 = value as u16,
            HeaderField::RequesterSlot => self.requester.slot.0 = value as u16,
            HeaderField::Epoch => self.epoch = SwitchEpoch(value as u32),
            HeaderField::Payload => self.payload = value as u32,
            HeaderField::Arg => self.arg = value,
        }
    }

    #[inline(always)]
    fn send_to(&mut self, agent: u8, node: u64) {
        self.to = Endpoint::from_wire(agent, node as u16).expect("an agent");
    }

    #[inline(always)]
    fn send_from(&mut self, agent: u8, node: u64) {
        self.from = Endpoint::from_wire(agent, node as u16).expect("an agent");
    }
}

crate::listed! {
    /// A field of the header of a packet about a lock, as a number.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[allow(missing_docs, reason = "the names are those of the packet's fields")]
    pub enum LockField {
        Kind,
        Writes,
        Once,
        HasCopy,
        Status,
        Queued,
        /// The node + 1; 0 if there is none.
        Next,
        Lock,
        Term,
        Nodes,
        Waiting,
        Writers,
        Node,
        Epoch,
        Len,
        Payload,
        Number,
    }
}

impl HeaderFields for LockField {
    const TO: (Place, Place) = (Place::word(52, 2), Place::word(55, 1));
    const FROM: (Place, Place) = (Place::word(50, 2), Place::word(54, 1));

    fn place(self) -> Place {
        match self {
            Self::Kind => Place::word(3, 1),
            Self::Writes => Place::flag(4, 0),
            Self::Once => Place::flag(4, 1),
            Self::HasCopy => Place::flag(4, 2),
            Self::Status => Place::word(5, 1),
            Self::Queued => Place::word(6, 1),
            Self::Next => Place::word(7, 1),
            Self::Lock => Place::word(8, 8),
            Self::Term => Place::word(16, 8),
            Self::Nodes => Place::word(24, 8),
            Self::Waiting => Place::word(32, 8),
            Self::Writers => Place::word(40, 8),
            Self::Node => Place::word(48, 2),
            Self::Epoch => Place::word(56, 4),
            Self::Len => Place::word(60, 4),
            Self::Payload => Place::word(64, 4),
            Self::Number => Place::word(68, 4),
        }
    }
}

impl Headed for LockPacket {
    type Field = LockField;

    #[inline(always)]
    fn field(&self, field: LockField) -> u64 {
        match field {
            LockField::Kind => self.kind as u64,
            LockField::Writes => u64::from(self.mode == Mode::Write),
            LockField::Once => u64::from(self.once),
            LockField::HasCopy => u64::from(self.has_copy),
            LockField::Status => u64::from(self.status.to_wire()),
            LockField::Queued => self.queue.len() as u64,
            LockField::Next => self.next.map_or(0, |node| u64::from(node.0) + 1),
            LockField::Lock => self.lock.bits(),
            LockField::Term => self.term.0,
            LockField::Nodes => self.nodes.bits(),
            LockField::Waiting => self.waiting.bits(),
            LockField::Writers => self.writers.bits(),
            LockField::Node => u64::from(self.node.0),
            LockField::Epoch => u64::from(self.epoch.0),
            LockField::Len => u64::from(self.len),
            LockField::Payload => u64::from(self.payload),
            LockField::Number => u64::from(self.number),
        }
    }

    #[inline(always)]
    fn set_field(&mut self, field: LockField, value: u64) {
        match field {
            LockField::Kind => self.kind = LockKind::from_wire(value as u8).expect("a kind"),
            LockField::Writes => self.mode = if value != 0 { Mode::Write } else { Mode::Read },
            LockField::Once => self.once = value != 0,
            LockField::HasCopy => self.has_copy = value != 0,
            LockField::Status => self.status = Status::from_wire(value as u8).expect("a status"),
            LockField::Queued => assert_eq!(value, self.queue.len() as u64, "a list is not cut by a number"),
            LockField::Next => self.next = (value as u16).checked_sub(1).map(NodeId),
            LockField::Lock => self.lock = GlobalAddr::from_bits(value),
            LockField::Term => self.term = Term(value),
            LockField::Nodes => self.nodes = Copyset::from_bits(value),
            LockField::Waiting => self.waiting = Copyset::from_bits(value),
            LockField::Writers => self.writers = Copyset::from_bits(value),
            LockField::Node => self.node = NodeId(value as u16),
            LockField::Epoch => self.epoch = SwitchEpoch(value as u32),
            LockField::Len => self.len = value as u32,
            LockField::Payload => self.payload = value as u32,
            LockField::Number => self.number = value as u32,
        }
    }

    #[inline(always)]
    fn send_to(&mut self, agent: u8, node: u64) {
        self.to = LockEnd::from_wire(agent, node as u16).expect("an agent");
    }

    #[inline(always)]
    fn send_from(&mut self, agent: u8, node: u64) {
        self.from = LockEnd::from_wire(agent, node as u16).expect("an agent");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Incarnation, RequesterId, SlotId};
    use crate::locks;
    use crate::packet::HEADER_BYTES;

    fn word(bytes: &[u8], place: Place) -> u64 {
        let word = (0..place.bytes).fold(0, |word, at| word | u64::from(bytes[place.at + at]) << (8 * at));
        place.bit.map_or(word, |bit| word >> bit & 1)
    }

    #[test]
    fn a_field_lies_where_its_place_says_and_says_what_the_packet_does() {
        let mut packet = Packet {
            incarnation: Incarnation(3),
            ..Packet::request(
                PacketKind::ReadMiss,
                BlockTag::from_bits(0x0003_1122_3344_5000),
                RequesterId { node: NodeId(3), slot: SlotId(4) },
                Seq(77),
            )
        };
        let mut bytes = [0; HEADER_BYTES];
        for (at, field) in HeaderField::ALL.into_iter().enumerate() {
            // Values that fit every field, and differ between neighbours.
            packet.set_field(field, 1 + at as u64 % 2);
            packet.encode(&mut bytes);
            for field in HeaderField::ALL {
                assert_eq!(word(&bytes, field.place()), packet.field(field), "{field:?}");
            }
            packet.set_field(field, packet.field(field));
        }
        packet.send_to(2, 9);
        packet.encode(&mut bytes);
        assert_eq!(packet.to, Endpoint::CacheAgent(NodeId(9)));
        let [to, from] = [HeaderField::TO, HeaderField::FROM];
        assert_eq!((word(&bytes, to.0), word(&bytes, to.1)), (9, 2));
        assert_eq!((word(&bytes, from.0), word(&bytes, from.1)), (3, 1));
    }

    #[test]
    fn so_it_is_with_packets_about_locks() {
        let mut packet = LockPacket::new(LockKind::Move, GlobalAddr::new(NodeId(2), 4096), 64, NodeId(1));
        let mut bytes = [0; locks::HEADER_BYTES + 64];
        for (at, field) in LockField::ALL.into_iter().enumerate().filter(|(_, it)| *it != LockField::Queued) {
            packet.set_field(field, 1 + at as u64 % 2);
            packet.encode(&mut bytes);
            for field in LockField::ALL {
                let (found, said) = (word(&bytes, field.place()), packet.field(field));
                assert_eq!(found, said, "{field:?}");
            }
        }
        packet.queue.push(NodeId(5), Mode::Read);
        packet.send_to(1, 9);
        packet.send_from(2, 3);
        packet.encode(&mut bytes);
        assert_eq!((packet.to, packet.from), (LockEnd::Agent(NodeId(9)), LockEnd::Home(NodeId(3))));
        let [to, from] = [LockField::TO, LockField::FROM];
        assert_eq!((word(&bytes, to.0), word(&bytes, to.1)), (9, 1));
        assert_eq!((word(&bytes, from.0), word(&bytes, from.1)), (3, 2));
        assert_eq!(word(&bytes, LockField::Queued.place()), 1);
    }
}
