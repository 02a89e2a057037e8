//! Following chains: to learn what nobody told, to end them, and to find out what became of a slot.
//!
//! Where there are several copies, a walk reads the first one that lives, which decides, and brings what follows there to the others before it
//! goes on. So whatever it has passed is in all copies.
//!
//! What must always hold: a key has one walk at a time; whatever waits for a walk waits for one that began after it was asked,
//! and nothing of that walk is in flight when it is answered.

use alloc::vec::Vec;

use sorted::Set;
use wire::chains::{EntryKind, EntryVersion, Location, Next, Word};
use wire::{Nanos, Rule, Rules};

use super::{CallId, ClientId, Effect, Metadata, found};
use crate::words::{Words, put_all, slot, slot_of};
use crate::{Answer, Outcome, Replica, Verb};

/// Somebody wants to know whether an entry is in the chain; or, without an entry, where the chain is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) id: CallId,
    pub(super) slot: Option<(Location, EntryVersion)>,
}

/// What a walk waits for.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// What a copy says.
    Looking(Replica),
    /// That this stands in one more copy of the tail's word, which was that of a tail.
    Linking(Replica, Word, Next),
}

/// A walk.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// What it is at: in this use of the slot, for that may have another one when what was asked of memory is answered.
    at: Location,
    version: EntryVersion,
    step: Step,
    /// Who waits for this one, and for the next.
    asked: Vec<Asked>,
    later: Vec<Asked>,
    /// There has to be another one: somebody asked after this one had begun.
    again: bool,
}

impl Asked {
    pub(super) fn put(&self, out: &mut Vec<u64>) {
        let slot = self.slot.map_or(0, |(at, version)| slot(at, version));
        out.extend([self.id.client.0, self.id.number, slot]);
    }

    pub(super) fn take(words: &mut Words<'_>) -> Option<Self> {
        let id = CallId { client: words.client()?, number: words.word()? };
        let slot = match words.word()? {
            0 => None,
            word => Some(slot_of(word)?),
        };
        Some(Self { id, slot })
    }
}

impl Walk {
    pub(super) fn put(&self, out: &mut Vec<u64>) {
        let Self { at, version, step, asked, later, again } = self;
        out.extend([slot(*at, *version), u64::from(*again)]);
        match step {
            Step::Looking(replica) => out.push(u64::from(replica.0) << 1),
            // What follows is put as the word that it will stand in.
            Step::Linking(replica, word, next) => {
                let both = [word.to_bits(), word.followed_by(*next).to_bits()];
                out.extend([u64::from(replica.0) << 1 | 1, both[0], both[1]]);
            }
        }
        for all in [asked, later] {
            put_all(out, all.iter(), |out, asked| asked.put(out));
        }
    }

    pub(super) fn take(words: &mut Words<'_>) -> Option<Self> {
        let ((at, version), again) = (words.slot()?, words.word()? != 0);
        let what = words.word()?;
        let replica = Replica(u8::try_from(what >> 1).ok()?);
        let step = match what & 1 {
            0 => Step::Looking(replica),
            _ => {
                let word = Word::from_bits(words.word()?)?;
                Step::Linking(replica, word, Word::from_bits(words.word()?)?.next)
            }
        };
        let (asked, later) = (words.all(Asked::take)?, words.all(Asked::take)?);
        Some(Self { at, version, step, asked, later, again })
    }
}

/// A dead client, and the keys whose chains have not been walked since it died.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    pub(super) keys: Set<u64>,
}

impl<R: Rules> Metadata<R> {
    /// Walks a key's chain, from what is known of it.
    pub(super) fn walk(&mut self, key: u64, out: &mut Vec<Effect>) {
        let Some(chain) = self.chains.get(&key) else { return };
        let (at, version) = chain.tail();
        match self.walks.get_mut(&key) {
            Some(walk) => walk.again = true,
            None => {
                let step = Step::Looking(Replica::FIRST);
                let walk = Walk { at, version, step, asked: Vec::new(), later: Vec::new(), again: false };
                self.walks.insert(key, walk);
                out.push(Effect::Verb(key, Replica::FIRST, Verb::Read(at)));
            }
        }
    }

    /// The walk goes on at the tail, as far as it is known by now.
    fn look(&mut self, key: u64, out: &mut Vec<Effect>) {
        let tail = self.chains[&key].tail();
        let walk = self.walks.get_mut(&key).expect("it is walked");
        (walk.at, walk.version) = tail;
        self.look_at(key, Replica::FIRST, out);
    }

    fn look_at(&mut self, key: u64, replica: Replica, out: &mut Vec<Effect>) {
        let walk = self.walks.get_mut(&key).expect("it is walked");
        walk.step = Step::Looking(replica);
        out.push(Effect::Verb(key, replica, Verb::Read(walk.at)));
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
        let (walked, step) = ((walk.at, walk.version), walk.step);
        let chain = self.chains.get_mut(&key).expect("what is walked is there");
        let (at, version) = chain.tail();
        let is_closing = matches!(step, Step::Linking(_, _, Next::Closed));
        if walked != (at, version) && !is_closing {
            // Somebody has told of what follows meanwhile; maybe so much that the slot has come to the chain's end again.
            return self.look(key, out);
        }
        match (step, outcome) {
            (Step::Looking(replica), Outcome::Read(Some(head)))
                if head.word.entry == version && head.key == key =>
            {
                chain.see(head.kind);
                match head.word.next {
                    Next::Tail
                        if head.kind == EntryKind::Deleted && self.rules.holds(Rule::ChainsAreClosed) =>
                    {
                        self.link(now, key, Step::Linking(replica, head.word, Next::Closed), out);
                    }
                    Next::Tail if head.kind == EntryKind::Deleted => self.forget(now, key, out),
                    Next::Tail => self.end_walk(key, out),
                    next if self.rules.holds(Rule::WalksFinishLinks) => {
                        let word = head.word.followed_by(Next::Tail);
                        self.link(now, key, Step::Linking(replica.next(), word, next), out);
                    }
                    next => self.go_behind(now, key, next, out),
                }
            }
            (Step::Looking(Replica(dead)), Outcome::Dead) if dead + 1 < self.copies => {
                self.look_at(key, Replica(dead + 1), out);
            }
            (Step::Linking(replica, word, next), Outcome::Swapped(found))
                if found == word.to_bits() || found == word.followed_by(next).to_bits() =>
            {
                let is_over = next == Next::Closed && !self.rules.holds(Rule::AllCopiesAreClosed);
                let replica = if is_over { Replica(self.copies) } else { replica.next() };
                self.link(now, key, Step::Linking(replica, word, next), out);
            }
            (Step::Linking(replica, word, next), Outcome::Dead) => {
                self.link(now, key, Step::Linking(replica.next(), word, next), out);
            }
            // Somebody was quicker; or once more, until the memory can be reached.
            (Step::Linking(..), Outcome::Swapped(_))
            | (_, Outcome::Unknown | Outcome::Superseded | Outcome::Dead) => {
                self.look(key, out);
            }
            (_, outcome) => panic!("the walk of {key}, at {at:?}, found {outcome:?}"),
        }
    }

    /// Does that, if there is such a copy; otherwise it stands in all of them.
    fn link(&mut self, now: Nanos, key: u64, step: Step, out: &mut Vec<Effect>) {
        let Step::Linking(replica, expected, next) = step else { unreachable!("it links") };
        let walk = self.walks.get_mut(&key).expect("it is walked");
        if replica.0 < self.copies {
            walk.step = step;
            let new = expected.followed_by(next);
            out.push(Effect::Verb(key, replica, Verb::CompareSwap { at: walk.at, expected, new }));
        } else {
            self.go_behind(now, key, next, out);
        }
    }

    /// This follows the tail.
    fn go_behind(&mut self, now: Nanos, key: u64, next: Next, out: &mut Vec<Effect>) {
        let Next::Entry(at, version) = next else { return self.forget(now, key, out) };
        let chain = self.chains.get_mut(&key).expect("it is walked");
        // What it is shows when it is read.
        chain.note(chain.tail().0, at, version, EntryKind::Value);
        self.connect(now, key);
        self.look(key, out);
    }

    /// The chain has ended: nobody can append to it. All of it goes into quarantine, and the key is forgotten.
    fn forget(&mut self, now: Nanos, key: u64, out: &mut Vec<Effect>) {
        let (at, version) = self.chains.remove(&key).expect("it was there").tail();
        self.waiting.remove(&key);
        let until =
            if self.rules.holds(Rule::SlotsAreQuarantined) { now + self.config.quarantine } else { now };
        self.slots.quarantine(at, version, until);
        let walk = self.walks.remove(&key).expect("it was walked");
        self.answer(key, walk.asked.into_iter().chain(walk.later).collect(), out);
        self.swept(key);
    }

    /// The walk has come to the tail.
    fn end_walk(&mut self, key: u64, out: &mut Vec<Effect>) {
        let walk = self.walks.remove(&key).expect("it was walked");
        if !self.chains[&key].is_waiting() {
            self.waiting.remove(&key);
        }
        self.answer(key, walk.asked, out);
        if walk.again {
            self.walk(key, out);
            self.walks.get_mut(&key).expect("it was begun").asked = walk.later;
        } else {
            self.swept(key);
        }
    }

    /// Answers whoever waits for the walk of a key.
    pub(super) fn answer(&mut self, key: u64, asked: Vec<Asked>, out: &mut Vec<Effect>) {
        for Asked { id, slot } in asked {
            let answer = match slot {
                Some((at, version)) => self.settled(id.client, at, version),
                None => self.chains.get(&key).map_or(Answer::Absent, found),
            };
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
