//! Locks and what they guard, on the systems of the GCS paper: compute blades with threads, and one memory blade, which is the
//! rack's last node and runs none.
//!
//! What must always hold: a point's rack, load and seed follow from the point and the sizes.

use node::{Backoff, Directory, Retransmission};
use rackmem::{Discipline, Memory};
use sim::coherence::{self, Contents, FlowCc};
use sim::locks::{Locks, SimLocksConfig};
use sim::rack::{Ended, Handle, Rack, Setup, Until};
use sim::system::{Random, System, ThreadId};
use simulated::{Shape, SimulatedHandle};
use wire::{BlockSize, GlobalAddr, Nanos, NodeId};

use super::micro::{advance, measured};
use super::subject::Tally;
use crate::figure::input::Inputs;
use crate::figure::measured::Measured;
use crate::figure::point::{Buckets, Contend, Load, Subject};
use crate::figure::run::{Interrupted, Watch};
use crate::gcs::apart::Apart;
use crate::gcs::guarded::{Carried, Guarded, Layered, OneByOne};
use crate::layered;
use crate::load::store::SKEW;
use crate::load::zipf::Zipf;
use crate::sizes::Sizes;

/// Threads on each compute blade under the key-value store (GCS, section 5.1).
const THREADS: usize = 10;
/// Bytes of a value, which is what a bucket has.
const VALUE: u32 = 1024;
/// What a query of the store takes besides its lock and its value: *the declared calibration of GCS*. 80 threads read 31.2
/// million times in a second (GCS, section 5.1), 2.56 us each; entering, leaving and looking at 1 KB are 1 us of them
/// ([`sim::locks::Costs`]).
pub(crate) const QUERY: Nanos = Nanos(1_560);
/// How many threads of its own node `rackmem` lets in before another node. More make the lines at the other blades longer
/// than what a hand-over saves.
const PREFERENCE: u32 = 2;
/// How a fault that MIND's switch refuses waits before it is sent again: 50 us the first time, 50 more each time up to 200
/// (`DISAGG_NACK_RETRY_IN_USEC`, `DISAGG_NACK_MAX_BACKOFF` in its `network_disagg.h`, `help_invalidation_and_sleep` in
/// `fault_disagg.c`). Ours draws its pause from zero up, so that twice as much is as much on average.
pub(crate) const REFUSED: Backoff = Backoff { first: Nanos(100_000), most: Nanos(400_000) };

/// What is run.
#[derive(Clone, Copy)]
struct Plan {
    blades: usize,
    threads: usize,
    locks: u64,
    len: u32,
    load: Load,
}

impl Plan {
    fn of(load: Load, sizes: &Sizes) -> Self {
        match load {
            Load::Contend(Contend { blades, threads, len, .. }) => {
                Self { blades: blades.into(), threads: threads.into(), locks: u64::from(threads), len, load }
            }
            Load::Buckets(Buckets { blades, .. }) => {
                Self { blades: blades.into(), threads: THREADS, locks: buckets(sizes), len: VALUE, load }
            }
            other => panic!("{other:?} is not about locks"),
        }
    }

    fn home(&self) -> NodeId {
        NodeId(u16::try_from(self.blades).expect("few blades"))
    }
}

/// Buckets of the store. A key each.
pub(crate) const fn buckets(sizes: &Sizes) -> u64 {
    sizes.keys / 16
}

/// Runs a point.
pub(super) fn run(
    (subject, load): (Subject, Load),
    (sizes, inputs): (&Sizes, &Inputs),
    seed: u64,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let plan = Plan::of(load, sizes);
    let setup = Setup { threads: plan.threads, seed, ..inputs.setup(plan.blades + 1) };
    // It is so slow that fewer are as many seconds.
    let part = if subject == Subject::Layered { 5 } else { 1 };
    let sizes = Sizes {
        warm_up: (sizes.warm_up / part).max(1),
        operations: (sizes.operations / part).max(1),
        ..*sizes
    };
    // What is left of an access to a region that is here, where the coherence protocol's own access is paid already.
    let (access, rest) = (inputs.locks.access, inputs.locks.access.saturating_sub(inputs.mind.access));
    match subject {
        Subject::Gcs | Subject::WithoutLocality | Subject::Rackmem => {
            let mut locks = locks(&plan, inputs, plan.len, subject);
            let at = regions(&mut locks, &plan);
            let rack = Rack::new(setup, locks);
            let thread = |handle, _| Carried { handle, locks: at, token: 0, access };
            drive(rack, (&plan, inputs.query), thread, Tally::of_locks, &sizes, watch)
        }
        Subject::DataApart => {
            let mut locks = locks(&plan, inputs, 0, subject);
            let at = regions(&mut locks, &plan);
            let (memory, shape) = memory(&plan, inputs, Contents::Stamps);
            let mut rack = Rack::new(setup, Apart { locks, memory });
            let data = data(&mut rack, &plan, shape);
            let thread = |handle, _| OneByOne { handle, locks: at, data, token: 0, rest };
            let tally = |apart: &Apart| Tally::of_locks(&apart.locks);
            drive(rack, (&plan, inputs.query), thread, tally, &sizes, watch)
        }
        Subject::Layered => {
            let (memory, shape) = memory(&plan, inputs, Contents::Bytes);
            let mut rack = Rack::new(setup, memory);
            let data = data(&mut rack, &plan, shape);
            let (count, home) = (plan.locks, plan.home());
            let locks = rack.run_one(ThreadId(0), move |handle| async move {
                let mut mem = SimulatedHandle::new(handle, shape);
                layered::Locks::allocate(&mut mem, count, home).await.expect("there is room for the locks")
            });
            let thread = |handle, number| Layered {
                mem: SimulatedHandle::new(handle, shape),
                locker: layered::Locker::new(locks, number),
                data,
                rest,
            };
            drive(rack, (&plan, inputs.query), thread, super::subject::Subject::tally, &sizes, watch)
        }
        other => panic!("{other:?} has no locks to be measured"),
    }
}

fn locks(plan: &Plan, inputs: &Inputs, len: u32, subject: Subject) -> Locks {
    let config = SimLocksConfig::new(plan.blades + 1);
    let preference = if subject == Subject::Rackmem { PREFERENCE } else { 0 };
    let keeps = subject != Subject::WithoutLocality;
    Locks::new(SimLocksConfig {
        threads: plan.threads,
        len,
        preference,
        keeps,
        costs: inputs.locks,
        ..config
    })
}

/// All locks: the first, and from one to the next.
fn regions(locks: &mut Locks, plan: &Plan) -> (GlobalAddr, u64) {
    let mut next = || locks.allocate(plan.home()).expect("the memory blade is there");
    let first = next();
    let all: Vec<u64> = (1..plan.locks).map(|_| next().bits()).collect();
    let stride = all.first().map_or(0, |second| second - first.bits());
    (first, stride)
}

/// Coherent memory in the place of MIND's: pages of 4 KiB, the directory in the switch, all data on the memory blade. The
/// cache has room for everything, as the paper's 512 MB have.
fn memory(plan: &Plan, inputs: &Inputs, contents: Contents) -> (FlowCc, Shape) {
    const UNIT: u64 = 8 << 20;
    let room = (plan.locks * (u64::from(plan.len.max(8)) + layered::BYTES)).next_multiple_of(UNIT) + 2 * UNIT;
    let config = coherence::FlowCcConfig {
        threads: plan.threads,
        cache: 2 * room,
        memory: 2 * room,
        contents,
        directory: Directory::Switch,
        costs: inputs.mind,
        backoff: inputs.refused,
        retransmission: Retransmission::Never,
        ..coherence::FlowCcConfig::new(plan.blades + 1)
    };
    let shape = Shape { nodes: config.nodes, block_size: BlockSize::DEFAULT, memory: config.memory };
    (FlowCc::new(config), shape)
}

/// Allocates the data in a row: the first region, and from one to the next.
fn data<S: System + 'static>(rack: &mut Rack<S>, plan: &Plan, shape: Shape) -> (GlobalAddr, u64) {
    let (stride, home) = (u64::from(plan.len.max(8)), plan.home());
    let bytes = (plan.locks * stride).next_multiple_of(shape.block_size.bytes());
    let first = rack.run_one(ThreadId(0), move |handle| async move {
        let mut mem = SimulatedHandle::new(handle, shape);
        mem.alloc(bytes, home, Discipline::Coherent).await.expect("there is room for the data")
    });
    (first, stride)
}

/// Fills caches, lets the threads run, and measures.
fn drive<S: System + 'static, G: Guarded<On = S> + 'static>(
    mut rack: Rack<S>,
    (plan, between): (&Plan, Nanos),
    thread: impl Fn(Handle<S>, usize) -> G,
    tally: impl Fn(&S) -> Tally,
    sizes: &Sizes,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let mut seeds = Random::new(rack.setup().seed);
    let all = plan.blades * plan.threads;
    for number in 0..all {
        let (of_blade, each, locks) = (number % plan.threads, plan.threads, plan.locks);
        rack.spawn(id(number), |handle| {
            let mut guarded = thread(handle, number);
            async move {
                for lock in (of_blade as u64..locks).step_by(each) {
                    guarded.warm(lock).await;
                }
            }
        });
    }
    let report = rack.run(Until::WorkersDone);
    assert_eq!(report.ended, Ended::WorkersDone, "every thread gets every lock");
    for number in 0..all {
        let (of_blade, load, locks, seed) = (number % plan.threads, plan.load, plan.locks, seeds.bits());
        rack.spawn(id(number), |handle| {
            let guarded = thread(handle, number);
            async move {
                match load {
                    Load::Contend(load) => contend(guarded, load, of_blade as u64).await,
                    Load::Buckets(load) => query(guarded, load, (locks, between), seed).await,
                    _ => {}
                }
            }
        });
    }
    advance(&mut rack, sizes.warm_up, watch)?;
    rack.measure_from_here();
    let before = rack.with_system(&tally);
    let report = advance(&mut rack, sizes.operations, watch)?;
    let after = rack.with_system(&tally);
    Ok(measured(&report, &before, &after, all))
}

/// The thread of this number on its blade takes the lock of this number, again and again.
async fn contend<G: Guarded>(mut guarded: G, load: Contend, lock: u64) {
    loop {
        let since = guarded.thread().now();
        guarded.acquire(lock, load.write).await;
        if load.access {
            guarded.access(lock, load.write).await;
        }
        guarded.thread().compute(Nanos(load.critical.into()));
        guarded.release(lock, load.write).await;
        guarded.thread().finished(since);
    }
}

/// The store's queries: a bucket, its lock, its value.
async fn query<G: Guarded>(mut guarded: G, load: Buckets, (buckets, between): (u64, Nanos), seed: u64) {
    let (mut random, popularity) = (Random::new(seed), Zipf::new(buckets, SKEW));
    loop {
        let since = guarded.thread().now();
        guarded.thread().compute(between);
        // Popular keys are no neighbours.
        let bucket = popularity.next(&mut random).wrapping_mul(0x9e37_79b9_7f4a_7c15) % buckets;
        let write = random.below(100) >= u64::from(load.gets);
        guarded.acquire(bucket, write).await;
        guarded.access(bucket, write).await;
        guarded.release(bucket, write).await;
        guarded.thread().finished(since);
    }
}

fn id(thread: usize) -> ThreadId {
    ThreadId(u16::try_from(thread).expect("fewer than 2^16 threads"))
}

impl Tally {
    fn of_locks(locks: &Locks) -> Self {
        Self {
            hits: locks.hits(),
            refused: locks.count(|counters| counters.denied),
            evictions: locks.count(|counters| counters.evicted),
            switch_entries: locks.switch().occupancy() as u64,
            ..Self::default()
        }
    }
}
