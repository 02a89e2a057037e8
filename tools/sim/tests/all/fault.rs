//! The rules of faults, one by one and together.
//!
//! It runs the rules alone. Messages are numbers here; what becomes of each is told by the delays of the copies
//! that arrive.

use sim::fault::{
    Counts, Rules, between, corrupt_per_mille, delay, drop_all, drop_per_mille, duplicate_per_mille, during,
    first, hold, nth, only, partition, reorder,
};
use sim::system::{Place, Random};
use wire::{Nanos, NodeId};

const A: Place = Place::Node(NodeId(0));
const B: Place = Place::Node(NodeId(1));
const C: Place = Place::Node(NodeId(2));

/// A network with these rules, and its generator.
struct Network {
    rules: Rules<u32>,
    random: Random,
}

impl Network {
    fn new(rules: Rules<u32>) -> Self {
        Self { rules, random: Random::new(7) }
    }

    fn send(&mut self, now: u64, message: u32, from: Place, to: Place) -> Vec<u64> {
        let mut copies = vec![Nanos(99)];
        self.rules.apply(Nanos(now), &message, from, to, &mut self.random, &mut copies);
        copies.into_iter().map(|delay| delay.0).collect()
    }

    /// Sends so many messages from A to B, one each nanosecond; returns those that arrived, by time of arrival.
    fn arrivals(&mut self, count: u32) -> Vec<(u64, u32)> {
        let mut arrived = Vec::new();
        for k in 0..count {
            arrived.extend(self.send(k.into(), k, A, B).into_iter().map(|delay| (u64::from(k) + delay, k)));
        }
        arrived.sort();
        arrived
    }

    fn counts(&self) -> Counts {
        self.rules.counts()
    }
}

#[test]
fn without_rules_every_message_arrives_once_and_at_once() {
    let mut network = Network::new(Rules::none());
    assert_eq!(network.send(5, 0, A, B), [0]);
    assert_eq!(network.counts(), Counts { passed: 1, ..Counts::default() });
    assert!(network.rules.is_empty());
}

#[test]
fn the_stated_share_of_messages_is_lost() {
    let mut network = Network::new(Rules::none().with(drop_per_mille(100)));
    let arrived = network.arrivals(100_000).len() as u64;
    assert!((89_000..91_000).contains(&arrived), "{arrived}");
    assert_eq!(network.counts(), Counts { passed: arrived, dropped: 100_000 - arrived, ..Counts::default() });
}

#[test]
fn a_damaged_message_is_lost_and_counted_by_itself() {
    let mut network = Network::new(Rules::none().with(corrupt_per_mille(1_000)));
    assert!(network.send(0, 0, A, B).is_empty());
    assert_eq!(network.counts(), Counts { corrupted: 1, ..Counts::default() });
    assert_eq!(network.counts().faults(), 1);
}

#[test]
fn a_duplicate_comes_within_its_span_after_the_original() {
    let mut network = Network::new(Rules::none().with(duplicate_per_mille(1_000, Nanos(50))));
    let mut latest = 0;
    for _ in 0..1_000 {
        let copies = network.send(0, 0, A, B);
        assert_eq!((copies.len(), copies[0]), (2, 0));
        latest = latest.max(copies[1]);
    }
    assert_eq!(latest, 50);
    assert_eq!(network.counts(), Counts { passed: 2_000, duplicated: 1_000, ..Counts::default() });
}

#[test]
fn a_delay_keeps_the_order_of_a_way_and_its_limit() {
    let mut network = Network::new(Rules::none().with(delay(Nanos(1_000))));
    let arrived = network.arrivals(5_000);
    assert!(arrived.iter().map(|&(_, k)| k).is_sorted(), "one was overtaken");
    assert!(arrived.iter().all(|&(at, k)| at - u64::from(k) <= 1_000));
    assert!(network.counts().delayed > 4_000);
}

#[test]
fn a_delay_of_one_way_does_not_hold_up_another() {
    let mut network = Network::new(Rules::none().with(between(A, B, hold(Nanos(500)))).with(delay(Nanos(0))));
    assert_eq!(network.send(0, 0, A, B), [500]);
    assert_eq!(network.send(0, 1, A, C), [0]);
    assert_eq!(network.send(0, 2, B, A), [0]);
}

#[test]
fn reordering_changes_places_within_the_window_and_not_beyond() {
    let mut network = Network::new(Rules::none().with(reorder(Nanos(100))));
    let arrived = network.arrivals(5_000);
    assert!(!arrived.iter().map(|&(_, k)| k).is_sorted(), "none was overtaken");
    for (place, &(_, k)) in arrived.iter().enumerate() {
        let overtaken_by = arrived[..place].iter().map(|&(_, other)| other).max().unwrap_or(0);
        assert!(overtaken_by <= k + 100, "{overtaken_by} overtook {k}");
    }
}

#[test]
fn a_partition_cuts_both_ways_between_its_sides_and_only_while_it_lasts() {
    let mut network =
        Network::new(Rules::none().with(partition([A], [B, Place::Switch], Nanos(10), Nanos(20))));
    for (now, from, to, arrives) in [
        (9, A, B, true),
        (10, A, B, false),
        (10, B, A, false),
        (15, Place::Switch, A, false),
        (15, B, Place::Switch, true),
        (15, A, C, true),
        (19, A, B, false),
        (20, A, B, true),
    ] {
        assert_eq!(network.send(now, 0, from, to).len(), usize::from(arrives), "{from:?} to {to:?} at {now}");
    }
}

#[test]
fn the_second_message_of_a_kind_can_be_lost() {
    let is_odd = |message: &u32| message % 2 == 1;
    let mut network = Network::new(Rules::none().with(only(is_odd, nth(2, drop_all()))));
    let arrived: Vec<u32> = network.arrivals(6).into_iter().map(|(_, k)| k).collect();
    assert_eq!(arrived, [0, 1, 2, 4, 5]);
}

#[test]
fn scopes_nest_in_the_order_in_which_they_are_written() {
    let is_odd = |message: &u32| message % 2 == 1;
    // Message 1 is the second of all. Were the odd ones counted first, it would be message 3.
    let mut network = Network::new(Rules::none().with(nth(2, only(is_odd, drop_all()))));
    let arrived: Vec<u32> = network.arrivals(6).into_iter().map(|(_, k)| k).collect();
    assert_eq!(arrived, [0, 2, 3, 4, 5]);
}

#[test]
fn a_rule_for_the_first_messages_ends_with_them() {
    let mut network = Network::new(Rules::none().with(first(3, drop_all())));
    let arrived: Vec<u32> = network.arrivals(5).into_iter().map(|(_, k)| k).collect();
    assert_eq!(arrived, [3, 4]);
}

#[test]
fn a_rule_for_a_while_begins_and_ends_with_it() {
    let mut network = Network::new(Rules::none().with(during(Nanos(2), Nanos(4), drop_all())));
    let arrived: Vec<u32> = network.arrivals(6).into_iter().map(|(_, k)| k).collect();
    assert_eq!(arrived, [0, 1, 4, 5]);
}

#[test]
fn delays_add_up() {
    let mut network = Network::new(Rules::none().with(hold(Nanos(30))).with(hold(Nanos(12))));
    assert_eq!(network.send(0, 0, A, B), [42]);
    assert_eq!(network.counts(), Counts { passed: 1, delayed: 2, ..Counts::default() });
}

#[test]
fn what_is_lost_is_not_seen_by_later_rules() {
    let mut network = Network::new(Rules::none().with(first(1, drop_all())).with(nth(1, hold(Nanos(9)))));
    assert!(network.send(0, 0, A, B).is_empty());
    assert_eq!(network.send(1, 1, A, B), [9], "the rule counts from the first message that reached it");
    assert_eq!(network.counts(), Counts { passed: 1, dropped: 1, delayed: 1, ..Counts::default() });
}

#[test]
fn a_duplicate_is_decided_on_by_itself_from_the_next_rule_on() {
    let twice = || duplicate_per_mille(1_000, Nanos::ZERO);
    // The rule that duplicates does not see its duplicate; the next one sees both.
    let mut network = Network::new(Rules::none().with(twice()).with(nth(2, hold(Nanos(5)))));
    assert_eq!(network.send(0, 0, A, B), [0, 5]);
    let mut network = Network::new(Rules::none().with(twice()).with(nth(1, drop_all())).with(twice()));
    assert_eq!(
        network.send(0, 0, A, B),
        [0, 0],
        "the original is lost, its duplicate lives on and is duplicated"
    );
    assert_eq!(network.counts(), Counts { passed: 2, dropped: 1, duplicated: 2, ..Counts::default() });
}

#[test]
fn a_duplicate_is_as_late_as_its_original_was() {
    let rules = Rules::none()
        .with(hold(Nanos(30)))
        .with(duplicate_per_mille(1_000, Nanos::ZERO))
        .with(hold(Nanos(1)));
    assert_eq!(Network::new(rules).send(0, 0, A, B), [31, 31]);
}

#[test]
fn one_seed_gives_one_sequence_of_faults() {
    let run = |seed| {
        let rules = Rules::none()
            .with(drop_per_mille(50))
            .with(duplicate_per_mille(50, Nanos(300)))
            .with(reorder(Nanos(100)))
            .with(corrupt_per_mille(20));
        let mut network = Network { rules, random: Random::new(seed) };
        (network.arrivals(2_000), network.counts())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn when_the_rules_are_cleared_everything_arrives_and_the_counts_stay() {
    let mut network = Network::new(Rules::none().with(drop_all()));
    network.send(0, 0, A, B);
    network.rules.clear();
    assert_eq!(network.send(1, 1, A, B), [0]);
    assert_eq!(network.counts(), Counts { passed: 1, dropped: 1, ..Counts::default() });
}
