//! What must hold between any two events, looked at from outside: for small runs with [`GamConfig::check`](super::GamConfig).

use std::collections::BTreeMap;

use wire::{BlockTag, GlobalStatus, NodeId};

use super::cache::LineState;
use super::{Gam, Rules};

/// One node's copy of a block.
struct Copy {
    node: NodeId,
    dirty: bool,
    stamp: u32,
}

impl<R: Rules> Gam<R> {
    /// What does not hold, if anything.
    pub fn violation(&self) -> Option<String> {
        let mut blocks: BTreeMap<BlockTag, Vec<Copy>> =
            self.latest.keys().map(|tag| (*tag, Vec::new())).collect();
        for (node, machine) in (0..).map(NodeId).zip(&self.machines) {
            for (line, it) in machine.cache.all() {
                if matches!(it.state, LineState::Shared | LineState::Upgrading | LineState::Dirty) {
                    let stamp = machine.cache.blocks.stamp(line as usize);
                    blocks.entry(it.tag).or_default().push(Copy {
                        node,
                        dirty: it.state == LineState::Dirty,
                        stamp,
                    });
                }
            }
        }
        blocks.iter().find_map(|(tag, copies)| {
            self.one_writer(*tag, copies)
                .or_else(|| self.latest(*tag, copies))
                .or_else(|| self.known(*tag, copies))
        })
    }

    /// One writer and nobody else, or readers; the home's threads are readers unless somebody else may write.
    fn one_writer(&self, tag: BlockTag, copies: &[Copy]) -> Option<String> {
        let writer = copies.iter().find(|copy| copy.dirty)?;
        if let Some(other) = copies.iter().find(|copy| copy.node != writer.node) {
            return Some(format!("{} writes {tag:?}, of which {} has a copy", writer.node, other.node));
        }
        let home = &self.machines[tag.home().index()].directory;
        home.is_current(self.index(tag))
            .then(|| format!("{} writes {tag:?}, which its home may read", writer.node))
    }

    /// All that can be read is what was written last.
    fn latest(&self, tag: BlockTag, copies: &[Copy]) -> Option<String> {
        let latest = self.latest.get(&tag).copied().unwrap_or_default();
        if let Some(copy) = copies.iter().find(|copy| copy.stamp != latest) {
            return Some(format!("{} has {tag:?} as of write {}, not {latest}", copy.node, copy.stamp));
        }
        let (home, block) = (&self.machines[tag.home().index()], self.index(tag));
        let stale = home.directory.is_current(block) && home.memory.stamp(block) != latest;
        stale.then(|| format!("the home has {tag:?} as of write {}, not {latest}", home.memory.stamp(block)))
    }

    /// Between two transitions, the directory knows every copy.
    fn known(&self, tag: BlockTag, copies: &[Copy]) -> Option<String> {
        let (directory, block) = (&self.machines[tag.home().index()].directory, self.index(tag));
        if directory.in_transition(block) {
            return None;
        }
        let entry = directory.entry(block);
        let unknown = copies.iter().find(|copy| {
            let owner = entry.status == GlobalStatus::Modified;
            !entry.copies.contains(copy.node) || owner != copy.dirty && !self.in_change(copy.node, tag)
        })?;
        Some(format!("the directory says {entry:?} of {tag:?}, of which {} has a copy", unknown.node))
    }

    /// Whether the node waits for something about the block.
    fn in_change(&self, node: NodeId, tag: BlockTag) -> bool {
        self.machines[node.index()].busy.contains_key(&tag)
    }

    /// Whether nothing is in flight, and nobody waits.
    pub fn is_quiet(&self) -> bool {
        self.payloads.is_empty()
            && self.channels.iter().all(super::channel::Channel::is_empty)
            && self.threads.iter().all(|thread| thread.served.is_none())
            && self.machines.iter().all(|machine| {
                machine.busy.is_empty()
                    && machine.directory.transitions() == 0
                    && machine.cache.len() <= machine.cache.capacity()
            })
    }

    /// The number of writes that a node's copy of a block has seen, if it has one that it may read.
    pub fn stamp(&self, node: NodeId, addr: wire::GlobalAddr) -> Option<u32> {
        let (tag, machine) = (self.config.block.tag(addr), &self.machines[node.index()]);
        if tag.home() == node {
            let block = self.index(tag);
            return machine.directory.is_current(block).then(|| machine.memory.stamp(block));
        }
        let line = machine.cache.find(tag)?;
        let readable = matches!(machine.cache.line(line).state, LineState::Shared | LineState::Dirty);
        readable.then(|| machine.cache.blocks.stamp(line as usize))
    }
}
