//! The frames of a device, as they are: through a socket that the standard library does not have.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// All frames of a device of this thread's network, as they are.
pub(super) fn frames_of(device: &str) -> io::Result<File> {
    let all = u16::try_from(libc::ETH_P_ALL).expect("it is short").to_be();
    let name = CString::new(device).expect("no zero in it");
    // SAFETY: the name ends with a zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    // SAFETY: no memory is involved.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, all.into()) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for this process, and nobody else knows of it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: plain numbers, for which 0 is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = all;
    address.sll_ifindex = index.cast_signed();
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is as long as is said, and outlives the call.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(socket.into()) }
}
