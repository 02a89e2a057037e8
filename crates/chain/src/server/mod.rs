//! A metadata server and its backups: what each of them runs.
//!
//! ```text
//!   client ── call ──> primary ── inputs ──> first backup, and when that has them, the second one
//!          <─ answer ─         <── has so many ──
//! ```
//! The machine ([`Metadata`]) does the same wherever it is fed with the same inputs in the same order. So a backup is the same
//! machine, and the primary sends it what itself was fed with. Where the primary dies, the first backup that lives goes on: with
//! the verbs that the primary was in the middle of, for whatever is done twice to memory is found to be done.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | calls and their answers, verbs, and who takes over |
//! | `log.rs` | inputs, and which backup has how many of them |
//! | `state.rs` | what a new backup begins with |
//!
//! What must always hold:
//! 1. *Backups know first.* An answer, and a verb that changes memory, leaves when all backups have the inputs that it follows from.
//!    Where a chain is, is known from memory, by whomever: whoever asks for that is told at once, if backups know that there is one.
//! 2. *What a backup has, those before it have.* So whoever takes over has all that those behind it have.
//! 3. *Nothing of the dead one executes any more* when another one takes over: its driver sees to that. (What does, does once more what the
//!    other one does again. But the numbers of a slot's uses come round.)
//! 4. *Time does not run ahead.* A backup's clock is the primary's as of the last input, and goes on from when that arrived: what
//!    rests, rests no shorter because somebody took over.
//! 5. *A new backup goes on from what the primary knew at some moment*, and gets all inputs from then on. Nobody waits for it before it
//!    has that; before it may take over, clients and other servers are told of it.
//! 6. *A call is executed once*, whichever server it comes to: calls are inputs, and so are the deaths of those who made them.

mod log;
mod state;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sorted::Map;
use wire::{AllRules, Nanos, Rule, Rules};

use self::log::Log;
pub use self::log::{Batch, Logged, ServerId};
use crate::metadata::{CallId, ClientId, Effect, Metadata};
use crate::{Answer, Appended, Call, Outcome, Replica, Verb};

/// What happens to a metadata server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// A client asks for something: its call of this number.
    Call(ClientId, u32, Call),
    /// A client tells of an append.
    Told(ClientId, Appended),
    /// A verb for the walk of this key has ended.
    Outcome(u64, Outcome),
    /// A client is dead, and nothing that it has asked of memory will be executed any more.
    Death(ClientId),
    /// Something is due.
    Due,
}

/// A client's last call.
#[derive(Clone, Debug)]
struct Asked {
    number: u32,
    /// And of how many inputs it is the result.
    answer: Option<(Answer, u64)>,
}

/// A verb that the machine wants done, or that is being done.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    replica: Replica,
    verb: Verb,
    /// Of how many inputs it is the result.
    follows: u64,
}

/// What came of the inputs that somebody has sent to a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Followed {
    /// It has so many by now.
    Has(u64),
    /// It is no backup: it has taken over.
    Leads,
    /// They cannot be those of this store's primary.
    Refused,
}

/// A metadata server: the primary, or a backup.
#[derive(Clone, Debug)]
pub struct Server<R: Rules = AllRules> {
    rules: R,
    machine: Metadata<R>,
    leads: bool,
    clients: Map<ClientId, Asked>,
    /// What walks of these keys wait for.
    verbs: Map<u64, Wanted>,
    /// Those of them that are not begun yet. Nothing is begun at a backup.
    begins: VecDeque<u64>,
    log: Log,
    /// Keys whose chains began with an input that some backup may lack, and which that is.
    begun: VecDeque<(u64, u64)>,
    /// So many inputs backups must have for all that waits to leave.
    awaited: u64,
    /// This process's clock when the last input arrived, and what it was then for whoever sent it.
    clock: (Nanos, Nanos),
}

impl<R: Rules> Server<R> {
    /// The primary of a store that begins, with these backups in the order in which they take over.
    pub fn primary(rules: R, machine: Metadata<R>, backups: &[ServerId]) -> Self {
        Self { leads: true, ..Self::new(rules, machine, Log::of_primary(backups)) }
    }

    /// A backup of a store that begins.
    pub fn backup(rules: R, machine: Metadata<R>) -> Self {
        Self::new(rules, machine, Log::of_backup(0))
    }

    fn new(rules: R, machine: Metadata<R>, log: Log) -> Self {
        Self {
            rules,
            machine,
            leads: false,
            clients: Map::new(),
            verbs: Map::new(),
            begins: VecDeque::new(),
            log,
            begun: VecDeque::new(),
            awaited: 0,
            clock: (Nanos::ZERO, Nanos::ZERO),
        }
    }

    /// The machine, to be looked at.
    pub const fn machine(&self) -> &Metadata<R> {
        &self.machine
    }

    /// True if it answers clients.
    pub const fn leads(&self) -> bool {
        self.leads
    }

    /// How many inputs it was fed with.
    pub fn happened(&self) -> u64 {
        self.log.end()
    }

    /// Clients that it has heard of.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.clients.keys().copied()
    }

    /// A client asks for something, as often as it likes: its call of this number is executed once. None: there is no answer yet.
    pub fn call(&mut self, now: Nanos, client: ClientId, number: u32, call: Call) -> Option<Answer> {
        if !self.leads {
            return None;
        }
        // Nothing happens to the machine.
        match call {
            Call::Find { key } => return self.may_tell(key).then(|| self.machine.find(key)),
            Call::FindSome { key, more } => {
                let answer = |it: &Self| it.machine.find_some(key, more, |key| it.may_tell(key));
                return self.may_tell(key).then(|| answer(self));
            }
            _ => {}
        }
        if self.clients.get(&client).is_none_or(|asked| asked.number != number) {
            self.happens(now, Input::Call(client, number, call));
        }
        let (answer, follows) = self.clients.get(&client)?.answer.as_ref()?;
        self.may_leave(*follows).then(|| answer.clone())
    }

    /// A client tells of an append. What nobody has room for is missed: it may be.
    pub fn told(&mut self, now: Nanos, client: ClientId, append: Appended) {
        if self.leads && !self.log.is_full() {
            self.happens(now, Input::Told(client, append));
        }
    }

    /// A verb of the walk of this key has ended.
    ///
    /// # Panics
    /// If none was begun.
    pub fn ended(&mut self, now: Nanos, key: u64, outcome: Outcome) {
        assert!(self.leads && self.verbs.contains_key(&key), "the walk of {key} waits for nothing");
        self.happens(now, Input::Outcome(key, outcome));
    }

    /// A client is dead, and nothing that it has asked of memory will be executed any more.
    pub fn dies(&mut self, now: Nanos, client: ClientId) {
        self.happens(now, Input::Death(client));
    }

    /// Does what is due.
    pub fn wake(&mut self, now: Nanos) {
        if self.leads && self.machine.next_deadline() <= self.time(now) {
            self.happens(now, Input::Due);
        }
    }

    /// Follows a key's chain to its end: for a switch that has forgotten everything, and is told no tails of a store that has backups.
    pub fn scan(&mut self, key: u64) {
        debug_assert!(!self.log.has_backups(), "backups do not hear of it");
        let mut effects = Vec::new();
        self.machine.scan(key, &mut effects);
        self.apply(effects);
    }

    /// What is to be done to memory next, so many verbs at most. The outcome of each is to be told by [`Server::ended`].
    pub fn verbs(&mut self, most: usize) -> Vec<(u64, Replica, Verb)> {
        let (mut begun, mut wait) = (Vec::new(), VecDeque::new());
        while begun.len() < most
            && let Some(key) = self.begins.pop_front()
        {
            let Wanted { replica, verb, follows } = self.verbs[&key];
            if matches!(verb, Verb::Read(_)) || self.may_leave(follows) {
                begun.push((key, replica, verb));
            } else {
                wait.push_back(key);
            }
        }
        wait.append(&mut self.begins);
        self.begins = wait;
        begun
    }

    /// True if there is something to be done to memory, or to be sent to a backup that somebody waits for. (What clients have told
    /// nobody waits for: it may be sent now and then.)
    pub fn has_work(&self) -> bool {
        self.leads && (!self.begins.is_empty() || !self.may_leave(self.awaited))
    }

    /// What a backup lacks, at most so many inputs. None: nothing, or it is none any more.
    pub fn for_backup(&self, id: ServerId, most: usize) -> Option<Batch> {
        self.log.for_backup(self.rules, id, most).filter(|_| self.leads)
    }

    /// A backup has so many inputs.
    pub fn backup_has(&mut self, id: ServerId, inputs: u64) {
        self.log.backup_has(id, inputs);
    }

    /// A backup is gone, or did not become one.
    pub fn backup_is_gone(&mut self, id: ServerId) {
        self.log.backup_is_gone(id);
    }

    /// Its backups, in their order.
    pub fn backups(&self) -> Vec<ServerId> {
        self.log.backups()
    }

    /// A backup more, behind the others: what it is to begin with ([`Server::from_words`]).
    pub fn add_backup(&mut self, id: ServerId) -> Vec<u64> {
        self.log.add(id);
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// It has begun with that. True if it is a backup from now on: not before it has what others may act on, and those before it have
    /// what it has. Until then it is sent what it lacks, and nobody waits for it.
    pub fn backup_joins(&mut self, id: ServerId) -> bool {
        self.log.joins(self.rules, id)
    }

    /// A backup hears what has happened to the primary.
    pub fn follow(&mut self, now: Nanos, batch: Batch) -> Followed {
        if self.leads {
            return Followed::Leads;
        }
        self.log.all_have(batch.all_have);
        for (number, Logged { at, input }) in (batch.from..).zip(batch.inputs) {
            if number < self.log.end() {
                continue;
            }
            // What is missing comes again.
            if number > self.log.end() {
                break;
            }
            if let Input::Outcome(key, outcome) = input
                && !self.verbs.get(&key).is_some_and(|wanted| wanted.verb.ends_with(outcome))
            {
                return Followed::Refused;
            }
            self.clock = (now, at);
            self.feed(at, input);
        }
        Followed::Has(self.log.end())
    }

    /// All servers before this one are gone, and nothing that they have asked of memory is executed any more: it takes over. What they
    /// were in the middle of is done again.
    ///
    /// These are the backups behind it, in their order.
    pub fn lead(&mut self, backups: &[ServerId]) {
        self.leads = true;
        self.log.lead(backups);
        if self.rules.holds(Rule::WalksAreTakenOver) {
            self.begins = self.verbs.keys().copied().collect();
        }
    }

    /// The time as the machine counts it.
    fn time(&self, now: Nanos) -> Nanos {
        let (here, there) = self.clock;
        there + now.saturating_sub(here)
    }

    fn happens(&mut self, now: Nanos, input: Input) {
        self.feed(self.time(now), input);
    }

    fn feed(&mut self, at: Nanos, input: Input) {
        self.log.push(Logged { at, input });
        let mut effects = Vec::new();
        match input {
            Input::Call(client, number, call) => {
                if let Call::Create { key, .. } = call {
                    self.begun.push_back((self.log.end(), key));
                }
                while self.begun.pop_front_if(|(input, _)| *input <= self.log.safe()).is_some() {}
                self.clients.insert(client, Asked { number, answer: None });
                let id = CallId { client, number: number.into() };
                self.machine.on_call(at, id, call, &mut effects);
            }
            Input::Told(client, append) => self.machine.on_notice(at, client, append, &mut effects),
            Input::Outcome(key, outcome) => {
                self.verbs.remove(&key);
                self.machine.on_outcome(at, key, outcome, &mut effects);
            }
            Input::Death(client) => {
                self.clients.remove(&client);
                self.machine.on_death(at, client, &mut effects);
            }
            Input::Due => self.machine.on_deadline(at, &mut effects),
        }
        self.apply(effects);
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        let follows = self.log.end();
        for effect in effects {
            match effect {
                Effect::Answer(id, answer) => {
                    if let Some(asked) = self.clients.get_mut(&id.client)
                        && u64::from(asked.number) == id.number
                    {
                        asked.answer = Some((answer, follows));
                        self.awaited = follows;
                    }
                }
                Effect::Verb(key, replica, verb) => {
                    self.verbs.insert(key, Wanted { replica, verb, follows });
                    if !matches!(verb, Verb::Read(_)) {
                        self.awaited = follows;
                    }
                    if self.leads {
                        self.begins.push_back(key);
                    }
                }
            }
        }
    }

    /// All backups know of the key's chain.
    fn may_tell(&self, key: u64) -> bool {
        self.begun.iter().all(|(input, begun)| *begun != key || self.may_leave(*input))
    }

    /// All backups have what this follows from.
    fn may_leave(&self, follows: u64) -> bool {
        !self.rules.holds(Rule::BackupsKnowFirst) || follows <= self.log.safe()
    }
}
