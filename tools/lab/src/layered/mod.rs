//! The baseline of GCS: a reader-writer lock layered on coherent memory, with a wait queue, as pthread's is on the futex of
//! the kernel (glibc's `pthread_rwlock_*`). Whoever enters or leaves, to read too, writes the lock's word; whoever has to
//! wait stands in a queue beside it, and looks at a word of its own until it is told; data follow by the coherence
//! protocol, access by access.
//!
//! Written once against [`Memory`]: it runs on live racks and on simulated ones.
//!
//! Where nobody waits it touches the lock as glibc 2.25 and later do (`nptl/pthread_rwlock_common.c`): whoever comes looks who
//! writes, for it may be itself, and then counts itself in with one atomic change; a writer notes who it is; whoever leaves
//! looks who writes, to know what it leaves, a writer takes its note back, and one atomic change counts it out. On a
//! processor the looks are free, since the line comes anyway; here a look and a change can be two transactions.
//!
//! Where threads wait it is faster than glibc's: one atomic change takes or queues (there: one for the word and a futex
//! call), whoever leaves lets the next in itself (there the next is woken and tries again), and each thread waits on a
//! block of its own.
//!
//! What must always hold: one writer or any number of readers; whoever stands in the queue is let in, in order, readers
//! that stand together at once.
//!
//! ```text
//! word 0         readers inside, and bit 63: a writer is
//! word 1         low half: where the queue begins; high half: where it ends
//! word 2         who writes: the thread's number and one
//! words 3 to 15  the queue, a ring of bytes: the thread's number, and 128 if it wants to write
//! ```

use core::future::Future;

use rackmem::{BlockSize, Discipline, Error, GlobalAddr, Memory, NodeHandle, NodeId, Window};
use sim::system::System;
use simulated::SimulatedHandle;
use wire::Nanos;

/// Bytes of a lock.
pub const BYTES: u64 = 128;
/// Threads that one can tell apart: each has a place in the ring.
pub const THREADS: usize = RING;

const WRITER_AT: u64 = 16;
const RING: usize = 104;
const RING_AT: usize = 24;
const WRITER: u64 = 1 << 63;
const WANTS_TO_WRITE: u8 = 128;

/// A memory on which a thread can wait a little.
pub trait Pause: Memory {
    /// Lets a little time pass, and others go on.
    fn pause(&mut self) -> impl Future<Output = ()>;
}

impl Pause for NodeHandle {
    async fn pause(&mut self) {
        std::thread::yield_now();
    }
}

/// How long a thread sleeps that waits: a futex's wake-up comes after half of that on average, as
/// [`sim::locks::Costs::wake`] has it.
const SLEEP: Nanos = Nanos(4_000);

impl<S: System> Pause for SimulatedHandle<S> {
    async fn pause(&mut self) {
        let until = self.now() + SLEEP;
        self.thread().sleep_until(until).await;
    }
}

/// Where locks and the words of the threads that wait are.
#[derive(Clone, Copy, Debug)]
pub struct Locks {
    locks: GlobalAddr,
    /// From one lock to the next.
    pitch: u64,
    flags: GlobalAddr,
    block: BlockSize,
}

impl Locks {
    /// So many locks, each in a block of its own, so that they are not in each other's way.
    ///
    /// # Errors
    /// If there is no capacity.
    pub async fn allocate_apart<M: Memory>(mem: &mut M, count: u64, home: NodeId) -> Result<Self, Error> {
        let block = mem.block_size();
        let pitch = BYTES.max(block.bytes());
        let locks = mem.alloc(count * pitch, home, Discipline::Coherent).await?;
        let flags = mem.alloc(THREADS as u64 * block.bytes(), home, Discipline::Coherent).await?;
        Ok(Self { locks, pitch, flags, block })
    }

    /// Where they are, for [`Locks::apart_at`] in other processes.
    pub const fn addresses(&self) -> [GlobalAddr; 2] {
        [self.locks, self.flags]
    }

    /// The locks that another process has allocated with [`Locks::allocate_apart`].
    pub fn apart_at<M: Memory>(mem: &M, [locks, flags]: [GlobalAddr; 2]) -> Self {
        let block = mem.block_size();
        Self { locks, pitch: BYTES.max(block.bytes()), flags, block }
    }

    /// So many locks, and words for [`THREADS`] threads, in the memory of `home`.
    ///
    /// # Errors
    /// If there is no capacity.
    pub async fn allocate<M: Memory>(mem: &mut M, count: u64, home: NodeId) -> Result<Self, Error> {
        let block = mem.block_size();
        let bytes = (count * BYTES).next_multiple_of(block.bytes());
        let locks = mem.alloc(bytes, home, Discipline::Coherent).await?;
        let flags = mem.alloc(THREADS as u64 * block.bytes(), home, Discipline::Coherent).await?;
        Ok(Self { locks, pitch: BYTES, flags, block })
    }

    fn lock(&self, number: u64) -> GlobalAddr {
        self.locks + number * self.pitch
    }

    fn flag(&self, thread: u8) -> GlobalAddr {
        self.flags + u64::from(thread) * self.block.bytes()
    }
}

/// A thread that takes locks, by its number.
#[derive(Clone, Copy, Debug)]
pub struct Locker {
    locks: Locks,
    thread: u8,
    /// How often it was let in by others.
    told: u64,
}

impl Locker {
    /// A thread that has not taken any of these locks yet.
    ///
    /// # Panics
    /// If there are not so many threads.
    pub fn new(locks: Locks, thread: usize) -> Self {
        assert!(thread < THREADS, "thread {thread} of {THREADS}");
        Self { locks, thread: u8::try_from(thread).expect("there are few"), told: 0 }
    }

    /// Takes a lock.
    ///
    /// # Errors
    /// What the memory refuses.
    pub async fn acquire<M: Pause>(&mut self, mem: &mut M, lock: u64, write: bool) -> Result<(), Error> {
        let (at, thread) = (self.locks.lock(lock), self.thread);
        let writer = mem.read_word(at + WRITER_AT).await?;
        assert_ne!(writer, self.note(), "thread {thread} takes lock {lock}, which it holds");
        let is_in = mem.update(at, BYTES as usize, |block| enter(block, thread, write)).await?;
        if !is_in {
            let flag = self.locks.flag(thread);
            while mem.read_word(flag).await? == self.told {
                mem.pause().await;
            }
            self.told += 1;
        }
        if write {
            mem.write_word(at + WRITER_AT, self.note()).await?;
        }
        Ok(())
    }

    /// Releases it.
    ///
    /// # Errors
    /// What the memory refuses.
    pub async fn release<M: Pause>(&mut self, mem: &mut M, lock: u64, write: bool) -> Result<(), Error> {
        let at = self.locks.lock(lock);
        let writes = mem.read_word(at + WRITER_AT).await? == self.note();
        assert_eq!(writes, write, "thread {} leaves lock {lock} as it entered", self.thread);
        if writes {
            mem.write_word(at + WRITER_AT, 0).await?;
        }
        let next = mem.update(at, BYTES as usize, |block| leave(block, write)).await?;
        for thread in next {
            let tell = |word: &Window<'_>| word.set_word(0, word.word(0) + 1);
            mem.update(self.locks.flag(thread), 8, tell).await?;
        }
        Ok(())
    }

    /// What it notes where it writes.
    fn note(&self) -> u64 {
        u64::from(self.thread) + 1
    }
}

/// Enters, or stands in the queue.
fn enter(block: &Window<'_>, thread: u8, write: bool) -> bool {
    let (state, (first, last)) = (block.word(0), queue(block));
    if first == last && admits(state, write) {
        block.set_word(0, inside(state, write));
        return true;
    }
    let entry = thread | if write { WANTS_TO_WRITE } else { 0 };
    block.write(RING_AT + last as usize % RING, &[entry]);
    set_queue(block, (first, last + 1));
    false
}

/// Leaves, and lets in whoever is next.
fn leave(block: &Window<'_>, write: bool) -> Vec<u8> {
    let mut state = block.word(0);
    state = if write { state & !WRITER } else { state - 1 };
    let ((mut first, last), mut next) = (queue(block), Vec::new());
    while first != last {
        let mut entry = [0];
        block.read(RING_AT + first as usize % RING, &mut entry);
        let wants_to_write = entry[0] & WANTS_TO_WRITE != 0;
        if !admits(state, wants_to_write) {
            break;
        }
        state = inside(state, wants_to_write);
        next.push(entry[0] & !WANTS_TO_WRITE);
        first += 1;
    }
    block.set_word(0, state);
    set_queue(block, (first, last));
    next
}

const fn admits(state: u64, write: bool) -> bool {
    state & WRITER == 0 && (!write || state == 0)
}

const fn inside(state: u64, write: bool) -> u64 {
    if write { state | WRITER } else { state + 1 }
}

/// Where the queue begins and ends.
fn queue(block: &Window<'_>) -> (u32, u32) {
    let word = block.word(8);
    ((word & u64::from(u32::MAX)) as u32, (word >> 32) as u32)
}

fn set_queue(block: &Window<'_>, (first, last): (u32, u32)) {
    // Both are kept below twice the ring, so that they never wrap anywhere else.
    let turn = if first >= RING as u32 { RING as u32 } else { 0 };
    block.set_word(8, u64::from(first - turn) | u64::from(last - turn) << 32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::{Config, Rack, block_on};

    const NODES: usize = 2;

    fn rack() -> Rack {
        Rack::embedded(Config { nodes: NODES, memory: 1 << 24, cache: 1 << 20, ..Default::default() })
            .unwrap()
    }

    #[test]
    fn threads_of_a_live_rack_lose_no_update_of_what_the_lock_guards() {
        const THREADS: usize = 4;
        const EACH: u64 = 300;
        let rack = rack();
        let (locks, sum) = block_on(async {
            let mut mem = rack.node(NodeId(0));
            let locks = Locks::allocate(&mut mem, 1, NodeId(1)).await.unwrap();
            (locks, mem.alloc(16, NodeId(0), Discipline::Coherent).unwrap())
        });
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let rack = &rack;
                scope.spawn(move || {
                    let mut mem = rack.node(NodeId(u16::try_from(thread % NODES).unwrap()));
                    let mut locker = Locker::new(locks, thread);
                    block_on(async {
                        for turn in 0..EACH {
                            let write = turn % 3 > 0;
                            locker.acquire(&mut mem, 0, write).await.unwrap();
                            let seen = [mem.read_word(sum).unwrap(), mem.read_word(sum + 8).unwrap()];
                            assert_eq!(seen[0], seen[1], "nobody is between the two writes of another");
                            if write {
                                mem.write_word(sum, seen[0] + 1).unwrap();
                                mem.write_word(sum + 8, seen[1] + 1).unwrap();
                            }
                            locker.release(&mut mem, 0, write).await.unwrap();
                        }
                    });
                });
            }
        });
        let sum = rack.node(NodeId(0)).read_word(sum).unwrap();
        assert_eq!(sum, THREADS as u64 * EACH * 2 / 3);
    }

    #[test]
    fn whoever_waits_is_let_in_in_order_and_readers_together() {
        let mut mem = rack().node(NodeId(0));
        let at = mem.alloc(BYTES, NodeId(0), Discipline::Coherent).unwrap();
        let mut on_block = |change: &dyn Fn(&Window<'_>) -> Vec<u8>| {
            mem.update(at, BYTES as usize, |block| change(block)).unwrap()
        };
        // More than a turn of the ring.
        for _ in 0..100 {
            let seen = on_block(&|block| {
                assert!(enter(block, 1, true));
                for (thread, write) in [(2, false), (3, false), (4, true), (5, false)] {
                    assert!(!enter(block, thread, write), "thread {thread} waits for the writer");
                }
                leave(block, true)
            });
            assert_eq!(seen, [2, 3]);
            assert!(on_block(&|block| leave(block, false)).is_empty(), "one still reads");
            assert_eq!(on_block(&|block| leave(block, false)), [4]);
            assert_eq!(on_block(&|block| leave(block, true)), [5]);
            assert!(on_block(&|block| leave(block, false)).is_empty());
        }
    }
}
