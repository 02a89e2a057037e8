//! ADD-TO-SWITCH and REMOVE-FROM-SWITCH from the home's side (Concordia, section 5.2): at no moment would two
//! owners grant a request (PROTOCOLS.md, FlowCC 4).

use node::coherence::home::directory::Keeper;
use node::{Access, Drop};
use wire::{BlockTag, Endpoint, GlobalStatus, Incarnation, Nanos, Packet, PacketKind, Refusal, Status};

use crate::coherence::packets::{
    BLOCK, INCARNATION, at_home, call, demote, granted, mine, nodes, numbered, refused, requester, theirs,
    unlock_ack, unlock_refused,
};
use crate::coherence::rig::{FLOOR, Rig};

pub(crate) const EPOCH_SPAN: Nanos = Nanos::from_millis(10);

/// Makes the block hot: it is shared by two nodes, and both were asked to give it up.
pub(crate) fn heat(rig: &mut Rig, tag: BlockTag) {
    rig.set_entry(tag, GlobalStatus::Shared, [0, 2]);
    rig.set_entry(tag, GlobalStatus::Shared, [0, 2]);
}

/// The ADD that is asked for at the end of an epoch in which `mine(1)` was hot.
fn asked_to_add(rig: &mut Rig) -> Packet {
    heat(rig, mine(1));
    rig.wait(EPOCH_SPAN).only().packet
}

/// The switch has `mine(1)`.
fn added(rig: &mut Rig) {
    let add = asked_to_add(rig);
    let done = rig.packet(granted(&add, Endpoint::Switch, GlobalStatus::Shared, [0, 2])).only().packet;
    assert!(rig.packet(unlock_ack(&done)).is_empty());
    assert_eq!(rig.entry(mine(1)).keeper, Keeper::Switch);
}

/// The REMOVE that the shadow node's DEMOTE starts.
fn asked_to_remove(rig: &mut Rig) -> Packet {
    added(rig);
    rig.packet(demote(mine(1))).only().packet
}

/// What the home says to a miss of node 3 now: the numbers of `nth` requests differ.
fn answer(rig: &mut Rig, nth: u16) -> Status {
    let request = at_home(PacketKind::WriteMiss, mine(1), requester(3, nth), 1);
    let out = rig.packet(request);
    let first = out.sent()[0].packet;
    if first.kind == PacketKind::Ack && !first.status.is_granted() {
        let _ = rig.packet(unlock_refused(&request, Refusal::Locked));
    }
    first.status
}

const LOCKED: Status = Status::Refused(Refusal::Locked);
const NOT_OWNER: Status = Status::Refused(Refusal::NotOwner);

#[test]
fn while_an_entry_goes_to_the_switch_the_home_grants_nothing_and_afterwards_neither() {
    let mut rig = Rig::home();
    let add = asked_to_add(&mut rig);
    assert_eq!((add.kind, add.to, add.tag), (PacketKind::AddToSwitch, Endpoint::Switch, mine(1)));
    assert_eq!((add.global_status, add.copyset), (GlobalStatus::Shared, nodes([0, 2])));
    assert_eq!(answer(&mut rig, 0), LOCKED);
    let done = rig.packet(granted(&add, Endpoint::Switch, GlobalStatus::Shared, [0, 2])).only().packet;
    assert_eq!((done.kind, done.status, done.seq), (PacketKind::Unlock, Status::Granted, add.seq));
    assert_eq!(answer(&mut rig, 1), LOCKED);
    assert!(rig.packet(unlock_ack(&done)).is_empty());
    assert_eq!(answer(&mut rig, 2), NOT_OWNER);
    assert_eq!(rig.node.counters().added_to_switch, 1);
}

#[test]
fn an_entry_that_the_switch_has_no_room_for_stays_at_home_but_locked_until_the_unlock_is_acknowledged() {
    let mut rig = Rig::home();
    let add = asked_to_add(&mut rig);
    let _ = rig.miss(theirs(1), Access::Shared);
    assert_eq!(rig.node.counters().granted_accesses(), 1);
    let done = rig.packet(refused(&add, Refusal::Collision)).only().packet;
    assert_eq!((done.kind, done.status), (PacketKind::Unlock, Status::Refused(Refusal::Collision)));
    assert_eq!(rig.node.counters().granted_accesses(), 1, "no access was refused");
    assert_eq!(answer(&mut rig, 0), LOCKED, "a late copy of the ADD may still get in");
    let _ = rig.packet(unlock_ack(&done));
    assert_eq!((answer(&mut rig, 1), rig.entry(mine(1)).keeper), (Status::Granted, Keeper::Home));
    assert_eq!(rig.node.counters().added_to_switch, 0);
}

#[test]
fn answers_to_a_move_that_come_twice_or_belong_to_another_are_stale() {
    let mut rig = Rig::home();
    let add = asked_to_add(&mut rig);
    let ack = granted(&add, Endpoint::Switch, GlobalStatus::Shared, [0, 2]);
    rig.drops(Drop::Stale, unlock_ack(&add));
    for other in [
        numbered(ack, add.seq.0 - 1),
        numbered(ack, add.seq.0 + 1),
        Packet { tag: mine(2), ..ack },
        Packet { event: PacketKind::RemoveFromSwitch, ..ack },
    ] {
        rig.drops(Drop::Stale, other);
    }
    let done = rig.packet(ack).only().packet;
    rig.drops(Drop::Stale, ack);
    rig.drops(Drop::Stale, refused(&add, Refusal::Collision));
    rig.drops(Drop::Stale, numbered(unlock_ack(&done), add.seq.0 + 1));
    let _ = rig.packet(unlock_ack(&done));
    rig.drops(Drop::Stale, unlock_ack(&done));
    rig.drops(Drop::Stale, ack);
}

#[test]
fn an_entry_that_comes_back_is_decided_at_home_from_the_acknowledged_unlock_on() {
    let mut rig = Rig::home();
    let remove = asked_to_remove(&mut rig);
    assert_eq!((remove.kind, remove.tag), (PacketKind::RemoveFromSwitch, mine(1)));
    assert_eq!(answer(&mut rig, 0), NOT_OWNER);
    let done = rig.packet(granted(&remove, Endpoint::Switch, GlobalStatus::Modified, [2])).only().packet;
    assert_eq!((done.kind, done.status, done.copyset), (PacketKind::Unlock, Status::Granted, nodes([2])));
    assert_eq!(answer(&mut rig, 1), NOT_OWNER);
    assert!(rig.packet(unlock_ack(&done)).is_empty());
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Modified, nodes([2])), "as the switch reported it");
    assert_eq!(answer(&mut rig, 2), Status::Granted);
    assert_eq!(rig.node.counters().removed_from_switch, 1);
}

#[test]
fn an_entry_that_is_in_use_in_the_switch_is_asked_for_again_in_the_next_epoch() {
    let mut rig = Rig::home();
    let remove = asked_to_remove(&mut rig);
    let done = rig.packet(refused(&remove, Refusal::Locked)).only().packet;
    assert_eq!(done.status, LOCKED);
    assert!(rig.packet(unlock_ack(&done)).is_empty(), "not at once");
    assert_eq!(answer(&mut rig, 0), NOT_OWNER);
    let again = rig.wait(EPOCH_SPAN).only().packet;
    assert_eq!((again.kind, again.tag), (PacketKind::RemoveFromSwitch, mine(1)));
    assert_eq!(again.seq, remove.seq.next());
}

#[test]
fn a_duplicate_of_a_report_does_not_overwrite_what_was_decided_since() {
    let mut rig = Rig::home();
    let remove = asked_to_remove(&mut rig);
    let report = granted(&remove, Endpoint::Switch, GlobalStatus::Modified, [2]);
    let done = rig.packet(report).only().packet;
    rig.drops(Drop::Stale, granted(&remove, Endpoint::Switch, GlobalStatus::Unshared, []));
    let _ = rig.packet(unlock_ack(&done));
    rig.set_entry(mine(1), GlobalStatus::Shared, [0, 3]);
    rig.drops(Drop::Stale, report);
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Shared, nodes([0, 3])));
}

#[test]
fn a_block_that_is_at_home_cannot_be_demoted() {
    let mut rig = Rig::home();
    assert!(rig.packet(demote(mine(1))).is_empty());
    assert!(rig.node.is_quiet());
}

#[test]
fn a_demotion_that_comes_twice_moves_the_block_once() {
    let mut rig = Rig::home();
    let remove = asked_to_remove(&mut rig);
    assert!(rig.packet(demote(mine(1))).is_empty(), "one move at a time");
    let done = rig.packet(granted(&remove, Endpoint::Switch, GlobalStatus::Unshared, [])).only().packet;
    assert!(rig.packet(unlock_ack(&done)).is_empty(), "the second finds the block at home");
    assert!(rig.node.is_quiet());
}

#[test]
fn a_block_whose_entry_is_locked_does_not_move() {
    let mut rig = Rig::home();
    heat(&mut rig, mine(1));
    let _ = rig.packet(at_home(PacketKind::ReadMiss, mine(1), requester(3, 0), 1));
    assert!(rig.wait(EPOCH_SPAN).is_empty());
    assert!(rig.node.is_quiet());
}

#[test]
fn a_block_that_was_freed_does_not_move_to_the_switch() {
    let mut rig = Rig::home();
    heat(&mut rig, mine(1));
    let _ = rig.packet(call(PacketKind::Mark, mine(1), 3, BLOCK.bytes(), None));
    assert!(rig.wait(EPOCH_SPAN).is_empty());
}

#[test]
fn a_block_of_the_switch_that_ends_its_incarnation_is_taken_back() {
    let mut rig = Rig::home();
    added(&mut rig);
    let out = rig.packet(call(PacketKind::Mark, mine(1), 3, BLOCK.bytes(), None));
    assert_eq!(out.kinds(), [PacketKind::RemoveFromSwitch, PacketKind::HomeReply]);
}

#[test]
fn what_a_move_waits_for_is_sent_again_as_it_was() {
    let mut rig = Rig::home();
    let add = asked_to_add(&mut rig);
    assert_eq!(rig.wait(FLOOR).only().packet, add);
    let done = rig.packet(granted(&add, Endpoint::Switch, GlobalStatus::Shared, [0, 2])).only().packet;
    assert_eq!(rig.wait(FLOOR).only().packet, done);
    let _ = rig.packet(unlock_ack(&done));
    assert!(rig.wait(FLOOR).is_empty());
}

#[test]
fn a_move_of_a_former_incarnation_of_this_node_is_not_ended_by_its_late_answer() {
    let mut rig = Rig::home();
    let add = asked_to_add(&mut rig);
    let ack = granted(&add, Endpoint::Switch, GlobalStatus::Shared, [0, 2]);
    let _ = rig.packet(Packet { tag: mine(2), ..ack });
    rig.drops(Drop::FormerIncarnation, Packet { incarnation: Incarnation(INCARNATION.0 - 1), ..ack });
}
