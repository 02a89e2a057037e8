//! What the two ends of a connection that broke say to each other: which attempt they are at.
//!
//! What must always hold: what is said of other incarnations means nothing.

use wire::Incarnation;

use super::Incarnations;

/// What such a message begins with.
const MAGIC: [u8; 4] = *b"RCQP";

/// "We are at this attempt."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Again {
    /// Of the sender and the receiver, as the sender knows them.
    pub incarnations: Incarnations,
    /// Nobody has to answer.
    pub is_answer: bool,
}

impl Again {
    /// Its bytes.
    pub fn encode(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.incarnations.mine.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.incarnations.theirs.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.incarnations.attempt.to_le_bytes());
        bytes[16] = u8::from(self.is_answer);
        bytes
    }

    /// Reads one. None: it is something else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 20] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
        let is_answer = match bytes[16] {
            0 => false,
            1 => true,
            _ => return None,
        };
        if bytes[..4] != MAGIC || bytes[17..] != [0; 3] {
            return None;
        }
        let incarnations =
            Incarnations { mine: Incarnation(word(4)), theirs: Incarnation(word(8)), attempt: word(12) };
        Some(Self { incarnations, is_answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_as_it_was_written_and_nothing_else_is() {
        let incarnations = Incarnations { mine: Incarnation(3), theirs: Incarnation(1 << 30), attempt: 77 };
        for is_answer in [false, true] {
            let said = Again { incarnations, is_answer };
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
