//! The ports of the switch: devices at whose ingress the program sees every frame, and what is at the other end of each.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

/// A device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Device {
    pub(crate) index: u32,
    /// Its Ethernet address.
    pub(crate) address: [u8; 6],
    /// Bytes of the longest IP packet that it carries.
    pub(crate) mtu: usize,
}

/// Who is at the other end of a device, as the kernel's table of neighbours says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    pub(crate) address: [u8; 6],
    pub(crate) device: String,
}

/// Finds a neighbour. None: the kernel does not know it, or not yet.
pub(crate) fn neighbour(of: Ipv4Addr) -> io::Result<Option<Neighbour>> {
    // Of the network namespace of this thread, which may be another one than the process began in.
    let table = fs::read_to_string("/proc/thread-self/net/arp")?;
    Ok(table.lines().skip(1).find_map(|line| of_line(line, of)))
}

/// A line: address, kind of hardware, flags, hardware address, mask, device.
fn of_line(line: &str, of: Ipv4Addr) -> Option<Neighbour> {
    /// The hardware address is known.
    const COMPLETE: u32 = 2;
    let mut words = line.split_ascii_whitespace();
    let ip: Ipv4Addr = words.next()?.parse().ok()?;
    let flags = u32::from_str_radix(words.nth(1)?.strip_prefix("0x")?, 16).ok()?;
    let address = hardware_address(words.next()?)?;
    let device = words.nth(1)?.to_owned();
    (ip == of && flags & COMPLETE != 0).then_some(Neighbour { address, device })
}

fn hardware_address(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_known_if_its_line_is_complete() {
        let line = "10.77.1.2        0x1         0x2         3a:00:bb:01:02:ff     *        p0";
        let found = of_line(line, Ipv4Addr::new(10, 77, 1, 2)).expect("it is there");
        assert_eq!(found, Neighbour { address: [0x3a, 0, 0xbb, 1, 2, 0xff], device: "p0".into() });
        assert_eq!(of_line(line, Ipv4Addr::new(10, 77, 1, 3)), None);
        assert_eq!(of_line(&line.replace("0x2 ", "0x0 "), Ipv4Addr::new(10, 77, 1, 2)), None);
        for short in ["", "10.77.1.2", "10.77.1.2 0x1 0x2 3a:00 * p0", "10.77.1.2 1 2 3 4 5"] {
            assert_eq!(of_line(short, Ipv4Addr::new(10, 77, 1, 2)), None, "{short}");
        }
    }
}
