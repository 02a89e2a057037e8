//! Whole objects that are read over soNUMA, while others write them.
//!
//! What must always hold: no method that checks hands out a torn object; a run in which one does has no numbers.

use sim::objects::{Choice, Load, Method, ObjectsReport, Testbed, Where, Work};

use crate::figure::input::Inputs;
use crate::figure::measured::Measured;
use crate::figure::point::{Objects, Subject, Use};
use crate::figure::run::{Interrupted, Watch};
use crate::sizes::Sizes;

/// What the time of an operation is made of.
pub(crate) const PARTS: [&str; 4] = ["look-up", "transfer", "check", "use"];
/// Objects where readers and writers meet (section 7.2).
const FEW: u32 = 100;
/// Steps in which a run tells how far it is.
const STEPS: u64 = 10;

const fn method(subject: Subject) -> Method {
    match subject {
        Subject::RemoteRead => Method::Read,
        Subject::Sabre => Method::Sabre,
        Subject::VersionFirst => Method::WithoutSpeculation,
        Subject::LineVersions => Method::LineVersions,
        Subject::LockAndRead => Method::LockAndRead,
        Subject::Checksum => Method::Checksum,
        _ => panic!("this is no way to read an object"),
    }
}

/// Operations of a run with objects of this size: fewer of large ones, and of those that take long.
pub(crate) fn operations(all: u64, bytes: u32, method: Method) -> u64 {
    let long = if method == Method::Checksum { 40 } else { 1 };
    (all / (16 + u64::from(bytes) / 64) / long).max(64)
}

/// Runs a point.
pub(super) fn run(
    (subject, objects): (Subject, Objects),
    (sizes, inputs): (&Sizes, &Inputs),
    seed: u64,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let Objects { work, bytes, readers, outstanding, writers } = objects;
    let method = method(subject);
    let (count, choice) = match work {
        Use::Clean => (FEW, Choice::Any),
        _ => (Load::large(bytes), Choice::InTurn),
    };
    let location = if work == Use::Local { Where::Local } else { Where::Remote };
    let work = match work {
        Use::Transfer => Work::Transfer,
        Use::Clean => Work::Clean,
        Use::Lookup | Use::Local => Work::Lookup,
    };
    let load = Load { method, work, location, bytes, objects: count, choice, readers, outstanding, writers };
    let mut testbed = Testbed::new(inputs.chip, inputs.software, load, seed);
    testbed.run(operations(sizes.warm_up, bytes, method));
    if !watch.advance(sizes.warm_up) {
        return Err(Interrupted);
    }
    testbed.forget();
    let all = operations(sizes.operations, bytes, method);
    let mut report = testbed.report();
    for step in 0..STEPS {
        report = testbed.run(all * (step + 1) / STEPS - all * step / STEPS);
        let share = sizes.operations * (step + 1) / STEPS - sizes.operations * step / STEPS;
        if !watch.advance(share) {
            return Err(Interrupted);
        }
    }
    assert!(report.torn == 0 || method == Method::Read, "{load:?}: {} objects were torn", report.torn);
    Ok(measured(&report))
}

fn measured(report: &ObjectsReport) -> Measured {
    let micros = |per_mille| report.latency.per_mille(per_mille).0 as f64 / 1e3;
    let parts = [report.framework, report.transfer, report.check, report.application];
    Measured {
        operations: report.operations,
        seconds: report.time / 1e9,
        median: micros(500),
        slow: micros(990),
        refused: report.refused,
        events: report.events,
        longest: report.longest().0 as f64 / 1e3,
        budget: PARTS.map(str::to_owned).into_iter().zip(parts).collect(),
        ..Measured::default()
    }
}
