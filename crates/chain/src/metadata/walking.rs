//! Following chains: to learn what nobody told, to end them, and to find out what became of a slot.
//!
//! What must always hold: a key has one walk at a time; whatever waits for a walk waits for one that began after it was asked.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use wire::chain::{EntryKind, EntryVersion, Location, Next, Word};
use wire::{ChainRules, Nanos};

use super::{CallId, ClientId, Effect, Metadata};
use crate::{Outcome, Verb};

/// Somebody wants to know whether an entry is in the chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) id: CallId,
    pub(super) at: Location,
    pub(super) version: EntryVersion,
}

/// A walk.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// What it is at.
    at: Location,
    /// It is ending the chain there.
    is_closing: bool,
    /// Who waits for this one, and for the next.
    asked: Vec<Asked>,
    later: Vec<Asked>,
    /// There has to be another one: somebody asked after this one had begun.
    again: bool,
}

/// A dead client, and the keys whose chains have not been walked since it died.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    pub(super) keys: BTreeSet<u64>,
}

impl<R: ChainRules> Metadata<R> {
    /// Walks a key's chain, from what is known of it.
    pub(super) fn walk(&mut self, key: u64, out: &mut Vec<Effect>) {
        let Some(chain) = self.chains.get(&key) else { return };
        let at = chain.tail().0;
        match self.walks.get_mut(&key) {
            Some(walk) => walk.again = true,
            None => {
                let walk = Walk { at, is_closing: false, asked: Vec::new(), later: Vec::new(), again: false };
                self.walks.insert(key, walk);
                out.push(Effect::Verb(key, Verb::Read(at)));
            }
        }
    }

    /// The walk goes on at the tail, as far as it is known by now.
    fn look(&mut self, key: u64, out: &mut Vec<Effect>) {
        let at = self.chains[&key].tail().0;
        self.walks.get_mut(&key).expect("it is walked").at = at;
        out.push(Effect::Verb(key, Verb::Read(at)));
    }

    /// Walks it to answer a question.
    pub(super) fn walk_for(&mut self, key: u64, asked: Asked, out: &mut Vec<Effect>) {
        self.walk(key, out);
        let walk = self.walks.get_mut(&key).expect("it was begun");
        if walk.again { walk.later.push(asked) } else { walk.asked.push(asked) }
    }

    /// Walks all chains.
    pub(super) fn walk_all(&mut self, out: &mut Vec<Effect>) {
        let keys: Vec<u64> =
            self.chains.keys().copied().filter(|key| !self.walks.contains_key(key)).collect();
        for key in keys {
            self.walk(key, out);
        }
    }

    /// Something was done to memory for the walk of this key.
    ///
    /// # Panics
    /// If no walk waits for that.
    pub fn on_outcome(&mut self, now: Nanos, key: u64, outcome: Outcome, out: &mut Vec<Effect>) {
        let walk = self.walks.get_mut(&key).expect("a walk waits for it");
        let is_closing = core::mem::take(&mut walk.is_closing);
        let chain = self.chains.get_mut(&key).expect("what is walked is there");
        let (at, version) = chain.tail();
        if walk.at != at && !is_closing {
            // Somebody has told of what follows meanwhile.
            return self.look(key, out);
        }
        match (is_closing, outcome) {
            (false, Outcome::Read(Some(head))) if head.word.entry == version && head.key == key => {
                chain.see(head.kind);
                match head.word.next {
                    Next::Entry(next, next_version) => {
                        // What it is shows when it is read.
                        chain.note(at, next, next_version, EntryKind::Value);
                        self.connect(now, key);
                        self.look(key, out);
                    }
                    Next::Tail if head.kind == EntryKind::Deleted => {
                        let expected = head.word;
                        let new = expected.followed_by(Next::Closed);
                        self.walks.get_mut(&key).expect("it is here").is_closing = true;
                        if R::CHAINS_ARE_CLOSED {
                            let verb = Verb::CompareSwap { at, expected, new };
                            out.push(Effect::Verb(key, verb));
                        } else {
                            self.on_outcome(now, key, Outcome::Swapped(expected.to_bits()), out);
                        }
                    }
                    Next::Tail => self.end_walk(key, out),
                    Next::Closed => self.forget(now, key, out),
                }
            }
            (true, Outcome::Swapped(found)) => match Word::from_bits(found).map(|word| word.next) {
                Some(Next::Tail | Next::Closed) => self.forget(now, key, out),
                // Somebody was quicker: the key lives.
                _ => self.look(key, out),
            },
            // Once more, until the memory can be reached.
            (_, Outcome::Unknown) => self.look(key, out),
            (_, outcome) => panic!("the walk of {key}, at {at:?}, found {outcome:?}"),
        }
    }

    /// The chain has ended: nobody can append to it. All of it rests, and the key is forgotten.
    fn forget(&mut self, now: Nanos, key: u64, out: &mut Vec<Effect>) {
        let (at, version) = self.chains.remove(&key).expect("it was there").tail();
        self.waiting.remove(&key);
        let until = if R::SLOTS_REST { now + self.config.rest } else { now };
        self.slots.rest(at, version, until);
        let walk = self.walks.remove(&key).expect("it was walked");
        self.answer(walk.asked.into_iter().chain(walk.later).collect(), out);
        self.swept(key);
    }

    /// The walk has come to the tail.
    fn end_walk(&mut self, key: u64, out: &mut Vec<Effect>) {
        let walk = self.walks.remove(&key).expect("it was walked");
        if !self.chains[&key].is_waiting() {
            self.waiting.remove(&key);
        }
        self.answer(walk.asked, out);
        if walk.again {
            self.walk(key, out);
            self.walks.get_mut(&key).expect("it was begun").asked = walk.later;
        } else {
            self.swept(key);
        }
    }

    fn answer(&mut self, asked: Vec<Asked>, out: &mut Vec<Effect>) {
        for Asked { id, at, version } in asked {
            let answer = self.settled(id.client, at, version);
            out.push(Effect::Answer(id, answer));
        }
    }

    /// A chain was walked to its end after all who wait for that had asked.
    fn swept(&mut self, key: u64) {
        let mut done: Vec<ClientId> = Vec::new();
        for (client, sweep) in &mut self.sweeps {
            sweep.keys.remove(&key);
            if sweep.keys.is_empty() {
                done.push(*client);
            }
        }
        for client in done {
            self.sweeps.remove(&client);
            self.slots.take_back(client);
        }
    }
}
