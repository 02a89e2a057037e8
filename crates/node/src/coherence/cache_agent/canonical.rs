//! What of a cache agent tells one state from another, for checkers that explore all states.

use alloc::vec::Vec;

use wire::{Packet, RequesterId, Seq};

use super::{Answer, CacheAgent, Executed};
use crate::coherence::canonical::Use;
use crate::store::{DataRef, FrameId};

/// The rows that are not as they were at first; heat is left out, and so are held blocks: explored nodes have none
/// ([`HoldTime::NONE`](crate::HoldTime::NONE)), and to the protocol a node that holds a block is a slow one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CacheAgentState {
    last: Vec<(u32, Executed)>,
    parked: Vec<(FrameId, Packet)>,
}

const NOTHING: Executed = Executed { seq: Seq::NONE, answer: Answer::None };

impl CacheAgent {
    pub(crate) fn save(&self) -> CacheAgentState {
        debug_assert!(self.held.is_empty(), "explored nodes hold no blocks");
        let rows = self.last.iter().enumerate().filter(|(_, row)| **row != NOTHING);
        let last = rows.map(|(index, row)| (u32::try_from(index).expect("8192 rows"), *row));
        CacheAgentState { last: last.collect(), parked: self.parked.clone() }
    }

    pub(crate) fn load(&mut self, state: &CacheAgentState) {
        self.last.fill(NOTHING);
        for (index, row) in &state.last {
            self.last[*index as usize] = *row;
        }
        self.parked.clone_from(&state.parked);
        self.held.clear();
        self.heat.clear();
    }
}

impl CacheAgentState {
    pub(crate) fn numbers(&self, found: &mut dyn FnMut(RequesterId, Seq, Use)) {
        for (index, row) in &self.last {
            let how = if row.answer == Answer::Parked { Use::InFlight } else { Use::Remembered };
            found(RequesterId::of(*index as usize / 2), row.seq, how);
        }
        for (_, packet) in &self.parked {
            found(packet.requester, packet.seq, Use::InFlight);
        }
    }

    pub(crate) fn renumber(&mut self, to: &dyn Fn(RequesterId, Seq, Use) -> Seq) {
        for (index, row) in &mut self.last {
            row.seq = to(RequesterId::of(*index as usize / 2), row.seq, Use::Remembered);
            if row.seq == Seq::NONE {
                row.answer = Answer::None;
            }
        }
        self.last.retain(|(_, row)| *row != NOTHING);
        for (_, packet) in &mut self.parked {
            packet.seq = to(packet.requester, packet.seq, Use::InFlight);
        }
    }

    pub(crate) fn map_data(&mut self, to: &dyn Fn(DataRef) -> DataRef) {
        for (_, row) in &mut self.last {
            if let Answer::Retained(data, _) = &mut row.answer {
                *data = to(*data);
            }
        }
    }

    pub(crate) fn retained(&self) -> usize {
        self.last.iter().filter(|(_, row)| matches!(row.answer, Answer::Retained(..))).count()
    }

    pub(crate) fn parked(&self) -> usize {
        self.parked.len()
    }
}
