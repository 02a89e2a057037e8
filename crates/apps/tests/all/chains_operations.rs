//! The store on chains, through its interface, by threads of all nodes.

use apps::chains::{ChainStore, ChainStoreConfig, Error};
use rackmem::{NodeId, Rack};

fn rack() -> Rack {
    let config = rackmem::Config { nodes: 3, cache: 1 << 20, memory: 32 << 20, ..rackmem::Config::default() };
    Rack::embedded(config).unwrap()
}

#[test]
fn keys_of_every_length_have_the_value_that_was_put_last() {
    let rack = rack();
    let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
    let mut store = ChainStore::create(&mut here, &ChainStoreConfig::default()).unwrap();
    let mut same = ChainStore::open(&mut there, store.root()).unwrap();
    let mut found = Vec::new();
    let keys: Vec<Vec<u8>> = (0..40).map(|len| vec![7; len]).collect();
    for (value, key) in (0..).zip(&keys) {
        store.put(&mut here, key, b"before").unwrap();
        same.put(&mut there, key, &vec![value; usize::from(value) * 3]).unwrap();
    }
    for (value, key) in (0..).zip(&keys) {
        assert!(store.get(&mut here, key, &mut found).unwrap());
        assert_eq!(found, vec![value; usize::from(value) * 3]);
        assert!(store.trips() >= 1);
    }
    store.delete(&mut here, &keys[3]).unwrap();
    assert!(!same.get(&mut there, &keys[3], &mut found).unwrap());
    assert!(same.get(&mut there, &keys[4], &mut found).unwrap());
}

#[test]
fn what_threads_of_all_nodes_put_is_there_in_the_end_whole() {
    let rack = rack();
    let config = ChainStoreConfig {
        homes: vec![NodeId(0), NodeId(2)],
        server: NodeId(1),
        ..ChainStoreConfig::default()
    };
    let root = ChainStore::create(&mut rack.node(NodeId(0)), &config).unwrap().root();
    std::thread::scope(|scope| {
        for thread in 0..6_u8 {
            let mut here = rack.node(NodeId(u16::from(thread) % 3));
            scope.spawn(move || {
                let mut store = ChainStore::open(&mut here, root).unwrap();
                for round in 0..100_u8 {
                    store.put(&mut here, &[round % 7], &vec![thread; 1 + usize::from(round)]).unwrap();
                }
            });
        }
    });
    let (mut here, mut found) = (rack.node(NodeId(1)), Vec::new());
    let mut store = ChainStore::open(&mut here, root).unwrap();
    for key in 0..7 {
        assert!(store.get(&mut here, &[key], &mut found).unwrap());
        assert!(found.len() > 90 && found.iter().all(|byte| *byte == found[0]), "{found:?}");
    }
    store.destroy(&mut here).unwrap();
    assert!(matches!(
        ChainStore::open(&mut here, root),
        Err(Error::Memory(rackmem::Error::Unallocated { .. }))
    ));
}
