//! The metadata server: chains as far as they are known, and slots.
//!
//! In a process of its own, or in that of a node. It is on nobody's way but at the beginning of a key, and when a client knows
//! nothing. It learns of appends by what clients tell, which may be lost, and by walking chains itself.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | what goes in and out, and what is answered |
//! | `chains.rs` | one key's chain: its known entries, and appends whose predecessors are not known yet |
//! | `slots.rs` | memory: slots that are free, given away, in chains, or in quarantine |
//! | `walking.rs` | following chains, ending them, and finding out what became of a slot |
//!
//! What must always hold: a slot is free, or given to one client, or in one chain, or in quarantine; it is quarantined before it is free again;
//! a chain is forgotten only when nobody can append to it.

mod chains;
mod slots;
mod walking;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Bound;

use sorted::{Map, Set};
use wire::chains::{EntryVersion, Location};
use wire::{AllRules, Nanos, Rule, Rules};

use self::chains::Chain;
use self::slots::Slots;
use self::walking::Sweep;
use crate::words::{Words, put_all};
use crate::{Answer, Appended, Call, Replica, Verb};

/// A client, as the metadata server knows it: the driver's name for one incarnation of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId(pub u64);

/// A call, as the driver knows it: whom to answer, and what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId {
    /// Whose.
    pub client: ClientId,
    /// Which of its calls.
    pub number: u64,
}

/// What the metadata server wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Answer a call.
    Answer(CallId, Answer),
    /// Do this to that copy, for the walk of this key; the outcome goes to [`Metadata::on_outcome`].
    Verb(u64, Replica, Verb),
}

/// How a metadata server works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetadataConfig {
    /// Units of memory that there are, from unit 1 on.
    pub units: u32,
    /// How long a slot stays in quarantine: longer than any cursor counts.
    pub quarantine: Nanos,
    /// How long an append without its predecessor may wait, until the chain is walked.
    pub timeout: Nanos,
    /// Where a switch steers: longer than any request is in flight. An entry may stand behind another one that is not in a chain
    /// yet, and comes into it with that. Zero without such a switch.
    pub decide_after: Nanos,
}

/// What is decided when everything is over that was in flight.
#[derive(Clone, Copy, Debug)]
enum Undecided {
    Asked(u64, walking::Asked),
    Dead(ClientId),
}

impl Undecided {
    fn put(&self, out: &mut Vec<u64>) {
        match self {
            Self::Asked(key, asked) => {
                out.extend([0, *key]);
                asked.put(out);
            }
            Self::Dead(client) => out.extend([1, client.0]),
        }
    }

    fn take(words: &mut Words<'_>) -> Option<Self> {
        match words.word()? {
            0 => Some(Self::Asked(words.word()?, walking::Asked::take(words)?)),
            1 => Some(Self::Dead(words.client()?)),
            _ => None,
        }
    }
}

/// A metadata server.
#[derive(Clone, Debug)]
pub struct Metadata<R: Rules = AllRules> {
    config: MetadataConfig,
    /// Copies of each slot.
    copies: u8,
    chains: Map<u64, Chain>,
    slots: Slots,
    /// Keys that are being walked, and what waits for that.
    walks: Map<u64, walking::Walk>,
    /// Clients that are dead, and whose slots are not all found yet.
    sweeps: Map<ClientId, Sweep>,
    /// Keys with appends that wait for their predecessors, and since when.
    waiting: Map<u64, Nanos>,
    /// In the order of time.
    undecided: VecDeque<(Nanos, Undecided)>,
    rules: R,
}

impl Metadata {
    /// With this much memory, and no keys.
    pub fn new(config: MetadataConfig) -> Self {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Metadata<R> {
    /// The same, of which some rules may not hold: for checkers.
    pub fn with_rules(rules: R, config: MetadataConfig) -> Self {
        Self {
            config,
            copies: 1,
            chains: Map::new(),
            slots: Slots::new(config.units, EntryVersion(u8::from(rules.holds(Rule::UsesBeginWithOne)))),
            walks: Map::new(),
            sweeps: Map::new(),
            waiting: Map::new(),
            undecided: VecDeque::new(),
            rules,
        }
    }

    /// The same, of a store that has so many copies of each slot.
    ///
    /// # Panics
    /// If that is none.
    #[must_use]
    pub fn with_copies(self, copies: u8) -> Self {
        assert!(copies > 0, "no copies");
        Self { copies, ..self }
    }

    /// A client has asked for something.
    pub fn on_call(&mut self, now: Nanos, id: CallId, call: Call, out: &mut Vec<Effect>) {
        self.on_deadline(now, out);
        let answer = match call {
            Call::Find { key } => self.find(key),
            Call::FindSome { key, more } => self.find_some(key, more, |_| true),
            Call::Slots { class, count } => {
                let slots = self.slots.give(id.client, class, count);
                if slots.is_empty() {
                    // What is behind known tails comes back when its quarantine is over.
                    self.walk_all(out);
                }
                Answer::Slots(slots)
            }
            Call::Create { key, at, version } => match self.chains.get(&key) {
                Some(chain) => found(chain),
                None if self.slots.is_given(id.client, at, version) => {
                    self.slots.link(at);
                    self.chains.insert(key, Chain::new(at, version));
                    Answer::Created
                }
                // Nobody who knows the rules says that; it gets nothing by it.
                None => Answer::Absent,
            },
            Call::Renew { at, version } => self.settled(id.client, at, version),
            Call::Finish { key } if self.chains.contains_key(&key) => {
                return self.walk_for(key, walking::Asked { id, slot: None }, out);
            }
            Call::Finish { .. } => Answer::Absent,
            Call::Settle { is_in_flight, key, at, version } => {
                let asked = Undecided::Asked(key, walking::Asked { id, slot: Some((at, version)) });
                return if is_in_flight { self.decide(now, asked, out) } else { self.look_for(asked, out) };
            }
        };
        out.push(Effect::Answer(id, answer));
    }

    /// Where a key's chain is, as far as that is known.
    pub(crate) fn find(&self, key: u64) -> Answer {
        self.chains.get(&key).map_or(Answer::Absent, found)
    }

    /// The same, with tails of other keys that may be told of: of those that come behind this one, which are as good as any.
    pub(crate) fn find_some(&self, key: u64, more: u32, may_tell: impl Fn(u64) -> bool) -> Answer {
        let Some((at, version)) = self.tail(key) else { return Answer::Absent };
        let behind = self.chains.range((Bound::Excluded(key), Bound::Unbounded));
        let others =
            behind.chain(self.chains.range(..key)).filter(|(key, _)| may_tell(**key)).take(more as usize);
        let tails = others.map(|(key, chain)| (*key, chain.tail().0, chain.tail().1));
        Answer::FoundSome(at, version, tails.collect())
    }

    /// Finds out what became of a slot, or of all of a client's: when nothing is in flight any more.
    fn decide(&mut self, now: Nanos, question: Undecided, out: &mut Vec<Effect>) {
        if self.rules.holds(Rule::IndeterminateAppendsWait) && self.config.decide_after > Nanos::ZERO {
            self.undecided.push_back((now + self.config.decide_after, question));
        } else {
            self.look_for(question, out);
        }
    }

    fn look_for(&mut self, question: Undecided, out: &mut Vec<Effect>) {
        match question {
            Undecided::Asked(key, asked) if self.chains.contains_key(&key) => self.walk_for(key, asked, out),
            // The chain has ended: whatever was in it was found then.
            Undecided::Asked(key, asked) => self.answer(key, vec![asked], out),
            Undecided::Dead(client) => self.sweep(client, out),
        }
    }

    /// A client tells of an append. It may tell late, twice, or never.
    pub fn on_notice(&mut self, now: Nanos, client: ClientId, notice: Appended, out: &mut Vec<Effect>) {
        self.on_deadline(now, out);
        let Appended { key, behind, at, version, kind } = notice;
        if !self.slots.is_given(client, at, version) {
            return;
        }
        let Some(chain) = self.chains.get_mut(&key) else { return };
        chain.note(behind, at, version, kind);
        self.connect(now, key);
        let chain = &self.chains[&key];
        if chain.is_waiting() {
            self.waiting.entry(key).or_insert(now);
        } else {
            self.waiting.remove(&key);
        }
        if chain.ends_deleted() {
            self.walk(key, out);
        }
    }

    /// Takes what is known to follow into the chain; what is behind the tail then begins to rest.
    fn connect(&mut self, now: Nanos, key: u64) {
        let Some(chain) = self.chains.get_mut(&key) else { return };
        while let Some((at, version)) = chain.advance() {
            self.slots.link(at);
            let until =
                if self.rules.holds(Rule::SlotsAreQuarantined) { now + self.config.quarantine } else { now };
            self.slots.quarantine(at, version, until);
        }
        self.slots.link(chain.tail().0);
    }

    /// Does what is due.
    pub fn on_deadline(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        self.slots.wake(now);
        let timeout = self.config.timeout;
        let due = |(key, since): (&u64, &Nanos)| (now.saturating_sub(*since) >= timeout).then_some(*key);
        let due: Vec<u64> = self.waiting.iter().filter_map(due).collect();
        for key in due {
            self.waiting.remove(&key);
            self.walk(key, out);
        }
        while let Some((until, question)) = self.undecided.front().copied()
            && until <= now
        {
            self.undecided.pop_front();
            self.look_for(question, out);
        }
    }

    /// When something is due.
    pub fn next_deadline(&self) -> Nanos {
        let waiting = self.waiting.values().min().map(|since| *since + self.config.timeout);
        let undecided = self.undecided.front().map_or(Nanos::MAX, |(until, _)| *until);
        self.slots.next_waking().min(waiting.unwrap_or(Nanos::MAX)).min(undecided)
    }

    /// A client is dead, and nothing that it has asked of memory will be executed any more.
    pub fn on_death(&mut self, now: Nanos, client: ClientId, out: &mut Vec<Effect>) {
        if self.rules.holds(Rule::TheDeadAreSwept) && self.slots.has(client) {
            self.decide(now, Undecided::Dead(client), out);
        }
    }

    fn sweep(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        // Each of its slots is at the end of some chain as it is now, or of none.
        let keys: Set<u64> = self.chains.keys().copied().collect();
        if keys.is_empty() {
            return self.slots.take_back(client);
        }
        self.sweeps.insert(client, Sweep { keys: keys.clone() });
        for key in keys {
            self.walk(key, out);
        }
    }

    /// What became of a slot that is in no chain that could have it.
    fn settled(&mut self, client: ClientId, at: Location, version: EntryVersion) -> Answer {
        if self.slots.is_given(client, at, version) {
            Answer::Free(self.slots.renew(client, at))
        } else {
            Answer::Linked
        }
    }

    /// All that it knows, for a machine that goes on from here.
    pub(crate) fn put(&self, out: &mut Vec<u64>) {
        put_all(out, self.chains.iter(), |out, (key, chain)| {
            out.push(*key);
            chain.put(out);
        });
        self.slots.put(out);
        put_all(out, self.walks.iter(), |out, (key, walk)| {
            out.push(*key);
            walk.put(out);
        });
        put_all(out, self.sweeps.iter(), |out, (client, sweep)| {
            out.push(client.0);
            put_all(out, sweep.keys.iter(), |out, key| out.push(*key));
        });
        put_all(out, self.waiting.iter(), |out, (key, since)| out.extend([*key, since.0]));
        put_all(out, self.undecided.iter(), |out, (until, question)| {
            out.push(until.0);
            question.put(out);
        });
    }

    /// A machine that goes on from there, of the same store as this one, which knows nothing yet.
    pub(crate) fn take(self, words: &mut Words<'_>) -> Option<Self> {
        let first = EntryVersion(u8::from(self.rules.holds(Rule::UsesBeginWithOne)));
        let chains = words.all(|words| Some((words.word()?, Chain::take(words)?)))?;
        let slots = Slots::take(words, self.config.units, first)?;
        let walks = words.all(|words| Some((words.word()?, walking::Walk::take(words)?)))?;
        let sweeps = words.all(|words| Some((words.client()?, Sweep { keys: words.all(Words::word)? })))?;
        let waiting = words.all(|words| Some((words.word()?, words.time()?)))?;
        let undecided = words.all(|words| Some((words.time()?, Undecided::take(words)?)))?;
        Some(Self { chains, slots, walks, sweeps, waiting, undecided, ..self })
    }

    /// What it takes for the tail of a key's chain.
    pub fn tail(&self, key: u64) -> Option<(Location, EntryVersion)> {
        self.chains.get(&key).map(Chain::tail)
    }

    /// Follows a key's chain to its end, so that its tail is known: for a switch that has forgotten everything.
    pub fn scan(&mut self, key: u64, out: &mut Vec<Effect>) {
        self.walk(key, out);
    }

    /// Keys that have chains.
    pub fn keys(&self) -> usize {
        self.chains.len()
    }

    /// What must hold between calls.
    ///
    /// # Panics
    /// If it does not.
    pub fn invariants(&self) {
        self.slots.invariants();
        for (key, chain) in &self.chains {
            assert!(self.slots.is_linked(chain.tail().0), "the tail of {key} is not in use");
        }
    }

    /// Units that were ever given away, and those that are free now.
    pub fn memory(&self) -> (u32, u32) {
        self.slots.memory()
    }
}

fn found(chain: &Chain) -> Answer {
    let (at, version) = chain.tail();
    Answer::Found(at, version)
}
