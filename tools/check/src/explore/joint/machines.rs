//! What the machines of the explored rack are asked: their states, an input, what comes of it, and what is looked at
//! afterwards.

use std::rc::Rc;

use node::coherence::canonical::State;
use node::coherence::canonical::rest::Rest;
use node::{Access, FrameId, LockEffect, Outcome, Started, View};
use switch::coherence::Dump;
use wire::{
    BlockSize, BlockTag, Copyset, Discipline, GlobalAddr, Incarnation, Mode, NodeId, SlotId, SwitchEpoch,
};

use super::Both;
use super::copied::Copied;
use super::world::{Control, Memory};
use crate::coherence::PlainStore;
use crate::explore::engine::Machines;
use crate::locks::PlainLocks;

/// The state of one node: its machines, its cache, its copies of locks, and its memory, which is with the blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Local {
    pub(super) state: State,
    pub(super) rest: Rest,
    pub(super) locks: node::locks::canonical::State,
    pub(super) blocks: PlainStore,
    pub(super) copies: PlainLocks,
}

/// The state of the switch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct SwitchState {
    pub(super) blocks: switch::coherence::canonical::State,
    pub(super) locks: switch::locks::DirectoryState,
    pub(super) epoch: SwitchEpoch,
    pub(super) shadow: NodeId,
    /// The nodes that serve memories with copies.
    pub(super) servers: Vec<Option<NodeId>>,
}

/// What happens at a node, beside packets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Own {
    Allocate(NodeId, Discipline),
    Free,
    Fetch(BlockTag, Access),
    /// The thread that has this frame of the block pinned reads it, or writes this, and is done.
    Access(BlockTag, FrameId, Option<u64>),
    /// A thread wants the block lock of this block to write; or releases it.
    Lock(BlockTag),
    Release(SlotId),
    /// A thread wants all that the node has written to be safe.
    Sync,
    /// This thread wants the lock; or, lost as it is, takes it.
    Enter(u8, Mode),
    Reclaim(u8),
    /// Somebody leaves, having written this.
    Leave(Mode, Option<u64>),
    /// This thread, inside to write, ends the lock; or, with true, gives up what it has taken.
    End(u8, bool),
    /// It is about to leave the rack.
    SendHome,
    /// All that is armed is due.
    Fire,
    /// It is told of what the control plane knows.
    Hear(Rc<Control>),
}

impl Own {
    /// It is about a lock: nothing else may write a lock's region, and it may write nothing else.
    pub(super) const fn is_of_locks(&self) -> bool {
        matches!(self, Self::Enter(..) | Self::Reclaim(_) | Self::Leave(..) | Self::End(..))
    }
}

/// What a thread is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ToThread {
    Block(SlotId, Outcome),
    Lock(LockEffect),
}

/// What came of it, beside packets.
#[derive(Default)]
pub(super) struct Told {
    pub(super) told: Vec<ToThread>,
    pub(super) started: Option<Started>,
    /// The gate was open.
    pub(super) walked_in: bool,
    /// The memory was zeroed.
    pub(super) zeroed: bool,
}

/// What is asked of a node's state again and again.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) epoch: SwitchEpoch,
    pub(super) is_quiet: bool,
    pub(super) is_armed: bool,
    /// Its copy of the block, and the write in it.
    pub(super) copy: Option<(Access, u64)>,
    /// The write in its copy of the lock.
    pub(super) value: Option<u64>,
    /// What its memory is allocated as, and the write in it.
    pub(super) discipline: Option<Discipline>,
    pub(super) memory: u64,
    /// It says that the block's contents are lost.
    pub(super) has_lost: bool,
    /// Its copies of blocks of memory with copies, and the writes in them.
    pub(super) cached: Vec<(BlockTag, Access, u64)>,
    /// The memories with copies that it has whole.
    pub(super) whole: Copyset,
}

/// What the control plane does with the machines, and how they are looked at when everything is over.
pub(super) trait Outwards: Machines<Both> {
    /// A node that knows nothing, in the first epoch or, if it comes back, in none.
    fn blank(&mut self, node: usize, incarnation: Incarnation) -> Local;

    /// The switch, empty in the epoch that begins.
    fn empty_switch(&mut self, view: &View) -> SwitchState;

    /// A rack with copies, when everybody has heard of the first epoch.
    fn settled(&mut self, control: &Rc<Control>) -> (Vec<Local>, SwitchState);

    /// What a control plane reads out of the switch.
    fn dump(&mut self, state: &SwitchState) -> Dump;

    /// Nothing is in flight: directories say what is so, and whoever has data has the latest.
    fn check_at_rest(
        &mut self,
        locals: &[Rc<Local>],
        switch: &SwitchState,
        control: &Control,
        memory: &Memory,
        copied: &Copied,
    ) -> Result<(), String>;
}

/// The block, as coherence and locks name it.
pub(super) fn block() -> BlockTag {
    BLOCK.tag(region())
}

/// The first block of a memory is never handed out.
pub(super) fn region() -> GlobalAddr {
    GlobalAddr::new(HOME, BLOCK.bytes())
}

pub(super) const HOME: NodeId = NodeId(0);
pub(super) const BLOCK: BlockSize = BlockSize::MIN;
/// Bytes of the lock's region.
pub(super) const LEN: u32 = 8;
/// The epoch that the rack begins in. Nodes that come back begin in none.
pub(super) const FIRST: SwitchEpoch = crate::rack::FIRST;
