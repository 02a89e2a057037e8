//! A rack's memory behind one mutex, which does whatever the contract of [`Memory`] allows and finds whatever
//! it forbids.
//!
//! - Reading closures run on garbled bytes first: they must not believe them, nor panic.
//! - Freed memory is reused at once, by anything that fits (first fit), and is overwritten at random.
//! - A change of a byte that belongs to no allocation fails the test, as do accesses across blocks. Accesses
//!   to a block without allocations are refused, as on a real rack.
//! - Optionally each access first lets other workers run (see [`super::interleave`]).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use rackmem::{
    BlockMemory, BlockSize, Discipline, Error, GlobalAddr, LockMode, Memory, Nanos, NodeId, Window,
};

use random::Dice;

/// The memory of all nodes.
pub(crate) struct Rack {
    block: BlockSize,
    nodes: u16,
    accesses: AtomicU64,
    state: Mutex<MemoryState>,
}

struct MemoryState {
    /// One per node.
    memory: Vec<Box<[AtomicU64]>>,
    /// First byte and length of each allocation.
    live: BTreeMap<u64, u64>,
    /// Of each locked block: a writer, or so many readers.
    locks: BTreeMap<GlobalAddr, Locked>,
    random: Dice,
}

#[derive(PartialEq)]
enum Locked {
    ByWriter,
    ByReaders(usize),
}

impl Rack {
    /// A rack whose nodes have `bytes` of memory each.
    pub(crate) fn new(nodes: u16, block: u64, bytes: u64, seed: u64) -> Arc<Self> {
        let words = usize::try_from(bytes / 8).unwrap();
        let memory = (0..nodes).map(|_| (0..words).map(|_| AtomicU64::new(0)).collect()).collect();
        Arc::new(Self {
            block: BlockSize::new(block).unwrap(),
            nodes,
            accesses: AtomicU64::new(0),
            state: Mutex::new(MemoryState {
                memory,
                live: BTreeMap::new(),
                locks: BTreeMap::new(),
                random: Dice::new(seed),
            }),
        })
    }

    /// A worker on a node whose accesses are done at once.
    pub(crate) fn worker(self: &Arc<Self>, node: u16) -> Worker {
        Worker { rack: self.clone(), node: NodeId(node), yields: false }
    }

    /// A worker on a node that lets others run before each access.
    pub(crate) fn yielding_worker(self: &Arc<Self>, node: u16) -> Worker {
        Worker { yields: true, ..self.worker(node) }
    }

    /// First byte and length of each allocation.
    pub(crate) fn allocations(&self) -> Vec<(GlobalAddr, u64)> {
        self.lock().live.iter().map(|(at, len)| (GlobalAddr::from_bits(*at), *len)).collect()
    }

    /// Accesses so far.
    pub(crate) fn accesses(&self) -> u64 {
        self.accesses.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl MemoryState {
    fn block(&self, addr: GlobalAddr, block: BlockSize) -> &[AtomicU64] {
        let first = usize::try_from(block.tag(addr).addr().offset() / 8).unwrap();
        &self.memory[addr.home().index()][first..first + block.words()]
    }

    /// True if any allocation touches these bytes.
    fn touches(&self, from: u64, len: u64) -> bool {
        self.live.range(..from + len).next_back().is_some_and(|(at, size)| at + size > from)
    }

    /// Refuses what a real rack refuses: blocks are allocated or not as a whole.
    fn check(&self, addr: GlobalAddr, len: usize, block: BlockSize) -> Result<(), Error> {
        let Some(memory) = self.memory.get(addr.home().index()) else {
            return Err(Error::NoSuchNode { addr, nodes: self.memory.len() });
        };
        if addr.offset() + len as u64 > memory.len() as u64 * 8 {
            return Err(Error::OutOfRange { addr, len: len as u64 });
        }
        if block.offset_in_block(addr) + len > block.len() {
            return Err(Error::CrossesBlocks { addr, len, block });
        }
        if !self.touches(block.tag(addr).addr().bits(), block.bytes()) {
            return Err(Error::Unallocated { addr });
        }
        Ok(())
    }

    fn garbled(&mut self, addr: GlobalAddr, block: BlockSize) -> Vec<AtomicU64> {
        let mut words: Vec<u64> = self.block(addr, block).iter().map(|word| word.load(Relaxed)).collect();
        for _ in 0..self.random.pick(6) {
            let at = self.random.pick(words.len());
            words[at] = match self.random.pick(3) {
                0 => self.random.next(),
                1 => words[self.random.pick(words.len())],
                _ => words[at] ^ 1 << self.random.pick(64),
            };
        }
        words.into_iter().map(AtomicU64::new).collect()
    }

    /// The lowest free range that obeys the rules of [`Memory::alloc`].
    fn first_fit(&self, len: u64, home: NodeId, block: BlockSize) -> Option<GlobalAddr> {
        let base = GlobalAddr::new(home, 0).bits();
        let end = base + self.memory[home.index()].len() as u64 * 8;
        // The first block of a node is never given out.
        let mut at = base + block.bytes();
        let place = |at: u64| {
            let crosses = len > block.bytes() || at % block.bytes() + len > block.bytes();
            if crosses { at.next_multiple_of(block.bytes()) } else { at }
        };
        for (next, size) in self.live.range(base..end) {
            at = place(at);
            if at + len <= *next {
                break;
            }
            at = at.max(next + size);
        }
        at = place(at);
        (at + len <= end).then_some(GlobalAddr::from_bits(at))
    }
}

/// One worker's view of the memory.
#[derive(Clone)]
pub(crate) struct Worker {
    rack: Arc<Rack>,
    node: NodeId,
    yields: bool,
}

impl Worker {
    async fn step(&self) -> MutexGuard<'_, MemoryState> {
        Yield { pending: self.yields }.await;
        self.rack.accesses.fetch_add(1, Relaxed);
        self.rack.lock()
    }

    /// The part of `len` bytes at `addr` that lies in the first block.
    fn first_part(&self, addr: GlobalAddr, len: usize) -> usize {
        len.min(self.rack.block.len() - self.rack.block.offset_in_block(addr))
    }
}

/// Lets other workers run once.
pub(crate) struct Yield {
    pub(crate) pending: bool,
}

impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::take(&mut self.pending) { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Memory for Worker {
    fn node(&self) -> NodeId {
        self.node
    }

    fn nodes(&self) -> usize {
        self.rack.nodes.into()
    }

    fn block_size(&self) -> BlockSize {
        self.rack.block
    }

    fn now(&self) -> Nanos {
        Nanos(self.rack.accesses())
    }

    async fn read(&mut self, mut addr: GlobalAddr, mut into: &mut [u8]) -> Result<(), Error> {
        let block = self.rack.block;
        while !into.is_empty() {
            let part = self.first_part(addr, into.len());
            let (now, rest) = into.split_at_mut(part);
            let state = self.step().await;
            state.check(addr, part, block)?;
            Window::new(state.block(addr, block), block.offset_in_block(addr), part).read(0, now);
            (addr, into) = (addr + part as u64, rest);
        }
        Ok(())
    }

    async fn write(&mut self, mut addr: GlobalAddr, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(self.first_part(addr, bytes.len()));
            self.update(addr, now.len(), |w| w.write(0, now)).await?;
            (addr, bytes) = (addr + now.len() as u64, rest);
        }
        Ok(())
    }

    async fn read_word(&mut self, addr: GlobalAddr) -> Result<u64, Error> {
        self.inspect(addr, 8, |w| w.word(0)).await
    }

    async fn write_word(&mut self, addr: GlobalAddr, value: u64) -> Result<(), Error> {
        self.update(addr, 8, |w| w.set_word(0, value)).await
    }

    async fn inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        let block = self.rack.block;
        let mut state = self.step().await;
        state.check(addr, len, block)?;
        let start = block.offset_in_block(addr);
        let garbled = state.garbled(addr, block);
        look(&Window::new(&garbled, start, len));
        Ok(look(&Window::new(state.block(addr, block), start, len)))
    }

    async fn update<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        change: impl FnOnce(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        let block = self.rack.block;
        let state = self.step().await;
        state.check(addr, len, block)?;
        let window = Window::new(state.block(addr, block), block.offset_in_block(addr), len);
        let (mut before, mut after) = (vec![0; len], vec![0; len]);
        window.read(0, &mut before);
        let result = change(&window);
        window.read(0, &mut after);
        for at in (0..len).filter(|at| before[*at] != after[*at]) {
            let byte = addr.bits() + at as u64;
            assert!(state.touches(byte, 1), "{} was changed, which is not allocated", addr + at as u64);
        }
        Ok(result)
    }

    async fn alloc(&mut self, len: u64, home: NodeId, _: Discipline) -> Result<GlobalAddr, Error> {
        let block = self.rack.block;
        let state = &mut *self.step().await;
        let most = state.memory[home.index()].len() as u64 * 8;
        if len == 0 || len > most {
            return Err(Error::BadSize { len, most });
        }
        let size =
            if len > block.bytes() { len.next_multiple_of(block.bytes()) } else { len.next_multiple_of(16) };
        let addr = state.first_fit(size, home, block).ok_or(Error::OutOfMemory { len, home: home.0 })?;
        state.live.insert(addr.bits(), size);
        fill(state, addr, size, 0);
        Ok(addr)
    }

    async fn free(&mut self, addr: GlobalAddr) -> Result<(), Error> {
        let state = &mut *self.step().await;
        let size = state.live.remove(&addr.bits()).ok_or(Error::NotAnAllocation { addr })?;
        // A rack leaves the bytes, or not.
        if state.random.pick(2) == 0 {
            let garbage = state.random.next();
            fill(state, addr, size, garbage);
        }
        Ok(())
    }
}

impl BlockMemory for Worker {
    type HeldBlock = GlobalAddr;

    async fn try_lock_block(
        &mut self,
        addr: GlobalAddr,
        mode: LockMode,
    ) -> Result<Option<GlobalAddr>, Error> {
        let block = self.rack.block.tag(addr).addr();
        // A request travels, sometimes for long: others may have come and gone meanwhile.
        let steps = {
            let random = &mut self.rack.lock().random;
            random.pick(3) * random.pick(60)
        };
        for _ in 0..steps {
            drop(self.step().await);
        }
        let state = &mut *self.step().await;
        let now = match (state.locks.get(&block), mode) {
            (None, LockMode::Write) => Locked::ByWriter,
            (None, LockMode::Read) => Locked::ByReaders(1),
            (Some(Locked::ByReaders(readers)), LockMode::Read) => Locked::ByReaders(readers + 1),
            _ => return Ok(None),
        };
        state.locks.insert(block, now);
        Ok(Some(block))
    }

    async fn unlock_block(&mut self, block: GlobalAddr) {
        let state = &mut *self.step().await;
        match state.locks.remove(&block).expect("it is held") {
            Locked::ByReaders(readers) if readers > 1 => {
                state.locks.insert(block, Locked::ByReaders(readers - 1));
            }
            _ => {}
        }
    }
}

fn fill(state: &MemoryState, addr: GlobalAddr, size: u64, word: u64) {
    let words =
        usize::try_from(addr.offset() / 8).unwrap()..usize::try_from((addr.offset() + size) / 8).unwrap();
    for place in &state.memory[addr.home().index()][words] {
        place.store(word, Relaxed);
    }
}
