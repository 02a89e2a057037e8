//! Where a switch's coherence program runs if not in the switch's process: at the ports, which see every packet first.
//!
//! The process keeps all else: who is alive, epochs, locks, chains. What must always hold: the program is in the
//! incarnation that the process has begun last, and in no other.

use switch::coherence::Dump;
use wire::{NodeId, SwitchEpoch};

/// A coherence program elsewhere.
pub trait DataPlane: Send {
    /// Begins an incarnation, and returns what the former one held. When it returns, no packet of the former one is
    /// under way in the program any more.
    fn begin_epoch(&mut self, epoch: SwitchEpoch, shadow: NodeId) -> Dump;

    /// Looks after what the program has to know of nodes. Called whenever the process looks for messages.
    fn look(&mut self);

    /// What the program has done, and holds.
    fn report(&mut self) -> PlaneReport;
}

/// What a program elsewhere has done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlaneReport {
    /// Entries in its directory.
    pub occupancy: u64,
    /// Packets that it took.
    pub taken: u64,
    /// Of those, how many it dropped.
    pub dropped: u64,
    /// What it counted of datagrams, by name.
    pub datagrams: Vec<(&'static str, u64)>,
}
