//! The headers of the transport: BTH and what its opcode says follows, as one value.
//!
//! In every NIC of the rack. A packet's payload is not part of the value: the NIC's machines name bytes by key and
//! address, and the driver moves them.
//!
//! ```text
//!   BTH       opcode 8 | S 1 M 1 pad 2 version 4 | partition 16 | F 1 B 1 0 6 | queue pair 24 | A 1 0 7 | PSN 24
//!   RETH      address 64 | key 32 | length 32
//!   AtomicETH address 64 | key 32 | swap or add 64 | compare 64
//!   AETH      syndrome 8 | message sequence number 24
//!   ImmDt     immediate data 32;   AtomicAckETH  original word 64
//! ```
//!
//! What must always hold: the extension is the one that the opcode asks for, or [`Packet::encode`] panics; and what
//! [`Packet::parse`] accepts has it.

use super::malformed::Malformed;
use super::opcode::{Layout, Opcode};
use super::psn::{Psn, QpNumber};
use super::syndrome::Syndrome;

/// Bytes of a BTH.
pub const BTH_BYTES: usize = 12;
/// Most bytes of BTH and extension headers.
pub const MOST_HEADER_BYTES: usize = BTH_BYTES + 28;
/// The default partition, with full membership.
const DEFAULT_PARTITION: u16 = 0xffff;

/// Names a memory region of a NIC; as R_Key it travels in requests. The low byte is the generation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Key(pub u32);

/// RETH: where a WRITE goes, or a READ takes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reth {
    /// The first byte.
    pub address: u64,
    /// The region's key.
    pub key: Key,
    /// Bytes of the whole message.
    pub length: u32,
}

/// AtomicETH: the word and the operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicEth {
    /// The word.
    pub address: u64,
    /// The region's key.
    pub key: Key,
    /// What to swap in, or to add.
    pub swap_or_add: u64,
    /// What to compare with; nothing to a FetchAdd.
    pub compare: u64,
}

/// AETH: what a responder says, and how many messages it has completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aeth {
    /// Acknowledged, not ready, or refused.
    pub syndrome: Syndrome,
    /// Messages completed, modulo 2^24.
    pub messages: u32,
}

/// The headers behind the BTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extension {
    /// None.
    Plain,
    /// Immediate data.
    Immediate(u32),
    /// Where bytes go to, or come from.
    Reth(Reth),
    /// The same, and immediate data.
    RethImmediate(Reth, u32),
    /// A word and operands.
    Atomic(AtomicEth),
    /// What the responder says.
    Aeth(Aeth),
    /// The same, and what the word was.
    AethAtomic(Aeth, u64),
}

impl Extension {
    /// Which headers these are.
    pub const fn layout(&self) -> Layout {
        match self {
            Self::Plain => Layout::Plain,
            Self::Immediate(_) => Layout::Immediate,
            Self::Reth(_) => Layout::Reth,
            Self::RethImmediate(..) => Layout::RethImmediate,
            Self::Atomic(_) => Layout::Atomic,
            Self::Aeth(_) => Layout::Aeth,
            Self::AethAtomic(..) => Layout::AethAtomic,
        }
    }
}

/// A packet of the transport, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// What it is.
    pub opcode: Opcode,
    /// The receiver's application shall be notified of the completion.
    pub solicited: bool,
    /// The migration state; RoCE NICs set it.
    pub migrated: bool,
    /// The partition key.
    pub partition: u16,
    /// Congestion was met on the way (FECN), or is reported back (BECN).
    pub congestion: (bool, bool),
    /// The queue pair that it is for.
    pub to: QpNumber,
    /// The sender wants an acknowledgement.
    pub ack_request: bool,
    /// Its number.
    pub psn: Psn,
    /// The headers behind the BTH.
    pub extension: Extension,
}

impl Packet {
    /// A packet with the usual flags.
    pub const fn new(opcode: Opcode, to: QpNumber, psn: Psn, extension: Extension) -> Self {
        Self {
            opcode,
            solicited: false,
            migrated: true,
            partition: DEFAULT_PARTITION,
            congestion: (false, false),
            to,
            ack_request: false,
            psn,
            extension,
        }
    }

    /// Bytes of BTH and extension.
    pub const fn header_bytes(&self) -> usize {
        BTH_BYTES + self.opcode.layout().bytes()
    }

    /// The immediate data, where there are some.
    pub const fn immediate(&self) -> Option<u32> {
        match self.extension {
            Extension::Immediate(data) | Extension::RethImmediate(_, data) => Some(data),
            _ => None,
        }
    }

    /// Writes BTH and extension for a payload of so many bytes, and returns how many bytes those are. The payload
    /// stands behind them, and behind it [`padding`] zeroes.
    ///
    /// # Panics
    /// If the extension is not that of the opcode, or `out` is too short: [`MOST_HEADER_BYTES`] are always enough.
    pub fn encode(&self, payload: usize, out: &mut [u8]) -> usize {
        assert!(
            self.extension.layout() == self.opcode.layout(),
            "{:?} does not go with {:?}",
            self.extension,
            self.opcode
        );
        let (bth, out) = out.split_first_chunk_mut::<BTH_BYTES>().expect("room for a BTH");
        bth[0] = self.opcode as u8;
        bth[1] = flag(self.solicited, 0x80) | flag(self.migrated, 0x40) | (padding(payload) as u8) << 4;
        bth[2..4].copy_from_slice(&self.partition.to_be_bytes());
        bth[4..8].copy_from_slice(&self.to.get().to_be_bytes());
        bth[4] = flag(self.congestion.0, 0x80) | flag(self.congestion.1, 0x40);
        bth[8..12].copy_from_slice(&self.psn.get().to_be_bytes());
        bth[8] = flag(self.ack_request, 0x80);
        match self.extension {
            Extension::Plain => {}
            Extension::Immediate(data) => put(out, 0, &data.to_be_bytes()),
            Extension::Reth(reth) => put_reth(out, &reth),
            Extension::RethImmediate(reth, data) => {
                put_reth(out, &reth);
                put(out, 16, &data.to_be_bytes());
            }
            Extension::Atomic(atomic) => {
                put(out, 0, &atomic.address.to_be_bytes());
                put(out, 8, &atomic.key.0.to_be_bytes());
                put(out, 12, &atomic.swap_or_add.to_be_bytes());
                put(out, 20, &atomic.compare.to_be_bytes());
            }
            Extension::Aeth(aeth) => put_aeth(out, aeth),
            Extension::AethAtomic(aeth, original) => {
                put_aeth(out, aeth);
                put(out, 4, &original.to_be_bytes());
            }
        }
        self.header_bytes()
    }

    /// Reads BTH and extension of the bytes between UDP header and ICRC, and returns them with the payload.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (bth, rest) = bytes.split_first_chunk::<BTH_BYTES>().ok_or(Malformed::Truncated)?;
        if bth[1] & 0x0f != 0 {
            return Err(Malformed::Version);
        }
        let opcode = Opcode::from_wire(bth[0]).ok_or(Malformed::Opcode)?;
        let layout = opcode.layout();
        let (headers, rest) = rest.split_at_checked(layout.bytes()).ok_or(Malformed::Truncated)?;
        let reth = || Reth {
            address: u64_at(headers, 0),
            key: Key(u32_at(headers, 8)),
            length: u32_at(headers, 12),
        };
        let aeth = || {
            let syndrome = Syndrome::from_wire(headers[0]).ok_or(Malformed::Syndrome)?;
            Ok(Aeth { syndrome, messages: u32_at(headers, 0) & 0x00ff_ffff })
        };
        let extension = match layout {
            Layout::Plain => Extension::Plain,
            Layout::Immediate => Extension::Immediate(u32_at(headers, 0)),
            Layout::Reth => Extension::Reth(reth()),
            Layout::RethImmediate => Extension::RethImmediate(reth(), u32_at(headers, 16)),
            Layout::Atomic => Extension::Atomic(AtomicEth {
                address: u64_at(headers, 0),
                key: Key(u32_at(headers, 8)),
                swap_or_add: u64_at(headers, 12),
                compare: u64_at(headers, 20),
            }),
            Layout::Aeth => Extension::Aeth(aeth()?),
            Layout::AethAtomic => Extension::AethAtomic(aeth()?, u64_at(headers, 4)),
        };
        if rest.len() % 4 != 0 {
            return Err(Malformed::Alignment);
        }
        if !opcode.carries_payload() && !rest.is_empty() {
            return Err(Malformed::Payload);
        }
        let pad = usize::from(bth[1] >> 4 & 3);
        let payload = rest.len().checked_sub(pad).ok_or(Malformed::Padding)?;
        let packet = Self {
            opcode,
            solicited: bth[1] & 0x80 != 0,
            migrated: bth[1] & 0x40 != 0,
            partition: u16::from_be_bytes([bth[2], bth[3]]),
            congestion: (bth[4] & 0x80 != 0, bth[4] & 0x40 != 0),
            to: QpNumber::new(u32_at(bth, 4)),
            ack_request: bth[8] & 0x80 != 0,
            psn: Psn::new(u32_at(bth, 8)),
            extension,
        };
        Ok((packet, &rest[..payload]))
    }
}

/// Zeroes behind a payload, so that it ends on a multiple of four bytes.
pub const fn padding(payload: usize) -> usize {
    payload.wrapping_neg() & 3
}

const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

fn put_reth(out: &mut [u8], reth: &Reth) {
    put(out, 0, &reth.address.to_be_bytes());
    put(out, 8, &reth.key.0.to_be_bytes());
    put(out, 12, &reth.length.to_be_bytes());
}

fn put_aeth(out: &mut [u8], aeth: Aeth) {
    put(out, 0, &(aeth.messages & 0x00ff_ffff).to_be_bytes());
    out[0] = aeth.syndrome.to_wire();
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(core::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(core::array::from_fn(|i| bytes[at + i]))
}
