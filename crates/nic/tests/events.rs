//! The machines event by event: one device, packets made by hand, from the past, in order, from the future, and again.
//! What must hold: each handler does what its file says, and what it must not take it drops and counts.

mod pair;

use nic::verbs::*;
use pair::NodeMemory;
use wire::roce::*;
use wire::{Faithful, Nanos, NodeId};

const BASE: u64 = 0x1000;
const PEER: NodeId = NodeId(1);
const PEER_QUEUE_PAIR: QpNumber = QpNumber::new(77);
const FIRST: u32 = 0xff_fffe;

/// One device, connected to nobody who runs.
struct Lone {
    device: Device<Faithful>,
    memory: NodeMemory,
    key: Key,
    pair: QpNumber,
    queue: CqNumber,
    now: Nanos,
}

fn lone(receive: impl Fn(&mut ToReceive), send: impl Fn(&mut ToSend)) -> Lone {
    let mut device = Device::new(8);
    let mut memory = NodeMemory::default();
    let region = Region { base: BASE, len: 8192, access: Access::ALL };
    let key = device.register(region).unwrap();
    memory.add(key, region);
    let queue = device.create_completion_queue(64);
    let pair = device.create_queue_pair(queue, queue, Depth { sends: 16, receives: 16 });
    device.init(pair).unwrap();
    let mut to_receive = ToReceive::new(PEER, PEER_QUEUE_PAIR, Mtu::B256, Psn::new(FIRST));
    receive(&mut to_receive);
    device.ready_to_receive(pair, to_receive).unwrap();
    let mut to_send = ToSend { timeout: Nanos(1000), ..ToSend::new(Psn::new(FIRST)) };
    send(&mut to_send);
    device.ready_to_send(pair, to_send).unwrap();
    Lone { device, memory, key, pair, queue, now: Nanos(1) }
}

fn plain() -> Lone {
    lone(|_| {}, |_| {})
}

impl Lone {
    /// A packet whose number is `offset` after the first.
    fn packet(&self, opcode: Opcode, offset: i32, extension: Extension) -> Packet {
        let psn = Psn::new(FIRST.wrapping_add_signed(offset));
        Packet { ack_request: true, ..Packet::new(opcode, self.pair, psn, extension) }
    }

    fn feed_packet(&mut self, packet: &Packet, payload: u32) -> Vec<Effect> {
        let mut out = Vec::new();
        self.device.on_packet(self.now, PEER, packet, payload, &mut self.memory, &mut out);
        self.device.invariants();
        out
    }

    fn feed(&mut self, opcode: Opcode, offset: i32, extension: Extension, payload: u32) -> Vec<Effect> {
        let packet = self.packet(opcode, offset, extension);
        self.feed_packet(&packet, payload)
    }

    fn reth(&self, address: u64, length: u32) -> Reth {
        Reth { address, key: self.key, length }
    }

    fn write_only(&mut self, offset: i32, len: u32) -> Vec<Effect> {
        let reth = self.reth(BASE, len);
        self.feed(Opcode::WriteOnly, offset, Extension::Reth(reth), len)
    }

    fn add(&mut self, offset: i32, add: u64) -> Vec<Effect> {
        let word = AtomicEth { address: BASE, key: self.key, swap_or_add: add, compare: 0 };
        self.feed(Opcode::FetchAdd, offset, Extension::Atomic(word), 0)
    }

    fn acknowledge(&mut self, offset: i32, syndrome: Syndrome) -> Vec<Effect> {
        let extension = Extension::Aeth(Aeth { syndrome, messages: 0 });
        self.feed(Opcode::Acknowledge, offset, extension, 0)
    }

    fn post(&mut self, id: u64, operation: Operation) -> Vec<Effect> {
        let mut out = Vec::new();
        let request = WorkRequest::new(WorkId(id), operation);
        self.device.post_send(self.now, self.pair, request, &mut out).unwrap();
        self.device.invariants();
        out
    }

    fn post_write(&mut self, id: u64, len: u32) -> Vec<Effect> {
        let remote = Remote { key: Key(0x101), address: 0 };
        self.post(id, Operation::Write { local: self.span(len), remote, immediate: None })
    }

    fn post_read(&mut self, id: u64, len: u32) -> Vec<Effect> {
        let remote = Remote { key: Key(0x101), address: 0x9000 };
        self.post(id, Operation::Read { local: self.span(len), remote })
    }

    fn span(&self, len: u32) -> Span {
        Span { key: self.key, address: BASE, len }
    }

    fn deadline(&mut self, now: Nanos) -> Vec<Effect> {
        self.now = now;
        let mut out = Vec::new();
        self.device.on_deadline(now, &mut out);
        self.device.invariants();
        out
    }

    fn ended(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.device.poll(self.queue)).map(|completion| completion.id.0).collect()
    }

    fn dropped(&self, why: Drop) -> u64 {
        self.device.counters().dropped[why as usize]
    }
}

/// Opcode and distance from the first number of every packet that is sent.
fn sent(effects: &[Effect]) -> Vec<(Opcode, i32)> {
    let packets = effects.iter().filter_map(|effect| match effect {
        Effect::Send { packet, .. } => Some((packet.opcode, packet.psn.since(Psn::new(FIRST)))),
        _ => None,
    });
    packets.collect()
}

fn syndromes(effects: &[Effect]) -> Vec<Syndrome> {
    let syndromes = effects.iter().filter_map(|effect| match effect {
        Effect::Send { packet, .. } => match packet.extension {
            Extension::Aeth(aeth) | Extension::AethAtomic(aeth, _) => Some(aeth.syndrome),
            _ => None,
        },
        _ => None,
    });
    syndromes.collect()
}

fn placed(effects: &[Effect]) -> Vec<Span> {
    let spans = effects.iter().filter_map(|effect| match effect {
        Effect::Place { at } => Some(*at),
        _ => None,
    });
    spans.collect()
}

fn originals(effects: &[Effect]) -> Vec<u64> {
    let originals = effects.iter().filter_map(|effect| match effect {
        Effect::Send { packet, .. } => match packet.extension {
            Extension::AethAtomic(_, original) => Some(original),
            _ => None,
        },
        _ => None,
    });
    originals.collect()
}

const NAK: Syndrome = Syndrome::Nak(NakCode::SequenceError);

#[test]
fn a_write_is_placed_and_acknowledged() {
    let mut lone = plain();
    let effects = lone.write_only(0, 8);
    assert_eq!(placed(&effects), [lone.span(8)]);
    assert_eq!(sent(&effects), [(Opcode::Acknowledge, 0)]);
    assert!(matches!(effects[0], Effect::Place { .. }), "first the bytes, then the acknowledgement");
}

#[test]
fn a_write_that_comes_again_is_acknowledged_and_not_placed() {
    let mut lone = plain();
    lone.write_only(0, 8);
    lone.write_only(1, 8);
    let effects = lone.write_only(0, 8);
    assert_eq!(sent(&effects), [(Opcode::Acknowledge, 1)], "how far it has come");
    assert!(placed(&effects).is_empty());
    assert_eq!(lone.device.counters().duplicates, 1);
}

#[test]
fn a_gap_is_reported_once() {
    let mut lone = plain();
    let effects = lone.write_only(2, 8);
    assert_eq!((sent(&effects), syndromes(&effects)), (vec![(Opcode::Acknowledge, 0)], vec![NAK]));
    assert!(lone.write_only(1, 8).is_empty(), "it has been reported");
    assert_eq!(lone.dropped(Drop::OutOfOrder), 2);
    lone.write_only(0, 8);
    assert_eq!(syndromes(&lone.write_only(2, 8)), [NAK], "another gap");
}

#[test]
fn half_the_circle_is_the_past_and_the_other_half_the_future() {
    let mut lone = plain();
    assert_eq!(syndromes(&lone.write_only((1 << 23) - 1, 8)), [NAK]);
    let mut lone = plain();
    assert_eq!(sent(&lone.write_only(-(1 << 23), 8)), [(Opcode::Acknowledge, -1)]);
}

#[test]
fn wishes_for_an_acknowledgement_are_answered_together() {
    let mut lone = lone(|receive| (receive.ack_every, receive.ack_delay) = (3, Nanos(500)), |_| {});
    assert!(sent(&lone.write_only(0, 8)).is_empty());
    assert_eq!(lone.device.next_deadline(), Nanos(501));
    assert!(sent(&lone.write_only(1, 8)).is_empty());
    assert_eq!(sent(&lone.write_only(2, 8)), [(Opcode::Acknowledge, 2)], "three at once");
    assert_eq!(lone.device.next_deadline(), Nanos::MAX);
    lone.write_only(3, 8);
    assert!(lone.deadline(Nanos(500)).is_empty(), "early is harmless");
    assert_eq!(sent(&lone.deadline(Nanos(501))), [(Opcode::Acknowledge, 3)], "or when their time has come");
    lone.write_only(4, 8);
    assert_eq!(sent(&lone.add(5, 1)), [(Opcode::AtomicAcknowledge, 5)], "any answer acknowledges");
    assert_eq!(lone.device.next_deadline(), Nanos::MAX);
}

#[test]
fn a_long_write_is_placed_piece_by_piece() {
    let mut lone = plain();
    let reth = Extension::Reth(lone.reth(BASE + 8, 600));
    let mut spans = placed(&lone.feed(Opcode::WriteFirst, 0, reth, 256));
    spans.extend(placed(&lone.feed(Opcode::WriteMiddle, 1, Extension::Plain, 256)));
    spans.extend(placed(&lone.feed(Opcode::WriteLast, 2, Extension::Plain, 88)));
    let places: Vec<_> = spans.iter().map(|span| (span.address - BASE, span.len)).collect();
    assert_eq!(places, [(8, 256), (264, 256), (520, 88)]);
}

#[test]
fn a_message_that_is_not_as_announced_is_an_invalid_request() {
    use Extension::Plain;
    fn reth(lone: &Lone, length: u32) -> Extension {
        Extension::Reth(lone.reth(BASE, length))
    }
    type Feed = fn(&mut Lone) -> Vec<Effect>;
    let cases: [(&str, Feed); 11] = [
        ("an only one of another length", |l| l.feed(Opcode::WriteOnly, 0, reth(l, 9), 8)),
        ("longer than a packet", |l| l.feed(Opcode::WriteOnly, 0, reth(l, 257), 257)),
        ("a first one that is not full", |l| l.feed(Opcode::WriteFirst, 0, reth(l, 600), 255)),
        ("a first one with nothing to follow", |l| l.feed(Opcode::WriteFirst, 0, reth(l, 256), 256)),
        ("a middle without a first", |l| l.feed(Opcode::WriteMiddle, 0, Plain, 256)),
        ("a last without a first", |l| l.feed(Opcode::SendLast, 0, Plain, 8)),
        ("a message inside of another", |l| {
            l.feed(Opcode::WriteFirst, 0, reth(l, 600), 256);
            l.feed(Opcode::WriteOnly, 1, reth(l, 8), 8)
        }),
        ("a READ inside of a message", |l| {
            l.feed(Opcode::WriteFirst, 0, reth(l, 600), 256);
            l.feed(Opcode::ReadRequest, 1, reth(l, 8), 0)
        }),
        ("a WRITE that goes on as a SEND", |l| {
            l.feed(Opcode::WriteFirst, 0, reth(l, 600), 256);
            l.feed(Opcode::SendMiddle, 1, Plain, 256)
        }),
        ("a last that comes too early", |l| {
            l.feed(Opcode::WriteFirst, 0, reth(l, 600), 256);
            l.feed(Opcode::WriteLast, 1, Plain, 88)
        }),
        ("longer than the longest", |l| l.feed(Opcode::ReadRequest, 0, reth(l, (1 << 20) + 1), 0)),
    ];
    for (what, feed) in cases {
        let mut lone = plain();
        let effects = feed(&mut lone);
        assert_eq!(syndromes(&effects), [Syndrome::Nak(NakCode::InvalidRequest)], "{what}");
        assert!(placed(&effects).is_empty(), "{what}");
        assert_eq!(lone.device.state(lone.pair), Some(State::Err), "{what}");
    }
}

#[test]
fn a_long_read_is_answered_in_segments() {
    let mut lone = plain();
    let reth = Extension::Reth(lone.reth(BASE + 1, 600));
    let effects = lone.feed(Opcode::ReadRequest, 0, reth, 0);
    let opcodes =
        [(Opcode::ReadResponseFirst, 0), (Opcode::ReadResponseMiddle, 1), (Opcode::ReadResponseLast, 2)];
    assert_eq!(sent(&effects), opcodes);
    assert_eq!(sent(&lone.write_only(3, 8)), [(Opcode::Acknowledge, 3)], "each segment took a number");
}

#[test]
fn a_read_of_nothing_needs_no_key() {
    let mut lone = plain();
    let reth = Extension::Reth(Reth { address: 5, key: Key(0), length: 0 });
    let effects = lone.feed(Opcode::ReadRequest, 0, reth, 0);
    assert!(matches!(
        effects[..],
        [Effect::Send { packet: Packet { opcode: Opcode::ReadResponseOnly, .. }, payload: None, .. }]
    ));
}

#[test]
fn a_read_that_comes_again_is_answered_from_any_segment_on() {
    let mut lone = plain();
    let reth = Extension::Reth(lone.reth(BASE, 600));
    lone.feed(Opcode::ReadRequest, 0, reth, 0);
    let rest = Extension::Reth(lone.reth(BASE + 256, 344));
    let again = lone.feed(Opcode::ReadRequest, 1, rest, 0);
    assert_eq!(sent(&again), [(Opcode::ReadResponseFirst, 1), (Opcode::ReadResponseLast, 2)]);
    // More than was asked for before: numbers that have not been used.
    assert!(lone.feed(Opcode::ReadRequest, 1, reth, 0).is_empty());
    assert_eq!(lone.dropped(Drop::NotRemembered), 1);
}

#[test]
fn a_read_that_comes_again_after_its_region_is_gone_is_dropped() {
    let mut lone = plain();
    let reth = Extension::Reth(lone.reth(BASE, 8));
    lone.feed(Opcode::ReadRequest, 0, reth, 0);
    lone.device.deregister(lone.key).unwrap();
    assert!(lone.feed(Opcode::ReadRequest, 0, reth, 0).is_empty());
    assert_eq!(lone.device.state(lone.pair), Some(State::Rts));
}

#[test]
fn an_atomic_that_comes_again_gets_the_same_answer_again() {
    let mut lone = lone(|receive| receive.remembered = 2, |_| {});
    lone.add(0, 5);
    lone.add(1, 7);
    assert_eq!(originals(&lone.add(0, 5)), [0]);
    assert_eq!(originals(&lone.add(1, 7)), [5]);
    assert_eq!(lone.memory.word(lone.key, BASE), 12, "executed once");
    lone.add(2, 1);
    assert!(lone.add(0, 5).is_empty(), "forgotten: more have come since than may be unanswered");
    assert_eq!((lone.dropped(Drop::NotRemembered), lone.memory.word(lone.key, BASE)), (1, 13));
}

#[test]
fn compare_swap_answers_what_was_there_and_swaps_if_it_is_equal() {
    let mut lone = plain();
    lone.memory.set_word(lone.key, BASE, 4);
    for (offset, compare, swap, original, after) in [(0, 3, 9, 4, 4), (1, 4, 9, 4, 9)] {
        let word = AtomicEth { address: BASE, key: lone.key, swap_or_add: swap, compare };
        let effects = lone.feed(Opcode::CompareSwap, offset, Extension::Atomic(word), 0);
        let Effect::Send { packet, .. } = effects[0] else { panic!("an answer: {effects:?}") };
        assert!(matches!(packet.extension, Extension::AethAtomic(_, answer) if answer == original));
        assert_eq!(lone.memory.word(lone.key, BASE), after);
    }
}

#[test]
fn after_a_refused_message_everything_waits_for_it_silently() {
    let mut lone = plain();
    let effects = lone.feed(Opcode::SendOnly, 0, Extension::Plain, 8);
    assert_eq!(syndromes(&effects), [Syndrome::RnrNak(RnrTimer::from_code(1))]);
    assert!(lone.write_only(1, 8).is_empty());
    let receive = Receive { id: WorkId(1), local: lone.span(8) };
    lone.device.post_receive(lone.now, lone.pair, receive, &mut Vec::new()).unwrap();
    assert_eq!(sent(&lone.feed(Opcode::SendOnly, 0, Extension::Plain, 8)), [(Opcode::Acknowledge, 0)]);
    assert_eq!(sent(&lone.write_only(1, 8)), [(Opcode::Acknowledge, 1)]);
}

#[test]
fn what_is_for_nobody_is_counted_by_cause() {
    let mut lone = plain();
    let write = lone.packet(Opcode::WriteOnly, 0, Extension::Reth(lone.reth(BASE, 8)));
    lone.feed_packet(&Packet { to: QpNumber::new(1), ..write }, 8);
    lone.feed_packet(&Packet { to: QpNumber::new(3), ..write }, 8);
    let mut out = Vec::new();
    lone.device.on_packet(lone.now, NodeId(2), &write, 8, &mut lone.memory, &mut out);
    lone.feed(Opcode::SabreRequest, 0, Extension::Plain, 8);
    lone.device.on_malformed(Malformed::Icrc);
    assert!(out.is_empty());
    let counts = [Drop::NoSuchQueuePair, Drop::Stranger, Drop::Unsupported].map(|why| lone.dropped(why));
    assert_eq!(counts, [2, 1, 1]);
    assert_eq!(lone.device.counters().malformed[Malformed::Icrc as usize], 1);
    assert_eq!((lone.device.counters().received, lone.device.counters().taken), (5, 0));
}

// The requester.

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
    assert_eq!(lone.device.next_deadline(), Nanos::MAX);
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
    assert_eq!(lone.device.state(lone.pair), Some(State::Rts));
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
fn reads_and_atomics_under_way_are_limited() {
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
fn the_window_limits_packets_under_way() {
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
