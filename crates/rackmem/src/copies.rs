//! Memory that outlives its node, as a handle gives it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use live::networked::Draining;
use wire::{BlockTag, Discipline, GlobalAddr, NodeId};

use crate::addresses::of_a_node;
use crate::drain::DrainOrder;
use crate::error::Error;
use crate::handle::{NodeHandle, failed};
use crate::rack::{Inner, Rack};

/// So long a sync waits for others who have memory pinned.
const LONGEST_PIN: Duration = Duration::from_secs(1);

/// What is of this discipline can be in memory with copies: others change words and objects by plain instructions.
pub(crate) const fn can_be_in_copies(discipline: Discipline) -> bool {
    matches!(discipline, Discipline::Coherent | Discipline::Locked)
}

/// What is of this discipline can have copies: a store keeps its own ones.
pub(crate) const fn can_have_copies(discipline: Discipline) -> bool {
    can_be_in_copies(discipline) || matches!(discipline, Discipline::Chain)
}

impl NodeHandle {
    /// Allocates `len` bytes of zeroes that outlive nodes: [`Config::copies`](crate::Config::copies) nodes keep them, `near` first, if
    /// it is up. In all else they are as what [`NodeHandle::alloc`] makes with [`Discipline::Coherent`].
    ///
    /// When a node dies, a prefix of what it has written to such memory survives: all that it has synced ([`NodeHandle::sync`]), all
    /// that others have seen, and nothing without what the node wrote before it. What a dead node kept is copied to another one, if there
    /// is one, and to itself when it comes back. What is allocated this way is lost when all nodes that have it die before that is done.
    /// An embedded rack dies as a whole: there, nothing has copies.
    ///
    /// # Errors
    /// [`Error::NoCopies`], and as [`NodeHandle::alloc`].
    pub fn alloc_with_copies(&mut self, len: u64, near: NodeId) -> Result<GlobalAddr, Error> {
        let memory = self.memory_near(near)?;
        self.alloc(len, memory, Discipline::Coherent)
    }

    /// The memory with copies that this node serves first.
    pub(crate) fn memory_near(&self, near: NodeId) -> Result<NodeId, Error> {
        of_a_node(GlobalAddr::new(near, 0), self.inner.nodes_known())?;
        if self.inner.config.copies == 1 {
            return Err(Error::NoCopies);
        }
        // There is one for each node that the rack began with; one that was added uses those of others.
        let nth = near.index() % self.nodes();
        let memory = if self.inner.is_embedded() { nth } else { self.inner.config.places() + nth };
        Ok(NodeId(u16::try_from(memory).expect("at most 64 memories")))
    }

    /// True if what is at this address has copies.
    pub fn has_copies(&self, addr: GlobalAddr) -> bool {
        self.inner.has_copies(addr)
    }

    /// From now on, whatever coherent memory this handle allocates has copies, or none, and so have locks: [`NodeHandle::alloc`] is then
    /// [`NodeHandle::alloc_with_copies`]. For code that allocates on its own.
    ///
    /// # Errors
    /// [`Error::NoCopies`].
    pub fn keep_copies(&mut self, keep: bool) -> Result<(), Error> {
        if keep && self.inner.config.copies == 1 {
            return Err(Error::NoCopies);
        }
        self.keeps_copies = keep;
        Ok(())
    }

    /// Waits until all that this node has written to memory with copies is in all of them: from then on it survives this node, too.
    /// Writes of all threads of the node count that were made before the call, by calls and through pointers.
    ///
    /// # Errors
    /// [`Error::Fenced`]; [`Error::PinnedToWrite`], if such memory stays pinned by [`Mapping::pin`](crate::Mapping::pin) for a second.
    pub fn sync(&mut self) -> Result<(), Error> {
        if self.is_attached() {
            return self.ask_to_sync();
        }
        self.await_pins()?;
        self.at_node().sync().map_err(|why| failed(why, GlobalAddr::NULL, 0))
    }

    /// A thread that pins memory may be this one, which would then wait for itself.
    fn await_pins(&self) -> Result<(), Error> {
        let Some(pages) = self.inner.joined().and_then(|node| node.memory().pages()) else { return Ok(()) };
        let (began, has_copies) = (Instant::now(), |tag: BlockTag| self.inner.has_copies(tag.addr()));
        while let Some(tag) = pages.kept_writable(has_copies) {
            if began.elapsed() >= LONGEST_PIN {
                return Err(Error::PinnedToWrite { addr: tag.addr() });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// What the rack is told about this handle's node, which may be about to leave.
    pub(crate) fn order(&self, order: DrainOrder) -> Result<Draining, Error> {
        Rack { inner: Arc::clone(&self.inner) }.order(order)
    }

    /// How many memories addresses name.
    pub(crate) fn memories(&self) -> usize {
        self.inner.memories_named()
    }
}

impl Inner {
    /// Names are kept in memories with copies.
    pub(crate) fn names_have_copies(&self) -> bool {
        !self.is_embedded() && self.config.copies > 1
    }

    /// The node that has a memory now, as far as this process knows.
    pub(crate) fn server_of(&self, memory: NodeId) -> Option<NodeId> {
        self.joined().map_or(Some(memory), |node| node.view().server_of(memory))
    }

    /// The incarnation that a memory is in; those of an embedded rack are in their first one.
    pub(crate) fn life_of(&self, memory: NodeId) -> Option<u32> {
        self.joined().map_or(Some(0), |node| node.view().life_of(memory).map(|life| life.0))
    }
}

/// One more way into the same node; what it allocates has copies, if what this one allocates has.
impl Clone for NodeHandle {
    fn clone(&self) -> Self {
        let mut handle = Rack { inner: Arc::clone(&self.inner) }.node(self.node);
        handle.keeps_copies = self.keeps_copies;
        handle
    }
}
