//! Random runs of blocks and locks in one rack, and what they came to.

use check::joint::{Joint, JointPlan, Packet, Plan, Seen};
use check::rack;
use wire::Faithful;

use super::flowcc::BlockRuns;
use super::locks::LockRuns;
use super::{Groups, Subject};

/// Blocks and locks, with the allocator that gives out the memory of both.
pub(super) enum JointRuns {}

impl Subject for JointRuns {
    type Message = Packet;
    type Plan = JointPlan;
    type Seen = Seen;
    type World = Joint<Faithful>;

    fn plan(seed: u64) -> rack::Plan<JointPlan> {
        Plan::with_restarts(seed)
    }

    fn operations(seen: &Seen) -> u64 {
        seen.blocks.operations() + seen.locks.operations()
    }

    fn groups(sum: &Seen, fewest: u64) -> Groups {
        let mut groups = BlockRuns::groups(&sum.blocks, fewest);
        groups.extend(LockRuns::groups(&sum.locks, fewest).into_iter().map(|(title, rows)| {
            let title = if title == "operations" { "operations of locks" } else { "protocol of locks" };
            (title, rows)
        }));
        groups
    }
}
