//! Loopback addresses for a rack on one machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// Linux gives ports from 32768 on to sockets that ask for any port.
const FIRST: u32 = 20_000;
const PORTS: u32 = 12_000;

/// As many loopback addresses as asked for, with ports that no socket has now, for the peers of a rack that a command
/// or a test starts.
///
/// The ports lie below those that the system hands out: between this call and the bind of whoever gets the address, no
/// socket that asks for any port can take it. No port is named twice by one process, and each process begins elsewhere.
///
/// # Errors
/// If all these ports are taken, what the last bind said.
pub fn unused_addresses(count: usize) -> io::Result<Vec<SocketAddr>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let offset = std::process::id().wrapping_mul(997);
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    let mut addresses = Vec::with_capacity(count);
    for _ in 0..PORTS {
        if addresses.len() == count {
            return Ok(addresses);
        }
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + offset.wrapping_add(step) % PORTS;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port as u16));
        match UdpSocket::bind(address).and_then(|_| TcpListener::bind(address)) {
            Ok(_) => addresses.push(address),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_and_no_socket_that_asks_for_any_port_gets_one() {
        let mut all = unused_addresses(5).expect("loopback");
        all.extend(unused_addresses(5).expect("loopback"));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 10);
        let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("Linux");
        let first: u16 =
            first.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a port");
        assert!(all.iter().all(|address| address.port() < first), "{all:?} from {first} on");
    }

    #[test]
    fn a_port_that_somebody_has_is_passed_over() {
        let taken: Vec<_> = unused_addresses(3).expect("loopback");
        let _held: Vec<_> = taken.iter().map(|address| UdpSocket::bind(address).expect("unused")).collect();
        assert!(unused_addresses(200).expect("loopback").iter().all(|address| !taken.contains(address)));
    }
}
