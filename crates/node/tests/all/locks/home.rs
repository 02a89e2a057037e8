//! The home: what it asks of the switch, its data, and the directory of what the switch does not keep.

use node::DataRef;
use node::locks::LockDrop;
use wire::{LockEnd, LockKind, LockPacket, Mode, NodeId, Refusal, Status, Term};

use crate::locks::rig::{LEN, ME, Rig, bare, mine, to_home, with};

fn acquire(node: u16, mode: Mode, number: u32) -> LockPacket {
    LockPacket { mode, number, ..to_home(LockKind::Acquire, node, 0) }
}

#[test]
fn the_first_request_makes_an_entry_in_the_switch_and_goes_on_there() {
    let mut rig = Rig::new();
    let install = rig.gets(bare(acquire(0, Mode::Write, 1))).only();
    assert_eq!((install.kind, install.to, install.number), (LockKind::Install, LockEnd::Switch, 1));
    let installed = LockPacket { number: 1, ..to_home(LockKind::Installed, 1, 0) };
    let on = rig.gets(bare(installed)).only();
    assert_eq!((on.kind, on.to, on.node), (LockKind::Acquire, LockEnd::Switch, NodeId(0)));
    rig.drops(LockDrop::Late, bare(installed));
}

#[test]
fn a_request_that_is_repeated_repeats_what_was_asked_of_the_switch() {
    let mut rig = Rig::new();
    let install = rig.gets(bare(acquire(0, Mode::Write, 1))).only();
    assert_eq!(rig.gets(bare(acquire(0, Mode::Write, 1))).only(), install);
}

#[test]
fn an_answer_of_the_switch_to_an_earlier_call_is_late() {
    let mut rig = Rig::new();
    let _ = rig.gets(bare(acquire(0, Mode::Write, 1)));
    rig.drops(LockDrop::Late, bare(LockPacket { number: 9, ..to_home(LockKind::Installed, 1, 0) }));
}

#[test]
fn where_the_switch_has_no_room_the_home_keeps_the_entry() {
    let mut rig = Rig::new();
    let _ = rig.gets(bare(acquire(0, Mode::Write, 1)));
    let full = LockPacket {
        number: 1,
        status: Status::Refused(Refusal::Collision),
        ..to_home(LockKind::Installed, 1, 0)
    };
    let lend = rig.gets(bare(full)).only();
    assert_eq!((lend.kind, lend.to, lend.term), (LockKind::Lend, LockEnd::Home(ME), Term(1)));
    assert_eq!(rig.node.entry(mine()).unwrap().holder, Some(NodeId(0)));
}

#[test]
fn what_is_no_allocation_is_refused_by_the_number_of_the_request() {
    let mut rig = Rig::new();
    rig.store.unallocated.insert(mine());
    let refused = rig.gets(bare(acquire(0, Mode::Write, 7))).only();
    assert_eq!((refused.status, refused.number), (Status::Refused(Refusal::Unallocated), 7));
    assert_eq!(refused.to, LockEnd::Agent(NodeId(0)));
}

#[test]
fn another_length_is_refused() {
    let mut rig = Rig::lending();
    let refused = rig.gets(bare(LockPacket { len: 2 * LEN, ..acquire(3, Mode::Read, 1) })).only();
    assert_eq!(refused.status, Status::Refused(Refusal::WrongLength));
}

#[test]
fn data_are_served_in_their_term_only() {
    let mut rig = Rig::lending();
    // The request overtakes the data, and waits for them.
    rig.drops(LockDrop::NotCurrent, bare(to_home(LockKind::Serve, 3, 2)));
    let out = rig.gets(with(9, to_home(LockKind::WriteBack, 0, 2)));
    assert_eq!(out.of(LockKind::Received).len(), 1);
    let [granted] = out.of(LockKind::Granted)[..] else { panic!("{out:?}") };
    assert_eq!(out.data_of(&granted), Some(DataRef(9)));
    // A late copy of an earlier request: whoever it is of asks again.
    let again = rig.gets(bare(to_home(LockKind::Serve, 3, 1))).only();
    assert_eq!((again.kind, again.to), (LockKind::Acquire, LockEnd::Switch));
}

#[test]
fn data_that_come_back_twice_count_once_and_are_acknowledged_twice() {
    let mut rig = Rig::lending();
    let _ = rig.gets(with(9, to_home(LockKind::WriteBack, 0, 2)));
    let _ = rig.gets(bare(to_home(LockKind::Lend, 3, 3)));
    let _ = rig.gets(with(12, to_home(LockKind::WriteBack, 3, 4)));
    assert_eq!(rig.gets(with(9, to_home(LockKind::WriteBack, 0, 2))).only().kind, LockKind::Received);
    assert_eq!(rig.store.home[&mine()], 12);
}

#[test]
fn a_lock_is_lent_once_in_a_term_to_whoever_asks_as_often_as_it_asks() {
    let mut rig = Rig::lending();
    assert_eq!(rig.gets(bare(to_home(LockKind::Lend, 0, 1))).only().kind, LockKind::Lent);
    rig.drops(LockDrop::NotCurrent, bare(to_home(LockKind::Lend, 0, 5)));
}
