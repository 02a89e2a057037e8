//! What the program has done, and what it has left, by cause.

wire::listed! {
    /// Why an append passed as it was, or an entry was not learned.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Unsteered {
        /// Its connection is not known in this incarnation of the switch.
        UnknownPeer,
        /// There was no number left for its connection.
        Full,
        /// It came again, and had passed as it was, or had come too late the first time.
        NotNew,
        /// Its entry is not outstanding: its key is not held, or another entry has taken its cell.
        NotOutstanding,
        /// Nobody knows the tail of its key.
        TailUnknown,
        /// It is no step of the store's, where words are bound to queue pairs. It was dropped.
        Unbindable,
    }
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets.
    pub packets: u64,
    /// Passes through the pipeline.
    pub passes: u64,
    /// Entries that are outstanding since they passed.
    pub learned: u64,
    /// Appends that were sent to the tail.
    pub steered: u64,
    /// Of those, the ones that would have gone elsewhere.
    pub moved: u64,
    /// Reads that were sent to the tail.
    pub reads: u64,
    /// Of those, the ones to a tail whose append was not acknowledged.
    pub reads_ahead: u64,
    /// Answers to reads that became reads again, because that append was still not acknowledged, or had failed.
    pub reads_turned: u64,
    /// Answers to reads of connections from before a restart, which were refused.
    pub reads_refused: u64,
    /// Steered appends that came again.
    pub repeated: u64,
    /// Appends that were not steered.
    pub unsteered: [u64; Unsteered::ALL.len()],
    /// Tails that were learned from acknowledgements.
    pub tails: u64,
    /// Tails that somebody else has found.
    pub preloaded: u64,
    /// Acknowledgements that say what the entry was appended behind.
    pub appended: u64,
    /// That say that it was not appended.
    pub refused: u64,
    /// That say that nobody knows.
    pub indeterminate: u64,
    /// Acknowledgements that were dropped because the one in front was missing.
    pub waited: u64,
    /// Keys that were taken in, and left again.
    pub admitted: u64,
    /// Keys that left for others.
    pub evicted: u64,
    /// Times that all tails were forgotten.
    pub forgotten: u64,
    /// Connections, and bound queue pairs, that a NAK ended.
    pub broken: u64,
    /// Compare-and-swaps that were put on bound queue pairs.
    pub bound: u64,
    /// Of those, the ones that became WRITEs.
    pub written: u64,
    /// Compare-and-swaps for which there was no capacity there: they went on their clients' own queue pairs, or came again.
    pub crowded: u64,
    /// Of those, the ones that were let in when there was capacity.
    pub let_in: u64,
    /// Packets of bound queue pairs that were sent again.
    pub resent: u64,
    /// The most numbers of a bound queue pair that were in flight.
    pub most_in_flight: u64,
    /// And the most atomics: so many the memory must be able to replay.
    pub most_atomics: u64,
}

impl Counters {
    /// Appends that were not steered for this reason.
    pub const fn unsteered(&self, why: Unsteered) -> u64 {
        self.unsteered[why as usize]
    }

    pub(super) const fn leave(&mut self, why: Unsteered) {
        self.unsteered[why as usize] += 1;
    }
}
