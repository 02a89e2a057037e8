//! The requester's `on_ack`: refusals. Every refused event is unlocked, changes no metadata, and is tried again
//! or given up (PROTOCOLS.md, FlowCC 2 and 7).

use node::{Access, Drop, Outcome};
use wire::{Copyset, Endpoint, GlobalStatus, Nanos, PacketKind, Refusal, Status};

use crate::coherence::packets::{agent, granted, refused, theirs, unlock_ack};
use crate::coherence::rig::Rig;

#[test]
fn a_refused_event_is_unlocked_as_refused_and_names_no_metadata() {
    for why in Refusal::ALL {
        let mut rig = Rig::new();
        let request = rig.miss(theirs(1), Access::Modified);
        let out = rig.packet(refused(&request, why));
        let unlock = out.one(PacketKind::Unlock).packet;
        assert_eq!((unlock.status, unlock.seq), (Status::Refused(why), request.seq));
        assert_eq!((unlock.global_status, unlock.copyset), (GlobalStatus::Unshared, Copyset::EMPTY));
        assert_eq!(rig.node.counters().refused[why as usize], 1);
        assert_eq!(rig.cached(theirs(1)), None);
    }
}

#[test]
fn what_will_not_change_soon_fails_the_access_and_gives_its_frame_back() {
    for why in Refusal::ALL.into_iter().filter(|why| !why.is_transient()) {
        let mut rig = Rig::new();
        let request = rig.miss(theirs(1), Access::Shared);
        let out = rig.packet(refused(&request, why));
        assert_eq!(out.outcomes(), [Outcome::Failed(why)]);
        assert!(rig.store.frames.iter().all(|frame| !frame.reserved), "{why:?}");
    }
}

#[test]
fn what_was_locked_or_has_moved_is_asked_for_again_later_under_a_new_number() {
    for why in [Refusal::Locked, Refusal::NotOwner] {
        let mut rig = Rig::new();
        let request = rig.miss(theirs(1), Access::Shared);
        let out = rig.packet(refused(&request, why));
        assert_eq!((out.kinds(), out.outcomes()), (vec![PacketKind::Unlock], vec![]));
        assert!(rig.packet(unlock_ack(&out.only().packet)).is_empty());
        let again = rig.wait(Nanos::from_micros(40)).only().packet;
        assert_eq!((again.kind, again.tag), (PacketKind::ReadMiss, theirs(1)));
        assert_eq!(again.seq, request.seq.next());
    }
}

#[test]
fn an_outdated_request_is_thought_over_at_once() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    let out = rig.packet(refused(&request, Refusal::Outdated));
    assert_eq!(out.kinds(), [PacketKind::Unlock, PacketKind::ReadMiss]);
    assert_eq!(out.one(PacketKind::ReadMiss).packet.seq, request.seq.next());
}

#[test]
fn an_upgrade_whose_copy_was_lost_becomes_a_miss() {
    let mut rig = Rig::new();
    let _ = rig.cache(theirs(1), Access::Shared, 7);
    let request = rig.miss(theirs(1), Access::Modified);
    assert_eq!(request.kind, PacketKind::WriteShared);
    let theirs_now = crate::coherence::packets::to_agent(
        PacketKind::WriteShared,
        theirs(1),
        1,
        GlobalStatus::Shared,
        [0, 1],
    );
    assert_eq!(rig.packet(theirs_now).kinds(), [PacketKind::Ack]);
    let out = rig.packet(refused(&request, Refusal::Outdated));
    assert_eq!(out.kinds(), [PacketKind::Unlock, PacketKind::WriteMiss]);
}

#[test]
fn a_duplicate_of_a_refusal_is_stale() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    let refusal = refused(&request, Refusal::Locked);
    let _ = rig.packet(refusal);
    rig.drops(Drop::Stale, refusal);
}

#[test]
fn a_refusal_of_what_was_granted_in_part_is_nonsense() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Modified);
    assert!(rig.packet(granted(&request, agent(0), GlobalStatus::Shared, [0, 2])).is_empty());
    rig.drops(Drop::Nonsense, refused(&request, Refusal::Locked));
}

#[test]
fn an_attempt_to_lock_takes_a_refusal_for_an_answer_and_a_lock_does_not() {
    for (once, outcomes) in [(true, vec![Outcome::Failed(Refusal::Locked)]), (false, vec![])] {
        let mut rig = Rig::new();
        let request = rig.lock(theirs(1), true, once);
        let out = rig.packet(refused(&request, Refusal::Locked));
        assert_eq!(out.outcomes(), outcomes);
        let _ = rig.packet(unlock_ack(&out.one(PacketKind::Unlock).packet));
        let again = rig.wait(Nanos::from_micros(40)).kinds();
        assert_eq!(again, if once { vec![] } else { vec![PacketKind::LockWrite] });
    }
}

#[test]
fn an_attempt_to_lock_is_repeated_while_the_entry_moves() {
    let mut rig = Rig::new();
    let request = rig.lock(theirs(1), false, true);
    assert_eq!(rig.packet(refused(&request, Refusal::NotOwner)).outcomes(), []);
    assert_eq!(rig.wait(Nanos::from_micros(40)).kinds(), [PacketKind::LockRead]);
}

#[test]
fn a_lock_on_freed_memory_fails() {
    let mut rig = Rig::new();
    let request = rig.lock(theirs(1), false, false);
    let out = rig.packet(refused(&request, Refusal::Unallocated));
    assert_eq!(out.outcomes(), [Outcome::Failed(Refusal::Unallocated)]);
    assert!(matches!(out.one(PacketKind::Unlock).packet.to, Endpoint::Switch));
}
