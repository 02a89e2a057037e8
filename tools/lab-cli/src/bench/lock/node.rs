//! A node whose threads take locks: the same on locks that carry their data, and on locks layered on coherent memory.
//!
//! What must always hold: a state is numbers that are all the same, and each time it is written they grow by one. So
//! whoever reads a torn state finds out, and the sum of all states is the number of writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::hottest::{Span, Trace};
use lab::layered::{Locker, Locks};
use rackmem::{Discipline, Error, GlobalAddr, LockedBytes, NodeHandle, block_on};
use serde::{Deserialize, Serialize};

use crate::bench::nodes::{Node, Obeyed, Work, answer};
use crate::bench::rounds::until;
use crate::bench::samples::{Recorder, Samples};
use cli::ycsb::random::Random;

/// Which locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BenchLock {
    /// That carry their data.
    Carried,
    /// A word and a queue in coherent memory, and the data there, too.
    Layered,
}

impl BenchLock {
    pub(super) const BOTH: [Self; 2] = [Self::Carried, Self::Layered];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Carried => "carried",
            Self::Layered => "layered",
        }
    }
}

/// What all threads do.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Load {
    /// Locks on each node.
    pub(super) locks_per_node: u64,
    pub(super) state_bytes: u64,
    /// Per cent of the operations that only read.
    pub(super) read_percent: u64,
    /// Popularity falls with the rank to the power of this; 0: all are equally popular.
    pub(super) theta: f64,
    pub(super) critical_nanos: u64,
    pub(super) millis: u64,
}

/// Where the locks of one node are.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
pub(crate) struct Part {
    carried: u64,
    layered: [u64; 2],
    states: u64,
}

/// From one state to the next, so that no block holds two of them.
fn pitch(handle: &NodeHandle, state: u64) -> u64 {
    state.max(8).next_multiple_of(handle.block_size().bytes())
}

impl Part {
    /// Makes the locks whose home is this node.
    pub(super) fn make(handle: &mut NodeHandle, load: &Load) -> Result<Self, Error> {
        let (home, count) = (handle.id(), load.locks_per_node);
        let pitch = pitch(handle, load.state_bytes);
        let carried = handle.alloc(count * pitch, home, Discipline::Locked)?;
        let states = handle.alloc(count * pitch, home, Discipline::Coherent)?;
        let layered = block_on(Locks::allocate_apart(handle, count, home))?;
        // Carried states are not zeroed where memory was used before; here they never were, but say so.
        for lock in 0..count {
            handle.rwlock(carried + lock * pitch, load.state_bytes as usize)?.write(handle)?.fill(0);
        }
        Ok(Self {
            carried: carried.bits(),
            layered: layered.addresses().map(GlobalAddr::bits),
            states: states.bits(),
        })
    }
}

/// What a thread has done.
#[derive(Clone, Copy, Default, Serialize, Deserialize, Debug)]
pub(crate) struct Done {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) nanos: u64,
}

impl Done {
    pub(super) fn all(self) -> u64 {
        self.reads + self.writes
    }

    pub(super) fn per_second(self) -> f64 {
        self.all() as f64 / (self.nanos as f64 / 1e9).max(1e-9)
    }
}

/// All locks of the rack, as one thread has them. Lock `n` is the `n / nodes`th of node `n % nodes`.
pub(super) struct Mine {
    handle: NodeHandle,
    carried: Vec<LockedBytes>,
    layered: Vec<Locker>,
    states: Vec<GlobalAddr>,
    state: Vec<u64>,
    trace: Trace,
}

/// What all words of a state are.
pub(super) fn whole(state: &[u64]) -> u64 {
    let first = state.first().copied().unwrap_or(0);
    assert!(state.iter().all(|word| *word == first), "a torn state: a bug");
    first
}

/// Writes a state, and says what it was.
pub(super) fn grown(state: &mut [u64]) -> u64 {
    let found = whole(state);
    state.iter_mut().for_each(|word| *word += 1);
    found
}

/// Stays inside so long.
pub(super) fn stay(critical: Duration) {
    if !critical.is_zero() {
        let entered = Instant::now();
        while entered.elapsed() < critical {
            std::hint::spin_loop();
        }
    }
}

/// Does what a thread does until it is told to stop.
pub(super) fn cycle<E>(
    load: &Load,
    plan: &[(u32, bool)],
    stop: &AtomicBool,
    mut turn: impl FnMut(u64, bool, Duration) -> Result<(), E>,
) -> Result<Done, E> {
    let critical = Duration::from_nanos(load.critical_nanos);
    let mut done = Done::default();
    let began = Instant::now();
    for (lock, write) in plan.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        turn(u64::from(*lock), *write, critical)?;
        if *write { done.writes += 1 } else { done.reads += 1 }
    }
    done.nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(done)
}

impl Mine {
    /// `number` differs between all threads of the rack.
    pub(super) fn new(handle: NodeHandle, number: usize, parts: &[Part], load: &Load) -> Result<Self, Error> {
        let (nodes, pitch) = (parts.len() as u64, pitch(&handle, load.state_bytes));
        let at = |base: u64, lock: u64| GlobalAddr::from_bits(base) + lock / nodes * pitch;
        let part = |lock: u64| &parts[(lock % nodes) as usize];
        let all = 0..load.locks_per_node * nodes;
        let carried = all
            .clone()
            .map(|lock| handle.rwlock(at(part(lock).carried, lock), load.state_bytes as usize))
            .collect::<Result<_, _>>()?;
        let layered = parts
            .iter()
            .map(|part| Locks::apart_at(&handle, part.layered.map(GlobalAddr::from_bits)))
            .map(|locks| Locker::new(locks, number))
            .collect();
        let states = all.map(|lock| at(part(lock).states, lock)).collect();
        let state = vec![0; load.state_bytes.div_ceil(8) as usize];
        Ok(Self { handle, carried, layered, states, state, trace: Trace::default() })
    }

    /// One operation: what it found, or an error. The state has been looked at as a whole.
    fn turn(&mut self, kind: BenchLock, lock: u64, write: bool, critical: Duration) -> Result<u64, Error> {
        let bytes = zerocopy::IntoBytes::as_mut_bytes(self.state.as_mut_slice());
        let at = lock as usize;
        let mut turn = self.trace.asks(lock);
        let found = match (kind, write) {
            (BenchLock::Carried, false) => {
                let guard = self.carried[at].read(&mut self.handle)?;
                turn.is_in();
                bytes.copy_from_slice(&guard);
                stay(critical);
                turn.leaves();
                drop(guard);
                whole(&self.state)
            }
            (BenchLock::Carried, true) => {
                let mut guard = self.carried[at].write(&mut self.handle)?;
                turn.is_in();
                bytes.copy_from_slice(&guard);
                let found = grown(&mut self.state);
                guard.copy_from_slice(zerocopy::IntoBytes::as_bytes(self.state.as_slice()));
                stay(critical);
                turn.leaves();
                found
            }
            (BenchLock::Layered, write) => {
                let nodes = self.layered.len() as u64;
                let (locker, lock) = (&mut self.layered[(lock % nodes) as usize], lock / nodes);
                block_on(locker.acquire(&mut self.handle, lock, write))?;
                turn.is_in();
                let state = self.states[at];
                self.handle.read(state, bytes)?;
                let found = if write { grown(&mut self.state) } else { whole(&self.state) };
                if write {
                    self.handle.write(state, zerocopy::IntoBytes::as_bytes(self.state.as_slice()))?;
                }
                stay(critical);
                turn.leaves();
                block_on(locker.release(&mut self.handle, lock, write))?;
                found
            }
        };
        self.trace.note(turn);
        Ok(found)
    }

    /// Writes each of the first `count` states once, one after the other, and says how long each took.
    pub(super) fn write_all(&mut self, kind: BenchLock, count: u64) -> Result<Samples, Error> {
        Recorder::timed(count, |lock| self.turn(kind, lock, true, Duration::ZERO).map(drop))
    }

    /// The same of locks from this address on that nobody has had.
    pub(super) fn take_free(&mut self, base: GlobalAddr, load: &Load) -> Result<Samples, Error> {
        let pitch = pitch(&self.handle, load.state_bytes);
        Recorder::timed(load.locks_per_node, |lock| {
            let lock = self.handle.rwlock(base + lock * pitch, load.state_bytes as usize)?;
            lock.write(&mut self.handle).map(drop)
        })
    }

    /// Does what a thread does until it is told to stop.
    pub(super) fn run(
        &mut self,
        kind: BenchLock,
        load: &Load,
        plan: &[(u32, bool)],
        stop: &AtomicBool,
    ) -> Result<Done, Error> {
        cycle(load, plan, stop, |lock, write, critical| self.turn(kind, lock, write, critical).map(drop))
    }

    /// The sum of all states.
    pub(super) fn sum(&mut self, kind: BenchLock) -> Result<u64, Error> {
        (0..self.states.len() as u64).map(|lock| self.turn(kind, lock, false, Duration::ZERO)).sum()
    }
}

/// Operations after which a plan begins again.
const PLANNED: usize = 1 << 16;

/// Which locks a thread takes, and how.
pub(super) fn plan(load: &Load, nodes: u64, thread: u64) -> Vec<(u32, bool)> {
    let locks = load.locks_per_node * nodes;
    let mut sum = 0.0;
    let below: Vec<f64> = (1..=locks)
        .map(|rank| {
            sum += (rank as f64).powf(-load.theta);
            sum
        })
        .collect();
    let mut random = Random::new(1, thread);
    (0..PLANNED)
        .map(|_| {
            let at = random.unit() * sum;
            let lock = below.partition_point(|below| *below <= at).min(below.len() - 1);
            (u32::try_from(lock).expect("few locks"), random.below(100) >= load.read_percent)
        })
        .collect()
}

/// What threads have done, and what they did with the hottest lock.
pub(super) type Traced = Vec<(Done, Vec<Span>)>;

/// What a node knows from the start.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(super) threads: u16,
    pub(super) load: Load,
}

/// What the command wants of a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make the locks that are at home here. Answers a [`Part`].
    Make,
    /// These are all of them, node by node.
    Open(Vec<Part>),
    /// Let the threads run. Answers what each has [`Done`].
    Run(BenchLock, Load),
    /// The same, and note what becomes of the hottest lock. Answers that, too, of each thread.
    Trace(BenchLock, Load),
    /// Write the first so many states, one after the other. Answers [`Samples`].
    WriteAll(BenchLock, u64),
    /// Allocate as many locks again, at home here. Answers where they are.
    MakeFree,
    /// Take those, which nobody has had. Answers [`Samples`].
    TakeFree(u64),
    /// Answer the sum of all states.
    Sum(BenchLock),
}

/// A node, and its threads.
pub(crate) struct Threads {
    node: Node,
    setup: Setup,
    threads: Vec<Mine>,
}

impl Work for Threads {
    const NAME: &'static str = "bench lock";
    type Setup = Setup;
    type Order = Order;

    fn new(node: Node, setup: Setup) -> Self {
        Self { node, setup, threads: Vec::new() }
    }

    fn obey(&mut self, order: Order) -> Obeyed {
        match order {
            Order::Make => answer(Part::make(&mut self.node.handle(), &self.setup.load)?),
            Order::Open(parts) => {
                let mine = |number| Mine::new(self.node.handle(), number, &parts, &self.setup.load);
                self.threads = self.numbers().map(mine).collect::<Result<_, _>>()?;
                answer(())
            }
            Order::Run(kind, load) => answer(self.run(kind, &load)?),
            Order::Trace(kind, load) => {
                self.threads.iter_mut().for_each(|mine| mine.trace = Trace::begun());
                let done = self.run(kind, &load)?;
                let spans = self.threads.iter_mut().map(|mine| mine.trace.take());
                answer(done.into_iter().zip(spans).collect::<Traced>())
            }
            Order::MakeFree => {
                let mut handle = self.node.handle();
                let bytes = self.setup.load.locks_per_node * pitch(&handle, self.setup.load.state_bytes);
                answer(handle.alloc(bytes, self.node.id, Discipline::Locked)?.bits())
            }
            Order::TakeFree(base) => {
                answer(self.threads[0].take_free(GlobalAddr::from_bits(base), &self.setup.load)?)
            }
            Order::WriteAll(kind, count) => answer(self.threads[0].write_all(kind, count)?),
            Order::Sum(kind) => answer(self.threads[0].sum(kind)?),
        }
    }
}

impl Threads {
    /// The numbers of the threads here among all of the rack.
    fn numbers(&self) -> std::ops::Range<usize> {
        let each = usize::from(self.setup.threads);
        let first = self.node.id.index() * each;
        first..first + each
    }

    /// Runs a load, on all threads at once.
    fn run(&mut self, kind: BenchLock, load: &Load) -> Result<Vec<Done>, Error> {
        let nodes = u64::from(self.node.nodes());
        let plans: Vec<_> = self.numbers().map(|thread| plan(load, nodes, thread as u64)).collect();
        until(
            Duration::from_millis(load.millis),
            self.threads.iter_mut().zip(&plans),
            |(mine, plan), stop| mine.run(kind, load, plan, stop),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(read_percent: u64, theta: f64) -> Load {
        Load { locks_per_node: 25, state_bytes: 64, read_percent, theta, critical_nanos: 0, millis: 1 }
    }

    #[test]
    fn plans_have_the_mix_and_the_skew_that_was_asked_for() {
        let share = |plan: &[(u32, bool)], of: &dyn Fn(&(u32, bool)) -> bool| {
            plan.iter().filter(|turn| of(turn)).count() as f64 / plan.len() as f64
        };
        let even = plan(&load(75, 0.0), 4, 0);
        assert!((share(&even, &|(_, write)| *write) - 0.25).abs() < 0.01);
        assert!((share(&even, &|(lock, _)| *lock == 99) - 0.01).abs() < 0.003);
        let skewed = plan(&load(100, 0.99), 4, 0);
        let sum: f64 = (1..=100).map(|rank| f64::from(rank).powf(-0.99)).sum();
        assert!((share(&skewed, &|(lock, _)| *lock == 0) - 1.0 / sum).abs() < 0.01);
        assert!(skewed.iter().all(|(_, write)| !write));
        assert_ne!(plan(&load(75, 0.0), 4, 1), even, "threads differ");
    }
}
