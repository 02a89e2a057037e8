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
//!
//! [`BlockMemory`] is a [`Memory`] whose blocks have locks, and [`LockMemory`] one with the rack's locks that carry their data: what is
//! read and written inside a lock of either kind is atomic as a whole for all who take that lock.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use node::Window;
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId};

use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::{BlockLock, LockMode};

/// One worker's view of the rack's memory.
pub trait Memory {
    /// The node that this worker runs on.
    fn node(&self) -> NodeId;

    /// How many nodes the rack began with: the same for all workers.
    fn nodes(&self) -> usize;

    /// The memory of that node; and if what is at `like` has copies, the one with copies that it serves first.
    fn memory_like(&self, _like: GlobalAddr, near: NodeId) -> NodeId {
        near
    }

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

/// One worker's view of a rack whose locks carry their data ([`Locked`](crate::Locked) says what those are).
///
/// A lock is named by the address of its region, in an allocation of [`Discipline::Locked`], and all threads of the rack
/// name one length for it. A worker may hold any number of locks, over any number of awaits; taking them in one order
/// everywhere keeps workers from waiting for each other in a circle. What is released is there for whoever takes the lock
/// next, on whatever node.
///
/// ```
/// use rackmem::{Discipline, Error, GlobalAddr, LockMemory, LockMode};
///
/// /// Moves 1 from an account to another one: 8 bytes each.
/// async fn transfer<M: LockMemory>(mem: &mut M, from: GlobalAddr, to: GlobalAddr) -> Result<(), Error> {
///     let [low, high] = [from.min(to), from.max(to)];
///     let mut low = mem.lock(low, 8, LockMode::Write).await?;
///     let mut high = mem.lock(high, 8, LockMode::Write).await?;
///     let (from, to) = if from < to { (&mut low, &mut high) } else { (&mut high, &mut low) };
///     for (account, change) in [(from, -1), (to, 1)] {
///         let mut balance = [0; 8];
///         mem.read_locked(account, 0, &mut balance).await;
///         let balance = i64::from_le_bytes(balance) + change;
///         mem.write_locked(account, 0, &balance.to_le_bytes()).await;
///     }
///     mem.unlock(high).await;
///     mem.unlock(low).await;
///     Ok(())
/// }
/// # use rackmem::{Config, Memory, NodeId, Rack, block_on};
/// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
/// # let mut node = rack.node(NodeId(0));
/// # block_on(async {
/// #     let a = Memory::alloc(&mut node, 8, NodeId(0), Discipline::Locked).await?;
/// #     let b = Memory::alloc(&mut node, 8, NodeId(1), Discipline::Locked).await?;
/// #     transfer(&mut node, a, b).await?;
/// #     node.free_locked(a, 8).await?;
/// #     node.free_locked(b, 8).await
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait LockMemory: Memory {
    /// A lock that is held. It is released when this is dropped; whoever releases it by [`LockMemory::unlock`] does so when it
    /// is his turn, as every other operation is done.
    type Held;

    /// Waits for a lock over `len` bytes at `addr`.
    ///
    /// Fails if there is no such lock ([`Error::Unallocated`], [`Error::WrongDiscipline`], [`Error::WrongLength`]), or no more
    /// ([`Error::Lost`], [`Error::NodeDown`], [`Error::Fenced`]), or if there cannot be ([`Error::Unaligned`],
    /// [`Error::NoSuchNode`], [`Error::OutOfRange`], [`Error::RegionTooLong`]).
    fn lock(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mode: LockMode,
    ) -> impl Future<Output = Result<Self::Held, Error>>;

    /// The same; none if somebody has it, or waits for it. (A message may have to travel.)
    fn try_lock(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mode: LockMode,
    ) -> impl Future<Output = Result<Option<Self::Held>, Error>>;

    /// The same to write, also if the lock is lost: then its bytes mean nothing. So does whoever has just allocated them, or
    /// restores them from elsewhere.
    fn lock_anew(&mut self, addr: GlobalAddr, len: usize) -> impl Future<Output = Result<Self::Held, Error>>;

    /// Releases a lock.
    fn unlock(&mut self, held: Self::Held) -> impl Future<Output = ()>;

    /// Reads bytes of a held lock's region, from this one on. Panics if there are not so many, as slices do.
    fn read_locked(&mut self, held: &Self::Held, at: usize, into: &mut [u8]) -> impl Future<Output = ()>;

    /// Writes bytes of the region of a lock that is held to write. Panics otherwise, and if there are not so many.
    fn write_locked(&mut self, held: &mut Self::Held, at: usize, bytes: &[u8]) -> impl Future<Output = ()>;

    /// Waits for a lock, ends it, and gives back the allocation that begins where its bytes do. Whoever waits for the lock, or
    /// asks later, is told that there is none ([`Error::Unallocated`]). A lost one can be freed, too.
    ///
    /// What is checked is blocks: where other allocations are left in the block, whoever asks later gets in, to memory that is
    /// nobody's. So nobody may ask later, or the region has blocks of its own.
    fn free_locked(&mut self, addr: GlobalAddr, len: usize) -> impl Future<Output = Result<(), Error>>;
}

/// One worker's view of a rack whose blocks have locks (Concordia, section 6): readers share one, and a writer has it alone.
pub trait BlockMemory: Memory {
    /// A lock that is held.
    type HeldBlock;

    /// Takes the lock of the block that `addr` is in; none if somebody has it in a conflicting mode.
    ///
    /// Fails if there is no such block, or if the node holds as many locks as it can ([`Error::TooManyLocks`]).
    fn try_lock_block(
        &mut self,
        addr: GlobalAddr,
        mode: LockMode,
    ) -> impl Future<Output = Result<Option<Self::HeldBlock>, Error>>;

    /// Releases a lock.
    fn unlock_block(&mut self, held: Self::HeldBlock) -> impl Future<Output = ()>;
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

    fn memory_like(&self, like: GlobalAddr, near: NodeId) -> NodeId {
        let with_copies = self.has_copies(like).then(|| self.memory_near(near).ok());
        with_copies.flatten().unwrap_or(near)
    }

    fn block_size(&self) -> BlockSize {
        NodeHandle::block_size(self)
    }

    fn now(&self) -> Nanos {
        self.inner.now()
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

impl BlockMemory for NodeHandle {
    type HeldBlock = BlockLock;

    async fn try_lock_block(&mut self, addr: GlobalAddr, mode: LockMode) -> Result<Option<BlockLock>, Error> {
        Self::try_lock_block(self, addr, mode)
    }

    async fn unlock_block(&mut self, held: BlockLock) {
        drop(held);
    }
}
