//! The little rack, step by step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use node::allocator::ChunkSize;
use node::{Backoff, Config, Effect, Message, Moment, Node, Retransmission, Turn};
use switch::flowcc::{self, Resubmit, Switch};
use wire::{
    BlockSize, BlockTag, Endpoint, Faithful, GlobalAddr, Incarnation, Kind, Nanos, NodeId, Packet, Rules,
    SlotId,
};

use super::control::{Control, FIRST, Stops};
use super::coverage::Coverage;
use super::network::{Injected, Network};
use super::threads::Doing;
use super::{Faults, PlainStore, Plan, Random, Restarts, Thread};
use crate::properties;

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Report {
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
    /// Operations that were refused because the block had been freed, or its home or contents are gone.
    pub refused: u64,
    /// Of these, how many because the contents were lost.
    pub lost: u64,
    /// What went wrong with packets.
    pub faults: Injected,
    /// What stopped.
    pub stops: Stops,
    /// What the nodes counted.
    pub protocol: node::Counters,
    /// What the machines were seen to do.
    pub coverage: Coverage,
}

/// The rack.
pub struct Rack<R: Rules = Faithful> {
    pub(crate) plan: Plan,
    /// Its nodes, with their stores.
    pub nodes: Vec<(Node<R>, PlainStore)>,
    /// Its switch.
    pub switch: Switch<R>,
    pub(crate) threads: Vec<Thread>,
    network: Network,
    /// Packets between two passes through the switch.
    pub(super) resubmits: VecDeque<Resubmit>,
    pub(super) random: Random,
    pub(super) now: Nanos,
    /// The number of the last write to every block.
    pub(crate) latest: BTreeMap<BlockTag, u64>,
    pub(super) writes: u64,
    pub(super) live: BTreeSet<GlobalAddr>,
    pub(crate) holders: BTreeMap<BlockTag, (usize, bool)>,
    pub(super) control: Control,
    /// The life of every node, as each node knows it.
    pub(super) lives_known: Vec<Vec<Incarnation>>,
    pub(super) report: Report,
    pub(super) quiet: bool,
    /// The place that the last step changed.
    touched: Touched,
}

/// A place that changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Touched {
    Nothing,
    Node(NodeId),
    Switch,
    Several,
}

pub(super) const BLOCK: BlockSize = BlockSize::MIN;

impl Rack {
    /// A rack at rest.
    pub fn new(plan: Plan, seed: u64) -> Self {
        Self::with_rules(plan, seed)
    }
}

impl<R: Rules> Rack<R> {
    /// A rack at rest, in which some rules of the protocol may not hold.
    pub fn with_rules(plan: Plan, seed: u64) -> Self {
        let memory = 64 * BLOCK.bytes();
        let nodes = (0..plan.nodes).map(|id| {
            let config = Config {
                block: BLOCK,
                chunk: ChunkSize::new(4 * BLOCK.bytes()).expect("a power of two"),
                directory: plan.directory,
                switch_entries: plan.switch_entries,
                epoch: Nanos::from_micros(300),
                hottest: 2,
                queue: plan.queue,
                peeks: plan.peeks,
                persistent: plan.persistent,
                turn: Turn { pause: Nanos::from_micros(5), most: Nanos::from_micros(30) },
                retransmission: Retransmission::AfterRoundTrips {
                    floor: Nanos::from_micros(60),
                    // As on live racks, ten times the shortest. While somebody holds a lock and waits without a bound, all others
                    // are refused; and a run that has come to rest within its steps proves that nobody waits for longer.
                    most: Nanos::from_micros(600),
                },
                backoff: Backoff { first: Nanos::from_micros(2), most: Nanos::from_micros(40) },
                switch_epoch: FIRST,
                ..Config::new(NodeId(id as u16), plan.nodes, memory)
            };
            (Node::with_rules(config), PlainStore::new(BLOCK, plan.buckets))
        });
        let config = flowcc::Config {
            nodes: plan.nodes,
            entries: plan.switch_entries,
            epoch: FIRST,
            queue: plan.queue,
            peeks: plan.peeks.most > 0,
        };
        let threads = (0..plan.nodes * plan.threads)
            .map(|t| Thread { node: NodeId((t % plan.nodes) as u16), doing: Doing::Idle });
        Self {
            plan,
            nodes: nodes.collect(),
            switch: Switch::with_rules(&config).expect("the program fits the chip"),
            threads: threads.collect(),
            network: Network::default(),
            resubmits: VecDeque::new(),
            random: Random::new(seed),
            now: Nanos(1),
            latest: BTreeMap::new(),
            writes: 0,
            live: BTreeSet::new(),
            holders: BTreeMap::new(),
            control: Control::new(plan.nodes),
            lives_known: vec![vec![Incarnation(0); plan.nodes]; plan.nodes],
            report: Report::default(),
            quiet: false,
            touched: Touched::Nothing,
        }
    }

    /// Runs so many steps under faults, then ends the faults and runs until nothing is under way.
    ///
    /// # Errors
    /// The first property that did not hold, or what was still under way after a long time without faults.
    pub fn run(mut self, steps: usize) -> Result<Report, String> {
        self.run_mut(steps).map(|()| self.report)
    }

    /// The same, and the rack and what it did so far are there afterwards, also if it went wrong.
    ///
    /// # Errors
    /// As for [`Rack::run`].
    pub fn run_mut(&mut self, steps: usize) -> Result<(), String> {
        for step in 0..steps {
            self.step_checked(step).map_err(|what| format!("step {step}: {what}"))?;
        }
        self.settle()
    }

    /// One step, and what must hold after it.
    ///
    /// # Errors
    /// The first property that did not hold.
    pub fn step_checked(&mut self, step: usize) -> Result<(), String> {
        self.touched = Touched::Nothing;
        self.step();
        properties::check_after(self, self.touched, step)
    }

    /// Ends the faults, starts what is down as far as it must run, and runs until nothing is under way.
    ///
    /// # Errors
    /// As for [`Rack::run`].
    pub fn settle(&mut self) -> Result<(), String> {
        self.plan.faults = Faults::default();
        self.plan.restarts = Restarts::default();
        self.network.heal();
        self.quiet = true;
        self.settle_control();
        for step in 0..40_000 {
            if self.is_quiet() {
                properties::check_at_rest(self).map_err(|what| format!("at rest: {what}"))?;
                self.finish_report();
                return Ok(());
            }
            self.step_checked(step).map_err(|what| format!("faults off, step {step}: {what}"))?;
        }
        let stuck: Vec<_> = self.threads.iter().filter(|thread| thread.doing != Doing::Idle).collect();
        let nodes: Vec<_> = self.up().filter(|(node, _)| !node.is_quiet()).collect();
        Err(format!("stuck: threads {stuck:#?}; nodes {nodes:#?}"))
    }

    /// Adds up what the parts counted.
    fn finish_report(&mut self) {
        self.report.faults = self.network.injected;
        self.report.stops = self.control.restarts;
        let mut sum = std::mem::take(&mut self.report.protocol);
        self.up().for_each(|(node, _)| sum.add(node.counters()));
        self.report.protocol = sum;
        self.report.coverage.note_switch(self.switch.counters());
    }

    /// Packets that something happened to, and places that stopped or started.
    pub(super) fn faults_so_far(&self) -> u64 {
        self.network.injected.total() + self.control.restarts.total()
    }

    /// What the run has done so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The nodes that run.
    pub(crate) fn up(&self) -> impl Iterator<Item = &(Node<R>, PlainStore)> {
        self.nodes.iter().filter(|(node, _)| self.control.is_up(node.config().id))
    }

    fn is_quiet(&self) -> bool {
        self.network.is_empty()
            && self.resubmits.is_empty()
            && self.control.is_settled()
            && self.threads.iter().all(|thread| thread.doing == Doing::Idle)
            && self.up().all(|(node, _)| node.is_quiet())
    }

    /// One thing happens, of those that can.
    fn step(&mut self) {
        self.now += Nanos(1000);
        if !self.plan.restarts.is_never() || !self.control.is_settled() {
            self.control();
        }
        let choice = self.random.below(16);
        match choice {
            0 | 1 if !self.resubmits.is_empty() => self.resubmit(),
            // Faster than packets can be made, or time-outs would make ever more of them.
            2..=9 if !self.network.is_empty() => self.deliver(),
            2..=14 if self.network.is_crowded() => self.deliver(),
            10 | 15 => self.deadlines(),
            _ if self.act() => {}
            _ if !self.network.is_empty() => self.deliver(),
            _ if !self.resubmits.is_empty() => self.resubmit(),
            _ => self.deadlines(),
        }
    }

    pub(super) fn moment(&mut self) -> Moment {
        Moment { now: self.now, random: self.random.bits() as u32 }
    }

    fn deliver(&mut self) {
        // Re-entering packets do not wait for ever.
        if self.resubmits.len() > 3 {
            return self.resubmit();
        }
        let Some(message) = self.network.deliver(&mut self.random, self.plan.faults, self.nodes.len()) else {
            return;
        };
        if self.plan.trace {
            let p = &message.packet;
            eprintln!(
                "{:>9} {:?}({:?}) {:?} {:?}#{} {:?} -> {:?} {:?} {:?}{:?}{}{} data {:?}",
                self.now.0,
                p.kind,
                p.event,
                p.tag,
                p.requester,
                p.seq.0,
                p.from,
                p.to,
                p.status,
                p.global_status,
                p.copyset,
                if p.in_switch { " in-switch" } else { "" },
                if p.repeated { " repeated" } else { "" },
                message.data.map(|data| data.0),
            );
        }
        if !self.arrives(message.packet.to) {
            return;
        }
        self.report.coverage.note(&message.packet);
        match message.packet.to {
            Endpoint::Switch => {
                self.touch(Touched::Switch);
                let mut out = Vec::new();
                self.switch.on_packet(&message.packet, &mut out);
                self.take_from_switch(out);
            }
            to => {
                let node = to.node().expect("only the switch is on no node");
                self.call(node, |node, at, store, out| node.on_packet(at, &message, store, out));
            }
        }
    }

    fn resubmit(&mut self) {
        if let Some(again) = self.resubmits.pop_front() {
            self.touch(Touched::Switch);
            let mut out = Vec::new();
            self.switch.on_resubmit(again, &mut out);
            self.take_from_switch(out);
        }
    }

    fn take_from_switch(&mut self, effects: Vec<flowcc::Effect>) {
        for effect in effects {
            match effect {
                flowcc::Effect::Send(packet) => self.network.send(Message::from(packet)),
                flowcc::Effect::Resubmit(again) => self.resubmits.push_back(again),
            }
        }
    }

    /// Some node is called because a deadline has passed; or early, which is harmless. If nobody has anything
    /// else to do, time goes on to the next deadline.
    fn deadlines(&mut self) {
        let first = self.random.below(self.nodes.len());
        let order = (0..self.nodes.len()).map(|n| NodeId(((first + n) % self.nodes.len()) as u16));
        let working: Vec<_> = order.filter(|node| self.control.works(*node)).collect();
        let Some(next) = working.iter().copied().min_by_key(|node| self.deadline_of(*node)) else { return };
        let idle = self.network.is_empty() && self.resubmits.is_empty();
        let due = self.deadline_of(next) <= self.now;
        let node = if due || idle { next } else { working[0] };
        if idle && !due {
            self.now = self.deadline_of(node).min(self.now + Nanos::from_millis(1));
        }
        self.call(node, |node, at, store, out| node.on_deadline(at, store, out));
        if self.random.per_mille(30) {
            self.demote();
        }
    }

    fn deadline_of(&self, node: NodeId) -> Nanos {
        self.nodes[node.index()].0.next_deadline()
    }

    /// A demotion that nobody asked for: the home must cope with any.
    fn demote(&mut self) {
        let Some(addr) = self.pick() else { return };
        let tag = BLOCK.tag(addr);
        let requester = wire::RequesterId { node: NodeId(0), slot: SlotId::MIGRATION };
        let packet = Packet {
            epoch: self.control.epoch_of(tag.home()),
            incarnation: self.lives_known[tag.home().index()][0],
            from: Endpoint::Shadow(NodeId(0)),
            to: Endpoint::HomeAgent(tag.home()),
            ..Packet::request(Kind::Demote, tag, requester, wire::Seq::NONE)
        };
        self.network.send(Message::from(packet));
    }

    fn touch(&mut self, place: Touched) {
        let first = self.touched == Touched::Nothing || self.touched == place;
        self.touched = if first { place } else { Touched::Several };
    }

    pub(super) fn call<T>(
        &mut self,
        node: NodeId,
        input: impl FnOnce(&mut Node<R>, Moment, &mut PlainStore, &mut Vec<Effect>) -> T,
    ) -> T {
        let at = self.moment();
        self.touch(Touched::Node(node));
        let mut out = Vec::new();
        let (machine, store) = &mut self.nodes[node.index()];
        let result = input(machine, at, store, &mut out);
        for tag in store.zeroed.drain(..) {
            self.latest.insert(tag, 0);
            self.threads.iter_mut().for_each(|thread| thread.ends_with(tag));
        }
        if self.plan.trace {
            let frames: Vec<_> = store.frames.iter().map(|f| (f.published, f.reserved, f.pinned)).collect();
            eprintln!("          {node} {frames:?}");
        }
        self.effects(node, out);
        result
    }

    pub(super) fn effects(&mut self, node: NodeId, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(message) => self.network.send(message),
                Effect::Completed { slot, outcome } => self.completed(node, slot, outcome),
            }
        }
    }
}
