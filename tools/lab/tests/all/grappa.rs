//! Grappa: every delegate is executed once, at its block's core, in the order of arrival.

use crate::driver;

use driver::{Driver, Task};
use lab::grappa::{Body, Grappa, GrappaConfig, Message};
use sim::coherence::Contents;
use sim::system::{Outcome, Processor, System, ThreadId};
use wire::{BlockSize, GlobalAddr, Refusal};

const NODES: usize = 3;
const THREADS: usize = 4;

fn rack(seed: u64) -> Driver<Grappa> {
    let config = GrappaConfig { contents: Contents::Bytes, ..GrappaConfig::new(NODES) };
    Driver::new(Grappa::new(config), NODES * THREADS, seed)
}

fn owner(rack: &Driver<Grappa>, addr: GlobalAddr) -> u16 {
    rack.system.owner(BlockSize::MIN.tag(addr)).0
}

/// The cores on the way, and whether a delegate or its reply.
fn legs(messages: &[Message]) -> Vec<(u16, u16, bool)> {
    messages.iter().map(|m| (m.from.0, m.to.0, matches!(m.body, Body::Delegate { .. }))).collect()
}

/// A block of this core.
fn block_of(rack: &mut Driver<Grappa>, core: u16) -> GlobalAddr {
    loop {
        let addr = rack.alloc(core / THREADS as u16, 8);
        if owner(rack, addr) == core {
            return addr;
        }
    }
}

#[test]
fn every_touch_is_executed_exactly_once_and_reads_see_the_last_write() {
    for seed in 0..40 {
        let mut rack = rack(seed);
        let mut blocks: Vec<_> = (0..6).map(|number| (rack.alloc(number % NODES as u16, 8), 0)).collect();
        let (mut begun, operations) = (0, 500);
        loop {
            let thread = rack.random.below((NODES * THREADS) as u64) as u16;
            if begun < operations && rack.is_idle(thread) && rack.random.below(4) == 0 {
                begun += 1;
                let block = &mut blocks[rack.random.below(6) as usize];
                let adds = rack.random.below(2) == 0;
                block.1 += u64::from(adds);
                rack.start(thread, if adds { Task::Add(block.0) } else { Task::Read(block.0) });
            } else if !rack.step() && begun == operations {
                break;
            }
        }
        assert_eq!(rack.ended.len(), operations, "an operation is stuck ({})", rack.replay());
        assert!(rack.ended.iter().all(|ended| ended.runs == 1), "once each ({})", rack.replay());
        assert!(rack.system.is_quiet());
        for (addr, additions) in blocks {
            assert_eq!(u64::from(rack.system.stamp(addr)), additions);
            assert_eq!(rack.run(0, Task::Read(addr)).1.saw, additions, "{addr} ({})", rack.replay());
        }
    }
}

#[test]
fn a_core_accesses_its_own_blocks_without_a_message() {
    let mut rack = rack(1);
    let addr = block_of(&mut rack, 2);
    assert_eq!(rack.run(2, Task::Add(addr)).0, []);
    assert_eq!(rack.run(2, Task::Read(addr)).1.saw, 1);
}

#[test]
fn a_delegate_between_cores_of_a_node_takes_one_leg_each_way() {
    let mut rack = rack(1);
    let addr = block_of(&mut rack, 2);
    assert_eq!(legs(&rack.run(1, Task::Add(addr)).0), [(1, 2, true), (2, 1, false)]);
}

#[test]
fn a_delegate_to_another_node_passes_the_partner_cores_of_both() {
    let mut rack = rack(1);
    // Node 0 reaches node 2 through its core 2, and node 2 reaches node 0 through core 8.
    let addr = block_of(&mut rack, 11);
    let there = [(0, 2, true), (2, 8, true), (8, 11, true)];
    let back = [(11, 8, false), (8, 2, false), (2, 0, false)];
    assert_eq!(legs(&rack.run(0, Task::Add(addr)).0), [there, back].concat());
    assert_eq!(rack.system.counters().passed_on, 4);
}

#[test]
fn the_closure_runs_when_the_delegate_is_executed_and_not_when_its_reply_arrives() {
    let mut rack = rack(1);
    let addr = block_of(&mut rack, 8);
    rack.start(2, Task::Read(addr));
    rack.deliver(|_| true);
    rack.attempt_all();
    assert_eq!(legs(&rack.in_flight), [(8, 2, false)]);
    rack.start(8, Task::Add(addr));
    assert!(rack.is_idle(8), "a core accesses its own blocks at once");
    rack.settle();
    let read = rack.ended.iter().find(|ended| ended.thread == ThreadId(2)).expect("the reply has arrived");
    assert_eq!((read.saw, read.runs), (0, 1), "the write came after the read was executed");
}

#[test]
fn delegates_are_handled_by_the_core_of_their_block() {
    let mut rack = rack(1);
    let addr = block_of(&mut rack, 9);
    let (messages, _) = rack.run(0, Task::Read(addr));
    let delegate = messages.iter().find(|message| message.to == message.destination).expect("it arrives");
    assert_eq!(rack.system.envelope(delegate).receiver, Processor::Thread(ThreadId(9)));
}

#[test]
fn a_lock_goes_from_core_to_core_in_order() {
    let mut rack = rack(1);
    let addr = block_of(&mut rack, 8);
    let Ok(Outcome::Locked(token)) = rack.run(0, Task::Lock(addr, true, false)).1.result else {
        panic!("it is free")
    };
    assert_eq!(rack.run(8, Task::Lock(addr, false, true)).1.result, Err(Refusal::Locked));
    rack.start(8, Task::Lock(addr, true, false));
    rack.settle();
    assert!(!rack.is_idle(8));
    rack.start(0, Task::Unlock(token));
    rack.settle();
    assert!(rack.is_idle(8), "it has the lock now");
}
