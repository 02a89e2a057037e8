//! What every handle asks of an address before it asks the rack for what is there.

use wire::{BlockSize, GlobalAddr};

use crate::error::Error;

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
