//! The requester with batches of atomics and objects, event by event. What must hold: an object ends whole when all of it has come,
//! or torn, whatever of it has come; what is missing of an answer is asked for again; a torn object breaks nothing.

use crate::lone;

use lone::*;
use nic::verbs::*;
use wire::Nanos;
use wire::roce::*;

const REMOTE: Remote = Remote { key: Key(0x101), address: 0x9000 };
const OBJECT: Reth = Reth { address: 0x9000, key: Key(0x101), length: 600 };

fn post_object(lone: &mut Lone, id: u64) -> Vec<Effect> {
    let local = lone.span(600);
    lone.post(id, Operation::ReadObject { local, remote: REMOTE })
}

fn post_batch(lone: &mut Lone, id: u64) -> Vec<Effect> {
    let (request, answer) = (lone.span(48), Span { address: BASE + 512, ..lone.span(16) });
    lone.post(id, Operation::Atomics { request, answer })
}

fn data(lone: &mut Lone, offset: i32, len: u32) -> Vec<Effect> {
    lone.feed(Opcode::SabreResponse, offset, Extension::Plain, len)
}

fn verdict(lone: &mut Lone, offset: i32, verdict: Verdict) -> Vec<Effect> {
    let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 };
    lone.feed(Opcode::SabreValidation, offset, Extension::AethAtomic(aeth, verdict.to_wire()), 0)
}

fn words(lone: &mut Lone, offset: i32, len: u32) -> Vec<Effect> {
    let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 };
    lone.feed(Opcode::RaeResponse, offset, Extension::Aeth(aeth), len)
}

/// What has ended: which, how, and its version.
fn ended(lone: &mut Lone) -> Vec<(u64, Status, Option<u64>)> {
    let completions = std::iter::from_fn(|| lone.device.poll(lone.queue));
    completions.map(|completion| (completion.id.0, completion.status, completion.version)).collect()
}

fn asked(effects: &[Effect]) -> Vec<Extension> {
    let packets = effects.iter().filter_map(|effect| match effect {
        Effect::Send { packet, .. } => Some(packet.extension),
        _ => None,
    });
    packets.collect()
}

#[test]
fn an_object_comes_in_segments_and_ends_with_its_version() {
    let mut lone = plain();
    let effects = post_object(&mut lone, 7);
    assert_eq!(
        (sent(&effects), asked(&effects)),
        (vec![(Opcode::SabreRequest, 0)], vec![Extension::Reth(OBJECT)])
    );
    assert_eq!(sent(&lone.post_write(8, 8)), [(Opcode::WriteOnly, 4)], "the verdict takes a number, too");
    let mut effects = data(&mut lone, 0, 256);
    effects.extend(data(&mut lone, 1, 256));
    effects.extend(data(&mut lone, 2, 88));
    let places: Vec<_> = placed(&effects).iter().map(|span| (span.address - BASE, span.len)).collect();
    assert_eq!(places, [(0, 256), (256, 256), (512, 88)]);
    assert_eq!(ended(&mut lone), [], "before the verdict nobody knows");
    verdict(&mut lone, 3, Verdict::Whole(12));
    lone.acknowledge(4, Syndrome::NO_CREDITS);
    assert_eq!(ended(&mut lone), [(7, Status::Success, Some(12)), (8, Status::Success, None)]);
    assert!(lone.nothing_is_due());
}

#[test]
fn a_torn_object_or_one_that_is_gone_ends_without_its_data_and_breaks_nothing() {
    for (in_vain, status) in [(Verdict::Torn, Status::Torn), (Verdict::Gone, Status::Gone)] {
        let mut lone = plain();
        lone.post_write(6, 8);
        post_object(&mut lone, 7);
        lone.post_write(8, 8);
        assert!(verdict(&mut lone, 4, in_vain).is_empty());
        assert_eq!(ended(&mut lone), [(6, Status::Success, None), (7, status, None)]);
        assert_eq!(lone.device.state(lone.pair), Some(QueuePairState::Rts));
        lone.acknowledge(5, Syndrome::NO_CREDITS);
        assert_eq!(ended(&mut lone), [(8, Status::Success, None)]);
        verdict(&mut lone, 4, in_vain);
        assert_eq!(lone.dropped(Drop::Stale), 1);
        assert!(lone.nothing_is_due());
    }
}

#[test]
fn a_torn_object_is_told_of_also_if_success_would_not_be() {
    let mut lone = plain();
    let operation = Operation::ReadObject { local: lone.span(600), remote: REMOTE };
    for id in [1, 2] {
        let request = WorkRequest { signaled: false, ..WorkRequest::new(WorkId(id), operation) };
        lone.device.post_send(lone.now, lone.pair, request, &mut Vec::new()).unwrap();
    }
    verdict(&mut lone, 3, Verdict::Torn);
    for (offset, len) in [(4, 256), (5, 256), (6, 88)] {
        data(&mut lone, offset, len);
    }
    verdict(&mut lone, 7, Verdict::Whole(2));
    assert_eq!(ended(&mut lone), [(1, Status::Torn, None)]);
}

#[test]
fn what_is_missing_of_an_object_is_asked_for_again() {
    let mut lone = plain();
    post_object(&mut lone, 7);
    data(&mut lone, 0, 256);
    let effects = data(&mut lone, 2, 88);
    assert!(placed(&effects).is_empty(), "not its turn");
    assert_eq!(sent(&effects), [(Opcode::SabreRequest, 1)], "the number says from where on");
    assert_eq!(asked(&effects), [Extension::Reth(OBJECT)], "and the object is the same");
    assert!(verdict(&mut lone, 3, Verdict::Whole(2)).is_empty(), "it was asked for already");
    assert_eq!(ended(&mut lone), []);
    data(&mut lone, 1, 256);
    data(&mut lone, 2, 88);
    // The verdict is lost, and only that is missing.
    let due = lone.device.next_deadline();
    assert_eq!(sent(&lone.deadline(due)), [(Opcode::SabreRequest, 3)]);
    verdict(&mut lone, 3, Verdict::Whole(2));
    assert_eq!(ended(&mut lone), [(7, Status::Success, Some(2))]);
    assert!(lone.nothing_is_due());
}

#[test]
fn a_torn_object_does_not_end_before_what_was_posted_before_it() {
    let mut lone = plain();
    lone.post_read(6, 8);
    post_object(&mut lone, 7);
    let effects = verdict(&mut lone, 4, Verdict::Torn);
    assert_eq!(sent(&effects), [(Opcode::ReadRequest, 0), (Opcode::SabreRequest, 1)]);
    assert_eq!(ended(&mut lone), []);
}

#[test]
fn a_batch_is_one_packet_and_its_answer_goes_where_it_shall() {
    let mut lone = plain();
    let effects = post_batch(&mut lone, 7);
    let request = Payload::Region(lone.span(48));
    assert!(matches!(effects[..], [Effect::Send { payload: Some(payload), .. }] if payload == request));
    assert_eq!(sent(&effects), [(Opcode::RaeRequest, 0)]);
    let due = lone.device.next_deadline();
    assert_eq!(lone.deadline(due), effects, "the very same packet");
    assert_eq!(placed(&words(&mut lone, 0, 16)), [Span { address: BASE + 512, ..lone.span(16) }]);
    assert_eq!(ended(&mut lone), [(7, Status::Success, None)]);
    assert!(lone.nothing_is_due());
}

#[test]
fn an_acknowledgement_does_not_end_what_is_answered() {
    let mut lone = plain();
    post_batch(&mut lone, 7);
    assert_eq!(sent(&lone.acknowledge(0, Syndrome::NO_CREDITS)), [(Opcode::RaeRequest, 0)], "it is lost");
    words(&mut lone, 0, 16);
    post_object(&mut lone, 8);
    assert_eq!(sent(&lone.acknowledge(4, Syndrome::NO_CREDITS)), [(Opcode::SabreRequest, 1)]);
    assert_eq!(ended(&mut lone), [(7, Status::Success, None)]);
}

#[test]
fn batches_and_objects_in_flight_are_limited_as_reads_are() {
    let mut lone = lone(|_| {}, |send| send.outstanding = 2);
    assert_eq!(sent(&post_batch(&mut lone, 0)), [(Opcode::RaeRequest, 0)]);
    assert_eq!(sent(&post_object(&mut lone, 1)), [(Opcode::SabreRequest, 1)]);
    assert!(sent(&post_batch(&mut lone, 2)).is_empty());
    assert!(sent(&lone.post_read(3, 8)).is_empty());
    assert_eq!(sent(&words(&mut lone, 0, 16)), [(Opcode::RaeRequest, 5)]);
    assert_eq!(sent(&verdict(&mut lone, 4, Verdict::Torn)), [(Opcode::ReadRequest, 6)]);
}

#[test]
fn an_answer_that_does_not_fit_its_request_is_dropped() {
    let mut lone = plain();
    post_object(&mut lone, 0);
    post_batch(&mut lone, 1);
    lone.post_read(2, 300);
    let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 };
    let nak = Aeth { syndrome: NAK, messages: 0 };
    let mut effects = data(&mut lone, 0, 255);
    effects.extend(data(&mut lone, 2, 256));
    effects.extend(data(&mut lone, 3, 0));
    effects.extend(verdict(&mut lone, 0, Verdict::Torn));
    effects.extend(verdict(&mut lone, 2, Verdict::Whole(2)));
    effects.extend(words(&mut lone, 0, 16));
    effects.extend(words(&mut lone, 4, 8));
    effects.extend(words(&mut lone, 4, 0));
    effects.extend(verdict(&mut lone, 4, Verdict::Torn));
    effects.extend(data(&mut lone, 5, 256));
    effects.extend(words(&mut lone, 5, 256));
    effects.extend(lone.feed(Opcode::SabreValidation, 3, Extension::AethAtomic(nak, 2), 0));
    effects.extend(lone.feed(Opcode::RaeResponse, 4, Extension::Aeth(nak), 16));
    effects.extend(lone.feed(Opcode::AtomicAcknowledge, 4, Extension::AethAtomic(aeth, 2), 0));
    effects.extend(lone.feed(Opcode::ReadResponseFirst, 0, Extension::Aeth(aeth), 256));
    effects.extend(lone.acknowledge(0, Syndrome::RnrNak(RnrTimer::from_code(1))));
    assert_eq!((effects, lone.dropped(Drop::BadAnswer)), (vec![], 16));
}

#[test]
fn what_cannot_be_asked_for_is_not_accepted() {
    let mut lone = lone(|receive| receive.longest = 1000, |_| {});
    let mut post = |operation| {
        lone.device.post_send(Nanos(1), lone.pair, WorkRequest::new(WorkId(0), operation), &mut Vec::new())
    };
    let span = |len| Span { key: Key(0x101), address: BASE, len };
    let batch = |request, answer| Operation::Atomics { request: span(request), answer: span(answer) };
    let object = |len| Operation::ReadObject { local: span(len), remote: REMOTE };
    assert_eq!(post(batch(257, 8)), Err(PostError::TooLong));
    assert_eq!(post(batch(256, 257)), Err(PostError::TooLong));
    assert_eq!(post(object(1001)), Err(PostError::TooLong));
    assert_eq!(post(object(1000)), Ok(()));
}

#[test]
fn bytes_go_only_where_they_may() {
    let only_read = |lone: &mut Lone| {
        let region = Region { base: BASE, len: 600, access: Access::LOCAL_READ };
        Span { key: lone.device.register(region).unwrap(), address: BASE, len: 600 }
    };
    let mut lone = plain();
    let local = only_read(&mut lone);
    lone.post(1, Operation::ReadObject { local, remote: REMOTE });
    assert!(placed(&data(&mut lone, 0, 256)).is_empty());
    assert_eq!(ended(&mut lone), [(1, Status::LocalProtection, None)]);
    let mut lone = plain();
    let answer = Span { len: 16, ..only_read(&mut lone) };
    lone.post(1, Operation::Atomics { request: answer, answer });
    assert!(placed(&words(&mut lone, 0, 16)).is_empty());
    assert_eq!(ended(&mut lone), [(1, Status::LocalProtection, None)]);
}
