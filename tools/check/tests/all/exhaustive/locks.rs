//! Racks of locks that carry their data.

use check::explore::locks::{Locks, Scope};
use check::explore::{Counterexample, Protocol, Reached};
use wire::{Rule, Rules, Without};

use crate::exhaustive::{Counts, broken, holds, is_as_any, large_too};

const SCOPES: &[(&str, Counts)] = &[
    ("switch", [739, 1588, 9]),
    ("switch-two-turns", [48_664, 217_646, 37]),
    ("home", [609, 1350, 9]),
    ("home-two-turns", [55_229, 246_158, 37]),
    ("full", [55_285, 246_262, 37]),
    ("switch-in-order", [71_966, 218_936, 119]),
    ("switch-threads", [12_189, 43_344, 16]),
    ("switch-4-threads", [266_163, 1_246_846, 45]),
    ("switch-preference", [241_503, 1_129_920, 37]),
    ("switch-loss", [10_488, 26_650, 107]),
    ("switch-turns-loss", [301_197, 1_560_356, 150]),
    ("home-loss", [5906, 16_412, 39]),
    ("full-loss", [6650, 18_046, 39]),
    ("switch-duplicate", [24_133, 90_236, 40]),
    ("switch-loss-duplicate", [116_621, 527_028, 182]),
    ("home-duplicate", [20_087, 79_056, 34]),
    ("full-duplicate", [21_651, 83_840, 34]),
    ("switch-timeout", [25_193, 94_342, 40]),
    ("switch-cancel", [179_646, 859_452, 92]),
    ("switch-try", [7452, 27_848, 19]),
    ("switch-leave", [284_932, 1_359_988, 241]),
    ("switch-leave-loss", [11_621, 30_446, 160]),
    ("switch-leave-duplicate", [85_029, 343_570, 146]),
    ("switch-late-forward", [2943, 6212, 52]),
    ("switch-evict", [14_107, 40_727, 109]),
    ("switch-evict-loss", [69_300, 237_689, 490]),
    ("home-evict", [9997, 32_947, 63]),
    ("switch-free", [1589, 4323, 5]),
    ("switch-free-loss", [20_499, 74_445, 15]),
    ("switch-free-duplicate", [106_526, 468_607, 19]),
    ("switch-refuse", [5080, 14_490, 6]),
    ("switch-refuse-loss", [26_854, 94_118, 16]),
    ("switch-refuse-duplicate", [235_667, 1_065_739, 16]),
    ("switch-3-refuse", [55_583, 197_271, 38]),
    ("switch-anew", [160, 224, 4]),
    ("switch-anew-loss", [3359, 6814, 14]),
    ("switch-anew-duplicate", [12_026, 31_756, 16]),
    ("home-anew-duplicate", [3239, 7229, 12]),
    ("switch-next", [1766, 3715, 6]),
    ("switch-next-loss", [86_146, 333_310, 44]),
    ("switch-next-duplicate", [86_918, 291_524, 21]),
    ("full-next", [122_487, 406_582, 61]),
    ("home-next-loss", [2621, 5178, 12]),
    ("home-next-duplicate", [16_183, 43_122, 20]),
    ("full-vacancy", [67_226, 278_979, 108]),
    ("full-vacancy-no-data", [12_148, 33_871, 90]),
    ("full-vacancy-loss", [23_523, 68_868, 185]),
    ("switch-restart", [180_312, 722_690, 60]),
    ("home-restart", [143_068, 570_910, 60]),
    ("switch-restart-free", [26_815, 91_006, 21]),
    ("switch-no-data", [3799, 9122, 37]),
    ("switch-no-data-loss", [3485, 6060, 93]),
    ("switch-no-data-duplicate", [5027, 12_506, 34]),
    ("switch-no-data-leave", [14_925, 37_840, 136]),
    ("switch-no-data-restart", [95_509, 365_096, 51]),
    ("switch-3", [209_477, 925_209, 148]),
    ("switch-3-turns", [85_556, 401_064, 22]),
    ("switch-3-readers", [78_036, 351_891, 75]),
    ("home-3", [146_544, 652_980, 112]),
    ("switch-3-preference", [15_759, 46_022, 32]),
    ("home-3-loss", [689_992, 3_412_848, 362]),
    ("home-leave", [262_387, 1_255_448, 177]),
];

/// With [`LARGE_TOO`].
const LARGE: &[(&str, Counts)] = &[
    ("switch-3-loss", [1_054_394, 5_125_047, 842]),
    ("switch-3-writers", [869_290, 3_802_191, 420]),
    ("switch-3-cancel", [720_150, 3_440_955, 311]),
    ("switch-3-leave", [691_736, 3_244_716, 574]),
    ("switch-late-request", [496_897, 3_108_505, 30]),
    ("home-free", [458_558, 2_467_553, 42]),
    ("switch-try-duplicate", [853_501, 4_993_419, 93]),
    ("switch-late-request-loss", [2_774_984, 20_670_129, 126]),
    ("home-late-request-loss", [2_927_580, 22_089_068, 65]),
];

#[test]
fn everything_holds_and_every_row_of_the_program_and_every_kind_of_packet_is_reached() {
    if large_too() {
        holds::<Locks>(LARGE);
    }
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
    // It sends data with each attempt.
    assert!(found.what.contains("nothing bounds them"), "{}", found.what);
}

#[test]
fn a_verdict_without_its_data_shows_what_was_there_before() {
    let found = without(Without(Rule::VerdictsAwaitData), named("switch"));
    assert!(found.what.contains("find old data"), "{}", found.what);
}

#[test]
fn data_of_a_move_that_was_denied_are_older_than_what_was_written_since() {
    let found = without(Without(Rule::DataAreOfTheirMove), named("switch-3-preference"));
    assert!(found.what.contains("find old data"), "{}", found.what);
}

#[test]
fn a_home_that_does_not_wait_for_reports_lets_two_in() {
    let found = without(Without(Rule::LockHomeAwaitsReports), named("switch-restart"));
    assert!(found.what.contains("others may be inside"), "{}", found.what);
}
