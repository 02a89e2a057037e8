//! The end of a transaction: committed, undone, or left behind by a client that died.
//!
//! All three follow from the log alone. Undoing goes backwards through it. Doing it again, after somebody stopped in the
//! middle, changes nothing that was done.

use super::client::Client;
use super::error::Error;
use super::locks::Locking;
use super::log::{Log, Phase, Record};
use super::row::Pages;
use crate::tree::Tree;

/// Ends what is in this log of this client. Rows that become free go to `pages`, one for each table.
pub(super) async fn end<L, M: Locking<L>>(
    mem: &mut M,
    locks: &mut L,
    (log, phase): (&mut Log, Phase),
    client: usize,
    pages: &mut [Pages],
) -> Result<(), Error> {
    let mut free = Vec::new();
    match phase {
        Phase::Running => {
            for record in log.records.iter().rev() {
                match record {
                    Record::Before(at, bytes) => mem.write(*at, bytes).await?,
                    Record::Link(tree, row, key) => {
                        Tree::at(*tree).remove(mem, *key, row.bits()).await?;
                    }
                    Record::New(row, table) => {
                        if mem.set_free(locks, *row, client).await? {
                            free.push((*table, *row));
                        }
                    }
                    Record::Lock(_) | Record::Unlink(..) => {}
                }
            }
            if log.records.iter().any(|record| !matches!(record, Record::Lock(_))) {
                log.set_phase(mem, Phase::Undone).await?;
            }
        }
        Phase::Committed => {
            for record in &log.records {
                if let Record::Unlink(tree, row, key, table) = record {
                    Tree::at(*tree).remove(mem, *key, row.bits()).await?;
                    // Of each row once, however many indices have it.
                    if mem.set_free(locks, *row, client).await? && free.last() != Some(&(*table, *row)) {
                        free.push((*table, *row));
                    }
                }
            }
        }
        Phase::Undone => {}
    }
    for record in &log.records {
        if let Record::Lock(row) | Record::New(row, _) = record {
            mem.release(locks, *row, client).await?;
        }
    }
    log.next(mem).await?;
    for (table, row) in free {
        pages[usize::from(table)].free.push(row);
    }
    Ok(())
}

impl<L> Client<L> {
    /// Ends what a dead client has begun: its locks are released, and what it had not committed is undone. Also ends what that
    /// one was ending for others. Nobody may be at work under its number any more.
    ///
    /// # Errors
    /// [`Error::BeingRecovered`] if another client does it, or if the rack's memory fails.
    pub async fn recover<M: Locking<L>>(&mut self, mem: &mut M, dead: usize) -> Result<(), Error> {
        let place = self.database.log(dead)?;
        if let Some(by) = Log::claim(mem, place, self.id).await? {
            return Err(Error::BeingRecovered { by });
        }
        self.end_of(mem, dead).await?;
        for other in (0..self.database.clients()).filter(|other| *other != dead) {
            let theirs = self.database.log(other)?;
            if Log::claimed_by(mem, theirs).await? == Some(dead) {
                self.end_of(mem, other).await?;
                Log::unclaim(mem, theirs).await?;
            }
        }
        Log::unclaim(mem, place).await
    }

    async fn end_of<M: Locking<L>>(&mut self, mem: &mut M, dead: usize) -> Result<(), Error> {
        let (mut log, phase) = Log::open(mem, self.database.log(dead)?).await?;
        end(mem, &mut self.locks, (&mut log, phase), dead, &mut self.pages).await
    }
}
