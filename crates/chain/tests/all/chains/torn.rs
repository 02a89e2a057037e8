//! A run that is too rare to wait for: a slot is used anew between the two halves of a READ.

use std::collections::BTreeMap;

use chain::client::{self, Client, Done, OpId, Request};
use chain::metadata::{self, CallId, ClientId, Metadata};
use chain::{Outcome, Verb};
use wire::chains::{EntryHead, Location};
use wire::{Nanos, Rules};

const QUARANTINE: Nanos = Nanos(400);
const KEY: u64 = 7;

/// Memory of two slots, the metadata server, and a client that does everything at once.
struct Two<R: Rules> {
    now: Nanos,
    memory: BTreeMap<Location, EntryHead>,
    metadata: Metadata<R>,
    writer: Client<R>,
    ops: u64,
}

impl<R: Rules> Two<R> {
    fn client(rules: R) -> Client<R> {
        Client::with_rules(rules, client::ClientConfig { lease: Nanos(300), slots: 1, cursors: 10 })
    }

    fn ask(&mut self, call: chain::Call) -> chain::Answer {
        let mut out = Vec::new();
        let id = CallId { client: ClientId(1), number: 1 };
        self.metadata.on_call(self.now, id, call, &mut out);
        let answer = out.iter().find_map(|effect| match effect {
            metadata::Effect::Answer(_, answer) => Some(answer.clone()),
            metadata::Effect::Verb(..) => None,
        });
        answer.expect("such calls are answered at once")
    }

    fn execute(&mut self, verb: Verb) -> Outcome {
        match verb {
            Verb::Read(at) => Outcome::Read(self.memory.get(&at).copied()),
            Verb::Write(at, head) => {
                self.memory.insert(at, head);
                Outcome::Written
            }
            Verb::CompareSwap { at, expected, new } => {
                let word = &mut self.memory.get_mut(&at).expect("it was written").word;
                let found = *word;
                if found == expected {
                    *word = new;
                }
                Outcome::Swapped(found.to_bits())
            }
        }
    }

    /// A put, from its beginning to its end.
    fn put(&mut self) -> Done {
        self.ops += 1;
        let (id, mut out) = (OpId(self.ops), Vec::new());
        self.writer.begin(self.now, id, KEY, Request::Put(8), &mut out);
        let mut ended = None;
        while !out.is_empty() {
            match out.remove(0) {
                client::Effect::Done { done, .. } => ended = Some(done),
                client::Effect::Verb(id, _, verb) => {
                    let outcome = self.execute(verb);
                    self.writer.on_outcome(self.now, id, outcome, &mut out);
                }
                client::Effect::Call(id, call) => {
                    let answer = self.ask(call);
                    self.writer.on_answer(self.now, id, Some(answer), &mut out);
                }
                client::Effect::Notice(notice) => {
                    self.metadata.on_notice(self.now, ClientId(1), notice, &mut Vec::new());
                }
            }
        }
        ended.expect("it ends")
    }
}

/// A client reads the head of the tail. Then another one appends, waits, and appends once more. Then the first one has the value
/// behind that head, too: does it take both for one entry?
pub(crate) fn is_torn<R: Rules>(rules: R, wait: Nanos) -> bool {
    let config = metadata::MetadataConfig {
        units: 2,
        quarantine: QUARANTINE,
        timeout: Nanos(100),
        decide_after: Nanos::ZERO,
    };
    let mut two = Two::<R> {
        now: Nanos(1),
        memory: BTreeMap::new(),
        metadata: Metadata::with_rules(rules, config),
        writer: Two::client(rules),
        ops: 0,
    };
    assert_eq!(two.put(), Done::Appended);
    let (mut reader, mut out) = (Two::client(rules), Vec::new());
    reader.begin(two.now, OpId(0), KEY, Request::Get, &mut out);
    let client::Effect::Call(id, find) = out.remove(0) else { panic!("it knows nothing yet") };
    let answer = two.ask(find);
    reader.on_answer(two.now, id, Some(answer), &mut out);
    let client::Effect::Verb(_, _, read @ Verb::Read(at)) = out.remove(0) else {
        panic!("it knows the tail")
    };
    let outcome = two.execute(read);
    let before = two.memory[&at];
    assert_eq!(two.put(), Done::Appended);
    two.now += wait;
    let third = two.put();
    let is_used_anew = two.memory[&at].word.entry != before.word.entry;
    assert_eq!(third == Done::Appended, is_used_anew, "there are two slots");
    reader.on_outcome(two.now, id, outcome, &mut out);
    let is_taken = matches!(out[0], client::Effect::Done { done: Done::Value(_), .. });
    is_used_anew && is_taken
}

#[test]
fn an_entry_is_never_read_over_two_uses_of_its_slot() {
    use wire::AllRules;
    for wait in [0, 1, 299, 300, 399, 400, 401, 1000].map(Nanos) {
        assert!(!is_torn(AllRules, wait), "{wait}");
    }
}

/// The waits at which a mutant is caught.
pub(crate) const WAITS: [Nanos; 2] = [Nanos(0), Nanos(QUARANTINE.0 + 1)];
