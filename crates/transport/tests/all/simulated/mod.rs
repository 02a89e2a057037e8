//! A rack whose places talk over the links of the simulated rack, under its fault rules, in virtual time. Runs in
//! tests.
//!
//! The threads are real ones, and take no virtual time: the clock stands still while they work. It moves on when a place
//! looks for messages and has none: to where the next thing happens to a message that is in flight. What must always
//! hold: what takes time, takes what the hardware model says; with one thread, a seed fixes every arrival and every fault.
//!
//! Nodes and the observer have a NIC each, and a port of the switch; the switch has its program, which messages reach
//! at its ingress. A message without a block is a datagram, any other one a write; what one place sends to another one
//! completes in order. A place takes so many bytes of each other one ([`CREDIT`]) before it has handed them over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sim::fault::{Counts as FaultCounts, Rules};
use sim::hardware::{Nic, SwitchPorts, Testbed};
use sim::queue::EventQueue;
use sim::system::{Place, Random};
use transport::{Body, Cause, Contents, Counters, MOST_CONTROL, Outgoing, PeerId, Transport};
use wire::packet::HEADER_BYTES;
use wire::{LockPacket, Nanos, NodeId, Packet, roce};

/// Bytes that one place may have in flight to another one: four blocks of the largest size.
const CREDIT: u64 = 4 << 20;
/// Messages of one [`Transport::receive`], at most.
const BURST: usize = 64;
/// Cables of the switch: to every node that a rack can have, and to an observer.
const PORTS: u16 = PeerId::COUNT as u16 - 1;

/// The rack. Clones are the same one.
#[derive(Clone)]
pub(crate) struct SimRack {
    shared: Arc<Shared>,
}

struct Shared {
    world: Mutex<World>,
    changed: Condvar,
}

struct World {
    now: Nanos,
    queue: EventQueue<Event>,
    nics: Vec<Nic>,
    ports: SwitchPorts,
    rules: Rules<()>,
    random: Random,
    /// Who is there now.
    inboxes: Vec<Option<Inbox>>,
    incarnations: u64,
    /// When the last message of each way is complete.
    completed: BTreeMap<(PeerId, PeerId), Nanos>,
    /// Bytes of each way that have not been handed over.
    owed: BTreeMap<(PeerId, PeerId), u64>,
}

/// What a place has. It goes with the place's incarnation.
#[derive(Default)]
struct Inbox {
    incarnation: u64,
    arrived: VecDeque<Flight>,
    /// Messages that have arrived or will.
    coming: usize,
    attending: usize,
    blocked: usize,
    interrupted: bool,
}

#[derive(Clone)]
struct Flight {
    from: PeerId,
    to: PeerId,
    /// The incarnation of the receiver that it was sent to.
    incarnation: u64,
    message: Arc<Message>,
    /// What a fault adds to its way.
    late: Nanos,
}

enum Message {
    Packet(Packet, Vec<u64>),
    Lock(LockPacket, Vec<u64>),
    Verbs(roce::Packet, usize, Vec<u64>),
    Control(Vec<u8>),
}

enum Event {
    AtSwitch(Flight),
    Arrives(Flight),
}

impl Message {
    fn bytes(&self) -> u64 {
        match self {
            Self::Packet(_, words) => (HEADER_BYTES + words.len() * 8) as u64,
            Self::Lock(packet, words) => (packet.head_bytes() + words.len() * 8) as u64,
            Self::Verbs(packet, payload, _) => (packet.header_bytes() + payload) as u64,
            Self::Control(bytes) => bytes.len() as u64,
        }
    }

    fn is_write(&self) -> bool {
        self.bytes() > HEADER_BYTES as u64
    }
}

/// The port of the switch that a place's cable is in; none for the switch itself.
fn port(place: PeerId) -> Option<u16> {
    match place {
        PeerId::SWITCH => None,
        PeerId::OBSERVER => Some(PORTS - 1),
        node => Some(u16::from(node.to_wire())),
    }
}

fn endpoint(place: PeerId) -> Place {
    port(place).map_or(Place::Switch, |port| Place::Node(NodeId(port)))
}

impl SimRack {
    /// A rack without places, whose messages these rules treat.
    pub(crate) fn with(rules: Rules<()>, seed: u64) -> Self {
        let testbed = Testbed { ports: PORTS, ..Testbed::CONCORDIA };
        let world = World {
            now: Nanos::ZERO,
            queue: EventQueue::new(),
            nics: (0..PORTS).map(|_| Nic::new(&testbed)).collect(),
            ports: SwitchPorts::new(&testbed, PORTS),
            rules,
            random: Random::new(seed),
            inboxes: (0..PeerId::COUNT).map(|_| None).collect(),
            incarnations: 0,
            completed: BTreeMap::new(),
            owed: BTreeMap::new(),
        };
        Self { shared: Arc::new(Shared { world: Mutex::new(world), changed: Condvar::new() }) }
    }

    /// Connects a place.
    pub(crate) fn connect(&self, me: PeerId) -> SimTransport {
        let mut world = self.shared.world();
        world.incarnations += 1;
        let incarnation = world.incarnations;
        world.inboxes[me.index()] = Some(Inbox { incarnation, ..Inbox::default() });
        SimTransport {
            me,
            incarnation,
            shared: Arc::clone(&self.shared),
            receiving: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// The time of the last thing that happened.
    pub(crate) fn now(&self) -> Nanos {
        self.shared.world().now
    }

    /// What the rules have done.
    pub(crate) fn faults(&self) -> FaultCounts {
        self.shared.world().rules.counts()
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    fn inbox(&mut self, place: PeerId, incarnation: u64) -> Option<&mut Inbox> {
        self.inboxes[place.index()].as_mut().filter(|inbox| inbox.incarnation == incarnation)
    }

    /// A message leaves its place, as often as the rules let it. False: none of it will arrive.
    fn send(&mut self, flight: &Flight) -> bool {
        let now = self.now;
        let mut copies = Vec::new();
        let (from, to) = (endpoint(flight.from), endpoint(flight.to));
        self.rules.apply(now, &(), from, to, &mut self.random, &mut copies);
        let (bytes, is_write) = (flight.message.bytes(), flight.message.is_write());
        let left = port(flight.from)
            .map(|port| self.nics[usize::from(port)].send(now, is_write, bytes, flight.to.index() as u32));
        for late in &copies {
            let flight = Flight { late: *late, ..flight.clone() };
            *self.owed.entry((flight.from, flight.to)).or_default() += bytes;
            if let Some(inbox) = self.inbox(flight.to, flight.incarnation) {
                inbox.coming += 1;
            }
            match left {
                Some(left) => self.queue.push(left + Testbed::CONCORDIA.cable, Event::AtSwitch(flight)),
                None => self.route(now, flight),
            }
        }
        !copies.is_empty()
    }

    /// A message is in the switch: through its port, or to its program.
    fn route(&mut self, now: Nanos, flight: Flight) {
        let bytes = flight.message.bytes();
        let visible = match port(flight.to) {
            None => now,
            Some(port) => match self.ports.route(now, port, bytes) {
                None => return self.settle(&flight),
                Some(at) => self.nics[usize::from(port)].receive(at, bytes, flight.message.is_write()),
            },
        };
        let completed = self.completed.entry((flight.from, flight.to)).or_default();
        *completed = visible.max(*completed);
        self.queue.push(*completed + flight.late, Event::Arrives(flight));
    }

    /// A message is handed over, or lost: gives back what it occupied.
    fn settle(&mut self, flight: &Flight) {
        *self.owed.entry((flight.from, flight.to)).or_default() -= flight.message.bytes();
        if let Some(inbox) = self.inbox(flight.to, flight.incarnation) {
            inbox.coming -= 1;
        }
    }

    /// Lets the next thing happen. False: nothing is in flight.
    fn step(&mut self) -> bool {
        let Some((now, event)) = self.queue.pop() else { return false };
        self.now = now;
        match event {
            Event::AtSwitch(flight) => self.route(now, flight),
            Event::Arrives(flight) => match self.inbox(flight.to, flight.incarnation) {
                Some(inbox) => inbox.arrived.push_back(flight),
                // Its receiver has ended, or is another one by now.
                None => self.settle(&flight),
            },
        }
        true
    }

    /// The next message for a place, once it has arrived.
    fn take(&mut self, place: PeerId, incarnation: u64) -> Option<Flight> {
        loop {
            if let Some(flight) = self.inbox(place, incarnation)?.arrived.pop_front() {
                self.settle(&flight);
                return Some(flight);
            }
            if !self.step() {
                return None;
            }
        }
    }
}

/// One place's connection.
pub(crate) struct SimTransport {
    me: PeerId,
    incarnation: u64,
    shared: Arc<Shared>,
    receiving: Mutex<()>,
    counters: Counters,
}

impl SimTransport {
    /// Sleeps until `over` says so of this place's inbox, at most so long in real time: what ends the sleep is another
    /// thread, which has no virtual time.
    fn sleep(&self, most: Nanos, over: impl Fn(&Inbox) -> bool) {
        let until = Instant::now() + Duration::from_nanos(most.0);
        let mut world = self.shared.world();
        while !world.inbox(self.me, self.incarnation).is_some_and(|inbox| over(inbox)) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let slept = self.shared.changed.wait_timeout(world, left);
            world = slept.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn mine<R>(&self, look: impl FnOnce(&mut Inbox) -> R) -> Option<R> {
        self.shared.world().inbox(self.me, self.incarnation).map(look)
    }
}

impl Drop for SimTransport {
    fn drop(&mut self) {
        let mut world = self.shared.world();
        if world.inbox(self.me, self.incarnation).is_none() {
            return;
        }
        let inbox = world.inboxes[self.me.index()].take();
        for flight in inbox.into_iter().flat_map(|inbox| inbox.arrived) {
            world.settle(&flight);
        }
    }
}

impl Transport for SimTransport {
    fn me(&self) -> PeerId {
        self.me
    }

    fn send(&self, to: PeerId, body: Body<'_>, _: &mut Outgoing) {
        assert_ne!(to, self.me, "nothing is sent to oneself");
        let message = match body {
            Body::Packet(packet, contents) => {
                assert_eq!(contents.bytes(), packet.payload as usize, "{packet:?}");
                Message::Packet(*packet, contents.to_words())
            }
            Body::Lock(packet, contents) => {
                assert_eq!(contents.bytes(), packet.payload as usize, "{packet:?}");
                Message::Lock(*packet, contents.to_words())
            }
            Body::Verbs(packet, payload, contents) => {
                assert_eq!(contents.bytes(), payload.next_multiple_of(8), "{packet:?}");
                Message::Verbs(*packet, payload, contents.to_words())
            }
            Body::Control(bytes) => {
                assert!(bytes.len() <= MOST_CONTROL, "{} bytes", bytes.len());
                Message::Control(bytes.to_vec())
            }
        };
        let bytes = message.bytes();
        let mut world = self.shared.world();
        let Some(incarnation) = world.inboxes[to.index()].as_ref().map(|inbox| inbox.incarnation) else {
            return self.counters.dropped(Cause::Unreachable);
        };
        if world.owed.get(&(self.me, to)).is_some_and(|owed| owed + bytes > CREDIT) {
            return self.counters.dropped(Cause::Full);
        }
        self.counters.sent(1, bytes);
        let flight = Flight { from: self.me, to, incarnation, message: Arc::new(message), late: Nanos::ZERO };
        if world.send(&flight)
            && world.inbox(to, incarnation).is_some_and(|inbox| inbox.attending == 0 || inbox.blocked > 0)
        {
            self.shared.changed.notify_all();
        }
    }

    fn flush(&self, _: &mut Outgoing) {}

    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
        let Ok(_receiving) = self.receiving.try_lock() else { return 0 };
        let (mut received, mut bytes) = (0, 0);
        while received < BURST {
            let Some(flight) = self.shared.world().take(self.me, self.incarnation) else { break };
            received += 1;
            bytes += flight.message.bytes();
            match &*flight.message {
                Message::Packet(packet, words) => {
                    each(flight.from, Body::Packet(packet, Contents::own(words)))
                }
                Message::Lock(packet, words) => each(flight.from, Body::Lock(packet, Contents::own(words))),
                Message::Verbs(packet, payload, words) => {
                    each(flight.from, Body::Verbs(packet, *payload, Contents::own(words)));
                }
                Message::Control(bytes) => each(flight.from, Body::Control(bytes)),
            }
        }
        self.counters.received(received as u64, bytes);
        received
    }

    fn attend(&self) {
        self.mine(|inbox| inbox.attending += 1);
    }

    fn leave(&self) -> bool {
        let last = |inbox: &mut Inbox| {
            inbox.attending -= 1;
            inbox.attending == 0 && inbox.coming > 0
        };
        self.mine(last).unwrap_or(false)
    }

    fn wait(&self, most: Nanos) {
        self.sleep(most, |inbox| inbox.attending == 0 && inbox.coming > 0);
    }

    fn block(&self, most: Nanos) {
        self.mine(|inbox| inbox.blocked += 1);
        self.sleep(most, |inbox| inbox.coming > 0 || inbox.interrupted);
        self.mine(|inbox| {
            inbox.blocked -= 1;
            inbox.interrupted = false;
        });
    }

    fn interrupt(&self) {
        self.mine(|inbox| inbox.interrupted = true);
        self.shared.changed.notify_all();
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
