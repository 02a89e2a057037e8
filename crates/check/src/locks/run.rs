//! The rack, step by step.

use std::collections::BTreeMap;

use node::Retransmission;
use node::locks::{Config, LockCounters};
use node::store::Moment;
use node::{LockEffect, LockMessage, LockNode};
use switch::locks::{Directory, Effect, Resubmit};
use wire::{Faithful, GlobalAddr, Incarnation, LockEnd, LockRules, Nanos, NodeId};

use super::allocations::Allocations;
use super::control::{Control, FIRST};
use super::network::Network;
use super::properties::{self, Asked, Waits};
use super::{LockStops, PlainLocks, Plan, Thread};
use crate::rack::{Faults, Injected, Random};

/// Bytes of a region that has any.
const LEN: u32 = 8;

/// What was done in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
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
    /// Copies that went for want of room.
    pub evicted: u64,
    /// Packets sent again.
    pub repeated: u64,
    /// Times that a thread was told that the data are lost.
    pub lost: u64,
    /// Times that one was told that the lock's home is gone.
    pub down: u64,
    /// What stopped.
    pub stops: LockStops,
    /// The most times that a thread passed one that stood in a queue.
    pub passed: u64,
    /// The most times that a node began a reign while another one waited.
    pub reigns_before: u64,
    /// What happened to packets.
    pub faults: Injected,
}

impl Report {
    fn count(&mut self, counters: &LockCounters) {
        self.moves += counters.moves;
        self.denied += counters.denied;
        self.evicted += counters.evicted;
        self.repeated += counters.repeated;
    }
}

/// A small rack of locks.
pub struct LockRack<R: LockRules = Faithful> {
    /// What it is like.
    pub plan: Plan,
    pub(super) random: Random,
    pub(super) now: u64,
    /// Every node's machine, and its store.
    pub nodes: Vec<(LockNode<R>, PlainLocks)>,
    /// The directory in the switch.
    pub switch: Directory<R>,
    pub(super) again: Vec<(Resubmit, LockMessage)>,
    pub(super) network: Network,
    /// The locks, with the bytes of their regions.
    pub locks: Vec<(GlobalAddr, u32)>,
    /// The number of each lock's last write, in each life of its home and in each allocation.
    pub truth: BTreeMap<(usize, Incarnation, u32), u64>,
    pub(super) losses: properties::Losses,
    pub(super) allocations: Allocations,
    pub(super) control: Control,
    /// Every thread, node by node.
    pub threads: Vec<Thread>,
    pub(super) waits: Waits,
    pub(super) asked: Asked,
    pub(super) tenures: properties::Tenures,
    pub(super) out: Vec<LockEffect>,
    pub(super) report: Report,
}

impl<R: LockRules> LockRack<R> {
    /// A rack in which nothing has happened.
    pub fn new(plan: Plan, seed: u64) -> Self {
        let epoch = FIRST;
        let nodes = (0..plan.nodes).map(|node| {
            let id = NodeId(node as u16);
            let retransmission = match plan.repeats {
                true => Retransmission::AfterRoundTrips { floor: Nanos(60), most: Nanos::MAX },
                false => Retransmission::Never,
            };
            let config = Config {
                in_switch: plan.switch_entries > 0,
                preference: plan.preference,
                retransmission,
                epoch,
                ..Config::new(id, plan.nodes)
            };
            (LockNode::with_rules(config), PlainLocks::new(plan.room))
        });
        let nodes = nodes.collect();
        let entries = plan.switch_entries.max(1);
        let config = switch::locks::Config { at: LockEnd::Switch, nodes: plan.nodes, entries, epoch };
        let locks = (0..plan.locks).map(|lock| {
            let home = NodeId((lock % plan.nodes) as u16);
            (GlobalAddr::new(home, 4096 + 64 * lock as u64), if lock % 3 == 2 { 0 } else { LEN })
        });
        let threads = plan.nodes * plan.threads;
        Self {
            plan,
            random: Random::new(seed),
            now: 0,
            nodes,
            switch: Directory::with_rules(&config).expect("a small directory fits"),
            again: Vec::new(),
            network: Network::default(),
            locks: locks.collect(),
            truth: BTreeMap::new(),
            losses: properties::Losses::default(),
            allocations: Allocations::default(),
            control: Control::new(plan.nodes),
            threads: vec![Thread::Idle; threads],
            waits: Waits::new(&plan),
            asked: Asked::new(&plan),
            tenures: properties::Tenures::default(),
            out: Vec::new(),
            report: Report::default(),
        }
    }

    pub(super) fn moment(&mut self) -> Moment {
        Moment { now: Nanos(self.now), random: self.random.bits() as u32 }
    }

    pub(super) fn tell(&self, what: impl FnOnce() -> String) {
        if self.plan.trace {
            eprintln!("{:>6} {}", self.now, what());
        }
    }

    /// One thing happens, and everything is looked at.
    ///
    /// # Errors
    /// What does not hold.
    pub fn step(&mut self, calm: bool) -> Result<(), String> {
        self.now += 1;
        if !calm && !self.plan.restarts.is_never() {
            self.control_step()?;
        }
        let faults = if calm { Faults::default() } else { self.plan.faults };
        let crowded = self.network.len() > 16;
        match self.random.below(10) {
            0..=2 if !crowded || calm => self.thread_step(calm)?,
            3 => self.deadlines_step()?,
            4 if !self.again.is_empty() => self.second_pass()?,
            _ => {
                if let Some(message) = self.network.deliver(&mut self.random, faults, self.plan.in_order) {
                    self.deliver(&message)?;
                }
            }
        }
        properties::check(self)
    }

    fn second_pass(&mut self) -> Result<(), String> {
        let at = self.random.below(self.again.len());
        let (again, message) = self.again.swap_remove(at);
        self.tell(|| format!("second pass, approved {}: {}", again.approved, short(&message)));
        let mut effects = Vec::new();
        self.switch.on_resubmit(&again, &mut effects);
        self.drain_switch(&message, effects);
        Ok(())
    }

    fn deliver(&mut self, message: &LockMessage) -> Result<(), String> {
        if !self.control.is_up(message.packet.to.node()) {
            return Ok(());
        }
        self.tell(|| short(message));
        let Some(to) = message.packet.to.node() else {
            let mut effects = Vec::new();
            self.switch.on_packet(&message.packet, &mut effects);
            self.drain_switch(message, effects);
            return Ok(());
        };
        let at = self.moment();
        let (machine, store) = &mut self.nodes[to.index()];
        machine.on_packet(at, message, store, &mut self.out);
        self.drain(to.index())
    }

    fn drain_switch(&mut self, message: &LockMessage, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(packet) => {
                    let data = if packet.payload > 0 { message.data } else { None };
                    self.network.send(None, LockMessage { packet, data });
                }
                Effect::Resubmit(again) => self.again.push((again, *message)),
            }
        }
    }

    /// Sends and tells what a node wants sent and told.
    pub(super) fn drain(&mut self, node: usize) -> Result<(), String> {
        for effect in std::mem::take(&mut self.out) {
            match effect {
                LockEffect::Send(message) => {
                    self.network.send(Some(NodeId(node as u16)), message);
                }
                told => self.on_told(told)?,
            }
        }
        Ok(())
    }

    /// Whatever is due is done.
    fn deadlines_step(&mut self) -> Result<(), String> {
        let node = self.random.below(self.nodes.len());
        if self.nodes[node].0.next_deadline() <= Nanos(self.now) {
            self.tell(|| format!("node {node} is due"));
            let at = self.moment();
            let (machine, store) = &mut self.nodes[node];
            machine.on_deadline(at, store, &mut self.out);
            self.drain(node)?;
        }
        Ok(())
    }

    fn is_at_rest(&self) -> bool {
        self.network.is_empty()
            && self.again.is_empty()
            && self.threads.iter().all(|thread| *thread == Thread::Idle)
            && self.control.is_settled()
            && self.nodes.iter().all(|(machine, _)| machine.is_quiet())
    }

    /// No more faults: every thread that waits gets in, and everything comes to rest.
    ///
    /// # Errors
    /// What does not hold, or does not come to rest.
    pub fn settle(&mut self) -> Result<(), String> {
        self.tell(|| "no more faults".to_owned());
        self.settle_control()?;
        let mut silent = 0;
        for _ in 0..200_000 {
            if self.is_at_rest() {
                return properties::check_at_rest(self);
            }
            self.step(true)?;
            let inside =
                self.threads.iter().any(|thread| matches!(thread, Thread::Inside(..) | Thread::Ending(_)));
            silent = if self.network.is_empty() && self.again.is_empty() && !inside { silent + 1 } else { 0 };
            if silent > 50 {
                let due = self.nodes.iter().map(|(machine, _)| machine.next_deadline()).min();
                let due = due.expect("there are nodes");
                if due == Nanos::MAX {
                    return Err(format!("stuck: nothing is under way, and {}", self.describe()));
                }
                self.now = self.now.max(due.0);
            }
        }
        Err(format!("stuck: it does not come to rest, and {}", self.describe()))
    }

    fn describe(&self) -> String {
        let mut text = format!("threads are {:?}", self.threads);
        for (at, (lock, _)) in self.locks.iter().enumerate() {
            text += &format!("\nlock {at}: switch {:?}", self.switch.entry(*lock));
            for (machine, store) in &self.nodes {
                let id = machine.id();
                text += &format!("\n  {id}: {:?} {:?}", machine.view(*lock), store.frames.get(lock));
                text += &format!(" home {:?} entry {:?}", machine.home_of(*lock), machine.entry(*lock));
            }
        }
        text
    }

    /// What was done so far.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        for (machine, _) in &self.nodes {
            report.count(machine.counters());
        }
        report.passed = self.waits.most();
        report.reigns_before = self.asked.most();
        report.faults = self.network.injected;
        report.stops = self.control.stops;
        report
    }

    /// Keeps what a node has counted that is about to die.
    pub(super) fn count(&mut self, node: usize) {
        self.report.count(self.nodes[node].0.counters());
    }
}

/// A packet in a line.
fn short(message: &LockMessage) -> String {
    let p = &message.packet;
    format!(
        "{:?} {:?} -> {:?} lock {:#x} node {} {:?} t{} nodes {:b} waiting {:b}/{:b} next {:?} queue {:?} once {} copy {} {:?}",
        p.kind,
        p.from,
        p.to,
        p.lock.bits(),
        p.node.0,
        p.mode,
        p.tenure.0,
        p.nodes.bits(),
        p.waiting.bits(),
        p.writers.bits(),
        p.next.map(|next| next.0),
        p.queue,
        p.once,
        p.has_copy,
        message.data.map(|data| data.0)
    )
}
