//! What locks rows for a client: words in them, or the locks of the blocks that they are in.
//!
//! What must always hold: what one client holds to write nobody else holds, and what it holds to read nobody else holds to write; a row is
//! read only when its lock is there.

use std::collections::{BTreeMap, BTreeSet};

use rackmem::{BlockMemory, Error, GlobalAddr, LockMode, Memory};

use super::row::{self, Found, Mode};

/// A memory on which rows are locked by `L`.
pub trait Locking<L>: Memory {
    /// Takes the lock of a row of so many bytes for this client, and reads the row. None: another client has the lock.
    fn acquire(
        &mut self,
        locks: &mut L,
        row: (GlobalAddr, usize),
        client: usize,
        mode: Mode,
    ) -> impl Future<Output = Result<Option<Found>, Error>>;

    /// Writes a row that is free and that nobody holds. This client holds it then. False if somebody else tries its lock just now.
    fn create(
        &mut self,
        locks: &mut L,
        row: (GlobalAddr, &[u8]),
        client: usize,
        key: u128,
    ) -> impl Future<Output = Result<bool, Error>>;

    /// Marks a row free, if this client holds it: with a lock that is still there, so nobody else takes it yet.
    fn set_free(
        &mut self,
        locks: &L,
        row: GlobalAddr,
        client: usize,
    ) -> impl Future<Output = Result<bool, Error>>;

    /// A row was locked for something that is done: its lock is given back now, or with all others.
    fn give_way(
        &mut self,
        locks: &mut L,
        row: GlobalAddr,
        client: usize,
    ) -> impl Future<Output = Result<(), Error>>;

    /// Gives back whatever this client holds of a row's lock.
    fn release(
        &mut self,
        locks: &mut L,
        row: GlobalAddr,
        client: usize,
    ) -> impl Future<Output = Result<(), Error>>;
}

/// Words in rows. They are in the rack's memory, so whoever comes after a client that died finds them, and ends what it has begun.
#[derive(Clone, Copy, Default, Debug)]
pub struct Words;

impl<M: Memory> Locking<Words> for M {
    async fn acquire(
        &mut self,
        _: &mut Words,
        row: (GlobalAddr, usize),
        client: usize,
        mode: Mode,
    ) -> Result<Option<Found>, Error> {
        row::acquire(self, row, client, mode).await
    }

    async fn create(
        &mut self,
        _: &mut Words,
        (addr, bytes): (GlobalAddr, &[u8]),
        client: usize,
        key: u128,
    ) -> Result<bool, Error> {
        row::write_new(self, addr, (key, client as u64 + 1), bytes).await
    }

    async fn set_free(&mut self, _: &Words, row: GlobalAddr, client: usize) -> Result<bool, Error> {
        row::set_free(self, row, client as u64 + 1).await
    }

    async fn give_way(&mut self, locks: &mut Words, row: GlobalAddr, client: usize) -> Result<(), Error> {
        self.release(locks, row, client).await
    }

    async fn release(&mut self, _: &mut Words, row: GlobalAddr, client: usize) -> Result<(), Error> {
        row::release(self, row, client).await
    }
}

/// Locks of the blocks that rows are in (Concordia, sections 6 and 7.4): a row's lock is that of all rows of its block.
///
/// A client that dies with its node loses these locks before anybody has ended what it had begun: this is for racks on which nobody dies.
#[derive(Debug)]
pub struct Blocks<H> {
    held: BTreeMap<GlobalAddr, Block<H>>,
    /// Blocks that could not be taken to write by a client that had them to read: they are taken to write at once.
    wanted: BTreeSet<GlobalAddr>,
}

#[derive(Debug)]
struct Block<H> {
    lock: H,
    mode: Mode,
    /// Rows in it that the client holds, as it has read them. None: it is after the gap in front of it, or has made it.
    rows: BTreeMap<GlobalAddr, Option<Found>>,
}

impl<H> Default for Blocks<H> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), wanted: BTreeSet::new() }
    }
}

/// The beginning of the block that this is in.
fn block_of<M: Memory>(mem: &M, addr: GlobalAddr) -> GlobalAddr {
    GlobalAddr::from_bits(addr.bits() - mem.block_size().offset_in_block(addr) as u64)
}

impl<H> Blocks<H> {
    /// Takes a block's lock, or has it already. False: somebody else has it, and this client holds nothing of the block any more.
    async fn take<M: BlockMemory<HeldBlock = H>>(
        &mut self,
        mem: &mut M,
        block: GlobalAddr,
        mode: Mode,
    ) -> Result<bool, Error> {
        let mode = if self.wanted.contains(&block) { Mode::Write } else { mode };
        let mut rows = BTreeMap::new();
        if let Some(held) = self.held.remove(&block) {
            if held.mode >= mode {
                self.held.insert(block, held);
                return Ok(true);
            }
            // There is no way from reading to writing but out of the block.
            mem.unlock_block(held.lock).await;
            rows = held.rows;
        }
        let lock_mode = if mode == Mode::Write { LockMode::Write } else { LockMode::Read };
        let Some(lock) = mem.try_lock_block(block, lock_mode).await? else {
            if !rows.is_empty() {
                self.wanted.insert(block);
            }
            return Ok(false);
        };
        for (row, before) in &rows {
            // Somebody may have been there in between. Of a gap nobody can tell.
            let is_same = match before {
                Some(before) => row::peek(mem, (*row, before.bytes.len())).await? == *before,
                None => false,
            };
            if !is_same {
                mem.unlock_block(lock).await;
                self.wanted.insert(block);
                return Ok(false);
            }
        }
        self.held.insert(block, Block { lock, mode, rows });
        Ok(true)
    }

    fn add(&mut self, block: GlobalAddr, row: GlobalAddr, found: Option<Found>) {
        // What was found before counts no more: whoever asks for a row again has its block to write by now.
        self.held.get_mut(&block).expect("it was taken").rows.insert(row, found);
    }
}

impl<M: BlockMemory> Locking<Blocks<M::HeldBlock>> for M {
    async fn acquire(
        &mut self,
        locks: &mut Blocks<M::HeldBlock>,
        (addr, bytes): (GlobalAddr, usize),
        _: usize,
        mode: Mode,
    ) -> Result<Option<Found>, Error> {
        let block = block_of(self, addr);
        if !locks.take(self, block, mode).await? {
            return Ok(None);
        }
        let found = row::peek(self, (addr, bytes)).await?;
        // Whoever asks for no bytes is after the gap.
        locks.add(block, addr, (bytes > 0).then(|| found.clone()));
        Ok(Some(found))
    }

    async fn create(
        &mut self,
        locks: &mut Blocks<M::HeldBlock>,
        (addr, bytes): (GlobalAddr, &[u8]),
        _: usize,
        key: u128,
    ) -> Result<bool, Error> {
        let block = block_of(self, addr);
        if !locks.take(self, block, Mode::Write).await? {
            return Ok(false);
        }
        locks.add(block, addr, None);
        row::write_new(self, addr, (key, 0), bytes).await
    }

    async fn set_free(
        &mut self,
        locks: &Blocks<M::HeldBlock>,
        row: GlobalAddr,
        _: usize,
    ) -> Result<bool, Error> {
        let block = locks.held.get(&block_of(self, row));
        if !block.is_some_and(|block| block.rows.contains_key(&row)) {
            return Ok(false);
        }
        row::set_free(self, row, 0).await
    }

    /// The next row of the transaction may well be in the same block.
    async fn give_way(&mut self, _: &mut Blocks<M::HeldBlock>, _: GlobalAddr, _: usize) -> Result<(), Error> {
        Ok(())
    }

    async fn release(
        &mut self,
        locks: &mut Blocks<M::HeldBlock>,
        row: GlobalAddr,
        _: usize,
    ) -> Result<(), Error> {
        let block = block_of(self, row);
        if let Some(mut held) = locks.held.remove(&block) {
            held.rows.remove(&row);
            if held.rows.is_empty() {
                self.unlock_block(held.lock).await;
            } else {
                locks.held.insert(block, held);
            }
        }
        Ok(())
    }
}
