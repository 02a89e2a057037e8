//! Copies to read, and their end.

use node::locks::LockDrop;
use node::{LockEffect, Ticket};
use wire::{LockEnd, LockKind, LockPacket, Mode, NodeId};

use crate::locks::rig::{ME, Rig, bare, nodes, theirs, to_agent, with};

fn invalidate(term: u64) -> LockPacket {
    LockPacket { next: Some(NodeId(3)), ..to_agent(LockKind::Invalidate, theirs(), 3, term) }
}

/// A node with a copy of term 4, and one thread inside.
fn reading() -> Rig {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Read, theirs());
    let out = rig.gets(with(7, to_agent(LockKind::Granted, theirs(), ME.0, 4)));
    assert_eq!(out.told(), [LockEffect::Entered(Ticket(1))]);
    rig
}

#[test]
fn a_copy_lets_readers_in_without_asking() {
    let mut rig = reading();
    assert!(rig.store.enter(theirs(), Mode::Read));
    assert!(!rig.store.enter(theirs(), Mode::Write));
}

#[test]
fn a_copy_ends_when_its_readers_have_left() {
    let mut rig = reading();
    rig.gets(bare(invalidate(5))).nothing();
    assert!(!rig.store.enter(theirs(), Mode::Read), "nobody enters any more");
    let said = rig.leaves(theirs(), Mode::Read, None).only();
    assert_eq!((said.kind, said.to), (LockKind::Invalidated, LockEnd::Agent(NodeId(3))));
    assert_eq!(rig.node.held(theirs()), None);
}

#[test]
fn a_node_without_a_copy_says_that_it_has_ended_as_often_as_it_is_asked() {
    let mut rig = Rig::new();
    for _ in 0..2 {
        assert_eq!(rig.gets(bare(invalidate(5))).only().kind, LockKind::Invalidated);
    }
}

#[test]
fn a_copy_that_was_ended_before_it_came_is_not_taken_and_asked_for_again() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Read, theirs());
    let _ = rig.gets(bare(invalidate(5)));
    let out = rig.gets(with(7, to_agent(LockKind::Granted, theirs(), ME.0, 4)));
    assert!(out.told().is_empty(), "{out:?}");
    assert_eq!(out.only().kind, LockKind::Acquire);
}

#[test]
fn a_copy_that_nobody_wants_is_not_taken() {
    let mut rig = Rig::new();
    rig.drops(LockDrop::Late, with(7, to_agent(LockKind::Granted, theirs(), ME.0, 4)));
    assert_eq!(rig.node.held(theirs()), None);
}

#[test]
fn a_copy_that_comes_with_its_end_is_read_once_and_ended() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Read, theirs());
    let granted = LockPacket {
        nodes: nodes([1]),
        next: Some(NodeId(3)),
        ..to_agent(LockKind::Granted, theirs(), 2, 4)
    };
    let out = rig.gets(with(7, granted));
    assert_eq!(out.told(), [LockEffect::Entered(Ticket(1))]);
    assert_eq!(out.only().kind, LockKind::Received);
    assert_eq!(rig.leaves(theirs(), Mode::Read, None).only().kind, LockKind::Invalidated);
}

#[test]
fn a_poll_is_answered_when_the_copy_is_gone_and_not_before() {
    let mut rig = reading();
    let poll = LockPacket { next: Some(NodeId(3)), ..to_agent(LockKind::Poll, theirs(), 3, 5) };
    rig.gets(bare(poll)).nothing();
    let _ = rig.gets(bare(invalidate(5)));
    let _ = rig.leaves(theirs(), Mode::Read, None);
    assert_eq!(rig.gets(bare(poll)).only().kind, LockKind::Invalidated);
}

#[test]
fn an_end_that_names_no_writer_is_nonsense() {
    let mut rig = reading();
    rig.drops(LockDrop::Nonsense, bare(LockPacket { next: None, ..invalidate(5) }));
    rig.drops(LockDrop::Nonsense, bare(to_agent(LockKind::Poll, theirs(), 3, 5)));
}
