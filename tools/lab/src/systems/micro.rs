//! The micro benchmark on any system.

use std::rc::Rc;

use rackmem::{BlockSize, Memory};
use sim::rack::{Budget, Ended, Rack, RackReport, Setup, Until};
use sim::system::{Random, System, ThreadId};
use simulated::{Shape, SimulatedHandle};

use super::subject::{Subject, Tally};
use crate::concordia::budget::{ACCESS, ALL, BUSY, HANDLING, QUEUES, TRANSFER, WAITING, WAY};
use crate::figure::measured::Measured;
use crate::figure::point::Stressed;
use crate::figure::run::{Interrupted, Watch};
use crate::load::micro::{Client, Data};
use crate::load::past;
use crate::sizes::Sizes;

/// Operations between two looks at whoever watches.
const STEP: u64 = 20_000;

/// A rack with its data allocated, its caches filled, and a client on every thread.
pub(super) fn prepare<S: Subject>(
    setup: Setup,
    system: S,
    stressed: Stressed,
    sizes: &Sizes,
) -> (Rack<S>, Rc<Data>) {
    let load = stressed.load;
    let (shape, room, threads) = (system.shape(), system.room(), setup.nodes * setup.threads);
    let (block, nodes) = (shape.block_size, setup.nodes);
    let mut seeds = Random::new(setup.seed);
    let (bytes, coins) = (sizes.places, seeds.bits());
    let mut rack = Rack::new(setup, system);
    let data = rack.run_one(ThreadId(0), move |handle| async move {
        let mut mem = SimulatedHandle::new(handle, shape);
        let data = Data::allocate(&mut mem, threads, bytes, (load.sharing, coins)).await;
        data.expect("the rack has memory for the working set")
    });
    rack.with_system_mut(|system| {
        if stressed.cold {
            return;
        }
        if room > 0 {
            system.hold(past::residents(&data, nodes, load, block, room, seeds.bits()));
        }
        if load.sharing > 0 {
            for offset in (0..data.pool.bytes()).step_by(block.len()) {
                system.hot(data.pool.at(offset));
            }
        }
    });
    let data = Rc::new(data);
    spawn(&mut rack, &data, stressed, shape, &mut seeds);
    (rack, data)
}

/// Puts a client on every thread.
pub(super) fn spawn<S: Subject>(
    rack: &mut Rack<S>,
    data: &Rc<Data>,
    Stressed { load, hot, .. }: Stressed,
    shape: Shape,
    seeds: &mut Random,
) {
    let setup = rack.setup();
    for thread in 0..setup.nodes * setup.threads {
        let (data, seed) = (Rc::clone(data), seeds.bits());
        let id = ThreadId(u16::try_from(thread).expect("fewer than 2^16 threads"));
        rack.spawn(id, move |handle| async move {
            let mut mem = SimulatedHandle::new(handle, shape);
            let mut client = Client::new(data, thread, shape.block_size, load, seed).with_hot(hot);
            loop {
                let since = mem.now();
                client.step(&mut mem).await.expect("the working set is allocated");
                mem.thread().finished(since);
            }
        });
    }
}

/// Operations that fill caches and directories from nothing: two for each place.
pub(super) fn cold(sizes: &Sizes) -> u64 {
    2 * sizes.all_threads() as u64 * (sizes.places / BlockSize::DEFAULT.bytes())
}

/// Runs the benchmark.
pub(super) fn run<S: Subject>(
    setup: Setup,
    system: S,
    load: Stressed,
    sizes: &Sizes,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let (mut rack, _) = prepare(setup, system, load, sizes);
    let warm_up = if load.cold { cold(sizes) } else { sizes.warm_up };
    measure(&mut rack, &Sizes { warm_up, ..*sizes }, watch)
}

/// Warms up, then measures.
pub(super) fn measure<S: Subject>(
    rack: &mut Rack<S>,
    sizes: &Sizes,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    advance(rack, sizes.warm_up, watch)?;
    rack.measure_from_here();
    let before = rack.with_system(Subject::tally);
    let report = advance(rack, sizes.operations, watch)?;
    let after = rack.with_system(Subject::tally);
    Ok(measured(&report, &before, &after, report.operations.len()))
}

/// Lets the rack do so many operations.
///
/// # Panics
/// If it cannot.
pub(super) fn advance<S: System>(
    rack: &mut Rack<S>,
    operations: u64,
    watch: &dyn Watch,
) -> Result<RackReport, Interrupted> {
    let mut left = operations;
    loop {
        let now = left.min(STEP);
        let report = rack.run(Until::Operations(now));
        assert_eq!(report.ended, Ended::Operations, "clients never end, and never wait for nothing");
        left -= now;
        if !watch.advance(now) {
            return Err(Interrupted);
        }
        if left == 0 {
            return Ok(report);
        }
    }
}

/// What a run gave, of which so many threads, the first, were a part.
pub(super) fn measured(report: &RackReport, before: &Tally, after: &Tally, threads: usize) -> Measured {
    let micros = |per_mille| report.counts.latency.per_mille(per_mille).0 as f64 / 1e3;
    let busiest = |shares: &mut dyn Iterator<Item = f64>| shares.fold(0.0, f64::max);
    let agents = report.agents.first().map_or(0, Vec::len);
    Measured {
        operations: report.counts.operations,
        seconds: report.time.0 as f64 / 1e9,
        median: micros(500),
        slow: micros(990),
        hits: after.hits - before.hits,
        packets: report.counts.datagrams + report.counts.writes,
        home_packets: after.home_packets - before.home_packets,
        bytes: report.counts.bytes,
        refused: after.refused - before.refused,
        evictions: after.evictions - before.evictions,
        switch_entries: after.switch_entries,
        agents: (0..agents)
            .map(|agent| busiest(&mut report.agents.iter().map(|of_node| of_node[agent])))
            .collect(),
        threads: busiest(&mut report.threads.iter().copied()),
        uplinks: busiest(&mut report.uplinks.iter().copied()),
        downlinks: busiest(&mut report.downlinks.iter().copied()),
        events: report.counts.events,
        longest: report.longest.0 as f64 / 1e3,
        least: least(&report.operations[..threads]),
        budget: report.budget.as_ref().map(budget).unwrap_or_default(),
        counted: Vec::new(),
        places: Vec::new(),
        curve: Vec::new(),
        moments: Vec::new(),
        trips: Vec::new(),
    }
}

/// What the thread that did the fewest operations did of an equal share.
fn least(operations: &[u64]) -> f64 {
    let (fewest, all) = (operations.iter().min(), operations.iter().sum::<u64>());
    fewest.map_or(0.0, |fewest| *fewest as f64 * operations.len() as f64 / all.max(1) as f64)
}

/// An operation's time on average, in nanoseconds.
fn budget(sum: &Budget) -> Vec<(String, f64)> {
    let parts = [
        (ACCESS, sum.access),
        (HANDLING, sum.handling),
        (BUSY, sum.busy),
        (WAY, sum.way),
        (TRANSFER, sum.transfer),
        (QUEUES, sum.queues),
        (WAITING, sum.waiting()),
        (ALL, sum.total),
    ];
    parts.map(|(name, time)| (name.to_owned(), time.0 as f64 / sum.operations.max(1) as f64)).into()
}
