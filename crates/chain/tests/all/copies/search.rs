//! Every order in which a few operations, their verbs, and what befalls them can happen.
//!
//! What somebody is answered he is answered at once: that he hears it later gives the same runs, but for operations that end later, of which
//! less can be said. What is lost on its way back is an answer that nobody gets: of a connection that breaks, or of a memory that dies.
//! What must always hold: two states are taken for one only if all that can be told from outside is the same from then on.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hasher;

use chain::client::{self, Client, Done, OpId, Request};
use chain::metadata::{self, CallId, ClientId, Metadata};
use chain::{Call, Outcome, Replica, Verb};
use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use wire::chains::{EntryHead, Location, Word};
use wire::{Nanos, Rules};

const KEY: u64 = 5;
/// How long slots stay in quarantine.
pub(crate) const QUARANTINE: Nanos = Nanos(2000);

/// What clients do, and what may befall them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) copies: u8,
    /// Of each client.
    pub(crate) scripts: &'static [&'static [Request]],
    /// Memories, connections and clients.
    pub(crate) deaths: u8,
    pub(crate) breaks: u8,
    pub(crate) clients_die: u8,
    /// Times that the metadata server walks for reasons of its own.
    pub(crate) walks: u8,
}

/// What was seen.
pub(crate) struct Ends {
    pub(crate) states: usize,
    pub(crate) ends: usize,
}

#[derive(Clone, Debug, Default)]
struct Memory {
    /// Heads, and what stands for the value.
    cells: BTreeMap<u32, ([u64; 3], u64)>,
    is_dead: bool,
}

impl Memory {
    fn execute(&mut self, verb: Verb, value: u64) -> (Outcome, u64) {
        match verb {
            Verb::Read(at) => {
                let (head, value) = self.cells.get(&at.unit()).copied().unwrap_or_default();
                (Outcome::Read(EntryHead::from_words(head)), value)
            }
            Verb::Write(at, head) => {
                self.cells.insert(at.unit(), (head.to_words(), value));
                (Outcome::Written, 0)
            }
            Verb::CompareSwap { at, expected, new } => {
                let word = &mut self.cells.entry(at.unit()).or_default().0[0];
                let found = *word;
                if found == expected.to_bits() {
                    *word = new.to_bits();
                }
                (Outcome::Swapped(found), 0)
            }
        }
    }
}

/// An operation in flight: what it is, when it began, what it puts or has read, and where it stands in the history.
#[derive(Clone, Debug)]
struct Running {
    request: Request,
    value: u64,
    at: usize,
}

#[derive(Clone, Debug)]
struct Worker<R: Rules> {
    machine: Client<R>,
    /// What is left to do.
    next: usize,
    running: Option<Running>,
    /// On their way to each memory.
    verbs: Vec<VecDeque<Verb>>,
    call: Option<Call>,
    is_dead: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct State<R: Rules> {
    rules: R,
    /// What all clocks show: in a search nothing takes time.
    pub(crate) now: Nanos,
    memories: Vec<Memory>,
    workers: Vec<Worker<R>>,
    metadata: Metadata<R>,
    walks: VecDeque<(u64, Replica, Verb)>,
    history: Vec<Operation<u64>>,
    /// Moments: beginnings and ends.
    clock: u64,
    left: [u8; 4],
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Begin(usize),
    Execute(usize, usize),
    Ask(usize),
    Walk,
    Scan,
    /// A client's connection to a memory breaks, after so many of its verbs were executed whose answers nobody gets.
    Break(usize, usize, usize),
    /// A memory dies, and what was in flight to it was executed, or not: a bit for each client.
    Die(usize, u32),
    /// The same with a client, and a bit for each memory.
    ClientDies(usize, u32),
}

impl<R: Rules> State<R> {
    /// One version is there, and all clients know it and have slots.
    pub(crate) fn new(rules: R, scenario: &Scenario) -> Self {
        let config = client::ClientConfig { lease: Nanos(1000), slots: 4, cursors: 4 };
        let units = metadata::MetadataConfig {
            units: 64,
            quarantine: QUARANTINE,
            timeout: Nanos(1),
            decide_after: Nanos::ZERO,
        };
        let worker = |_: &&[Request]| Worker {
            machine: Client::with_rules(rules, config).with_copies(scenario.copies),
            next: 0,
            running: None,
            verbs: vec![VecDeque::new(); scenario.copies.into()],
            call: None,
            is_dead: false,
        };
        let mut state = Self {
            rules,
            now: Nanos(1),
            memories: vec![Memory::default(); scenario.copies.into()],
            workers: scenario.scripts.iter().map(worker).collect(),
            metadata: Metadata::with_rules(rules, units).with_copies(scenario.copies),
            walks: VecDeque::new(),
            history: Vec::new(),
            clock: 0,
            left: [0; 4],
        };
        for at in 0..state.workers.len() {
            state.alone(at, Request::Put(8));
        }
        for at in 0..state.workers.len() {
            state.alone(at, Request::Get);
        }
        state.left = [scenario.deaths, scenario.breaks, scenario.clients_die, scenario.walks];
        state
    }

    /// An operation from its beginning to its end, while nobody else does anything.
    pub(crate) fn alone(&mut self, at: usize, request: Request) {
        self.begin(at, request);
        self.finish(at);
    }

    /// What a client has begun comes to its end, while nobody else does anything.
    pub(crate) fn finish(&mut self, at: usize) {
        while self.workers[at].running.is_some() {
            let busy = (0..self.memories.len()).find(|of| !self.workers[at].verbs[*of].is_empty());
            match busy {
                Some(of) => self.execute(at, of),
                None if self.workers[at].call.is_some() => self.ask(at),
                None => self.walk(),
            }
        }
    }

    /// The metadata server walks to the end, for reasons of its own.
    pub(crate) fn scan(&mut self) {
        let mut out = Vec::new();
        self.metadata.scan(KEY, &mut out);
        self.apply_metadata(out);
        while !self.walks.is_empty() {
            self.walk();
        }
    }

    /// What a client has on its way to a memory, and comes there next.
    pub(crate) fn in_flight(&self, at: usize, of: usize) -> Option<Verb> {
        self.workers[at].verbs[of].front().copied()
    }

    /// An entry's word in a memory.
    ///
    /// # Panics
    /// If nothing was written there.
    pub(crate) fn word(&self, of: usize, entry: Location) -> Word {
        let (head, _) = self.memories[of].cells[&entry.unit()];
        Word::from_bits(head[0]).expect("an entry was written")
    }

    /// Operations so far have come in some order.
    pub(crate) fn is_linearizable(&self) -> bool {
        matches!(check_history(&self.history, Limits::default()), Verdict::Linearizable { .. })
    }

    pub(crate) fn begin(&mut self, at: usize, request: Request) {
        let number = self.history.len() as u64 + 1;
        let op = match request {
            Request::Get => Op::Read { value: None },
            Request::Put(_) => Op::Insert { value: number },
            Request::Delete => Op::Delete,
        };
        self.clock += 1;
        self.history.push(Operation { client: number, key: KEY, op, invoke: Nanos(self.clock), ret: None });
        let running = Running { request, value: number, at: self.history.len() - 1 };
        self.workers[at].running = Some(running);
        let mut out = Vec::new();
        self.workers[at].machine.begin(self.now, OpId(0), KEY, request, &mut out);
        self.apply(at, out);
    }

    fn apply(&mut self, at: usize, effects: Vec<client::Effect>) {
        for effect in effects {
            match effect {
                client::Effect::Verb(_, Replica(of), _) if self.memories[usize::from(of)].is_dead => {
                    self.outcome(at, (Outcome::Dead, 0));
                }
                client::Effect::Verb(_, Replica(of), verb) => {
                    self.workers[at].verbs[usize::from(of)].push_back(verb);
                }
                client::Effect::Call(_, call) => self.workers[at].call = Some(call),
                // All of them are lost: the metadata server walks.
                client::Effect::Notice(_) => {}
                client::Effect::Done { done, .. } => self.done(at, done),
            }
        }
    }

    fn done(&mut self, at: usize, done: Done) {
        let running = self.workers[at].running.take().expect("it was begun");
        self.clock += 1;
        let ended = &mut self.history[running.at];
        ended.ret = Some(Nanos(self.clock));
        match (running.request, done) {
            (Request::Get, Done::Value(_)) => ended.op = Op::Read { value: Some(running.value) },
            (Request::Get, Done::Nothing) => ended.op = Op::Read { value: None },
            (Request::Delete, Done::Nothing) | (_, Done::Appended) => {}
            // Nothing was done: as good as a read that nobody has looked at.
            (_, Done::Failed) => ended.key = KEY + 1 + running.at as u64,
            (request, done) => panic!("{request:?} ended with {done:?}"),
        }
        if done == Done::Failed && running.request == Request::Get {
            self.history[running.at].op = Op::Read { value: None };
        }
    }

    fn outcome(&mut self, at: usize, (outcome, value): (Outcome, u64)) {
        let worker = &mut self.workers[at];
        let running = worker.running.as_mut().expect("it is in flight");
        if matches!((outcome, running.request), (Outcome::Read(_), Request::Get)) {
            running.value = value;
        }
        let mut out = Vec::new();
        worker.machine.on_outcome(self.now, OpId(0), outcome, &mut out);
        self.apply(at, out);
    }

    /// The next verb on its way from a client to a memory; without an answer.
    fn execute_one(&mut self, at: usize, of: usize) -> (Outcome, u64) {
        let worker = &mut self.workers[at];
        let verb = worker.verbs[of].pop_front().expect("it was looked at");
        self.memories[of].execute(verb, worker.running.as_ref().expect("it is in flight").value)
    }

    pub(crate) fn execute(&mut self, at: usize, of: usize) {
        let outcome = self.execute_one(at, of);
        self.outcome(at, outcome);
    }

    fn ask(&mut self, at: usize) {
        let call = self.workers[at].call.take().expect("it was looked at");
        let id = CallId { client: ClientId(at as u64), number: 0 };
        let mut out = Vec::new();
        self.metadata.on_call(self.now, id, call, &mut out);
        self.apply_metadata(out);
    }

    fn apply_metadata(&mut self, effects: Vec<metadata::Effect>) {
        for effect in effects {
            match effect {
                metadata::Effect::Verb(key, replica, verb) => self.walks.push_back((key, replica, verb)),
                metadata::Effect::Answer(id, answer) => {
                    let at = id.client.0 as usize;
                    if !self.workers[at].is_dead {
                        let mut out = Vec::new();
                        self.workers[at].machine.on_answer(self.now, OpId(0), Some(answer), &mut out);
                        self.apply(at, out);
                    }
                }
            }
        }
    }

    fn walk(&mut self) {
        let (key, Replica(of), verb) = self.walks.pop_front().expect("somebody waits for it");
        let memory = &mut self.memories[usize::from(of)];
        let outcome = if memory.is_dead { Outcome::Dead } else { memory.execute(verb, 0).0 };
        let mut out = Vec::new();
        self.metadata.on_outcome(self.now, key, outcome, &mut out);
        self.apply_metadata(out);
    }

    /// So many verbs of a client are executed at a memory, and it is told of all that are on their way there how they ended.
    fn lose(&mut self, at: usize, of: usize, executed: usize, outcome: Outcome) {
        let all = self.workers[at].verbs[of].len();
        for _ in 0..executed {
            self.execute_one(at, of);
        }
        self.workers[at].verbs[of].clear();
        (0..all).for_each(|_| self.outcome(at, (outcome, 0)));
    }

    fn events(&self, scenario: &Scenario) -> Vec<Event> {
        let mut events = Vec::new();
        let [deaths, breaks, clients_die, walks] = self.left;
        for (at, worker) in self.workers.iter().enumerate().filter(|(_, worker)| !worker.is_dead) {
            if worker.running.is_none() && worker.next < scenario.scripts[at].len() {
                events.push(Event::Begin(at));
            }
            if worker.call.is_some() {
                events.push(Event::Ask(at));
            }
            for (of, verbs) in worker.verbs.iter().enumerate().filter(|(_, verbs)| !verbs.is_empty()) {
                events.push(Event::Execute(at, of));
                if breaks > 0 {
                    events.extend((0..=verbs.len()).map(|executed| Event::Break(at, of, executed)));
                }
            }
            if clients_die > 0 && worker.running.is_some() {
                events.extend((0..1 << self.memories.len()).map(|bits| Event::ClientDies(at, bits)));
            }
        }
        if !self.walks.is_empty() {
            events.push(Event::Walk);
        }
        if walks > 0 {
            events.push(Event::Scan);
        }
        if deaths > 0 {
            for of in (0..self.memories.len()).filter(|of| !self.memories[*of].is_dead) {
                events.extend((0..1 << self.workers.len()).map(|bits| Event::Die(of, bits)));
            }
        }
        events
    }

    pub(crate) fn happen(&mut self, event: Event, scenario: &Scenario) {
        match event {
            Event::Begin(at) => {
                let request = scenario.scripts[at][self.workers[at].next];
                self.workers[at].next += 1;
                self.begin(at, request);
            }
            Event::Execute(at, of) => self.execute(at, of),
            Event::Ask(at) => self.ask(at),
            Event::Walk => self.walk(),
            Event::Scan => {
                self.left[3] -= 1;
                let mut out = Vec::new();
                self.metadata.scan(KEY, &mut out);
                self.apply_metadata(out);
            }
            Event::Break(at, of, executed) => {
                self.left[1] -= 1;
                self.lose(at, of, executed, Outcome::Unknown);
            }
            Event::Die(of, bits) => {
                self.left[0] -= 1;
                // Executed by whom it may be, before anybody hears of it.
                for at in (0..self.workers.len()).filter(|at| bits >> at & 1 == 1) {
                    let all = self.workers[at].verbs[of].clone();
                    let value = self.workers[at].running.as_ref().map_or(0, |running| running.value);
                    for verb in all {
                        self.memories[of].execute(verb, value);
                    }
                }
                self.memories[of].is_dead = true;
                (0..self.workers.len()).for_each(|at| self.lose(at, of, 0, Outcome::Dead));
            }
            Event::ClientDies(at, bits) => {
                self.left[2] -= 1;
                for of in (0..self.memories.len()).filter(|of| bits >> of & 1 == 1) {
                    while !self.workers[at].verbs[of].is_empty() {
                        self.execute_one(at, of);
                    }
                }
                let worker = &mut self.workers[at];
                worker.verbs.iter_mut().for_each(VecDeque::clear);
                (worker.call, worker.running, worker.is_dead) = (None, None, true);
                let mut out = Vec::new();
                self.metadata.on_death(self.now, ClientId(at as u64), &mut out);
                self.apply_metadata(out);
            }
        }
    }

    /// Everybody is done: somebody who knows nothing reads, and again after one memory more has died, for each that can.
    fn judge(&self, scenario: &Scenario) -> Result<(), String> {
        let dead = self.memories.iter().filter(|memory| memory.is_dead).count();
        let next = (0..self.memories.len()).filter(|of| !self.memories[*of].is_dead);
        let next = next.filter(|_| dead + 1 < self.memories.len()).map(Some).chain([None]);
        for dies in next {
            let mut last = self.clone();
            last.workers.push(Worker {
                machine: Client::with_rules(
                    self.rules,
                    client::ClientConfig { lease: Nanos(1000), slots: 1, cursors: 1 },
                )
                .with_copies(scenario.copies),
                next: 0,
                running: None,
                verbs: vec![VecDeque::new(); scenario.copies.into()],
                call: None,
                is_dead: false,
            });
            let at = last.workers.len() - 1;
            last.alone(at, Request::Get);
            if let Some(of) = dies {
                last.memories[of].is_dead = true;
                last.alone(at, Request::Get);
                last.alone(at, Request::Put(8));
                last.alone(at, Request::Get);
            }
            last.metadata.invariants();
            match check_history(&last.history, Limits::default()) {
                Verdict::Linearizable { .. } => {}
                other => return Err(format!("{other:?}, memory {dies:?} dead at the end")),
            }
        }
        Ok(())
    }
}

/// What two states have in common that are one: all but what machines only count. (Who waits for the metadata server to close a chain asks and
/// tries again and again.)
fn name(state: &impl Debug) -> (u64, u64) {
    let mut text = String::new();
    for (number, part) in format!("{state:?}").split("trips: ").enumerate() {
        text += if number == 0 { part } else { part.trim_start_matches(|c: char| c.is_ascii_digit()) };
    }
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        hasher.write(text.as_bytes());
        hasher.finish()
    };
    (hash(0), hash(1))
}

/// Looks at everything that can happen.
pub(crate) fn explore<R: Rules>(rules: R, scenario: &Scenario) -> Result<Ends, String> {
    let first = State::new(rules, scenario);
    let mut seen = HashSet::from([name(&first)]);
    // With the way there.
    let mut left: Vec<(State<R>, Vec<Event>)> = vec![(first, Vec::new())];
    let (mut ends, mut judged) = (0, HashSet::new());
    while let Some((state, way)) = left.pop() {
        let events = state.events(scenario);
        let goes_on = |event: &Event| {
            matches!(event, Event::Begin(_) | Event::Execute(..) | Event::Ask(_) | Event::Walk)
        };
        if !events.iter().any(goes_on) {
            let waits = state.workers.iter().any(|worker| !worker.is_dead && worker.running.is_some());
            if waits {
                return Err(format!("somebody waits for ever after {way:?}"));
            }
            ends += 1;
            if judged.insert(name(&(&state.memories, &state.metadata, &state.history))) {
                state.judge(scenario).map_err(|why| format!("{why}\nafter {way:?}"))?;
            }
        }
        for event in events {
            let mut next = state.clone();
            next.happen(event, scenario);
            if seen.insert(name(&next)) {
                let way = way.iter().copied().chain([event]).collect();
                left.push((next, way));
            }
        }
    }
    Ok(Ends { states: seen.len(), ends })
}
