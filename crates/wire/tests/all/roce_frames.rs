//! RoCEv2 frames: the golden one, every opcode both ways, and bytes that are no frames. No rack runs here. What must
//! hold: what is written is read again, and bytes nobody writes are refused with a cause, never with a panic.

use std::net::Ipv4Addr;

use proptest::prelude::*;
use wire::Nanos;
use wire::roce::frame::{MOST_OVERHEAD, OUTER_BYTES, icrc};
use wire::roce::opcode::Layout;
use wire::roce::*;

/// An acknowledgement, as a real NIC sent it.
const GOLDEN: [u8; 62] = [
    0xec, 0x0d, 0x9a, 0x68, 0x21, 0xcc, 0xec, 0x0d, 0x9a, 0x68, 0x21, 0xd0, 0x08, 0x00, 0x45, 0x02, 0x00,
    0x30, 0x2a, 0x2b, 0x40, 0x00, 0x40, 0x11, 0x8d, 0x26, 0xc0, 0xa8, 0x01, 0x0c, 0xc0, 0xa8, 0x01, 0x0d,
    0xcf, 0x15, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, 0x11, 0x40, 0xff, 0xff, 0x00, 0x00, 0x6c, 0xa9, 0x00,
    0x00, 0x0c, 0x71, 0x0d, 0x00, 0x00, 0x01, 0xdc, 0x97, 0x84, 0x42,
];

fn golden() -> Frame {
    let aeth = Aeth { syndrome: Syndrome::Ack(13), messages: 1 };
    Frame {
        route: Route {
            source_mac: [0xec, 0x0d, 0x9a, 0x68, 0x21, 0xd0],
            destination_mac: [0xec, 0x0d, 0x9a, 0x68, 0x21, 0xcc],
            identification: 0x2a2b,
            type_of_service: 2,
            ..Route::new(Ipv4Addr::new(192, 168, 1, 12), Ipv4Addr::new(192, 168, 1, 13), 0xcf15)
        },
        packet: Packet::new(
            Opcode::Acknowledge,
            QpNumber::new(0x6ca9),
            Psn::new(0xc71),
            Extension::Aeth(aeth),
        ),
    }
}

#[test]
fn the_golden_frame_is_read_and_written() {
    let (frame, payload) = Frame::parse(&GOLDEN).expect("a frame");
    assert_eq!(frame, golden());
    assert!(payload.is_empty());
    let mut bytes = [0xee; 128];
    let length = golden().encode(&[], &mut bytes);
    assert_eq!(bytes[..length], GOLDEN);
}

#[test]
fn the_golden_checksum_ignores_what_switches_change() {
    let mut bytes = GOLDEN;
    bytes[15] = 0; // type of service
    bytes[22] -= 1; // time to live
    bytes[40..42].copy_from_slice(&[0x12, 0x34]); // UDP checksum
    bytes[46] = 0x80; // congestion
    assert_eq!(icrc(&bytes[14..58]).to_le_bytes(), GOLDEN[58..]);
    for at in [18, 30, 34, 42, 50, 54] {
        let mut bytes = GOLDEN;
        bytes[at] ^= 1;
        assert_ne!(icrc(&bytes[14..58]).to_le_bytes(), GOLDEN[58..], "byte {at} is covered");
    }
}

fn extension(layout: Layout, a: u64, b: u64, c: u32, syndrome: Syndrome) -> Extension {
    let reth = Reth { address: a, key: Key(c), length: b as u32 };
    let aeth = Aeth { syndrome, messages: c & 0xff_ffff };
    match layout {
        Layout::Plain => Extension::Plain,
        Layout::Immediate => Extension::Immediate(c),
        Layout::Reth => Extension::Reth(reth),
        Layout::RethImmediate => Extension::RethImmediate(reth, b as u32),
        Layout::Atomic => {
            Extension::Atomic(AtomicEth { address: a, key: Key(c), swap_or_add: b, compare: !a })
        }
        Layout::Aeth => Extension::Aeth(aeth),
        Layout::AethAtomic => Extension::AethAtomic(aeth, b),
    }
}

fn any_frame() -> impl Strategy<Value = (Frame, Vec<u8>)> {
    let syndrome = (0..=u8::MAX).prop_filter_map("reserved", Syndrome::from_wire);
    (
        (prop::sample::select(Opcode::ALL), any::<u64>(), any::<u64>(), any::<u32>(), syndrome),
        (any::<u8>(), any::<u16>(), any::<u32>(), any::<u32>()),
        (any::<[u8; 6]>(), any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>(), any::<u16>(), any::<u16>()),
        prop::collection::vec(any::<u8>(), 0..600),
    )
        .prop_map(|((opcode, a, b, c, syndrome), (flags, partition, to, psn), route, payload)| {
            let packet = Packet {
                solicited: flags & 1 != 0,
                migrated: flags & 2 != 0,
                ack_request: flags & 4 != 0,
                congestion: (flags & 8 != 0, flags & 16 != 0),
                partition,
                ..Packet::new(
                    opcode,
                    QpNumber::new(to),
                    Psn::new(psn),
                    extension(opcode.layout(), a, b, c, syndrome),
                )
            };
            let (mac, source, destination, source_port, identification, bits) = route;
            let route = Route {
                source_mac: mac,
                destination_mac: mac.map(|byte| !byte),
                identification,
                type_of_service: bits as u8,
                time_to_live: (bits >> 8) as u8,
                ..Route::new(source.into(), destination.into(), source_port)
            };
            let payload = if opcode.carries_payload() { payload } else { Vec::new() };
            (Frame { route, packet }, payload)
        })
}

fn encoded(frame: &Frame, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xee; payload.len() + MOST_OVERHEAD];
    let length = frame.encode(payload, &mut bytes);
    bytes.truncate(length);
    bytes
}

/// Makes both checksums right again, so that what is behind them is looked at.
fn sealed(bytes: &mut [u8]) {
    if bytes.len() < OUTER_BYTES + 16 {
        return;
    }
    bytes[24..26].fill(0);
    let sum: u32 = bytes[14..34].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    bytes[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    let end = bytes.len() - 4;
    let icrc = icrc(&bytes[14..end]);
    bytes[end..].copy_from_slice(&icrc.to_le_bytes());
}

proptest! {
    #[test]
    fn what_is_written_is_read_again((frame, payload) in any_frame()) {
        let bytes = encoded(&frame, &payload);
        prop_assert_eq!(Frame::parse(&bytes), Ok((frame, &payload[..])));
        // Ethernet fills short frames up.
        let filled = [&bytes[..], &[0; 9]].concat();
        prop_assert_eq!(Frame::parse(&filled), Ok((frame, &payload[..])));
    }

    #[test]
    fn a_truncated_frame_is_refused((frame, payload) in any_frame(), cut in any::<prop::sample::Index>()) {
        let bytes = encoded(&frame, &payload);
        prop_assert_eq!(Frame::parse(&bytes[..cut.index(bytes.len())]), Err(Malformed::Truncated));
    }

    #[test]
    fn a_flipped_bit_is_noticed_or_may_change_on_the_way(
        (frame, payload) in any_frame(),
        bit in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encoded(&frame, &payload);
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        // Ethernet addresses, UDP checksum, congestion bits and their neighbours: not covered, by design.
        let free = matches!(bit / 8, 0..12 | 40..42 | 46);
        prop_assert_eq!(Frame::parse(&bytes).is_ok(), free, "bit {} of byte {}", bit % 8, bit / 8);
    }

    #[test]
    fn bytes_nobody_writes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Packet::parse(&bytes);
        prop_assert!(Frame::parse(&bytes).is_err());
    }

    #[test]
    fn sealed_nonsense_is_refused_or_read_as_it_would_be_written(
        (frame, payload) in any_frame(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = encoded(&frame, &payload);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        sealed(&mut bytes);
        if let Ok((frame, payload)) = Frame::parse(&bytes) {
            let again = encoded(&frame, payload);
            prop_assert_eq!(Frame::parse(&again), Ok((frame, payload)));
        }
    }
}

#[test]
fn each_cause_is_told_from_the_others() {
    let cause = |at: usize, byte: u8| {
        let mut bytes = GOLDEN;
        bytes[at] = byte;
        sealed(&mut bytes);
        Frame::parse(&bytes).err()
    };
    assert_eq!(cause(12, 0x86), Some(Malformed::NotIpv4));
    assert_eq!(cause(14, 0x46), Some(Malformed::IpHeader));
    assert_eq!(cause(17, 0xff), Some(Malformed::Truncated));
    assert_eq!(cause(17, 0x08), Some(Malformed::Truncated));
    assert_eq!(cause(20, 0x20), Some(Malformed::Fragment));
    assert_eq!(cause(21, 0x01), Some(Malformed::Fragment));
    assert_eq!(cause(23, 6), Some(Malformed::NotUdp));
    assert_eq!(cause(37, 0xb8), Some(Malformed::NotRoce));
    assert_eq!(cause(39, 0x20), Some(Malformed::UdpLength));
    assert_eq!(cause(42, 0x15), Some(Malformed::Opcode));
    assert_eq!(cause(42, 0x13), Some(Malformed::Truncated));
    assert_eq!(cause(42, 0x0e), None, "the same bytes are the middle of a READ response");
    assert_eq!(cause(43, 0x41), Some(Malformed::Version));
    assert_eq!(cause(43, 0x50), Some(Malformed::Padding));
    assert_eq!(cause(54, 0x40), Some(Malformed::Syndrome));
    assert_eq!(cause(54, 0x64), Some(Malformed::Syndrome));
    let mut bytes = GOLDEN;
    bytes[24] ^= 1;
    assert_eq!(Frame::parse(&bytes).err(), Some(Malformed::IpChecksum));
    let mut bytes = GOLDEN;
    bytes[61] ^= 1;
    assert_eq!(Frame::parse(&bytes).err(), Some(Malformed::Icrc));
    let acknowledge = [&GOLDEN[42..58], &[0; 4]].concat();
    assert_eq!(Packet::parse(&acknowledge).err(), Some(Malformed::Payload));
    assert_eq!(Packet::parse(&GOLDEN[42..57]).err(), Some(Malformed::Truncated));
    let mut send = GOLDEN[42..57].to_vec();
    send[0] = Opcode::SendOnly as u8;
    assert_eq!(Packet::parse(&send).err(), Some(Malformed::Alignment));
    assert_eq!(RnrTimer::from_code(14).span(), Nanos::from_micros(1280));
}

#[test]
fn what_carries_nothing_is_refused_with_a_payload() {
    let carriers = Opcode::ALL.iter().filter(|opcode| opcode.carries_payload()).count();
    assert_eq!((carriers, Opcode::ALL.len()), (19, 26));
    for opcode in Opcode::ALL {
        let extension = extension(opcode.layout(), 1, 2, 3, Syndrome::NO_CREDITS);
        let packet = Packet::new(*opcode, QpNumber::new(2), Psn::new(3), extension);
        let mut bytes = [0; 64];
        let headers = packet.encode(0, &mut bytes);
        assert_eq!(Packet::parse(&bytes[..headers]), Ok((packet, &[][..])));
        let parsed = Packet::parse(&bytes[..headers + 4]).map(|(_, payload)| payload.len());
        assert_eq!(
            parsed,
            if opcode.carries_payload() { Ok(4) } else { Err(Malformed::Payload) },
            "{opcode:?}"
        );
    }
    for opcode in [Opcode::SabreRequest, Opcode::SabreValidation] {
        assert!(!opcode.carries_payload());
    }
}
