//! Stores whose entries are in several memories: on whatever rack, as long as nobody dies.

use rackmem::{ChainsConfig, Error, Nanos, NodeId};

use super::{Nodes, assert_linearizable, history_of, on_all, spread, value};

/// So many copies in the memories of so many nodes.
pub(crate) fn copies(copies: usize, memories: u16, bytes: u64) -> ChainsConfig {
    ChainsConfig { homes: (0..memories).map(NodeId).collect(), copies, ..spread(bytes) }
}

const KINDS: [(usize, u16); 3] = [(2, 2), (2, 3), (3, 3)];

pub(crate) fn what_is_put_into_copies_all_others_get_until_it_is_deleted(nodes: Nodes<'_>) {
    for (many, memories) in KINDS {
        let mut first = nodes(0);
        let mut store = first.chains(&copies(many, memories, 256 << 10)).unwrap();
        let addr = store.addr();
        let mut found = Vec::new();
        for (key, len) in (0..).zip([0, 1, 40, 41, 5000, 70_000]) {
            store.put(&mut first, key, &value(key, len)).unwrap();
            store.put(&mut first, key, &value(!key, len + 3)).unwrap();
            for node in 0..3 {
                let mut there = nodes(node);
                let mut same = there.chains_at(addr).unwrap();
                assert!(same.get(&mut there, key, &mut found).unwrap());
                assert_eq!(found, value(!key, len + 3), "key {key} at node {node}");
            }
        }
        let mut second = nodes(1);
        let mut same = second.chains_at(addr).unwrap();
        same.delete(&mut second, 3).unwrap();
        assert!(!store.get(&mut first, 3, &mut found).unwrap());
        store.put(&mut first, 3, b"again").unwrap();
        assert!(same.get(&mut second, 3, &mut found).unwrap() && found == b"again");
        store.free(&mut first).unwrap();
        assert_eq!(second.chains_at(addr).err(), Some(Error::Unallocated { addr }));
    }
}

pub(crate) fn each_copy_takes_a_put_one_round_trip_more_and_a_get_none(nodes: Nodes<'_>) {
    for (many, memories) in KINDS {
        let mut here = nodes(2);
        // Nobody forgets anything here.
        let config = ChainsConfig { lease: Nanos(60_000_000_000), ..copies(many, memories, 64 << 10) };
        let mut store = here.chains(&config).unwrap();
        store.put(&mut here, 1, b"a").unwrap();
        assert_eq!(
            store.trips(),
            4,
            "slots; the entry, to all copies at once; whether there is a chain; it is begun"
        );
        store.put(&mut here, 1, b"b").unwrap();
        assert_eq!(
            store.trips() as usize,
            1 + many,
            "the entry, to all copies at once; its link, copy by copy"
        );
        let mut found = Vec::new();
        assert!(store.get(&mut here, 1, &mut found).unwrap() && found == b"b");
        assert_eq!(store.trips(), 1);
        store.free(&mut here).unwrap();
    }
}

pub(crate) fn far_more_is_written_than_copies_hold(nodes: Nodes<'_>) {
    const KEYS: u64 = 5;
    let bytes = 96 << 10;
    let mut here = nodes(0);
    let config = ChainsConfig { lease: Nanos::from_millis(60), ..copies(2, 2, bytes) };
    let addr = here.chains(&config).unwrap().addr();
    on_all(nodes, 1, |client, here| {
        let mut store = here.chains_at(addr).unwrap();
        // Of 550 bytes on average: 330 KB, of which there is room for 192 KB.
        for round in 0..200 {
            let (key, len) = ((client + round) % KEYS, 100 + (round as usize * 37) % 900);
            store.put(here, key, &value(round, len)).unwrap();
        }
    });
}

pub(crate) fn copies_that_cannot_be_are_refused_with_why(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    let refused = |copies, memories| Some(Error::TooManyCopies { copies, memories });
    for (many, memories) in [(0, 2), (2, 1), (3, 2), (4, 3)] {
        let config = copies(many, memories, 64 << 10);
        assert_eq!(here.chains(&config).err(), refused(many, memories.into()));
    }
    let twice = ChainsConfig { homes: vec![NodeId(0), NodeId(1), NodeId(0)], ..copies(2, 2, 64 << 10) };
    assert_eq!(here.chains(&twice).err(), refused(2, 2));
    let why = refused(2, 1).unwrap().to_string();
    assert_eq!(
        why,
        "2 copies in the memories of 1 nodes: name a different node for each copy, and ask for 1 to 3"
    );
    assert_eq!(ChainsConfig::MOST_COPIES, 3);
}

pub(crate) fn histories_of_copies_are_linearizable(nodes: Nodes<'_>) {
    for ((many, memories), seed) in KINDS.into_iter().zip(3..) {
        let store = nodes(0).chains(&copies(many, memories, 256 << 10)).unwrap();
        assert_linearizable(&history_of(nodes, store.addr(), seed, 60));
        store.free(&mut nodes(0)).unwrap();
    }
}
