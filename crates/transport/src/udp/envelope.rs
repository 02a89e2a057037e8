//! The head of every datagram. Little-endian; what follows it begins at a multiple of 8.
//!
//! | bytes | field | |
//! | --- | --- | --- |
//! | 0..2 | magic | `RU` |
//! | 2 | version | [`WIRE_VERSION`] |
//! | 3 | kind | 1 data ([`super::record`]), 2 greeting ([`super::hello`]), 3, 4 a single packet ([`super::single`]) |
//! | 4, 5 | from, to | [`PeerId`] |
//! | 6 | guard | 0 none, 1 a tag of 16 bytes at the end ([`super::tag`]) |
//! | 7 | reserved | 0 |
//! | 8..16 | counter | data, single packet: of this datagram; greeting: the last one used for this peer |
//! | 16..24 | sender's session | its first half; greeting: 0 |
//! | 24..32 | receiver's session | its first half, as the sender knows it; greeting: 0 |
//!
//! What must always hold: the tag is over everything before it, so nothing here is believed before it was checked.
//! Until then the fields only say which key to check with, and what to count if that fails. The head and the tag of a
//! greeting are the same in all versions, so that processes of different versions can say so to each other.

use super::tag::TAG;
use crate::peer::PeerId;
use crate::terms::WIRE_VERSION;

/// Bytes of the head.
pub(super) const HEAD: usize = 32;

pub(super) const MAGIC: [u8; 2] = *b"RU";

/// What a datagram is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum EnvelopeKind {
    Data = 1,
    Hello = 2,
    Single = 3,
    SingleLock = 4,
}

/// A head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Envelope {
    /// Of what follows: this one, but for greetings.
    pub(super) version: u8,
    pub(super) kind: EnvelopeKind,
    pub(super) from: PeerId,
    pub(super) to: PeerId,
    /// There is a tag.
    pub(super) guarded: bool,
    pub(super) counter: u64,
    /// The name of the sender's session.
    pub(super) from_session: u64,
    /// The name of the receiver's.
    pub(super) to_session: u64,
}

/// A datagram taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Opened<'a> {
    pub(super) head: Envelope,
    /// Between the head and the tag.
    pub(super) body: &'a [u8],
    /// What the tag is over.
    pub(super) covered: &'a [u8],
    /// The tag, if there is one.
    pub(super) tag: Option<&'a [u8; TAG]>,
}

impl Envelope {
    /// Writes the head.
    pub(super) fn encode(&self, out: &mut [u8; HEAD]) {
        out[0..2].copy_from_slice(&MAGIC);
        out[2] = self.version;
        out[3] = self.kind as u8;
        out[4] = self.from.to_wire();
        out[5] = self.to.to_wire();
        out[6] = u8::from(self.guarded);
        out[7] = 0;
        out[8..16].copy_from_slice(&self.counter.to_le_bytes());
        out[16..24].copy_from_slice(&self.from_session.to_le_bytes());
        out[24..32].copy_from_slice(&self.to_session.to_le_bytes());
    }

    /// Takes a datagram apart. None: nobody of this rack's format has written it.
    pub(super) fn open(bytes: &[u8]) -> Option<Opened<'_>> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        if head[0..2] != MAGIC || head[7] != 0 || !bytes.len().is_multiple_of(8) {
            return None;
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let guarded = match head[6] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let kind = match head[3] {
            1 => EnvelopeKind::Data,
            2 => EnvelopeKind::Hello,
            3 => EnvelopeKind::Single,
            4 => EnvelopeKind::SingleLock,
            _ => return None,
        };
        let version = head[2];
        if version != WIRE_VERSION && kind != EnvelopeKind::Hello {
            return None;
        }
        let head = Self {
            version,
            kind,
            from: PeerId::from_wire(head[4])?,
            to: PeerId::from_wire(head[5])?,
            guarded,
            counter: word(8),
            from_session: word(16),
            to_session: word(24),
        };
        let (body, tag) = if guarded {
            let (body, tag) = rest.split_last_chunk::<TAG>()?;
            (body, Some(tag))
        } else {
            (rest, None)
        };
        Some(Opened { head, body, covered: &bytes[..HEAD + body.len()], tag })
    }
}

#[cfg(test)]
mod tests {
    use super::{Envelope, EnvelopeKind, HEAD, WIRE_VERSION};
    use crate::peer::PeerId;

    fn head(guarded: bool) -> Envelope {
        Envelope {
            version: WIRE_VERSION,
            kind: EnvelopeKind::Data,
            from: PeerId::SWITCH,
            to: PeerId::node(wire::NodeId(3)),
            guarded,
            counter: 0x0102_0304_0506_0708,
            from_session: u64::MAX - 1,
            to_session: 77,
        }
    }

    #[test]
    fn a_head_comes_back_as_it_was_written() {
        for guarded in [false, true] {
            let mut bytes = [0xaa; HEAD + 40];
            head(guarded).encode(bytes.first_chunk_mut().expect("long enough"));
            let opened = Envelope::open(&bytes).expect("a datagram");
            assert_eq!(opened.head, head(guarded));
            assert_eq!(opened.body.len(), if guarded { 24 } else { 40 });
            assert_eq!(opened.covered.len(), HEAD + opened.body.len());
            assert_eq!(opened.tag.is_some(), guarded);
        }
    }

    #[test]
    fn a_length_that_is_no_multiple_of_8_or_too_short_for_its_tag_is_refused() {
        let mut bytes = [0; HEAD + 64];
        head(true).encode(bytes.first_chunk_mut().expect("long enough"));
        for length in 0..bytes.len() {
            let expected = length.is_multiple_of(8) && length >= HEAD + 16;
            assert_eq!(Envelope::open(&bytes[..length]).is_some(), expected, "{length} bytes");
        }
    }

    #[test]
    fn a_greeting_of_any_version_is_taken_apart() {
        for version in 0..=u8::MAX {
            let mut bytes = [0; HEAD + 16];
            let head = Envelope { version, kind: EnvelopeKind::Hello, ..head(true) };
            head.encode(bytes.first_chunk_mut().expect("long enough"));
            assert_eq!(Envelope::open(&bytes).map(|opened| opened.head), Some(head));
        }
    }

    #[test]
    fn fields_with_values_that_nobody_writes_are_refused() {
        let mut good = [0; HEAD + 16];
        head(true).encode(good.first_chunk_mut().expect("long enough"));
        for (at, value) in
            [(0, 0), (1, 0), (2, WIRE_VERSION + 1), (3, 0), (3, 5), (4, 200), (5, 200), (6, 2), (7, 1)]
        {
            let mut bytes = good;
            bytes[at] = value;
            assert!(Envelope::open(&bytes).is_none(), "byte {at} = {value}");
        }
    }
}
