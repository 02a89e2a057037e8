//! The requester's `on_unlock_ack`: event n+2 waits for n's (PROTOCOLS.md, FlowCC 2), and nothing else does.

use node::{Access, Drop, Started};
use wire::{BlockTag, Endpoint, GlobalStatus, Packet, PacketKind, Refusal, Seq, Status};

use crate::coherence::packets::{granted, home_of, numbered, refused, theirs, unlock_ack};
use crate::coherence::rig::{Rig, carrying};

/// An event that is over but for the acknowledgement of this unlock.
fn unlocking(rig: &mut Rig, tag: BlockTag) -> Packet {
    let request = rig.miss(tag, Access::Shared);
    let out = rig.packet(carrying(granted(&request, home_of(tag), GlobalStatus::Unshared, []), 7));
    let _ = rig.unpin(out.frame());
    out.one(PacketKind::Unlock).packet
}

#[test]
fn the_next_event_does_not_wait_for_the_acknowledgement_of_an_unlock() {
    let mut rig = Rig::new();
    let first = unlocking(&mut rig, theirs(1));
    let second = rig.miss(theirs(2), Access::Shared);
    assert_eq!((first.seq, second.seq), (Seq(1), Seq(2)));
    assert_eq!(first.requester, second.requester);
}

#[test]
fn the_event_after_next_begins_when_the_unlock_of_its_parity_is_acknowledged() {
    let mut rig = Rig::new();
    let first = unlocking(&mut rig, theirs(1));
    let second = unlocking(&mut rig, theirs(2));
    let (started, out) = rig.access(theirs(3), Access::Shared);
    assert_eq!((started, out.kinds()), (Started::Slot(first.requester.slot), vec![]));
    assert!(rig.packet(unlock_ack(&second)).is_empty(), "the other parity's");
    let third = rig.packet(unlock_ack(&first)).only().packet;
    assert_eq!((third.kind, third.seq), (PacketKind::EvictShared, Seq(3)));
}

#[test]
fn a_duplicate_acknowledgement_is_stale() {
    let mut rig = Rig::new();
    let unlock = unlocking(&mut rig, theirs(1));
    let _ = rig.packet(unlock_ack(&unlock));
    rig.drops(Drop::Stale, unlock_ack(&unlock));
    assert!(rig.node.is_quiet());
}

#[test]
fn an_acknowledgement_of_a_past_or_a_future_unlock_is_stale() {
    let mut rig = Rig::new();
    for nth in 1..=2 {
        let unlock = unlocking(&mut rig, theirs(nth));
        let _ = rig.packet(unlock_ack(&unlock));
    }
    let request = rig.miss(theirs(3), Access::Shared);
    let out = rig.packet(granted(&request, Endpoint::Switch, GlobalStatus::Shared, [1]));
    let third = out.one(PacketKind::Unlock).packet;
    for seq in [1, 2, 4, 5] {
        rig.drops(Drop::Stale, numbered(unlock_ack(&third), seq));
    }
    assert!(!rig.node.is_quiet());
}

#[test]
fn an_acknowledgement_before_the_unlock_is_stale_and_does_not_count_later() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    rig.drops(Drop::Stale, unlock_ack(&request));
    let out = rig.packet(refused(&request, Refusal::Unallocated));
    assert_eq!(out.one(PacketKind::Unlock).packet.status, Status::Refused(Refusal::Unallocated));
    assert!(!rig.node.is_quiet());
}

#[test]
fn a_refused_event_is_acknowledged_like_any_other_before_the_event_after_next() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    let out = rig.packet(refused(&request, Refusal::Outdated));
    let (first, second) = (out.one(PacketKind::Unlock).packet, out.one(PacketKind::ReadMiss).packet);
    let out = rig.packet(refused(&second, Refusal::Outdated));
    assert_eq!(out.kinds(), [PacketKind::Unlock], "the third waits");
    let third = rig.packet(unlock_ack(&first)).only().packet;
    assert_eq!((third.kind, third.seq), (PacketKind::ReadMiss, Seq(3)));
}
