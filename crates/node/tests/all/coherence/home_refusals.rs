//! The home agent's `on_request`: why it refuses, and that a refusal sticks to its event (PROTOCOLS.md,
//! FlowCC 2).

use wire::{BlockTag, Discipline, GlobalStatus, Packet, PacketKind, Refusal, Status};

use crate::coherence::packets::{BLOCK, at_home, call, mine, requester, unlock, unlock_refused};
use crate::coherence::rig::Rig;

fn status(rig: &mut Rig, request: Packet) -> Status {
    let answer = rig.packet(request).only().packet;
    assert_eq!((answer.kind, answer.seq), (PacketKind::Ack, request.seq));
    answer.status
}

fn of_node_3(kind: PacketKind, tag: BlockTag) -> Packet {
    at_home(kind, tag, requester(3, 0), 1)
}

#[test]
fn a_duplicate_of_a_refused_request_is_refused_again_after_the_reason_is_gone() {
    let mut rig = Rig::home();
    let other = at_home(PacketKind::WriteMiss, mine(1), requester(0, 0), 1);
    let _ = rig.packet(other);
    let request = of_node_3(PacketKind::ReadMiss, mine(1));
    let locked = Status::Refused(Refusal::Locked);
    assert_eq!(status(&mut rig, request), locked);
    let _ = rig.packet(unlock(&other, GlobalStatus::Unshared, []));
    assert!(!rig.entry(mine(1)).is_locked());
    assert_eq!(status(&mut rig, request), locked);
    assert!(!rig.entry(mine(1)).is_locked());
}

#[test]
fn a_retry_under_a_new_number_is_decided_anew() {
    let mut rig = Rig::home();
    let other = at_home(PacketKind::WriteMiss, mine(1), requester(0, 0), 1);
    let _ = rig.packet(other);
    let request = of_node_3(PacketKind::ReadMiss, mine(1));
    assert!(!status(&mut rig, request).is_granted());
    let _ = rig.packet(unlock(&other, GlobalStatus::Unshared, []));
    let _ = rig.packet(unlock_refused(&request, Refusal::Locked));
    assert!(status(&mut rig, crate::coherence::packets::numbered(request, 2)).is_granted());
}

#[test]
fn a_request_that_the_entrys_state_contradicts_is_outdated_and_leaves_the_lock_free() {
    let cases: [(PacketKind, GlobalStatus, &[u16]); 8] = [
        (PacketKind::ReadMiss, GlobalStatus::Shared, &[3]),
        (PacketKind::WriteMiss, GlobalStatus::Shared, &[3]),
        (PacketKind::WriteMiss, GlobalStatus::Modified, &[3]),
        (PacketKind::WriteShared, GlobalStatus::Shared, &[2]),
        (PacketKind::WriteShared, GlobalStatus::Modified, &[3]),
        (PacketKind::EvictShared, GlobalStatus::Shared, &[2]),
        (PacketKind::EvictModified, GlobalStatus::Modified, &[2]),
        (PacketKind::EvictModified, GlobalStatus::Shared, &[3]),
    ];
    for (kind, state, copies) in cases {
        let mut rig = Rig::home();
        rig.set_entry(mine(1), state, [copies[0]]);
        let answer = status(&mut rig, of_node_3(kind, mine(1)));
        assert_eq!(answer, Status::Refused(Refusal::Outdated), "{kind:?} {state:?} {copies:?}");
        assert!(!rig.entry(mine(1)).is_locked(), "{kind:?} {state:?} {copies:?}");
    }
}

#[test]
fn misses_and_locks_on_what_was_never_allocated_are_refused() {
    for kind in [PacketKind::ReadMiss, PacketKind::WriteMiss] {
        assert_eq!(
            status(&mut Rig::home(), of_node_3(kind, mine(20))),
            Status::Refused(Refusal::Unallocated)
        );
    }
    for kind in [PacketKind::LockRead, PacketKind::LockWrite] {
        let answer = status(&mut Rig::home(), of_node_3(kind, mine(20).lock_entry()));
        assert_eq!(answer, Status::Refused(Refusal::Unallocated));
    }
}

#[test]
fn a_miss_on_a_block_of_the_switch_that_was_freed_is_refused() {
    let request = Packet { in_switch: true, ..of_node_3(PacketKind::ReadMiss, mine(20)) };
    assert_eq!(status(&mut Rig::home(), request), Status::Refused(Refusal::Unallocated));
}

#[test]
fn what_is_cached_can_be_purged_and_evicted_after_it_was_freed() {
    let mut rig = Rig::home();
    rig.set_entry(mine(1), GlobalStatus::Shared, [3]);
    assert!(
        rig.packet(call(PacketKind::Mark, mine(1), 3, BLOCK.bytes(), None)).only().packet.status.is_granted()
    );
    assert!(status(&mut rig, of_node_3(PacketKind::EvictShared, mine(1))).is_granted());
}

#[test]
fn data_of_a_lock_only_allocation_is_the_wrong_discipline_and_its_lock_is_not() {
    let mut rig = Rig::home();
    let lock_only = Some(Discipline::LockOnly);
    let chunk =
        rig.packet(call(PacketKind::ChunkRequest, mine(0), 3, BLOCK.bytes(), lock_only)).only().packet.tag;
    let _ = rig.packet(call(PacketKind::Mark, chunk, 4, BLOCK.bytes(), lock_only));
    let wrong = Status::Refused(Refusal::WrongDiscipline);
    assert_eq!(status(&mut rig, of_node_3(PacketKind::ReadMiss, chunk)), wrong);
    assert!(
        status(&mut rig, at_home(PacketKind::LockWrite, chunk.lock_entry(), requester(3, 1), 1)).is_granted()
    );
}

#[test]
fn a_block_behind_the_end_of_the_memory_cannot_be_purged_or_evicted() {
    for kind in
        [PacketKind::Purge, PacketKind::EvictShared, PacketKind::EvictModified, PacketKind::WriteShared]
    {
        let answer = status(&mut Rig::home(), of_node_3(kind, mine(1 << 20)));
        assert_eq!(answer, Status::Refused(Refusal::NotOwner), "{kind:?}");
    }
}

#[test]
fn moves_are_between_a_home_and_the_switch_and_no_home_grants_one() {
    for kind in [PacketKind::AddToSwitch, PacketKind::RemoveFromSwitch] {
        let answer = status(&mut Rig::home(), of_node_3(kind, mine(1)));
        assert_eq!(answer, Status::Refused(Refusal::NotOwner), "{kind:?}");
    }
}
