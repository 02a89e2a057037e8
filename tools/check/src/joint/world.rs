//! The world of all of them: every packet and every deadline goes to the machines of a whole node.

use node::{Effect, LockEffect, LockMessage, LockNode, Message, Node, RackNode};
use switch::Chip;
use wire::{AllRules, Discipline, Endpoint, GlobalAddr, Nanos, NodeId, Rules};

use super::{JointPlan, Plan};
use crate::chains::{self, Chains};
use crate::coherence::{self, Blocks, PlainStore};
use crate::locks::{self, Locks, PlainLocks};
use crate::rack::{self, Bench, Known, Place, Sum, World};
use crate::regions::{self, Regions};

/// What is on the network.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// About blocks and allocations.
    Block(Message),
    /// About locks.
    Lock(LockMessage),
    /// About words, objects and chains.
    Verb(regions::Message),
}

impl From<Message> for Packet {
    fn from(message: Message) -> Self {
        Self::Block(message)
    }
}

impl From<LockMessage> for Packet {
    fn from(message: LockMessage) -> Self {
        Self::Lock(message)
    }
}

impl From<regions::Message> for Packet {
    fn from(message: regions::Message) -> Self {
        Self::Verb(message)
    }
}

/// What all of them did.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Blocks.
    pub blocks: coherence::Seen,
    /// Locks.
    pub locks: locks::Seen,
    /// Words and objects.
    pub words: regions::Seen,
    /// Chains.
    pub chains: chains::Seen,
}

impl Sum for Seen {
    fn add(&mut self, other: &Self) {
        self.blocks.add(&other.blocks);
        self.locks.add(&other.locks);
        self.words.add(&other.words);
        self.chains.add(&other.chains);
    }
}

/// The number of the first thread that uses words, to the allocator.
const WORDS: usize = 1 << 20;
/// And of the first one that uses chains.
const CHAINS: usize = 1 << 21;

/// Blocks, locks, words, objects and chains.
pub struct Joint<R: Rules = AllRules> {
    /// The blocks, with the allocator and every node's memory.
    pub blocks: Blocks<R>,
    /// The locks. Their memory is that of the blocks: it is here while one of their machines runs.
    pub locks: Locks<R>,
    /// Words and objects.
    pub words: Regions<R>,
    /// Stores of chains.
    pub chains: Chains<R>,
}

impl<R: Rules> Joint<R> {
    /// Lends the nodes' memory to the locks, and takes it back.
    fn with_locks<T>(&mut self, action: impl FnOnce(&mut Self) -> T) -> T {
        self.pass_memory();
        let result = action(self);
        self.pass_memory();
        result
    }

    fn pass_memory(&mut self) {
        for ((_, blocks), (_, locks)) in self.blocks.nodes.iter_mut().zip(&mut self.locks.nodes) {
            std::mem::swap(&mut blocks.home, &mut locks.home);
        }
    }

    /// Something is done to all machines of a node that writes nothing to its memory but blocks.
    fn call_all(
        &mut self,
        bench: &mut Bench<Packet>,
        (node, is_epoch): (NodeId, bool),
        input: impl FnOnce(
            RackNode<'_, R>,
            node::Moment,
            (&mut PlainStore, &mut Vec<Effect>),
            (&mut PlainLocks, &mut Vec<LockEffect>),
        ),
    ) -> Result<(), String> {
        let Self { blocks, locks, .. } = self;
        let (machine, lock_store) = &mut locks.nodes[node.index()];
        let mut lock_out = std::mem::take(&mut locks.out);
        blocks.call(bench, node, |node, at, store, out| {
            input(RackNode { node, locks: machine }, at, (store, out), (lock_store, &mut lock_out));
        });
        assert!(lock_store.home.is_empty(), "locks have written without the node's memory");
        let is_silent = lock_out.is_empty() && !is_epoch;
        locks.out = lock_out;
        // Where nothing was due, nothing has changed.
        if !is_silent {
            self.with_locks(|both| both.locks.drain(bench, (node, None)))?;
        }
        self.settle_frees(bench)
    }

    /// Threads inside of locks, and those that have ended regions, have asked for frees, or been told of them. And what has come of
    /// chains is looked at.
    fn settle_frees(&mut self, bench: &mut Bench<Packet>) -> Result<(), String> {
        if !self.words.for_chains.is_empty() {
            self.chains.take_in(bench, &mut self.blocks, &mut self.words);
        }
        while let Some((thread, addr)) = self.locks.next_free() {
            let node = self.locks.node_of(thread);
            if !self.blocks.free_for(bench, (node, thread), addr) {
                self.with_locks(|both| both.locks.on_free_told(bench, thread, None))?;
            }
        }
        while let Some((thread, addr)) = self.words.next_free() {
            let node = self.words.node_of(thread);
            if !self.blocks.free_for(bench, (node, WORDS + thread), addr) {
                self.words.on_free_told(bench, thread, None);
            }
        }
        for (thread, outcome) in std::mem::take(&mut self.blocks.told) {
            if let Some(thread) = thread.checked_sub(CHAINS) {
                let Self { blocks, words, chains, .. } = self;
                chains.on_told(bench, blocks, words, (thread, outcome));
                continue;
            }
            if let Some(thread) = thread.checked_sub(WORDS) {
                self.words.on_free_told(bench, thread, Some(outcome));
                continue;
            }
            self.with_locks(|both| both.locks.on_free_told(bench, thread, Some(outcome)))?;
        }
        Ok(())
    }

    /// Nobody has a copy of a block that obeys another discipline.
    fn check_disciplines(&self, bench: &Bench<Packet>) -> Result<(), String> {
        for node in bench.touched().nodes.iter().filter(|node| bench.control.is_up(Some(*node))) {
            for (tag, access) in self.blocks.nodes[node.index()].1.frames.iter().filter_map(|it| it.published)
            {
                let home = tag.home();
                if !bench.control.remembers(home, bench.control.known_incarnation(node, home)) {
                    continue;
                }
                let discipline = self.blocks.nodes[home.index()].0.discipline_of(tag);
                if discipline.is_some_and(|discipline| discipline != Discipline::Coherent) {
                    return Err(format!("{node} has {tag:?} as {access:?}, which obeys {discipline:?}"));
                }
            }
        }
        Ok(())
    }
}

impl<R: Rules> World<Packet> for Joint<R> {
    type Plan = JointPlan;
    type Message = Packet;
    type Seen = Seen;

    type Rules = R;

    fn new(rules: R, plan: &Plan) -> Self {
        let rack::Plan { rack, world } = *plan;
        let blocks = <Blocks<R> as World<Packet>>::new(rules, &rack::Plan { rack, world: world.blocks });
        let mut locks = <Locks<R> as World<Packet>>::new(rules, &rack::Plan { rack, world: world.locks });
        let block = blocks.nodes[0].0.config().block.bytes();
        locks.allocate_for_real((0..world.locks.locks).map(|at| {
            GlobalAddr::new(NodeId((at % rack.nodes) as u16), block * (1 + at / rack.nodes) as u64)
        }));
        let words = Regions::new(rules, &rack, &world.words);
        let chains = Chains::new(rules, &rack, &world.chains, CHAINS);
        Self { blocks, locks, words, chains }
    }

    fn deliver(&mut self, bench: &mut Bench<Packet>, to: Place, message: &Packet) -> Result<(), String> {
        match (message, to) {
            (Packet::Block(message), Some(node)) => {
                let Self { blocks, locks, words, .. } = self;
                let (machine, _) = &mut locks.nodes[node.index()];
                let mut told = false;
                blocks.arrives(bench, to, message, |node, at, message, store, out| {
                    let awaited = machine.awaited_frees();
                    RackNode { node, locks: machine }.on_packet(at, message, store, out);
                    told = !node.ended().is_empty() || machine.awaited_frees() != awaited;
                });
                if told {
                    locks.touch(to, None);
                }
                if !blocks.nodes[node.index()].0.ended().is_empty() {
                    words.on_blocks_ended(blocks, node, bench.control.incarnation(node));
                }
                if !matches!(message.packet.to, Endpoint::HomeAgent(_)) {
                    return self.settle_frees(bench);
                }
                let block = blocks.nodes[node.index()].0.config().block;
                locks.compare_allocations(bench, node, |region| {
                    blocks.nodes[node.index()].0.discipline_of(block.tag(region)) == Some(Discipline::Locked)
                });
            }
            (Packet::Block(message), None) => self.blocks.arrives(bench, to, message, Node::on_packet),
            (Packet::Lock(message), Some(node)) => self.with_locks(|both| {
                let Self { blocks, locks, .. } = both;
                let (machine, _) = &mut blocks.nodes[node.index()];
                locks.arrives(bench, to, message, |locks, at, message, store, out| {
                    RackNode { node: machine, locks }.on_lock_packet(at, message, store, out);
                })
            })?,
            (Packet::Lock(message), None) => self.locks.arrives(bench, to, message, LockNode::on_packet)?,
            (Packet::Verb(message), to) => {
                let is_for_nic = self.chains.arrives(bench, to, message);
                if let (true, Some(node)) = (is_for_nic, to) {
                    self.words.arrives(bench, &mut self.blocks, node, message);
                }
            }
        }
        self.settle_frees(bench)
    }

    fn second_passes(&self) -> usize {
        World::<Packet>::second_passes(&self.blocks) + World::<Packet>::second_passes(&self.locks)
    }

    fn second_pass(&mut self, bench: &mut Bench<Packet>) {
        let blocks = World::<Packet>::second_passes(&self.blocks);
        if bench.random.below(World::<Packet>::second_passes(self)) < blocks {
            self.blocks.second_pass(bench);
        } else {
            self.locks.second_pass(bench);
        }
    }

    fn act(&mut self, bench: &mut Bench<Packet>) -> Result<bool, String> {
        let chains_first = self.chains.turns() > 0 && bench.random.per_mille(self.chains.turns());
        let mut acted = chains_first && self.chains.take_turn(bench, &mut self.blocks, &mut self.words);
        let words_first = !acted && bench.random.per_mille(self.words.turns());
        acted = acted || words_first && self.words.take_turn(bench, &mut self.blocks);
        let blocks_first = bench.random.per_mille(500);
        for blocks in [blocks_first, !blocks_first] {
            acted = acted
                || match blocks {
                    true => self.blocks.act(bench)?,
                    false => self.with_locks(|both| both.locks.act(bench))?,
                };
        }
        acted = acted || !words_first && self.words.take_turn(bench, &mut self.blocks);
        acted = acted || !chains_first && self.chains.take_turn(bench, &mut self.blocks, &mut self.words);
        self.settle_frees(bench)?;
        Ok(acted)
    }

    fn next_deadline(&self, node: NodeId) -> Nanos {
        World::<Packet>::next_deadline(&self.blocks, node)
            .min(World::<Packet>::next_deadline(&self.locks, node))
            .min(self.words.next_deadline(node))
            .min(self.chains.next_deadline(node))
    }

    fn on_deadline(&mut self, bench: &mut Bench<Packet>, node: NodeId) -> Result<(), String> {
        self.call_all(bench, (node, false), |mut all, at, store, locks| all.on_deadline(at, store, locks))?;
        self.words.on_deadline(bench, node);
        self.chains.on_deadline(bench, &mut self.blocks, &mut self.words, node);
        self.settle_frees(bench)?;
        self.blocks.perhaps_demote(bench);
        Ok(())
    }

    fn on_switch_stopped(&mut self, bench: &mut Bench<Packet>) {
        self.blocks.on_switch_stopped(bench);
        self.locks.on_switch_stopped(bench);
        self.chains.on_switch_stopped();
    }

    fn on_node_stopped(&mut self, bench: &mut Bench<Packet>, node: NodeId) {
        self.blocks.on_node_stopped(bench, node);
        self.locks.on_node_stopped(bench, node);
        self.words.on_node_stopped(&mut self.blocks, node);
        self.chains.on_node_stopped(node);
    }

    fn on_node_started(&mut self, bench: &mut Bench<Packet>, node: NodeId) {
        self.blocks.on_node_started(bench, node);
        self.locks.on_node_started(bench, node);
    }

    fn on_shadow_restarted(&mut self, bench: &mut Bench<Packet>, shadow: NodeId) {
        self.blocks.on_shadow_restarted(bench, shadow);
    }

    fn on_epoch_ends(&mut self, bench: &mut Bench<Packet>) {
        self.blocks.on_epoch_ends(bench);
    }

    fn on_epoch_begins(&mut self, bench: &mut Bench<Packet>) {
        let Self { blocks, locks, chains, .. } = self;
        let view = bench.view();
        Chip { coherence: &mut blocks.switch, locks: &mut locks.switch, relay: chains.relay() }.begin_epoch(
            view.epoch,
            view.shadow,
            &view.incarnations,
        );
        locks.switch_has_restarted();
    }

    fn on_new_epoch(
        &mut self,
        bench: &mut Bench<Packet>,
        node: NodeId,
        before: &Known,
    ) -> Result<(), String> {
        self.locks.hears(bench, node, before);
        let (view, dump) = self.blocks.hears(bench, node, before);
        self.call_all(bench, (node, true), |mut all, at, store, locks| {
            all.on_new_epoch(at, (&view, dump.as_ref()), store, locks);
        })?;
        self.words.on_new_epoch(bench, node);
        self.settle_frees(bench)
    }

    fn is_quiet(&self, bench: &Bench<Packet>) -> bool {
        self.blocks.is_quiet(bench)
            && self.locks.is_quiet(bench)
            && self.words.is_quiet(bench)
            && self.chains.is_quiet(bench)
    }

    fn check_after(&mut self, bench: &Bench<Packet>, step: usize) -> Result<(), String> {
        self.blocks.check_after(bench, step)?;
        self.with_locks(|both| both.locks.check_after(bench, step))?;
        self.words.check_after(bench, &self.blocks)?;
        self.chains.check_after()?;
        self.check_disciplines(bench)
    }

    fn check_at_rest(&mut self, bench: &Bench<Packet>) -> Result<(), String> {
        self.blocks.check_at_rest(bench)?;
        self.with_locks(|both| both.locks.check_at_rest(bench))?;
        self.words.check_at_rest(bench, &self.blocks)?;
        self.chains.check_at_rest()
    }

    fn operations(&self) -> u64 {
        World::<Packet>::operations(&self.blocks)
            + World::<Packet>::operations(&self.locks)
            + self.words.operations()
            + self.chains.operations()
    }

    fn seen(&self, bench: &Bench<Packet>) -> Seen {
        Seen {
            blocks: self.blocks.seen(bench),
            locks: self.locks.seen(bench),
            words: self.words.seen(),
            chains: self.chains.seen(),
        }
    }

    fn describe(&self, bench: &Bench<Packet>) -> (String, Option<u64>) {
        let ((blocks, block), (locks, lock)) = (self.blocks.describe(bench), self.locks.describe(bench));
        (blocks + &locks + &self.words.describe(bench) + &self.chains.describe(bench), block.or(lock))
    }
}
