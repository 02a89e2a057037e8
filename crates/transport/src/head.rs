//! Heads of messages that are not all of one length, as transports write them: filled up with zeroes to a multiple of 8, so
//! that the words that follow lie where words can be read.
//!
//! | message | head |
//! | --- | --- |
//! | about a lock | header and wait queue |
//! | one-sided | 4 bytes with the payload's length, little-endian; 4 of zero; BTH and what its opcode says, for no payload |
//!
//! What must always hold: a head says how long its message is, and is refused if that is another length.

use wire::LockPacket;
use wire::locks::HEADER_BYTES;
use wire::roce;

use crate::MOST_ONE_SIDED;

/// The longest head: a queue of waiting nodes has 64 entries at most.
pub(crate) const MOST_HEAD: usize = HEADER_BYTES + 64;

/// Before the BTH.
const LENGTH: usize = 8;
/// The longest head of a one-sided message.
pub(crate) const MOST_ONE_SIDED_HEAD: usize = LENGTH + roce::MOST_HEADER_BYTES;
const _: () = assert!(MOST_ONE_SIDED_HEAD <= MOST_HEAD);
// Heads are copied in whole words.
const _: () = assert!(MOST_ONE_SIDED_HEAD.is_multiple_of(8) && MOST_HEAD.is_multiple_of(8));

/// A message's head.
pub(crate) struct Head {
    bytes: [u8; MOST_HEAD],
    len: usize,
}

impl Head {
    pub(crate) fn of_lock(packet: &LockPacket) -> Self {
        let mut bytes = [0; MOST_HEAD];
        let len = packet.encode(&mut bytes).next_multiple_of(8);
        Self { bytes, len }
    }

    /// How long the head of a packet is.
    pub(crate) const fn bytes_of_one_sided(packet: &roce::Packet) -> usize {
        (LENGTH + packet.header_bytes()).next_multiple_of(8)
    }

    /// The head of a packet with so many bytes of payload.
    pub(crate) fn of_one_sided(packet: &roce::Packet, payload: usize) -> Self {
        let mut bytes = [0; MOST_HEAD];
        bytes[..4].copy_from_slice(&(payload as u32).to_le_bytes());
        let len = (LENGTH + packet.encode(0, &mut bytes[LENGTH..])).next_multiple_of(8);
        Self { bytes, len }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Reads a packet about a lock from the beginning of a message that is `total` bytes long, of which `bytes` holds as much as a
/// head can have; returns it with the length of its head. None for what nobody writes, or with another payload than it says,
/// or a larger one than `most`.
pub(crate) fn parse_lock(bytes: &[u8], total: usize, most: u64) -> Option<(LockPacket, usize)> {
    let (packet, _) = LockPacket::parse_head(bytes)?;
    let head = packet.head_bytes();
    let padded = head.next_multiple_of(8);
    let zeroes = bytes.get(head..padded)?;
    let payload = packet.payload as usize;
    let fits = zeroes.iter().all(|byte| *byte == 0)
        && payload.is_multiple_of(8)
        && u64::from(packet.payload) <= most
        && padded + payload == total;
    fits.then_some((packet, padded))
}

/// A one-sided packet that was read from the beginning of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verbs {
    pub(crate) packet: roce::Packet,
    /// Bytes of payload; behind them zeroes up to a multiple of 8.
    pub(crate) payload: usize,
    /// Bytes of the head.
    pub(crate) head: usize,
}

/// The same for a one-sided packet.
pub(crate) fn parse_one_sided(bytes: &[u8], total: usize) -> Option<Verbs> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let payload = u32::from_le_bytes(*length) as usize;
    let (zeroes, rest) = rest.split_first_chunk::<4>()?;
    let layout = roce::Opcode::from_wire(*rest.first()?)?.layout();
    let headers = roce::BTH_BYTES + layout.bytes();
    let head = (LENGTH + headers).next_multiple_of(8);
    let (packet, _) = roce::Packet::parse(rest.get(..headers)?).ok()?;
    let filled = rest.get(headers..head - LENGTH)?;
    let fits = *zeroes == [0; 4]
        && filled.iter().all(|byte| *byte == 0)
        && payload <= MOST_ONE_SIDED
        && (payload == 0 || packet.opcode.carries_payload())
        && head + payload.next_multiple_of(8) == total;
    fits.then_some(Verbs { packet, payload, head })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::locks::WaitList;
    use wire::{GlobalAddr, LockKind, Mode, NodeId};

    #[test]
    fn a_head_is_read_as_it_was_written_and_nothing_else_is() {
        for waiting in [0, 1, 8, 63] {
            let mut queue = WaitList::EMPTY;
            (0..waiting).for_each(|node| queue.push(NodeId(node), Mode::Write));
            let lock = GlobalAddr::new(NodeId(1), 64);
            let packet =
                LockPacket { queue, payload: 16, ..LockPacket::new(LockKind::Hand, lock, 16, NodeId(2)) };
            let head = Head::of_lock(&packet);
            let bytes = head.bytes();
            assert_eq!(parse_lock(bytes, bytes.len() + 16, 16), Some((packet, bytes.len())));
            assert_eq!(parse_lock(bytes, bytes.len() + 8, 16), None, "half of the payload");
            assert_eq!(parse_lock(bytes, bytes.len() + 16, 8), None, "more than there may be");
            let mut damaged = bytes.to_vec();
            *damaged.last_mut().unwrap() = 1;
            let read = parse_lock(&damaged, bytes.len() + 16, 16);
            assert!(read.is_none_or(|(read, _)| read != packet), "{waiting} waiting");
        }
    }

    #[test]
    fn a_one_sided_head_is_read_as_it_was_written_and_nothing_else_is() {
        use roce::{Aeth, Extension, Key, Layout, Opcode, Packet, Psn, QpNumber, Reth, Syndrome};
        let reth = Reth { address: 0x1234_5678, key: Key(0x9900), length: 77 };
        let aeth = Aeth { syndrome: Syndrome::Ack(31), messages: 9 };
        for &opcode in Opcode::ALL {
            let extension = match opcode.layout() {
                Layout::Plain => Extension::Plain,
                Layout::Immediate => Extension::Immediate(7),
                Layout::Reth => Extension::Reth(reth),
                Layout::RethImmediate => Extension::RethImmediate(reth, 8),
                Layout::Atomic => {
                    Extension::Atomic(roce::AtomicEth { address: 8, key: Key(1), swap_or_add: 2, compare: 3 })
                }
                Layout::Aeth => Extension::Aeth(aeth),
                Layout::AethAtomic => Extension::AethAtomic(aeth, u64::MAX),
            };
            let packet = Packet::new(opcode, QpNumber::new(5), Psn::new(6), extension);
            for payload in if opcode.carries_payload() { 0..20 } else { 0..1 } {
                let head = Head::of_one_sided(&packet, payload);
                let (bytes, total) = (head.bytes(), head.bytes().len() + payload.next_multiple_of(8));
                let read = Verbs { packet, payload, head: bytes.len() };
                assert_eq!(parse_one_sided(bytes, total), Some(read));
                assert_eq!(parse_one_sided(bytes, total + 8), None, "longer than it says");
                assert_eq!(parse_one_sided(&bytes[..bytes.len() - 1], total), None, "cut");
                for at in 4..8 {
                    let mut damaged = bytes.to_vec();
                    damaged[at] = 1;
                    assert_eq!(parse_one_sided(&damaged, total), None, "byte {at}");
                }
            }
            let long = Head::of_one_sided(&packet, MOST_ONE_SIDED + 8);
            let total = long.bytes().len() + MOST_ONE_SIDED + 8;
            assert_eq!(parse_one_sided(long.bytes(), total), None, "too long");
            if !opcode.carries_payload() {
                let mut damaged = Head::of_one_sided(&packet, 0).bytes().to_vec();
                damaged[0] = 8;
                assert_eq!(parse_one_sided(&damaged, damaged.len() + 8), None, "{opcode:?}");
            }
        }
    }
}
