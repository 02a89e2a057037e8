//! The seam between a node's locks and the driver that holds their bytes and lets threads in.
//!
//! The driver keeps a *copy* for each lock that the node has capacity for: the region's bytes, and a *gate*. While the gate
//! is open, threads enter and leave by themselves, as it says: readers only, or readers and writers, which exclude
//! each other there. While it is closed, nobody enters but whom the machine lets in, and whoever leaves is
//! reported ([`super::LockNode::on_left`]).

use wire::{GlobalAddr, Mode, Refusal};

use crate::store::DataRef;

/// The threads inside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Users {
    /// Readers.
    pub readers: u32,
    /// A writer.
    pub writer: bool,
}

impl Users {
    /// True if nobody is inside.
    pub const fn is_none(self) -> bool {
        self.readers == 0 && !self.writer
    }
}

/// There is no capacity for another copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// This one, used longest ago, may go.
    Evict(GlobalAddr),
    /// None may go now.
    Busy,
}

/// What the machines of one node need of its copies and its memory.
pub trait LockStore {
    /// Makes room for a copy of so many bytes, with a closed gate and nobody inside. With `must`, beyond what there is:
    /// the lock has come unasked.
    ///
    /// # Errors
    /// If another copy has to go first. Never with `must`.
    fn reserve(&mut self, lock: GlobalAddr, len: u32, must: bool) -> Result<(), Full>;

    /// Gives a copy's capacity back.
    fn release(&mut self, lock: GlobalAddr);

    /// Copies data into a copy. Nobody is inside.
    fn fill(&mut self, lock: GlobalAddr, data: DataRef);

    /// The data of a copy.
    fn contents(&self, lock: GlobalAddr) -> DataRef;

    /// Opens the gate: for readers, or for readers and writers.
    fn open(&mut self, lock: GlobalAddr, mode: Mode);

    /// Closes the gate. From now on whoever leaves is reported. Who is inside?
    fn close(&mut self, lock: GlobalAddr) -> Users;

    /// Lets a thread in through the closed gate.
    fn admit(&mut self, lock: GlobalAddr, mode: Mode);

    /// Whether such a region of this node's memory may be locked.
    ///
    /// # Errors
    /// If it belongs to no allocation of that discipline. Where the node's own table of allocations is asked
    /// ([`crate::RackNode`]), the driver says nothing.
    fn may_lock(&self, _lock: GlobalAddr, _len: u32) -> Result<(), Refusal> {
        Ok(())
    }

    /// The data of a region of this node's memory.
    fn home_contents(&self, lock: GlobalAddr, len: u32) -> DataRef;

    /// Writes a region of this node's memory.
    fn write_home(&mut self, lock: GlobalAddr, len: u32, data: DataRef);
}
