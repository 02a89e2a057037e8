//! Greetings: how two peers learn each other's sessions, and whether they agree on what a rack must agree on.
//!
//! | bytes of the body | field |
//! | --- | --- |
//! | 0..16 | the sender's session |
//! | 16..32 | the sender's challenge to this peer |
//! | 32..48 | echo: the challenge of the greeting that this one answers, or 0 |
//! | 48..64 | the receiver's session as the sender knows it, or 0 |
//! | 64..66 | bytes of the settings |
//! | 66 | 1: the sender is elsewhere than the rack file says, and is answered where it speaks from; or 0 |
//! | 67..72 | 0 |
//! | 72.. | the sender's settings ([`Terms`]), filled up with zeroes to a multiple of 8 |
//!
//! The head and the first 64 bytes are the same in all versions; what is behind them is read only in this one.
//!
//! A session is adopted from a greeting that echoes the receiver's present challenge, which is random and is drawn
//! anew each time that one was echoed. What must always hold: so a greeting does something at most once, and only
//! if it was written after the challenge was. One of a former incarnation does nothing. (An echo of the receiver's *session*
//! would not be enough: a greeting of the sender's former incarnation that named the same session could be sent again.)
//! The same goes for a greeting with other settings, or of another version: it is refused, and nothing else changes.
//! The counter in the head says from where on the sender's counters are new, so that a window that begins anew
//! accepts nothing twice.

use super::config::UdpConfig;
use super::envelope::{Envelope, EnvelopeKind, HEAD};
use super::tag::{HelloKey, TAG};
use crate::peer::PeerId;
use crate::terms::{MOST_TERMS, Terms, WIRE_VERSION};

/// Bytes of the body that all versions have.
const FRONT: usize = 64;
/// Where the settings begin.
const TERMS: usize = FRONT + 8;

/// A greeting fits a datagram of the shortest path, in IPv6.
const _: () = assert!(HEAD + TERMS + MOST_TERMS + TAG + 40 + 8 <= UdpConfig::LEAST_MTU);

/// What a greeting says in all versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    pub(super) session: u128,
    pub(super) challenge: u128,
    pub(super) echo: u128,
    pub(super) known: u128,
    /// The last counter that the sender has used for the receiver.
    pub(super) counter: u64,
    /// The sender is elsewhere than the rack file says. (Not in all versions.)
    pub(super) elsewhere: bool,
}

/// What else it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Offer {
    /// The sender's settings.
    Terms(Terms),
    /// What this version cannot read.
    Version(u8),
}

impl Hello {
    /// The whole datagram.
    pub(super) fn encode(&self, from: PeerId, to: PeerId, terms: &Terms, key: Option<&HelloKey>) -> Vec<u8> {
        let mut bytes = vec![0; HEAD + TERMS];
        let (head, body) = bytes.split_first_chunk_mut().expect("room for the head");
        Envelope {
            version: WIRE_VERSION,
            kind: EnvelopeKind::Hello,
            from,
            to,
            guarded: key.is_some(),
            counter: self.counter,
            from_session: 0,
            to_session: 0,
        }
        .encode(head);
        for (at, value) in [self.session, self.challenge, self.echo, self.known].into_iter().enumerate() {
            body[16 * at..][..16].copy_from_slice(&value.to_le_bytes());
        }
        body[FRONT + 2] = u8::from(self.elsewhere);
        let terms = terms.as_bytes();
        body[FRONT..FRONT + 2].copy_from_slice(&(terms.len() as u16).to_le_bytes());
        bytes.extend(terms);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        if let Some(key) = key {
            let tag = key.tag(&bytes);
            bytes.extend(tag);
        }
        bytes
    }

    /// Reads the body. None: nobody writes such a greeting, in any version.
    pub(super) fn parse(head: &Envelope, body: &[u8]) -> Option<(Self, Offer)> {
        let (front, rest) = body.split_first_chunk::<FRONT>()?;
        let value = |at: usize| u128::from_le_bytes(std::array::from_fn(|i| front[16 * at + i]));
        let hello = Self {
            session: value(0),
            challenge: value(1),
            echo: value(2),
            known: value(3),
            counter: head.counter,
            elsewhere: false,
        };
        let named = head.from_session == 0 && head.to_session == 0;
        let hello = (named && hello.session != 0 && hello.challenge != 0).then_some(hello)?;
        if head.version != WIRE_VERSION {
            return Some((hello, Offer::Version(head.version)));
        }
        let ([low, high, elsewhere @ 0..=1, reserved @ ..], rest) =
            rest.split_first_chunk::<{ TERMS - FRONT }>()?
        else {
            return None;
        };
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (terms, filling) = rest.split_at_checked(length)?;
        let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        if !zero(reserved) || !zero(filling) || filling.len() >= 8 {
            return None;
        }
        Some((Self { elsewhere: *elsewhere == 1, ..hello }, Offer::Terms(Terms::parse(terms)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::{FRONT, HEAD, Hello, Offer, TERMS, Terms, WIRE_VERSION};
    use crate::peer::PeerId;
    use crate::udp::envelope::Envelope;

    fn written(hello: Hello, terms: &Terms) -> Vec<u8> {
        hello.encode(PeerId::SWITCH, PeerId::OBSERVER, terms, None)
    }

    fn read(bytes: &[u8]) -> Option<(Hello, Offer)> {
        let opened = Envelope::open(bytes)?;
        Hello::parse(&opened.head, opened.body)
    }

    fn greeting() -> (Hello, Terms) {
        let hello =
            Hello { session: 1 << 100, challenge: 2, echo: u128::MAX, known: 0, counter: 9, elsewhere: true };
        (hello, Terms::new([("block", "4 KiB"), ("name", "lab")]))
    }

    #[test]
    fn a_greeting_comes_back_as_it_was_written() {
        let (hello, terms) = greeting();
        assert_eq!(read(&written(hello, &terms)), Some((hello, Offer::Terms(terms))));
    }

    #[test]
    fn a_greeting_without_session_or_challenge_is_refused() {
        for (session, challenge) in [(0, 1), (1, 0)] {
            let hello = Hello { session, challenge, echo: 0, known: 0, counter: 0, elsewhere: false };
            assert_eq!(read(&written(hello, &Terms::default())), None);
        }
    }

    #[test]
    fn of_another_version_the_front_is_read_and_no_more() {
        let (hello, terms) = greeting();
        for version in [0, WIRE_VERSION - 1, WIRE_VERSION + 1, u8::MAX] {
            let mut bytes = written(hello, &terms);
            bytes[2] = version;
            bytes[HEAD + FRONT..].fill(0xee);
            let hello = Hello { elsewhere: false, ..hello };
            assert_eq!(read(&bytes), Some((hello, Offer::Version(version))));
            assert_eq!(read(&bytes[..HEAD + FRONT]), Some((hello, Offer::Version(version))));
            assert_eq!(read(&bytes[..HEAD + FRONT - 8]), None);
        }
    }

    #[test]
    fn a_greeting_that_is_cut_or_filled_up_with_more_than_zeroes_is_refused() {
        let (hello, terms) = greeting();
        let bytes = written(hello, &terms);
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]), None, "{length} bytes");
        }
        let mut longer = bytes.clone();
        longer.extend([0; 8]);
        assert_eq!(read(&longer), None);
        for at in [HEAD + FRONT, HEAD + FRONT + 2, HEAD + TERMS, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] = 0xff;
            assert_eq!(read(&damaged), None, "byte {at}");
        }
    }
}
