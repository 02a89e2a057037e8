//! The seam between the node's state machines and the driver that holds the bytes.
//!
//! Cached blocks live in *frames* of a set-associative cache, home memory in a flat space; both belong to the
//! driver (concurrent memory in a live rack, plain memory or version stamps in a simulated one). The machines
//! decide what may happen to a frame and name contents by a [`DataRef`]; they never see a byte.
//!
//! States of a frame: free → reserved (by a miss that waits for its data) → published (hits are possible) →
//! withdrawn (no hit is possible, the bytes are still there) → free or reserved for another block.

use wire::{BlockTag, Nanos};

/// A place for one block in a node's cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId(pub u32);

/// Names the contents of a block somewhere in the rack: in a frame, in a home's memory, in a retained answer,
/// in a receive buffer. What the number means is the driver's business. The contents named stay as they are
/// until the coherence event that they were named for is closed; in a report after a restart, until the last
/// report of its sender to that home is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DataRef(pub u64);

/// What a node may do with a block that it caches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// Read it.
    Shared,
    /// Read and write it: no other node has it.
    Modified,
}

/// A thread of this node is writing in the frame this moment. The store remembers that an agent waits, and
/// the driver delivers [`crate::Node::on_unpinned`] when the thread is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pinned;

/// What [`Store::reserve`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reservation {
    /// This frame is now reserved.
    Reserved(FrameId),
    /// The bucket is full: this block, the least recently used one that may go, must be evicted first.
    Evict {
        /// Where it is.
        frame: FrameId,
        /// What it is.
        tag: BlockTag,
        /// How it is cached.
        access: Access,
    },
    /// Every frame of the bucket is reserved, pinned or already being evicted.
    Busy,
}

/// What the machines of one node need of its cache and memory. All calls come from the machines of that
/// node, one at a time; application threads hit in published frames meanwhile.
pub trait Store {
    /// The published frame that holds the block.
    fn lookup(&self, tag: BlockTag) -> Option<(FrameId, Access)>;

    /// The block that a published frame holds, if it is published.
    fn tag_of(&self, frame: FrameId) -> Option<BlockTag>;

    /// Names every published frame, in any order.
    fn published(&self, each: impl FnMut(FrameId, BlockTag, Access));

    /// Finds room for a block that has no frame. `is_victim` names frames whose eviction is in flight.
    fn reserve(&mut self, tag: BlockTag, is_victim: impl Fn(FrameId) -> bool) -> Reservation;

    /// A reserved frame is for this block now: what was evicted from it has left. For stores in which a block's
    /// place depends on the block.
    fn assign(&mut self, _frame: FrameId, _tag: BlockTag) {}

    /// Copies contents into a reserved frame. Nobody sees them yet.
    fn fill(&mut self, frame: FrameId, data: DataRef);

    /// Lets hits into a reserved frame. With `pin`, the frame starts out pinned for the thread that waited for
    /// the block, so that its access cannot be overtaken by the next revocation.
    fn publish(&mut self, frame: FrameId, tag: BlockTag, access: Access, pin: bool);

    /// Pins a published frame for the thread that waited, if nobody has it pinned.
    ///
    /// # Errors
    /// If a thread is writing in it: that thread's access goes first.
    fn pin(&mut self, frame: FrameId) -> Result<(), Pinned>;

    /// Makes a published, shared frame writable, and pins it for the thread that waited for that.
    ///
    /// # Errors
    /// If a thread has it pinned: one that reads a block which others write too often may do that.
    fn upgrade(&mut self, frame: FrameId) -> Result<(), Pinned>;

    /// Takes the right to write from a published frame; a frame that is shared already stays so.
    ///
    /// # Errors
    /// If a thread is writing in it.
    fn downgrade(&mut self, frame: FrameId) -> Result<(), Pinned>;

    /// Ends all hits in a published frame. Its bytes stay until it is released or filled: it is reserved.
    ///
    /// # Errors
    /// If a thread is writing in it.
    fn withdraw(&mut self, frame: FrameId) -> Result<(), Pinned>;

    /// Gives back a reserved frame.
    fn release(&mut self, frame: FrameId);

    /// A number that changes whenever a thread of this node has written in this frame. What it is does not matter.
    fn writes(&self, frame: FrameId) -> u64;

    /// The contents of a published or reserved frame.
    fn contents(&self, frame: FrameId) -> DataRef;

    /// A copy of a frame's contents that outlives the frame's use.
    fn retain(&mut self, frame: FrameId) -> DataRef;

    /// A copy of a published frame's contents as they are this moment, to be given back like a retained one.
    ///
    /// # Errors
    /// If a thread is writing in it.
    fn read(&mut self, frame: FrameId) -> Result<DataRef, Pinned>;

    /// A copy of contents that came with a packet, to be given back like a retained one.
    fn keep(&mut self, data: DataRef) -> DataRef;

    /// Gives back a copy made by [`Store::retain`], [`Store::read`] or [`Store::keep`].
    fn discard(&mut self, retained: DataRef);

    /// The contents of a block of this node's own memory.
    fn home_contents(&self, tag: BlockTag) -> DataRef;

    /// Writes a block of this node's own memory.
    fn write_home(&mut self, tag: BlockTag, data: DataRef);

    /// Sets a range of this node's own memory to zero, before its first use by an allocation.
    fn zero_home(&mut self, first: BlockTag, bytes: u64);
}

/// The inputs that every call of a machine gets from its driver: the time, and the randomness for whatever
/// choice the call has to make. No machine has a clock or a random source of its own.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time. It never runs back.
    pub now: Nanos,
    /// A fresh random number.
    pub random: u32,
}
