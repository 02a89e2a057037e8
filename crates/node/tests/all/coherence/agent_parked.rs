//! The cache agent while a thread of its node has the frame pinned: requests wait, and are answered once.

use node::{Access, DataRef, Drop, FrameId};
use wire::{GlobalStatus, Packet, PacketKind};

use crate::coherence::packets::{requester, theirs, to_agent, to_provider};
use crate::coherence::rig::Rig;

/// A node whose thread is writing in the one block that it has cached.
fn writing() -> (Rig, FrameId) {
    let mut rig = Rig::new();
    let frame = rig.cache_pinned(theirs(1), Access::Modified, 7);
    (rig, frame)
}

fn requests() -> [Packet; 3] {
    [PacketKind::ReadMiss, PacketKind::WriteMiss, PacketKind::Purge]
        .map(|kind| to_provider(kind, theirs(1), 1, GlobalStatus::Modified, [1]))
}

#[test]
fn a_request_waits_for_the_threads_access_and_is_answered_with_what_it_wrote() {
    for request in requests() {
        let (mut rig, frame) = writing();
        assert!(rig.packet(request).is_empty());
        assert_eq!(rig.cached(theirs(1)), Some((Access::Modified, 7)));
        assert_eq!(rig.node.counters().parked, 1);
        rig.store.frames[frame.0 as usize].stamp = 8;
        let answer = rig.unpin(frame).one(PacketKind::Ack);
        assert_eq!(answer.data, Some(DataRef(8)), "{:?}", request.kind);
    }
}

#[test]
fn a_duplicate_of_a_request_that_waits_is_dropped_and_one_after_the_answer_gets_it_again() {
    for request in requests() {
        let (mut rig, frame) = writing();
        let _ = rig.packet(request);
        rig.drops(Drop::Duplicate, request);
        let first = rig.unpin(frame);
        assert_eq!(first.one(PacketKind::Ack).packet.seq, request.seq);
        assert_eq!(rig.packet(request), first);
    }
}

#[test]
fn all_readers_that_wait_are_answered() {
    let (mut rig, frame) = writing();
    let read = requests()[0];
    let _ = rig.packet(read);
    let _ = rig.packet(Packet { requester: requester(2, 0), ..read });
    let out = rig.unpin(frame);
    assert_eq!(out.kinds(), [PacketKind::Ack, PacketKind::WriteBack, PacketKind::Ack, PacketKind::WriteBack]);
    assert_eq!(rig.cached(theirs(1)), Some((Access::Shared, 7)));
}

#[test]
fn a_request_for_another_frame_does_not_wait() {
    let (mut rig, frame) = writing();
    let _ = rig.cache(theirs(2), Access::Shared, 9);
    let _ = rig.packet(requests()[1]);
    let other = to_agent(PacketKind::WriteMiss, theirs(2), 2, GlobalStatus::Shared, [1]);
    assert_eq!(rig.packet(other).kinds(), [PacketKind::Ack]);
    assert_eq!(rig.unpin(frame).kinds(), [PacketKind::Ack]);
}

#[test]
fn a_read_of_a_shared_block_does_not_wait_for_a_thread_that_reads_it_too() {
    let mut rig = Rig::new();
    let _ = rig.cache_pinned(theirs(1), Access::Shared, 7);
    let read = to_provider(PacketKind::ReadMiss, theirs(1), 1, GlobalStatus::Shared, [1]);
    assert_eq!(rig.packet(read).kinds(), [PacketKind::Ack]);
}

#[test]
fn a_request_that_waits_dies_with_its_requesters_node() {
    let (mut rig, frame) = writing();
    let write = requests()[1];
    let _ = rig.packet(write);
    let reborn = Packet { incarnation: wire::Incarnation(write.incarnation.0 + 1), tag: theirs(9), ..write };
    let _ = rig.packet(reborn);
    assert!(rig.unpin(frame).is_empty());
    assert_eq!(rig.cached(theirs(1)), Some((Access::Modified, 7)));
}
