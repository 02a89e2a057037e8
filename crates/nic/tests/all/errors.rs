//! What fails, and how: each case of the standard's that ends work or a queue pair. What must hold: the work that
//! failed says why, everything else is flushed, memory is not touched, and both ends are in the error state where the
//! standard says so.

use crate::refusals;

use nic::verbs::*;
use refusals::{BASE, joined, refused, write};
use wire::roce::batch::{Entry, Operation as Atomic, Writer};
use wire::roce::{Key, Opcode, Psn, QpNumber};
use wire::{AllRules, Nanos, NodeId};

use crate::pair::{Faults, Link, Pair};

type Joined = Pair<AllRules>;

fn statuses(pair: &Joined, at: usize) -> Vec<(u64, bool, Status)> {
    let completions = pair.nodes[at].completions.iter();
    completions.map(|completion| (completion.id.0, completion.receive, completion.status)).collect()
}

fn states(pair: &Joined, link: Link) -> [QueuePairState; 2] {
    [0, 1].map(|at: usize| pair.nodes[at].device.state(link.0[at]).unwrap())
}

fn work(id: u64, operation: Operation) -> WorkRequest {
    WorkRequest::new(WorkId(id), operation)
}

fn local(key: Key, len: u32) -> Span {
    Span { key, address: BASE, len }
}

#[test]
fn a_wrong_key_breaks_both_ends() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    pair.post(0, link, write(1, keys[0], Key(keys[1].0 + 256), BASE)).unwrap();
    pair.post(0, link, write(2, keys[0], keys[1], BASE)).unwrap();
    pair.run();
    refused(&pair, link, 1).unwrap();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::RemoteAccess), (2, false, Status::Flushed)]);
    assert_eq!([0, 1].map(|at: usize| pair.nodes[at].broken.clone()), link.0.map(|pair| vec![pair]));
    assert!(pair.nodes[1].placed.is_empty(), "nothing is written behind what was refused");
}

#[test]
fn a_key_is_not_accepted_after_its_region_was_deregistered() {
    refusals::a_former_key(AllRules).unwrap();
}

#[test]
fn a_lost_refusal_is_sent_again() {
    refusals::a_lost_refusal(AllRules).unwrap();
}

#[test]
fn an_address_outside_its_region_breaks_both_ends() {
    for address in [BASE - 1, BASE + 16_384 - 7, 0, u64::MAX - 3] {
        let (mut pair, link, keys) = joined(AllRules, Access::ALL);
        pair.post(0, link, write(1, keys[0], keys[1], address)).unwrap();
        pair.run();
        refused(&pair, link, 1).unwrap();
    }
}

#[test]
fn a_missing_permission_breaks_both_ends() {
    let not_this = [
        (Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, 0),
        (Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC, 1),
        (Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_WRITE, 2),
        (Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_WRITE, 3),
        (Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_WRITE, 4),
        (Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC, 5),
    ];
    for (access, which) in not_this {
        let (mut pair, link, keys) = joined(AllRules, access);
        let remote = Remote { key: keys[1], address: BASE };
        let request = match which {
            0 => write(1, keys[0], keys[1], BASE),
            1 => work(1, Operation::Read { local: local(keys[0], 600), remote }),
            2 => work(1, Operation::FetchAdd { remote, add: 1, result: None }),
            4 => {
                let mut writer = Writer::new(256);
                let (operation, is_wide) = (Atomic::Add, true);
                let entry =
                    Entry { address: BASE, operation, is_wide, fetches: true, operand: 1, expected: 0 };
                writer.push(keys[1], &entry).unwrap();
                let (request, answer) = (local(keys[0], 24), local(keys[0], 8));
                pair.nodes[0].memory.bytes(request).unwrap().copy_from_slice(writer.bytes());
                work(1, Operation::Atomics { request, answer })
            }
            5 => {
                pair.nodes[1].memory.objects.insert(keys[1]);
                work(1, Operation::ReadObject { local: local(keys[0], 600), remote })
            }
            _ => work(1, Operation::CompareSwap { remote, compare: 0, swap: 1, result: None }),
        };
        pair.post(0, link, request).unwrap();
        pair.run();
        refused(&pair, link, 1).unwrap();
        assert_eq!(pair.nodes[1].memory.word(keys[1], BASE), 0);
    }
}

#[test]
fn a_word_that_is_not_aligned_is_an_invalid_request() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    let remote = Remote { key: keys[1], address: BASE + 4 };
    pair.post(0, link, work(1, Operation::FetchAdd { remote, add: 1, result: None })).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::RemoteInvalidRequest)]);
    assert_eq!(states(&pair, link), [QueuePairState::Err; 2]);
}

#[test]
fn memory_that_holds_no_objects_is_an_invalid_request() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    let remote = Remote { key: keys[1], address: BASE };
    pair.post(0, link, work(1, Operation::ReadObject { local: local(keys[0], 600), remote })).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::RemoteInvalidRequest)]);
    assert_eq!(states(&pair, link), [QueuePairState::Err; 2]);
}

#[test]
fn a_torn_object_is_no_error_of_the_queue_pairs() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    let node = &mut pair.nodes[1].memory;
    node.objects.insert(keys[1]);
    node.set_word(keys[1], BASE, 1);
    let remote = Remote { key: keys[1], address: BASE };
    let read = Operation::ReadObject { local: local(keys[0], 600), remote };
    pair.post(0, link, work(1, read)).unwrap();
    pair.run();
    pair.nodes[1].memory.set_word(keys[1], BASE, 2);
    pair.post(0, link, work(2, read)).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::Torn), (2, false, Status::Success)]);
    assert_eq!(states(&pair, link), [QueuePairState::Rts; 2]);
}

#[test]
fn a_region_that_goes_away_under_a_long_write_stops_it() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    let remote = Remote { key: keys[1], address: BASE };
    pair.post(0, link, work(1, Operation::Write { local: local(keys[0], 4096), remote, immediate: None }))
        .unwrap();
    while pair.nodes[1].placed.len() < 3 {
        assert!(pair.step());
    }
    pair.nodes[1].deregister(keys[1]);
    pair.run();
    refused(&pair, link, 1).unwrap();
    assert_eq!(pair.nodes[1].placed.len(), 3);
}

#[test]
fn a_message_longer_than_its_receive_fails_at_both_ends() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    let room = Receive { id: WorkId(9), local: local(keys[1], 500) };
    pair.post_receive(1, link, room).unwrap();
    pair.post(0, link, work(1, Operation::Send { local: local(keys[0], 600), immediate: None })).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::RemoteInvalidRequest)]);
    assert_eq!(statuses(&pair, 1), [(9, true, Status::LocalLength)]);
    assert_eq!(states(&pair, link), [QueuePairState::Err; 2]);
}

#[test]
fn a_receive_that_cannot_be_written_is_the_responders_own_error() {
    let (mut pair, link, keys) = joined(AllRules, Access::REMOTE_READ);
    pair.post_receive(1, link, Receive { id: WorkId(9), local: local(keys[1], 500) }).unwrap();
    pair.post(0, link, work(1, Operation::Send { local: local(keys[0], 8), immediate: None })).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::RemoteOperation)]);
    assert_eq!(statuses(&pair, 1), [(9, true, Status::LocalProtection)]);
    assert_eq!(pair.violations(), None);
}

#[test]
fn local_bytes_that_may_not_be_used_are_a_local_error() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    pair.post(0, link, write(1, Key(0), keys[1], BASE)).unwrap();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::LocalProtection)]);
    assert_eq!(states(&pair, link)[0], QueuePairState::Err);

    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    let only_read = pair.nodes[0].register(BASE, 64, Access::LOCAL_READ);
    let remote = Remote { key: keys[1], address: BASE };
    pair.post(0, link, work(1, Operation::Read { local: local(only_read, 64), remote })).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::LocalProtection)]);
    assert_eq!(pair.violations(), None);
}

#[test]
fn a_message_waits_for_its_receive() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    pair.post(0, link, work(1, Operation::Send { local: local(keys[0], 700), immediate: Some(5) })).unwrap();
    pair.post(0, link, write(2, keys[0], keys[1], BASE)).unwrap();
    for _ in 0..20 {
        assert!(pair.step());
    }
    assert!(statuses(&pair, 0).is_empty(), "what comes behind the message waits, too");
    pair.post_receive(1, link, Receive { id: WorkId(9), local: local(keys[1], 700) }).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::Success), (2, false, Status::Success)]);
    let received = pair.nodes[1].completions[0];
    assert_eq!((received.len, received.immediate, received.receive), (700, Some(5), true));
    assert!(pair.nodes[1].device.counters().not_ready > 0);
}

#[test]
fn a_message_that_never_meets_a_receive_is_given_up() {
    let mut pair = Joined::new(AllRules, 0, Faults::default());
    let key = pair.nodes[0].register(BASE, 64, Access::ALL);
    let link = pair.connect(Mtu::B256, [Psn::new(0); 2], |_| {}, |send| send.rnr_retries = 3);
    pair.post(0, link, work(1, Operation::Send { local: local(key, 8), immediate: None })).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::RnrRetryExceeded)]);
    assert_eq!(pair.nodes[1].device.counters().not_ready, 4, "once, and three times more");
}

#[test]
fn a_silent_peer_is_given_up() {
    let mut pair = Joined::new(AllRules, 0, Faults { loss: 100, ..Faults::default() });
    let keys = [0, 1].map(|at: usize| pair.nodes[at].register(BASE, 64, Access::ALL));
    let link = pair.connect(Mtu::B256, [Psn::new(0); 2], |_| {}, |send| send.retries = 3);
    pair.post(0, link, write(1, keys[0], keys[1], BASE)).unwrap();
    pair.post(0, link, write(2, keys[0], keys[1], BASE)).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::RetryExceeded), (2, false, Status::Flushed)]);
    assert_eq!(pair.nodes[0].device.counters().sent, 8, "two packets, and three times more");
    assert_eq!(pair.now, Nanos(1) + Nanos::from_micros(400));
}

#[test]
fn an_earlier_read_whose_answer_is_lost_is_flushed_when_a_later_request_is_refused() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    pair.lose = vec![(Opcode::ReadResponseOnly, 1)];
    let remote = Remote { key: keys[1], address: BASE };
    pair.post(0, link, work(1, Operation::Read { local: local(keys[0], 8), remote })).unwrap();
    pair.post(0, link, write(2, keys[0], Key(0), BASE)).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0), [(1, false, Status::Flushed), (2, false, Status::RemoteAccess)]);
}

#[test]
fn what_is_posted_in_the_error_state_is_flushed() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    pair.post_receive(0, link, Receive { id: WorkId(1), local: local(keys[0], 8) }).unwrap();
    let mut out = Vec::new();
    pair.nodes[0].device.fail(pair.now, link.0[0], &mut out).unwrap();
    assert!(out.is_empty(), "nothing is sent, and nobody is told of what was called for");
    pair.post(0, link, write(2, keys[0], keys[1], BASE)).unwrap();
    pair.post_receive(0, link, Receive { id: WorkId(3), local: local(keys[0], 8) }).unwrap();
    pair.run();
    let flushed = |id, receive| (id, receive, Status::Flushed);
    assert_eq!(statuses(&pair, 0), [flushed(1, true), flushed(2, false), flushed(3, true)]);
    assert_eq!(pair.nodes[0].device.counters().sent, 0);
}

#[test]
fn a_queue_pair_can_be_connected_again_after_an_error() {
    let (mut pair, link, keys) = joined(AllRules, Access::ALL);
    pair.post(0, link, write(1, keys[0], Key(0), BASE)).unwrap();
    pair.run();
    for at in [0usize, 1] {
        let device = &mut pair.nodes[at].device;
        device.reset(link.0[at]).unwrap();
        device.init(link.0[at]).unwrap();
        let peer = NodeId(1 - at as u16);
        let to_receive = ToReceive::new(peer, link.0[1 - at], Mtu::B1024, Psn::new(77));
        device.ready_to_receive(link.0[at], to_receive).unwrap();
        device.ready_to_send(link.0[at], ToSend::new(Psn::new(77))).unwrap();
    }
    pair.post(0, link, write(2, keys[0], keys[1], BASE)).unwrap();
    pair.run();
    assert_eq!(statuses(&pair, 0)[1], (2, false, Status::Success));
}

#[test]
fn states_come_in_their_order() {
    let mut device: Device = Device::new(1);
    let queue = device.create_completion_queue(4);
    let pair = device.create_queue_pair(queue, queue, Depth { sends: 1, receives: 1 });
    let to_receive = ToReceive::new(NodeId(1), QpNumber::new(2), Mtu::B256, Psn::new(0));
    let to_send = ToSend::new(Psn::new(0));
    let mut out = Vec::new();
    let request = write(1, Key(0), Key(0), BASE);
    let receive = Receive { id: WorkId(1), local: local(Key(0), 8) };
    assert_eq!(device.ready_to_receive(pair, to_receive), Err(StateError::From(QueuePairState::Reset)));
    assert_eq!(device.post_receive(Nanos(1), pair, receive, &mut out), Err(PostError::NotReady));
    device.init(pair).unwrap();
    assert_eq!(device.init(pair), Err(StateError::From(QueuePairState::Init)));
    assert_eq!(device.ready_to_send(pair, to_send), Err(StateError::From(QueuePairState::Init)));
    device.post_receive(Nanos(1), pair, receive, &mut out).unwrap();
    device.ready_to_receive(pair, to_receive).unwrap();
    assert_eq!(device.post_send(Nanos(1), pair, request, &mut out), Err(PostError::NotReady));
    let none = ToSend { outstanding: 0, ..to_send };
    assert_eq!(device.ready_to_send(pair, none), Err(StateError::Attributes));
    device.ready_to_send(pair, to_send).unwrap();
    assert_eq!(device.state(pair), Some(QueuePairState::Rts));
    device.reset(pair).unwrap();
    assert_eq!(device.state(pair), Some(QueuePairState::Reset));
    assert!(device.completion_queue(queue).unwrap().is_empty(), "what was posted is forgotten");
    let none = QpNumber::new(0);
    assert_eq!(device.init(none), Err(StateError::NoSuchQueuePair));
    assert_eq!(device.state(none), None);
    assert_eq!(device.post_send(Nanos(1), none, request, &mut out), Err(PostError::NoSuchQueuePair));
    assert!(out.is_empty());
}

#[test]
fn work_for_which_there_is_no_room_is_refused() {
    let mut device: Device = Device::new(1);
    let key = device.register(Region { base: BASE, len: 1 << 30, access: Access::ALL }).unwrap();
    let (small, large) = (device.create_completion_queue(2), device.create_completion_queue(9));
    let pair = device.create_queue_pair(small, large, Depth { sends: 8, receives: 1 });
    device.init(pair).unwrap();
    let to_receive = ToReceive::new(NodeId(1), QpNumber::new(2), Mtu::B256, Psn::new(0));
    device.ready_to_receive(pair, ToReceive { longest: 1000, ..to_receive }).unwrap();
    device.ready_to_send(pair, ToSend::new(Psn::new(0))).unwrap();
    let mut out = Vec::new();
    let mut post = |device: &mut Device, len| {
        let remote = Remote { key, address: BASE };
        let request = work(1, Operation::Write { local: local(key, len), remote, immediate: None });
        device.post_send(Nanos(1), pair, request, &mut out)
    };
    assert_eq!(post(&mut device, 1001), Err(PostError::TooLong));
    assert_eq!(post(&mut device, 1000), Ok(()));
    assert_eq!(post(&mut device, 8), Ok(()));
    assert_eq!(post(&mut device, 8), Err(PostError::CompletionQueueFull), "two may end in it already");
    let receive = Receive { id: WorkId(1), local: local(key, 8) };
    let mut out = Vec::new();
    device.post_receive(Nanos(1), pair, receive, &mut out).unwrap();
    assert_eq!(device.post_receive(Nanos(1), pair, receive, &mut out), Err(PostError::QueueFull));
    // What was called off gives its capacity back when it is polled.
    device.fail(Nanos(1), pair, &mut out).unwrap();
    assert_eq!(post(&mut device, 8), Err(PostError::CompletionQueueFull));
    assert!(device.poll(small).is_some());
    assert_eq!(post(&mut device, 8), Ok(()));
}
