//! State that is there when a run begins.
//!
//! What must always hold: it is a state that the protocol can come to.

use node::Access;
use wire::{BlockTag, GlobalAddr, GlobalStatus, NodeId};

use super::cache::{LineId, LineState};
use super::directory::Entry;
use super::{Gam, Rules};

impl<R: Rules> Gam<R> {
    /// Before the run: memory of a home.
    pub fn preload_alloc(&mut self, home: NodeId, len: u64) -> Option<GlobalAddr> {
        self.machine(home).heap.alloc(len)
    }

    /// Before the run: a node caches these blocks, and has used each later than those before it. Those that its cache has
    /// no capacity for are gone. A home needs no copy of its own blocks.
    ///
    /// Caches hold millions of blocks, and where a block stands in tables has nothing to do with when it was used. So
    /// lines are written in one order and tables in the other: this machine writes neither here and there.
    ///
    /// # Panics
    /// If the node caches something already, or a block is cached on another node in a way that forbids that.
    pub fn preload_cache(&mut self, node: NodeId, copies: &[(GlobalAddr, Access)]) {
        let remote: Vec<_> = copies.iter().filter(|(addr, _)| addr.home() != node).copied().collect();
        let room = self.machine(node).cache.capacity();
        let kept = &remote[remote.len().saturating_sub(room)..];
        let block = self.config.block;
        let lines = kept.iter().map(|(addr, access)| (block.tag(*addr), LineState::of(*access)));
        let first = self.machine(node).cache.fill(lines);
        for (addr, access, at) in by_place(kept, self.config.nodes) {
            self.preload_copy(node, block.tag(addr), access, first + at);
        }
    }

    /// Makes home and index know a line.
    fn preload_copy(&mut self, node: NodeId, tag: BlockTag, access: Access, line: LineId) {
        let block = self.index(tag);
        let home = self.machine(tag.home());
        let entry = home.directory.entry(block);
        let new = match access {
            Access::Shared => {
                assert_ne!(entry.status, GlobalStatus::Modified, "{tag:?} has a writer");
                Entry::shared(entry.copies.with(node))
            }
            Access::Modified => {
                assert_eq!(entry.status, GlobalStatus::Unshared, "{tag:?} has copies");
                Entry::dirty(node)
            }
        };
        home.directory.set(block, new);
        let value = home.memory.copy(block);
        let cache = &mut self.machine(node).cache;
        cache.enter(tag, line);
        cache.blocks.put(line as usize, value);
    }
}

/// These copies with their numbers, those of neighbouring blocks near each other.
fn by_place(copies: &[(GlobalAddr, Access)], nodes: usize) -> Vec<(GlobalAddr, Access, LineId)> {
    /// Bytes whose blocks count as neighbours: their entries fit into a processor's cache.
    const REGION: u64 = 16 << 20;
    let regions = copies.iter().map(|(addr, _)| addr.offset() / REGION).max().map_or(0, |last| last + 1);
    let region =
        |addr: &GlobalAddr| addr.home().index() * regions as usize + (addr.offset() / REGION) as usize;
    let mut places = vec![0_usize; nodes * regions as usize];
    copies.iter().for_each(|(addr, _)| places[region(addr)] += 1);
    let mut before = 0;
    for place in &mut places {
        before += core::mem::replace(place, before);
    }
    let mut order = vec![(GlobalAddr::from_bits(0), Access::Shared, 0); copies.len()];
    for (number, (addr, access)) in (0..).zip(copies) {
        let place = &mut places[region(addr)];
        order[*place] = (*addr, *access, number);
        *place += 1;
    }
    order
}
