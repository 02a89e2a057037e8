//! What the switch is told of connections of chains, where it steers: before a connection's first packet, and when it is over for good.
//!
//! ```text
//!   bytes  0 .. 4: RCST | 4: what | 5: reads as asked | 0 .. | 8: client's queue pair 32, its first packet 32 | 16: region 32, life 32 | 24: number
//! ```
//!
//! Between the processes of a rack it travels beside what the coordinator says, and is repeated until the switch has heard it. What must
//! always hold: of two introductions of one queue pair that with the larger number counts.

use wire::roce::{Key, Psn, QpNumber};
use wire::{Incarnation, NodeId};

const MAGIC: [u8; 4] = *b"RCST";
const BYTES: usize = 32;

/// What is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Introduction {
    /// A connection begins, or begins anew.
    Begin {
        /// The client's queue pair.
        client: QpNumber,
        /// The first packet that it sends.
        first: Psn,
        /// The memory.
        region: Key,
        /// Of the client's node.
        life: Incarnation,
        /// Its reads are of what it asks for, and never sent elsewhere.
        as_asked: bool,
        number: u64,
    },
    /// All connections of a life of a node are over.
    End { node: NodeId, life: Incarnation, number: u64 },
    /// The switch has heard what had this number.
    Heard { number: u64 },
}

impl Introduction {
    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let (what, first, second, number) = match *self {
            Self::Begin { client, first, region, life, number, .. } => {
                let packet = u64::from(client.get()) << 32 | u64::from(first.get());
                (1, packet, u64::from(region.0) << 32 | u64::from(life.0), number)
            }
            Self::End { node, life, number } => (2, u64::from(node.0), u64::from(life.0), number),
            Self::Heard { number } => (3, 0, 0, number),
        };
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = what;
        bytes[5] = u8::from(matches!(self, Self::Begin { as_asked: true, .. }));
        for (at, word) in [(8, first), (16, second), (24, number)] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads one. None: it is something else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (first, second, number) = (word(8), word(16), word(24));
        let said = match bytes[4] {
            1 => Self::Begin {
                client: QpNumber::new((first >> 32) as u32),
                first: Psn::new(first as u32),
                region: Key((second >> 32) as u32),
                life: Incarnation(second as u32),
                as_asked: bytes[5] == 1,
                number,
            },
            2 => Self::End { node: NodeId(first as u16), life: Incarnation(second as u32), number },
            3 => Self::Heard { number },
            _ => return None,
        };
        (said.encode() == *bytes).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_as_it_was_written_and_nothing_else_is() {
        let (life, number) = (Incarnation(u32::MAX), u64::MAX - 1);
        let (client, first, region) = (QpNumber::new(0x80_1234), Psn::new(0xff_ffff), Key(77));
        for said in [
            Introduction::Begin { client, first, region, life, as_asked: false, number },
            Introduction::Begin { client, first, region, life, as_asked: true, number },
            Introduction::End { node: NodeId(63), life, number },
            Introduction::Heard { number },
        ] {
            let bytes = said.encode();
            assert_eq!(Introduction::parse(&bytes), Some(said));
            assert_eq!(Introduction::parse(&bytes[..31]), None);
            for at in [0, 4, 5, 7] {
                let mut damaged = bytes;
                damaged[at] ^= 0x40;
                assert_eq!(Introduction::parse(&damaged), None, "byte {at}");
            }
        }
    }
}
