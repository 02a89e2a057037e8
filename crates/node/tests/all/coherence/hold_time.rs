//! How long a node holds a block for which others wait in the queue (`cache_agent/hold_time.rs`): it keeps the block while its
//! threads write in it, for a bounded time.

use node::{Access, DataRef, Drop, FrameId, HoldTime, Started};
use switch::coherence::wait_queue;
use wire::{GlobalStatus, Nanos, Packet, PacketKind, Seq};

use crate::coherence::packets::{requester, theirs, to_provider};
use crate::coherence::rig::Rig;

const TURN: HoldTime = HoldTime { pause: Nanos(100), most: Nanos(1000) };

/// A node that has a block modified.
fn rig() -> (Rig, FrameId) {
    let mut rig = Rig::with(|config| (config.queue, config.hold_time) = (true, TURN));
    let frame = rig.cache(theirs(1), Access::Modified, 7);
    (rig, frame)
}

/// A request for it that waited in a queue.
fn queued(kind: PacketKind) -> Packet {
    let request = to_provider(kind, theirs(1), 1, GlobalStatus::Modified, [1]);
    Packet { arg: wait_queue::with_code(request.arg, wait_queue::code(requester(3, 0), Seq(1))), ..request }
}

/// A thread writes in the block.
fn write(rig: &mut Rig, frame: FrameId) {
    rig.store.frames[frame.0 as usize].stamp += 1;
}

#[test]
fn a_block_that_nobody_writes_in_goes_on_after_a_pause() {
    for kind in [PacketKind::ReadMiss, PacketKind::WriteMiss] {
        let (mut rig, _) = rig();
        assert!(rig.packet(queued(kind)).is_empty());
        assert_eq!(rig.due(), TURN.pause);
        assert!(rig.wait(Nanos(99)).is_empty());
        assert_eq!(rig.wait(Nanos(1)).one(PacketKind::Ack).data, Some(DataRef(7)), "{kind:?}");
    }
}

#[test]
fn a_block_that_threads_write_in_stays_and_goes_with_what_they_wrote() {
    let (mut rig, frame) = rig();
    let _ = rig.packet(queued(PacketKind::WriteMiss));
    for _ in 0..3 {
        write(&mut rig, frame);
        assert!(rig.wait(TURN.pause).is_empty());
    }
    assert_eq!(rig.wait(TURN.pause).one(PacketKind::Ack).data, Some(DataRef(10)));
    assert_eq!(rig.cached(theirs(1)), None);
}

#[test]
fn a_turn_ends_however_busy_the_threads_are() {
    let (mut rig, frame) = rig();
    let _ = rig.packet(queued(PacketKind::WriteMiss));
    let mut waited = Nanos::ZERO;
    let answer = loop {
        write(&mut rig, frame);
        let step = rig.due().min(Nanos(70));
        waited += step;
        assert!(waited <= TURN.most, "it is still waiting");
        let out = rig.wait(step);
        if !out.is_empty() {
            break out;
        }
    };
    assert_eq!((waited, answer.kinds()), (TURN.most, vec![PacketKind::Ack]));
}

#[test]
fn a_turn_that_ends_in_a_write_is_over_after_that_write() {
    let (mut rig, _) = rig();
    let (Started::Pinned(frame), _) = rig.access(theirs(1), Access::Modified) else {
        panic!("the block is there")
    };
    let _ = rig.packet(queued(PacketKind::WriteMiss));
    assert!(rig.wait(TURN.pause).is_empty());
    write(&mut rig, frame);
    assert_eq!(rig.unpin(frame).one(PacketKind::Ack).data, Some(DataRef(8)));
}

#[test]
fn who_did_not_wait_in_the_queue_is_answered_at_once() {
    let (mut rig, _) = rig();
    let request = to_provider(PacketKind::WriteMiss, theirs(1), 1, GlobalStatus::Modified, [1]);
    assert_eq!(rig.packet(request).kinds(), [PacketKind::Ack]);
}

#[test]
fn without_turns_who_waited_in_the_queue_is_answered_at_once() {
    let mut rig = Rig::with(|config| config.queue = true);
    let _ = rig.cache(theirs(1), Access::Modified, 7);
    assert_eq!(rig.packet(queued(PacketKind::WriteMiss)).kinds(), [PacketKind::Ack]);
}

#[test]
fn a_duplicate_of_a_request_that_waits_for_the_turn_is_dropped() {
    let (mut rig, _) = rig();
    let _ = rig.packet(queued(PacketKind::WriteMiss));
    rig.drops(Drop::Duplicate, queued(PacketKind::WriteMiss));
    assert_eq!(rig.wait(TURN.pause).kinds(), [PacketKind::Ack]);
    assert!(rig.wait(TURN.most).is_empty());
}

#[test]
fn a_request_that_is_closed_waits_for_no_turn() {
    let (mut rig, _) = rig();
    let read = queued(PacketKind::ReadMiss);
    let _ = rig.packet(read);
    let close = Packet { kind: PacketKind::Close, ..read };
    assert_eq!(rig.packet(close).kinds(), [PacketKind::CloseAck]);
    assert!(rig.wait(TURN.most).is_empty());
    assert_eq!(rig.cached(theirs(1)), Some((Access::Modified, 7)));
}

#[test]
fn a_request_that_waits_for_the_turn_dies_with_its_requesters_node() {
    let (mut rig, _) = rig();
    let write = queued(PacketKind::WriteMiss);
    let _ = rig.packet(write);
    let reborn = Packet { incarnation: wire::Incarnation(write.incarnation.0 + 1), tag: theirs(9), ..write };
    rig.drops(Drop::NoSuchCopy, reborn);
    assert!(rig.wait(TURN.most).is_empty());
}
