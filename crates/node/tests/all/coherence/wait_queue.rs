//! Waiting in the queue (`requester/wait_queue.rs`): the lock comes from the one before, and goes to the one behind.

use node::{Access, Drop, Store};
use switch::coherence::wait_queue;
use wire::{BlockTag, Endpoint, GlobalStatus, NodeId, Packet, PacketKind, Refusal, RequesterId, Seq, Status};

use crate::coherence::packets::{
    EPOCH, INCARNATION, ME, agent, granted, home_of, nodes, refused, requester, theirs, unlock_ack,
};
use crate::coherence::rig::{FLOOR, Rig, carrying};

fn rig() -> Rig {
    Rig::with(|config| config.queue = true)
}

/// A requester that stands before the node on the bench.
const BEFORE: RequesterId = RequesterId { node: NodeId(3), slot: wire::SlotId(0) };

/// The switch tells that a request of node 3 stands behind this event.
fn follow(before: &Packet, kind: PacketKind, seq: u64) -> Packet {
    let behind = Packet::request(kind, before.tag, requester(3, 0), Seq(seq));
    Packet {
        epoch: EPOCH,
        incarnation: INCARNATION,
        in_switch: true,
        arg: wait_queue::with_code(7, wait_queue::code(before.requester, before.seq)),
        ..behind.reply(PacketKind::Follow, Endpoint::Switch, Endpoint::Requester(ME))
    }
}

/// The same answer, to a request that was handed the lock.
fn handed(answer: Packet) -> Packet {
    Packet { arg: wait_queue::with_code(answer.arg, wait_queue::code(BEFORE, Seq(1))), ..answer }
}

/// The one before tells that its unlock is recorded.
fn handover<const N: usize>(request: &Packet, status: GlobalStatus, copyset: [u16; N]) -> Packet {
    let from = Endpoint::Requester(BEFORE.node);
    Packet {
        global_status: status,
        copyset: nodes(copyset),
        ..handed(request.reply(PacketKind::Handover, from, request.from))
    }
}

fn handover_ack(handover: &Packet) -> Packet {
    handover.reply(PacketKind::HandoverAck, handover.to, handover.from)
}

/// The unlock is recorded, and somebody stands behind.
fn followed(unlock: &Packet) -> Packet {
    Packet { provider: true, ..unlock_ack(unlock) }
}

/// An event for writing that is granted, and unlocked; its unlock.
fn written(rig: &mut Rig, tag: BlockTag) -> Packet {
    let request = rig.miss(tag, Access::Modified);
    let out = rig.packet(carrying(granted(&request, home_of(tag), GlobalStatus::Unshared, []), 7));
    let _ = rig.unpin(out.frame());
    out.one(PacketKind::Unlock).packet
}

#[test]
fn whoever_stands_behind_is_asked_for_when_the_event_is_unlocked() {
    let mut rig = rig();
    let request = rig.miss(theirs(1), Access::Modified);
    assert!(rig.packet(follow(&request, PacketKind::WriteMiss, 1)).is_empty());
    let out = rig.packet(carrying(granted(&request, home_of(theirs(1)), GlobalStatus::Unshared, []), 7));
    assert!(out.one(PacketKind::Unlock).packet.repeated, "the unlock says that the lock went on");
    let asked = out.one(PacketKind::WriteMiss).packet;
    assert_eq!((asked.to, asked.requester, asked.provider), (agent(ME.0), requester(3, 0), true));
    assert_eq!((asked.global_status, asked.copyset), (GlobalStatus::Modified, nodes([ME.0])));
}

#[test]
fn the_lock_is_handed_over_once() {
    let mut rig = rig();
    let request = rig.miss(theirs(1), Access::Modified);
    let _ = rig.packet(follow(&request, PacketKind::WriteMiss, 1));
    let _ = rig.packet(carrying(granted(&request, home_of(theirs(1)), GlobalStatus::Unshared, []), 7));
    rig.drops(Drop::Stale, follow(&request, PacketKind::WriteMiss, 1));
}

#[test]
fn an_unlock_that_is_answered_followed_waits_until_it_is_told_by_whom() {
    let mut rig = rig();
    let unlock = written(&mut rig, theirs(1));
    assert!(!unlock.repeated);
    assert!(rig.packet(followed(&unlock)).is_empty());
    assert!(!rig.node.is_quiet());
    let out = rig.packet(follow(&unlock, PacketKind::ReadMiss, 1));
    assert!(out.one(PacketKind::Unlock).packet.repeated);
    assert_eq!(out.one(PacketKind::ReadMiss).packet.to, agent(ME.0));
}

#[test]
fn the_lock_goes_on_while_the_unlock_is_in_flight_and_the_unlock_is_sent_again_with_the_mark() {
    let mut rig = rig();
    let unlock = written(&mut rig, theirs(1));
    let asked = rig.packet(follow(&unlock, PacketKind::ReadMiss, 1)).only().packet;
    assert_eq!((asked.kind, asked.requester), (PacketKind::ReadMiss, requester(3, 0)));
    let again = rig.packet(followed(&unlock)).only().packet;
    assert_eq!((again.kind, again.repeated), (PacketKind::Unlock, true));
    assert_eq!(rig.packet(unlock_ack(&again)).only().packet.kind, PacketKind::Handover);
}

#[test]
fn the_one_behind_is_told_that_the_unlock_is_recorded_until_it_has_heard() {
    let mut rig = rig();
    let request = rig.miss(theirs(1), Access::Modified);
    let _ = rig.packet(follow(&request, PacketKind::WriteMiss, 1));
    let out = rig.packet(carrying(granted(&request, home_of(theirs(1)), GlobalStatus::Unshared, []), 7));
    let told = rig.packet(unlock_ack(&out.one(PacketKind::Unlock).packet)).only().packet;
    assert_eq!((told.kind, told.to), (PacketKind::Handover, Endpoint::Requester(NodeId(3))));
    assert_eq!((told.global_status, told.copyset), (GlobalStatus::Modified, nodes([ME.0])));
    assert_eq!(rig.wait(FLOOR).only().packet, told);
    assert!(rig.packet(handover_ack(&told)).is_empty());
    assert!(rig.node.is_quiet());
    rig.drops(Drop::Stale, handover_ack(&told));
}

#[test]
fn the_unlock_of_an_event_that_was_handed_the_lock_waits_for_that_of_the_one_before() {
    let mut rig = rig();
    let request = rig.miss(theirs(1), Access::Modified);
    let answer = handed(granted(&request, agent(3), GlobalStatus::Modified, [3]));
    let out = rig.packet(carrying(answer, 7));
    let _ = rig.unpin(out.frame());
    assert!(out.sent().is_empty(), "the thread goes on, and the unlock waits: {out:?}");
    let out = rig.packet(handover(&request, GlobalStatus::Modified, [3]));
    assert_eq!(out.kinds(), [PacketKind::HandoverAck, PacketKind::Unlock]);
    assert_eq!(out.one(PacketKind::Unlock).packet.copyset, nodes([ME.0]));
    let out = rig.packet(handover(&request, GlobalStatus::Modified, [3]));
    assert_eq!(out.kinds(), [PacketKind::HandoverAck], "however often it is told, it unlocks once");
}

#[test]
fn an_unlock_that_waits_lets_the_lock_go_on() {
    let mut rig = rig();
    let request = rig.miss(theirs(1), Access::Modified);
    let answer = handed(granted(&request, agent(3), GlobalStatus::Modified, [3]));
    let out = rig.packet(carrying(answer, 7));
    let _ = rig.unpin(out.frame());
    let asked = rig.packet(follow(&request, PacketKind::WriteMiss, 3)).only().packet;
    assert_eq!((asked.kind, asked.to), (PacketKind::WriteMiss, agent(ME.0)));
    let out = rig.packet(handover(&request, GlobalStatus::Modified, [3]));
    assert!(out.one(PacketKind::Unlock).packet.repeated);
}

#[test]
fn an_event_whose_answers_were_lost_asks_by_itself_when_it_knows_the_metadata() {
    let mut rig = rig();
    let request = rig.miss(theirs(1), Access::Modified);
    assert_eq!(
        rig.packet(handover(&request, GlobalStatus::Modified, [2])).kinds(),
        [PacketKind::HandoverAck]
    );
    let asked = rig.wait(FLOOR).only().packet;
    assert_eq!((asked.kind, asked.to, asked.provider), (PacketKind::WriteMiss, agent(2), true));
}

#[test]
fn a_write_shared_whose_copy_is_gone_at_its_turn_becomes_a_write_miss() {
    let mut rig = rig();
    let frame = rig.cache(theirs(1), Access::Shared, 5);
    let request = rig.miss(theirs(1), Access::Modified);
    assert_eq!(request.kind, PacketKind::WriteShared);
    rig.store.withdraw(frame).unwrap();
    rig.store.release(frame);
    let found = granted(&request, Endpoint::Requester(BEFORE.node), GlobalStatus::Modified, [3]);
    let outdated = handed(Packet { status: Status::Refused(Refusal::Outdated), ..found });
    let asked = rig.packet(outdated).only().packet;
    assert_eq!((asked.kind, asked.to, asked.seq), (PacketKind::WriteMiss, agent(3), request.seq));
    let out = rig.packet(carrying(asked.reply(PacketKind::Ack, agent(3), request.from), 9));
    let frame = out.frame();
    assert_eq!(
        (rig.store.tag_of(frame), rig.cached(theirs(1))),
        (Some(theirs(1)), Some((Access::Modified, 9)))
    );
}

#[test]
fn an_event_that_is_refused_at_its_turn_installs_what_it_was_told() {
    let mut rig = rig();
    let request = rig.miss(theirs(1), Access::Shared);
    let found = granted(&request, Endpoint::Requester(BEFORE.node), GlobalStatus::Shared, [1, 3]);
    let _ = rig.packet(handed(Packet { status: Status::Refused(Refusal::Outdated), ..found }));
    let out = rig.packet(handover(&request, GlobalStatus::Shared, [1, 3]));
    let unlock = out.one(PacketKind::Unlock).packet;
    assert_eq!((unlock.status, unlock.copyset), (Status::Granted, nodes([1, 3])));
}

#[test]
fn a_read_miss_waits_in_the_queue_when_it_has_been_refused_often_enough() {
    let mut rig = Rig::with(|config| (config.queue, config.refusals_before_queue) = (true, 2));
    let mut request = rig.miss(theirs(1), Access::Shared);
    for refusals in 0..6 {
        assert_eq!(request.provider, refusals % 3 == 2, "after {refusals} refusals");
        let out = rig.packet(refused(&request, Refusal::Locked));
        rig.unlocked(&out);
        request = rig.wait(FLOOR).only().packet;
    }
}

#[test]
fn without_a_line_nobody_follows() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Modified);
    rig.drops(Drop::Nonsense, follow(&request, PacketKind::WriteMiss, 1));
}
