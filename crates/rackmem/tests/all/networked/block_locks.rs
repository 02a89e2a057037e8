//! Block locks of memory with copies: whoever takes one next is told if the node that had it has died.

use rackmem::{Config, GlobalAddr, LockMode, NodeHandle, NodeId};

use super::rig::{Processes, until};

fn rack(faulty: bool) -> Processes {
    let shape = Config { nodes: 3, copies: 2, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
    Processes::start_with(faulty, shape)
}

/// A block that node 0 serves, and node 1 has, too: with the former the directory of its locks is gone.
fn block(rack: &Processes) -> GlobalAddr {
    rack.nodes[1].here().alloc_with_copies(64, NodeId(0)).unwrap()
}

fn told(here: &mut NodeHandle, addr: GlobalAddr, mode: LockMode) -> Option<NodeId> {
    here.lock_block(addr, mode).unwrap().writer_that_died()
}

/// The node writes the first of two words under the lock, somebody reads that, and it is cut off.
fn dies_inside(rack: &mut Processes, node: usize, (addr, value): (GlobalAddr, u64)) {
    let mut here = rack.nodes[node].here();
    let lock = here.lock_block(addr, LockMode::Write).unwrap();
    here.write_word(addr, value).unwrap();
    let other = (node + 1) % rack.nodes.len();
    assert_eq!(rack.nodes[other].here().read_word(addr), Ok(value), "who does not ask for the lock sees it");
    rack.cut_off(node);
    drop(here);
    // What it does when it hears that it is over changes nothing.
    std::mem::forget(lock);
}

#[test]
fn whoever_takes_a_lock_whose_writer_died_is_told_until_somebody_has_released_it() {
    for faulty in [false, true] {
        let mut rack = rack(faulty);
        let addr = block(&rack);
        dies_inside(&mut rack, 0, (addr, 1));
        let (first, second) = (rack.nodes[1].clone(), rack.nodes[2].clone());
        let (mut first, mut second) = (first.here(), second.here());
        // Who reads is told, and so is the next one.
        for here in [&mut first, &mut second] {
            assert_eq!(told(here, addr, LockMode::Read), Some(NodeId(0)));
        }
        let lock = first.lock_block(addr, LockMode::Write).unwrap();
        assert_eq!(lock.writer_that_died(), Some(NodeId(0)));
        assert_eq!((first.read_word(addr), first.read_word(addr + 8)), (Ok(1), Ok(0)), "half of it is there");
        first.write_word(addr + 8, 1).unwrap();
        drop(lock);
        for here in [&mut second, &mut first] {
            assert_eq!(told(here, addr, LockMode::Read), None);
            assert_eq!(told(here, addr, LockMode::Write), None);
        }
        assert_eq!(second.read_word(addr + 8), Ok(1));
    }
}

#[test]
fn nobody_is_told_of_what_was_released_or_of_another_block() {
    let mut rack = rack(false);
    let (addr, other) = (block(&rack), block(&rack));
    let other = if rack.nodes[1].here().block_size().tag(other) == rack.nodes[1].here().block_size().tag(addr)
    {
        rack.nodes[1].here().alloc_with_copies(8192, NodeId(0)).unwrap()
    } else {
        other
    };
    {
        let mut here = rack.nodes[0].here();
        let lock = here.lock_block(addr, LockMode::Write).unwrap();
        here.write_word(addr, 1).unwrap();
        drop(lock);
        assert_eq!(rack.nodes[2].here().read_word(addr), Ok(1));
    }
    dies_inside(&mut rack, 0, (other, 2));
    let mut here = rack.nodes[2].here();
    assert_eq!(told(&mut here, addr, LockMode::Write), None);
    assert_eq!(told(&mut here, other, LockMode::Write), Some(NodeId(0)));
}

/// How many tables of marks there are: the first one is said in the fifth word of the memory.
fn tables(here: &mut NodeHandle, memory: NodeId) -> usize {
    let (mut next, mut count) = (here.read_word(GlobalAddr::new(memory, 32)).unwrap(), 0);
    while next != 0 {
        next = here.read_word(GlobalAddr::from_bits(next)).unwrap();
        count += 1;
    }
    count
}

#[test]
fn the_last_death_inside_is_told_and_what_is_left_of_all_of_them_is_used_again() {
    let mut rack = rack(false);
    let addr = block(&rack);
    for round in 0..4_usize {
        // In turns the one is older, and the other.
        let (first, second) = (round % 2, 1 - round % 2);
        for (node, before) in [(first, None), (second, Some(NodeId(first as u16)))] {
            until(|| rack.has_all_copies().then_some(()));
            assert_eq!(told(&mut rack.nodes[node].here(), addr, LockMode::Read), before, "round {round}");
            dies_inside(&mut rack, node, (addr, 2 * round as u64 + node as u64 + 1));
            let mut here = rack.nodes[2].here();
            assert_eq!(told(&mut here, addr, LockMode::Read), Some(NodeId(node as u16)), "round {round}");
            rack.rejoin(node);
        }
        let mut here = rack.nodes[2].here();
        assert_eq!(told(&mut here, addr, LockMode::Write), Some(NodeId(second as u16)), "round {round}");
        assert_eq!(told(&mut here, addr, LockMode::Write), None, "round {round}");
        assert_eq!(tables(&mut here, addr.home()), 3, "round {round}: one for each node");
    }
}

#[test]
fn what_nobody_has_seen_is_gone_with_the_lock_and_nobody_is_told() {
    let mut rack = rack(false);
    let addr = block(&rack);
    {
        let mut here = rack.nodes[0].here();
        let lock = here.lock_block(addr, LockMode::Write).unwrap();
        here.write_word(addr, 1).unwrap();
        rack.cut_off(0);
        std::mem::forget(lock);
    }
    let mut here = rack.nodes[2].here();
    assert_eq!((told(&mut here, addr, LockMode::Write), here.read_word(addr)), (None, Ok(0)));
}
