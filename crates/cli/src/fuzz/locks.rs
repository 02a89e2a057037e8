//! Random runs of locks that carry their data, and what they came to.

use check::locks::{Effort, Plan, Report, run_seed};
use check::rack::Failure;
use wire::Faithful;

use super::{Groups, Runs};

/// The locks that carry their data.
pub(super) enum Locks {}

impl Runs for Locks {
    type Report = Report;

    const FLAG: &'static str = " --locks";
    const STEPS: usize = Effort::FUZZ.steps;

    fn run(seed: u64, steps: usize, trace: bool) -> Result<Report, Failure> {
        let plan = Plan { trace, ..Plan::with_restarts(seed) };
        // In every other run locks end, and begin anew.
        let plan = if seed.is_multiple_of(2) { plan } else { plan.freeing() };
        run_seed::<Faithful>(plan, seed, Effort { steps })
    }

    fn operations(report: &Report) -> u64 {
        report.entered
    }

    fn add(sum: &mut Report, report: &Report) {
        sum.add(report);
    }

    fn groups(sum: &Report, fewest: u64) -> Groups {
        let named = |rows: &[(&str, u64)]| rows.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let (faults, stops) = (&sum.faults, &sum.stops);
        vec![
            (
                "operations",
                named(&[
                    ("entered", sum.entered),
                    ("found it busy", sum.busy),
                    ("given up", sum.cancelled),
                    ("refused as lost", sum.lost),
                    ("refused, no such lock", sum.refused),
                    ("locks that ended", sum.freed),
                    ("lost ones that were reclaimed", sum.reclaimed),
                    ("of those, given up again", sum.given_up),
                    ("refused, the home was gone", sum.down),
                    ("fewest entered in a run", fewest),
                ]),
            ),
            (
                "faults",
                named(&[
                    ("packets lost", faults.lost),
                    ("duplicated", faults.duplicated),
                    ("delayed", faults.delayed),
                ]),
            ),
            (
                "restarts",
                named(&[
                    ("switch stopped", stops.switch),
                    ("nodes died", stops.nodes),
                    ("nodes came back", stops.returns),
                    ("epochs", stops.epochs),
                ]),
            ),
            (
                "protocol",
                named(&[
                    ("moves", sum.moves),
                    ("moves denied", sum.denied),
                    ("copies evicted", sum.evicted),
                    ("retransmissions", sum.repeated),
                    ("most times that one thread was passed by another", sum.passed),
                ]),
            ),
        ]
    }
}
