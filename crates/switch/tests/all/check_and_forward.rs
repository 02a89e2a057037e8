//! Tables 2 and 3 through the whole pipeline: every row, and every combination against the tables themselves.

use crate::rig;

use rig::{NODES, Rig, block, nodes, refused, request, requester, status_of};
use switch::coherence::fan_out::fan_out;
use switch::coherence::tables;
use wire::GlobalStatus::{self, Modified, Shared, Unshared};
use wire::{Copyset, Endpoint, NodeId, Packet, PacketKind, Refusal};

/// What node 1 gets for a request on a block in this state.
fn ask(kind: PacketKind, status: GlobalStatus, copyset: Copyset, random: u32) -> Vec<Packet> {
    let mut rig = Rig::new();
    rig.install(block(), status, copyset);
    let tag = block();
    // A home's REMOVE comes from the home.
    let from = if kind == PacketKind::RemoveFromSwitch { requester(2, 63) } else { requester(1, 0) };
    rig.send_with(&request(kind, tag, from, 5001), random)
}

fn receivers(sent: &[Packet]) -> Vec<(Endpoint, bool)> {
    sent.iter().map(|packet| (packet.to, packet.provider)).collect()
}

fn cache(node: u16) -> Endpoint {
    Endpoint::CacheAgent(NodeId(node))
}

fn is_outdated(kind: PacketKind, status: GlobalStatus, copyset: Copyset) -> bool {
    let sent = ask(kind, status, copyset, 0);
    sent.len() == 1 && sent[0].kind == PacketKind::Ack && sent[0].status == refused(Refusal::Outdated)
}

#[test]
fn a_miss_is_valid_only_outside_the_copyset() {
    for kind in [PacketKind::ReadMiss, PacketKind::WriteMiss] {
        assert!(!is_outdated(kind, Unshared, nodes([])));
        assert!(!is_outdated(kind, Shared, nodes([0, 3])));
        assert!(!is_outdated(kind, Modified, nodes([3])));
        assert!(is_outdated(kind, Shared, nodes([1, 3])));
        assert!(is_outdated(kind, Modified, nodes([1])));
    }
}

#[test]
fn write_shared_and_evict_shared_are_valid_only_for_a_sharer_of_a_shared_block() {
    for kind in [PacketKind::WriteShared, PacketKind::EvictShared] {
        assert!(!is_outdated(kind, Shared, nodes([1, 3])));
        assert!(is_outdated(kind, Shared, nodes([3])));
        assert!(is_outdated(kind, Modified, nodes([1])));
        assert!(is_outdated(kind, Unshared, nodes([])));
    }
}

#[test]
fn evict_modified_is_valid_only_for_the_owner() {
    assert!(!is_outdated(PacketKind::EvictModified, Modified, nodes([1])));
    assert!(is_outdated(PacketKind::EvictModified, Modified, nodes([3])));
    assert!(is_outdated(PacketKind::EvictModified, Shared, nodes([1])));
}

#[test]
fn an_unshared_block_comes_from_its_home() {
    for kind in [PacketKind::ReadMiss, PacketKind::WriteMiss] {
        let sent = ask(kind, Unshared, nodes([]), 0);
        assert_eq!(receivers(&sent), [(Endpoint::HomeAgent(NodeId(2)), true)]);
        assert!(sent[0].in_switch, "so that the home sends data and decides nothing");
    }
}

#[test]
fn a_modified_block_comes_from_its_owner() {
    for kind in [PacketKind::ReadMiss, PacketKind::WriteMiss] {
        assert_eq!(receivers(&ask(kind, Modified, nodes([3]), 99)), [(cache(3), true)]);
    }
}

#[test]
fn a_read_miss_goes_to_one_sharer_by_chance() {
    let asked = |random| receivers(&ask(PacketKind::ReadMiss, Shared, nodes([0, 3]), random));
    assert_eq!(asked(0), [(cache(0), true)]);
    assert_eq!(asked(u32::MAX), [(cache(3), true)]);
}

#[test]
fn a_write_miss_goes_to_all_sharers_and_one_provides() {
    let asked = |random| receivers(&ask(PacketKind::WriteMiss, Shared, nodes([0, 3]), random));
    assert_eq!(asked(0), [(cache(0), true), (cache(3), false)]);
    assert_eq!(asked(u32::MAX), [(cache(0), false), (cache(3), true)]);
}

#[test]
fn write_shared_goes_to_the_other_sharers_or_is_answered() {
    let sent = ask(PacketKind::WriteShared, Shared, nodes([0, 1, 3]), 0);
    assert_eq!(receivers(&sent), [(cache(0), false), (cache(3), false)]);
    let alone = ask(PacketKind::WriteShared, Shared, nodes([1]), 0);
    assert_eq!(receivers(&alone), [(Endpoint::Requester(NodeId(1)), false)]);
    assert!(status_of(&alone).is_granted());
}

#[test]
fn evictions_and_locks_go_back_to_the_requester() {
    for (kind, status, copyset) in [
        (PacketKind::EvictShared, Shared, nodes([1, 3])),
        (PacketKind::EvictModified, Modified, nodes([1])),
        (PacketKind::LockRead, Shared, nodes([3])),
        (PacketKind::LockWrite, Unshared, nodes([])),
    ] {
        let sent = ask(kind, status, copyset, 0);
        assert_eq!(receivers(&sent), [(Endpoint::Requester(NodeId(1)), false)]);
        assert!(status_of(&sent).is_granted());
        assert_eq!((sent[0].global_status, sent[0].copyset), (status, copyset), "with what was found");
    }
}

#[test]
fn the_pipeline_agrees_with_the_tables_for_every_request_state_and_copyset() {
    let kinds =
        PacketKind::ALL.into_iter().filter(|kind| kind.is_request() && *kind != PacketKind::AddToSwitch);
    for kind in kinds {
        for bits in 0..1 << NODES {
            let copyset = Copyset::from_bits(bits);
            let status = match copyset.len() {
                0 => &[Unshared][..],
                1 => &[Shared, Modified],
                _ => &[Shared],
            };
            for &status in status {
                let random = 0x9e37_79b9u32.wrapping_mul(u32::try_from(bits).unwrap());
                let sent = ask(kind, status, copyset, random);
                let from = sent[0].requester;
                let mut want = Vec::new();
                let found = Packet {
                    in_switch: true,
                    global_status: status,
                    copyset,
                    arg: u64::from(random),
                    ..request(kind, block(), from, 5001)
                };
                if kind == PacketKind::Peek && status == Unshared {
                    // An entry that nobody has a copy of looks like none.
                    let to = Endpoint::HomeAgent(block().home());
                    let asked = request(kind, block(), from, 5001);
                    let arg = u64::from(random);
                    want.push(Packet { arg, ..asked.reply(kind, Endpoint::Switch, to) });
                } else if tables::check(kind, status, copyset.contains(from.node)) {
                    let to = tables::forward(kind, status).expect("a valid request has a way to go");
                    fan_out(&found, to, Endpoint::Switch, |packet| want.push(packet));
                } else {
                    let to = Endpoint::Requester(from.node);
                    let status = refused(Refusal::Outdated);
                    let answer = found.reply(PacketKind::Ack, Endpoint::Switch, to);
                    want.push(Packet { status, ..answer });
                }
                assert_eq!(sent, want, "{kind:?} finds {status:?} at {copyset:?}");
            }
        }
    }
}

#[test]
fn forwarded_requests_carry_no_bytes_and_no_old_refusal() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([0, 3]));
    let odd = Packet {
        payload: 4096,
        provider: true,
        status: refused(Refusal::Locked),
        ..request(PacketKind::WriteMiss, block(), requester(1, 0), 5001)
    };
    for sent in rig.send(&odd) {
        assert_eq!(sent.payload, 0);
        assert!(sent.status.is_granted());
    }
}
