//! Memory with copies: what is true of it, whatever machines think; what must hold; and which nodes have it.
//!
//! Threads use the first block of each memory. What of a dead node's writes may be found is followed as in random runs
//! ([`Survival`]). A memory that is gone with the last node that had it is looked at no more.

use std::collections::BTreeMap;
use std::rc::Rc;

use node::{Access, Kept, Placement};
use wire::{BlockTag, Copyset, GlobalAddr, Incarnation, NodeId};

use super::machines::BLOCK;
use super::scope::{JointStep, Scope};
use super::world::Control;
use super::{Engine, Outside};
use crate::coherence::survival::{Life, Survival};
use crate::explore::world::World;

/// What is true of memory with copies.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Copied {
    /// The last write to each block, as far as is known.
    pub(super) latest: BTreeMap<BlockTag, u64>,
    /// Writes so far.
    pub(super) writes: u64,
    pub(super) survival: Survival,
}

impl Scope {
    /// The first block of a memory with copies.
    pub(super) fn root(&self, nth: u8) -> BlockTag {
        BLOCK.tag(GlobalAddr::new(NodeId(u16::from(self.nodes) + u16::from(nth)), 0))
    }
}

impl Control {
    /// Who is to have each memory.
    pub(super) fn place_memories(&mut self, scope: &Scope) {
        let (nodes, copies) = (self.incarnations.len(), scope.copies.into());
        let who = Placement { nodes, copies, up: self.up, draining: Copyset::EMPTY };
        for nth in scope.memories.iter().copied().map(usize::from) {
            let kept = &mut self.memories[nth];
            if kept.by.is_empty() {
                let is_first = self.view.memories[nth].by.is_empty();
                *kept = Kept::anew(Incarnation(kept.life.0 + u32::from(!is_first)), nth, &who);
            }
            kept.place(nth, &who);
        }
        self.view.memories.clone_from(&self.memories);
    }
}

impl Engine {
    pub(super) fn copied(&self, outside: &Outside) -> &Rc<Copied> {
        self.own.copied.get(outside.more.copied)
    }

    /// Changes what is true.
    fn change<T>(&mut self, outside: &mut Outside, change: impl FnOnce(&mut Copied) -> T) -> T {
        let mut copied = Copied::clone(self.copied(outside));
        let result = change(&mut copied);
        // Only counted.
        copied.survival.lost = 0;
        outside.more.copied = self.own.copied.intern(copied).0;
        result
    }

    fn life(&self, world: &World, node: usize) -> Life {
        let id = NodeId(u16::try_from(node).expect("few nodes"));
        (id, self.control(world).incarnations[node])
    }

    /// Somebody has this memory.
    pub(super) fn is_kept(&self, outside: &Outside, nth: u8) -> bool {
        self.copied(outside).latest.contains_key(&self.scope.root(nth))
    }

    /// A thread has a block pinned, and reads or writes it: which one, and what it writes.
    pub(super) fn access_copied(
        &mut self,
        world: &World,
        outside: &mut Outside,
        thread: usize,
        turn: JointStep,
    ) -> Result<(BlockTag, Option<u64>), String> {
        let tag = self.scope.root(turn.copied().expect("the caller has looked"));
        let node = usize::from(self.scope.threads[thread].node);
        if matches!(turn, JointStep::WriteCopied(_)) {
            let life = self.life(world, node);
            let write = self.change(outside, |copied| {
                copied.writes += 1;
                if let Some(latest) = copied.latest.get_mut(&tag) {
                    *latest = copied.writes;
                    copied.survival.wrote(tag, copied.writes, life);
                }
                copied.writes
            });
            return Ok((tag, Some(write)));
        }
        let latest = self.copied(outside).latest.get(&tag).copied();
        let cached = self.facts(world, node).cached.iter().find(|(it, ..)| *it == tag);
        match (cached, latest) {
            (Some((.., stamp)), Some(latest)) if *stamp != latest => {
                Err(format!("thread {thread} reads write {stamp} of {tag:?}, and the last one is {latest}"))
            }
            (None, Some(_)) => Err(format!("thread {thread} has {tag:?} pinned, and it is not there")),
            _ => Ok((tag, None)),
        }
    }

    /// What this thread's node had written up to here is safe.
    pub(super) fn promise(
        &mut self,
        world: &World,
        outside: &mut Outside,
        thread: usize,
        upto: u64,
    ) -> Result<(), String> {
        let life = self.life(world, self.node_of(thread));
        self.change(outside, |copied| copied.survival.promised(life, upto))
    }

    /// What a node has in its cache is found: what was written later died with its writer.
    pub(super) fn find_copies(
        &mut self,
        outside: &mut Outside,
        node: usize,
        local: u32,
    ) -> Result<(), String> {
        let cached = self.facts_of(node, local).cached.clone();
        if cached.is_empty() {
            return Ok(());
        }
        let control = self.own.controls.get(outside.more.control);
        let life = (NodeId(u16::try_from(node).expect("few nodes")), control.incarnations[node]);
        self.change(outside, |copied| {
            for (tag, _, stamp) in cached {
                if let Some(latest) = copied.latest.get_mut(&tag) {
                    copied.survival.found(tag, stamp, Some(life))?;
                    *latest = stamp;
                }
            }
            Ok(())
        })
    }

    /// In every state: every copy that can be hit is the latest, and one that may be written is the only one.
    pub(super) fn check_copied(&self, world: &World, outside: &Outside) -> Result<(), String> {
        let up = self.control(world).up;
        for (tag, latest) in &self.copied(outside).latest {
            let copies = up.iter().flat_map(|node| {
                let cached = self.facts(world, node.index()).cached.iter();
                cached.filter(|(it, ..)| it == tag).map(move |(_, access, stamp)| (node, *access, *stamp))
            });
            let copies: Vec<_> = copies.collect();
            if let Some((node, _, stamp)) = copies.iter().find(|(.., stamp)| stamp != latest) {
                return Err(format!("{node} has write {stamp} of {tag:?}, and the last one is {latest}"));
            }
            if copies.len() > 1 && copies.iter().any(|(_, access, _)| *access == Access::Modified) {
                return Err(format!("{tag:?} is somewhere else, too, and may be written: {copies:?}"));
            }
        }
        Ok(())
    }

    /// What nodes have copied since the epoch began.
    pub(super) fn hear_of_copies(&self, world: &World, control: &mut Control) {
        for node in control.up.iter() {
            let facts = self.facts(world, node.index());
            if facts.epoch == control.view.epoch {
                for nth in facts.whole.iter() {
                    let kept = &mut control.memories[nth.index()];
                    kept.by = kept.by.with(node);
                }
            }
        }
    }

    /// A node dies, with what it has of memories, and maybe with the last that there is of them.
    pub(super) fn lose(&mut self, outside: &mut Outside, control: &mut Control, node: NodeId) {
        if self.scope.copies < 2 {
            return;
        }
        for kept in &mut control.memories {
            kept.by = kept.by.without(node);
        }
        let scope = self.scope;
        let gone = scope.memories.iter().filter(|nth| control.memories[usize::from(**nth)].by.is_empty());
        let gone: Vec<BlockTag> = gone.map(|nth| scope.root(*nth)).collect();
        let life = (node, control.incarnations[node.index()]);
        self.change(outside, |copied| {
            copied.survival.died(life);
            for tag in gone {
                copied.latest.remove(&tag);
                copied.survival.zeroed(tag);
            }
        });
    }
}
