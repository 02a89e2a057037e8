//! What a device counts. Nothing is lost silently: every packet is either taken, or dropped and counted by cause.

use wire::roce::{Malformed, NakCode};

wire::listed! {
    /// Why a packet was dropped.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(u8)]
    pub enum Drop {
        /// For a queue pair that there is not.
        NoSuchQueuePair: "no_such_queue_pair",
        /// Not from the node that the queue pair is connected to.
        UnknownPeer: "unknown_peer",
        /// For a queue pair that is not connected, or not any more.
        WrongState: "wrong_state",
        /// A request after a gap, or an answer before its turn.
        OutOfOrder: "out_of_order",
        /// A request that met no posted receive.
        NotReady: "not_ready",
        /// An answer to what has been answered.
        Stale: "stale",
        /// An answer to what was never sent.
        NeverSent: "never_sent",
        /// An answer that is not one to the request with its number.
        BadAnswer: "bad_answer",
        /// A repeated request that cannot be answered any more.
        NotRemembered: "not_remembered",
    }
}

/// Counts since the device was made.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Packets and malformed frames that arrived.
    pub received: u64,
    /// Of those, packets that were executed, answered, refused by a NAK, or were answers that were waited for.
    pub taken: u64,
    /// Of those, bytes that were no packet, by [`Malformed`].
    pub malformed: [u64; Malformed::ALL.len()],
    /// Of those, packets that were dropped, by [`Drop`].
    pub dropped: [u64; Drop::ALL.len()],
    /// Packets sent.
    pub sent: u64,
    /// Requests that came again and were answered again.
    pub duplicates: u64,
    /// NAKs sent, by [`NakCode`].
    pub refused: [u64; 4],
    /// Requests that were told to come again when a receive is posted.
    pub not_ready: u64,
    /// Times that a requester went back because it was told that something is missing, or saw it.
    pub went_back: u64,
    /// Times that it went back because no answer came in time.
    pub timed_out: u64,
    /// Queue pairs that came to the error state by themselves.
    pub broken: u64,
}

impl Counters {
    pub(crate) fn drop(&mut self, why: Drop) {
        self.dropped[why as usize] += 1;
    }

    pub(crate) fn refuse(&mut self, why: NakCode) {
        self.refused[why as usize] += 1;
    }

    /// True if every packet that arrived is accounted for.
    pub fn add_up(&self) -> bool {
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        self.received == self.taken + sum(&self.malformed) + sum(&self.dropped)
    }
}
