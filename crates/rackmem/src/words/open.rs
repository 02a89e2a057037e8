//! Allocating words, and opening them by address.

use live::memory::regions::Shape;
use nic::words::Width;
use wire::{Discipline, GlobalAddr, NodeId};

use super::{Word, Words};
use crate::error::Error;
use crate::handle::NodeHandle;

impl NodeHandle {
    /// Allocates so many words of zero in the memory of `home`.
    ///
    /// # Errors
    /// As for [`NodeHandle::alloc`].
    pub fn words<W: Word>(&mut self, count: usize, home: NodeId) -> Result<Words<W>, Error> {
        let count = match W::WIDTH {
            Width::Double => count,
            Width::Word => count.div_ceil(2),
        };
        self.alloc_region(Shape::Words { count }, home).map(Words::of)
    }

    /// The words that begin at this address. The same memory may be taken for words of 32 and of 64 bits: word `2 * n` of 32 bits
    /// is the lower half of word `n` of 64. All of them are atomic with each other.
    ///
    /// # Errors
    /// [`Error::Unallocated`], [`Error::WrongDiscipline`], [`Error::NotAnAllocation`] for an address inside the words,
    /// [`Error::NoSuchNode`], [`Error::NodeDown`].
    pub fn words_at<W: Word>(&mut self, addr: GlobalAddr) -> Result<Words<W>, Error> {
        self.region_at(addr, Discipline::Word).map(Words::of)
    }
}
