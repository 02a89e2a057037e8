//! The head of a message about a lock, as transports write it: header and wait queue, then zeroes up to a multiple of 8,
//! so that the region's words that follow lie where words can be read.

use wire::LockPacket;
use wire::lock::HEADER_BYTES;

/// The longest head: a queue has 64 entries at most.
pub(crate) const MOST_HEAD: usize = HEADER_BYTES + 64;

/// A packet's head.
pub(crate) struct LockHead {
    bytes: [u8; MOST_HEAD],
    len: usize,
}

impl LockHead {
    pub(crate) fn of(packet: &LockPacket) -> Self {
        let mut bytes = [0; MOST_HEAD];
        let len = packet.encode(&mut bytes).next_multiple_of(8);
        Self { bytes, len }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Reads a packet from the beginning of a message that is `total` bytes long, of which `bytes` holds as much as a head can
/// have; returns it with the length of its head. None for what nobody writes, or with another payload than it says, or
/// a larger one than `most`.
pub(crate) fn parse_head(bytes: &[u8], total: usize, most: u64) -> Option<(LockPacket, usize)> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use wire::lock::WaitList;
    use wire::{GlobalAddr, LockKind, Mode, NodeId};

    #[test]
    fn a_head_is_read_as_it_was_written_and_nothing_else_is() {
        for waiting in [0, 1, 8, 63] {
            let mut queue = WaitList::EMPTY;
            (0..waiting).for_each(|node| queue.push(NodeId(node), Mode::Write));
            let lock = GlobalAddr::new(NodeId(1), 64);
            let packet =
                LockPacket { queue, payload: 16, ..LockPacket::new(LockKind::Hand, lock, 16, NodeId(2)) };
            let head = LockHead::of(&packet);
            let bytes = head.bytes();
            assert_eq!(parse_head(bytes, bytes.len() + 16, 16), Some((packet, bytes.len())));
            assert_eq!(parse_head(bytes, bytes.len() + 8, 16), None, "half of the payload");
            assert_eq!(parse_head(bytes, bytes.len() + 16, 8), None, "more than there may be");
            let mut damaged = bytes.to_vec();
            *damaged.last_mut().unwrap() = 1;
            let read = parse_head(&damaged, bytes.len() + 16, 16);
            assert!(read.is_none_or(|(read, _)| read != packet), "{waiting} waiting");
        }
    }
}
