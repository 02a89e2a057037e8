//! What a read proves of a cursor: where a switch may have sent the read somewhere else, nothing.

use chain::client::{Client, ClientConfig, Effect, OpId, Request};
use chain::{Answer, Call, Outcome, Verb};
use wire::Nanos;
use wire::chains::{Class, EntryHead, EntryKind, EntryVersion, Location, Word};

const KEY: u64 = 7;
const LEASE: u64 = 300;

fn location(unit: u32) -> Location {
    Location::new(Class::new(0).unwrap(), unit)
}

/// A client, and what it does at the beginning of a get.
struct Rig(Client);

impl Rig {
    fn new(steered: bool) -> Self {
        let mut client: Client = Client::new(ClientConfig { lease: Nanos(LEASE), slots: 1, cursors: 4 });
        if steered {
            client.expect_steered_reads();
        }
        Self(client)
    }

    /// Where a get reads first; none: it asks where the key is, and is told unit 5.
    fn begin(&mut self, now: u64) -> Option<Location> {
        let (op, mut out) = (OpId(now), Vec::new());
        self.0.begin(Nanos(now), op, KEY, Request::Get, &mut out);
        if let Effect::Call(_, Call::Find { .. }) = out[0] {
            let answer = Answer::Found(location(5), EntryVersion(3));
            self.0.on_answer(Nanos(now), op, Some(answer), &mut Vec::new());
            return None;
        }
        let [Effect::Verb(_, _, Verb::Read(at))] = out[..] else { panic!("{out:?}") };
        Some(at)
    }

    /// What that get does when it has read this tail.
    fn read(&mut self, now: u64, unit: u32, version: u8) -> Effect {
        let (word, mut out) = (Word::tail(EntryVersion(version)), Vec::new());
        let head = EntryHead { word, key: KEY, at: location(unit), len: 8, kind: EntryKind::Value };
        self.0.on_outcome(Nanos(now), OpId(now), Outcome::Read(Some(head)), &mut out);
        out[0]
    }
}

#[test]
fn a_read_of_the_tail_prolongs_a_cursor() {
    for steered in [false, true] {
        let mut rig = Rig::new(steered);
        assert_eq!(rig.begin(1), None);
        assert!(matches!(rig.read(1, 5, 3), Effect::Done { .. }));
        assert_eq!(rig.begin(LEASE), Some(location(5)));
        assert!(matches!(rig.read(LEASE, 5, 3), Effect::Done { .. }));
        assert_eq!(rig.begin(2 * LEASE - 1), Some(location(5)));
        assert!(matches!(rig.read(2 * LEASE - 1, 5, 3), Effect::Done { .. }));
        assert_eq!(rig.begin(4 * LEASE), None);
    }
}

#[test]
fn a_read_that_was_sent_elsewhere_says_where_the_tail_is() {
    let mut rig = Rig::new(true);
    assert_eq!(rig.begin(1), None);
    assert!(matches!(rig.read(1, 8, 9), Effect::Done { .. }));
    assert_eq!(rig.begin(LEASE), Some(location(8)));
    // The slot that was asked for has another use: nobody sent the read elsewhere.
    assert!(matches!(rig.read(LEASE, 8, 10), Effect::Call(_, Call::Find { .. })));
}
