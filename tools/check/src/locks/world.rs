//! The world of locks: its machines, its threads, and what was written last under every lock.

use std::collections::BTreeMap;

use node::Retransmission;
use node::locks::store::LockStore;
use node::locks::{LockCounters, LockNodeConfig};
use node::{DataRef, LockEffect, LockMessage, LockNode, Moment};
use switch::locks::{Directory, Effect, Resubmit};
use wire::{AllRules, GlobalAddr, Incarnation, LockEnd, Nanos, NodeId, Rules, SwitchEpoch};

use super::allocations::Allocations;
use super::describe::short;
use super::facts::{Facts, Named};
use super::properties::{self, Asked, Waits};
use super::{LockPlan, PlainLocks, Plan, Thread};
use crate::rack::template;
use crate::rack::{Bench, Conditions, FIRST, Known, Place, REPEATED, Sum, Touched, World};

/// Bytes of a region that has any.
const LEN: u32 = 8;

/// What a copy of memory that was given back has: nobody has written that.
const SOMETHING_ELSE: DataRef = DataRef(u64::MAX);

/// What locks went through in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Times that a thread got in.
    pub entered: u64,
    /// Times that one did not want to wait, and did not.
    pub busy: u64,
    /// Times that one gave up.
    pub cancelled: u64,
    /// Times that a lock ended.
    pub freed: u64,
    /// Times that a thread took a lock that was lost.
    pub reclaimed: u64,
    /// Of those, times that it gave it up, so that it was lost again.
    pub given_up: u64,
    /// Times that a thread was told that there is no such lock.
    pub refused: u64,
    /// Times that a lock went on.
    pub moves: u64,
    /// Of those, times that the directory said no.
    pub denied: u64,
    /// Copies that went for lack of capacity.
    pub evicted: u64,
    /// Packets sent again.
    pub repeated: u64,
    /// Times that a thread was told that the data are lost.
    pub lost: u64,
    /// Times that one was told that the lock's home is gone.
    pub down: u64,
    /// The most times that a thread passed one that stood in a queue.
    pub passed: u64,
    /// The most times that a node began a term while another one waited.
    pub terms_before: u64,
}

impl Seen {
    /// Times that a thread got in, gave up, did not wait, or ended a lock.
    pub fn operations(&self) -> u64 {
        self.entered + self.busy + self.cancelled + self.freed
    }

    fn count(&mut self, counters: &LockCounters) {
        self.moves += counters.moves;
        self.denied += counters.denied;
        self.evicted += counters.evicted;
        self.repeated += counters.repeated;
    }
}

impl Sum for Seen {
    fn add(&mut self, other: &Self) {
        self.entered += other.entered;
        self.busy += other.busy;
        self.cancelled += other.cancelled;
        self.freed += other.freed;
        self.reclaimed += other.reclaimed;
        self.given_up += other.given_up;
        self.refused += other.refused;
        self.moves += other.moves;
        self.denied += other.denied;
        self.evicted += other.evicted;
        self.repeated += other.repeated;
        self.lost += other.lost;
        self.down += other.down;
        self.passed = self.passed.max(other.passed);
        self.terms_before = self.terms_before.max(other.terms_before);
    }
}

/// Locks that carry their data.
pub struct Locks<R: Rules = AllRules> {
    pub(super) rules: R,
    /// What the run is like.
    pub(super) rack: Conditions,
    pub(super) plan: LockPlan,
    /// Every node's machine, and its store.
    pub nodes: Vec<(LockNode<R>, PlainLocks)>,
    /// The directory in the switch.
    pub switch: Directory<R>,
    pub(super) again: Vec<Resubmit>,
    /// The locks, with the bytes of their regions.
    pub locks: Vec<(GlobalAddr, u32)>,
    /// The number of each lock's last write, in each incarnation of its home and in each allocation.
    pub(super) truth: BTreeMap<(usize, Incarnation, u32), u64>,
    pub(super) losses: properties::Losses,
    pub(super) allocations: Allocations,
    /// Every thread, node by node.
    pub(super) threads: Vec<Thread>,
    pub(super) waits: Waits,
    pub(super) asked: Asked,
    pub(super) terms: properties::Terms,
    /// What machines write their effects to.
    pub(crate) out: Vec<LockEffect>,
    switch_out: Vec<Effect>,
    pub(super) facts: Facts,
    /// What the last step changed of locks.
    pub(super) touched: Touched,
    /// And of which.
    pub(super) named: Named,
    /// By address.
    pub(super) numbers: BTreeMap<GlobalAddr, NodeId>,
    /// What every node knows of the incarnations of homes may have changed.
    pub(super) incarnations_changed: bool,
    pub(super) seen: Seen,
}

/// A node that knows nothing.
fn blank<R: Rules>(rules: R, config: &LockNodeConfig) -> LockNode<R> {
    template::copy_of(rules, config, |rules, config| LockNode::with_rules(rules, *config))
}

impl<R: Rules> Locks<R> {
    /// The node of a thread.
    pub(crate) fn node_of(&self, thread: usize) -> NodeId {
        NodeId((thread / self.rack.threads) as u16)
    }

    fn drain_switch<M: Copy + From<LockMessage>>(&mut self, bench: &mut Bench<M>) {
        for effect in self.switch_out.drain(..) {
            match effect {
                Effect::Send(packet) => {
                    bench.send(None, packet.to.node(), LockMessage { packet, data: None });
                }
                Effect::Resubmit(again) => self.again.push(again),
            }
        }
    }

    /// Sends and tells what a node wants sent and told, after a call about a lock or about none.
    pub(crate) fn drain<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        (node, about): (NodeId, Option<GlobalAddr>),
    ) -> Result<(), String> {
        self.touch(Some(node), about);
        let mut out = std::mem::take(&mut self.out);
        for effect in out.drain(..) {
            match effect {
                LockEffect::Send(message) => {
                    self.touch(Some(node), Some(message.packet.lock));
                    bench.send(Some(node), message.packet.to.node(), message);
                }
                told => self.on_told(bench, node, told)?,
            }
        }
        self.out = out;
        Ok(())
    }

    /// A packet arrives, at a node for whoever handles it there.
    pub(crate) fn arrives<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        to: Place,
        message: &LockMessage,
        on_packet: impl FnOnce(&mut LockNode<R>, Moment, &LockMessage, &mut PlainLocks, &mut Vec<LockEffect>),
    ) -> Result<(), String> {
        bench.note(Some(message.packet.lock.bits()), || short(message));
        let Some(to) = to else {
            self.touch(None, Some(message.packet.lock));
            self.switch.on_packet(&message.packet, &mut self.switch_out);
            self.drain_switch(bench);
            return Ok(());
        };
        let about = Some(message.packet.lock);
        let message = self.as_copied(message);
        self.call(bench, (to, about), |machine, at, store, out| on_packet(machine, at, &message, store, out))
    }

    /// What is there when a packet's bytes are copied. In a rack within one process, which loses nothing and whose nodes do not die,
    /// they are copied out of the sender's memory by whoever takes them, not when they are sent.
    fn as_copied(&self, message: &LockMessage) -> LockMessage {
        let LockMessage { packet, data } = *message;
        let is_embedded = !self.plan.repeats && self.rack.restarts.is_never();
        let Some(from) = packet.from.node().filter(|_| data.is_some() && is_embedded) else {
            return *message;
        };
        let store = &self.nodes[from.index()].1;
        let bytes = match packet.from {
            LockEnd::Home(_) => store.home_contents(packet.lock, packet.len),
            _ => store.frames.get(&packet.lock).map_or(SOMETHING_ELSE, |frame| DataRef(frame.value)),
        };
        LockMessage { packet, data: Some(bytes) }
    }

    /// A node's machine is called about a lock, or about none, and what it wants is sent and told.
    pub(crate) fn call<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        (node, about): (NodeId, Option<GlobalAddr>),
        input: impl FnOnce(&mut LockNode<R>, Moment, &mut PlainLocks, &mut Vec<LockEffect>),
    ) -> Result<(), String> {
        let at = bench.moment();
        let (machine, store) = &mut self.nodes[node.index()];
        input(machine, at, store, &mut self.out);
        self.drain(bench, (node, about))
    }

    /// A node hears of an epoch; what it knew `before`.
    pub(crate) fn hears<M: Copy>(&mut self, bench: &Bench<M>, node: NodeId, before: &Known) {
        let incarnations = before.incarnations.iter().zip(&bench.view().incarnations);
        if incarnations.into_iter().any(|(before, now)| *now != Some(*before)) {
            self.losses.hears_of_death(node);
        }
        self.terms.forget_packets_of(node);
        self.incarnations_changed = true;
    }

    /// These regions, of which there are none at the beginning: the real allocator makes them.
    pub(crate) fn allocate_for_real(&mut self, regions: impl Iterator<Item = GlobalAddr>) {
        self.locks = regions.map(|region| (region, LEN)).collect();
        self.number();
        self.allocations.real = true;
    }

    /// The switch's directory is empty: what was checked of it is over.
    pub(crate) fn switch_has_restarted(&mut self) {
        self.again.clear();
        self.terms.forget_switch();
        self.touch(None, None);
    }

    fn number(&mut self) {
        self.numbers =
            (0..).map(NodeId).zip(&self.locks).map(|(number, (lock, _))| (*lock, number)).collect();
    }

    /// A thread, and what it wants to be freed.
    pub(crate) fn next_free(&mut self) -> Option<(usize, GlobalAddr)> {
        self.allocations.frees.pop()
    }
}

impl<R: Rules, M: Copy + From<LockMessage>> World<M> for Locks<R> {
    type Plan = LockPlan;
    type Message = LockMessage;
    type Seen = Seen;

    type Rules = R;

    fn new(rules: R, whole: &Plan) -> Self {
        let Plan { rack, world: plan } = whole;
        let nodes = (0..rack.nodes).map(|node| {
            let id = NodeId(node as u16);
            let retransmission = match plan.repeats {
                true => REPEATED,
                false => Retransmission::Never,
            };
            let config = LockNodeConfig {
                in_switch: plan.switch_entries > 0,
                preference: plan.preference,
                retransmission,
                epoch: FIRST,
                ..LockNodeConfig::new(id, rack.nodes)
            };
            (blank(rules, &config), PlainLocks::new(plan.room))
        });
        let nodes = nodes.collect();
        let entries = plan.switch_entries.max(1);
        let config =
            switch::locks::DirectoryConfig { at: LockEnd::Switch, nodes: rack.nodes, entries, epoch: FIRST };
        let locks = (0..plan.locks).map(|lock| {
            let home = NodeId((lock % rack.nodes) as u16);
            (GlobalAddr::new(home, 4096 + 64 * lock as u64), if lock % 3 == 2 { 0 } else { LEN })
        });
        let mut world = Self {
            rules,
            rack: *rack,
            plan: *plan,
            nodes,
            switch: template::copy_of(rules, &config, |rules, config| {
                Directory::with_rules(rules, config).expect("a small directory fits")
            }),
            again: Vec::new(),
            locks: locks.collect(),
            truth: BTreeMap::new(),
            losses: properties::Losses::default(),
            allocations: Allocations::default(),
            threads: vec![Thread::Idle; rack.nodes * rack.threads],
            waits: Waits::new(whole),
            asked: Asked::new(rack, plan.locks),
            terms: properties::Terms::new(rack.nodes, plan.locks),
            out: Vec::new(),
            switch_out: Vec::new(),
            facts: Facts::new(rack.nodes, plan.locks),
            touched: Touched::NOTHING,
            named: Named::NOTHING,
            numbers: BTreeMap::new(),
            incarnations_changed: false,
            seen: Seen::default(),
        };
        world.number();
        world
    }

    fn deliver(&mut self, bench: &mut Bench<M>, to: Place, message: &LockMessage) -> Result<(), String> {
        self.arrives(bench, to, message, LockNode::on_packet)
    }

    fn second_passes(&self) -> usize {
        self.again.len()
    }

    fn second_pass(&mut self, bench: &mut Bench<M>) {
        let at = bench.random.below(self.again.len());
        let again = self.again.swap_remove(at);
        let Resubmit { packet, approved } = again;
        bench.note(Some(packet.lock.bits()), || {
            format!("second pass, approved {approved}: {}", short(&LockMessage { packet, data: None }))
        });
        self.touch(None, Some(packet.lock));
        self.switch.on_resubmit(&again, &mut self.switch_out);
        self.drain_switch(bench);
    }

    fn act(&mut self, bench: &mut Bench<M>) -> Result<bool, String> {
        self.take_turn(bench)
    }

    fn next_deadline(&self, node: NodeId) -> Nanos {
        self.nodes[node.index()].0.next_deadline()
    }

    fn on_deadline(&mut self, bench: &mut Bench<M>, node: NodeId) -> Result<(), String> {
        bench.note(None, || format!("{node} is called for its deadline"));
        self.call(bench, (node, None), LockNode::on_deadline)
    }

    fn on_switch_stopped(&mut self, _: &mut Bench<M>) {
        self.again.clear();
    }

    fn on_node_stopped(&mut self, _: &mut Bench<M>, node: NodeId) {
        for thread in 0..self.threads.len() {
            if self.node_of(thread) == node {
                if let Thread::Returning(want, ..) | Thread::Ending(want) | Thread::Freeing(want, _) =
                    self.threads[thread]
                {
                    self.losses.orphan(want.lock, want.incarnation);
                }
                self.threads[thread] = Thread::Idle;
                self.waits.end(thread);
            }
        }
        let (machine, store) = &mut self.nodes[node.index()];
        self.seen.count(machine.counters());
        let config = LockNodeConfig { epoch: SwitchEpoch(0), ..*machine.config() };
        (*machine, *store) = (blank(self.rules, &config), PlainLocks::new(self.plan.room));
        self.terms.forget_node(node);
        self.touch(Some(node), None);
    }

    fn on_node_started(&mut self, _: &mut Bench<M>, _: NodeId) {
        self.incarnations_changed = true;
    }

    fn on_epoch_begins(&mut self, bench: &mut Bench<M>) {
        self.switch.restart(bench.view().epoch);
        self.switch_has_restarted();
    }

    fn on_new_epoch(&mut self, bench: &mut Bench<M>, node: NodeId, before: &Known) -> Result<(), String> {
        self.hears(bench, node, before);
        let view = bench.view().clone();
        self.call(bench, (node, None), |machine, at, store, out| machine.on_new_epoch(at, &view, store, out))
    }

    fn is_quiet(&self, _: &Bench<M>) -> bool {
        self.threads.iter().all(|thread| *thread == Thread::Idle)
            && self.nodes.iter().all(|(machine, _)| machine.is_quiet())
    }

    fn check_after(&mut self, bench: &Bench<M>, _: usize) -> Result<(), String> {
        properties::check_after(self, bench)
    }

    fn check_at_rest(&mut self, bench: &Bench<M>) -> Result<(), String> {
        properties::check_at_rest(self, &bench.control)
    }

    fn operations(&self) -> u64 {
        self.seen.operations()
    }

    fn seen(&self, _: &Bench<M>) -> Seen {
        let mut seen = self.seen.clone();
        self.nodes.iter().for_each(|(machine, _)| seen.count(machine.counters()));
        seen.passed = self.waits.most();
        seen.terms_before = self.asked.most();
        seen
    }

    fn describe(&self, _: &Bench<M>) -> (String, Option<u64>) {
        self.page()
    }
}
