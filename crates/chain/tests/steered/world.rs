//! Clients, a metadata server and a memory with real NICs, joined by a switch that steers, over ways that lose, duplicate and delay
//! in front of the switch and behind it. What must always hold: a run follows from its seed; time goes from event to event.

use std::collections::BTreeMap;

use chain::client::{self, Client, Done, OpId, Request};
use chain::metadata::{self, CallId, ClientId, Metadata};
use chain::{Answer, Appended, Call, Outcome, Verb};
use check::history::{Op, Operation};
use nic::verbs::{
    Completion, Depth, Effect, Mtu, Operation as Work, Payload, Remote, Span, Status, ToReceive, ToSend,
    WorkId, WorkRequest,
};
use switch::steering::{self, Action, Connection, End, Steering};
use wire::chain::EntryHead;
use wire::roce::{AtomicEth, Extension, Key, Opcode, Packet, Psn, QpNumber};
use wire::{ChainRules, Nanos, NodeId, SteerRules};

use crate::nic::{BASE, Nic, address};

const MEMORY: usize = 0;
/// The bytes of an operation's buffer at its client.
const BUFFER: u64 = 1024;
const AT_A_TIME: usize = 2;
pub(crate) const LEASE: u64 = 3_000;
pub(crate) const REST: u64 = 4_000;
/// Longer than any request is under way: that is checked.
pub(crate) const DOUBT: u64 = 12_000;
const UNITS: u32 = 700;

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }
}

/// What goes wrong, per mille.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    /// Packets that take much longer than others.
    pub(crate) delay: u64,
    /// A packet's way takes up to so much more than another's.
    pub(crate) jitter: u64,
    /// Mishaps, out of a million, for each event.
    pub(crate) restarts: u64,
    pub(crate) forgets: u64,
    pub(crate) breaks: u64,
    pub(crate) naks: u64,
    pub(crate) deaths: u64,
    pub(crate) sleeps: u64,
    pub(crate) keys: u64,
}

impl Faults {
    pub(crate) const ALL: Self = Self {
        loss: 10,
        duplication: 20,
        delay: 20,
        jitter: 20,
        restarts: 120,
        forgets: 120,
        breaks: 150,
        naks: 150,
        deaths: 150,
        sleeps: 200,
        keys: 300,
    };
}

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
}

struct Running {
    key: u64,
    op: Op,
    invoke: u64,
    value: u64,
    buffer: u64,
    /// The value was read in pieces of different writes.
    is_torn: bool,
}

/// A client; or, without a machine, the metadata server's side of its connection.
struct Place<C: ChainRules> {
    id: ClientId,
    machine: Client<C>,
    running: BTreeMap<OpId, Running>,
    asleep: u64,
}

pub(crate) struct World<C: ChainRules, S: SteerRules> {
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    keys: u64,
    nics: Vec<Nic>,
    links: Vec<Option<(QpNumber, QpNumber)>>,
    places: Vec<Place<C>>,
    pub(crate) metadata: Metadata<C>,
    pub(crate) switch: Steering<S>,
    events: BTreeMap<(u64, u64), Event>,
    next: u64,
    asked: BTreeMap<CallId, OpId>,
    /// When each compare-and-swap that is under way was posted.
    posted: BTreeMap<(usize, QpNumber, u32), u64>,
    pub(crate) history: Vec<Operation<u64>>,
    pub(crate) trips: u64,
    pub(crate) settled: u64,
    pub(crate) renewed: u64,
    pub(crate) failed: u64,
    pub(crate) broken: u64,
    pub(crate) is_ending: bool,
    out: Vec<Effect>,
}

impl<C: ChainRules, S: SteerRules> World<C, S> {
    pub(crate) fn new(seed: u64, clients: usize, keys: u64, top: usize, faults: Faults) -> Self {
        let config = steering::Config {
            keys: 16,
            top,
            // One of them finds no number, now and then.
            connections: clients + usize::from(!seed.is_multiple_of(5)),
            window: 64,
            slots: 256,
            lifetime: Nanos(60 * REST),
            ..steering::Config::default()
        };
        let rest = Nanos(REST);
        let config_of_metadata =
            metadata::Config { units: UNITS, rest, patience: Nanos(1_000), doubt: Nanos(DOUBT) };
        let lens = (0..clients + 2).map(|at| match at {
            MEMORY => (UNITS as usize + 1) * 64,
            _ => BUFFER as usize * (AT_A_TIME + 8),
        });
        let nics: Vec<Nic> = lens.map(Nic::new).collect();
        let mut world = Self {
            now: 1,
            random: Random(seed),
            faults,
            keys,
            links: vec![None; nics.len()],
            nics,
            places: Vec::new(),
            metadata: Metadata::new(config_of_metadata),
            switch: Steering::with_rules(&config).unwrap(),
            events: BTreeMap::new(),
            next: 1,
            asked: BTreeMap::new(),
            posted: BTreeMap::new(),
            history: Vec::new(),
            trips: 0,
            settled: 0,
            renewed: 0,
            failed: 0,
            broken: 0,
            is_ending: false,
            out: Vec::new(),
        };
        world.places = (0..clients).map(|_| world.client()).collect();
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

    fn client(&mut self) -> Place<C> {
        let cursors = 1 + self.random.below(4) as usize;
        let slots = 1 + self.random.below(3) as u32;
        let config = client::Config { lease: Nanos(LEASE), slots, cursors };
        Place {
            id: ClientId(self.number()),
            machine: Client::new(config),
            running: BTreeMap::new(),
            asleep: 0,
        }
    }

    const fn metadata_node(&self) -> usize {
        self.places.len() + 1
    }

    // Connections.

    /// Makes a connection of a node to the memory, anew.
    fn connect(&mut self, at: usize) {
        let depth = Depth { sends: 64, receives: 1 };
        // Some of them come round.
        let psn = [(); 2].map(|()| Psn::new((1 << 24) - 2_000 + self.random.below(4_000) as u32));
        let pairs = [at, MEMORY].map(|node| {
            let nic = &mut self.nics[node];
            nic.device.create_queue_pair(nic.queue, nic.queue, depth)
        });
        for (side, node) in [at, MEMORY].into_iter().enumerate() {
            let peer = NodeId([at, MEMORY][1 - side] as u16);
            let device = &mut self.nics[node].device;
            let receive = ToReceive::new(peer, pairs[1 - side], Mtu::B256, psn[1 - side]);
            let send = ToSend {
                timeout: Nanos(400),
                retries: 5,
                outstanding: 8,
                window: 32,
                read_chunk: 16,
                ..ToSend::new(psn[side])
            };
            device.init(pairs[side]).unwrap();
            device.ready_to_receive(pairs[side], receive).unwrap();
            device.ready_to_send(pairs[side], send).unwrap();
        }
        self.links[at] = Some((pairs[0], pairs[1]));
        self.switch.connect(Connection {
            client: End { node: NodeId(at as u16), queue_pair: pairs[0] },
            memory: End { node: NodeId(MEMORY as u16), queue_pair: pairs[1] },
            first_psn: psn[0],
            region: self.nics[MEMORY].key,
            base: BASE,
        });
    }

    /// Ends a node's connection: nothing of what was asked and not executed ever will be.
    fn disconnect(&mut self, at: usize) {
        let Some((own, peer)) = self.links[at].take() else { return };
        self.broken += 1;
        self.switch.disconnect(End { node: NodeId(at as u16), queue_pair: own });
        for (node, pair) in [(MEMORY, peer), (at, own)] {
            let mut out = std::mem::take(&mut self.out);
            self.nics[node].device.fail(Nanos(self.now), pair, &mut out).unwrap();
            self.carry_out(node, &[], out);
        }
    }

    fn reconnect(&mut self, at: usize) {
        self.disconnect(at);
        self.connect(at);
    }

    // Packets.

    fn carry_out(&mut self, at: usize, payload: &[u8], mut out: Vec<Effect>) {
        let mut broken = false;
        for effect in out.drain(..) {
            let nic = &mut self.nics[at];
            match effect {
                Effect::Send { to, packet, payload, .. } => {
                    let bytes = match payload {
                        Some(Payload::Region(span)) => nic.bytes.at(span.address, span.len).to_vec(),
                        _ => Vec::new(),
                    };
                    let flight = Flight { from: at, to: usize::from(to.0), packet, bytes };
                    self.travel(flight, Event::AtSwitch);
                }
                Effect::Place { at: span } => {
                    nic.bytes.at(span.address, span.len).copy_from_slice(payload);
                }
                Effect::Store { at: span, value } => *nic.bytes.word(span.address) = value.to_le_bytes(),
                Effect::Notify { .. } => {}
                Effect::Broken { .. } => broken = true,
            }
        }
        self.out = out;
        if broken && at != MEMORY {
            // The others hear of it before anybody is told that something is in doubt.
            self.disconnect(at);
            self.connect(at);
        }
        let queue = self.nics[at].queue;
        while let Some(completion) = self.nics[at].device.poll(queue) {
            self.complete(at, completion);
        }
        self.nics[at].device.invariants();
    }

    fn travel(&mut self, flight: Flight, arrives: fn(Flight) -> Event) {
        if self.random.per_mille(self.faults.loss) {
            return;
        }
        if self.random.per_mille(self.faults.duplication) {
            let way = self.way();
            self.schedule(way, arrives(flight.clone()));
        }
        let way = self.way();
        self.schedule(way, arrives(flight));
    }

    fn way(&mut self) -> u64 {
        let late = if self.random.per_mille(self.faults.delay) { self.random.below(900) } else { 0 };
        5 + self.random.below(self.faults.jitter + 1) + late
    }

    fn at_switch(&mut self, mut flight: Flight) {
        let to = NodeId(flight.to as u16);
        let head = &flight.bytes[..flight.bytes.len().min(32)];
        match self.switch.on_packet(Nanos(self.now), to, &mut flight.packet, head) {
            Action::Drop => {}
            Action::Forward => {
                if self.random.below(1_000_000) < self.faults.naks
                    && let Extension::Reth(reth) = &mut flight.packet.extension
                {
                    reth.key = Key(0);
                }
                self.travel(flight, Event::AtNode);
            }
        }
    }

    fn at_node(&mut self, flight: Flight) {
        let Flight { from, to, packet, bytes } = flight;
        let mut out = std::mem::take(&mut self.out);
        let nic = &mut self.nics[to];
        let (from, len) = (NodeId(from as u16), bytes.len() as u32);
        nic.device.on_packet(Nanos(self.now), from, &packet, len, &mut nic.bytes, &mut out);
        if let (MEMORY, Opcode::CompareSwap) = (to, packet.opcode)
            && !out.is_empty()
        {
            let posted = self.posted.get(&(usize::from(from.0), packet.to, packet.psn.get()));
            let age = self.now - posted.copied().unwrap_or(self.now);
            assert!(age < DOUBT, "a request was under way for {age}");
        }
        self.carry_out(to, &bytes, out);
    }

    // Work.

    fn post(&mut self, at: usize, id: u64, verb: Verb, buffer: u64, value: u64) {
        let (own, peer) = self.links[at].expect("it is connected");
        let key = self.nics[MEMORY].key;
        let nic = &mut self.nics[at];
        let local = |len: u32| Span { key: nic.key, address: buffer, len };
        let remote = |location| Remote { key, address: address(location) };
        let operation = match verb {
            Verb::Read(location) => {
                Work::Read { local: local(location.class().bytes() as u32), remote: remote(location) }
            }
            Verb::Write(location, head) => {
                let local = local(24 + head.len);
                let bytes = nic.bytes.at(buffer, local.len);
                let words = head.to_words().into_iter().chain(std::iter::repeat(value));
                for (part, word) in bytes.chunks_mut(8).zip(words) {
                    part.copy_from_slice(&word.to_le_bytes()[..part.len()]);
                }
                Work::Write { local, remote: remote(location), immediate: None }
            }
            Verb::CompareSwap { at, expected, new } => Work::CompareSwap {
                remote: remote(at),
                compare: expected.to_bits(),
                swap: new.to_bits(),
                result: None,
            },
        };
        let mut out = std::mem::take(&mut self.out);
        let request = WorkRequest::new(WorkId(id), operation);
        nic.device.post_send(Nanos(self.now), own, request, &mut out).unwrap();
        for effect in &out {
            if let Effect::Send {
                packet: Packet { extension: Extension::Atomic(AtomicEth { .. }), psn, .. },
                ..
            } = effect
            {
                self.posted.insert((at, peer, psn.get()), self.now);
            }
        }
        self.carry_out(at, &[], out);
    }

    fn complete(&mut self, at: usize, completion: Completion) {
        if at == MEMORY {
            return;
        }
        let id = completion.id.0;
        let is_done = completion.status == Status::Success;
        if at == self.metadata_node() {
            let outcome = match completion.original {
                _ if !is_done => Outcome::Unknown,
                Some(found) => Outcome::Swapped(found),
                None => Outcome::Read(self.nics[at].bytes.head(BASE + id * BUFFER)),
            };
            return self.schedule(1, Event::Walked(id, outcome));
        }
        let place = &mut self.places[at - 1];
        // Work of a client that died before.
        let Some(running) = place.running.get_mut(&OpId(id)) else { return };
        let bytes = &mut self.nics[at].bytes;
        let (outcome, value) = match (completion.original, completion.len) {
            _ if !is_done => (Outcome::Unknown, 0),
            (Some(found), _) => (Outcome::Swapped(found), 0),
            // What a READ brings is as long as its slot; a WRITE has a head of 24 bytes.
            (None, len) if len % 64 == 0 => {
                let head = bytes.head(running.buffer);
                let (value, is_torn) = value_of(bytes, running.buffer, head.as_ref(), len);
                running.is_torn = is_torn;
                (Outcome::Read(head), value)
            }
            _ => (Outcome::Written, 0),
        };
        let id_of_client = place.id;
        self.schedule(1, Event::Outcome(id_of_client, OpId(id), outcome, value));
    }

    // Clients.

    fn begin(&mut self, at: usize) {
        let pause = 1 + self.random.below(120);
        self.schedule(pause, Event::Begin(at));
        let place = &self.places[at];
        if self.is_ending || place.running.len() >= AT_A_TIME || place.asleep > self.now {
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
        let place = &mut self.places[at];
        let taken: Vec<u64> = place.running.values().map(|running| running.buffer).collect();
        let buffers = (0..).map(|at| BASE + at * BUFFER);
        let buffer = buffers.into_iter().find(|buffer| !taken.contains(buffer)).unwrap();
        let running = Running { key, op: what, invoke: self.now, value: op.0, buffer, is_torn: false };
        place.running.insert(op, running);
        let mut effects = Vec::new();
        place.machine.begin(Nanos(self.now), op, key, request, &mut effects);
        self.apply(at, effects);
    }

    fn apply(&mut self, at: usize, effects: Vec<client::Effect>) {
        for effect in effects {
            let place = &self.places[at];
            let id = place.id;
            match effect {
                client::Effect::Verb(op, verb) => {
                    let Running { buffer, value, .. } = place.running[&op];
                    self.post(at + 1, op.0, verb, buffer, value);
                }
                client::Effect::Call(op, call) => {
                    self.settled += u64::from(matches!(call, Call::Settle { .. }));
                    self.renewed += u64::from(matches!(call, Call::Renew { .. }));
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
        let place = &mut self.places[at];
        let running = place.running.remove(&op).expect("it was begun");
        self.trips += u64::from(trips);
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
        let (client, key) = (place.id.0 * 100_000 + op.0, running.key);
        let (invoke, ret) = (Nanos(running.invoke), Some(Nanos(self.now)));
        self.history.push(Operation { client, key, op: what, invoke, ret });
    }

    /// The place of a client that lives and is awake; if it sleeps, the event comes later.
    fn awake(&mut self, id: ClientId, event: Event) -> Option<(usize, Event)> {
        let at = self.places.iter().position(|place| place.id == id)?;
        let asleep = self.places[at].asleep;
        if asleep > self.now {
            self.schedule(asleep - self.now, event);
            return None;
        }
        Some((at, event))
    }

    // The metadata server.

    fn apply_metadata(&mut self, effects: Vec<metadata::Effect>) {
        for effect in effects {
            match effect {
                metadata::Effect::Verb(key, verb) => {
                    self.post(self.metadata_node(), key, verb, BASE + key * BUFFER, 0);
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
        self.metadata.invariants();
        self.switch.invariants();
        true
    }

    fn happen(&mut self, event: Event) {
        let mut effects = Vec::new();
        match event {
            Event::AtSwitch(flight) => self.at_switch(flight),
            Event::AtNode(flight) => self.at_node(flight),
            Event::Begin(at) => self.begin(at),
            Event::Outcome(id, ..) => {
                let Some((at, Event::Outcome(_, op, outcome, value))) = self.awake(id, event) else { return };
                let place = &mut self.places[at];
                let running = place.running.get_mut(&op).expect("it is under way");
                if let Outcome::Read(_) = outcome {
                    running.value = value;
                }
                place.machine.on_outcome(Nanos(self.now), op, outcome, &mut effects);
                self.apply(at, effects);
            }
            Event::Answer(id, ..) => {
                let Some((at, Event::Answer(_, op, answer))) = self.awake(id, event) else { return };
                let machine = &mut self.places[at].machine;
                machine.on_answer(Nanos(self.now), op, Some(answer), &mut effects);
                self.apply(at, effects);
            }
            Event::Call(client, op, call) => {
                if !self.places.iter().any(|place| place.id == client) {
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

    fn mishap(&mut self) {
        let Faults { restarts, forgets, breaks, deaths, sleeps, keys, .. } = self.faults;
        let at = self.random.below(self.places.len() as u64) as usize;
        let mut left = self.random.below(1_000_000);
        let mut is = |chance: u64| {
            let now = left < chance;
            left = left.wrapping_sub(chance);
            now
        };
        if is(restarts) {
            self.switch.restart();
            // Some connections are made anew; others find out later, or never.
            for at in 1..self.nics.len() {
                if self.random.below(3) > 0 {
                    self.reconnect(at);
                }
            }
        } else if is(forgets) {
            self.switch.forget();
        } else if is(breaks) {
            self.reconnect(at + 1);
        } else if is(deaths) {
            self.die(at);
        } else if is(sleeps) {
            self.places[at].asleep = self.now + self.random.below(2 * REST);
        } else if is(keys) {
            let key = self.random.below(self.keys);
            if self.switch.holds(key) { self.switch.evict(key) } else { _ = self.switch.admit(key) }
        }
    }

    /// A client dies, and another one comes.
    pub(crate) fn die(&mut self, at: usize) {
        let next = self.client();
        let dead = std::mem::replace(&mut self.places[at], next);
        self.reconnect(at + 1);
        for (op, running) in dead.running {
            let client = dead.id.0 * 100_000 + op.0;
            let (key, invoke) = (running.key, Nanos(running.invoke));
            self.history.push(Operation { client, key, op: running.op, invoke, ret: None });
        }
        let mut effects = Vec::new();
        self.metadata.on_death(Nanos(self.now), dead.id, &mut effects);
        self.apply_metadata(effects);
    }

    /// True if no operation is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.places.iter().all(|place| place.running.is_empty())
    }

    /// All clients die, and what they have comes back: how many units are neither free nor a chain's tail then.
    pub(crate) fn leaked(&mut self) -> u64 {
        for at in 0..self.places.len() {
            self.die(at);
        }
        let until = self.now + 4 * (REST + DOUBT);
        while self.now < until && self.step() {}
        let (made, free) = self.metadata.memory();
        // The tail with the largest value has eight units.
        u64::from(made - free).saturating_sub(self.metadata.keys() as u64 * 8)
    }
}

/// What an entry's value stands for, and whether it is more than one.
fn value_of(bytes: &mut crate::nic::Bytes, at: u64, head: Option<&EntryHead>, len: u32) -> (u64, bool) {
    let Some(head) = head.filter(|head| 24 + head.len <= len && head.len >= 8) else { return (0, false) };
    let value = u64::from_le_bytes(*bytes.word(at + 24));
    let parts = bytes.at(at + 24, head.len).chunks_exact(8);
    let is_torn = parts.into_iter().any(|part| *part != value.to_le_bytes());
    (value, is_torn)
}
