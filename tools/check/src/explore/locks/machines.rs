//! What the machines of the explored rack are asked: their states, an input, what comes of it, and what is looked at afterwards.

use std::rc::Rc;

use node::locks::HolderView;
use node::locks::canonical::{State, Timer};
use node::{DataRef, LockEffect, Ticket};
use switch::locks::{EntryView, Row};
use wire::{Copyset, Mode, SwitchEpoch, Term};

use super::Regions;
use super::numbers::Numbers;
use super::shape::lock_at;
use crate::explore::engine::Machines;
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
    pub(super) directory: switch::locks::DirectoryState,
    pub(super) epoch: SwitchEpoch,
}

/// What happens at a node, beside packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Own {
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

/// What came of it, beside packets.
#[derive(Default)]
pub(super) struct Told {
    /// What threads were told; and the one that walked in.
    pub(super) told: Vec<LockEffect>,
    /// A pass through a directory.
    pub(super) pass: Option<Row>,
}

/// What is asked of a node's state again and again.
pub(super) struct Facts {
    pub(super) timers: Vec<Timer>,
    pub(super) is_quiet: bool,
    pub(super) epoch: SwitchEpoch,
    pub(super) locks: Vec<LockFacts>,
    /// Requests of which something there has the number; and how many the node has asked.
    pub(super) numbers: Numbers,
    pub(super) asked: Numbers,
}

/// What is asked of the switch's.
pub(super) struct SwitchFacts {
    pub(super) epoch: SwitchEpoch,
    pub(super) entries: Vec<Option<EntryView>>,
}

/// What of a lock at a node must fit what is elsewhere.
#[derive(Clone, Default, Debug)]
pub(super) struct LockFacts {
    /// Who is inside, or may walk in.
    pub(super) readers: bool,
    pub(super) writer: bool,
    pub(super) is_latest: bool,
    pub(super) holding: Option<HolderView>,
    pub(super) copy: Option<Term>,
    /// The directory has been asked.
    pub(super) asked: bool,
    /// Whose requests are kept here.
    pub(super) parked: Copyset,
    /// What a directory here says.
    pub(super) entry: Option<EntryView>,
}

/// What is done to the machines from outside, and how they are looked at when everything is over.
pub(super) trait Outwards: Machines<Regions> {
    /// The switch as it is after a restart.
    fn restart(&mut self, state: &SwitchState) -> SwitchState;

    /// The switch without one of the entries that make it full.
    fn vacate(&mut self, state: &SwitchState) -> SwitchState;

    /// Nothing is in flight: directories say what is so, and whoever has data has the latest.
    fn check_at_rest(&mut self, locals: &[Rc<Local>], switch: &SwitchState) -> Result<(), String>;
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
