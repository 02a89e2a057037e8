//! The rack's memory as applications see it, in the form that runs on live and simulated racks alike.
//!
//! [`Memory`] is asynchronous so that a simulated rack can suspend a worker while virtual time passes. On a
//! live embedded rack every future is ready at its first poll: the calls run to completion on the calling
//! thread, and [`block_on`] is one poll. Applications are generic over `M: Memory`, and each worker runs under
//! one outer executor.
//!
//! # What is atomic
//! Whatever lies inside one block: an aligned word always, and any range that does not cross a block
//! boundary. Ranges that cross one are read and written block by block.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use node::Window;
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId};

use crate::error::Error;
use crate::handle::NodeHandle;

/// One worker's view of the rack's memory.
pub trait Memory {
    /// The node that this worker runs on.
    fn node(&self) -> NodeId;

    /// How many nodes the rack has.
    fn nodes(&self) -> usize;

    /// The unit of coherence, and of atomicity.
    fn block_size(&self) -> BlockSize;

    /// The rack's clock. All workers of a rack read the same one.
    fn now(&self) -> Nanos;

    /// Reads bytes. Inside one block the read is atomic.
    fn read(&mut self, addr: GlobalAddr, into: &mut [u8]) -> impl Future<Output = Result<(), Error>>;

    /// Writes bytes. Inside one block the write is atomic.
    fn write(&mut self, addr: GlobalAddr, bytes: &[u8]) -> impl Future<Output = Result<(), Error>>;

    /// Reads an aligned word.
    fn read_word(&mut self, addr: GlobalAddr) -> impl Future<Output = Result<u64, Error>>;

    /// Writes an aligned word.
    fn write_word(&mut self, addr: GlobalAddr, value: u64) -> impl Future<Output = Result<(), Error>>;

    /// Reads `len` bytes inside one block in place, atomically. The closure may run several times, and may be
    /// shown bytes that are just being changed; only the result of a run in which nothing changed is returned.
    /// It must have no effect but its result (overwriting what an earlier run wrote is fine), and must not
    /// trust what it sees beyond that: offsets and lengths found in the bytes have to be checked.
    fn inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        look: impl FnMut(&Window<'_>) -> R,
    ) -> impl Future<Output = Result<R, Error>>;

    /// Changes `len` bytes inside one block in place, atomically with everything else that happens to the
    /// block anywhere in the rack. The closure runs once, with exclusive access; it must be short, and must
    /// not touch the rack's memory by other ways.
    fn update<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        change: impl FnOnce(&Window<'_>) -> R,
    ) -> impl Future<Output = Result<R, Error>>;

    /// Allocates `len` bytes of zeroes in the memory of `home`. Allocations up to a block never cross a block
    /// boundary, larger ones start at one; all are aligned to at least 16 bytes.
    fn alloc(
        &mut self,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) -> impl Future<Output = Result<GlobalAddr, Error>>;

    /// Gives an allocation back. Its address must be the one that [`Memory::alloc`] returned, on any node.
    fn free(&mut self, addr: GlobalAddr) -> impl Future<Output = Result<(), Error>>;
}

/// Runs a future that never waits for anything but the rack: on a live rack that is one poll.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        live::scheduling::give_way();
    }
}

impl Memory for NodeHandle {
    fn node(&self) -> NodeId {
        self.id()
    }

    fn nodes(&self) -> usize {
        NodeHandle::nodes(self)
    }

    fn block_size(&self) -> BlockSize {
        NodeHandle::block_size(self)
    }

    fn now(&self) -> Nanos {
        self.inner.operations().now()
    }

    #[inline]
    async fn read(&mut self, addr: GlobalAddr, into: &mut [u8]) -> Result<(), Error> {
        NodeHandle::read(self, addr, into)
    }

    #[inline]
    async fn write(&mut self, addr: GlobalAddr, bytes: &[u8]) -> Result<(), Error> {
        NodeHandle::write(self, addr, bytes)
    }

    #[inline]
    async fn read_word(&mut self, addr: GlobalAddr) -> Result<u64, Error> {
        NodeHandle::read_word(self, addr)
    }

    #[inline]
    async fn write_word(&mut self, addr: GlobalAddr, value: u64) -> Result<(), Error> {
        NodeHandle::write_word(self, addr, value)
    }

    #[inline]
    async fn inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        NodeHandle::inspect(self, addr, len, look)
    }

    #[inline]
    async fn update<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        change: impl FnOnce(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        NodeHandle::update(self, addr, len, change)
    }

    async fn alloc(&mut self, len: u64, home: NodeId, discipline: Discipline) -> Result<GlobalAddr, Error> {
        NodeHandle::alloc(self, len, home, discipline)
    }

    async fn free(&mut self, addr: GlobalAddr) -> Result<(), Error> {
        NodeHandle::free(self, addr)
    }
}
