//! A client: what a thread does in a transaction.
//!
//! What must always hold: see the head of `mod.rs`. Whatever fails, the transaction has to be undone ([`Client::abort`]).

use std::collections::BTreeMap;

use rackmem::{GlobalAddr, Memory, NodeId};
use random::Random;

use super::database::{Database, Kind, LAST, Table};
use super::error::{Error, Lock};
use super::locks::{Locking, Words};
use super::log::{Log, Phase, Record};
use super::row::{self, Found, HEADER, Mode, Pages, Row, State};
use crate::tree::Tree;

/// A rule that a test leaves out, to see that it is missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// What is read is locked.
    ReadLocks,
    /// The row behind what is looked for is locked.
    NextKey,
    /// After a lock, the index is looked at again.
    LookAgain,
}

/// Versions that a transaction has read and written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// What it has read, and its version; none if it was not there.
    pub reads: Vec<(Table, u128, Option<u64>)>,
    /// What it has written, and its new version; none if it was deleted.
    pub writes: Vec<(Table, u128, Option<u64>)>,
}

/// A thread with its log. It runs one transaction at a time, which begins with the first operation.
#[derive(Debug)]
pub struct Client<L = Words> {
    pub(super) database: Database,
    pub(super) id: usize,
    pub(super) log: Log,
    /// What locks rows.
    pub(super) locks: L,
    /// How rows are held.
    held: BTreeMap<GlobalAddr, Mode>,
    /// Versions of rows that the transaction has changed.
    changed: BTreeMap<GlobalAddr, u64>,
    pub(super) pages: Vec<Pages>,
    homes: Random,
    footprint: Option<Footprint>,
    without: Option<Rule>,
}

impl Client {
    /// The client of this number, whose locks are words in rows: there must be no other one at the same time. Ends what one of this
    /// number has left.
    ///
    /// # Errors
    /// If the database is not made for so many, or the rack's memory fails.
    pub async fn new<M: Memory>(mem: &mut M, database: &Database, id: usize) -> Result<Self, Error> {
        Self::with_locks(mem, database, id, Words).await
    }
}

impl<L> Client<L> {
    /// The same, with other locks. All clients of a database have the same ones.
    ///
    /// # Errors
    /// As for [`Client::new`].
    pub async fn with_locks<M: Locking<L>>(
        mem: &mut M,
        database: &Database,
        id: usize,
        mut locks: L,
    ) -> Result<Self, Error> {
        let place = database.log(id)?;
        let (mut log, phase) = Log::open(mem, place).await?;
        let mut pages = vec![Pages::default(); database.tables()];
        super::end::end(mem, &mut locks, (&mut log, phase), id, &mut pages).await?;
        Ok(Self {
            database: database.clone(),
            id,
            log,
            locks,
            held: BTreeMap::new(),
            changed: BTreeMap::new(),
            pages,
            homes: Random::new(id as u64),
            footprint: None,
            without: None,
        })
    }

    /// Writes down what transactions read and write from now on.
    pub fn record(&mut self) {
        self.footprint = Some(Footprint::default());
    }

    /// Leaves a rule out: for tests of what checks it.
    pub fn without(&mut self, rule: Rule) {
        self.without = Some(rule);
    }

    /// Which database it works on.
    pub const fn database(&self) -> &Database {
        &self.database
    }

    fn follows(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    fn note_read(&mut self, table: Table, key: u128, version: Option<u64>) {
        if let Some(footprint) = &mut self.footprint {
            footprint.reads.push((table, key, version));
        }
    }

    fn note_write(&mut self, table: Table, key: u128, version: Option<u64>) {
        if let Some(footprint) = &mut self.footprint {
            footprint.writes.push((table, key, version));
        }
    }

    /// The row with this key, to read.
    ///
    /// # Errors
    /// [`Error::Conflict`], or if the rack's memory fails.
    pub async fn get<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        table: Table,
        key: u128,
    ) -> Result<Option<Row>, Error> {
        self.find(mem, table, key, Mode::Read).await
    }

    /// The row with this key, to be changed.
    ///
    /// # Errors
    /// [`Error::Conflict`], or if the rack's memory fails.
    pub async fn get_to_change<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        table: Table,
        key: u128,
    ) -> Result<Option<Row>, Error> {
        self.find(mem, table, key, Mode::Write).await
    }

    async fn find<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        table: Table,
        key: u128,
        mode: Mode,
    ) -> Result<Option<Row>, Error> {
        let tree = self.database.tree(table, 0, key);
        if self.database.spec(table).kind == Kind::Fixed {
            let Some(at) = tree.get(mem, key).await? else { return Ok(None) };
            let addr = GlobalAddr::from_bits(at);
            let found = row::peek(mem, (addr, self.database.spec(table).bytes)).await?;
            return Ok(Some(Row::of(table, addr, found)));
        }
        loop {
            let next = first(tree.scan(mem, key, 1, LAST).await?);
            let (next_key, addr) = next;
            if next_key != key {
                let (next_key, _) = self.lock_next(mem, table, (tree, key, next), Mode::Read).await?;
                if next_key == key {
                    // Inserted before the lock was there.
                    continue;
                }
                self.note_read(table, key, None);
                return Ok(None);
            }
            let lock = if mode == Mode::Write { Lock::Write } else { Lock::Read };
            let found = self.lock(mem, (table, addr), mode, lock).await?;
            // It may be another row by now.
            if found.key == key {
                match found.state {
                    State::Live => {
                        self.note_read(table, key, Some(found.version));
                        return Ok(Some(Row::of(table, addr, found)));
                    }
                    // By this transaction.
                    State::Deleted => return Ok(None),
                    State::Free => {}
                }
            }
        }
    }

    /// Locks the row behind a key, until nothing has come between. Gives its key, and the row if it was not held before.
    async fn lock_next<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        table: Table,
        (tree, key, mut next): (Tree, u128, (u128, GlobalAddr)),
        mode: Mode,
    ) -> Result<(u128, Option<GlobalAddr>), Error> {
        let mut is_new = false;
        while self.follows(Rule::NextKey) {
            is_new = !self.held.contains_key(&next.1);
            self.lock(mem, (table, next.1), mode, Lock::NextKey).await?;
            let again = first(tree.scan(mem, key, 1, LAST).await?);
            if again == next || !self.follows(Rule::LookAgain) {
                break;
            }
            next = again;
        }
        Ok((next.0, is_new.then_some(next.1)))
    }

    /// Rows of an index with keys from `from` to `until`, in order, and `most` of them.
    ///
    /// # Errors
    /// [`Error::Conflict`], or if the rack's memory fails.
    ///
    /// # Panics
    /// If the keys are not of one partition.
    pub async fn scan<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        (table, index): (Table, usize),
        (from, until): (u128, u128),
        most: usize,
    ) -> Result<Vec<Row>, Error> {
        self.range(mem, (table, index), (from, until), most, Mode::Read).await
    }

    /// The same, to be changed.
    ///
    /// # Errors
    /// [`Error::Conflict`], or if the rack's memory fails.
    ///
    /// # Panics
    /// If the keys are not of one partition.
    pub async fn scan_to_change<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        (table, index): (Table, usize),
        (from, until): (u128, u128),
        most: usize,
    ) -> Result<Vec<Row>, Error> {
        self.range(mem, (table, index), (from, until), most, Mode::Write).await
    }

    async fn range<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        (table, index): (Table, usize),
        (from, until): (u128, u128),
        most: usize,
        mode: Mode,
    ) -> Result<Vec<Row>, Error> {
        assert_eq!(from >> 112, until >> 112, "a range lies in one partition");
        let tree = self.database.tree(table, index, from);
        let mut entries = tree.scan(mem, from, most, until).await?;
        loop {
            let mut rows = Vec::new();
            for (key, at) in &entries {
                let addr = GlobalAddr::from_bits(*at);
                if *key > until {
                    if self.follows(Rule::NextKey) {
                        self.lock(mem, (table, addr), Mode::Read, Lock::NextKey).await?;
                    }
                    break;
                }
                let lock = if mode == Mode::Write { Lock::Write } else { Lock::Read };
                let found = self.lock(mem, (table, addr), mode, lock).await?;
                // Otherwise this transaction has deleted it; or the index has changed.
                if found.state == State::Live {
                    rows.push(Row::of(table, addr, found));
                }
            }
            let again = tree.scan(mem, from, most, until).await?;
            if again == entries || !self.follows(Rule::LookAgain) {
                for row in &rows {
                    self.note_read(table, row.key, Some(row.version));
                }
                return Ok(rows);
            }
            entries = again;
        }
    }

    /// Locks a row, and reads it.
    async fn lock<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        (table, addr): (Table, GlobalAddr),
        mode: Mode,
        lock: Lock,
    ) -> Result<Found, Error> {
        let bytes = self.database.spec(table).bytes;
        // The row behind all others holds nothing.
        if lock != Lock::NextKey && mode == Mode::Read && !self.follows(Rule::ReadLocks) {
            return Ok(row::peek(mem, (addr, bytes)).await?);
        }
        let bytes = if lock == Lock::NextKey { 0 } else { bytes };
        if self.held.get(&addr).is_some_and(|held| *held >= mode) {
            return Ok(row::peek(mem, (addr, bytes)).await?);
        }
        if !self.held.contains_key(&addr) {
            self.log.announce(mem, Record::Lock(addr)).await?;
        }
        let found = mem.acquire(&mut self.locks, (addr, bytes), self.id, mode).await?;
        let found = found.ok_or(Error::Conflict { table, lock })?;
        self.held.insert(addr, mode);
        Ok(found)
    }

    /// Adds a row, with keys in the table's other indices.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if there is one with this key, [`Error::Conflict`], or if the rack's memory fails or is full.
    pub async fn insert<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        (table, key): (Table, u128),
        more_keys: &[u128],
        bytes: &[u8],
    ) -> Result<(), Error> {
        let keys: Vec<u128> = [&[key], more_keys].concat();
        let kind = self.database.spec(table).kind;
        let mut behind = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            if kind == Kind::Journal {
                continue;
            }
            let tree = self.database.tree(table, index, *key);
            let next = first(tree.scan(mem, *key, 1, LAST).await?);
            let (next, locked) = self.lock_next(mem, table, (tree, *key, next), Mode::Write).await?;
            if next == *key {
                return Err(Error::Duplicate { table, key: *key });
            }
            behind.extend(locked);
        }
        let addr = self.new_row(mem, (table, key), bytes).await?;
        self.note_read(table, key, None);
        self.note_write(table, key, Some(1));
        for (index, key) in keys.iter().enumerate() {
            let tree = self.database.tree(table, index, *key);
            self.log.announce(mem, Record::Link(tree.root(), addr, *key)).await?;
            if !tree.insert(mem, *key, addr.bits()).await? {
                return Err(Error::Duplicate { table, key: *key });
            }
        }
        // The rows behind were locked for the insertion only.
        for row in behind {
            mem.give_way(&mut self.locks, row, self.id).await?;
            self.held.remove(&row);
        }
        Ok(())
    }

    /// A row that nobody knows yet, and that this client holds.
    async fn new_row<M: Locking<L>>(
        &mut self,
        mem: &mut M,
        (table, key): (Table, u128),
        bytes: &[u8],
    ) -> Result<GlobalAddr, Error> {
        let len = row::stored(self.database.spec(table).bytes);
        assert_eq!(bytes.len(), self.database.spec(table).bytes, "rows of a table have one length");
        let mut tried = Vec::new();
        let addr = loop {
            let home = NodeId(self.homes.below(mem.nodes() as u64) as u16);
            let pages = &mut self.pages[usize::from(table.0)];
            let addr = pages.take(mem, len, home).await?;
            self.log.announce(mem, Record::New(addr, table.0)).await?;
            if mem.create(&mut self.locks, (addr, bytes), self.id, key).await? {
                break addr;
            }
            tried.push(addr);
        };
        self.pages[usize::from(table.0)].free.extend(tried);
        self.held.insert(addr, Mode::Write);
        self.changed.insert(addr, 1);
        Ok(addr)
    }

    /// Adds a row outside of any transaction, while nobody else uses it: loading.
    ///
    /// # Errors
    /// [`Error::Duplicate`], or if the rack's memory fails or is full.
    pub async fn load<M: Memory>(
        &mut self,
        mem: &mut M,
        (table, key): (Table, u128),
        more_keys: &[u128],
        bytes: &[u8],
    ) -> Result<(), Error> {
        let home = NodeId(self.homes.below(mem.nodes() as u64) as u16);
        let len = row::stored(self.database.spec(table).bytes);
        let addr = self.pages[usize::from(table.0)].take(mem, len, home).await?;
        row::write_new(mem, addr, (key, 0), bytes).await?;
        for (index, key) in [&[key], more_keys].concat().into_iter().enumerate() {
            let tree = self.database.tree(table, index, key);
            if !tree.insert(mem, key, addr.bits()).await? {
                return Err(Error::Duplicate { table, key });
            }
        }
        Ok(())
    }

    /// Changes a row that was read to be changed, to what it holds now.
    ///
    /// # Errors
    /// If the rack's memory fails.
    ///
    /// # Panics
    /// If it was not read to be changed.
    pub async fn put<M: Memory>(&mut self, mem: &mut M, row: &mut Row) -> Result<(), Error> {
        let differs = |at: &usize| row.bytes[*at] != row.stored[*at];
        let Some(from) = (0..row.bytes.len()).find(differs) else { return Ok(()) };
        let to = (0..row.bytes.len()).rev().find(differs).map_or(from, |last| last + 1);
        self.raise(mem, row, State::Live).await?;
        let at = row.addr + (HEADER + from) as u64;
        self.log.announce(mem, Record::Before(at, row.stored[from..to].to_vec())).await?;
        mem.write(at, &row.bytes[from..to]).await?;
        row.stored[from..to].copy_from_slice(&row.bytes[from..to]);
        Ok(())
    }

    /// Deletes a row that was read to be changed. `more_keys` are those of the table's other indices.
    ///
    /// # Errors
    /// If the rack's memory fails.
    ///
    /// # Panics
    /// If it was not read to be changed.
    pub async fn delete<M: Memory>(
        &mut self,
        mem: &mut M,
        row: &Row,
        more_keys: &[u128],
    ) -> Result<(), Error> {
        self.raise(mem, row, State::Deleted).await?;
        for (index, key) in [&[row.key], more_keys].concat().into_iter().enumerate() {
            let tree = self.database.tree(row.table, index, key).root();
            self.log.announce(mem, Record::Unlink(tree, row.addr, key, row.table.0)).await?;
        }
        Ok(())
    }

    /// Gives a row that is to be changed a new version: one for the whole transaction.
    async fn raise<M: Memory>(&mut self, mem: &mut M, row: &Row, state: State) -> Result<(), Error> {
        assert_eq!(self.held.get(&row.addr), Some(&Mode::Write), "a row is read to be changed first");
        let before = self.changed.get(&row.addr).copied();
        let version = before.unwrap_or(row.version + 1);
        let deleted = state == State::Deleted;
        if before.is_none() || deleted {
            let old = row::version_word(before.unwrap_or(row.version), State::Live);
            let at = row.addr + row::VERSION as u64;
            self.log.announce(mem, Record::Before(at, old.to_le_bytes().to_vec())).await?;
            mem.write_word(at, row::version_word(version, state)).await?;
            self.changed.insert(row.addr, version);
            self.note_write(row.table, row.key, (!deleted).then_some(version));
        }
        Ok(())
    }

    /// Makes all changes of the transaction last, and gives its locks back.
    ///
    /// # Errors
    /// If the rack's memory fails: then somebody has to [recover](Client::recover) this client.
    pub async fn commit<M: Locking<L>>(&mut self, mem: &mut M) -> Result<Footprint, Error> {
        let has_changed = self.log.records.iter().any(|record| !matches!(record, Record::Lock(_)));
        // Who has only read may release locks one by one: there is nothing to be undone.
        if has_changed {
            self.log.set_phase(mem, Phase::Committed).await?;
        }
        self.finish(mem, Phase::Committed).await
    }

    /// Undoes all changes of the transaction, and gives its locks back.
    ///
    /// # Errors
    /// If the rack's memory fails: then somebody has to [recover](Client::recover) this client.
    pub async fn abort<M: Locking<L>>(&mut self, mem: &mut M) -> Result<(), Error> {
        self.finish(mem, Phase::Running).await.map(|_| ())
    }

    /// Lets some time pass, on live racks and on simulated ones: so many looks at its own log.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub async fn pause<M: Memory>(&mut self, mem: &mut M, looks: u64) -> Result<(), Error> {
        for _ in 0..looks {
            self.log.look(mem).await?;
        }
        Ok(())
    }

    async fn finish<M: Locking<L>>(&mut self, mem: &mut M, phase: Phase) -> Result<Footprint, Error> {
        super::end::end(mem, &mut self.locks, (&mut self.log, phase), self.id, &mut self.pages).await?;
        self.held.clear();
        self.changed.clear();
        Ok(self.footprint.as_mut().map(std::mem::take).unwrap_or_default())
    }
}

/// There is always a row behind.
fn first(entries: Vec<(u128, u64)>) -> (u128, GlobalAddr) {
    let (key, at) = entries[0];
    (key, GlobalAddr::from_bits(at))
}
