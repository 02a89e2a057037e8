//! The requester between grant and unlock: `on_write_back_ack`, `on_close_ack`, and answers that come late.
//!
//! The unlock waits until nothing of the event can act any more (PROTOCOLS.md, FlowCC 1).

use node::{Access, DataRef, Drop, Store};
use wire::{Endpoint, GlobalStatus, Nanos, Packet, PacketKind};

use crate::coherence::packets::{
    agent, close_ack, granted, home_of, nodes, numbered, theirs, write_back_ack,
};
use crate::coherence::rig::{FLOOR, Rig, carrying};

/// A READ-MISS on a block that node 2 has modified, answered by node 2; the thread is served.
fn read_of_modified(rig: &mut Rig) -> Packet {
    let request = rig.miss(theirs(1), Access::Shared);
    let out = rig.packet(carrying(granted(&request, agent(2), GlobalStatus::Modified, [2]), 7));
    assert_eq!((out.outcomes().len(), out.kinds()), (1, vec![]), "the thread goes on, the event does not");
    request
}

/// The answer to a READ-MISS that was repeated, with a copy at nodes 0 and 2; the thread is served.
fn repeated_read(rig: &mut Rig) -> Packet {
    let request = rig.miss(theirs(1), Access::Shared);
    let ack = granted(&request, agent(2), GlobalStatus::Shared, [0, 2]);
    let out = rig.packet(carrying(Packet { repeated: true, ..ack }, 7));
    let closed: Vec<_> = out.sent().iter().map(|sent| (sent.packet.kind, sent.packet.to)).collect();
    let home = home_of(theirs(1));
    assert_eq!(
        closed,
        [(PacketKind::Close, agent(0)), (PacketKind::Close, agent(2)), (PacketKind::Close, home)]
    );
    request
}

#[test]
fn the_unlock_of_a_read_of_a_modified_block_waits_until_the_home_has_the_copy() {
    let mut rig = Rig::new();
    let request = read_of_modified(&mut rig);
    let unlock = rig.packet(write_back_ack(&request)).only().packet;
    assert_eq!((unlock.kind, unlock.seq), (PacketKind::Unlock, request.seq));
    assert_eq!((unlock.global_status, unlock.copyset), (GlobalStatus::Shared, nodes([1, 2])));
}

#[test]
fn the_home_may_be_quicker_than_the_owner_and_say_so_twice() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    assert!(rig.packet(write_back_ack(&request)).is_empty());
    assert!(rig.packet(write_back_ack(&request)).is_empty());
    let out = rig.packet(carrying(granted(&request, agent(2), GlobalStatus::Modified, [2]), 7));
    assert_eq!(out.kinds(), [PacketKind::Unlock]);
}

#[test]
fn a_write_back_acknowledgement_of_another_event_does_not_unlock_this_one() {
    let mut rig = Rig::new();
    let _ = rig.cache(theirs(2), Access::Shared, 5);
    let request = read_of_modified(&mut rig);
    for seq in [request.seq.0 - 1, request.seq.0 + 1, request.seq.0 + 2] {
        rig.drops(Drop::Stale, numbered(write_back_ack(&request), seq));
    }
    assert_eq!(rig.packet(write_back_ack(&request)).kinds(), [PacketKind::Unlock]);
}

#[test]
fn an_early_write_back_acknowledgement_of_the_event_before_does_not_count_for_this_one() {
    let mut rig = Rig::new();
    let _ = rig.cache(theirs(2), Access::Shared, 5);
    let request = rig.miss(theirs(1), Access::Shared);
    rig.drops(Drop::Stale, numbered(write_back_ack(&request), request.seq.0 - 1));
    let out = rig.packet(carrying(granted(&request, agent(2), GlobalStatus::Modified, [2]), 7));
    assert_eq!(out.kinds(), []);
}

#[test]
fn a_write_back_acknowledgement_after_the_unlock_is_stale() {
    let mut rig = Rig::new();
    let request = read_of_modified(&mut rig);
    let _ = rig.packet(write_back_ack(&request));
    rig.drops(Drop::Stale, write_back_ack(&request));
}

#[test]
fn the_unlock_of_a_modified_eviction_and_the_miss_after_it_wait_until_the_home_has_the_block() {
    let mut rig = Rig::new();
    let _ = rig.cache(theirs(1), Access::Modified, 7);
    let _ = rig.cache(theirs(2), Access::Shared, 8);
    let request = rig.miss(theirs(3), Access::Shared);
    let _ = rig
        .packet(granted(&request, Endpoint::Switch, GlobalStatus::Modified, [1]))
        .one(PacketKind::WriteBack);
    let again = rig.wait(Nanos::from_millis(1)).only();
    assert_eq!((again.packet.kind, again.data), (PacketKind::WriteBack, Some(DataRef(7))), "its bytes stay");
    let out = rig.packet(write_back_ack(&request));
    assert_eq!(out.kinds(), [PacketKind::Unlock, PacketKind::ReadMiss]);
    let unlock = out.one(PacketKind::Unlock).packet;
    assert_eq!((unlock.global_status, unlock.copyset), (GlobalStatus::Unshared, nodes([])));
}

#[test]
fn a_repeated_read_is_unlocked_when_every_agent_and_the_home_have_closed_it_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut rig = Rig::new();
        let request = repeated_read(&mut rig);
        let acks = [agent(0), agent(2), home_of(theirs(1))].map(|from| close_ack(&request, from));
        assert!(rig.packet(acks[order[0]]).is_empty());
        assert!(rig.packet(acks[order[0]]).is_empty(), "a duplicate does not stand for another");
        assert!(rig.packet(acks[order[1]]).is_empty());
        assert_eq!(rig.packet(acks[order[2]]).kinds(), [PacketKind::Unlock]);
        rig.drops(Drop::Stale, acks[order[2]]);
    }
}

#[test]
fn a_close_acknowledgement_of_another_event_does_not_unlock_this_one() {
    let mut rig = Rig::new();
    let request = repeated_read(&mut rig);
    for from in [agent(0), agent(2), home_of(theirs(1))] {
        rig.drops(Drop::Stale, numbered(close_ack(&request, from), request.seq.0 + 2));
    }
    assert!(!rig.node.is_quiet());
}

#[test]
fn a_close_acknowledgement_before_any_answer_is_stale() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    rig.drops(Drop::Stale, close_ack(&request, agent(0)));
}

#[test]
fn only_the_agents_that_have_not_closed_are_told_again() {
    let mut rig = Rig::new();
    let request = repeated_read(&mut rig);
    let _ = rig.packet(close_ack(&request, agent(0)));
    let _ = rig.packet(close_ack(&request, home_of(theirs(1))));
    let again = rig.wait(Nanos::from_millis(1)).only().packet;
    assert_eq!((again.kind, again.to, again.seq), (PacketKind::Close, agent(2), request.seq));
}

#[test]
fn a_repeated_read_of_a_modified_block_is_closed_after_the_home_has_the_copy() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    let ack = granted(&request, agent(2), GlobalStatus::Modified, [2]);
    let out = rig.packet(carrying(Packet { repeated: true, ..ack }, 7));
    assert_eq!(out.kinds(), [], "an agent that closes sends no copy any more");
    assert_eq!(rig.packet(write_back_ack(&request)).kinds(), [PacketKind::Close; 2]);
    let _ = rig.packet(close_ack(&request, agent(2)));
    assert_eq!(rig.packet(close_ack(&request, home_of(theirs(1)))).kinds(), [PacketKind::Unlock]);
}

#[test]
fn a_repeated_write_needs_no_close_because_every_agent_answers_it() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Modified);
    let ack = granted(&request, agent(2), GlobalStatus::Modified, [2]);
    assert_eq!(rig.packet(carrying(Packet { repeated: true, ..ack }, 7)).kinds(), [PacketKind::Unlock]);
}

#[test]
fn an_answer_that_finds_the_block_shared_by_now_replaces_the_wait_for_the_home_with_closes() {
    let mut rig = Rig::new();
    let request = read_of_modified(&mut rig);
    assert_eq!(rig.wait(Nanos(FLOOR.0 * 100)).kinds(), [PacketKind::ReadMiss], "the owner is asked again");
    let late = granted(&request, agent(3), GlobalStatus::Shared, [2, 3]);
    let out = rig.packet(carrying(Packet { repeated: true, ..late }, 7));
    let to: Vec<_> = out.sent().iter().map(|sent| sent.packet.to).collect();
    assert_eq!((out.kinds(), to), (vec![PacketKind::Close; 3], vec![agent(2), agent(3), home_of(theirs(1))]));
    assert_eq!(rig.cached(theirs(1)), Some((Access::Shared, 7)));
    let _ = rig.packet(close_ack(&request, agent(2)));
    let _ = rig.packet(close_ack(&request, agent(3)));
    assert_eq!(rig.packet(close_ack(&request, home_of(theirs(1)))).kinds(), [PacketKind::Unlock]);
}

#[test]
fn a_second_answer_of_the_owner_changes_nothing_while_the_home_is_waited_for() {
    let mut rig = Rig::new();
    let request = read_of_modified(&mut rig);
    rig.drops(Drop::Stale, carrying(granted(&request, agent(2), GlobalStatus::Modified, [2]), 9));
}

#[test]
fn a_granted_eviction_evicts_the_block_from_the_frame_where_it_is_now() {
    let mut rig = Rig::new();
    let before = rig.cache(theirs(1), Access::Modified, 7);
    let other = rig.cache(theirs(2), Access::Shared, 8);
    let request = rig.miss(theirs(3), Access::Shared);
    assert_eq!((request.kind, request.tag), (PacketKind::EvictModified, theirs(1)));
    // While the request is in flight the block is lost to another node, and comes back in the other frame.
    for frame in [before, other] {
        rig.store.withdraw(frame).unwrap();
        rig.store.release(frame);
    }
    let _ = rig.cache(theirs(4), Access::Shared, 9);
    assert_ne!(rig.cache(theirs(1), Access::Modified, 10), before);
    let granted = granted(&request, Endpoint::Switch, GlobalStatus::Modified, [1]);
    let sent = rig.packet(granted).one(PacketKind::WriteBack);
    assert_eq!((sent.packet.tag, sent.data), (theirs(1), Some(DataRef(10))));
    assert_eq!(rig.cached(theirs(4)), Some((Access::Shared, 9)), "who stands in the old frame stays");
}
