//! Operations on words that nobody waits for yet.
#![allow(unsafe_code)]

use rackmem::{Error, NodeHandle, Pending};

use super::{Asked, RackmemOperation, RackmemWords, Width, WordsHere};
use crate::handles::{Align256, Slot, close, end, kind, with, with_thread};
use crate::pointer::To;
use crate::rack::RackmemThread;
use crate::status::{Failure, RackmemStatus};

/// An operation in flight. It belongs to the `rackmem_thread` of its words.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemPending {
    /// 0: null.
    pub id: u64,
}

/// The same.
pub(crate) enum Posted {
    Wide(Pending<u64>),
    Narrow(Pending<u32>),
}

kind!(Posted, 6, Align256, 1 << 17);

impl Posted {
    fn poll(&self, handle: &mut NodeHandle) -> Option<Result<u64, Error>> {
        match self {
            Self::Wide(pending) => pending.poll(handle),
            Self::Narrow(pending) => pending.poll(handle).map(|old| old.map(u64::from)),
        }
    }

    fn wait(&self, handle: &mut NodeHandle) -> Result<u64, Error> {
        match self {
            Self::Wide(pending) => pending.clone().wait(handle),
            Self::Narrow(pending) => pending.clone().wait(handle).map(u64::from),
        }
    }
}

fn named(operation: i32) -> Result<RackmemOperation, Failure> {
    use RackmemOperation as Op;
    let all = [Op::Add, Op::And, Op::Or, Op::Xor, Op::Min, Op::Max, Op::Swap, Op::CompareExchange, Op::Load];
    all.into_iter().find(|op| *op as i32 == operation).ok_or_else(|| {
        let text = format_args!("there is no operation {operation}: take one of rackmem_operation");
        Failure::new(RackmemStatus::InvalidArgument, text)
    })
}

unsafe fn post<W: Width>(
    words: RackmemWords,
    index: usize,
    operation: i32,
    (operand, expected): (W, W),
    to: *mut RackmemPending,
    posted: impl FnOnce(Pending<W>) -> Posted,
) -> RackmemStatus {
    with::<WordsHere>(words.id, |turn, words| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(to, "pending", RackmemPending { id: 0 }) }?;
        let operation = Asked { which: named(operation)?, operand, expected }.operation();
        let pending = W::of(words).post(turn.handle(), index, operation)?;
        to.set(RackmemPending { id: Slot::open(posted(pending), Some(turn.slot()))? });
        Ok(RackmemStatus::Ok)
    })
}

/// Begins one of `rackmem_operation` on a word of 64 bits, and waits for nothing; `expected` counts for
/// `RACKMEM_COMPARE_EXCHANGE` only. Thousands may be in flight. `rackmem_pending_wait` or `rackmem_pending_poll` tells what
/// the word was. The OS thread that uses its thread.
///
/// # Safety
/// `pending` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_post(
    words: RackmemWords,
    index: usize,
    operation: i32,
    operand: u64,
    expected: u64,
    pending: *mut RackmemPending,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { post(words, index, operation, (operand, expected), pending, Posted::Wide) }
}

/// The same of a word of 32 bits. The OS thread that uses its thread.
///
/// # Safety
/// `pending` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_post32(
    words: RackmemWords,
    index: usize,
    operation: i32,
    operand: u32,
    expected: u32,
    pending: *mut RackmemPending,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { post(words, index, operation, (operand, expected), pending, Posted::Narrow) }
}

/// What the word was, if that is known already: then the handle is closed. `RACKMEM_BUSY`: not yet. With any other status the
/// operation has failed, and the handle is closed, too. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_pending_poll(pending: RackmemPending, old: *mut u64) -> RackmemStatus {
    let mut outcome = Ok(RackmemStatus::Ok);
    let polled = end::<Posted>(pending.id, |turn, posted| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::at(old, "old") }?;
        match posted.poll(turn.handle()) {
            None => {
                let text = "the operation is still in flight: poll again, or wait for it";
                return Err(Failure::new(RackmemStatus::Busy, text));
            }
            Some(Ok(was)) => to.set(was),
            Some(Err(why)) => outcome = Err(why),
        }
        Ok(())
    });
    ended(polled, outcome)
}

/// Waits for what the word was, and closes the handle, also if the operation has failed. The OS thread that uses its thread.
///
/// # Safety
/// `old` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_pending_wait(pending: RackmemPending, old: *mut u64) -> RackmemStatus {
    let mut outcome = Ok(RackmemStatus::Ok);
    let waited = end::<Posted>(pending.id, |turn, posted| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::at(old, "old") }?;
        match posted.wait(turn.handle()) {
            Ok(was) => to.set(was),
            Err(why) => outcome = Err(why),
        }
        Ok(())
    });
    ended(waited, outcome)
}

/// What came of it: the call, or the operation behind it.
fn ended(call: RackmemStatus, operation: Result<RackmemStatus, Error>) -> RackmemStatus {
    match operation {
        Err(why) if call == RackmemStatus::Ok => crate::status::guarded(|| Err(why.into())),
        _ => call,
    }
}

/// Forgets an operation: it is executed all the same, and nobody learns how it ended. Closing null does nothing. The OS thread that
/// uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_pending_close(pending: RackmemPending) -> RackmemStatus {
    close::<Posted>(pending.id, |_, _| Ok(()))
}

/// Waits until every operation on words that was begun through this thread has taken effect. It fails as the first one failed, since
/// the last flush, of those that have no result. The OS thread that uses `thread`.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_flush(thread: RackmemThread) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        turn.handle().flush()?;
        Ok(RackmemStatus::Ok)
    })
}
