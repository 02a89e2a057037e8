//! Clients, a metadata server and a memory with real NICs, joined by a switch that steers, over ways that lose, duplicate and delay
//! in front of the switch and behind it. What must always hold: a run follows from its seed; time goes from event to event.

mod binding;
mod faults;
mod mishaps;
mod network;
mod others;

use std::collections::{BTreeMap, VecDeque};

use chain::client::{self, Client, Done, OpId, Request};
use chain::metadata::{self, CallId, ClientId, Metadata};
use chain::{Answer, Appended, Call, Outcome, Replica};
use check::history::{Op, Operation};
use nic::verbs::Effect;
use switch::chains::{self, Binding, Steering};
use wire::roce::{Packet, QpNumber};
use wire::{Nanos, Rules};

pub(crate) use self::faults::Faults;
use self::others::Others;
use crate::steered::nic::{BASE, Nic};
use random::Dice;

const MEMORY: usize = 0;
/// The bytes of an operation's buffer at its client.
const BUFFER: u64 = 1024;
const AT_A_TIME: usize = 2;
pub(crate) const LEASE: u64 = 3_000;
/// Longer than cursors count, tails are known, and requests are in flight.
pub(crate) const QUARANTINE: u64 = LEASE + LIFETIME + DECIDE_AFTER + 1_000;
/// How long the switch takes for true what it knows.
const LIFETIME: u64 = 8_000;
/// Longer than any request is in flight: that is checked.
pub(crate) const DECIDE_AFTER: u64 = 12_000;
const UNITS: u32 = 2_500;

#[derive(Clone)]
struct Flight {
    from: usize,
    to: usize,
    packet: Packet,
    bytes: Vec<u8>,
}

enum Event {
    AtSwitch(Flight),
    AtNode(Flight),
    Begin(usize),
    Outcome(ClientId, OpId, Outcome, u64),
    Call(ClientId, OpId, Call),
    Answer(ClientId, OpId, Answer),
    Notice(ClientId, Appended),
    Walked(u64, Outcome),
    /// A bound queue pair begins.
    Bind(usize),
    Wake(ClientId),
    /// A node finds out that the switch is another one.
    Reconnect(usize),
    /// Another copy than the first one does what a node has asked of it.
    AtOther(usize, Replica),
    /// Memories come in the place of dead ones.
    Reform,
}

/// Which reads of old entries the switch sends elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reads {
    /// None.
    AsAsked,
    /// To tails that are acknowledged.
    Acknowledged,
    /// To others, too.
    Ahead,
}

/// What a switch is built for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) top: usize,
    pub(crate) reads: Reads,
    pub(crate) binding: Binding,
    /// Clients post both steps of an append at once, whatever the binding says.
    pub(crate) swaps_anyway: bool,
    /// Of each slot.
    pub(crate) copies: u8,
}

impl How {
    /// Everything passes as it is.
    pub(crate) const NATIVE: Self =
        Self { top: 0, reads: Reads::AsAsked, binding: Binding::NONE, swaps_anyway: false, copies: 1 };
}

struct Running {
    key: u64,
    op: Op,
    invoke: u64,
    /// The generation of the store that it goes by.
    generation: u64,
    value: u64,
    buffer: u64,
    /// The value was read in pieces of different writes.
    is_torn: bool,
}

/// A client; or, without a machine, the metadata server's side of its connection.
struct Worker<R: Rules> {
    id: ClientId,
    machine: Client<R>,
    running: BTreeMap<OpId, Running>,
    asleep: u64,
    /// What it has not heard yet, because it sleeps.
    held: VecDeque<Event>,
}

pub(crate) struct World<R: Rules> {
    rules: R,
    pub(crate) now: u64,
    pub(crate) random: Dice,
    pub(crate) faults: Faults,
    keys: u64,
    nics: Vec<Nic>,
    links: Vec<Option<(QpNumber, QpNumber)>>,
    /// The memory's ends of bound queue pairs.
    bound: Vec<Option<QpNumber>>,
    workers: Vec<Worker<R>>,
    copies: u8,
    /// The other copies, behind no switch that looks.
    pub(crate) others: Others,
    generation: u64,
    is_reforming: bool,
    pub(crate) metadata: Metadata<R>,
    pub(crate) switch: Steering<R>,
    events: BTreeMap<(u64, u64), Event>,
    next: u64,
    asked: BTreeMap<CallId, OpId>,
    /// When each compare-and-swap that is in flight was posted.
    posted: BTreeMap<(usize, QpNumber, u32), u64>,
    pub(crate) history: Vec<Operation<u64>>,
    /// Round trips of puts and deletes, and of gets; and how many there were.
    pub(crate) trips: [(u64, u64); 2],
    pub(crate) settled: u64,
    pub(crate) renewed: u64,
    pub(crate) failed: u64,
    pub(crate) broken: u64,
    /// Times that somebody has asked the metadata server to finish an append.
    pub(crate) finished: u64,
    pub(crate) dead_memories: u64,
    pub(crate) is_ending: bool,
    swaps_anyway: bool,
    out: Vec<Effect>,
}

impl<R: Rules> World<R> {
    pub(crate) fn new(rules: R, seed: u64, clients: usize, keys: u64, how: How, faults: Faults) -> Self {
        let config = chains::SteeringConfig {
            keys: 16,
            top: how.top,
            // One of them finds no number, now and then. Where words are bound, it would never append.
            connections: clients + usize::from(!seed.is_multiple_of(5) || how.binding.queue_pairs > 0),
            window: 64,
            slots: 256,
            lifetime: Nanos(LIFETIME),
            reads: if how.reads == Reads::AsAsked { 0 } else { 256 },
            reads_ahead: how.reads == Reads::Ahead,
            binding: how.binding,
            ..chains::SteeringConfig::default()
        };
        let quarantine = Nanos(QUARANTINE);
        let config_of_metadata = metadata::MetadataConfig {
            units: UNITS,
            quarantine,
            timeout: Nanos(1_000),
            decide_after: Nanos(DECIDE_AFTER),
        };
        let lens = (0..clients + 2).map(|at| match at {
            MEMORY => (UNITS as usize + 1) * 64,
            _ => BUFFER as usize * (AT_A_TIME + 8),
        });
        let nics: Vec<Nic> = lens.map(Nic::new).collect();
        let mut world = Self {
            rules,
            now: 1,
            random: Dice::new(seed),
            faults,
            keys,
            links: vec![None; nics.len()],
            bound: vec![None; how.binding.queue_pairs],
            nics,
            workers: Vec::new(),
            copies: how.copies,
            others: Others::new(how.copies, (UNITS as usize + 1) * 64),
            generation: 0,
            is_reforming: false,
            metadata: Metadata::with_rules(rules, config_of_metadata).with_copies(how.copies),
            switch: Steering::with_rules(rules, &config).unwrap(),
            events: BTreeMap::new(),
            next: 1,
            asked: BTreeMap::new(),
            posted: BTreeMap::new(),
            history: Vec::new(),
            trips: [(0, 0); 2],
            settled: 0,
            renewed: 0,
            failed: 0,
            broken: 0,
            finished: 0,
            dead_memories: 0,
            is_ending: false,
            swaps_anyway: how.swaps_anyway,
            out: Vec::new(),
        };
        world.workers = (0..clients).map(|_| world.client()).collect();
        (0..how.binding.queue_pairs).for_each(|at| world.bind(at));
        for at in 1..world.nics.len() {
            world.connect(at);
        }
        for at in 0..clients {
            world.schedule(1 + at as u64, Event::Begin(at));
        }
        world
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn schedule(&mut self, after: u64, event: Event) {
        let number = self.number();
        self.events.insert((self.now + after, number), event);
    }

    fn client(&mut self) -> Worker<R> {
        let cursors = 1 + self.random.below(4) as usize;
        let slots = 1 + self.random.below(3) as u32;
        let config = client::ClientConfig { lease: Nanos(LEASE), slots, cursors };
        let mut machine = Client::with_rules(self.rules, config);
        if self.copies > 1 {
            machine = machine.with_copies(self.copies);
            machine.expect_steered_appends(Nanos(QUARANTINE * 8));
            return self.worker(machine);
        }
        let may = self.swaps_anyway || self.switch.config().binding.lets_clients_swap_at_once();
        if may && self.random.below(2) == 0 {
            machine = machine.swapping_at_once();
        }
        if self.random.below(2) == 0 {
            machine.expect_steered_appends(Nanos(QUARANTINE * 8));
        }
        if self.switch.config().reads > 0 {
            machine.expect_steered_reads();
            machine = machine.asking_for_more(self.random.below(3) as u32);
        }
        self.worker(machine)
    }

    fn worker(&mut self, machine: Client<R>) -> Worker<R> {
        let (id, running, held) = (ClientId(self.number()), BTreeMap::new(), VecDeque::new());
        Worker { id, machine, running, asleep: 0, held }
    }

    const fn metadata_node(&self) -> usize {
        self.workers.len() + 1
    }

    // Clients.

    fn begin(&mut self, at: usize) {
        let pause = 1 + self.random.below(120);
        self.schedule(pause, Event::Begin(at));
        let worker = &self.workers[at];
        if self.is_ending || worker.running.len() >= AT_A_TIME || worker.asleep > self.now {
            return;
        }
        let key = self.random.below(self.keys);
        let what = self.random.below(20);
        self.begin_one(at, key, what);
    }

    /// Begins a delete, a put, or a get.
    pub(crate) fn begin_one(&mut self, at: usize, key: u64, what: u64) {
        let op = OpId(self.number());
        let (request, what) = match what {
            0 => (Request::Delete, Op::Delete),
            1..=12 => {
                // Of three sizes; the largest one in two packets.
                let len = [8, 8, 100, 400][self.random.below(4) as usize];
                (Request::Put(len), Op::Insert { value: op.0 })
            }
            _ => (Request::Get, Op::Read { value: None }),
        };
        let worker = &mut self.workers[at];
        let taken: Vec<u64> = worker.running.values().map(|running| running.buffer).collect();
        let buffers = (0..).map(|at| BASE + at * BUFFER);
        let buffer = buffers.into_iter().find(|buffer| !taken.contains(buffer)).unwrap();
        let running = Running {
            key,
            op: what,
            invoke: self.now,
            generation: self.generation,
            value: op.0,
            buffer,
            is_torn: false,
        };
        worker.running.insert(op, running);
        let mut effects = Vec::new();
        worker.machine.begin(Nanos(self.now), op, key, request, &mut effects);
        self.apply(at, effects);
    }

    fn apply(&mut self, at: usize, effects: Vec<client::Effect>) {
        for effect in effects {
            let worker = &self.workers[at];
            let id = worker.id;
            match effect {
                client::Effect::Verb(op, replica, verb) => {
                    let Running { buffer, value, generation, .. } = worker.running[&op];
                    if generation < self.generation {
                        // It learns what the store is made of, and begins anew.
                        self.workers[at].running.get_mut(&op).expect("it runs").generation = self.generation;
                        self.ended(at + 1, op.0, Outcome::Superseded, 0);
                    } else {
                        self.ask(at + 1, op.0, (replica, verb), buffer, value);
                    }
                }
                client::Effect::Call(op, call) => {
                    self.settled += u64::from(matches!(call, Call::Settle { .. }));
                    self.renewed += u64::from(matches!(call, Call::Renew { .. }));
                    self.finished += u64::from(matches!(call, Call::Finish { .. }));
                    let way = self.way();
                    self.schedule(way, Event::Call(id, op, call));
                }
                client::Effect::Notice(notice) => {
                    if !self.random.per_mille(100) {
                        let way = self.way();
                        self.schedule(way, Event::Notice(id, notice));
                    }
                }
                client::Effect::Done { op, done, trips } => self.done(at, op, done, trips),
            }
        }
    }

    fn done(&mut self, at: usize, op: OpId, done: Done, trips: u32) {
        let worker = &mut self.workers[at];
        let running = worker.running.remove(&op).expect("it was begun");
        let sum = &mut self.trips[usize::from(matches!(running.op, Op::Read { .. }))];
        *sum = (sum.0 + u64::from(trips), sum.1 + 1);
        let what = match (running.op, done) {
            (Op::Read { .. }, Done::Value(_)) => {
                assert!(!running.is_torn, "a value is torn");
                Op::Read { value: Some(running.value) }
            }
            (Op::Read { .. }, Done::Nothing) => Op::Read { value: None },
            (Op::Delete, Done::Nothing | Done::Appended) => Op::Delete,
            (put @ Op::Insert { .. }, Done::Appended) => put,
            (_, Done::NoMemory) => return,
            (_, Done::Failed) => {
                self.failed += 1;
                return;
            }
            (what, done) => panic!("{what:?} ended with {done:?}"),
        };
        let (client, key) = (worker.id.0 * 100_000 + op.0, running.key);
        let (invoke, ret) = (Nanos(running.invoke), Some(Nanos(self.now)));
        self.history.push(Operation { client, key, op: what, invoke, ret });
    }

    /// The worker of a client that lives and is awake; if it sleeps, the event comes later, in its order.
    fn awake(&mut self, id: ClientId, event: Event) -> Option<(usize, Event)> {
        let at = self.workers.iter().position(|worker| worker.id == id)?;
        let Worker { asleep, held, .. } = &mut self.workers[at];
        if *asleep <= self.now && held.is_empty() {
            return Some((at, event));
        }
        held.push_back(event);
        if held.len() == 1 {
            let left = *asleep - self.now;
            self.schedule(left, Event::Wake(id));
        }
        None
    }

    /// A client hears what it has slept over, if it sleeps no longer.
    fn wake(&mut self, id: ClientId) {
        let Some(at) = self.workers.iter().position(|worker| worker.id == id) else { return };
        let Worker { asleep, held, .. } = &mut self.workers[at];
        if *asleep > self.now {
            let left = *asleep - self.now;
            return self.schedule(left, Event::Wake(id));
        }
        std::mem::take(held).into_iter().for_each(|event| self.happen(event));
    }

    // The metadata server.

    fn apply_metadata(&mut self, effects: Vec<metadata::Effect>) {
        for effect in effects {
            match effect {
                metadata::Effect::Verb(key, replica, verb) => {
                    self.ask(self.metadata_node(), key, (replica, verb), BASE + key * BUFFER, 0);
                }
                metadata::Effect::Answer(id, answer) => {
                    let op = self.asked.remove(&id).expect("it was asked");
                    let way = self.way();
                    self.schedule(way, Event::Answer(id.client, op, answer));
                }
            }
        }
    }

    // Time.

    /// Whatever comes next happens. False if nothing is left but to begin.
    pub(crate) fn step(&mut self) -> bool {
        let due = self.nics.iter().map(|nic| nic.device.next_deadline().0).min().unwrap();
        let waiting = self.metadata.next_deadline().0;
        let event = self.events.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
        let next = due.min(waiting).min(event);
        if next == u64::MAX {
            return false;
        }
        self.now = self.now.max(next);
        if event == next {
            let (_, event) = self.events.pop_first().expect("it is there");
            self.happen(event);
        } else if due == next {
            for at in 0..self.nics.len() {
                let mut out = std::mem::take(&mut self.out);
                self.nics[at].device.on_deadline(Nanos(self.now), &mut out);
                self.carry_out(at, &[], out);
            }
        } else {
            let mut effects = Vec::new();
            self.metadata.on_deadline(Nanos(self.now), &mut effects);
            self.apply_metadata(effects);
        }
        if !self.is_ending {
            self.mishap();
        }
        // They look at everything.
        if self.next.is_multiple_of(64) {
            self.metadata.invariants();
            self.switch.invariants();
        }
        true
    }

    fn happen(&mut self, event: Event) {
        let mut effects = Vec::new();
        match event {
            Event::AtSwitch(flight) => self.at_switch(flight),
            Event::AtNode(flight) => self.at_node(flight),
            Event::Begin(at) => self.begin(at),
            Event::Bind(at) => self.bind(at),
            Event::Reconnect(at) => self.reconnect(at),
            Event::Wake(id) => self.wake(id),
            Event::AtOther(at, replica) => self.at_other(at, replica),
            Event::Reform => self.reform(),
            Event::Outcome(id, ..) => {
                let Some((at, Event::Outcome(_, op, outcome, value))) = self.awake(id, event) else { return };
                let worker = &mut self.workers[at];
                let running = worker.running.get_mut(&op).expect("it is in flight");
                // A put keeps its own, although it may read its way to the tail.
                if let (Outcome::Read(_), Op::Read { .. }) = (outcome, running.op) {
                    running.value = value;
                }
                worker.machine.on_outcome(Nanos(self.now), op, outcome, &mut effects);
                self.apply(at, effects);
            }
            Event::Answer(id, ..) => {
                let Some((at, Event::Answer(_, op, answer))) = self.awake(id, event) else { return };
                let machine = &mut self.workers[at].machine;
                machine.on_answer(Nanos(self.now), op, Some(answer), &mut effects);
                self.apply(at, effects);
            }
            Event::Call(client, op, call) => {
                if !self.workers.iter().any(|worker| worker.id == client) {
                    return;
                }
                let id = CallId { client, number: self.number() };
                self.asked.insert(id, op);
                let mut effects = Vec::new();
                self.metadata.on_call(Nanos(self.now), id, call, &mut effects);
                self.apply_metadata(effects);
            }
            Event::Walked(key, outcome) => {
                let mut effects = Vec::new();
                self.metadata.on_outcome(Nanos(self.now), key, outcome, &mut effects);
                self.apply_metadata(effects);
            }
            Event::Notice(client, notice) => {
                let mut effects = Vec::new();
                self.metadata.on_notice(Nanos(self.now), client, notice, &mut effects);
                self.apply_metadata(effects);
            }
        }
    }
}
