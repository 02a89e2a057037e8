//! What the machines of the explored rack are asked: their states, an input, what comes of it, and what is looked at afterwards.
//!
//! Whatever rules they keep: the engine knows only these. What must hold: the same state and input give the same.

use node::locks::ReignView;
use node::locks::canonical::{State, Timer};
use node::{DataRef, LockEffect, LockMessage, Ticket};
use switch::locks::{EntryView, Resubmit, Row};
use wire::{Copyset, Mode, SwitchEpoch, Tenure};

use super::shape::lock_at;
use crate::locks::PlainLocks;

/// The state of one node: its machine, its copies and its memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Local {
    pub(super) state: State,
    pub(super) store: PlainLocks,
}

/// The state of the switch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct SwitchState {
    pub(super) directory: switch::locks::State,
    pub(super) epoch: SwitchEpoch,
}

/// What happens at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Input {
    Packet(LockMessage),
    /// A thread wants a lock; with true, it does not want to wait.
    Want(Ticket, u8, Mode, bool),
    Leave(u8, Mode),
    Cancel(Ticket, u8),
    /// A thread that is inside to write ends the lock.
    End(Ticket, u8),
    Fire(Timer),
    Leaving,
    Hear(SwitchEpoch),
}

/// What came of it.
pub(super) struct After<T> {
    pub(super) local: T,
    pub(super) sends: Vec<LockMessage>,
    pub(super) again: Vec<(Resubmit, Option<DataRef>)>,
    /// What threads were told; and the one that walked in.
    pub(super) told: Vec<LockEffect>,
    /// A pass through a directory.
    pub(super) pass: Option<Row>,
}

/// What of a lock at a node must fit what is elsewhere.
#[derive(Clone, Default, Debug)]
pub(super) struct LockFacts {
    /// Who is inside, or may walk in.
    pub(super) readers: bool,
    pub(super) writer: bool,
    pub(super) is_latest: bool,
    pub(super) reign: Option<ReignView>,
    pub(super) copy: Option<Tenure>,
    /// The directory has been asked.
    pub(super) asked: bool,
    /// Whose requests are kept here.
    pub(super) parked: Copyset,
    /// What a directory here says.
    pub(super) entry: Option<EntryView>,
}

/// The machines, whatever rules they keep.
pub(super) trait Machines {
    /// The initial state of every node and of the switch.
    fn start(&mut self) -> (Vec<Local>, SwitchState);

    fn at_node(&mut self, node: usize, local: &Local, input: Input) -> Result<After<Local>, String>;

    fn at_switch(
        &mut self,
        state: &SwitchState,
        input: Result<LockMessage, (Resubmit, Option<DataRef>)>,
    ) -> Result<After<SwitchState>, String>;

    /// The switch as it is after a restart.
    fn restart(&mut self, state: &SwitchState) -> SwitchState;

    /// The switch without one of the entries that make it full.
    fn vacate(&mut self, state: &SwitchState) -> SwitchState;

    /// What is said of every lock; and whether nothing is under way there.
    fn facts(&mut self, node: usize, local: &Local) -> (Vec<LockFacts>, bool);

    /// What the switch says of every lock.
    fn entries(&self, state: &SwitchState) -> Vec<Option<EntryView>>;

    /// Nothing is under way: directories say what is so, and whoever has data has the latest.
    fn check_at_rest(&mut self, locals: &[&Local], switch: &SwitchState) -> Result<(), String>;

    /// Packets of another epoch are dropped wherever they arrive.
    fn fences_epochs(&self) -> bool;
}

/// A state in which all contents of a region are these.
pub(super) fn with_contents(local: &Local, lock: u8, contents: u64) -> Local {
    let mut it = local.clone();
    it.state.map_data(lock_at(lock), |_| DataRef(contents));
    it.store.canonical(|at, value| if at == lock_at(lock) { contents } else { value });
    it
}

/// A state of the locks' home in which the region belongs to an allocation, or to none.
pub(super) fn with_allocation(local: &Local, lock: u8, allocated: bool) -> Local {
    let mut it = local.clone();
    if allocated {
        it.store.unallocated.remove(&lock_at(lock));
    } else {
        it.store.unallocated.insert(lock_at(lock));
    }
    it
}
