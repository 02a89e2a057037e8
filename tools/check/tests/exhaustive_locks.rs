//! All states of small racks of locks that carry their data: how many there are, exactly, and that everything holds in each.
//!
//! The counts are asserted because they are the protocol's fingerprint: whoever changes a machine and finds another count
//! here has changed what can happen. `rackmem-lab check locks` explores these scopes, and larger ones.

use check::explore::locks::{Coverage, SCOPES, Scope, explore, explore_with_rules};
use check::explore::{Counterexample, Explored, Reached, Verdict};
use wire::LockRules;
use wire::rules::without_lock;

fn all_states(name: &str) -> Explored<Coverage> {
    let scope = Scope::named(name).expect("there is such a scope");
    let explored = explore(scope, 1_000_000, |_| {});
    if let Verdict::Broken(found) = &explored.verdict {
        panic!("{name}: {}\n{}", found.what, found.trace.join("\n"));
    }
    assert_eq!(explored.verdict, Verdict::Holds, "{name}");
    explored
}

/// States, steps between them, and states at rest.
#[track_caller]
fn holds(name: &str, states: usize, steps: usize, at_rest: usize) {
    let explored = all_states(name);
    assert_eq!((explored.states, explored.steps, explored.at_rest), (states, steps, at_rest), "{name}");
}

#[test]
fn packets_overtake_each_other() {
    holds("switch", 547, 1050, 9);
    holds("switch-two-turns", 13_014, 43_442, 37);
    holds("home", 417, 812, 9);
    holds("home-two-turns", 15_177, 51_292, 37);
    holds("full", 15_233, 51_396, 37);
}

#[test]
fn packets_keep_their_order() {
    holds("switch-in-order", 30_165, 85_351, 91);
}

#[test]
fn several_threads_of_a_node_want_the_lock() {
    holds("switch-threads", 5859, 16_410, 16);
    holds("switch-4-threads", 94_357, 349_178, 45);
    holds("switch-preference", 88_373, 329_740, 37);
}

#[test]
fn packets_are_lost() {
    holds("switch-loss", 6288, 13_264, 107);
    holds("switch-turns-loss", 76_669, 292_044, 150);
    holds("home-loss", 3344, 7696, 39);
    holds("full-loss", 4088, 9330, 39);
}

#[test]
fn a_packet_comes_twice() {
    holds("switch-duplicate", 11_527, 34_240, 38);
    holds("switch-loss-duplicate", 47_771, 168_018, 178);
    holds("home-duplicate", 8251, 25_382, 32);
    holds("full-duplicate", 9431, 28_706, 32);
}

#[test]
fn a_time_out_is_premature() {
    holds("switch-timeout", 11_289, 33_320, 38);
}

#[test]
fn a_thread_gives_up() {
    holds("switch-cancel", 48_362, 176_880, 92);
}

#[test]
fn a_thread_does_not_want_to_wait() {
    holds("switch-try", 2823, 7875, 19);
    holds("switch-try-duplicate", 181_629, 783_102, 89);
}

#[test]
fn locks_are_sent_home() {
    holds("switch-leave", 61_376, 212_136, 241);
    holds("switch-leave-loss", 6797, 14_552, 160);
    holds("switch-leave-duplicate", 35_695, 111_266, 142);
    holds("switch-late-forward", 1728, 3212, 52);
}

#[test]
fn copies_give_way_to_others() {
    holds("switch-evict", 8233, 17_872, 109);
    holds("switch-evict-loss", 35_266, 85_528, 490);
    holds("home-evict", 4661, 11_085, 63);
}

#[test]
fn a_lock_ends() {
    holds("switch-free", 1000, 2280, 5);
    holds("switch-free-loss", 11_630, 35_971, 15);
    holds("switch-free-duplicate", 47_114, 170_652, 19);
    holds("home-free", 176_276, 781_261, 36);
}

#[test]
fn whoever_waits_for_a_lock_that_ends_is_refused() {
    holds("switch-refuse", 4176, 10_734, 6);
    holds("switch-refuse-loss", 18_960, 58_030, 14);
    holds("switch-refuse-duplicate", 133_271, 504_545, 16);
    holds("switch-3-refuse", 34_769, 100_641, 38);
}

#[test]
fn a_request_comes_late() {
    holds("switch-late-request", 56_781, 237_391, 28);
    holds("switch-late-request-loss", 277_151, 1_389_454, 121);
}

#[test]
fn another_lock_follows_at_its_place() {
    holds("switch-anew", 152, 207, 4);
    holds("switch-anew-loss", 2719, 5188, 16);
    holds("switch-anew-duplicate", 11_156, 28_626, 16);
    holds("home-anew-duplicate", 3016, 6587, 16);
}

#[test]
fn another_lock_follows_while_the_last_one_is_asked_for() {
    holds("switch-next", 1676, 3495, 6);
    holds("switch-next-loss", 47_861, 149_217, 44);
    holds("switch-next-duplicate", 75_741, 242_043, 21);
    holds("full-next", 111_054, 353_597, 63);
    holds("home-next-loss", 2102, 4067, 12);
    holds("home-next-duplicate", 14_531, 38_531, 21);
}

#[test]
fn a_full_switch_gets_room() {
    holds("full-vacancy", 30_180, 100_495, 102);
    holds("full-vacancy-no-data", 12_352, 34_467, 90);
    holds("full-vacancy-loss", 14_199, 35_488, 185);
}

#[test]
fn the_switch_restarts() {
    // Nobody enters before the home has answered: whoever was inside to write may have freed the memory.
    holds("switch-restart", 147_930, 577_746, 60);
    holds("home-restart", 112_852, 433_942, 60);
    holds("switch-restart-free", 25_224, 85_487, 21);
}

#[test]
fn a_lock_guards_no_data() {
    holds("switch-no-data", 3799, 9122, 37);
    holds("switch-no-data-loss", 3437, 6000, 93);
    holds("switch-no-data-duplicate", 5095, 12_682, 34);
    holds("switch-no-data-leave", 15_159, 38_522, 136);
    holds("switch-no-data-restart", 95_509, 365_096, 51);
}

#[test]
fn three_nodes_want_the_lock() {
    holds("switch-3", 52_697, 174_855, 148);
    holds("switch-3-turns", 19_436, 71_080, 22);
    holds("switch-3-readers", 19_204, 62_119, 75);
    holds("home-3", 36_828, 125_694, 112);
}

#[test]
fn three_writers_take_turns() {
    holds("switch-3-writers", 136_210, 390_777, 420);
}

#[test]
fn three_nodes_and_packets_are_lost() {
    holds("switch-3-loss", 261_716, 935_181, 866);
    holds("home-3-loss", 154_540, 584_268, 356);
}

#[test]
fn three_nodes_and_one_gives_up_or_sends_the_lock_home() {
    holds("switch-3-cancel", 174_564, 647_721, 311);
    holds("switch-3-leave", 164_810, 572_316, 574);
}

#[test]
fn every_row_of_the_program_and_every_kind_of_packet_is_reached() {
    let mut coverage = Coverage::default();
    for name in [
        "switch-leave-duplicate",
        "switch-loss",
        "switch-timeout",
        "switch-try",
        "switch-late-forward",
        "switch-refuse",
        "switch-restart",
        "switch-no-data-leave",
        "full-duplicate",
        "switch-late-request",
        "home-late-request-loss",
        "home-leave",
        "home-duplicate",
        "home-3",
        "home-evict",
    ] {
        coverage.add(&all_states(name).coverage);
    }
    for (what, in_switch, at_node) in coverage.table() {
        // A lock is lost, and reclaimed, only when a node dies: that is left to random runs.
        let reached = in_switch || at_node;
        assert_eq!(reached, what != "packet Reclaim", "{what} is reached nowhere, or is by now");
        // A home makes both passes at once, and its directory is not asked for what it does not have.
        let only_in_switch = ["pass MoveUnderWay", "pass NotHere"].contains(&what.as_str());
        if what.starts_with("pass") {
            assert_eq!((in_switch, at_node), (true, !only_in_switch), "{what}");
        }
    }
}

#[test]
fn two_runs_find_the_same_states_in_the_same_order() {
    let facts = |explored: Explored<Coverage>| {
        (explored.states, explored.steps, explored.depth, explored.local_states)
    };
    assert_eq!(facts(all_states("switch-loss")), facts(all_states("switch-loss")));
}

#[test]
fn scopes_have_names_of_their_own() {
    for (at, scope) in SCOPES.iter().enumerate() {
        assert!(SCOPES[..at].iter().all(|other| other.name != scope.name), "{} stands twice", scope.name);
        assert!(!scope.about.is_empty());
    }
}

/// What is wrong in a scope without a rule.
fn without<R: LockRules>(scope: &Scope) -> Counterexample {
    match explore_with_rules::<R>(scope, 200_000, |_| {}).verdict {
        Verdict::Broken(found) => found,
        other => panic!("{}: {other:?}", scope.name),
    }
}

fn named(name: &str) -> &'static Scope {
    Scope::named(name).expect("there is such a scope")
}

#[test]
fn a_move_that_does_not_know_who_waits_is_noticed() {
    let found = without::<without_lock::MOVE_KNOWS_ALL>(named("switch-late-forward"));
    assert!(found.what.contains("does not know who waits"), "{}", found.what);
}

#[test]
fn a_move_that_does_not_know_who_waits_loses_a_wake_up() {
    let scope = Scope { judges_moves: false, ..*named("switch-late-forward") };
    let found = without::<without_lock::MOVE_KNOWS_ALL>(&scope);
    assert!(found.what.contains("wait, and nobody knows of them"), "{}", found.what);
}

#[test]
fn a_second_move_between_the_passes_of_the_first_lets_two_in() {
    let found = without::<without_lock::ONE_MOVE_AT_A_TIME>(named("switch-duplicate"));
    assert!(found.what.contains("others may be inside"), "{}", found.what);
}

#[test]
fn a_home_that_serves_data_of_another_tenure_serves_old_ones() {
    let found = without::<without_lock::HOME_IS_CURRENT>(named("switch-loss"));
    assert!(found.what.contains("find old data"), "{}", found.what);
}

#[test]
fn a_queue_that_stays_behind_is_forgotten() {
    let found = without::<without_lock::QUEUE_GOES_ALONG>(named("switch-3"));
    assert!(found.stuck, "{}", found.what);
}

#[test]
fn a_denied_holder_that_learns_nothing_is_denied_for_ever() {
    let found = without::<without_lock::DENIED_ADOPTS>(named("switch-leave"));
    assert!(found.stuck, "{}", found.what);
}

#[test]
fn a_home_that_does_not_wait_for_reports_lets_two_in() {
    let found = without::<without_lock::LOCK_HOME_AWAITS_REPORTS>(named("switch-restart"));
    assert!(found.what.contains("others may be inside"), "{}", found.what);
}
