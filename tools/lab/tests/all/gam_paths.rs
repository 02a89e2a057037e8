//! The message paths of GAM, one a test.

use crate::driver;

use driver::{Driver, Task};
use lab::gam::{Body, Gam, GamConfig, HandOver, Message};
use node::Access;
use sim::coherence::Contents;
use sim::system::{Operation, Outcome, Processor, Service, System, ThreadId};
use wire::{GlobalAddr, NodeId, Refusal};

type Rack = Driver<Gam>;

/// Four nodes with two threads each: thread `t` is on node `t / 2`. Homes are given by the tests.
fn rack(lines: u64) -> Rack {
    let config = GamConfig {
        threads: 2,
        cache: lines * 512,
        contents: Contents::Bytes,
        check: true,
        ..GamConfig::new(4)
    };
    Driver::new(Gam::new(config), 8, 1)
}

fn short(message: &Message) -> (u16, u16, &'static str) {
    let body = match message.body {
        Body::Request { access: Access::Shared, .. } => "read",
        Body::Request { has_copy: true, .. } => "upgrade",
        Body::Request { .. } => "write",
        Body::Grant { data: Some(_), .. } => "grant+data",
        Body::Grant { .. } => "grant",
        Body::Fetch { .. } => "fetch",
        Body::Fetched { data: Some(_) } => "fetched+data",
        Body::Fetched { .. } => "fetched",
        Body::Invalidate => "invalidate",
        Body::InvalidateAck => "ack",
        Body::EvictShared => "evicted",
        Body::WriteBack { .. } => "write-back",
        Body::WriteBackAck => "write-back ack",
        Body::Work { .. } => "work",
        Body::Lock { .. } => "lock",
        Body::LockAnswer { .. } => "lock answer",
        Body::Unlock { .. } => "unlock",
    };
    (message.from.0, message.to.0, body)
}

fn path(messages: &[Message]) -> Vec<(u16, u16, &'static str)> {
    messages.iter().map(short).collect()
}

/// Runs a task alone; its messages.
fn run(rack: &mut Rack, thread: u16, task: Task) -> Vec<(u16, u16, &'static str)> {
    let (messages, ended) = rack.run(thread, task);
    assert_eq!((ended.result, ended.runs), (Ok(Outcome::Done), 1));
    assert_eq!(rack.system.violation(), None);
    path(&messages)
}

fn is(from: u16, to: u16, body: &'static str) -> impl Fn(&Message) -> bool {
    move |message| short(message) == (from, to, body)
}

#[test]
fn a_read_miss_of_a_block_that_is_not_dirty_is_answered_by_the_home() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    assert_eq!(run(&mut rack, 0, Task::Read(addr)), [(0, 1, "read"), (1, 0, "grant+data")]);
    assert_eq!(run(&mut rack, 4, Task::Read(addr)), [(2, 1, "read"), (1, 2, "grant+data")]);
    assert_eq!(run(&mut rack, 1, Task::Read(addr)), [], "the other thread of node 0 hits");
}

#[test]
fn a_dirty_owner_sends_the_block_to_the_reader_and_to_the_home() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    assert_eq!(run(&mut rack, 0, Task::Add(addr)), [(0, 1, "write"), (1, 0, "grant+data")]);
    let messages = run(&mut rack, 4, Task::Read(addr));
    assert_eq!(messages, [(2, 1, "read"), (1, 0, "fetch"), (0, 2, "grant+data"), (0, 1, "fetched+data")]);
    assert_eq!(rack.ended.last().unwrap().saw, 1);
    assert_eq!(run(&mut rack, 0, Task::Read(addr)), [], "the owner has become a sharer");
    assert_eq!(run(&mut rack, 2, Task::Read(addr)), [], "the home is current again");
}

#[test]
fn the_home_grants_a_write_when_it_has_collected_all_acknowledgements() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    for thread in [0, 4, 6] {
        run(&mut rack, thread, Task::Read(addr));
    }
    rack.start(0, Task::Add(addr));
    rack.deliver(is(0, 1, "upgrade"));
    rack.deliver(is(1, 3, "invalidate"));
    rack.deliver(is(3, 1, "ack"));
    assert_eq!(path(&rack.in_flight), [(1, 2, "invalidate")], "nothing is granted yet");
    rack.deliver(is(1, 2, "invalidate"));
    assert_eq!(path(&rack.settle()), [(2, 1, "ack"), (1, 0, "grant")], "the writer has the block");
    assert_eq!(rack.ended.last().unwrap().saw, 0);
}

#[test]
fn a_sharer_that_is_alone_is_granted_the_write_at_once() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    run(&mut rack, 0, Task::Read(addr));
    assert_eq!(run(&mut rack, 0, Task::Add(addr)), [(0, 1, "upgrade"), (1, 0, "grant")]);
}

#[test]
fn a_dirty_owner_sends_the_block_to_the_writer_and_word_to_the_home() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    run(&mut rack, 0, Task::Add(addr));
    let messages = run(&mut rack, 4, Task::Add(addr));
    assert_eq!(messages, [(2, 1, "write"), (1, 0, "fetch"), (0, 2, "grant+data"), (0, 1, "fetched")]);
    assert_eq!(rack.ended.last().unwrap().saw, 1);
}

#[test]
fn the_homes_own_threads_go_past_the_directory_without_network() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    assert_eq!(run(&mut rack, 2, Task::Add(addr)), []);
    run(&mut rack, 0, Task::Read(addr));
    assert_eq!(rack.ended.last().unwrap().saw, 1);
    assert_eq!(run(&mut rack, 3, Task::Read(addr)), [], "a shared block can be read at home");
    assert_eq!(run(&mut rack, 3, Task::Add(addr)), [(1, 0, "invalidate"), (0, 1, "ack")]);
    run(&mut rack, 0, Task::Add(addr));
    assert_eq!(run(&mut rack, 2, Task::Read(addr)), [(1, 0, "fetch"), (0, 1, "fetched+data")]);
    assert_eq!(rack.ended.last().unwrap().saw, 3);
    run(&mut rack, 0, Task::Add(addr));
    assert_eq!(run(&mut rack, 2, Task::Add(addr)), [(1, 0, "fetch"), (0, 1, "fetched+data")]);
    assert_eq!(run(&mut rack, 2, Task::Add(addr)), [], "nobody else has it now");
}

#[test]
fn what_was_used_least_recently_makes_room() {
    let mut rack = rack(2);
    let [a, b, c] = [(); 3].map(|()| rack.alloc(1, 8));
    run(&mut rack, 0, Task::Read(a));
    run(&mut rack, 0, Task::Read(b));
    run(&mut rack, 0, Task::Read(a));
    assert_eq!(run(&mut rack, 0, Task::Read(c)), [(0, 1, "read"), (0, 1, "evicted"), (1, 0, "grant+data")]);
    assert_eq!(run(&mut rack, 0, Task::Read(a)), [], "it was used after the other one");
    assert_eq!(run(&mut rack, 0, Task::Read(b)).len(), 3);
    assert_eq!(run(&mut rack, 4, Task::Add(c)).len(), 2, "the home has had notice: nobody is invalidated");
}

#[test]
fn a_dirty_block_that_makes_room_is_written_back_and_acknowledged() {
    let mut rack = rack(1);
    let [a, b] = [(); 2].map(|()| rack.alloc(1, 8));
    run(&mut rack, 0, Task::Add(a));
    let messages = run(&mut rack, 0, Task::Read(b));
    let path = [(0, 1, "read"), (0, 1, "write-back"), (1, 0, "grant+data"), (1, 0, "write-back ack")];
    assert_eq!(messages, path);
    assert_eq!(run(&mut rack, 4, Task::Read(a)), [(2, 1, "read"), (1, 2, "grant+data")]);
    assert_eq!(rack.ended.last().unwrap().saw, 1);
}

#[test]
fn an_owner_that_writes_a_block_back_still_answers_for_it() {
    for task in [Task::Read as fn(GlobalAddr) -> Task, Task::Add] {
        let mut rack = rack(1);
        let [a, b] = [(); 2].map(|()| rack.alloc(1, 8));
        run(&mut rack, 0, Task::Add(a));
        rack.start(4, task(a));
        rack.deliver(|message| message.from == NodeId(2));
        rack.start(0, Task::Read(b));
        rack.deliver(is(0, 1, "read"));
        rack.deliver(is(0, 1, "write-back"));
        rack.start(1, Task::Read(a));
        assert_eq!(rack.system.stamp(NodeId(0), a), None, "nobody reads a block that is on its way home");
        rack.settle();
        assert!((0..8).all(|thread| rack.is_idle(thread)) && rack.system.is_quiet());
        assert_eq!(rack.system.violation(), None);
        let saw = |thread| rack.ended.iter().rfind(|ended| ended.thread.0 == thread).unwrap().saw;
        assert_eq!(saw(4), 1);
        assert!(saw(1) >= 1);
    }
}

#[test]
fn a_block_that_was_invalidated_before_it_arrived_is_read_once_and_not_kept() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    run(&mut rack, 0, Task::Add(addr));
    rack.start(4, Task::Read(addr));
    rack.deliver(is(2, 1, "read"));
    rack.deliver(is(1, 0, "fetch"));
    rack.deliver(is(0, 1, "fetched+data"));
    rack.start(6, Task::Add(addr));
    rack.deliver(is(3, 1, "write"));
    rack.deliver(is(1, 2, "invalidate"));
    rack.start(5, Task::Read(addr));
    rack.deliver(is(1, 0, "invalidate"));
    for from in [0, 2] {
        rack.deliver(is(from, 1, "ack"));
    }
    rack.deliver(is(1, 3, "grant+data"));
    rack.attempt_all();
    assert_eq!(
        rack.ended.last().unwrap().thread,
        ThreadId(6),
        "the writer does not wait for the block to arrive"
    );
    rack.deliver(is(0, 2, "grant+data"));
    rack.attempt(ThreadId(4));
    assert_eq!(rack.ended.last().unwrap().saw, 1, "its access began before the write");
    assert_eq!(rack.system.violation(), None, "the copy is gone");
    rack.settle();
    let last = rack.ended.last().unwrap();
    assert_eq!((last.thread, last.saw), (ThreadId(5), 2), "who came after the write reads it");
}

#[test]
fn requests_that_meet_a_transition_are_served_in_order() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    run(&mut rack, 0, Task::Add(addr));
    rack.start(4, Task::Add(addr));
    rack.deliver(is(2, 1, "write"));
    rack.start(2, Task::Add(addr));
    rack.start(6, Task::Add(addr));
    rack.deliver(is(3, 1, "write"));
    assert_eq!(rack.system.counters().queued, 2);
    rack.settle();
    let order: Vec<_> = rack.ended.iter().map(|ended| (ended.thread.0, ended.saw)).collect();
    assert_eq!(order, [(0, 0), (4, 1), (2, 2), (6, 3)]);
    assert!(rack.system.is_quiet());
}

#[test]
fn a_fetch_waits_for_the_thread_that_the_block_came_for() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    run(&mut rack, 0, Task::Add(addr));
    rack.start(4, Task::Add(addr));
    rack.deliver(is(2, 1, "write"));
    rack.deliver(is(1, 0, "fetch"));
    rack.deliver(is(0, 1, "fetched"));
    rack.start(6, Task::Add(addr));
    rack.deliver(is(3, 1, "write"));
    rack.deliver(is(1, 2, "fetch"));
    assert_eq!(path(&rack.in_flight), [(0, 2, "grant+data")], "the block is not there yet");
    rack.deliver(is(0, 2, "grant+data"));
    assert_eq!(path(&rack.in_flight), [], "its writer has yet to write");
    rack.attempt(ThreadId(4));
    assert_eq!(path(&rack.settle()), [(2, 3, "grant+data"), (2, 1, "fetched")]);
    assert_eq!(rack.ended.last().unwrap().saw, 2);
}

#[test]
fn messages_of_a_block_between_two_nodes_keep_their_order() {
    let mut rack = rack(1);
    let [a, b] = [(); 2].map(|()| rack.alloc(1, 8));
    run(&mut rack, 0, Task::Read(a));
    rack.start(0, Task::Read(b));
    rack.start(1, Task::Read(a));
    let requests = |message: &Message| message.tag.addr() == a && short(message).2 == "read";
    rack.deliver(requests);
    rack.settle();
    assert_eq!(rack.system.violation(), None, "the notice of the eviction was taken first");
    assert_eq!(rack.ended.len(), 3);
}

#[test]
fn with_a_queue_a_background_thread_asks_for_the_thread() {
    let config = GamConfig { threads: 2, hand_over: HandOver::Queue, check: true, ..GamConfig::new(4) };
    let mut rack: Rack = Driver::new(Gam::new(config), 8, 1);
    let addr = rack.alloc(1, 8);
    let (messages, _) = rack.run(0, Task::Read(addr));
    assert_eq!(path(&messages), [(0, 0, "work"), (0, 1, "read"), (1, 0, "grant+data")]);
    assert!(matches!(messages[1].sender, Processor::Agent(NodeId(0), _)));
}

#[test]
fn blocks_travel_as_writes_and_words_as_datagrams() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    let (messages, _) = rack.run(0, Task::Read(addr));
    let sent: Vec<_> =
        messages.iter().map(|message| rack.system.envelope(message)).map(|e| (e.service, e.bytes)).collect();
    assert_eq!(sent, [(Service::Datagram, 48), (Service::Write, 48 + 512)]);
}

#[test]
fn what_was_preloaded_is_hit() {
    let mut rack = rack(8);
    let [a, b] = [(); 2].map(|()| rack.alloc(1, 8));
    for node in [0, 2] {
        rack.system.preload_cache(NodeId(node), &[(a, Access::Shared)]);
    }
    rack.system.preload_cache(NodeId(3), &[(b, Access::Modified)]);
    for (thread, task) in [(0, Task::Read(a)), (4, Task::Read(a)), (2, Task::Read(a)), (6, Task::Add(b))] {
        assert_eq!(run(&mut rack, thread, task), []);
    }
    assert_eq!(run(&mut rack, 0, Task::Add(a)).len(), 4, "the home knows the other sharer");
    assert_eq!(run(&mut rack, 2, Task::Read(b)).len(), 2, "and the owner");
}

#[test]
fn of_what_is_preloaded_beyond_a_cache_the_oldest_is_gone() {
    let mut rack = rack(2);
    let [a, b, c] = [(); 3].map(|()| rack.alloc(1, 8));
    let copies = [(a, Access::Modified), (b, Access::Shared), (c, Access::Shared)];
    rack.system.preload_cache(NodeId(0), &copies);
    assert_eq!(rack.system.violation(), None);
    assert_eq!(run(&mut rack, 2, Task::Add(a)), [], "the home has its first block back");
    assert_eq!(run(&mut rack, 0, Task::Read(c)), []);
    assert_eq!(run(&mut rack, 0, Task::Read(b)), []);
}

#[test]
fn a_writers_lock_keeps_others_waiting_at_the_home() {
    let mut rack = rack(8);
    let addr = rack.alloc(1, 8);
    let (messages, ended) = rack.run(0, Task::Lock(addr, true, false));
    assert_eq!(path(&messages), [(0, 1, "lock"), (1, 0, "lock answer")]);
    let Ok(Outcome::Locked(token)) = ended.result else { panic!("{ended:?}") };
    assert_eq!(
        rack.run(4, Task::Lock(addr, false, true)).1.result,
        Err(Refusal::Locked),
        "it did not want to wait"
    );
    rack.start(2, Task::Lock(addr, true, false));
    rack.start(4, Task::Lock(addr, false, false));
    rack.settle();
    assert!(!rack.is_idle(2) && !rack.is_idle(4));
    run(&mut rack, 0, Task::Read(addr));
    rack.start(0, Task::Unlock(token));
    rack.settle();
    assert!(rack.is_idle(2) && !rack.is_idle(4), "the home's thread was first");
    let Ok(Outcome::Locked(token)) = rack.ended.last().unwrap().result else { panic!("it holds the lock") };
    rack.start(2, Task::Unlock(token));
    rack.settle();
    assert!(rack.is_idle(4));
}

#[test]
fn memory_ends() {
    let mut rack = rack(8);
    let mut actions = Vec::new();
    let mut random = sim::system::Random::new(1);
    let mut call = sim::system::Call {
        now: wire::Nanos::ZERO,
        actions: &mut actions,
        charged: wire::Nanos::ZERO,
        random: &mut random,
    };
    let mut operation =
        Operation::Alloc { len: 2 << 30, home: NodeId(1), discipline: wire::Discipline::Coherent };
    let progress = rack.system.attempt(&mut call, ThreadId(0), &mut operation);
    assert_eq!(progress, sim::system::Progress::Failed(Refusal::OutOfMemory));
}
