//! Asks the scheduler for a short slice.
//!
//! The threads that answer other nodes do a little at a time, and others wait for it. Linux (6.12 and later) lets a
//! thread ask for a shorter slice than usual: when it wakes up it is let in sooner, also on a core that an application
//! keeps busy, and it pays for that by being let in for less long. It changes nobody's share. Where the kernel does not
//! know this, nothing changes.
//!
//! Unsafe code: a system call that the standard library and rustix do not have.
#![allow(unsafe_code)]

/// The shortest slice that Linux grants, in nanoseconds.
const SHORTEST: u64 = 100_000;

/// `struct sched_attr` of sched(7), in its first version.
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

/// Asks for the calling thread. Its nice value stays as it is. Also for threads of an application that wait for other
/// nodes often, and do little between two waits.
pub fn ask() {
    // SAFETY: asks for a value of the calling thread; no memory is involved.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: SHORTEST,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes from the address, which is that many bytes of a value that lives through
    // the call; thread 0 is the calling one.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    // An older kernel, or a policy that somebody has set on purpose: both are fine.
    let _ = done;
}
