//! The home agent's `on_unlock`: an event ends once, whatever comes twice or late (PROTOCOLS.md, FlowCC 2).

use node::Drop;
use wire::{Endpoint, GlobalStatus, NodeId, Packet, PacketKind, Refusal};

use crate::coherence::packets::{at_home, home_of, mine, nodes, requester, theirs, unlock, unlock_refused};
use crate::coherence::rig::Rig;

fn write(seq: u64) -> Packet {
    at_home(PacketKind::WriteMiss, mine(1), requester(3, 0), seq)
}

#[test]
fn an_unlock_installs_the_new_state_frees_the_lock_and_is_acknowledged() {
    let mut rig = Rig::home();
    let _ = rig.packet(write(1));
    let ack = rig.packet(unlock(&write(1), GlobalStatus::Modified, [3])).only().packet;
    assert_eq!((ack.kind, ack.to), (PacketKind::UnlockAck, Endpoint::Requester(NodeId(3))));
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Modified, nodes([3])));
    assert!(!rig.entry(mine(1)).is_locked());
}

#[test]
fn a_duplicate_unlock_is_acknowledged_again_and_changes_nothing() {
    let mut rig = Rig::home();
    let _ = rig.packet(write(1));
    let done = unlock(&write(1), GlobalStatus::Modified, [3]);
    let first = rig.packet(done);
    let next = at_home(PacketKind::WriteMiss, mine(1), requester(0, 0), 1);
    let _ = rig.packet(next);
    assert_eq!(rig.packet(done), first);
    assert!(rig.entry(mine(1)).is_locked(), "the next event's lock is not given back");
    let _ = rig.packet(unlock(&next, GlobalStatus::Modified, [0]));
    let _ = rig.packet(done);
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Modified, nodes([0])));
}

#[test]
fn an_unlock_older_than_the_last_event_of_its_parity_is_stale() {
    let mut rig = Rig::home();
    let _ = rig.packet(write(1));
    let done = unlock(&write(1), GlobalStatus::Unshared, []);
    let _ = rig.packet(done);
    let _ = rig.packet(write(3));
    rig.drops(Drop::Stale, done);
    assert!(rig.entry(mine(1)).is_locked());
}

#[test]
fn the_unlock_of_one_parity_does_not_end_the_event_of_the_other() {
    let mut rig = Rig::home();
    let first = write(1);
    let _ = rig.packet(first);
    let second = at_home(PacketKind::WriteMiss, mine(2), requester(3, 0), 2);
    let _ = rig.packet(second);
    let _ = rig.packet(unlock(&second, GlobalStatus::Modified, [3]));
    assert!(rig.entry(mine(1)).is_locked());
    assert!(!rig.entry(mine(2)).is_locked());
}

#[test]
fn the_unlock_of_a_refused_event_is_acknowledged_and_gives_back_nobodys_lock() {
    let mut rig = Rig::home();
    let _ = rig.packet(at_home(PacketKind::WriteMiss, mine(1), requester(0, 0), 1));
    let _ = rig.packet(write(1));
    assert_eq!(rig.packet(unlock_refused(&write(1), Refusal::Locked)).kinds(), [PacketKind::UnlockAck]);
    assert!(rig.entry(mine(1)).is_locked());
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Unshared, nodes([])));
}

#[test]
fn a_refused_unlock_of_a_granted_event_frees_the_lock_and_installs_nothing() {
    let mut rig = Rig::home();
    rig.set_entry(mine(1), GlobalStatus::Shared, [0, 2]);
    let _ = rig.packet(write(1));
    let _ = rig.packet(unlock_refused(&write(1), Refusal::Unallocated));
    assert!(!rig.entry(mine(1)).is_locked());
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Shared, nodes([0, 2])));
}

#[test]
fn a_request_that_its_unlock_has_overtaken_takes_no_lock() {
    let mut rig = Rig::home();
    assert_eq!(rig.packet(unlock_refused(&write(1), Refusal::NotOwner)).kinds(), [PacketKind::UnlockAck]);
    rig.drops(Drop::Stale, write(1));
    assert!(!rig.entry(mine(1)).is_locked());
}

#[test]
fn an_unlock_from_the_future_changes_no_metadata() {
    let mut rig = Rig::home();
    let _ = rig.packet(unlock(&write(9), GlobalStatus::Modified, [3]));
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Unshared, nodes([])));
}

#[test]
fn readers_that_unlock_one_after_the_other_are_all_in_the_copyset() {
    let mut rig = Rig::home();
    let readers = [0, 2, 3].map(|node| at_home(PacketKind::ReadMiss, mine(1), requester(node, 0), 1));
    for reader in readers {
        let _ = rig.packet(reader);
    }
    for reader in readers {
        // Each of them found nobody.
        let _ = rig.packet(unlock(&reader, GlobalStatus::Shared, [reader.requester.node.0]));
    }
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Shared, nodes([0, 2, 3])));
    assert!(!rig.entry(mine(1)).is_locked());
}

#[test]
fn the_entry_of_an_application_lock_goes_when_nobody_holds_it() {
    let mut rig = Rig::home();
    let before = rig.node.directory().bytes();
    let tag = mine(1).lock_entry();
    let readers = [0, 2].map(|node| at_home(PacketKind::LockRead, tag, requester(node, 0), 1));
    for reader in readers {
        let _ = rig.packet(reader);
    }
    let _ = rig.packet(unlock(&readers[0], GlobalStatus::Unshared, []));
    assert!(rig.entry(tag).is_locked());
    let _ = rig.packet(unlock(&readers[1], GlobalStatus::Unshared, []));
    assert!(!rig.entry(tag).is_locked());
    assert_eq!(rig.node.directory().bytes(), before);
}

#[test]
fn an_unlock_of_what_another_home_or_the_switch_keeps_is_nonsense() {
    let mut rig = Rig::home();
    let _ = rig.packet(write(1));
    let done = unlock(&write(1), GlobalStatus::Modified, [3]);
    rig.drops(Drop::Nonsense, Packet { in_switch: true, ..done });
    rig.drops(Drop::Nonsense, Packet { tag: theirs(1), to: home_of(mine(1)), ..done });
}
