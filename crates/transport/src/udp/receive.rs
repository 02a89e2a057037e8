//! The way in: one thread at a time takes a burst of datagrams from the socket, checks each, and hands its messages
//! over where they lie.
//!
//! The order of the checks is that of their price. What must always hold: nothing of a datagram is acted upon before
//! its tag was checked; until then the worst that it can do is to have a greeting sent, and not often.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, TryLockError};

use zerocopy::{FromZeros as _, IntoBytes as _};

use super::envelope::{Envelope, EnvelopeKind, Opened};
use super::hello::{Hello, Offer};
use super::mmsg::{self, Arrival};
use super::random;
use super::reassembly::Reassembly;
use super::record::{self, Record, RecordKind, Records};
use super::session::{Greeting, Peer, Session, name};
use super::single::Single;
use super::transport::UdpTransport;
use super::window::Window;
use crate::{Body, Cause, PeerId, Reason, WIRE_VERSION};

/// What the thread that receives needs.
pub(super) struct Inbox {
    buffers: Box<[[u64; mmsg::BUFFER]]>,
    arrivals: Vec<Arrival>,
    senders: Vec<Sender>,
    /// Some sender has an incomplete message.
    partial: bool,
    /// How many datagrams to ask for next. To ask for many takes longer, even if there is one.
    ask: usize,
}

/// What is known of a sender.
#[derive(Debug)]
struct Sender {
    session: Option<Arc<Session>>,
    window: Window,
    /// Of single packets: a switch program in the kernel has counters of its own.
    singles: [Window; Single::ALL.len()],
    reassembly: Reassembly,
}

impl Inbox {
    /// For messages up to this length.
    pub(super) fn new(longest: usize) -> Self {
        let sender = || Sender {
            session: None,
            window: Window::after(0),
            singles: [const { Window::after(0) }; Single::ALL.len()],
            reassembly: Reassembly::new(longest),
        };
        Self {
            buffers: <[[u64; mmsg::BUFFER]]>::new_box_zeroed_with_elems(mmsg::MOST).expect("2 MiB of memory"),
            arrivals: vec![Arrival::none(); mmsg::MOST],
            senders: (0..PeerId::COUNT).map(|_| sender()).collect(),
            partial: false,
            ask: 1,
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("partial", &self.partial).finish_non_exhaustive()
    }
}

impl UdpTransport {
    /// See [`crate::Transport::receive`].
    pub(super) fn receive_burst(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
        self.part_with_what_is_due();
        let mut inbox = match self.inbox.try_lock() {
            Ok(inbox) => inbox,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        let Inbox { buffers, arrivals, senders, partial, ask } = &mut *inbox;
        let arrived = match mmsg::receive(self.socket.as_fd(), &mut buffers[..*ask], arrivals) {
            Ok(arrived) => arrived,
            Err(error) => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    // News of something sent earlier that did not reach anybody.
                    self.counters.dropped(Cause::Unreachable);
                }
                0
            }
        };
        self.more.store(arrived == mmsg::MOST, Relaxed);
        *ask = if arrived == *ask || arrived > 1 { mmsg::MOST } else { 1 };
        if *partial {
            self.expire(senders, partial);
        }
        let mut messages = 0;
        for (buffer, arrival) in buffers[..arrived].iter().zip(arrivals.iter()) {
            let bytes = &buffer.as_bytes()[..arrival.bytes];
            let before = messages;
            let outcome = if arrival.truncated {
                Err(Cause::Malformed)
            } else {
                self.on_datagram(bytes, arrival, senders, partial, &mut |from, body| {
                    messages += 1;
                    each(from, body);
                })
            };
            match outcome {
                Ok(()) => self.counters.received(messages - before, bytes.len() as u64),
                Err(cause) => self.counters.dropped(cause),
            }
        }
        messages as usize
    }

    fn on_datagram(
        &self,
        bytes: &[u8],
        arrival: &Arrival,
        senders: &mut [Sender],
        partial: &mut bool,
        each: &mut dyn FnMut(PeerId, Body<'_>),
    ) -> Result<(), Cause> {
        let opened = Envelope::open(bytes).ok_or(Cause::Malformed)?;
        let head = &opened.head;
        if head.to != self.me {
            return Err(Cause::Malformed);
        }
        let peer = self.peer(head.from).ok_or(Cause::Malformed)?;
        if head.guarded != self.key.is_some() {
            return Err(self.on_other_key(head.kind, peer, arrival));
        }
        let sender = &mut senders[head.from.index()];
        match head.kind {
            EnvelopeKind::Hello => self.on_hello(&opened, peer, sender, arrival),
            EnvelopeKind::Data | EnvelopeKind::Single | EnvelopeKind::SingleLock => {
                let Some(session) = sender.session.as_ref().filter(|session| {
                    head.from_session == name(session.theirs) && head.to_session == name(session.mine)
                }) else {
                    self.ask(peer, arrival.from());
                    return Err(Cause::OtherIncarnation);
                };
                let single = Single::of(head.kind);
                let window = match single {
                    Some(kind) => &mut sender.singles[kind as usize],
                    None => &mut sender.window,
                };
                if !window.is_new(head.counter) {
                    return Err(Cause::Replayed);
                }
                let verified = match single {
                    Some(kind) => session.verify_single(kind, opened.covered, opened.tag),
                    None => session.verify(head.counter, opened.covered, opened.tag),
                };
                if !verified {
                    return Err(Cause::WrongKey);
                }
                window.accept(head.counter);
                session.hear();
                if let Some(kind) = single {
                    let Some((kind, content)) = kind.record(opened.body) else {
                        return Err(Cause::Malformed);
                    };
                    let mut each = |body: Body<'_>| each(head.from, body);
                    let understood = record::deliver(kind, content, self.block, &mut each);
                    return understood.then_some(()).ok_or(Cause::Malformed);
                }
                self.on_data(head.from, opened.body, sender, partial, each)
            }
        }
    }

    fn on_data(
        &self,
        from: PeerId,
        body: &[u8],
        sender: &mut Sender,
        partial: &mut bool,
        each: &mut dyn FnMut(PeerId, Body<'_>),
    ) -> Result<(), Cause> {
        let mut deliver =
            |kind, content: &[u8]| record::deliver(kind, content, self.block, &mut |body| each(from, body));
        for record in Records(body) {
            let understood = match record.map_err(|_| Cause::Malformed)? {
                Record::Whole(RecordKind::Whereabouts, content) => {
                    self.on_whereabouts(from, content)?;
                    true
                }
                Record::Whole(kind, content) => deliver(kind, content),
                Record::Segment(segment) => {
                    let mut lost = 0;
                    let complete = sender.reassembly.on_segment(&segment, self.now(), &mut lost);
                    self.lost(lost);
                    *partial |= !sender.reassembly.is_empty();
                    complete.is_none_or(|message| {
                        let (kind, content) = message.content();
                        let understood = deliver(kind, content);
                        sender.reassembly.recycle(message);
                        understood
                    })
                }
            };
            if !understood {
                return Err(Cause::Malformed);
            }
        }
        Ok(())
    }

    fn on_hello(
        &self,
        opened: &Opened<'_>,
        peer: &Peer,
        sender: &mut Sender,
        arrival: &Arrival,
    ) -> Result<(), Cause> {
        if let (Some(key), Some(tag)) = (&self.hello_key, opened.tag)
            && !key.verify(opened.covered, tag)
        {
            return Err(self.on_other_key(opened.head.kind, peer, arrival));
        }
        let Some((hello, offer)) = Hello::parse(&opened.head, opened.body) else {
            self.refuse(peer, arrival, Reason::Malformed);
            return Err(Cause::Malformed);
        };
        let mut greeting = peer.greeting();
        let alive = hello.echo == greeting.challenge;
        let heard_from = peer.whereabouts.address_heard_from(arrival.from(), alive);
        let address = heard_from.ok_or(Cause::Malformed)?;
        if alive {
            // Nobody shall be able to echo it a second time.
            greeting.challenge = random::nonce().map_err(|_| Cause::Full)?;
        }
        let objection = match offer {
            Offer::Terms(terms) => self.handshakes.objection(&terms),
            Offer::Version(theirs) => Some(Reason::Version { ours: WIRE_VERSION, theirs }),
        };
        if let Some(reason) = objection {
            // What somebody said before, and sends again, is not believed: a peer may have another file by now.
            if alive {
                self.refuse(peer, arrival, reason);
            }
            if greeting.may_refuse(self.now()) {
                self.answer(peer, &greeting, &hello, address, arrival);
            }
            return Err(Cause::Refused);
        }
        let knows = |address: Option<SocketAddr>| {
            sender.session.as_ref().is_some_and(|session| {
                session.theirs == hello.session && address.is_none_or(|address| address == session.address)
            })
        };
        let adopt = alive && !(knows(Some(address)) && peer.session().is_some());
        let settled = knows(None) && hello.known == self.session;
        if adopt {
            self.adopt(&hello, peer, sender, address);
        }
        if adopt || (!settled && greeting.may_answer(self.now())) {
            self.answer(peer, &greeting, &hello, address, arrival);
        }
        drop(greeting);
        if adopt {
            self.tell(peer);
        }
        Ok(())
    }

    /// Answers a greeting: where the peer is; and where this came from, if it may be there by now. Nobody else can do anything
    /// with an answer.
    fn answer(
        &self,
        peer: &Peer,
        greeting: &Greeting,
        hello: &Hello,
        address: SocketAddr,
        arrival: &Arrival,
    ) {
        self.greet(peer, greeting, hello.challenge, address);
        let moves = hello.elsewhere || peer.whereabouts.may_change();
        if let Some(source) = arrival.from().filter(|source| moves && *source != address) {
            self.greet(peer, greeting, hello.challenge, source);
            peer.whereabouts.is_suspect.store(true, Relaxed);
        }
    }

    /// Something came that was not made with this rack's key. If it was the peer, it shall hear of that: it is greeted, at its
    /// own address, and cannot authenticate that either.
    fn on_other_key(&self, kind: EnvelopeKind, peer: &Peer, arrival: &Arrival) -> Cause {
        if kind == EnvelopeKind::Hello {
            self.refuse(peer, arrival, Reason::Key);
            let mut greeting = peer.greeting();
            if let Some(address) = peer.address().filter(|_| greeting.may_refuse(self.now())) {
                self.greet(peer, &greeting, 0, address);
            }
        }
        Cause::WrongKey
    }

    fn refuse(&self, peer: &Peer, arrival: &Arrival, reason: Reason) {
        let address =
            arrival.from().or(peer.address()).map_or_else(String::new, |address| address.to_string());
        self.handshakes.refuse(peer.id, address, reason);
    }

    /// The peer's former session has ended.
    fn adopt(&self, hello: &Hello, peer: &Peer, sender: &mut Sender, address: SocketAddr) {
        let (me, them) = ((self.me, self.session), (peer.id, hello.session));
        let session = Arc::new(Session::new(self.key.as_ref(), me, them, address));
        sender.window = Window::after(hello.counter);
        let is_same = |former: &Arc<Session>| (former.mine, former.theirs) == (session.mine, session.theirs);
        if !sender.session.as_ref().is_some_and(is_same) {
            // Their keys are new, so nothing old fits them. Of a session that only moves, what came stays known.
            sender.singles = [const { Window::after(0) }; Single::ALL.len()];
        }
        self.lost(sender.reassembly.clear());
        sender.session = Some(Arc::clone(&session));
        peer.begin(session);
        if peer.id.as_node().is_some() && peer.whereabouts.is_unlisted() {
            // It may come back elsewhere, and then its silence is all that there is of it.
            self.finder.begin(&self.peers, self.reach);
        }
        self.handshakes.accept(peer.id);
        self.sessions.fetch_add(1, Relaxed);
    }

    fn expire(&self, senders: &mut [Sender], partial: &mut bool) {
        let now = self.now();
        *partial = false;
        for sender in senders.iter_mut().filter(|sender| !sender.reassembly.is_empty()) {
            self.lost(sender.reassembly.expire(now));
            *partial |= !sender.reassembly.is_empty();
        }
    }

    fn lost(&self, messages: usize) {
        for _ in 0..messages {
            self.counters.dropped(Cause::Incomplete);
        }
    }
}
