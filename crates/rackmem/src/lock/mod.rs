//! The per-block reader-writer lock (Concordia, section 6, "synchronization primitive").
//!
//! What must always hold: a lock of a block with copies is [marked](marks) while it is held to write.

pub(crate) mod marks;

use std::sync::Arc;

use live::actor::{Failure, ThreadContext};
use wire::{GlobalAddr, NodeId, Refusal, SlotId};

use crate::attach::AskedLock;
use crate::error::Error;
use crate::handle::{NodeHandle, failed};
use crate::lock::marks::Marked;
use crate::rack::Inner;

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// With other readers, on any node.
    Read,
    /// Alone in the rack.
    Write,
}

impl From<LockMode> for wire::Mode {
    fn from(mode: LockMode) -> Self {
        match mode {
            LockMode::Read => Self::Read,
            LockMode::Write => Self::Write,
        }
    }
}

/// A block lock that is held, until this is dropped.
///
/// It excludes other holders of the lock, not accesses to the block: who locks is a convention of the
/// application. A lock occupies one of its node's requester slots while it is held.
///
/// Of a block with copies, what was written while it was held survives whole once it is released. If its node dies before that, a part
/// of it may survive; whoever takes the lock next is told ([`BlockLock::writer_that_died`]).
#[must_use = "the lock is released when this is dropped"]
pub struct BlockLock {
    /// The daemon holds it, or this process's node.
    _held: HeldBy,
    died: Option<NodeId>,
}

#[allow(
    clippy::large_enum_variant,
    reason = "that of a node is what counts, and has no memory of its own to be fetched"
)]
enum HeldBy {
    Daemon { _lock: AskedLock },
    Node { _here: Here },
}

struct Here {
    inner: Arc<Inner>,
    node: NodeId,
    slot: SlotId,
    context: ThreadContext,
    /// Of a block with copies, to write.
    marked: Option<Marked>,
}

impl NodeHandle {
    /// Takes the lock of the block that `addr` is in, and waits for it as long as it takes.
    ///
    /// ```
    /// # use rackmem::{Config, Discipline, LockMode, NodeId, Rack};
    /// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
    /// # let mut node = rack.node(NodeId(0));
    /// let addr = node.alloc(8, NodeId(1), Discipline::Coherent)?;
    /// let lock = node.lock_block(addr, LockMode::Write)?;
    /// assert!(rack.node(NodeId(1)).try_lock_block(addr, LockMode::Read)?.is_none());
    /// drop(lock);
    /// assert!(rack.node(NodeId(1)).try_lock_block(addr, LockMode::Read)?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooManyLocks`], [`Error::Unallocated`], [`Error::NoSuchNode`].
    pub fn lock_block(&mut self, addr: GlobalAddr, mode: LockMode) -> Result<BlockLock, Error> {
        self.take_lock(addr, mode, false).map(|lock| lock.expect("a patient lock operation is never refused"))
    }

    /// Takes the lock of the block that `addr` is in, if nobody holds it in a conflicting mode.
    ///
    /// # Errors
    /// As for [`NodeHandle::lock_block`].
    pub fn try_lock_block(&mut self, addr: GlobalAddr, mode: LockMode) -> Result<Option<BlockLock>, Error> {
        self.take_lock(addr, mode, true)
    }

    fn take_lock(
        &mut self,
        addr: GlobalAddr,
        mode: LockMode,
        once: bool,
    ) -> Result<Option<BlockLock>, Error> {
        self.inner.in_some_memory(addr)?;
        if self.is_attached() {
            let lock = self.ask_for_block_lock(addr, mode, once)?;
            return Ok(lock.map(|(lock, died)| BlockLock { _held: HeldBy::Daemon { _lock: lock }, died }));
        }
        let Some(mut here) = self.take_unmarked(addr, mode, once)? else { return Ok(None) };
        let mut died = None;
        if self.inner.has_copies(addr) {
            let block = self.tag(addr).addr();
            let left = self.marks_of_dead(block)?;
            died = left.first().map(|last| last.node);
            if mode == LockMode::Write {
                here.marked = Some(self.mark(block, left)?);
            }
        }
        Ok(Some(BlockLock { _held: HeldBy::Node { _here: here }, died }))
    }

    /// Takes the lock to write, and nobody will be told if this node dies: for what is looked at by whoever comes next, in any case.
    pub(crate) fn lock_block_unmarked(&mut self, addr: GlobalAddr) -> Result<BlockLock, Error> {
        let here = self.take_unmarked(addr, LockMode::Write, false)?;
        let here = here.expect("a patient lock operation is never refused");
        Ok(BlockLock { _held: HeldBy::Node { _here: here }, died: None })
    }

    fn take_unmarked(&mut self, addr: GlobalAddr, mode: LockMode, once: bool) -> Result<Option<Here>, Error> {
        let slot = self.lock_at_node(addr, mode, once)?;
        Ok(slot.map(|slot| {
            let (inner, context) = (Arc::clone(&self.inner), ThreadContext::new(u64::from(slot.0)));
            Here { inner, node: self.node, slot, context, marked: None }
        }))
    }

    /// The same for this process's node, which has the lock in a slot until it is told to unlock that.
    pub(crate) fn lock_at_node(
        &mut self,
        addr: GlobalAddr,
        mode: LockMode,
        once: bool,
    ) -> Result<Option<SlotId>, Error> {
        let tag = self.tag(addr);
        match self.at_node().lock(tag, mode == LockMode::Write, once) {
            Ok(slot) => Ok(Some(slot)),
            Err(Failure::Refused(Refusal::Locked)) => Ok(None),
            Err(why) => Err(failed(why, addr, 0)),
        }
    }
}

impl BlockLock {
    /// Of a block with copies: the node that died, or was taken for dead, with a thread that had the lock to write, if nobody has
    /// released it to write since. A part of what that thread had written may be there: the first part, in its order.
    pub fn writer_that_died(&self) -> Option<NodeId> {
        self.died
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        if let Some(marked) = self.marked.take() {
            marked.take_away(&self.inner, self.node);
        }
        self.inner.at(self.node, &mut self.context).unlock(self.slot);
    }
}
