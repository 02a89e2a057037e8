//! How a client gets to a tail that is somewhere else, and a metadata server.
//!
//! What must always hold: who learns of an entry that somebody else has passed does not throw the others back.

use chain::client::{Client, ClientConfig, Effect, OpId, Request, Walk};
use chain::metadata::{self, CallId, ClientId, Metadata};
use chain::{Answer, Appended, Call, Outcome, Replica, Verb};
use wire::Nanos;
use wire::chains::{Class, EntryHead, EntryKind, EntryVersion, Location, Next, Word};

const KEY: u64 = 5;
const VERSION: EntryVersion = EntryVersion(0);

fn place(number: u32) -> Location {
    Location::new(Class::new(0).unwrap(), 1 + number)
}

fn head(next: Option<u32>) -> EntryHead {
    let next = next.map_or(Next::Tail, |next| Next::Entry(place(next), VERSION));
    let word = Word::tail(VERSION).followed_by(next);
    EntryHead { word, key: KEY, at: place(0), len: 8, kind: EntryKind::Value }
}

fn read(next: Option<u32>) -> Outcome {
    Outcome::Read(Some(head(next)))
}

fn swapped(next: Option<u32>) -> Outcome {
    Outcome::Swapped(head(next).word.to_bits())
}

/// A client that takes entry 0 for the tail, and has slots.
struct Rig {
    client: Client,
    out: Vec<Effect>,
}

impl Rig {
    fn new(walk: Walk) -> Self {
        let config = ClientConfig { lease: Nanos::from_millis(1), slots: 4, cursors: 8 };
        Self { client: Client::new(config).walking(walk), out: Vec::new() }
    }

    fn begin(&mut self, op: u64, request: Request) -> Effect {
        self.client.begin(Nanos(1), OpId(op), KEY, request, &mut self.out);
        self.out.pop().unwrap()
    }

    fn outcome(&mut self, op: u64, outcome: Outcome) -> Effect {
        self.client.on_outcome(Nanos(2), OpId(op), outcome, &mut self.out);
        self.out.pop().unwrap()
    }

    fn answer(&mut self, op: u64, answer: Answer) -> Effect {
        self.client.on_answer(Nanos(2), OpId(op), Some(answer), &mut self.out);
        self.out.pop().unwrap()
    }

    /// A put whose compare-and-swap is in flight.
    fn put(&mut self, op: u64) -> Verb {
        self.begin(op, Request::Put(8));
        let slots = (50..54).map(|number| (place(number), VERSION)).collect();
        self.answer(op, Answer::Slots(slots));
        assert_eq!(self.outcome(op, Outcome::Written), Effect::Call(OpId(op), Call::Find { key: KEY }));
        verb(self.answer(op, Answer::Found(place(0), VERSION)))
    }
}

fn verb(effect: Effect) -> Verb {
    match effect {
        Effect::Verb(_, _, verb) => verb,
        other => panic!("{other:?}"),
    }
}

fn target(verb: Verb) -> Location {
    match verb {
        Verb::CompareSwap { at, .. } => at,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_append_tries_at_each_entry_that_it_learns_of() {
    let mut rig = Rig::new(Walk::default());
    assert_eq!(target(rig.put(1)), place(0));
    for next in 1..20 {
        assert_eq!(target(verb(rig.outcome(1, swapped(Some(next))))), place(next));
    }
}

#[test]
fn an_append_reads_its_way_to_the_tail_once_a_swap_has_failed() {
    let mut rig = Rig::new(Walk { appends_read: true, ..Walk::default() });
    assert_eq!(target(rig.put(1)), place(0));
    assert_eq!(verb(rig.outcome(1, swapped(Some(1)))), Verb::Read(place(1)));
    assert_eq!(verb(rig.outcome(1, read(Some(2)))), Verb::Read(place(2)));
    assert_eq!(target(verb(rig.outcome(1, read(None)))), place(2));
    // Too late again: it reads again.
    assert_eq!(verb(rig.outcome(1, swapped(Some(3)))), Verb::Read(place(3)));
}

#[test]
fn who_has_followed_many_entries_asks_the_metadata_server() {
    let mut rig = Rig::new(Walk { ask_after: 3, ..Walk::default() });
    rig.begin(1, Request::Get);
    assert_eq!(verb(rig.answer(1, Answer::Found(place(0), VERSION))), Verb::Read(place(0)));
    rig.outcome(1, read(Some(1)));
    rig.outcome(1, read(Some(2)));
    assert_eq!(rig.outcome(1, read(Some(3))), Effect::Call(OpId(1), Call::Find { key: KEY }));
    assert_eq!(verb(rig.answer(1, Answer::Found(place(9), VERSION))), Verb::Read(place(9)));
}

#[test]
fn who_lags_behind_takes_what_another_has_learned() {
    let mut rig = Rig::new(Walk::default());
    rig.begin(1, Request::Get);
    rig.answer(1, Answer::Found(place(0), VERSION));
    // Another one comes by, and goes further.
    assert_eq!(verb(rig.begin(2, Request::Get)), Verb::Read(place(0)));
    assert_eq!(verb(rig.outcome(2, read(Some(1)))), Verb::Read(place(1)));
    assert_eq!(verb(rig.outcome(2, read(Some(2)))), Verb::Read(place(2)));
    // The first one would go to entry 1.
    assert_eq!(verb(rig.outcome(1, read(Some(1)))), Verb::Read(place(2)));
    assert_eq!(verb(rig.begin(3, Request::Get)), Verb::Read(place(2)), "nobody is thrown back");
}

#[test]
fn a_walk_that_is_answered_so_late_that_its_slot_is_the_tail_again_looks_once_more() {
    // Two slots, each used again at once after a short quarantine.
    let config = metadata::MetadataConfig {
        units: 2,
        quarantine: Nanos(10),
        timeout: Nanos(1000),
        decide_after: Nanos::ZERO,
    };
    let (mut server, mut out) = (Metadata::new(config), Vec::new());
    let (client, class, mut number) = (ClientId(1), Class::new(0).unwrap(), 0);
    let mut call = |server: &mut Metadata, now, call| {
        number += 1;
        server.on_call(Nanos(now), CallId { client, number }, call, &mut out);
        match out.pop() {
            Some(metadata::Effect::Answer(_, answer)) => answer,
            other => panic!("{other:?}"),
        }
    };
    let Answer::Slots(slots) = call(&mut server, 1, Call::Slots { class, count: 2 }) else { panic!() };
    let [(first, version), (second, _)] = slots[..] else { panic!("{slots:?}") };
    assert_eq!(call(&mut server, 1, Call::Create { key: KEY, at: first, version }), Answer::Created);
    let mut effects = Vec::new();
    server.scan(KEY, &mut effects);
    let read = metadata::Effect::Verb(KEY, Replica::FIRST, Verb::Read(first));
    assert_eq!(effects, std::slice::from_ref(&read));
    // While that is in flight: the other slot is appended, and then the first one again.
    let kind = EntryKind::Value;
    let notice = Appended { key: KEY, behind: first, at: second, version, kind };
    server.on_notice(Nanos(2), client, notice, &mut effects);
    let Answer::Slots(slots) = call(&mut server, 20, Call::Slots { class, count: 1 }) else { panic!() };
    assert_eq!(slots, [(first, version.next())]);
    let notice = Appended { key: KEY, behind: second, at: first, version: version.next(), kind };
    server.on_notice(Nanos(21), client, notice, &mut effects);
    assert_eq!(server.tail(KEY), Some((first, version.next())));
    effects.clear();
    let head = EntryHead { word: Word::tail(version), key: KEY, at: first, len: 8, kind };
    server.on_outcome(Nanos(22), KEY, Outcome::Read(Some(head)), &mut effects);
    assert_eq!(effects, [read]);
}
