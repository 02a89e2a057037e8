//! State that is there when a run begins.
//!
//! What must always hold: it is a state that the protocol can come to.

use node::Access;
use wire::{GlobalAddr, GlobalStatus, NodeId};

use super::cache::{LineId, State};
use super::directory::Entry;
use super::{Gam, Rules};

impl<R: Rules> Gam<R> {
    /// Before the run: memory of a home.
    pub fn preload_alloc(&mut self, home: NodeId, len: u64) -> Option<GlobalAddr> {
        self.machine(home).heap.alloc(len)
    }

    /// Before the run: a node caches the block that an address is in, and has just used it. If its cache is full, what
    /// it used least recently makes room. A home needs no copy of its own blocks.
    ///
    /// # Panics
    /// If the block is cached already in a way that forbids that.
    pub fn preload(&mut self, node: NodeId, addr: GlobalAddr, access: Access) {
        let tag = self.config.block.tag(addr);
        let (home, block) = (tag.home(), self.index(tag));
        if home == node {
            return;
        }
        let directory = &mut self.machine(home).directory;
        let entry = directory.entry(block);
        let state = match access {
            Access::Shared => {
                assert_ne!(entry.status, GlobalStatus::Modified, "{tag:?} has a writer");
                directory.set(block, Entry::shared(entry.copies.with(node)));
                State::Shared
            }
            Access::Modified => {
                assert_eq!(entry.status, GlobalStatus::Unshared, "{tag:?} has copies");
                directory.set(block, Entry::dirty(node));
                State::Dirty
            }
        };
        let value = self.machine(home).memory.copy(block);
        let cache = &mut self.machine(node).cache;
        assert!(cache.find(tag).is_none(), "{node} has {tag:?}");
        let line = cache.insert(tag, state);
        cache.blocks.put(line as usize, value);
        if let Some(line) = cache.victim() {
            self.preload_eviction(node, line);
        }
    }

    /// What evicting a block comes to when all messages are through.
    fn preload_eviction(&mut self, node: NodeId, line: LineId) {
        let cache = &mut self.machine(node).cache;
        let (tag, value) = (cache.line(line).tag, cache.blocks.copy(line as usize));
        cache.remove(line);
        let block = self.index(tag);
        let home = self.machine(tag.home());
        // The only copy is as good as the home's, if it is not better.
        home.memory.put(block, value);
        let copies = home.directory.entry(block).copies.without(node);
        home.directory.set(block, Entry::shared(copies));
    }
}
