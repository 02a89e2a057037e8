//! What the machines of the explored rack are asked: their states, an input, what comes of it, and what is looked at
//! afterwards.

use std::rc::Rc;

use node::coherence::canonical::{State, Timer, Use};
use node::{FrameId, Outcome, Started};
use switch::coherence;
use wire::{BlockSize, SlotId};

use super::Blocks;
use super::scope::CoherenceStep;
use super::shape::aged;
use crate::coherence::PlainStore;
use crate::explore::engine::Machines;

pub(super) const BLOCK: BlockSize = BlockSize::MIN;

/// The state of one node: its machines, its cache and its memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Local {
    pub(super) state: State,
    pub(super) store: PlainStore,
}

/// What happens at a node, beside packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Own {
    Turn(CoherenceStep),
    /// The thread that has this frame pinned accesses it, and is done.
    Access {
        frame: FrameId,
        block: u8,
        write: bool,
    },
    Release(SlotId),
    Fire(Timer),
    Hot(u8),
    Cold(u8),
    Purge(u8),
}

/// What came of it, beside packets.
#[derive(Default)]
pub(super) struct Told {
    pub(super) completed: Vec<(u8, Outcome)>,
    pub(super) started: Option<Started>,
}

/// What is asked of a local state again and again.
pub(super) struct Facts {
    pub(super) numbers: Vec<(u16, u8, Use)>,
    pub(super) timers: Vec<Timer>,
    pub(super) is_quiet: bool,
    /// Copies that can be hit: block, writable, latest.
    pub(super) copies: Vec<(u64, bool, bool)>,
}

/// What is asked of the switch's.
pub(super) struct SwitchFacts {
    pub(super) numbers: Vec<(u16, u8, Use)>,
    /// Requesters of whose events the switch has something.
    pub(super) scored: Vec<u16>,
}

/// What of the machines is looked at when everything is over.
pub(super) trait AtRest: Machines<Blocks> {
    /// Exactly one place keeps each entry, which names exactly the copies that there are.
    fn check_at_rest(
        &mut self,
        locals: &[Rc<Local>],
        switch: &coherence::canonical::State,
        purged: bool,
    ) -> Result<(), String>;
}

/// A state in which a block has been written elsewhere.
pub(super) fn age(local: &Local, block: u64) -> Local {
    let mut it = local.clone();
    it.state.map_data(&|data| node::DataRef(aged(data.0, block)));
    it.store.canonical(|stamp| aged(stamp, block));
    it
}
