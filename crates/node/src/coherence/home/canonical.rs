//! What of a home agent tells one state from another, for checkers that explore all states.

use alloc::vec::Vec;

use sorted::{Map, Set};
use wire::{BlockTag, NodeId, Packet, RequesterId, Seq, SlotId, SwitchEpoch};

use super::directory::Entry;
use super::migration::{Migration, Step};
use super::on_report::Rebuilding;
use super::rebuild::Knowledge;
use super::replicate::Replicating;
use super::{Decided, HomeAgent};
use crate::allocator::ChunkTable;
use crate::coherence::canonical::rest::{rows, set_rows};
use crate::coherence::canonical::{FAR, Timer, Use};

/// The rows and entries that are not as they were at first; heat is left out.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct HomeState {
    entries: Vec<(BlockTag, Entry)>,
    decided: Vec<(u32, Decided)>,
    written_back: Vec<(u32, Seq)>,
    migration: Migration,
}

impl HomeAgent {
    pub(crate) fn save(&self) -> HomeState {
        let blocks = self.directory.entries(self.node).chain(self.directory.lock_entries());
        let cold = blocks.map(|(tag, entry)| {
            let mut entry = *entry;
            entry.heat = 0;
            (tag, entry)
        });
        let row = |index| u32::try_from(index).expect("8192 rows");
        let decided = self.decided.iter().enumerate().filter(|(_, it)| **it != Decided::NOTHING);
        let written_back = self.written_back.iter().enumerate().filter(|(_, seq)| **seq != Seq::NONE);
        let mut migration = self.migration.clone();
        migration.deadline = FAR;
        HomeState {
            entries: cold.filter(|(_, entry)| *entry != Entry::default()).collect(),
            decided: decided.map(|(index, it)| (row(index), *it)).collect(),
            written_back: written_back.map(|(index, seq)| (row(index), *seq)).collect(),
            migration,
        }
    }

    pub(crate) fn load(&mut self, state: &HomeState) {
        let made = self.directory.entries(self.node).chain(self.directory.lock_entries());
        let tags: Vec<BlockTag> =
            made.filter(|(_, entry)| **entry != Entry::default()).map(|(tag, _)| tag).collect();
        for tag in tags {
            *self.directory.entry(tag) = Entry::default();
            self.directory.tidy(tag);
        }
        for (tag, entry) in &state.entries {
            *self.directory.entry(*tag) = *entry;
        }
        self.decided.fill(Decided::NOTHING);
        for (index, it) in &state.decided {
            self.decided[*index as usize] = *it;
        }
        self.written_back.fill(Seq::NONE);
        for (index, seq) in &state.written_back {
            self.written_back[*index as usize] = *seq;
        }
        self.migration = state.migration.clone();
        self.warm.clear();
    }

    /// Makes the packet of the migration in flight due to be sent again.
    pub(crate) fn make_move_due(&mut self) {
        self.migration.deadline = wire::Nanos::ZERO;
    }
}

/// What a home agent keeps beside: memory that is granted and live, and what it knew when epochs ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct HomeRest {
    chunks: ChunkTable,
    calls: Vec<(u32, Option<Packet>)>,
    lost: Set<BlockTag>,
    rebuilding: Option<Rebuilding>,
    knowledge: Option<Knowledge>,
    rebuilt: SwitchEpoch,
    replicating: Map<usize, Replicating>,
}

impl HomeAgent {
    pub(crate) fn save_rest(&self) -> HomeRest {
        HomeRest {
            chunks: self.chunks.clone(),
            calls: rows(&self.calls, &None),
            lost: self.lost.clone(),
            rebuilding: self.rebuilding.clone(),
            knowledge: self.knowledge.clone(),
            rebuilt: self.rebuilt,
            replicating: self.replicating.clone(),
        }
    }

    pub(crate) fn load_rest(&mut self, rest: &HomeRest) {
        self.chunks.clone_from(&rest.chunks);
        set_rows(&mut self.calls, None, &rest.calls);
        self.lost.clone_from(&rest.lost);
        self.rebuilding.clone_from(&rest.rebuilding);
        self.knowledge.clone_from(&rest.knowledge);
        self.rebuilt = rest.rebuilt;
        self.replicating.clone_from(&rest.replicating);
        self.ended.clear();
    }
}

impl HomeState {
    pub(crate) fn timers(&self, mut found: impl FnMut(Timer)) {
        if self.migration.is_moving() {
            found(Timer::Move);
        } else if self.migration.backlog() > 0 {
            found(Timer::Epoch);
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        !self.migration.is_moving() && self.migration.backlog() == 0
    }

    pub(crate) fn numbers(&self, node: NodeId, found: &mut dyn FnMut(RequesterId, Seq, Use)) {
        for (index, it) in &self.decided {
            found(RequesterId::of(*index as usize / 2), it.seq, Use::Remembered);
        }
        for (index, seq) in &self.written_back {
            found(RequesterId::of(*index as usize / 2), *seq, Use::Remembered);
        }
        let id = RequesterId { node, slot: SlotId::MIGRATION };
        if self.migration.seq != Seq::NONE {
            found(id, self.migration.seq, Use::Last);
        }
        if let Step::Asked(packet) | Step::Unlocking(packet) = &self.migration.step {
            found(id, packet.seq, Use::InFlight);
        }
    }

    pub(crate) fn renumber(&mut self, node: NodeId, to: &dyn Fn(RequesterId, Seq, Use) -> Seq) {
        for (index, it) in &mut self.decided {
            it.seq = to(RequesterId::of(*index as usize / 2), it.seq, Use::Remembered);
        }
        self.decided.retain(|(_, it)| it.seq != Seq::NONE);
        for (index, seq) in &mut self.written_back {
            *seq = to(RequesterId::of(*index as usize / 2), *seq, Use::Remembered);
        }
        self.written_back.retain(|(_, seq)| *seq != Seq::NONE);
        let id = RequesterId { node, slot: SlotId::MIGRATION };
        if self.migration.seq != Seq::NONE {
            self.migration.seq = to(id, self.migration.seq, Use::Last);
        }
        if let Step::Asked(packet) | Step::Unlocking(packet) = &mut self.migration.step {
            packet.seq = to(id, packet.seq, Use::InFlight);
        }
    }
}
