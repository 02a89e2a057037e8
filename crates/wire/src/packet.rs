//! The packet: Table 1 of the paper, plus what loss, migration and restarts need.
//!
//! One fixed little-endian layout of 64 bytes (one cache line), followed by the block's bytes where
//! [`Packet::payload`] says so. Inside a process packets travel as values and the block by handle; the layout
//! is what leaves the process.
//!
//! | bytes | field | |
//! | --- | --- | --- |
//! | 0..2 | magic | `RM` |
//! | 2 | version | 1 |
//! | 3 | kind | [`PacketKind`] |
//! | 4 | event | [`PacketKind`] of the request that the event began with |
//! | 5 | status | 0 granted, else [`crate::Refusal`] |
//! | 6 | flags | 1 data provider, 2 in switch, 4 repeated; others must be 0 |
//! | 7 | global status | [`GlobalStatus`] |
//! | 8..16 | tag | [`BlockTag`]; an address in allocation packets |
//! | 16..24 | copyset | bitmap |
//! | 24..32 | sequence number | of the requester |
//! | 32..36 | requester | node, slot |
//! | 36..40 | from, to | nodes |
//! | 40..42 | from, to | agents |
//! | 42 | discipline | 0 where it does not matter |
//! | 43 | reserved | 0 |
//! | 44..48 | switch epoch | |
//! | 48..52 | incarnation | of the requester's node |
//! | 52..56 | payload | bytes that follow |
//! | 56..64 | argument | a length or a count, by kind |

use core::fmt;

use crate::addr::{BlockTag, Discipline};
use crate::coherence::{GlobalStatus, PacketKind, Status};
use crate::copyset::Copyset;
use crate::ids::{Endpoint, Incarnation, NodeId, RequesterId, Seq, SlotId, SwitchEpoch};

/// Bytes of an encoded packet before its payload.
pub const HEADER_BYTES: usize = 64;
/// Largest payload: one block of the largest size.
pub const MAX_PAYLOAD: u32 = 1 << 20;

/// What a header begins with.
pub const MAGIC: [u8; 2] = *b"RM";
/// The version of this layout.
pub const VERSION: u8 = 1;
/// The place of [`MAGIC`].
pub const MAGIC_AT: usize = 0;
/// That of the version, 1 byte.
pub const VERSION_AT: usize = 2;
/// That of the discipline, 1 byte.
pub const DISCIPLINE_AT: usize = 42;
/// That of a byte that is 0.
pub const RESERVED_AT: usize = 43;
const FLAG_PROVIDER: u8 = 1;
const FLAG_IN_SWITCH: u8 = 2;
const FLAG_REPEATED: u8 = 4;

/// A message between two places of the rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Packet {
    /// What it says.
    pub kind: PacketKind,
    /// The request that the event began with; for a request, its own kind.
    pub event: PacketKind,
    /// Granted or refused, in answers and in unlocks.
    pub status: Status,
    /// The receiver is to send the block (filled in by whoever forwards a request). From a requester, where conflicting
    /// requests wait in a queue: this READ-MISS does, too. In an answer to an unlock: somebody stands behind.
    pub provider: bool,
    /// The entry is kept by the switch; false: by the home agent.
    pub in_switch: bool,
    /// The entry's lock had been taken for this very request before: an earlier copy of it may still be on
    /// its way to an agent (set by whoever forwards; the requester closes such an event at the agents).
    pub repeated: bool,
    /// The entry's state: as found, in forwarded requests and answers; as it shall become, in unlocks.
    pub global_status: GlobalStatus,
    /// The entry that this is about; for allocation packets the address.
    pub tag: BlockTag,
    /// The nodes with copies: as found, or as it shall become, like `global_status`.
    pub copyset: Copyset,
    /// Whose event it is.
    pub requester: RequesterId,
    /// Which of its events.
    pub seq: Seq,
    /// Who sends this packet.
    pub from: Endpoint,
    /// Who shall get it.
    pub to: Endpoint,
    /// The discipline asked for or stated, where that matters.
    pub discipline: Option<Discipline>,
    /// The incarnation of the switch that the sender knows of.
    pub epoch: SwitchEpoch,
    /// The incarnation of the requester's node: an event of a former incarnation must not act.
    pub incarnation: Incarnation,
    /// Bytes of the block that travel with the packet: 0, the block size, or for a PEEK's answer what was asked for.
    pub payload: u32,
    /// A length in bytes or a count, by kind; in data requests the random number that picks the provider, so
    /// that a repeated request asks the same one.
    pub arg: u64,
}

impl Packet {
    /// A request as its requester sends it. The fields that the forwarder fills in are blank.
    pub const fn request(kind: PacketKind, tag: BlockTag, requester: RequesterId, seq: Seq) -> Self {
        Self {
            kind,
            event: kind,
            status: Status::Granted,
            provider: false,
            in_switch: false,
            repeated: false,
            global_status: GlobalStatus::Unshared,
            tag,
            copyset: Copyset::EMPTY,
            requester,
            seq,
            from: Endpoint::Requester(requester.node),
            to: Endpoint::Switch,
            discipline: None,
            epoch: SwitchEpoch(0),
            incarnation: Incarnation(0),
            payload: 0,
            arg: 0,
        }
    }

    /// The same event's next packet: another kind, from here to there, without payload.
    #[must_use]
    pub const fn reply(self, kind: PacketKind, from: Endpoint, to: Endpoint) -> Self {
        Self { kind, from, to, payload: 0, ..self }
    }

    /// Writes the header.
    pub fn encode(&self, out: &mut [u8; HEADER_BYTES]) {
        let (from_agent, from_node) = self.from.to_wire();
        let (to_agent, to_node) = self.to.to_wire();
        *out = [0; HEADER_BYTES];
        out[0..2].copy_from_slice(&MAGIC);
        out[2] = VERSION;
        out[3] = self.kind as u8;
        out[4] = self.event as u8;
        out[5] = self.status.to_wire();
        out[6] = flag(self.provider, FLAG_PROVIDER)
            | flag(self.in_switch, FLAG_IN_SWITCH)
            | flag(self.repeated, FLAG_REPEATED);
        out[7] = self.global_status as u8;
        out[8..16].copy_from_slice(&self.tag.bits().to_le_bytes());
        out[16..24].copy_from_slice(&self.copyset.bits().to_le_bytes());
        out[24..32].copy_from_slice(&self.seq.0.to_le_bytes());
        out[32..34].copy_from_slice(&self.requester.node.0.to_le_bytes());
        out[34..36].copy_from_slice(&self.requester.slot.0.to_le_bytes());
        out[36..38].copy_from_slice(&from_node.to_le_bytes());
        out[38..40].copy_from_slice(&to_node.to_le_bytes());
        out[40] = from_agent;
        out[41] = to_agent;
        out[42] = self.discipline.map_or(0, |d| d as u8);
        out[44..48].copy_from_slice(&self.epoch.0.to_le_bytes());
        out[48..52].copy_from_slice(&self.incarnation.0.to_le_bytes());
        out[52..56].copy_from_slice(&self.payload.to_le_bytes());
        out[56..64].copy_from_slice(&self.arg.to_le_bytes());
    }

    /// Reads a packet and returns it with its payload bytes.
    ///
    /// # Errors
    /// Whatever is not exactly what [`Packet::encode`] writes, followed by exactly the payload that the header
    /// announces, is refused with the first thing found wrong.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let Some((header, payload_bytes)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(ParseError::Truncated { have: bytes.len(), need: HEADER_BYTES });
        };
        let packet = Self::parse_header(header)?;
        if payload_bytes.len() != packet.payload as usize {
            return Err(ParseError::Truncated {
                have: bytes.len(),
                need: HEADER_BYTES + packet.payload as usize,
            });
        }
        Ok((packet, payload_bytes))
    }

    /// Reads a header alone, for whoever keeps the payload somewhere else and compares its length with
    /// [`Packet::payload`].
    ///
    /// # Errors
    /// Whatever is not exactly what [`Packet::encode`] writes is refused with the first thing found wrong.
    pub fn parse_header(header: &[u8; HEADER_BYTES]) -> Result<Self, ParseError> {
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(core::array::from_fn(|i| header[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| header[at + i]));
        let bad = |field: Field, value: u64| ParseError::Field { field, value };

        if header[0..2] != MAGIC {
            return Err(bad(Field::Magic, u64::from(u16_at(0))));
        }
        if header[2] != VERSION {
            return Err(bad(Field::Version, u64::from(header[2])));
        }
        let kind = PacketKind::from_wire(header[3]).ok_or(bad(Field::PacketKind, u64::from(header[3])))?;
        let event = PacketKind::from_wire(header[4]).ok_or(bad(Field::Event, u64::from(header[4])))?;
        if kind.is_request() && event != kind {
            return Err(bad(Field::Event, u64::from(header[4])));
        }
        let status = Status::from_wire(header[5]).ok_or(bad(Field::Status, u64::from(header[5])))?;
        if header[6] & !(FLAG_PROVIDER | FLAG_IN_SWITCH | FLAG_REPEATED) != 0 {
            return Err(bad(Field::Flags, u64::from(header[6])));
        }
        let global_status =
            GlobalStatus::from_wire(header[7]).ok_or(bad(Field::GlobalStatus, u64::from(header[7])))?;
        let requester = RequesterId { node: NodeId(u16_at(32)), slot: SlotId(u16_at(34)) };
        if requester.node.index() >= Copyset::NODES {
            return Err(bad(Field::Node, u64::from(requester.node.0)));
        }
        if requester.slot.index() >= SlotId::PER_NODE {
            return Err(bad(Field::Slot, u64::from(requester.slot.0)));
        }
        let endpoint = |agent: u8, node: u16| {
            if usize::from(node) >= Copyset::NODES {
                return Err(bad(Field::Node, u64::from(node)));
            }
            Endpoint::from_wire(agent, node).ok_or(bad(Field::Agent, u64::from(agent)))
        };
        let from = endpoint(header[40], u16_at(36))?;
        let to = endpoint(header[41], u16_at(38))?;
        let discipline = match header[42] {
            0 => None,
            byte => Some(Discipline::from_wire(byte).ok_or(bad(Field::Discipline, u64::from(byte)))?),
        };
        if header[43] != 0 {
            return Err(bad(Field::Reserved, u64::from(header[43])));
        }
        let payload = u32_at(52);
        if payload > MAX_PAYLOAD {
            return Err(bad(Field::Payload, u64::from(payload)));
        }
        Ok(Self {
            kind,
            event,
            status,
            provider: header[6] & FLAG_PROVIDER != 0,
            in_switch: header[6] & FLAG_IN_SWITCH != 0,
            repeated: header[6] & FLAG_REPEATED != 0,
            global_status,
            tag: BlockTag::from_bits(u64_at(8)),
            copyset: Copyset::from_bits(u64_at(16)),
            requester,
            seq: Seq(u64_at(24)),
            from,
            to,
            discipline,
            epoch: SwitchEpoch(u32_at(44)),
            incarnation: Incarnation(u32_at(48)),
            payload,
            arg: u64_at(56),
        })
    }
}

const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// A field of the header, for saying which one was wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are those of the layout table")]
pub enum Field {
    Magic,
    Version,
    PacketKind,
    Event,
    Status,
    Flags,
    GlobalStatus,
    Node,
    Slot,
    Agent,
    Discipline,
    Reserved,
    Payload,
}

/// Why bytes are not a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Shorter or longer than the header says.
    Truncated {
        /// Bytes there are.
        have: usize,
        /// Bytes there should be.
        need: usize,
    },
    /// A field holds a value that it must not hold.
    Field {
        /// Which.
        field: Field,
        /// What it holds.
        value: u64,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { have, need } => write!(f, "{have} bytes where the packet needs {need}"),
            Self::Field { field, value } => write!(f, "header field {field:?} holds {value:#x}"),
        }
    }
}

impl core::error::Error for ParseError {}
