//! How a connection begins anew whose queue pair is in error.
//!
//! That happens when the other node is silent for long without being dead, or when somebody uses the key of a region that ended
//! long ago. Whoever notices fails what was under way, counts the attempt up, and says so until the other node has done the same.
//!
//! What must always hold: both ends go to the larger attempt; what is said of other lives means nothing.

use transport::{Body, PlaceId};
use wire::{Incarnation, Nanos, NodeId};

use super::connection::Lives;
use super::nic::{Nic, Way};
use crate::place::Failure;

/// Between two times that it is said.
const BETWEEN: Nanos = Nanos::from_millis(10);
/// What such a message begins with.
const MAGIC: [u8; 4] = *b"RCQP";

/// "We are at this attempt."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Again {
    /// Of the sender and the receiver, as the sender knows them.
    lives: Lives,
    /// Nobody has to answer.
    is_answer: bool,
}

impl Again {
    #[cfg(test)]
    pub(super) const fn of(lives: Lives, is_answer: bool) -> Self {
        Self { lives, is_answer }
    }

    fn encode(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.lives.mine.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.lives.theirs.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.lives.attempt.to_le_bytes());
        bytes[16] = u8::from(self.is_answer);
        bytes
    }

    /// Reads one. None: it is something else.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 20] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let is_answer = match bytes[16] {
            0 => false,
            1 => true,
            _ => return None,
        };
        if bytes[..4] != MAGIC || bytes[17..] != [0; 3] {
            return None;
        }
        let lives = Lives { mine: Incarnation(word(4)), theirs: Incarnation(word(8)), attempt: word(12) };
        Some(Self { lives, is_answer })
    }
}

impl Nic {
    /// Connections that have broken begin anew.
    pub(super) fn mend_broken(&mut self, now: Nanos, way: &mut Way<'_>) {
        if !std::mem::take(&mut self.is_any_broken) {
            return;
        }
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            if let (true, Some(lives)) = (connection.is_broken, connection.lives) {
                let peer = NodeId(index as u16);
                self.renew(now, peer, Lives { attempt: lives.attempt.wrapping_add(1), ..lives }, way);
                self.say_again(now, peer, false, way);
            }
        }
    }

    fn renew(&mut self, now: Nanos, peer: NodeId, lives: Lives, way: &mut Way<'_>) {
        self.disconnect(peer, Failure::Broken);
        self.connect(now, peer, lives, way);
    }

    /// Says which attempt this end is at; if it is no answer, until there is one.
    fn say_again(&mut self, now: Nanos, peer: NodeId, is_answer: bool, way: &mut Way<'_>) {
        let connection = &mut self.connections[peer.index()];
        let Some(lives) = connection.lives else { return };
        if !is_answer {
            connection.say_again = now + BETWEEN;
            self.say_again = self.say_again.min(now + BETWEEN);
        }
        if !way.is_fenced {
            let bytes = Again { lives, is_answer }.encode();
            way.transport.send(PlaceId::node(peer), Body::Control(&bytes), way.outgoing);
        }
    }

    /// What another node says.
    pub(super) fn on_again(&mut self, now: Nanos, from: NodeId, said: &Again, way: &mut Way<'_>) {
        let Some(mine) = self.connections[from.index()].lives else { return };
        if (said.lives.mine, said.lives.theirs) != (mine.theirs, mine.mine) {
            return;
        }
        let attempt = said.lives.attempt;
        if attempt > mine.attempt {
            self.renew(now, from, Lives { attempt, ..mine }, way);
        } else if attempt == mine.attempt {
            // It is where we are.
            self.connections[from.index()].say_again = Nanos::MAX;
        }
        if attempt < mine.attempt || !said.is_answer {
            self.say_again(now, from, attempt >= mine.attempt, way);
        }
    }

    /// Says once more what has not been answered.
    pub(super) fn repeat_again(&mut self, now: Nanos, way: &mut Way<'_>) {
        if self.say_again > now {
            return;
        }
        self.say_again =
            self.connections.iter().map(|it| it.say_again).filter(|it| *it > now).min().unwrap_or(Nanos::MAX);
        for index in 0..self.connections.len() {
            if self.connections[index].say_again <= now {
                self.say_again(now, NodeId(index as u16), false, way);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_as_it_was_written_and_nothing_else_is() {
        let lives = Lives { mine: Incarnation(3), theirs: Incarnation(1 << 30), attempt: 77 };
        for is_answer in [false, true] {
            let said = Again { lives, is_answer };
            let bytes = said.encode();
            assert_eq!(Again::parse(&bytes), Some(said));
            assert_eq!(Again::parse(&bytes[..19]), None);
            for (at, value) in [(0, 0), (3, 0), (16, 2), (19, 1)] {
                let mut damaged = bytes;
                damaged[at] = value;
                assert_eq!(Again::parse(&damaged), None, "byte {at}");
            }
        }
    }
}
