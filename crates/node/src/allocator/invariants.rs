//! What must always hold in the node's half, in one function.

use alloc::vec::Vec;
use core::ops::Range;

use super::held_chunks::Start;
use super::node_side::{Allocator, Space, Usage};
use super::range::BlockRange;
use sorted::Set;

impl Allocator {
    /// Checks the whole allocator against itself: every block of every chunk is in exactly one slab,
    /// allocation, quarantined range or free run, and the counts are those of what is there. Slow: it looks at
    /// every block.
    ///
    /// # Panics
    /// If something is wrong: a bug in rackmem.
    pub fn assert_invariants(&self) {
        let mut counted = Usage::default();
        for (index, space) in self.spaces.iter().enumerate() {
            self.assert_space(index, space, &mut counted);
        }
        assert_eq!(counted, self.usage, "counted and kept");
    }

    fn assert_space(&self, index: usize, space: &Space, counted: &mut Usage) {
        let block = self.geometry.block;
        let mut runs: Vec<Range<u64>> = space.free.iter().collect();
        let mut with_room = Set::new();
        for (_, held) in self.chunks.of_space(index) {
            counted.reserved += (held.blocks.end - held.blocks.start) << block.shift();
            for (number, start) in held.starts(self.geometry) {
                let addr = BlockRange::from_numbers(space.home, number..number + 1, block).first.addr();
                let (blocks, objects, bytes) = match start {
                    Start::Nothing => unreachable!("nothing starts there"),
                    Start::Slab(slab) => {
                        let (objects, bytes) = self.slabs.assert_slab(slab, addr);
                        if self.slabs.has_capacity(slab) {
                            with_room.insert(slab);
                        }
                        (1, objects, bytes)
                    }
                    Start::Blocks(blocks) => (u64::from(blocks), 1, u64::from(blocks) << block.shift()),
                    Start::Quarantined(blocks) => (u64::from(blocks), 0, 0),
                };
                runs.push(number..number + blocks);
                counted.live_objects += objects;
                counted.live_bytes += bytes;
                let total = if objects > 0 { &mut counted.live_blocks } else { &mut counted.quarantined };
                *total += blocks << block.shift();
            }
        }
        let listed = self.slabs.assert_lists(&space.partial);
        assert_eq!(listed.len(), with_room.len(), "slabs are listed once");
        assert!(listed.iter().all(|slab| with_room.contains(slab)), "slabs with room are listed");
        space.free.assert_invariants();
        self.assert_tiled(index, space, runs);
    }

    /// Runs of all kinds cover the chunks of a space exactly.
    fn assert_tiled(&self, index: usize, space: &Space, mut runs: Vec<Range<u64>>) {
        runs.sort_by_key(|run| run.start);
        let mut runs = runs.into_iter();
        let mut rest = 0..0;
        for (chunk, held) in self.chunks.of_space(index) {
            let mut at = held.blocks.start;
            while at < held.blocks.end {
                if rest.is_empty() {
                    rest = runs.next().expect("some block is in no run");
                }
                assert_eq!(rest.start, at, "a run starts where the one before it ends");
                at = rest.end.min(held.blocks.end);
                rest.start = at;
            }
            let free = space.free.iter().map(|run| overlap(&run, &held.blocks)).sum::<u64>();
            assert_eq!(held.busy + free, held.blocks.end - held.blocks.start, "free blocks of chunk {chunk}");
            assert_eq!(space.idle.contains(&chunk), held.busy == 0, "chunk {chunk} is idle");
        }
        assert!(rest.is_empty() && runs.next().is_none(), "a run leaves the chunks");
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}
