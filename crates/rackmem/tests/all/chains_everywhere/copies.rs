//! Stores whose entries are in several memories: on whatever rack, as long as nobody dies.

use rackmem::{ChainsConfig, Error, Nanos, NodeId};

use super::{
    Nodes, are_right, assert_linearizable, far_more_is_written, history_of, spread,
    what_is_put_is_there_until_it_is_deleted,
};

/// So many copies in the memories of so many nodes.
pub(crate) fn copies(copies: usize, memories: u16, bytes: u64) -> ChainsConfig {
    ChainsConfig { homes: (0..memories).map(NodeId).collect(), copies, ..spread(bytes) }
}

const KINDS: [(usize, u16); 3] = [(2, 2), (2, 3), (3, 3)];

pub(crate) fn what_is_put_into_copies_all_others_get_until_it_is_deleted(nodes: Nodes<'_>) {
    for (many, memories) in KINDS {
        let values = [(0, 0), (1, 1), (2, 40), (3, 41), (4, 5000), (5, 70_000)];
        what_is_put_is_there_until_it_is_deleted(nodes, &copies(many, memories, 256 << 10), &values, 3);
    }
}

pub(crate) fn each_copy_takes_a_put_one_round_trip_more_and_a_get_none(nodes: Nodes<'_>) {
    for (many, memories) in KINDS {
        are_right(|| {
            let (mut here, mut counted, mut found) = (nodes(2), Vec::new(), Vec::new());
            // Nobody forgets anything here.
            let config = ChainsConfig { lease: Nanos(60_000_000_000), ..copies(many, memories, 64 << 10) };
            let mut store = here.chains(&config).unwrap();
            store.put(&mut here, 1, b"a").unwrap();
            let first = "slots; the entry, to all copies at once; whether there is a chain; it is begun";
            counted.push((store.trips(), 4..=4, first));
            store.put(&mut here, 1, b"b").unwrap();
            let put = 1 + many as u32;
            counted.push((
                store.trips(),
                put..=put,
                "the entry, to all copies at once; its link, copy by copy",
            ));
            assert!(store.get(&mut here, 1, &mut found).unwrap() && found == b"b");
            counted.push((store.trips(), 1..=1, "it still is the tail"));
            store.free(&mut here).unwrap();
            counted
        });
    }
}

pub(crate) fn far_more_is_written_than_copies_hold(nodes: Nodes<'_>) {
    // In all there is capacity for twice that, whatever copies take.
    let bytes = 96 << 10;
    far_more_is_written(nodes, copies(2, 2, bytes), 4 * bytes);
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
