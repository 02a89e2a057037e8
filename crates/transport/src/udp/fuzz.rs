//! What fuzzers do with the parsers: one function for each, which takes any bytes. It panics if a parser breaks its
//! word, and returns true if it accepts the bytes.
//!
//! The fuzzers under `fuzz/` and the test `udp_fuzz` call these; nothing else does.

use wire::packet::HEADER_BYTES;
use wire::{LockPacket, Nanos, Packet};
use zerocopy::IntoBytes as _;

use super::envelope::{self, Envelope};
use super::hello::{Hello, Offer};
use super::reassembly::Reassembly;
use super::record::{self, Record, RecordKind, Records};
use crate::head::{Head, parse_one_sided};
use crate::terms::Terms;

/// A packet's header and payload: what is accepted is what the encoder writes.
pub fn packet(bytes: &[u8]) -> bool {
    let Ok((packet, payload)) = Packet::parse(bytes) else { return false };
    let mut header = [0; HEADER_BYTES];
    packet.encode(&mut header);
    assert_eq!([&header[..], payload].concat(), bytes);
    true
}

/// A packet about a lock, with its queue and its region: what is accepted is what the encoder writes.
pub fn lock_packet(bytes: &[u8]) -> bool {
    let Some((packet, region)) = LockPacket::parse(bytes) else { return false };
    let mut head = [0; crate::head::MOST_HEAD];
    let length = packet.encode(&mut head);
    assert_eq!([&head[..length], region].concat(), bytes);
    true
}

/// A packet between NICs with its payload: what is accepted is what the encoder writes.
pub fn one_sided(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(crate::head::MOST_HEAD)];
    let Some(read) = parse_one_sided(head, bytes.len()) else { return false };
    let again = Head::of_one_sided(&read.packet, read.payload);
    // The partition's and reserved bits of a BTH are not all kept; the lengths are.
    assert_eq!(again.bytes().len(), read.head);
    let head = again.bytes();
    assert_eq!(parse_one_sided(head, bytes.len()), Some(read));
    true
}

/// A datagram's head, and the greeting behind it.
pub fn envelope(bytes: &[u8]) -> bool {
    let Some(opened) = Envelope::open(bytes) else { return false };
    let mut head = [0; envelope::HEAD];
    opened.head.encode(&mut head);
    let tag: &[u8] = opened.tag.map_or(&[], |tag| tag);
    assert_eq!([&head[..], opened.body, tag].concat(), bytes);
    assert_eq!(bytes[..opened.covered.len()], *opened.covered);
    if let Some((hello, Offer::Terms(terms))) = Hello::parse(&opened.head, opened.body) {
        let again = hello.encode(opened.head.from, opened.head.to, &terms, None);
        assert_eq!(again[envelope::HEAD..], *opened.body);
        // A peer may be told what differs, and people are.
        Terms::default().compare(&terms).iter().for_each(|difference| drop(difference.to_string()));
    }
    true
}

/// The records of a datagram: whole messages are handed over, and writing the records again gives the same bytes.
pub fn records(bytes: &[u8]) -> bool {
    // As in a receive buffer: at a multiple of 8.
    let mut words = vec![0_u64; bytes.len().div_ceil(8)];
    words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    let bytes = &words.as_bytes()[..bytes.len()];
    let (mut rest, mut delivered) = (bytes, false);
    for record in Records(bytes) {
        let Ok(record) = record else { return false };
        let (kind, content) = match record {
            Record::Whole(kind, content) => {
                delivered |= record::deliver(kind, content, 1 << 20, &mut |_| {});
                (kind, content.to_vec())
            }
            Record::Segment(segment) => {
                let mut content = vec![0; record::SEGMENT_HEAD + segment.piece.len()];
                let (number, offset, total) =
                    (segment.number, segment.offset as usize, segment.total as usize);
                record::frame_segment(number, offset, total, &mut content).copy_from_slice(segment.piece);
                (segment.of.segment(), content)
            }
        };
        let mut again = vec![0xff; record::size(content.len())];
        record::frame(kind, content.len(), &mut again).copy_from_slice(&content);
        let read;
        (read, rest) = rest.split_at(again.len());
        assert_eq!(again, read);
    }
    assert!(rest.is_empty());
    delivered
}

/// Segments, one record after the other: what becomes complete consists of the bytes that came last for each peer.
pub fn segments(bytes: &[u8]) -> bool {
    const LONGEST: usize = 1 << 16;
    let mut reassembly = Reassembly::new(LONGEST);
    let (mut complete, mut now) = (false, Nanos::ZERO);
    let mut came: Vec<(u64, usize, &[u8])> = Vec::new();
    for record in Records(bytes) {
        let Ok(Record::Segment(segment)) = record else { return complete };
        if segment.total as usize <= LONGEST {
            came.push((segment.number, segment.offset as usize, segment.piece));
        }
        now += Nanos::from_millis(segment.number % 50);
        let mut lost = reassembly.expire(now);
        let Some(message) = reassembly.on_segment(&segment, now, &mut lost) else { continue };
        let (kind, content) = message.content();
        assert!(
            matches!(kind, RecordKind::Packet | RecordKind::Lock | RecordKind::Verbs | RecordKind::Control)
                && content.len() == segment.total as usize
        );
        let mut covered = vec![false; content.len()];
        for &(_, offset, piece) in came.iter().rev().filter(|(number, ..)| *number == segment.number) {
            for (at, &byte) in (offset..).zip(piece).take_while(|(at, _)| *at < content.len()) {
                assert!(covered[at] || content[at] == byte, "byte {at} of message {}", segment.number);
                covered[at] = true;
            }
        }
        assert!(covered.iter().all(|&covered| covered), "a message is complete when all of it has come");
        reassembly.recycle(message);
        complete = true;
    }
    complete
}
