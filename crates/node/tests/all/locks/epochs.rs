//! A new epoch: what is reported, what a home makes of it.

use node::locks::LockDrop;
use node::{DataRef, LockEffect, Ticket};
use wire::{LockKind, LockPacket, Mode, NodeId, Refusal, Status, SwitchEpoch, Term};

use crate::locks::rig::{Rig, bare, mine, theirs, to_agent, to_home, with};

fn in_epoch_4(packet: LockPacket) -> LockPacket {
    LockPacket { epoch: SwitchEpoch(4), ..packet }
}

/// The report of this node for `theirs()`.
fn report(rig: &mut Rig) -> (LockPacket, Option<DataRef>) {
    let out = rig.epoch(4, &[], &[]);
    let [report] = out.of(LockKind::Report)[..] else { panic!("one report expected: {out:?}") };
    (report, out.data_of(&report))
}

#[test]
fn the_holder_says_so_and_goes_on_when_the_home_has_answered() {
    let mut rig = Rig::holding(theirs(), 5);
    let (report, data) = report(&mut rig);
    assert_eq!((report.mode, report.term, data), (Mode::Write, Term(5), None));
    assert!(!rig.store.enter(theirs(), Mode::Write), "the lock may be no more");
    let reported = LockPacket { status: Status::Granted, ..to_agent(LockKind::Reported, theirs(), 2, 5) };
    rig.gets(bare(in_epoch_4(reported))).nothing();
    assert!(rig.store.enter(theirs(), Mode::Write), "nobody has taken it");
}

#[test]
fn a_lock_on_its_way_is_reported_with_its_data() {
    let mut rig = Rig::holding(theirs(), 5);
    let forward = LockPacket { mode: Mode::Write, ..to_agent(LockKind::Forward, theirs(), 3, 5) };
    let _ = rig.gets(bare(forward));
    let (report, data) = report(&mut rig);
    assert!(report.once && !report.has_copy);
    assert_eq!((report.term, report.next, data), (Term(6), Some(NodeId(3)), Some(DataRef(11))));
}

#[test]
fn whoever_leaves_waits_until_the_home_has_what_an_epoch_caught_on_its_way() {
    let mut rig = Rig::holding(theirs(), 5);
    let mut left = 0;
    let moved = rig.input(|node, at, store, out| left = node.on_leaving(at, store, out)).only();
    assert_eq!((moved.kind, left), (LockKind::Move, 1));
    // Another node leaves at the same time.
    let (report, data) = report(&mut rig);
    assert_eq!((report.term, data), (Term(6), Some(DataRef(11))));
    rig.input(|node, at, store, out| left = node.on_leaving(at, store, out)).nothing();
    assert_eq!(left, 1, "nobody else has the data until the home has heard everybody");
    let reported = LockPacket { status: Status::Granted, ..to_agent(LockKind::Reported, theirs(), 2, 6) };
    rig.gets(bare(in_epoch_4(reported))).nothing();
    rig.input(|node, at, store, out| left = node.on_leaving(at, store, out)).nothing();
    assert_eq!(left, 0);
}

#[test]
fn an_epoch_that_was_heard_of_changes_nothing() {
    let mut rig = Rig::holding(theirs(), 5);
    let _ = rig.epoch(4, &[], &[]);
    rig.epoch(4, &[], &[]).nothing();
    rig.epoch(3, &[2], &[]).nothing();
}

#[test]
fn threads_that_wait_for_a_lock_of_a_dead_home_fail() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Write, theirs());
    let out = rig.epoch(4, &[2], &[]);
    assert_eq!(out.told(), [LockEffect::Failed(Ticket(1), Refusal::NodeDown)]);
    let out = rig.wants(2, Mode::Write, theirs());
    assert_eq!(out.told(), [LockEffect::Failed(Ticket(2), Refusal::NodeDown)]);
}

#[test]
fn a_report_of_before_a_term_does_not_end_what_is_freed_since() {
    let mut rig = Rig::holding(theirs(), 5);
    let forward = LockPacket { mode: Mode::Write, ..to_agent(LockKind::Forward, theirs(), 3, 5) };
    let _ = rig.gets(bare(forward));
    let _ = rig.epoch(4, &[], &[]);
    let _ = rig.wants(1, Mode::Write, theirs());
    let _ = rig.gets(with(30, in_epoch_4(to_agent(LockKind::Lent, theirs(), 1, 8))));
    rig.frees(1, theirs()).nothing();
    // The answer to what was said before that term.
    let status = Status::Refused(Refusal::Outdated);
    let reported = LockPacket { status, ..in_epoch_4(to_agent(LockKind::Reported, theirs(), 1, 7)) };
    let out = rig.gets(bare(reported));
    assert!(out.told().is_empty(), "{out:?}");
    assert_eq!(out.only().kind, LockKind::Free);
}

// The home.

fn reports(node: u16, term: u64) -> LockPacket {
    in_epoch_4(to_home(LockKind::Report, node, term))
}

fn last(node: u16, count: u64) -> LockPacket {
    in_epoch_4(to_home(LockKind::LastReport, node, count))
}

#[test]
fn a_home_serves_nobody_before_everybody_has_reported() {
    let mut rig = Rig::lending();
    let own = rig.epoch(4, &[], &[]);
    rig.gets(bare(in_epoch_4(LockPacket { number: 1, ..to_home(LockKind::Acquire, 3, 0) }))).nothing();
    rig.gets(bare(LockPacket { mode: Mode::Write, ..reports(0, 1) })).nothing();
    rig.gets(bare(last(0, 1))).nothing();
    let out = rig.hears_reports(&own, 4, &[2, 3]);
    let [install] = out.of(LockKind::Install)[..] else { panic!("{out:?}") };
    assert_eq!((install.next, install.term), (Some(NodeId(0)), Term(1)), "the holder is the holder");
}

#[test]
fn reports_that_are_not_all_there_are_waited_for() {
    let mut rig = Rig::lending();
    let own = rig.epoch(4, &[], &[]);
    rig.gets(bare(last(0, 2))).nothing();
    rig.gets(bare(LockPacket { mode: Mode::Write, ..reports(0, 1) })).nothing();
    let out = rig.hears_reports(&own, 4, &[2, 3]);
    assert!(out.of(LockKind::Install).is_empty(), "{out:?}");
}

#[test]
fn a_report_of_a_lock_that_was_freed_is_outdated_though_there_is_another_of_that_name() {
    let mut rig = Rig::lending();
    let free = LockPacket { mode: Mode::Write, ..to_home(LockKind::Free, 0, 1) };
    let _ = rig.gets(bare(free));
    let _ = rig.gets(bare(to_home(LockKind::Removed, 0, 1)));
    let _ = rig.gets(bare(LockPacket { number: 1, ..to_home(LockKind::Acquire, 3, 0) }));
    let own = rig.epoch(4, &[], &[]);
    let _ = rig.gets(bare(LockPacket { mode: Mode::Write, ..reports(0, 1) }));
    let _ = rig.gets(bare(last(0, 1)));
    let out = rig.hears_reports(&own, 4, &[2, 3]);
    assert!(out.of(LockKind::Install).iter().all(|install| install.next.is_none()), "{out:?}");
    let again = rig.gets(bare(LockPacket { mode: Mode::Write, ..reports(0, 1) }));
    let answers: Vec<_> = [out.of(LockKind::Reported), again.of(LockKind::Reported)].concat();
    assert!(answers.iter().all(|it| it.status == Status::Refused(Refusal::Outdated)), "{answers:?}");
}

#[test]
fn a_home_that_has_heard_everybody_says_so_as_often_as_it_is_asked() {
    let mut rig = Rig::new();
    let own = rig.epoch(4, &[], &[]);
    let _ = rig.gets(bare(last(0, 0)));
    let _ = rig.hears_reports(&own, 4, &[2, 3]);
    assert_eq!(rig.gets(bare(last(0, 0))).only().kind, LockKind::LastReport);
    assert!(rig.node.home_of(mine()).is_none());
}

#[test]
fn an_answer_that_nobody_waits_for_is_late() {
    let mut rig = Rig::new();
    rig.drops(LockDrop::Late, bare(to_agent(LockKind::LastReport, theirs(), 1, 0)));
    rig.drops(LockDrop::Late, bare(to_agent(LockKind::Reported, theirs(), 1, 0)));
}
