//! [`UdpTransport`]: binding, and the way out. The way in is [`super::receive`].
//!
//! What must always hold: no lock is held across a system call that sends; what cannot be sent is counted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use wire::Nanos;
use wire::packet::HEADER_BYTES;

use super::advertised::Advertised;
use super::burst::Datagram;
use super::config::{Error, Naming, UdpConfig};
use super::delayed::Delayed;
use super::envelope;
use super::hello::Hello;
use super::key::Key;
use super::receive::Inbox;
use super::record::{self, RecordKind, SEGMENT_HEAD};
use super::session::{Greeting, Peer, Session};
use super::single::Single;
use super::tag::{HelloKey, TAG};
use super::waiting::Waiting;
use super::whereabouts::{Finder, Reach, Whereabouts};
use super::{mmsg, random};
use crate::head::{Head, MOST_ONE_SIDED_HEAD};
use crate::{
    Body, Cause, Contents, Counters, Handshakes, MOST_CONTROL, MOST_ONE_SIDED, Outgoing, PeerId, Transport,
};

/// The socket buffers asked for: some 1,000 datagrams while this process waits for a processor.
const SOCKET_BUFFER: usize = 4 << 20;

/// A peer's connection to all others through one UDP socket.
#[derive(Debug)]
pub struct UdpTransport {
    pub(super) me: PeerId,
    /// This incarnation.
    pub(super) session: u128,
    pub(super) key: Option<Key>,
    pub(super) hello_key: Option<HelloKey>,
    pub(super) socket: UdpSocket,
    /// By peer.
    pub(super) peers: Arc<[Option<Peer>]>,
    pub(super) reach: Reach,
    pub(super) finder: Finder,
    /// Where this peer is reached, if the others have to be told.
    pub(super) advertise: Option<Advertised>,
    pub(super) block: u64,
    /// The longest datagram.
    pub(super) most: usize,
    pub(super) inbox: Mutex<Inbox>,
    /// The last burst received was a full one.
    pub(super) more: AtomicBool,
    /// Packets without a payload travel one in a datagram to and from the switch.
    pub(super) singles: bool,
    /// How many sessions have begun.
    pub(super) sessions: AtomicU64,
    pub(super) counters: Counters,
    pub(super) handshakes: Arc<Handshakes>,
    /// The number of the next message that is sent in segments.
    next_message: AtomicU64,
    pub(super) waiting: Waiting,
    pub(super) delayed: Delayed,
    /// What can wait does.
    coalescing: bool,
    started: Instant,
}

impl UdpTransport {
    /// Listens, and greets the peers.
    ///
    /// # Errors
    /// If the configuration cannot work ([`Error`]), or the system refuses.
    pub fn bind(config: &UdpConfig) -> Result<Self, Error> {
        config.check()?;
        let listen = config.listen;
        let socket = open(listen).map_err(|error| Error::Bind { listen, error })?;
        let mut peers: Vec<Option<Peer>> = (0..PeerId::COUNT).map(|_| None).collect();
        let observer = (config.me != PeerId::OBSERVER).then_some((PeerId::OBSERVER, None));
        let configured =
            config.peers.iter().map(|(peer_id, advertised)| (*peer_id, Some(advertised.clone())));
        let unlisted = config.unlisted.iter().filter(|peer_id| **peer_id != config.me).map(|it| (*it, None));
        let reach = config.reach();
        for (peer_id, advertised) in observer.into_iter().chain(configured).chain(unlisted) {
            let advertised = advertised.filter(|_| peer_id != PeerId::OBSERVER);
            let challenge = random::nonce().map_err(Error::Random)?;
            let whereabouts = Whereabouts::new(advertised, reach);
            peers[peer_id.index()] = Some(Peer::new(peer_id, whereabouts, challenge));
        }
        let named = config.peers.iter().any(|(_, advertised)| advertised.address().is_none());
        let Naming { advertise, lookup } = config.naming.clone();
        let told = |of: PeerId| config.peers.iter().find(|(peer_id, _)| *peer_id == of);
        let address = |peer_id: PeerId| told(peer_id).map(|(_, advertised)| advertised.to_string());
        let handshakes = Arc::new(Handshakes::new(config.terms.clone(), address));
        let transport = Self {
            me: config.me,
            handshakes,
            session: random::nonce().map_err(Error::Random)?,
            key: config.key.clone(),
            hello_key: config.key.as_ref().map(HelloKey::new),
            socket,
            peers: peers.into(),
            reach,
            finder: Finder::new(lookup),
            advertise,
            block: config.block,
            most: config.datagram(),
            inbox: Mutex::new(Inbox::new(record::longest(config.block))),
            more: AtomicBool::new(false),
            singles: config.singles,
            sessions: AtomicU64::new(0),
            counters: Counters::default(),
            next_message: Default::default(),
            delayed: Delayed::default(),
            coalescing: config.coalescing,
            waiting: Waiting::new().map_err(|error| Error::Bind { listen, error })?,
            started: Instant::now(),
        };
        for peer in transport.peers.iter().flatten() {
            if !peer.whereabouts.is_unlisted() {
                transport.handshakes.greet(peer.id);
            }
            transport.ask(peer, None);
        }
        if named || transport.advertise.is_some() {
            transport.finder.begin(&transport.peers, reach);
        }
        Ok(transport)
    }

    /// Where it receives.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Bytes of the longest IPv4 packet that it sends.
    pub fn longest_packet(&self) -> usize {
        self.most + 20 + 8
    }

    /// True if there is a session with this peer: then messages for it are sent. (Whether it is still alive is
    /// another question.)
    pub fn is_connected(&self, peer_id: PeerId) -> bool {
        self.peer(peer_id).is_some_and(|peer| peer.session().is_some())
    }

    pub(super) fn peer(&self, peer_id: PeerId) -> Option<&Peer> {
        self.peers[peer_id.index()].as_ref()
    }

    pub(super) fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// Asks a peer for its session, but not too often: at its address or, if it has none, where a message came from, or where it was last.
    pub(super) fn ask(&self, peer: &Peer, source: Option<SocketAddr>) {
        let mut greeting = peer.greeting();
        if !greeting.may_ask(self.now()) {
            return;
        }
        let last = || peer.session().map(|session| session.address);
        if let Some(address) = peer.address().or(source).or_else(last) {
            self.greet(peer, &greeting, 0, address);
        }
        if greeting.may_inquire(self.now()) {
            self.inquire(peer);
        }
    }

    /// Tells a peer where a peer is, or asks it, if there is a session with it.
    pub(super) fn send_whereabouts(&self, peer: &Peer, of: PeerId, text: &str) {
        let Some(session) = peer.session() else { return };
        let mut out = Outgoing::new();
        let content = 1 + text.len();
        let bytes = out.burst.record(peer.id, record::size(content), self.most, false, true);
        let bytes = record::frame(RecordKind::Whereabouts, content, bytes);
        bytes[0] = of.to_wire();
        bytes[1..].copy_from_slice(text.as_bytes());
        for datagram in out.burst.datagrams() {
            let sealed = session.seal(self.me, peer.next_counter(), datagram);
            self.transmit(&[(sealed, session.address)], &[0]);
        }
    }

    /// Sends a greeting.
    pub(super) fn greet(&self, peer: &Peer, greeting: &Greeting, echo: u128, address: SocketAddr) {
        let hello = Hello {
            session: self.session,
            challenge: greeting.challenge,
            echo,
            known: peer.session().map_or(0, |session| session.theirs),
            counter: peer.last_counter(),
            elsewhere: self.advertise.is_some(),
        };
        let bytes = hello.encode(self.me, peer.id, self.handshakes.terms(), self.hello_key.as_ref());
        // A greeting that is lost, here or on its way, is asked for again.
        if let Err(error) = self.socket.send_to(&bytes, address) {
            self.counters.dropped(cause(&error));
        }
    }

    /// Completes and sends at most N datagrams.
    fn flush_some<const N: usize>(&self, burst: &mut [Datagram]) {
        const NOWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let mut sealed: [(&[u8], SocketAddr); N] = [(&[], NOWHERE); N];
        let mut messages = [0; N];
        let mut count = 0;
        for datagram in burst {
            let peer = self.peer(datagram.to).expect("only known peers are sent to");
            let Some(session) = peer.session() else {
                for _ in 0..datagram.messages {
                    self.counters.dropped(Cause::Unreachable);
                }
                self.ask(peer, None);
                continue;
            };
            if peer.whereabouts.is_silent.load(Relaxed) {
                self.reach_out(peer);
            }
            messages[count] = datagram.messages;
            sealed[count] = (session.seal(self.me, peer.next_counter(), datagram), session.address);
            count += 1;
        }
        self.transmit(&sealed[..count], &messages[..count]);
    }

    /// Completes and sends one that somebody has kept.
    pub(super) fn send_kept(&self, peer: &Peer, session: &Session, mut datagram: Datagram) {
        let messages = datagram.messages;
        let sealed = session.seal(self.me, peer.next_counter(), &mut datagram);
        self.transmit(&[(sealed, session.address)], &[messages]);
    }

    /// Sends sealed datagrams with their numbers of messages.
    fn transmit(&self, datagrams: &[(&[u8], SocketAddr)], messages: &[u64]) {
        let (mut at, mut retried) = (0, false);
        while at < datagrams.len() {
            match mmsg::send(self.socket.as_fd(), &datagrams[at..]) {
                Ok(sent) => {
                    let bytes: usize = datagrams[at..at + sent].iter().map(|(bytes, _)| bytes.len()).sum();
                    self.counters.sent(messages[at..at + sent].iter().sum(), bytes as u64);
                    at += sent;
                    retried = false;
                }
                // News of an earlier datagram, which the system tells once: this one has not been tried.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && !retried => {
                    self.counters.dropped(Cause::Unreachable);
                    retried = true;
                }
                Err(error) => {
                    for _ in 0..messages[at].max(1) {
                        self.counters.dropped(cause(&error));
                    }
                    at += 1;
                    retried = false;
                }
            }
        }
    }

    /// Cuts a message that is longer than a datagram.
    fn cut(&self, to: PeerId, kind: RecordKind, message: &Message<'_>, out: &mut Outgoing) {
        let number = self.next_message.fetch_add(1, Relaxed);
        let total = message.bytes();
        // Whatever it is, it has waited for coalescing enough.
        let urgent = true;
        let most_piece = self.most - envelope::HEAD - TAG - record::HEAD - SEGMENT_HEAD;
        let mut offset = 0;
        while offset < total {
            let piece = most_piece.min(total - offset);
            let content = SEGMENT_HEAD + piece;
            let ends = offset + piece == total;
            let bytes = out.burst.record(to, record::size(content), self.most, ends, urgent);
            let content = record::frame(kind.segment(), content, bytes);
            message.copy_to(offset, record::frame_segment(number, offset, total, content));
            offset += piece;
        }
    }
}

/// What a message consists of: a header, and bytes.
enum Message<'a> {
    Packet([u8; HEADER_BYTES], Contents<'a>),
    /// About a lock, or between NICs.
    Headed(Head, Contents<'a>),
    Control(&'a [u8]),
}

impl Message<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::Packet(header, contents) => header.len() + contents.bytes(),
            Self::Headed(head, contents) => head.bytes().len() + contents.bytes(),
            Self::Control(bytes) => bytes.len(),
        }
    }

    /// Copies a part, from a multiple of 8.
    fn copy_to(&self, start: usize, mut to: &mut [u8]) {
        let (header, contents) = match self {
            Self::Packet(header, contents) => (&header[..], contents),
            Self::Headed(head, contents) => (head.bytes(), contents),
            Self::Control(bytes) => return to.copy_from_slice(&bytes[start..start + to.len()]),
        };
        if start < header.len() {
            let (first, rest) = to.split_at_mut(to.len().min(header.len() - start));
            first.copy_from_slice(&header[start..start + first.len()]);
            to = rest;
        }
        contents.copy_to(start.saturating_sub(header.len()), to);
    }
}

impl Transport for UdpTransport {
    fn me(&self) -> PeerId {
        self.me
    }

    fn send(&self, to: PeerId, body: Body<'_>, out: &mut Outgoing) {
        assert_ne!(to, self.me, "a message for this peer_id itself");
        let (kind, message) = match body {
            Body::Packet(packet, contents) => {
                let bytes = contents.bytes();
                assert_eq!(bytes, packet.payload as usize, "the contents of {packet:?}");
                assert!(bytes as u64 <= self.block, "{bytes} bytes are more than a block: {packet:?}");
                let mut header = [0; HEADER_BYTES];
                packet.encode(&mut header);
                match contents {
                    Contents::Zeroes(1..) => (RecordKind::Zeroes, Message::Packet(header, Contents::None)),
                    _ => (RecordKind::Packet, Message::Packet(header, contents)),
                }
            }
            Body::Lock(packet, contents) => {
                let bytes = contents.bytes();
                assert_eq!(bytes, packet.payload as usize, "the region of {packet:?}");
                assert!(bytes as u64 <= self.block, "{bytes} bytes are more than a payload: {packet:?}");
                (RecordKind::Lock, Message::Headed(Head::of_lock(packet), contents))
            }
            Body::Verbs(packet, payload, contents) => {
                let bytes = contents.bytes();
                assert_eq!(bytes, payload.next_multiple_of(8), "the payload of {packet:?}");
                assert!(payload <= MOST_ONE_SIDED, "{payload} bytes: {packet:?}");
                (RecordKind::Verbs, Message::Headed(Head::of_one_sided(packet, payload), contents))
            }
            Body::Control(bytes) => {
                assert!(bytes.len() <= MOST_CONTROL, "a control message of {} bytes", bytes.len());
                (RecordKind::Control, Message::Control(bytes))
            }
        };
        if self.peer(to).is_none() {
            self.counters.dropped(Cause::Unreachable);
            return;
        }
        let urgent = !(self.coalescing && body.can_wait());
        if self.is_single(to) {
            match &message {
                Message::Packet(header, Contents::None) if kind == RecordKind::Packet => {
                    return out.burst.single(to, Single::Packet, urgent).copy_from_slice(header);
                }
                Message::Headed(head, Contents::None) if kind == RecordKind::Lock => {
                    let (bytes, rest) =
                        out.burst.single(to, Single::Lock, urgent).split_at_mut(head.bytes().len());
                    bytes.copy_from_slice(head.bytes());
                    return rest.fill(0);
                }
                _ => {}
            }
        }
        let content = message.bytes();
        let size = record::size(content);
        if envelope::HEAD + size + TAG > self.most {
            self.cut(to, kind, &message, out);
        } else {
            let bytes = out.burst.record(to, size, self.most, true, urgent);
            message.copy_to(0, record::frame(kind, content, bytes));
        }
    }

    fn flush(&self, out: &mut Outgoing) {
        self.coalesce(&mut out.burst);
        for burst in out.burst.datagrams().chunks_mut(mmsg::MOST) {
            if burst.len() == 1 {
                self.flush_some::<1>(burst)
            } else {
                self.flush_some::<{ mmsg::MOST }>(burst)
            }
        }
        out.burst.clear();
    }

    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
        self.receive_burst(each)
    }

    fn attend(&self) {
        self.waiting.attend();
    }

    fn leave(&self) -> bool {
        if self.waiting.leave() {
            self.part();
        }
        self.more.load(Relaxed)
    }

    fn wait(&self, most: Nanos) {
        self.waiting.wait(&self.socket, most, || self.part_with_what_is_due());
    }

    fn block(&self, most: Nanos) {
        if !self.more.load(Relaxed) {
            let most = self.part_with_what_is_due().map_or(most, |left| left.min(most));
            self.waiting.block(&self.socket, most);
        }
    }

    fn interrupt(&self) {
        self.waiting.interrupt();
    }

    fn one_sided_room(&self) -> usize {
        let around = envelope::HEAD + TAG + record::HEAD + MOST_ONE_SIDED_HEAD;
        (self.most - around).min(MOST_ONE_SIDED)
    }

    fn hindrance(&self) -> Option<String> {
        self.unresolved()
    }

    fn handshakes(&self) -> Option<Arc<Handshakes>> {
        Some(Arc::clone(&self.handshakes))
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Drop for UdpTransport {
    fn drop(&mut self) {
        self.part();
    }
}

fn open(listen: SocketAddr) -> io::Result<UdpSocket> {
    use rustix::net::sockopt;
    let socket = UdpSocket::bind(listen)?;
    socket.set_nonblocking(true)?;
    // Beyond the system's limit if we may; else as much as it allows; else what it gives everybody.
    if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER).ok();
    }
    sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER).ok();
    Ok(socket)
}

/// Why something could not be sent.
fn cause(error: &io::Error) -> Cause {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Cause::Full,
        _ => Cause::Unreachable,
    }
}
