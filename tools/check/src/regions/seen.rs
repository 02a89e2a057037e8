//! What words and objects went through in a run.

use wire::{NodeId, Rules};

use super::nic::Nic;
use super::world::Regions;
use crate::rack::Sum;

/// What words and objects went through in a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Regions that began, and of which their thread was told.
    pub begun: u64,
    /// Regions that ended, likewise.
    pub ended: u64,
    /// Allocations of them that were freed.
    pub freed: u64,
    /// Operations on words that were executed.
    pub changes: u64,
    /// Of a region that had ended: operations that were refused.
    pub refused: u64,
    /// Operations of which nobody knows whether they were executed.
    pub indeterminate: u64,
    /// Objects that were read whole.
    pub reads: u64,
    /// And those that somebody was writing.
    pub torn: u64,
    /// Objects that were written.
    pub writes: u64,
    /// Calls that were refused: there is no such region, or somebody is in the way.
    pub calls_refused: u64,
    /// Connections that broke, and began anew.
    pub broken: u64,
    /// Requests that came again, and were answered again.
    pub duplicates: u64,
    /// Times that a device sent packets again.
    pub repeated: u64,
}

impl Seen {
    /// Operations on words and objects, and regions that began, ended and were freed.
    pub fn operations(&self) -> u64 {
        self.changes + self.reads + self.torn + self.writes + self.begun + self.ended + self.freed
    }

    fn count<R: Rules>(&mut self, nic: &Nic<R>) {
        let counters = nic.device.counters();
        self.broken += nic.broken;
        self.duplicates += counters.duplicates;
        self.repeated += counters.went_back + counters.timed_out;
    }
}

impl Sum for Seen {
    fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.ended += other.ended;
        self.freed += other.freed;
        self.changes += other.changes;
        self.refused += other.refused;
        self.indeterminate += other.indeterminate;
        self.reads += other.reads;
        self.torn += other.torn;
        self.writes += other.writes;
        self.calls_refused += other.calls_refused;
        self.broken += other.broken;
        self.duplicates += other.duplicates;
        self.repeated += other.repeated;
    }
}

impl<R: Rules> Regions<R> {
    /// A node's device is about to be gone.
    pub(super) fn count(&mut self, node: NodeId) {
        self.seen.count(&self.nics[node.index()]);
    }

    pub(crate) fn operations(&self) -> u64 {
        self.seen.operations()
    }

    pub(crate) fn seen(&self) -> Seen {
        let mut seen = self.seen.clone();
        self.nics.iter().for_each(|nic| seen.count(nic));
        seen
    }
}
