//! State that is there when a run begins.
//!
//! What must always hold: it is a state that the protocol can come to.

use node::Access;
use wire::{GlobalAddr, GlobalStatus, NodeId};

use super::cache::State;
use super::directory::Entry;
use super::{Gam, Rules};

impl<R: Rules> Gam<R> {
    /// Before the run: memory of a home.
    pub fn preload_alloc(&mut self, home: NodeId, len: u64) -> Option<GlobalAddr> {
        self.machine(home).heap.alloc(len)
    }

    /// Before the run: a node caches the block that an address is in, and has just used it. A home needs no copy of
    /// its own blocks.
    ///
    /// # Panics
    /// If the block is cached already in a way that forbids that, or the cache is full.
    pub fn preload(&mut self, node: NodeId, addr: GlobalAddr, access: Access) {
        let tag = self.config.block.tag(addr);
        let (home, block) = (tag.home(), self.index(tag));
        if home == node {
            return;
        }
        let directory = &mut self.machine(home).directory;
        let entry = directory.entry(block);
        match access {
            Access::Shared => {
                assert_ne!(entry.status, GlobalStatus::Modified, "{tag:?} has a writer");
                directory.set(block, Entry::shared(entry.copies.with(node)));
            }
            Access::Modified => {
                assert_eq!(entry.status, GlobalStatus::Unshared, "{tag:?} has copies");
                directory.set(block, Entry::dirty(node));
            }
        }
        let value = self.machine(home).memory.copy(block);
        let cache = &mut self.machine(node).cache;
        assert!(
            cache.find(tag).is_none() && cache.len() < cache.capacity(),
            "there is room for {tag:?} on {node}"
        );
        let line = cache.insert(
            tag,
            match access {
                Access::Shared => State::Shared,
                Access::Modified => State::Dirty,
            },
        );
        cache.blocks.put(line as usize, value);
    }
}
