//! The node's half of the allocator, one rule at a time.

use node::allocator::{
    Allocator, BlockRange, ChunkRefused, ChunkSize, Freed, NotAnAllocation, NotQuarantined, Outcome,
};
use wire::Discipline::{self, Coherent, LockOnly};
use wire::{BlockSize, BlockTag, GlobalAddr, NodeId};

const HOME: NodeId = NodeId(3);
/// Blocks in a chunk here.
const CHUNK: u64 = 16;
/// Chunks in a memory here.
const CHUNKS: u64 = 64;

fn block(bytes: u64) -> BlockSize {
    BlockSize::new(bytes).unwrap()
}

const KIB4: BlockSize = BlockSize::DEFAULT;

fn tag(number: u64, block: BlockSize) -> BlockTag {
    block.tag(GlobalAddr::new(HOME, number * block.bytes()))
}

fn blocks(first: u64, end: u64) -> BlockRange {
    BlockRange { first: tag(first, KIB4), blocks: end - first }
}

fn empty(block: BlockSize) -> Allocator {
    let chunk = ChunkSize::new(CHUNK * block.bytes()).unwrap();
    Allocator::new(CHUNKS * chunk.bytes(), block, chunk)
}

/// An allocator with the chunk of blocks 16 to 31.
fn with_chunk(block: BlockSize) -> Allocator {
    let mut allocator = empty(block);
    allocator.add_chunk(BlockRange { first: tag(CHUNK, block), blocks: CHUNK }, Coherent).unwrap();
    allocator
}

fn alloc(allocator: &mut Allocator, len: u64) -> (GlobalAddr, Option<BlockRange>) {
    match allocator.alloc(len, HOME, Coherent) {
        Outcome::Done { addr, fresh } => (addr, fresh),
        other => panic!("{len} bytes: {other:?}"),
    }
}

/// Allocates, and the home marks at once.
fn alloc_marked(allocator: &mut Allocator, len: u64) -> GlobalAddr {
    let (addr, fresh) = alloc(allocator, len);
    if let Some(fresh) = fresh {
        allocator.marked(fresh);
    }
    addr
}

fn free_and_reclaim(allocator: &mut Allocator, addr: GlobalAddr) {
    if let Some(range) = allocator.free(addr).unwrap().empty {
        allocator.reclaim(range).unwrap();
    }
}

#[test]
fn an_allocator_without_a_chunk_asks_for_room_for_the_allocation() {
    let mut allocator = empty(KIB4);
    for (len, bytes) in [(1, 4096), (4096, 4096), (4097, 8192), (100 * 4096, 100 * 4096)] {
        assert_eq!(allocator.alloc(len, HOME, Coherent), Outcome::NeedChunk { bytes }, "{len}");
    }
    assert_eq!(allocator.usage(), Default::default());
}

#[test]
fn a_chunk_is_used_for_its_own_home_and_discipline_only() {
    let mut allocator = with_chunk(KIB4);
    let need = Outcome::NeedChunk { bytes: 4096 };
    assert_eq!(allocator.alloc(8, HOME, LockOnly), need);
    assert_eq!(allocator.alloc(8, NodeId(2), Coherent), need);
    assert_eq!(alloc(&mut allocator, 8).0, tag(CHUNK, KIB4).addr());
}

#[test]
fn what_no_home_can_hold_is_too_big_and_what_one_can_is_not() {
    let mut allocator = empty(KIB4);
    let most = (CHUNKS * CHUNK - 1) * 4096;
    assert_eq!(allocator.most(), most, "all of a memory but the reserved block");
    assert_eq!(allocator.alloc(most, HOME, Coherent), Outcome::NeedChunk { bytes: most });
    assert_eq!(allocator.alloc(most + 1, HOME, Coherent), Outcome::TooBig);
    assert_eq!(allocator.alloc(u64::MAX, HOME, Coherent), Outcome::TooBig);
    let mut nothing = Allocator::new(4096, KIB4, ChunkSize::DEFAULT);
    assert_eq!(nothing.alloc(1, HOME, Coherent), Outcome::TooBig, "one block is the reserved one");
}

#[test]
fn objects_up_to_half_a_block_share_blocks_and_longer_ones_get_whole_blocks() {
    // Block size, then lengths and the bytes that they occupy.
    let cases: [(u64, &[(u64, u64)]); 3] = [
        (64, &[(0, 16), (1, 16), (16, 16), (17, 32), (32, 32), (33, 64), (64, 64), (65, 128)]),
        (4096, &[(1, 16), (129, 160), (200, 224), (1300, 2048), (2048, 2048), (2049, 4096), (9000, 12288)]),
        (1 << 20, &[(1, 16), (5000, 5120), (1 << 19, 1 << 19), ((1 << 19) + 1, 1 << 20)]),
    ];
    for (size, cases) in cases {
        for &(len, occupied) in cases {
            let mut allocator = with_chunk(block(size));
            let first = alloc_marked(&mut allocator, len);
            let second = alloc_marked(&mut allocator, len);
            assert_eq!(second.bits() - first.bits(), occupied, "{len} bytes in blocks of {size}");
            assert_eq!(allocator.usage().live_bytes, 2 * occupied);
            assert_eq!(allocator.free(first).unwrap().size, occupied);
            assert_eq!(allocator.free(second).unwrap().size, occupied);
        }
    }
}

#[test]
fn a_block_is_filled_to_its_last_object_before_the_next_one_is_touched() {
    for (size, len, capacity) in [(64, 16, 4), (4096, 16, 256), (4096, 1000, 4), (1 << 20, 16, 65_536)] {
        let mut allocator = with_chunk(block(size));
        let mut fresh = 0;
        for nth in 0..=capacity {
            assert_eq!(fresh, u64::from(nth > 0), "object {nth} of {len} bytes in blocks of {size}");
            let (_, range) = alloc(&mut allocator, len);
            if let Some(range) = range {
                fresh += range.blocks;
                allocator.marked(range);
            }
        }
        assert_eq!(fresh, 2);
        assert_eq!(allocator.usage().live_blocks, 2 * size);
        allocator.assert_invariants();
    }
}

#[test]
fn until_a_fresh_block_is_marked_no_other_allocation_gets_into_it() {
    let mut allocator = with_chunk(KIB4);
    let (first, fresh) = alloc(&mut allocator, 16);
    let (second, other) = alloc(&mut allocator, 16);
    assert_ne!(KIB4.tag(first), KIB4.tag(second));
    assert!(other.is_some(), "it has to be marked too");
    allocator.marked(fresh.unwrap());
    allocator.marked(fresh.unwrap());
    let (third, none) = alloc(&mut allocator, 16);
    assert_eq!((KIB4.tag(third), none), (KIB4.tag(first), None));
    allocator.assert_invariants();
}

#[test]
fn word_of_a_mark_that_concerns_nothing_here_changes_nothing() {
    let mut allocator = with_chunk(KIB4);
    let (large, fresh) = alloc(&mut allocator, 8192);
    let before = allocator.usage();
    for range in [fresh.unwrap(), blocks(20, 21), blocks(0, 1), blocks(5000, 5001)] {
        allocator.marked(range);
    }
    assert_eq!(allocator.usage(), before);
    allocator.assert_invariants();
    assert!(allocator.free(large).is_ok());
}

#[test]
fn an_allocation_whose_mark_was_refused_can_be_freed() {
    let mut allocator = with_chunk(KIB4);
    let (addr, fresh) = alloc(&mut allocator, 16);
    assert_eq!(allocator.free(addr), Ok(Freed { size: 16, empty: fresh }));
    allocator.assert_invariants();
    allocator.reclaim(fresh.unwrap()).unwrap();
    assert_eq!(alloc(&mut allocator, 16), (addr, fresh), "fresh again: it has to be marked again");
}

#[test]
fn an_address_is_freed_once() {
    let mut allocator = with_chunk(KIB4);
    let neighbour = alloc_marked(&mut allocator, 100);
    let small = alloc_marked(&mut allocator, 100);
    let large = alloc_marked(&mut allocator, 10_000);
    for addr in [small, large] {
        assert!(allocator.free(addr).is_ok());
        assert_eq!(allocator.free(addr), Err(NotAnAllocation), "{addr}");
        allocator.assert_invariants();
    }
    assert!(allocator.free(neighbour).is_ok());
    assert_eq!(allocator.free(neighbour), Err(NotAnAllocation), "its whole block is gone");
    assert_eq!((allocator.usage().live_objects, allocator.usage().live_bytes), (0, 0));
}

#[test]
fn addresses_inside_between_and_beyond_allocations_are_not_freed() {
    let mut allocator = with_chunk(KIB4);
    // 4096 / 320 = 12 objects, and 256 bytes that belong to none.
    let small = alloc_marked(&mut allocator, 320);
    let large = alloc_marked(&mut allocator, 3 * 4096);
    let before = allocator.usage();
    for addr in [
        small + 16,
        small + 1,
        small + 320,
        small + 12 * 320,
        large + 16,
        large + 4096,
        large + 3 * 4096,
        tag(CHUNK - 1, KIB4).addr(),
        tag(2 * CHUNK, KIB4).addr(),
        GlobalAddr::new(NodeId(2), small.offset()),
        GlobalAddr::NULL,
        GlobalAddr::from_bits(u64::MAX),
    ] {
        assert_eq!(allocator.free(addr), Err(NotAnAllocation), "{addr}");
    }
    assert_eq!(allocator.usage(), before);
    allocator.assert_invariants();
}

#[test]
fn addresses_around_a_chunk_that_is_cut_short_are_not_freed() {
    let mut allocator = empty(KIB4);
    allocator.add_chunk(blocks(1, 4), Coherent).unwrap();
    let (addr, _) = alloc(&mut allocator, 3 * 4096);
    for outside in [0, 4, CHUNK - 1] {
        assert_eq!(allocator.free(tag(outside, KIB4).addr()), Err(NotAnAllocation), "block {outside}");
    }
    assert_eq!(allocator.free(addr), Ok(Freed { size: 3 * 4096, empty: Some(blocks(1, 4)) }));
}

#[test]
fn the_last_object_of_a_block_empties_it_and_no_other_does() {
    let mut allocator = with_chunk(KIB4);
    let objects: Vec<_> = (0..8).map(|_| alloc_marked(&mut allocator, 512)).collect();
    let (last, others) = objects.split_last().unwrap();
    for addr in others {
        assert_eq!(allocator.free(*addr), Ok(Freed { size: 512, empty: None }));
    }
    assert_eq!(allocator.free(*last), Ok(Freed { size: 512, empty: Some(blocks(16, 17)) }));
}

#[test]
fn an_object_that_is_freed_is_used_again_while_its_block_incarnations() {
    let mut allocator = with_chunk(KIB4);
    let objects: Vec<_> = (0..8).map(|_| alloc_marked(&mut allocator, 512)).collect();
    assert_eq!(allocator.free(objects[3]).unwrap().empty, None);
    assert_eq!(alloc(&mut allocator, 512), (objects[3], None));
}

#[test]
fn quarantined_blocks_are_not_used_before_they_are_reclaimed() {
    let mut allocator = with_chunk(KIB4);
    let all = CHUNK * 4096;
    let (addr, fresh) = alloc(&mut allocator, all);
    assert_eq!(allocator.free(addr), Ok(Freed { size: all, empty: fresh }));
    assert_eq!(allocator.usage().quarantined, all);
    assert_eq!(allocator.alloc(1, HOME, Coherent), Outcome::NeedChunk { bytes: 4096 });
    allocator.reclaim(fresh.unwrap()).unwrap();
    assert_eq!(alloc(&mut allocator, all), (addr, fresh));
}

#[test]
fn only_what_a_free_emptied_is_reclaimed_whole_and_once() {
    let mut allocator = with_chunk(KIB4);
    let (first, _) = alloc(&mut allocator, 3 * 4096);
    let (_, live) = alloc(&mut allocator, 2 * 4096);
    let range = allocator.free(first).unwrap().empty.unwrap();
    let before = allocator.usage();
    let elsewhere = BlockRange { first: KIB4.tag(GlobalAddr::new(NodeId(1), 4096)), blocks: 3 };
    for wrong in [
        BlockRange { blocks: 2, ..range },
        BlockRange { blocks: 4, ..range },
        BlockRange { blocks: u64::MAX, ..range },
        BlockRange { first: range.first.lock_entry(), ..range },
        blocks(17, 19),
        live.unwrap(),
        blocks(25, 26),
        elsewhere,
    ] {
        assert_eq!(allocator.reclaim(wrong), Err(NotQuarantined), "{wrong:?}");
    }
    assert_eq!(allocator.usage(), before);
    assert_eq!(allocator.reclaim(range), Ok(()));
    assert_eq!(allocator.reclaim(range), Err(NotQuarantined));
    allocator.assert_invariants();
}

#[test]
fn what_was_cut_into_every_shape_is_one_chunk_again_when_it_is_free() {
    for size in [64, 4096, 1 << 20] {
        let mut allocator = with_chunk(block(size));
        let lens = [16, size, 2 * size + 1, 16, size / 2, size, 4 * size, 32];
        let addrs: Vec<_> = lens.into_iter().map(|len| alloc_marked(&mut allocator, len)).collect();
        for nth in [3, 0, 6, 2, 7, 5, 1, 4] {
            free_and_reclaim(&mut allocator, addrs[nth]);
            allocator.assert_invariants();
        }
        assert_eq!(alloc(&mut allocator, CHUNK * size).0, tag(CHUNK, block(size)).addr(), "blocks of {size}");
    }
}

#[test]
fn neighbouring_chunks_hold_an_allocation_together_however_they_were_granted() {
    let mut allocator = with_chunk(KIB4);
    allocator.add_chunk(blocks(3 * CHUNK, 4 * CHUNK), Coherent).unwrap();
    assert_eq!(allocator.alloc(20 * 4096, HOME, Coherent), Outcome::NeedChunk { bytes: 20 * 4096 });
    allocator.add_chunk(blocks(2 * CHUNK, 3 * CHUNK), Coherent).unwrap();
    let (addr, fresh) = alloc(&mut allocator, 3 * CHUNK * 4096);
    assert_eq!(fresh, Some(blocks(CHUNK, 4 * CHUNK)));
    allocator.assert_invariants();
    free_and_reclaim(&mut allocator, addr);
    allocator.assert_invariants();
}

#[test]
fn neighbouring_chunks_of_two_disciplines_never_mix() {
    let mut allocator = with_chunk(KIB4);
    allocator.add_chunk(blocks(2 * CHUNK, 3 * CHUNK), LockOnly).unwrap();
    assert_eq!(allocator.alloc(17 * 4096, HOME, Coherent), Outcome::NeedChunk { bytes: 17 * 4096 });
    let mut count = |discipline: Discipline, chunk: u64| {
        for _ in 0..CHUNK {
            let Outcome::Done { addr, .. } = allocator.alloc(4096, HOME, discipline) else { panic!() };
            assert_eq!(addr.offset() / 4096 / CHUNK, chunk, "{discipline:?}");
        }
    };
    count(Coherent, 1);
    count(LockOnly, 2);
}

#[test]
fn entirely_free_chunks_are_given_up_but_for_one_each_home_and_discipline() {
    let mut allocator = with_chunk(KIB4);
    assert_eq!(allocator.surplus(), None, "one is kept");
    allocator.add_chunk(blocks(2 * CHUNK, 5 * CHUNK), Coherent).unwrap();
    allocator.add_chunk(blocks(1, CHUNK), LockOnly).unwrap();
    let (addr, fresh) = alloc(&mut allocator, 17 * 4096);
    assert_eq!(fresh, Some(blocks(CHUNK, 2 * CHUNK + 1)));
    assert_eq!(allocator.surplus(), Some(blocks(4 * CHUNK, 5 * CHUNK)));
    assert_eq!(allocator.surplus(), None, "chunk 3 is the one that is kept");
    let range = allocator.free(addr).unwrap().empty.unwrap();
    assert_eq!(allocator.surplus(), None, "a quarantined block is not free");
    allocator.reclaim(range).unwrap();
    assert_eq!(allocator.surplus(), Some(blocks(3 * CHUNK, 4 * CHUNK)));
    assert_eq!(allocator.surplus(), Some(blocks(2 * CHUNK, 3 * CHUNK)));
    assert_eq!(allocator.surplus(), None);
    assert_eq!(allocator.usage().reserved, (CHUNK + CHUNK - 1) * 4096);
    assert_eq!(allocator.free(tag(3 * CHUNK, KIB4).addr()), Err(NotAnAllocation));
    allocator.assert_invariants();
    allocator.add_chunk(blocks(3 * CHUNK, 4 * CHUNK), LockOnly).unwrap();
    allocator.assert_invariants();
}

#[test]
fn a_grant_that_no_home_would_make_is_refused_without_effect() {
    let mut allocator = with_chunk(KIB4);
    let end = CHUNKS * CHUNK;
    for (range, why) in [
        (blocks(0, CHUNK), ChunkRefused::NotGrantable),
        (blocks(end - 1, end + 1), ChunkRefused::NotGrantable),
        (BlockRange { first: tag(40, KIB4), blocks: 0 }, ChunkRefused::NotGrantable),
        (BlockRange { first: tag(40, KIB4), blocks: u64::MAX }, ChunkRefused::NotGrantable),
        (BlockRange { first: tag(40, KIB4).lock_entry(), blocks: 1 }, ChunkRefused::NotGrantable),
        (blocks(CHUNK, 2 * CHUNK), ChunkRefused::AlreadyHeld),
        (blocks(1, 3 * CHUNK), ChunkRefused::AlreadyHeld),
        (blocks(2 * CHUNK - 1, 3 * CHUNK), ChunkRefused::AlreadyHeld),
    ] {
        for discipline in [Coherent, LockOnly] {
            assert_eq!(allocator.add_chunk(range, discipline), Err(why), "{range:?}");
        }
    }
    assert_eq!(allocator.usage().reserved, CHUNK * 4096);
    allocator.assert_invariants();
}

#[test]
fn the_same_calls_give_the_same_addresses() {
    let run = || {
        let mut allocator = with_chunk(KIB4);
        let mut live: Vec<GlobalAddr> = Vec::new();
        let mut seen = Vec::new();
        for nth in 0..400u64 {
            if nth % 3 == 2 {
                let which = usize::try_from(nth * 7).unwrap() % live.len();
                free_and_reclaim(&mut allocator, live.swap_remove(which));
            } else {
                live.push(alloc_marked(&mut allocator, 16 + nth * 37 % 200));
                seen.push(*live.last().unwrap());
            }
        }
        seen
    };
    assert_eq!(run(), run());
}
