//! The acceptor: the one thread of a peer that connects it with others and notices when they go.
//!
//! It answers those who call (who want to send, or ask for memory), dials the peers that somebody wanted to send to, and waits in `poll` for connections
//! to end. What must always hold: no thread that sends or receives ever waits for it or for a peer, a peer that says
//! nothing or nonsense costs one connection at most, and a peer that is not there is dialled at most every
//! [`TIMEOUT`].

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{read, write};
use rustix::net::{SocketFlags, accept_with};

use super::asking::{Published, Question};
use super::greeting::{Caller, Heard, Offer, check_user, dial, hear_caller, hear_welcome, refuse, welcome};
use super::links::{Arrivals, Incoming, Link, Links, hang_up};
use super::rendezvous::{Name, Rendezvous};
use super::ring::{Consumer, Producer, Ring};
use super::waker::{OwnWaker, Waker};
use crate::{Cause, Counters, Handshakes, PeerId, Reason, WIRE_VERSION};

/// How long after an attempt to reach a peer the next one is made.
const TIMEOUT: Duration = Duration::from_millis(10);
/// Connections of peers who have not said who they are: more are not kept.
const MOST_SILENT: usize = 64;

/// What the acceptor shares with the threads that send and receive.
#[derive(Debug)]
pub(super) struct House {
    pub(super) me: PeerId,
    pub(super) ring_bytes: usize,
    pub(super) waker: OwnWaker,
    pub(super) links: Links,
    pub(super) arrivals: Arrivals,
    pub(super) counters: Counters,
    pub(super) handshakes: Arc<Handshakes>,
    pub(super) published: Published,
    wanted: [AtomicBool; PeerId::COUNT],
    stop: AtomicBool,
    /// Wakes the acceptor.
    call: OwnedFd,
}

impl House {
    pub(super) fn new(me: PeerId, ring_bytes: usize, handshakes: Handshakes) -> std::io::Result<Self> {
        Ok(Self {
            me,
            ring_bytes,
            waker: OwnWaker::create()?,
            links: Links::new(),
            arrivals: Arrivals::new(),
            counters: Counters::default(),
            handshakes: Arc::new(handshakes),
            published: Published::default(),
            wanted: std::array::from_fn(|_| AtomicBool::new(false)),
            stop: AtomicBool::new(false),
            call: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Asks the acceptor to connect with a peer. Once asked, asking again costs a load.
    pub(super) fn want(&self, peer: PeerId) {
        let wanted = &self.wanted[peer.index()];
        if !wanted.load(Relaxed) && !wanted.swap(true, AcqRel) {
            self.handshakes.greet(peer);
            self.call();
        }
    }

    /// A peer is not talked to: what it offers differs, or it says what nobody says.
    fn refuse(&self, peer: PeerId, offer: Option<Offer>) {
        let reason = match offer {
            Some(Offer::Terms(terms)) => self.handshakes.objection(&terms),
            Some(Offer::Version(theirs)) => Some(Reason::Version { ours: WIRE_VERSION, theirs }),
            None => None,
        };
        let refused = reason.is_some();
        self.counters.dropped(if refused { Cause::Refused } else { Cause::Malformed });
        let address = self.handshakes.address(peer).unwrap_or("its socket").to_owned();
        self.handshakes.refuse(peer, address, reason.unwrap_or(Reason::Malformed));
    }

    /// Asks the acceptor to go home.
    pub(super) fn stop(&self) {
        self.stop.store(true, Release);
        self.call();
    }

    fn call(&self) {
        // It only fails if the counter is full: then he has been called already.
        let _ = write(&self.call, &1u64.to_ne_bytes());
    }
}

/// What a connection is for, so far.
#[derive(Debug)]
enum AcceptorState {
    /// They called, and have not said who they are.
    Silent,
    /// They send to us.
    Incoming(Arc<Incoming>),
    /// We called, and wait for their ring.
    Dialled(Name),
    /// We send to them.
    Outgoing(PeerId),
    /// It is not used any more.
    Over,
}

#[derive(Debug)]
struct Connection {
    socket: Arc<OwnedFd>,
    state: AcceptorState,
}

#[derive(Debug)]
pub(super) struct Acceptor {
    house: Arc<House>,
    rendezvous: Rendezvous,
    connections: Vec<Connection>,
    /// When each peer was dialled last.
    dialled: [Option<Instant>; PeerId::COUNT],
    /// The observer who called last.
    observer: Option<Name>,
}

impl Acceptor {
    pub(super) const fn new(house: Arc<House>, rendezvous: Rendezvous) -> Self {
        Self { house, rendezvous, connections: Vec::new(), dialled: [None; PeerId::COUNT], observer: None }
    }

    /// Does all that until [`House::stop`].
    pub(super) fn run(mut self) {
        while !self.house.stop.load(Acquire) {
            let again = self.dial_wanted();
            let ready = self.wait(again);
            for at in ready.connections {
                self.on_connection(at);
            }
            // After those that ended: a peer that died and came back has hung up before it calls.
            if ready.callers {
                self.on_callers();
            }
            self.connections.retain(|connection| !matches!(connection.state, AcceptorState::Over));
        }
    }

    /// Waits until something happens, or for so long.
    fn wait(&self, most: Option<Duration>) -> Ready {
        let mut polled = vec![
            PollFd::new(&self.house.call, PollFlags::IN),
            PollFd::new(&self.rendezvous.listener, PollFlags::IN),
        ];
        polled.extend(self.connections.iter().map(|one| PollFd::new(&*one.socket, PollFlags::IN)));
        let most = most.and_then(|most| rustix::event::Timespec::try_from(most).ok());
        // Interrupted, or out of memory for a moment: nothing is ready then, and the next round asks again.
        if poll(&mut polled, most.as_ref()).is_err() {
            return Ready { callers: false, connections: Vec::new() };
        }
        let is_ready = |polled: &PollFd<'_>| !polled.revents().is_empty();
        if is_ready(&polled[0]) {
            let _ = read(&self.house.call, &mut [0; 8]);
        }
        Ready {
            callers: is_ready(&polled[1]),
            connections: (0..self.connections.len()).filter(|at| is_ready(&polled[2 + at])).collect(),
        }
    }

    /// Dials all peers that somebody wants and that may be dialled again. Returns when the next one may.
    fn dial_wanted(&mut self) -> Option<Duration> {
        let mut next = None;
        for peer in (0..PeerId::COUNT as u8).filter_map(PeerId::from_wire) {
            let wanted = &self.house.wanted[peer.index()];
            if !wanted.load(Acquire) {
                continue;
            }
            let elapsed = self.dialled[peer.index()].map(|last| last.elapsed());
            if let Some(left) = elapsed.and_then(|elapsed| TIMEOUT.checked_sub(elapsed)) {
                next = Some(next.unwrap_or(left).min(left));
                continue;
            }
            // Whoever finds no link after this asks again.
            wanted.store(false, Release);
            if self.is_dialled(peer) || self.house.links.to(peer).is_some() {
                continue;
            }
            self.dialled[peer.index()] = Some(Instant::now());
            self.dial(peer);
        }
        next
    }

    fn is_dialled(&self, peer: PeerId) -> bool {
        self.connections
            .iter()
            .any(|one| matches!(one.state, AcceptorState::Dialled(name) if name.peer == peer))
    }

    fn dial(&mut self, peer: PeerId) {
        let name = match peer {
            PeerId::OBSERVER => self.observer,
            _ => Some(Name { peer, observer: (0, 0) }),
        };
        let Some(name) = name else { return };
        // A peer that is not there, or has too many callers, is dialled again when somebody wants it again.
        let terms = self.house.handshakes.terms();
        if let Ok(socket) = dial(&name.socket(&self.rendezvous.dir), self.rendezvous.name, terms) {
            self.connections
                .push(Connection { socket: Arc::new(socket), state: AcceptorState::Dialled(name) });
        }
    }

    fn on_callers(&mut self) {
        loop {
            match accept_with(&self.rendezvous.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.on_caller(socket),
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(_) => {
                    // No descriptor is free. The caller stays in line; do not ask again at once.
                    std::thread::sleep(TIMEOUT);
                    return;
                }
            }
        }
    }

    fn on_caller(&mut self, socket: OwnedFd) {
        if check_user(&socket).is_err() {
            return;
        }
        let silent = |one: &&mut Connection| matches!(one.state, AcceptorState::Silent);
        if self.connections.iter_mut().filter(silent).count() >= MOST_SILENT
            && let Some(oldest) = self.connections.iter_mut().find(silent)
        {
            oldest.state = AcceptorState::Over;
        }
        self.connections.push(Connection { socket: Arc::new(socket), state: AcceptorState::Silent });
    }

    /// Something has come on a connection, or it has ended.
    fn on_connection(&mut self, at: usize) {
        let socket = Arc::clone(&self.connections[at].socket);
        let state = match std::mem::replace(&mut self.connections[at].state, AcceptorState::Over) {
            AcceptorState::Silent => match hear_caller(&socket) {
                Heard::This(Caller::Sends(name, offer)) => self.on_hello(name, offer, &socket),
                Heard::This(Caller::Garbled(peer)) => self.on_refused(peer, None),
                Heard::This(Caller::Asks(question)) => self.on_question(question, &socket),
                Heard::Nothing => AcceptorState::Silent,
                Heard::Nonsense | Heard::Refused(_) => {
                    self.house.counters.dropped(Cause::Malformed);
                    AcceptorState::Over
                }
                Heard::End => AcceptorState::Over,
            },
            AcceptorState::Dialled(name) => match hear_welcome(&socket, name.peer) {
                Heard::This((producer, waker)) => self.on_welcome(name, producer, waker, &socket),
                Heard::Nothing => AcceptorState::Dialled(name),
                Heard::Nonsense => self.on_refused(name.peer, None),
                Heard::Refused(offer) => self.on_refused(name.peer, Some(offer)),
                Heard::End => AcceptorState::Over,
            },
            // Nothing is said on a connection that stands: this is its end.
            AcceptorState::Incoming(ring) => {
                ring.end();
                // The peer may have been killed between storing and waking, and may have left something.
                self.house.waker.wake_all();
                AcceptorState::Over
            }
            AcceptorState::Outgoing(peer) => {
                self.house.links.remove(peer, &socket);
                AcceptorState::Over
            }
            AcceptorState::Over => AcceptorState::Over,
        };
        if matches!(state, AcceptorState::Over) {
            hang_up(&socket);
        }
        self.connections[at].state = state;
    }

    /// Somebody wants to send to us: a new ring, which takes the place of the one it had before.
    fn on_hello(&mut self, name: Name, offer: Offer, socket: &Arc<OwnedFd>) -> AcceptorState {
        let House { me, handshakes, .. } = &*self.house;
        if name.peer == *me {
            self.house.counters.dropped(Cause::Malformed);
            return AcceptorState::Over;
        }
        if !matches!(&offer, Offer::Terms(terms) if handshakes.objection(terms).is_none()) {
            refuse(socket, *me, handshakes.terms());
            self.house.refuse(name.peer, Some(offer));
            return AcceptorState::Over;
        }
        handshakes.accept(name.peer);
        let Ok((file, ring)) = Ring::create(self.house.ring_bytes) else { return AcceptorState::Over };
        let ring = Arc::new(Incoming::new(name.peer, Consumer::new(ring), Arc::clone(socket)));
        for one in &mut self.connections {
            if matches!(&one.state, AcceptorState::Incoming(old) if old.from == name.peer) {
                hang_up(&one.socket);
                one.state = AcceptorState::Over;
            }
        }
        self.house.arrivals.add(Arc::clone(&ring));
        if welcome(socket, self.house.me, &file, self.house.waker.file()).is_err() {
            self.house.arrivals.close(&ring);
            return AcceptorState::Over;
        }
        if name.peer == PeerId::OBSERVER && self.observer != Some(name) {
            self.forget_observer();
            self.observer = Some(name);
        }
        // Whoever sends to us will be answered: have the way there ready.
        if self.house.links.to(name.peer).is_none() {
            self.house.want(name.peer);
        }
        AcceptorState::Incoming(ring)
    }

    /// Somebody wants memory: that is all that it called for.
    fn on_question(&self, question: Question, socket: &OwnedFd) -> AcceptorState {
        if question.to == self.house.me {
            self.house.published.answer(socket, question);
        } else {
            self.house.counters.dropped(Cause::Malformed);
        }
        AcceptorState::Over
    }

    /// The newest observer is the one that is answered.
    fn forget_observer(&mut self) {
        *self.house.links.to(PeerId::OBSERVER) = None;
        self.dialled[PeerId::OBSERVER.index()] = None;
        for one in &mut self.connections {
            let is_theirs = match one.state {
                AcceptorState::Dialled(name) => name.peer == PeerId::OBSERVER,
                AcceptorState::Outgoing(peer) => peer == PeerId::OBSERVER,
                _ => false,
            };
            if is_theirs {
                hang_up(&one.socket);
                one.state = AcceptorState::Over;
            }
        }
    }

    /// A peer does not let us send to it, or makes no sense.
    fn on_refused(&mut self, peer: PeerId, offer: Option<Offer>) -> AcceptorState {
        self.house.refuse(peer, offer);
        AcceptorState::Over
    }

    /// We can send to a peer.
    fn on_welcome(
        &mut self,
        name: Name,
        producer: Producer,
        waker: Waker,
        socket: &Arc<OwnedFd>,
    ) -> AcceptorState {
        self.house.handshakes.accept(name.peer);
        let link = Link { producer, waker: Arc::new(waker), connection: Arc::clone(socket) };
        *self.house.links.to(name.peer) = Some(link);
        AcceptorState::Outgoing(name.peer)
    }
}

/// What `poll` has found.
struct Ready {
    /// Somebody is at the door.
    callers: bool,
    /// Connections on which something has come, or that have ended.
    connections: Vec<usize>,
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        // The rings hold the connections too: without this, peers would not hear that we are gone until the last
        // ring is dropped.
        for one in &self.connections {
            hang_up(one.socket.as_fd());
        }
    }
}
