//! Allocations for one-sided operations, as handles make, find and free them.
//!
//! What must always hold: a region ends before its memory goes back to the allocator.

use std::sync::Arc;

use live::memory::one_sided::{Region, Shape};
use wire::{Discipline, GlobalAddr, NodeId};

use crate::error::Error;
use crate::handle::NodeHandle;

impl NodeHandle {
    /// Allocates a region in the memory of `home`.
    pub(crate) fn alloc_region(&mut self, shape: Shape, home: NodeId) -> Result<Arc<Region>, Error> {
        let discipline = shape.discipline();
        if !self.inner.is_embedded() {
            return Err(Error::NotEmbedded { discipline });
        }
        let len = shape.bytes().unwrap_or(u64::MAX);
        let (addr, zeroed) = self.alloc_memory(len, home, discipline)?;
        let memory = self.inner.memory(home);
        Ok(memory.regions.begin(&memory.home, addr, shape, zeroed))
    }

    /// The region that begins at an address.
    pub(crate) fn region_at(&self, addr: GlobalAddr, needs: Discipline) -> Result<Arc<Region>, Error> {
        let nodes = self.nodes();
        if addr.home().index() >= nodes {
            return Err(Error::NoSuchNode { addr, nodes });
        }
        if !self.inner.is_embedded() {
            return Err(Error::NotEmbedded { discipline: needs });
        }
        match self.inner.memory(addr.home()).regions.find(addr) {
            Some(region) if region.shape().discipline() == needs => Ok(region),
            Some(_) => Err(Error::WrongDiscipline { addr, needs }),
            None => Err(self.no_region(addr, needs)),
        }
    }

    /// Why there is none.
    fn no_region(&self, addr: GlobalAddr, needs: Discipline) -> Error {
        if self.inner.memory(addr.home()).regions.reaches(addr) {
            return Error::NotAnAllocation { addr };
        }
        match self.inner.discipline_of(self.tag(addr)) {
            // Its block has others; this one was freed, or never was.
            Some(Discipline::Word | Discipline::Object) | None => Error::Unallocated { addr },
            Some(_) => Error::WrongDiscipline { addr, needs },
        }
    }
}
