//! The requester's `on_deadline`: what is overdue is sent again, under the same number (Concordia, section
//! 5.3.1; PROTOCOLS.md, FlowCC 11).

use node::{Access, Retransmission};
use wire::{Endpoint, GlobalStatus, Nanos, NodeId, Packet, PacketKind, Refusal};

use crate::coherence::packets::{agent, granted, home_of, refused, theirs, unlock_ack};
use crate::coherence::rig::{Effects, FLOOR, MOST, Rig, carrying};

const NEARLY: Nanos = Nanos(FLOOR.0 - 1);

fn served(rig: &mut Rig, request: &Packet) -> Effects {
    rig.packet(carrying(granted(request, home_of(request.tag), GlobalStatus::Unshared, []), 7))
}

fn never() -> Rig {
    Rig::with(|config| config.retransmission = Retransmission::Never)
}

#[test]
fn a_request_is_repeated_word_for_word_when_its_time_is_out_and_not_before() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    assert_eq!(rig.due(), FLOOR);
    assert!(rig.wait(NEARLY).is_empty());
    assert_eq!(rig.wait(Nanos(1)).only().packet, request);
    assert_eq!(rig.node.counters().retransmissions, 1);
}

#[test]
fn every_repetition_waits_twice_as_long_up_to_a_bound() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    let mut span = FLOOR;
    for _ in 0..9 {
        assert!(rig.wait(span - Nanos(1)).is_empty(), "before {span}");
        assert_eq!(rig.wait(Nanos(1)).only().packet, request);
        span = Nanos((span.0 * 2).min(FLOOR.0 << 6));
    }
}

#[test]
fn time_outs_follow_the_measured_round_trip_six_for_requests_and_three_for_unlocks() {
    let mut rig = Rig::new();
    let first = rig.miss(theirs(1), Access::Shared);
    rig.now += Nanos::from_micros(50);
    // SRTT 50 us, RTTVAR 25 us: an answer should have come in 150 us.
    let unlock = served(&mut rig, &first).one(PacketKind::Unlock).packet;
    assert!(rig.wait(Nanos::from_micros(449)).is_empty());
    assert_eq!(rig.wait(Nanos::from_micros(1)).only().packet, unlock);
    let _ = rig.packet(unlock_ack(&unlock));
    let second = rig.miss(theirs(2), Access::Shared);
    assert!(rig.wait(Nanos::from_micros(899)).is_empty());
    assert_eq!(rig.wait(Nanos::from_micros(1)).only().packet, second);
}

#[test]
fn after_a_round_trip_of_seconds_the_next_loss_does_not_take_many_times_that() {
    let mut rig = Rig::new();
    let first = rig.miss(theirs(1), Access::Shared);
    // Whoever had to answer was stopped, or had no processor.
    rig.now += Nanos::from_millis(5_000);
    let unlock = served(&mut rig, &first).one(PacketKind::Unlock).packet;
    assert_eq!(rig.wait(MOST).only().packet, unlock);
    let _ = rig.packet(unlock_ack(&unlock));
    let second = rig.miss(theirs(2), Access::Shared);
    for _ in 0..9 {
        assert_eq!(rig.due(), MOST);
        assert_eq!(rig.wait(MOST).only().packet, second);
    }
}

#[test]
fn the_answer_to_a_repeated_request_measures_nothing() {
    let mut rig = Rig::new();
    let first = rig.miss(theirs(1), Access::Shared);
    let _ = rig.wait(FLOOR);
    rig.now += Nanos::from_micros(50);
    let out = served(&mut rig, &first);
    rig.unlocked(&out);
    let _ = rig.miss(theirs(2), Access::Shared);
    assert!(rig.wait(NEARLY).is_empty());
    assert_eq!(rig.wait(Nanos(1)).kinds(), [PacketKind::ReadMiss]);
}

#[test]
fn an_unlock_is_repeated_until_it_is_acknowledged() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    let unlock = served(&mut rig, &request).one(PacketKind::Unlock).packet;
    for _ in 0..3 {
        assert!(rig.wait(NEARLY).is_empty());
        assert_eq!(rig.wait(Nanos(1)).only().packet, unlock);
    }
    let _ = rig.packet(unlock_ack(&unlock));
    assert!(rig.wait(FLOOR).is_empty());
}

#[test]
fn the_unlock_of_a_refused_event_is_repeated_too() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    let unlock = rig.packet(refused(&request, Refusal::Unallocated)).one(PacketKind::Unlock).packet;
    assert_eq!(rig.wait(FLOOR).only().packet, unlock);
}

#[test]
fn a_request_that_was_granted_in_part_is_repeated_for_the_rest() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Modified);
    let _ = rig.packet(granted(&request, agent(0), GlobalStatus::Shared, [0, 2]));
    assert_eq!(rig.wait(FLOOR).only().packet, request);
}

#[test]
fn a_reader_that_waits_for_the_homes_acknowledgement_asks_the_owner_again() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    let _ = rig.packet(carrying(granted(&request, agent(2), GlobalStatus::Modified, [2]), 7));
    assert_eq!(rig.wait(Nanos::from_millis(1)).only().packet, request);
}

#[test]
fn a_lock_that_is_held_and_a_grant_that_waits_for_a_thread_repeat_nothing() {
    let mut rig = Rig::new();
    let request = rig.lock(theirs(1), true, false);
    let _ = rig.packet(granted(&request, Endpoint::Switch, GlobalStatus::Unshared, []));
    assert!(rig.wait(Nanos::from_millis(500)).is_empty());
    let _ = rig.cache_pinned(theirs(1), Access::Shared, 7);
    let request = rig.miss(theirs(1), Access::Modified);
    let _ = rig.packet(granted(&request, Endpoint::Switch, GlobalStatus::Shared, [1]));
    assert!(rig.wait(Nanos::from_millis(500)).is_empty());
}

#[test]
fn a_call_of_the_allocator_is_repeated_word_for_word() {
    let mut rig = Rig::new();
    let call = rig.alloc(64, NodeId(2)).only().packet;
    assert!(rig.wait(NEARLY).is_empty());
    assert_eq!(rig.wait(Nanos(1)).only().packet, call);
    assert_eq!(rig.wait(FLOOR).only().packet, call);
}

#[test]
fn over_a_transport_that_loses_nothing_nothing_is_repeated() {
    let mut rig = never();
    let request = rig.miss(theirs(1), Access::Shared);
    let _ = rig.alloc(64, NodeId(2));
    assert!(rig.wait(Nanos::from_millis(900)).is_empty());
    let _ = served(&mut rig, &request).one(PacketKind::Unlock);
    assert!(rig.wait(Nanos::from_millis(900)).is_empty());
    assert_eq!(rig.node.counters().retransmissions, 0);
}

#[test]
fn being_called_early_is_harmless() {
    let mut rig = Rig::new();
    let request = rig.miss(theirs(1), Access::Shared);
    for _ in 0..10 {
        assert!(rig.wait(Nanos::ZERO).is_empty());
    }
    assert_eq!(rig.due(), FLOOR);
    assert_eq!(rig.wait(FLOOR).only().packet, request);
}
