//! A restarted switch: empty, deaf to packets of its former incarnations, and what a control plane read out before.

use crate::rig;

use rig::{EPOCH, Rig, block, home_of, nodes, request, requester, tag, unlock};
use switch::coherence::Drop;
use wire::GlobalStatus::{Modified, Shared};
use wire::{Endpoint, NodeId, Packet, PacketKind, SwitchEpoch};

const NEXT: SwitchEpoch = SwitchEpoch(EPOCH.0 + 1);

#[test]
fn a_dump_names_every_entry_by_tag_and_every_node_that_holds_a_lock() {
    let mut rig = Rig::new();
    rig.install(tag(1, 5), Modified, nodes([2]));
    rig.install(tag(0, 3), Shared, nodes([0, 1]));
    rig.send(&request(PacketKind::ReadMiss, tag(0, 3), requester(3, 0), 1));
    let dump = rig.switch.dump();
    assert_eq!(dump.epoch, EPOCH);
    assert_eq!(dump.entries.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [tag(0, 3), tag(1, 5)]);
    assert_eq!(dump.entry(tag(1, 5)), Some(rig.entry(tag(1, 5))));
    assert_eq!(dump.entry(tag(1, 6)), None);
    assert_eq!(dump.holders, nodes([3]), "whose read lock is held");
    assert!(!rig.entry(tag(0, 3)).is_write_locked(), "by a reader only");
}

#[test]
fn a_restarted_switch_has_no_entry_no_lock_and_no_number_of_its_former_incarnation() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([0]));
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 8);
    rig.send(&miss);
    rig.close(&unlock(&miss, Shared, nodes([0, 1])));
    rig.switch.restart(NEXT);
    assert_eq!(rig.switch.occupancy(), 0);
    assert_eq!(rig.switch.dump().entries, []);
    rig.switch.invariants();
    // An older number than the last one unlocked before: it goes to the home, for there is no entry.
    let miss = Packet { epoch: NEXT, ..request(PacketKind::ReadMiss, block(), requester(1, 0), 2) };
    let sent = rig.send(&miss);
    assert_eq!(
        sent.iter().map(|packet| packet.to).collect::<Vec<_>>(),
        [Endpoint::HomeAgent(block().home())]
    );
}

#[test]
fn a_second_pass_of_the_former_incarnation_is_dropped() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([0]));
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 1);
    rig.send(&miss);
    let again = rig.begin(&unlock(&miss, Shared, nodes([0, 1])));
    rig.switch.restart(NEXT);
    assert_eq!(rig.second(again), []);
    assert_eq!(rig.drops(Drop::Epoch), 1);
}

#[test]
fn the_shadow_that_is_named_gets_the_notices() {
    let mut rig = Rig::new();
    rig.switch.set_shadow(NodeId(2));
    let add = request(PacketKind::AddToSwitch, block(), home_of(block()), 1);
    let sent = rig.send(&add);
    assert!(sent.iter().all(|packet| packet.status.is_granted()), "{sent:?}");
    assert!(sent.iter().any(|packet| packet.to == Endpoint::Shadow(NodeId(2))), "{sent:?}");
}
