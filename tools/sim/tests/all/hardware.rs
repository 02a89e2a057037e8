//! The hardware models against sums made by hand, the rates that the testbed states, and published
//! measurements.
//!
//! It runs the models alone, without a rack.

use sim::hardware::{Bandwidth, Link, MessageRate, Nic, Processor, SwitchPorts, Testbed};
use wire::Nanos;

const TESTBED: Testbed = Testbed::CONCORDIA;
const BLOCK: u64 = 4096;

/// From doorbell to visible, through an idle switch.
fn one_way(bytes: u64, is_write: bool) -> Nanos {
    let mut sender = Nic::new(&TESTBED);
    let mut receiver = Nic::new(&TESTBED);
    let mut switch = SwitchPorts::new(&TESTBED, 2);
    let left = sender.send(Nanos::ZERO, is_write, bytes, 0);
    let arrived = switch.route(left + TESTBED.cable, 1, bytes).expect("an idle switch has room");
    receiver.receive(arrived, bytes, is_write)
}

/// From the call that posts to the call that has found it, over half a meter of cable and no switch.
fn back_to_back(bytes: u64, is_write: bool) -> Nanos {
    let mut sender = Nic::new(&TESTBED);
    let mut receiver = Nic::new(&TESTBED);
    let left = sender.send(TESTBED.post_write, is_write, bytes, 0);
    receiver.receive(left + Nanos(3), bytes, is_write) + TESTBED.poll
}

#[test]
fn a_block_takes_333_ns_on_the_link() {
    let mut link = Link::new(&TESTBED);
    // 4096 B and 66 B of framing, at 80 ps a byte, rounded up.
    assert_eq!(link.send(Nanos(1_000), BLOCK), Nanos(1_000 + 333));
    assert_eq!((link.bytes(), link.packets(), link.busy()), (BLOCK, 1, Nanos(333)));
}

#[test]
fn a_message_larger_than_a_packet_pays_framing_for_each() {
    let mut link = Link::new(&TESTBED);
    // 8193 B are three packets: (8193 + 3 x 66) x 80 ps.
    assert_eq!(link.send(Nanos::ZERO, 2 * BLOCK + 1), Nanos(672));
    assert_eq!(link.packets(), 3);
}

#[test]
fn messages_ready_in_order_leave_in_order_one_after_the_other() {
    let mut link = Link::new(&TESTBED);
    // 134 B on the link: 10.72 ns each.
    assert_eq!(link.send(Nanos(0), 68), Nanos(11));
    assert_eq!(link.send(Nanos(0), 68), Nanos(22));
    assert_eq!(link.send(Nanos(5), 68), Nanos(33));
    assert_eq!(link.send(Nanos(100), 68), Nanos(111));
}

#[test]
fn a_message_handed_over_late_goes_before_a_later_one_only_if_that_delays_none() {
    let mut link = Link::new(&TESTBED);
    let block = link.send(Nanos(500), BLOCK);
    assert_eq!(block, Nanos(833));
    assert_eq!(link.send(Nanos(100), 68), Nanos(111), "there is room before the block");
    assert_eq!(link.send(Nanos(100), 68), Nanos(122), "and for a second, behind the first");
    assert_eq!(link.send(Nanos(490), 68), Nanos(844), "10 ns before the block are too few");
    assert_eq!(link.send(Nanos(100), BLOCK), Nanos(455), "there is just room for a block of 333 ns");
    assert_eq!(link.send(Nanos(130), BLOCK), Nanos(1_177), "but not for another");
}

#[test]
fn a_saturated_link_carries_its_bandwidth_and_never_more() {
    let mut link = Link::new(&TESTBED);
    let mut left = Nanos::ZERO;
    for k in 0..10_000 {
        // Handed over in no order, always earlier than it can leave.
        left = left.max(link.send(Nanos(k * 7_919 % 10_000), BLOCK));
    }
    // 10 000 frames of 4162 B at 100 Gb/s are 3.3296 ms.
    let needed = Nanos(3_329_600);
    assert!(left >= needed, "{left} is faster than the link");
    assert!(left <= needed + Nanos(10_000), "{left} leaves the link idle");
    assert_eq!(link.busy(), needed);
    assert!(link.utilisation(left) > 0.99);
}

#[test]
fn a_small_message_is_seen_1150_ns_after_the_doorbell() {
    // 170 + 120 + 10.4 + 15 + 400 + 10.4 + 15 + 150 + 4.5 + 250; each of the three resources rounds up once.
    let exact = 1_145;
    let found = one_way(64, false);
    assert!((exact..=exact + 3).contains(&found.0), "{found}");
}

#[test]
fn a_block_is_seen_2900_ns_after_the_doorbell() {
    // As a small message, and: 500 + 286.4 fetch, 2 x 332.96 on the links instead of 2 x 10.4, 286.4 + 4.5 to
    // memory.
    let exact = 170 + 120 + 786 + 333 + 15 + 400 + 333 + 15 + 150 + 291 + 250;
    let found = one_way(BLOCK, true);
    assert!((exact..=exact + 3).contains(&found.0), "{found}");
}

#[test]
fn an_empty_request_and_its_answer_take_two_and_a_half_microseconds() {
    let way = TESTBED.post_datagram + one_way(64, false) + TESTBED.poll;
    let round_trip = way + way;
    assert!((Nanos(2_400)..Nanos(2_600)).contains(&round_trip), "{round_trip}");
}

#[test]
fn the_models_agree_with_published_latencies_between_two_nics() {
    // `ib_send_lat` between two NICs of 100 Gb/s: bytes, whether fetched from memory, measured nanoseconds.
    for (bytes, fetched, measured) in
        [(32, false, 830), (1_024, true, 1_565), (4_096, true, 2_265), (32_768, true, 4_570)]
    {
        let found = back_to_back(bytes, fetched).0;
        let off = found.abs_diff(measured) * 100 / measured;
        assert!(off < 3, "{bytes} B take {found} ns, measured: {measured} ns");
    }
}

#[test]
fn a_nic_sends_and_receives_no_more_than_its_rates() {
    let testbed = Testbed {
        sending_rate: MessageRate::millions(100),
        receiving_rate: MessageRate::millions(50),
        queue_pair_rate: MessageRate::millions(1_000),
        ..TESTBED
    };
    let mut nic = Nic::new(&testbed);
    let first = nic.post(Nanos::ZERO, false, 0, 0);
    let posted = (1..1_000).map(|pair| nic.post(Nanos::ZERO, false, 0, pair)).max();
    assert_eq!(posted, Some(first + Nanos(999 * 10)));
    let first = nic.receive(Nanos::ZERO, 0, false);
    let received = (1..1_000).map(|_| nic.receive(Nanos::ZERO, 0, false)).max();
    assert_eq!(received, Some(first + Nanos(999 * 20)));
    assert_eq!((nic.sent(), nic.received()), (1_000, 1_000));
}

#[test]
fn a_queue_pair_sends_no_more_than_its_rate_and_does_not_hold_up_others() {
    let mut nic = Nic::new(&TESTBED);
    let first = nic.post(Nanos::ZERO, false, 0, 0);
    assert_eq!(nic.post(Nanos::ZERO, false, 0, 0), first + Nanos(100));
    assert_eq!(nic.post(Nanos::ZERO, false, 0, 0), first + Nanos(200));
    // Only the three messages before it, at 5 ns each or in the gaps between them.
    assert!(nic.post(Nanos::ZERO, false, 0, 1) <= first + Nanos(15));
}

#[test]
fn a_small_message_of_another_queue_pair_overtakes_a_block_that_is_being_fetched() {
    let mut nic = Nic::new(&TESTBED);
    let block = nic.send(Nanos::ZERO, true, BLOCK, 0);
    let small = nic.send(Nanos(50), false, 64, 1);
    assert!(small < block, "{small} after {block}");
}

#[test]
fn a_message_that_needs_no_fetch_does_not_overtake_a_block_of_its_queue_pair() {
    let mut nic = Nic::new(&TESTBED);
    let block = nic.post(Nanos(0), true, BLOCK, 0);
    assert_eq!(nic.post(Nanos(1), false, 64, 0), block);
}

#[test]
fn a_small_message_does_not_use_a_gap_in_front_of_a_block_of_its_queue_pair() {
    let mut nic = Nic::new(&TESTBED);
    // The block of queue pair 1 leaves a gap of 100 ns on the link for what is posted 100 ns before it. The
    // block of queue pair 0 is too long for the gap; the message behind it would fit.
    nic.send(Nanos(1_000), true, BLOCK, 1);
    let block = nic.send(Nanos(900), true, BLOCK, 0);
    let small = nic.send(Nanos(1_001), false, 64, 0);
    assert!(small > block, "{small}, before {block}");
}

#[test]
fn a_processor_works_in_order_and_without_gaps_while_there_is_work() {
    let mut processor = Processor::new();
    assert_eq!(processor.run(Nanos(100), Nanos(50)), Nanos(150));
    assert_eq!(processor.run(Nanos(120), Nanos(50)), Nanos(200));
    assert_eq!(processor.run(Nanos(300), Nanos(10)), Nanos(310));
    assert_eq!((processor.busy(), processor.runs(), processor.free()), (Nanos(110), 3, Nanos(310)));
    assert!((processor.utilisation(Nanos(440)) - 0.25).abs() < 1e-9);
}

#[test]
fn ports_of_the_switch_do_not_hold_each_other_up() {
    let mut switch = SwitchPorts::new(&TESTBED, 3);
    let first = switch.route(Nanos::ZERO, 0, BLOCK);
    assert_eq!(switch.route(Nanos::ZERO, 1, BLOCK), first);
    let second = switch.route(Nanos::ZERO, 0, BLOCK);
    assert_eq!(first.zip(second).map(|(first, second)| second - first), Some(Nanos(333)));
    assert_eq!(switch.link(0).packets(), 2);
}

#[test]
fn the_switch_drops_what_its_buffer_has_no_room_for() {
    let frame = BLOCK + 66;
    let testbed = Testbed { buffer: 10 * frame, ..TESTBED };
    let mut switch = SwitchPorts::new(&testbed, 2);
    let all = |switch: &mut SwitchPorts, now: Nanos, port| {
        (0..8).filter(|_| switch.route(now, port, BLOCK).is_some()).count()
    };
    assert_eq!(all(&mut switch, Nanos::ZERO, 0), 8);
    assert_eq!(all(&mut switch, Nanos::ZERO, 1), 2, "all ports share the buffer");
    assert_eq!(switch.dropped(), 6);
    assert!(switch.queued(testbed.pipeline) <= testbed.buffer);
    // When two frames have left each queue, there is capacity again.
    assert_eq!(all(&mut switch, Nanos(700), 1), 4);
    assert_eq!(switch.dropped(), 10);
}

#[test]
fn a_resubmitted_packet_comes_back_after_half_a_pipeline() {
    let mut switch = SwitchPorts::new(&TESTBED, 2);
    assert_eq!(switch.resubmit(Nanos(1_000), 64), Nanos(1_000 + 11) + TESTBED.resubmit);
    // The way back has a bandwidth, too.
    assert_eq!(switch.resubmit(Nanos(1_000), 64), Nanos(1_000 + 21) + TESTBED.resubmit);
    assert_eq!(switch.resubmission().packets(), 2);
}

#[test]
fn a_bandwidth_is_what_it_says() {
    assert_eq!(Bandwidth::megabits(100_000).span(12_500_000_000), Nanos(1_000_000_000));
    assert_eq!(Bandwidth::megabits(8).span(1), Nanos(1_000));
    assert_eq!(TESTBED.cycles(2_200), Nanos(1_000));
}
