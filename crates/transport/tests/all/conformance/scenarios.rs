//! What must hold, a function each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use transport::{Body, Cause, Contents, MOST_CONTROL, MOST_ONE_SIDED, Outgoing, PeerId, Transport};
use wire::roce::{self, Aeth, Extension, Key, Opcode, Psn, QpNumber, Reth, Syndrome};
use wire::{GlobalAddr, LockEnd, LockKind, LockPacket, Mode, Nanos, NodeId, WaitList};

use super::messages::{
    Deliveries, Message, bytes_of, connect, node, number_of, packet, receive, send, send_number, until, words,
};
use super::{Rack, TIMEOUT};

/// Messages that a sender may be ahead of the receiver: so many fit everywhere.
const WINDOW: u64 = 64;

fn two<R: Rack>(rack: &R) -> (Box<dyn Transport>, Box<dyn Transport>) {
    let (a, b) = (rack.open(node(1)), rack.open(node(2)));
    connect(&*a, &*b);
    (a, b)
}

pub(crate) fn packets_arrive_whole<R: Rack>() {
    let rack = R::new();
    let mut all = Deliveries::default();
    let (a, b) = two(&rack);
    let mut number = 0;
    for payload in [0, 64, 4096, 1 << 20] {
        number += 1;
        let own = words(number, payload);
        let shared: Vec<AtomicU64> = own.iter().map(|word| AtomicU64::new(*word)).collect();
        for contents in [Contents::Own(&own), Contents::Shared(&shared), Contents::Zeroes(payload)] {
            number += 1;
            let packet = packet(number, payload);
            let message = all.deliver((&*a, &*b), R::LOSSLESS, Body::Packet(&packet, contents));
            let bytes =
                if matches!(contents, Contents::Zeroes(_)) { vec![0; payload] } else { bytes_of(&own) };
            let sent = Message { packet: Some(packet), bytes, ..Message::none(node(1)) };
            assert!(message == sent, "{payload} bytes, {:?} for {:?}", message.packet, sent.packet);
        }
    }
}

pub(crate) fn locks_arrive_whole_with_their_queues_and_regions<R: Rack>() {
    let rack = R::new();
    let mut all = Deliveries::default();
    let (a, b) = two(&rack);
    for (waiting, payload) in [(0, 0), (1, 8), (7, 64), (8, 4096), (63, 1 << 20)] {
        let mut queue = WaitList::EMPTY;
        (0..waiting).for_each(|node| queue.push(NodeId(node), Mode::Write));
        let own = words(waiting.into(), payload);
        let shared: Vec<AtomicU64> = own.iter().map(|word| AtomicU64::new(*word)).collect();
        for contents in [Contents::Own(&own), Contents::Shared(&shared), Contents::Zeroes(payload)] {
            let lock = GlobalAddr::new(NodeId(1), 4096);
            let (len, to) = (payload as u32, LockEnd::Agent(NodeId(2)));
            let packet = LockPacket {
                queue,
                payload: len,
                to,
                ..LockPacket::new(LockKind::Hand, lock, len, NodeId(1))
            };
            let message = all.deliver((&*a, &*b), R::LOSSLESS, Body::Lock(&packet, contents));
            let bytes =
                if matches!(contents, Contents::Zeroes(_)) { vec![0; payload] } else { bytes_of(&own) };
            let sent = Message { lock: Some(packet), bytes, ..Message::none(node(1)) };
            assert!(message == sent, "{waiting} waiting, {payload} bytes: {:?}", message.lock);
        }
    }
    let switch = rack.open(PeerId::SWITCH);
    connect(&*a, &*switch);
    for waiting in [0, 1, 7, 8, 9, 63] {
        let mut queue = WaitList::EMPTY;
        (0..waiting).for_each(|node| queue.push(NodeId(node), Mode::Read));
        let lock = GlobalAddr::new(NodeId(1), 4096);
        let packet = LockPacket { queue, ..LockPacket::new(LockKind::Move, lock, 64, NodeId(1)) };
        for (from, to) in [(&a, &switch), (&switch, &a)] {
            let message = all.deliver((&**from, &**to), R::LOSSLESS, Body::Lock(&packet, Contents::None));
            let sent = Message { lock: Some(packet), ..Message::none(from.me()) };
            assert!(message == sent, "{waiting} waiting: {:?}", message.lock);
        }
    }
}

pub(crate) fn one_sided_packets_arrive_whole_to_the_byte<R: Rack>() {
    let rack = R::new();
    let mut all = Deliveries::default();
    let (a, b) = two(&rack);
    let aeth = Aeth { syndrome: Syndrome::Ack(31), messages: 7 };
    let headers = [
        (Opcode::SendOnly, Extension::Plain),
        (Opcode::WriteOnlyImmediate, Extension::RethImmediate(reth(), 9)),
        (Opcode::ReadResponseOnly, Extension::Aeth(aeth)),
    ];
    for (number, (opcode, extension)) in (0..).zip(headers) {
        for payload in [0, 1, 7, 8, 1000, 1025, MOST_ONE_SIDED] {
            let own = words(u64::from(number), payload.next_multiple_of(8));
            let shared: Vec<AtomicU64> = own.iter().map(|word| AtomicU64::new(*word)).collect();
            let zeroes = Contents::Zeroes(payload.next_multiple_of(8));
            for contents in [Contents::Own(&own), Contents::Shared(&shared), zeroes] {
                let packet = roce::Packet::new(opcode, QpNumber::new(number), Psn::new(77), extension);
                let message = all.deliver((&*a, &*b), R::LOSSLESS, Body::Verbs(&packet, payload, contents));
                let whole =
                    if matches!(contents, Contents::Zeroes(_)) { vec![0; payload] } else { bytes_of(&own) };
                let bytes = whole[..payload].to_vec();
                let sent = Message { one_sided: Some(packet), bytes, ..Message::none(node(1)) };
                assert!(message == sent, "{payload} bytes: {:?}", message.one_sided);
            }
        }
    }
    // And one without a payload, as they must be.
    let read = roce::Packet::new(Opcode::ReadRequest, QpNumber::new(2), Psn::new(3), Extension::Reth(reth()));
    let message = all.deliver((&*a, &*b), R::LOSSLESS, Body::Verbs(&read, 0, Contents::None));
    assert_eq!(message.one_sided, Some(read));
}

fn reth() -> Reth {
    Reth { address: 1 << 40, key: Key(0x55aa), length: 12 }
}

pub(crate) fn control_messages_arrive_whole<R: Rack>() {
    let rack = R::new();
    let mut all = Deliveries::default();
    let (a, b) = two(&rack);
    for length in [0, 1, 7, 8, 100, MOST_CONTROL - 1, MOST_CONTROL] {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 31 + length) as u8).collect();
        let message = all.deliver((&*a, &*b), R::LOSSLESS, Body::Control(&bytes));
        assert!(message == Message { bytes, ..Message::none(node(1)) }, "{length} bytes");
    }
}

/// Keeps a sender from being too far ahead of what has arrived. Where messages may be lost it does not wait for ever.
fn keep_window(sent: u64, arrived: &AtomicU64, lossless: bool) {
    let begun = Instant::now();
    until("room in the window", || {
        sent < arrived.load(Relaxed) + WINDOW || !lossless && begun.elapsed() > Duration::from_millis(20)
    });
}

/// What a receiver checks about numbered packets with a payload that depends on the number.
#[derive(Default)]
struct Seen {
    /// How often each number came, by peer and lane.
    times: BTreeMap<u64, usize>,
    highest: BTreeMap<u64, u64>,
}

/// Numbers have the lane they travel in in their upper half.
fn lane(number: u64) -> u64 {
    number >> 32
}

impl Seen {
    fn note<R: Rack>(&mut self, message: &Message) {
        let number = number_of(message);
        assert!(
            message.bytes == bytes_of(&words(number, message.bytes.len())),
            "packet {number:#x} is whole"
        );
        let times = self.times.entry(number).or_default();
        *times += 1;
        assert_eq!(*times, 1, "packet {number:#x} came once");
        let highest = self.highest.insert(lane(number), number);
        assert!(!R::IN_ORDER || highest < Some(number), "{number:#x} came after {highest:x?}");
    }
}

pub(crate) fn everything_arrives_in_order_and_once<R: Rack>() {
    const MESSAGES: u64 = 5000;
    let rack = R::new();
    let (a, b) = two(&rack);
    let (arrived, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut seen = Seen::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut out = Outgoing::new();
            for number in 0..MESSAGES {
                // Sizes that do not divide each other, so that records end everywhere.
                let payload = [0, 64, 512, 4096, 16384][number as usize % 5];
                let contents = words(number, payload);
                a.send(node(2), Body::Packet(&packet(number, payload), Contents::Own(&contents)), &mut out);
                if number % 8 == 7 {
                    a.flush(&mut out);
                    keep_window(number, &arrived, R::LOSSLESS);
                }
            }
            a.flush(&mut out);
            done.store(true, SeqCst);
        });
        take_all::<R>(&*b, MESSAGES, &arrived, &done, &mut seen);
    });
    assert!(!R::LOSSLESS || seen.times.len() as u64 == MESSAGES, "{} of {MESSAGES}", seen.times.len());
}

/// Receives until all are there; where messages may be lost, until nothing more comes, and most are there.
fn take_all<R: Rack>(at: &dyn Transport, all: u64, arrived: &AtomicU64, done: &AtomicBool, seen: &mut Seen) {
    let mut last = Instant::now();
    until("all messages", || {
        for message in receive(at) {
            seen.note::<R>(&message);
            arrived.fetch_add(1, Relaxed);
            last = Instant::now();
        }
        let came = seen.times.len() as u64;
        came == all
            || !R::LOSSLESS
                && done.load(SeqCst)
                && came > all / 2
                && last.elapsed() > Duration::from_millis(500)
    });
    // What came twice would come now.
    for message in receive(at) {
        seen.note::<R>(&message);
    }
}

pub(crate) fn two_threads_of_one_peer_can_send_at_a_time<R: Rack>() {
    const EACH: u64 = 2000;
    let rack = R::new();
    let (a, b) = two(&rack);
    let (arrived, done, running) = (AtomicU64::new(0), AtomicBool::new(false), AtomicUsize::new(2));
    let mut seen = Seen::default();
    std::thread::scope(|scope| {
        for lane in 0..2 {
            let (a, arrived, done, running) = (&a, &arrived, &done, &running);
            scope.spawn(move || {
                for count in 0..EACH {
                    let number = lane << 32 | count;
                    let contents = words(number, 1024);
                    send(&**a, node(2), Body::Packet(&packet(number, 1024), Contents::Own(&contents)));
                    // The other thread is as fast or slow.
                    keep_window(2 * count, arrived, false);
                }
                done.store(running.fetch_sub(1, SeqCst) == 1, SeqCst);
            });
        }
        take_all::<R>(&*b, 2 * EACH, &arrived, &done, &mut seen);
    });
}

pub(crate) fn the_contents_may_change_after_send<R: Rack>() {
    let rack = R::new();
    let (a, b) = two(&rack);
    let mut contents = words(1, 128);
    let sent = bytes_of(&contents);
    let mut came = Vec::new();
    until("a message", || {
        let mut out = Outgoing::new();
        a.send(node(2), Body::Packet(&packet(1, 128), Contents::Own(&contents)), &mut out);
        contents.fill(0);
        a.flush(&mut out);
        came = receive(&*b);
        contents = words(1, 128);
        !came.is_empty()
    });
    assert!(came.iter().all(|message| message.bytes == sent), "{came:?}");
}

pub(crate) fn one_thread_at_a_time_receives<R: Rack>() {
    let rack = R::new();
    let (a, b) = two(&rack);
    connect(&*b, &*a);
    let mut handed_over = 0;
    until("a message", || {
        send_number(&*a, node(2), 1);
        b.receive(&mut |_, _| {
            handed_over += 1;
            assert_eq!(b.receive(&mut |_, _| panic!("handed over while another one is")), 0);
            // Answers may be sent while receiving.
            send_number(&*b, node(1), 2);
        });
        handed_over > 0
    });
    let mut answers = Vec::new();
    until("an answer", || {
        if !R::LOSSLESS {
            send_number(&*b, node(1), 2);
        }
        answers = receive(&*a);
        !answers.is_empty()
    });
    assert_eq!((answers[0].from, number_of(&answers[0])), (node(2), 2));
}

pub(crate) fn a_message_names_its_sender<R: Rack>() {
    let rack = R::new();
    let mut all = Deliveries::default();
    let receiver = rack.open(PeerId::SWITCH);
    let peers = [node(0), node(1), node(31), node(63)];
    for peer in peers {
        let sender = rack.open(peer);
        connect(&*sender, &*receiver);
        let number = peer.index() as u64;
        let message = all.deliver(
            (&*sender, &*receiver),
            R::LOSSLESS,
            Body::Packet(&packet(number, 0), Contents::None),
        );
        assert_eq!((message.from, number_of(&message)), (peer, number));
    }
}

pub(crate) fn a_receiver_may_come_late<R: Rack>() {
    let rack = R::new();
    let a = rack.open(node(1));
    for number in 0..100 {
        send_number(&*a, node(2), number);
    }
    let b = rack.open(node(2));
    let mut number = 100;
    until("a message to the late receiver", || {
        number += 1;
        send_number(&*a, node(2), number);
        std::thread::sleep(Duration::from_millis(1));
        assert!(receive(&*a).is_empty(), "nobody has sent anything to the sender");
        let came = receive(&*b);
        assert!(
            came.iter().all(|message| number_of(message) > 100),
            "only what was sent since it came: {came:?}"
        );
        !came.is_empty()
    });
}

pub(crate) fn a_receiver_that_comes_back_gets_nothing_of_its_former_incarnation<R: Rack>() {
    let rack = R::new();
    let (a, b) = two(&rack);
    for number in 0..10 {
        send_number(&*a, node(2), number);
    }
    drop(b);
    // Some of these are taken before the sender hears that the receiver is gone.
    for number in 10..20 {
        send_number(&*a, node(2), number);
    }
    let b = rack.open(node(2));
    let mut number = 20;
    until("a message to the new incarnation", || {
        number += 1;
        send_number(&*a, node(2), number);
        std::thread::sleep(Duration::from_millis(1));
        assert!(receive(&*a).is_empty(), "nobody has sent anything to the sender");
        let came = receive(&*b);
        assert!(
            came.iter().all(|message| number_of(message) > 20),
            "only what was sent since it is back: {came:?}"
        );
        !came.is_empty()
    });
}

pub(crate) fn a_sender_that_comes_back_is_heard<R: Rack>() {
    let rack = R::new();
    let mut all = Deliveries::default();
    let (a, b) = two(&rack);
    let first = all.deliver((&*a, &*b), R::LOSSLESS, Body::Packet(&packet(1, 0), Contents::None));
    assert_eq!(number_of(&first), 1);
    drop(a);
    let a = rack.open(node(1));
    connect(&*a, &*b);
    let second = all.deliver((&*a, &*b), R::LOSSLESS, Body::Packet(&packet(2, 0), Contents::None));
    assert_eq!((second.from, number_of(&second)), (node(1), 2));
}

pub(crate) fn a_receiver_that_takes_nothing_away_does_not_stop_the_sender<R: Rack>() {
    let rack = R::new();
    let mut all = Deliveries::default();
    let (a, b) = two(&rack);
    let before = a.counters().counts();
    let contents = words(0, 1 << 20);
    let refused = || a.counters().counts().dropped_for(Cause::Full) - before.dropped_for(Cause::Full);
    for number in 0..100 {
        send(&*a, node(2), Body::Packet(&packet(number, 1 << 20), Contents::Own(&contents)));
    }
    assert!(!R::COUNTS_NO_ROOM || refused() > 0, "100 MiB do not fit anywhere");
    let sent = a.counters().counts().sent - before.sent;
    assert!(!R::LOSSLESS || sent + refused() == 100, "{sent} and {} are 100", refused());
    let mut came = Vec::new();
    if R::LOSSLESS {
        until("what was taken", || {
            came.extend(receive(&*b).iter().map(number_of));
            came.len() as u64 == sent
        });
    } else {
        while !receive(&*b).is_empty() {}
    }
    assert!(came.is_sorted(), "{came:?}");
    let message = all.deliver((&*a, &*b), R::LOSSLESS, Body::Control(b"there is room again"));
    assert!(message.bytes == b"there is room again" || !R::LOSSLESS);
}

/// Receives one message, asleep where there is none: nobody attends.
fn sleep_until_message(at: &dyn Transport) -> Message {
    let begun = Instant::now();
    loop {
        if let Some(message) = receive(at).pop() {
            return message;
        }
        at.wait(Nanos(TIMEOUT.as_nanos() as u64));
        assert!(begun.elapsed() < TIMEOUT, "{} slept through a message", at.me());
    }
}

pub(crate) fn a_sleeper_is_woken_for_every_message<R: Rack>() {
    const ROUNDS: u64 = 2000;
    let rack = R::new();
    let (a, b) = two(&rack);
    connect(&*b, &*a);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                let number = number_of(&sleep_until_message(&*b));
                send_number(&*b, node(1), number);
            }
        });
        for number in 0..ROUNDS {
            send_number(&*a, node(2), number);
            assert_eq!(number_of(&sleep_until_message(&*a)), number);
        }
    });
    assert!(
        a.counters().counts().wake_ups <= a.counters().counts().sent,
        "at most one system call for a message"
    );
}

pub(crate) fn several_senders_wake_one_sleeper<R: Rack>() {
    const EACH: u64 = 1000;
    let rack = R::new();
    let receiver = rack.open(PeerId::SWITCH);
    let senders: Vec<_> = (0..3).map(|number| rack.open(node(number))).collect();
    for sender in &senders {
        connect(&**sender, &*receiver);
    }
    let taken: Vec<_> = (0..3).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for (sender, taken) in senders.iter().zip(&taken) {
            scope.spawn(move || {
                for number in 0..EACH {
                    send_number(&**sender, PeerId::SWITCH, number);
                    // The receiver falls asleep in between: all of what it misses would be a sleep without end.
                    until("the message to be taken", || taken.load(SeqCst) > number);
                }
            });
        }
        let mut left = 3 * EACH;
        let begun = Instant::now();
        while left > 0 {
            receiver.attend();
            let came = receive(&*receiver);
            let more = receiver.leave();
            for message in &came {
                taken[message.from.index()].fetch_add(1, SeqCst);
            }
            left -= came.len() as u64;
            if !more && left > 0 {
                receiver.wait(Nanos(TIMEOUT.as_nanos() as u64));
            }
            assert!(begun.elapsed() < TIMEOUT, "the receiver slept through a message");
        }
    });
}

#[allow(dead_code, reason = "a transport whose senders cannot wake a receiver leaves it out")]
pub(crate) fn leaving_says_what_nobody_was_woken_for<R: Rack>() {
    let rack = R::new();
    let (a, b) = two(&rack);
    // Knocks that are still on their way would be reported too.
    until("the last knock", || {
        receive(&*b).is_empty() && b.counters().counts().received == a.counters().counts().sent
    });
    b.attend();
    assert!(!b.leave(), "nothing has come");
    b.attend();
    send_number(&*a, node(2), 1);
    until("a report of the message", || {
        let reported = b.leave();
        b.attend();
        reported
    });
    assert_eq!(receive(&*b).len(), 1);
    assert!(!b.leave(), "it has been taken");
}

pub(crate) fn an_observer_is_answered<R: Rack>() {
    let rack = R::new();
    let switch = rack.open(PeerId::SWITCH);
    for question in [b"first", b"other"] {
        let observer = rack.open(PeerId::OBSERVER);
        let mut answer = Vec::new();
        until("an answer", || {
            send(&*observer, PeerId::SWITCH, Body::Control(question));
            for message in receive(&*switch) {
                send(&*switch, message.from, Body::Control(&message.bytes));
            }
            std::thread::sleep(Duration::from_millis(1));
            answer = receive(&*observer);
            !answer.is_empty()
        });
        assert_eq!((answer[0].from, &answer[0].bytes[..]), (PeerId::SWITCH, &question[..]));
    }
}

pub(crate) fn what_is_taken_and_delivered_is_counted<R: Rack>() {
    let rack = R::new();
    let mut all = Deliveries::default();
    let (a, b) = two(&rack);
    until("the last knock", || {
        receive(&*b).is_empty() && b.counters().counts().received == a.counters().counts().sent
    });
    let (sent, received) = (a.counters().counts(), b.counters().counts());
    let contents = words(7, 4096);
    all.deliver((&*a, &*b), true, Body::Packet(&packet(7, 4096), Contents::Own(&contents)));
    let (sent_now, received_now) = (a.counters().counts(), b.counters().counts());
    assert_eq!((sent_now.sent - sent.sent, received_now.received - received.received), (1, 1));
    assert!(sent_now.sent_bytes - sent.sent_bytes >= 64 + 4096);
    assert!(received_now.received_bytes - received.received_bytes >= 64 + 4096);
}
