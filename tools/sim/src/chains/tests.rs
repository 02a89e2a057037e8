//! Small runs of the whole testbed.

use chain::client::Request;
use switch::chains::{self, Binding};
use wire::Nanos;

use super::{Ask, Bench, ChainsReport, Load, Requests, Testbed};
use crate::system::Random;

const VALUE: u32 = 1000;

/// Keys at random, and so many percent writes.
struct Mix {
    keys: u64,
    writes: u64,
    random: Random,
}

impl Requests for Mix {
    fn next(&mut self, _: u16) -> Ask {
        let key = self.random.below(self.keys);
        let is_write = self.random.below(100) < self.writes;
        Ask { key, request: if is_write { Request::Put(VALUE) } else { Request::Get } }
    }
}

fn testbed(threads: u16, keys: u64, writes: u64, top: Option<usize>, seed: u64) -> Testbed {
    bound(threads, keys, writes, top, Binding::NONE, seed)
}

fn bound(threads: u16, keys: u64, writes: u64, top: Option<usize>, binding: Binding, seed: u64) -> Testbed {
    let steering = top.map(|top| chains::SteeringConfig {
        keys: 1000,
        top,
        binding,
        ..chains::SteeringConfig::default()
    });
    with(threads, keys, writes, steering, seed)
}

fn with(
    threads: u16,
    keys: u64,
    writes: u64,
    steering: Option<chains::SteeringConfig>,
    seed: u64,
) -> Testbed {
    let requests = Mix { keys, writes, random: Random::new(seed) };
    Testbed::new(Bench::PAPER, Load { threads, keys, value: VALUE, steering }, Box::new(requests), seed)
}

fn well(report: &ChainsReport) {
    assert_eq!((report.wrong, report.failed), (0, 0));
}

#[test]
fn a_get_takes_one_round_trip_and_a_put_two_where_nobody_else_writes() {
    for top in [None, Some(1000)] {
        let mut testbed = testbed(1, 8, 50, top, 3);
        testbed.run(200);
        testbed.forget();
        let report = testbed.run(400);
        well(&report);
        assert_eq!([&report.gets, &report.puts].map(|trips| trips.per_mille(500)), [1, 2]);
        assert_eq!(report.refused, 0);
    }
}

#[test]
fn a_get_takes_what_its_way_takes() {
    let mut testbed = testbed(1, 1, 0, None, 1);
    let report = testbed.run(20);
    let b = Bench::PAPER;
    let h = b.hardware;
    let framed = |bytes: u64| h.bandwidth.span(h.framing.framed(bytes)).0;
    // From NIC to NIC: the engine, two links, the Onyx switch, the other engine.
    let pass = |bytes| h.nic_sending.0 + 2 * framed(bytes) + 2 * h.cable.0 + h.pipeline.0 + h.nic_receiving.0;
    let seen = |bytes: u64| h.pcie.span(bytes + 64).0 + h.pcie_write.0;
    let tor = |bytes: u64| {
        pass(bytes)
            + seen(bytes)
            + b.program.0
            + h.doorbell.0
            + h.pcie_read.0
            + h.pcie.span(bytes).0
            + pass(bytes)
    };
    // A READ request: BTH, RETH and checksum; its response: BTH, AETH, an entry and checksum.
    let (request, response) = (12 + 16 + 4, 12 + 4 + 1024 + 4);
    let post = h.post_write.0 + h.doorbell.0;
    let memory = h.pcie_read.0 + h.pcie.span(1024).0;
    let take = seen(response) + h.poll.0 + b.step.0;
    let sum = post + tor(request) + memory + tor(response) + take;
    let longest = report.latency.longest().0;
    assert!(longest.abs_diff(sum) <= 20, "{longest} ns, and in parts {sum}");
}

#[test]
fn one_seed_gives_one_run() {
    let run = |seed| {
        let report = testbed(32, 64, 50, Some(16), seed).run(4000);
        well(&report);
        (report.time, report.events, report.bytes, report.refused)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn atomics_are_executed_no_faster_than_the_nic_does() {
    let report = testbed(64, 1000, 100, Some(1000), 5).run(4000);
    well(&report);
    let each = report.time.0 as f64 / (report.appended + report.refused) as f64;
    assert!(each >= Bench::PAPER.atomic_apart.0 as f64, "{each} ns");
    assert!(report.atomics > 0.8, "they are what bounds it: {}", report.atomics);
}

#[test]
fn atomics_of_bound_words_do_not_wait_for_each_others_locks_and_writes_for_none() {
    let run = |binding| {
        let mut testbed = bound(64, 1000, 100, Some(1000), binding, 5);
        testbed.run(4000);
        let report = testbed.run(8000);
        well(&report);
        let counters = report.steering.unwrap();
        assert!(counters.most_atomics <= u64::from(binding.atomics) && counters.resent == 0, "{counters:?}");
        (report.mops(), report.atomics)
    };
    let writes = Binding { writes: true, atomics: 64, ..Binding::ONE };
    let [apart, alike, none] = [Binding::NONE, Binding::ONE, writes].map(run);
    let all = format!("{apart:?} {alike:?} {none:?}");
    assert!(alike.0 > 1.2 * apart.0 && none.0 > alike.0 && none.1 < 0.5 * alike.1, "{all}");
}

#[test]
fn steered_appends_do_not_fail() {
    let failed = |top| {
        let mut testbed = testbed(32, 4, 100, top, 9);
        let before = testbed.run(2000);
        let report = testbed.run(4000);
        well(&report);
        report.refused - before.refused
    };
    let (native, steered) = (failed(None), failed(Some(1000)));
    assert!(native > 1000 && steered < 20, "{native} {steered}");
}

#[test]
fn a_switch_that_crashes_loses_nothing_where_words_are_bound() {
    for seed in 0..6 {
        let writes = Binding { writes: true, ..Binding::ONE };
        let mut testbed = bound(16, 16, 50, Some(1000), writes, seed);
        let mut until = Nanos::ZERO;
        for _ in 0..3 {
            until += Nanos(1_300_000 + 70_000 * seed);
            testbed.run_until(until);
            testbed.stop_switch();
            until += Nanos(2_500_000);
            testbed.run_until(until);
            testbed.restart_switch();
        }
        until += Nanos::from_millis(30);
        let before = testbed.run_until(until);
        let report = testbed.run(500);
        well(&report);
        assert!(report.dropped > 0 && report.operations == before.operations + 500);
    }
}

#[test]
fn a_switch_that_crashes_and_comes_back_empty_loses_nothing() {
    for seed in 0..6 {
        for (top, is_scanned) in [(None, false), (Some(1000), false), (Some(1000), true), (Some(4), false)] {
            let mut testbed = testbed(16, 16, 50, top, seed);
            let mut until = Nanos::ZERO;
            for _ in 0..3 {
                until += Nanos(1_300_000 + 70_000 * seed);
                testbed.run_until(until);
                testbed.stop_switch();
                until += Nanos(2_500_000);
                testbed.run_until(until);
                testbed.restart_switch();
                if is_scanned {
                    testbed.scan();
                }
            }
            until += Nanos::from_millis(30);
            let before = testbed.run_until(until);
            let report = testbed.run(500);
            well(&report);
            assert!(report.dropped > 0 && report.operations == before.operations + 500);
        }
    }
}

#[test]
fn reads_in_flight_when_a_switch_comes_back_end_their_connections_and_are_read_again() {
    let ahead = chains::SteeringConfig { keys: 1000, reads: 1024, ..chains::SteeringConfig::default() };
    let mut reconnected = 0;
    for seed in 0..6 {
        // Longer than a NIC sends a packet again and again.
        let is_long = seed % 2 == 1;
        let mut testbed = with(16, 16, 50, Some(ahead), seed);
        for _ in 0..3 {
            let until = testbed.now() + Nanos(5_300_000 + 70_000 * seed);
            testbed.run_until(until);
            testbed.stop_switch();
            testbed.run_until(until + Nanos(if is_long { 12_000_000 } else { 20_000 }));
            testbed.restart_switch();
        }
        let until = testbed.now() + Nanos::from_millis(30);
        let before = testbed.run_until(until);
        let report = testbed.run(500);
        well(&report);
        assert!(report.operations == before.operations + 500);
        let counters = report.steering.unwrap();
        assert!(counters.reads_ahead > 0, "{counters:?}");
        reconnected += report.reconnected;
    }
    assert!(reconnected > 0);
}
