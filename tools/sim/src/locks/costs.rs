//! What takes how much processor time in GCS. One set for all figures.
//!
//! Locks are in the kernel there: GCS is an extension of MIND's cache controller, which handles page faults, requests and
//! invalidations in the kernel (GCS, section 4.1). So a thread that asks goes the way of a page fault, and whatever leaves a
//! blade is unmapped there first. MIND (SOSP '21) has published what that path takes as a whole: some 9 us for a page from
//! the memory blade, and some 18 us where another blade has modified it (*unverified*: from memory, not looked up again for
//! this file). The hardware of this rack takes 2.9 us for a page and its request ([`crate::hardware`]). What is left of the
//! 9 us is the kernel's; the parts are estimated, their sum is not.

use wire::{LockEnd, LockKind, LockPacket, Nanos};

use crate::coherence;

/// Processor times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// A thread enters a lock that is here, in a system call of 0.4 us: estimated, a call into a kernel that isolates its
    /// page tables, in a virtual machine.
    pub enter: Nanos,
    /// It leaves: the same.
    pub leave: Nanos,
    /// It looks at the region, or changes it: 1 KB that the processor's caches have, 16 lines of some 12 ns (estimated).
    pub access: Nanos,
    /// From a thread's call to its request: MIND's way from the fault to the posted request. A third of the kernel's 6 us.
    pub ask: Nanos,
    /// From the answer's completion until the thread goes on: two thirds of the 6 us, for the completion, the page table,
    /// and the return.
    pub arrive: Nanos,
    /// A region is unmapped before it goes: what is left of the 9 us that an invalidation adds in MIND after its two more
    /// trips and the flush of a page to memory (4 us on this hardware), and `note`.
    pub unmap: Nanos,
    /// The kernel takes in a message that no thread waits for: estimated.
    pub note: Nanos,
    /// A home decides, or takes data: nothing, where it is a memory blade.
    pub home: Nanos,
    /// A thread that sleeps for another thread of its blade goes on: a futex's wake-up, through the scheduler. Estimated.
    pub wake: Nanos,
}

impl Costs {
    /// What each field says.
    pub const PAPER: Self = Self {
        enter: Nanos(400),
        leave: Nanos(400),
        access: Nanos(200),
        ask: Nanos(2_000),
        arrive: Nanos(4_000),
        unmap: Nanos(4_000),
        note: Nanos(1_000),
        home: Nanos::ZERO,
        wake: Nanos(2_000),
    };

    /// Locks in a library, as coherence is: the handlers of [`coherence::Costs::PAPER`](crate::coherence::Costs::PAPER) that do the
    /// like, counted there; a gate is one atomic instruction on a line that another core had (50 ns, as in `Costs::MIND`
    /// there). What leaves a node is unmapped by closing its gate, and a thread that waits polls.
    pub const LIBRARY: Self = Self {
        enter: Nanos(50),
        leave: Nanos(50),
        access: Nanos(50),
        ask: coherence::Costs::PAPER.miss,
        arrive: coherence::Costs::PAPER.answer,
        unmap: Nanos::ZERO,
        note: coherence::Costs::PAPER.give,
        home: coherence::Costs::PAPER.decide,
        wake: Nanos::ZERO,
    };

    /// Of handling a packet where it is going.
    pub const fn handling(&self, packet: &LockPacket) -> Nanos {
        match (packet.to, packet.kind) {
            (LockEnd::Switch, _) => Nanos::ZERO,
            (LockEnd::Home(_), _) => self.home,
            // The NIC writes them where they belong. What follows is done when the verdict is there.
            (LockEnd::Agent(_), LockKind::Data) => Nanos::ZERO,
            (LockEnd::Agent(_), LockKind::Granted | LockKind::Lent | LockKind::Hand) => self.arrive,
            (LockEnd::Agent(_), _) => self.note,
        }
    }
}
