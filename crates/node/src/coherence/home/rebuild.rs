//! Everybody has reported: the home knows where each of its blocks is (`recovery/mod.rs`).

use alloc::vec::Vec;

use sorted::Map;
use switch::coherence::Dump;
use wire::{BlockTag, Copyset, Discipline, GlobalStatus, NodeId, RequesterId, Rule, Rules};

use super::directory::{Entry, Keeper};
use super::migration::Moving;
use super::on_report::Rebuilding;
use super::{Decision, HomeAgent};
use crate::coherence::config;
use crate::coherence::context::Context;
use crate::store::Store;

/// What a home and the switch knew when the first of the restarts came that the directory has not been rebuilt
/// after. With it go the entries of the directory, which stay as they were.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Knowledge {
    /// Nodes that have died since.
    pub(super) died: Copyset,
    /// Entries of this home that were locked for writing, and the node of the event that did.
    writers: Map<BlockTag, NodeId>,
    /// The switch's directory; `None`: it died with it.
    dump: Option<Dump>,
}

impl Knowledge {
    /// What there is to know now. Entries on their way to the switch or back get the keeper that knows more.
    pub(super) fn freeze(home: &mut HomeAgent, nodes: usize, dump: Option<&Dump>) -> Self {
        match home.migration.moving() {
            // Activated or not: if the switch has it, that is the newer one.
            Some(Moving::Added(tag)) => home.directory.entry(tag).keeper = Keeper::Switch,
            // Locked in the switch, or cleared: the home has what it reported.
            Some(Moving::Removed(tag)) => home.directory.entry(tag).keeper = Keeper::Home,
            None => {}
        }
        let mut writers = Map::new();
        for (row, decided) in home.decided.iter().enumerate() {
            let node = RequesterId::of(row / 2).node;
            if node.index() < nodes
                && decided.how == Decision::Granted
                && !decided.event.takes_read_lock(wire::AllRules)
            {
                writers.insert(decided.tag, node);
            }
        }
        let here = |tag: BlockTag| tag.home() == home.node;
        let dump = dump.map(|dump| Dump {
            entries: dump.entries.iter().copied().filter(|(tag, _)| here(*tag)).collect(),
            queued: dump.queued.iter().copied().filter(|tag| here(*tag)).collect(),
            ..*dump
        });
        Self { died: Copyset::EMPTY, writers, dump }
    }

    /// True if a node that died may have had the only current copy of a block that nobody reports.
    fn may_have_died(&self, tag: BlockTag, entry: &Entry) -> bool {
        if self.died.is_empty() {
            return false;
        }
        let with_dead = |status: GlobalStatus, copyset: Copyset| {
            status == GlobalStatus::Modified && copyset.intersects(self.died)
        };
        match (entry.keeper, &self.dump) {
            (Keeper::Home, _) => {
                let writer = self.writers.get(&tag);
                with_dead(entry.status, entry.copyset) || writer.is_some_and(|node| self.died.contains(*node))
            }
            (Keeper::Switch, None) => true,
            (Keeper::Switch, Some(dump)) => match dump.entry(tag) {
                None => with_dead(entry.status, entry.copyset),
                Some(found) => {
                    let dead_holders = dump.holders.intersects(self.died);
                    // A lock that requesters waited for may have been handed to a dead node, and by it.
                    let by_dead = dead_holders || dump.has_queue(tag);
                    with_dead(found.status, found.copyset) || found.is_write_locked() && by_dead
                }
            },
        }
    }
}

impl HomeAgent {
    /// Fills the directory anew, and answers from here on.
    pub(super) fn rebuild<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let rebuilding = self.rebuilding.take().expect("a report came in");
        let Some(knowledge) = self.knowledge.take() else { unreachable!("frozen when the epoch began") };
        let in_answers = Self::latest_answers(cx.rules, &rebuilding);
        let mut lost = Vec::new();
        for (tag, entry) in self.directory.entries_mut(self.node) {
            let copies = rebuilding.copies.contains_key(&tag) || in_answers.contains_key(&tag);
            let loses = cx.rules.holds(Rule::DeadWritersLose) && !cx.config.is_copied(self.node);
            if !copies && loses && knowledge.may_have_died(tag, entry) {
                lost.push(tag);
            }
            *entry = Entry::default();
        }
        for (tag, data) in in_answers {
            if !rebuilding.copies.contains_key(&tag) {
                cx.counters.salvaged += 1;
                cx.store.write_home(tag, data);
            }
        }
        for (tag, (copies, writable)) in &rebuilding.copies {
            let entry = self.directory.entry(*tag);
            let modified = !writable.is_empty();
            entry.status = if modified { GlobalStatus::Modified } else { GlobalStatus::Shared };
            entry.copyset = if modified { *writable } else { *copies };
        }
        for tag in lost {
            if self.chunks.discipline_of(tag) == Some(Discipline::Coherent) && self.lost.insert(tag) {
                cx.counters.lost += 1;
            }
        }
        self.note_rebuilt(cx.config.switch_epoch);
        for stream in rebuilding.streams.values() {
            self.acknowledge_report(cx, &stream.report, 0);
        }
        if cx.config.directory == config::Directory::Switch && !cx.config.is_copied(self.node) {
            let live: Vec<_> = self.chunks.live_blocks().collect();
            live.into_iter().for_each(|tag| self.want_added(cx, tag));
        }
        for call in rebuilding.calls.values() {
            self.on_call(cx, call);
        }
    }

    /// The contents that providers kept for events that were never granted.
    fn latest_answers<R: Rules>(rules: R, rebuilding: &Rebuilding) -> Map<BlockTag, crate::DataRef> {
        let was_cut = |event: &(RequesterId, wire::Seq)| {
            rebuilding.cut.contains(event) || !rules.holds(Rule::OnlyCutEventsCount)
        };
        let latest = rebuilding.retained.iter().filter(|(event, _)| was_cut(event));
        latest.map(|(_, (tag, data))| (*tag, *data)).collect()
    }
}
