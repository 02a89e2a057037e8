//! All states of small racks: how many there are, exactly, and that everything holds in each of them.
//!
//! The counts are asserted because they are the protocol's fingerprint: whoever changes a machine and finds another
//! count here has changed what can happen. `rackmem-lab check flowcc` explores these scopes, and larger ones.

use check::explore::flowcc::{Coverage, SCOPES, Scope, explore};
use check::explore::{Explored, Reached, Verdict};

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
    holds("home", 10_962, 34_184, 3);
    holds("switch", 6575, 19_302, 3);
}

#[test]
fn packets_keep_their_order() {
    holds("home-in-order", 21_158, 54_791, 3);
    holds("switch-in-order", 12_437, 32_919, 3);
}

#[test]
fn packets_are_lost() {
    holds("home-loss", 13_453, 34_468, 9);
    holds("switch-loss", 10_164, 26_018, 9);
}

#[test]
fn a_packet_comes_twice() {
    holds("switch-duplicate", 22_979, 71_336, 6);
}

#[test]
fn a_time_out_is_premature() {
    holds("switch-timeout", 21_927, 68_044, 6);
}

#[test]
fn application_locks_are_taken() {
    holds("locks", 14_244, 38_828, 2);
    holds("locks-loss", 2245, 4464, 2);
}

#[test]
fn an_entry_moves_to_the_switch() {
    holds("add", 12_697, 33_589, 17);
}

#[test]
fn an_entry_moves_back_to_its_home() {
    holds("remove", 11_048, 31_444, 6);
}

#[test]
fn requests_stand_in_line() {
    holds("line", 7097, 19_926, 3);
    holds("line-3-writers", 17_465, 45_975, 3);
}

#[test]
fn requests_stand_in_line_and_packets_are_lost() {
    holds("line-loss", 16_662, 42_002, 9);
    holds("line-3-writers-loss", 73_482, 200_169, 6);
}

#[test]
fn requests_stand_in_line_and_a_packet_comes_twice() {
    holds("line-duplicate", 35_689, 110_988, 6);
    holds("line-late-write", 77_222, 226_426, 4);
}

#[test]
fn requests_stand_in_line_and_a_time_out_is_premature() {
    holds("line-timeout", 34_921, 108_586, 6);
}

#[test]
fn an_entry_with_a_line_moves_back_to_its_home() {
    holds("line-remove", 31_071, 86_646, 6);
}

#[test]
fn copies_give_way_to_others_while_requests_stand_in_line() {
    holds("line-evict", 119_054, 338_304, 9);
}

#[test]
fn blocks_are_read_where_they_are() {
    holds("peek", 11_596, 32_515, 3);
    holds("peek-switch", 8011, 22_033, 3);
    holds("peek-switch-3", 52_437, 164_936, 12);
}

#[test]
fn blocks_are_read_where_they_are_and_packets_are_lost() {
    holds("peek-loss", 103_412, 335_378, 6);
    holds("peek-switch-loss", 69_615, 223_449, 6);
}

#[test]
fn blocks_are_read_where_they_are_while_requests_stand_in_line() {
    holds("peek-line", 39_793, 112_283, 3);
}

#[test]
fn an_entry_moves_to_the_switch_as_soon_as_it_is_free() {
    holds("add-persistent", 13_418, 36_008, 17);
}

#[test]
fn every_row_of_both_tables_is_reached() {
    let mut coverage = Coverage::default();
    let homes = ["home-evict", "home-3-purge", "home-purge-unused", "locks", "peek"];
    let switches = ["switch-evict", "switch-3-purge", "switch-purge-unused", "remove", "peek-switch"];
    for name in homes.into_iter().chain(switches) {
        coverage.add(&all_states(name).coverage);
    }
    for (row, in_switch, at_home) in coverage.table() {
        assert!(in_switch || at_home, "{row} is reached nowhere");
        // Locks are kept by homes, and only the switch is asked to give an entry back.
        let only_one = row.contains("Lock") || row.contains("RemoveFromSwitch");
        assert!(only_one || in_switch && at_home, "{row}: in the switch {in_switch}, at a home {at_home}");
    }
}

#[test]
fn two_runs_find_the_same_states_in_the_same_order() {
    let facts = |explored: Explored<Coverage>| {
        (explored.states, explored.steps, explored.depth, explored.local_states)
    };
    assert_eq!(facts(all_states("switch")), facts(all_states("switch")));
}

#[test]
fn a_search_that_is_not_allowed_to_finish_says_so() {
    let scope = Scope::named("home").unwrap();
    let explored = explore(scope, 100, |_| {});
    assert_eq!(explored.verdict, Verdict::Incomplete);
    assert!((100..1000).contains(&explored.states), "{}", explored.states);
}

#[test]
fn scopes_have_names_of_their_own() {
    for (at, scope) in SCOPES.iter().enumerate() {
        assert!(SCOPES[..at].iter().all(|other| other.name != scope.name), "{} stands twice", scope.name);
        assert!(!scope.about.is_empty());
    }
}
