//! One thread's handle on the rack's memory, from one node.
//!
//! Hits run in here and in the cache, without a lock and without a message. What misses goes to the node's
//! machines on this thread, and comes back with the block in a frame that is pinned for it, so that every
//! access gets its turn however contended the block is.

use std::sync::Arc;
use std::time::Duration;

use live::actor::{AtNode, Failure, Fetched, ThreadContext};
use live::memory::locks::LockHints;
use live::memory::{Cache, Hints, PinnedFrame, Unpinned};
use live::networked::NetworkedNode;
use live::networked::lease::Lease;
use node::{Access, FrameId, Window};
use wire::{BlockSize, BlockTag, GlobalAddr, NodeId, SlotId};

use crate::addresses::{aligned, in_range, inside_block};
use crate::attach::Asking;
use crate::error::Error;
use crate::rack::Inner;
use crate::words::Pipeline;

/// Between two looks at a lease that has run out.
const LEASE_LOOKS: Duration = Duration::from_millis(1);

/// A handle for one thread. Clone it, or ask the rack, for more threads.
///
/// # What is atomic
/// Whatever lies inside one block: an aligned word always, and any range that does not cross a block boundary.
/// Longer ranges are read and written block by block. All accesses together are linearizable per block, and
/// the accesses of one thread take effect in its order.
pub struct NodeHandle {
    pub(crate) inner: Arc<Inner>,
    pub(crate) node: NodeId,
    /// The node's cache: hits go straight to it.
    cache: Arc<Cache>,
    pub(crate) hints: Hints,
    pub(crate) lock_hints: LockHints,
    pub(crate) context: ThreadContext,
    /// With [`ProcessConfig::strict`](crate::ProcessConfig::strict) on a rack of processes: whose lease every access asks for.
    strict: Option<Arc<NetworkedNode>>,
    /// Addresses with one of these bits are no matter for the quick way of a word: unaligned ones, and with a strict lease
    /// all of them but 0, which nobody allocates. (One test for both: a word's hit has no instruction to spare.)
    slow: u64,
    reported_hits: u64,
    /// Whether the rest of the rack takes this node for dead. On an embedded rack: never.
    lease: Arc<Lease>,
    /// Operations on words that are on their way.
    pub(crate) pipeline: Pipeline,
    /// Of an attached rack, whose daemon does what others do on a miss. Nothing is looked up in the cache with success there.
    pub(crate) asking: Option<Box<Asking>>,
    /// What is allocated has copies ([`NodeHandle::keep_copies`]).
    pub(crate) keeps_copies: bool,
}

/// An agent of this node that waits for a write to end ([`NodeHandle::write_word_here`]).
#[must_use = "whoever waits for the block waits until the agent is told"]
pub struct WaitingAgent(FrameId);

impl NodeHandle {
    pub(crate) fn new(inner: Arc<Inner>, node: NodeId, number: u64) -> Self {
        let seed = inner.config.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number);
        let cache = Arc::clone(&inner.memory(node).cache);
        let strict = inner.strict_lease();
        let asking = inner.attached().map(Asking::new);
        let of_attached = || inner.attached().map_or_else(Arc::default, |attached| attached.lease());
        let lease = inner.joined().map_or_else(of_attached, |node| Arc::clone(node.lease()));
        let slow = if strict.is_some() { u64::MAX } else { 7 };
        Self {
            inner,
            node,
            cache,
            hints: Hints::new(),
            lock_hints: LockHints::new(),
            context: ThreadContext::new(seed),
            strict,
            slow,
            reported_hits: 0,
            keeps_copies: false,
            lease,
            pipeline: Pipeline::default(),
            asking,
        }
    }

    /// The node that this handle is on.
    pub fn id(&self) -> NodeId {
        self.node
    }

    /// How many nodes the rack began with, numbered from 0. All processes of the rack have the same number, as long as it lasts: so
    /// programs place data by it. Nodes that were added since have higher numbers.
    pub fn nodes(&self) -> usize {
        self.inner.config.nodes
    }

    /// How many nodes there are or were, with those that were added, as far as this process knows. An attached one does not:
    /// for it, as many as there may be.
    pub fn nodes_known(&self) -> usize {
        self.inner.nodes_known()
    }

    /// The rack's unit of coherence and of atomicity.
    pub fn block_size(&self) -> BlockSize {
        self.inner.config.block_size
    }

    /// Reads an aligned word.
    ///
    /// # Errors
    /// [`Error::Unaligned`], [`Error::NoSuchNode`], [`Error::Unallocated`], [`Error::WrongDiscipline`].
    #[inline]
    pub fn read_word(&mut self, addr: GlobalAddr) -> Result<u64, Error> {
        if addr.bits() & self.slow == 0
            && let Some(value) = self.cache.load_word(&mut self.hints, addr)
        {
            return Ok(value);
        }
        self.read_word_missing(addr)
    }

    /// Reads an aligned word, if that is a hit: for bindings, which tell the ways apart. None: [`NodeHandle::read_word`] does it.
    #[inline(always)]
    pub fn read_word_here(&mut self, addr: GlobalAddr) -> Option<u64> {
        if addr.bits() & self.slow == 0 { self.cache.load_word_hinted(&mut self.hints, addr) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn read_word_missing(&mut self, addr: GlobalAddr) -> Result<u64, Error> {
        aligned(addr)?;
        // With a strict lease nobody has looked for it here.
        if !self.is_strict()
            && let Some(value) = self.inspect_missing(addr, 8, |window| window.word(0))?
        {
            return Ok(value);
        }
        self.inspect(addr, 8, |window| window.word(0))
    }

    /// Writes an aligned word.
    ///
    /// # Errors
    /// As for [`NodeHandle::read_word`].
    #[inline]
    pub fn write_word(&mut self, addr: GlobalAddr, value: u64) -> Result<(), Error> {
        if addr.bits() & self.slow == 0 {
            match self.cache.store_word(&mut self.hints, addr, value) {
                Some(Unpinned::Quiet) => return Ok(()),
                Some(Unpinned::AgentWaits(frame)) => {
                    self.tell_agents(frame);
                    return Ok(());
                }
                None => {}
            }
        }
        self.write_word_missing(addr, value)
    }

    /// Writes an aligned word, if that is a hit: for bindings, which tell the ways apart. An error means that it was not, and that
    /// [`NodeHandle::write_word`] does it; or that it was, and an agent waits, who has to be told.
    #[inline(always)]
    pub fn write_word_here(&mut self, addr: GlobalAddr, value: u64) -> Result<(), Option<WaitingAgent>> {
        if addr.bits() & self.slow != 0 {
            return Err(None);
        }
        match self.cache.store_word_hinted(&mut self.hints, addr, value) {
            Some(Unpinned::Quiet) => Ok(()),
            Some(Unpinned::AgentWaits(frame)) => Err(Some(WaitingAgent(frame))),
            None => Err(None),
        }
    }

    /// Tells an agent that a write is over.
    #[cold]
    #[inline(never)]
    pub fn tell(&mut self, agent: WaitingAgent) {
        self.tell_agents(agent.0);
    }

    #[cold]
    #[inline(never)]
    fn write_word_missing(&mut self, addr: GlobalAddr, value: u64) -> Result<(), Error> {
        aligned(addr)?;
        if self.is_attached() {
            return self.ask_to_write(addr, &value.to_ne_bytes());
        }
        self.update(addr, 8, |window| window.set_word(0, value))
    }

    /// Reads `len` bytes inside one block in place, atomically.
    ///
    /// The closure may run several times and be shown bytes that are just being changed; only the result of a
    /// run in which nothing changed is returned. So it must have no effect but its result, and must check any
    /// offset or length that it finds in the bytes.
    ///
    /// # Errors
    /// [`Error::CrossesBlocks`], and as for [`NodeHandle::read_word`].
    #[inline]
    pub fn inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        loop {
            if let Some(found) = self.inspect_cached(addr, len, &mut look)? {
                return Ok(found);
            }
            if let Some(found) = self.inspect_missing(addr, len, &mut look)? {
                return self.confirmed(found);
            }
        }
    }

    /// The same, if the block is here. None: it is not.
    #[inline]
    pub(crate) fn inspect_cached<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        inside_block(addr, len, self.block_size())?;
        let Self { inner, node, cache, hints, context, .. } = self;
        // Told at once, not afterwards: the closure may panic.
        let tell = |frame| inner.at(*node, context).unpinned(frame);
        let found = cache.inspect(hints, addr, len, look, tell);
        found.map(|found| self.confirmed(found)).transpose()
    }

    /// Gets the block, and looks at it. None if another thread was quicker to get at it.
    #[cold]
    #[inline(never)]
    fn inspect_missing<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        if self.is_attached() {
            return self.ask_to_inspect(addr, len, look).map(Some);
        }
        let start = self.block_size().offset_in_block(addr);
        Ok(match self.fetch(addr, len, Access::Shared)? {
            Fetched::Pinned(frame) => {
                let access = PinnedAccess {
                    inner: &self.inner,
                    node: self.node,
                    context: &mut self.context,
                    wrote: false,
                    pinned: Some(self.inner.memory(self.node).adopt(frame)),
                };
                Some(look(&access.window(start, len)))
            }
            Fetched::Words => Some(look(&Window::new(self.context.peeked(), start % 8, len))),
            Fetched::Retry => None,
        })
    }

    /// Has what this node has cached of these bytes go to their home, changes and all: then its death does not lose them, unless it
    /// writes them again. Memory with copies needs [`NodeHandle::sync`] instead. What an attached process has changed is its daemon's,
    /// and stays there.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`], [`Error::OutOfRange`]; if the home is gone.
    pub fn send_home(&mut self, addr: GlobalAddr, len: u64) -> Result<(), Error> {
        self.inner.in_some_memory(addr)?;
        in_range(addr, len, self.inner.memories_named(), self.inner.config.memory)?;
        if self.is_attached() || self.has_copies(addr) {
            return Ok(());
        }
        let (block, home) = (self.block_size(), addr.home());
        let first = self.tag(addr).addr().offset();
        for offset in (first..addr.offset() + len).step_by(block.len()) {
            let tag = self.tag(GlobalAddr::new(home, offset));
            self.at_node().evict(tag).map_err(|why| failed(why, tag.addr(), block.bytes()))?;
        }
        Ok(())
    }

    /// Changes `len` bytes inside one block in place, atomically with everything else that happens to the block
    /// anywhere in the rack. The closure runs once, with the block to itself; it must be short, and must not
    /// touch the same block by other ways.
    ///
    /// # Errors
    /// As for [`NodeHandle::inspect`].
    #[inline]
    pub fn update<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        change: impl FnOnce(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        inside_block(addr, len, self.block_size())?;
        let start = self.block_size().offset_in_block(addr);
        let pinned = loop {
            if let Some(pinned) = self.cache.pin_for_write(&mut self.hints, addr) {
                break pinned;
            }
            if self.is_attached() {
                return self.ask_to_update(addr, len, change);
            }
            if let Fetched::Pinned(frame) = self.fetch(addr, len, Access::Modified)? {
                break self.inner.memory(self.node).adopt(frame);
            }
        };
        let access = PinnedAccess {
            inner: &self.inner,
            node: self.node,
            context: &mut self.context,
            wrote: true,
            pinned: Some(pinned),
        };
        let changed = change(&access.window(start, len));
        drop(access);
        self.confirmed(changed)
    }

    /// Gets the block after a miss: it is pinned for this thread, or another one was quicker. Of what is only read, the words may
    /// have come alone.
    #[cold]
    #[inline(never)]
    fn fetch(&mut self, addr: GlobalAddr, len: usize, access: Access) -> Result<Fetched, Error> {
        self.inner.in_some_memory(addr)?;
        self.report_hits();
        let (tag, start) = (self.tag(addr), self.block_size().offset_in_block(addr));
        let fetched = match access {
            Access::Shared => {
                let first = start & !7;
                let bytes = (first, (start + len).next_multiple_of(8) - first);
                self.at_node().read(tag, bytes)
            }
            Access::Modified => self.at_node().bring(tag, access),
        };
        fetched.map_err(|why| failed(why, addr, len as u64))
    }

    /// True once the rest of the rack takes this node for dead.
    #[inline(always)]
    pub(crate) fn is_fenced(&self) -> bool {
        self.lease.is_fenced()
    }

    /// Nothing is done on memory within reach while this fails.
    #[inline]
    pub(crate) fn permitted(&self) -> Result<(), Error> {
        if self.is_fenced() { self.why_fenced() } else { Ok(()) }
    }

    /// Of an attached handle it may only be that the daemon does not answer: then this waits.
    #[cold]
    fn why_fenced(&self) -> Result<(), Error> {
        self.asking.as_ref().map_or(Err(Error::Fenced), |asking| asking.attached().await_daemon())
    }

    /// True if an access has to look at more than memory: this node is dead to the others, or its lease has to hold.
    #[inline(always)]
    pub(crate) fn watches(&self) -> bool {
        self.is_fenced() || self.is_strict()
    }

    /// True if every access has to look at the lease.
    #[inline]
    pub(crate) fn is_strict(&self) -> bool {
        self.strict.is_some()
    }

    /// What an access has found counts, if this node was not declared dead before it. Everything that is read or
    /// written here goes through this, after it happened: that the lease holds then says that it held before.
    #[inline]
    pub(crate) fn confirmed<R>(&self, found: R) -> Result<R, Error> {
        match &self.strict {
            None => Ok(found),
            Some(node) => confirmed_by(node, found),
        }
    }

    /// Reads bytes, block by block.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], and as for [`NodeHandle::read_word`]. Blocks before the one that failed have been
    /// read.
    pub fn read(&mut self, addr: GlobalAddr, into: &mut [u8]) -> Result<(), Error> {
        let mut rest = into;
        if let Err(why) = in_range(addr, rest.len() as u64, self.memories(), self.inner.reach) {
            return if self.is_attached() { self.ask_to_read_all(addr, rest) } else { Err(why) };
        }
        let mut at = addr;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at_mut(self.left_in_block(at).min(rest.len()));
            if self.is_mapped(piece) {
                let mut copy = vec![0; piece.len()];
                self.inspect(at, piece.len(), |window| window.read(0, &mut copy))?;
                piece.copy_from_slice(&copy);
            } else {
                self.inspect(at, piece.len(), |window| window.read(0, piece))?;
            }
            at = GlobalAddr::from_bits(at.bits() + piece.len() as u64);
            rest = behind;
        }
        Ok(())
    }

    /// Writes bytes, block by block.
    ///
    /// # Errors
    /// As for [`NodeHandle::read`]. Blocks before the one that failed have been written.
    pub fn write(&mut self, addr: GlobalAddr, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        if let Err(why) = in_range(addr, rest.len() as u64, self.memories(), self.inner.reach) {
            return if self.is_attached() { self.ask_to_write_all(addr, rest) } else { Err(why) };
        }
        let mut at = addr;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(self.left_in_block(at).min(rest.len()));
            if self.is_mapped(piece) {
                let copy = piece.to_vec();
                self.update(at, piece.len(), |window| window.write(0, &copy))?;
            } else {
                self.update(at, piece.len(), |window| window.write(0, piece))?;
            }
            at = GlobalAddr::from_bits(at.bits() + piece.len() as u64);
            rest = behind;
        }
        Ok(())
    }

    /// Reads a plain value: numbers, arrays of them, and structs that say so with [`crate::FromBytes`].
    ///
    /// ```
    /// # use rackmem::{Config, Discipline, NodeId, Rack};
    /// # let rack = Rack::embedded(Config { nodes: 1, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
    /// # let mut node = rack.node(NodeId(0));
    /// let addr = node.alloc(12, NodeId(0), Discipline::Coherent)?;
    /// node.write_value(addr, &[1.0f32, 2.0, 3.0])?;
    /// assert_eq!(node.read_value::<[f32; 3]>(addr)?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`NodeHandle::read`].
    pub fn read_value<T: zerocopy::FromBytes + zerocopy::IntoBytes>(
        &mut self,
        addr: GlobalAddr,
    ) -> Result<T, Error> {
        let mut value = T::new_zeroed();
        self.read(addr, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Writes a plain value, in the byte order of this machine.
    ///
    /// # Errors
    /// As for [`NodeHandle::write`].
    pub fn write_value<T: zerocopy::IntoBytes + zerocopy::Immutable + ?Sized>(
        &mut self,
        addr: GlobalAddr,
        value: &T,
    ) -> Result<(), Error> {
        self.write(addr, value.as_bytes())
    }

    #[cold]
    #[inline(never)]
    fn tell_agents(&mut self, frame: FrameId) {
        self.at_node().unpinned(frame);
    }

    /// This handle's thread at its node.
    pub(crate) fn at_node(&mut self) -> AtNode<'_> {
        self.inner.at(self.node, &mut self.context)
    }

    /// True if the bytes lie in mapped memory: they may have to be waited for, which nobody does with a block pinned.
    #[inline]
    fn is_mapped(&self, bytes: &[u8]) -> bool {
        let pages = self.inner.memory(self.node).pages();
        pages.is_some_and(|pages| pages.addr_of(bytes.as_ptr().addr()).is_some())
    }

    fn left_in_block(&self, addr: GlobalAddr) -> usize {
        self.block_size().len() - self.block_size().offset_in_block(addr)
    }

    /// Adds this handle's hits to the rack's count.
    fn report_hits(&mut self) {
        let hits = self.hints.hits();
        self.inner.hits(self.node, hits - self.reported_hits);
        self.reported_hits = hits;
    }

    pub(crate) fn tag(&self, addr: GlobalAddr) -> BlockTag {
        self.block_size().tag(addr)
    }
}

impl Drop for NodeHandle {
    /// Waits for what is still on its way to words, as [`NodeHandle::flush`] does; whoever wants to know whether it got there calls
    /// that.
    fn drop(&mut self) {
        // Its error has nobody to be told to.
        let _ = self.flush();
        self.report_hits();
    }
}

/// Waits until the lease says whether this node is alive.
fn confirmed_by<R>(node: &NetworkedNode, found: R) -> Result<R, Error> {
    while !node.lease().holds(node.now()) {
        if node.lease().is_fenced() {
            return Err(Error::Fenced);
        }
        // The coordinator is slow to answer, or gone for the moment.
        std::thread::sleep(LEASE_LOOKS);
    }
    Ok(found)
}

/// A frame pinned for this thread. Ends the pin and tells the agents that wait, also when the access panics.
struct PinnedAccess<'a> {
    inner: &'a Inner,
    node: NodeId,
    context: &'a mut ThreadContext,
    wrote: bool,
    pinned: Option<PinnedFrame<'a>>,
}

impl PinnedAccess<'_> {
    #[inline]
    fn window(&self, start: usize, len: usize) -> Window<'_> {
        self.pinned.as_ref().expect("pinned until it is dropped").window(start, len)
    }
}

impl Drop for PinnedAccess<'_> {
    #[inline]
    fn drop(&mut self) {
        let pinned = self.pinned.take().expect("pinned until it is dropped");
        if let Unpinned::AgentWaits(frame) = pinned.unpin(self.wrote) {
            self.inner.at(self.node, self.context).unpinned(frame);
        }
    }
}

/// What a failure means to whoever asked.
pub(crate) fn failed(why: Failure, addr: GlobalAddr, len: u64) -> Error {
    match why {
        Failure::NoSlot => Error::TooManyLocks { most: SlotId::FOR_LOCKS },
        Failure::Fenced => Error::Fenced,
        Failure::Broken => Error::Broken { addr },
        Failure::Refused(why) => Error::refused(why, addr, len),
    }
}
