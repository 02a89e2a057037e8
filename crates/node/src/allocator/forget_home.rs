//! A home is gone, and with it whatever its chunks held.

use alloc::vec::Vec;

use wire::NodeId;

use super::held_chunks::Start;
use super::node_side::Allocator;
use super::slabs::Partial;

impl Allocator {
    /// Lets go of all chunks of a home: the memory that they were is no more. Addresses in them are no
    /// allocations from here on.
    pub fn forget_home(&mut self, home: NodeId) {
        for index in 0..self.spaces.len() {
            if self.spaces[index].home == home {
                self.forget_space(index);
            }
        }
    }

    fn forget_space(&mut self, index: usize) {
        let Self { geometry, slabs, chunks, spaces, usage, .. } = self;
        let bytes_of = |blocks: u64| blocks << geometry.block.shift();
        let mut held = Vec::new();
        for (chunk, it) in chunks.of_space(index) {
            held.push(chunk);
            usage.reserved -= bytes_of(it.blocks.end - it.blocks.start);
            for (_, start) in it.starts(*geometry) {
                match start {
                    Start::Nothing => {}
                    Start::Slab(slab) => {
                        let (objects, bytes) = slabs.abandon(slab);
                        usage.live_objects -= objects;
                        usage.live_bytes -= bytes;
                        usage.live_blocks -= bytes_of(1);
                    }
                    Start::Blocks(blocks) => {
                        usage.live_objects -= 1;
                        usage.live_bytes -= bytes_of(u64::from(blocks));
                        usage.live_blocks -= bytes_of(u64::from(blocks));
                    }
                    Start::Quarantined(blocks) => usage.quarantined -= bytes_of(u64::from(blocks)),
                }
            }
        }
        let space = &mut spaces[index];
        for chunk in held {
            chunks.remove(space.home, chunk);
        }
        space.idle.clear();
        space.free = Default::default();
        // The slabs that it listed are gone.
        space.partial = Partial::default();
    }
}
