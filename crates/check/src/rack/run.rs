//! The little rack, step by step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use node::allocator::ChunkSize;
use node::{
    Access, Backoff, Config, Directory, Effect, Message, Moment, Node, Outcome, Retransmission, Started,
};
use switch::flowcc::{self, Resubmit, Switch};
use wire::{
    BlockSize, BlockTag, Discipline, Endpoint, Faithful, GlobalAddr, Kind, Nanos, NodeId, Packet, Rules,
    SlotId, SwitchEpoch,
};

use super::network::Network;
use super::threads::Doing;
use super::{Faults, PlainStore, Random, Thread};
use crate::properties;

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many nodes.
    pub nodes: usize,
    /// Application threads on each.
    pub threads: usize,
    /// Blocks that threads allocate at most.
    pub blocks: usize,
    /// Buckets of two frames in each cache.
    pub buckets: usize,
    /// Entries of the switch.
    pub switch_entries: usize,
    /// Where entries are kept.
    pub directory: Directory,
    /// Conflicting requests wait in line.
    pub queue: bool,
    /// What goes wrong.
    pub faults: Faults,
    /// Print every delivery, for finding out why a run failed.
    pub trace: bool,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Reads and writes that took place.
    pub accesses: u64,
    /// Block locks that were held.
    pub locks: u64,
    /// Allocations made.
    pub allocations: u64,
    /// Allocations freed.
    pub frees: u64,
    /// Accesses that were refused because the block had been freed.
    pub refused: u64,
    /// Packets lost, duplicated, put away.
    pub faults: [u64; 3],
    /// What the nodes counted.
    pub protocol: node::Counters,
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
    resubmits: VecDeque<Resubmit>,
    random: Random,
    now: Nanos,
    /// The number of the last write to every block.
    pub(crate) latest: BTreeMap<BlockTag, u64>,
    writes: u64,
    live: BTreeSet<GlobalAddr>,
    pub(crate) holders: BTreeMap<BlockTag, (usize, bool)>,
    report: Report,
    quiet: bool,
}

const BLOCK: BlockSize = BlockSize::MIN;

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
                retransmission: Retransmission::AfterRoundTrips { floor: Nanos::from_micros(60) },
                backoff: Backoff { first: Nanos::from_micros(2), most: Nanos::from_micros(40) },
                ..Config::new(NodeId(id as u16), plan.nodes, memory)
            };
            (Node::with_rules(config), PlainStore::new(BLOCK, plan.buckets))
        });
        let config = flowcc::Config {
            nodes: plan.nodes,
            entries: plan.switch_entries,
            epoch: SwitchEpoch(0),
            queue: plan.queue,
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
            report: Report::default(),
            quiet: false,
        }
    }

    /// Runs so many steps under faults, then ends the faults and runs until nothing is under way.
    ///
    /// # Errors
    /// The first property that did not hold, or what was still under way after a long time without faults.
    pub fn run(mut self, steps: usize) -> Result<Report, String> {
        for step in 0..steps {
            self.step();
            properties::check(&self).map_err(|what| format!("step {step}: {what}"))?;
        }
        self.plan.faults = Faults::default();
        self.quiet = true;
        for step in 0..40_000 {
            if self.is_quiet() {
                properties::check_at_rest(&self).map_err(|what| format!("at rest: {what}"))?;
                self.report.faults = [self.network.lost, self.network.duplicated, self.network.delayed];
                for (node, _) in &self.nodes {
                    self.report.protocol.add(node.counters());
                }
                return Ok(self.report);
            }
            self.step();
            properties::check(&self).map_err(|what| format!("faults off, step {step}: {what}"))?;
        }
        let stuck: Vec<_> = self.threads.iter().filter(|thread| thread.doing != Doing::Idle).collect();
        let nodes: Vec<_> = self.nodes.iter().filter(|(node, _)| !node.is_quiet()).collect();
        Err(format!("stuck: threads {stuck:#?}; nodes {nodes:#?}"))
    }

    fn is_quiet(&self) -> bool {
        self.network.is_empty()
            && self.resubmits.is_empty()
            && self.threads.iter().all(|thread| thread.doing == Doing::Idle)
            && self.nodes.iter().all(|(node, _)| node.is_quiet())
    }

    /// One thing happens.
    fn step(&mut self) {
        self.now += Nanos(1000);
        match self.random.below(10) {
            0 if !self.resubmits.is_empty() => self.resubmit(),
            0..=5 => self.deliver(),
            6..=7 => self.deadlines(),
            _ => self.act(),
        }
    }

    fn moment(&mut self) -> Moment {
        Moment { now: self.now, random: self.random.bits() as u32 }
    }

    fn deliver(&mut self) {
        // Re-entering packets do not wait for ever.
        if self.resubmits.len() > 3 {
            return self.resubmit();
        }
        let Some(message) = self.network.deliver(&mut self.random, self.plan.faults) else { return };
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
        match message.packet.to {
            Endpoint::Switch => {
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

    fn deadlines(&mut self) {
        let node = NodeId(self.random.below(self.nodes.len()) as u16);
        // Early calls are harmless, so they are made.
        self.call(node, |node, at, store, out| node.on_deadline(at, store, out));
        if self.random.per_mille(30) {
            self.demote();
        }
    }

    /// A demotion that nobody asked for: the home must cope with any.
    fn demote(&mut self) {
        let Some(addr) = self.pick() else { return };
        let tag = BLOCK.tag(addr);
        let requester = wire::RequesterId { node: NodeId(0), slot: SlotId::MIGRATION };
        let packet = Packet {
            from: Endpoint::Shadow(NodeId(0)),
            to: Endpoint::HomeAgent(tag.home()),
            ..Packet::request(Kind::Demote, tag, requester, wire::Seq::NONE)
        };
        self.network.send(Message::from(packet));
    }

    fn call<T>(
        &mut self,
        node: NodeId,
        input: impl FnOnce(&mut Node<R>, Moment, &mut PlainStore, &mut Vec<Effect>) -> T,
    ) -> T {
        let at = self.moment();
        let mut out = Vec::new();
        let (machine, store) = &mut self.nodes[node.index()];
        let result = input(machine, at, store, &mut out);
        machine.invariants(store);
        for tag in store.zeroed.drain(..) {
            self.latest.insert(tag, 0);
        }
        if self.plan.trace {
            let frames: Vec<_> = store.frames.iter().map(|f| (f.published, f.reserved, f.pinned)).collect();
            eprintln!("          {node} {frames:?}");
        }
        self.effects(node, out);
        result
    }

    fn effects(&mut self, node: NodeId, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(message) => self.network.send(message),
                Effect::Completed { slot, outcome } => self.completed(node, slot, outcome),
            }
        }
    }

    fn completed(&mut self, node: NodeId, slot: SlotId, outcome: Outcome) {
        for index in 0..self.threads.len() {
            let thread = self.threads[index];
            let Some((waits_for, started)) = thread.waits_for() else { continue };
            if thread.node != node || waits_for != slot {
                continue;
            }
            self.threads[index].doing = match (thread.doing, outcome) {
                _ if !started => Doing::Idle,
                (Doing::Fetching { tag, access, .. }, Outcome::Pinned(frame)) => {
                    Doing::Accessing { frame, tag, access }
                }
                (Doing::Locking { tag, write, .. }, Outcome::Locked) => {
                    self.hold(tag, write);
                    Doing::Holding { slot, tag, write }
                }
                (Doing::Allocating { .. }, Outcome::Allocated { addr, .. }) => {
                    self.report.allocations += 1;
                    assert!(self.live.insert(addr), "{addr} was allocated twice");
                    Doing::Idle
                }
                (Doing::Freeing { .. }, Outcome::Freed) => {
                    self.report.frees += 1;
                    Doing::Idle
                }
                (Doing::Fetching { .. } | Doing::Locking { .. }, Outcome::Failed(_)) => {
                    self.report.refused += 1;
                    Doing::Idle
                }
                (Doing::Allocating { .. }, Outcome::Failed(_)) | (_, Outcome::Retry) => Doing::Idle,
                (doing, outcome) => panic!("{doing:?} ended with {outcome:?}"),
            };
        }
    }

    fn hold(&mut self, tag: BlockTag, write: bool) {
        let holders = self.holders.entry(tag).or_insert((0, false));
        assert!(!holders.1 && (!write || holders.0 == 0), "{tag:?} is held by {holders:?}");
        *holders = (holders.0 + 1, write);
        self.report.locks += 1;
    }

    fn pick(&mut self) -> Option<GlobalAddr> {
        let nth = self.random.below(self.live.len().max(1));
        self.live.iter().nth(nth).copied()
    }

    /// A thread takes its next step.
    fn act(&mut self) {
        let index = self.random.below(self.threads.len());
        let thread = self.threads[index];
        match thread.doing {
            Doing::Idle if self.quiet => {}
            Doing::Idle => self.begin(index, thread.node),
            Doing::Accessing { frame, tag, access } => self.access(index, frame, tag, access),
            Doing::Holding { slot, tag, .. } => {
                let holders = self.holders.get_mut(&tag).expect("it is held");
                holders.0 -= 1;
                if holders.0 == 0 {
                    self.holders.remove(&tag);
                }
                self.threads[index].doing = Doing::Idle;
                self.call(thread.node, |node, at, store, out| node.on_release(at, slot, store, out));
            }
            _ => {}
        }
    }

    fn begin(&mut self, index: usize, node: NodeId) {
        let what = self.random.below(100);
        if what < 5 && self.live.len() < self.plan.blocks || self.live.is_empty() {
            let home = NodeId(self.random.below(self.nodes.len()) as u16);
            self.start(
                index,
                node,
                |slot| Doing::Allocating { slot },
                |node, at, store, out| {
                    node.on_alloc(at, BLOCK.bytes(), home, Discipline::Coherent, store, out)
                },
            );
            return;
        }
        let addr = self.pick().expect("something is live");
        let tag = BLOCK.tag(addr);
        if what < 7 {
            self.live.remove(&addr);
            self.start(
                index,
                node,
                |slot| Doing::Freeing { slot, addr },
                |node, at, store, out| node.on_free(at, addr, store, out),
            );
        } else if what < 20 {
            let write = self.random.per_mille(400);
            self.start(
                index,
                node,
                |slot| Doing::Locking { slot, tag, write },
                |node, at, store, out| node.on_lock(at, tag, write, false, store, out),
            );
        } else {
            let access = if self.random.per_mille(500) { Access::Modified } else { Access::Shared };
            self.fetch(index, node, tag, access);
        }
    }

    fn fetch(&mut self, index: usize, node: NodeId, tag: BlockTag, access: Access) {
        let started = self.start(
            index,
            node,
            |slot| Doing::Fetching { slot, tag, access },
            |node, at, store, out| node.on_access(at, tag, access, store, out),
        );
        if let Started::Pinned(frame) = started {
            self.threads[index].doing = Doing::Accessing { frame, tag, access };
        }
    }

    fn start(
        &mut self,
        index: usize,
        node: NodeId,
        doing: impl FnOnce(SlotId) -> Doing,
        input: impl FnOnce(&mut Node<R>, Moment, &mut PlainStore, &mut Vec<Effect>) -> Started,
    ) -> Started {
        let at = self.moment();
        let mut out = Vec::new();
        let (machine, store) = &mut self.nodes[node.index()];
        let started = input(machine, at, store, &mut out);
        machine.invariants(store);
        self.threads[index].doing = match started {
            Started::Slot(slot) => doing(slot),
            Started::Join(slot) => Doing::Joining { slot },
            Started::Pinned(_) | Started::Retry | Started::Full => Doing::Idle,
        };
        self.effects(node, out);
        started
    }

    /// The access itself, with the frame pinned; the pin lasted until now.
    fn access(&mut self, index: usize, frame: node::FrameId, tag: BlockTag, access: Access) {
        let node = self.threads[index].node;
        let (_, store) = &mut self.nodes[node.index()];
        let it = &mut store.frames[frame.0 as usize];
        assert!(
            it.pinned && it.published.is_some_and(|(holds, have)| holds == tag && have >= access),
            "{it:?}"
        );
        if access == Access::Modified {
            self.writes += 1;
            it.stamp = self.writes;
            self.latest.insert(tag, self.writes);
        } else {
            assert_eq!(it.stamp, self.latest[&tag], "{node} reads {tag:?}");
        }
        self.report.accesses += 1;
        self.threads[index].doing = Doing::Idle;
        if store.unpin(frame) {
            self.call(node, |node, at, store, out| node.on_unpinned(at, frame, store, out));
        }
    }
}
