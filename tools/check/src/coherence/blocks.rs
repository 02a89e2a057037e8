//! The world of coherent blocks: its machines, its threads, and the last write to every block.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use node::allocator::ChunkSize;
use node::{Backoff, Effect, HoldTime, Message, Moment, Node, NodeConfig, Outcome};
use switch::coherence::{self, Dump, Resubmit, Switch};
use wire::{
    AllRules, BlockSize, BlockTag, Copyset, Discipline, Endpoint, GlobalAddr, Nanos, NodeId, Packet,
    PacketKind, Rules, SlotId, SwitchEpoch,
};

use super::coverage::Coverage;
use super::describe::short;
use super::survival::{Life, Survival};
use super::threads::Doing;
use super::{BlockPlan, PlainStore, Plan, Thread, properties};
use crate::rack::template;
use crate::rack::{Bench, Control, FIRST, Known, Place, REPEATED, Sum, World};

/// What blocks went through in a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Reads and writes that took place.
    pub accesses: u64,
    /// Of the reads, those that were done where the block is.
    pub peeked: u64,
    /// Block locks that were held.
    pub locks: u64,
    /// Allocations made.
    pub allocations: u64,
    /// Allocations freed.
    pub frees: u64,
    /// Waits until writes are in all copies.
    pub syncs: u64,
    /// Operations that were refused because the block had been freed, or its home or contents are gone.
    pub refused: u64,
    /// Of these, how many because the contents were lost.
    pub lost: u64,
    /// Writes to memory with copies that died with their node.
    pub died: u64,
    /// What the nodes counted.
    pub protocol: node::Counters,
    /// What the machines were seen to do.
    pub coverage: Coverage,
}

impl Seen {
    /// Accesses, locks, allocations and frees that took place.
    pub fn operations(&self) -> u64 {
        self.accesses + self.locks + self.allocations + self.frees
    }
}

impl Sum for Seen {
    fn add(&mut self, other: &Self) {
        self.accesses += other.accesses;
        self.peeked += other.peeked;
        self.locks += other.locks;
        self.allocations += other.allocations;
        self.frees += other.frees;
        self.syncs += other.syncs;
        self.died += other.died;
        self.refused += other.refused;
        self.lost += other.lost;
        self.protocol.add(&other.protocol);
        self.coverage.add(&other.coverage);
    }
}

/// Coherent blocks.
pub struct Blocks<R: Rules = AllRules> {
    pub(crate) rules: R,
    pub(super) plan: BlockPlan,
    /// The nodes, with their stores.
    pub nodes: Vec<(Node<R>, PlainStore)>,
    /// The switch.
    pub switch: Switch<R>,
    pub(super) threads: Vec<Thread>,
    /// Packets between two passes through the switch.
    pub(super) resubmits: VecDeque<Resubmit>,
    /// The number of the last write to every block.
    pub(crate) latest: BTreeMap<BlockTag, u64>,
    pub(super) writes: u64,
    pub(crate) survival: Survival,
    /// What each node had done when it gave something up that others can take: a block lock, an allocation.
    pub(super) given_up: BTreeMap<BlockTag, (Life, u64)>,
    pub(crate) live: BTreeSet<GlobalAddr>,
    /// Allocations of words and objects, until somebody who uses them gives them back.
    pub(crate) others: BTreeMap<GlobalAddr, Discipline>,
    /// Frees that somebody else has called, and what became of them.
    pub(crate) guests: BTreeMap<(NodeId, SlotId), usize>,
    pub(crate) told: Vec<(usize, Outcome)>,
    pub(super) holders: BTreeMap<BlockTag, (usize, bool)>,
    /// What the switch knew at the end of epochs that some node may still be in.
    pub(super) dumps: Vec<Dump>,
    /// What machines write their effects to.
    pub(super) out: Vec<Effect>,
    switch_out: Vec<coherence::Effect>,
    pub(super) seen: Seen,
}

pub(crate) const BLOCK: BlockSize = BlockSize::MIN;

/// A packet goes to where what it names is; nowhere, if that is a home that nobody serves.
fn send<M: Copy + From<Message>>(bench: &mut Bench<M>, from: Place, message: Message) {
    if let Some(to) = bench.place_of(message.packet.to) {
        bench.send(from, to, message);
    }
}

impl<R: Rules> Blocks<R> {
    /// The incarnation that a node is in.
    pub(super) fn life(control: &Control, node: NodeId) -> Life {
        (node, control.incarnation(node))
    }

    /// The node that serves a block's memory, as far as is announced.
    pub(super) fn server(control: &Control, tag: BlockTag) -> Option<NodeId> {
        let nodes = control.view().incarnations.len();
        match tag.home().index().checked_sub(nodes) {
            Some(nth) => control.view().hosts(nth).next(),
            None => Some(tag.home()),
        }
    }

    /// True for a block whose memory has copies.
    pub(super) fn has_copies(&self, tag: BlockTag) -> bool {
        tag.home().index() >= self.nodes.len()
    }

    /// A block is found with this write: what was written later died with its writer.
    pub(super) fn find(&mut self, tag: BlockTag, write: u64, by: Option<Life>) -> Result<(), String> {
        if self.has_copies(tag)
            && let Some(latest) = self.latest.get_mut(&tag)
        {
            self.survival.found(tag, (write, *latest), by)?;
            *latest = write;
        }
        Ok(())
    }

    /// A node gets what another one has given up: what that one had written before is seen.
    pub(super) fn take_up(&mut self, control: &Control, tag: BlockTag, by: NodeId) {
        if let Some((life, upto)) = self.given_up.remove(&tag)
            && life.0 != by
            && Self::life(control, life.0) == life
            && control.is_up(Some(life.0))
        {
            // It has executed what it was asked to.
            self.survival.promised(life, upto).unwrap_or_else(|what| panic!("{what}"));
        }
    }

    /// The nodes that run.
    pub(super) fn up(&self, control: &Control) -> impl Iterator<Item = &(Node<R>, PlainStore)> {
        self.nodes.iter().filter(|(node, _)| control.is_up(Some(node.config().id)))
    }

    fn take_from_switch<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>) {
        for effect in self.switch_out.drain(..) {
            match effect {
                coherence::Effect::Send(packet) => send(bench, None, packet.into()),
                coherence::Effect::Resubmit(again) => self.resubmits.push_back(again),
            }
        }
    }

    /// A packet arrives, at a node for whoever handles it there.
    pub(crate) fn arrives<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        to: Place,
        message: &Message,
        on_packet: impl FnOnce(&mut Node<R>, Moment, &Message, &mut PlainStore, &mut Vec<Effect>),
    ) {
        bench.note(Some(message.packet.tag.bits()), || short(message));
        self.seen.coverage.note(&message.packet);
        match to {
            None => {
                bench.touch(None);
                self.switch.on_packet(&message.packet, &mut self.switch_out);
                self.take_from_switch(bench);
            }
            Some(node) => {
                self.call(bench, node, |node, at, store, out| on_packet(node, at, message, store, out));
            }
        }
    }

    /// Now and then something is demoted.
    pub(crate) fn perhaps_demote<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>) {
        if bench.random.per_mille(30) {
            self.demote(bench);
        }
    }

    /// A demotion that nobody asked for: the home must cope with any.
    fn demote<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>) {
        let Some(addr) = self.pick(bench) else { return };
        let tag = BLOCK.tag(addr);
        let (shadow, home) = (NodeId(0), tag.home());
        if home.index() >= self.nodes.len() {
            return;
        }
        let requester = wire::RequesterId { node: shadow, slot: SlotId::MIGRATION };
        let packet = Packet {
            epoch: bench.epoch_of(home),
            incarnation: bench.control.known_incarnation(home, shadow),
            from: Endpoint::Shadow(shadow),
            to: Endpoint::HomeAgent(home),
            ..Packet::request(PacketKind::Demote, tag, requester, wire::Seq::NONE)
        };
        bench.send(Some(shadow), Some(home), Message::from(packet));
    }

    pub(crate) fn call<M: Copy + From<Message>, T>(
        &mut self,
        bench: &mut Bench<M>,
        node: NodeId,
        input: impl FnOnce(&mut Node<R>, Moment, &mut PlainStore, &mut Vec<Effect>) -> T,
    ) -> T {
        let at = bench.moment();
        bench.touch(Some(node));
        let (machine, store) = &mut self.nodes[node.index()];
        let result = input(machine, at, store, &mut self.out);
        for tag in store.zeroed.drain(..) {
            self.latest.insert(tag, 0);
            self.survival.zeroed(tag);
            self.threads.iter_mut().for_each(|thread| thread.ends_with(tag));
        }
        bench.note(None, || {
            let frames = store.frames.iter().map(|f| (f.published, f.reserved, f.pinned));
            format!("{node} {:?}", frames.collect::<Vec<_>>())
        });
        self.effects(bench, node);
        result
    }

    /// Sends and tells what a node wants sent and told.
    pub(super) fn effects<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>, node: NodeId) {
        let mut out = std::mem::take(&mut self.out);
        for effect in out.drain(..) {
            match effect {
                Effect::Send(message) => send(bench, Some(node), message),
                Effect::Completed { slot, outcome } => self.completed(bench, node, slot, outcome),
            }
        }
        self.out = out;
    }
}

impl<R: Rules, M: Copy + From<Message>> World<M> for Blocks<R> {
    type Plan = BlockPlan;
    type Message = Message;
    type Seen = Seen;

    type Rules = R;

    fn new(rules: R, Plan { rack, world: plan }: &Plan) -> Self {
        let memory = plan.memory.0 * BLOCK.bytes();
        let nodes = (0..rack.nodes).map(|id| {
            let config = NodeConfig {
                block: BLOCK,
                chunk: ChunkSize::new(plan.memory.1 * BLOCK.bytes()).expect("a power of two"),
                directory: plan.directory,
                switch_entries: plan.switch_entries,
                epoch: Nanos::from_micros(300),
                hottest: 2,
                queue: plan.queue,
                peeks: plan.peeks,
                persistent: plan.persistent,
                hold_time: HoldTime { pause: Nanos::from_micros(5), most: Nanos::from_micros(30) },
                retransmission: REPEATED,
                backoff: Backoff { first: Nanos::from_micros(2), most: Nanos::from_micros(40) },
                switch_epoch: FIRST,
                copies: rack.copies,
                ..NodeConfig::new(NodeId(id as u16), rack.nodes, memory)
            };
            (Node::with_rules(rules, config), PlainStore::new(BLOCK, plan.buckets))
        });
        let config = coherence::SwitchConfig {
            nodes: rack.nodes,
            entries: plan.switch_entries,
            epoch: FIRST,
            queue: plan.queue,
            lock_slots: 0,
            peeks: plan.peeks.most > 0,
            copies: rack.copies > 1,
        };
        let threads = (0..rack.nodes * rack.threads)
            .map(|t| Thread { node: NodeId((t % rack.nodes) as u16), doing: Doing::Idle });
        Self {
            rules,
            plan: *plan,
            nodes: nodes.collect(),
            switch: template::copy_of(rules, &config, |rules, config| {
                Switch::with_rules(rules, config).expect("the program fits the chip")
            }),
            threads: threads.collect(),
            resubmits: VecDeque::new(),
            latest: BTreeMap::new(),
            writes: 0,
            survival: Survival::default(),
            given_up: BTreeMap::new(),
            live: BTreeSet::new(),
            others: BTreeMap::new(),
            guests: BTreeMap::new(),
            told: Vec::new(),
            holders: BTreeMap::new(),
            dumps: Vec::new(),
            out: Vec::new(),
            switch_out: Vec::new(),
            seen: Seen::default(),
        }
    }

    fn deliver(&mut self, bench: &mut Bench<M>, to: Place, message: &Message) -> Result<(), String> {
        self.arrives(bench, to, message, Node::on_packet);
        Ok(())
    }

    fn second_passes(&self) -> usize {
        self.resubmits.len()
    }

    fn second_pass(&mut self, bench: &mut Bench<M>) {
        if let Some(again) = self.resubmits.pop_front() {
            bench.touch(None);
            self.switch.on_resubmit(again, &mut self.switch_out);
            self.take_from_switch(bench);
        }
    }

    fn act(&mut self, bench: &mut Bench<M>) -> Result<bool, String> {
        Ok(self.take_turn(bench))
    }

    fn next_deadline(&self, node: NodeId) -> Nanos {
        self.nodes[node.index()].0.next_deadline()
    }

    fn on_deadline(&mut self, bench: &mut Bench<M>, node: NodeId) -> Result<(), String> {
        self.call(bench, node, |node, at, store, out| node.on_deadline(at, store, out));
        self.perhaps_demote(bench);
        Ok(())
    }

    fn on_switch_stopped(&mut self, _: &mut Bench<M>) {
        self.resubmits.clear();
    }

    fn whole_memories(&self, node: NodeId) -> (SwitchEpoch, Copyset) {
        self.nodes[node.index()].0.whole_memories()
    }

    fn on_node_stopped(&mut self, bench: &mut Bench<M>, node: NodeId) {
        self.stop(&bench.control, node);
    }

    fn on_node_started(&mut self, bench: &mut Bench<M>, node: NodeId) {
        self.start_anew(node, bench.control.incarnation(node));
    }

    fn on_shadow_restarted(&mut self, _: &mut Bench<M>, shadow: NodeId) {
        let tags: Vec<_> = self.switch.entries().map(|(tag, _)| tag).collect();
        self.nodes[shadow.index()].0.on_shadow_restarted(tags);
    }

    fn on_epoch_ends(&mut self, bench: &mut Bench<M>) {
        self.dump(&bench.control);
    }

    fn on_epoch_begins(&mut self, bench: &mut Bench<M>) {
        self.switch.restart(bench.view().epoch);
        self.switch.set_shadow(bench.view().shadow);
    }

    fn on_new_epoch(&mut self, bench: &mut Bench<M>, node: NodeId, before: &Known) -> Result<(), String> {
        let (view, dump) = self.hears(bench, node, before);
        self.call(bench, node, |node, at, store, out| {
            node.on_new_epoch(at, &view, dump.as_ref(), store, out);
        });
        Ok(())
    }

    fn is_quiet(&self, bench: &Bench<M>) -> bool {
        self.threads.iter().all(|thread| thread.doing == Doing::Idle)
            && self.up(&bench.control).all(|(node, _)| node.is_quiet())
    }

    fn check_after(&mut self, bench: &Bench<M>, step: usize) -> Result<(), String> {
        properties::check_after(self, bench, step)
    }

    fn check_at_rest(&mut self, bench: &Bench<M>) -> Result<(), String> {
        properties::check_at_rest(self, bench)
    }

    fn operations(&self) -> u64 {
        self.seen.operations()
    }

    fn seen(&self, bench: &Bench<M>) -> Seen {
        let mut seen = Seen { died: self.survival.lost, ..self.seen.clone() };
        self.up(&bench.control).for_each(|(node, _)| seen.protocol.add(node.counters()));
        seen.coverage.note_switch(self.switch.counters());
        seen
    }

    fn describe(&self, bench: &Bench<M>) -> (String, Option<u64>) {
        self.page(&bench.control)
    }
}
