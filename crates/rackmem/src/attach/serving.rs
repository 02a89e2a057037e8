//! What the daemon does for one connection: a loop over requests, on a handle and with locks of its own.
//!
//! What must always hold: whatever ends the connection, its locks are released, and what was being changed stays as
//! it was; a block is kept for an application no longer than [`Shared::hold`].
//!
//! | file | holds |
//! | --- | --- |
//! | `serving/locks.rs` | locks of blocks, and locks with their bytes |
//! | `serving/regions.rs` | words and objects |
//! | `serving/stores.rs` | stores of chains |

mod locks;
mod regions;
mod stores;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use wire::GlobalAddr;

use self::locks::Locks;
use self::regions::{Begun, Known};
use self::stores::Stores;
use super::answer::{Answer, begin_answers};
use super::line::{Cut, Line};
use super::message::Request;
use super::operation::Operation;
use super::server::Shared;
use crate::error::Error;
use crate::handle::NodeHandle;

/// Serves a connection until it ends, and says how it did.
pub(super) fn serve(shared: &Shared, line: &mut Line, handle: NodeHandle) -> Cut {
    let mut serving = Serving {
        shared,
        handle,
        locks: Locks::default(),
        known: Known::default(),
        stores: Stores::default(),
    };
    loop {
        if let Err(cut) = serving.once(line) {
            return cut;
        }
    }
}

struct Serving<'a> {
    shared: &'a Shared,
    handle: NodeHandle,
    /// The locks that are held for the application. They go when this goes.
    locks: Locks,
    /// Regions that it has used.
    known: Known,
    /// Stores that it uses.
    stores: Stores,
}

/// What came of an operation, or will have.
enum Outcome {
    Over(Answer),
    Begun(Begun),
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self::Over(answer)
    }
}

impl Serving<'_> {
    fn once(&mut self, line: &mut Line) -> Result<(), Cut> {
        // The frame is let go before the line is used for the answer.
        let frame = line.receive(None)?.to_vec();
        match Request::decode(&frame).map_err(|_| Cut::Malformed)? {
            Request::Batch(operations) => self.batch(line, &operations),
            Request::Update { addr, len } => self.update(line, addr, len),
            // Nothing is being updated.
            Request::Changed(_) => Err(Cut::Malformed),
        }
    }

    fn batch(&mut self, line: &mut Line, operations: &[Operation<'_>]) -> Result<(), Cut> {
        let mut outcomes = Vec::with_capacity(operations.len());
        for operation in operations {
            // Operations on words go together, to as many homes as they are of. Whatever is not one comes after them.
            if !matches!(operation, Operation::Word(_)) {
                self.finish(&mut outcomes);
            }
            outcomes.push(self.run(line, operation)?);
        }
        self.finish(&mut outcomes);
        // What only looks is none.
        let done = operations
            .iter()
            .filter(|one| !matches!(one, Operation::Confirm { .. } | Operation::Drain(_)))
            .count();
        self.shared.counters.operations.fetch_add(done as u64, Relaxed);
        line.send(Some(self.shared.hold), |out| {
            begin_answers(out, outcomes.len());
            for outcome in &outcomes {
                let Outcome::Over(answer) = outcome else { unreachable!("all are over") };
                answer.encode(out);
            }
        })
    }

    /// Waits for what was begun.
    fn finish(&mut self, outcomes: &mut [Outcome]) {
        for outcome in outcomes.iter_mut().rev() {
            // Everything before one that is over and is no word's is over, too; but to look is quick.
            if let Outcome::Begun(begun) = outcome {
                *outcome = Outcome::Over(begun.wait(&mut self.handle));
            }
        }
    }

    fn run(&mut self, line: &Line, operation: &Operation<'_>) -> Result<Outcome, Cut> {
        let Self { shared, handle, locks, known, stores } = self;
        let done = |done: Result<(), Error>| done.map(|()| Answer::Done);
        let answer = match *operation {
            Operation::Read { addr, len: 8 } if addr.bits().is_multiple_of(8) => {
                handle.read_word(addr).map(|word| Answer::Bytes(word.to_ne_bytes().to_vec()))
            }
            Operation::Read { addr, len } => {
                let mut bytes = vec![0; len];
                handle.read(addr, &mut bytes).map(|()| Answer::Bytes(bytes))
            }
            Operation::Write { addr, bytes } => match bytes.try_into() {
                Ok(word) if addr.bits().is_multiple_of(8) => {
                    done(handle.write_word(addr, u64::from_ne_bytes(word)))
                }
                _ => done(handle.write(addr, bytes)),
            },
            Operation::Alloc { len, home, discipline } => {
                handle.alloc(len, home, discipline).map(Answer::Allocated)
            }
            Operation::Free { addr, incarnation } => {
                known.forget(addr);
                done(handle.inner.in_some_memory(addr).and_then(|()| handle.free_of(addr, incarnation)))
            }
            Operation::Sync => done(handle.sync()),
            Operation::Lock { addr, mode, once } => locks.lock(handle, (shared, line), addr, mode, once)?,
            Operation::Unlock { lock } => locks.unlock(lock)?,
            Operation::Enter { addr, len, mode, wait, is_headed } => {
                // Two words, or it is no header.
                if is_headed && len < crate::locked::header::BYTES {
                    return Err(Cut::Malformed);
                }
                locks.enter(handle, (shared, line), (addr, len), (mode, is_headed), wait)?
            }
            Operation::Leave { lock, bytes } => locks.leave(lock, bytes)?,
            Operation::End { lock, is_lost } => locks.end(handle, lock, is_lost)?,
            Operation::Begin { shape, home } => known.begin(handle, shape, home),
            Operation::Open { addr, needs } => known.open(handle, addr, needs),
            Operation::Word(word) => return Ok(known.word(handle, &word)),
            Operation::ReadWords { region, at, len } => known.read_words(handle, region, at, len),
            Operation::WriteWords { region, at, bytes } => known.write_words(handle, region, at, bytes),
            Operation::ReadObject { region, index, len } => known.read_object(handle, region, index, len),
            Operation::WriteObject { region, index, at, expected, bytes } => {
                known.write_object(handle, region, (index, at), expected, bytes)
            }
            Operation::Create(creation) => {
                let config = creation.config().ok_or(Cut::Malformed)?;
                stores.create(handle, &config)
            }
            Operation::OpenStore { wanted } => stores.open(handle, wanted),
            Operation::Get { store, key } => stores.get(handle, store, key),
            Operation::Put { store, key, value } => stores.put(handle, store, key, value),
            Operation::Delete { store, key } => stores.delete(handle, store, key),
            Operation::Close { store } => {
                stores.close(store);
                Ok(Answer::Done)
            }
            Operation::FreeStore { store } => stores.free(handle, store),
            Operation::Confirm { node } => handle.confirm(node).map(|is_leased| match is_leased {
                true => Answer::Done,
                false => Answer::Busy,
            }),
            Operation::Drain(order) => handle.order(order).map(Answer::Draining),
            Operation::Named { home, request } => {
                handle.ask_names_for(home, request).ok_or(Cut::Malformed)?.map(Answer::Bytes)
            }
        };
        Ok(answer.unwrap_or_else(Answer::Failed).into())
    }

    /// Gives the application the bytes, and keeps the block for it until they are back.
    fn update(&mut self, line: &mut Line, addr: GlobalAddr, len: usize) -> Result<(), Cut> {
        let hold = self.shared.hold;
        let mut given = Ok(());
        let updated = self.handle.update(addr, len, |window| {
            given = (|| {
                let mut bytes = vec![0; len];
                window.read(0, &mut bytes);
                answer(line, hold, Answer::Bytes(bytes))?;
                match Request::decode(line.receive(Some(hold))?) {
                    Ok(Request::Changed(bytes)) if bytes.len() == len => window.write(0, bytes),
                    _ => return Err(Cut::Malformed),
                }
                Ok(())
            })();
        });
        given?;
        self.shared.counters.operations.fetch_add(1, Relaxed);
        answer(line, hold, updated.map_or_else(Answer::Failed, |()| Answer::Done))
    }
}

fn answer(line: &mut Line, hold: Duration, answer: Answer) -> Result<(), Cut> {
    line.send(Some(hold), |out| {
        begin_answers(out, 1);
        answer.encode(out);
    })
}
