//! What [`State`] leaves out, for checkers in whose racks memory is allocated, epochs end and nodes die.
//!
//! A [`Rest`] is what else decides about the future of a node: the allocator's side, what its home agent keeps over epochs,
//! memory with copies, and who is in the rack. Two nodes with equal states and equal rests behave alike from there on, as long as heat decides
//! nothing (no blocks are hot, or no epoch of hotness ends). Numbers are not made small here: such a checker bounds what
//! its threads do.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wire::{Copyset, Incarnation, Nanos, NodeId, Rules, SwitchEpoch};

use super::{FAR, State, Timer};
use crate::coherence::allocation::canonical::AllocationState;
use crate::coherence::copies::Copies;
use crate::coherence::home::HomeAgent;
use crate::coherence::home::canonical::{HomeRest, HomeState};
use crate::coherence::node::Node;
use crate::coherence::recovery::reporter::Reporter;
use crate::coherence::shadow::Shadow;

/// What else decides about the future of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rest {
    epoch: SwitchEpoch,
    incarnation: Incarnation,
    keeps_shadow: NodeId,
    allocation: AllocationState,
    home: HomeRest,
    /// The homes of memories with copies that this node keeps.
    copied: Vec<(NodeId, HomeState, HomeRest)>,
    copies: Copies,
    shadow: Option<Shadow>,
    incarnations: Box<[Incarnation]>,
    down: Copyset,
    reporter: Reporter,
}

impl<R: Rules> Node<R> {
    /// All of the node's state.
    pub fn save_all(&self) -> (State, Rest) {
        let mut reporter = self.reporter.clone();
        reporter.set_deadlines(FAR);
        let mut copies = self.copies.clone();
        copies.set_deadlines(FAR);
        let copied = self.copied.iter().map(|(memory, home)| (*memory, home.save(), home.save_rest()));
        let rest = Rest {
            epoch: self.config.switch_epoch,
            incarnation: self.config.incarnation,
            keeps_shadow: self.config.shadow,
            allocation: self.allocation.save(),
            home: self.home.save_rest(),
            copied: copied.collect(),
            copies,
            shadow: self.shadow.clone(),
            incarnations: self.incarnations.clone(),
            down: self.down,
            reporter,
        };
        (self.save(), rest)
    }

    /// Takes on the state of a node with the same configuration, but for epoch, incarnation and shadow.
    pub fn load_all(&mut self, state: &State, rest: &Rest) {
        self.load(state);
        self.config.switch_epoch = rest.epoch;
        self.config.incarnation = rest.incarnation;
        self.config.shadow = rest.keeps_shadow;
        self.allocation.load(&rest.allocation);
        self.home.load_rest(&rest.home);
        self.copied.retain(|memory, _| rest.copied.iter().any(|(id, ..)| id == memory));
        for (memory, state, more) in &rest.copied {
            let home = self.copied.entry(*memory).or_insert_with(|| HomeAgent::of(*memory, &self.config));
            home.load(state);
            home.load_rest(more);
        }
        self.copies.clone_from(&rest.copies);
        self.shadow.clone_from(&rest.shadow);
        self.incarnations.clone_from(&rest.incarnations);
        self.down = rest.down;
        self.reporter.clone_from(&rest.reporter);
    }

    /// Makes everything due that is armed in a loaded state.
    pub fn make_all_due(&mut self, state: &State) {
        for timer in state.timers() {
            match timer {
                Timer::Move => self.home.make_move_due(),
                Timer::Epoch => self.next_epoch = Nanos::ZERO,
                _ => self.requesters.make_due(timer),
            }
        }
        self.allocation.make_due();
        self.copies.set_deadlines(Nanos::ZERO);
        self.reporter.set_deadlines(Nanos::ZERO);
    }
}

impl Rest {
    /// The epoch that the node is in.
    pub const fn epoch(&self) -> SwitchEpoch {
        self.epoch
    }

    /// True if something of it is sent again when its time has come.
    pub fn is_armed(&self) -> bool {
        self.allocation.is_armed() || self.copies.is_armed() || !self.reporter.is_quiet()
    }

    /// The memories with copies that the node has whole, counted from the first of them.
    pub fn whole_memories(&self, node: NodeId) -> Copyset {
        self.copies.whole_at(node)
    }
}

/// The rows that are not as they were at first, with their numbers.
pub(crate) fn rows<T: Clone + PartialEq>(all: &[T], blank: &T) -> Vec<(u32, T)> {
    let row = |index| u32::try_from(index).expect("8192 rows");
    let used = all.iter().enumerate().filter(|(_, it)| *it != blank);
    used.map(|(index, it)| (row(index), it.clone())).collect()
}

/// Puts them back.
pub(crate) fn set_rows<T: Clone>(all: &mut [T], blank: T, rows: &[(u32, T)]) {
    all.fill(blank);
    for (row, it) in rows {
        all[*row as usize] = it.clone();
    }
}
