//! What the daemon does for one connection: a loop over requests, on a handle and with locks of its own.
//!
//! What must always hold: whatever ends the connection, its locks are released, and a range that was being updated stays as
//! it was; a block is kept for an application no longer than [`Shared::hold`].

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sorted::Map;
use wire::GlobalAddr;

use super::line::{Cut, Line};
use super::message::{Answer, Operation, Request, begin_answers};
use super::server::Shared;
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::{BlockLock, LockMode};

/// Between two attempts to get a lock that somebody else has, at first and at most.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Serves a connection until it ends, and says how it did.
pub(super) fn serve(shared: &Shared, line: &mut Line, handle: NodeHandle) -> Cut {
    let mut serving = Serving { shared, handle, locks: Map::new(), last_lock: 0 };
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
    locks: Map<u32, BlockLock>,
    last_lock: u32,
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
        let mut answers = Vec::with_capacity(operations.len());
        for operation in operations {
            answers.push(self.run(line, operation)?);
        }
        self.shared.counters.operations.fetch_add(operations.len() as u64, Relaxed);
        line.send(Some(self.shared.hold), |out| {
            begin_answers(out, answers.len());
            answers.iter().for_each(|answer| answer.encode(out));
        })
    }

    fn run(&mut self, line: &Line, operation: &Operation<'_>) -> Result<Answer, Cut> {
        let handle = &mut self.handle;
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
            Operation::Free { addr } => done(handle.free(addr)),
            Operation::Lock { addr, mode, once } => self.lock(line, addr, mode, once)?,
            Operation::Unlock { lock } => {
                drop(self.locks.remove(&lock).ok_or(Cut::Malformed)?);
                Ok(Answer::Done)
            }
        };
        Ok(answer.unwrap_or_else(Answer::Failed))
    }

    /// Waits for a lock as long as there is somebody who wants it.
    fn lock(
        &mut self,
        line: &Line,
        addr: GlobalAddr,
        mode: LockMode,
        once: bool,
    ) -> Result<Result<Answer, Error>, Cut> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.handle.try_lock_block(addr, mode) {
                Err(error) => return Ok(Err(error)),
                Ok(Some(lock)) => {
                    self.last_lock = self.last_lock.wrapping_add(1);
                    self.locks.insert(self.last_lock, lock);
                    return Ok(Ok(Answer::Locked(self.last_lock)));
                }
                Ok(None) if once => return Ok(Ok(Answer::Busy)),
                Ok(None) => {}
            }
            if line.is_gone() || self.shared.stop.load(Relaxed) {
                return Err(Cut::Gone);
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
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
