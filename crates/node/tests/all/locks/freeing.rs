//! A lock ends, at its holder, at its home and in the switch; and what comes of it late does nothing to the next one there.

use node::locks::LockDrop;
use node::{LockEffect, Ticket};
use switch::locks::{Directory, DirectoryConfig, Effect};
use wire::{LockEnd, LockKind, LockPacket, Mode, Nanos, NodeId, Refusal, Status, SwitchEpoch, Term};

use crate::locks::rig::{EPOCH, FLOOR, LEN, ME, NODES, Rig, bare, mine, theirs, to_agent, to_home, with};

/// A node that frees the lock that it has held in term 5.
fn freeing() -> Rig {
    let mut rig = Rig::holding(theirs(), 5);
    assert!(rig.store.enter(theirs(), Mode::Write));
    let free = rig.frees(1, theirs()).only();
    assert_eq!((free.kind, free.to, free.term), (LockKind::Free, LockEnd::Home(NodeId(2)), Term(5)));
    rig
}

fn freed(term: u64) -> LockPacket {
    to_agent(LockKind::Freed, theirs(), ME.0, term)
}

#[test]
fn whoever_frees_is_told_once_and_has_nothing_of_it_any_more() {
    let mut rig = freeing();
    assert_eq!(rig.gets(bare(freed(5))).told(), [LockEffect::Freed(Ticket(1))]);
    assert!(!rig.store.frames.contains_key(&theirs()));
    rig.drops(LockDrop::Late, bare(freed(5)));
}

#[test]
fn what_was_not_answered_is_asked_again() {
    let mut rig = freeing();
    assert_eq!(rig.waits(FLOOR).only().kind, LockKind::Free);
}

#[test]
fn an_answer_of_an_earlier_lock_of_that_name_frees_nothing() {
    let mut rig = freeing();
    rig.drops(LockDrop::Late, bare(freed(3)));
}

#[test]
fn nobody_gets_in_while_the_lock_ends_and_it_does_not_move() {
    let mut rig = freeing();
    assert!(!rig.store.enter(theirs(), Mode::Read));
    rig.wants(2, Mode::Read, theirs()).nothing();
    rig.gets(bare(to_agent(LockKind::Forward, theirs(), 3, 5))).nothing();
    let mut left = 0;
    rig.input(|node, at, store, out| left = node.on_leaving(at, store, out)).nothing();
    assert_eq!(left, 1, "it is not gone yet");
}

#[test]
fn whoever_waits_when_the_lock_ends_asks_the_home() {
    let mut rig = freeing();
    let _ = rig.wants(2, Mode::Read, theirs());
    let _ = rig.gets(bare(to_agent(LockKind::Forward, theirs(), 3, 5)));
    let out = rig.gets(bare(freed(5)));
    let [refused] = out.of(LockKind::Refused)[..] else { panic!("{out:?}") };
    assert_eq!((refused.to, refused.number, refused.term), (LockEnd::Agent(NodeId(3)), 0, Term(6)));
    let [asked] = out.of(LockKind::Acquire)[..] else { panic!("{out:?}") };
    assert_eq!((asked.node, asked.term), (ME, Term(6)), "it knows of the end");
    // Whoever was still on the way to the queue, too.
    let sent_on = rig.gets(bare(to_agent(LockKind::Forward, theirs(), 0, 5))).only();
    assert_eq!((sent_on.kind, sent_on.node), (LockKind::Acquire, NodeId(0)));
}

#[test]
fn the_next_lock_of_that_name_says_that_this_one_has_ended() {
    let mut rig = freeing();
    let out = rig.gets(with(20, to_agent(LockKind::Lent, theirs(), ME.0, 7)));
    assert_eq!(out.told(), [LockEffect::Freed(Ticket(1))]);
    assert_eq!(rig.node.view(theirs()).unwrap().holding.unwrap().term, Term(7));
    rig.drops(LockDrop::Late, bare(freed(5)));
}

#[test]
fn a_lock_whose_home_has_died_while_a_thread_was_inside_is_freed_at_once() {
    let mut rig = Rig::holding(theirs(), 5);
    assert!(rig.store.enter(theirs(), Mode::Write));
    let _ = rig.epoch(4, &[2], &[]);
    assert_eq!(rig.frees(1, theirs()).told(), [LockEffect::Freed(Ticket(1))]);
    assert!(!rig.store.frames.contains_key(&theirs()));
}

// The home.

fn free(term: u64) -> LockPacket {
    LockPacket { mode: Mode::Write, ..to_home(LockKind::Free, 0, term) }
}

/// A home that has forgotten the lock that it had lent in term 1.
fn forgotten() -> Rig {
    let mut rig = Rig::lending();
    let remove = rig.gets(bare(free(1))).only();
    assert_eq!((remove.kind, remove.to, remove.term), (LockKind::Remove, LockEnd::Switch, Term(1)));
    let freed = rig.gets(bare(to_home(LockKind::Removed, 0, 1))).only();
    assert_eq!((freed.kind, freed.to, freed.term), (LockKind::Freed, LockEnd::Agent(NodeId(0)), Term(1)));
    rig
}

#[test]
fn a_home_forgets_a_lock_when_the_switch_has() {
    let mut rig = forgotten();
    assert_eq!(rig.node.home_of(mine()), None);
    assert_eq!(rig.gets(bare(free(1))).only().kind, LockKind::Freed, "as often as it is asked");
    rig.drops(LockDrop::Late, bare(to_home(LockKind::Removed, 0, 1)));
}

#[test]
fn whoever_asks_while_the_switch_forgets_gets_the_next_lock_or_is_refused() {
    let mut rig = Rig::lending();
    let _ = rig.gets(bare(free(1)));
    rig.gets(bare(LockPacket { number: 4, ..to_home(LockKind::Acquire, 3, 0) })).nothing();
    rig.store.unallocated.insert(mine());
    let out = rig.gets(bare(to_home(LockKind::Removed, 0, 1)));
    let [refused] = out.of(LockKind::Refused)[..] else { panic!("{out:?}") };
    assert_eq!((refused.status, refused.number), (Status::Refused(Refusal::Unallocated), 4));
}

#[test]
fn a_free_that_comes_before_the_switch_has_answered_asks_it_again() {
    let mut rig = Rig::new();
    let install = rig.gets(bare(LockPacket { number: 1, ..to_home(LockKind::Acquire, 0, 0) })).only();
    assert_eq!(rig.gets(bare(free(1))).only(), install);
}

#[test]
fn the_next_lock_of_that_name_begins_behind_the_terms_of_the_last() {
    let mut rig = forgotten();
    let install = rig.gets(bare(LockPacket { number: 1, ..to_home(LockKind::Acquire, 3, 2) })).only();
    assert_eq!((install.kind, install.term), (LockKind::Install, Term(2)));
    assert!(install.number > 1, "it is another call: {install:?}");
    // Nothing that is late touches it.
    assert_eq!(rig.gets(bare(free(1))).only().kind, LockKind::Freed);
    assert_eq!(rig.gets(with(5, to_home(LockKind::WriteBack, 0, 1))).only().kind, LockKind::Received);
    assert_eq!(rig.node.home_of(mine()), Some((Term(2), false)));
    assert_eq!(rig.store.home.get(&mine()), None);
}

#[test]
fn a_late_request_makes_no_lock_and_whoever_it_was_for_asks_again_if_he_wants_one() {
    let mut rig = forgotten();
    let late = LockPacket { number: 4, ..to_home(LockKind::Acquire, 3, 0) };
    let refused = rig.gets(bare(late)).only();
    assert_eq!((refused.kind, refused.to), (LockKind::Refused, LockEnd::Agent(NodeId(3))));
    assert_eq!((refused.number, refused.term, rig.node.home_of(mine())), (0, Term(2), None));
    let longer = LockPacket { len: 4 * late.len, term: refused.term, ..late };
    assert_eq!(rig.gets(bare(longer)).only().kind, LockKind::Install);
    // At whoever it is for.
    let mut rig = Rig::new();
    let refused = LockPacket { number: 0, term: Term(2), ..refused };
    let told =
        |rig: &mut Rig| rig.gets(bare(LockPacket { to: LockEnd::Agent(ME), lock: theirs(), ..refused }));
    told(&mut rig).nothing();
    let _ = rig.wants(1, Mode::Write, theirs());
    let again = told(&mut rig).only();
    assert_eq!((again.kind, again.term, again.number), (LockKind::Acquire, Term(2), 1));
}

#[test]
fn whoever_has_not_heard_what_became_of_a_lock_that_is_no_more_hears_that_it_is_over() {
    let mut rig = forgotten();
    let moved = LockPacket { next: Some(NodeId(3)), ..to_home(LockKind::Move, 2, 0) };
    let answer = rig.gets(bare(moved)).only();
    assert_eq!((answer.kind, answer.to), (LockKind::Approved, LockEnd::Agent(NodeId(2))));
    let answer = rig.gets(with(5, to_home(LockKind::WriteBack, 2, 1))).only();
    assert_eq!((answer.kind, answer.to), (LockKind::Received, LockEnd::Agent(NodeId(2))));
    let asked = rig.gets(bare(to_home(LockKind::Serve, 3, 0))).only();
    assert_eq!((asked.kind, asked.to, asked.node), (LockKind::Acquire, LockEnd::Switch, NodeId(3)));
}

#[test]
fn freeing_any_number_of_locks_leaves_one_number_behind() {
    let mut rig = Rig::with_config(|config| config.in_switch = false);
    let at = |n: u64| wire::GlobalAddr::new(ME, 4096 + 64 * n);
    for n in 0..100 {
        let asked = LockPacket { lock: at(n), mode: Mode::Write, ..to_home(LockKind::Acquire, 0, 2 * n) };
        let lend = rig.gets(bare(asked)).only();
        assert_eq!(lend.term, Term(2 * n + 1), "behind all that are no more");
        let _ = rig.gets(bare(LockPacket { lock: at(n), ..to_home(LockKind::Lend, 0, lend.term.0) }));
        let freed = rig.gets(bare(LockPacket { lock: at(n), ..free(lend.term.0) })).only();
        assert_eq!(freed.kind, LockKind::Freed);
        assert_eq!((rig.node.home_of(at(n)), rig.node.entry(at(n))), (None, None));
    }
}

// The switch.

fn switch() -> Directory {
    let config = DirectoryConfig { at: LockEnd::Switch, nodes: NODES, entries: 4, epoch: EPOCH };
    Directory::new(&config).expect("it fits")
}

fn install(number: u32, term: u64) -> LockPacket {
    let packet = LockPacket::new(LockKind::Install, mine(), LEN, ME);
    let from = LockEnd::Home(ME);
    LockPacket { number, term: Term(term), from, epoch: EPOCH, ..packet }
}

fn answer(switch: &mut Directory, packet: LockPacket) -> LockPacket {
    let mut out = Vec::new();
    switch.on_packet(&packet, &mut out);
    let [Effect::Send(answer)] = out.as_slice() else { panic!("one answer expected: {out:?}") };
    *answer
}

#[test]
fn a_late_copy_of_an_install_makes_no_entry_of_a_lock_that_is_no_more() {
    let mut switch = switch();
    assert!(answer(&mut switch, install(1, 0)).status.is_granted());
    assert!(answer(&mut switch, install(1, 0)).status.is_granted(), "it is there");
    let remove = LockPacket { kind: LockKind::Remove, ..install(0, 4) };
    assert_eq!(answer(&mut switch, remove).kind, LockKind::Removed);
    assert!(!answer(&mut switch, install(1, 0)).status.is_granted());
    assert_eq!(switch.entry(mine()), None);
}

#[test]
fn a_late_copy_of_a_remove_ends_nothing_of_the_next_lock() {
    let mut switch = switch();
    let _ = answer(&mut switch, install(1, 0));
    let remove = LockPacket { kind: LockKind::Remove, ..install(0, 4) };
    let _ = answer(&mut switch, remove);
    assert!(answer(&mut switch, install(2, 5)).status.is_granted());
    assert_eq!(answer(&mut switch, remove).kind, LockKind::Removed);
    assert!(switch.entry(mine()).is_some());
}

#[test]
fn a_new_epoch_of_the_switch_begins_to_count_anew() {
    let mut switch = switch();
    let _ = answer(&mut switch, install(7, 0));
    switch.restart(SwitchEpoch(4));
    let again = LockPacket { epoch: SwitchEpoch(4), ..install(1, 0) };
    assert!(answer(&mut switch, again).status.is_granted());
}

#[test]
fn a_deadline_while_a_report_is_not_answered_frees_later() {
    let mut rig = freeing();
    let _ = rig.epoch(4, &[], &[]);
    for _ in 0..3 {
        assert!(rig.waits(Nanos(10 * FLOOR.0)).of(LockKind::Free).is_empty());
    }
}
