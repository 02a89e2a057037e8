//! What a process says that ends because of an access which the rack cannot have: of a child of the process that mapped the
//! memory, through a pointer into a mapping that was closed, or to what a lock guards that is not held.
//!
//! Such an access raises SIGSEGV, as the range has no page there. A handler writes one line and lets the signal do what it does;
//! signals for other addresses go to whoever had the handler before. A program that takes the signal for itself later has its
//! own last words.
//!
//! Unsafe code: a signal handler. It uses its stack, atomics, `write` and `sigaction`, which may all be used there.
#![allow(unsafe_code)]

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{
    AtomicI32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use wire::GlobalAddr;

use super::signals::{Handled, default_action};

/// Ranges of one process: one a node, and few processes have more than one.
const MOST: usize = 64;
static STARTS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static ENDS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// The process that has mapped something.
static PROCESS: AtomicI32 = AtomicI32::new(0);
static HANDLED: Handled = Handled::new(libc::SIGSEGV);
/// Ranges that locks guard, of which a process can say which lock it is.
const MOST_GUARDED: usize = 1024;
static GUARDED: [Guarded; MOST_GUARDED] = [const { Guarded::none() }; MOST_GUARDED];

/// A range that a lock guards.
struct Guarded {
    start: AtomicUsize,
    end: AtomicUsize,
    lock: AtomicU64,
}

impl Guarded {
    const fn none() -> Self {
        Self { start: AtomicUsize::new(0), end: AtomicUsize::new(0), lock: AtomicU64::new(0) }
    }
}

/// From now on whoever accesses this range while the lock is not held says so, until [`unguard`]. Without space for it, they say less.
pub(super) fn guard(range: &Range<usize>, lock: GlobalAddr) {
    let free = |it: &&Guarded| it.start.compare_exchange(0, range.start, Relaxed, Relaxed).is_ok();
    if let Some(it) = GUARDED.iter().find(free) {
        it.lock.store(lock.bits(), Relaxed);
        it.end.store(range.end, Release);
    }
}

/// The range that starts there is nothing that a lock guards any more.
pub(super) fn unguard(start: usize) {
    if let Some(it) = GUARDED.iter().find(|it| it.start.load(Relaxed) == start) {
        it.end.store(0, Relaxed);
        it.start.store(0, Release);
    }
}

/// The lock that guards what is at an address.
fn lock_of(at: usize) -> Option<GlobalAddr> {
    let it = GUARDED.iter().find(|it| at < it.end.load(Acquire) && at >= it.start.load(Relaxed))?;
    Some(GlobalAddr::from_bits(it.lock.load(Relaxed)))
}

/// From now on an access to this range that cannot be made has last words.
pub(super) fn prepare(range: Range<usize>) {
    PROCESS.store(std::process::id().cast_signed(), Release);
    if !STARTS.iter().any(|start| start.load(Relaxed) == range.start) {
        // Without space for it, the process ends without a word.
        let free =
            STARTS.iter().position(|start| start.compare_exchange(0, range.start, Release, Relaxed).is_ok());
        if let Some(index) = free {
            ENDS[index].store(range.end, Release);
        }
    }
    // Who has run out of stack has words, too.
    HANDLED.by(on_signal, libc::SA_ONSTACK);
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO the signal's information.
    let at = unsafe { (*info).si_addr() } as usize;
    let ours = |index: usize| (STARTS[index].load(Acquire)..ENDS[index].load(Acquire)).contains(&at);
    if let Some(index) = (0..MOST).find(|index| ours(*index)) {
        say(at, STARTS[index].load(Relaxed));
        // The access is made again, and does what it does without a handler.
        default_action(signal);
    } else {
        HANDLED.pass_on(signal, info, context);
    }
}

fn say(at: usize, start: usize) {
    let addr = super::addr_at(at - start);
    let is_child = std::process::id().cast_signed() != PROCESS.load(Relaxed);
    let mut line = Line { bytes: [0; 256], len: 0 };
    // A line that is too long is cut.
    let _ = write!(line, "rackmem: {addr} at {at:#x} cannot be accessed: ");
    let _ = match lock_of(at) {
        _ if is_child => line
            .write_str("a child does not have its parent's mappings; join the rack in the process that maps"),
        Some(lock) => {
            write!(
                line,
                "it is guarded by the lock at {lock}, which is not held here, or is held to read only"
            )
        }
        None => line.write_str("it is not mapped, or not any more"),
    };
    let _ = writeln!(line, ".");
    // SAFETY: writes so many bytes of a buffer that lives through the call.
    let written = unsafe { libc::write(2, line.bytes.as_ptr().cast(), line.len) };
    // Nobody may listen.
    let _ = written;
}

/// A line on the stack.
struct Line {
    bytes: [u8; 256],
    len: usize,
}

impl std::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let free = &mut self.bytes[self.len..];
        let len = free.len().min(text.len());
        free[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        Ok(())
    }
}
