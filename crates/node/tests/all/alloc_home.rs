//! The home's half of the allocator, one rule at a time.

use node::allocator::{BlockRange, ChunkSize, ChunkTable, GiveBackRefused, MarkRefused, OutOfMemory, Step};
use wire::Discipline::{Coherent, LockOnly};
use wire::{BlockSize, BlockTag, GlobalAddr, NodeId, SwitchEpoch};

const HOME: NodeId = NodeId(1);
const ALICE: NodeId = NodeId(0);
const BOB: NodeId = NodeId(2);
const BLOCK: BlockSize = BlockSize::DEFAULT;
/// Blocks in a chunk here: 64 KiB.
const CHUNK: u64 = 16;

fn table(blocks: u64) -> ChunkTable {
    let chunk = ChunkSize::new(CHUNK * BLOCK.bytes()).unwrap();
    ChunkTable::new(HOME, blocks * BLOCK.bytes(), BLOCK, chunk)
}

fn tag(number: u64) -> BlockTag {
    BLOCK.tag(GlobalAddr::new(HOME, number * BLOCK.bytes()))
}

fn blocks(first: u64, end: u64) -> BlockRange {
    BlockRange { first: tag(first), blocks: end - first }
}

fn bytes(blocks: u64) -> u64 {
    blocks * BLOCK.bytes()
}

#[test]
fn the_first_block_of_a_memory_is_never_handed_out() {
    let mut table = table(4 * CHUNK);
    assert_eq!(table.grant(ALICE, 1, Coherent), Ok(blocks(1, CHUNK)));
    assert_eq!(table.owner_of(tag(0).addr()), None);
    assert_eq!(table.mark(ALICE, blocks(0, 2), Some(Coherent)), Err(MarkRefused::NotGranted));
    assert_eq!(table.granted_bytes(), bytes(CHUNK - 1));
}

#[test]
fn a_chunk_that_is_one_block_loses_the_first_chunk_only() {
    let mut table = ChunkTable::new(HOME, bytes(3), BLOCK, ChunkSize::new(BLOCK.bytes()).unwrap());
    assert_eq!(table.grant(ALICE, bytes(2), Coherent), Ok(blocks(1, 3)));
    table.give_back(ALICE, blocks(1, 2)).unwrap();
    assert_eq!(table.grant(BOB, 1, Coherent), Ok(blocks(1, 2)));
    table.assert_invariants();
}

#[test]
fn a_memory_too_small_for_any_chunk_grants_nothing() {
    for memory in [0, 1, BLOCK.bytes(), 2 * BLOCK.bytes() - 1] {
        let mut table = ChunkTable::new(HOME, memory, BLOCK, ChunkSize::DEFAULT);
        assert_eq!(table.grant(ALICE, 1, Coherent), Err(OutOfMemory { longest: 0 }), "{memory} bytes");
    }
}

#[test]
fn the_end_of_a_memory_that_is_no_whole_chunk_is_used_and_nothing_behind_it() {
    let mut table =
        ChunkTable::new(HOME, bytes(CHUNK + 3) + 100, BLOCK, ChunkSize::new(bytes(CHUNK)).unwrap());
    assert_eq!(table.grant(ALICE, bytes(CHUNK), Coherent), Ok(blocks(1, CHUNK + 3)));
    assert_eq!(table.owner_of(tag(CHUNK + 2).addr()), Some(ALICE));
    assert_eq!(table.owner_of(tag(CHUNK + 3).addr()), None);
    assert_eq!(table.mark(ALICE, blocks(1, CHUNK + 4), Some(Coherent)), Err(MarkRefused::NotGranted));
}

#[test]
fn a_big_allocation_gets_the_first_contiguous_run_of_chunks_that_holds_it() {
    let mut table = table(8 * CHUNK);
    let first = table.grant(ALICE, 1, Coherent).unwrap();
    let second = table.grant(BOB, bytes(CHUNK), Coherent).unwrap();
    assert_eq!(second, blocks(CHUNK, 2 * CHUNK));
    table.give_back(ALICE, first).unwrap();
    assert_eq!(
        table.grant(BOB, bytes(CHUNK) + 1, Coherent),
        Ok(blocks(2 * CHUNK, 4 * CHUNK)),
        "the hole in front is too short"
    );
    assert_eq!(table.grant(BOB, bytes(CHUNK - 1), Coherent), Ok(blocks(1, CHUNK)), "and not for this one");
}

#[test]
fn a_home_without_room_says_how_much_it_has() {
    let mut table = table(4 * CHUNK);
    let most = bytes(4 * CHUNK - 1);
    assert_eq!(table.grant(ALICE, most + 1, Coherent), Err(OutOfMemory { longest: most }));
    assert_eq!(table.grant(ALICE, u64::MAX, Coherent), Err(OutOfMemory { longest: most }));
    let all = table.grant(ALICE, most, Coherent).unwrap();
    assert_eq!(table.grant(BOB, 1, Coherent), Err(OutOfMemory { longest: 0 }));
    table.give_back(ALICE, all).unwrap();
    assert_eq!(table.grant(BOB, most, Coherent), Ok(all), "given back as one piece");
}

#[test]
fn a_block_has_a_discipline_exactly_while_it_is_live() {
    let mut table = table(4 * CHUNK);
    table.grant(ALICE, bytes(2 * CHUNK), LockOnly).unwrap();
    let live = blocks(CHUNK - 2, CHUNK + 3);
    table.mark(ALICE, live, Some(LockOnly)).unwrap();
    table.mark(ALICE, live, Some(LockOnly)).unwrap();
    for number in 0..4 * CHUNK {
        let want = (CHUNK - 2..CHUNK + 3).contains(&number).then_some(LockOnly);
        assert_eq!(table.discipline_of(tag(number)), want, "block {number}");
        assert_eq!(table.discipline_of(tag(number).lock_entry()), want, "the lock of block {number}");
    }
    assert_eq!(table.live_bytes(), bytes(5));
    table.mark(ALICE, blocks(CHUNK, CHUNK + 3), None).unwrap();
    assert_eq!(table.discipline_of(tag(CHUNK)), None);
    assert_eq!(table.discipline_of(tag(CHUNK - 1)), Some(LockOnly));
    table.assert_invariants();
}

#[test]
fn blocks_of_another_home_or_behind_the_memory_have_no_discipline_and_no_owner() {
    let mut table = table(CHUNK);
    let all = table.grant(ALICE, 1, Coherent).unwrap();
    table.mark(ALICE, all, Some(Coherent)).unwrap();
    let elsewhere = GlobalAddr::new(NodeId(0), 2 * BLOCK.bytes());
    let behind = GlobalAddr::new(HOME, wire::addr::MAX_OFFSET);
    for addr in [elsewhere, behind, GlobalAddr::NULL] {
        assert_eq!(table.discipline_of(BLOCK.tag(addr)), None, "{addr}");
        assert_eq!(table.owner_of(addr), None, "{addr}");
    }
    assert_eq!(table.owner_of(GlobalAddr::new(HOME, 2 * BLOCK.bytes() + 77)), Some(ALICE));
}

#[test]
fn only_the_owner_of_every_block_of_a_range_marks_it() {
    let mut table = table(4 * CHUNK);
    table.grant(ALICE, 1, Coherent).unwrap();
    table.grant(BOB, 1, Coherent).unwrap();
    for (node, range) in [
        (BOB, blocks(1, 2)),
        (ALICE, blocks(CHUNK - 1, CHUNK + 1)),
        (ALICE, blocks(3 * CHUNK, 3 * CHUNK + 1)),
    ] {
        for discipline in [Some(Coherent), None] {
            let refused = table.mark(node, range, discipline);
            assert_eq!(refused, Err(MarkRefused::NotGranted), "{range:?} {discipline:?}");
        }
    }
    assert_eq!(table.live_bytes(), 0, "a range that is refused is not marked in part");
}

#[test]
fn a_chunk_granted_for_one_discipline_takes_no_mark_of_another() {
    let mut table = table(4 * CHUNK);
    table.grant(ALICE, 1, Coherent).unwrap();
    table.grant(ALICE, 1, LockOnly).unwrap();
    for range in [blocks(1, 2), blocks(CHUNK - 1, CHUNK + 1)] {
        assert_eq!(table.mark(ALICE, range, Some(LockOnly)), Err(MarkRefused::WrongDiscipline), "{range:?}");
    }
    assert_eq!(table.live_bytes(), 0);
}

#[test]
fn ranges_that_make_no_sense_are_refused_without_effect() {
    let mut table = table(4 * CHUNK);
    let granted = table.grant(ALICE, bytes(2 * CHUNK), Coherent).unwrap();
    let inside = BlockTag::from_bits(tag(2).bits() + 16);
    for range in [
        BlockRange { first: tag(1), blocks: 0 },
        BlockRange { first: tag(1), blocks: u64::MAX },
        BlockRange { first: inside, blocks: 1 },
        BlockRange { first: tag(2).lock_entry(), blocks: 1 },
        BlockRange { first: BLOCK.tag(GlobalAddr::new(NodeId(0), BLOCK.bytes())), blocks: 1 },
    ] {
        assert_eq!(table.mark(ALICE, range, Some(Coherent)), Err(MarkRefused::NotGranted), "{range:?}");
        assert_eq!(table.give_back(ALICE, range), Err(GiveBackRefused::NotGranted), "{range:?}");
    }
    assert_eq!((table.live_bytes(), table.granted_bytes()), (0, granted.bytes(BLOCK)));
}

#[test]
fn only_whole_chunks_of_their_owner_go_back_and_only_when_nothing_in_them_is_live() {
    let mut table = table(4 * CHUNK);
    let granted = table.grant(ALICE, bytes(2 * CHUNK - 1), Coherent).unwrap();
    assert_eq!(table.give_back(BOB, granted), Err(GiveBackRefused::NotGranted));
    for part in [blocks(1, CHUNK - 1), blocks(2, CHUNK), blocks(1, CHUNK + 1), blocks(1, 4 * CHUNK)] {
        assert_eq!(table.give_back(ALICE, part), Err(GiveBackRefused::NotGranted), "{part:?}");
    }
    table.mark(ALICE, blocks(CHUNK + 1, CHUNK + 2), Some(Coherent)).unwrap();
    assert_eq!(table.give_back(ALICE, granted), Err(GiveBackRefused::Live));
    assert_eq!(table.granted_bytes(), granted.bytes(BLOCK), "not in part either");
    table.give_back(ALICE, blocks(1, CHUNK)).unwrap();
    assert_eq!(table.owner_of(tag(1).addr()), None);
    table.mark(ALICE, blocks(CHUNK + 1, CHUNK + 2), None).unwrap();
    table.give_back(ALICE, blocks(CHUNK, 2 * CHUNK)).unwrap();
    assert_eq!(table.granted_bytes(), 0);
}

#[test]
fn memory_that_was_given_back_may_obey_another_discipline_at_another_node() {
    let mut table = table(CHUNK);
    let granted = table.grant(ALICE, 1, Coherent).unwrap();
    table.mark(ALICE, granted, Some(Coherent)).unwrap();
    table.mark(ALICE, granted, None).unwrap();
    table.give_back(ALICE, granted).unwrap();
    assert_eq!(table.grant(BOB, 1, LockOnly), Ok(granted));
    assert_eq!(table.discipline_of(tag(1)), None, "nothing is left of its former incarnation");
    assert_eq!(table.mark(ALICE, granted, Some(Coherent)), Err(MarkRefused::NotGranted));
    table.mark(BOB, granted, Some(LockOnly)).unwrap();
    assert_eq!(table.discipline_of(tag(1)), Some(LockOnly));
}

#[test]
fn what_is_free_of_a_dead_nodes_chunk_is_granted_again_and_what_is_live_stays() {
    let died = SwitchEpoch(5);
    let mut table = table(2 * CHUNK);
    assert_eq!(table.grant(ALICE, 1, Coherent), Ok(blocks(1, CHUNK)));
    table.mark(ALICE, blocks(4, 6), Some(Coherent)).unwrap();
    table.orphan(ALICE, died);
    let of = |table: &ChunkTable, number: u64| {
        let addr = tag(number).addr();
        (table.owner_of(addr), table.is_orphaned(addr, died), table.discipline_of(tag(number)))
    };
    assert_eq!(of(&table, 4), (Some(ALICE), true, Some(Coherent)));
    // Of the same discipline, the longest part of it, and before what is free as a whole.
    assert_eq!(table.grant(BOB, 1, LockOnly), Ok(blocks(CHUNK, 2 * CHUNK)));
    table.give_back(BOB, blocks(CHUNK, 2 * CHUNK)).unwrap();
    assert_eq!(table.grant(BOB, bytes(2), Coherent), Ok(blocks(6, CHUNK)));
    table.assert_invariants();
    assert_eq!(table.granted_bytes(), bytes(CHUNK - 6));
    assert_eq!(table.mark(BOB, blocks(5, 7), Some(Coherent)), Err(MarkRefused::NotGranted));
    assert_eq!(table.mark(BOB, blocks(6, 7), Some(LockOnly)), Err(MarkRefused::WrongDiscipline));
    assert_eq!(table.mark(ALICE, blocks(6, 7), Some(Coherent)), Err(MarkRefused::NotGranted));
    table.mark(BOB, blocks(6, 8), Some(Coherent)).unwrap();
    assert_eq!(of(&table, 6), (Some(BOB), false, Some(Coherent)));
    assert!(
        table.is_orphaned(tag(6).addr(), SwitchEpoch(4)),
        "called before that one died, it was about another"
    );
    assert_eq!(of(&table, 2), (Some(ALICE), true, None));
    assert_eq!((table.live_bytes(), table.live_blocks().count()), (bytes(4), 4));
    // Another part of it nobody gets meanwhile, though there is nothing else in the end.
    assert_eq!(table.grant(BOB, 1, Coherent), Ok(blocks(CHUNK, 2 * CHUNK)));
    assert_eq!(table.grant(ALICE, 1, Coherent), Err(OutOfMemory { longest: 0 }));
    assert_eq!(table.give_back(BOB, blocks(6, CHUNK)), Err(GiveBackRefused::Live));
    assert_eq!(table.give_back(BOB, blocks(9, CHUNK)), Err(GiveBackRefused::NotGranted));
    // The next one dies, too: what both have left stays.
    table.orphan(BOB, SwitchEpoch(6));
    table.assert_invariants();
    assert_eq!([4, 5, 6, 7].map(|number| of(&table, number).2), [Some(Coherent); 4]);
    assert!(of(&table, 7).1 && table.granted_bytes() == 0);
    assert_eq!(table.grant(ALICE, bytes(CHUNK - 8), Coherent), Ok(blocks(8, CHUNK)));
    table.give_back(ALICE, blocks(8, CHUNK)).unwrap();
    // A small part is the last resort.
    let mut small = self::table(2 * CHUNK);
    small.grant(ALICE, 1, Coherent).unwrap();
    small.mark(ALICE, blocks(2, CHUNK), Some(Coherent)).unwrap();
    small.orphan(ALICE, died);
    assert_eq!(small.grant(BOB, 1, Coherent), Ok(blocks(CHUNK, 2 * CHUNK)));
    assert_eq!(small.grant(BOB, bytes(2), Coherent), Err(OutOfMemory { longest: bytes(1) }));
    assert_eq!(small.grant(BOB, 1, Coherent), Ok(blocks(1, 2)));
    small.assert_invariants();
}

#[test]
fn a_table_is_copied_place_by_place() {
    let (died, began) = (SwitchEpoch(5), SwitchEpoch(7));
    let mut table = table(8 * CHUNK).rooted();
    for (node, chunks) in [(ALICE, 1), (BOB, 2), (ALICE, 1), (BOB, 1)] {
        table.grant(node, bytes(CHUNK * chunks) - bytes(1), Coherent).unwrap();
    }
    table.grant(BOB, 1, LockOnly).unwrap();
    table.mark(ALICE, blocks(1, 4), Some(Coherent)).unwrap();
    table.mark(BOB, blocks(2 * CHUNK - 1, 2 * CHUNK + 1), Some(Coherent)).unwrap();
    table.mark(BOB, blocks(2 * CHUNK - 1, 2 * CHUNK), None).unwrap();
    // What it had without live blocks is free again, and somebody gets it.
    table.orphan(ALICE, died);
    table.grant(BOB, 1, Coherent).unwrap();
    let mut copy = self::table(8 * CHUNK).rooted().copied_from(began);
    let (mut place, mut order) = (0, Vec::new());
    while let Some(step) = table.step(place) {
        assert!(copy.take(&step) && copy.take(&step), "{step:?} is taken, and once more");
        let behind = table.place_behind(step.first, step.is_chunk);
        assert!(behind > place);
        (place, order) = (behind, [order, vec![(step.first, step.is_chunk)]].concat());
    }
    let blocks_of = |chunk: bool| order.iter().filter(move |(_, is)| *is == chunk).map(|(first, _)| *first);
    // The root comes last.
    let (mut live, mut copied) =
        (table.live_blocks().collect::<Vec<_>>(), blocks_of(false).collect::<Vec<_>>());
    assert_eq!((live[0], copied.pop()), (tag(0), Some(live.remove(0))));
    assert_eq!(copied, live);
    let chunks = [1, CHUNK, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK, 5 * CHUNK];
    assert_eq!(blocks_of(true).collect::<Vec<_>>(), chunks.map(tag));
    copy.assert_invariants();
    assert_eq!((copy.live_bytes(), copy.granted_bytes()), (table.live_bytes(), table.granted_bytes()));
    for number in 0..8 * CHUNK {
        let (addr, tag) = (tag(number).addr(), tag(number));
        assert_eq!(
            (copy.owner_of(addr), copy.discipline_of(tag)),
            (table.owner_of(addr), table.discipline_of(tag))
        );
        for called in (1..=7).map(SwitchEpoch).filter(|_| table.owner_of(addr).is_some()) {
            assert_eq!(
                copy.is_orphaned(addr, called),
                table.is_orphaned(addr, called),
                "block {number} in {called:?}"
            );
        }
    }
    // What was free when it was copied had no allocator.
    assert!(copy.grant_this(BOB, blocks(7 * CHUNK, 8 * CHUNK), Coherent));
    assert!(
        copy.is_orphaned(tag(7 * CHUNK).addr(), SwitchEpoch(6))
            && !copy.is_orphaned(tag(7 * CHUNK).addr(), began)
    );
}

#[test]
fn a_root_is_live_and_nobody_allocates_or_frees_it() {
    let (mut table, mut plain) = (table(CHUNK).rooted(), table(CHUNK));
    assert_eq!((table.discipline_of(tag(0)), plain.discipline_of(tag(0))), (Some(Coherent), None));
    assert_eq!((table.live_blocks().collect::<Vec<_>>(), plain.live_blocks().next()), (vec![tag(0)], None));
    assert_eq!(table.step(0), table.step(1 << 32));
    let root = table.step(0).unwrap();
    assert_eq!((root.first, root.is_chunk, plain.step(0)), (tag(0), false, None));
    assert_eq!(table.step(table.place_behind(root.first, false)), None, "it is the last one");
    assert!(table.take(&root) && !table.take(&Step { is_chunk: true, ..root }) && !plain.take(&root));
    let granted = table.grant(ALICE, 1, LockOnly).unwrap();
    assert_eq!(plain.grant(ALICE, 1, LockOnly), Ok(granted), "all that is behind it");
    assert_eq!(table.mark(ALICE, blocks(0, 1), None), Err(MarkRefused::NotGranted));
    assert_eq!((table.discipline_of(tag(0)), table.owner_of(tag(0).addr())), (Some(Coherent), None));
    table.assert_invariants();
}

#[test]
fn nothing_is_taken_that_is_no_place_of_this_table() {
    let mut table = table(4 * CHUNK);
    let range = table.grant(ALICE, 1, Coherent).unwrap();
    table.mark(ALICE, range, Some(Coherent)).unwrap();
    let (chunk, block) = (table.step(0).unwrap(), table.step(1).unwrap());
    let mut copy = self::table(4 * CHUNK).copied_from(SwitchEpoch(1));
    assert!(!copy.take(&block), "its chunk has not come");
    for first in [tag(0), tag(4 * CHUNK), BLOCK.tag(GlobalAddr::new(BOB, bytes(1)))] {
        assert!(!copy.take(&Step { first, ..chunk }), "{first:?}");
    }
    assert!(copy.take(&chunk) && copy.take(&block));
    assert!(!copy.take(&Step { owner: BOB, ..chunk }) && !copy.take(&Step { owner: BOB, ..block }));
    assert_eq!(table.step(u64::MAX), None);
    assert_eq!(table.step(u64::from(u32::MAX)), None);
}
