//! Allocations for one-sided operations, as handles make, find and free them.
//!
//! What must always hold: a region ends before its memory goes back to the allocator.

use live::actor::{Allocated, Failure, ThreadContext};
use live::memory::regions::Shape;
use live::networked::NetworkedNode;
use live::networked::verbs::{Opened, RegionName};
use wire::{Discipline, GlobalAddr, Incarnation, NodeId, Refusal};

use crate::addresses::of_a_node;
use crate::error::Error;
use crate::handle::{NodeHandle, failed};
use crate::words::Pipeline;

impl NodeHandle {
    /// Allocates a region in the memory of `home`.
    pub(crate) fn alloc_region(&mut self, shape: Shape, home: NodeId) -> Result<Opened, Error> {
        if self.is_attached() {
            return self.ask_to_begin(shape, home);
        }
        self.alloc_named(shape, home).map(|(opened, _)| opened)
    }

    /// The same, with what everybody calls it, on a rack of processes.
    pub(crate) fn alloc_named(
        &mut self,
        shape: Shape,
        home: NodeId,
    ) -> Result<(Opened, Option<RegionName>), Error> {
        let len = shape.bytes().unwrap_or(u64::MAX);
        let allocated @ Allocated { addr, incarnation, zeroed } =
            self.alloc_memory(len, home, shape.discipline())?;
        let Some(joined) = self.inner.joined() else {
            let memory = self.inner.memory(home);
            let region = memory.regions.begin(&memory.home, addr, shape, zeroed);
            return Ok((Opened::Near(region), None));
        };
        let begun = joined.begin_region(&mut self.context, allocated, shape);
        begun.map(|(opened, name)| (opened, Some(name))).map_err(|why| {
            // Nobody has seen it, so it goes back. That fails only if this incarnation of the home is over, and its memory with it.
            let _ = self.at_node().free(addr, Some(incarnation));
            match why {
                Failure::Refused(Refusal::OutOfMemory) => Error::OutOfMemory { len, home: home.0 },
                why => failed(why, addr, len),
            }
        })
    }

    /// The region that begins at an address.
    pub(crate) fn region_at(&mut self, addr: GlobalAddr, needs: Discipline) -> Result<Opened, Error> {
        if self.is_attached() {
            return self.ask_to_open(addr, needs);
        }
        self.region_named(addr, needs).map(|(opened, _)| opened)
    }

    /// The same, with what everybody calls it, on a rack of processes.
    pub(crate) fn region_named(
        &mut self,
        addr: GlobalAddr,
        needs: Discipline,
    ) -> Result<(Opened, Option<RegionName>), Error> {
        of_a_node(addr, self.inner.nodes_known())?;
        let (opened, name) = match self.inner.joined() {
            Some(joined) => {
                let opened = joined.open_region(&mut self.context, addr).map_err(|why| match why {
                    Failure::Refused(Refusal::WrongDiscipline) => Error::WrongDiscipline { addr, needs },
                    why => failed(why, addr, 0),
                });
                opened.map(|(opened, name)| (opened, Some(name)))?
            }
            None => {
                let region = self.inner.memory(addr.home()).regions.find(addr);
                (Opened::Near(region.ok_or_else(|| self.no_region(addr, needs))?), None)
            }
        };
        if opened.shape().discipline() == needs {
            Ok((opened, name))
        } else {
            Err(Error::WrongDiscipline { addr, needs })
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

    /// Ends the region that begins at an address, if there is one, wherever its home is; if an incarnation of that is given, only
    /// in that.
    pub(crate) fn end_region(
        &mut self,
        addr: GlobalAddr,
        incarnation: Option<Incarnation>,
    ) -> Result<(), Error> {
        let Some(joined) = self.inner.joined() else {
            self.inner.memory(addr.home()).regions.end(addr);
            return Ok(());
        };
        if self.inner.has_copies(addr) {
            // Memory with copies, in which there are none.
            return Ok(());
        }
        match joined.end_region(&mut self.context, (addr, incarnation)) {
            // Memory of another discipline, which the allocator knows.
            Ok(()) | Err(Failure::Refused(Refusal::NotAnAllocation)) => Ok(()),
            Err(why) => Err(failed(why, addr, 0)),
        }
    }

    /// This node is in the rack, as far as it knows, and that one in this incarnation, if one is given. True if this one's lease
    /// holds. Of a handle of a process that has joined.
    pub(crate) fn confirm(&self, node: Option<(NodeId, Incarnation)>) -> Result<bool, Error> {
        let joined = self.inner.joined().expect("applications are served on racks of processes");
        let (node, incarnation) = node.unwrap_or((joined.id(), joined.incarnation()));
        let addr = GlobalAddr::from_bits(u64::from(node.0) << 48);
        joined.confirm_incarnation(node, incarnation).map_err(|why| failed(why, addr, 0))?;
        Ok(joined.lease().holds(joined.now()))
    }

    /// Does something with what is in flight to homes beyond reach: only on a rack of processes.
    pub(crate) fn sent<R>(
        &mut self,
        action: impl FnOnce(&NetworkedNode, &mut ThreadContext, &mut Pipeline) -> R,
    ) -> R {
        let Self { inner, context, pipeline, .. } = self;
        action(inner.joined().expect("nothing is beyond reach in one process"), context, pipeline)
    }
}
