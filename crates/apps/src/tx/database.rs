//! Tables and indices: what a database consists of, and where that lies.
//!
//! ```text
//! root          magic | clients | partitions | bytes of a log | trees: an address for each index of each partition | logs
//! ```
//! The upper 16 bits of a key are its *partition*: each partition of a table has trees of its own, so that what happens in
//! one touches no block of another. Never changes after [`Database::create`]; every handle has a copy.

use std::sync::Arc;

use rackmem::{Discipline, GlobalAddr, Memory, NodeId};

use super::error::Error;
use super::row::{self, Pages, Row};
use crate::tree::Tree;

/// As many clients as a lock word has bits.
pub const MOST_CLIENTS: usize = 64;
const MAGIC: u64 = u64::from_le_bytes(*b"rackmem\x29");
const HEAD: usize = 4;
/// The key of the row behind all others.
pub(super) const LAST: u128 = u128::MAX;

/// A table's number, in the order in which they were given.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Table(pub u8);

/// What transactions may do with a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Anything.
    Rows,
    /// Nobody changes it after loading: it is read without locks.
    Fixed,
    /// Rows are inserted, and read by nobody: what is inserted conflicts with nothing.
    Journal,
}

/// What a table is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableSpec {
    /// What messages call it.
    pub name: &'static str,
    /// Bytes of a row.
    pub bytes: usize,
    /// Indices beside the one by key.
    pub more_indices: usize,
    /// What transactions may do with it.
    pub kind: Kind,
}

/// A handle of a database. Cheap to clone; every worker on every node can have one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Database {
    root: GlobalAddr,
    specs: &'static [TableSpec],
    partitions: usize,
    log_bytes: u64,
    /// Trees of all partitions, and then logs.
    places: Arc<[GlobalAddr]>,
    trees_of_partition: usize,
}

fn indices(specs: &[TableSpec]) -> usize {
    specs.iter().map(|spec| 1 + spec.more_indices).sum()
}

impl Database {
    /// An empty database with these tables. A log has `log_bytes` for all that one transaction does.
    ///
    /// # Errors
    /// If there are more than [`MOST_CLIENTS`], or the rack's memory fails or is full.
    pub async fn create<M: Memory>(
        mem: &mut M,
        specs: &'static [TableSpec],
        (partitions, clients): (usize, usize),
        log_bytes: u64,
    ) -> Result<Self, Error> {
        if clients > MOST_CLIENTS {
            return Err(Error::TooManyClients { clients });
        }
        let mut words = vec![MAGIC ^ indices(specs) as u64, clients as u64, partitions as u64, log_bytes];
        for partition in 0..partitions {
            // Each partition has pages of its own.
            let mut pages = Pages::default();
            for _ in 0..indices(specs) {
                let tree = Tree::create(mem).await?;
                let home = NodeId((partition % mem.nodes()) as u16);
                let end = pages.take(mem, row::HEADER, home).await?;
                row::write_new(mem, end, (LAST, 0), &[]).await?;
                tree.insert(mem, LAST, end.bits()).await?;
                words.push(tree.root().bits());
            }
        }
        let block = mem.block_size().bytes();
        for client in 0..clients {
            let home = NodeId((client * mem.nodes() / clients) as u16);
            let log = mem.alloc(log_bytes.max(2 * block), home, Discipline::Coherent).await?;
            words.push(log.bits());
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let root = mem.alloc(bytes.len() as u64, mem.node(), Discipline::Coherent).await?;
        mem.write(root, &bytes).await?;
        Self::open(mem, root, specs).await
    }

    /// The database with this root.
    ///
    /// # Errors
    /// If there is none with such tables, or the rack's memory fails.
    pub async fn open<M: Memory>(
        mem: &mut M,
        root: GlobalAddr,
        specs: &'static [TableSpec],
    ) -> Result<Self, Error> {
        let mut head = [0; HEAD * 8];
        mem.read(root, &mut head).await?;
        let word = |at: usize| u64::from_le_bytes(head.as_chunks().0[at]);
        let (clients, partitions) = (word(1) as usize, word(2) as usize);
        let trees_of_partition = indices(specs);
        if word(0) != MAGIC ^ trees_of_partition as u64 || clients > MOST_CLIENTS {
            return Err(Error::NotADatabase { root });
        }
        let mut rest = vec![0; (trees_of_partition * partitions + clients) * 8];
        mem.read(root + (HEAD * 8) as u64, &mut rest).await?;
        let addr = |word: &[u8; 8]| GlobalAddr::from_bits(u64::from_le_bytes(*word));
        let places = rest.as_chunks().0.iter().map(addr).collect();
        Ok(Self { root, specs, partitions, log_bytes: word(3), places, trees_of_partition })
    }

    /// The database's address, for [`Database::open`].
    pub const fn root(&self) -> GlobalAddr {
        self.root
    }

    /// Bytes of memory, at most, for so many rows of this table in blocks of so many bytes, with their indices.
    pub fn bytes_needed(spec: &TableSpec, rows: u64, block: u64) -> u64 {
        let len = row::stored(spec.bytes) as u64;
        let pages = if len > block { rows * len.div_ceil(block) } else { rows.div_ceil(block / len) };
        pages * block + (1 + spec.more_indices as u64) * Tree::bytes_needed(rows, block)
    }

    /// All rows of a partition of a table, whose keys are those of this one's: outside of any transaction, while nobody changes
    /// them.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub async fn rows<M: Memory>(&self, mem: &mut M, table: Table, key: u128) -> Result<Vec<Row>, Error> {
        let tree = self.tree(table, 0, key);
        let mut rows = Vec::new();
        for (key, at) in tree.scan(mem, 0, usize::MAX, LAST).await? {
            if key != LAST {
                let addr = GlobalAddr::from_bits(at);
                let found = row::peek(mem, (addr, self.spec(table).bytes)).await?;
                rows.push(Row::of(table, addr, found));
            }
        }
        Ok(rows)
    }

    pub(super) fn spec(&self, table: Table) -> &'static TableSpec {
        &self.specs[usize::from(table.0)]
    }

    pub(super) fn tables(&self) -> usize {
        self.specs.len()
    }

    /// How many clients it is made for.
    pub fn clients(&self) -> usize {
        self.places.len() - self.trees_of_partition * self.partitions
    }

    /// The tree of an index: 0 is the one by key.
    ///
    /// # Panics
    /// If the key's partition, or the index, is not there.
    pub fn tree(&self, table: Table, index: usize, key: u128) -> Tree {
        let partition = (key >> 112) as usize;
        assert!(partition < self.partitions, "a key of partition {partition} of {}", self.partitions);
        let before = indices(&self.specs[..usize::from(table.0)]);
        assert!(index <= self.spec(table).more_indices, "index {index} of {}", self.spec(table).name);
        Tree::at(self.places[partition * self.trees_of_partition + before + index])
    }

    /// A client's log, and its bytes.
    pub(super) fn log(&self, client: usize) -> Result<(GlobalAddr, u64), Error> {
        let (clients, first) = (self.clients(), self.trees_of_partition * self.partitions);
        let log = self.places.get(first + client);
        log.map(|log| (*log, self.log_bytes)).ok_or(Error::NoSuchClient { client, clients })
    }
}
