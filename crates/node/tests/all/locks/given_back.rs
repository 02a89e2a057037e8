//! The memory of a lock is given back, and who has done so does not end the lock: he is dead, or was told that he could not.

use node::locks::LockDrop;
use node::{LockEffect, Ticket};
use wire::{
    Copyset, GlobalAddr, LockEnd, LockKind, LockPacket, Mode, NodeId, Refusal, Status, SwitchEpoch, Term,
};

use crate::locks::rig::{FLOOR, ME, Rig, bare, mine, theirs, to_agent, to_home, with};

fn in_epoch_4(packet: LockPacket) -> LockPacket {
    LockPacket { epoch: SwitchEpoch(4), ..packet }
}

fn written_back(term: u64) -> LockPacket {
    to_home(LockKind::WriteBack, 0, term)
}

/// A home that has lent `mine()` to node 0 in term 1, and whose memory was given back since.
fn given_back() -> Rig {
    let mut rig = Rig::lending();
    rig.node.on_blocks_ended(mine(), 64);
    rig
}

/// It hears in the next epoch that node 0 still has the lock.
fn heard_of_the_holder(rig: &mut Rig) -> Vec<LockPacket> {
    let own = rig.epoch(4, &[], &[]);
    let _ = rig.gets(bare(in_epoch_4(LockPacket { mode: Mode::Write, ..to_home(LockKind::Report, 0, 1) })));
    let _ = rig.gets(bare(in_epoch_4(to_home(LockKind::LastReport, 0, 1))));
    rig.hears_reports(&own, 4, &[2, 3]).sent().collect()
}

#[test]
fn what_comes_back_is_not_written_and_its_sender_hears_that_it_came() {
    let mut rig = given_back();
    let received = rig.gets(with(77, written_back(2))).only();
    assert_eq!((received.kind, received.to), (LockKind::Received, LockEnd::Agent(NodeId(0))));
    assert_eq!(rig.store.home.get(&mine()), None);
    // Where the memory is still the lock's, it is.
    let mut rig = Rig::lending();
    let _ = rig.gets(with(77, written_back(2)));
    assert_eq!(rig.store.home.get(&mine()), Some(&77));
}

#[test]
fn a_region_that_reaches_into_the_blocks_is_given_back_with_them_and_its_neighbours_are_not() {
    for (first, bytes, gone) in [(4100, 8, true), (4032, 64, false), (4104, 64, false), (4032, 128, true)] {
        let mut rig = Rig::lending();
        rig.node.on_blocks_ended(GlobalAddr::new(ME, first), bytes);
        let _ = rig.gets(with(77, written_back(2)));
        assert_eq!(rig.store.home.contains_key(&mine()), !gone, "{bytes} bytes from {first}");
    }
}

#[test]
fn whoever_has_given_it_back_ends_the_lock_as_ever() {
    let mut rig = given_back();
    let remove = rig.gets(bare(LockPacket { mode: Mode::Write, ..to_home(LockKind::Free, 0, 1) })).only();
    assert_eq!(remove.kind, LockKind::Remove);
    assert_eq!(rig.gets(bare(to_home(LockKind::Removed, 0, 1))).only().kind, LockKind::Freed);
    assert_eq!(rig.node.home_of(mine()), None);
}

#[test]
fn in_the_next_epoch_the_lock_is_no_more_whoever_has_it() {
    let mut rig = given_back();
    let sent = heard_of_the_holder(&mut rig);
    let answers: Vec<_> = sent.iter().filter(|packet| packet.kind == LockKind::Reported).collect();
    let [answer] = answers[..] else { panic!("{sent:?}") };
    assert_eq!((answer.to, answer.status), (LockEnd::Agent(NodeId(0)), Status::Refused(Refusal::Outdated)));
    assert!(sent.iter().all(|packet| packet.kind != LockKind::Install), "{sent:?}");
    assert_eq!(rig.node.home_of(mine()), None);
    // The next one of that name may have another length, and begins behind it.
    let asks = LockPacket { number: 1, len: 16, ..to_home(LockKind::Acquire, 3, 2) };
    let install = rig.gets(bare(in_epoch_4(asks))).only();
    assert_eq!((install.kind, install.len, install.next), (LockKind::Install, 16, None));
    assert!(install.term > Term(1), "{install:?}");
}

#[test]
fn a_lost_lock_is_not_lost_any_more_when_its_memory_is_given_back() {
    let mut rig = Rig::lending();
    let own = rig.epoch(4, &[0], &[]);
    let _ = rig.hears_reports(&own, 4, &[2, 3]);
    assert!(rig.node.has_lost(mine()));
    rig.node.on_blocks_ended(mine(), 64);
    assert!(!rig.node.has_lost(mine()));
    let reclaim = in_epoch_4(to_home(LockKind::Reclaim, 3, 1));
    assert_eq!(rig.gets(bare(reclaim)).only().status, Status::Refused(Refusal::Outdated));
}

#[test]
fn one_that_is_given_up_as_lost_is_not_either() {
    let mut rig = given_back();
    let _ = rig.gets(bare(LockPacket { mode: Mode::Read, ..to_home(LockKind::Free, 0, 1) }));
    let _ = rig.gets(bare(to_home(LockKind::Removed, 0, 1)));
    assert_eq!((rig.node.home_of(mine()), rig.node.has_lost(mine())), (None, false));
}

// The agent.

/// A thread is inside to write when an epoch begins.
fn inside() -> Rig {
    let mut rig = Rig::holding(theirs(), 5);
    assert!(rig.store.enter(theirs(), Mode::Write));
    let _ = rig.epoch(4, &[], &[]);
    rig
}

fn reported(status: Status) -> LockPacket {
    LockPacket { status, ..in_epoch_4(to_agent(LockKind::Reported, theirs(), ME.0, 5)) }
}

#[test]
fn nobody_gets_in_behind_a_writer_before_the_home_has_said_that_there_is_a_lock() {
    let mut rig = inside();
    rig.wants(2, Mode::Write, theirs()).nothing();
    rig.leaves(theirs(), Mode::Write, Some(12)).nothing();
    assert!(!rig.store.enter(theirs(), Mode::Read));
    assert_eq!(rig.gets(bare(reported(Status::Granted))).told(), [LockEffect::Entered(Ticket(2))]);
}

#[test]
fn whoever_hears_that_there_is_none_asks_anew_when_its_writer_has_left() {
    let mut rig = inside();
    rig.wants(2, Mode::Write, theirs()).nothing();
    rig.gets(bare(reported(Status::Refused(Refusal::Outdated)))).nothing();
    assert!(!rig.store.enter(theirs(), Mode::Read));
    let asked = rig.leaves(theirs(), Mode::Write, Some(12)).only();
    assert_eq!((asked.kind, asked.number), (LockKind::Acquire, 2));
    assert_eq!(rig.node.held(theirs()), None);
}

#[test]
fn a_copy_that_is_of_nothing_goes() {
    let mut rig = Rig::new();
    let _ = rig.wants(1, Mode::Read, theirs());
    let granted = LockPacket { number: 1, ..to_agent(LockKind::Granted, theirs(), ME.0, 5) };
    assert_eq!(rig.gets(with(10, granted)).told(), [LockEffect::Entered(Ticket(1))]);
    let _ = rig.leaves(theirs(), Mode::Read, None);
    let _ = rig.epoch(4, &[], &[]);
    rig.gets(bare(reported(Status::Refused(Refusal::Outdated)))).nothing();
    assert!(rig.node.held(theirs()).is_none() && !rig.store.frames.contains_key(&theirs()));
    rig.drops(LockDrop::Late, bare(reported(Status::Refused(Refusal::Outdated))));
}

#[test]
fn a_home_hears_that_all_is_said_when_what_is_given_back_there_has_been() {
    let mut rig = Rig::new();
    rig.node.await_frees(Copyset::only(NodeId(2)));
    let out = rig.epoch(4, &[], &[]);
    let told: Vec<_> = out.of(LockKind::LastReport).iter().map(|packet| packet.to).collect();
    assert_eq!(told, [0, 1, 3].map(|home| LockEnd::Home(NodeId(home))));
    let out = rig.waits(FLOOR);
    assert!(out.sent().all(|packet| packet.to != LockEnd::Home(NodeId(2))), "{out:?}");
    rig.node.on_frees_done(rig.now, NodeId(2));
    let out = rig.waits(wire::Nanos(0));
    let [last] = out.of(LockKind::LastReport)[..] else { panic!("{out:?}") };
    assert_eq!(last.to, LockEnd::Home(NodeId(2)));
}
