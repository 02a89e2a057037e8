//! The switch stops while the micro benchmark runs, and comes back empty.
//!
//! Time before the failure and the time that the chip takes to initialise are a few milliseconds each, instead of the
//! paper's 20 s and 16 s: nothing happens in them.

use rackmem::{Nanos, NodeId};
use sim::coherence::FlowCc;
use sim::rack::{Rack, Setup, Until};
use sim::system::Fault;

use super::micro::{advance, measured, prepare};
use super::subject::Subject;
use crate::concordia::failure::{MIGRATED, RECOVERED, RESTARTS, STOPS};
use crate::figure::measured::Measured;
use crate::figure::point::Micro;
use crate::figure::run::{Interrupted, Watch};
use crate::sizes::Sizes;

/// Until the switch stops, and then until it is back.
const WAIT: Nanos = Nanos::from_millis(8);
/// How exactly moments are known.
const LOOK: Nanos = Nanos::from_micros(100);
/// Looks for each point of the curve.
const LOOKS: u64 = 10;
/// Nobody waits for longer than this.
const LONGEST: Nanos = Nanos::from_millis(400);

/// Runs it.
pub(super) fn run(
    setup: Setup,
    system: FlowCc,
    load: Micro,
    sizes: &Sizes,
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    let (mut rack, _) = prepare(setup, system, load.into(), sizes);
    advance(&mut rack, sizes.warm_up, watch)?;
    let entries = rack.with_system(|system| system.switch().occupancy());
    rack.measure_from_here();
    let before = rack.with_system(Subject::tally);
    let start = rack.now();
    rack.schedule(start + WAIT, Fault::SwitchStops);
    rack.schedule(start + WAIT + WAIT, Fault::SwitchRestarts);
    let seconds = |span: Nanos| span.0 as f64 / 1e9;
    let mut moments = vec![(STOPS.to_owned(), seconds(WAIT)), (RESTARTS.to_owned(), seconds(WAIT + WAIT))];
    let (mut curve, mut done, mut looks, mut end) = (Vec::new(), 0, 0, LONGEST);
    let report = loop {
        looks += 1;
        let elapsed = Nanos(looks * LOOK.0);
        let report = rack.run(Until::Time(start + elapsed));
        if looks % LOOKS == 0 {
            let so_far = report.counts.operations;
            let rate = (so_far - done) as f64 / (seconds(LOOK) * LOOKS as f64);
            curve.push((seconds(elapsed), rate));
            if !watch.advance(so_far - done) {
                return Err(Interrupted);
            }
            done = so_far;
        }
        if elapsed > WAIT + WAIT {
            if moments.len() == 2 && !recovering(&rack) {
                moments.push((RECOVERED.to_owned(), seconds(elapsed)));
            }
            let back = rack.with_system(|system| system.switch().occupancy()) * 20 >= entries * 19;
            if moments.len() == 3 && back {
                moments.push((MIGRATED.to_owned(), seconds(elapsed)));
                end = elapsed + WAIT;
            }
        }
        if elapsed >= end {
            break report;
        }
    };
    let after = rack.with_system(Subject::tally);
    Ok(Measured { curve, moments, ..measured(&report, &before, &after, report.operations.len()) })
}

fn recovering(rack: &Rack<FlowCc>) -> bool {
    let nodes = rack.setup().nodes;
    let ids = (0..nodes).map(|index| NodeId(u16::try_from(index).expect("at most 64 nodes")));
    rack.with_system(|system| ids.into_iter().any(|id| system.node(id).is_recovering()))
}
