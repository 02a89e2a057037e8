//! What chains went through in a run.

use crate::rack::Sum;

/// What chains went through in a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Stores that began.
    pub stores: u64,
    /// Of those, the ones that somebody ended.
    pub ended: u64,
    /// And those that were over with a node.
    pub lost: u64,
    /// Clients of stores.
    pub clients: u64,
    /// Values that were stored.
    pub puts: u64,
    /// Removed.
    pub deletes: u64,
    /// And read.
    pub gets: u64,
    /// Operations of which nobody knows what became.
    pub indeterminate: u64,
    /// Operations that failed, were not done, and were tried again.
    pub failed: u64,
    /// Operations for which there was no memory.
    pub no_memory: u64,
    /// Clients that died, and whose slots came back.
    pub swept: u64,
    /// Connections of clients to memory.
    pub connections: u64,
    /// Of those, the ones that began anew.
    pub anew: u64,
    /// Packets that the switch forwarded.
    pub forwarded: u64,
    /// Appends that were sent to the tail.
    pub steered: u64,
    /// Of those, the ones that would have gone elsewhere.
    pub moved: u64,
    /// Reads that were sent to the tail.
    pub reads: u64,
    /// Appends that were answered as refused, or of which the switch did not know what became.
    pub refused: u64,
    /// Tails that a new switch was told, and took.
    pub preloaded: u64,
    /// Allocations that were freed.
    pub freed: u64,
}

impl Seen {
    /// Operations on stores, and stores that began and ended.
    pub fn operations(&self) -> u64 {
        self.puts + self.deletes + self.gets + self.stores + self.ended
    }
}

impl Sum for Seen {
    fn add(&mut self, other: &Self) {
        self.stores += other.stores;
        self.ended += other.ended;
        self.lost += other.lost;
        self.clients += other.clients;
        self.puts += other.puts;
        self.deletes += other.deletes;
        self.gets += other.gets;
        self.indeterminate += other.indeterminate;
        self.failed += other.failed;
        self.no_memory += other.no_memory;
        self.swept += other.swept;
        self.connections += other.connections;
        self.anew += other.anew;
        self.forwarded += other.forwarded;
        self.steered += other.steered;
        self.moved += other.moved;
        self.reads += other.reads;
        self.refused += other.refused;
        self.preloaded += other.preloaded;
        self.freed += other.freed;
    }
}
