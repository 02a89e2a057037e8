//! Random runs of FlowCC, and what they came to.

use check::rack::{Effort, Failure, Plan, Report, run_seed};
use switch::flowcc::tables::{CHECK, FORWARD};
use wire::{Faithful, Kind, Refusal};

use super::{Groups, Runs};

/// The coherence of blocks.
pub(super) enum FlowCC {}

impl Runs for FlowCC {
    type Report = Report;

    const FLAG: &'static str = "";
    const STEPS: usize = Effort::FUZZ.steps;

    fn run(seed: u64, steps: usize, trace: bool) -> Result<Report, Failure> {
        let plan = Plan { trace, ..Plan::with_restarts(seed).with_options(seed) };
        run_seed::<Faithful>(plan, seed, Effort { steps, ..Effort::FUZZ })
    }

    fn operations(report: &Report) -> u64 {
        report.operations()
    }

    fn add(sum: &mut Report, report: &Report) {
        sum.add(report);
    }

    fn groups(sum: &Report, fewest: u64) -> Groups {
        let Report { accesses, locks, allocations, frees, refused, lost, .. } = *sum;
        let named = |rows: &[(&str, u64)]| rows.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let (faults, stops, coverage) = (&sum.faults, &sum.stops, &sum.coverage);
        let protocol = &sum.protocol;
        let check = CHECK.iter().zip(coverage.check).map(|(row, seen)| {
            let member = match row.member {
                None => "",
                Some(true) => ", has a copy",
                Some(false) => ", has none",
            };
            (format!("{:?} {}{member}", row.event, any(row.status)), seen)
        });
        let forward = FORWARD.iter().zip(coverage.forward);
        let forward =
            forward.map(|(row, seen)| (format!("{:?} {} to {:?}", row.event, any(row.status), row.to), seen));
        let kinds = Kind::ALL.into_iter().map(|kind| (format!("{kind:?}"), coverage.kinds[kind as usize]));
        let refusals = Refusal::ALL.into_iter().zip(coverage.refusals);
        let node_drops = node::Drop::ALL.into_iter().zip(protocol.dropped);
        let switch_drops = switch::flowcc::Drop::ALL.into_iter().zip(coverage.switch_drops);
        vec![
            (
                "operations",
                named(&[
                    ("accesses", accesses),
                    ("locks", locks),
                    ("allocations", allocations),
                    ("frees", frees),
                    ("refused", refused),
                    ("refused as lost", lost),
                    ("fewest in a run", fewest),
                ]),
            ),
            (
                "faults",
                named(&[
                    ("packets lost", faults.lost),
                    ("duplicated", faults.duplicated),
                    ("delayed", faults.delayed),
                    ("corrupted", faults.corrupted),
                    ("partitions", faults.partitions),
                    ("packets stopped by them", faults.unreachable),
                ]),
            ),
            (
                "restarts",
                named(&[
                    ("switch stopped", stops.switch),
                    ("nodes died", stops.nodes),
                    ("nodes came back", stops.returns),
                    ("shadow restarted", stops.shadow),
                    ("epochs", stops.epochs),
                    ("blocks lost", protocol.lost),
                    ("blocks saved from answers", protocol.salvaged),
                ]),
            ),
            (
                "protocol",
                named(&[
                    ("retransmissions", protocol.retransmissions),
                    ("requests parked", protocol.parked),
                    ("turns waited for", protocol.turns),
                    ("invalidations", protocol.invalidations),
                    ("blocks provided", protocol.provided),
                    ("moved to the switch", protocol.added_to_switch),
                    ("moved home", protocol.removed_from_switch),
                    ("most refusals of one operation", protocol.worst_refusals),
                ]),
            ),
            ("check table", check.collect()),
            ("forward table", forward.collect()),
            ("packets", kinds.collect()),
            ("refusals", refusals.map(|(why, seen)| (format!("{why:?}"), seen)).collect()),
            ("dropped by nodes", node_drops.map(|(why, seen)| (format!("{why:?}"), seen)).collect()),
            ("dropped by the switch", switch_drops.map(|(why, seen)| (format!("{why:?}"), seen)).collect()),
        ]
    }
}

fn any(status: Option<wire::GlobalStatus>) -> String {
    status.map_or_else(|| "any".to_owned(), |status| format!("{status:?}"))
}
