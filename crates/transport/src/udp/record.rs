//! What a data datagram consists of: records, one after the other, each beginning at a multiple of 8.
//!
//! | bytes | field | |
//! | --- | --- | --- |
//! | 0..4 | length | of the content, in bytes |
//! | 4 | kind | [`RecordKind`] |
//! | 5..8 | reserved | 0 |
//! | 8.. | content | then zeroes up to a multiple of 8 |
//!
//! The content of a packet is its header and payload, so the payload begins at a multiple of 8 and is handed over
//! where it lies. A message that is longer than a datagram travels in segments; the content of a segment is
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..8 | number of the message |
//! | 8..12 | offset of this piece in the message's content, a multiple of 8 |
//! | 12..16 | length of the whole |
//! | 16.. | the piece |

use wire::Packet;
use zerocopy::FromBytes as _;

use crate::head::{MOST_HEAD, parse_lock, parse_one_sided};
use crate::{Body, Contents, MOST_CONTROL};

/// Bytes before the content.
pub(super) const HEAD: usize = 8;
/// Bytes of a segment's content before its piece.
pub(super) const SEGMENT_HEAD: usize = 16;

/// What a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum RecordKind {
    /// A packet, header and payload.
    Packet = 1,
    /// The header of a packet whose payload is zeroes.
    Zeroes = 2,
    /// A control message.
    Control = 3,
    /// A piece of a packet.
    PacketSegment = 4,
    /// A piece of a control message.
    ControlSegment = 5,
    /// A packet about a lock, and its region.
    Lock = 6,
    /// A piece of one.
    LockSegment = 7,
    /// A packet between NICs, and its payload.
    Verbs = 8,
    /// A piece of one.
    VerbsSegment = 9,
    /// Where a peer is ([`super::whereabouts`]): for the transport alone.
    Whereabouts = 10,
}

impl RecordKind {
    /// The kind of the message's segments.
    pub(super) const fn segment(self) -> Self {
        match self {
            Self::Control | Self::ControlSegment => Self::ControlSegment,
            Self::Packet | Self::Zeroes | Self::PacketSegment => Self::PacketSegment,
            Self::Lock | Self::LockSegment => Self::LockSegment,
            Self::Verbs | Self::VerbsSegment => Self::VerbsSegment,
            // It is never cut.
            Self::Whereabouts => self,
        }
    }
}

/// A record, or the part of a message that is in one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Record<'a> {
    /// A whole message: [`RecordKind::Packet`], [`RecordKind::Zeroes`], [`RecordKind::Lock`], [`RecordKind::Verbs`],
    /// [`RecordKind::Control`] or [`RecordKind::Whereabouts`].
    Whole(RecordKind, &'a [u8]),
    /// A piece of one.
    Segment(Segment<'a>),
}

/// A piece of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment<'a> {
    /// What the whole is: [`RecordKind::Packet`], [`RecordKind::Lock`], [`RecordKind::Verbs`] or [`RecordKind::Control`].
    pub(super) of: RecordKind,
    pub(super) number: u64,
    pub(super) offset: u32,
    pub(super) total: u32,
    pub(super) piece: &'a [u8],
}

/// Bytes that a record takes whose content has this length.
pub(super) const fn size(content: usize) -> usize {
    HEAD + content.next_multiple_of(8)
}

/// Writes a record's head and the zeroes behind its content, into the record's bytes; the content is left to write.
pub(super) fn frame(kind: RecordKind, content: usize, record: &mut [u8]) -> &mut [u8] {
    record[0..4].copy_from_slice(&(content as u32).to_le_bytes());
    record[4] = kind as u8;
    record[5..8].fill(0);
    let (content, zeroes) = record[HEAD..].split_at_mut(content);
    zeroes.fill(0);
    content
}

/// Writes a segment's fields, and returns where the piece goes.
pub(super) fn frame_segment(number: u64, offset: usize, total: usize, content: &mut [u8]) -> &mut [u8] {
    let (head, piece) = content.split_at_mut(SEGMENT_HEAD);
    head[0..8].copy_from_slice(&number.to_le_bytes());
    head[8..12].copy_from_slice(&(offset as u32).to_le_bytes());
    head[12..16].copy_from_slice(&(total as u32).to_le_bytes());
    piece
}

/// The records of a datagram. Ends with None behind the last one, or with an error where nobody writes such bytes.
#[derive(Debug)]
pub(super) struct Records<'a>(pub(super) &'a [u8]);

/// Nobody writes such bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed;

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let record = split(&mut self.0).ok_or(Malformed);
        if record.is_err() {
            self.0 = &[];
        }
        Some(record)
    }
}

fn split<'a>(bytes: &mut &'a [u8]) -> Option<Record<'a>> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let (content, rest) = rest.split_at_checked(length)?;
    let (zeroes, rest) = rest.split_at_checked(length.next_multiple_of(8) - length)?;
    if head[5..8] != [0; 3] || zeroes.iter().any(|&byte| byte != 0) {
        return None;
    }
    let record = match head[4] {
        1 => Record::Whole(RecordKind::Packet, content),
        2 => Record::Whole(RecordKind::Zeroes, content),
        3 => Record::Whole(RecordKind::Control, content),
        4 => Record::Segment(segment(RecordKind::Packet, content)?),
        5 => Record::Segment(segment(RecordKind::Control, content)?),
        6 => Record::Whole(RecordKind::Lock, content),
        7 => Record::Segment(segment(RecordKind::Lock, content)?),
        8 => Record::Whole(RecordKind::Verbs, content),
        9 => Record::Segment(segment(RecordKind::Verbs, content)?),
        10 => Record::Whole(RecordKind::Whereabouts, content),
        _ => return None,
    };
    *bytes = rest;
    Some(record)
}

fn segment(of: RecordKind, content: &[u8]) -> Option<Segment<'_>> {
    let (head, piece) = content.split_first_chunk::<SEGMENT_HEAD>()?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
    let number = u64::from_le_bytes(std::array::from_fn(|i| head[i]));
    let (offset, total) = (word(8), word(12));
    let end = offset as usize + piece.len();
    let fits = !piece.is_empty() && offset.is_multiple_of(8) && end <= total as usize;
    fits.then_some(Segment { of, number, offset, total, piece })
}

/// The longest content of a message, where blocks have so many bytes.
pub(super) const fn longest(block: u64) -> usize {
    let packet = MOST_HEAD + block as usize;
    if packet > MOST_CONTROL { packet } else { MOST_CONTROL }
}

/// Hands over the message with this content. False: nobody writes such a message. Bytes that belong to a packet
/// have to lie at a multiple of 8.
pub(super) fn deliver(kind: RecordKind, content: &[u8], block: u64, each: &mut dyn FnMut(Body<'_>)) -> bool {
    match kind {
        RecordKind::Control => {
            if content.len() > MOST_CONTROL {
                return false;
            }
            each(Body::Control(content));
        }
        RecordKind::Packet => {
            let Ok((packet, payload)) = Packet::parse(content) else { return false };
            if u64::from(packet.payload) > block {
                return false;
            }
            let Ok(words) = <[u64]>::ref_from_bytes(payload) else { return false };
            each(Body::Packet(&packet, if words.is_empty() { Contents::None } else { Contents::Own(words) }));
        }
        RecordKind::Zeroes => {
            let Ok(header) = content.try_into() else { return false };
            let Ok(packet) = Packet::parse_header(header) else { return false };
            if packet.payload == 0 || !packet.payload.is_multiple_of(8) || u64::from(packet.payload) > block {
                return false;
            }
            each(Body::Packet(&packet, Contents::Zeroes(packet.payload as usize)));
        }
        RecordKind::Lock => {
            let head = &content[..content.len().min(MOST_HEAD)];
            let Some((packet, head)) = parse_lock(head, content.len(), block) else { return false };
            let Ok(words) = <[u64]>::ref_from_bytes(&content[head..]) else { return false };
            each(Body::Lock(&packet, Contents::own(words)));
        }
        RecordKind::Verbs => {
            let head = &content[..content.len().min(MOST_HEAD)];
            let Some(read) = parse_one_sided(head, content.len()) else { return false };
            let Ok(words) = <[u64]>::ref_from_bytes(&content[read.head..]) else { return false };
            each(Body::Verbs(&read.packet, read.payload, Contents::own(words)));
        }
        RecordKind::PacketSegment
        | RecordKind::ControlSegment
        | RecordKind::LockSegment
        | RecordKind::VerbsSegment
        | RecordKind::Whereabouts => return false,
    }
    true
}
