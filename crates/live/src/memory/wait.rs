//! Waiting for another thread of this node that has a frame pinned.
//!
//! Pins last some ten nanoseconds unless the holder is preempted, so a thread spins very briefly and then
//! yields: with more threads than cores, the holder needs this core to go on.

use std::hint;

use crate::scheduling::give_way;

/// Pauses before the first yield; a pause is 10 to 50 ns.
const SPINS: u32 = 8;

/// Yields after which a thread that lets a waiting agent go first stops doing so: some 20 us when nothing
/// else wants the core, many times what the agent's turn takes.
const COURTESY: u32 = 64;

/// One wait.
#[derive(Default)]
pub(super) struct Wait {
    pauses: u32,
}

impl Wait {
    /// Waits a little.
    pub(super) fn pause(&mut self) {
        self.pauses = self.pauses.saturating_add(1);
        if self.pauses <= SPINS { hint::spin_loop() } else { give_way() }
    }

    /// True when this thread has let an agent go first for long enough.
    pub(super) fn has_been_courteous(&self) -> bool {
        self.pauses > SPINS + COURTESY
    }
}
