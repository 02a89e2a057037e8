//! What a read proves of a cursor: where a switch may have sent the read somewhere else, nothing.

use chain::client::{Client, Config, Effect, OpId, Request};
use chain::{Answer, Call, Outcome, Verb};
use wire::Nanos;
use wire::chain::{Class, EntryHead, EntryKind, EntryVersion, Location, Word};

const KEY: u64 = 7;
const LEASE: u64 = 300;

/// A client finds a key at time 1, reads it at 200, and reads it again at 400: does it ask where it is?
fn asks_again(steered: bool) -> bool {
    let mut client: Client = Client::new(Config { lease: Nanos(LEASE), slots: 1, cursors: 4 });
    if steered {
        client.expect_steered_reads();
    }
    let at = Location::new(Class::new(0).unwrap(), 5);
    let mut get = |now: u64, version| {
        let (op, mut out) = (OpId(now), Vec::new());
        client.begin(Nanos(now), op, KEY, Request::Get, &mut out);
        let mut asked = false;
        if let Effect::Call(_, Call::Find { .. }) = out[0] {
            asked = true;
            out.clear();
            client.on_answer(Nanos(now), op, Some(Answer::Found(at, EntryVersion(3))), &mut out);
        }
        assert_eq!(out, [Effect::Verb(op, Verb::Read(at))]);
        let word = Word::tail(EntryVersion(version));
        let head = EntryHead { word, key: KEY, len: 8, kind: EntryKind::Value };
        out.clear();
        client.on_outcome(Nanos(now), op, Outcome::Read(Some(head)), &mut out);
        assert!(matches!(out[..], [Effect::Done { .. }]), "{out:?}");
        asked
    };
    assert!(get(1, 3));
    // What comes may be another entry of the key, in the other case.
    assert!(!get(200, if steered { 9 } else { 3 }));
    get(1 + LEASE, 3)
}

#[test]
fn a_read_prolongs_a_cursor_only_if_it_was_of_the_entry_that_was_asked_for() {
    assert!(!asks_again(false));
    assert!(asks_again(true));
}
