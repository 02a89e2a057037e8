//! A node that drains: others get what it keeps of memories with copies, and it is told when its leaving takes nothing away.

use membership::coordinator::Coordinator;
use membership::message::{Drain, Message, Pulse, Standing};
use wire::{Copyset, Nanos, NodeId};

use crate::rig::Rig;

const T: Nanos = Nanos::from_millis(1000);

fn nodes<const N: usize>(ids: [u16; N]) -> Copyset {
    ids.map(NodeId).into_iter().collect()
}

/// Who has this memory, and who is getting it.
fn memory(rig: &Rig, i: usize) -> (Copyset, Copyset) {
    rig.coordinator().memories().nth(i).expect("there is one for each node")
}

/// What a node is told that holds it.
fn told<const N: usize>(missing: [u16; N], staying: u8) -> Option<Drain> {
    Some(Drain { missing: nodes(missing), staying })
}

fn drain_of(rig: &Rig, process: usize) -> Option<Drain> {
    rig.processes[process].member.drain()
}

/// They say it, and everybody has heard what follows.
fn drain<const N: usize>(rig: &mut Rig, processes: [usize; N]) {
    processes.into_iter().for_each(|process| rig.drain(process, true));
    settle(rig);
}

fn settle(rig: &mut Rig) {
    rig.run_for(T);
    assert!(rig.is_settled());
}

/// The processes have got these memories.
fn got<const N: usize>(rig: &mut Rig, processes: [(usize, &[u16]); N]) {
    for (process, memories) in processes {
        rig.has_got(process, memories.iter().map(|id| NodeId(*id)).collect());
    }
    rig.run_for(T);
}

fn kill(rig: &mut Rig, process: usize) {
    rig.processes[process].killed = true;
    rig.run_for(Nanos(2 * T.0));
    assert!(rig.is_settled(), "the others go on");
}

fn lives(coordinator: &Coordinator) -> Vec<u32> {
    coordinator.roster().memories.iter().map(|kept| kept.life.0).collect()
}

#[test]
fn others_get_what_it_keeps_and_its_leaving_takes_nothing_away() {
    let mut rig = Rig::formed(1, 4);
    let before = lives(rig.coordinator());
    drain(&mut rig, [0]);
    assert_eq!(rig.coordinator().counters().epochs, 2, "one epoch more, and no other one");
    assert_eq!(memory(&rig, 0), (nodes([0, 1]), nodes([2])), "it goes on with what it has");
    assert_eq!(memory(&rig, 3), (nodes([3, 0]), nodes([1])));
    assert_eq!(memory(&rig, 1), (nodes([1, 2]), nodes([])), "what it does not keep stays where it is");
    assert_eq!(drain_of(&rig, 0), told([0, 3], 3));
    got(&mut rig, [(2, &[0, 1, 2])]);
    assert_eq!(drain_of(&rig, 0), told([3], 3));
    got(&mut rig, [(1, &[0, 1, 3])]);
    assert_eq!(drain_of(&rig, 0), told([], 3), "nothing holds it");
    rig.leave(0);
    settle(&mut rig);
    for i in 0..4 {
        let (by, to) = memory(&rig, i);
        assert!(by.len() == 2 && to.is_empty(), "memory {i} lacks nothing: {by:?} {to:?}");
    }
    // Whoever dies now, and at once, leaves one copy of everything.
    kill(&mut rig, 2);
    assert_eq!(lives(rig.coordinator()), before, "nothing has begun anew");
}

#[test]
fn it_keeps_what_the_others_lack_through_an_epoch_and_nothing_else() {
    let mut rig = Rig::formed(2, 4);
    drain(&mut rig, [0]);
    got(&mut rig, [(2, &[0, 1, 2])]);
    // The only other one that has memory 3 dies; of memory 0 there are two without node 0.
    kill(&mut rig, 3);
    assert_eq!(memory(&rig, 0), (nodes([1, 2]), nodes([])), "it need not keep that any more");
    assert_eq!(memory(&rig, 3), (nodes([0]), nodes([1, 2])));
    assert_eq!(drain_of(&rig, 0), told([3], 2), "the drain goes on with what is missing now");
    got(&mut rig, [(1, &[0, 1, 3]), (2, &[0, 1, 2, 3])]);
    assert_eq!(drain_of(&rig, 0), told([], 2));
}

#[test]
fn one_that_dies_before_takes_its_copy_and_nothing_more() {
    let mut rig = Rig::formed(3, 4);
    let before = lives(rig.coordinator());
    drain(&mut rig, [0]);
    kill(&mut rig, 0);
    assert_eq!(memory(&rig, 0), (nodes([1]), nodes([2])));
    assert_eq!(memory(&rig, 3), (nodes([3]), nodes([1])));
    assert_eq!(lives(rig.coordinator()), before);
}

#[test]
fn of_two_that_drain_at_once_none_counts_for_the_other() {
    let mut rig = Rig::formed(4, 4);
    drain(&mut rig, [0, 1]);
    assert_eq!(memory(&rig, 0), (nodes([0, 1]), nodes([2, 3])));
    assert_eq!(drain_of(&rig, 0), told([0, 3], 2));
    assert_eq!(drain_of(&rig, 1), told([0, 1], 2));
    got(&mut rig, [(2, &[0, 1, 2, 3])]);
    assert_eq!(drain_of(&rig, 0), told([0], 2), "node 1 has memory 0 as well, and is about to leave");
    assert_eq!(drain_of(&rig, 1), told([0, 1], 2));
    got(&mut rig, [(3, &[0, 1, 2, 3])]);
    assert_eq!((drain_of(&rig, 0), drain_of(&rig, 1)), (told([], 2), told([], 2)));
    rig.leave(0);
    rig.leave(1);
    settle(&mut rig);
    assert!((0..4).all(|i| memory(&rig, i) == (nodes([2, 3]), nodes([]))));
}

#[test]
fn with_fewer_nodes_than_copies_all_that_stay_are_enough_and_none_is_not() {
    let mut rig = Rig::formed(5, 2);
    drain(&mut rig, [0]);
    assert_eq!(drain_of(&rig, 0), told([], 1), "the other one has all, and there is nobody else");
    drain(&mut rig, [1]);
    assert_eq!((drain_of(&rig, 0), drain_of(&rig, 1)), (told([0, 1], 0), told([0, 1], 0)));
    rig.drain(0, false);
    settle(&mut rig);
    assert_eq!((drain_of(&rig, 0), drain_of(&rig, 1)), (None, told([], 1)));
}

#[test]
fn a_memory_that_begins_anew_is_on_nodes_that_stay() {
    let mut rig = Rig::formed(6, 4);
    drain(&mut rig, [2]);
    let before = lives(rig.coordinator());
    // Both that have memory 0 die at once.
    rig.processes[0].killed = true;
    kill(&mut rig, 1);
    assert!(lives(rig.coordinator())[0] > before[0]);
    assert_eq!(rig.coordinator().roster().memories[0].by, nodes([3, 2]), "for want of one more that stays");
    assert_eq!(drain_of(&rig, 2), told([1], 1), "memory 1 was on it and a dead one");
}

#[test]
fn one_that_drains_no_more_counts_again() {
    let mut rig = Rig::formed(7, 4);
    drain(&mut rig, [0]);
    rig.drain(0, false);
    settle(&mut rig);
    assert_eq!(memory(&rig, 0), (nodes([0, 1]), nodes([])));
    assert_eq!((drain_of(&rig, 0), rig.coordinator().counters().epochs), (None, 3));
}

#[test]
fn a_coordinator_that_starts_anew_goes_on_with_it() {
    let mut rig = Rig::formed(8, 4);
    drain(&mut rig, [0]);
    got(&mut rig, [(2, &[0, 1, 2]), (1, &[0, 1])]);
    rig.control = None;
    rig.start_coordinator();
    settle(&mut rig);
    assert_eq!(memory(&rig, 0), (nodes([1, 2]), nodes([])), "what was copied counts");
    assert_eq!(memory(&rig, 3), (nodes([3, 0]), nodes([1])));
    assert_eq!(drain_of(&rig, 0), told([3], 3));
}

#[test]
fn in_a_rack_without_copies_nothing_holds_it_and_there_is_no_epoch() {
    let mut rig = Rig::new(9, 3);
    rig.copies = 1;
    rig.start_coordinator();
    rig.fill();
    settle(&mut rig);
    drain(&mut rig, [0]);
    assert_eq!((drain_of(&rig, 0), rig.coordinator().counters().epochs), (told([], 2), 1));
}

#[test]
fn an_answer_from_before_says_nothing() {
    let mut rig = Rig::formed(10, 4);
    drain(&mut rig, [0]);
    let it = &mut rig.processes[0];
    let (now, epoch) = (it.clock.at(rig.now), it.member.epoch());
    let pulse = |echo, drain| {
        let (session, standing) = (it.session, Standing::Alive);
        Message::Pulse(Pulse { session, echo, epoch, ticket: 0, standing, drain })
    };
    let (then, missing) = (pulse(Nanos(now.0 - T.0 / 2), told([], 3)), told([0, 3], 3));
    it.member.on_message(now, then, &mut Vec::new());
    assert_eq!(it.member.drain(), missing, "it was overtaken");
    // Nor does what was said of the drain before this one.
    it.member.set_draining(now, false, &mut Vec::new());
    it.member.set_draining(now + Nanos(1), true, &mut Vec::new());
    let then = pulse(now, told([], 3));
    it.member.on_message(now + Nanos(2), then, &mut Vec::new());
    assert_eq!(it.member.drain(), None);
}

#[test]
fn who_has_left_still_knows_how_many_stayed() {
    let mut rig = Rig::formed(9, 3);
    drain(&mut rig, [2]);
    got(&mut rig, [(0, &[0, 1, 2]), (1, &[0, 1, 2]), (2, &[0, 1, 2])]);
    assert_eq!(drain_of(&rig, 2), told([], 2));
    rig.leave(2);
    rig.run_for(T);
    assert!(rig.processes[2].left);
    assert_eq!(drain_of(&rig, 2), told([], 2));
}
