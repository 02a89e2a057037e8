//! What a machine tells: while it runs, how it ended, what it counted.

use core::fmt;

use nic::atomics::Counters;

use crate::timing::Accesses;
use crate::trap::Trap;

/// Somebody who looks on.
pub trait Observer {
    /// A node has written to its console.
    fn on_console(&mut self, node: usize, bytes: &[u8]);

    /// Whether [`Observer::on_instruction`] is wanted.
    fn traces(&self) -> bool {
        false
    }

    /// A core executes an instruction next. The registers are those before it.
    fn on_instruction(&mut self, node: usize, pc: u64, word: u32, x: &[u64; 32]) {
        let _ = (node, pc, word, x);
    }
}

/// An observer that keeps what was written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Console {
    /// What was written by all nodes, in the order in which it was.
    pub bytes: Vec<u8>,
}

impl Observer for Console {
    fn on_console(&mut self, _: usize, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

/// Why a machine has not come to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A core has trapped.
    Trap(Box<Trap>),
    /// These nodes wait at a barrier, and these have exited: nothing will happen any more.
    Stuck {
        /// At a barrier.
        waiting: Vec<usize>,
        /// Gone.
        exited: Vec<usize>,
    },
    /// It has executed as many instructions as it was allowed to.
    Limit(u64),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trap(trap) => trap.fmt(f),
            Self::Stuck { waiting, exited } => {
                write!(
                    f,
                    "nodes {waiting:?} wait at a barrier that nodes {exited:?}, which have exited, never reach"
                )
            }
            Self::Limit(limit) => write!(f, "not at its end after {limit} instructions"),
        }
    }
}

impl core::error::Error for Failure {}

/// What a machine has counted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Each node's.
    pub nodes: Vec<NodeStats>,
    /// Turns of all cores.
    pub rounds: u64,
}

/// What was counted at a node.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NodeStats {
    /// Instructions that its core has executed.
    pub instructions: u64,
    /// Of those: atomics on its own memory that the core did itself.
    pub local_atomics: u64,
    /// Loads that were requests to an engine.
    pub remote_loads: u64,
    /// Stores that were.
    pub remote_stores: u64,
    /// Atomics that were.
    pub remote_atomics: u64,
    /// Of these three: to the engine of its own node.
    pub to_itself: u64,
    /// Cycles until its program had ended. Without timing: as many as instructions.
    pub cycles: u64,
    /// Of those: that its core has waited for answers of engines.
    pub waited: u64,
    /// With timing: what its core's accesses of its memory found in caches.
    pub caches: Accesses,
    /// What its engine has counted.
    pub engine: Counters,
}

impl NodeStats {
    /// Both together; of cycles, the larger.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        let (a, b) = (&self.engine, &other.engine);
        Self {
            instructions: self.instructions + other.instructions,
            local_atomics: self.local_atomics + other.local_atomics,
            remote_loads: self.remote_loads + other.remote_loads,
            remote_stores: self.remote_stores + other.remote_stores,
            remote_atomics: self.remote_atomics + other.remote_atomics,
            to_itself: self.to_itself + other.to_itself,
            cycles: if self.cycles > other.cycles { self.cycles } else { other.cycles },
            waited: self.waited + other.waited,
            caches: Accesses {
                all: self.caches.all + other.caches.all,
                first_missed: self.caches.first_missed + other.caches.first_missed,
                second_missed: self.caches.second_missed + other.caches.second_missed,
            },
            engine: Counters {
                taken: a.taken + b.taken,
                merged: a.merged + b.merged,
                full: a.full + b.full,
                misaligned: a.misaligned + b.misaligned,
                fetched: a.fetched + b.fetched,
                written: a.written + b.written,
                blocked: a.blocked + b.blocked,
            },
        }
    }
}

impl Stats {
    /// All nodes together.
    pub fn total(&self) -> NodeStats {
        self.nodes.iter().fold(NodeStats::default(), |sum, node| sum.plus(node))
    }
}
