//! Rings in shared memory, between processes of one machine and one user.
//!
//! ```text
//!   node 3                                     the switch
//!     send ── link: ring "3 to switch" ──────────> incoming ring ── receive
//!         └── waker of the switch, if nobody looks ─> wakes wait
//!     acceptor ── connection: who am I ────────────> acceptor makes the ring,
//!             <──── ring and waker as descriptors ── and keeps the connection
//! ```
//!
//! Each peer makes the rings that others fill for it, one for each of them, and one waker. They are sealed memfds
//! without a name: only who is given the descriptor can map them, and it is given only to processes of the same user
//! that reach the peer's socket in a directory that only this user can enter.
//!
//! | module | |
//! | --- | --- |
//! | `rendezvous` | the directory, the sockets and locks in it |
//! | `greeting` | what is said on a connection |
//! | `descriptors` | messages that bring descriptors |
//! | `fuzz` | what a fuzzer does with its parsers |
//! | `acceptor` | the thread that connects, and notices who is gone |
//! | `links` | what threads send through and receive from |
//! | `ring` | records from one producer to one consumer |
//! | `waker` | whether a receiver has to be woken |
//! | `asking` | memory that a peer has published, for others to map |
//! | `claim` | who has such memory mapped, as the kernel knows it |
//! | `mapping` | shared memory as atomic words: with `claim`, the files with unsafe code |
//!
//! What must always hold: what one peer sends to another is delivered in order, at most once, unchanged, and all of
//! it for as long as the connection stands and what does not fit is counted. No call waits for a peer. A peer that
//! dies at any instruction, or writes anything anywhere into what is shared, costs its own messages and the time to
//! find out; the one thing that it can keep us from is being woken early.

mod acceptor;
mod asking;
pub(crate) mod claim;
mod descriptors;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod greeting;
mod links;
pub(crate) mod mapping;
mod rendezvous;
mod ring;
#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod tests;
mod waker;

pub use asking::borrow;
pub use error::Error;

use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use wire::Nanos;
use wire::packet::{HEADER_BYTES, MAX_PAYLOAD};

use self::acceptor::{Acceptor, House};
use self::asking::ShmSharing;
use self::links::{Incoming, hang_up};
use self::rendezvous::{Name, Rendezvous};
use self::ring::{Broken, Refused, record_bytes};
use crate::head::MOST_HEAD;
use crate::{
    Body, Cause, Counters, Handshakes, MOST_CONTROL, MOST_ONE_SIDED, Outgoing, PeerId, Sharing, Terms,
    Transport,
};

/// Rings are at least so large: bursts of small messages should fit however small the blocks are.
const LEAST_RING: usize = 256 << 10;
/// Messages of the largest size that fit into a ring.
const MESSAGES: usize = 8;
/// Records that one call of `receive` looks at, and how many of one ring before it goes on to the next.
const BURST: usize = 32;
const TURN: usize = 8;

/// How to open a peer.
#[derive(Clone, Debug)]
pub struct ShmConfig {
    /// Where the peers of this rack meet. Made if it is not there; nobody but its user may be able to enter it.
    pub dir: PathBuf,
    /// Which peer this process is.
    pub me: PeerId,
    /// Bytes of the largest payload.
    pub block: u64,
    /// Bytes of each ring that others fill for this peer: a power of two, at least twice the largest message. None:
    /// eight of the largest messages, and 256 KiB at least.
    pub ring_bytes: Option<usize>,
    /// The settings that the other peers must have, too.
    pub terms: Terms,
}

impl ShmConfig {
    fn ring(&self) -> Result<usize, Error> {
        if self.block > u64::from(MAX_PAYLOAD) {
            return Err(Error::BlockTooLarge(self.block));
        }
        let message = record_bytes((MOST_HEAD.max(HEADER_BYTES) + self.block as usize).max(MOST_CONTROL));
        match self.ring_bytes {
            None => Ok((MESSAGES * message).next_power_of_two().max(LEAST_RING)),
            Some(ring) if ring.is_power_of_two() && ring >= 2 * message => Ok(ring),
            Some(ring) => Err(Error::RingTooSmall { ring, message }),
        }
    }
}

/// A peer's connection to the others through shared memory.
#[derive(Debug)]
pub struct ShmTransport {
    house: Arc<House>,
    block: u64,
    sharing: Arc<ShmSharing>,
    receiver: Mutex<Receiver>,
    acceptor: Option<JoinHandle<()>>,
}

/// What the thread that receives needs.
#[derive(Debug)]
struct Receiver {
    rings: Vec<Arc<Incoming>>,
    /// The state of the arrivals that `rings` shows.
    seen: u64,
    /// Whose turn is next.
    next: usize,
    /// Where control messages are copied to.
    control: Vec<u8>,
}

impl ShmTransport {
    /// Opens a peer: from now on others find it.
    ///
    /// # Errors
    /// See [`Error`]: each says what to do.
    pub fn open(config: &ShmConfig) -> Result<Self, Error> {
        let ring_bytes = config.ring()?;
        let failed = |doing| move |source| Error::System { doing, path: config.dir.clone(), source };
        let socket = |peer| Name { peer, observer: (0, 0) }.socket(&config.dir).display().to_string();
        let address = |peer| (peer != PeerId::OBSERVER).then(|| socket(peer));
        let handshakes = Handshakes::new(config.terms.clone(), address);
        let house =
            House::new(config.me, ring_bytes, handshakes).map_err(failed("making shared memory for"))?;
        let house = Arc::new(house);
        let rendezvous = Rendezvous::open(&config.dir, Name::new(config.me))?;
        let sharing = Arc::new(ShmSharing { house: Arc::clone(&house), dir: rendezvous.dir.clone() });
        let acceptor = Acceptor::new(Arc::clone(&house), rendezvous);
        let acceptor = std::thread::Builder::new()
            .name("shm-acceptor".into())
            .spawn(move || acceptor.run())
            .map_err(failed("starting a thread for"))?;
        let receiver = Mutex::new(Receiver { rings: Vec::new(), seen: 0, next: 0, control: Vec::new() });
        Ok(Self { house, block: config.block, sharing, receiver, acceptor: Some(acceptor) })
    }

    /// Closes a ring whose producer broke the rules.
    fn on_broken(&self, ring: &Arc<Incoming>) {
        self.house.counters.dropped(Cause::BrokenRing);
        self.house.arrivals.close(ring);
        hang_up(&ring.connection);
    }
}

impl Transport for ShmTransport {
    fn me(&self) -> PeerId {
        self.house.me
    }

    fn send(&self, to: PeerId, body: Body<'_>, out: &mut Outgoing) {
        assert!(to != self.house.me, "{to} sends to itself");
        match body {
            Body::Packet(packet, contents) => {
                assert_eq!(packet.payload as usize, contents.bytes(), "contents as long as {packet:?} says");
            }
            Body::Lock(packet, contents) => {
                assert_eq!(packet.payload as usize, contents.bytes(), "a region as long as {packet:?} says");
            }
            Body::Verbs(packet, payload, contents) => {
                let whole = payload.next_multiple_of(8);
                assert!(payload <= MOST_ONE_SIDED, "{payload} bytes: {packet:?}");
                assert_eq!(whole, contents.bytes(), "{payload} bytes as the payload of {packet:?}");
            }
            Body::Control(bytes) => assert!(bytes.len() <= MOST_CONTROL, "{} bytes of control", bytes.len()),
        }
        let counters = &self.house.counters;
        let mut slot = self.house.links.to(to);
        let Some(link) = slot.as_mut() else {
            drop(slot);
            counters.dropped(Cause::Unreachable);
            self.house.want(to);
            return;
        };
        match link.producer.push(body) {
            Ok(bytes) => {
                drop(slot);
                counters.sent(1, bytes as u64);
                if body.is_urgent() {
                    out.rings |= 1 << to.index();
                }
            }
            Err(Refused::Full) => counters.dropped(Cause::Full),
            Err(Refused::Broken) => {
                counters.dropped(Cause::BrokenRing);
                hang_up(&*link.connection);
                *slot = None;
            }
        }
    }

    fn flush(&self, out: &mut Outgoing) {
        let mut rings = std::mem::take(&mut out.rings);
        if rings == 0 {
            return;
        }
        // Between storing the heads and looking at the wakers: see `waker`.
        fence(SeqCst);
        while rings != 0 {
            let peer = PeerId::from_wire(rings.trailing_zeros() as u8).expect("one bit for each peer");
            rings &= rings - 1;
            let slot = self.house.links.to(peer);
            let Some(link) = slot.as_ref().filter(|link| link.waker.is_unattended()) else { continue };
            // The system call is made without the lock.
            let waker = Arc::clone(&link.waker);
            drop(slot);
            if waker.ring() {
                self.house.counters.woke();
            }
        }
    }

    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
        let mut receiver = match self.receiver.try_lock() {
            Ok(receiver) => receiver,
            // A thread panicked over a message: that one was taken.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        let Receiver { rings, seen, next, control } = &mut *receiver;
        self.house.arrivals.refresh(seen, rings);
        let counters = &self.house.counters;
        let (mut messages, mut bytes, mut records, mut idle) = (0, 0, 0, 0);
        // Until all rings in a row had nothing, or the burst is full.
        while records < BURST && idle < rings.len() {
            *next = (*next + 1) % rings.len();
            let ring = &rings[*next];
            if ring.is_over() {
                if !ring.is_closed() {
                    self.house.arrivals.close(ring);
                }
                idle += 1;
                continue;
            }
            let most = TURN.min(BURST - records);
            let (taken, end) =
                ring.consumer
                    .take(most, self.block, control, || !ring.is_closed(), &mut |body| each(ring.from, body));
            for _ in 0..taken.malformed {
                counters.dropped(Cause::Malformed);
            }
            if end == Err(Broken) {
                self.on_broken(ring);
            }
            messages += taken.messages;
            bytes += taken.bytes;
            records += taken.records;
            idle = if taken.records == 0 { idle + 1 } else { 0 };
        }
        if messages > 0 {
            counters.received(messages as u64, bytes as u64);
        }
        messages
    }

    fn attend(&self) {
        self.house.waker.attend();
    }

    fn leave(&self) -> bool {
        self.house.waker.leave(|| self.house.arrivals.have_something())
    }

    fn wait(&self, most: Nanos) {
        self.house.waker.wait(Duration::from_nanos(most.0), || self.house.arrivals.have_something());
    }

    fn block(&self, most: Nanos) {
        self.house.waker.block(Duration::from_nanos(most.0), || self.house.arrivals.have_something());
    }

    fn interrupt(&self) {
        self.house.waker.interrupt();
    }

    fn sharing(&self) -> Option<Arc<dyn Sharing>> {
        Some(Arc::clone(&self.sharing) as Arc<dyn Sharing>)
    }

    fn handshakes(&self) -> Option<Arc<Handshakes>> {
        Some(Arc::clone(&self.house.handshakes))
    }

    fn counters(&self) -> &Counters {
        &self.house.counters
    }
}

impl Drop for ShmTransport {
    fn drop(&mut self) {
        self.house.stop();
        if let Some(acceptor) = self.acceptor.take() {
            // An acceptor that panicked has printed why, and has nothing left to do.
            let _ = acceptor.join();
        }
    }
}
