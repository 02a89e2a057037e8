//! A peer, and the session that this peer has with it.
//!
//! What must always hold: a counter is used once for a peer, through all of its sessions; so no pad is used twice
//! ([`super::tag`]), even if a session comes back. The keys are those of one direction between two sessions: what was
//! sent in another incarnation of either, or the other way, fits neither key.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use wire::Nanos;

use super::burst::Datagram;
use super::coalescing::Coalescing;
use super::envelope::{Envelope, EnvelopeKind, HEAD};
use super::key::Key;
use super::single::{Single, SingleKeys};
use super::tag::{DATA_KEY, DataKey, TAG};
use super::whereabouts::Whereabouts;
use crate::peer::PeerId;
use crate::terms::WIRE_VERSION;

/// How often a peer is asked for its session.
const ASK_EVERY: Nanos = Nanos::from_millis(5);
/// How often the switch is asked where a peer is that has not answered.
const INQUIRE_EVERY: Nanos = Nanos::from_millis(500);
/// How many greetings of a peer are answered at once,
const ANSWERS: u64 = 8;
/// and how long it takes until one more is.
const ANSWER_EVERY: Nanos = Nanos::from_millis(1);
/// How often a peer that is refused is told so. Both do it, and each in answer to the other.
const REFUSE_EVERY: Nanos = Nanos::from_millis(100);

/// The name of a session in a datagram's head.
pub(super) const fn name(session: u128) -> u64 {
    session as u64
}

/// What two incarnations of two peers share.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) mine: u128,
    pub(super) theirs: u128,
    /// Where the peer is.
    pub(super) address: SocketAddr,
    keys: Option<Keys>,
    /// Something has come in it since somebody asked.
    heard: AtomicBool,
}

#[derive(Debug)]
struct Keys {
    sending: DataKey,
    receiving: DataKey,
    singles: SingleKeys,
}

impl Session {
    pub(super) fn new(
        key: Option<&Key>,
        me: (PeerId, u128),
        peer: (PeerId, u128),
        address: SocketAddr,
    ) -> Self {
        let direction = |key: &Key, from: (PeerId, u128), to: (PeerId, u128)| {
            let mut bytes = [0; DATA_KEY];
            let peers = [from.0.to_wire(), to.0.to_wire()];
            let context: [&[u8]; 3] = [&peers, &from.1.to_le_bytes(), &to.1.to_le_bytes()];
            key.derive(b"rackmem udp data", &context, &mut bytes);
            DataKey::new(&bytes)
        };
        let keys = key.map(|key| Keys {
            sending: direction(key, me, peer),
            receiving: direction(key, peer, me),
            singles: SingleKeys::new(key, me, peer),
        });
        Self { mine: me.1, theirs: peer.1, address, keys, heard: AtomicBool::new(true) }
    }

    /// The keys of single packets.
    pub(super) fn singles(&self) -> Option<&SingleKeys> {
        self.keys.as_ref().map(|keys| &keys.singles)
    }

    /// Writes head and tag of a datagram. Returns its bytes.
    pub(super) fn seal<'a>(&self, me: PeerId, counter: u64, datagram: &'a mut Datagram) -> &'a [u8] {
        let head = Envelope {
            version: WIRE_VERSION,
            kind: datagram.single.map_or(EnvelopeKind::Data, Single::envelope),
            from: me,
            to: datagram.to,
            guarded: self.keys.is_some(),
            counter,
            from_session: name(self.mine),
            to_session: name(self.theirs),
        };
        let bytes = &mut datagram.bytes[..];
        head.encode(bytes.first_chunk_mut::<HEAD>().expect("a datagram has room for its head"));
        let mut length = datagram.length;
        if let Some(keys) = &self.keys {
            let tag = match datagram.single {
                Some(kind) => keys.singles.tag(kind, &bytes[..length]),
                None => keys.sending.tag(counter, &bytes[..length]),
            };
            bytes[length..length + TAG].copy_from_slice(&tag);
            length += TAG;
        }
        &bytes[..length]
    }

    /// True if a datagram's tag is what it should be.
    pub(super) fn verify(&self, counter: u64, covered: &[u8], tag: Option<&[u8; TAG]>) -> bool {
        match (&self.keys, tag) {
            (Some(keys), Some(tag)) => keys.receiving.verify(counter, covered, tag),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Session {
    /// Something has come in it. Most of the time that is known: then nothing is written that other threads read.
    pub(super) fn hear(&self) {
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
    }

    /// True if something has come since the last call.
    pub(super) fn was_heard(&self) -> bool {
        self.heard.swap(false, Relaxed)
    }
}

/// Another process of the rack.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: PeerId,
    /// Where it is; observers and peers that are not listed are where they ask from.
    pub(super) whereabouts: Whereabouts,
    /// The last counter used for it.
    counter: AtomicU64,
    /// The present session.
    session: RwLock<Option<Arc<Session>>>,
    greeting: Mutex<Greeting>,
    coalescing: Mutex<Coalescing>,
    /// It keeps something, or wants to know when the next message comes.
    pub(super) is_expecting: AtomicBool,
}

/// What greetings with a peer need.
#[derive(Debug)]
pub(super) struct Greeting {
    /// Whoever echoes it is alive now.
    pub(super) challenge: u128,
    /// When the peer may be asked again.
    next_ask: Nanos,
    /// When the switch may be asked again where the peer is.
    next_inquiry: Nanos,
    /// Greetings that may be answered, and when that was so.
    answers: (u64, Nanos),
    /// When the peer may be told again that it is refused.
    next_refusal: Nanos,
}

impl Peer {
    pub(super) fn new(id: PeerId, whereabouts: Whereabouts, challenge: u128) -> Self {
        Self {
            id,
            whereabouts,
            counter: AtomicU64::new(0),
            session: RwLock::new(None),
            greeting: Mutex::new(Greeting {
                challenge,
                next_ask: Nanos::ZERO,
                next_inquiry: Nanos::ZERO,
                answers: (ANSWERS, Nanos::ZERO),
                next_refusal: Nanos::ZERO,
            }),
            coalescing: Mutex::new(Coalescing::new()),
            is_expecting: AtomicBool::new(false),
        }
    }

    /// A counter that was never used for this peer.
    pub(super) fn next_counter(&self) -> u64 {
        // At a datagram a nanosecond it takes 584 years to come round.
        self.counter.fetch_add(1, Relaxed) + 1
    }

    /// The last one used.
    pub(super) fn last_counter(&self) -> u64 {
        self.counter.load(Relaxed)
    }

    pub(super) fn session(&self) -> Option<Arc<Session>> {
        self.session.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the present session and begins this one.
    pub(super) fn begin(&self, session: Arc<Session>) {
        *self.session.write().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// Where it is, as far as is known.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.whereabouts.address()
    }

    /// It is there now: a session that leads elsewhere ends, and whoever sends next asks for another one.
    pub(super) fn end_unless_at(&self, address: SocketAddr) {
        let mut session = self.session.write().unwrap_or_else(PoisonError::into_inner);
        drop(session.take_if(|session| session.address != address));
    }

    pub(super) fn coalescing(&self) -> MutexGuard<'_, Coalescing> {
        self.coalescing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn greeting(&self) -> MutexGuard<'_, Greeting> {
        self.greeting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Greeting {
    /// True if the peer may be asked for its session now.
    pub(super) fn may_ask(&mut self, now: Nanos) -> bool {
        let may = now >= self.next_ask;
        if may {
            self.next_ask = now + ASK_EVERY;
        }
        may
    }

    /// True if the switch may be asked now where the peer is.
    pub(super) fn may_inquire(&mut self, now: Nanos) -> bool {
        let may = now >= self.next_inquiry;
        if may {
            self.next_inquiry = now + INQUIRE_EVERY;
        }
        may
    }

    /// True if the peer may be told now that it is refused.
    pub(super) fn may_refuse(&mut self, now: Nanos) -> bool {
        let may = now >= self.next_refusal;
        if may {
            self.next_refusal = now + REFUSE_EVERY;
        }
        may
    }

    /// True if a greeting of the peer may be answered now.
    pub(super) fn may_answer(&mut self, now: Nanos) -> bool {
        let (left, since) = &mut self.answers;
        let earned = now.saturating_sub(*since).0 / ANSWER_EVERY.0;
        if earned > 0 {
            *left = (*left).saturating_add(earned).min(ANSWERS);
            *since = now;
        }
        let may = *left > 0;
        *left -= u64::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::{ANSWERS, Peer, Session, Whereabouts};
    use crate::peer::PeerId;
    use crate::udp::key::Key;
    use wire::{Nanos, NodeId};

    #[test]
    fn a_peer_is_asked_at_most_every_5_ms() {
        let peer = Peer::new(PeerId::SWITCH, Whereabouts::default(), 1);
        let asked = (0..100).filter(|&ms| peer.greeting().may_ask(Nanos::from_millis(ms))).count();
        assert_eq!(asked, 20);
    }

    #[test]
    fn a_flood_of_greetings_is_answered_once_a_millisecond_and_a_few_at_once() {
        let peer = Peer::new(PeerId::SWITCH, Whereabouts::default(), 1);
        let answered =
            (0..100_000).filter(|&us| peer.greeting().may_answer(Nanos::from_micros(us))).count() as u64;
        assert!((99..=100 + ANSWERS).contains(&answered), "{answered} in 100 ms");
    }

    #[test]
    fn what_one_side_seals_the_other_side_and_nobody_else_verifies() {
        let key = Key::from_bytes([7; 32]);
        let address = "127.0.0.1:1".parse().expect("an address");
        let (a, b) = (PeerId::node(NodeId(0)), PeerId::node(NodeId(1)));
        let session = |me, peer| Session::new(Some(&key), me, peer, address);
        let sender = session((a, 10), (b, 20));
        let tag = sender.keys.as_ref().expect("a key").sending.tag(5, b"covered");
        assert!(session((b, 20), (a, 10)).verify(5, b"covered", Some(&tag)));
        for (who, other) in [
            ("the sender itself", sender),
            ("a former incarnation of the receiver", session((b, 19), (a, 10))),
            ("who takes it for another incarnation of the sender", session((b, 20), (a, 11))),
            ("another peer_id", session((PeerId::SWITCH, 20), (a, 10))),
            ("another rack", Session::new(Some(&Key::from_bytes([8; 32])), (b, 20), (a, 10), address)),
            ("a rack without a key", Session::new(None, (b, 20), (a, 10), address)),
        ] {
            assert!(!other.verify(5, b"covered", Some(&tag)), "{who}");
        }
    }
}
