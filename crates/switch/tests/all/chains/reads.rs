//! Reads of entries that are not the tail any more: where they are sent, and what passes of what they bring. Where a rule is left out, the
//! scenario that is for it says so: true means that it went wrong.

use wire::roce::Psn;
use wire::{AllRules, Nanos, Rules};

use crate::chains::rig::{Brought, Entry, Rig};
use crate::chains::scenarios::{KEY, OTHER, X, begun, steered};

const A: Entry = Entry(2, 3);
const B: Entry = Entry(3, 0);
const C: Entry = Entry(4, 5);

/// X, A and B are a chain, and C's append has passed the switch: its number, and what it is at the memory.
fn in_flight<R: Rules>(rules: R) -> (Rig<R>, Psn, wire::roce::Packet) {
    let mut rig = begun(rules, A);
    rig.write(2, B, KEY);
    assert_eq!(rig.swap(2, X, B), steered(A));
    rig.write(1, C, KEY);
    let psn = rig.number(1);
    let packet = rig.pass_to_memory(1, psn, B, C);
    (rig, psn, packet)
}

/// A read brings an entry whose append may still fail.
pub(crate) fn reads<R: Rules>(rules: R) -> bool {
    let (mut rig, psn, packet) = in_flight(rules);
    let (number, to) = rig.ask_for(3, A);
    assert_eq!(to, C, "its append was sent first");
    if rig.bring(3, number, C) == Brought::Passed {
        return true;
    }
    // It is sent once more, and by then the append is acknowledged.
    let original = rig.execute(1, &packet);
    assert_eq!(rig.pass_to_client(1, psn, original), steered(B));
    assert_eq!(rig.bring(3, number, C), Brought::Passed);
    // Another one is refused.
    let (d, n) = (Entry(5, 0), Entry(8, 0));
    rig.words.insert(n.0, wire::chains::Word::tail(n.version()));
    rig.words.insert(C.0, wire::chains::Word::tail(C.version()).followed_by(n.next()));
    rig.write(1, d, KEY);
    let psn = rig.number(1);
    let packet = rig.pass_to_memory(1, psn, C, d);
    let (number, to) = rig.ask_for(3, A);
    assert_eq!(to, d);
    let original = rig.execute(1, &packet);
    assert_eq!(rig.pass_to_client(1, psn, original), Some(wire::chains::Reply::Refused));
    rig.bring(3, number, d) != Brought::Again(A) || rig.bring(3, number, A) != Brought::Passed
}

/// A read was executed before the WRITE of the entry that it was sent to, and brings what was in the slot before.
pub(crate) fn other_uses<R: Rules>(rules: R) -> bool {
    let (mut rig, psn, packet) = in_flight(rules);
    let (number, _) = rig.ask_for(3, A);
    let original = rig.execute(1, &packet);
    assert_eq!(rig.pass_to_client(1, psn, original), steered(B));
    let before = Entry(C.0, C.1 - 1);
    if rig.bring(3, number, before) == Brought::Passed {
        return true;
    }
    assert_eq!(rig.bring(3, number, C), Brought::Passed);
    false
}

/// What a read brings that was sent elsewhere in another incarnation of the switch.
pub(crate) fn other_incarnations<R: Rules>(rules: R) -> bool {
    let (mut rig, ..) = in_flight(rules);
    let (number, to) = rig.ask_for(3, A);
    assert_eq!(to, C);
    rig.switch.restart();
    if rig.bring(3, number, C) == Brought::Passed {
        return true;
    }
    // It is asked for again, and nobody knows from when the answer is: its client must make itself known.
    assert_eq!(rig.ask_for_as(3, number, A), A);
    assert_eq!(rig.bring(3, number, A), Brought::Refused);
    assert_eq!(rig.switch.counters().reads_refused, 2);
    rig.now += Nanos(1_000);
    assert_eq!(rig.bring(3, number, A), Brought::Passed, "by now nothing is in flight that is older");
    rig.connect(3);
    let (number, to) = rig.ask_for(3, A);
    assert_eq!((to, rig.bring(3, number, A)), (A, Brought::Passed));
    false
}

#[test]
fn a_read_is_sent_to_the_tail_unless_it_asks_for_that() {
    let mut rig = begun(AllRules, A);
    assert_eq!(rig.read(3, X), X, "X was written by nobody whom the switch has seen");
    rig.write(2, B, KEY);
    assert_eq!(rig.swap(2, X, B), steered(A));
    assert_eq!(rig.read(3, A), B, "a is not the tail any more");
    assert_eq!(rig.read(3, B), B);
    let counters = rig.switch.counters();
    assert_eq!((counters.reads, counters.reads_ahead, counters.reads_turned), (1, 0, 0));
}

#[test]
fn a_read_that_comes_again_passes_as_it_is_and_so_does_what_it_brings() {
    let (mut rig, ..) = in_flight(AllRules);
    let (number, to) = rig.ask_for(3, A);
    assert_eq!((to, rig.ask_for_as(3, number, A)), (C, A));
    assert_eq!(rig.bring(3, number, A), Brought::Passed);
    assert_eq!(rig.bring(3, number, C), Brought::Again(C), "the first copy, which is as late as it was");
    assert_eq!(rig.read(3, C), C, "it is asked for, so somebody has found it in the chain");
}

#[test]
fn a_read_does_not_wait_for_ever_for_an_append() {
    let (mut rig, ..) = in_flight(AllRules);
    assert_eq!(rig.read(3, A), A);
    let counters = rig.switch.counters();
    assert_eq!((counters.reads, counters.reads_ahead, counters.reads_turned), (1, 1, 5));
}

#[test]
fn where_reads_are_not_sent_ahead_they_pass_as_they_are_while_something_is_in_flight() {
    let mut rig = Rig::with(AllRules, 3, 5, |config| config.reads_ahead = false);
    assert!(rig.switch.admit(KEY));
    rig.words.insert(X.0, wire::chains::Word::tail(X.version()));
    rig.write(1, A, KEY);
    rig.swap(1, X, A);
    rig.write(2, B, KEY);
    let psn = rig.number(2);
    let packet = rig.pass_to_memory(2, psn, X, B);
    assert_eq!(rig.read(3, A), A);
    let original = rig.execute(2, &packet);
    assert_eq!(rig.pass_to_client(2, psn, original), steered(A));
    assert_eq!(rig.read(3, A), B);
}

#[test]
fn a_read_of_another_keys_entry_in_the_same_slot_is_left_alone() {
    let (a, b) = (A, B);
    let mut rig = begun(AllRules, a);
    rig.write(2, b, KEY);
    assert_eq!(rig.swap(2, X, b), steered(a));
    rig.write(3, Entry(2, 4), OTHER);
    assert_eq!(rig.read(3, a), Entry(2, 4), "the slot is used for another key by now");
}
