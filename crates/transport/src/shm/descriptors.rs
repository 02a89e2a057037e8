//! Messages that bring descriptors, on the connections between peers. No call here waits.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::greeting::Heard;

/// Descriptors of one message.
const MOST: usize = 2;

pub(super) fn send_with(
    connection: &OwnedFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "there is space for {MOST} descriptors");
    }
    sendmsg(connection, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

/// A message: how long it is, and what came with it. That is owned here, and closed unless it is what was expected.
pub(super) fn receive_with<T>(
    connection: &OwnedFd,
    bytes: &mut [u8],
) -> Result<(usize, Vec<OwnedFd>), Heard<T>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let length = match recvmsg(connection, &mut [IoSliceMut::new(bytes)], &mut control, flags) {
        Ok(message) if message.bytes > 0 => message.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Err(Heard::Nothing),
        _ => return Err(Heard::End),
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            descriptors.extend(more);
        }
    }
    Ok((length, descriptors))
}
