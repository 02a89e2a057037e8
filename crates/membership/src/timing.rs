//! The times that membership goes by; all of them follow from one, the timeout.
//!
//! What must always hold: a lease is shorter than the timeout by more than clocks can drift apart during one.

use wire::Nanos;

/// How long everything takes. Coordinator and members of a rack are given the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// A member that the coordinator has not heard for so long is declared dead.
    pub timeout: Nanos,
    /// A rack that starts waits so long for the nodes that are missing, from the first node on.
    pub form: Nanos,
}

impl Timing {
    /// With this timeout; a rack that starts waits twice as long for missing nodes.
    ///
    /// # Panics
    /// If the timeout is under a microsecond: its parts would be nothing.
    pub const fn new(timeout: Nanos) -> Self {
        assert!(timeout.0 >= 1_000);
        Self { timeout, form: Nanos(timeout.0.saturating_mul(2)) }
    }

    /// Between two BEATs of a member. Seven may be lost in a row.
    pub const fn heartbeat(self) -> Nanos {
        Nanos(self.timeout.0 / 8)
    }

    /// Between two BEATs of a member that waits for a view, or has no lease.
    pub const fn retry(self) -> Nanos {
        Nanos(self.timeout.0 / 32)
    }

    /// How long a lease runs, from the moment at which the BEAT was sent that it answers. The coordinator counts the
    /// timeout from when it received that BEAT, which is later. The sixteenth between them is for clocks that
    /// run at different rates: good for 6 %, and clocks of machines differ by 0.02 %.
    pub const fn lease(self) -> Nanos {
        Nanos(self.timeout.0 - self.timeout.0 / 16)
    }

    /// A member that is heard, but has not begun an epoch so long after it could, gets no more leases.
    pub const fn grace(self) -> Nanos {
        Nanos(self.timeout.0 / 2)
    }
}
