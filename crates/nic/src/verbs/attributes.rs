//! What a queue pair is told when it is connected, and the states that it goes through.
//!
//! What must always hold: RESET, INIT, RTR, RTS in this order; from everywhere to ERR and to RESET.

use core::fmt;

use wire::roce::{Psn, QpNumber, RnrTimer};
use wire::{Nanos, NodeId};

/// The states of a queue pair, as the standard names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueuePairState {
    /// New, or taken back to the beginning.
    Reset,
    /// Receives may be posted.
    Init,
    /// Ready to receive: requests are executed.
    Rtr,
    /// Ready to send: and posted work is sent.
    Rts,
    /// Something failed, or was called off: whatever is posted is flushed.
    Err,
}

/// A transition that there is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateError {
    /// There is no such queue pair.
    NoSuchQueuePair,
    /// Not from this state.
    From(QueuePairState),
    /// An attribute that cannot be: nothing outstanding, no window, nothing remembered.
    Attributes,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchQueuePair => f.write_str("there is no such queue pair"),
            Self::From(state) => write!(f, "a queue pair in state {state:?} does not go there"),
            Self::Attributes => {
                f.write_str("window, read_chunk, outstanding, remembered and ack_every must be at least 1")
            }
        }
    }
}

impl core::error::Error for StateError {}

/// How much can be posted to a queue pair at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Depth {
    /// Work requests.
    pub sends: usize,
    /// Receives.
    pub receives: usize,
}

/// Most bytes of payload in a packet of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub enum Mtu {
    /// 256.
    B256 = 256,
    /// 512.
    B512 = 512,
    /// 1024: what fits an Ethernet frame of 1500 bytes.
    B1024 = 1024,
    /// 2048.
    B2048 = 2048,
    /// 4096.
    B4096 = 4096,
}

impl Mtu {
    /// Every one that the standard knows.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// Bytes.
    pub const fn bytes(self) -> u32 {
        self as u32
    }

    /// Packets that a message of so many bytes takes: one at least.
    pub const fn packets(self, len: u32) -> u32 {
        let packets = len.div_ceil(self.bytes());
        if packets == 0 { 1 } else { packets }
    }

    /// Bytes in the packet with this number of a message of `len` bytes.
    pub(crate) const fn part(self, len: u32, packet: u32) -> u32 {
        let rest = len - packet * self.bytes();
        if rest < self.bytes() { rest } else { self.bytes() }
    }
}

/// What a responder must know: INIT to RTR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToReceive {
    /// The node at the other end.
    pub peer: NodeId,
    /// The queue pair there.
    pub peer_queue_pair: QpNumber,
    /// Payload of a packet, both ways.
    pub mtu: Mtu,
    /// The number of the first packet that will come.
    pub first_psn: Psn,
    /// Atomics and object reads whose answers are remembered, for the case that they come again: at least as many as the peer
    /// has outstanding, and one. So many [slots](super::Slot) are used.
    pub remembered: u32,
    /// What a request that meets no receive is told to wait.
    pub rnr_timer: RnrTimer,
    /// Most bytes of a message, of a READ request, or of an object; the same at both ends.
    pub longest: u32,
    /// So many wishes for an acknowledgement are answered together, if no more come ...
    pub ack_every: u32,
    /// ... within this time, which must be well below the peer's time-out. Zero: each at once.
    pub ack_delay: Nanos,
}

impl ToReceive {
    /// Usual values for a connection to this queue pair.
    pub const fn new(peer: NodeId, peer_queue_pair: QpNumber, mtu: Mtu, first_psn: Psn) -> Self {
        Self {
            peer,
            peer_queue_pair,
            mtu,
            first_psn,
            remembered: 16,
            rnr_timer: RnrTimer::from_code(1),
            longest: 1 << 20,
            ack_every: 16,
            ack_delay: Nanos::ZERO,
        }
    }
}

/// What a requester must know: RTR to RTS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToSend {
    /// The number of the first packet.
    pub first_psn: Psn,
    /// How long an answer may take before everything unanswered is sent again. [`Nanos::MAX`]: as long as it likes, where
    /// nothing is lost.
    pub timeout: Nanos,
    /// How often that is done before the peer is given up.
    pub retries: u32,
    /// How often a request may meet no receive; [`ToSend::FOREVER`] is no limit.
    pub rnr_retries: u8,
    /// READs, atomics and object reads in flight at a time.
    pub outstanding: u32,
    /// Packets in flight at a time.
    pub window: u32,
    /// Packets that one READ request asks for: a longer READ is asked for in pieces.
    pub read_chunk: u32,
}

impl ToSend {
    /// No limit of `rnr_retries`.
    pub const FOREVER: u8 = 7;

    /// Usual values.
    pub const fn new(first_psn: Psn) -> Self {
        Self {
            first_psn,
            timeout: Nanos::from_millis(10),
            retries: 7,
            rnr_retries: Self::FOREVER,
            outstanding: 16,
            window: 256,
            read_chunk: 64,
        }
    }
}
