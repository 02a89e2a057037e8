//! A store of chains on the testbed of the steering paper: YCSB by client threads, with and without a switch that steers.
//!
//! What must always hold: no get is stale and no append is lost; a run in which one is has no numbers.

use chain::client::Request;
use sim::chains::{Ask, Bench, ChainsReport, Load, Requests, Testbed, Trips};
use sim::system::Random;
use switch::chains::{self, Binding};
use wire::Nanos;

use crate::figure::input::Inputs;
use crate::figure::measured::Measured;
use crate::figure::point::{Chains, Subject};
use crate::figure::run::{Interrupted, Watch};
use crate::load::zipf::Zipf;
use crate::sizes::Sizes;
use crate::steering::failure::{RESTARTS, STOPS};

/// Bytes of a value: with its head an entry is 1 KiB, a slot without a rest.
pub(crate) const VALUE: u32 = ENTRY - wire::chains::ENTRY_HEAD;
const ENTRY: u32 = 1024;
/// Steps in which a run tells how far it is.
const STEPS: u64 = 10;
/// Operations, of those that are simulated, that are not counted.
const WARM_UP: u64 = 4;

/// Requests as YCSB draws them. The hottest key is 0.
struct Ycsb {
    zipf: Zipf,
    writes: u64,
    random: Random,
}

impl Requests for Ycsb {
    fn next(&mut self, _: u16) -> Ask {
        let key = self.zipf.next(&mut self.random);
        let is_write = self.random.below(100) < self.writes;
        Ask { key, request: if is_write { Request::Put(VALUE) } else { Request::Get } }
    }
}

/// One bound queue pair: atomics of two wait for each other. And what needs no atomic is none.
const WRITES: Binding = Binding { writes: true, ..Binding::ONE };

/// What the switch's program is built for.
fn steering(subject: Subject, load: &Chains) -> Option<chains::SteeringConfig> {
    let held = load.held as usize;
    let config = match subject {
        Subject::Clover => return None,
        Subject::Steering | Subject::SteeringScanned => chains::SteeringConfig::default(),
        Subject::SteeringReads => chains::SteeringConfig { reads: ENTRY, ..Default::default() },
        Subject::SteeringBound => chains::SteeringConfig { binding: Binding::ONE, ..Default::default() },
        Subject::SteeringWrites => chains::SteeringConfig { binding: WRITES, ..Default::default() },
        Subject::SteeringAll => {
            chains::SteeringConfig { reads: ENTRY, binding: WRITES, ..Default::default() }
        }
        other => panic!("{other:?} is no store of chains"),
    };
    Some(chains::SteeringConfig { keys: (load.keys as usize).max(config.keys), top: held, ..config })
}

fn testbed(subject: Subject, load: &Chains, bench: Bench, seed: u64) -> Testbed {
    let mut random = Random::new(seed);
    let requests = Ycsb {
        zipf: Zipf::new(load.keys.into(), f64::from(load.zipf) / 100.0),
        writes: load.writes.into(),
        random: Random::new(random.bits()),
    };
    let steering = steering(subject, load);
    let apart = if load.apart == 0 { bench.atomic_apart } else { Nanos(load.apart.into()) };
    let bench = Bench { atomic_apart: apart, ..bench };
    let load = Load { threads: load.threads, keys: load.keys.into(), value: VALUE, steering };
    Testbed::new(bench, load, Box::new(requests), random.bits())
}

/// Operations of a run by so many threads: fewer take as long.
pub(crate) fn operations(all: u64, threads: u16) -> u64 {
    (all * u64::from(threads.clamp(8, 64)) / 64).max(64)
}

/// Runs a point.
pub(super) fn run(
    (subject, load): (Subject, Chains),
    (sizes, inputs): (&Sizes, &Inputs),
    seed: u64,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let mut testbed = testbed(subject, &load, inputs.chains, seed);
    let before = testbed.run(operations(sizes.warm_up / WARM_UP, load.threads));
    if !watch.advance(sizes.warm_up) {
        return Err(Interrupted);
    }
    testbed.forget();
    let all = operations(sizes.operations, load.threads);
    let mut report = testbed.report();
    for step in 0..STEPS {
        report = testbed.run(all * (step + 1) / STEPS - all * step / STEPS);
        if !watch.advance(sizes.operations * (step + 1) / STEPS - sizes.operations * step / STEPS) {
            return Err(Interrupted);
        }
    }
    Ok(measured(&load, &report, &before))
}

fn measured(load: &Chains, report: &ChainsReport, before: &ChainsReport) -> Measured {
    assert_eq!((report.wrong, report.failed), (0, 0), "{load:?}: stale, lost or failed operations");
    let micros = |per_mille| report.latency.per_mille(per_mille).0 as f64 / 1e3;
    let of = |name: &str, trips: &Trips| {
        [("mean", trips.mean()), ("p50", trips.per_mille(500) as f64), ("p99", trips.per_mille(990) as f64)]
            .map(|(what, number)| (format!("{name}, {what}"), number))
    };
    let shares =
        [("atomics", report.atomics), ("server's link", report.link), ("metadata server", report.metadata)];
    let mut trips: Vec<(String, f64)> = [of("get", &report.gets), of("put", &report.puts)].concat();
    trips.extend(shares.map(|(name, share)| (name.to_owned(), share)));
    Measured {
        operations: report.operations,
        seconds: report.time.0 as f64 / 1e9,
        median: micros(500),
        slow: micros(990),
        refused: report.refused - before.refused,
        packets: report.packets,
        bytes: report.bytes,
        downlinks: report.link,
        events: report.events,
        longest: report.latency.longest().0 as f64 / 1e3,
        trips,
        ..Measured::default()
    }
}

/// Until the switch stops, and for how long: less than clients repeat what is not answered.
const BEFORE: Nanos = Nanos::from_millis(20);
const DOWN: Nanos = Nanos::from_millis(4);
/// From then on.
const AFTER: Nanos = Nanos::from_millis(56);
/// Between two points of the curve.
const LOOK: Nanos = Nanos::from_millis(1);

/// Runs it while the switch stops, and comes back empty.
pub(super) fn fail(
    (subject, load): (Subject, Chains),
    inputs: &Inputs,
    seed: u64,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let mut testbed = testbed(subject, &load, inputs.chains, seed);
    let before = testbed.run_until(BEFORE);
    testbed.forget();
    let (start, seconds) = (testbed.now(), |span: Nanos| span.0 as f64 / 1e9);
    let (mut curve, mut done, mut elapsed) = (Vec::new(), 0, Nanos::ZERO);
    let report = loop {
        elapsed += LOOK;
        let report = testbed.run_until(start + elapsed);
        curve.push((seconds(elapsed), (report.operations - done) as f64 / seconds(LOOK)));
        if !watch.advance(report.operations - done) {
            return Err(Interrupted);
        }
        done = report.operations;
        if elapsed == BEFORE {
            testbed.stop_switch();
        } else if elapsed == BEFORE + DOWN {
            testbed.restart_switch();
            if subject == Subject::SteeringScanned {
                testbed.scan();
            }
        } else if elapsed >= BEFORE + DOWN + AFTER {
            break report;
        }
    };
    let moments = vec![(STOPS.to_owned(), seconds(BEFORE)), (RESTARTS.to_owned(), seconds(BEFORE + DOWN))];
    Ok(Measured { curve, moments, ..measured(&load, &report, &before) })
}
