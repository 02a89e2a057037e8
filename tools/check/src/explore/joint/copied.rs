//! Memory with copies: what is true of it, whatever machines think; what must hold; and which nodes have it.
//!
//! What of a dead node's writes may be found is followed as in random runs
//! ([`Survival`]). A memory that is gone with the last node that had it begins anew, empty, when that is announced: what
//! nodes have of it that do not know counts no more.

use std::collections::BTreeMap;
use std::rc::Rc;

use node::{Access, Kept, Placement};
use wire::{BlockTag, Copyset, GlobalAddr, Incarnation, NodeId, SwitchEpoch};

use super::machines::{BLOCK, FIRST};
use super::scope::{JointStep, Scope};
use super::world::{Control, Doing};
use super::{Engine, Outside};
use crate::coherence::survival::{Life, Survival};
use crate::explore::world::World;

/// What is true of memory with copies.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Copied {
    /// The last write to each block, as far as is known.
    pub(super) latest: BTreeMap<BlockTag, u64>,
    /// The epochs in which memories have begun anew.
    pub(super) since: BTreeMap<NodeId, SwitchEpoch>,
    /// What each node had done when it gave up a block lock that others can take.
    pub(super) given_up: BTreeMap<BlockTag, (Life, u64)>,
    /// Writes so far.
    pub(super) writes: u64,
    pub(super) survival: Survival,
}

impl Scope {
    /// A block with copies.
    pub(super) fn block(&self, nth: u8) -> BlockTag {
        let (memory, block) = (self.nodes + nth % self.nodes, nth / self.nodes);
        BLOCK.tag(GlobalAddr::new(NodeId(memory.into()), u64::from(block) * BLOCK.bytes()))
    }
}

impl Control {
    /// Who is to have each memory; which ones are gone, and begin anew.
    pub(super) fn place_memories(&mut self, scope: &Scope) -> Vec<u8> {
        let mut anew = Vec::new();
        let (nodes, copies) = (self.incarnations.len(), scope.copies.into());
        let who = Placement { nodes, copies, up: self.up, draining: Copyset::EMPTY };
        for nth in scope.memories.iter().copied() {
            let (i, kept) = (usize::from(nth), &mut self.memories[usize::from(nth)]);
            if kept.by.is_empty() {
                let is_first = self.view.memories[i].by.is_empty();
                *kept = Kept::anew(Incarnation(kept.life.0 + u32::from(!is_first)), i, &who);
                anew.push(nth);
            }
            kept.place(i, &who);
        }
        self.view.memories.clone_from(&self.memories);
        anew
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

    /// The block is there: somebody has its memory, and has had it since it was allocated.
    pub(super) fn is_kept(&self, outside: &Outside, nth: u8) -> bool {
        let (copied, tag) = (self.copied(outside), self.scope.block(nth));
        copied.latest.contains_key(&tag) && !copied.since.contains_key(&tag.home())
    }

    /// Nobody who is up has these memories: they begin anew in this epoch, empty.
    pub(super) fn begin_anew(&mut self, outside: &mut Outside, memories: &[u8], epoch: SwitchEpoch) {
        if !memories.is_empty() {
            let scope = self.scope;
            self.change(outside, |copied| {
                for nth in memories {
                    let (root, second) = (scope.block(*nth), scope.block(*nth + scope.nodes));
                    copied.since.insert(root.home(), epoch);
                    copied.latest.insert(root, 0);
                    copied.latest.remove(&second);
                    [root, second].into_iter().for_each(|tag| copied.survival.zeroed(tag));
                    copied.given_up.remove(&root.lock_entry());
                }
            });
        }
    }

    /// What a node in this state has of a block counts: it is of the memory as it is, and no thread still has what was before pinned.
    fn has_of_now(&self, outside: &Outside, node: usize, local: u32, tag: BlockTag) -> bool {
        let copied = self.copied(outside);
        let since = copied.since.get(&tag.home()).copied().unwrap_or(FIRST);
        let mut threads = self.scope.threads.iter().zip(&outside.threads);
        let on_paper = threads.any(|(plan, thread)| {
            let turn = plan.does.get(usize::from(thread.turn)).copied();
            usize::from(plan.node) == node
                && matches!(thread.doing, Doing::Pinned { on_paper: true, .. })
                && turn.and_then(JointStep::copied).is_some_and(|nth| self.scope.block(nth) == tag)
        });
        self.facts_of(node, local).epoch >= since && !on_paper
    }

    /// A node hears of an epoch in which this memory is another one than the one that it knows.
    pub(super) fn is_anew_for(&self, world: &World, node: usize, turn: Option<JointStep>) -> bool {
        let outside = self.outside(world);
        let nth = turn.and_then(JointStep::copied);
        nth.and_then(|nth| self.copied(&outside).since.get(&self.scope.block(nth).home()))
            .is_some_and(|since| self.facts(world, node).epoch < *since)
    }

    /// A thread has a block pinned, and reads or writes it: which one, and what it writes.
    pub(super) fn access_copied(
        &mut self,
        world: &World,
        outside: &mut Outside,
        thread: usize,
        turn: JointStep,
    ) -> Result<(BlockTag, Option<u64>), String> {
        let tag = self.scope.block(turn.copied().expect("the caller has looked"));
        let node = usize::from(self.scope.threads[thread].node);
        let counts = self.has_of_now(&self.outside(world), node, world.nodes[node], tag);
        if matches!(turn, JointStep::WriteCopied(_)) {
            let life = self.life(world, node);
            let write = self.change(outside, |copied| {
                copied.writes += 1;
                if counts {
                    copied.latest.insert(tag, copied.writes);
                    copied.survival.wrote(tag, copied.writes, life);
                }
                copied.writes
            });
            return Ok((tag, Some(write)));
        }
        let latest = self.copied(outside).latest.get(&tag).copied();
        match self.facts(world, node).cached.iter().find(|(it, ..)| *it == tag) {
            Some((.., stamp)) if Some(*stamp) == latest || !counts => Ok((tag, None)),
            found => Err(format!("thread {thread} reads {found:?}, and the last write is {latest:?}")),
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

    /// A thread has this memory now.
    pub(super) fn allocated_copied(
        &mut self,
        outside: &mut Outside,
        nth: u8,
        addr: GlobalAddr,
    ) -> Result<(), String> {
        let tag = self.scope.block(nth);
        if addr != tag.addr() {
            return Err(format!("{addr} is allocated, which there is not"));
        }
        self.change(outside, |copied| {
            copied.latest.insert(tag, 0);
            copied.survival.zeroed(tag);
        });
        Ok(())
    }

    /// A thread releases the block lock that it holds.
    pub(super) fn give_up(&mut self, world: &World, outside: &mut Outside, thread: usize, turn: JointStep) {
        let life = self.life(world, self.node_of(thread));
        let lock = self.scope.block(turn.copied().expect("it has one")).lock_entry();
        self.change(outside, |copied| copied.given_up.insert(lock, (life, copied.writes)));
    }

    /// A thread gets a block lock: nobody else holds it, and what was written before it was released is seen.
    pub(super) fn take_up(
        &mut self,
        world: &World,
        outside: &mut Outside,
        thread: usize,
    ) -> Result<(), String> {
        let turn = |at: usize| self.turn_of(outside, at).and_then(JointStep::copied);
        let nth = turn(thread).expect("it has one");
        let holds =
            |at: usize| turn(at) == Some(nth) && matches!(outside.threads[at].doing, Doing::Holding(_));
        if let Some(other) = (0..self.threads()).find(|at| holds(*at))
            && self.is_kept(outside, nth)
        {
            return Err(format!("threads {thread} and {other} hold the lock of block {nth}"));
        }
        let lock = self.scope.block(nth).lock_entry();
        let (me, control) = (self.node_of(thread), self.control(world));
        let (up, incarnations) = (control.up, control.incarnations.clone());
        self.change(outside, |copied| match copied.given_up.remove(&lock) {
            // It has executed what it was asked to.
            Some(((node, incarnation), upto))
                if node.index() != me && up.contains(node) && incarnations[node.index()] == incarnation =>
            {
                copied.survival.promised((node, incarnation), upto)
            }
            _ => Ok(()),
        })
    }

    /// What a node has in its cache is found: what was written later died with its writer.
    pub(super) fn find_copies(
        &mut self,
        outside: &mut Outside,
        node: usize,
        local: u32,
    ) -> Result<(), String> {
        let cached = self.facts_of(node, local).cached.iter().copied();
        let cached: Vec<_> = cached.filter(|(tag, ..)| self.has_of_now(outside, node, local, *tag)).collect();
        if cached.is_empty() {
            return Ok(());
        }
        let control = self.own.controls.get(outside.more.control);
        let life = (NodeId(u16::try_from(node).expect("few nodes")), control.incarnations[node]);
        self.change(outside, |copied| {
            for (tag, _, stamp) in cached {
                let latest = copied.latest.entry(tag).or_default();
                copied.survival.found(tag, (stamp, *latest), Some(life))?;
                *latest = stamp;
            }
            Ok(())
        })
    }

    /// In every state: every copy that can be hit is the latest, and one that may be written is the only one.
    pub(super) fn check_copied(&self, world: &World, outside: &Outside) -> Result<(), String> {
        let up = self.control(world).up;
        for (tag, latest) in &self.copied(outside).latest {
            let knows =
                |node: &NodeId| self.has_of_now(outside, node.index(), world.nodes[node.index()], *tag);
            let copies = up.iter().filter(knows).flat_map(|node| {
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

    /// A node dies, with what it has of memories.
    pub(super) fn lose(&mut self, outside: &mut Outside, control: &mut Control, node: NodeId) {
        if self.scope.copies < 2 {
            return;
        }
        for kept in &mut control.memories {
            kept.by = kept.by.without(node);
        }
        let life = (node, control.incarnations[node.index()]);
        self.change(outside, |copied| copied.survival.died(life));
    }
}
