//! The outside of a packet: Ethernet II, IPv4 and UDP in front, the ICRC behind.
//!
//! Only tests and captures write whole frames. It takes three steps, so that the payload is copied once: [`Frame::encode_head`], the payload
//! behind it, [`Frame::seal`].
//!
//! What must always hold: the ICRC covers what no switch may change. So it is computed with TTL, TOS, both checksums
//! and the BTH's fifth byte set to ones, after eight bytes of ones where InfiniBand has its local header.

use core::net::Ipv4Addr;

use super::crc::Crc32;
use super::malformed::Malformed;
use super::packet::{BTH_BYTES, MOST_HEADER_BYTES, Packet, padding};

/// The UDP port of RoCEv2.
pub const UDP_PORT: u16 = 4791;
/// Bytes in front of the BTH.
pub const OUTER_BYTES: usize = ETHERNET_BYTES + IP_BYTES + UDP_BYTES;
/// Bytes of the ICRC.
pub const ICRC_BYTES: usize = 4;
/// Most bytes of a frame beside its payload.
pub const MOST_OVERHEAD: usize = OUTER_BYTES + MOST_HEADER_BYTES + 3 + ICRC_BYTES;

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_UDP: u8 = 17;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS_OR_OFFSET: u16 = 0x3fff;

/// From whom to whom: what stands in front of the transport's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Ethernet address of the sender.
    pub source_mac: [u8; 6],
    /// Ethernet address of the receiver.
    pub destination_mac: [u8; 6],
    /// The sender.
    pub source: Ipv4Addr,
    /// The receiver.
    pub destination: Ipv4Addr,
    /// UDP port of the sender: any number that is the same for a queue pair, so that its packets take one path.
    pub source_port: u16,
    /// The IPv4 header's identification.
    pub identification: u16,
    /// Class of traffic, and congestion bits.
    pub type_of_service: u8,
    /// Hops left.
    pub time_to_live: u8,
}

impl Route {
    /// A way with the usual class and hops, and no Ethernet addresses.
    pub const fn new(source: Ipv4Addr, destination: Ipv4Addr, source_port: u16) -> Self {
        Self {
            source_mac: [0; 6],
            destination_mac: [0; 6],
            source,
            destination,
            source_port,
            identification: 0,
            type_of_service: 0,
            time_to_live: 64,
        }
    }

    /// The way back.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source_mac: self.destination_mac,
            destination_mac: self.source_mac,
            source: self.destination,
            destination: self.source,
            ..self
        }
    }
}

/// A packet with its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// From whom to whom.
    pub route: Route,
    /// The transport's headers.
    pub packet: Packet,
}

impl Frame {
    /// Bytes of the whole frame with a payload of so many.
    pub const fn bytes(&self, payload: usize) -> usize {
        self.head_bytes() + payload + padding(payload) + ICRC_BYTES
    }

    /// Bytes in front of the payload.
    pub const fn head_bytes(&self) -> usize {
        OUTER_BYTES + self.packet.header_bytes()
    }

    /// Writes everything in front of a payload of so many bytes, and returns where that begins.
    ///
    /// # Panics
    /// If the packet's extension is not that of its opcode, if the frame is longer than an IPv4 packet can be, or if
    /// `out` is too short.
    pub fn encode_head(&self, payload: usize, out: &mut [u8]) -> usize {
        let route = &self.route;
        let ip_bytes = self.bytes(payload) - ETHERNET_BYTES;
        let ip_bytes = u16::try_from(ip_bytes).expect("an IPv4 packet has less than 64 KiB");
        out[0..6].copy_from_slice(&route.destination_mac);
        out[6..12].copy_from_slice(&route.source_mac);
        out[12..14].copy_from_slice(&ETHERTYPE_IPV4);
        let (ip, rest) =
            out[ETHERNET_BYTES..].split_first_chunk_mut::<IP_BYTES>().expect("room for a header");
        ip[0] = 0x45;
        ip[1] = route.type_of_service;
        ip[2..4].copy_from_slice(&ip_bytes.to_be_bytes());
        ip[4..6].copy_from_slice(&route.identification.to_be_bytes());
        ip[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
        ip[8] = route.time_to_live;
        ip[9] = PROTOCOL_UDP;
        ip[10..12].fill(0);
        ip[12..16].copy_from_slice(&route.source.octets());
        ip[16..20].copy_from_slice(&route.destination.octets());
        let checksum = !ones_sum(ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        rest[0..2].copy_from_slice(&route.source_port.to_be_bytes());
        rest[2..4].copy_from_slice(&UDP_PORT.to_be_bytes());
        rest[4..6].copy_from_slice(&(ip_bytes - IP_BYTES as u16).to_be_bytes());
        // The ICRC is the better checksum; zero says that there is no other.
        rest[6..8].fill(0);
        OUTER_BYTES + self.packet.encode(payload, &mut rest[UDP_BYTES..])
    }

    /// Pads the payload, which stands behind the head by now, and writes the ICRC; returns the frame's length.
    ///
    /// # Panics
    /// If `out` is too short.
    pub fn seal(&self, payload: usize, out: &mut [u8]) -> usize {
        let bytes = self.bytes(payload);
        let end = bytes - ICRC_BYTES;
        out[self.head_bytes() + payload..end].fill(0);
        let icrc = icrc(&out[ETHERNET_BYTES..end]);
        out[end..bytes].copy_from_slice(&icrc.to_le_bytes());
        bytes
    }

    /// Writes a whole frame, and returns its length.
    ///
    /// # Panics
    /// As [`Frame::encode_head`].
    pub fn encode(&self, payload: &[u8], out: &mut [u8]) -> usize {
        let at = self.encode_head(payload.len(), out);
        out[at..at + payload.len()].copy_from_slice(payload);
        self.seal(payload.len(), out)
    }

    /// Reads a frame, and returns it with its payload. What Ethernet may have put behind the IPv4 packet is ignored.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (ethernet, rest) = bytes.split_first_chunk::<ETHERNET_BYTES>().ok_or(Malformed::Truncated)?;
        if ethernet[12..14] != ETHERTYPE_IPV4 {
            return Err(Malformed::NotIpv4);
        }
        let ip = rest.first_chunk::<IP_BYTES>().ok_or(Malformed::Truncated)?;
        let u16_of = |header: &[u8], at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        if ip[0] != 0x45 {
            return Err(Malformed::IpHeader);
        }
        if ones_sum(ip) != 0xffff {
            return Err(Malformed::IpChecksum);
        }
        if u16_of(ip, 6) & MORE_FRAGMENTS_OR_OFFSET != 0 {
            return Err(Malformed::Fragment);
        }
        if ip[9] != PROTOCOL_UDP {
            return Err(Malformed::NotUdp);
        }
        let ip_packet = rest.get(..usize::from(u16_of(ip, 2))).ok_or(Malformed::Truncated)?;
        let udp_datagram = ip_packet.get(IP_BYTES..).ok_or(Malformed::Truncated)?;
        let (udp, transport) = udp_datagram.split_first_chunk::<UDP_BYTES>().ok_or(Malformed::Truncated)?;
        if u16_of(udp, 2) != UDP_PORT {
            return Err(Malformed::NotRoce);
        }
        if usize::from(u16_of(udp, 4)) != udp_datagram.len() {
            return Err(Malformed::UdpLength);
        }
        let (transport, sent) = transport.split_last_chunk::<ICRC_BYTES>().ok_or(Malformed::Truncated)?;
        if transport.len() < BTH_BYTES {
            return Err(Malformed::Truncated);
        }
        if icrc(&ip_packet[..ip_packet.len() - ICRC_BYTES]) != u32::from_le_bytes(*sent) {
            return Err(Malformed::Icrc);
        }
        let (packet, payload) = Packet::parse(transport)?;
        let route = Route {
            source_mac: core::array::from_fn(|i| ethernet[6 + i]),
            destination_mac: core::array::from_fn(|i| ethernet[i]),
            source: Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]),
            destination: Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]),
            source_port: u16_of(udp, 0),
            identification: u16_of(ip, 4),
            type_of_service: ip[1],
            time_to_live: ip[8],
        };
        Ok((Self { route, packet }, payload))
    }
}

/// The invariant CRC of an IPv4 packet that ends before the ICRC.
///
/// # Panics
/// If it is shorter than IPv4, UDP and BTH headers together.
pub fn icrc(ip_packet: &[u8]) -> u32 {
    const MASKED: usize = IP_BYTES + UDP_BYTES + BTH_BYTES;
    let (head, rest) = ip_packet.split_first_chunk::<MASKED>().expect("headers");
    let mut head = *head;
    head[1] = 0xff; // type of service
    head[8] = 0xff; // time to live
    head[10..12].fill(0xff); // the IPv4 header's checksum
    head[IP_BYTES + 6..IP_BYTES + 8].fill(0xff); // UDP's
    head[IP_BYTES + UDP_BYTES + 4] = 0xff; // congestion bits
    Crc32::new().with(&[0xff; 8]).with(&head).with(rest).value()
}

/// The one's complement sum of 16-bit words: 0xffff over an IPv4 header whose checksum is right.
fn ones_sum(header: &[u8; IP_BYTES]) -> u16 {
    let sum: u32 = header.as_chunks::<2>().0.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    // Ten words carry once into the upper half, and that once more at most.
    ((folded & 0xffff) + (folded >> 16)) as u16
}
