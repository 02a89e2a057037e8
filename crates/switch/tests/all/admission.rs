//! What the parser lets in: the rest is dropped and counted by cause.

use crate::rig;

use rig::{EPOCH, NODES, Rig, block, nodes, request, requester, tag, unlock};
use switch::coherence::{Drop, Switch, SwitchConfig};
use switch::pipeline::BuildError;
use wire::GlobalStatus::Shared;
use wire::{BlockTag, Packet, PacketKind, Seq, SlotId, SwitchEpoch};

fn miss() -> Packet {
    request(PacketKind::ReadMiss, block(), requester(1, 0), 1)
}

#[test]
fn packets_that_are_not_for_the_switch_are_dropped() {
    let mut rig = Rig::new();
    for kind in PacketKind::ALL.into_iter().filter(|kind| !kind.is_request() && *kind != PacketKind::Unlock) {
        rig.assert_dropped(&Packet { kind, ..miss() }, Drop::PacketKind);
        assert_eq!(rig.switch.counters().packets(kind), 1);
    }
    assert_eq!(rig.switch.counters().passes, 0);
}

#[test]
fn packets_of_another_incarnation_of_the_switch_are_dropped_in_either_pass() {
    let mut rig = Rig::new();
    rig.assert_dropped(&Packet { epoch: SwitchEpoch(EPOCH.0 - 1), ..miss() }, Drop::Epoch);
    rig.assert_dropped(&Packet { epoch: SwitchEpoch(EPOCH.0 + 1), ..miss() }, Drop::Epoch);
    rig.send(&miss());
    let mut again = rig.begin(&unlock(&miss(), Shared, nodes([1])));
    again.packet.epoch = SwitchEpoch(0);
    assert_eq!(rig.second(again), []);
}

#[test]
fn requesters_and_homes_that_the_rack_does_not_have_are_dropped() {
    let mut rig = Rig::new();
    let nobody = u16::try_from(NODES).unwrap();
    rig.assert_dropped(&Packet { requester: requester(nobody, 0), ..miss() }, Drop::Requester);
    let no_slot = u16::try_from(SlotId::PER_NODE).unwrap();
    rig.assert_dropped(&Packet { requester: requester(0, no_slot), ..miss() }, Drop::Requester);
    rig.assert_dropped(&Packet { requester: requester(u16::MAX, u16::MAX), ..miss() }, Drop::Requester);
    rig.assert_dropped(&Packet { tag: tag(nobody, 1), ..miss() }, Drop::Tag);
    rig.assert_dropped(&Packet { tag: BlockTag::from_bits(u64::MAX), ..miss() }, Drop::Tag);
    assert!(!rig.switch.contains(BlockTag::from_bits(u64::MAX)));
}

#[test]
fn an_unlock_of_no_request_is_dropped() {
    let mut rig = Rig::new();
    let odd = Packet { kind: PacketKind::Unlock, event: PacketKind::Ack, ..miss() };
    rig.assert_dropped(&odd, Drop::Event);
}

#[test]
fn only_a_home_moves_its_blocks() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    for kind in [PacketKind::AddToSwitch, PacketKind::RemoveFromSwitch] {
        rig.assert_dropped(&request(kind, block(), requester(1, 63), 1), Drop::NotHome);
    }
    assert_eq!(rig.lock(block()), 0);
}

#[test]
fn number_zero_belongs_to_no_event() {
    let mut rig = Rig::new();
    rig.assert_dropped(&Packet { seq: Seq::NONE, ..miss() }, Drop::StaleRequest);
}

#[test]
fn a_switch_is_built_for_1_to_64_nodes_and_some_entries() {
    let build = |nodes, entries| {
        let usual = SwitchConfig::for_nodes(nodes);
        Switch::new(&SwitchConfig { entries, epoch: EPOCH, peeks: true, ..usual }).map(|_| ())
    };
    for nodes in [1, 32, 33, 64] {
        build(nodes, 100).unwrap();
    }
    assert_eq!(build(0, 100), Err(BuildError::EmptyArray { array: "LAST-UNLOCK".into() }));
    assert_eq!(
        build(65, 100),
        Err(BuildError::CellTooWide { array: "COPYSET way 0".into(), bits: 65, most: 64 })
    );
    assert_eq!(build(4, 0), Err(BuildError::EmptyArray { array: "TAG way 0".into() }));
    assert!(matches!(build(64, 700_000), Err(BuildError::StageSram { stage: 2, .. })), "four arrays");
    assert!(matches!(build(64, usize::MAX), Err(BuildError::StageSram { stage: 1, .. })), "TAG alone");
}

#[test]
fn nodes_that_the_rack_does_not_have_never_get_into_a_copyset() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    rig.send(&miss());
    rig.close(&unlock(&miss(), Shared, nodes([1, 3, 5, 63])));
    assert_eq!(rig.entry(block()).copyset, nodes([1, 3]));
}

#[test]
fn counters_tell_packets_passes_and_second_passes_apart() {
    let mut rig = Rig::new();
    rig.send(&miss());
    rig.close(&unlock(&miss(), Shared, nodes([1])));
    let counters = rig.switch.counters();
    assert_eq!((counters.packets(PacketKind::ReadMiss), counters.packets(PacketKind::Unlock)), (1, 1));
    assert_eq!(
        (
            PacketKind::ALL.map(|kind| counters.packets(kind)).iter().sum::<u64>(),
            counters.passes,
            counters.resubmits
        ),
        (2, 3, 1)
    );
    assert_eq!(Drop::ALL.map(|cause| counters.drops(cause)), [0; Drop::ALL.len()]);
}
