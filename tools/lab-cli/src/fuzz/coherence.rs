//! Random runs of FlowCC, and what they came to.

use check::coherence::{BlockPlan, Blocks, Plan, Seen};
use check::rack;
use node::Message;
use switch::coherence::tables::{CHECK, FORWARD};
use wire::{AllRules, PacketKind, Refusal};

use super::{Groups, Subject, named};

/// The coherence of blocks.
pub(super) enum BlockRuns {}

impl Subject for BlockRuns {
    type Message = Message;
    type Plan = BlockPlan;
    type Seen = Seen;
    type World = Blocks<AllRules>;

    fn plan(seed: u64) -> rack::Plan<BlockPlan> {
        Plan::with_restarts(seed).with_options(seed)
    }

    fn operations(seen: &Seen) -> u64 {
        seen.operations()
    }

    fn groups(sum: &Seen, fewest: u64) -> Groups {
        let Seen { accesses, locks, allocations, frees, refused, lost, .. } = *sum;
        let (protocol, coverage) = (&sum.protocol, &sum.coverage);
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
        let kinds =
            PacketKind::ALL.into_iter().map(|kind| (format!("{kind:?}"), coverage.kinds[kind as usize]));
        let refusals = Refusal::ALL.into_iter().zip(coverage.refusals);
        let node_drops = node::Drop::ALL.into_iter().zip(protocol.dropped);
        let switch_drops = switch::coherence::Drop::ALL.into_iter().zip(coverage.switch_drops);
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
                "protocol",
                named(&[
                    ("blocks lost", protocol.lost),
                    ("blocks saved from answers", protocol.salvaged),
                    ("retransmissions", protocol.retransmissions),
                    ("requests parked", protocol.parked),
                    ("turns waited for", protocol.held),
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
