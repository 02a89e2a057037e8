//! A lost lock is taken all the same: by one thread, which knows; and what comes late of that takes no later loss.

use node::{LockEffect, Ticket};
use wire::{LockEnd, LockKind, LockPacket, Mode, NodeId, Refusal, Status, SwitchEpoch, Term};

use crate::locks::rig::{ME, Rig, bare, mine, refused, theirs, to_agent, to_home, with};

/// A home whose lock was lent to node 0, which has died.
fn lost() -> Rig {
    let mut rig = Rig::lending();
    let own = rig.epoch(4, &[0], &[]);
    let _ = rig.hears_reports(&own, 4, &[2, 3]);
    assert!(rig.node.has_lost(mine()));
    rig
}

fn in_epoch_4(packet: LockPacket) -> LockPacket {
    LockPacket { epoch: SwitchEpoch(4), ..packet }
}

/// A packet of a node for the home, in epoch 4.
fn says(kind: LockKind, node: u16, term: u64, number: u32) -> LockPacket {
    in_epoch_4(LockPacket { mode: Mode::Write, number, ..to_home(kind, node, term) })
}

/// Node 3 has reclaimed the lock, which was lost in term 1, and the switch keeps its entry.
fn reclaimed() -> Rig {
    let mut rig = lost();
    // The first answer says which loss it is.
    let which = rig.gets(bare(says(LockKind::Reclaim, 3, 0, 1))).only();
    assert_eq!((which.status, which.term), (Status::Refused(Refusal::Lost), Term(1)));
    let install = rig.gets(bare(says(LockKind::Reclaim, 3, 1, 2))).only();
    assert_eq!((install.kind, install.next, install.term), (LockKind::Install, Some(NodeId(3)), Term(2)));
    let kept = LockPacket { number: install.number, ..to_home(LockKind::Installed, ME.0, 2) };
    let lent = rig.gets(bare(in_epoch_4(kept))).only();
    assert_eq!((lent.kind, lent.to, lent.term), (LockKind::Lent, LockEnd::Agent(NodeId(3)), Term(2)));
    assert!(!rig.node.has_lost(mine()));
    rig
}

#[test]
fn a_lost_lock_is_refused_until_somebody_takes_it_all_the_same() {
    let mut rig = lost();
    let refused = rig.gets(bare(says(LockKind::Acquire, 2, 0, 1))).only();
    assert_eq!(refused.status, Status::Refused(Refusal::Lost));
    let mut rig = reclaimed();
    // Whoever asks for it while it is taken stands in the queue of who has it: the switch knows of both.
    let sent_on = rig.gets(bare(says(LockKind::Acquire, 2, 0, 2))).only();
    assert_eq!((sent_on.kind, sent_on.to), (LockKind::Acquire, LockEnd::Switch));
}

#[test]
fn two_nodes_do_not_both_take_what_was_lost() {
    let mut rig = reclaimed();
    let second = rig.gets(bare(says(LockKind::Reclaim, 2, 1, 7))).only();
    assert_eq!((second.status, second.number), (Status::Refused(Refusal::Outdated), 7));
}

#[test]
fn whoever_took_it_and_did_not_hear_asks_again_and_is_told_again() {
    let mut rig = reclaimed();
    let again = rig.gets(bare(says(LockKind::Reclaim, 3, 1, 2))).only();
    assert_eq!((again.kind, again.term), (LockKind::Lent, Term(2)));
    // Before the switch has answered, it is asked again.
    let mut rig = lost();
    let first = rig.gets(bare(says(LockKind::Reclaim, 3, 1, 2))).only();
    assert_eq!(rig.gets(bare(says(LockKind::Reclaim, 3, 1, 2))).only(), first);
}

#[test]
fn a_late_copy_takes_no_later_loss() {
    let mut rig = reclaimed();
    let own = rig.epoch(5, &[0, 3], &[]);
    let _ = rig.hears_reports(&own, 5, &[2]);
    assert!(rig.node.has_lost(mine()), "whoever took it has died");
    let late = LockPacket { epoch: SwitchEpoch(5), ..says(LockKind::Reclaim, 2, 1, 2) };
    let which = rig.gets(bare(late)).only();
    assert_eq!((which.status, which.term), (Status::Refused(Refusal::Lost), Term(2)));
    assert!(rig.node.has_lost(mine()));
}

#[test]
fn what_nobody_heard_that_he_has_is_lost_again() {
    let mut rig = reclaimed();
    let own = rig.epoch(5, &[0], &[]);
    let _ = rig.hears_reports(&own, 5, &[2, 3]);
    assert!(rig.node.has_lost(mine()), "node 3 says nothing of it, and the data here are old");
}

#[test]
fn data_that_come_back_end_the_loss() {
    let mut rig = reclaimed();
    let back = in_epoch_4(LockPacket { mode: Mode::Write, ..to_home(LockKind::WriteBack, 3, 3) });
    assert_eq!(rig.gets(with(77, back)).only().kind, LockKind::Received);
    let own = rig.epoch(5, &[0, 3], &[]);
    let _ = rig.hears_reports(&own, 5, &[2]);
    assert!(!rig.node.has_lost(mine()));
    assert_eq!(rig.store.home[&mine()], 77);
}

#[test]
fn a_lock_that_is_not_lost_is_not_taken_as_one() {
    let mut rig = Rig::lending();
    let reclaim = LockPacket { mode: Mode::Write, number: 2, ..to_home(LockKind::Reclaim, 3, 1) };
    assert_eq!(rig.gets(bare(reclaim)).only().status, Status::Refused(Refusal::Outdated));
}

#[test]
fn what_is_given_up_is_lost_again_and_what_comes_late_of_that_does_nothing() {
    let mut rig = reclaimed();
    let free = LockPacket { mode: Mode::Read, ..says(LockKind::Free, 3, 2, 0) };
    assert_eq!(rig.gets(bare(free)).only().kind, LockKind::Remove);
    let removed = in_epoch_4(to_home(LockKind::Removed, 3, 2));
    assert_eq!(rig.gets(bare(removed)).only().kind, LockKind::Freed);
    assert!(rig.node.has_lost(mine()));
    // It is another loss.
    let which = rig.gets(bare(says(LockKind::Reclaim, 2, 1, 2))).only();
    assert_eq!((which.status, which.term), (Status::Refused(Refusal::Lost), Term(3)));
    let _ = rig.gets(bare(says(LockKind::Reclaim, 2, 3, 3)));
    assert_eq!(rig.gets(bare(free)).only().kind, LockKind::Freed, "as often as it is asked");
    assert_eq!(rig.node.home_of(mine()), Some((Term(3), true)), "node 2 has it");
}

#[test]
fn who_had_it_and_has_not_heard_that_it_is_lost_again_reports_nothing_of_this_one() {
    let mut rig = reclaimed();
    let _ = rig.gets(bare(LockPacket { mode: Mode::Read, ..says(LockKind::Free, 3, 2, 0) }));
    let _ = rig.gets(bare(in_epoch_4(to_home(LockKind::Removed, 3, 2))));
    let own = rig.epoch(5, &[0], &[]);
    let report = LockPacket { mode: Mode::Write, ..to_home(LockKind::Report, 3, 2) };
    let _ = rig.gets(bare(LockPacket { epoch: SwitchEpoch(5), ..report }));
    let last = to_home(LockKind::LastReport, 3, 1);
    let _ = rig.gets(bare(LockPacket { epoch: SwitchEpoch(5), ..last }));
    let out = rig.hears_reports(&own, 5, &[2]);
    let [reported] = out.of(LockKind::Reported)[..] else { panic!("{out:?}") };
    assert_eq!(reported.status, Status::Refused(Refusal::Outdated));
    assert!(rig.node.has_lost(mine()));
}

// The agent.

/// A thread that was told which loss there is, and names it.
fn named(rig: &mut Rig) -> LockPacket {
    let asked = rig.reclaims(1, theirs()).only();
    assert_eq!((asked.kind, asked.to), (LockKind::Reclaim, LockEnd::Home(NodeId(2))));
    assert_eq!(asked.term, Term::NONE);
    let which = refused(theirs(), Refusal::Lost, asked.number);
    let which = LockPacket { term: Term(9), ..which.packet };
    let asked = rig.gets(bare(which)).only();
    assert_eq!((asked.kind, asked.term), (LockKind::Reclaim, Term(9)));
    assert_ne!(asked.number, which.number, "or a late refusal would be taken for one of this");
    rig.gets(bare(which)).nothing();
    asked
}

#[test]
fn a_thread_reclaims_a_lost_lock_in_two_round_trips_and_is_the_first_in_it() {
    let mut rig = Rig::new();
    let _ = named(&mut rig);
    rig.wants(2, Mode::Write, theirs()).nothing();
    let out = rig.gets(with(3, to_agent(LockKind::Lent, theirs(), ME.0, 10)));
    assert_eq!(out.told(), [LockEffect::Entered(Ticket(1))]);
    assert_eq!(rig.leaves(theirs(), Mode::Write, Some(11)).told(), [LockEffect::Entered(Ticket(2))]);
}

#[test]
fn of_two_threads_that_reclaim_a_lock_one_gets_it() {
    let mut rig = Rig::new();
    let _ = named(&mut rig);
    rig.reclaims(2, theirs()).nothing();
    let told = rig.gets(with(3, to_agent(LockKind::Lent, theirs(), ME.0, 10))).told();
    let [LockEffect::Failed(_, Refusal::Outdated), LockEffect::Entered(_)] = told[..] else {
        panic!("{told:?}")
    };
    let out = rig.reclaims(3, theirs());
    assert_eq!(out.told(), [LockEffect::Failed(Ticket(3), Refusal::Outdated)]);
}

#[test]
fn threads_that_want_the_lock_as_it_was_are_told_that_it_is_lost() {
    let mut rig = Rig::new();
    let asked = rig.wants(1, Mode::Write, theirs()).only();
    rig.reclaims(2, theirs()).nothing();
    let out = rig.gets(refused(theirs(), Refusal::Lost, asked.number));
    assert_eq!(out.told(), [LockEffect::Failed(Ticket(1), Refusal::Lost)]);
    assert_eq!(out.only().kind, LockKind::Reclaim);
}

#[test]
fn a_lock_that_is_there_after_all_is_for_those_who_want_it_as_it_is() {
    let mut rig = Rig::new();
    let asked = rig.wants(1, Mode::Write, theirs()).only();
    rig.reclaims(2, theirs()).nothing();
    let out = rig.gets(with(3, to_agent(LockKind::Lent, theirs(), ME.0, 4))).told();
    assert_eq!(out, [LockEffect::Failed(Ticket(2), Refusal::Outdated), LockEffect::Entered(Ticket(1))]);
    assert!(asked.number > 0);
}

#[test]
fn a_thread_that_reclaims_what_is_not_lost_is_told_so_and_others_ask() {
    let mut rig = Rig::new();
    let asked = named(&mut rig);
    rig.wants(2, Mode::Read, theirs()).nothing();
    let out = rig.gets(refused(theirs(), Refusal::Outdated, asked.number));
    assert_eq!(out.told(), [LockEffect::Failed(Ticket(1), Refusal::Outdated)]);
    assert_eq!(out.only().kind, LockKind::Acquire);
}

#[test]
fn in_a_new_epoch_it_asks_anew_which_loss_there_is() {
    let mut rig = Rig::new();
    let _ = named(&mut rig);
    let out = rig.epoch(4, &[], &[]);
    let [asked] = out.of(LockKind::Reclaim)[..] else { panic!("{out:?}") };
    assert_eq!(asked.term, Term::NONE);
    let told = rig.epoch(5, &[2], &[]).told();
    assert_eq!(told, [LockEffect::Failed(Ticket(1), Refusal::NodeDown)], "its home is gone");
}

#[test]
fn a_thread_that_gives_it_up_says_so() {
    let mut rig = Rig::new();
    let _ = named(&mut rig);
    let _ = rig.gets(with(3, to_agent(LockKind::Lent, theirs(), ME.0, 10)));
    let free = rig.gives_up(1, theirs()).only();
    assert_eq!((free.kind, free.mode, free.term), (LockKind::Free, Mode::Read, Term(10)));
    let freed = to_agent(LockKind::Freed, theirs(), ME.0, 10);
    assert_eq!(rig.gets(bare(freed)).told(), [LockEffect::Freed(Ticket(1))]);
    assert_eq!(rig.node.held(theirs()), None);
}

#[test]
fn a_reclaim_of_another_length_needs_memory_that_may_be_locked() {
    let mut rig = lost();
    rig.store.unallocated.insert(mine());
    let other = LockPacket { len: 1 << 20, ..says(LockKind::Reclaim, 3, 1, 2) };
    assert_eq!(rig.gets(bare(other)).only().status, Status::Refused(Refusal::Unallocated));
    assert!(rig.node.has_lost(mine()), "nobody has taken it");
    // Whoever was told of the loss may still take it: its memory may have been given back by somebody who died.
    assert_eq!(rig.gets(bare(says(LockKind::Reclaim, 3, 1, 3))).only().kind, LockKind::Install);
}
