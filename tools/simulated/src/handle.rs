//! [`Memory`] on a thread of a simulated rack, whatever memory system runs there.

use node::{Access, Window};
use rackmem::{Error, Memory};
use sim::rack::Handle;
use sim::system::System;
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId, Refusal};

/// What addresses a rack has, and how they are divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// How many nodes.
    pub nodes: usize,
    /// The unit of atomicity.
    pub block_size: BlockSize,
    /// Bytes of each node's memory.
    pub memory: u64,
}

/// What a worker has done with the memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// It has read so many from here on.
    Read(GlobalAddr, usize),
    /// It has written so many from here on.
    Written(GlobalAddr, usize),
    /// It has looked at so many in place, or changed them.
    InPlace(GlobalAddr, usize),
    /// It has allocated so many.
    Allocated(GlobalAddr, u64),
}

/// The time that a worker takes for its own work, told by what it has just done with the memory.
pub type WorkTime = Box<dyn FnMut(Nanos, Done) -> Nanos>;

/// One worker's view of a simulated rack's memory.
pub struct SimulatedHandle<S: System> {
    pub(crate) handle: Handle<S>,
    pub(crate) shape: Shape,
    work: Option<WorkTime>,
}

impl<S: System> SimulatedHandle<S> {
    /// The view of a rack of this shape through this handle.
    pub const fn new(handle: Handle<S>, shape: Shape) -> Self {
        Self { handle, shape, work: None }
    }

    /// The same for a worker that also computes, which a simulated rack does not see: `time` says for how long, at the end
    /// of each call but [`Memory::free`].
    #[must_use]
    pub fn with_work(self, time: WorkTime) -> Self {
        Self { work: Some(time), ..self }
    }

    fn works(&mut self, done: Done) {
        if let Some(time) = &mut self.work {
            let time = time(self.handle.now(), done);
            self.handle.compute(time);
        }
    }

    /// The thread's handle on the rack, for what is not memory: virtual time, counting operations.
    pub const fn thread(&mut self) -> &mut Handle<S> {
        &mut self.handle
    }

    async fn touch(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        access: Access,
        with: &mut dyn FnMut(&Window<'_>),
    ) -> Result<(), Error> {
        self.shape.has(addr, len)?;
        self.shape.inside_block(addr, len)?;
        let done = self.handle.touch(addr, len, access, with).await;
        done.map_err(|why| Error::refused(why, addr, len as u64))
    }

    /// The part of `len` bytes at `addr` that lies in the first block.
    fn first_part(&self, addr: GlobalAddr, len: usize) -> usize {
        let block = self.shape.block_size;
        len.min(block.len() - block.offset_in_block(addr))
    }
}

impl Shape {
    fn has(&self, addr: GlobalAddr, len: usize) -> Result<(), Error> {
        let nodes = self.nodes;
        if addr.home().index() >= nodes {
            return Err(Error::NoSuchNode { addr, nodes });
        }
        let fits = addr.offset().checked_add(len as u64).is_some_and(|end| end <= self.memory);
        if fits { Ok(()) } else { Err(Error::OutOfRange { addr, len: len as u64 }) }
    }

    fn inside_block(&self, addr: GlobalAddr, len: usize) -> Result<(), Error> {
        let block = self.block_size;
        let inside = block.offset_in_block(addr) + len <= block.len();
        if inside { Ok(()) } else { Err(Error::CrossesBlocks { addr, len, block }) }
    }
}

fn aligned(addr: GlobalAddr) -> Result<(), Error> {
    if addr.bits().is_multiple_of(8) { Ok(()) } else { Err(Error::Unaligned { addr }) }
}

impl<S: System> Memory for SimulatedHandle<S> {
    fn node(&self) -> NodeId {
        self.handle.node()
    }

    fn nodes(&self) -> usize {
        self.shape.nodes
    }

    fn block_size(&self) -> BlockSize {
        self.shape.block_size
    }

    fn now(&self) -> Nanos {
        self.handle.now()
    }

    async fn read(&mut self, addr: GlobalAddr, into: &mut [u8]) -> Result<(), Error> {
        let len = into.len();
        self.shape.has(addr, len)?;
        let (mut at, mut rest) = (addr, into);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at_mut(self.first_part(at, rest.len()));
            self.touch(at, piece.len(), Access::Shared, &mut |window| window.read(0, piece)).await?;
            at = GlobalAddr::from_bits(at.bits() + piece.len() as u64);
            rest = behind;
        }
        self.works(Done::Read(addr, len));
        Ok(())
    }

    async fn write(&mut self, addr: GlobalAddr, bytes: &[u8]) -> Result<(), Error> {
        self.shape.has(addr, bytes.len())?;
        let (mut at, mut rest) = (addr, bytes);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(self.first_part(at, rest.len()));
            self.touch(at, piece.len(), Access::Modified, &mut |window| window.write(0, piece)).await?;
            at = GlobalAddr::from_bits(at.bits() + piece.len() as u64);
            rest = behind;
        }
        self.works(Done::Written(addr, bytes.len()));
        Ok(())
    }

    async fn read_word(&mut self, addr: GlobalAddr) -> Result<u64, Error> {
        aligned(addr)?;
        self.inspect(addr, 8, |window| window.word(0)).await
    }

    async fn write_word(&mut self, addr: GlobalAddr, value: u64) -> Result<(), Error> {
        aligned(addr)?;
        self.update(addr, 8, |window| window.set_word(0, value)).await
    }

    async fn inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        let mut seen = None;
        self.touch(addr, len, Access::Shared, &mut |window| seen = Some(look(window))).await?;
        self.works(Done::InPlace(addr, len));
        Ok(seen.expect("an operation that is done has looked"))
    }

    async fn update<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        change: impl FnOnce(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        let (mut change, mut result) = (Some(change), None);
        let once = &mut |window: &Window<'_>| {
            let change = change.take().expect("an operation takes effect once");
            result = Some(change(window));
        };
        self.touch(addr, len, Access::Modified, once).await?;
        self.works(Done::InPlace(addr, len));
        Ok(result.expect("an operation that is done has taken effect"))
    }

    async fn alloc(&mut self, len: u64, home: NodeId, discipline: Discipline) -> Result<GlobalAddr, Error> {
        let Shape { nodes, block_size, memory } = self.shape;
        let most = (memory >> block_size.shift()).saturating_sub(1) << block_size.shift();
        if len == 0 || len > most {
            return Err(Error::BadSize { len, most });
        }
        if home.index() >= nodes {
            return Err(Error::NoSuchNode { addr: GlobalAddr::new(home, 0), nodes });
        }
        let allocated = self.handle.alloc(len, home, discipline).await;
        let (addr, zeroed) = allocated.map_err(|why| match why {
            Refusal::NodeDown => Error::NodeDown { addr: GlobalAddr::new(home, 0) },
            _ => Error::OutOfMemory { len, home: home.0 },
        })?;
        self.works(Done::Allocated(addr, len));
        if !zeroed && discipline == Discipline::Coherent {
            // Used before, so it lies inside one block.
            let len = usize::try_from(len).expect("less than a block");
            self.update(addr, len, |window| window.zero()).await?;
        }
        Ok(addr)
    }

    async fn free(&mut self, addr: GlobalAddr) -> Result<(), Error> {
        self.shape.has(addr, 0)?;
        self.handle.free(addr).await.map_err(|why| Error::refused(why, addr, 0))
    }
}
