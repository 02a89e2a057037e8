//! The fields of a [`Packet`]'s header, for those who look at some of them where they lie, or change them there: a
//! switch's parser and deparser.
//!
//! [`HeaderField::place`] says where a field lies in the layout that [`Packet::encode`] writes; [`Packet::field`] and
//! [`Packet::set_field`] do the same to a packet that has been taken apart.

use crate::addr::BlockTag;
use crate::coherence::{GlobalStatus, PacketKind, Status};
use crate::copyset::Copyset;
use crate::ids::{Endpoint, Seq, SwitchEpoch};
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

    const fn flag(bit: u32) -> Self {
        Self { at: 6, bytes: 1, bit: Some(bit) }
    }
}

/// The word that names the node to which a packet goes, and the one that names the agent there.
pub const TO: (Place, Place) = (Place::word(38, 2), Place::word(41, 1));
/// The same of the sender.
pub const FROM: (Place, Place) = (Place::word(36, 2), Place::word(40, 1));

impl HeaderField {
    /// Where it lies.
    pub const fn place(self) -> Place {
        match self {
            Self::Kind => Place::word(3, 1),
            Self::Event => Place::word(4, 1),
            Self::Status => Place::word(5, 1),
            Self::Provider => Place::flag(0),
            Self::InSwitch => Place::flag(1),
            Self::Repeated => Place::flag(2),
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

impl Packet {
    /// The value of a field.
    #[inline(always)]
    pub const fn field(&self, field: HeaderField) -> u64 {
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

    /// Sets a field.
    ///
    /// # Panics
    /// If the field has no such value: whoever rewrites a packet knows what it writes.
    #[inline(always)]
    pub fn set_field(&mut self, field: HeaderField, value: u64) {
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

    /// The endpoint of this agent on a node.
    #[inline(always)]
    pub fn send_to(&mut self, agent: u8, node: u64) {
        self.to = Endpoint::from_wire(agent, node as u16).expect("an agent");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Incarnation, NodeId, RequesterId, SlotId};
    use crate::packet::HEADER_BYTES;

    fn word(bytes: &[u8; HEADER_BYTES], place: Place) -> u64 {
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
        assert_eq!((word(&bytes, TO.0), word(&bytes, TO.1)), (9, 2));
        assert_eq!((word(&bytes, FROM.0), word(&bytes, FROM.1)), (3, 1));
    }
}
