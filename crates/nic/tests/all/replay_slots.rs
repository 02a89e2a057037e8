//! The responder with batches of atomics and objects, event by event. What must hold: a batch is executed once and wholly, or not
//! at all; what is sent of an object for one request is one snapshot; both are answered again from their slots, until those
//! have been used anew.

use crate::lone;

use lone::*;
use nic::verbs::*;
use wire::Nanos;
use wire::roce::batch::{Entry, Operation as Atomic, Writer, answers};
use wire::roce::*;

/// Where the objects are: behind the words.
const OBJECT: u64 = BASE + 1024;

fn remembering(answers: u32) -> Lone {
    let mut lone = lone(|receive| receive.remembered = answers, |_| {});
    let key = lone.key;
    lone.memory.objects.insert(key);
    lone
}

fn add(address: u64, operand: u64) -> Entry {
    Entry { address, operation: Atomic::Add, is_wide: true, fetches: true, operand, expected: 0 }
}

fn feed_bytes(lone: &mut Lone, offset: i32, bytes: &[u8]) -> Vec<Effect> {
    lone.memory.payload = bytes.to_vec();
    lone.feed(Opcode::RaeRequest, offset, Extension::Plain, bytes.len() as u32)
}

fn feed_batch(lone: &mut Lone, offset: i32, entries: &[(Key, Entry)]) -> Vec<Effect> {
    let mut writer = Writer::new(256);
    for (key, entry) in entries {
        writer.push(*key, entry).unwrap();
    }
    feed_bytes(lone, offset, writer.bytes())
}

/// Adds to the first two words.
fn feed_two(lone: &mut Lone, offset: i32, operand: u64) -> Vec<Effect> {
    let key = lone.key;
    feed_batch(lone, offset, &[(key, add(BASE, operand)), (key, add(BASE + 8, 1))])
}

fn feed_object(lone: &mut Lone, offset: i32, length: u32) -> Vec<Effect> {
    let reth = lone.reth(OBJECT, length);
    lone.feed(Opcode::SabreRequest, offset, Extension::Reth(reth), 0)
}

/// The bytes that packets carry which are kept, one after the other.
fn kept(lone: &Lone, effects: &[Effect]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for effect in effects {
        if let Effect::Send { payload: Some(Payload::Kept { slot, offset, len }), .. } = effect {
            bytes.extend(&lone.memory.slots[slot][*offset as usize..][..*len as usize]);
        }
    }
    bytes
}

fn olds(lone: &Lone, effects: &[Effect]) -> Vec<u64> {
    answers(&kept(lone, effects)).collect()
}

fn verdict(effects: &[Effect]) -> Option<Verdict> {
    originals(effects).first().map(|bits| Verdict::from_wire(*bits))
}

/// Writes an object: its version, and that into every byte.
fn write_object(lone: &mut Lone, version: u64, length: u32) {
    let key = lone.key;
    lone.memory.set_word(key, OBJECT, version);
    let data = Span { key, address: OBJECT + 8, len: length };
    lone.memory.bytes(data).unwrap().fill(version as u8);
}

#[test]
fn a_batch_is_executed_and_answered_with_what_its_words_were() {
    let mut lone = remembering(2);
    let effects = feed_two(&mut lone, 0, 5);
    assert_eq!(sent(&effects), [(Opcode::RaeResponse, 0)]);
    assert_eq!(olds(&lone, &effects), [0, 0]);
    let effects = feed_two(&mut lone, 1, 5);
    assert_eq!(olds(&lone, &effects), [5, 1]);
    assert_eq!((lone.memory.word(lone.key, BASE), lone.memory.word(lone.key, BASE + 8)), (10, 2));
}

#[test]
fn a_batch_that_fetches_nothing_is_answered_with_nothing() {
    let mut lone = remembering(2);
    let entry = Entry { fetches: false, ..add(BASE, 3) };
    let key = lone.key;
    let effects = feed_batch(&mut lone, 0, &[(key, entry)]);
    assert!(matches!(effects[..], [Effect::Send { payload: None, .. }]), "{effects:?}");
    assert_eq!(lone.memory.word(lone.key, BASE), 3);
}

#[test]
fn a_batch_that_comes_again_gets_the_same_answer_again_and_is_forgotten_in_the_end() {
    let mut lone = remembering(2);
    feed_two(&mut lone, 0, 5);
    feed_two(&mut lone, 1, 7);
    for (offset, expected) in [(0, [0, 0]), (1, [5, 1]), (0, [0, 0])] {
        let effects = feed_two(&mut lone, offset, 9);
        assert_eq!(
            (sent(&effects), olds(&lone, &effects)),
            (vec![(Opcode::RaeResponse, offset)], expected.into())
        );
    }
    assert_eq!((lone.memory.word(lone.key, BASE), lone.memory.batches), (12, 2), "executed once");
    lone.add(2, 1);
    assert!(feed_two(&mut lone, 0, 5).is_empty(), "forgotten: more have come since than may be unanswered");
    assert_eq!((lone.dropped(Drop::NotRemembered), lone.memory.word(lone.key, BASE)), (1, 13));
}

#[test]
fn a_batch_is_refused_as_a_whole() {
    let (invalid, access) = (NakCode::InvalidRequest, NakCode::RemoteAccess);
    let narrow = Entry { is_wide: false, ..add(BASE + 2, 1) };
    type Last = fn(Key) -> (Key, Entry);
    let cases: [(&str, Last, NakCode); 3] = [
        ("a word that is not aligned", |key| (key, add(BASE + 4, 1)), invalid),
        ("a word outside of its region", |key| (key, add(BASE + 8192, 1)), access),
        ("a wrong key", |key| (Key(key.0 + 1), add(BASE, 1)), access),
    ];
    for (what, last, code) in cases {
        let mut lone = remembering(2);
        let key = lone.key;
        let effects = feed_batch(&mut lone, 0, &[(key, add(BASE, 1)), last(key)]);
        assert_eq!(syndromes(&effects), [Syndrome::Nak(code)], "{what}");
        assert_eq!(lone.device.state(lone.pair), Some(QueuePairState::Err), "{what}");
        assert_eq!(lone.memory.word(key, BASE), 0, "{what}: nothing of it is executed");
    }
    let mut lone = remembering(2);
    let key = lone.key;
    let effects = feed_batch(&mut lone, 0, &[(key, narrow)]);
    assert_eq!(syndromes(&effects), [Syndrome::Nak(invalid)], "32 bits that are not aligned");
    let mut lone = remembering(2);
    assert_eq!(syndromes(&feed_bytes(&mut lone, 0, &[1; 32])), [Syndrome::Nak(invalid)], "no batch");
    let mut lone = remembering(2);
    assert_eq!(syndromes(&feed_bytes(&mut lone, 0, &[0; 257])), [Syndrome::Nak(invalid)], "too long");
}

#[test]
fn an_object_is_answered_in_segments_and_with_its_version() {
    let mut lone = remembering(2);
    write_object(&mut lone, 6, 600);
    let effects = feed_object(&mut lone, 0, 600);
    let opcodes = [
        (Opcode::SabreResponse, 0),
        (Opcode::SabreResponse, 1),
        (Opcode::SabreResponse, 2),
        (Opcode::SabreValidation, 3),
    ];
    assert_eq!(sent(&effects), opcodes);
    assert_eq!((kept(&lone, &effects), verdict(&effects)), (vec![6; 600], Some(Verdict::Whole(6))));
    assert_eq!(sent(&lone.write_only(4, 8)), [(Opcode::Acknowledge, 4)], "each of them took a number");
}

#[test]
fn of_a_torn_object_there_is_only_the_verdict() {
    let mut lone = remembering(2);
    write_object(&mut lone, 7, 600);
    for _ in 0..2 {
        let effects = feed_object(&mut lone, 0, 600);
        assert_eq!(sent(&effects), [(Opcode::SabreValidation, 3)], "with the last of its numbers");
        assert_eq!(verdict(&effects), Some(Verdict::Torn));
        // It stays torn, for this request.
        write_object(&mut lone, 8, 600);
    }
    assert_eq!(sent(&lone.write_only(4, 8)), [(Opcode::Acknowledge, 4)]);
    assert_eq!(verdict(&feed_object(&mut lone, 5, 600)), Some(Verdict::Whole(8)), "another request is");
}

#[test]
fn an_object_that_is_asked_for_again_is_still_the_same_from_any_segment_on() {
    let mut lone = remembering(2);
    write_object(&mut lone, 6, 600);
    feed_object(&mut lone, 0, 600);
    write_object(&mut lone, 8, 600);
    lone.device.deregister(lone.key).unwrap();
    for from in 0..4 {
        let effects = feed_object(&mut lone, from, 600);
        let bytes = 600usize.saturating_sub(from as usize * 256);
        assert_eq!(sent(&effects).len(), 4 - from as usize);
        assert_eq!(sent(&effects)[0].1, from);
        assert_eq!((kept(&lone, &effects), verdict(&effects)), (vec![6; bytes], Some(Verdict::Whole(6))));
    }
    assert_eq!(lone.memory.snapshots, 1);
}

#[test]
fn an_object_without_data_has_a_version() {
    let mut lone = remembering(2);
    write_object(&mut lone, 4, 0);
    let effects = feed_object(&mut lone, 0, 0);
    assert_eq!(sent(&effects), [(Opcode::SabreResponse, 0), (Opcode::SabreValidation, 1)]);
    assert_eq!((kept(&lone, &effects), verdict(&effects)), (vec![], Some(Verdict::Whole(4))));
}

#[test]
fn an_object_that_cannot_be_is_refused() {
    let (invalid, access) = (NakCode::InvalidRequest, NakCode::RemoteAccess);
    let cases = [
        ("a version that is not aligned", BASE + 4, 8, invalid),
        ("longer than the longest", BASE, (1 << 20) + 1, invalid),
        ("as long as can be", BASE, u32::MAX, invalid),
        ("data that end outside of the region", BASE + 8192 - 64, 57, access),
        ("a version before the region", BASE - 8, 8, access),
    ];
    for (what, address, length, code) in cases {
        let mut lone = remembering(2);
        let reth = lone.reth(address, length);
        let effects = lone.feed(Opcode::SabreRequest, 0, Extension::Reth(reth), 0);
        assert_eq!(syndromes(&effects), [Syndrome::Nak(code)], "{what}");
        assert_eq!(lone.memory.snapshots, 0, "{what}");
    }
    let mut lone = remembering(2);
    let reth = lone.reth(BASE + 8192 - 64, 56);
    assert_eq!(sent(&lone.feed(Opcode::SabreRequest, 0, Extension::Reth(reth), 0)).len(), 2, "it just fits");
    let mut lone = plain();
    assert_eq!(syndromes(&feed_object(&mut lone, 0, 8)), [Syndrome::Nak(invalid)], "no objects are there");
}

#[test]
fn whatever_is_remembered_has_a_slot_of_its_own() {
    let mut lone = remembering(3);
    write_object(&mut lone, 2, 600);
    feed_object(&mut lone, 0, 600);
    lone.add(4, 1);
    let key = lone.key;
    feed_batch(&mut lone, 5, &[(key, add(BASE, 1))]);
    let numbers: Vec<u32> = lone.memory.slots.keys().map(|slot| slot.number).collect();
    assert_eq!(numbers, [0, 2], "the atomic is remembered without its slot");
    let again = feed_object(&mut lone, 0, 600);
    assert_eq!(kept(&lone, &again), [2; 600]);
    // The next one takes the place of the oldest.
    feed_two(&mut lone, 6, 1);
    assert!(feed_object(&mut lone, 0, 600).is_empty());
    assert_eq!(originals(&lone.add(4, 1)), [0]);
    let again = feed_two(&mut lone, 6, 1);
    assert_eq!(olds(&lone, &again), [2, 0]);
}

#[test]
fn any_answer_acknowledges_what_was_held_back_and_counts_as_a_message() {
    let held = |receive: &mut ToReceive| (receive.ack_every, receive.ack_delay) = (8, Nanos(500));
    let messages = |effects: &[Effect]| match effects.last() {
        Some(Effect::Send { packet, .. }) => match packet.extension {
            Extension::Aeth(aeth) | Extension::AethAtomic(aeth, _) => Some(aeth.messages),
            _ => None,
        },
        _ => None,
    };
    let mut lone = lone(held, |_| {});
    let key = lone.key;
    lone.memory.objects.insert(key);
    assert!(sent(&lone.write_only(0, 8)).is_empty(), "held back");
    assert_eq!(messages(&feed_two(&mut lone, 1, 1)), Some(2));
    assert!(lone.nothing_is_due());
    assert!(sent(&lone.write_only(2, 8)).is_empty(), "held back");
    assert_eq!(messages(&feed_object(&mut lone, 3, 600)), Some(4));
    assert!(lone.nothing_is_due());
}

#[test]
fn what_comes_again_as_something_else_is_dropped() {
    let mut lone = remembering(4);
    write_object(&mut lone, 2, 600);
    feed_object(&mut lone, 0, 600);
    feed_two(&mut lone, 4, 1);
    lone.add(5, 1);
    let mut effects = feed_two(&mut lone, 0, 1);
    effects.extend(feed_object(&mut lone, 4, 600));
    effects.extend(feed_object(&mut lone, 5, 600));
    effects.extend(lone.add(1, 1));
    effects.extend(lone.add(4, 1));
    effects.extend(feed_two(&mut lone, 5, 1));
    assert_eq!((effects, lone.dropped(Drop::NotRemembered)), (vec![], 6));
}

#[test]
fn a_responder_that_remembers_nothing_cannot_be() {
    let mut device: Device = Device::new(1);
    let queue = device.create_completion_queue(4);
    let pair = device.create_queue_pair(queue, queue, Depth { sends: 1, receives: 1 });
    device.init(pair).unwrap();
    let to_receive = ToReceive::new(PEER, PEER_QUEUE_PAIR, Mtu::B256, Psn::new(0));
    let nothing = ToReceive { remembered: 0, ..to_receive };
    assert_eq!(device.ready_to_receive(pair, nothing), Err(StateError::Attributes));
    device.ready_to_receive(pair, to_receive).unwrap();
}
