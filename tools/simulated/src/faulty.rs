//! A transport that loses, delays, doubles and cuts off, by the fault rules of the simulated rack.
//!
//! It stands between a place and its real transport, and treats what comes in. For tests, and for trying what a
//! network does to an application.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sim::fault::{Counts, Rules};
use sim::system::{Place, Random};
use transport::{Body, Contents, Counters, Handshakes, Outgoing, PeerId, Sharing, Transport};
use wire::{LockPacket, Nanos, Packet, roce};

/// What fault rules are asked about: a packet of the coherence protocol, or another message.
pub type Passing = Option<Packet>;

/// A transport with faults.
pub struct Faulty {
    inner: Arc<dyn Transport>,
    started: Instant,
    network: Mutex<Network>,
}

struct Network {
    rules: Rules<Passing>,
    random: Random,
    /// Messages in flight, by when they arrive and in which order they were sent.
    in_flight: BTreeMap<(Nanos, u64), (PeerId, Message)>,
    number: u64,
}

#[derive(Clone)]
enum Message {
    Packet(Box<Packet>, Vec<u64>),
    Lock(Box<LockPacket>, Vec<u64>),
    Verbs(Box<roce::Packet>, usize, Vec<u64>),
    Control(Vec<u8>),
}

impl Faulty {
    /// The transport with these rules; random choices follow from the seed and from what arrives.
    pub fn new(inner: Arc<dyn Transport>, rules: Rules<Passing>, seed: u64) -> Self {
        let network = Network { rules, random: Random::new(seed), in_flight: BTreeMap::new(), number: 0 };
        Self { inner, started: Instant::now(), network: Mutex::new(network) }
    }

    /// Other rules from now on.
    pub fn set_rules(&self, rules: Rules<Passing>) {
        self.network().rules = rules;
    }

    /// What was done to messages.
    pub fn counts(&self) -> Counts {
        self.network().rules.counts()
    }

    fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Until the next message arrives that is in flight, at most so long.
    fn until_next(&self, most: Nanos) -> Nanos {
        let now = self.now();
        let network = self.network();
        network.in_flight.first_key_value().map_or(most, |((at, _), _)| at.saturating_sub(now).min(most))
    }

    /// The first message that has arrived by now.
    fn arrived(&self, now: Nanos) -> Option<(PeerId, Message)> {
        let mut network = self.network();
        let ((at, _), _) = network.in_flight.first_key_value()?;
        if *at > now { None } else { network.in_flight.pop_first().map(|(_, arrived)| arrived) }
    }
}

impl Network {
    /// Decides on a message. True: hand it over now.
    fn pass(&mut self, now: Nanos, from: PeerId, to: PeerId, body: Body<'_>) -> bool {
        if self.rules.is_empty() {
            return true;
        }
        let passing = match body {
            Body::Packet(packet, _) => Some(*packet),
            Body::Lock(..) | Body::Verbs(..) | Body::Control(_) => None,
        };
        let mut copies = Vec::new();
        self.rules.apply(now, &passing, place(from), place(to), &mut self.random, &mut copies);
        let mut at_once = false;
        for delay in copies {
            if delay == Nanos::ZERO && !at_once {
                at_once = true;
                continue;
            }
            self.number += 1;
            self.in_flight.insert((now + delay, self.number), (from, Message::of(body)));
        }
        at_once
    }
}

impl Message {
    fn of(body: Body<'_>) -> Self {
        match body {
            Body::Packet(packet, contents) => Self::Packet(Box::new(*packet), contents.to_words()),
            Body::Lock(packet, contents) => Self::Lock(Box::new(*packet), contents.to_words()),
            Body::Verbs(packet, payload, contents) => {
                Self::Verbs(Box::new(*packet), payload, contents.to_words())
            }
            Body::Control(bytes) => Self::Control(bytes.to_vec()),
        }
    }

    fn body(&self) -> Body<'_> {
        match self {
            Self::Packet(packet, words) => Body::Packet(packet, Contents::own(words)),
            Self::Lock(packet, words) => Body::Lock(packet, Contents::own(words)),
            Self::Verbs(packet, payload, words) => Body::Verbs(packet, *payload, Contents::own(words)),
            Self::Control(bytes) => Body::Control(bytes),
        }
    }
}

/// Places as fault rules name them: whoever only asks is somewhere near the switch.
fn place(place: PeerId) -> Place {
    place.as_node().map_or(Place::Switch, Place::Node)
}

impl Transport for Faulty {
    fn me(&self) -> PeerId {
        self.inner.me()
    }

    fn send(&self, to: PeerId, body: Body<'_>, out: &mut Outgoing) {
        self.inner.send(to, body, out);
    }

    fn flush(&self, out: &mut Outgoing) {
        self.inner.flush(out);
    }

    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
        let now = self.now();
        let mut late = 0;
        while let Some((from, message)) = self.arrived(now) {
            each(from, message.body());
            late += 1;
        }
        let me = self.inner.me();
        late + self.inner.receive(&mut |from, body| {
            if self.network().pass(now, from, me, body) {
                each(from, body);
            }
        })
    }

    fn attend(&self) {
        self.inner.attend();
    }

    fn leave(&self) -> bool {
        self.inner.leave()
    }

    fn wait(&self, most: Nanos) {
        self.inner.wait(self.until_next(most));
    }

    fn block(&self, most: Nanos) {
        self.inner.block(self.until_next(most));
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn one_sided_room(&self) -> usize {
        self.inner.one_sided_room()
    }

    fn sharing(&self) -> Option<Arc<dyn Sharing>> {
        self.inner.sharing()
    }

    fn handshakes(&self) -> Option<Arc<Handshakes>> {
        self.inner.handshakes()
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}
