//! A row: its locks, version and key, and where rows come from.
//!
//! ```text
//! byte 0    the client that holds it for writing, from 1; 0 if there is none
//! byte 8    the clients that hold it for reading, a bit for each
//! byte 16   version << 8 | free, live or deleted
//! byte 24   key
//! byte 40   the row
//! ```
//! A row lies inside one block if it fits into one. Otherwise it begins with one.
//!
//! What must always hold: only who holds a row for writing changes anything but its locks.

use rackmem::{Discipline, GlobalAddr, Memory, NodeId, Window};

use super::database::Table;

/// Bytes in front of a row.
pub(super) const HEADER: usize = 40;
const READERS: usize = 8;
/// Where the version is.
pub(super) const VERSION: usize = 16;
const KEY: usize = 24;

/// What a row is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    Live,
    Deleted,
}

/// The word at [`VERSION`].
pub(super) fn version_word(version: u64, state: State) -> u64 {
    version << 8 | state as u64
}

/// What a row is, and its version.
pub(super) fn version_of(word: u64) -> (State, u64) {
    let state = match word & 0xff {
        1 => State::Live,
        2 => State::Deleted,
        _ => State::Free,
    };
    (state, word >> 8)
}

/// How a row is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// With other readers.
    Read,
    /// Alone.
    Write,
}

/// What was found in a row that is now locked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    pub(super) state: State,
    pub(super) version: u64,
    pub(super) key: u128,
    pub(super) bytes: Vec<u8>,
}

/// A row that a transaction has read: a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub(super) addr: GlobalAddr,
    pub(super) table: Table,
    pub(super) key: u128,
    pub(super) version: u64,
    /// As it is in memory.
    pub(super) stored: Vec<u8>,
    /// What it holds. Changes take effect with [`Client::put`](super::Client::put).
    pub bytes: Vec<u8>,
}

impl Row {
    pub(super) fn of(table: Table, addr: GlobalAddr, found: Found) -> Self {
        let Found { key, version, bytes, .. } = found;
        Self { addr, table, key, version, stored: bytes.clone(), bytes }
    }

    /// Its key.
    pub const fn key(&self) -> u128 {
        self.key
    }

    /// The word of this number, from 0.
    pub fn word(&self, number: usize) -> u64 {
        u64::from_le_bytes(self.bytes.as_chunks().0[number])
    }

    /// Changes the word of this number.
    pub fn set_word(&mut self, number: usize, value: u64) {
        self.bytes.as_chunks_mut().0[number] = value.to_le_bytes();
    }
}

/// Bytes that a row takes.
pub(super) const fn stored(bytes: usize) -> usize {
    (HEADER + bytes).next_multiple_of(8)
}

/// Bytes of a row in its first block.
fn first_part<M: Memory>(mem: &M, addr: GlobalAddr, bytes: usize) -> usize {
    let block = mem.block_size();
    (HEADER + bytes).min(block.len() - block.offset_in_block(addr))
}

/// Who holds a row for writing, and who else for reading.
fn others(window: &Window<'_>, client: usize) -> (bool, bool) {
    let writer = window.word(0);
    (writer != 0 && writer != client as u64 + 1, window.word(READERS) & !(1 << client) != 0)
}

fn read(window: &Window<'_>) -> Found {
    let (state, version) = version_of(window.word(VERSION));
    let key = u128::from(window.word(KEY)) << 64 | u128::from(window.word(KEY + 8));
    let mut bytes = vec![0; window.len() - HEADER];
    window.read(HEADER, &mut bytes);
    Found { state, version, key, bytes }
}

/// Takes a row's lock, and reads the row. None if another client has the lock.
pub(super) async fn acquire<M: Memory>(
    mem: &mut M,
    (addr, bytes): (GlobalAddr, usize),
    client: usize,
    mode: Mode,
) -> Result<Option<Found>, rackmem::Error> {
    let first = first_part(mem, addr, bytes);
    let locked = mem.update(addr, first, |window| {
        let (written, is_read) = others(window, client);
        if written || mode == Mode::Write && is_read {
            return None;
        }
        match mode {
            Mode::Read => window.set_word(READERS, window.word(READERS) | 1 << client),
            Mode::Write => window.set_word(0, client as u64 + 1),
        }
        Some(read(window))
    });
    let Some(mut found) = locked.await? else { return Ok(None) };
    read_rest(mem, (addr, bytes), first, &mut found).await?;
    Ok(Some(found))
}

/// Reads a row without its lock: one that nobody changes.
pub(super) async fn peek<M: Memory>(
    mem: &mut M,
    (addr, bytes): (GlobalAddr, usize),
) -> Result<Found, rackmem::Error> {
    let first = first_part(mem, addr, bytes);
    let mut found = mem.inspect(addr, first, read).await?;
    read_rest(mem, (addr, bytes), first, &mut found).await?;
    Ok(found)
}

async fn read_rest<M: Memory>(
    mem: &mut M,
    (addr, bytes): (GlobalAddr, usize),
    first: usize,
    found: &mut Found,
) -> Result<(), rackmem::Error> {
    if first < HEADER + bytes {
        found.bytes.resize(bytes, 0);
        mem.read(addr + first as u64, &mut found.bytes[first - HEADER..]).await?;
    }
    Ok(())
}

/// Gives back whatever this client holds of a row's lock.
pub(super) async fn release<M: Memory>(
    mem: &mut M,
    addr: GlobalAddr,
    client: usize,
) -> Result<(), rackmem::Error> {
    mem.update(addr, VERSION, |window| {
        if window.word(0) == client as u64 + 1 {
            window.set_word(0, 0);
        }
        window.set_word(READERS, window.word(READERS) & !(1 << client));
    })
    .await
}

/// Marks a row free, if the word of its writer says this one.
pub(super) async fn set_free<M: Memory>(
    mem: &mut M,
    addr: GlobalAddr,
    writer: u64,
) -> Result<bool, rackmem::Error> {
    mem.update(addr, VERSION + 8, |window| {
        let held = window.word(0) == writer;
        if held {
            window.set_word(VERSION, version_word(0, State::Free));
        }
        held
    })
    .await
}

/// Writes a row that is free and that nobody holds. `writer` holds it then: a client from 1 on, or 0 for nobody. False if
/// somebody tries its lock just now.
pub(super) async fn write_new<M: Memory>(
    mem: &mut M,
    addr: GlobalAddr,
    (key, writer): (u128, u64),
    bytes: &[u8],
) -> Result<bool, rackmem::Error> {
    let first = first_part(mem, addr, bytes.len());
    let (here, rest) = bytes.split_at(first - HEADER);
    let written = mem.update(addr, first, |window| {
        if window.word(0) != 0 || window.word(READERS) != 0 {
            return false;
        }
        window.set_word(0, writer);
        window.set_word(VERSION, version_word(1, State::Live));
        window.set_word(KEY, (key >> 64) as u64);
        window.set_word(KEY + 8, key as u64);
        window.write(HEADER, here);
        true
    });
    let written = written.await?;
    if written && !rest.is_empty() {
        mem.write(addr + first as u64, rest).await?;
    }
    Ok(written)
}

/// Where a client's rows of one table come from: a block, then the next one, of whatever node.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// What is left of a block.
    next: Option<GlobalAddr>,
    /// Rows that were freed.
    pub(super) free: Vec<GlobalAddr>,
}

impl Pages {
    /// Memory for a row of so many stored bytes. A new block is `home`'s.
    pub(super) async fn take<M: Memory>(
        &mut self,
        mem: &mut M,
        len: usize,
        home: NodeId,
    ) -> Result<GlobalAddr, rackmem::Error> {
        if let Some(free) = self.free.pop() {
            return Ok(free);
        }
        let block = mem.block_size();
        let addr = match self.next {
            Some(next) => next,
            None => mem.alloc(block.bytes().max(len as u64), home, Discipline::Coherent).await?,
        };
        let end = block.offset_in_block(addr) + len;
        self.next = (end + len <= block.len()).then(|| addr + len as u64);
        Ok(addr)
    }
}
