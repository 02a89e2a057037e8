//! A run that is too rare to wait for: an append stands behind one that is still in flight when the switch forgets both.

use std::collections::BTreeMap;

use chain::client::{self, Client, Done, OpId, Request};
use chain::metadata::{self, CallId, ClientId, Metadata};
use chain::{Outcome, Verb};
use wire::chains::{EntryHead, Location, Next, Reply, Word};
use wire::{AllRules, Nanos, Rule, Rules, Without};

const KEY: u64 = 7;
const DECIDE_AFTER: Nanos = Nanos(1_000);

struct Rig<R: Rules> {
    now: Nanos,
    memory: BTreeMap<Location, EntryHead>,
    metadata: Metadata<R>,
    clients: [Client<R>; 2],
    done: [Option<Done>; 2],
    /// Compare-and-swaps that nobody has executed.
    swaps: [Option<(OpId, Verb)>; 2],
}

impl<R: Rules> Rig<R> {
    fn new(rules: R) -> Self {
        let config = metadata::MetadataConfig {
            units: 20,
            quarantine: Nanos(400),
            timeout: Nanos(100),
            decide_after: DECIDE_AFTER,
        };
        let client =
            || Client::with_rules(rules, client::ClientConfig { lease: Nanos(300), slots: 1, cursors: 4 });
        Self {
            now: Nanos(1),
            memory: BTreeMap::new(),
            metadata: Metadata::with_rules(rules, config),
            clients: [client(), client()],
            done: [None; 2],
            swaps: [None; 2],
        }
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

    fn begin(&mut self, at: usize, op: u64) {
        let mut out = Vec::new();
        self.clients[at].begin(self.now, OpId(op), KEY, Request::Put(8), &mut out);
        self.client(at, out);
    }

    /// Does what a client wants, but for compare-and-swaps.
    fn client(&mut self, at: usize, effects: Vec<client::Effect>) {
        for effect in effects {
            let mut out = Vec::new();
            match effect {
                client::Effect::Verb(op, _, swap @ Verb::CompareSwap { .. }) => {
                    self.swaps[at] = Some((op, swap))
                }
                client::Effect::Verb(op, _, verb) => {
                    let outcome = self.execute(verb);
                    self.clients[at].on_outcome(self.now, op, outcome, &mut out);
                }
                client::Effect::Call(op, call) => {
                    let id = CallId { client: ClientId(at as u64), number: op.0 };
                    let mut out = Vec::new();
                    self.metadata.on_call(self.now, id, call, &mut out);
                    self.server(out);
                }
                // They are late.
                client::Effect::Notice(_) => {}
                client::Effect::Done { done, .. } => self.done[at] = Some(done),
            }
            self.client(at, out);
        }
    }

    fn server(&mut self, effects: Vec<metadata::Effect>) {
        for effect in effects {
            match effect {
                metadata::Effect::Answer(id, answer) => {
                    let (at, mut out) = (id.client.0 as usize, Vec::new());
                    self.clients[at].on_answer(self.now, OpId(id.number), Some(answer), &mut out);
                    self.client(at, out);
                }
                metadata::Effect::Verb(key, _, verb) => {
                    let (outcome, mut out) = (self.execute(verb), Vec::new());
                    self.metadata.on_outcome(self.now, key, outcome, &mut out);
                    self.server(out);
                }
            }
        }
    }

    /// A client hears of its compare-and-swap.
    fn tell(&mut self, at: usize, reply: Reply) {
        let (op, _) = self.swaps[at].take().expect("it has sent one");
        let mut out = Vec::new();
        self.clients[at].on_outcome(self.now, op, Outcome::Swapped(reply.to_bits()), &mut out);
        self.client(at, out);
    }
}

/// Some entry of the chain has a successor whose slot is in another use.
pub(crate) fn dangles<R: Rules>(rules: R) -> bool {
    let mut rig = Rig::new(rules);
    rig.begin(0, 1);
    assert_eq!(rig.done, [Some(Done::Appended), None], "the chain begins");
    let first = *rig.memory.keys().next().expect("its entry");
    rig.begin(0, 2);
    rig.begin(1, 3);
    let [Some((_, ahead)), Some((_, Verb::CompareSwap { new, .. }))] = rig.swaps else {
        panic!("both are at their second step")
    };
    let Verb::CompareSwap { new: Word { next: Next::Entry(front, version), .. }, .. } = ahead else {
        panic!("it appends")
    };
    // The second is sent behind the first, which is late. It arrives; then the switch forgets both.
    let expected = Word::tail(version);
    rig.execute(Verb::CompareSwap { at: front, expected, new: expected.followed_by(new.next) });
    rig.tell(1, Reply::Indeterminate);
    // The first arrives after all.
    let outcome = rig.execute(ahead);
    assert_eq!(outcome, Outcome::Swapped(Word::tail(rig.memory[&first].word.entry).to_bits()));
    let mut out = Vec::new();
    rig.now += DECIDE_AFTER;
    rig.metadata.on_deadline(rig.now, &mut out);
    rig.server(out);
    let mut at = first;
    while let Next::Entry(next, version) = rig.memory[&at].word.next {
        if rig.memory[&next].word.entry != version {
            return true;
        }
        at = next;
    }
    assert_eq!(rig.done[1], Some(Done::Appended), "it was found in the chain");
    false
}

#[test]
fn what_stands_behind_an_append_that_is_in_flight_is_not_given_up_before_that_has_arrived() {
    assert!(!dangles(AllRules));
    let missed = dangles(Without(Rule::IndeterminateAppendsWait)).then_some(Rule::IndeterminateAppendsWait);
    crate::table::assert_caught(|row| row.scenario == "indeterminate", missed.as_slice());
}
