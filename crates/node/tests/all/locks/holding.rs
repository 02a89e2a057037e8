//! The queue, where the lock may be written, and the lock on its way to others.

use node::locks::LockDrop;
use node::{DataRef, LockEffect, Ticket};
use wire::{LockEnd, LockKind, LockPacket, Mode, Nanos, NodeId, Term, WaitList};

use crate::locks::rig::{FLOOR, ME, Rig, bare, nodes, theirs, to_agent, with};

fn forward(node: u16, mode: Mode, term: u64) -> LockPacket {
    LockPacket { mode, ..to_agent(LockKind::Forward, theirs(), node, term) }
}

fn received(node: u16, term: u64) -> LockPacket {
    to_agent(LockKind::Received, theirs(), node, term)
}

/// A node that has moved the lock to node 3, and does not know whether that was approved.
fn moving() -> (Rig, LockPacket) {
    let mut rig = Rig::holding(theirs(), 5);
    let out = rig.gets(bare(forward(3, Mode::Write, 5)));
    (rig, out.moved())
}

#[test]
fn the_lock_goes_to_whoever_waits_with_the_data_and_says_who_is_known() {
    let (rig, moved) = moving();
    assert_eq!((moved.kind, moved.to, moved.next), (LockKind::Move, LockEnd::Switch, Some(NodeId(3))));
    assert_eq!((moved.term, moved.waiting), (Term(5), nodes([3])));
    assert_eq!(rig.store.frames[&theirs()].gate, None, "nobody enters what is on its way");
}

#[test]
fn a_writer_inside_keeps_the_lock_until_it_leaves() {
    let mut rig = Rig::holding(theirs(), 5);
    assert!(rig.store.enter(theirs(), Mode::Write));
    rig.gets(bare(forward(3, Mode::Read, 5))).nothing();
    let out = rig.leaves(theirs(), Mode::Write, Some(12));
    out.moved();
    assert_eq!(out.data_of(&out.of(LockKind::Data)[0]), Some(DataRef(12)));
}

#[test]
fn a_bounded_number_of_own_threads_goes_before_another_node_in_each_term() {
    for allowed in 0..4 {
        let mut rig = Rig::with_config(|config| config.preference = allowed);
        let _ = rig.wants(1, Mode::Write, theirs());
        let _ = rig.gets(with(10, to_agent(LockKind::Lent, theirs(), ME.0, 5)));
        rig.gets(bare(forward(3, Mode::Write, 5))).nothing();
        for thread in 0..8 {
            rig.wants(2 + thread, Mode::Write, theirs()).nothing();
        }
        for thread in 0..allowed {
            let out = rig.leaves(theirs(), Mode::Write, Some(11));
            assert_eq!(out.told(), [LockEffect::Entered(Ticket(2 + thread))]);
            // Others of this node that come meanwhile do not make it more.
            rig.wants(20 + thread, Mode::Write, theirs()).nothing();
        }
        let moved = rig.leaves(theirs(), Mode::Write, Some(12)).moved();
        assert_eq!((moved.next, moved.queue.nodes()), (Some(NodeId(3)), nodes([1])), "{allowed}");
    }
}

#[test]
fn a_forward_of_an_earlier_term_is_late() {
    let mut rig = Rig::holding(theirs(), 5);
    rig.drops(LockDrop::Late, bare(forward(3, Mode::Write, 4)));
}

#[test]
fn a_forward_that_comes_twice_counts_once() {
    let (mut rig, _) = moving();
    rig.gets(bare(forward(3, Mode::Write, 5))).nothing();
}

#[test]
fn a_move_that_is_not_answered_is_sent_again_as_it_was() {
    let (mut rig, moved) = moving();
    assert_eq!(rig.waits(FLOOR).only(), moved);
}

#[test]
fn a_denial_names_those_who_wait_and_the_lock_goes_to_them_too() {
    let (mut rig, moved) = moving();
    let denied = LockPacket {
        nodes: moved.waiting,
        waiting: nodes([0, 3]),
        writers: nodes([3]),
        ..to_agent(LockKind::Denied, theirs(), 1, 5)
    };
    let again = rig.gets(bare(denied)).moved();
    assert_eq!((again.kind, again.waiting, again.next), (LockKind::Move, nodes([0, 3]), Some(NodeId(3))));
    assert_eq!(again.queue.nodes(), nodes([0]));
    // A copy of it is of a MOVE that is over.
    rig.drops(LockDrop::Late, bare(denied));
}

#[test]
fn a_denial_does_not_forget_whoever_came_while_it_was_in_flight() {
    let (mut rig, moved) = moving();
    rig.gets(bare(forward(2, Mode::Write, 5))).nothing();
    let denied = LockPacket {
        nodes: moved.waiting,
        waiting: nodes([0, 3]),
        writers: nodes([0, 3]),
        ..to_agent(LockKind::Denied, theirs(), 1, 5)
    };
    assert_eq!(rig.gets(bare(denied)).moved().waiting, nodes([0, 2, 3]));
}

#[test]
fn what_was_moved_is_kept_until_it_was_received() {
    let (mut rig, _) = moving();
    let _ = rig.waits(FLOOR);
    let out = rig.gets(bare(to_agent(LockKind::Approved, theirs(), 1, 5)));
    let hand = out.only();
    assert_eq!(out.data_of(&hand), Some(DataRef(11)));
    assert_eq!((hand.kind, hand.to, hand.term), (LockKind::Hand, LockEnd::Agent(NodeId(3)), Term(6)));
    assert_eq!(rig.waits(Nanos(4 * FLOOR.0)).only(), hand, "until it was");
    rig.gets(bare(received(3, 6))).nothing();
    assert!(!rig.store.frames.contains_key(&theirs()), "nothing of it stays here");
    rig.drops(LockDrop::Late, bare(received(3, 6)));
}

#[test]
fn an_approval_of_an_earlier_move_is_late() {
    let (mut rig, _) = moving();
    rig.drops(LockDrop::Late, bare(to_agent(LockKind::Approved, theirs(), 1, 4)));
}

#[test]
fn a_forward_of_whoever_came_between_the_passes_is_sent_back() {
    let (mut rig, _) = moving();
    let _ = rig.gets(bare(received(3, 6)));
    let out = rig.gets(bare(forward(2, Mode::Write, 5))).only();
    assert_eq!((out.kind, out.to, out.node), (LockKind::Acquire, LockEnd::Switch, NodeId(2)));
}

pub(crate) fn hand(term: u64, readers: &[u16], queue: &[(u16, Mode)]) -> LockPacket {
    let mut list = WaitList::EMPTY;
    queue.iter().for_each(|&(node, mode)| list.push(NodeId(node), mode));
    LockPacket {
        mode: Mode::Write,
        next: Some(ME),
        nodes: readers.iter().map(|&node| NodeId(node)).collect(),
        queue: list,
        from: LockEnd::Switch,
        ..to_agent(LockKind::Hand, theirs(), 3, term)
    }
}

#[test]
fn a_lock_that_is_handed_over_goes_on_in_the_order_of_its_queue() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Write, theirs());
    let out = rig.gets(with(7, hand(6, &[], &[(2, Mode::Write), (0, Mode::Write)])));
    assert_eq!(out.of(LockKind::Received).len(), 1);
    assert_eq!(out.told(), [LockEffect::Entered(Ticket(1))]);
    let moved = rig.leaves(theirs(), Mode::Write, Some(8)).moved();
    assert_eq!(moved.next, Some(NodeId(2)));
    assert_eq!(moved.queue.nodes(), nodes([0]));
}

#[test]
fn whoever_is_handed_the_lock_waits_for_the_readers_before_it_however_early_they_answer() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Write, theirs());
    rig.gets(bare(to_agent(LockKind::Invalidated, theirs(), 0, 6))).nothing();
    let out = rig.gets(with(7, hand(6, &[0, 2], &[])));
    assert!(out.told().is_empty(), "{out:?}");
    let out = rig.gets(bare(to_agent(LockKind::Invalidated, theirs(), 2, 6)));
    assert_eq!(out.told(), [LockEffect::Entered(Ticket(1))]);
}

#[test]
fn a_reader_whose_answer_is_missing_is_asked() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Write, theirs());
    let _ = rig.gets(with(7, hand(6, &[0], &[])));
    let poll = rig.waits(FLOOR).only();
    assert_eq!((poll.kind, poll.to, poll.next), (LockKind::Poll, LockEnd::Agent(NodeId(0)), Some(ME)));
}

#[test]
fn a_hand_over_that_comes_again_is_received_and_dropped() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Write, theirs());
    let _ = rig.gets(with(7, hand(6, &[], &[])));
    let out = rig.gets(with(7, hand(6, &[], &[])));
    assert_eq!(out.only().kind, LockKind::Received);
    assert_eq!(rig.node.counters().dropped(LockDrop::Late), 1);
}
