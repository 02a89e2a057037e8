//! The requester's `on_ack`: grants, in pieces and in any order (Concordia, section 5.1.1), and answers of
//! other events.

use node::{Access, Drop, Outcome};
use wire::{BlockTag, Endpoint, GlobalStatus, Packet, PacketKind};

use crate::coherence::packets::{agent, granted, home_of, nodes, numbered, theirs};
use crate::coherence::rig::{Rig, carrying};

const TAG: fn(u64) -> BlockTag = theirs;

#[test]
fn a_read_miss_is_served_by_the_homes_data_and_unlocked_as_shared() {
    let mut rig = Rig::new();
    let request = rig.miss(TAG(1), Access::Shared);
    assert_eq!((request.kind, request.to), (PacketKind::ReadMiss, Endpoint::Switch));
    let out = rig.packet(carrying(granted(&request, home_of(TAG(1)), GlobalStatus::Unshared, []), 7));
    assert!(rig.store.frames[out.frame().0 as usize].pinned);
    assert_eq!(rig.cached(TAG(1)), Some((Access::Shared, 7)));
    let unlock = out.one(PacketKind::Unlock).packet;
    assert_eq!((unlock.global_status, unlock.copyset), (GlobalStatus::Shared, nodes([1])));
    assert_eq!((unlock.seq, unlock.event, unlock.in_switch), (request.seq, PacketKind::ReadMiss, true));
}

#[test]
fn a_reader_is_served_by_one_sharer_whoever_else_has_a_copy() {
    let mut rig = Rig::new();
    let request = rig.miss(TAG(1), Access::Shared);
    let out = rig.packet(carrying(granted(&request, agent(2), GlobalStatus::Shared, [0, 2]), 7));
    assert_eq!(rig.cached(TAG(1)), Some((Access::Shared, 7)));
    assert_eq!(out.one(PacketKind::Unlock).packet.copyset, nodes([0, 1, 2]));
}

#[test]
fn copies_that_other_readers_got_meanwhile_are_in_the_unlock_of_a_read_miss() {
    let mut rig = Rig::new();
    let request = rig.miss(TAG(1), Access::Shared);
    assert!(rig.packet(granted(&request, agent(0), GlobalStatus::Shared, [0])).is_empty(), "no data yet");
    let out = rig.packet(carrying(granted(&request, agent(2), GlobalStatus::Shared, [2, 3]), 7));
    assert_eq!(out.one(PacketKind::Unlock).packet.copyset, nodes([0, 1, 2, 3]));
}

#[test]
fn a_write_miss_is_served_when_the_last_sharer_has_answered_with_the_data_first_last_or_between() {
    for order in [[2, 0, 3], [0, 2, 3], [0, 3, 2]] {
        let mut rig = Rig::new();
        let request = rig.miss(TAG(1), Access::Modified);
        assert_eq!(request.kind, PacketKind::WriteMiss);
        let mut answers = order.map(|node| {
            let ack = granted(&request, agent(node), GlobalStatus::Shared, [0, 2, 3]);
            if node == 2 { carrying(ack, 7) } else { ack.into() }
        });
        let last = answers.last_mut().copied().unwrap();
        for early in &answers[..2] {
            assert!(rig.packet(*early).is_empty(), "{order:?}");
            assert_eq!(rig.cached(TAG(1)), None, "{order:?}");
        }
        let out = rig.packet(last);
        assert_eq!(rig.cached(TAG(1)), Some((Access::Modified, 7)), "{order:?}");
        let unlock = out.one(PacketKind::Unlock).packet;
        assert_eq!((unlock.global_status, unlock.copyset), (GlobalStatus::Modified, nodes([1])));
    }
}

#[test]
fn a_sharer_that_answers_twice_does_not_stand_for_another() {
    let mut rig = Rig::new();
    let request = rig.miss(TAG(1), Access::Modified);
    let provided = carrying(granted(&request, agent(2), GlobalStatus::Shared, [0, 2]), 7);
    assert!(rig.packet(provided).is_empty());
    assert!(rig.packet(provided).is_empty());
    assert_eq!(rig.cached(TAG(1)), None);
    let _ = rig.packet(granted(&request, agent(0), GlobalStatus::Shared, [0, 2])).frame();
}

#[test]
fn data_that_come_twice_are_taken_once() {
    let mut rig = Rig::new();
    let request = rig.miss(TAG(1), Access::Modified);
    let ack = granted(&request, agent(2), GlobalStatus::Shared, [0, 2]);
    let _ = rig.packet(carrying(ack, 7));
    let _ = rig.packet(carrying(ack, 8));
    let _ = rig.packet(granted(&request, agent(0), GlobalStatus::Shared, [0, 2]));
    assert_eq!(rig.cached(TAG(1)), Some((Access::Modified, 7)));
}

#[test]
fn an_upgrade_waits_for_all_sharers_but_this_node() {
    let mut rig = Rig::new();
    let _ = rig.cache(TAG(1), Access::Shared, 7);
    let request = rig.miss(TAG(1), Access::Modified);
    assert_eq!(request.kind, PacketKind::WriteShared);
    assert!(rig.packet(granted(&request, agent(2), GlobalStatus::Shared, [0, 1, 2])).is_empty());
    assert_eq!(rig.cached(TAG(1)), Some((Access::Shared, 7)), "no write yet");
    let out = rig.packet(granted(&request, agent(0), GlobalStatus::Shared, [0, 1, 2]));
    assert_eq!(rig.cached(TAG(1)), Some((Access::Modified, 7)));
    let unlock = out.one(PacketKind::Unlock).packet;
    assert_eq!((unlock.global_status, unlock.copyset), (GlobalStatus::Modified, nodes([1])));
}

#[test]
fn the_only_sharer_is_upgraded_by_the_switch_alone() {
    let mut rig = Rig::new();
    let _ = rig.cache(TAG(1), Access::Shared, 7);
    let request = rig.miss(TAG(1), Access::Modified);
    let out = rig.packet(granted(&request, Endpoint::Switch, GlobalStatus::Shared, [1]));
    assert_eq!(out.outcomes().len(), 1);
    assert_eq!(rig.cached(TAG(1)), Some((Access::Modified, 7)));
}

#[test]
fn a_granted_upgrade_waits_for_a_thread_that_has_the_frame_pinned() {
    let mut rig = Rig::new();
    let frame = rig.cache_pinned(TAG(1), Access::Shared, 7);
    let request = rig.miss(TAG(1), Access::Modified);
    let ack = granted(&request, Endpoint::Switch, GlobalStatus::Shared, [1]);
    assert!(rig.packet(ack).is_empty());
    rig.drops(Drop::Stale, ack);
    let out = rig.unpin(frame);
    assert_eq!(out.outcomes(), [Outcome::Pinned(frame)]);
    assert_eq!(out.kinds(), [PacketKind::Unlock]);
}

/// A full bucket, with `TAG(1)` the least recently used; the request that evicts it for `TAG(3)`.
fn eviction(rig: &mut Rig, access: Access) -> Packet {
    let _ = rig.cache(TAG(1), access, 7);
    let _ = rig.cache(TAG(2), Access::Shared, 8);
    let request = rig.miss(TAG(3), Access::Shared);
    assert_eq!(request.tag, TAG(1));
    request
}

#[test]
fn an_evicted_clean_copy_leaves_the_copyset_and_the_miss_follows() {
    for (before, after, status) in
        [(nodes([0, 1]), nodes([0]), GlobalStatus::Shared), (nodes([1]), nodes([]), GlobalStatus::Unshared)]
    {
        let mut rig = Rig::new();
        let request = eviction(&mut rig, Access::Shared);
        assert_eq!(request.kind, PacketKind::EvictShared);
        assert_eq!(rig.cached(TAG(1)), Some((Access::Shared, 7)), "hits go on until it is granted");
        let ack = granted(&request, Endpoint::Switch, GlobalStatus::Shared, []);
        let out = rig.packet(Packet { copyset: before, ..ack });
        assert_eq!(rig.cached(TAG(1)), None);
        assert_eq!(out.kinds(), [PacketKind::Unlock, PacketKind::ReadMiss]);
        let unlock = out.one(PacketKind::Unlock).packet;
        assert_eq!((unlock.global_status, unlock.copyset), (status, after));
        assert_eq!(out.one(PacketKind::ReadMiss).packet.seq, request.seq.next());
    }
}

#[test]
fn an_evicted_modified_block_goes_home_before_anything_else() {
    let mut rig = Rig::new();
    let request = eviction(&mut rig, Access::Modified);
    assert_eq!(request.kind, PacketKind::EvictModified);
    let out = rig.packet(granted(&request, Endpoint::Switch, GlobalStatus::Modified, [1]));
    let sent = out.only();
    assert_eq!((sent.packet.kind, sent.packet.to), (PacketKind::WriteBack, home_of(TAG(1))));
    assert_eq!((sent.packet.seq, sent.data), (request.seq, Some(node::DataRef(7))));
    assert_eq!(rig.cached(TAG(1)), None);
}

#[test]
fn a_granted_eviction_waits_for_a_thread_that_has_the_frame_pinned() {
    let mut rig = Rig::new();
    let request = eviction(&mut rig, Access::Shared);
    let (started, _) = rig.access(TAG(1), Access::Shared);
    let node::Started::Pinned(frame) = started else { panic!("{started:?}") };
    assert!(rig.packet(granted(&request, Endpoint::Switch, GlobalStatus::Shared, [1])).is_empty());
    assert_eq!(rig.cached(TAG(1)), Some((Access::Shared, 7)));
    assert_eq!(rig.unpin(frame).kinds(), [PacketKind::Unlock, PacketKind::ReadMiss]);
}

#[test]
fn an_applications_lock_is_not_unlocked_before_it_is_released() {
    for (write, kind) in [(false, PacketKind::LockRead), (true, PacketKind::LockWrite)] {
        let mut rig = Rig::new();
        let request = rig.lock(TAG(1), write, false);
        assert_eq!((request.kind, request.tag), (kind, TAG(1).lock_entry()));
        let ack = granted(&request, Endpoint::Switch, GlobalStatus::Unshared, []);
        let out = rig.packet(ack);
        assert_eq!((out.outcomes(), out.kinds()), (vec![Outcome::Locked], vec![]));
        rig.drops(Drop::Stale, ack);
        let unlock = rig.release(request.requester.slot).only().packet;
        assert_eq!((unlock.kind, unlock.seq, unlock.event), (PacketKind::Unlock, request.seq, kind));
    }
}

#[test]
fn an_answer_without_an_open_event_is_stale() {
    let mut rig = Rig::new();
    let request = rig.miss(TAG(1), Access::Shared);
    let ack = carrying(granted(&request, home_of(TAG(1)), GlobalStatus::Unshared, []), 7);
    let _ = rig.packet(ack);
    rig.drops(Drop::Stale, ack);
}

#[test]
fn an_answer_of_a_past_or_a_future_event_does_not_serve_the_open_one() {
    let mut rig = Rig::new();
    let _ = rig.cache(TAG(1), Access::Shared, 7);
    let request = rig.miss(TAG(2), Access::Shared);
    let ack = granted(&request, home_of(TAG(2)), GlobalStatus::Unshared, []);
    for seq in [request.seq.0 - 1, request.seq.0 + 1, request.seq.0 + 2] {
        rig.drops(Drop::Stale, carrying(numbered(ack, seq), 9));
    }
    let _ = rig.packet(carrying(ack, 8)).frame();
    assert_eq!(rig.cached(TAG(2)), Some((Access::Shared, 8)));
}

#[test]
fn an_answer_that_names_another_block_or_another_request_is_nonsense() {
    let mut rig = Rig::new();
    let request = rig.miss(TAG(1), Access::Shared);
    let ack = granted(&request, home_of(TAG(1)), GlobalStatus::Unshared, []);
    rig.drops(Drop::Nonsense, carrying(Packet { tag: TAG(2), ..ack }, 9));
    rig.drops(Drop::Nonsense, carrying(Packet { event: PacketKind::WriteMiss, ..ack }, 9));
    let _ = rig.packet(carrying(ack, 8)).frame();
}
