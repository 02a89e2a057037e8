//! ADD-TO-SWITCH and REMOVE-FROM-SWITCH (section 5.2), alone, repeated, raced and crossed by requests.

use crate::rig;

use rig::{
    Rig, assert_acknowledged, block, home_of, nodes, refused, request, requester, status_of, tag, unlock,
    unlock_refused,
};
use switch::coherence::{Drop, EntryView};
use wire::GlobalStatus::{self, Modified, Shared, Unshared};
use wire::{BlockTag, Copyset, Endpoint, NodeId, Packet, PacketKind, Refusal, Status};

const WRITER: u16 = 1 << 15;

fn add(tag: BlockTag, seq: u64, global_status: GlobalStatus, copyset: Copyset) -> Packet {
    Packet { global_status, copyset, ..request(PacketKind::AddToSwitch, tag, home_of(tag), seq) }
}

fn remove(tag: BlockTag, seq: u64) -> Packet {
    request(PacketKind::RemoveFromSwitch, tag, home_of(tag), seq)
}

/// The answer to an ADD, and whether the shadow got its copy.
fn answer(sent: &[Packet]) -> (Status, bool) {
    let acks: Vec<_> = sent.iter().filter(|p| p.kind == PacketKind::Ack).collect();
    let notices: Vec<_> = sent.iter().filter(|p| p.kind == PacketKind::AddNotice).collect();
    assert_eq!((acks.len(), notices.len() <= 1), (1, true), "{sent:?}");
    assert_eq!(acks[0].to, Endpoint::Requester(acks[0].requester.node));
    for notice in &notices {
        assert_eq!((notice.to, notice.status), (Endpoint::Shadow(NodeId(0)), acks[0].status));
    }
    (acks[0].status, !notices.is_empty())
}

/// A rig with one set, full but for so many ways.
fn nearly_full(room: u64) -> Rig {
    let mut rig = Rig::one_set();
    for n in 0..7 - room {
        rig.install(tag(0, 10 + n), Unshared, nodes([]));
    }
    rig
}

#[test]
fn an_entry_is_inserted_locked_and_its_unlock_activates_it() {
    let mut rig = Rig::new();
    let it = add(block(), 1, Shared, nodes([0, 3]));
    assert_eq!(answer(&rig.send(&it)), (Status::Granted, true));
    assert_eq!(rig.entry(block()), EntryView { lock: WRITER, status: Shared, copyset: nodes([0, 3]) });
    let early = request(PacketKind::ReadMiss, block(), requester(1, 0), 1);
    assert_eq!(status_of(&rig.send(&early)), refused(Refusal::Locked));
    rig.close(&unlock(&it, Unshared, nodes([])));
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Shared, copyset: nodes([0, 3]) });
    assert_eq!(rig.switch.occupancy(), 1);
    rig.switch.invariants();
}

#[test]
fn a_repeated_add_gets_the_same_answer_and_changes_nothing() {
    let mut rig = Rig::new();
    let it = add(block(), 1, Shared, nodes([3]));
    rig.send(&it);
    for _ in 0..2 {
        assert_eq!(answer(&rig.send(&it)), (Status::Granted, true));
        assert_eq!(rig.switch.occupancy(), 1);
        assert_eq!(rig.lock(block()), WRITER);
    }
    rig.close(&unlock(&it, Shared, nodes([])));
    assert_eq!(rig.lock(block()), 0);
    rig.assert_dropped(&it, Drop::StaleRequest);
    rig.switch.invariants();
}

#[test]
fn a_second_copy_of_an_add_between_its_passes_is_dropped() {
    let mut rig = Rig::new();
    let it = add(block(), 1, Shared, nodes([3]));
    let again = rig.begin(&it);
    assert!(rig.switch.requester(it.requester, it.seq).unwrap().claiming);
    rig.assert_dropped(&it, Drop::InFlight);
    assert_eq!(answer(&rig.second(again)), (Status::Granted, true));
    assert_eq!(answer(&rig.send(&it)), (Status::Granted, true));
    rig.switch.invariants();
}

#[test]
fn two_copies_of_an_add_never_claim_two_ways() {
    let mut rig = nearly_full(1);
    let it = add(block(), 1, Shared, nodes([3]));
    let again = rig.begin(&it);
    // Between its passes an earlier way becomes empty, which a second copy would choose.
    let gone = remove(tag(0, 10), 7001);
    assert!(status_of(&rig.send(&gone)).is_granted());
    rig.close(&unlock(&gone, Unshared, nodes([])));
    let (sent, second) = rig.first(&it);
    assert_eq!((sent, second), (vec![], None));
    rig.second(again);
    let copies = rig.switch.ways_of(block()).into_iter().flatten().filter(|tag| *tag == block());
    assert_eq!(copies.count(), 1);
    rig.close(&unlock(&it, Shared, nodes([3])));
    rig.switch.invariants();
}

#[test]
fn an_add_of_a_tag_that_is_present_changes_nothing() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let it = add(block(), 1, Modified, nodes([0]));
    for _ in 0..2 {
        assert_eq!(answer(&rig.send(&it)), (refused(Refusal::NotOwner), false));
    }
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Shared, copyset: nodes([3]) });
    rig.close(&unlock_refused(&it, Refusal::NotOwner));
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Shared, copyset: nodes([3]) });
    rig.switch.invariants();
}

#[test]
fn without_room_an_add_is_refused_and_the_shadow_hears_of_it() {
    let mut rig = nearly_full(0);
    let it = add(block(), 1, Shared, nodes([3]));
    assert_eq!(answer(&rig.send(&it)), (refused(Refusal::Collision), true));
    assert_eq!(rig.switch.counters().refusals(Refusal::Collision), 1);
    assert!(!rig.switch.contains(block()));
    assert_eq!(rig.switch.occupancy(), 7);
}

#[test]
fn a_collision_stands_though_there_is_room_when_the_duplicate_arrives() {
    let mut rig = nearly_full(0);
    let it = add(block(), 1, Shared, nodes([3]));
    rig.send(&it);
    let gone = remove(tag(0, 10), 7001);
    rig.send(&gone);
    rig.close(&unlock(&gone, Unshared, nodes([])));
    assert_eq!(answer(&rig.send(&it)), (refused(Refusal::Collision), true));
    assert!(!rig.switch.contains(block()));
    rig.close(&unlock_refused(&it, Refusal::Collision));
    rig.install(block(), Shared, nodes([3]));
}

#[test]
fn a_collision_stands_though_the_next_event_added_the_tag() {
    let mut rig = nearly_full(0);
    let it = add(block(), 1, Shared, nodes([3]));
    rig.send(&it);
    let gone = remove(tag(0, 10), 7001);
    rig.send(&gone);
    rig.close(&unlock(&gone, Unshared, nodes([])));
    let next = add(block(), 2, Shared, nodes([3]));
    assert_eq!(answer(&rig.send(&next)), (Status::Granted, true));
    assert_eq!(answer(&rig.send(&it)), (refused(Refusal::Collision), true));
    rig.close(&unlock(&next, Shared, nodes([3])));
    rig.close(&unlock_refused(&it, Refusal::Collision));
    assert!(rig.switch.contains(block()), "a refused event ends without an effect");
    rig.switch.invariants();
}

#[test]
fn a_request_that_reuses_the_number_of_an_add_in_flight_is_dropped() {
    let mut rig = Rig::new();
    let it = add(block(), 1, Shared, nodes([3]));
    let again = rig.begin(&it);
    let odd = request(PacketKind::ReadMiss, tag(2, 9), it.requester, 1);
    rig.assert_dropped(&odd, Drop::InFlight);
    assert_eq!(answer(&rig.second(again)), (Status::Granted, true));
    rig.switch.invariants();
}

#[test]
fn of_two_adds_that_saw_the_same_way_empty_one_loses() {
    let mut rig = nearly_full(1);
    let one = add(tag(1, 50), 1, Shared, nodes([3]));
    let other = add(tag(2, 50), 1, Modified, nodes([0]));
    let (one_again, other_again) = (rig.begin(&one), rig.begin(&other));
    assert_eq!(answer(&rig.second(other_again)), (Status::Granted, true));
    assert_eq!(answer(&rig.second(one_again)), (refused(Refusal::Collision), true));
    assert_eq!(answer(&rig.send(&one)), (refused(Refusal::Collision), true), "and again");
    assert!(!rig.switch.contains(tag(1, 50)));
    assert_eq!(rig.entry(tag(2, 50)), EntryView { lock: WRITER, status: Modified, copyset: nodes([0]) });
    rig.close(&unlock_refused(&one, Refusal::Collision));
    rig.close(&unlock(&other, Unshared, nodes([])));
    rig.switch.invariants();
}

#[test]
fn a_duplicate_that_got_in_after_a_refusal_goes_with_the_unlock() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let it = add(block(), 1, Modified, nodes([0]));
    assert_eq!(answer(&rig.send(&it)), (refused(Refusal::NotOwner), false));
    // The entry leaves (an event of the other parity), and a duplicate of the ADD comes late.
    let gone = remove(block(), 5002);
    rig.send(&gone);
    rig.close(&unlock(&gone, Unshared, nodes([])));
    assert_eq!(answer(&rig.send(&it)).0, Status::Granted);
    assert!(rig.switch.contains(block()));
    rig.close(&unlock_refused(&it, Refusal::NotOwner));
    assert!(!rig.switch.contains(block()), "the home was told that it did not work");
    assert_eq!(rig.switch.occupancy(), 0);
    rig.switch.invariants();
}

#[test]
fn an_add_unlocked_between_its_passes_does_nothing() {
    let mut rig = Rig::new();
    let it = add(block(), 1, Shared, nodes([3]));
    let again = rig.begin(&it);
    rig.close(&unlock_refused(&it, Refusal::Collision));
    assert_eq!(rig.second(again), []);
    assert_eq!(rig.drops(Drop::StaleRequest), 1);
    assert!(!rig.switch.contains(block()));
    rig.switch.invariants();
}

#[test]
fn an_unlock_without_a_score_is_done_in_one_pass() {
    // If it took two, a duplicate of it could be acknowledged in between, the event after next begin, and the
    // late second pass reset that event's score.
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let it = add(block(), 1, Shared, nodes([3]));
    assert_eq!(answer(&rig.send(&it)), (refused(Refusal::NotOwner), false));
    let done = unlock_refused(&it, Refusal::NotOwner);
    let (sent, again) = rig.first(&done);
    assert_acknowledged(&sent, &done);
    assert_eq!(again, None);
}

#[test]
fn a_removal_locks_and_reports_and_its_commit_clears() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([0, 3]));
    let it = remove(block(), 1);
    for _ in 0..2 {
        let sent = rig.send(&it);
        assert!(status_of(&sent).is_granted());
        assert_eq!((sent[0].global_status, sent[0].copyset), (Shared, nodes([0, 3])));
        assert_eq!(rig.lock(block()), WRITER);
    }
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 1);
    assert_eq!(status_of(&rig.send(&miss)), refused(Refusal::Locked), "until the home has it");
    let commit = unlock(&it, Unshared, nodes([]));
    rig.close(&commit);
    assert!(!rig.switch.contains(block()));
    assert_eq!(rig.switch.occupancy(), 0);
    rig.close(&commit);
    rig.assert_dropped(&it, Drop::StaleRequest);

    // The miss was refused, and stays so; the next one goes home.
    assert_eq!(status_of(&rig.send(&miss)), refused(Refusal::Locked));
    rig.close(&unlock_refused(&miss, Refusal::Locked));
    let next = rig.send(&request(PacketKind::ReadMiss, block(), requester(1, 0), 2));
    assert_eq!(next[0].to, Endpoint::HomeAgent(NodeId(2)));
    rig.switch.invariants();
}

#[test]
fn a_removal_waits_for_the_lock() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    let reader = request(PacketKind::ReadMiss, block(), requester(1, 0), 1);
    rig.send(&reader);
    let it = remove(block(), 1);
    assert_eq!(status_of(&rig.send(&it)), refused(Refusal::Locked));
    rig.close(&unlock(&reader, Shared, nodes([1, 3])));
    // A late copy of the refused removal takes the lock; the refused unlock gives it back.
    assert_eq!(status_of(&rig.send(&it)), refused(Refusal::Locked));
    assert_eq!(rig.lock(block()), WRITER);
    rig.close(&unlock_refused(&it, Refusal::Locked));
    assert_eq!(rig.entry(block()), EntryView { lock: 0, status: Shared, copyset: nodes([1, 3]) });
    rig.switch.invariants();
}

#[test]
fn a_commit_without_the_lock_clears_nothing() {
    let mut rig = Rig::new();
    rig.install(block(), Shared, nodes([3]));
    rig.close(&unlock(&remove(block(), 1), Unshared, nodes([])));
    assert!(rig.switch.contains(block()));
    let reader = request(PacketKind::ReadMiss, block(), requester(1, 0), 1);
    rig.send(&reader);
    let it = remove(block(), 3);
    assert_eq!(status_of(&rig.send(&it)), refused(Refusal::Locked));
    rig.close(&unlock(&it, Unshared, nodes([])));
    assert!(rig.switch.contains(block()), "a locked entry stays");
}

#[test]
fn a_request_that_crosses_an_add_keeps_its_first_answer() {
    let mut rig = Rig::new();
    let it = add(block(), 1, Shared, nodes([3]));
    let miss = request(PacketKind::ReadMiss, block(), requester(1, 0), 1);
    let again = rig.begin(&it);
    let first = rig.send(&miss);
    assert_eq!(first[0].to, Endpoint::HomeAgent(NodeId(2)), "the entry is not there yet");
    rig.second(again);
    assert_eq!(rig.send(&miss), first, "locked by the ADD");
    rig.close(&unlock(&it, Unshared, nodes([])));
    assert_eq!(rig.send(&miss), first, "active");
    assert_eq!(rig.lock(block()), 1);
    // The home was not the owner any more, and refused; the requester ends the event with the home.
    let ended = Packet { in_switch: false, ..unlock_refused(&miss, Refusal::NotOwner) };
    assert_eq!(rig.send(&ended)[0].to, Endpoint::HomeAgent(NodeId(2)));
    assert_eq!(rig.lock(block()), 0);
    rig.switch.invariants();
}

#[test]
fn the_notice_and_the_answer_keep_the_events_identity() {
    let mut rig = Rig::new();
    let it = add(block(), 9, Shared, nodes([3]));
    for sent in rig.send(&it) {
        assert_eq!((sent.event, sent.tag, sent.requester, sent.seq), (it.kind, it.tag, it.requester, it.seq));
        assert!(sent.in_switch);
        assert_eq!(sent.from, Endpoint::Switch);
    }
    let done = unlock(&it, Unshared, nodes([]));
    assert_acknowledged(&rig.send(&done), &done);
}

#[test]
fn a_tag_of_zero_is_a_tag_like_any_other() {
    let mut rig = Rig::new();
    let zero = tag(0, 0);
    let miss = request(PacketKind::ReadMiss, zero, requester(1, 0), 1);
    assert_eq!(rig.send(&miss)[0].to, Endpoint::HomeAgent(NodeId(0)), "an empty way holds no block");
    rig.install(zero, Shared, nodes([3]));
    assert_eq!(rig.switch.occupancy(), 1);
}
