//! What must hold after every event, seen from outside: every machine's own invariants; one writer or readers only; a
//! copy that a hit could read is the latest (Concordia, section 5.1.2).

use std::collections::BTreeMap;

use node::Access;
use wire::{BlockSize, BlockTag, NodeId, Rules};

use super::FlowCc;
use super::store::StoreOf;
use crate::system::ThreadId;

/// What was written last.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// The number of the last write to every block; none: never written, or zeroed since.
    writes: BTreeMap<BlockTag, u32>,
    /// That number when a thread's read began.
    since: BTreeMap<ThreadId, u32>,
}

impl Latest {
    pub(super) fn zeroed(&mut self, first: BlockTag, count: u64, block: BlockSize) {
        let last = BlockTag::from_bits(first.bits() + (count << block.shift()));
        let gone: Vec<BlockTag> = self.writes.range(first..last).map(|(tag, _)| *tag).collect();
        for tag in gone {
            self.writes.remove(&tag);
        }
    }

    /// An access has shown, or left, a block with this number.
    pub(super) fn accessed(&mut self, tag: BlockTag, access: Access, stamp: u32) {
        match access {
            Access::Modified => {
                self.writes.insert(tag, stamp);
            }
            Access::Shared => assert_eq!(stamp, self.of(tag), "a read of {tag:?} sees the last write"),
        }
    }

    /// A thread begins to read.
    pub(super) fn reads(&mut self, thread: ThreadId, tag: BlockTag) {
        self.since.insert(thread, self.of(tag));
    }

    /// A PEEK has shown a block with this number. Others may have written since it was answered, but not before it was asked.
    pub(super) fn peeked(&self, thread: ThreadId, tag: BlockTag, stamp: u32) {
        let (since, now) = (self.since[&thread], self.of(tag));
        assert!((since..=now).contains(&stamp), "{tag:?} had {since}, has {now}, and {stamp} was read");
    }

    fn of(&self, tag: BlockTag) -> u32 {
        self.writes.get(&tag).copied().unwrap_or(0)
    }
}

impl<R: Rules> FlowCc<R> {
    /// # Panics
    /// If something does not hold.
    pub(super) fn check_properties(&mut self) {
        self.switch.invariants();
        let (block, contents) = (self.config.block, self.config.contents);
        for (index, node) in self.nodes.iter().enumerate() {
            let me = NodeId(u16::try_from(index).expect("at most 64 nodes"));
            node.invariants(&StoreOf {
                all: &mut self.memories,
                homes: &mut self.homes,
                me,
                block,
                contents,
                latest: None,
            });
        }
        let mut seen: BTreeMap<BlockTag, (usize, bool)> = BTreeMap::new();
        for (index, memory) in self.memories.iter().enumerate() {
            for (tag, access, stamp) in memory.cache.published() {
                if let Some(latest) = &self.latest {
                    assert_eq!(
                        stamp,
                        latest.of(tag),
                        "node {index} has {tag:?} {access:?} with an old write"
                    );
                }
                let (copies, writable) = seen.entry(tag).or_default();
                *copies += 1;
                *writable |= access == Access::Modified;
                assert!(*copies == 1 || !*writable, "{tag:?} may be written, and has {copies} copies");
            }
        }
    }
}
