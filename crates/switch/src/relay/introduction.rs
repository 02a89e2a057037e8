//! What the switch is told about chains, where it steers: of connections before their first packet, and of stores.
//!
//! ```text
//!   bytes  0 .. 4: RCST | 4: what | 5: reads as asked | 6: memory's incarnation | 8, 16, 32: see below | 24: number
//!   begin  client's queue pair 32, its first packet 32 | region 32, incarnation 32 | metadata server's node 32, its incarnation 32
//!   end    node | incarnation              over   memory | region
//!   scan   memory | region          tail   key | location 32, version 32
//!   bytes 40 .. 48, of begin and scan: the epoch that names the switch
//! ```
//!
//! Between the processes of a rack it travels beside what the coordinator says, and is repeated until the switch has heard it. So one may
//! be in flight when the switch dies, and reach the next one. That drops what is true only of its predecessor, which it knows by the epoch:
//! the one in which the sender was *before* it began what it tells of. A switch that began with that epoch or before has forwarded every
//! packet of it. An epoch in which only a node died makes no new switch, so what was in flight counts; and a sender that hears of an
//! epoch begins all anew, with new packet numbers: an old connection is never told under a new epoch.
//!
//! What must always hold: of two introductions of one queue pair that with the larger number counts.

use wire::chains::{EntryVersion, Location};
use wire::roce::{Key, Psn, QpNumber};
use wire::{Incarnation, NodeId, SwitchEpoch};

const MAGIC: [u8; 4] = *b"RCST";
const BYTES: usize = 48;

/// What is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Introduction {
    /// A connection begins, or begins anew. Names the switch: another one has not seen what was sent on it since, and must not take
    /// itself for one that knows it.
    Begin {
        /// The client's queue pair.
        client: QpNumber,
        /// The first packet that it sends.
        first: Psn,
        /// The memory.
        region: Key,
        /// Of the memory's node: the lower bits.
        of: u16,
        /// Of the client's node.
        incarnation: Incarnation,
        /// The node of the store's metadata server, and which incarnation of it: with that the store is over.
        server: (NodeId, Incarnation),
        /// The epoch in which its client was, before the connection had a packet number.
        switch: SwitchEpoch,
        /// Its reads are of what it asks for, and never sent elsewhere.
        as_asked: bool,
        /// Of the introduction.
        number: u64,
    },
    /// All connections of an incarnation of a node are over. Names no switch: that is so for ever, and for each of them.
    End {
        /// The node.
        node: NodeId,
        /// Its incarnation.
        incarnation: Incarnation,
        /// Of the introduction.
        number: u64,
    },
    /// The switch has heard what had this number. Names no switch: numbers are not used twice, and who has heard of a later epoch does
    /// not wait for this one any more.
    Heard {
        /// Of the introduction that was heard.
        number: u64,
    },
    /// Somebody is going to look for the tails of a store's chains: of the one in this memory, of this incarnation of its node. What he finds
    /// counts for a short time from now on. Names the switch: for another one, that time would begin when this arrives, long after he did.
    Scan {
        /// The node whose memory it is in.
        memory: NodeId,
        /// The lower bits of that node's incarnation.
        of: u16,
        /// The memory.
        region: Key,
        /// The epoch in which he was, before he began to look.
        switch: SwitchEpoch,
        /// Of the introduction.
        number: u64,
    },
    /// He has found this one. Nobody answers. Names no switch but by the number: one that did not hear of the scan drops it.
    Tail {
        /// The chain's.
        key: u64,
        /// Where its tail is.
        at: Location,
        /// Which use of that slot.
        version: EntryVersion,
        /// That of the introduction which said that he would look.
        number: u64,
    },
    /// A store is over: the one in this memory, of this incarnation of its node. Names no switch: no other store will have that memory's key.
    Over {
        /// The node whose memory it is in.
        memory: NodeId,
        /// The lower bits of that node's incarnation.
        of: u16,
        /// The memory.
        region: Key,
        /// Of the introduction.
        number: u64,
    },
}

impl Introduction {
    /// Which one it is: a later one has a larger number, at its node.
    pub const fn number(&self) -> u64 {
        match *self {
            Self::Begin { number, .. }
            | Self::End { number, .. }
            | Self::Heard { number }
            | Self::Scan { number, .. }
            | Self::Tail { number, .. }
            | Self::Over { number, .. } => number,
        }
    }

    /// The epoch that names the switch for which it is, if it is not for every one.
    pub const fn switch(&self) -> Option<SwitchEpoch> {
        match *self {
            Self::Begin { switch, .. } | Self::Scan { switch, .. } => Some(switch),
            Self::End { .. } | Self::Heard { .. } | Self::Tail { .. } | Self::Over { .. } => None,
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; BYTES] {
        let (mut bytes, mut third) = ([0; BYTES], 0);
        let (what, first, second) = match *self {
            Self::Begin { client, first, region, of, incarnation, server: (node, its), as_asked, .. } => {
                third = u64::from(node.0) << 32 | u64::from(its.0);
                bytes[5] = u8::from(as_asked);
                bytes[6..8].copy_from_slice(&of.to_le_bytes());
                let packet = u64::from(client.get()) << 32 | u64::from(first.get());
                (1, packet, u64::from(region.0) << 32 | u64::from(incarnation.0))
            }
            Self::End { node, incarnation, .. } => (2, u64::from(node.0), u64::from(incarnation.0)),
            Self::Heard { .. } => (3, 0, 0),
            Self::Tail { key, at, version, .. } => {
                (5, key, u64::from(at.to_bits()) << 32 | u64::from(version.0))
            }
            Self::Scan { memory, of, region, .. } | Self::Over { memory, of, region, .. } => {
                bytes[6..8].copy_from_slice(&of.to_le_bytes());
                let what = if matches!(self, Self::Scan { .. }) { 4 } else { 6 };
                (what, u64::from(memory.0), u64::from(region.0))
            }
        };
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = what;
        let switch = self.switch().map_or(0, |epoch| u64::from(epoch.0));
        for (at, word) in [(8, first), (16, second), (24, self.number()), (32, third), (40, switch)] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads one. None: it is something else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
        let (first, second, number, third) = (word(8), word(16), word(24), word(32));
        let (of, switch) = (u16::from_le_bytes([bytes[6], bytes[7]]), SwitchEpoch(word(40) as u32));
        let said = match bytes[4] {
            1 => Self::Begin {
                client: QpNumber::new((first >> 32) as u32),
                first: Psn::new(first as u32),
                region: Key((second >> 32) as u32),
                of,
                incarnation: Incarnation(second as u32),
                server: (NodeId((third >> 32) as u16), Incarnation(third as u32)),
                switch,
                as_asked: bytes[5] == 1,
                number,
            },
            2 => Self::End { node: NodeId(first as u16), incarnation: Incarnation(second as u32), number },
            3 => Self::Heard { number },
            4 => Self::Scan { memory: NodeId(first as u16), of, region: Key(second as u32), switch, number },
            5 => {
                let at = Location::from_bits((second >> 32) as u32)?;
                Self::Tail { key: first, at, version: EntryVersion(second as u8), number }
            }
            6 => Self::Over { memory: NodeId(first as u16), of, region: Key(second as u32), number },
            _ => return None,
        };
        (said.encode() == *bytes).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::chains::{Class, UNITS};

    #[test]
    fn what_is_said_is_read_as_it_was_written_and_nothing_else_is() {
        let (incarnation, number, of) = (Incarnation(u32::MAX), u64::MAX - 1, 0x8001);
        let (client, first, region) = (QpNumber::new(0x80_1234), Psn::new(0xff_ffff), Key(77));
        let at = Location::new(Class::new(15).unwrap(), UNITS - 1);
        let (server, switch) = ((NodeId(63), Incarnation(u32::MAX - 1)), SwitchEpoch(u32::MAX - 2));
        for said in [
            Introduction::Begin {
                client,
                first,
                region,
                of,
                incarnation,
                server,
                switch,
                as_asked: false,
                number,
            },
            Introduction::Begin {
                client,
                first,
                region,
                of,
                incarnation,
                server,
                switch,
                as_asked: true,
                number,
            },
            Introduction::End { node: NodeId(63), incarnation, number },
            Introduction::Heard { number },
            Introduction::Scan { memory: NodeId(63), of, region, switch, number },
            Introduction::Tail { key: u64::MAX, at, version: EntryVersion(255), number },
            Introduction::Over { memory: NodeId(63), of, region, number },
        ] {
            let bytes = said.encode();
            assert_eq!(Introduction::parse(&bytes), Some(said));
            assert_eq!(Introduction::parse(&bytes[..BYTES - 1]), None);
            for at in [0, 4, 5, 47] {
                let mut damaged = bytes;
                damaged[at] ^= 0x40;
                assert_eq!(Introduction::parse(&damaged), None, "byte {at}");
            }
        }
    }
}
