//! How messages travel between the peers of a live rack that are processes of their own.
//!
//! A *peer* is a node, the switch, or somebody who only looks ([`PeerId`]). Each has one [`Transport`], which takes
//! messages for other peers and hands over what has come from them. Nothing here knows what the messages mean.
//!
//! | module | carries messages |
//! | --- | --- |
//! | [`inline`] | as values: between threads of one process, for tests |
//! | `shm` | through rings in shared memory: between processes of one machine and one user |
//! | `udp` | in authenticated UDP datagrams: between machines |
//!
//! Before two processes talk they greet each other with the [version](WIRE_VERSION) of what they say and the settings that
//! all processes of a rack share ([`Terms`]). Who differs is refused on both sides, and both can say why ([`Handshakes`]).
//!
//! The tests have one more, over the links of the simulated rack in virtual time (`tests/simulated`), and one body of
//! scenarios for all of them (`tests/conformance`).
//!
//! What may happen to a message: it may be lost, late, doubled or overtaken; never changed, and never from somebody
//! else than it says. What is not exactly what a peer of this rack would send is dropped and counted ([`Cause`]).
//! A dead, slow or hostile peer costs what it sends, and nothing else: no call here waits for a peer.
//!
//! Unsafe code lives in small modules that say so, each block with its reason.
#![deny(unsafe_code)]

mod contents;
mod counters;
mod handshakes;
mod head;
pub mod inline;
mod outgoing;
mod peer;
mod sharing;
#[cfg(target_os = "linux")]
pub mod shm;
mod terms;
#[cfg(target_os = "linux")]
pub mod udp;

pub use contents::Contents;
pub use counters::{Cause, Counters, Counts};
pub use handshakes::{Handshakes, Reason, Refusal};
pub use outgoing::Outgoing;
pub use peer::PeerId;
pub use sharing::{Claim, Mapper, NotObtained, SharedMemory, Sharing};
pub use terms::{Difference, MOST_TERMS, Terms, WIRE_VERSION};

use std::sync::Arc;

use wire::{Endpoint, LockKind, LockPacket, Nanos, Packet, PacketKind, roce};

/// The longest control message, in bytes.
pub const MOST_CONTROL: usize = 32 << 10;

/// The largest payload of a packet between NICs, in bytes: the largest MTU that RoCE has.
pub const MOST_ONE_SIDED: usize = 4096;

/// One message, on its way out or in.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// A packet of the protocols with the block that travels with it: [`Packet::payload`] bytes, or none.
    Packet(&'a Packet, Contents<'a>),
    /// A packet about a lock with its region: [`LockPacket::payload`] bytes, a multiple of 8, or none.
    Lock(&'a LockPacket, Contents<'a>),
    /// A packet between two NICs with so many bytes of payload: where they are no multiple of 8, the last word is filled up
    /// with anything. At most [`MOST_ONE_SIDED`].
    Verbs(&'a roce::Packet, usize, Contents<'a>),
    /// A message of the control plane: at most [`MOST_CONTROL`] bytes.
    Control(&'a [u8]),
}

impl Body<'_> {
    /// True if somebody waits for it. Nobody waits for UNLOCK-ACK, nor for an UNLOCK at the switch: whoever receives next
    /// there takes it along, before or with the request that would miss it, and nobody is woken for it. (Requesters and
    /// the switch look in every few milliseconds, before an unlock would be repeated.)
    pub const fn is_urgent(&self) -> bool {
        match self {
            Body::Packet(packet, _) => match packet.kind {
                PacketKind::UnlockAck => false,
                PacketKind::Unlock => !matches!(packet.to, Endpoint::Switch),
                _ => true,
            },
            // Whoever moved a lock keeps the data until this comes, and has nothing else to do about it.
            Body::Lock(packet, _) => !matches!(packet.kind, LockKind::Received),
            Body::Verbs(..) | Body::Control(_) => true,
        }
    }

    /// True if it may wait for a moment until something else goes to the same peer: an UNLOCK to the switch, whose sender goes on
    /// without it. An UNLOCK-ACK may not: the requester's next event but one begins when it has come.
    pub const fn can_wait(&self) -> bool {
        match self {
            Body::Packet(packet, _) => {
                matches!((packet.kind, packet.to), (PacketKind::Unlock, Endpoint::Switch))
            }
            Body::Lock(..) | Body::Verbs(..) | Body::Control(_) => false,
        }
    }
}

/// A peer's connection to all others. Threads share it.
///
/// Sending has two steps: [`send`](Transport::send) takes the message (its contents may change afterwards) and may
/// be called under a lock; [`flush`](Transport::flush) does what costs a system call, for a whole burst.
pub trait Transport: Send + Sync {
    /// Whose connection this is.
    fn me(&self) -> PeerId;

    /// Takes a message for another peer. Where that cannot be reached, or has no capacity, it is dropped and counted.
    ///
    /// # Panics
    /// If a packet's contents are not as long as its header says, a control message is too long, or `to` is this
    /// peer itself.
    fn send(&self, to: PeerId, body: Body<'_>, out: &mut Outgoing);

    /// Lets everything go that `out` has taken. What [can wait](Body::can_wait) may travel with the next message to its peer,
    /// a fraction of a millisecond later.
    fn flush(&self, out: &mut Outgoing);

    /// Hands over what has come: whom it is from, and what it is; a bounded burst. One thread at a time does this:
    /// others get nothing. Returns how many there were.
    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize;

    /// This thread is going to call [`receive`](Transport::receive) again and again: senders need not wake anybody.
    fn attend(&self);

    /// It does so no longer. Returns true if something has come that nobody was woken for: then the caller has to
    /// receive it.
    fn leave(&self) -> bool;

    /// Waits until something has come while nobody attends, at most so long. For a thread that does nothing else;
    /// while others attend, it stays asleep.
    fn wait(&self, most: Nanos);

    /// Waits until something has come, at most so long. For one thread that attends and goes on attending: the message
    /// wakes it, and not the thread in [`wait`](Transport::wait).
    fn block(&self, most: Nanos);

    /// Ends [`block`](Transport::block) in another thread of this process, if one is in it.
    fn interrupt(&self);

    /// The memory that peers of this machine share, where messages travel through such memory. None: there is none.
    fn sharing(&self) -> Option<Arc<dyn Sharing>> {
        None
    }

    /// Bytes of payload of a packet between NICs that travels in one piece. At most [`MOST_ONE_SIDED`].
    fn one_sided_room(&self) -> usize {
        MOST_ONE_SIDED
    }

    /// What keeps it from reaching others, and what to do about it: for whoever waits in vain. None: nothing that it knows of.
    fn hindrance(&self) -> Option<String> {
        None
    }

    /// How the handshakes with the other peers stand, where there are any. None: nobody is refused.
    fn handshakes(&self) -> Option<Arc<Handshakes>> {
        None
    }

    /// What has been sent, received, and dropped, by cause.
    fn counters(&self) -> &Counters;
}
