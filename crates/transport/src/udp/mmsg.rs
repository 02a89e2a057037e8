//! Several datagrams with one system call: `sendmmsg` and `recvmmsg`. The one module of this transport with unsafe
//! code.
//!
//! What must always hold: the kernel is given only addresses and lengths of memory that outlives the call, which it
//! may read (sending) or write (receiving).
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Datagrams that one call sends or receives at most.
pub(super) const MOST: usize = 32;

/// Words of the buffer of one datagram: none is longer.
pub(super) const BUFFER: usize = (64 << 10) / 8;

/// A socket address as the kernel writes it.
#[repr(C)]
#[derive(Clone, Copy)]
union Address {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

/// One datagram that was received.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// Its length.
    pub(super) bytes: usize,
    /// It was longer than its buffer.
    pub(super) truncated: bool,
    from: Address,
}

impl Arrival {
    /// None yet.
    pub(super) fn none() -> Self {
        Self { bytes: 0, truncated: false, from: Address::empty() }
    }

    /// Where it claims to come from.
    pub(super) fn from(&self) -> Option<SocketAddr> {
        self.from.get()
    }
}

impl Address {
    fn empty() -> Self {
        // SAFETY: both are plain numbers, for which zeroes are valid.
        Self { v6: unsafe { mem::zeroed() } }
    }

    fn new(address: SocketAddr) -> (Self, libc::socklen_t) {
        let mut new = Self::empty();
        match address {
            SocketAddr::V4(v4) => {
                // SAFETY: as in `empty`.
                let mut raw: libc::sockaddr_in = unsafe { mem::zeroed() };
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_port = v4.port().to_be();
                raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                new.v4 = raw;
                (new, mem::size_of::<libc::sockaddr_in>() as libc::socklen_t)
            }
            SocketAddr::V6(v6) => {
                // SAFETY: as in `empty`.
                let mut raw: libc::sockaddr_in6 = unsafe { mem::zeroed() };
                raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                raw.sin6_port = v6.port().to_be();
                raw.sin6_addr.s6_addr = v6.ip().octets();
                raw.sin6_scope_id = v6.scope_id();
                new.v6 = raw;
                (new, mem::size_of::<libc::sockaddr_in6>() as libc::socklen_t)
            }
        }
    }

    fn get(&self) -> Option<SocketAddr> {
        // SAFETY: all variants are plain numbers without padding that matters, and `empty` has initialized the
        // longest one; so each may be read whatever was written.
        let (family, v4, v6) = unsafe { (self.family, self.v4, self.v6) };
        match libc::c_int::from(family) {
            libc::AF_INET => {
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Some(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// Sends the first of these datagrams, at most [`MOST`], and returns how many; never waits.
///
/// # Errors
/// What became of the first one, if it could not be sent.
pub(super) fn send(socket: BorrowedFd<'_>, datagrams: &[(&[u8], SocketAddr)]) -> io::Result<usize> {
    // One is the common case, and the arrays below take longer to fill than it may cost.
    if datagrams.len() == 1 {
        send_some::<1>(socket, datagrams)
    } else {
        send_some::<MOST>(socket, datagrams)
    }
}

fn send_some<const N: usize>(socket: BorrowedFd<'_>, datagrams: &[(&[u8], SocketAddr)]) -> io::Result<usize> {
    let count = datagrams.len().min(N);
    let mut addresses = [Address::empty(); N];
    // SAFETY: plain numbers and null pointers.
    let mut vectors: [libc::iovec; N] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut headers: [libc::mmsghdr; N] = unsafe { mem::zeroed() };
    for at in 0..count {
        let (bytes, to) = datagrams[at];
        let length;
        (addresses[at], length) = Address::new(to);
        // The kernel only reads what it sends.
        vectors[at] = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let header = &mut headers[at].msg_hdr;
        header.msg_name = (&raw mut addresses[at]).cast();
        header.msg_namelen = length;
        header.msg_iov = &raw mut vectors[at];
        header.msg_iovlen = 1;
    }
    loop {
        // SAFETY: `count` headers are filled in; their vectors and addresses are the arrays above, and the bytes are
        // borrowed: all of them outlive the call.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        match done(sent)? {
            Some(sent) => return Ok(sent),
            None => continue,
        }
    }
}

/// Receives into the first of these buffers, at most [`MOST`], and returns how many; never waits.
///
/// # Errors
/// If nothing is there (`WouldBlock`), or an earlier datagram could not be delivered.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    buffers: &mut [[u64; BUFFER]],
    arrivals: &mut [Arrival],
) -> io::Result<usize> {
    if buffers.len() == 1 {
        receive_some::<1>(socket, buffers, arrivals)
    } else {
        receive_some::<MOST>(socket, buffers, arrivals)
    }
}

fn receive_some<const N: usize>(
    socket: BorrowedFd<'_>,
    buffers: &mut [[u64; BUFFER]],
    arrivals: &mut [Arrival],
) -> io::Result<usize> {
    let count = buffers.len().min(arrivals.len()).min(N);
    // SAFETY: plain numbers and null pointers.
    let mut vectors: [libc::iovec; N] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut headers: [libc::mmsghdr; N] = unsafe { mem::zeroed() };
    for at in 0..count {
        vectors[at] = libc::iovec { iov_base: buffers[at].as_mut_ptr().cast(), iov_len: BUFFER * 8 };
        let header = &mut headers[at].msg_hdr;
        header.msg_name = (&raw mut arrivals[at].from).cast();
        header.msg_namelen = mem::size_of::<Address>() as libc::socklen_t;
        header.msg_iov = &raw mut vectors[at];
        header.msg_iovlen = 1;
    }
    let received = loop {
        // SAFETY: `count` headers are filled in; each vector is a whole buffer of plain numbers that is borrowed
        // mutably, and the addresses are those of the arrivals, borrowed mutably too: all of them outlive the call.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if let Some(received) = done(received)? {
            break received;
        }
    };
    for (arrival, header) in arrivals.iter_mut().zip(&headers[..received]) {
        arrival.bytes = header.msg_len as usize;
        arrival.truncated = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
    }
    Ok(received)
}

/// What a call returned: a count, or None if it was interrupted.
fn done(returned: libc::c_int) -> io::Result<Option<usize>> {
    if let Ok(count) = usize::try_from(returned) {
        return Ok(Some(count));
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, BUFFER, MOST};
    use std::net::{SocketAddr, UdpSocket};
    use std::os::fd::AsFd as _;
    use zerocopy::{FromZeros as _, IntoBytes as _};

    fn round(ip: &str) {
        let bind = || UdpSocket::bind((ip, 0)).expect("loopback");
        let (from, to) = (bind(), bind());
        let address = to.local_addr().expect("bound");
        let messages: Vec<Vec<u8>> = (0..5).map(|at| vec![at as u8; 100 * at + 1]).collect();
        let datagrams: Vec<(&[u8], SocketAddr)> =
            messages.iter().map(|bytes| (&bytes[..], address)).collect();
        assert_eq!(super::send(from.as_fd(), &datagrams).expect("sent"), 5);
        let mut buffers = <[[u64; BUFFER]]>::new_box_zeroed_with_elems(8).expect("memory");
        let mut arrivals = [Arrival::none(); MOST];
        assert_eq!(super::receive(to.as_fd(), &mut buffers, &mut arrivals).expect("received"), 5);
        for ((message, arrival), buffer) in messages.iter().zip(&arrivals).zip(&buffers) {
            assert_eq!(&buffer.as_bytes()[..arrival.bytes], message);
            assert_eq!(arrival.from(), from.local_addr().ok());
            assert!(!arrival.truncated);
        }
        let empty = super::receive(to.as_fd(), &mut buffers, &mut arrivals).expect_err("nothing there");
        assert_eq!(empty.kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_burst_arrives_with_its_lengths_and_addresses() {
        round("127.0.0.1");
    }

    #[test]
    fn a_burst_over_ipv6_does_too() {
        if UdpSocket::bind(("::1", 0)).is_err() {
            println!("skipped: this machine has no IPv6 loopback");
            return;
        }
        round("::1");
    }
}
