//! Memory that a handle allocates and gives back, of any discipline.
//!
//! Runs on every node. What must always hold: what is refused takes no memory.

use live::actor::{Allocated, Failure};
use live::memory::regions::Shape;
use wire::{Discipline, GlobalAddr, Incarnation, NodeId, Refusal};

use crate::copies::can_be_in_copies;
use crate::error::Error;
use crate::handle::{NodeHandle, failed};
use crate::locked::lasting;

impl NodeHandle {
    /// Allocates `len` bytes of zeroes in the memory of `home`. Allocations of up to a block never cross a block
    /// boundary, larger ones start at one; all are aligned to at least 16 bytes.
    ///
    /// With [`Discipline::Word`] they are words, for [`NodeHandle::words_at`]; with [`Discipline::Object`] one object, for
    /// [`NodeHandle::byte_objects_at`]. A handle that [keeps copies](NodeHandle::keep_copies) makes coherent memory and locks with
    /// copies.
    ///
    /// # Errors
    /// [`Error::BadSize`], [`Error::OutOfMemory`], [`Error::NoSuchNode`], [`Error::NodeDown`].
    pub fn alloc(&mut self, len: u64, home: NodeId, discipline: Discipline) -> Result<GlobalAddr, Error> {
        let has_copies = |memory| self.inner.has_copies(GlobalAddr::new(memory, 0));
        let home = match self.keeps_copies && can_be_in_copies(discipline) && !has_copies(home) {
            true => self.memory_near(home)?,
            false => home,
        };
        let lasts = discipline == Discipline::Locked && has_copies(home);
        if self.is_attached() {
            return self.ask_to_alloc(len, home, discipline);
        }
        if lasts {
            return lasting::make(self, len, home);
        }
        let bytes = usize::try_from(len).unwrap_or(usize::MAX);
        let shape = match discipline {
            Discipline::Word => Shape::Words { count: bytes.div_ceil(8) },
            Discipline::Object => return Ok(self.byte_objects(1, bytes, home)?.addr()),
            _ => {
                let Allocated { addr, zeroed, .. } = self.alloc_memory(len, home, discipline)?;
                if !zeroed && discipline == Discipline::Coherent {
                    // Used before, so it lies inside one block.
                    let len = usize::try_from(len).expect("less than a block");
                    self.update(addr, len, |window| window.zero())?;
                }
                return Ok(addr);
            }
        };
        Ok(self.alloc_region(shape, home)?.addr())
    }

    /// Memory of this discipline.
    pub(crate) fn alloc_memory(
        &mut self,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) -> Result<Allocated, Error> {
        let config = &self.inner.config;
        let most =
            (config.memory >> config.block_size.shift()).saturating_sub(1) << config.block_size.shift();
        if len == 0 || len > most {
            return Err(Error::BadSize { len, most });
        }
        self.inner.in_some_memory(GlobalAddr::new(home, 0))?;
        self.at_node().alloc(len, home, discipline).map_err(|why| match why {
            Failure::Fenced => Error::Fenced,
            Failure::Refused(Refusal::NodeDown) => Error::NodeDown { addr: GlobalAddr::new(home, 0) },
            _ => Error::OutOfMemory { len, home: home.0 },
        })
    }

    /// Gives an allocation back; on any node, with the address that [`NodeHandle::alloc`] returned. Blocks that
    /// hold no allocation any more cannot be accessed from then on. (Other allocations in the same block can:
    /// what is checked is blocks. Of words and objects each allocation is checked.)
    ///
    /// # Errors
    /// [`Error::NotAnAllocation`], [`Error::NoSuchNode`].
    pub fn free(&mut self, addr: GlobalAddr) -> Result<(), Error> {
        self.inner.in_some_memory(addr)?;
        self.free_of(addr, None)
    }

    /// The same, of an allocation that was made in this incarnation of its home: in another one, it is somebody else's.
    pub(crate) fn free_of(
        &mut self,
        addr: GlobalAddr,
        incarnation: Option<Incarnation>,
    ) -> Result<(), Error> {
        if self.is_attached() {
            return self.ask_to_free(addr, incarnation);
        }
        self.end_region(addr, incarnation)?;
        self.at_node().free(addr, incarnation).map_err(|why| failed(why, addr, 0))
    }
}
