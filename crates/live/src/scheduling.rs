//! How the scheduler treats the threads of a rack that answer others, and how they give their core away.
//!
//! These threads do a little at a time, and others wait for it. There are two ways to be let in soon, also on a core that
//! an application keeps busy:
//! - *Fair*: a short slice (Linux 6.12 and later). It changes nobody's share, so a thread that has had more than its share
//!   waits for the computing thread's slice all the same: some milliseconds.
//! - *Real time*: before every thread that is not. It has to be permitted, and such a thread must never wait for an ordinary
//!   one without sleeping, or the ordinary one does not run on this core: so waits sleep at once
//!   ([`Oversubscription::of`](crate::waiting::Oversubscription::of)), and [`give_way`] sleeps instead of yielding.
//!
//! Unsafe code: system calls that the standard library and rustix do not have.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::time::Duration;
use std::{fmt, io, thread};

/// How threads that answer other nodes are scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Scheduling {
    /// As every other thread, with a short slice where the kernel knows that.
    #[default]
    Fair,
    /// Before all ordinary threads (`SCHED_FIFO`). For racks whose applications compute on all cores.
    Realtime,
}

/// The system does not let this process have real-time threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRealtime {
    /// The system's reason (`errno`).
    pub os_error: i32,
}

impl fmt::Display for NoRealtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this process may not have real-time threads ({}): give it CAP_SYS_NICE or a limit (`ulimit -r 1`), or let its threads be scheduled fairly",
            io::Error::from_raw_os_error(self.os_error)
        )
    }
}

impl std::error::Error for NoRealtime {}

/// The shortest slice that Linux grants, in nanoseconds.
#[cfg(target_os = "linux")]
const SHORTEST: u64 = 100_000;
/// Above every ordinary thread, and below whatever else of real time the machine has.
#[cfg(target_os = "linux")]
const LOWEST_REALTIME: u32 = 1;
/// What a real-time thread sleeps where another one would yield: as short as a wake-up takes.
const GIVE_WAY_FOR: Duration = Duration::from_micros(50);

thread_local! {
    /// This thread is let in before ordinary ones.
    static IS_REALTIME: Cell<bool> = const { Cell::new(false) };
}

/// Lets other threads run that have what this one waits for, for a moment.
pub fn give_way() {
    if IS_REALTIME.get() { thread::sleep(GIVE_WAY_FOR) } else { thread::yield_now() }
}

/// `struct sched_attr` of sched(7), in its first version.
#[cfg(target_os = "linux")]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

#[cfg(target_os = "linux")]
impl Attributes {
    fn of(policy: i32, flags: i32) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            policy: policy as u32,
            flags: flags as u64,
            nice: 0,
            priority: 0,
            runtime: 0,
            deadline: 0,
            period: 0,
        }
    }

    /// Asks for the calling thread.
    fn ask(&self) -> io::Result<()> {
        // SAFETY: the kernel reads `size` bytes from the address, which is that many bytes of a value that lives through
        // the call; thread 0 is the calling one.
        let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(self), 0) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Asks for a short slice for the calling thread. Also for threads of an application that wait for other nodes often, and do
/// little between two waits. Where the kernel does not know this, nothing changes.
pub fn ask_for_short_slice() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: asks for a value of the calling thread; no memory is involved.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let short = Attributes { nice, runtime: SHORTEST, ..Attributes::of(libc::SCHED_OTHER, 0) };
        // An older kernel, or a policy that somebody has set on purpose: both are fine.
        let _ = short.ask();
    }
}

impl Scheduling {
    /// Asks for the calling thread. Threads that a real-time thread begins are ordinary ones.
    ///
    /// # Errors
    /// If real time is not permitted, or the system is not Linux.
    pub fn ask(self) -> Result<(), NoRealtime> {
        match self {
            Self::Fair => ask_for_short_slice(),
            #[cfg(target_os = "linux")]
            Self::Realtime => {
                let first = Attributes {
                    priority: LOWEST_REALTIME,
                    ..Attributes::of(libc::SCHED_FIFO, libc::SCHED_FLAG_RESET_ON_FORK)
                };
                first
                    .ask()
                    .map_err(|error| NoRealtime { os_error: error.raw_os_error().unwrap_or(libc::EPERM) })?;
                IS_REALTIME.set(true);
            }
            #[cfg(not(target_os = "linux"))]
            Self::Realtime => return Err(NoRealtime { os_error: libc::ENOSYS }),
        }
        Ok(())
    }

    /// Whether it is permitted, found out by a thread that does nothing else.
    ///
    /// # Errors
    /// If it is not.
    ///
    /// # Panics
    /// If the system gives no thread.
    pub fn check(self) -> Result<(), NoRealtime> {
        match self {
            Self::Fair => Ok(()),
            Self::Realtime => thread::spawn(move || self.ask()).join().expect("a thread that only asks"),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn policy() -> i32 {
        // SAFETY: asks for a value of the calling thread; no memory is involved.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn threads_that_a_real_time_thread_begins_are_ordinary_ones() {
        let asked = thread::spawn(|| {
            Scheduling::Realtime.ask()?;
            Ok((policy() & !libc::SCHED_RESET_ON_FORK, thread::spawn(policy).join().unwrap()))
        });
        match asked.join().unwrap() {
            Ok(policies) => assert_eq!(policies, (libc::SCHED_FIFO, libc::SCHED_OTHER)),
            Err(NoRealtime { os_error }) => {
                eprintln!("not permitted here");
                assert_eq!(os_error, libc::EPERM);
            }
        }
    }

    #[test]
    fn whether_it_is_permitted_is_found_out_by_another_thread() {
        let before = policy();
        let _ = Scheduling::Realtime.check();
        assert_eq!(policy(), before);
    }

    #[test]
    fn an_ordinary_thread_goes_on_while_a_real_time_one_waits_for_it_on_the_same_core() {
        use std::sync::atomic::{AtomicBool, Ordering};
        static DONE: AtomicBool = AtomicBool::new(false);
        let one_core = || {
            // SAFETY: a set of cores is plain bits, and all zeroes is the empty one; the kernel reads it during the call.
            unsafe {
                let mut cores: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(0, &mut cores);
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const cores)
            }
        };
        let waits = thread::spawn(move || {
            one_core();
            if Scheduling::Realtime.ask().is_err() {
                eprintln!("not permitted here");
            }
            let other = thread::spawn(|| DONE.store(true, Ordering::Release));
            let mut given = 0_u32;
            while !DONE.load(Ordering::Acquire) {
                give_way();
                given += 1;
            }
            other.join().unwrap();
            given
        });
        // Who yields instead does so a million times, until the kernel takes its core away.
        let given = waits.join().unwrap();
        assert!(given < 100_000, "{given} times");
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let message = NoRealtime { os_error: libc::EPERM }.to_string();
        assert!(message.contains("Operation not permitted") && message.contains("ulimit -r"), "{message}");
    }
}
