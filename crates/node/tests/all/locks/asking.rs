//! A thread wants a lock.

use node::locks::LockDrop;
use node::{LockEffect, Ticket};
use wire::{LockKind, LockPacket, Mode, Refusal, SwitchEpoch};

use crate::locks::rig::{EPOCH, FLOOR, LEN, ME, Rig, bare, refused, theirs, to_agent, with};

#[test]
fn a_node_asks_once_for_all_its_threads_and_lets_them_in_one_after_another() {
    let mut rig = Rig::new();
    let asked = rig.wants(1, Mode::Write, theirs()).only();
    assert_eq!((asked.kind, asked.mode, asked.node), (LockKind::Acquire, Mode::Write, ME));
    rig.wants(2, Mode::Write, theirs()).nothing();
    let out = rig.gets(with(7, to_agent(LockKind::Lent, theirs(), 1, 1)));
    assert_eq!(out.told(), [LockEffect::Entered(Ticket(1))]);
    assert_eq!(rig.store.frames[&theirs()].value, 7);
    assert_eq!(rig.leaves(theirs(), Mode::Write, Some(8)).told(), [LockEffect::Entered(Ticket(2))]);
}

#[test]
fn what_was_not_answered_is_asked_again_by_the_same_number() {
    let mut rig = Rig::new();
    let asked = rig.wants(1, Mode::Read, theirs()).only();
    assert_eq!(rig.waits(FLOOR).only(), asked);
    assert_eq!(rig.node.counters().repeated, 1);
}

#[test]
fn a_grant_that_comes_twice_counts_once() {
    let mut rig = Rig::holding(theirs(), 1);
    rig.gets(with(7, to_agent(LockKind::Lent, theirs(), 1, 1))).nothing();
    assert_eq!(rig.store.frames[&theirs()].value, 11, "what was written since is not overwritten");
}

#[test]
fn a_grant_of_an_earlier_term_is_late() {
    let mut rig = Rig::holding(theirs(), 5);
    rig.drops(LockDrop::Late, with(7, to_agent(LockKind::Lent, theirs(), 1, 3)));
}

#[test]
fn a_packet_of_another_epoch_is_dropped() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Write, theirs());
    for epoch in [EPOCH.0 - 1, EPOCH.0 + 1] {
        let lent = LockPacket { epoch: SwitchEpoch(epoch), ..to_agent(LockKind::Lent, theirs(), 1, 1) };
        rig.drops(LockDrop::Epoch, with(7, lent));
    }
}

#[test]
fn a_refusal_fails_the_threads_that_had_asked_and_the_others_ask_anew() {
    let mut rig = Rig::new();
    let first = rig.wants(1, Mode::Write, theirs()).only();
    let _ = rig.wants(2, Mode::Write, theirs());
    let out = rig.gets(refused(theirs(), Refusal::Unallocated, first.number));
    assert_eq!(out.told(), [LockEffect::Failed(Ticket(1), Refusal::Unallocated)]);
    let second = out.only();
    assert_eq!((second.kind, second.number), (LockKind::Acquire, first.number + 1));
    let out = rig.gets(refused(theirs(), Refusal::Unallocated, second.number));
    assert_eq!(out.told(), [LockEffect::Failed(Ticket(2), Refusal::Unallocated)]);
}

#[test]
fn a_late_refusal_of_an_earlier_request_fails_nobody() {
    let mut rig = Rig::new();
    let first = rig.wants(1, Mode::Write, theirs()).only();
    let _ = rig.gets(refused(theirs(), Refusal::Unallocated, first.number));
    let second = rig.wants(2, Mode::Write, theirs()).only();
    assert_ne!(second.number, first.number);
    rig.drops(LockDrop::Late, refused(theirs(), Refusal::Unallocated, first.number));
    assert_eq!(rig.node.view(theirs()).unwrap().threads, 1);
}

#[test]
fn a_refusal_by_the_queue_of_a_lock_that_has_ended_makes_the_node_ask_the_home() {
    let mut rig = Rig::new();
    let asked = rig.wants(1, Mode::Write, theirs()).only();
    let out = rig.gets(refused(theirs(), Refusal::Unallocated, 0));
    assert!(out.told().is_empty(), "{out:?}");
    assert_eq!(out.only(), asked);
}

#[test]
fn a_refusal_that_does_not_say_why_is_nonsense() {
    let mut rig = Rig::new();
    let asked = rig.wants(1, Mode::Write, theirs()).only();
    let granted = LockPacket { number: asked.number, ..to_agent(LockKind::Refused, theirs(), 1, 0) };
    rig.drops(LockDrop::Nonsense, bare(granted));
}

#[test]
fn a_thread_that_names_another_length_fails() {
    let mut rig = Rig::holding(theirs(), 1);
    let out = rig.asks(2, Mode::Read, theirs(), 2 * LEN, false);
    assert_eq!(out.told(), [LockEffect::Failed(Ticket(2), Refusal::WrongLength)]);
}

#[test]
fn a_thread_that_does_not_want_to_wait_gives_up_when_somebody_has_the_lock() {
    let mut rig = Rig::new();
    assert!(rig.asks(1, Mode::Write, theirs(), LEN, true).only().once);
    let out = rig.gets(bare(to_agent(LockKind::Busy, theirs(), 2, 0)));
    assert_eq!(out.told(), [LockEffect::Busy(Ticket(1))]);
    // What was asked for comes all the same, and stays.
    let _ = rig.gets(with(7, to_agent(LockKind::Lent, theirs(), 1, 1)));
    assert_eq!(rig.node.held(theirs()), Some(Mode::Write));
}

#[test]
fn a_thread_that_waits_no_longer_is_not_let_in() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Write, theirs());
    let mut waited = false;
    let _ = rig.input(|node, at, store, out| waited = node.on_cancel(at, Ticket(1), theirs(), store, out));
    assert!(waited);
    let out = rig.gets(with(7, to_agent(LockKind::Lent, theirs(), 1, 1)));
    assert!(out.told().is_empty(), "{out:?}");
}

#[test]
fn a_node_that_a_late_request_made_the_holder_asks_for_what_was_lost_on_the_way() {
    let mut rig = Rig::new();
    let out = rig.gets(bare(to_agent(LockKind::Forward, theirs(), 3, 4)));
    out.nothing();
    // Whoever was sent here asks once more.
    let asked = rig.gets(bare(to_agent(LockKind::Forward, theirs(), 3, 4))).only();
    assert_eq!((asked.kind, asked.node, asked.mode), (LockKind::Acquire, ME, Mode::Write));
    // It comes, and goes on to whoever was sent here before.
    let out = rig.gets(with(7, to_agent(LockKind::Lent, theirs(), 1, 4)));
    assert!(out.moved().nodes.contains(wire::NodeId(3)));
}
