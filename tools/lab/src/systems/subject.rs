//! What the experiments need of a system besides running.

use rackmem::GlobalAddr;
use sim::system::System;
use simulated::Shape;

use crate::load::past::Resident;

/// What a system has counted since it began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tally {
    /// Accesses that needed nobody but the thread itself.
    pub(crate) hits: u64,
    /// Messages that home agents sent and received.
    pub(crate) home_packets: u64,
    /// Requests that were refused, to be tried again.
    pub(crate) refused: u64,
    /// Blocks that made room for others.
    pub(crate) evictions: u64,
    /// Directory entries in the switch, now.
    pub(crate) switch_entries: u64,
}

/// A system under test.
pub(crate) trait Subject: System + 'static {
    /// What addresses it has, and its unit of coherence.
    fn shape(&self) -> Shape;

    /// Blocks that a node's cache has room for; none if there is no cache.
    fn room(&self) -> u64;

    /// Before the run, and before anything is cached: caches hold these blocks, and used each later than those before it.
    fn hold(&mut self, residents: impl Iterator<Item = Resident>);

    /// Before the run, after that: this block is hot.
    fn hot(&mut self, _addr: GlobalAddr) {}

    /// What was counted.
    fn tally(&self) -> Tally;
}
