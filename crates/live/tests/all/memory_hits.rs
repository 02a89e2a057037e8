//! Hits of application threads, step by step: what is a hit, what is a miss, and what an old hint is worth.

use std::cell::Cell;

use live::memory::{Cache, Hints, NodeMemory, StoreOf, Unpinned};
use node::{Access, FrameId, Pinned, Reservation, Store, Window};
use wire::{BlockSize, BlockTag, GlobalAddr, NodeId};

const BLOCK: BlockSize = BlockSize::new(256).unwrap();
const WORDS: u64 = 32;

struct OneNode(Vec<NodeMemory>);

impl OneNode {
    /// One bucket.
    fn new() -> Self {
        Self(vec![NodeMemory::new(BLOCK, 8 * 256, 1 << 16)])
    }

    fn cache(&self) -> &Cache {
        &self.0[0].cache
    }

    fn store(&self) -> StoreOf<'_> {
        StoreOf::new(&self.0, NodeId(0))
    }

    fn publish_in(&self, frame: FrameId, number: u64, access: Access, value: u64) {
        self.store().publish(frame, tag(number), access, true);
        let pinned = self.0[0].adopt(frame);
        set_all(&pinned.window(0, 256), value);
        assert_eq!(pinned.unpin(true), Unpinned::Quiet);
    }

    fn publish(&self, number: u64, access: Access, value: u64) -> FrameId {
        let Reservation::Reserved(frame) = self.store().reserve(tag(number), |_| false) else {
            panic!("no room for block {number}")
        };
        self.publish_in(frame, number, access, value);
        frame
    }
}

fn tag(number: u64) -> BlockTag {
    BLOCK.tag(addr(number, 0))
}

fn addr(number: u64, word: u64) -> GlobalAddr {
    GlobalAddr::new(NodeId(0), number * 256 + word * 8)
}

fn set_all(window: &Window<'_>, value: u64) {
    (0..window.len() / 8).for_each(|word| window.set_word(word * 8, value));
}

fn nobody(frame: FrameId) {
    panic!("no agent waits for {frame:?}");
}

#[test]
fn a_block_that_is_not_cached_is_a_miss_for_every_kind_of_access() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    assert_eq!(cache.load_word(&mut hints, addr(0, 0)), None);
    assert_eq!(cache.store_word(&mut hints, addr(0, 0), 1), None);
    assert!(cache.pin_for_write(&mut hints, addr(0, 0)).is_none());
    assert_eq!(cache.inspect(&mut hints, addr(0, 0), 8, |_| (), nobody), None);
    assert_eq!(hints.hits(), 0);
}

#[test]
fn every_word_of_every_cached_block_is_found_with_and_without_a_hint() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    for number in 0..8 {
        node.publish(number, Access::Modified, 0);
        for word in 0..WORDS {
            let stored = cache.store_word(&mut Hints::new(), addr(number, word), number << 8 | word);
            assert_eq!(stored, Some(Unpinned::Quiet));
        }
    }
    for _ in 0..2 {
        for number in 0..8 {
            for word in 0..WORDS {
                assert_eq!(cache.load_word(&mut hints, addr(number, word)), Some(number << 8 | word));
            }
        }
    }
    assert_eq!(hints.hits(), 2 * 8 * WORDS);
}

#[test]
fn blocks_that_share_a_hint_row_do_not_mix() {
    let nodes = vec![NodeMemory::new(BLOCK, 4096 * 256, 0)];
    let mut store = StoreOf::new(&nodes, NodeId(0));
    let far = 512;
    for number in [1, 1 + far] {
        let Reservation::Reserved(frame) = store.reserve(tag(number), |_| false) else { panic!("no room") };
        store.publish(frame, tag(number), Access::Modified, false);
    }
    let (cache, mut hints) = (&nodes[0].cache, Hints::new());
    for round in 0..4 {
        for number in [1, 1 + far] {
            assert_eq!(cache.store_word(&mut hints, addr(number, 5), number + round), Some(Unpinned::Quiet));
        }
        for number in [1, 1 + far] {
            assert_eq!(cache.load_word(&mut hints, addr(number, 5)), Some(number + round));
        }
    }
}

#[test]
fn a_hint_for_a_frame_that_was_refilled_finds_neither_the_old_nor_the_new_block_there() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    let frame = node.publish(1, Access::Modified, 10);
    assert_eq!(cache.load_word(&mut hints, addr(1, 3)), Some(10));

    assert_eq!(node.store().withdraw(frame), Ok(()));
    assert_eq!(cache.load_word(&mut hints, addr(1, 3)), None, "withdrawn");
    node.publish_in(frame, 2, Access::Modified, 20);
    assert_eq!(cache.load_word(&mut hints, addr(1, 3)), None, "the frame holds another block");
    assert_eq!(cache.store_word(&mut hints, addr(1, 3), 11), None);
    assert_eq!(cache.inspect(&mut hints, addr(1, 0), 256, |_| (), nobody), None);
    assert_eq!(cache.load_word(&mut Hints::new(), addr(2, 3)), Some(20), "and is not written through it");

    assert_eq!(node.store().withdraw(frame), Ok(()));
    node.publish_in(frame, 1, Access::Modified, 30);
    assert_eq!(cache.load_word(&mut hints, addr(1, 3)), Some(30), "the same block again, later");
}

#[test]
fn a_block_that_moved_to_another_frame_is_found_there() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    let frame = node.publish(1, Access::Modified, 10);
    assert_eq!(cache.load_word(&mut hints, addr(1, 0)), Some(10));
    assert_eq!(node.store().withdraw(frame), Ok(()));
    // The withdrawn frame is still reserved, and still has the tag.
    let elsewhere = node.publish(1, Access::Modified, 11);
    assert_ne!(frame, elsewhere);
    assert_eq!(cache.load_word(&mut hints, addr(1, 0)), Some(11));
}

#[test]
fn access_changes_take_effect_on_hints_made_before() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    let frame = node.publish(1, Access::Shared, 10);
    assert_eq!(cache.load_word(&mut hints, addr(1, 0)), Some(10));
    assert_eq!(cache.store_word(&mut hints, addr(1, 0), 11), None);

    assert_eq!(node.store().upgrade(frame), Ok(()));
    assert_eq!(node.0[0].adopt(frame).unpin(false), Unpinned::Quiet);
    assert_eq!(cache.store_word(&mut hints, addr(1, 0), 12), Some(Unpinned::Quiet));

    assert_eq!(node.store().downgrade(frame), Ok(()));
    assert_eq!(cache.store_word(&mut hints, addr(1, 0), 13), None);
    assert_eq!(cache.load_word(&mut hints, addr(1, 0)), Some(12));
}

#[test]
fn hits_of_every_kind_make_a_block_young() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    let frames: Vec<FrameId> = (0..8).map(|number| node.publish(number, Access::Modified, 0)).collect();
    // Twice, so that each block is hit by way of a hint of an earlier tick, too.
    for round in 0..2 {
        assert_eq!(cache.load_word(&mut hints, addr(0, 0)), Some(0));
        assert_eq!(cache.store_word(&mut hints, addr(1, 0), 0), Some(Unpinned::Quiet));
        assert_eq!(cache.inspect(&mut hints, addr(2, 0), 8, |_| (), nobody), Some(()));
        assert_eq!(cache.pin_for_write(&mut hints, addr(3, 0)).unwrap().unpin(false), Unpinned::Quiet);
        let Reservation::Evict { frame, tag: oldest, .. } = node.store().reserve(tag(100), |_| false) else {
            panic!("the bucket is full")
        };
        assert_eq!((frame, oldest), (frames[4 + round], tag(4 + round as u64)), "round {round}");
        // Replacing it makes all the others one tick older.
        assert_eq!(node.store().withdraw(frame), Ok(()));
        node.publish_in(frame, 8 + round as u64, Access::Modified, 0);
    }
}

#[test]
fn an_agent_refused_by_a_thread_is_reported_by_that_threads_unpin() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    let frame = node.publish(1, Access::Modified, 10);
    let pinned = cache.pin_for_write(&mut hints, addr(1, 0)).unwrap();
    assert_eq!(node.store().withdraw(frame), Err(Pinned));
    pinned.window(0, 8).set_word(0, 11);
    assert_eq!(pinned.unpin(true), Unpinned::AgentWaits(frame));
    assert_eq!(node.store().withdraw(frame), Ok(()));
    assert!(cache.pin_for_write(&mut hints, addr(1, 0)).is_none());
}

#[test]
fn readers_are_let_in_while_an_agent_waits_for_its_turn() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    let frame = node.publish(1, Access::Modified, 10);
    let pinned = cache.pin_for_write(&mut hints, addr(1, 0)).unwrap();
    assert_eq!(node.store().withdraw(frame), Err(Pinned));
    assert_eq!(pinned.unpin(false), Unpinned::AgentWaits(frame));
    assert_eq!(cache.load_word(&mut hints, addr(1, 0)), Some(10));
    assert_eq!(cache.inspect(&mut hints, addr(1, 0), 8, |w| w.word(0), nobody), Some(10));
}

#[test]
fn an_agent_that_does_not_come_for_its_turn_keeps_no_thread_out_and_is_not_reported_again() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    let frame = node.publish(1, Access::Modified, 10);
    let pinned = cache.pin_for_write(&mut hints, addr(1, 0)).unwrap();
    assert_eq!(node.store().withdraw(frame), Err(Pinned));
    assert_eq!(pinned.unpin(false), Unpinned::AgentWaits(frame));
    let second = cache.pin_for_write(&mut hints, addr(1, 0)).expect("it is cached");
    assert_eq!(second.unpin(false), Unpinned::Quiet);
}

#[test]
fn an_inspection_that_is_disturbed_every_time_ends_and_holds_no_pin_while_it_looks() {
    let node = OneNode::new();
    let (cache, mut hints, mut other) = (node.cache(), Hints::new(), Hints::new());
    node.publish(1, Access::Modified, 0);
    let runs = Cell::new(0);
    let seen = cache.inspect(
        &mut hints,
        addr(1, 2) + 3,
        13,
        |window| {
            runs.set(runs.get() + 1);
            // Would wait for itself for ever if the frame were pinned.
            assert_eq!(cache.store_word(&mut other, addr(1, 3), runs.get()), Some(Unpinned::Quiet));
            let mut bytes = [0; 13];
            window.read(0, &mut bytes);
            (bytes, window.word(5))
        },
        nobody,
    );
    let before = runs.get() - 1;
    assert!(before > 1, "it tries in place first");
    let (bytes, word) = seen.unwrap();
    assert_eq!(word, before, "the copy was made before the last run");
    assert_eq!(bytes[5..], before.to_le_bytes());
}

#[test]
fn an_inspection_disturbed_by_a_withdrawal_is_a_miss() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    let frame = node.publish(1, Access::Shared, 7);
    let seen = cache.inspect(
        &mut hints,
        addr(1, 0),
        256,
        |_| node.store().withdraw(frame).expect("inspections in place pin nothing"),
        nobody,
    );
    assert_eq!(seen, None);
}

#[test]
fn an_inspection_that_was_refilled_under_its_feet_is_not_believed() {
    let node = OneNode::new();
    let (cache, mut hints) = (node.cache(), Hints::new());
    let frame = node.publish(1, Access::Shared, 7);
    let mut runs = 0;
    let seen = cache.inspect(
        &mut hints,
        addr(1, 0),
        256,
        |window| {
            runs += 1;
            if runs == 1 {
                assert_eq!(node.store().withdraw(frame), Ok(()));
                node.publish_in(frame, 2, Access::Shared, 8);
                node.publish(1, Access::Shared, 9);
            }
            window.word(0)
        },
        nobody,
    );
    assert_eq!((seen, runs), (Some(9), 2));
}

#[test]
#[should_panic(expected = "bytes 250+8 of a 256-byte block")]
fn an_inspection_across_the_end_of_the_block_is_a_bug() {
    let node = OneNode::new();
    node.publish(1, Access::Shared, 7);
    node.cache().inspect(&mut Hints::new(), addr(1, 0) + 250, 8, |_| (), nobody);
}

#[test]
#[should_panic(expected = "was not pinned for anyone")]
fn adopting_a_frame_that_nobody_pinned_is_a_bug() {
    let node = OneNode::new();
    let frame = node.publish(1, Access::Shared, 7);
    let _ = node.0[0].adopt(frame).unpin(false);
}
