//! Clients, metadata servers, and memory whose NIC executes what each of them asks in its order, at random moments. What must
//! always hold: a run follows from its seed. READs and WRITEs take two steps, so that what is read while it is written is torn.

use std::collections::{BTreeMap, VecDeque};

use chain::client::{self, Client, Done, OpId, Request};
use chain::metadata::{self, ClientId, Metadata};
use chain::server::{Followed, Server, ServerId};
use chain::{Answer, Appended, Call, Outcome, Replica, Verb};
use check::history::{Op, Operation};
use wire::chains::{Class, Word};
use wire::{Nanos, Rules};

use crate::chains::memories::{Care, Flight, Memories, Reach};
use random::Dice;

/// How long slots stay in quarantine; cursors count for less.
pub(crate) const QUARANTINE: u64 = 400;
const LEASE: u64 = 300;
const KEYS: u64 = 3;
/// Operations that a client has in flight.
const AT_A_TIME: usize = 2;
/// Enough for a few versions of each key, and for what is in quarantine.
pub(crate) const UNITS: u32 = 600;

struct Running {
    key: u64,
    op: Op,
    invoke: u64,
    /// The generation of the store that it goes by: live clients do one operation at a time.
    generation: u64,
    /// Of nodes with memory of later ones it has not heard yet.
    heard: u64,
    /// What stands for the value: of a put the one to write, of a get the one that was read last.
    value: u64,
}

pub(crate) struct Worker<R: Rules> {
    id: ClientId,
    machine: Client<R>,
    /// For each memory.
    to_memory: Vec<VecDeque<Flight>>,
    /// And from which memory.
    outcomes: VecDeque<(usize, OpId, Outcome, u64)>,
    /// They are made one after the other, and asked until there is an answer.
    calls: VecDeque<(OpId, u32, Call)>,
    answers: VecDeque<(OpId, Option<Answer>)>,
    notices: VecDeque<Appended>,
    running: BTreeMap<OpId, Running>,
    /// It does nothing until then.
    asleep: u64,
    /// Nor does a memory's NIC for it, whatever it is in the middle of.
    stalled: Vec<u64>,
}

pub(crate) struct World<R: Rules> {
    rules: R,
    pub(crate) now: u64,
    random: Dice,
    /// How many keys there are.
    keys: u64,
    copies: u8,
    memories: Memories,
    /// Of what the store is made of.
    generation: u64,
    /// What is not taken care of.
    pub(crate) without: Option<Care>,
    clients: Vec<Worker<R>>,
    /// The primary and its backups, one for each copy more: none where one has died.
    servers: Vec<Option<Server<R>>>,
    /// In which order they take over.
    order: Vec<usize>,
    /// It has been given what there was, and is not one of them yet.
    joins: Option<ServerId>,
    /// One that knows nothing, for new backups.
    machine: Option<Metadata<R>>,
    /// Verbs of the one that leads.
    walks: VecDeque<(u64, Replica, Verb)>,
    /// Verbs of one that has died: they may still be executed. (Live racks see to it that they are not, once another one has taken
    /// over: use numbers come round.)
    late: VecDeque<(Replica, Verb)>,
    next: u64,
    pub(crate) history: Vec<Operation<u64>>,
    pub(crate) trips: u64,
    pub(crate) settled: u64,
    pub(crate) deaths: u64,
    /// Times that somebody has asked the metadata server to finish an append.
    pub(crate) finished: u64,
    pub(crate) no_memory: u64,
    pub(crate) dead_servers: u64,
    pub(crate) dead_memories: u64,
    pub(crate) recopied: u64,
    pub(crate) new_backups: u64,
    /// Nothing new is begun.
    pub(crate) is_ending: bool,
}

impl<R: Rules> World<R> {
    /// A store with so many copies of each slot, in so many memories.
    pub(crate) fn new(rules: R, seed: u64, clients: usize, copies: u8, memories: usize) -> Self {
        let config = metadata::MetadataConfig {
            units: UNITS,
            quarantine: Nanos(QUARANTINE),
            timeout: Nanos(100),
            decide_after: Nanos::ZERO,
        };
        let mut world = Self {
            rules,
            now: 1,
            random: Dice::new(seed),
            keys: 1 + seed % KEYS,
            copies,
            memories: Memories::new(memories, copies),
            generation: 0,
            without: None,
            clients: Vec::new(),
            servers: Vec::new(),
            order: Vec::new(),
            joins: None,
            machine: None,
            walks: VecDeque::new(),
            late: VecDeque::new(),
            next: 1,
            history: Vec::new(),
            trips: 0,
            settled: 0,
            deaths: 0,
            finished: 0,
            no_memory: 0,
            dead_servers: 0,
            dead_memories: 0,
            recopied: 0,
            new_backups: 0,
            is_ending: false,
        };
        let machine = Metadata::with_rules(rules, config).with_copies(copies);
        world.machine = Some(machine.clone());
        world.order = (0..usize::from(copies)).collect();
        let backups: Vec<ServerId> = (1..u16::from(copies)).map(ServerId).collect();
        let others = backups.iter().map(|_| Some(Server::backup(rules, machine.clone())));
        let primary = Some(Server::primary(rules, machine.clone(), &backups));
        world.servers = [primary].into_iter().chain(others).collect();
        world.clients = (0..clients).map(|_| world.client()).collect();
        world
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn client(&mut self) -> Worker<R> {
        let cursors = 1 + self.random.below(3) as usize;
        let slots = 1 + self.random.below(3) as u32;
        let config = client::ClientConfig { lease: Nanos(LEASE), slots, cursors };
        Worker {
            id: ClientId(self.number()),
            machine: Client::with_rules(self.rules, config).with_copies(self.copies),
            to_memory: vec![VecDeque::new(); self.memories.len()],
            outcomes: VecDeque::new(),
            calls: VecDeque::new(),
            answers: VecDeque::new(),
            notices: VecDeque::new(),
            running: BTreeMap::new(),
            asleep: 0,
            stalled: vec![0; self.memories.len()],
        }
    }

    /// Something happens, somewhere.
    pub(crate) fn step(&mut self) {
        self.now += self.random.below(3);
        let at = self.random.below(self.clients.len() as u64) as usize;
        match self.random.below(15) {
            0 | 1 => self.begin(at),
            2..=5 => self.execute(at),
            6 | 7 => self.deliver(at),
            8 => self.call(at),
            9 => self.answer(at),
            10 => self.notice(at),
            11 | 12 => self.walk(),
            13 => self.look(),
            _ => self.mishap(at),
        }
        self.servers.iter().flatten().for_each(|server| server.machine().invariants());
    }

    fn begin(&mut self, at: usize) {
        let worker = &self.clients[at];
        if self.is_ending || worker.running.len() >= AT_A_TIME || worker.asleep > self.now {
            return;
        }
        let (op, key) = (OpId(self.number()), self.random.below(self.keys));
        let (request, what) = match self.random.below(10) {
            0 => (Request::Delete, Op::Delete),
            // Of two sizes.
            1..=5 => {
                let len = if self.random.below(3) == 0 { 100 } else { 8 };
                (Request::Put(len), Op::Insert { value: op.0 })
            }
            _ => (Request::Get, Op::Read { value: None }),
        };
        let generation = self.generation - self.random.below(2).min(self.generation);
        let heard = self.generation - self.random.below(2).min(self.generation);
        let running = Running { key, op: what, invoke: self.now, generation, heard, value: op.0 };
        let worker = &mut self.clients[at];
        worker.running.insert(op, running);
        let mut effects = Vec::new();
        worker.machine.begin(Nanos(self.now), op, key, request, &mut effects);
        self.apply(at, effects);
    }

    fn apply(&mut self, at: usize, effects: Vec<client::Effect>) {
        for effect in effects {
            let worker = &mut self.clients[at];
            match effect {
                client::Effect::Verb(op, replica, verb) => {
                    let value = worker.running[&op].value;
                    let to = self.memories.of(&verb, replica);
                    let Running { generation, heard, .. } = worker.running[&op];
                    // Whoever waits for that has heard of it when its verb is executed.
                    let knows = if self.without == Some(Care::Heard) { heard } else { generation };
                    match self.memories.reach(to, generation, knows) {
                        Reach::Dead => worker.outcomes.push_back((to, op, Outcome::Dead, 0)),
                        Reach::Connected => {
                            worker.to_memory[to].push_back(Flight { op, verb, value, half: None });
                        }
                        Reach::Outdated => {
                            worker.running.get_mut(&op).expect("it runs").generation = self.generation;
                            if self.without == Some(Care::Anew) {
                                worker.to_memory[to].push_back(Flight { op, verb, value, half: None });
                            } else {
                                // Whatever becomes of that memory.
                                worker.outcomes.push_back((usize::MAX, op, Outcome::Superseded, 0));
                            }
                        }
                    }
                }
                client::Effect::Call(op, call) => {
                    self.settled += u64::from(matches!(call, Call::Settle { .. }));
                    self.finished += u64::from(matches!(call, Call::Finish { .. }));
                    let number = self.number() as u32;
                    self.clients[at].calls.push_back((op, number, call));
                }
                client::Effect::Notice(notice) => {
                    if !self.random.per_mille(200) {
                        self.clients[at].notices.push_back(notice);
                    }
                }
                client::Effect::Done { op, done, trips } => self.done(at, op, done, trips),
            }
        }
    }

    fn done(&mut self, at: usize, op: OpId, done: Done, trips: u32) {
        let worker = &mut self.clients[at];
        let running = worker.running.remove(&op).expect("it was begun");
        self.trips += u64::from(trips);
        let what = match (running.op, done) {
            (Op::Read { .. }, Done::Value(_)) => Op::Read { value: Some(running.value) },
            (Op::Read { .. }, Done::Nothing) => Op::Read { value: None },
            (Op::Delete, Done::Nothing | Done::Appended) => Op::Delete,
            (put @ Op::Insert { .. }, Done::Appended) => put,
            (_, Done::NoMemory) => {
                self.no_memory += 1;
                return;
            }
            // Nothing was done.
            (_, Done::Failed) => return,
            (what, done) => panic!("{what:?} ended with {done:?}"),
        };
        let (client, key) = (worker.id.0 * 1000 + op.0, running.key);
        let (invoke, ret) = (Nanos(running.invoke), Some(Nanos(self.now)));
        self.history.push(Operation { client, key, op: what, invoke, ret });
    }

    /// A memory's NIC executes the next half of what a client has asked.
    fn execute(&mut self, at: usize) {
        let of = self.random.below(self.memories.len() as u64) as usize;
        let worker = &mut self.clients[at];
        if worker.stalled[of] > self.now {
            return;
        }
        let Some(flight) = worker.to_memory[of].front_mut() else { return };
        let op = flight.op;
        if let Some((outcome, value)) = self.memories.execute(of, flight) {
            worker.to_memory[of].pop_front();
            worker.outcomes.push_back((of, op, outcome, value));
        }
    }

    fn deliver(&mut self, at: usize) {
        let now = self.now;
        let worker = &mut self.clients[at];
        if worker.asleep > now {
            return;
        }
        let Some((_, op, outcome, value)) = worker.outcomes.pop_front() else { return };
        let running = worker.running.get_mut(&op).expect("it is in flight");
        // A put keeps its own, although it may read its way to the tail.
        if matches!((outcome, running.op), (Outcome::Read(_), Op::Read { .. })) {
            running.value = value;
        }
        let mut effects = Vec::new();
        worker.machine.on_outcome(Nanos(now), op, outcome, &mut effects);
        self.apply(at, effects);
    }

    /// The server that leads, or that is about to.
    fn server(&mut self) -> &mut Server<R> {
        let first = self.first_server();
        self.servers[first].as_mut().expect("it lives")
    }

    fn first_server(&self) -> usize {
        *self.order.iter().find(|server| self.servers[**server].is_some()).expect("one of them lives")
    }

    /// A client asks; or once more, because there was no answer, or it was lost.
    fn call(&mut self, at: usize) {
        let (now, is_lost) = (Nanos(self.now), self.random.below(20) == 0);
        let worker = &self.clients[at];
        let (id, Some(&(op, number, call))) = (worker.id, worker.calls.front()) else { return };
        if let Some(answer) = self.server().call(now, id, number, call)
            && !is_lost
        {
            let worker = &mut self.clients[at];
            worker.calls.pop_front();
            worker.answers.push_back((op, Some(answer)));
        }
    }

    fn answer(&mut self, at: usize) {
        let now = self.now;
        let worker = &mut self.clients[at];
        if worker.asleep > now {
            return;
        }
        let Some((op, answer)) = worker.answers.pop_front() else { return };
        let mut effects = Vec::new();
        worker.machine.on_answer(Nanos(now), op, answer, &mut effects);
        self.apply(at, effects);
    }

    fn notice(&mut self, at: usize) {
        let now = Nanos(self.now);
        let worker = &mut self.clients[at];
        let (id, Some(notice)) = (worker.id, worker.notices.pop_front()) else { return };
        self.server().told(now, id, notice);
    }

    /// The metadata server's own verbs.
    fn walk(&mut self) {
        let (now, at_a_time) = (Nanos(self.now), 1 + self.random.below(2) as usize);
        if self.random.below(8) == 0
            && let Some((replica, verb)) = self.late.pop_front()
        {
            self.memories.at_once(verb, replica);
        }
        self.server().wake(now);
        if self.walks.len() < at_a_time {
            let verbs = self.server().verbs(at_a_time);
            self.walks.extend(verbs);
        }
        let Some((key, replica, verb)) = self.walks.pop_front() else { return };
        // What is lost is the verb, or its answer.
        let outcome = match self.random.below(100) {
            0 => Outcome::Unknown,
            1 => {
                self.memories.at_once(verb, replica);
                Outcome::Unknown
            }
            _ => self.memories.at_once(verb, replica),
        };
        self.server().ended(now, key, outcome);
    }

    /// The metadata server looks who has died, and tells its backups what has happened.
    fn look(&mut self) {
        let (now, some) = (Nanos(self.now), 1 + self.random.below(4) as usize);
        if !self.server().leads() {
            if self.random.below(4) == 0 {
                let first = self.order.iter().position(|server| *server == self.first_server()).unwrap();
                // One that was about to become a backup is not known to be.
                if let Some(id) = self.joins.take() {
                    self.servers[usize::from(id.0)] = None;
                }
                let behind = self.order.split_off(first);
                self.order = behind;
                let backups: Vec<ServerId> = self.order[1..].iter().map(|id| ServerId(*id as u16)).collect();
                self.server().lead(&backups);
            }
            return;
        }
        let live: Vec<ClientId> = self.clients.iter().map(|worker| worker.id).collect();
        let server = self.server();
        let dead: Vec<ClientId> = server.clients().filter(|client| !live.contains(client)).collect();
        dead.into_iter().for_each(|client| server.dies(now, client));
        let backups = server.backups();
        if let Some(id) = self.joins {
            if self.server().backup_joins(id) {
                self.joins = None;
                self.order.retain(|server| self.servers[*server].is_some());
                self.order.push(usize::from(id.0));
                self.new_backups += 1;
            }
        } else if backups.len() + 1 < usize::from(self.copies) && self.random.below(4) == 0 {
            return self.new_backup();
        }
        if backups.is_empty() {
            return;
        }
        let id = backups[self.random.below(backups.len() as u64) as usize];
        let is_lost = self.random.below(10) == 0;
        let batch = self.server().for_backup(id, some);
        match (&mut self.servers[usize::from(id.0)], batch) {
            (None, _) => self.server().backup_is_gone(id),
            (Some(backup), Some(batch)) => match backup.follow(now, batch) {
                Followed::Has(inputs) if !is_lost => self.server().backup_has(id, inputs),
                Followed::Has(_) => {}
                other => panic!("the backup says {other:?}"),
            },
            (Some(_), None) => {}
        }
    }

    /// Another server is given what the one that leads knows.
    fn new_backup(&mut self) {
        let now = Nanos(self.now);
        let id = ServerId(self.servers.len() as u16);
        let server = self.server();
        let (at, words) = (server.clock(now), server.add_backup(id));
        let machine = self.machine.clone().expect("it was made");
        let backup = Server::from_words((self.rules, machine), (now, at), &words);
        let mut backup = backup.expect("it is as it was put");
        let mut again = Vec::new();
        backup.add_backup(ServerId(u16::MAX)).clone_into(&mut again);
        assert_eq!(again, words, "what was taken is what was put");
        backup.backup_is_gone(ServerId(u16::MAX));
        self.servers.push(Some(backup));
        self.joins = Some(id);
    }

    /// A metadata server dies, if there is another one.
    fn server_dies(&mut self) {
        let place = self.order[self.random.below(self.order.len() as u64) as usize];
        let live = self.order.iter().filter(|server| self.servers[**server].is_some()).count();
        if live < 2 || self.servers[place].is_none() {
            return;
        }
        if self.first_server() == place {
            self.late.extend(self.walks.drain(..).map(|(_, replica, verb)| (replica, verb)));
        }
        self.servers[place] = None;
        self.dead_servers += 1;
    }

    fn mishap(&mut self, at: usize) {
        match self.random.below(100) {
            // The connection to a memory breaks: nothing of what was asked and not executed ever will be.
            0..=3 => {
                let of = self.random.below(self.memories.len() as u64) as usize;
                self.lose(at, of, Outcome::Unknown);
            }
            4 => self.clients[at].asleep = self.now + self.random.below(3 * QUARANTINE),
            5..=7 => {
                let of = self.random.below(self.memories.len() as u64) as usize;
                self.clients[at].stalled[of] = self.now + self.random.below(2 * QUARANTINE);
            }
            9 if self.random.below(8) == 0 => self.memory_dies(),
            10 if self.random.below(3) == 0 => self.server_dies(),
            11 => self.recopy(),
            8 => self.die(at),
            _ => {}
        }
    }

    /// What a client has asked of a memory ends like that, and what it has not heard yet, too.
    fn lose(&mut self, at: usize, of: usize, outcome: Outcome) {
        let worker = &mut self.clients[at];
        worker.outcomes.iter_mut().filter(|told| told.0 == of).for_each(|told| told.2 = outcome);
        let lost = worker.to_memory[of].drain(..);
        worker.outcomes.extend(lost.map(|flight| (of, flight.op, outcome, 0)));
    }

    /// A memory dies, if one copy of everything is left then.
    fn memory_dies(&mut self) {
        let of = self.random.below(self.memories.len() as u64) as usize;
        if self.memories.is_dead(of) || self.memories.dead() + 1 >= usize::from(self.copies) {
            return;
        }
        self.memories.kill(of);
        self.dead_memories += 1;
        for at in 0..self.clients.len() {
            if self.random.below(2) == 0 {
                self.lose(at, of, Outcome::Dead);
            } else {
                // What it has answered arrives.
                let worker = &mut self.clients[at];
                let lost = worker.to_memory[of].drain(..);
                worker.outcomes.extend(lost.map(|flight| (of, flight.op, Outcome::Dead, 0)));
            }
        }
    }

    /// What a dead memory had is copied to another one, while nobody is connected to any.
    fn recopy(&mut self) {
        // The server that does it has nothing else in flight.
        if !self.walks.is_empty() || !self.server().leads() {
            return;
        }
        let Some(dead) = self.memories.first_dead() else { return };
        self.generation += 1;
        self.late.clear();
        for from in self.memories.replace(dead, self.generation, self.without) {
            for at in 0..self.clients.len() {
                if self.random.below(2) == 0 {
                    self.lose(at, from, Outcome::Superseded);
                } else {
                    // What was answered arrives.
                    let worker = &mut self.clients[at];
                    let lost = worker.to_memory[from].drain(..);
                    worker.outcomes.extend(lost.map(|flight| (from, flight.op, Outcome::Superseded, 0)));
                }
            }
        }
        self.recopied += 1;
    }

    /// A client dies, and another one comes.
    pub(crate) fn die(&mut self, at: usize) {
        let next = self.client();
        let dead = std::mem::replace(&mut self.clients[at], next);
        self.deaths += 1;
        for (op, running) in dead.running {
            let client = dead.id.0 * 1000 + op.0;
            let (key, invoke) = (running.key, Nanos(running.invoke));
            self.history.push(Operation { client, key, op: running.op, invoke, ret: None });
        }
    }

    /// True if nobody waits for anything.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let server = self.server();
        let is_done = server.leads() && !server.has_work();
        is_done && self.walks.is_empty() && self.clients.iter().all(|worker| worker.running.is_empty())
    }

    /// All clients die, and what they have comes back: how many units are neither free nor a chain's tail then.
    pub(crate) fn leaked(&mut self) -> u64 {
        for at in 0..self.clients.len() {
            self.die(at);
        }
        for _ in 0..2 {
            self.now += 2 * QUARANTINE;
            for _ in 0..10_000 {
                self.look();
                self.walk();
            }
        }
        let server = self.server();
        let (made, free) = server.machine().memory();
        // A tail has one unit, or two.
        u64::from(made - free)
            .saturating_sub(server.machine().keys() as u64 * Class::new(2).unwrap().bytes() / 64)
    }

    /// What a read of each key finds at the end, in words for an error.
    pub(crate) fn words(&self) -> Vec<Option<Word>> {
        self.memories.words().map(Word::from_bits).collect()
    }
}
