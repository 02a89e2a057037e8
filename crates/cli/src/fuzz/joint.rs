//! Random runs of blocks, locks, words and objects in one rack, and what they came to.

use check::joint::{Joint, JointPlan, Packet, Plan, Seen};
use check::rack;
use wire::Faithful;

use super::flowcc::BlockRuns;
use super::locks::LockRuns;
use super::{Groups, Subject, named};

/// Blocks, locks, words and objects, with the allocator that gives out the memory of all.
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
        seen.blocks.operations() + seen.locks.operations() + seen.words.operations()
    }

    fn groups(sum: &Seen, fewest: u64) -> Groups {
        let mut groups = BlockRuns::groups(&sum.blocks, fewest);
        groups.extend(LockRuns::groups(&sum.locks, fewest).into_iter().map(|(title, rows)| {
            let title = if title == "operations" { "operations of locks" } else { "protocol of locks" };
            (title, rows)
        }));
        let words = &sum.words;
        groups.push((
            "words and objects",
            named(&[
                ("regions that began", words.begun),
                ("regions that ended", words.ended),
                ("allocations freed", words.freed),
                ("operations on words", words.changes),
                ("objects read whole", words.reads),
                ("found torn", words.torn),
                ("objects written", words.writes),
                ("refused, the region had ended", words.refused),
                ("calls refused", words.calls_refused),
                ("in doubt", words.doubted),
                ("connections that broke", words.broken),
                ("requests that came again", words.duplicates),
                ("retransmissions of devices", words.repeated),
            ]),
        ));
        groups
    }
}
