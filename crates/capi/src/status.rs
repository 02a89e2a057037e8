//! What calls return, and what the last failure on this thread was, in words.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rackmem::Error;

/// What a call has come to. `rackmem_message` says more about whatever is not `RACKMEM_OK`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RackmemStatus {
    /// Done.
    Ok = 0,
    /// The lock was not taken: somebody has it, or the time is over.
    Busy = 1,
    /// The lock was taken, and its data are poisoned: somebody ended while writing. It has to be unlocked like any other.
    Poisoned = 2,
    /// An argument is null, or makes no sense.
    InvalidArgument = 3,
    /// The node has no memory left.
    OutOfMemory = 4,
    /// There is no such lock: never created, freed, or of another length.
    NoSuchLock = 5,
    /// The data died with the node that had them.
    Lost = 6,
    /// The lock's home is down.
    NodeDown = 7,
    /// The other nodes take this one for dead. Close everything and join again.
    Fenced = 8,
    /// This thread does not hold the lock.
    NotHeld = 9,
    /// This thread holds the lock already, and would wait for itself.
    Deadlock = 10,
    /// The rack could not be opened or joined.
    CannotOpen = 11,
    /// A mistake in rackmem. What was in flight may have happened or not.
    Internal = 12,
}

/// A failure: its code, and what to say about it.
pub(crate) struct Failure {
    status: RackmemStatus,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: RackmemStatus, message: impl Display) -> Self {
        Self { status, message: message.to_string() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::OutOfMemory { .. } => RackmemStatus::OutOfMemory,
            Error::Unallocated { .. }
            | Error::WrongDiscipline { .. }
            | Error::WrongLength { .. }
            | Error::NotAnAllocation { .. } => RackmemStatus::NoSuchLock,
            Error::Lost { .. } => RackmemStatus::Lost,
            Error::NodeDown { .. } => RackmemStatus::NodeDown,
            Error::Fenced | Error::Detached => RackmemStatus::Fenced,
            // Whatever else there is, or will be, is about what was asked for.
            _ => RackmemStatus::InvalidArgument,
        };
        Self::new(status, error)
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn remember(message: &str) {
    // No message of ours has a zero inside; if one had, it would be cut there.
    let until = message.bytes().position(|byte| byte == 0).unwrap_or(message.len());
    let message = CString::new(&message[..until]).unwrap_or_default();
    // A thread that is just ending has nowhere to keep it.
    let _ = LAST.try_with(|last| last.replace(message));
}

/// Runs what C has called. No panic gets out.
pub(crate) fn guarded(work: impl FnOnce() -> Result<RackmemStatus, Failure>) -> RackmemStatus {
    // What is left half done is behind pointers that C has; the message tells not to count on it.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => {
            remember(&failure.message);
            failure.status
        }
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            remember(&format!("a mistake in rackmem: {said}"));
            RackmemStatus::Internal
        }
    }
}

/// What the last call of this thread that failed had to say. Valid until the thread's next call of rackmem; empty if none
/// has failed.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
