//! What every handle asks of an address before it asks the rack for what is there.

use wire::{BlockSize, GlobalAddr};

use crate::error::Error;
use crate::rack::{Inner, Places};

/// It names one of the rack's nodes.
pub(crate) fn of_a_node(addr: GlobalAddr, nodes: usize) -> Result<(), Error> {
    if addr.home().index() < nodes { Ok(()) } else { Err(Error::NoSuchNode { addr, nodes }) }
}

/// It is one of a word.
pub(crate) fn aligned(addr: GlobalAddr) -> Result<(), Error> {
    if addr.bits().is_multiple_of(8) { Ok(()) } else { Err(Error::Unaligned { addr }) }
}

/// So many bytes from there lie inside one block.
#[inline]
pub(crate) fn inside_block(addr: GlobalAddr, len: usize, block: BlockSize) -> Result<(), Error> {
    if len <= block.len() - block.offset_in_block(addr) {
        Ok(())
    } else {
        Err(Error::CrossesBlocks { addr, len, block })
    }
}

/// So many bytes from there lie in the memory of one of the rack's nodes, each of which has `memory` bytes.
pub(crate) fn in_range(addr: GlobalAddr, len: u64, nodes: usize, memory: u64) -> Result<(), Error> {
    of_a_node(addr, nodes)?;
    let fits = addr.offset().checked_add(len).is_some_and(|end| end <= memory);
    if fits { Ok(()) } else { Err(Error::OutOfRange { addr, len }) }
}

impl Inner {
    /// How many memories addresses name.
    pub(crate) fn memories_named(&self) -> usize {
        if self.is_embedded() { self.config.nodes } else { self.config.memories() }
    }

    /// Nodes are or were in the rack up to this one, as far as this process knows: those that were added, too.
    pub(crate) fn nodes_known(&self) -> usize {
        match &self.places {
            Places::Embedded(_) => self.config.nodes,
            Places::Joined { node, .. } => node.nodes_known(),
            // Its daemon knows.
            Places::Attached(_) => self.config.places(),
        }
    }

    /// True for an address in memory with copies.
    pub(crate) fn has_copies(&self, addr: GlobalAddr) -> bool {
        !self.is_embedded() && self.config.has_copies(addr.home())
    }

    /// An address names a node's memory, or one with copies.
    pub(crate) fn in_some_memory(&self, addr: GlobalAddr) -> Result<(), Error> {
        if self.has_copies(addr) { Ok(()) } else { of_a_node(addr, self.nodes_known()) }
    }
}
