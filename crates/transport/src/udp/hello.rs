//! Greetings: how two places learn each other's sessions.
//!
//! | bytes of the body | field |
//! | --- | --- |
//! | 0..16 | the sender's session |
//! | 16..32 | the sender's challenge to this place |
//! | 32..48 | echo: the challenge of the greeting that this one answers, or 0 |
//! | 48..64 | the receiver's session as the sender knows it, or 0 |
//!
//! A session is adopted from a greeting that echoes the receiver's present challenge, which is random and is drawn
//! anew each time that one was echoed. What must always hold: so a greeting does something at most once, and only
//! if it was written after the challenge was. One of a former life does nothing. (An echo of the receiver's *session*
//! would not be enough: a greeting of the sender's former life that named the same session could be sent again.)
//! The counter in the head says from where on the sender's counters are new, so that a window that begins anew
//! accepts nothing twice.

use super::envelope::{Envelope, HEAD, Kind};
use super::tag::{HelloKey, TAG};
use crate::place::PlaceId;

/// Bytes of the body.
pub(super) const BODY: usize = 64;

/// What a greeting says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    pub(super) session: u128,
    pub(super) challenge: u128,
    pub(super) echo: u128,
    pub(super) known: u128,
    /// The last counter that the sender has used for the receiver.
    pub(super) counter: u64,
}

impl Hello {
    /// Writes the whole datagram and returns its length.
    pub(super) fn encode(
        &self,
        from: PlaceId,
        to: PlaceId,
        key: Option<&HelloKey>,
        out: &mut [u8; HEAD + BODY + TAG],
    ) -> usize {
        let (head, rest) = out.split_first_chunk_mut().expect("room for the head");
        let guarded = key.is_some();
        let counter = self.counter;
        Envelope { kind: Kind::Hello, from, to, guarded, counter, from_session: 0, to_session: 0 }
            .encode(head);
        for (at, value) in [self.session, self.challenge, self.echo, self.known].into_iter().enumerate() {
            rest[16 * at..][..16].copy_from_slice(&value.to_le_bytes());
        }
        let Some(key) = key else { return HEAD + BODY };
        let (covered, tag) = out.split_last_chunk_mut::<TAG>().expect("room for the tag");
        *tag = key.tag(covered);
        HEAD + BODY + TAG
    }

    /// Reads the body. None: nobody writes such a greeting.
    pub(super) fn parse(head: &Envelope, body: &[u8]) -> Option<Self> {
        let body: &[u8; BODY] = body.try_into().ok()?;
        let value = |at: usize| u128::from_le_bytes(std::array::from_fn(|i| body[16 * at + i]));
        let hello = Self {
            session: value(0),
            challenge: value(1),
            echo: value(2),
            known: value(3),
            counter: head.counter,
        };
        let named = head.from_session == 0 && head.to_session == 0;
        (named && hello.session != 0 && hello.challenge != 0).then_some(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::{BODY, HEAD, Hello, TAG};
    use crate::place::PlaceId;
    use crate::udp::envelope::Envelope;

    #[test]
    fn a_greeting_comes_back_as_it_was_written() {
        let hello = Hello { session: 1 << 100, challenge: 2, echo: u128::MAX, known: 0, counter: 9 };
        let mut bytes = [0; HEAD + BODY + TAG];
        let length = hello.encode(PlaceId::SWITCH, PlaceId::OBSERVER, None, &mut bytes);
        let opened = Envelope::open(&bytes[..length]).expect("a datagram");
        assert_eq!(Hello::parse(&opened.head, opened.body), Some(hello));
    }

    #[test]
    fn a_greeting_without_session_or_challenge_is_refused() {
        for (session, challenge) in [(0, 1), (1, 0)] {
            let hello = Hello { session, challenge, echo: 0, known: 0, counter: 0 };
            let mut bytes = [0; HEAD + BODY + TAG];
            let length = hello.encode(PlaceId::SWITCH, PlaceId::OBSERVER, None, &mut bytes);
            let opened = Envelope::open(&bytes[..length]).expect("a datagram");
            assert_eq!(Hello::parse(&opened.head, opened.body), None);
        }
    }
}
