//! A ring alone: what goes in comes out, and what a hostile other side may write.

use random::Random;
use wire::{BlockTag, NodeId, PacketKind, RequesterId, Seq, SlotId};

use super::*;

const BYTES: usize = 4096;
const BLOCK: u64 = 1024;

fn packet(payload: usize) -> Packet {
    let requester = RequesterId { node: NodeId(1), slot: SlotId(0) };
    let mut packet = Packet::request(PacketKind::ReadMiss, BlockTag::from_bits(0x1000), requester, Seq(1));
    packet.payload = payload as u32;
    packet
}

/// Both sides, and the producer's view for writing what no producer would write.
fn sides() -> (Producer, Consumer, Ring) {
    let (file, ring) = Ring::create(BYTES).unwrap();
    (Producer::new(Ring::open(&file).unwrap()), Consumer::new(ring), Ring::open(&file).unwrap())
}

fn take(consumer: &Consumer) -> (Taken, Result<(), Broken>, Vec<usize>) {
    let mut lengths = Vec::new();
    let (taken, end) = consumer.take(32, BLOCK, &mut Vec::new(), || true, &mut |body| {
        lengths.push(match body {
            Body::Packet(_, contents) => {
                contents.copy_to(0, &mut vec![0; contents.bytes()]);
                contents.bytes()
            }
            Body::Lock(..) | Body::Verbs(..) => panic!("nobody sends that here"),
            Body::Control(bytes) => bytes.len(),
        });
    });
    (taken, end, lengths)
}

/// Writes one record with this first word and publishes it, as far as `head`.
fn write_record(hostile: &Ring, word: u64, head: u64) {
    hostile.records_from(0)[0].store(word, Relaxed);
    hostile.counter(HEAD).store(head, Release);
}

#[test]
fn records_of_all_sizes_go_round_many_times() {
    let (mut producer, consumer, _) = sides();
    let words: Vec<u64> = (0..BLOCK / 8).collect();
    for round in 0..1000 {
        let words = &words[..round * 7 % (BLOCK as usize / 8)];
        let bytes = words.len() * 8;
        producer.push(Body::Packet(&packet(bytes), Contents::Own(words))).unwrap();
        producer.push(Body::Control(&vec![7; round % 600])).unwrap();
        assert_eq!(take(&consumer).2, [bytes, round % 600]);
    }
}

#[test]
fn a_full_ring_refuses_until_something_is_taken() {
    let (mut producer, consumer, _) = sides();
    let pushed = (0..).take_while(|_| producer.push(Body::Control(&[1; 100])).is_ok()).count();
    assert_eq!(pushed, BYTES / 128);
    assert_eq!(producer.push(Body::Control(&[])), Err(Refused::Full));
    assert_eq!(take(&consumer).0.messages, 32);
    assert_eq!(producer.push(Body::Control(&[])), Ok(0));
}

#[test]
fn a_record_that_was_not_published_is_not_seen() {
    let (mut producer, consumer, hostile) = sides();
    producer.push(Body::Control(&[1])).unwrap();
    hostile.records_from(64)[0].store(length_word(CONTROL, 8), Relaxed);
    assert_eq!(take(&consumer).2, [1]);
    assert!(!consumer.has_something());
}

#[test]
fn a_head_that_no_producer_would_publish_breaks_the_ring() {
    for head in [1, 63, BYTES as u64 + 64, u64::MAX, u64::MAX - 63, 1 << 63] {
        let (_, consumer, hostile) = sides();
        hostile.counter(HEAD).store(head, Release);
        let (taken, end, _) = take(&consumer);
        assert_eq!((taken.records, end), (0, Err(Broken)), "{head:#x}");
    }
}

#[test]
fn a_head_that_goes_back_breaks_the_ring() {
    let (mut producer, consumer, hostile) = sides();
    producer.push(Body::Control(&[1; 200])).unwrap();
    assert_eq!(take(&consumer).1, Ok(()));
    hostile.counter(HEAD).store(64, Release);
    assert_eq!(take(&consumer).1, Err(Broken));
}

#[test]
fn a_record_that_reaches_beyond_what_was_published_breaks_the_ring() {
    for length in [57, 4096, u32::MAX as usize] {
        let (_, consumer, hostile) = sides();
        write_record(&hostile, length_word(CONTROL, length), 64);
        assert_eq!(take(&consumer).1, Err(Broken), "{length}");
    }
}

#[test]
fn a_record_that_reaches_beyond_the_end_of_the_ring_breaks_it() {
    let (mut producer, consumer, hostile) = sides();
    for _ in 0..BYTES / 64 - 1 {
        producer.push(Body::Control(&[])).unwrap();
    }
    while consumer.has_something() {
        assert_eq!(take(&consumer).1, Ok(()));
    }
    let at = BYTES as u64 - 64;
    hostile.records_from(at)[0].store(length_word(CONTROL, 100), Relaxed);
    hostile.counter(HEAD).store(at + 128, Release);
    assert_eq!(take(&consumer).1, Err(Broken));
}

#[test]
fn records_that_hold_no_message_are_counted_and_passed_over() {
    let nonsense = [
        0,
        length_word(0, 8),
        length_word(9, 8),
        length_word(u64::from(u32::MAX), 8),
        length_word(PACKET, 0),
        length_word(PACKET, 63),
        length_word(PACKET, 64),
        length_word(ZEROES, 64),
        length_word(ZEROES, 8),
    ];
    for word in nonsense {
        let (_, consumer, hostile) = sides();
        write_record(&hostile, word, record_bytes(word as u32 as usize) as u64);
        let (taken, end, lengths) = take(&consumer);
        assert_eq!((taken.malformed, end, lengths.len()), (1, Ok(()), 0), "{word:#x}");
        assert!(!consumer.has_something(), "{word:#x}");
    }
}

#[test]
fn a_payload_that_is_not_what_the_header_says_is_malformed() {
    for (said, length) in [(0, 8), (8, 0), (64, 128), (12, 12), (BLOCK as usize + 8, BLOCK as usize + 8)] {
        let (_, consumer, hostile) = sides();
        let mut header = [0; HEADER_BYTES];
        packet(said).encode(&mut header);
        store_bytes(hostile.records_from(8), &header);
        write_record(&hostile, length_word(PACKET, 64 + length), record_bytes(64 + length) as u64);
        let (taken, end, lengths) = take(&consumer);
        assert_eq!((taken.malformed, end, lengths.len()), (1, Ok(()), 0), "{said} said, {length} there");
    }
}

#[test]
fn a_message_that_is_never_wanted_again_stays() {
    let (mut producer, consumer, _) = sides();
    producer.push(Body::Control(&[1])).unwrap();
    let (taken, end) =
        consumer.take(32, BLOCK, &mut Vec::new(), || false, &mut |_| unreachable!("not wanted"));
    assert_eq!((taken, end), (Taken::default(), Ok(())));
}

#[test]
fn a_tail_that_no_consumer_would_publish_breaks_the_ring() {
    for tail in [1, BYTES as u64 + 64, u64::MAX] {
        let (mut producer, _, hostile) = sides();
        hostile.counter(TAIL).store(tail, Release);
        let end = std::iter::repeat_with(|| producer.push(Body::Control(&[0; 100]))).find(Result::is_err);
        assert_eq!(end, Some(Err(Refused::Broken)), "{tail:#x}");
    }
}

#[test]
fn a_tail_that_goes_back_breaks_the_ring() {
    let (mut producer, consumer, hostile) = sides();
    for _ in 0..BYTES / 64 {
        producer.push(Body::Control(&[])).unwrap();
    }
    assert_eq!(take(&consumer).1, Ok(()));
    producer.push(Body::Control(&[])).unwrap();
    hostile.counter(TAIL).store(0, Release);
    let end = std::iter::repeat_with(|| producer.push(Body::Control(&[]))).take(BYTES).find(Result::is_err);
    assert_eq!(end, Some(Err(Refused::Broken)));
}

#[test]
fn whatever_a_ring_holds_a_visit_ends_and_hands_over_no_more_than_there_is() {
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let (mut taken, mut broken) = (0, 0);
        let (_, consumer, hostile) = sides();
        for word in hostile.records_from(0).iter().step_by(8) {
            // Small lengths and all kinds, so that many records are nearly right.
            let kind = random.below(6);
            let length = if random.below(16) == 0 { random.below(5000) } else { random.below(130) };
            word.store(length_word(kind, length as usize), Relaxed);
        }
        let head = random.below(BYTES as u64 / 64 + 1) * 64;
        hostile.counter(HEAD).store(head, Release);
        while consumer.has_something() && broken == 0 {
            let (one, end, lengths) = take(&consumer);
            taken += one.records;
            broken += usize::from(end.is_err());
            assert!(lengths.iter().all(|length| *length <= BYTES), "{lengths:?}");
            assert!(one.records > 0 || end.is_err(), "each visit gets on");
        }
        assert!(taken <= head as usize / 64, "{taken} records in {head} bytes");
    }
}
