//! Memory of one process that obeys the contract of [`Memory`], for the yardstick: what the rack costs.
//!
//! Blocks are arrays of atomic words, as in the rack's caches. Each has a sequence lock: who looks looks again if the
//! number has changed, and who changes makes it odd meanwhile. There is one node, no cache, no directory and no message.
//!
//! What must always hold: a look that is returned was undisturbed.

use std::hint;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::thread;
use std::time::Instant;

use rackmem::{BlockSize, Discipline, Error, GlobalAddr, Memory, Nanos, NodeId, Window};

/// Bytes of memory that is taken at once when the first of them is used.
const SEGMENT: u64 = 4 << 20;
/// Looks in vain, or tries, before another thread is let go.
const SPINS: u32 = 200;

struct PlainMemory {
    block: BlockSize,
    segments: Box<[OnceLock<Segment>]>,
    /// Where free memory begins.
    end: AtomicU64,
    began: Instant,
}

struct Segment {
    words: Box<[AtomicU64]>,
    /// Of each block: odd while somebody changes it.
    numbers: Box<[AtomicU64]>,
}

/// One worker's view of it.
#[derive(Clone)]
pub(super) struct PlainHandle(Arc<PlainMemory>);

fn zeroes(count: u64) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Waits a little, and longer when it is in vain.
fn pause(tries: &mut u32) {
    *tries += 1;
    if tries.is_multiple_of(SPINS) { thread::yield_now() } else { hint::spin_loop() }
}

impl PlainHandle {
    /// Memory of at least so many bytes, none of which is taken yet.
    pub(super) fn new(bytes: u64, block: BlockSize) -> Self {
        let segments = (0..bytes / SEGMENT + 2).map(|_| OnceLock::new()).collect();
        let end = AtomicU64::new(block.bytes());
        Self(Arc::new(PlainMemory { block, segments, end, began: Instant::now() }))
    }

    /// The block of an address, and its number.
    fn at(&self, addr: GlobalAddr, len: usize) -> Result<(&[AtomicU64], &AtomicU64), Error> {
        let block = self.0.block;
        if block.offset_in_block(addr) + len > block.len() {
            return Err(Error::CrossesBlocks { addr, len, block });
        }
        let (segment, inside) = (addr.offset() / SEGMENT, addr.offset() % SEGMENT);
        let segment =
            self.0.segments.get(segment as usize).ok_or(Error::OutOfRange { addr, len: len as u64 })?;
        let segment = segment
            .get_or_init(|| Segment { words: zeroes(SEGMENT / 8), numbers: zeroes(SEGMENT / block.bytes()) });
        let number = (inside / block.bytes()) as usize;
        Ok((&segment.words[number * block.words()..][..block.words()], &segment.numbers[number]))
    }

    /// The part of `len` bytes at `addr` that lies in the first block.
    fn first_part(&self, addr: GlobalAddr, len: usize) -> usize {
        len.min(self.0.block.len() - self.0.block.offset_in_block(addr))
    }
}

impl Memory for PlainHandle {
    fn node(&self) -> NodeId {
        NodeId(0)
    }

    fn nodes(&self) -> usize {
        1
    }

    fn block_size(&self) -> BlockSize {
        self.0.block
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.0.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    async fn read(&mut self, mut addr: GlobalAddr, mut into: &mut [u8]) -> Result<(), Error> {
        while !into.is_empty() {
            let (now, rest) = into.split_at_mut(self.first_part(addr, into.len()));
            self.inspect(addr, now.len(), |window| window.read(0, now)).await?;
            (addr, into) = (addr + now.len() as u64, rest);
        }
        Ok(())
    }

    async fn write(&mut self, mut addr: GlobalAddr, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(self.first_part(addr, bytes.len()));
            self.update(addr, now.len(), |window| window.write(0, now)).await?;
            (addr, bytes) = (addr + now.len() as u64, rest);
        }
        Ok(())
    }

    async fn read_word(&mut self, addr: GlobalAddr) -> Result<u64, Error> {
        self.inspect(addr, 8, |window| window.word(0)).await
    }

    async fn write_word(&mut self, addr: GlobalAddr, value: u64) -> Result<(), Error> {
        self.update(addr, 8, |window| window.set_word(0, value)).await
    }

    async fn inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        let (words, number) = self.at(addr, len)?;
        let window = Window::new(words, self.0.block.offset_in_block(addr), len);
        let mut tries = 0;
        loop {
            let before = number.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let seen = look(&window);
                fence(Ordering::Acquire);
                if number.load(Ordering::Relaxed) == before {
                    return Ok(seen);
                }
            }
            pause(&mut tries);
        }
    }

    async fn update<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        change: impl FnOnce(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        let (words, number) = self.at(addr, len)?;
        let window = Window::new(words, self.0.block.offset_in_block(addr), len);
        let mut tries = 0;
        loop {
            let before = number.load(Ordering::Relaxed);
            let odd = before + 1;
            if before.is_multiple_of(2)
                && number.compare_exchange_weak(before, odd, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                // Whoever sees a word of the change sees the odd number, too.
                fence(Ordering::Release);
                let result = change(&window);
                number.store(odd + 1, Ordering::Release);
                return Ok(result);
            }
            pause(&mut tries);
        }
    }

    async fn alloc(&mut self, len: u64, home: NodeId, _: Discipline) -> Result<GlobalAddr, Error> {
        let block = self.0.block.bytes();
        let most = self.0.segments.len() as u64 * SEGMENT;
        let (mut addr, size) = (0, len.next_multiple_of(16));
        let taken = self.0.end.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |end| {
            addr = if end % block + size > block { end.next_multiple_of(block) } else { end };
            (addr + size <= most).then_some(addr + size)
        });
        taken.map_err(|_| Error::OutOfMemory { len, home: home.0 })?;
        Ok(GlobalAddr::new(NodeId(0), addr))
    }

    /// Memory is not used again: what frees it here does so rarely.
    async fn free(&mut self, _: GlobalAddr) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rackmem::block_on;

    use super::*;

    #[test]
    fn looks_are_atomic_and_no_change_is_lost() {
        let handle = PlainHandle::new(1 << 20, BlockSize::DEFAULT);
        let addr = block_on(handle.clone().alloc(64, NodeId(0), Discipline::Coherent)).unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                let mut mem = handle.clone();
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        block_on(async {
                            let add = |window: &Window<'_>| {
                                (0..8).for_each(|at| window.set_word(at * 8, window.word(at * 8) + 1));
                            };
                            mem.update(addr, 64, add).await.unwrap();
                            let all = |window: &Window<'_>| [0, 3, 7].map(|at| window.word(at * 8));
                            let [first, middle, last] = mem.inspect(addr, 64, all).await.unwrap();
                            assert!(first == middle && middle == last);
                        });
                    }
                });
            }
        });
        assert_eq!(block_on(handle.clone().read_word(addr)), Ok(40_000));
        let crossing = block_on(handle.clone().read_word(addr + 4092));
        assert!(matches!(crossing, Err(Error::CrossesBlocks { .. })), "{crossing:?}");
        let large = block_on(handle.clone().alloc(1 << 30, NodeId(0), Discipline::Coherent));
        assert!(matches!(large, Err(Error::OutOfMemory { .. })), "{large:?}");
    }
}
