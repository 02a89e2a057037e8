//! The command's side: starts the places, tells them what to do, adds up what they say.

use super::node::{Counted, Event, Job, Order, Task};
use crate::fault::Fault;
use crate::processes::place::{Assignment, RackSpec, Travelled};
use crate::processes::rendezvous::RuntimeDir;
use crate::processes::{OnInterrupt, Rendezvous, TransportKind, Workers};
use crate::ycsb::engine::Engine;
use crate::ycsb::latency::Latencies;
use crate::ycsb::measure::{Measured, Setting};
use crate::ycsb::phase::Span;
use crate::ycsb::progress::Progress;
use crate::ycsb::store::Traffic;
use crate::ycsb::trips::Trips;
use crate::ycsb::workload::Workload;

/// The switch is the first child.
const SWITCH: usize = 0;
const FIRST_NODE: usize = 1;

/// What was done in a phase.
struct Phase {
    span: Span,
    latencies: Latencies,
    trips: Trips,
    absent: u64,
}

struct Run<'a> {
    workers: Workers<Order, Event>,
    workload: &'a Workload,
    setting: &'a Setting<'a>,
}

/// Runs a workload on a fresh rack of processes. None if it was stopped before there was anything to measure.
pub fn measure(
    kind: TransportKind,
    spec: &RackSpec,
    (threads, engine): (usize, Engine),
    workload: &Workload,
    setting: &Setting<'_>,
) -> Result<Option<Measured>, Fault> {
    let runtime = RuntimeDir::new()?;
    let rendezvous = Rendezvous::new(kind, spec.nodes, &runtime)?;
    let job = Job {
        workload: workload.clone(),
        threads,
        seed: setting.seed,
        ordinal: setting.ordinal,
        engine,
        history: setting.history.map(|history| history.start()),
    };
    let tasks = Assignment::all(spec, &rendezvous)
        .into_iter()
        .map(|(name, assignment)| (name, Task { assignment, job: job.clone() }))
        .collect();
    let workers = Workers::start(tasks, runtime, setting.interrupt)?;
    let mut run = Run { workers, workload, setting };
    match run.whole() {
        Err(Fault::Interrupted) => Ok(None),
        other => other,
    }
}

impl Run<'_> {
    fn whole(&mut self) -> Result<Option<Measured>, Fault> {
        let Self { workload, setting, .. } = *self;
        self.open_store()?;
        let load = self.phase("load", workload.records, || Order::Load)?;
        if setting.interrupt.requested() {
            return Ok(None);
        }
        let warm_up = setting.warm_up;
        let warmed = match warm_up {
            0 => None,
            operations => Some(self.phase("warm-up", operations, || Order::Run { operations })?),
        };
        if setting.interrupt.requested() {
            return Ok(None);
        }
        let before = (self.count()?, self.workers.taken());
        let operations = workload.operations;
        let run = self.phase("run ", operations, || Order::Run { operations })?;
        let after = (self.count()?, self.workers.taken());
        Ok((run.latencies.count() > 0).then(|| Measured {
            load: load.span.took(),
            took: run.span.took(),
            latencies: run.latencies,
            trips: run.trips,
            absent: run.absent + warmed.map_or(0, |warmed| warmed.absent),
            traffic: after.0.traffic.since(&before.0.traffic),
            travelled: Some(after.0.travelled.since(&before.0.travelled)),
            taken: after.1.zip(before.1).map(|(after, before)| after.since(before)),
        }))
    }

    /// Waits for the rack, and makes the store known to all of its nodes.
    fn open_store(&mut self) -> Result<(), Fault> {
        let nodes = FIRST_NODE..self.workers.children();
        self.workers.answers(SWITCH..nodes.end, OnInterrupt::End, |_, event| {
            Ok(matches!(event, Event::Joined).then_some(()))
        })?;
        self.workers.order(FIRST_NODE, Order::Create)?;
        let store = self.workers.answers([FIRST_NODE], OnInterrupt::End, |_, event| match event {
            Event::Created(store) => Ok(Some(store)),
            _ => Ok(None),
        })?[0];
        nodes.clone().try_for_each(|node| self.workers.order(node, Order::Open(store)))?;
        self.workers
            .answers(nodes, OnInterrupt::End, |_, event| Ok(matches!(event, Event::Opened).then_some(())))
            .map(drop)
    }

    /// Lets all nodes do a phase at the same time.
    fn phase(&mut self, name: &str, total: u64, order: impl Fn() -> Order) -> Result<Phase, Fault> {
        let nodes = FIRST_NODE..self.workers.children();
        let mut progress = Progress::start(format!("workload {}: {name}", self.workload.name), total);
        let mut done = vec![0; self.workers.children()];
        nodes.clone().try_for_each(|node| self.workers.order(node, order()))?;
        let history = self.setting.history;
        let mix = &self.workload.mix;
        let parts = self.workers.answers(nodes, OnInterrupt::Stop, |at, event| {
            match event {
                Event::Progress(so_far) => {
                    done[at] = so_far;
                    progress.show(done.iter().sum());
                }
                Event::History(lines) => {
                    if let Some(history) = history {
                        history.append(lines.as_bytes()).map_err(|error| Fault::failed(error.0))?;
                    }
                }
                Event::Done { span, latencies, trips, absent } => {
                    return Ok(Some(Phase {
                        span,
                        latencies: Latencies::of_recorded(mix, &latencies),
                        trips,
                        absent,
                    }));
                }
                _ => {}
            }
            Ok(None)
        })?;
        let mut parts = parts.into_iter();
        let mut all = parts.next().expect("a rack has a node");
        for part in parts {
            all.span = all.span.with(part.span);
            all.latencies.add(&part.latencies);
            all.trips.add(&part.trips);
            all.absent += part.absent;
        }
        let counted = if all.latencies.count() == 0 { total } else { all.latencies.count() };
        progress.finish(counted, all.span.took());
        Ok(all)
    }

    /// What all places have counted.
    fn count(&mut self) -> Result<Counted, Fault> {
        let places = SWITCH..self.workers.children();
        places.clone().try_for_each(|place| self.workers.order(place, Order::Count))?;
        let counted = self.workers.answers(places, OnInterrupt::Stop, |_, event| match event {
            Event::Counted(counted) => Ok(Some(counted)),
            _ => Ok(None),
        })?;
        let mut sum = Counted { traffic: Traffic::default(), travelled: Travelled::default() };
        for place in counted {
            sum.traffic.add(&place.traffic);
            sum.travelled.add(&place.travelled);
        }
        Ok(sum)
    }
}
