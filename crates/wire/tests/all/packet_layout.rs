//! Bytes to packets and back: nothing panics, nothing is lost, nothing wrong gets through.

use proptest::prelude::*;
use wire::packet::{Field, HEADER_BYTES};
use wire::{
    BlockTag, Copyset, Discipline, Endpoint, GlobalStatus, Incarnation, NodeId, Packet, PacketKind,
    ParseError, Refusal, RequesterId, Seq, SlotId, Status, SwitchEpoch,
};

fn endpoint() -> impl Strategy<Value = Endpoint> {
    (0u8..6, 0u16..64)
        .prop_map(|(agent, node)| Endpoint::from_wire(agent, if agent == 0 { 0 } else { node }).unwrap())
}

fn packet() -> impl Strategy<Value = Packet> {
    let what = (
        prop::sample::select(PacketKind::ALL.to_vec()),
        prop::sample::select(PacketKind::ALL.to_vec()),
        prop::option::of(prop::sample::select(Refusal::ALL.to_vec())),
        any::<(bool, bool, bool)>(),
        0u8..3,
    );
    let who = (0u16..64, 0u16..64, endpoint(), endpoint());
    let numbers = (any::<[u64; 4]>(), any::<[u32; 2]>(), 0u32..=4096, 0u8..3);
    (what, who, numbers).prop_map(|(what, who, (wide, narrow, payload, discipline))| Packet {
        kind: what.0,
        event: if what.0.is_request() { what.0 } else { what.1 },
        status: what.2.map_or(Status::Granted, Status::Refused),
        provider: what.3.0,
        in_switch: what.3.1,
        repeated: what.3.2,
        global_status: GlobalStatus::from_wire(what.4).unwrap(),
        tag: BlockTag::from_bits(wide[0]),
        copyset: Copyset::from_bits(wide[1]),
        requester: RequesterId { node: NodeId(who.0), slot: SlotId(who.1) },
        seq: Seq(wide[2]),
        from: who.2,
        to: who.3,
        discipline: Discipline::from_wire(discipline),
        epoch: SwitchEpoch(narrow[0]),
        incarnation: Incarnation(narrow[1]),
        payload,
        arg: wide[3],
    })
}

fn bytes_of(packet: &Packet) -> Vec<u8> {
    let mut header = [0; HEADER_BYTES];
    packet.encode(&mut header);
    let mut bytes = header.to_vec();
    bytes.resize(HEADER_BYTES + packet.payload as usize, 0xa5);
    bytes
}

proptest! {
    #[test]
    fn what_is_encoded_parses_to_the_same_packet(packet in packet()) {
        let bytes = bytes_of(&packet);
        let (parsed, payload) = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(parsed, packet);
        prop_assert_eq!(payload.len(), packet.payload as usize);
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Packet::parse(&bytes);
    }

    #[test]
    fn a_damaged_header_is_refused_or_means_exactly_what_it_says(
        packet in packet(), at in 0usize..HEADER_BYTES, flip in 1u8..,
    ) {
        let mut bytes = bytes_of(&packet);
        bytes[at] ^= flip;
        if let Ok((parsed, _)) = Packet::parse(&bytes) {
            let mut header = [0; HEADER_BYTES];
            parsed.encode(&mut header);
            prop_assert_eq!(&header[..], &bytes[..HEADER_BYTES]);
        }
    }

    #[test]
    fn a_cut_packet_is_refused(packet in packet(), cut in 1usize..64) {
        let bytes = bytes_of(&packet);
        let error = Packet::parse(&bytes[..bytes.len() - cut]).unwrap_err();
        let is_truncated = matches!(error, ParseError::Truncated { .. });
        prop_assert!(is_truncated);
    }
}

fn sample() -> Packet {
    Packet::request(
        PacketKind::ReadMiss,
        BlockTag::from_bits(0x0003_0000_0000_1000),
        RequesterId { node: NodeId(2), slot: SlotId(5) },
        Seq(7),
    )
}

#[test]
fn the_layout_is_the_documented_one() {
    let packet = Packet {
        provider: true,
        in_switch: true,
        global_status: GlobalStatus::Shared,
        copyset: Copyset::from_bits(0b110),
        to: Endpoint::CacheAgent(NodeId(1)),
        discipline: Some(Discipline::Coherent),
        epoch: SwitchEpoch(9),
        incarnation: Incarnation(4),
        arg: 0x55,
        ..sample()
    };
    let bytes = bytes_of(&packet);
    let mut want = [0u8; HEADER_BYTES];
    want[..8].copy_from_slice(&[b'R', b'M', 1, 1, 1, 0, 3, 1]);
    want[8..16].copy_from_slice(&[0, 0x10, 0, 0, 0, 0, 3, 0]);
    want[16] = 6;
    want[24] = 7;
    want[32] = 2;
    want[34] = 5;
    want[36] = 2;
    want[38] = 1;
    want[40] = 1;
    want[41] = 2;
    want[42] = 1;
    want[44] = 9;
    want[48] = 4;
    want[56] = 0x55;
    assert_eq!(bytes, want);
}

#[test]
fn each_field_names_itself_when_it_is_wrong() {
    for (at, value, field) in [
        (0, 0, Field::Magic),
        (2, 2, Field::Version),
        (3, 99, Field::PacketKind),
        (4, 2, Field::Event),
        (5, 200, Field::Status),
        (6, 8, Field::Flags),
        (7, 3, Field::GlobalStatus),
        (32, 64, Field::Node),
        (34, 64, Field::Slot),
        (36, 77, Field::Node),
        (41, 6, Field::Agent),
        (42, 9, Field::Discipline),
        (43, 1, Field::Reserved),
        (55, 1, Field::Payload),
    ] {
        let mut bytes = bytes_of(&sample());
        bytes[at] = value;
        match Packet::parse(&bytes) {
            Err(ParseError::Field { field: named, .. }) => assert_eq!(named, field),
            other => panic!("byte {at} = {value}: {other:?}"),
        }
    }
}
