//! How a rack is set up, and each of its processes.

use std::time::Duration;

use live::scheduling::Scheduling;
use membership::Timing;
use wire::Nanos;

#[doc(inline)]
pub use live::config::{Config, ConfigError, MOST_LOCK_ENTRIES, MOST_SWITCH_ENTRIES};
pub use node::Directory;

/// What a process of a rack of processes needs to know beside the rack's [`Config`]. The same at all places, but for
/// `strict`, `scheduling`, `join_timeout` and `faults_in_place`; `map_base` where pointers are exchanged.
#[derive(Clone, Copy, Debug)]
pub struct ProcessConfig {
    /// When a node that is not heard of is given up, and what follows from that.
    pub timing: Timing,
    /// Every access looks at the clock, so that none is ever stale, not even in a process that was stopped for a while
    /// and declared dead meanwhile. Without this such a process may be given what it had cached until it has heard
    /// that it was declared dead.
    pub strict: bool,
    /// How the threads are scheduled that answer other nodes. Threads of applications ask for themselves:
    /// [`Scheduling::ask`].
    pub scheduling: Scheduling,
    /// How long a node may take to join.
    pub join_timeout: Duration,
    /// Where [mapped memory](crate::Mapping) lies in this process: a multiple of 1 GiB with 512 GiB free for each node that the
    /// rack may come to have, and for each memory with copies. The same in all processes that exchange pointers.
    pub map_base: u64,
    /// A thread that waits for [mapped memory](crate::Mapping) gets it itself, in a handler of SIGBUS, where otherwise a thread of
    /// the node is woken for it. A fault then takes about as long as the miss of a call (`docs/mapped.md`). In return system calls
    /// fail with `EFAULT` on blocks that are not there and pinned, and neither a handler of a signal that comes at any time nor
    /// the memory allocator may access mapped memory. On x86-64.
    pub faults_in_place: bool,
}

impl Default for ProcessConfig {
    /// A second until a node is given up, no strict leases, nothing of real time, half a minute to join; memory is mapped
    /// where nothing else takes the addresses.
    fn default() -> Self {
        Self {
            timing: Timing::new(Nanos(1_000_000_000)),
            strict: false,
            scheduling: Scheduling::Fair,
            join_timeout: Duration::from_secs(30),
            map_base: live::memory::pages::DEFAULT_BASE,
            faults_in_place: false,
        }
    }
}
