//! What two peers say to each other when they connect.
//!
//! Whoever wants to send connects to the receiver's socket and says who it is, and with which settings. If the receiver has
//! the same ones it makes a ring and answers with it and its waker, both as descriptors. After that nothing is said: the
//! connection stands for as long as both live and want it, and its end is how each learns that the other is gone. If they
//! differ the receiver answers with its own settings and hangs up, so that both know. Others call to ask for memory
//! (`asking`).
//!
//! ```text
//! hello    version: 8 bytes | peer: 1 | observer: 8 | settings
//! welcome  version: 8 bytes | peer: 1                          and two descriptors
//! refusal  version: 8 bytes | peer: 1 | settings
//! ```
//!
//! What must always hold: nobody of another user gets an answer, no call here waits, and what comes is either exactly
//! one of these messages or refused. The front of each, up to the peer, is the same in all versions. Descriptors that
//! nobody asked for are closed by the kernel.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use rustix::process::geteuid;

use super::asking::{QUESTION_BYTES, Question};
use super::descriptors::{receive_with, send_with};
use super::rendezvous::Name;
use super::ring::{Producer, Ring};
use super::waker::Waker;
use crate::PeerId;
use crate::terms::{MOST_TERMS, Terms, WIRE_VERSION};

/// Of a hello, in front of the settings.
const HELLO_BYTES: usize = 17;
/// Of a welcome; and of a refusal in front of the settings.
const WELCOME_BYTES: usize = 9;

/// What begins a message of this version: seven letters and a digit. (Behind 9 come the characters behind it.)
pub(super) const fn magic(letters: &[u8; 7]) -> [u8; 8] {
    let [a, b, c, d, e, f, g] = *letters;
    [a, b, c, d, e, f, g, b'0' + WIRE_VERSION]
}

const LETTERS: &[u8; 7] = b"rackshm";
const MAGIC: [u8; 8] = magic(LETTERS);

/// What the other side of a connection says about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Offer {
    /// Its settings.
    Terms(Terms),
    /// That it is of another version.
    Version(u8),
}

/// The front of a message, and what is behind it. None: it is none, in any version.
fn open(bytes: &[u8]) -> Option<(PeerId, Result<&[u8], u8>)> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (peer, rest) = rest.split_first()?;
    let of_some_version = magic[..7] == *LETTERS;
    let rest = if *magic == MAGIC { Ok(rest) } else { Err(magic[7].wrapping_sub(b'0')) };
    of_some_version.then_some((PeerId::from_wire(*peer)?, rest))
}

/// Who says hello, and what else it says. None: nobody says that.
pub(super) fn parse_hello(bytes: &[u8]) -> Option<(Name, Offer)> {
    let (peer, rest) = open(bytes)?;
    let rest = match rest {
        Ok(rest) => rest,
        Err(version) => return Some((Name { peer, observer: (0, 0) }, Offer::Version(version))),
    };
    let (observer, terms) = rest.split_first_chunk::<8>()?;
    let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| observer[at + i]));
    let observer = if peer == PeerId::OBSERVER { (number(0), number(4)) } else { (0, 0) };
    Some((Name { peer, observer }, Offer::Terms(Terms::parse(terms)?)))
}

/// Who refuses, and why. None: nobody says that.
pub(super) fn parse_refusal(bytes: &[u8]) -> Option<(PeerId, Offer)> {
    let (peer, rest) = open(bytes)?;
    let offer = match rest {
        Ok(rest) => Offer::Terms(Terms::parse(rest)?),
        Err(version) => Offer::Version(version),
    };
    Some((peer, offer))
}

/// What has come on a connection.
pub(super) enum Heard<T> {
    /// What was expected.
    This(T),
    /// Nothing so far.
    Nothing,
    /// The other side has gone.
    End,
    /// What nobody says.
    Nonsense,
    /// The other side does not want to talk, as it has other settings or is of another version.
    Refused(Offer),
}

/// What somebody called for.
#[derive(Clone, Debug)]
pub(super) enum Caller {
    /// To send to us.
    Sends(Name, Offer),
    /// To send to us, says this peer, and nothing that makes sense behind it.
    Garbled(PeerId),
    /// For memory.
    Asks(Question),
}

/// Connects to a peer.
pub(super) fn connect_to(socket: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&connection, &SocketAddrUnix::new(socket)?)?;
    check_user(&connection)?;
    Ok(connection)
}

/// Who we are, and with which settings.
pub(super) fn hello(me: Name, terms: &Terms) -> Vec<u8> {
    let (process, number) = me.observer;
    let front = [&MAGIC[..], &[me.peer.to_wire()], &process.to_le_bytes(), &number.to_le_bytes()];
    [&front.concat(), terms.as_bytes()].concat()
}

/// That we do not talk, and with which settings we would.
pub(super) fn refusal(me: PeerId, terms: &Terms) -> Vec<u8> {
    [&MAGIC[..], &[me.to_wire()], terms.as_bytes()].concat()
}

/// Connects to a peer and says who we are. Its answer comes later.
pub(super) fn dial(socket: &Path, me: Name, terms: &Terms) -> io::Result<OwnedFd> {
    let connection = connect_to(socket)?;
    send(&connection, &hello(me, terms), SendFlags::NOSIGNAL)?;
    Ok(connection)
}

/// Answers that we do not talk. If that cannot be sent, whoever called is not there any more.
pub(super) fn refuse(connection: &OwnedFd, me: PeerId, terms: &Terms) {
    let _ = send(connection, &refusal(me, terms), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// The other end of a connection is a process of our user.
pub(super) fn check_user(connection: &OwnedFd) -> io::Result<()> {
    if socket_peercred(connection)?.uid == geteuid() {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Who is calling, and what for.
pub(super) fn hear_caller(connection: &OwnedFd) -> Heard<Caller> {
    // What is longer has another length than all that is said.
    let mut bytes = [0; HELLO_BYTES + MOST_TERMS + 1];
    let length = match recv(connection, &mut bytes[..], RecvFlags::DONTWAIT) {
        Ok((_, 0)) => return Heard::End,
        Ok((_, length)) => length.min(bytes.len()),
        Err(Errno::AGAIN | Errno::INTR) => return Heard::Nothing,
        Err(_) => return Heard::End,
    };
    let bytes = &bytes[..length];
    let question = || (bytes.len() == QUESTION_BYTES).then(|| Question::of_bytes(bytes)).flatten();
    let caller = if let Some((name, offer)) = parse_hello(bytes) {
        Some(Caller::Sends(name, offer))
    } else if let Some((peer, _)) = open(bytes) {
        Some(Caller::Garbled(peer))
    } else {
        question().map(Caller::Asks)
    };
    caller.map_or(Heard::Nonsense, Heard::This)
}

/// Answers with the descriptors of a new ring and of our waker.
pub(super) fn welcome(connection: &OwnedFd, me: PeerId, ring: &OwnedFd, waker: &OwnedFd) -> io::Result<()> {
    let mut bytes = [0; WELCOME_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8] = me.to_wire();
    send_with(connection, &bytes, &[ring.as_fd(), waker.as_fd()])
}

/// The ring and the waker of the peer that was dialled.
pub(super) fn hear_welcome(connection: &OwnedFd, peer: PeerId) -> Heard<(Producer, Waker)> {
    let [ring, waker] = match hear_descriptors(connection, peer) {
        Heard::This(descriptors) => descriptors,
        Heard::Nothing => return Heard::Nothing,
        Heard::End => return Heard::End,
        Heard::Nonsense => return Heard::Nonsense,
        Heard::Refused(offer) => return Heard::Refused(offer),
    };
    match (Ring::open(ring), Waker::open(waker)) {
        (Ok(ring), Ok(waker)) => Heard::This((Producer::new(ring), waker)),
        _ => Heard::Nonsense,
    }
}

/// The same, as descriptors of whatever it may be.
pub(super) fn hear_descriptors(connection: &OwnedFd, peer: PeerId) -> Heard<[OwnedFd; 2]> {
    let mut bytes = [0; WELCOME_BYTES + MOST_TERMS + 1];
    let (length, descriptors) = match receive_with(connection, &mut bytes) {
        Ok(message) => message,
        Err(none) => return none,
    };
    let bytes = &bytes[..length.min(bytes.len())];
    match (parse_refusal(bytes), descriptors.len()) {
        (Some((from, Offer::Terms(_))), 2) if from == peer && bytes.len() == WELCOME_BYTES => {
            descriptors.try_into().map_or(Heard::Nonsense, Heard::This)
        }
        (Some((from, offer)), 0) if from == peer => Heard::Refused(offer),
        _ => Heard::Nonsense,
    }
}
