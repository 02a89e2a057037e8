//! What `node::Node::on_packet` lets no handler see: other incarnations, unknown places, nonsense.

use node::{Access, Drop};
use wire::{Copyset, Endpoint, GlobalStatus, Incarnation, NodeId, Packet, PacketKind, SwitchEpoch};

use crate::coherence::packets::{
    EPOCH, INCARNATION, ME, NODES, at_home, granted, home_of, mine, requester, theirs, to_agent, to_provider,
};
use crate::coherence::rig::{Rig, carrying};

fn read() -> Packet {
    at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 1)
}

#[test]
fn a_packet_of_another_incarnation_of_the_switch_is_dropped_whether_past_or_future() {
    for epoch in [SwitchEpoch(EPOCH.0 - 1), SwitchEpoch(EPOCH.0 + 1)] {
        let mut rig = Rig::home();
        rig.drops(Drop::WrongEpoch, Packet { epoch, ..read() });
        let request = rig.miss(theirs(1), Access::Shared);
        let ack = granted(&request, home_of(theirs(1)), GlobalStatus::Unshared, []);
        rig.drops(Drop::WrongEpoch, carrying(Packet { epoch, ..ack }, 7));
    }
}

#[test]
fn a_packet_of_a_former_incarnation_of_its_requesters_node_is_dropped() {
    let mut rig = Rig::home();
    let _ = rig.packet(Packet { tag: mine(2), ..read() });
    let former = Incarnation(INCARNATION.0 - 1);
    rig.drops(Drop::FormerIncarnation, Packet { incarnation: former, seq: wire::Seq(9), ..read() });
    let other_node = Packet { incarnation: former, requester: requester(2, 0), ..read() };
    assert_eq!(rig.packet(other_node).kinds(), [PacketKind::Ack], "each node has lives of its own");
}

#[test]
fn in_a_new_incarnation_a_nodes_numbers_begin_again() {
    let mut rig = Rig::home();
    let _ = rig.cache(theirs(1), Access::Shared, 7);
    let _ = rig.packet(Packet { seq: wire::Seq(9), ..read() });
    let asked = to_provider(PacketKind::ReadMiss, theirs(1), 9, GlobalStatus::Shared, [1]);
    let _ = rig.packet(Packet { requester: requester(3, 0), ..asked });
    let reborn = Incarnation(INCARNATION.0 + 1);
    let first = Packet { incarnation: reborn, tag: mine(2), ..read() };
    assert_eq!(rig.packet(first).kinds(), [PacketKind::Ack], "home agent");
    let first = Packet { requester: requester(3, 0), seq: wire::Seq(1), incarnation: reborn, ..asked };
    assert_eq!(rig.packet(first).kinds(), [PacketKind::Ack], "cache agent");
    rig.drops(Drop::FormerIncarnation, read());
}

#[test]
fn a_new_incarnation_of_a_node_gives_the_answers_kept_for_it_back() {
    let mut rig = Rig::new();
    let _ = rig.cache(theirs(1), Access::Modified, 7);
    let write = to_provider(PacketKind::WriteMiss, theirs(1), 1, GlobalStatus::Modified, [1]);
    let _ = rig.packet(write);
    assert_eq!(rig.store.retained, 1);
    let _ = rig.packet(Packet { incarnation: Incarnation(INCARNATION.0 + 1), ..write });
    assert_eq!(rig.store.retained, 0);
}

#[test]
fn a_packet_that_names_a_node_which_the_rack_does_not_have_is_nonsense() {
    let unknown = u16::try_from(NODES).unwrap();
    let elsewhere = wire::BlockSize::MIN.tag(wire::GlobalAddr::new(NodeId(unknown), 64));
    for bad in [
        Packet { requester: requester(unknown, 0), ..read() },
        Packet { tag: elsewhere, ..read() },
        Packet { copyset: Copyset::only(NodeId(unknown)), ..read() },
        Packet { to: Endpoint::HomeAgent(NodeId(unknown)), ..read() },
    ] {
        Rig::home().drops(Drop::Nonsense, bad);
    }
}

#[test]
fn a_packet_for_another_node_or_for_the_switch_is_nonsense() {
    for to in [Endpoint::HomeAgent(NodeId(2)), Endpoint::CacheAgent(NodeId(0)), Endpoint::Switch] {
        Rig::home().drops(Drop::Nonsense, Packet { to, ..read() });
    }
}

#[test]
fn an_answer_to_another_nodes_requester_is_nonsense() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    let ack = granted(&request, home_of(theirs(1)), GlobalStatus::Unshared, []);
    rig.drops(Drop::Nonsense, carrying(Packet { requester: requester(0, 0), ..ack }, 7));
}

#[test]
fn every_endpoint_takes_its_own_kinds_and_no_other() {
    let requests = PacketKind::ALL.into_iter().filter(|kind| kind.is_request());
    let with = |more: &[PacketKind]| requests.clone().chain(more.iter().copied()).collect::<Vec<_>>();
    use PacketKind::*;
    let home = with(&[Unlock, WriteBack, Close, Demote, ChunkRequest, Mark, Free]);
    for (to, slot, takes) in [
        (Endpoint::Requester(ME), 0, vec![Ack, UnlockAck, WriteBackAck, CloseAck]),
        (Endpoint::Requester(ME), 63, vec![Ack, UnlockAck]),
        (Endpoint::CacheAgent(ME), 0, with(&[Close])),
        (Endpoint::HomeAgent(ME), 0, home),
        (Endpoint::Allocator(ME), 0, vec![Free, HomeReply, FreeReply]),
        (Endpoint::Shadow(ME), 0, vec![AddNotice, HotReport]),
    ] {
        for kind in PacketKind::ALL.into_iter().filter(|kind| !takes.contains(kind)) {
            let mut rig = Rig::with(|config| config.shadow = ME);
            rig.drops(Drop::Nonsense, Packet { kind, to, requester: requester(ME.0, slot), ..read() });
        }
        for kind in takes {
            let mut rig = Rig::with(|config| config.shadow = ME);
            let from = requester(ME.0, slot);
            // Each kind about what it is about: locks are entries of their own, replies name what they answer.
            let event = match kind {
                HomeReply => Mark,
                FreeReply => Free,
                other => other,
            };
            let block = read().tag;
            let tag = if matches!(kind, LockRead | LockWrite) { block.lock_entry() } else { block };
            let _ = rig.packet(Packet { kind, event, tag, to, requester: from, ..read() });
            let nonsense = rig.node.counters().dropped[Drop::Nonsense as usize];
            assert!(nonsense == 0 || kind == WriteBack, "{to:?} takes {kind:?}");
        }
    }
}

#[test]
fn an_agents_packet_for_a_block_of_no_frame_is_counted_where_it_is_dropped() {
    let mut rig = Rig::new();
    rig.drops(Drop::NoSuchCopy, to_agent(PacketKind::Purge, theirs(5), 1, GlobalStatus::Shared, [1]));
    assert_eq!(rig.node.counters().cache_agent_received, 1);
}
