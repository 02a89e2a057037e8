//! The requester event by event: answers that are awaited, old, impossible, or missing. What must hold: work ends in its
//! order, when it is answered; what is not answered is sent again.

use crate::lone;

use lone::*;
use nic::verbs::*;
use wire::Nanos;
use wire::roce::*;

#[test]
fn one_acknowledgement_ends_all_writes_before_it() {
    let mut lone = plain();
    for id in 0..3 {
        lone.post_write(id, 300);
    }
    assert!(
        lone.acknowledge(0, Syndrome::NO_CREDITS).is_empty() && lone.ended().is_empty(),
        "half of the first"
    );
    lone.acknowledge(4, Syndrome::NO_CREDITS);
    assert_eq!(lone.ended(), [0, 1]);
    lone.acknowledge(5, Syndrome::NO_CREDITS);
    assert_eq!(lone.ended(), [2]);
    assert!(lone.nothing_is_due());
}

#[test]
fn old_and_impossible_acknowledgements_are_dropped() {
    let mut lone = plain();
    lone.post_write(0, 8);
    for offset in [1, 2, 1 << 22] {
        lone.acknowledge(offset, Syndrome::NO_CREDITS);
    }
    assert_eq!((lone.dropped(Drop::NeverSent), lone.ended()), (3, vec![]));
    lone.acknowledge(0, Syndrome::NO_CREDITS);
    lone.acknowledge(0, Syndrome::NO_CREDITS);
    lone.acknowledge(0, Syndrome::Nak(NakCode::RemoteAccess));
    assert_eq!((lone.dropped(Drop::Stale), lone.ended()), (2, vec![0]));
    assert_eq!(lone.device.state(lone.pair), Some(QueuePairState::Rts));
}

#[test]
fn a_nak_acknowledges_what_is_before_it_and_repeats_the_rest() {
    let mut lone = plain();
    for id in 0..3 {
        lone.post_write(id, 8);
    }
    let again = lone.acknowledge(1, NAK);
    assert_eq!(sent(&again), [(Opcode::WriteOnly, 1), (Opcode::WriteOnly, 2)]);
    assert_eq!(lone.ended(), [0]);
    assert!(sent(&lone.acknowledge(1, NAK)).is_empty(), "a copy of the NAK is old");
}

#[test]
fn silence_is_met_with_repetition_and_early_calls_are_harmless() {
    let mut lone = plain();
    let first = lone.post_write(0, 300);
    assert_eq!(lone.device.next_deadline(), Nanos(1001));
    assert!(lone.deadline(Nanos(1000)).is_empty());
    assert_eq!(lone.deadline(Nanos(1001)), first, "the very same packets");
    assert_eq!(lone.device.next_deadline(), Nanos(2001));
}

#[test]
fn an_acknowledgement_beyond_an_unanswered_read_asks_for_it_again() {
    let mut lone = plain();
    lone.post_read(0, 300);
    lone.post_write(1, 8);
    let again = lone.acknowledge(2, Syndrome::NO_CREDITS);
    assert_eq!(sent(&again), [(Opcode::ReadRequest, 0), (Opcode::WriteOnly, 2)]);
    assert!(lone.ended().is_empty());
}

#[test]
fn a_read_goes_on_where_its_answers_broke_off() {
    let mut lone = lone(|_| {}, |send| send.read_chunk = 3);
    let asked = lone.post_read(0, 256 * 5);
    assert_eq!(sent(&asked), [(Opcode::ReadRequest, 0), (Opcode::ReadRequest, 3)], "in pieces");
    let aeth = Extension::Aeth(Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 });
    let effects = lone.feed(Opcode::ReadResponseFirst, 0, aeth, 256);
    assert_eq!(placed(&effects), [lone.span(256)]);
    let effects = lone.feed(Opcode::ReadResponseLast, 2, aeth, 256);
    assert!(placed(&effects).is_empty(), "not its turn");
    let Effect::Send { packet, .. } = effects[0] else { panic!("it is asked for again: {effects:?}") };
    assert!(matches!(packet.extension, Extension::Reth(Reth { address: 0x9100, length: 512, .. })));
    assert_eq!(sent(&effects), [(Opcode::ReadRequest, 1), (Opcode::ReadRequest, 3)]);
    // The answer to the repeated request begins anew.
    lone.feed(Opcode::ReadResponseFirst, 1, aeth, 256);
    lone.feed(Opcode::ReadResponseLast, 2, aeth, 256);
    lone.feed(Opcode::ReadResponseFirst, 3, aeth, 256);
    assert!(lone.ended().is_empty());
    lone.feed(Opcode::ReadResponseLast, 4, aeth, 256);
    assert_eq!(lone.ended(), [0]);
}

#[test]
fn an_answer_that_does_not_fit_its_request_is_dropped() {
    let mut lone = plain();
    lone.post_read(0, 300);
    lone.post_write(1, 8);
    let aeth = Extension::Aeth(Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 });
    let nak = Extension::Aeth(Aeth { syndrome: NAK, messages: 0 });
    let atomic = Extension::AethAtomic(Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 }, 1);
    let mut effects = lone.feed(Opcode::ReadResponseFirst, 0, aeth, 255);
    effects.extend(lone.feed(Opcode::ReadResponseOnly, 0, aeth, 256));
    effects.extend(lone.feed(Opcode::ReadResponseMiddle, 1, Extension::Plain, 44));
    effects.extend(lone.feed(Opcode::ReadResponseFirst, 0, nak, 256));
    effects.extend(lone.feed(Opcode::AtomicAcknowledge, 0, atomic, 0));
    effects.extend(lone.feed(Opcode::ReadResponseOnly, 2, aeth, 8));
    effects.extend(lone.acknowledge(0, Syndrome::RnrNak(RnrTimer::from_code(1))));
    assert_eq!((effects, lone.dropped(Drop::BadAnswer)), (vec![], 7));
}

#[test]
fn reads_and_atomics_in_flight_are_limited() {
    let mut lone = lone(|_| {}, |send| send.outstanding = 2);
    let remote = Remote { key: Key(1), address: 0 };
    let add = Operation::FetchAdd { remote, add: 1, result: None };
    assert_eq!(sent(&lone.post(0, add)).len(), 1);
    assert_eq!(sent(&lone.post_read(1, 8)).len(), 1);
    assert!(sent(&lone.post(2, add)).is_empty());
    assert!(sent(&lone.post_write(3, 8)).is_empty(), "and what is behind waits, too");
    let original = Extension::AethAtomic(Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 }, 42);
    let effects = lone.feed(Opcode::AtomicAcknowledge, 0, original, 0);
    assert_eq!(sent(&effects), [(Opcode::FetchAdd, 2), (Opcode::WriteOnly, 3)]);
    let ended = lone.device.poll(lone.queue).unwrap();
    assert_eq!((ended.id, ended.original), (WorkId(0), Some(42)));
}

#[test]
fn the_window_limits_packets_in_flight() {
    let mut lone = lone(|_| {}, |send| send.window = 3);
    let effects = lone.post_write(0, 256 * 5);
    assert_eq!(sent(&effects).len(), 3);
    let Some(Effect::Send { packet, .. }) = effects.last() else { panic!("packets") };
    assert!(packet.ack_request, "or nobody would say that it may go on");
    let effects = lone.acknowledge(1, Syndrome::NO_CREDITS);
    assert_eq!(sent(&effects), [(Opcode::WriteMiddle, 3), (Opcode::WriteLast, 4)]);
}

#[test]
fn a_fence_waits_for_answers() {
    let mut lone = plain();
    lone.post_read(0, 8);
    let remote = Remote { key: Key(1), address: 0 };
    let operation = Operation::Write { local: lone.span(8), remote, immediate: None };
    let request = WorkRequest { fence: true, ..WorkRequest::new(WorkId(1), operation) };
    let mut out = Vec::new();
    lone.device.post_send(lone.now, lone.pair, request, &mut out).unwrap();
    assert!(out.is_empty());
    let aeth = Extension::Aeth(Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 });
    assert_eq!(sent(&lone.feed(Opcode::ReadResponseOnly, 0, aeth, 8)), [(Opcode::WriteOnly, 1)]);
}

#[test]
fn work_that_wants_no_completion_has_none_if_it_succeeds() {
    let mut lone = plain();
    let remote = Remote { key: Key(1), address: 0 };
    let operation = Operation::Write { local: lone.span(8), remote, immediate: None };
    for id in [0, 1] {
        let request = WorkRequest { signaled: false, ..WorkRequest::new(WorkId(id), operation) };
        lone.device.post_send(lone.now, lone.pair, request, &mut Vec::new()).unwrap();
    }
    lone.acknowledge(0, Syndrome::NO_CREDITS);
    assert_eq!(lone.ended(), []);
    lone.acknowledge(1, Syndrome::Nak(NakCode::RemoteOperation));
    assert_eq!(lone.ended(), [1]);
}

#[test]
fn whoever_armed_a_completion_queue_is_told_once() {
    let mut lone = plain();
    lone.post_write(0, 8);
    lone.post_write(1, 8);
    assert!(!lone.device.arm(lone.queue));
    let effects = lone.acknowledge(1, Syndrome::NO_CREDITS);
    assert_eq!(effects, [Effect::Notify { queue: lone.queue }]);
    assert!(lone.device.arm(lone.queue), "two are there");
    assert_eq!(lone.ended(), [0, 1]);
    assert!(!lone.device.arm(lone.queue));
}
