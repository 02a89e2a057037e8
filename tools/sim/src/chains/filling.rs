//! Keys and cursors, before time begins: each key is stored by one machine and read by the other.
//!
//! What must always hold: all of it happens through the clients and the metadata server, at time zero and on the spot.

use chain::client::{Done, Effect, OpId, Request};
use chain::metadata::{self, CallId, ClientId};
use chain::{Call, Verb};
use wire::Nanos;

use super::event::Machine;
use super::network::at_once;
use super::testbed::Testbed;

impl Testbed {
    /// Stores a value for each key.
    pub(super) fn fill(&mut self) {
        for key in 0..self.load.keys {
            let one = (key % 2) as usize;
            let done = self.at_once(one, key, Request::Put(self.load.value));
            assert_eq!(done, Done::Appended, "key {key}");
            assert_eq!(self.at_once(1 - one, key, Request::Get), Done::Value(self.load.value), "key {key}");
            self.acknowledged[key as usize] = 1;
        }
    }

    /// Does an operation of a machine on the spot.
    fn at_once(&mut self, machine: usize, key: u64, request: Request) -> Done {
        let client = ClientId(Machine::client(machine) as u64);
        let host = &mut self.hosts[machine].client;
        let (entries, metadata) = (&mut self.server.entries, &mut self.server.metadata);
        let (now, op, mut steps) = (Nanos::ZERO, OpId(u64::MAX), Vec::new());
        host.begin(now, op, key, request, &mut steps);
        loop {
            match steps.pop().expect("an operation ends") {
                Effect::Verb(op, _, verb) => {
                    assert!(!matches!(verb, Verb::CompareSwap { .. }), "each key is stored once");
                    host.on_outcome(now, op, at_once(entries, verb), &mut steps);
                }
                Effect::Call(op, call) => {
                    let mut out = Vec::new();
                    metadata.on_call(now, CallId { client, number: 0 }, call, &mut out);
                    let Some(metadata::Effect::Answer(_, answer)) = out.pop() else {
                        unreachable!("nothing is walked when nothing is known: {call:?}")
                    };
                    if let Call::Create { at, .. } = call {
                        entries.begin(at);
                    }
                    host.on_answer(now, op, Some(answer), &mut steps);
                }
                Effect::Notice(notice) => metadata.on_notice(now, client, notice, &mut Vec::new()),
                Effect::Done { done, .. } => return done,
            }
        }
    }
}
