//! A client's log: what it is about to do, in the rack's memory.
//!
//! ```text
//! byte 0    transaction << 2 | running, committed or undone
//! byte 8    who ends what this client has begun, from 1, if it died
//! byte 16   records: transaction << 16 | kind << 12 | bytes, an address, and so many bytes
//! ```
//! A record that names another transaction is an old one. Records do not cross blocks: where one does not fit, it is in
//! the next block.
//!
//! What must always hold: each record is there before what it announces.

use rackmem::{GlobalAddr, Memory};

use super::error::Error;

const CLAIM: u64 = 8;
const RECORDS: u64 = 16;
const RECORD: usize = 16;

/// Whether what is in the log is to be undone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Yes.
    Running,
    /// No: what it leaves behind has to be put in order, and its locks have to be released.
    Committed,
    /// It has been. Its locks have to be released.
    Undone,
}

/// What a client is about to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Record {
    /// Take this row's lock.
    Lock(GlobalAddr),
    /// Make a row of this table here.
    New(GlobalAddr, u8),
    /// Change what is here from these bytes to others.
    Before(GlobalAddr, Vec<u8>),
    /// Add the row to the tree with this root, under this key.
    Link(GlobalAddr, GlobalAddr, u128),
    /// Take it out when all is committed; it is a row of this table.
    Unlink(GlobalAddr, GlobalAddr, u128, u8),
}

impl Record {
    fn parts(&self) -> (u64, GlobalAddr, Vec<u8>) {
        let entry = |tree: &GlobalAddr, key: &u128, more: &[u8]| {
            [&tree.bits().to_le_bytes()[..], &key.to_le_bytes(), more].concat()
        };
        match self {
            Self::Lock(row) => (1, *row, Vec::new()),
            Self::New(row, table) => (2, *row, vec![*table]),
            Self::Before(at, bytes) => (3, *at, bytes.clone()),
            Self::Link(tree, row, key) => (4, *row, entry(tree, key, &[])),
            Self::Unlink(tree, row, key, table) => (5, *row, entry(tree, key, &[*table])),
        }
    }

    fn of(kind: u64, addr: GlobalAddr, bytes: &[u8]) -> Option<Self> {
        let entry = || {
            let (tree, rest) = bytes.split_first_chunk::<8>()?;
            let (key, rest) = rest.split_first_chunk::<16>()?;
            Some((GlobalAddr::from_bits(u64::from_le_bytes(*tree)), u128::from_le_bytes(*key), rest))
        };
        Some(match kind {
            1 => Self::Lock(addr),
            2 => Self::New(addr, *bytes.first()?),
            3 => Self::Before(addr, bytes.to_vec()),
            4 => entry().map(|(tree, key, _)| Self::Link(tree, addr, key))?,
            5 => {
                let (tree, key, rest) = entry()?;
                Self::Unlink(tree, addr, key, *rest.first()?)
            }
            _ => return None,
        })
    }
}

/// A log as the one sees it who writes it.
#[derive(Clone, Debug)]
pub(super) struct Log {
    at: GlobalAddr,
    bytes: u64,
    /// The transaction that runs, or is next.
    pub(super) number: u64,
    /// Where the next record goes.
    end: u64,
    /// What it has announced.
    pub(super) records: Vec<Record>,
}

impl Log {
    /// A log as it lies in memory: with what was announced in it, and whether that is to be undone.
    pub(super) async fn open<M: Memory>(
        mem: &mut M,
        (at, bytes): (GlobalAddr, u64),
    ) -> Result<(Self, Phase), Error> {
        let head = mem.read_word(at).await?;
        let phase = match head & 3 {
            0 => Phase::Running,
            1 => Phase::Committed,
            _ => Phase::Undone,
        };
        let mut log = Self { at, bytes, number: head >> 2, end: RECORDS, records: Vec::new() };
        while let Some((record, end)) = log.record_at(mem, log.end).await? {
            log.records.push(record);
            log.end = end;
        }
        Ok((log, phase))
    }

    /// The record here, or at the beginning of the next block, and where it ends.
    async fn record_at<M: Memory>(&self, mem: &mut M, end: u64) -> Result<Option<(Record, u64)>, Error> {
        let block = mem.block_size().bytes();
        let next = (end + 1).next_multiple_of(block);
        for at in [end, next] {
            let room = (block - at % block) as usize;
            if at >= self.bytes || room < RECORD {
                continue;
            }
            let mut bytes = vec![0; room];
            mem.read(self.at + at, &mut bytes).await?;
            let word = |at: usize| u64::from_le_bytes(bytes.as_chunks().0[at]);
            let (head, addr) = (word(0), GlobalAddr::from_bits(word(1)));
            let len = (head & 0xfff) as usize;
            // Zeroes are no record: kinds begin with 1.
            if head >> 16 == self.number & (u64::MAX >> 16) && RECORD + len <= room {
                let record = Record::of(head >> 12 & 0xf, addr, &bytes[RECORD..RECORD + len]);
                if let Some(record) = record {
                    return Ok(Some((record, at + ((RECORD + len) as u64).next_multiple_of(8))));
                }
            }
        }
        Ok(None)
    }

    /// Writes down what is about to be done.
    pub(super) async fn announce<M: Memory>(&mut self, mem: &mut M, record: Record) -> Result<(), Error> {
        let block = mem.block_size().bytes();
        let (kind, addr, bytes) = record.parts();
        let most = (block / 4) as usize;
        if let Record::Before(..) = record
            && bytes.len() > most
        {
            // In pieces that fit.
            for (piece, at) in bytes.chunks(most).zip((0..).step_by(most)) {
                let record = Record::Before(addr + at as u64, piece.to_vec());
                Box::pin(self.announce(mem, record)).await?;
            }
            return Ok(());
        }
        let len = RECORD + bytes.len();
        let mut at = self.end;
        if at % block + len as u64 > block {
            at = at.next_multiple_of(block);
        }
        if at + len as u64 > self.bytes {
            return Err(Error::LogFull { bytes: self.bytes });
        }
        let head = self.number << 16 | kind << 12 | bytes.len() as u64;
        mem.update(self.at + at, len, |window| {
            window.write(RECORD, &bytes);
            window.set_word(8, addr.bits());
            window.set_word(0, head);
        })
        .await?;
        self.end = at + (len as u64).next_multiple_of(8);
        self.records.push(record);
        Ok(())
    }

    /// Says whether what is in the log is to be undone.
    pub(super) async fn set_phase<M: Memory>(&self, mem: &mut M, phase: Phase) -> Result<(), Error> {
        Ok(mem.write_word(self.at, self.number << 2 | phase as u64).await?)
    }

    /// Reads its first word, which is in the client's own cache.
    pub(super) async fn look<M: Memory>(&self, mem: &mut M) -> Result<u64, Error> {
        Ok(mem.read_word(self.at).await?)
    }

    /// Begins the next transaction.
    pub(super) async fn next<M: Memory>(&mut self, mem: &mut M) -> Result<(), Error> {
        if !self.records.is_empty() {
            self.number += 1;
            self.end = RECORDS;
            self.records.clear();
            self.set_phase(mem, Phase::Running).await?;
        }
        Ok(())
    }

    /// Makes a client the one who ends what is in the log here. Another one who has begun to is named.
    pub(super) async fn claim<M: Memory>(
        mem: &mut M,
        (log, _): (GlobalAddr, u64),
        client: usize,
    ) -> Result<Option<usize>, Error> {
        let claim = client as u64 + 1;
        let before = mem.update(log + CLAIM, 8, |window| {
            let before = window.word(0);
            if before == 0 {
                window.set_word(0, claim);
            }
            before
        });
        let before = before.await?;
        Ok((before != 0 && before != claim).then(|| before as usize - 1))
    }

    /// Who that is.
    pub(super) async fn claimed_by<M: Memory>(
        mem: &mut M,
        (log, _): (GlobalAddr, u64),
    ) -> Result<Option<usize>, Error> {
        Ok((mem.read_word(log + CLAIM).await? as usize).checked_sub(1))
    }

    /// Nobody any more.
    pub(super) async fn unclaim<M: Memory>(mem: &mut M, (log, _): (GlobalAddr, u64)) -> Result<(), Error> {
        Ok(mem.write_word(log + CLAIM, 0).await?)
    }
}
