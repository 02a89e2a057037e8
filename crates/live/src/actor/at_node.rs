//! What application threads can ask of their node when a hit will not do.

use node::{Access, FrameId, Outcome, Started};
use wire::{BlockTag, Discipline, GlobalAddr, Incarnation, Mode, NodeId, Refusal, SlotId};

use super::context::ThreadContext;
use super::inbox::Input;
use super::operations::{Ask, AskLocks, Operations, Wait};
use super::outcome::{Allocated, Failure, Fetched};

/// An application thread at its node, in this process.
pub struct AtNode<'a> {
    pub(crate) driver: &'a dyn Operations,
    pub(crate) node: NodeId,
    pub(crate) context: &'a mut ThreadContext,
}

impl AtNode<'_> {
    /// Gets a block into the node's cache, for this access.
    ///
    /// # Errors
    /// If the block may not be accessed at all.
    pub fn bring(&mut self, tag: BlockTag, access: Access) -> Result<Fetched, Failure> {
        self.run(Ask::Block(tag, access))?.1.try_into()
    }

    /// Gets several blocks into the node's cache at once; each that comes is pinned for this thread, and handed over. Blocks that
    /// cannot be had, or that another thread is getting, are left out.
    ///
    /// # Errors
    /// If this node counts no more.
    pub fn bring_together(
        &mut self,
        tags: &[BlockTag],
        access: Access,
        each: &mut dyn FnMut(&mut ThreadContext, FrameId),
    ) -> Result<(), Failure> {
        self.driver.run_together(self.node, self.context, (tags, access), each)
    }

    /// Has a block leave the node's cache. It may have come back since, or another thread may be about to use it.
    ///
    /// # Errors
    /// If the block's home is gone, or it may not be accessed any more.
    pub fn evict(&mut self, tag: BlockTag) -> Result<(), Failure> {
        Fetched::try_from(self.run(Ask::Evict(tag))?.1).map(drop)
    }

    /// Gets a block into the node's cache to be read, or only the bytes of it that are asked for, by offset and length, both
    /// multiples of 8.
    ///
    /// # Errors
    /// If the block may not be accessed at all.
    pub fn read(&mut self, tag: BlockTag, bytes: (usize, usize)) -> Result<Fetched, Failure> {
        let fetched = self.run(Ask::Read(tag, bytes))?.1.try_into()?;
        if fetched == Fetched::Words {
            self.context.take_peeked();
            // From a machine that takes itself for another one; the next try may find the block elsewhere.
            if self.context.peeked().len() * 8 != bytes.1 {
                return Ok(Fetched::Retry);
            }
        }
        Ok(fetched)
    }

    /// Takes the application lock of a block; with `once`, gives up at the first refusal. Returns the slot that
    /// the lock occupies.
    ///
    /// # Errors
    /// [`wire::Refusal::Locked`] with `once`; [`Failure::NoSlot`]; else if the block cannot be locked at all.
    pub fn lock(&mut self, block: BlockTag, write: bool, once: bool) -> Result<SlotId, Failure> {
        match self.run(Ask::Lock { block, write, once })? {
            (Started::Slot(slot), Outcome::Locked) => Ok(slot),
            (_, Outcome::Failed(why)) => Err(why.into()),
            (_, other) => panic!("a lock operation ended with {other:?}"),
        }
    }

    /// Releases a lock taken by [`AtNode::lock`].
    pub fn unlock(&mut self, slot: SlotId) {
        self.driver.release(self.node, self.context, slot);
    }

    /// Allocates.
    ///
    /// # Errors
    /// If the home cannot provide the memory.
    pub fn alloc(&mut self, len: u64, home: NodeId, discipline: Discipline) -> Result<Allocated, Failure> {
        match self.run(Ask::Alloc { len, home, discipline })?.1 {
            Outcome::Allocated { addr, zeroed, incarnation } => Ok(Allocated { addr, incarnation, zeroed }),
            Outcome::Failed(why) => Err(why.into()),
            other => panic!("an allocation ended with {other:?}"),
        }
    }

    /// Frees; if an incarnation of the home is given, only what was allocated in that.
    ///
    /// # Errors
    /// If no allocation starts there, or its home is down, or in another incarnation.
    pub fn free(&mut self, addr: GlobalAddr, incarnation: Option<Incarnation>) -> Result<(), Failure> {
        ended(self.run(Ask::Free(addr, incarnation))?.1)
    }

    /// Waits until all that this node has written to memory with copies is in all of them.
    ///
    /// # Errors
    /// If this node counts no more.
    pub fn sync(&mut self) -> Result<(), Failure> {
        match self.run(Ask::Sync)?.1 {
            Outcome::Synced => Ok(()),
            other => panic!("a wait for copies ended with {other:?}"),
        }
    }

    /// Tells the node's agents that a pin they wait for is gone.
    pub fn unpinned(&mut self, frame: FrameId) {
        self.driver.leave(self.node, self.context, Input::Unpinned(frame));
        // Somebody wanted the block, and has it now. Two threads that hand a block to each other, each asking for
        // it back at once, would keep its entry locked for everybody else: whoever has had its turn steps back.
        crate::scheduling::give_way();
    }

    /// Takes a lock that carries `len` bytes of data: then the calling thread is inside its copy. False if it is not to be
    /// had within the wait.
    ///
    /// # Errors
    /// If it cannot be had at all.
    pub fn take(&mut self, lock: (GlobalAddr, u32), mode: Mode, wait: Wait) -> Result<bool, Failure> {
        match self.run_on_lock(AskLocks::Take { lock, mode, wait })? {
            Outcome::Locked => Ok(true),
            Outcome::Failed(Refusal::Locked) => Ok(false),
            Outcome::Failed(why) => Err(why.into()),
            other => panic!("a lock operation ended with {other:?}"),
        }
    }

    /// Ends a lock that the calling thread is inside of to write: the rack forgets it, and whoever waits for it is refused. Or
    /// its data are lost, once more: the thread has reclaimed it, and could not do what it wanted.
    ///
    /// # Errors
    /// If this node counts no more.
    pub fn end(&mut self, lock: GlobalAddr, is_lost: bool) -> Result<(), Failure> {
        ended(self.run_on_lock(AskLocks::End { lock, is_lost })?)
    }

    /// Tells the node's machine that nobody is inside a lock any more.
    pub fn left(&mut self, lock: GlobalAddr) {
        self.driver.leave(self.node, self.context, Input::Left(lock));
    }

    fn run(&mut self, ask: Ask) -> Result<(Started, Outcome), Failure> {
        self.driver.run(self.node, self.context, ask)
    }

    fn run_on_lock(&mut self, ask: AskLocks) -> Result<Outcome, Failure> {
        self.driver.run_on_lock(self.node, self.context, ask)
    }
}

/// What the end of an allocation, or of a lock, has come to.
fn ended(outcome: Outcome) -> Result<(), Failure> {
    match outcome {
        Outcome::Freed => Ok(()),
        Outcome::Failed(why) => Err(why.into()),
        other => panic!("a free ended with {other:?}"),
    }
}
