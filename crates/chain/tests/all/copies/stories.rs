//! Runs on copies that take luck, or a slot's quarantine, step by step: each is for a rule, and true means that it went wrong.
//!
//! What must always hold: with all rules each goes well, and without its rule it goes wrong.

use chain::Verb;
use chain::client::Request::{Get, Put};
use wire::chains::Next;
use wire::{AllRules, Rule, Rules, Without};

use crate::copies::search::{Event, QUARANTINE, Scenario, State};

/// Two clients that know a chain of two entries in two copies; what befalls them is told below.
const TWO: Scenario =
    Scenario { copies: 2, scripts: &[&[], &[]], deaths: 1, breaks: 1, clients_die: 0, walks: 0 };

/// A put comes as far as the first copy: its link to the second is in flight, and returned.
fn half_linked<R: Rules>(rules: R) -> (State<R>, Verb) {
    let mut state = State::new(rules, &TWO);
    state.begin(0, Put(8));
    (0..2).for_each(|of| state.execute(0, of));
    assert!(matches!(state.in_flight(0, 0), Some(Verb::CompareSwap { .. })), "both copies are written");
    state.execute(0, 0);
    let link = state.in_flight(0, 1).expect("it goes on to the second copy");
    assert!(matches!(link, Verb::CompareSwap { .. }), "{link:?}");
    (state, link)
}

/// Somebody reads while a put is in the first copy only. Then that memory dies, and the link to the second one is lost with its connection: what
/// was put is in no chain, and its client is told so. Has it been read?
fn last_copy<R: Rules>(rules: R) -> bool {
    let (mut state, _) = half_linked(rules);
    state.alone(1, Get);
    state.happen(Event::Die(0, 0), &TWO);
    state.happen(Event::Break(0, 1, 0), &TWO);
    state.finish(0);
    !state.is_linearizable()
}

/// A put's link to the second copy is held up. The metadata server walks by and brings it there, others append behind it, what it went behind
/// is quarantined and is used anew. Then the link arrives, and finds another use of that slot: is the entry appended once more?
fn late_link<R: Rules>(rules: R) -> bool {
    let (mut state, link) = half_linked(rules);
    let Verb::CompareSwap { at: behind, expected, new } = link else { panic!("{link:?}") };
    let Next::Entry(entry, version) = new.next else { panic!("{link:?} puts it behind another one") };
    state.scan();
    assert_eq!(state.word(1, behind), new, "it is in both copies");
    state.now += QUARANTINE;
    let mut puts = 0;
    while state.word(1, behind).entry == expected.entry {
        state.alone(1, Put(8));
        puts += 1;
        assert!(puts < 20, "slots that have been in quarantine are used anew");
    }
    assert_ne!(state.word(1, entry).next, Next::Tail, "something follows by now");
    state.execute(0, 1);
    state.finish(0);
    assert!(state.is_linearizable(), "the put has ended, whatever it did");
    // From the entry on: does the chain come back to it?
    let mut next = state.word(0, entry).next;
    while let Next::Entry(at, its) = next {
        if (at, its) == (entry, version) {
            return true;
        }
        next = state.word(0, at).next;
    }
    false
}

#[test]
fn what_is_in_the_first_copy_only_is_not_read() {
    assert!(!last_copy(AllRules));
    let missed = last_copy(Without(Rule::GetsReadTheLastCopy)).then_some(Rule::GetsReadTheLastCopy);
    crate::table::assert_caught(|row| row.scenario == "last_copy", missed.as_slice());
}

#[test]
fn a_link_that_comes_after_its_tails_slot_is_used_anew_appends_nothing_twice() {
    assert!(!late_link(AllRules));
    let missed = late_link(Without(Rule::LateLinksAreSettled)).then_some(Rule::LateLinksAreSettled);
    crate::table::assert_caught(|row| row.scenario == "late_link", missed.as_slice());
}
