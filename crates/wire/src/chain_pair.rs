//! Queue pairs between the clients of chains and memory: their numbers say who is at which end.
//!
//! In every NIC, and in the switch, which carries what passes between them and steers it. What must always hold: numbers of these
//! queue pairs have their highest bit set, and no others have; a number and that of the other end follow from each other.
//!
//! ```text
//!   queue pair   1 | owner 6 | peer 6 | end 1 | thread 10
//! ```

use crate::NodeId;
use crate::roce::QpNumber;

/// Threads of a node that can have queue pairs at a time.
pub const THREADS: u16 = 1 << 10;

const IS_CHAIN: u32 = 1 << 23;

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum End {
    /// Where requests are made.
    Client,
    /// Where they are executed.
    Memory,
}

/// One end of the connection of a thread to a memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChainPair {
    /// The node that has this end.
    pub owner: NodeId,
    /// The node that has the other one: it may be the same.
    pub peer: NodeId,
    /// Which end this is.
    pub end: End,
    /// The client's number among those of its node.
    pub thread: u16,
}

impl ChainPair {
    /// The client's end of the connection of a thread of `client` to the memory of `memory`.
    pub const fn of_client(client: NodeId, memory: NodeId, thread: u16) -> Self {
        Self { owner: client, peer: memory, end: End::Client, thread }
    }

    /// The other end.
    pub const fn other(self) -> Self {
        let end = match self.end {
            End::Client => End::Memory,
            End::Memory => End::Client,
        };
        Self { owner: self.peer, peer: self.owner, end, thread: self.thread }
    }

    /// Its number.
    ///
    /// # Panics
    /// If a rack cannot have such nodes, or a node not so many threads.
    pub const fn number(self) -> QpNumber {
        assert!(self.owner.0 < 64 && self.peer.0 < 64 && self.thread < THREADS);
        let (owner, peer) = (self.owner.0 as u32, self.peer.0 as u32);
        QpNumber::new(IS_CHAIN | owner << 17 | peer << 11 | (self.end as u32) << 10 | self.thread as u32)
    }

    /// The one with this number. None: it is a queue pair for something else.
    pub const fn of(number: QpNumber) -> Option<Self> {
        let bits = number.get();
        if bits & IS_CHAIN == 0 {
            return None;
        }
        Some(Self {
            owner: NodeId((bits >> 17 & 63) as u16),
            peer: NodeId((bits >> 11 & 63) as u16),
            end: if bits >> 10 & 1 == 0 { End::Client } else { End::Memory },
            thread: (bits & 0x3ff) as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_chains_queue_pair_is_read_as_it_was_written_and_no_other_is_one() {
        for bits in 0..1 << 24 {
            let number = QpNumber::new(bits);
            match ChainPair::of(number) {
                None => assert_eq!(bits >> 23, 0),
                Some(pair) => {
                    assert_eq!(pair.number(), number);
                    assert_eq!(pair.other().other(), pair);
                    assert_ne!(pair.other().number(), number, "also where both ends are at one node");
                }
            }
        }
    }
}
