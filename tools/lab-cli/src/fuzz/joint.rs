//! Random runs of blocks, locks, words, objects and chains in one rack, and what they came to.

use check::joint::{Joint, JointPlan, Packet, Plan, Seen};
use check::rack;
use wire::AllRules;

use super::coherence::BlockRuns;
use super::locks::LockRuns;
use super::{Groups, Subject, named};

/// Blocks, locks, words, objects and chains, with the allocator that gives out the memory of all.
pub(super) enum JointRuns {}

impl Subject for JointRuns {
    type Message = Packet;
    type Plan = JointPlan;
    type Seen = Seen;
    type World = Joint<AllRules>;

    fn plan(seed: u64) -> rack::Plan<JointPlan> {
        Plan::with_restarts(seed)
    }

    fn operations(seen: &Seen) -> u64 {
        let Seen { blocks, locks, words, chains } = seen;
        blocks.operations() + locks.operations() + words.operations() + chains.operations()
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
                ("indeterminate", words.indeterminate),
                ("connections that broke", words.broken),
                ("requests that came again", words.duplicates),
                ("retransmissions of devices", words.repeated),
            ]),
        ));
        let chains = &sum.chains;
        groups.push((
            "chains",
            named(&[
                ("stores that began", chains.stores),
                ("stores that were ended", chains.ended),
                ("stores that were over with a node", chains.lost),
                ("allocations freed", chains.freed),
                ("clients", chains.clients),
                ("puts", chains.puts),
                ("deletes", chains.deletes),
                ("gets", chains.gets),
                ("indeterminate", chains.indeterminate),
                ("not done, tried again", chains.failed),
                ("no memory", chains.no_memory),
                ("dead clients swept", chains.swept),
                ("connections", chains.connections),
                ("connections that began anew", chains.anew),
                ("packets that the switch carried", chains.forwarded),
                ("appends steered", chains.steered),
                ("appends moved", chains.moved),
                ("reads steered", chains.reads),
                ("answered as refused or indeterminate", chains.refused),
                ("tails that a new switch took", chains.preloaded),
            ]),
        ));
        groups
    }
}
