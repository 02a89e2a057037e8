//! What the program is built for: the control plane's choice, once.

use wire::Nanos;

/// How words are bound to queue pairs: see [`binding`](super::binding).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// Bound queue pairs to the memory. 0: each atomic goes on its client's own.
    pub queue_pairs: usize,
    /// Numbers that one of them may have in flight: a power of two.
    pub window: u32,
    /// Of those, atomics: what the memory's NIC can replay, a power of two. Real ones: 16.
    pub atomics: u32,
    /// A compare-and-swap that finds nothing to compare becomes a WRITE.
    pub writes: bool,
}

impl Binding {
    /// None.
    pub const NONE: Self = Self { queue_pairs: 0, window: 256, atomics: 16, writes: false };

    /// One queue pair for all words: no two atomics wait for each other's locks.
    pub const ONE: Self = Self { queue_pairs: 1, ..Self::NONE };

    /// True if clients may post both steps of an append at once (`chain::client::Client::swapping_at_once`): then they are on one queue pair. Where
    /// words are bound, the compare-and-swap is on another one than the WRITE of its entry, which may be lost or late, and would put an entry
    /// into its chain that is not in memory. Whoever makes clients of a switch asks this of its binding.
    pub const fn lets_clients_swap_at_once(&self) -> bool {
        self.queue_pairs == 0
    }
}

/// What the program is built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteeringConfig {
    /// How many keys have an index at most. None: nothing is steered.
    pub keys: usize,
    /// The hottest keys that are held; 0 is the store without steering, and as many as there are indexes are all that fit.
    pub top: usize,
    /// Connections that are steered; those of others pass as they are.
    pub connections: usize,
    /// Numbers that a requester has in flight at most (its window, and the packets of one READ request): a power of two.
    pub window: u32,
    /// Cells for entries that are outstanding: a power of two, 256 or more.
    pub slots: usize,
    /// Reads of so many bytes at most are sent to the tail, too: no more than a packet carries, or a value would be put together of two.
    /// 0: none. Clients must expect it, and slots must stay in quarantine for longer than a cursor counts, and `lifetime`, and a request is in flight.
    pub reads: u32,
    /// Reads are sent to tails whose appends are not acknowledged yet, too. What they bring passes when they are, which takes two more passes
    /// for the answer. Otherwise they pass as they are as long as something is in flight to the tail. A restart of the switch then ends the connections
    /// that a READ is brought to before they are known again.
    pub reads_ahead: bool,
    /// How long the switch may take what it knows of tails for true: less than it takes to use a slot 256 times, each with a quarantine.
    pub lifetime: Nanos,
    /// The same of whose entry was written to a slot, in such times: reads are not made wrong by that, and need it for longer.
    pub slot_lifetimes: u32,
    /// Whether words are bound to queue pairs.
    pub binding: Binding,
}

impl Default for SteeringConfig {
    fn default() -> Self {
        Self {
            keys: 100_000,
            top: usize::MAX,
            connections: 64,
            window: 256,
            slots: 1 << 14,
            reads: 0,
            reads_ahead: true,
            lifetime: Nanos::from_millis(1000),
            slot_lifetimes: 1,
            binding: Binding::NONE,
        }
    }
}
