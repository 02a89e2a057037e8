//! What a machine tells: while it runs, how it ended, what it counted.

use core::fmt;

use nic::words::Counters;

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

    /// Whether the machine is to stop. It is asked again and again, between turns.
    fn stops(&self) -> bool {
        false
    }

    /// A core sends a request to an engine.
    fn on_request(&mut self, request: &Sent) {
        let _ = request;
    }

    /// A program has asked for what was counted so far to be noted, under this number.
    fn on_mark(&mut self, node: usize, number: u64) {
        let _ = (node, number);
    }

    /// A core executes an instruction next. The registers are those before it.
    fn on_instruction(&mut self, node: usize, pc: u64, word: u32, x: &[u64; 32]) {
        let _ = (node, pc, word, x);
    }
}

/// A request of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Whose.
    pub from: usize,
    /// When, in its core's cycles.
    pub clock: u64,
    /// To the engine of which node.
    pub to: usize,
    /// Where in that node's memory, in bytes from its beginning.
    pub offset: u64,
    /// It is an atomic, and neither load nor store.
    pub is_atomic: bool,
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
    /// Whoever looks on wanted it to stop.
    Stopped,
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
            Self::Stopped => f.write_str("stopped before its end"),
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
    /// Of those: atomics on its own memory that the core did itself; `lr` and `sc` are one each.
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
    /// Routines of a library that the program has called, on the software path.
    pub routines: u64,
    /// Of the instructions: those that were charged for these.
    pub charged: u64,
    /// What its engine has counted.
    pub engine: Counters,
}

impl NodeStats {
    /// Both together; of cycles, the larger.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        let cycles = if self.cycles > other.cycles { self.cycles } else { other.cycles };
        Self { cycles, ..self.each(other, 1) }
    }

    /// What was counted since an earlier time.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        self.each(earlier, -1)
    }

    /// Each counter, and so many times another's.
    const fn each(&self, other: &Self, times: i64) -> Self {
        const fn sum(a: u64, b: u64, times: i64) -> u64 {
            a.wrapping_add(b.wrapping_mul(times.cast_unsigned()))
        }
        let (a, b) = (&self.engine, &other.engine);
        Self {
            instructions: sum(self.instructions, other.instructions, times),
            local_atomics: sum(self.local_atomics, other.local_atomics, times),
            remote_loads: sum(self.remote_loads, other.remote_loads, times),
            remote_stores: sum(self.remote_stores, other.remote_stores, times),
            remote_atomics: sum(self.remote_atomics, other.remote_atomics, times),
            to_itself: sum(self.to_itself, other.to_itself, times),
            cycles: sum(self.cycles, other.cycles, times),
            waited: sum(self.waited, other.waited, times),
            routines: sum(self.routines, other.routines, times),
            charged: sum(self.charged, other.charged, times),
            caches: Accesses {
                all: sum(self.caches.all, other.caches.all, times),
                first_missed: sum(self.caches.first_missed, other.caches.first_missed, times),
                second_missed: sum(self.caches.second_missed, other.caches.second_missed, times),
            },
            engine: Counters {
                taken: sum(a.taken, b.taken, times),
                merged: sum(a.merged, b.merged, times),
                full: sum(a.full, b.full, times),
                misaligned: sum(a.misaligned, b.misaligned, times),
                fetched: sum(a.fetched, b.fetched, times),
                written: sum(a.written, b.written, times),
                blocked: sum(a.blocked, b.blocked, times),
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
