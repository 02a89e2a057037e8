//! Random runs of locks that carry their data, and what they came to.

use check::locks::{LockPlan, Locks, Plan, Seen};
use check::rack;
use node::LockMessage;
use wire::AllRules;

use super::{Groups, Subject, named};

/// The locks that carry their data.
pub(super) enum LockRuns {}

impl Subject for LockRuns {
    type Message = LockMessage;
    type Plan = LockPlan;
    type Seen = Seen;
    type World = Locks<AllRules>;

    fn plan(seed: u64) -> rack::Plan<LockPlan> {
        let plan = Plan::with_restarts(seed);
        // In every other run locks end, and begin anew.
        if seed.is_multiple_of(2) { plan } else { plan.freeing() }
    }

    fn operations(seen: &Seen) -> u64 {
        seen.operations()
    }

    fn groups(sum: &Seen, fewest: u64) -> Groups {
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
                    ("fewest in a run", fewest),
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
