//! A client's queue pair to the memory of a store: verbs, and connections that break.
//!
//! As live racks have it. What must always hold: when a verb's outcome is called unknown, its connection has begun anew, so it is
//! not executed any more.

use chain::{Outcome, Verb};
use nic::verbs::Remote;
use switch::relay::Introduction;
use wire::chain_pair::ChainPair;
use wire::chains::{ENTRY_HEAD, EntryHead, Location};
use wire::roce::Psn;
use wire::{Nanos, NodeId, Rules, SwitchEpoch};

use super::rig::{Packets, Rig};
use super::store::{Ask, Failure, Result, Store};
use crate::regions::Payload;
use crate::regions::chained::{self, Posted};

/// How often the switch is told something, until it has heard.
pub(super) const AGAIN: Nanos = Nanos::from_micros(100);

/// A connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    Down,
    /// That broke: it is tried again then.
    Broken {
        again: Nanos,
    },
    /// Memory was asked to begin its end.
    Asked {
        number: u64,
        epoch: SwitchEpoch,
        to_memory: Psn,
        to_client: Psn,
    },
    /// The switch was told, and is told again.
    Told {
        said: Introduction,
        epoch: SwitchEpoch,
        again: Nanos,
    },
    /// It began in this epoch, before which its end had no packet number.
    Up {
        epoch: SwitchEpoch,
    },
}

/// A client's queue pair.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) store: Store,
    pub(super) thread: u16,
    /// A read is of what it asks for: a switch that steers is told so.
    as_asked: bool,
    link: Link,
    begun: u64,
}

impl Port {
    pub(super) const fn new(store: Store, thread: u16, as_asked: bool) -> Self {
        Self { store, thread, as_asked, link: Link::Down, begun: 0 }
    }

    /// When it wants to go on, if it waits for that.
    pub(super) const fn next_deadline(&self) -> Nanos {
        if let Link::Told { again, .. } | Link::Broken { again } = self.link { again } else { Nanos::MAX }
    }

    /// Begins a connection where there is none. False: it is on its way.
    fn connect<R: Rules, M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, me: NodeId) -> Result<bool> {
        let (memory, steered) = (self.store.memory.home(), rig.plan().is_steered());
        let pair = ChainPair::of_client(me, memory, self.thread);
        loop {
            match self.link {
                // A switch that steers has to know its connections.
                Link::Up { epoch } if !steered || epoch == rig.epoch(me) => return Ok(true),
                Link::Broken { again } if rig.now() < again => return Ok(false),
                Link::Up { .. } | Link::Down | Link::Broken { .. } => {
                    let epoch = rig.epoch(me);
                    if rig.incarnation_of(me, memory) != Some(self.store.of) {
                        return Err(Failure::DOWN);
                    }
                    let mut psn = || Psn::new(rig.bench.random.bits() as u32 & 0xff_ffff);
                    let (to_memory, to_client) = (psn(), psn());
                    let ask = Ask::Connect { thread: self.thread, to_memory, to_client };
                    let number = rig.ask(me, memory, ask)?;
                    self.link = Link::Asked { number, epoch, to_memory, to_client };
                }
                Link::Asked { number, epoch, to_memory, to_client } => match rig.common.answer(number) {
                    None => return Ok(false),
                    Some(Ok(_)) => {
                        let Some(incarnation) = rig.incarnation_of(me, memory) else {
                            return Err(Failure::DOWN);
                        };
                        let beginning = rig.beginning(to_client, to_memory);
                        rig.connect(pair, incarnation, beginning);
                        self.begun += 1;
                        rig.common.seen.connections += 1;
                        rig.common.seen.anew += u64::from(self.begun > 1);
                        self.link = match self.introduction(rig, me, (to_memory, epoch)) {
                            Some(said) => Link::Told { said, epoch, again: Nanos::ZERO },
                            None => Link::Up { epoch },
                        };
                    }
                    Some(Err(Failure::Broken)) => {
                        self.link = Link::Broken { again: rig.now() + AGAIN };
                        return Ok(false);
                    }
                    Some(Err(why)) => return Err(why),
                },
                // A switch of a later epoch does not listen; and what has its number already may not be told it under another epoch.
                Link::Told { epoch, .. } if epoch != rig.epoch(me) => self.link = Link::Down,
                Link::Told { said, epoch, again } => {
                    if rig.common.is_heard(me, said.number()) {
                        self.link = Link::Up { epoch };
                        continue;
                    }
                    if rig.now() >= again {
                        rig.say(me, said);
                        self.link = Link::Told { said, epoch, again: rig.now() + AGAIN };
                    }
                    return Ok(false);
                }
            }
        }
    }

    fn introduction<R: Rules, M: Packets>(
        &self,
        rig: &mut Rig<'_, R, M>,
        me: NodeId,
        (first, switch): (Psn, SwitchEpoch),
    ) -> Option<Introduction> {
        if !rig.plan().is_steered() {
            return None;
        }
        let Store { root, incarnation, memory, key, of, .. } = self.store;
        Some(Introduction::Begin {
            client: ChainPair::of_client(me, memory.home(), self.thread).number(),
            first,
            region: key,
            of: of.0 as u16,
            incarnation: rig.bench.control.incarnation(me),
            server: (root.home(), incarnation),
            switch,
            as_asked: self.as_asked,
            number: rig.next_number(me),
        })
    }
}

/// Verbs that are executed together, and what is known of them.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    verbs: Vec<(Verb, Payload)>,
    /// How much of an entry is read.
    len: u32,
    /// Once they are posted.
    tickets: Vec<u64>,
    /// Their connection broke, and begins anew.
    anew: bool,
}

impl InFlight {
    pub(super) const fn new(verbs: Vec<(Verb, Payload)>, len: u32) -> Self {
        Self { verbs, len, tickets: Vec::new(), anew: false }
    }

    /// How all of them have ended, and what was read; none: they have not yet.
    pub(super) fn go_on<R: Rules, M: Packets>(
        &mut self,
        rig: &mut Rig<'_, R, M>,
        me: NodeId,
        port: &mut Port,
    ) -> Result<Option<Vec<(Outcome, Payload)>>> {
        if self.tickets.is_empty() {
            if !port.connect(rig, me)? {
                return Ok(None);
            }
            let pair = ChainPair::of_client(me, port.store.memory.home(), port.thread);
            for (verb, source) in &self.verbs {
                let posted = posted(&port.store, verb, self.len);
                self.tickets.push(rig.post(pair, (posted, *source)));
            }
        }
        if self.tickets.iter().any(|ticket| rig.common.outcome(*ticket).is_none()) {
            return Ok(None);
        }
        let ended = || self.tickets.iter().filter_map(|ticket| rig.common.outcome(*ticket));
        if ended().any(|ended| ended == chained::Outcome::Down) {
            return Err(Failure::DOWN);
        }
        if !self.anew && ended().any(|ended| ended == chained::Outcome::Broken) {
            (self.anew, port.link) = (true, Link::Down);
        }
        if self.anew && !port.connect(rig, me)? {
            return Ok(None);
        }
        let mut outcomes = Vec::new();
        for (ticket, (verb, _)) in self.tickets.iter().zip(&self.verbs) {
            let ended = rig.common.take_outcome(*ticket).expect("it has ended");
            outcomes.push(outcome(verb, ended));
        }
        Ok(Some(outcomes))
    }
}

/// What a verb is for the NIC.
fn posted(store: &Store, verb: &Verb, len: u32) -> Posted {
    let remote = |at: Location| Remote { key: store.key, address: at.offset() };
    match *verb {
        Verb::Read(at) => Posted::Read { remote: remote(at), len },
        Verb::Write(at, _) => Posted::Write { remote: remote(at) },
        Verb::CompareSwap { at, expected, new } => {
            Posted::CompareSwap { remote: remote(at), compare: expected.to_bits(), swap: new.to_bits() }
        }
    }
}

fn outcome(verb: &Verb, ended: chained::Outcome) -> (Outcome, Payload) {
    let outcome = match (ended, verb) {
        (chained::Outcome::Answer(payload), Verb::Read(at)) => {
            let head = payload.words().first_chunk::<3>().and_then(|words| EntryHead::from_words(*words));
            // A value is no longer than its slot.
            let room = at.class().bytes() - u64::from(ENTRY_HEAD);
            return (Outcome::Read(head.filter(|head| u64::from(head.len) <= room)), payload);
        }
        (chained::Outcome::Answer(_), _) => Outcome::Written,
        (chained::Outcome::Original(word), _) => Outcome::Swapped(word),
        (chained::Outcome::Broken | chained::Outcome::Down, _) => Outcome::Unknown,
    };
    (outcome, Payload::default())
}
