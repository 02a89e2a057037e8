//! The embedded rack as its users see it: one memory, whoever reads or writes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rackmem::{BlockSize, Config, Directory, Discipline, GlobalAddr, NodeId, Rack};

const DIRECTORIES: [Directory; 3] = [Directory::Auto, Directory::Switch, Directory::Home];

fn rack(nodes: usize, directory: Directory) -> Rack {
    Rack::embedded(Config { nodes, directory, cache: 1 << 20, memory: 16 << 20, ..Config::default() })
        .unwrap()
}

#[test]
fn what_one_node_writes_all_nodes_read() {
    for directory in DIRECTORIES {
        let rack = rack(4, directory);
        let mut handles: Vec<_> = (0..4).map(|n| rack.node(NodeId(n))).collect();
        let addr = handles[0].alloc(64, NodeId(2), Discipline::Coherent).unwrap();
        for round in 0..20u64 {
            let writer = (round % 4) as usize;
            handles[writer].write_word(addr + 8 * (round % 8), round + 1).unwrap();
            for handle in &mut handles {
                assert_eq!(handle.read_word(addr + 8 * (round % 8)).unwrap(), round + 1, "{directory:?}");
            }
        }
        rack.check_invariants();
    }
}

#[test]
fn a_working_set_larger_than_the_cache_is_evicted_and_comes_back() {
    for directory in DIRECTORIES {
        let rack = Rack::embedded(Config {
            nodes: 2,
            directory,
            cache: 32 * 4096,
            memory: 4 << 20,
            ..Config::default()
        })
        .unwrap();
        let mut node = rack.node(NodeId(0));
        let mut other = rack.node(NodeId(1));
        let blocks = 256u64;
        let addr = node.alloc(blocks * 4096, NodeId(1), Discipline::Coherent).unwrap();
        for i in 0..blocks {
            node.write_word(addr + i * 4096, i + 1).unwrap();
        }
        for i in 0..blocks {
            assert_eq!(other.read_word(addr + i * 4096).unwrap(), i + 1, "{directory:?} block {i}");
            assert_eq!(node.read_word(addr + i * 4096).unwrap(), i + 1, "{directory:?} block {i}");
        }
        let protocol = rack.counters().protocol();
        assert!(protocol.events[4] > 0 && protocol.events[5] > 0, "clean and modified blocks were evicted");
        rack.check_invariants();
    }
}

#[test]
fn no_increment_is_lost_with_more_threads_than_cores() {
    for directory in DIRECTORIES {
        let rack = rack(4, directory);
        let addr = rack.node(NodeId(0)).alloc(8, NodeId(3), Discipline::Coherent).unwrap();
        let (threads, rounds) = (12u16, 2000u64);
        thread::scope(|scope| {
            for thread in 0..threads {
                let mut node = rack.node(NodeId(thread % 4));
                scope.spawn(move || {
                    for _ in 0..rounds {
                        node.update(addr, 8, |window| window.set_word(0, window.word(0) + 1)).unwrap();
                    }
                });
            }
        });
        assert_eq!(
            rack.node(NodeId(1)).read_word(addr).unwrap(),
            u64::from(threads) * rounds,
            "{directory:?}"
        );
        rack.check_invariants();
    }
}

#[test]
fn writes_inside_a_block_are_seen_whole() {
    let rack = rack(3, Directory::Auto);
    let addr = rack.node(NodeId(0)).alloc(4096, NodeId(0), Discipline::Coherent).unwrap();
    let done = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        for writer in 0..2u16 {
            let (mut node, done) = (rack.node(NodeId(writer)), Arc::clone(&done));
            scope.spawn(move || {
                for round in 0..500u64 {
                    node.write(addr, &[(round as u8) ^ (writer as u8 * 0x80); 4096]).unwrap();
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        for reader in 0..3u16 {
            let (mut node, done) = (rack.node(NodeId(reader)), Arc::clone(&done));
            scope.spawn(move || {
                let mut bytes = vec![0; 4096];
                while done.load(Ordering::SeqCst) < 2 {
                    node.read(addr, &mut bytes).unwrap();
                    assert!(bytes.iter().all(|b| *b == bytes[0]), "a torn block");
                }
            });
        }
    });
    rack.check_invariants();
}

#[test]
fn any_range_of_bytes_can_be_read_and_written_across_blocks() {
    for block in [64, 256, 4096] {
        let block_size = BlockSize::new(block).unwrap();
        let config = Config { nodes: 2, block_size, cache: 64 * block, memory: 1 << 20, ..Config::default() };
        let rack = Rack::embedded(config).unwrap();
        let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
        let len = 5 * block;
        let addr = here.alloc(len, NodeId(1), Discipline::Coherent).unwrap();
        let mut model = vec![0u8; usize::try_from(len).unwrap()];
        for i in 0..200u64 {
            let at = (i * 37) % (len - 1);
            let n = 1 + (i * 53) % (len - at);
            let bytes: Vec<u8> = (0..n).map(|b| (b + i) as u8).collect();
            here.write(addr + at, &bytes).unwrap();
            model[at as usize..(at + n) as usize].copy_from_slice(&bytes);
            let mut back = vec![0; model.len()];
            there.read(addr, &mut back).unwrap();
            assert_eq!(back, model, "block {block}, round {i}");
        }
    }
}

#[test]
fn null_is_never_allocated() {
    let rack = rack(1, Directory::Auto);
    let mut node = rack.node(NodeId(0));
    let addr = node.alloc(16, NodeId(0), Discipline::Coherent).unwrap();
    assert_ne!(addr, GlobalAddr::NULL);
    assert!(node.read_word(GlobalAddr::NULL).is_err());
}
