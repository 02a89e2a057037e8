//! Memory that is mapped on several nodes of one rack, each at addresses of its own.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use rackmem::{Config, Discipline, GlobalAddr, Mapping, NodeId};

use super::rig::Processes;

fn rack(nodes: usize, faulty: bool) -> Processes {
    Processes::start_mapped(faulty, Config { nodes, memory: 8 << 20, cache: 1 << 20, ..Config::default() })
}

fn alloc(rack: &Processes, home: u16, len: u64) -> GlobalAddr {
    rack.nodes[0].here().alloc(len, NodeId(home), Discipline::Coherent).unwrap()
}

fn map_everywhere(rack: &Processes, addr: GlobalAddr, len: usize) -> Vec<Mapping> {
    rack.nodes.iter().map(|node| node.map(addr, len).unwrap()).collect()
}

#[test]
fn what_one_node_stores_through_a_pointer_another_one_loads() {
    let rack = rack(2, false);
    let addr = alloc(&rack, 1, 64 << 10);
    let maps = map_everywhere(&rack, addr, 64 << 10);
    for (index, word) in maps[0].words().iter().enumerate() {
        assert_eq!(word.load(Relaxed), 0);
        word.store(index as u64, Relaxed);
    }
    for (index, word) in maps[1].words().iter().enumerate() {
        assert_eq!(word.swap(7, Relaxed), index as u64);
    }
    assert!(maps[0].words().iter().all(|word| word.load(Relaxed) == 7));
}

#[test]
fn atomics_of_the_language_count_across_nodes() {
    const EACH: u64 = 20_000;
    let rack = rack(3, true);
    let addr = alloc(&rack, 1, 4096);
    let maps = map_everywhere(&rack, addr, 4096);
    std::thread::scope(|scope| {
        for map in &maps {
            scope.spawn(|| {
                (0..EACH).for_each(|_| {
                    map.words()[9].fetch_add(1, SeqCst);
                })
            });
        }
    });
    assert_eq!(maps[2].words()[9].load(SeqCst), 3 * EACH);
}
