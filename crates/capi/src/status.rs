//! What calls return, and what the last failure on this OS thread was, in words.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rackmem::{Error, NameError, ReadError, RegionsError};

/// What a call has come to. `rackmem_message` says more about whatever is not `RACKMEM_OK`, and what to do.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RackmemStatus {
    /// Done.
    Ok = 0,
    /// Not now: somebody else has it, or the time or the attempts are over.
    Busy = 1,
    /// The lock was taken, and its data are poisoned: somebody ended while writing. It has to be unlocked like any other.
    Poisoned = 2,
    /// An argument is null, or makes no sense.
    InvalidArgument = 3,
    /// The node has no memory left.
    OutOfMemory = 4,
    /// Nothing of this kind is at the address: never allocated, freed, of another kind or another length.
    Unallocated = 5,
    /// The data died with the node that had them. What had a name is made anew by `RACKMEM_CREATE_ANEW`.
    Lost = 6,
    /// The node whose memory it is in is down.
    NodeDown = 7,
    /// The other nodes take this one for dead. Close everything and join again.
    Fenced = 8,
    /// The lock is not held, or not so.
    NotHeld = 9,
    /// This thread holds the lock already, and would wait for itself.
    Deadlock = 10,
    /// The rack could not be opened, joined or attached to.
    CannotOpen = 11,
    /// A mistake in rackmem. What was in flight may have happened or not.
    Internal = 12,
    /// The handle is null, closed, of another kind, or none at all.
    BadHandle = 13,
    /// Another OS thread is using this `rackmem_thread`.
    WrongThread = 14,
    /// The object has another version by now.
    Changed = 15,
    /// The key has no value, or nothing has this name.
    NotFound = 16,
    /// The value does not fit the buffer.
    TooLong = 17,
    /// The object's last writer died in it. Write the whole object.
    HalfWritten = 18,
    /// The connection failed in the middle: nobody knows whether the operation was executed.
    Indeterminate = 19,
    /// The daemon has gone that this process was attached to. Close everything and attach again.
    Detached = 20,
    /// There are as many as there can be: handles, block locks, clients of chains, threads at a daemon, names,
    /// regions of a lock.
    TooMany = 21,
    /// Something has this name, and something new was to be made.
    Exists = 22,
    /// What has this name is of another kind, length or type: `rackmem_message` shows both.
    Differs = 23,
    /// The lock guards part of that memory already.
    Overlaps = 24,
}

impl RackmemStatus {
    const ALL: [(Self, &'static CStr); 25] = [
        (Self::Ok, c"done"),
        (Self::Busy, c"not now: somebody else has it, or the time or the attempts are over"),
        (Self::Poisoned, c"the lock is held, and its data are poisoned: somebody ended while writing"),
        (Self::InvalidArgument, c"an argument is null or makes no sense"),
        (Self::OutOfMemory, c"the node has no memory left"),
        (Self::Unallocated, c"nothing of this kind is at the address"),
        (Self::Lost, c"the data died with the node that had them"),
        (Self::NodeDown, c"the node whose memory it is in is down"),
        (Self::Fenced, c"the other nodes take this one for dead"),
        (Self::NotHeld, c"the lock is not held, or not so"),
        (Self::Deadlock, c"this thread holds the lock already"),
        (Self::CannotOpen, c"the rack cannot be opened"),
        (Self::Internal, c"a mistake in rackmem"),
        (Self::BadHandle, c"the handle is null, closed, of another kind, or none at all"),
        (Self::WrongThread, c"another OS thread is using this rackmem_thread"),
        (Self::Changed, c"the object has another version by now"),
        (Self::NotFound, c"the key has no value, or nothing has this name"),
        (Self::TooLong, c"the value does not fit the buffer"),
        (Self::HalfWritten, c"the object's last writer died in it"),
        (Self::Indeterminate, c"the connection failed: the operation may have been executed or not"),
        (Self::Detached, c"the daemon has gone that this process was attached to"),
        (Self::TooMany, c"there are as many as there can be"),
        (Self::Exists, c"something has this name already"),
        (Self::Differs, c"what has this name is of another kind, length or type"),
        (Self::Overlaps, c"the lock guards part of that memory already"),
    ];
}

/// A failure: its code, and what to say about it.
pub(crate) struct Failure {
    status: RackmemStatus,
    message: String,
}

impl Failure {
    #[cold]
    pub(crate) fn new(status: RackmemStatus, message: impl Display) -> Self {
        Self { status, message: message.to_string() }
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        let status = match error {
            Error::OutOfMemory { .. } => RackmemStatus::OutOfMemory,
            Error::Unallocated { .. }
            | Error::WrongDiscipline { .. }
            | Error::WrongLength { .. }
            | Error::NotAnAllocation { .. } => RackmemStatus::Unallocated,
            Error::Lost { .. } => RackmemStatus::Lost,
            Error::NodeDown { .. } => RackmemStatus::NodeDown,
            Error::Fenced => RackmemStatus::Fenced,
            Error::Detached => RackmemStatus::Detached,
            Error::HalfWritten { .. } => RackmemStatus::HalfWritten,
            Error::Broken { .. } => RackmemStatus::Indeterminate,
            Error::TooManyLocks { .. }
            | Error::TooManyClients { .. }
            | Error::TooManyPinned { .. }
            | Error::TooManyAttached { .. } => RackmemStatus::TooMany,
            // Whatever else there is, or will be, is about what was asked for.
            _ => RackmemStatus::InvalidArgument,
        };
        Self::new(status, error)
    }
}

impl From<RegionsError> for Failure {
    #[cold]
    fn from(error: RegionsError) -> Self {
        let status = match error {
            RegionsError::TooMany => RackmemStatus::TooMany,
            RegionsError::NoRoom { .. } => RackmemStatus::TooLong,
            RegionsError::NoSuchRegion { .. } => RackmemStatus::NotFound,
            RegionsError::Overlaps { .. } => RackmemStatus::Overlaps,
            RegionsError::IsRead => RackmemStatus::NotHeld,
            RegionsError::Failed(why) => return why.into(),
            // Whatever else there is, or will be, is about what was asked for.
            _ => RackmemStatus::InvalidArgument,
        };
        Self::new(status, error)
    }
}

impl From<ReadError> for Failure {
    #[cold]
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Failed(why) => why.into(),
            ReadError::Torn { attempts } => Self::new(
                RackmemStatus::Busy,
                format_args!("the object was written in each of {attempts} attempts to read it: allow more"),
            ),
        }
    }
}

impl From<NameError> for Failure {
    #[cold]
    fn from(error: NameError) -> Self {
        let status = match &error {
            NameError::NotFound { name } => {
                let text = format_args!(
                    "nothing is named {name:?}: make it with RACKMEM_OPEN_OR_CREATE; rackmem_names lists what there is"
                );
                return Self::new(RackmemStatus::NotFound, text);
            }
            NameError::Lost { name, home } => {
                let text = format_args!(
                    "node {}, which kept the name {name:?}, has died, and what it named is lost: restore it with RACKMEM_CREATE_ANEW, \
                     once that node is back",
                    home.0
                );
                return Self::new(RackmemStatus::Lost, text);
            }
            NameError::Exists { .. } => RackmemStatus::Exists,
            NameError::Differs { .. } => RackmemStatus::Differs,
            NameError::Full { .. } => RackmemStatus::TooMany,
            NameError::Failed(why) => return (*why).into(),
            // Whatever else there is, or will be, is about the name.
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
    // What is left half done is behind handles that C has; the message tells not to count on it.
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

/// What the last call of this OS thread that failed had to say. Valid until the thread's next call of rackmem; empty if none has
/// failed. Any thread, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// What a status means, in a few words that stay where they are; also of numbers that are none. Any thread, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_status_text(status: i32) -> *const c_char {
    let found = RackmemStatus::ALL.iter().find(|(each, _)| *each as i32 == status);
    found.map_or(c"no status of rackmem", |(_, text)| *text).as_ptr()
}

/// The version of the library that runs: `RACKMEM_VERSION` of the header that it was built with. Programs that were built with a
/// header of the same major version (while that is 0: the same minor version) work with it. Any thread, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_version() -> u32 {
    let part = |text: &str| text.parse::<u32>().unwrap_or(0);
    part(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
        + part(env!("CARGO_PKG_VERSION_MINOR")) * 1000
        + part(env!("CARGO_PKG_VERSION_PATCH"))
}
