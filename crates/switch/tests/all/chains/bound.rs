//! Where words are bound to queue pairs, and appends become WRITEs: step by step, each rule with what goes wrong without it. True means that
//! it went wrong.

use switch::chains::{Binding, Unsteered};
use wire::chains::{Next, Reply, Word};
use wire::roce::NakCode;
use wire::{AllRules, Rules};

use crate::chains::bed::{Bed, Does};
use crate::chains::rig::{Entry, client_end};
use crate::chains::scenarios::X;

const KEY: u64 = 7;
const OTHER: u64 = 8;

pub(crate) const WRITES: Binding = Binding { writes: true, window: 16, atomics: 8, ..Binding::ONE };
pub(crate) const ATOMICS: Binding = Binding { writes: false, ..WRITES };

fn steered(behind: Entry) -> Option<Reply> {
    Some(Reply::Steered(behind.at(), behind.version()))
}

fn tail(entry: Entry) -> Option<Reply> {
    Some(Reply::Original(Word::tail(entry.version()).to_bits()))
}

/// A chain that begins with X, whose key is held, and an entry behind it that has taught the switch the tail.
fn begun<R: Rules>(rules: R, binding: Binding, taught: Entry) -> Bed<R> {
    let mut bed = Bed::new(rules, 3, binding);
    assert!(bed.switch.admit(KEY));
    bed.words.insert(X.0, Word::tail(X.version()));
    bed.write(1, taught, KEY);
    assert_eq!(bed.swap(1, X, taught.next()), tail(X), "nobody knows the tail yet");
    assert_eq!(bed.switch.tail(KEY), Some((taught.at(), taught.version())));
    bed.told.clear();
    bed
}

/// A queue pair that is older than the switch changes a word beside the bound one.
pub(crate) fn all_are_bound<R: Rules>(rules: R) -> bool {
    let (a, b, n) = (Entry(2, 5), Entry(3, 0), Entry(8, 0));
    let mut bed = begun(rules, WRITES, a);
    bed.write(2, b, KEY);
    let psn = bed.number(2);
    bed.ask(2, psn, X, b.next());
    // The WRITE of b is in flight when a client appends of whom the switch does not know.
    bed.words.insert(n.0, Word::tail(n.version()));
    let unknown_peer = bed.number(9);
    let passed = bed.ask(9, unknown_peer, a, n.next()).expect("something goes on in its queue pair");
    if let wire::roce::Extension::Atomic(_) = passed.extension {
        bed.words.insert(a.0, Word::tail(a.version()).followed_by(n.next()));
    }
    let before = bed.chain(X);
    bed.settle();
    let after = bed.chain(X);
    before.iter().any(|entry| !after.contains(entry))
}

/// A client is told of its second operation, which tells its NIC that the first was executed.
pub(crate) fn fillers<R: Rules>(rules: R) -> bool {
    let (a, b) = (Entry(2, 5), Entry(3, 0));
    let mut bed = begun(rules, ATOMICS, a);
    bed.write(2, b, KEY);
    // A WRITE of another operation is lost behind the switch.
    bed.number(2);
    let psn = bed.number(2);
    bed.ask(2, psn, X, b.next());
    bed.settle();
    let is_early = !bed.told.is_empty();
    assert_eq!(bed.fill(2, psn), steered(a), "the WRITE has come again, and what stands for the atomic");
    is_early
}

/// An append takes two numbers, and its own success lets it fail.
pub(crate) fn numbers<R: Rules>(rules: R) -> bool {
    let (a, b) = (Entry(2, 5), Entry(3, 0));
    let mut bed = begun(rules, ATOMICS, a);
    bed.write(2, b, KEY);
    let psn = bed.number(2);
    bed.ask(2, psn, X, b.next());
    // It arrives, and its answer is lost.
    let wire = *bed.wires.first().expect("it is in flight");
    bed.deliver(wire);
    bed.wires.clear();
    bed.ask(2, psn, X, b.next());
    bed.settle();
    if bed.told.is_empty()
        && let Some(Reply::Refused) = bed.fill(2, psn)
    {
        return bed.chain(X).contains(&b);
    }
    // The memory replays, whenever the switch asks again.
    bed.answer(wire.0, wire.1);
    assert_eq!(bed.told.pop().map(|(.., reply)| reply).or_else(|| bed.fill(2, psn)), steered(a));
    false
}

/// A client has gone, and long after that its append is executed.
pub(crate) fn holes<R: Rules>(rules: R) -> bool {
    let (a, b, c) = (Entry(2, 5), Entry(3, 0), Entry(4, 0));
    let mut bed = begun(rules, ATOMICS, a);
    bed.write(2, b, KEY);
    let psn = bed.number(2);
    bed.ask(2, psn, X, b.next());
    bed.wires.clear();
    bed.switch.disconnect(client_end(2));
    bed.take_sent();
    bed.wires.clear();
    // Whatever was in flight has arrived by now, or never will. Another append finds the gap.
    bed.write(3, c, OTHER);
    bed.words.insert(9, Word::tail(X.version()));
    let psn = bed.number(3);
    bed.ask(3, psn, Entry(9, 0), c.next());
    bed.nak(*bed.bound.first_key_value().unwrap().0, NakCode::SequenceError);
    bed.settle();
    assert_eq!(bed.fill(3, psn), tail(Entry(9, 0)), "the gap is filled");
    bed.chain(X).contains(&b)
}

/// What a bound queue pair had in flight is taken for executed by the next one.
pub(crate) fn anew<R: Rules>(rules: R) -> bool {
    let (a, b) = (Entry(2, 5), Entry(3, 0));
    let mut bed = begun(rules, WRITES, a);
    bed.write(2, b, KEY);
    let psn = bed.number(2);
    bed.ask(2, psn, X, b.next());
    bed.begin_anew(0);
    bed.ask(2, psn, X, b.next());
    bed.settle();
    let told = bed.fill(2, psn);
    told == steered(a) && !bed.chain(X).contains(&b)
}

/// Somebody appends whom the switch does not steer, and is overwritten.
pub(crate) fn nothing_sent<R: Rules>(rules: R) -> bool {
    let (a, b, n) = (Entry(2, 5), Entry(3, 0), Entry(8, 0));
    let mut bed = begun(rules, WRITES, a);
    // Its entry was written before the switch was there.
    bed.words.insert(n.0, Word::tail(n.version()));
    bed.write(2, b, KEY);
    assert_eq!(bed.swap(3, a, n.next()), tail(a));
    assert_eq!(bed.chain(X), [X, a, n]);
    let told = bed.swap(2, X, b.next());
    let is_lost = bed.chain(X) != [X, a, n];
    assert!(is_lost || told == Some(Reply::Refused));
    is_lost
}

/// An append fails, its slot is used anew, and what stands behind it arrives.
pub(crate) fn acknowledged<R: Rules>(rules: R) -> bool {
    let (a, n, b, c) = (Entry(2, 5), Entry(8, 0), Entry(3, 0), Entry(4, 0));
    let mut bed = begun(rules, WRITES, a);
    bed.words.insert(n.0, Word::tail(n.version()));
    assert_eq!(bed.swap(3, a, n.next()), tail(a));
    bed.write(2, b, KEY);
    bed.write(1, c, KEY);
    let (second, third) = (bed.number(2), bed.number(1));
    bed.ask(2, second, X, b.next());
    bed.ask(1, third, X, c.next());
    // The append of b arrives, and that of c stays in flight.
    let wire = *bed.wires.iter().find(|wire| matches!(wire.2, Does::Swap { unit: 2, .. })).unwrap();
    bed.deliver(wire);
    bed.wires.remove(&wire);
    bed.answer(wire.0, wire.1);
    assert_eq!(bed.fill(2, second), Some(Reply::Refused));
    let b = Entry(b.0, b.1 + 1);
    bed.write(2, b, KEY);
    bed.settle();
    assert_eq!(bed.fill(1, third), Some(Reply::Refused), "what c stands behind was refused");
    bed.words[&b.0] != Word::tail(b.version())
}

#[test]
fn appends_go_to_the_true_tail_on_the_bound_queue_pair_and_leave_no_gap_in_their_own() {
    use wire::roce::{Extension, Opcode};
    let (a, b, c) = (Entry(2, 5), Entry(3, 200), Entry(4, 0));
    let mut bed = begun(AllRules, ATOMICS, a);
    bed.write(2, b, KEY);
    bed.write(3, c, KEY);
    let psn = bed.number(2);
    let filler = bed.ask(2, psn, X, b.next()).unwrap();
    let Extension::Reth(reth) = filler.extension else { panic!("{filler:?}") };
    assert_eq!((filler.opcode, filler.psn, reth.length), (Opcode::ReadRequest, psn, 0));
    assert_eq!(bed.fill(2, psn), None, "the append is not acknowledged yet");
    bed.settle();
    assert_eq!(bed.told.pop().map(|(.., reply)| reply), steered(a));
    assert_eq!(bed.swap(3, X, c.next()), steered(b));
    assert_eq!(bed.chain(X), [X, a, b, c]);
    let counters = bed.switch.counters();
    assert_eq!((counters.bound, counters.written, counters.moved, counters.appended), (3, 0, 2, 2));
}

#[test]
fn an_append_to_an_acknowledged_tail_is_a_write_and_others_are_not() {
    let (a, b, c, d) = (Entry(2, 5), Entry(3, 200), Entry(4, 0), Entry(5, 0));
    let mut bed = begun(AllRules, WRITES, a);
    for (client, entry) in [(2, b), (3, c), (1, d)] {
        bed.write(client, entry, KEY);
    }
    let (second, third) = (bed.number(2), bed.number(3));
    bed.ask(2, second, X, b.next());
    bed.ask(3, third, X, c.next());
    let does: Vec<Does> = bed.wires.iter().map(|wire| wire.2).collect();
    assert!(does.iter().any(|does| matches!(does, Does::Write { unit: 2, .. })), "{does:?}");
    assert!(does.iter().any(|does| matches!(does, Does::Swap { unit: 3, .. })), "b is not acknowledged");
    bed.settle();
    assert_eq!([bed.fill(2, second), bed.fill(3, third)], [steered(a), steered(b)]);
    assert_eq!(bed.swap(1, X, d.next()), steered(c));
    assert_eq!(bed.chain(X), [X, a, b, c, d]);
    assert_eq!(bed.switch.counters().written, 2);
}

#[test]
fn whoever_loses_without_being_steered_is_told_what_the_word_was() {
    let (a, n) = (Entry(2, 5), Entry(8, 0));
    let mut bed = begun(AllRules, WRITES, a);
    bed.write(2, n, OTHER);
    let found = Word::tail(X.version()).followed_by(a.next());
    assert_eq!(bed.swap(2, X, n.next()), Some(Reply::Original(found.to_bits())));
}

#[test]
fn a_chain_that_is_closed_stays_closed() {
    let (a, b) = (Entry(2, 5), Entry(3, 0));
    let mut bed = begun(AllRules, WRITES, a);
    bed.write(2, b, KEY);
    assert_eq!(bed.swap(3, a, Next::Closed), tail(a));
    assert_eq!(bed.swap(2, X, b.next()), Some(Reply::Refused));
    assert_eq!(bed.words[&a.0].next, Next::Closed);
}

#[test]
fn a_lost_write_is_sent_again_when_its_client_asks_or_the_memory() {
    let (a, b, c) = (Entry(2, 5), Entry(3, 0), Entry(4, 0));
    for by_memory in [false, true] {
        let mut bed = begun(AllRules, WRITES, a);
        bed.switch.admit(OTHER);
        bed.words.insert(9, Word::tail(X.version()));
        bed.write(2, b, KEY);
        bed.write(3, c, OTHER);
        let (second, third) = (bed.number(2), bed.number(3));
        bed.ask(2, second, X, b.next());
        let before = std::mem::take(&mut bed.wires);
        bed.ask(3, third, Entry(9, 0), c.next());
        bed.settle();
        assert_eq!(bed.chain(X), [X, a], "what comes behind the lost one waits");
        if by_memory {
            bed.nak(*bed.bound.first_key_value().unwrap().0, NakCode::SequenceError);
        } else {
            bed.ask(2, second, X, b.next());
        }
        assert!(bed.wires.is_superset(&before), "it is what it was");
        bed.settle();
        assert_eq!([bed.fill(2, second), bed.fill(3, third)], [steered(a), tail(Entry(9, 0))]);
        assert_eq!(bed.chain(X), [X, a, b]);
    }
}

#[test]
fn a_lost_acknowledgement_of_a_write_is_made_good_by_a_later_one() {
    let (a, b, c) = (Entry(2, 5), Entry(3, 0), Entry(4, 0));
    let mut bed = begun(AllRules, WRITES, a);
    bed.write(2, b, KEY);
    bed.write(3, c, OTHER);
    bed.words.insert(9, Word::tail(X.version()));
    let psn = bed.number(2);
    bed.ask(2, psn, X, b.next());
    let wire = *bed.wires.first().unwrap();
    bed.deliver(wire);
    bed.wires.clear();
    assert_eq!(bed.fill(2, psn), None);
    assert_eq!(bed.swap(3, Entry(9, 0), c.next()), tail(Entry(9, 0)));
    bed.told.clear();
    bed.ask(2, psn, X, b.next());
    assert_eq!(bed.told.pop().map(|(.., reply)| reply), steered(a));
}

#[test]
fn a_packet_that_was_refused_for_good_ends_the_bound_queue_pair_and_all_is_indeterminate_until_the_next() {
    let (a, b, c) = (Entry(2, 5), Entry(3, 0), Entry(4, 0));
    let mut bed = begun(AllRules, WRITES, a);
    bed.write(2, b, KEY);
    let psn = bed.number(2);
    bed.ask(2, psn, X, b.next());
    bed.nak(*bed.bound.first_key_value().unwrap().0, NakCode::RemoteAccess);
    assert_eq!(bed.switch.unbound().collect::<Vec<_>>(), [0]);
    assert_eq!(bed.fill(2, psn), Some(Reply::Indeterminate));
    bed.write(3, c, KEY);
    assert_eq!(bed.swap(3, a, c.next()), Some(Reply::Indeterminate), "it reaches no word");
    assert_eq!(bed.switch.counters().unsteered(Unsteered::UnknownPeer), 1);
    bed.bind_all();
    bed.write(3, c, KEY);
    assert_eq!(bed.swap(3, a, c.next()), tail(a));
    assert_eq!(bed.chain(X), [X, a, c]);
}

/// A chain in which b was put behind a by a WRITE that is in flight, and no capacity for another atomic.
fn crowded<R: Rules>(rules: R, binding: Binding) -> Bed<R> {
    let (a, b) = (Entry(2, 5), Entry(3, 0));
    let mut bed = begun(rules, binding, a);
    bed.write(2, b, KEY);
    let psn = bed.number(2);
    bed.ask(2, psn, X, b.next());
    bed
}

/// An append to another chain, which is not steered: an atomic.
fn ask_elsewhere<R: Rules>(bed: &mut Bed<R>, unit: u32) {
    let (y, o) = (Entry(unit, 0), Entry(unit + 20, 0));
    bed.words.insert(y.0, Word::tail(y.version()));
    bed.words.insert(o.0, Word::tail(o.version()));
    let psn = bed.number(1);
    bed.ask(1, psn, y, o.next());
}

/// Somebody appends on a queue pair of its own, and is overwritten by a WRITE that is in flight.
pub(crate) fn overflows<R: Rules>(rules: R) -> bool {
    use wire::roce::Extension;
    let (a, n) = (Entry(2, 5), Entry(8, 0));
    let mut bed = crowded(rules, Binding { atomics: 1, ..WRITES });
    ask_elsewhere(&mut bed, 9);
    // Its entry was written before the switch was there.
    bed.words.insert(n.0, Word::tail(n.version()));
    let psn = bed.number(3);
    let packet = bed.ask(3, psn, a, n.next()).unwrap();
    assert_eq!(bed.switch.counters().crowded, 1);
    if let Extension::Atomic(_) = packet.extension {
        bed.execute(3, &packet);
    }
    let is_there = bed.chain(X).contains(&n);
    if !is_there {
        assert_eq!(bed.fill(3, psn), None);
    }
    bed.settle();
    if !is_there {
        // It was let in as soon as there was capacity, and has lost.
        assert_eq!(bed.switch.counters().let_in, 1);
        let found = Word::tail(a.version()).followed_by(Entry(3, 0).next());
        let told = bed.told.iter().find(|told| told.0 == 3).map(|(.., reply)| *reply);
        assert_eq!(told, Some(Reply::Original(found.to_bits())));
    }
    is_there && !bed.chain(X).contains(&n)
}

#[test]
fn who_waits_for_room_is_let_in_once_however_often_it_is_asked_for_and_never_when_its_client_is_gone() {
    for is_gone in [false, true] {
        let (a, n) = (Entry(2, 5), Entry(8, 0));
        let mut bed = crowded(AllRules, Binding { atomics: 1, ..WRITES });
        ask_elsewhere(&mut bed, 9);
        let before = bed.switch.counters().bound;
        bed.words.insert(n.0, Word::tail(n.version()));
        let psn = bed.number(3);
        for _ in 0..3 {
            assert!(bed.ask(3, psn, a, n.next()).is_some());
        }
        if is_gone {
            bed.switch.disconnect(crate::chains::rig::client_end(3));
        }
        bed.settle();
        let (counters, once) = (bed.switch.counters(), u64::from(!is_gone));
        assert_eq!((counters.crowded, counters.let_in, counters.bound), (3, once, before + once));
    }
}

#[test]
fn who_finds_no_room_passes_no_turn_over() {
    let mut bed = crowded(AllRules, Binding { atomics: 2, ..WRITES });
    (9..12).for_each(|unit| ask_elsewhere(&mut bed, unit));
    let counts = |bed: &Bed<AllRules>| {
        let counters = bed.switch.counters();
        (counters.crowded, counters.let_in, bed.wires.len())
    };
    assert_eq!(counts(&bed), (1, 0, 3), "a WRITE and two atomics; the third one waits");
    // The WRITE arrives, and the older one of the two.
    assert!(bed.arrive() && bed.arrive());
    assert_eq!(counts(&bed), (1, 1, 2), "its turn is free, and whoever waits finds that at once");
}

#[test]
fn writes_take_no_room_of_atomics() {
    let mut bed = crowded(AllRules, Binding { atomics: 2, ..WRITES });
    let counts = |bed: &Bed<AllRules>| {
        let counters = bed.switch.counters();
        (counters.crowded, counters.most_atomics, counters.most_in_flight)
    };
    ask_elsewhere(&mut bed, 9);
    ask_elsewhere(&mut bed, 10);
    assert_eq!(counts(&bed), (0, 2, 3), "one of the three is a WRITE");
    ask_elsewhere(&mut bed, 11);
    assert_eq!(counts(&bed), (1, 2, 3), "the memory could not replay this one, too");
    bed.settle();
    for unit in 12..40 {
        ask_elsewhere(&mut bed, unit);
        bed.settle();
    }
    assert_eq!(counts(&bed), (1, 2, 3), "turns come round");
}

#[test]
fn an_atomic_that_the_memory_could_not_replay_goes_on_its_clients_own_queue_pair() {
    let (a, b, c) = (Entry(2, 5), Entry(3, 0), Entry(4, 0));
    let mut bed = crowded(AllRules, Binding { atomics: 1, ..ATOMICS });
    bed.write(3, c, KEY);
    let psn = bed.number(3);
    let packet = bed.ask(3, psn, X, c.next()).unwrap();
    assert_eq!(bed.switch.counters().crowded, 1);
    let atomics = bed.wires.iter().filter(|wire| matches!(wire.2, Does::Swap { .. })).count();
    assert_eq!(atomics, 1, "the other number is passed over");
    assert_eq!(bed.ask(3, psn, X, c.next()), Some(packet), "copies are alike");
    bed.settle();
    let told = bed.execute(3, &packet);
    assert_eq!(bed.chain(X), [X, a, b, c]);
    assert_eq!(told, steered(b));
}

#[test]
fn atomics_that_are_no_step_of_the_stores_reach_no_word() {
    use wire::roce::{AtomicEth, Extension, Opcode, Packet};
    let mut bed = begun(AllRules, WRITES, Entry(2, 5));
    let to = crate::chains::rig::memory_end(2).queue_pair;
    for (opcode, compare, swap_or_add, address) in
        [(Opcode::FetchAdd, 0, 1, 64), (Opcode::CompareSwap, 0, 1, 64), (Opcode::CompareSwap, 0, 1 << 28, 65)]
    {
        let address = crate::chains::rig::BASE + address;
        let word = AtomicEth { address, key: crate::chains::rig::REGION, compare, swap_or_add };
        let psn = bed.number(2);
        let mut packet = Packet::new(opcode, to, psn, Extension::Atomic(word));
        let action = bed.switch.on_packet(wire::Nanos(1), crate::chains::rig::MEMORY, &mut packet, &[]);
        assert_eq!(action, switch::chains::Action::Drop);
    }
    assert_eq!(bed.switch.counters().unsteered(Unsteered::Unbindable), 3);
}
