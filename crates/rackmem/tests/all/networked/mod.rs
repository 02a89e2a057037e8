//! Racks of processes, with threads for processes: the switch and each node have a transport of their own.

mod block_locks;
mod chains;
mod copies;
mod draining;
mod histories;
mod lasting_locks;
mod lasting_names;
mod leaving;
mod lies;
mod locks;
mod mapped;
mod names;
mod one_sided;
mod rig;
mod survival;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use check::AtEnd;
use rackmem::{Discipline, Error, NodeId, Scheduling};
use rig::Processes;

#[test]
fn what_one_node_writes_another_reads() {
    let rack = Processes::start(3);
    let (mut first, mut second) = (rack.nodes[0].here(), rack.nodes[1].here());
    for home in 0..3 {
        let addr = first.alloc(64, NodeId(home), Discipline::Coherent).unwrap();
        for value in 1..100 {
            first.write_word(addr, value).unwrap();
            assert_eq!(second.read_word(addr).unwrap(), value);
            second.write_word(addr, value + 1000).unwrap();
            assert_eq!(first.read_word(addr).unwrap(), value + 1000);
        }
    }
}

#[test]
fn increments_by_threads_of_all_nodes_are_all_counted() {
    const EACH: u64 = 300;
    let rack = Processes::start(3);
    let addr = rack.nodes[0].here().alloc(8, NodeId(2), Discipline::Coherent).unwrap();
    std::thread::scope(|scope| {
        for node in &rack.nodes {
            for _ in 0..2 {
                scope.spawn(move || {
                    let mut here = node.here();
                    for _ in 0..EACH {
                        here.update(addr, 8, |window| window.set_word(0, window.word(0) + 1)).unwrap();
                    }
                });
            }
        }
    });
    assert_eq!(rack.nodes[1].here().read_word(addr).unwrap(), 6 * EACH);
}

#[test]
fn small_reads_of_a_block_that_another_node_keeps_writing_bring_no_copy() {
    crate::peeks_everywhere::small_reads_bring_no_copy(&Processes::start_peeking(2).nodes);
}

#[test]
fn real_time_threads_answer_while_more_ordinary_ones_compute_than_there_are_cores() {
    if let Err(refused) = Scheduling::Realtime.check() {
        eprintln!("skipped: {refused}");
        return;
    }
    const EACH: u64 = 200;
    let rack = Processes::start_scheduled(2, Scheduling::Realtime);
    let addr = rack.nodes[0].here().alloc(8, NodeId(0), Discipline::Coherent).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = AtEnd(&stop);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..2 * cores {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // Ordinary threads that pin what real-time ones have to take away.
        let writers: Vec<_> = rack
            .nodes
            .iter()
            .map(|node| {
                scope.spawn(move || {
                    let mut here = node.here();
                    for _ in 0..EACH {
                        here.update(addr, 8, |window| window.set_word(0, window.word(0) + 1)).unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    assert_eq!(rack.nodes[1].here().read_word(addr).unwrap(), 2 * EACH);
}

#[test]
fn what_only_a_dead_node_had_is_lost_and_the_rest_is_not() {
    let mut rack = Processes::start(3);
    let mut first = rack.nodes[0].here();
    let mut second = rack.nodes[1].here();
    let kept = first.alloc(64, NodeId(0), Discipline::Coherent).unwrap();
    let lost = first.alloc(64, NodeId(0), Discipline::Coherent).unwrap();
    let lost = if lost.bits() / 4096 == kept.bits() / 4096 {
        first.alloc(8192, NodeId(0), Discipline::Coherent).unwrap()
    } else {
        lost
    };
    let down = first.alloc(64, NodeId(2), Discipline::Coherent).unwrap();
    first.write_word(kept, 7).unwrap();
    first.write_word(down, 8).unwrap();
    {
        let mut third = rack.nodes[2].here();
        third.write_word(lost, 9).unwrap();
    }
    rack.kill(2);
    assert_eq!(second.read_word(kept).unwrap(), 7);
    assert_eq!(rig::until(|| second.read_word(lost).err()), Error::Lost { addr: lost });
    assert_eq!(rig::until(|| second.read_word(down).err()), Error::NodeDown { addr: down });
}

#[test]
fn a_node_that_leaves_in_order_takes_nothing_with_it_but_its_own_memory() {
    let rack = Processes::start(3);
    let (mut first, mut third) = (rack.nodes[0].here(), rack.nodes[2].here());
    let addrs: Vec<_> =
        (0..100).map(|_| third.alloc(4096, NodeId(0), Discipline::Coherent).unwrap()).collect();
    let own = third.alloc(64, NodeId(2), Discipline::Coherent).unwrap();
    for (value, addr) in (1..).zip(&addrs) {
        third.write_word(*addr, value).unwrap();
    }
    assert!(rack.nodes[2].leave(Duration::from_secs(20)), "everything has gone home");
    assert_eq!(third.read_word(own), Err(Error::Fenced));
    for (value, addr) in (1..).zip(&addrs) {
        assert_eq!(first.read_word(*addr).unwrap(), value);
    }
    assert_eq!(rig::until(|| first.read_word(own).err()), Error::NodeDown { addr: own });
}

#[test]
fn a_switch_that_was_killed_and_restarted_has_lost_nothing() {
    let mut rack = Processes::start(3);
    let addrs: Vec<_> = (0..30)
        .map(|at| {
            rack.nodes[at % 3].here().alloc(4096, NodeId((at % 2) as u16), Discipline::Coherent).unwrap()
        })
        .collect();
    for (at, addr) in addrs.iter().enumerate() {
        rack.nodes[at % 3].here().write_word(*addr, at as u64 + 1).unwrap();
    }
    rack.restart_switch();
    for (at, addr) in addrs.iter().enumerate() {
        assert_eq!(rack.nodes[(at + 1) % 3].here().read_word(*addr).unwrap(), at as u64 + 1);
    }
}

#[test]
fn a_node_that_was_declared_dead_is_fenced_and_can_come_back_empty() {
    let mut rack = Processes::start(2);
    let addr = rack.nodes[1].here().alloc(64, NodeId(0), Discipline::Coherent).unwrap();
    let mut second = rack.nodes[1].here();
    second.write_word(addr, 5).unwrap();
    rack.cut_off(1);
    let mut first = rack.nodes[0].here();
    assert_eq!(rig::until(|| first.read_word(addr).err()), Error::Lost { addr });
    rack.reconnect(1);
    assert_eq!(rig::until(|| second.read_word(addr).err()), Error::Fenced);
    drop(second);
    rack.rejoin(1);
    let mut second = rack.nodes[1].here();
    let again = second.alloc(64, NodeId(1), Discipline::Coherent).unwrap();
    second.write_word(again, 6).unwrap();
    assert_eq!(first.read_word(again).unwrap(), 6);
}

#[test]
fn an_answer_to_a_read_of_another_length_is_not_taken_for_the_words_that_were_asked_for() {
    const ENOUGH: u64 = 60;
    let rack = Processes::start_peeking(2);
    let (mut writer, mut reader) = (rack.nodes[0].here(), rack.nodes[1].here());
    let addr = writer.alloc(4096, NodeId(0), Discipline::Coherent).unwrap();
    for value in 1_u64.. {
        let told = rack.lie_to(1);
        if told >= ENOUGH {
            break;
        }
        assert!(value < 1_000 * ENOUGH, "{told} lies");
        let bytes: Vec<u8> = (0..8 + value % 90).map(|byte| (byte * value) as u8).collect();
        let at = addr + value * 8 % 1000;
        writer.write(at, &bytes).unwrap();
        // While the write's UNLOCK is in flight nobody says who has the block, and a copy is fetched.
        std::thread::sleep(Duration::from_micros(100));
        let mut read = vec![0xee; bytes.len()];
        reader.read(at, &mut read).unwrap();
        assert_eq!(read, bytes);
    }
}
