//! What a node can read without waiting: blocks that are in its cache.
//!
//! For bindings whose threads hold something while they do not wait. Work is given the same [`Memory`] as otherwise, and is given up at
//! the first thing that is not here; then it can be done anew, by whoever may wait.

use std::future::{Future, pending};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use node::Window;
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId};

use crate::error::Error;
use crate::handle::NodeHandle;
use crate::memory::Memory;

/// A node's memory, of which only looks at blocks that are cached come to an end.
pub struct AtHand<'a>(&'a mut NodeHandle);

impl NodeHandle {
    /// Does work that only looks at blocks, if they are all cached here: then nothing is waited for. None: they are not, and the work was
    /// given up in the middle.
    ///
    /// ```
    /// # use rackmem::{Config, Discipline, Memory as _, NodeId, Rack};
    /// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
    /// # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
    /// let addr = here.alloc(8, NodeId(1), Discipline::Coherent)?;
    /// here.write_word(addr, 5)?;
    /// assert_eq!(here.at_hand(async |mem| mem.read_word(addr).await), Some(Ok(5)));
    /// assert_eq!(there.at_hand(async |mem| mem.read_word(addr).await), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn at_hand<R>(&mut self, work: impl AsyncFnOnce(&mut AtHand<'_>) -> R) -> Option<R> {
        let mut memory = AtHand(self);
        let done = pin!(work(&mut memory)).poll(&mut Context::from_waker(Waker::noop()));
        match done {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }
}

impl Memory for AtHand<'_> {
    fn node(&self) -> NodeId {
        self.0.id()
    }

    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    fn memory_like(&self, like: GlobalAddr, near: NodeId) -> NodeId {
        self.0.memory_like(like, near)
    }

    fn block_size(&self) -> BlockSize {
        self.0.block_size()
    }

    fn now(&self) -> Nanos {
        self.0.inner.now()
    }

    async fn read(&mut self, addr: GlobalAddr, into: &mut [u8]) -> Result<(), Error> {
        let block = self.block_size();
        let (mut at, end) = (0, into.len());
        while at < end {
            let addr = addr + at as u64;
            let len = (block.len() - block.offset_in_block(addr)).min(end - at);
            self.inspect(addr, len, |window| window.read(0, &mut into[at..at + len])).await?;
            at += len;
        }
        Ok(())
    }

    async fn write(&mut self, _: GlobalAddr, _: &[u8]) -> Result<(), Error> {
        pending().await
    }

    async fn read_word(&mut self, addr: GlobalAddr) -> Result<u64, Error> {
        let mut word = [0; 8];
        self.read(addr, &mut word).await?;
        Ok(u64::from_ne_bytes(word))
    }

    async fn write_word(&mut self, _: GlobalAddr, _: u64) -> Result<(), Error> {
        pending().await
    }

    #[inline]
    async fn inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        match self.0.inspect_cached(addr, len, look)? {
            Some(found) => Ok(found),
            None => pending().await,
        }
    }

    async fn update<R>(
        &mut self,
        _: GlobalAddr,
        _: usize,
        _: impl FnOnce(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        pending().await
    }

    async fn alloc(&mut self, _: u64, _: NodeId, _: Discipline) -> Result<GlobalAddr, Error> {
        pending().await
    }

    async fn free(&mut self, _: GlobalAddr) -> Result<(), Error> {
        pending().await
    }
}
