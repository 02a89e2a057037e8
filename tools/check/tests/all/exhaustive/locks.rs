//! Racks of locks that carry their data.

use check::explore::locks::{Locks, Scope};
use check::explore::{Counterexample, Protocol, Reached};
use wire::{Rule, Rules, Without};

use crate::exhaustive::{Counts, broken, holds, is_as_any};

const SCOPES: &[(&str, Counts)] = &[
    ("switch", [547, 1050, 9]),
    ("switch-two-turns", [13_014, 43_442, 37]),
    ("home", [417, 812, 9]),
    ("home-two-turns", [15_177, 51_292, 37]),
    ("full", [15_233, 51_396, 37]),
    ("switch-in-order", [30_165, 85_351, 91]),
    ("switch-threads", [5859, 16_410, 16]),
    ("switch-4-threads", [94_357, 349_178, 45]),
    ("switch-preference", [88_373, 329_740, 37]),
    ("switch-loss", [6288, 13_264, 107]),
    ("switch-turns-loss", [76_669, 292_044, 150]),
    ("home-loss", [3344, 7696, 39]),
    ("full-loss", [4088, 9330, 39]),
    ("switch-duplicate", [11_527, 34_240, 38]),
    ("switch-loss-duplicate", [47_771, 168_018, 178]),
    ("home-duplicate", [8251, 25_382, 32]),
    ("full-duplicate", [9431, 28_706, 32]),
    ("switch-timeout", [11_289, 33_320, 38]),
    ("switch-cancel", [48_362, 176_880, 92]),
    ("switch-try", [2823, 7875, 19]),
    ("switch-try-duplicate", [181_629, 783_102, 89]),
    ("switch-leave", [61_376, 212_136, 241]),
    ("switch-leave-loss", [6797, 14_552, 160]),
    ("switch-leave-duplicate", [35_695, 111_266, 142]),
    ("switch-late-forward", [1728, 3212, 52]),
    ("switch-evict", [8233, 17_872, 109]),
    ("switch-evict-loss", [35_266, 85_528, 490]),
    ("home-evict", [4661, 11_085, 63]),
    ("switch-free", [1000, 2280, 5]),
    ("switch-free-loss", [11_630, 35_971, 15]),
    ("switch-free-duplicate", [47_114, 170_652, 19]),
    ("home-free", [176_294, 781_282, 41]),
    ("switch-refuse", [4176, 10_734, 6]),
    ("switch-refuse-loss", [19_086, 58_249, 16]),
    ("switch-refuse-duplicate", [135_306, 510_923, 16]),
    ("switch-3-refuse", [34_769, 100_641, 38]),
    ("switch-late-request", [56_781, 237_391, 28]),
    ("switch-late-request-loss", [277_151, 1_389_454, 121]),
    ("switch-anew", [156, 217, 4]),
    ("switch-anew-loss", [3020, 5934, 14]),
    ("switch-anew-duplicate", [12_173, 32_205, 16]),
    ("home-anew-duplicate", [3324, 7493, 12]),
    ("switch-next", [1762, 3708, 6]),
    ("switch-next-loss", [46_931, 142_710, 41]),
    ("switch-next-duplicate", [80_297, 258_373, 21]),
    ("full-next", [114_349, 366_313, 61]),
    ("home-next-loss", [2382, 4578, 12]),
    ("home-next-duplicate", [15_414, 39_903, 20]),
    ("full-vacancy", [30_180, 100_495, 102]),
    ("full-vacancy-no-data", [12_352, 34_467, 90]),
    ("full-vacancy-loss", [14_199, 35_488, 185]),
    ("switch-restart", [147_930, 577_746, 60]),
    ("home-restart", [112_852, 433_942, 60]),
    ("switch-restart-free", [25_224, 85_487, 21]),
    ("switch-no-data", [3799, 9122, 37]),
    ("switch-no-data-loss", [3437, 6000, 93]),
    ("switch-no-data-duplicate", [5095, 12_682, 34]),
    ("switch-no-data-leave", [15_159, 38_522, 136]),
    ("switch-no-data-restart", [95_509, 365_096, 51]),
    ("switch-3", [52_697, 174_855, 148]),
    ("switch-3-turns", [19_436, 71_080, 22]),
    ("switch-3-readers", [19_204, 62_119, 75]),
    ("home-3", [36_828, 125_694, 112]),
    ("switch-3-writers", [136_210, 390_777, 420]),
    ("switch-3-loss", [261_716, 935_181, 866]),
    ("home-3-loss", [154_540, 584_268, 356]),
    ("switch-3-cancel", [174_564, 647_721, 311]),
    ("switch-3-leave", [164_810, 572_316, 574]),
    ("home-late-request-loss", [266_119, 1_385_038, 60]),
    ("home-leave", [64_265, 230_844, 177]),
];

#[test]
fn everything_holds_and_every_row_of_the_program_and_every_kind_of_packet_is_reached() {
    for (what, in_switch, at_node) in holds::<Locks>(SCOPES).table() {
        // A lock is lost, and reclaimed, only when a node dies: that is left to random runs.
        let reached = in_switch || at_node;
        assert_eq!(reached, what != "packet Reclaim", "{what} is reached nowhere, or is by now");
        // A home makes both passes at once, and its directory is not asked for what it does not have.
        let only_in_switch = ["pass MoveInFlight", "pass NotHere"].contains(&what.as_str());
        if what.starts_with("pass") {
            assert_eq!((in_switch, at_node), (true, !only_in_switch), "{what}");
        }
    }
}

#[test]
fn its_scopes_are_as_any() {
    is_as_any::<Locks>("switch-loss");
}

fn named(name: &str) -> &'static Scope {
    Locks::scope(name).expect("there is such a scope")
}

#[track_caller]
fn without<R: Rules>(rules: R, scope: &Scope) -> Counterexample {
    broken(Locks::explore_with_rules(rules, scope, 200_000, |_| {}))
}

#[test]
fn a_move_that_does_not_know_who_waits_is_noticed() {
    let found = without(Without(Rule::MoveKnowsAll), named("switch-late-forward"));
    assert!(found.what.contains("does not know who waits"), "{}", found.what);
}

#[test]
fn a_move_that_does_not_know_who_waits_loses_a_wake_up() {
    let scope = Scope { judges_moves: false, ..*named("switch-late-forward") };
    let found = without(Without(Rule::MoveKnowsAll), &scope);
    assert!(found.what.contains("wait, and nobody knows of them"), "{}", found.what);
}

#[test]
fn a_second_move_between_the_passes_of_the_first_lets_two_in() {
    let found = without(Without(Rule::OneMoveAtATime), named("switch-duplicate"));
    assert!(found.what.contains("others may be inside"), "{}", found.what);
}

#[test]
fn a_home_that_serves_data_of_another_term_serves_old_ones() {
    let found = without(Without(Rule::HomeIsCurrent), named("switch-loss"));
    assert!(found.what.contains("find old data"), "{}", found.what);
}

#[test]
fn a_queue_that_stays_behind_is_forgotten() {
    let found = without(Without(Rule::QueueGoesAlong), named("switch-3"));
    assert!(found.stuck, "{}", found.what);
}

#[test]
fn a_denied_holder_that_learns_nothing_is_denied_for_ever() {
    let found = without(Without(Rule::DeniedAdopts), named("switch-leave"));
    assert!(found.stuck, "{}", found.what);
}

#[test]
fn a_home_that_does_not_wait_for_reports_lets_two_in() {
    let found = without(Without(Rule::LockHomeAwaitsReports), named("switch-restart"));
    assert!(found.what.contains("others may be inside"), "{}", found.what);
}
