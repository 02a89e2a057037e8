//! Steps of appends one after the other, each with what must hold. Where a rule is left out, the scenario that is for it says so: true
//! means that it went wrong.

use switch::chains::AppendState;
use wire::chains::{Next, Reply, Word};
use wire::{Nanos, Rules};

use crate::chains::rig::{Entry, Rig, client_end};

pub(crate) const KEY: u64 = 7;
pub(crate) const OTHER: u64 = 8;
pub(crate) const X: Entry = Entry(1, 0);

pub(crate) fn steered(behind: Entry) -> Option<Reply> {
    Some(Reply::Steered(behind.at(), behind.version()))
}

pub(crate) fn tail(entry: Entry) -> Option<Reply> {
    Some(Reply::Original(Word::tail(entry.version()).to_bits()))
}

/// A chain that begins with X, whose key is held, and an entry behind it that has taught the switch the tail.
pub(crate) fn begun<R: Rules>(rules: R, taught: Entry) -> Rig<R> {
    let mut rig = Rig::new(rules, 3, 5);
    assert!(rig.switch.admit(KEY));
    rig.words.insert(X.0, Word::tail(X.version()));
    rig.write(1, taught, KEY);
    assert_eq!(rig.swap(1, X, taught), tail(X), "nobody knows the tail yet");
    assert_eq!(rig.switch.tail(KEY), Some((taught.at(), taught.version())));
    rig
}

/// The published prototype, which rewrites only the address: an update is lost as soon as the tail's slot was used before. While no slot
/// was, it works: that is asserted.
pub(crate) fn address_only<R: Rules>(rules: R) -> bool {
    let (a, b, c, d) = (Entry(2, 0), Entry(3, 0), Entry(4, 1), Entry(5, 0));
    let mut rig = begun(rules, a);
    rig.write(2, b, KEY);
    // Client 2 takes X for the tail: it lost the race, and does not notice.
    assert_eq!(rig.swap(2, X, b), steered(a));
    assert_eq!(rig.chain(X), [X, a, b], "all slots are in their first use");
    // The slot of c had another entry before, which was taken back.
    rig.write(1, c, KEY);
    assert_eq!(rig.swap(1, b, c), steered(b));
    rig.write(2, d, KEY);
    let told = rig.swap(2, b, d);
    // Client 2 was told that d is behind c. Is it?
    told == steered(c) && rig.chain(X) != [X, a, b, c, d]
}

/// A client is told that the word was another one than it asked about: it would append once more.
pub(crate) fn original<R: Rules>(rules: R) -> bool {
    let (a, b) = (Entry(2, 5), Entry(3, 0));
    let mut rig = begun(rules, a);
    rig.write(2, b, KEY);
    let told = rig.swap(2, X, b);
    assert_eq!(rig.chain(X), [X, a, b]);
    told != steered(a)
}

/// A packet that comes again goes elsewhere than the first one.
pub(crate) fn repeats<R: Rules>(rules: R) -> bool {
    let (a, b, c) = (Entry(2, 0), Entry(3, 0), Entry(4, 0));
    let mut rig = begun(rules, a);
    rig.write(2, b, KEY);
    rig.write(3, c, KEY);
    let psn = rig.number(2);
    let first = rig.pass_to_memory(2, psn, X, b);
    assert_eq!(rig.swap(3, X, c), None, "b is not acknowledged");
    rig.pass_to_memory(2, psn, X, b) != first
}

/// Something that is no tail is taken for one, because it came late.
pub(crate) fn late_copies<R: Rules>(rules: R) -> bool {
    let (a, b) = (Entry(2, 0), Entry(3, 0));
    let mut rig = begun(rules, a);
    rig.write(2, b, KEY);
    let psn = rig.number(2);
    let first = rig.pass_to_memory(2, psn, X, b);
    let again = rig.pass_to_memory(2, psn, X, b);
    again != first
}

/// A slot was written for a held key, and then, under the same number, for one that is not: where does its append go?
pub(crate) fn last_write<R: Rules>(rules: R) -> bool {
    let (a, s, y) = (Entry(2, 0), Entry(3, 0), Entry(9, 0));
    let mut rig = begun(rules, a);
    rig.words.insert(y.0, Word::tail(y.version()));
    rig.write(2, s, KEY);
    // It gives up, and writes another key's entry.
    rig.write(2, s, OTHER);
    rig.swap(2, y, s);
    rig.chain(y) != [y, s]
}

/// An append is acknowledged whose entry is in no chain yet.
pub(crate) fn acks<R: Rules>(rules: R) -> bool {
    let (a, b, c) = (Entry(2, 0), Entry(3, 0), Entry(4, 0));
    let mut rig = begun(rules, a);
    rig.write(2, b, KEY);
    rig.write(3, c, KEY);
    let late = rig.number(2);
    let first = rig.pass_to_memory(2, late, X, b);
    let psn = rig.number(3);
    let told = rig.swap_as(3, psn, X, c);
    if told.is_some() {
        return !rig.chain(X).contains(&c);
    }
    // The first one arrives after all, and its acknowledgement releases the second, which is fetched again.
    let original = rig.execute(2, &first);
    assert_eq!(rig.pass_to_client(2, late, original), steered(a));
    assert_eq!(rig.swap_as(3, psn, X, c), steered(b));
    assert_eq!(rig.chain(X), [X, a, b, c]);
    false
}

/// An append fails, and what stands behind it is acknowledged.
pub(crate) fn followers<R: Rules>(rules: R) -> bool {
    let (a, n, b, c) = (Entry(2, 0), Entry(8, 0), Entry(3, 0), Entry(4, 0));
    let mut rig = begun(rules, a);
    rig.write(2, b, KEY);
    rig.write(3, c, KEY);
    // Somebody appends whom the switch does not see.
    rig.words.insert(n.0, Word::tail(n.version()));
    rig.words.insert(a.0, Word::tail(a.version()).followed_by(n.next()));
    let psn = rig.number(2);
    let first = rig.pass_to_memory(2, psn, X, b);
    let second = rig.number(3);
    let behind = rig.pass_to_memory(3, second, X, c);
    let originals = [rig.execute(2, &first), rig.execute(3, &behind)];
    assert_eq!(rig.pass_to_client(2, psn, originals[0]), Some(Reply::Refused));
    rig.pass_to_client(3, second, originals[1]) == steered(b)
}

/// A tail that a failed compare has shown to be none is used again.
pub(crate) fn mismatches<R: Rules>(rules: R) -> bool {
    let (a, n, b, c) = (Entry(2, 0), Entry(8, 0), Entry(3, 0), Entry(4, 0));
    let mut rig = begun(rules, a);
    rig.words.insert(n.0, Word::tail(n.version()));
    rig.words.insert(a.0, Word::tail(a.version()).followed_by(n.next()));
    rig.write(2, b, KEY);
    assert_eq!(rig.swap(2, X, b), Some(Reply::Refused));
    rig.write(3, c, KEY);
    let told = rig.swap(3, n, c);
    assert!(told.is_some());
    told != tail(n)
}

/// An append that was sent to the tail is executed, and the switch restarts before its answer comes. The client has asked about another
/// word: is it told that its entry is behind that, where it is not? (Its notice would say so, and the metadata server conclude that what
/// stands between was never appended.)
pub(crate) fn unknown_peers<R: Rules>(rules: R) -> bool {
    let (a, b) = (Entry(2, 0), Entry(3, 0));
    let mut rig = begun(rules, a);
    rig.write(2, b, KEY);
    let psn = rig.number(2);
    let packet = rig.pass_to_memory(2, psn, X, b);
    rig.switch.restart();
    let original = rig.execute(2, &packet);
    assert_eq!(rig.chain(X), [X, a, b]);
    let told = rig.pass_to_client(2, psn, original);
    // X and a are both in the same use of their slots, so nothing tells their words apart.
    let is_misled = told == tail(X);
    assert!(is_misled || told == Some(Reply::Indeterminate), "{told:?}");
    // However often it comes, and whoever else is known again by now.
    rig.connect(3);
    assert_eq!(rig.pass_to_client(2, psn, original), told);
    // Its connection begins anew, and what it asks then is answered as it is.
    rig.connect(2);
    let psn = rig.number(2);
    assert_eq!(rig.swap_as(2, psn, b, Entry(4, 0)), tail(b));
    is_misled
}

/// A key gets the place of another one, and the tail of its chain.
pub(crate) fn places<R: Rules>(rules: R) -> bool {
    let (a, s, y) = (Entry(2, 0), Entry(3, 0), Entry(9, 0));
    let mut rig = Rig::new(rules, 3, 1);
    rig.switch.admit(KEY);
    rig.words.insert(X.0, Word::tail(X.version()));
    rig.words.insert(y.0, Word::tail(y.version()));
    rig.write(1, a, KEY);
    rig.swap(1, X, a);
    rig.switch.evict(KEY);
    assert!(rig.switch.admit(OTHER));
    rig.write(2, s, OTHER);
    rig.swap(2, y, s);
    rig.chain(y) != [y, s]
}

/// A tail is known for so long that its slot may have been used 256 times since.
pub(crate) fn expires<R: Rules>(rules: R) -> bool {
    let (a, s, y) = (Entry(2, 0), Entry(3, 0), Entry(9, 0));
    let mut rig = begun(rules, a);
    // Somebody appends whom the switch does not see, again and again. By now the slot of a is one of another chain's.
    rig.words.insert(y.0, Word::tail(y.version()));
    rig.now = Nanos(2_000);
    rig.write(2, s, KEY);
    rig.swap(2, y, s);
    rig.words[&a.0].next == s.next()
}

#[test]
fn what_is_steered_stands_behind_the_true_tail_and_the_client_learns_which_that_is() {
    let (a, b, c) = (Entry(2, 3), Entry(3, 200), Entry(4, 0));
    let mut rig = begun(wire::AllRules, a);
    rig.write(2, b, KEY);
    rig.write(3, c, KEY);
    assert_eq!(rig.swap(2, X, b), steered(a));
    assert_eq!(rig.swap(3, X, c), steered(b));
    assert_eq!(rig.chain(X), [X, a, b, c]);
    let counters = rig.switch.counters();
    assert_eq!((counters.steered, counters.moved, counters.appended, counters.tails), (2, 2, 2, 1));
}

#[test]
fn a_client_that_is_right_about_the_tail_is_sent_where_it_wanted() {
    let (a, b) = (Entry(2, 0), Entry(3, 0));
    let mut rig = begun(wire::AllRules, a);
    rig.write(2, b, KEY);
    assert_eq!(rig.swap(2, a, b), steered(a));
    assert_eq!((rig.switch.counters().steered, rig.switch.counters().moved), (1, 0));
}

#[test]
fn several_appends_of_a_connection_are_outstanding_at_once() {
    let (a, b, c) = (Entry(2, 0), Entry(3, 0), Entry(4, 0));
    let mut rig = begun(wire::AllRules, a);
    rig.switch.admit(OTHER);
    rig.write(2, b, KEY);
    rig.write(2, c, KEY);
    assert_eq!(rig.swap(2, X, c), steered(a));
    assert_eq!(rig.swap(2, X, b), steered(c));
    assert_eq!(rig.chain(X), [X, a, c, b]);
}

#[test]
fn keys_that_are_not_held_are_left_alone() {
    let (a, b) = (Entry(2, 0), Entry(3, 0));
    let mut rig = begun(wire::AllRules, a);
    rig.write(2, b, OTHER);
    let found = Word::tail(X.version()).followed_by(a.next());
    assert_eq!(rig.swap(2, X, b), Some(Reply::Original(found.to_bits())), "it has lost, and is told so");
    assert_eq!(rig.chain(X), [X, a]);
}

#[test]
fn who_fails_without_being_steered_is_steered_when_it_tries_again() {
    let (a, b, c) = (Entry(2, 0), Entry(3, 0), Entry(4, 0));
    let mut rig = Rig::new(wire::AllRules, 3, 5);
    rig.switch.admit(KEY);
    rig.words.insert(X.0, Word::tail(X.version()));
    rig.write(1, a, KEY);
    rig.write(2, b, KEY);
    rig.write(3, c, KEY);
    assert_eq!(rig.swap(1, X, a), tail(X));
    rig.switch.forget();
    let found = Word::tail(X.version()).followed_by(a.next());
    rig.write(2, b, KEY);
    assert_eq!(rig.swap(2, X, b), Some(Reply::Original(found.to_bits())));
    rig.write(3, c, KEY);
    assert_eq!(rig.swap(3, a, c), tail(a), "this one teaches the tail");
    assert_eq!(rig.swap(2, a, b), steered(c), "the same entry, by another packet");
    assert_eq!(rig.chain(X), [X, a, c, b]);
}

#[test]
fn forgetting_changes_nothing_for_what_is_in_flight() {
    let (a, b, c) = (Entry(2, 0), Entry(3, 0), Entry(4, 0));
    let mut rig = begun(wire::AllRules, a);
    rig.write(2, b, KEY);
    rig.write(3, c, KEY);
    let psn = rig.number(2);
    let packet = rig.pass_to_memory(2, psn, X, b);
    rig.switch.forget();
    assert_eq!(rig.pass_to_memory(2, psn, X, b), packet, "it is rewritten as it was");
    let original = rig.execute(2, &packet);
    assert_eq!(rig.pass_to_client(2, psn, original), steered(a));
    assert_eq!(
        rig.pass_to_client(2, psn, original),
        steered(a),
        "and so is its acknowledgement, as often as it comes"
    );
    let view = rig.switch.append(client_end(2), psn).unwrap();
    assert_eq!((view.behind, view.state), (Some((a.at(), a.version())), AppendState::Appended));
    let told = rig.swap(3, b, c);
    assert_eq!(told, tail(b), "nobody knows the tail");
}

#[test]
fn a_tail_that_has_stood_for_long_needs_no_record() {
    let (a, b, c) = (Entry(2, 0), Entry(3, 0), Entry(4, 0));
    let mut rig = begun(wire::AllRules, a);
    rig.write(2, b, KEY);
    assert_eq!(rig.swap(2, X, b), steered(a));
    // The client goes on with other keys, for more than a window.
    for unit in 20..40 {
        rig.words.insert(100, Word::tail(X.version()));
        rig.write(2, Entry(unit, 0), OTHER);
        rig.swap(2, Entry(100, 0), Entry(unit, 0));
    }
    rig.write(3, c, KEY);
    assert_eq!(rig.swap(3, X, c), steered(b));
}

#[test]
fn whoever_stands_behind_a_broken_connection_is_indeterminate() {
    let (a, b, c, d) = (Entry(2, 0), Entry(3, 0), Entry(4, 0), Entry(5, 0));
    let mut rig = begun(wire::AllRules, a);
    for (client, entry) in [(2, b), (3, c)] {
        rig.write(client, entry, KEY);
    }
    let psn = rig.number(2);
    rig.pass_to_memory(2, psn, X, b);
    let second = rig.number(3);
    let behind = rig.pass_to_memory(3, second, X, c);
    let original = rig.execute(3, &behind);
    assert_eq!(rig.pass_to_client(3, second, original), None);
    rig.switch.disconnect(client_end(2));
    assert_eq!(rig.pass_to_client(3, second, original), Some(Reply::Indeterminate));
    assert_eq!(rig.switch.tail(KEY), None);
    rig.write(1, d, KEY);
    assert_eq!(rig.swap(1, a, d), tail(a), "nothing was ever behind it");
}

#[test]
fn a_nak_that_ends_a_connection_leaves_it_indeterminate() {
    use wire::roce::{Aeth, Extension, NakCode, Opcode, Packet, Syndrome};
    let (a, b) = (Entry(2, 0), Entry(3, 0));
    let mut rig = begun(wire::AllRules, a);
    rig.write(2, b, KEY);
    let psn = rig.number(2);
    let packet = rig.pass_to_memory(2, psn, X, b);
    let original = rig.execute(2, &packet);
    let nak = |code| {
        let aeth = Aeth { syndrome: Syndrome::Nak(code), messages: 0 };
        Packet::new(Opcode::Acknowledge, client_end(2).queue_pair, psn, Extension::Aeth(aeth))
    };
    let now = rig.now;
    let mut nak = |code| {
        let before = nak(code);
        let mut packet = before;
        _ = rig.switch.on_packet(now, client_end(2).node, &mut packet, &[]);
        assert_eq!(packet, before, "it goes on as it is");
        rig.pass_to_client(2, psn, original)
    };
    assert_eq!(nak(NakCode::SequenceError), steered(a), "the packet comes again, and is rewritten as it was");
    assert_eq!(nak(NakCode::RemoteAccess), Some(Reply::Indeterminate));
}

#[test]
fn the_hottest_keys_are_held() {
    use switch::chains::{Steering, SteeringConfig};
    let config = SteeringConfig {
        top: 4,
        keys: 1_000,
        connections: 1,
        window: 8,
        slots: 256,
        ..SteeringConfig::default()
    };
    let mut rig = Rig::new(wire::AllRules, 1, 1);
    rig.switch = Steering::new(&config).unwrap();
    rig.connect(1);
    // Keys 100 to 103 are hot, those below are written once in a while; the cold ones come first.
    for round in 0..10_000_u32 {
        let key =
            if round < 50 || round % 4 == 0 { u64::from(round % 97) } else { 100 + u64::from(round % 4) };
        rig.write(1, Entry(1 + round % 50, 0), key);
    }
    let held: Vec<u64> = (0..200).filter(|key| rig.switch.holds(*key)).collect();
    assert_eq!(rig.switch.held(), 4);
    assert_eq!(held.iter().filter(|key| **key >= 100).count(), 3, "{held:?}: those that were hot");
}

/// Something that is not a step of an append leaves as it came.
#[test]
fn other_packets_pass_as_they_are() {
    use wire::roce::{AtomicEth, Extension, Key, Opcode, Packet, Psn, Reth};
    let mut rig = begun(wire::AllRules, Entry(2, 0));
    let to = crate::chains::rig::write_packet(2, Psn::new(0), X).to;
    let mut number = 5;
    let word = Word::tail(X.version());
    let swap = word.followed_by(Next::Entry(Entry(3, 0).at(), Entry(3, 0).version())).to_bits();
    let atomic = |address, key, compare, swap_or_add| {
        Extension::Atomic(AtomicEth { address, key, compare, swap_or_add })
    };
    let reth = |address, key| Extension::Reth(Reth { address, key, length: 64 });
    let (base, region) = (crate::chains::rig::BASE, crate::chains::rig::REGION);
    for (opcode, extension) in [
        (Opcode::FetchAdd, atomic(base + 64, region, 0, 1)),
        (Opcode::CompareSwap, atomic(base + 64, Key(3), word.to_bits(), swap)),
        (Opcode::CompareSwap, atomic(base + 64, region, 1, swap)),
        (Opcode::CompareSwap, atomic(base + 64, region, word.to_bits(), 0)),
        (Opcode::CompareSwap, atomic(base + 64, region, word.to_bits(), swap | 1 << 11)),
        (Opcode::WriteOnly, reth(base - 64, region)),
        (Opcode::WriteOnly, reth(base + 1, region)),
        (Opcode::WriteOnly, reth(u64::MAX, region)),
        (Opcode::WriteFirst, reth(base + 64, Key(3))),
        (Opcode::ReadRequest, reth(base + 64, region)),
        (Opcode::SendOnly, Extension::Plain),
    ] {
        number += 1;
        let before = Packet::new(opcode, to, Psn::new(number), extension);
        for head in [&[][..], &[0; 7], &[0xff; 32], &[0; 32]] {
            let mut packet = before;
            let action = rig.switch.on_packet(Nanos(2), crate::chains::rig::MEMORY, &mut packet, head);
            assert_eq!((action, packet), (switch::chains::Action::Forward, before));
        }
    }
}

#[test]
fn a_tail_that_somebody_has_found_is_appended_to_at_once_and_one_that_was_none_does_no_harm() {
    let (a, b, c, d) = (Entry(2, 0), Entry(3, 0), Entry(4, 0), Entry(5, 0));
    let mut rig = begun(wire::AllRules, a);
    rig.switch.restart();
    (1..=3).for_each(|client| rig.connect(client));
    assert!(rig.switch.preload(KEY, a.at(), a.version()));
    assert!(!rig.switch.preload(KEY, X.at(), X.version()), "what is known stays");
    rig.write(2, b, KEY);
    assert_eq!(rig.swap(2, X, b), steered(a));
    rig.switch.forget();
    assert!(rig.switch.preload(KEY, a.at(), a.version()), "b stands behind it, but who knows?");
    rig.write(3, c, KEY);
    assert_eq!(rig.swap(3, X, c), Some(Reply::Refused));
    let (c, found) = (Entry(c.0, 1), Word::tail(X.version()).followed_by(a.next()));
    rig.write(3, c, KEY);
    assert_eq!(rig.swap(3, X, c), Some(Reply::Original(found.to_bits())), "nothing is known any more");
    assert_eq!(rig.swap(3, b, c), tail(b));
    rig.write(2, d, KEY);
    assert_eq!(rig.swap(2, b, d), steered(c));
    assert_eq!(rig.chain(X), [X, a, b, c, d]);
}
