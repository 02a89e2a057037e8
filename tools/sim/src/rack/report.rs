//! What a run did.
//!
//! What must always hold: a report covers the time since the last [`Rack::measure_from_here`](super::Rack::measure_from_here),
//! and nothing before it.

use wire::Nanos;

use super::budget::Budget;
use super::histogram::Histogram;
use super::state::RackState;
use super::worker::Phase;
use crate::system::{Envelope, Place, Service, System};

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Every worker has returned.
    WorkersDone,
    /// The time was up.
    Time,
    /// So many operations were done.
    Operations,
    /// Workers wait, and nothing will ever happen.
    Stuck,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Events of the queue.
    pub events: u64,
    /// Raw packets that nodes posted or the switch's program sent.
    pub datagrams: u64,
    /// Writes that nodes posted.
    pub writes: u64,
    /// Bytes of both above Ethernet.
    pub bytes: u64,
    /// Messages that nodes posted; the others are the switch's own.
    pub from_nodes: u64,
    /// Messages that came through to nodes.
    pub to_nodes: u64,
    /// Messages between processors of one node.
    pub local: u64,
    /// Messages that the switch's program took in.
    pub switch_passes: u64,
    /// Second passes through it.
    pub resubmits: u64,
    /// Messages lost: by fault rules, with stopped machines, in full queues.
    pub lost: u64,
    /// Operations that workers said they finished.
    pub operations: u64,
    /// How long those took.
    pub latency: Histogram,
}

impl Counts {
    pub(super) fn sent(&mut self, envelope: &Envelope) {
        match envelope.service {
            Service::Datagram => self.datagrams += 1,
            Service::Write => self.writes += 1,
        }
        self.from_nodes += u64::from(envelope.from != Place::Switch);
        self.bytes += u64::from(envelope.bytes);
    }
}

/// What a run did.
#[derive(Clone, Debug)]
pub struct RackReport {
    /// Why it ended.
    pub ended: Ended,
    /// How long it took, in virtual time.
    pub time: Nanos,
    /// What was counted.
    pub counts: Counts,
    /// Operations on memory, by thread.
    pub accesses: Vec<u64>,
    /// Operations of the application, by thread.
    pub operations: Vec<u64>,
    /// The longest time that an operation took; or has taken so far, if it is not finished.
    pub longest: Nanos,
    /// Where the time of the operations went, with [`Setup::budget`](super::Setup::budget).
    pub budget: Option<Budget>,
    /// The share of the time that each background thread worked, by node and number.
    pub agents: Vec<Vec<f64>>,
    /// The share of the time that each thread spent on messages.
    pub threads: Vec<f64>,
    /// The share of the time that each node's link to the switch, and each link from there, was in use.
    pub uplinks: Vec<f64>,
    /// See `uplinks`.
    pub downlinks: Vec<f64>,
}

impl RackReport {
    /// Operations on memory.
    pub fn accesses(&self) -> u64 {
        self.accesses.iter().sum()
    }

    /// Operations on memory in a second.
    pub fn accesses_per_second(&self) -> f64 {
        self.accesses() as f64 * 1e9 / self.time.0.max(1) as f64
    }

    /// Operations of the application in a second.
    pub fn operations_per_second(&self) -> f64 {
        self.counts.operations as f64 * 1e9 / self.time.0.max(1) as f64
    }
}

impl<S: System> RackState<S> {
    /// Forgets what was counted.
    pub(super) fn clear_counts(&mut self) {
        self.counts = Counts::default();
        for thread in &mut self.threads {
            (thread.accesses, thread.operations) = (0, 0);
        }
        for server in &mut self.servers {
            (server.busy, server.handled) = (Nanos::ZERO, 0);
        }
        self.links_before = self.links().collect();
        if let Some(budgets) = &mut self.budgets {
            budgets.sum = Budget::default();
        }
    }

    pub(super) fn report(&self, ended: Ended, time: Nanos) -> RackReport {
        let share = |busy: Nanos| busy.0 as f64 / time.0.max(1) as f64;
        let (threads, others) = self.servers.split_at(self.threads.len());
        let agents = &others[..self.setup.nodes * self.setup.agents];
        RackReport {
            ended,
            time,
            counts: self.counts.clone(),
            accesses: self.threads.iter().map(|thread| thread.accesses).collect(),
            operations: self.threads.iter().map(|thread| thread.operations).collect(),
            longest: self
                .threads
                .iter()
                .filter(|thread| thread.phase != Phase::Idle)
                .fold(self.counts.latency.longest(), |longest, thread| {
                    longest.max(self.now.saturating_sub(thread.finished))
                }),
            budget: self.budgets.as_ref().map(|budgets| budgets.sum),
            agents: agents
                .chunks(self.setup.agents.max(1))
                .map(|agents| agents.iter().map(|agent| share(agent.busy)).collect())
                .collect(),
            threads: threads.iter().map(|thread| share(thread.busy)).collect(),
            uplinks: self.links().zip(&self.links_before).map(|(now, then)| share(now.0 - then.0)).collect(),
            downlinks: self
                .links()
                .zip(&self.links_before)
                .map(|(now, then)| share(now.1 - then.1))
                .collect(),
        }
    }

    /// How long each node's link to the switch, and the one from there, have been in use.
    fn links(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
        (0..)
            .zip(&self.machines)
            .map(|(port, machine)| (machine.nic.link().busy(), self.ports.link(port).busy()))
    }

    /// When everything that has happened so far is over.
    pub(super) fn latest_clock(&self) -> Nanos {
        let clocks = self.servers[..self.threads.len()].iter().map(|server| server.free);
        clocks.fold(self.now, Nanos::max)
    }
}
