//! The testbed: what happens next, and what threads do.
//!
//! What must always hold: one load and one seed give one run.

use std::collections::BTreeSet;

use chain::client::{Done, Effect, OpId, Request};
use chain::{Outcome, Verb};
use nic::verbs::{self, Operation, Remote, Span, Status, WorkId, WorkRequest};
use wire::chains::{Class, Location, Reply};
use wire::roce::QpNumber;
use wire::{Nanos, NodeId};

use super::adapter::Adapter;
use super::bench::Bench;
use super::entries::{self, Entries};
use super::event::{Event, Machine, Roce, SimMessage};
use super::load::{Load, Requests};
use super::report::{ChainsReport, Tally};
use super::server::Server;
use super::threads::{BUFFER, Host, Thread};
use super::tor::Tor;
use crate::hardware::SwitchPorts;
use crate::queue::EventQueue;
use crate::system::Random;

/// Between two looks at deadlines. Those of the testbed are hundreds of microseconds, and may be late.
const TICK: Nanos = Nanos::from_micros(100);
/// The four machines, and what runs on them.
pub struct Testbed {
    pub(super) bench: Bench,
    pub(super) load: Load,
    requests: Box<dyn Requests>,
    queue: EventQueue<Event>,
    pub(super) now: Nanos,
    pub(super) hosts: [Host; 2],
    pub(super) threads: Vec<Thread>,
    pub(super) server: Server,
    pub(super) tor: Tor,
    pub(super) adapters: [Adapter; Machine::COUNT as usize],
    pub(super) onyx: SwitchPorts,
    /// Versions of each key that were acknowledged.
    pub(super) acknowledged: Vec<u64>,
    pub(super) tally: Tally,
    since: Nanos,
    pub(super) effects: Vec<verbs::Effect>,
    steps: Vec<Effect>,
    /// Keys whose tails the switch is to be told.
    pub(super) scanned: BTreeSet<u64>,
}

impl Testbed {
    /// A testbed on which this runs, with a value for each key.
    ///
    /// # Panics
    /// If there are no threads or keys, or the switch cannot hold so much.
    pub fn new(bench: Bench, load: Load, requests: Box<dyn Requests>, seed: u64) -> Self {
        assert!(load.threads > 0 && load.keys > 0, "nothing to do: {load:?}");
        let class = Class::of_value(load.value).expect("a value fits a slot");
        let mut server = Server::new(&bench, class, load.steering.is_some());
        let reads = load.steering.is_some_and(|config| config.reads > 0);
        let mut hosts = Machine::CLIENTS.map(|_| Host::new(&bench, reads));
        let mut random = Random::new(seed);
        let tor = Tor::new(&bench, load.steering.as_ref(), load.threads).expect("the switch has room");
        let threads = (0..load.threads)
            .map(|thread| {
                let machine = Machine::client(usize::from(thread) % 2);
                Thread::new(&bench, machine, &mut hosts[machine as usize], &mut server, random.bits())
            })
            .collect();
        let mut testbed = Self {
            hosts,
            threads,
            server,
            tor,
            adapters: core::array::from_fn(|_| Adapter::new(&bench.hardware)),
            onyx: SwitchPorts::new(&bench.hardware, Machine::COUNT),
            acknowledged: vec![0; usize::try_from(load.keys).expect("they are in memory")],
            bench,
            load,
            requests,
            queue: EventQueue::new(),
            now: Nanos::ZERO,
            tally: Tally::default(),
            since: Nanos::ZERO,
            effects: Vec::new(),
            steps: Vec::new(),
            scanned: BTreeSet::new(),
        };
        testbed.fill();
        testbed.bind(&mut random);
        for thread in 0..testbed.load.threads {
            if testbed.tor.incarnation() > 0 {
                testbed.connect(thread);
            }
            testbed.push(Nanos(random.below(5_000)), Event::Begin { thread });
        }
        testbed.push(TICK, Event::Tick);
        testbed
    }

    /// Runs until so many operations more are over: what happened since [`Testbed::forget`], or the beginning.
    pub fn run(&mut self, operations: u64) -> ChainsReport {
        let until = self.tally.operations + operations;
        while self.tally.operations < until {
            self.step();
        }
        self.report()
    }

    /// Runs until then.
    pub fn run_until(&mut self, until: Nanos) -> ChainsReport {
        while self.queue.peek_time().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
        self.report()
    }

    fn step(&mut self) {
        let (at, event) = self.queue.pop().expect("ticks never end");
        self.now = at;
        self.tally.events += 1;
        self.handle(event);
    }

    /// Counts from now on.
    pub fn forget(&mut self) {
        self.tally = Tally::default();
        self.since = self.now;
    }

    /// The time.
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// The switch stops: nothing gets from one machine to another.
    pub const fn stop_switch(&mut self) {
        self.tor.stop();
    }

    /// It is back, and knows nothing.
    pub fn restart_switch(&mut self) {
        self.tor.restart();
        let mut random = Random::new(self.now.0);
        self.bind(&mut random);
    }

    /// The metadata server reads all chains to their ends, and tells the switch the tails.
    pub fn scan(&mut self) {
        self.scanned = (0..self.load.keys).collect();
        self.on_scan();
    }

    /// What happened since [`Testbed::forget`], or the beginning.
    pub fn report(&self) -> ChainsReport {
        let (tally, server) = (&self.tally, &self.server);
        let share = |busy: Nanos| busy.0 as f64 / self.now.0.max(1) as f64;
        ChainsReport {
            operations: tally.operations,
            time: self.now.saturating_sub(self.since),
            events: tally.events,
            calls: tally.calls,
            failed: tally.failed,
            wrong: tally.wrong + server.entries.astray,
            packets: tally.packets,
            bytes: tally.bytes,
            dropped: tally.dropped,
            reconnected: tally.reconnected,
            appended: server.entries.appended,
            refused: server.entries.failed,
            gets: tally.gets.clone(),
            puts: tally.puts.clone(),
            latency: tally.latency.clone(),
            atomics: share(server.atomics.busy()),
            link: self.adapters[Machine::Server as usize].link().utilisation(self.now),
            metadata: server.core.utilisation(self.now),
            steering: self.tor.steering().map(|steering| *steering.counters()),
        }
    }

    pub(super) fn push(&mut self, at: Nanos, event: Event) {
        self.queue.push(at, event);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Begin { thread } => self.on_begin(thread),
            Event::Connected { thread } => {
                self.connect(thread);
                self.begin(thread);
            }
            Event::Known { thread } => {
                if self.threads[usize::from(thread)].incarnation != self.tor.incarnation() {
                    self.connect(thread);
                }
            }
            Event::Reconnected { thread } => self.on_reconnected(thread),
            Event::AtTor(sim_message) => self.on_tor(sim_message),
            Event::Execute(roce) => self.on_execute(&roce),
            Event::Seen(roce) => self.on_seen(&roce),
            Event::Step { thread, outcome } => {
                let mut steps = core::mem::take(&mut self.steps);
                let machine = self.threads[usize::from(thread)].machine;
                let client = &mut self.hosts[machine as usize].client;
                client.on_outcome(self.now, OpId(thread.into()), outcome, &mut steps);
                self.act(machine, steps);
            }
            Event::AtMetadata(sim_message) => self.on_metadata(sim_message),
            Event::Serve(sim_message) => self.on_serve(sim_message),
            Event::Walked { key, outcome } => self.on_walked(key, outcome),
            Event::Found { key, at, version } => self.tor.preload(key, at, version),
            Event::Answered { thread, answer } => {
                let mut steps = core::mem::take(&mut self.steps);
                let machine = self.threads[usize::from(thread)].machine;
                let client = &mut self.hosts[machine as usize].client;
                client.on_answer(self.now, OpId(thread.into()), Some(answer), &mut steps);
                self.act(machine, steps);
            }
            Event::Tick => self.on_tick(),
        }
    }

    fn on_tick(&mut self) {
        for machine in Machine::CLIENTS {
            let mut effects = core::mem::take(&mut self.effects);
            self.hosts[machine as usize].device.on_deadline(self.now, &mut effects);
            self.do_effects(machine, self.now, effects);
            self.complete(machine);
        }
        self.on_metadata_tick();
        self.push(self.now + TICK, Event::Tick);
    }

    pub(super) fn begin(&mut self, number: u16) {
        let ask = self.requests.next(number);
        let thread = &mut self.threads[usize::from(number)];
        (thread.ask, thread.began, thread.trips) = (ask, self.now, 0);
        thread.floor = self.acknowledged[ask.key as usize];
        self.begin_again(number);
    }

    /// A thread does what it is asked for; once more, if its connection broke before anything was done.
    fn begin_again(&mut self, number: u16) {
        let thread = &self.threads[usize::from(number)];
        let ask = thread.ask;
        let machine = thread.machine;
        let mut steps = core::mem::take(&mut self.steps);
        let client = &mut self.hosts[machine as usize].client;
        client.begin(self.now, OpId(number.into()), ask.key, ask.request, &mut steps);
        self.act(machine, steps);
    }

    /// Does what a client wants done.
    fn act(&mut self, machine: Machine, mut steps: Vec<Effect>) {
        for step in steps.drain(..) {
            match step {
                Effect::Verb(OpId(thread), _, verb) => self.post(thread as u16, verb),
                Effect::Call(OpId(thread), call) => {
                    self.tally.calls += 1;
                    self.send_message(machine, self.now, SimMessage::Call(thread as u16, call));
                }
                Effect::Notice(notice) => {
                    self.send_message(machine, self.now, SimMessage::Notice(machine, notice))
                }
                Effect::Done { op: OpId(thread), done, trips } => self.on_done(thread as u16, done, trips),
            }
        }
        self.steps = steps;
    }

    /// Posts a verb to a thread's queue pair.
    fn post(&mut self, number: u16, verb: Verb) {
        let entry = self.server.entries.class().bytes() as u32;
        let thread = &mut self.threads[usize::from(number)];
        let host = &mut self.hosts[thread.machine as usize];
        let local = |half: u64| Span { key: host.region, address: half * BUFFER, len: entry };
        let slot = |half: u64| {
            let span = local(half);
            Span { address: span.address + u64::from(thread.queue_pair.get()) * entry as u64, ..span }
        };
        let remote = |at: Location| Remote { key: self.server.region, address: Entries::address(at) };
        let operation = match verb {
            Verb::Read(at) => Operation::Read { local: slot(2), remote: remote(at) },
            Verb::Write(at, head) => {
                thread.written = Some(at);
                thread.writes = entries::words(&head);
                let len = wire::chains::ENTRY_HEAD + head.len;
                Operation::Write { local: Span { len, ..slot(1) }, remote: remote(at), immediate: None }
            }
            Verb::CompareSwap { at, expected, new } => Operation::CompareSwap {
                remote: remote(at),
                compare: expected.to_bits(),
                swap: new.to_bits(),
                result: None,
            },
        };
        thread.verb = Some(verb);
        let (machine, queue_pair) = (thread.machine, thread.queue_pair);
        let mut effects = core::mem::take(&mut self.effects);
        let request = WorkRequest::new(WorkId(number.into()), operation);
        host.device
            .post_send(self.now, queue_pair, request, &mut effects)
            .expect("a queue pair that is idle");
        let hardware = &self.bench.hardware;
        let doorbell = self.now + hardware.post_write + hardware.doorbell;
        self.do_effects(machine, doorbell, effects);
    }

    /// Does what a client's NIC wants done: packets of its requester are there at its doorbell then.
    pub(super) fn do_effects(&mut self, machine: Machine, ready: Nanos, mut effects: Vec<verbs::Effect>) {
        for effect in effects.drain(..) {
            match effect {
                verbs::Effect::Send { from, packet, payload, .. } => {
                    let number = self.thread_of(machine, from);
                    let thread = &mut self.threads[usize::from(number)];
                    if packet.psn.since(thread.next) >= 0 {
                        thread.next = packet.psn.plus(1);
                    }
                    let payload = payload.map_or(0, |payload| payload.bytes());
                    let roce = Roce {
                        from: machine,
                        to: Machine::Server,
                        packet,
                        payload,
                        words: thread.writes,
                        at: None,
                    };
                    // What is written is fetched first.
                    let hardware = &self.bench.hardware;
                    let fetch = if payload > 0 {
                        hardware.pcie_read + hardware.pcie.span(payload.into())
                    } else {
                        Nanos::ZERO
                    };
                    self.send(machine, ready + fetch, SimMessage::Roce(roce));
                }
                // Bytes are with the thread.
                verbs::Effect::Place { .. } | verbs::Effect::Store { .. } | verbs::Effect::Notify { .. } => {}
                // What was posted is flushed: its completion says so.
                verbs::Effect::Broken { .. } => {}
            }
        }
        self.effects = effects;
    }

    pub(super) fn thread_of(&self, machine: Machine, queue_pair: QpNumber) -> u16 {
        // The n-th queue pair of a machine is that of the n-th of its threads.
        let nth = queue_pair.get() - self.threads[machine as usize].queue_pair.get();
        2 * nth as u16 + machine as u16
    }

    /// A processor can see an answer.
    fn on_seen(&mut self, roce: &Roce) {
        let machine = roce.to;
        let number = self.thread_of(machine, roce.packet.to);
        let mut effects = core::mem::take(&mut self.effects);
        let host = &mut self.hosts[machine as usize];
        let from = NodeId(roce.from as u16);
        host.device.on_packet(
            self.now,
            from,
            &roce.packet,
            roce.payload,
            &mut self.server.entries,
            &mut effects,
        );
        if effects.iter().any(|effect| matches!(effect, verbs::Effect::Place { .. })) {
            let thread = &mut self.threads[usize::from(number)];
            (thread.reads, thread.read) = (roce.words, roce.at);
        }
        self.do_effects(machine, self.now, effects);
        self.complete(machine);
    }

    /// A machine's threads see what has ended.
    fn complete(&mut self, machine: Machine) {
        let host = &mut self.hosts[machine as usize];
        while let Some(completion) = host.device.poll(host.queue) {
            let number = completion.id.0 as u16;
            if completion.status != Status::Success {
                assert!(
                    self.tor.has_failed(),
                    "nothing breaks a queue pair but a switch that fails: {completion:?}"
                );
                self.queue.push(self.now + self.bench.reconnect, Event::Reconnected { thread: number });
                continue;
            }
            let thread = &mut self.threads[usize::from(number)];
            let outcome = match thread.verb.take().expect("a verb is in flight") {
                Verb::Read(_) => entries::outcome(thread.reads),
                Verb::Write(..) => Outcome::Written,
                Verb::CompareSwap { .. } => Outcome::Swapped(completion.original.expect("an atomic has one")),
            };
            // It finds out that the switch is another one, of which it must make itself known before it appends.
            let is_indeterminate = outcome == Outcome::Swapped(Reply::Indeterminate.to_bits());
            if is_indeterminate && thread.incarnation != self.tor.incarnation() {
                self.queue.push(self.now + self.bench.control, Event::Known { thread: number });
            }
            let at = self.now + self.bench.hardware.poll + self.bench.step;
            self.queue.push(at, Event::Step { thread: number, outcome });
        }
    }

    fn on_done(&mut self, number: u16, done: Done, trips: u32) {
        let thread = &mut self.threads[usize::from(number)];
        thread.trips += trips;
        if done == Done::Failed {
            assert!(self.tor.has_failed(), "nothing was indeterminate");
            return self.begin_again(number);
        }
        let (ask, floor, trips) = (thread.ask, thread.floor, thread.trips);
        let place = match (ask.request, done) {
            (Request::Get, Done::Value(_)) => thread.read,
            (Request::Put(_), Done::Appended) => thread.written,
            _ => None,
        };
        let position = place.map(|at| self.server.entries.position(at));
        let is_right = match (ask.request, position) {
            (Request::Get, Some(position)) => position >= floor && thread.reads[1] == ask.key,
            (_, Some(position)) => position > floor,
            (_, None) => true,
        };
        self.tally.wrong += u64::from(!is_right);
        self.tally.failed += u64::from(position.is_none());
        let acknowledged = &mut self.acknowledged[ask.key as usize];
        *acknowledged = (*acknowledged).max(position.unwrap_or(0));
        let trips_of = match ask.request {
            Request::Get => &mut self.tally.gets,
            Request::Put(_) | Request::Delete => &mut self.tally.puts,
        };
        trips_of.record(trips);
        self.tally.operations += 1;
        self.tally.latency.record(self.now.saturating_sub(thread.began));
        self.push(self.now + self.bench.think, Event::Begin { thread: number });
    }
}
