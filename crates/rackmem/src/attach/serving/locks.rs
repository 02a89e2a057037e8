//! Locks that the daemon holds for an application, under numbers.
//!
//! What must always hold: who waits for a lock waits as long as there is an application that wants it, and no longer; what
//! an application has not said that it wrote is not written.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use live::actor::Wait;
use sorted::Map;
use wire::{GlobalAddr, Nanos};

use super::super::answer::Answer;
use super::super::line::{Cut, Line};
use super::super::server::Shared;
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::lock::{BlockLock, LockMode};
use crate::locked::HeldLock;

/// Between two attempts to get a block lock that somebody else has, at first and at most.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);
/// Whoever stands in line for a lock looks as often whether its application is still there, and goes to the end of the line.
const LOOKS: Nanos = Nanos::from_millis(250);

/// The locks of one application's thread. They are released when this goes.
#[derive(Default)]
pub(super) struct Locks {
    blocks: Map<u32, BlockLock>,
    held: Map<u32, HeldLock>,
    last: u32,
}

type Answered = Result<Result<Answer, Error>, Cut>;

impl Locks {
    fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    /// Waits for the lock of a block.
    pub(super) fn lock(
        &mut self,
        handle: &mut NodeHandle,
        (shared, line): (&Shared, &Line),
        addr: GlobalAddr,
        mode: LockMode,
        once: bool,
    ) -> Answered {
        let mut pause = SHORTEST_PAUSE;
        loop {
            match handle.try_lock_block(addr, mode) {
                Err(error) => return Ok(Err(error)),
                Ok(Some(lock)) => {
                    let (number, died) = (self.number(), lock.writer_that_died());
                    self.blocks.insert(number, lock);
                    return Ok(Ok(Answer::Locked(number, died)));
                }
                Ok(None) if once => return Ok(Ok(Answer::Busy)),
                Ok(None) => {}
            }
            wanted(shared, line)?;
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    pub(super) fn unlock(&mut self, lock: u32) -> Answered {
        drop(self.blocks.remove(&lock).ok_or(Cut::Malformed)?);
        Ok(Ok(Answer::Done))
    }

    /// Waits for a lock with its bytes.
    pub(super) fn enter(
        &mut self,
        handle: &mut NodeHandle,
        (shared, line): (&Shared, &Line),
        lock: (GlobalAddr, usize),
        (mode, is_headed): (LockMode, bool),
        wait: Wait,
    ) -> Answered {
        let (began, since) = (Instant::now(), handle.inner.memory(handle.node).locks.watches().now());
        loop {
            let (turn, is_last) = match wait {
                Wait::Forever => (Wait::AtMost(LOOKS), false),
                Wait::AtMost(most) => {
                    let waited = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    let left = Nanos(most.0.saturating_sub(waited));
                    (Wait::AtMost(left.min(LOOKS)), left <= LOOKS)
                }
                wait => (wait, true),
            };
            match HeldLock::enter_for(handle, lock, mode, turn, Some(since)) {
                Err(error) => return Ok(Err(error)),
                Ok(Some(held)) => {
                    // Here, so that it stays when the application dies: it may have told others of its number.
                    if is_headed && held.is_to_write() {
                        held.granted();
                    }
                    let (number, died, bytes) = (self.number(), held.writer_that_died(), held.bytes());
                    self.held.insert(number, held);
                    return Ok(Ok(Answer::Held(number, died, bytes)));
                }
                Ok(None) if is_last => return Ok(Ok(Answer::Busy)),
                Ok(None) => {}
            }
            wanted(shared, line)?;
        }
    }

    /// The application has left it.
    pub(super) fn leave(&mut self, lock: u32, bytes: Option<&[u8]>) -> Answered {
        let mut held = self.held.remove(&lock).ok_or(Cut::Malformed)?;
        if bytes.is_some_and(|bytes| !held.fill(bytes)) {
            return Err(Cut::Malformed);
        }
        drop(held);
        Ok(Ok(Answer::Done))
    }

    pub(super) fn end(&mut self, handle: &mut NodeHandle, lock: u32, is_lost: bool) -> Answered {
        let held = self.held.remove(&lock).filter(HeldLock::is_to_write).ok_or(Cut::Malformed)?;
        Ok(held.end(handle, is_lost).map(|()| Answer::Done))
    }
}

/// The application is still there to wait for something.
fn wanted(shared: &Shared, line: &Line) -> Result<(), Cut> {
    if line.is_gone() || shared.stop.load(Relaxed) { Err(Cut::Gone) } else { Ok(()) }
}
