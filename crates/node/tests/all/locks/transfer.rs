//! The data of a MOVE and the directory's verdict, which come apart.

use node::locks::LockDrop;
use node::{DataRef, LockEffect, LockMessage, Ticket};
use wire::{GlobalAddr, LockEnd, LockKind, LockPacket, Mode, NodeId, Refusal, SwitchEpoch, Term};

use crate::locks::holding::hand;
use crate::locks::rig::{EPOCH, FLOOR, LEN, ME, Rig, bare, nodes, theirs, to_agent, to_home, with};

/// The data that node 3 sends beside the MOVE that begins this term and knows of these nodes.
fn data<const N: usize>(value: u64, term: u64, known: [u16; N]) -> LockMessage {
    let from = LockEnd::Agent(NodeId(3));
    with(value, LockPacket { from, waiting: nodes(known), ..to_agent(LockKind::Data, theirs(), 3, term) })
}

/// What the directory says of that MOVE, which makes the node on the bench the next writer.
fn verdict<const N: usize>(term: u64, known: [u16; N]) -> LockMessage {
    bare(LockPacket { waiting: nodes(known), ..hand(term, &[], &[]) })
}

fn waiting() -> Rig {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Write, theirs());
    rig
}

fn value(rig: &Rig) -> u64 {
    rig.store.frames[&theirs()].value
}

#[test]
fn the_lock_is_here_when_both_are_in_any_order() {
    for data_first in [true, false] {
        let mut rig = waiting();
        let (first, second) = match data_first {
            true => (data(7, 6, [1]), verdict(6, [1])),
            false => (verdict(6, [1]), data(7, 6, [1])),
        };
        rig.gets(first).nothing();
        assert!(data_first || !rig.node.is_quiet(), "a verdict waits");
        let out = rig.gets(second);
        assert_eq!(out.only().kind, LockKind::Received, "its mover hears that all of it is here");
        assert_eq!((out.told(), value(&rig)), (vec![LockEffect::Entered(Ticket(1))], 7));
    }
}

#[test]
fn data_of_a_move_that_was_denied_do_not_count_for_the_next() {
    let mut rig = waiting();
    rig.gets(data(7, 6, [1])).nothing();
    rig.gets(verdict(6, [1, 2])).nothing();
    let out = rig.gets(data(8, 6, [1, 2]));
    assert_eq!((out.told(), value(&rig)), (vec![LockEffect::Entered(Ticket(1))], 8));
}

#[test]
fn data_that_were_overtaken_are_late() {
    let mut rig = waiting();
    rig.gets(data(8, 6, [1, 2])).nothing();
    for late in [data(7, 6, [1]), data(8, 6, [1, 2]), data(6, 5, [1, 2, 3])] {
        rig.drops(LockDrop::Late, late);
    }
    assert_eq!(value(&rig), 8);
    let _ = rig.gets(verdict(6, [1, 2]));
    rig.drops(LockDrop::Late, data(9, 6, [1, 2, 3]));
    assert_eq!((value(&rig), rig.node.held(theirs())), (8, Some(Mode::Write)));
}

#[test]
fn data_whose_header_does_not_come_make_room_for_other_locks() {
    let mut rig = Rig::new();
    let [one, two] = [8192, 12_288].map(|at| GlobalAddr::new(NodeId(2), at));
    rig.gets(data(7, 6, [1])).nothing();
    let _ = rig.wants(1, Mode::Read, one);
    let _ = rig.gets(with(1, to_agent(LockKind::Granted, one, ME.0, 1)));
    let _ = rig.leaves(one, Mode::Read, None);
    // There is room for two.
    assert_eq!(rig.wants(2, Mode::Read, two).only().kind, LockKind::Acquire);
    assert!(!rig.store.frames.contains_key(&theirs()), "the data have gone");
    // The header comes all the same, and then what its sender has kept.
    rig.gets(verdict(6, [1])).nothing();
    assert_eq!(rig.gets(data(7, 6, [1])).only().kind, LockKind::Received);
    assert_eq!((value(&rig), rig.node.view(theirs()).unwrap().holding.unwrap().term), (7, Term(6)));
}

#[test]
fn a_reader_takes_its_copy_when_both_are_there() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Read, theirs());
    let readers = nodes([1, 2]);
    let granted =
        LockPacket { nodes: readers, waiting: readers, ..to_agent(LockKind::Granted, theirs(), 3, 6) };
    rig.gets(bare(granted)).nothing();
    let out = rig.gets(data(7, 6, [1, 2]));
    assert_eq!((out.told(), value(&rig)), (vec![LockEffect::Entered(Ticket(1))], 7));
}

#[test]
fn a_reader_whose_copy_ends_before_its_data_come_answers_and_asks_again() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Read, theirs());
    let readers = nodes([1]);
    let granted = LockPacket {
        nodes: readers,
        waiting: readers,
        next: Some(NodeId(2)),
        ..to_agent(LockKind::Granted, theirs(), 3, 6)
    };
    rig.gets(bare(granted)).nothing();
    let out = rig
        .gets(bare(LockPacket { next: Some(NodeId(2)), ..to_agent(LockKind::Invalidate, theirs(), 2, 7) }));
    let ended: Vec<_> = out.of(LockKind::Invalidated).iter().map(|packet| packet.term.0).collect();
    assert_eq!(ended, [7, 6], "to the writer, and of the copy that it does not take any more");
    assert_eq!((out.of(LockKind::Received).len(), out.of(LockKind::Acquire).len()), (1, 1));
    rig.drops(LockDrop::Late, data(7, 6, [1]));
}

#[test]
fn data_are_not_sent_again_with_their_move_but_with_its_verdict() {
    let mut rig = Rig::holding(theirs(), 5);
    let moved = rig
        .gets(bare(LockPacket { mode: Mode::Write, ..to_agent(LockKind::Forward, theirs(), 3, 5) }))
        .moved();
    assert_eq!(rig.waits(FLOOR).only(), moved);
    let out = rig.gets(bare(to_agent(LockKind::Approved, theirs(), 1, 5)));
    assert_eq!((out.only().kind, out.data_of(&out.only())), (LockKind::Hand, Some(DataRef(11))));
}

#[test]
fn data_go_home_when_the_directory_has_approved_that() {
    let mut rig = Rig::holding(theirs(), 5);
    let moved = rig.gets(bare(to_agent(LockKind::Forward, theirs(), 3, 5))).moved();
    assert_eq!((moved.next, moved.nodes), (None, nodes([1, 3])));
    let out = rig.gets(bare(to_agent(LockKind::Approved, theirs(), 1, 5)));
    let back = out.only();
    assert_eq!((back.kind, back.to, back.term.0), (LockKind::WriteBack, LockEnd::Home(NodeId(2)), 6));
    assert_eq!(out.data_of(&back), Some(DataRef(11)));
    rig.gets(bare(to_agent(LockKind::Approved, theirs(), 1, 5))).nothing();
}

#[test]
fn data_are_refused_where_nobody_can_want_them() {
    let mut rig = Rig::holding(theirs(), 5);
    rig.drops(LockDrop::Late, data(7, 6, [1]));
    let mut rig = Rig::new();
    let lost = LockPacket { from: LockEnd::Agent(NodeId(3)), ..to_home(LockKind::Data, 3, 6) };
    rig.drops(LockDrop::Nonsense, with(7, lost));
    let mut rig = Rig::lending();
    let moved = LockPacket { next: Some(ME), ..to_home(LockKind::Move, 0, 1) };
    rig.drops(LockDrop::Nonsense, with(7, LockPacket { from: LockEnd::Agent(NodeId(0)), ..moved }));
}

#[test]
fn what_was_passed_on_stays_until_it_was_received_though_a_later_writer_ended_the_copy_here() {
    let mut rig = Rig::holding(theirs(), 5);
    let _ = rig.gets(bare(to_agent(LockKind::Forward, theirs(), 3, 5))).moved();
    let _ = rig.gets(bare(to_agent(LockKind::Approved, theirs(), 1, 5)));
    let at_home =
        LockPacket { from: LockEnd::Home(NodeId(2)), ..to_agent(LockKind::Received, theirs(), 2, 6) };
    let _ = rig.gets(bare(at_home));
    let later = LockPacket { next: Some(NodeId(0)), ..to_agent(LockKind::Invalidate, theirs(), 0, 7) };
    let _ = rig.gets(bare(later));
    assert!(rig.store.frames.contains_key(&theirs()), "node 3 may be about to copy the data out of it");
    let _ = rig.gets(bare(to_agent(LockKind::Received, theirs(), 3, 6)));
    assert!(!rig.store.frames.contains_key(&theirs()));
}

/// A node that has passed the lock on to a writer who has not said yet that it came.
fn passed_on() -> Rig {
    let mut rig = Rig::holding(theirs(), 5);
    let _ = rig.gets(bare(LockPacket { mode: Mode::Write, ..to_agent(LockKind::Forward, theirs(), 3, 5) }));
    let _ = rig.gets(bare(to_agent(LockKind::Approved, theirs(), 1, 5)));
    rig
}

#[test]
fn a_thread_that_names_another_length_waits_until_what_was_passed_on_is_received() {
    let received = bare(to_agent(LockKind::Received, theirs(), 3, 6));
    let mut rig = passed_on();
    rig.asks(7, Mode::Write, theirs(), 16, false).nothing();
    rig.asks(8, Mode::Read, theirs(), 16, false).nothing();
    assert_eq!(
        rig.wants(9, Mode::Read, theirs()).told(),
        [LockEffect::Failed(Ticket(9), Refusal::WrongLength)],
        "two lengths at once are one too many"
    );
    let asked = rig.gets(received).only();
    assert_eq!((asked.kind, asked.mode, asked.len), (LockKind::Acquire, Mode::Write, 16));

    let mut rig = passed_on();
    rig.asks(7, Mode::Write, theirs(), 16, false).nothing();
    let cancelled = rig.input(|node, at, store, out| {
        assert!(node.on_cancel(at, Ticket(7), theirs(), store, out), "it waits");
    });
    cancelled.nothing();
    rig.gets(received).nothing();
    assert_eq!(rig.wants(8, Mode::Read, theirs()).only().len, LEN, "nobody names the other length any more");
}

#[test]
fn a_thread_that_names_another_length_is_refused_where_the_lock_is() {
    let mut rig = Rig::holding(theirs(), 5);
    let refused = [LockEffect::Failed(Ticket(7), Refusal::WrongLength)];
    assert_eq!(rig.asks(7, Mode::Write, theirs(), 16, false).told(), refused);
    let _ = rig.gets(bare(to_agent(LockKind::Forward, theirs(), 3, 5))).moved();
    let _ = rig.gets(bare(to_agent(LockKind::Approved, theirs(), 1, 5)));
    assert_eq!(rig.asks(7, Mode::Write, theirs(), 16, false).told(), refused, "a copy to read is here");
}

#[test]
fn a_thread_that_waits_with_another_length_fails_with_the_home() {
    let mut rig = passed_on();
    rig.asks(7, Mode::Write, theirs(), 16, false).nothing();
    let out = rig.epoch(EPOCH.0 + 1, &[2], &[]);
    assert!(out.told().contains(&LockEffect::Failed(Ticket(7), Refusal::NodeDown)), "{out:?}");
}

#[test]
fn a_lock_that_comes_while_threads_name_another_length_is_not_theirs() {
    let mut rig = passed_on();
    rig.asks(7, Mode::Write, theirs(), 16, false).nothing();
    // A late copy of a request of this node stood in the queue.
    rig.gets(data(9, 8, [1])).nothing();
    let out = rig.gets(verdict(8, [1]));
    assert_eq!(out.told(), [LockEffect::Failed(Ticket(7), Refusal::WrongLength)]);
    assert_eq!((value(&rig), rig.node.held(theirs())), (9, Some(Mode::Write)));
}

#[test]
fn threads_that_name_another_length_ask_when_data_that_nobody_wants_are_gone() {
    let mut rig = passed_on();
    rig.asks(7, Mode::Write, theirs(), 16, false).nothing();
    rig.gets(data(9, 8, [1])).nothing();
    let readers = nodes([1, 2]);
    let unwanted =
        LockPacket { nodes: readers, waiting: nodes([1]), ..to_agent(LockKind::Granted, theirs(), 3, 8) };
    let asked = rig.gets(bare(unwanted)).of(LockKind::Acquire);
    assert_eq!(asked.iter().map(|packet| packet.len).collect::<Vec<_>>(), [16]);
}

#[test]
fn threads_that_name_another_length_wait_for_the_home_if_an_epoch_comes_between() {
    let mut rig = passed_on();
    let report = rig.epoch(EPOCH.0 + 1, &[], &[]).of(LockKind::Report);
    assert_eq!(report.len(), 1, "its MOVE was cut short");
    rig.asks(7, Mode::Write, theirs(), 16, false).nothing();
    let reported =
        LockPacket { epoch: SwitchEpoch(EPOCH.0 + 1), ..to_agent(LockKind::Reported, theirs(), ME.0, 6) };
    let asked = rig.gets(bare(reported)).of(LockKind::Acquire);
    assert_eq!(asked.iter().map(|packet| packet.len).collect::<Vec<_>>(), [16]);
}
