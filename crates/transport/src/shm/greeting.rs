//! What two places say to each other when they connect.
//!
//! Whoever wants to send connects to the receiver's socket and says who it is. The receiver makes a ring and answers
//! with it and its bell, both as descriptors. After that nothing is said: the connection stands for as long as both
//! live and want it, and its end is how each learns that the other is gone. Others call to ask for memory (`asking`).
//!
//! What must always hold: nobody of another user gets an answer, no call here waits, and what comes is either exactly
//! one of the two messages or refused. Descriptors that nobody asked for are closed by the kernel.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, recvmsg, send,
    sendmsg, socket_with,
};
use rustix::process::geteuid;

use super::asking::{QUESTION_BYTES, Question};
use super::bell::Bell;
use super::rendezvous::Name;
use super::ring::{Producer, Ring};
use crate::PlaceId;

const MAGIC: [u8; 8] = *b"rackshm1";
const HELLO_BYTES: usize = 17;
const WELCOME_BYTES: usize = 9;

/// What has come on a connection.
pub(super) enum Heard<T> {
    /// What was expected.
    This(T),
    /// Nothing so far.
    Nothing,
    /// The other side has gone, or is none of ours.
    End,
}

/// What somebody called for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Caller {
    /// To send to us.
    Sends(Name),
    /// For memory.
    Asks(Question),
}

/// Connects to a place.
pub(super) fn connect_to(socket: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&connection, &SocketAddrUnix::new(socket)?)?;
    check_user(&connection)?;
    Ok(connection)
}

/// Connects to a place and says who we are. Its answer comes later.
pub(super) fn dial(socket: &Path, me: Name) -> io::Result<OwnedFd> {
    let connection = connect_to(socket)?;
    let mut hello = [0; HELLO_BYTES];
    hello[..8].copy_from_slice(&MAGIC);
    hello[8] = me.place.to_wire();
    hello[9..13].copy_from_slice(&me.observer.0.to_le_bytes());
    hello[13..].copy_from_slice(&me.observer.1.to_le_bytes());
    send(&connection, &hello, SendFlags::NOSIGNAL)?;
    Ok(connection)
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
    let mut bytes = [0; QUESTION_BYTES + 1];
    match recv(connection, &mut bytes[..], RecvFlags::DONTWAIT) {
        Ok((_, HELLO_BYTES)) => {}
        Ok((_, QUESTION_BYTES)) => {
            let question = Question::of_bytes(&bytes[..QUESTION_BYTES]);
            return question.map_or(Heard::End, |question| Heard::This(Caller::Asks(question)));
        }
        Err(Errno::AGAIN | Errno::INTR) => return Heard::Nothing,
        _ => return Heard::End,
    }
    let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    match PlaceId::from_wire(bytes[8]) {
        Some(place) if bytes[..8] == MAGIC => {
            let observer = if place == PlaceId::OBSERVER { (number(9), number(13)) } else { (0, 0) };
            Heard::This(Caller::Sends(Name { place, observer }))
        }
        _ => Heard::End,
    }
}

/// Answers with the descriptors of a new ring and of our bell.
pub(super) fn welcome(connection: &OwnedFd, me: PlaceId, ring: &OwnedFd, bell: &OwnedFd) -> io::Result<()> {
    let mut bytes = [0; WELCOME_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8] = me.to_wire();
    let descriptors = [ring.as_fd(), bell.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
    assert!(fits, "there is space for two descriptors");
    sendmsg(connection, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

/// The ring and the bell of the place that was dialled.
pub(super) fn hear_welcome(connection: &OwnedFd, place: PlaceId) -> Heard<(Producer, Bell)> {
    let [ring, bell] = match hear_descriptors(connection, place) {
        Heard::This(descriptors) => descriptors,
        Heard::Nothing => return Heard::Nothing,
        Heard::End => return Heard::End,
    };
    match (Ring::open(ring), Bell::open(bell)) {
        (Ok(ring), Ok(bell)) => Heard::This((Producer::new(ring), bell)),
        _ => Heard::End,
    }
}

/// The same, as descriptors of whatever it may be.
pub(super) fn hear_descriptors(connection: &OwnedFd, place: PlaceId) -> Heard<[OwnedFd; 2]> {
    let mut bytes = [0; WELCOME_BYTES + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let length = match recvmsg(connection, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        Ok(message) => message.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Heard::Nothing,
        Err(_) => return Heard::End,
    };
    // Whatever came is owned here, and closed unless it is what was expected.
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            descriptors.extend(more);
        }
    }
    if length != WELCOME_BYTES || bytes[..8] != MAGIC || bytes[8] != place.to_wire() {
        return Heard::End;
    }
    descriptors.try_into().map_or(Heard::End, Heard::This)
}
