//! A rack in virtual time: coherent blocks, and locks that carry their data.

use core::future::Future;

use rackmem::{Config, ConfigError, Directory};
use sim::coherence::{self, Contents};
use sim::hardware::Testbed;
use sim::joint::{self, Joint};
use sim::locks::Costs;
use sim::rack::{Rack, RackReport, Setup, Until};
use sim::system::ThreadId;
use wire::{BlockSize, Nanos, NodeId};

use crate::handle::{Shape, SimulatedHandle};

/// A simulated rack's configuration. The defaults are those of an embedded rack, with the paper's four threads a
/// node, in exact order.
#[derive(Clone, Debug)]
pub struct SimulatedConfig {
    /// How many nodes: 1 to 64, and no more than the testbed's switch has ports.
    pub nodes: usize,
    /// Application threads on every node.
    pub threads: usize,
    /// The unit of coherence and of atomicity.
    pub block_size: BlockSize,
    /// Bytes of cache on every node.
    pub cache: u64,
    /// Bytes of memory that every node contributes, and is home of.
    pub memory: u64,
    /// Directory entries that the switch has capacity for.
    pub switch_entries: usize,
    /// Bytes of copies of locked regions on every node.
    pub lock_copies: u64,
    /// Locks that the switch has capacity for.
    pub lock_entries: usize,
    /// Where directory entries are kept.
    pub directory: Directory,
    /// What becomes of a request for a block of the switch that another node is just getting: it waits in a queue, or is
    /// refused.
    pub queue: bool,
    /// How often homes and the switch exchange hot and cold blocks.
    pub epoch: Nanos,
    /// Fixes the run.
    pub seed: u64,
    /// What everything takes.
    pub testbed: Testbed,
    /// What is kept of blocks. Applications that read what they wrote need the bytes.
    pub contents: Contents,
    /// How far threads may run ahead of each other's messages: zero for exact order, [`Nanos::MAX`] for as far as is
    /// sound, which is faster. Histories must be recorded in exact order.
    pub run_ahead: Nanos,
    /// Check every property of the protocol after every event. For small racks.
    pub check: bool,
}

impl Default for SimulatedConfig {
    fn default() -> Self {
        let Config {
            nodes,
            block_size,
            cache,
            memory,
            switch_entries,
            lock_copies,
            lock_entries,
            directory,
            queue,
            epoch,
            seed,
            ..
        } = Config::default();
        Self {
            nodes,
            threads: 4,
            block_size,
            cache,
            memory,
            switch_entries,
            lock_copies,
            lock_entries,
            directory,
            queue,
            epoch,
            seed,
            testbed: Testbed::CONCORDIA,
            contents: Contents::Bytes,
            run_ahead: Nanos::ZERO,
            check: false,
        }
    }
}

/// A rack of machines with one shared memory, in virtual time.
pub struct SimulatedRack {
    rack: Rack<Joint>,
    shape: Shape,
    threads: usize,
}

impl SimulatedRack {
    /// A rack at time zero.
    ///
    /// # Errors
    /// If the configuration is impossible; the error says what to change.
    pub fn new(config: SimulatedConfig) -> Result<Self, ConfigError> {
        let SimulatedConfig {
            nodes,
            block_size,
            cache,
            memory,
            switch_entries,
            lock_copies,
            lock_entries,
            directory,
            queue,
            epoch,
            seed,
            ..
        } = config;
        Config {
            nodes,
            block_size,
            cache,
            memory,
            switch_entries,
            lock_copies,
            lock_entries,
            directory,
            queue,
            epoch,
            seed,
            ..Config::default()
        }
        .check()?;
        let setup = Setup {
            threads: config.threads,
            agents: joint::AGENTS,
            testbed: config.testbed,
            seed,
            run_ahead: config.run_ahead,
            check: config.check,
            ..Setup::new(nodes)
        };
        let blocks = coherence::FlowCcConfig {
            threads: config.threads,
            block: block_size,
            cache,
            memory,
            contents: config.contents,
            switch_entries,
            directory,
            queue,
            epoch,
            check: config.check,
            ..coherence::FlowCcConfig::new(nodes)
        };
        let system = joint::JointConfig { blocks, lock_copies, lock_entries, costs: Costs::LIBRARY };
        Ok(Self {
            rack: Rack::new(setup, Joint::new(system)),
            shape: Shape { nodes, block_size, memory },
            threads: config.threads,
        })
    }

    /// Puts a worker on a thread of a node. It begins now.
    ///
    /// # Panics
    /// If there is no such thread, or it has a worker.
    pub fn spawn<F>(&mut self, node: NodeId, thread: usize, worker: impl FnOnce(SimulatedHandle<Joint>) -> F)
    where
        F: Future<Output = ()> + 'static,
    {
        let (id, shape) = (self.thread(node, thread), self.shape);
        self.rack.spawn(id, |handle| worker(SimulatedHandle::new(handle, shape)));
    }

    /// Puts a worker on a thread of a node, runs the rack until it has ended, and returns what it returned.
    ///
    /// # Panics
    /// If it never ends, and as for [`SimulatedRack::spawn`].
    pub fn run_one<T, F>(
        &mut self,
        node: NodeId,
        thread: usize,
        worker: impl FnOnce(SimulatedHandle<Joint>) -> F,
    ) -> T
    where
        T: 'static,
        F: Future<Output = T> + 'static,
    {
        let (id, shape) = (self.thread(node, thread), self.shape);
        self.rack.run_one(id, |handle| worker(SimulatedHandle::new(handle, shape)))
    }

    /// Runs the workers.
    pub fn run(&mut self, until: Until) -> RackReport {
        self.rack.run(until)
    }

    /// The rack itself: faults, observers, measurements, the protocol's machines.
    pub fn rack(&mut self) -> &mut Rack<Joint> {
        &mut self.rack
    }

    fn thread(&self, node: NodeId, thread: usize) -> ThreadId {
        let Shape { nodes, .. } = self.shape;
        assert!(node.index() < nodes, "this rack has nodes 0 to {}, and no {node}", nodes - 1);
        assert!(thread < self.threads, "nodes have threads 0 to {}, and no {thread}", self.threads - 1);
        let id = node.index() * self.threads + thread;
        ThreadId(u16::try_from(id).expect("the rack has numbered its threads"))
    }
}
