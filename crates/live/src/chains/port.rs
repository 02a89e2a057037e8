//! A client's queue pairs to the memories of a store: verbs, and connections that break.
//!
//! On the client's thread, or on that of the metadata server. What must always hold: when a verb's outcome is called unknown, its
//! connection has begun anew, so it is not executed any more; a copy is called dead only when its node's incarnation is over, and no
//! other memory has come in its place as far as this port knows; whoever learns of such memory executes nothing with the verb at which
//! it does, for others of the same operation may have taken that copy for dead.

use std::sync::Arc;

use chain::{Outcome, Replica, Verb};
use nic::verbs::Remote;
use wire::chain_pair::ChainPair;
use wire::chains::{ENTRY_HEAD, EntryHead, Location};
use wire::roce::{Key, Psn};
use wire::{Nanos, Refusal, SwitchEpoch};
use zerocopy::IntoBytes as _;

use super::Introduction;
use super::ask::Connect;
use super::fabric::Fabric;
use super::store::{Home, Store};
use crate::actor::{Failure, ThreadContext};
use crate::networked::verbs::chain_work::{Ended, Kind, Ticket, Work};

/// How long a connection is tried before the memory counts as out of reach.
pub(super) const TIMEOUT: Nanos = Nanos(60_000_000_000);

/// The store is of another generation than this port knows.
const OUTDATED: Failure = Failure::Refused(Refusal::Outdated);

/// A verb, and for which copy.
pub(super) type Aimed = (Replica, Verb);

/// What a verb sends, and how much of an entry it wants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Amount<'a> {
    /// Heads only.
    Heads,
    /// Whole entries; and this is the value of the one that is written.
    Entries(&'a [u8]),
}

/// The store's generation in which a verb was posted: the homes of another one may be other ones.
type Generation = u32;

/// A verb that was posted; or it names no memory; or that is dead.
pub(super) enum Posted {
    To(usize, Verb, Generation, Arc<Ticket>),
    Nowhere,
    ToTheDead,
    ToTheOutdated,
}

/// What a verb is for a NIC, and at which home; or as for [`Posted`].
enum Aim {
    At(usize, Work),
    Nowhere,
    Dead,
    /// The store was of another generation. Now the port knows it.
    Outdated,
}

/// What a home that is dead is.
enum Without {
    /// A copy, of which there are others.
    Copy,
    /// Of a former generation. Now the port knows a later one.
    Generation,
}

/// A client's queue pairs.
pub(super) struct Port {
    pub(super) store: Arc<Store>,
    pub(super) thread: u16,
    outstanding: u32,
    /// A read is of what it asks for: a switch that steers is told so.
    as_asked: bool,
    /// A switch that steers looks at nothing of what is asked here.
    passes: bool,
    /// In which epoch each connection began: at the index of the first home at its node.
    connected: Box<[Option<SwitchEpoch>]>,
    /// Of each home, that index.
    at: Box<[usize]>,
}

const fn location_of(verb: &Verb) -> Location {
    match *verb {
        Verb::Read(at) | Verb::Write(at, _) | Verb::CompareSwap { at, .. } => at,
    }
}

impl Port {
    pub(super) fn new(store: Arc<Store>, thread: u16, outstanding: u32) -> Self {
        let homes = &store.setup.homes;
        let first_at = |home: &Home| homes.iter().position(|first| first.addr.home() == home.addr.home());
        let at = homes.iter().map(|home| first_at(home).expect("it is among them")).collect();
        let connected = vec![None; homes.len()].into();
        // Of copies, the last one is read, and a switch knows the first one.
        let as_asked = store.setup.copies > 1;
        Self { store, thread, outstanding, as_asked, passes: false, connected, at }
    }

    /// The same port, of the store as it is by now. Connections begin anew.
    pub(super) fn reformed(&mut self, store: Arc<Store>) {
        let Self { thread, outstanding, as_asked, passes, .. } = *self;
        *self = Self { as_asked, passes, ..Self::new(store, thread, outstanding) };
    }

    /// Learns of what the store is made, as its metadata server says, when that is something else.
    pub(super) fn learn<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
    ) -> Result<(), Failure> {
        let began = fabric.now();
        loop {
            match fabric.current(context, &self.store) {
                Ok(store) if store.setup.generation > self.store.setup.generation => {
                    self.reformed(store);
                    return Ok(());
                }
                // It is being copied, or another server is about to take over.
                Ok(_) | Err(Failure::Broken | Failure::Refused(Refusal::Locked))
                    if fabric.now().saturating_sub(began) < TIMEOUT =>
                {
                    fabric.pass_time(context);
                }
                Ok(_) => return Err(Failure::Broken),
                Err(why) => return Err(why),
            }
        }
    }

    /// The same, whose reads are of what they ask for, whatever a switch knows.
    pub(super) fn reading_as_asked(self) -> Self {
        Self { as_asked: true, ..self }
    }

    /// The same, at which no switch looks: what it writes are pieces of memory, and no appends.
    pub(super) fn passing(self) -> Self {
        Self { passes: true, ..self }
    }

    /// The connection to a home has broken.
    pub(super) fn disconnected(&mut self, home: usize) {
        self.connected[self.at[home]] = None;
    }

    /// Begins a connection where there is none.
    pub(super) fn connect<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        home: usize,
    ) -> Result<(), Failure> {
        let began = fabric.now();
        // A switch that steers has to know its connections.
        let counts =
            |began: Option<SwitchEpoch>, now| began == Some(now) || began.is_some() && !fabric.is_steered();
        while !counts(self.connected[self.at[home]], fabric.epoch()) {
            // Before it has a packet number: a switch that names itself by this one, or by an earlier one, sees all that is sent.
            let epoch = fabric.epoch();
            let memory = &self.store.setup.homes[home];
            let (node, life) = (memory.addr.home(), memory.incarnation);
            if fabric.is_over(node, life) {
                return Err(Refusal::NodeDown.into());
            }
            let (to_memory, to_client) = (Psn::new(fabric.random(context)), Psn::new(fabric.random(context)));
            let Store { name, setup, .. } = &*self.store;
            let connect = Connect {
                thread: self.thread,
                to_memory,
                to_client,
                outstanding: self.outstanding,
                store: *name,
                generation: setup.generation,
            };
            let begun = fabric.connect(context, (node, life), connect);
            match begun.and_then(|()| self.introduce(fabric, context, home, (to_memory, epoch))) {
                Ok(()) => self.connected[self.at[home]] = Some(epoch),
                // The latter two: one of both has not heard yet that the other one is in the rack.
                Err(Failure::Broken | Failure::Refused(Refusal::Locked | Refusal::NodeDown))
                    if fabric.now().saturating_sub(began) < TIMEOUT =>
                {
                    fabric.pass_time(context);
                }
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn introduce<F: Fabric>(
        &self,
        fabric: &F,
        context: &mut ThreadContext,
        home: usize,
        (first, switch): (Psn, SwitchEpoch),
    ) -> Result<(), Failure> {
        if !fabric.is_steered() {
            return Ok(());
        }
        let setup = &self.store.setup;
        let homes = &setup.homes;
        let node = homes[home].addr.home();
        let incarnation = fabric.incarnation_of(fabric.me()).ok_or(Failure::Fenced)?;
        // A chain that may go on in another memory is not steered, nor is another copy than the first: no region has this key.
        let is_steered = home == 0 && setup.may_be_steered() && !self.passes;
        let region = if is_steered { homes[home].key } else { Key(0) };
        let client = ChainPair::of_client(fabric.me(), node, self.thread).number();
        let number = fabric.next_number();
        let (of, as_asked) = (homes[home].incarnation.0 as u16, self.as_asked);
        // Those of a store with copies come and go; it is over with its first memory, and goes on with another one.
        let Home { addr, incarnation: its, .. } = homes[0];
        let server = if setup.copies == 1 { self.store.servers[0] } else { (addr.home(), its) };
        let said =
            Introduction::Begin { client, first, region, of, incarnation, server, switch, as_asked, number };
        fabric.introduce(context, said)
    }

    /// A connection to a home cannot be begun. The home is dead, and there are other copies of what it has, maybe of a later generation only.
    ///
    /// # Errors
    /// If that is not so: for this reason, or because no copy is left in any generation.
    fn without<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        home: usize,
        why: Failure,
    ) -> Result<Without, Failure> {
        let lives = |home: &Home| !fabric.is_over(home.addr.home(), home.incarnation);
        let setup = &self.store.setup;
        let is_dead = setup.copies > 1 && !lives(&setup.homes[home]);
        if is_dead && setup.has_copies(home, lives) {
            Ok(Without::Copy)
        } else if is_dead || why == OUTDATED {
            self.learn(fabric, context).map(|()| Without::Generation)
        } else {
            Err(why)
        }
    }

    /// The work that a verb is.
    fn work<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        (replica, verb): Aimed,
        amount: Amount<'_>,
    ) -> Result<Aim, Failure> {
        let at = location_of(&verb);
        let Some((home, most)) = self.store.setup.home_of(at, replica) else { return Ok(Aim::Nowhere) };
        match self.connect(fabric, context, home) {
            Ok(()) => {}
            Err(why) => {
                return Ok(match self.without(fabric, context, home, why)? {
                    Without::Copy => Aim::Dead,
                    Without::Generation => Aim::Outdated,
                });
            }
        }
        let memory = &self.store.setup.homes[home];
        let (remote, node) = (Remote { key: memory.key, address: at.offset() }, memory.addr.home());
        let (what, source) = match (verb, amount) {
            (Verb::Read(_), Amount::Heads) => (Kind::Read { remote, len: ENTRY_HEAD }, Vec::new()),
            (Verb::Read(_), Amount::Entries(_)) => (Kind::Read { remote, len: most }, Vec::new()),
            (Verb::Write(_, head), Amount::Entries(value)) => (Kind::Write { remote }, entry(&head, value)),
            (Verb::Write(..), Amount::Heads) => unreachable!("whoever walks chains writes none"),
            (Verb::CompareSwap { expected, new, .. }, _) => {
                let (compare, swap) = (expected.to_bits(), new.to_bits());
                (Kind::CompareSwap { remote, compare, swap }, Vec::new())
            }
        };
        let pair = ChainPair::of_client(fabric.me(), node, self.thread).number();
        let bytes = source.len() * 8;
        Ok(Aim::At(home, Work::of_chain(node, what, source.into(), bytes, pair)))
    }

    /// Posts a verb for heads.
    pub(super) fn post<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        aimed: Aimed,
    ) -> Result<Posted, Failure> {
        self.post_one(fabric, context, aimed, Amount::Heads)
    }

    fn post_one<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        aimed: Aimed,
        amount: Amount<'_>,
    ) -> Result<Posted, Failure> {
        Ok(match self.work(fabric, context, aimed, amount)? {
            Aim::At(home, work) => {
                let generation = self.store.setup.generation;
                Posted::To(home, aimed.1, generation, fabric.post(context, work))
            }
            Aim::Nowhere => Posted::Nowhere,
            Aim::Dead => Posted::ToTheDead,
            Aim::Outdated => Posted::ToTheOutdated,
        })
    }

    /// Waits for a verb's end.
    pub(super) fn wait<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        posted: &Posted,
    ) -> Result<Outcome, Failure> {
        match posted {
            Posted::To(home, verb, generation, ticket) => {
                let ended = fabric.wait(context, ticket);
                self.outcome(fabric, context, (*home, *verb, *generation), ended, &mut Box::default())
            }
            Posted::Nowhere => Ok(Outcome::Unknown),
            Posted::ToTheOutdated => Ok(Outcome::Superseded),
            Posted::ToTheDead => Ok(Outcome::Dead),
        }
    }

    /// Executes one verb; what is read comes into `landing`.
    pub(super) fn execute<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        aimed: Aimed,
        amount: Amount<'_>,
        landing: &mut Box<[u64]>,
    ) -> Result<Outcome, Failure> {
        match self.work(fabric, context, aimed, amount)? {
            Aim::At(home, work) => {
                let generation = self.store.setup.generation;
                let ended = fabric.execute(context, work);
                self.outcome(fabric, context, (home, aimed.1, generation), ended, landing)
            }
            Aim::Dead => Ok(Outcome::Dead),
            Aim::Outdated => Ok(Outcome::Superseded),
            Aim::Nowhere if matches!(aimed.1, Verb::Read(_)) => Ok(Outcome::Read(None)),
            // Whoever gave that slot does not know its memory.
            Aim::Nowhere => Err(Failure::Broken),
        }
    }

    /// Executes WRITEs of one entry to its copies, all at once: their outcomes.
    pub(super) fn execute_all<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        writes: &[Aimed],
        value: &[u8],
    ) -> Result<Vec<Outcome>, Failure> {
        let mut in_flight = Vec::with_capacity(writes.len());
        for write in writes {
            match self.post_one(fabric, context, *write, Amount::Entries(value))? {
                Posted::Nowhere => return Err(Failure::Broken),
                posted => in_flight.push(posted),
            }
        }
        in_flight.iter().map(|posted| self.wait(fabric, context, posted)).collect()
    }

    /// Executes a WRITE and a compare-and-swap, one after the other, and waits for the second one only: the outcomes of both.
    pub(super) fn execute_both<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        (write, swap): (Verb, Verb),
        value: &[u8],
    ) -> Result<[Outcome; 2], Failure> {
        let first = self.work(fabric, context, (Replica::FIRST, write), Amount::Entries(value))?;
        let second = self.work(fabric, context, (Replica::FIRST, swap), Amount::Heads)?;
        let (Aim::At(home, first), Aim::At(same, second)) = (first, second) else {
            return Err(Failure::Broken);
        };
        debug_assert_eq!(home, same, "one queue pair");
        let generation = self.store.setup.generation;
        let ended = fabric.execute_after(context, first, second);
        let swapped = self.outcome(fabric, context, (home, swap, generation), ended, &mut Box::default())?;
        Ok([if swapped == Outcome::Unknown { Outcome::Unknown } else { Outcome::Written }, swapped])
    }

    fn outcome<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        (home, verb, generation): (usize, Verb, Generation),
        ended: Result<Ended, Failure>,
        landing: &mut Box<[u64]>,
    ) -> Result<Outcome, Failure> {
        let ended = match ended {
            Ok(ended) => ended,
            // Of what that home was, this port has learned that it is over.
            Err(_) if generation != self.store.setup.generation => return Ok(Outcome::Superseded),
            Err(why) => {
                let anew = match why {
                    Failure::Broken | Failure::Refused(Refusal::NodeDown) => {
                        self.disconnected(home);
                        self.connect(fabric, context, home)
                    }
                    why => Err(why),
                };
                return match anew {
                    Ok(()) => Ok(Outcome::Unknown),
                    Err(why) => Ok(match self.without(fabric, context, home, why)? {
                        Without::Copy => Outcome::Dead,
                        Without::Generation => Outcome::Superseded,
                    }),
                };
            }
        };
        match (ended, verb) {
            (Ended::Answer(words), Verb::Read(at)) => {
                let head = words.first_chunk::<3>().and_then(|words| EntryHead::from_words(*words));
                // A value is no longer than its slot.
                let room = at.class().bytes() - u64::from(ENTRY_HEAD);
                *landing = words;
                Ok(Outcome::Read(head.filter(|head| u64::from(head.len) <= room)))
            }
            (Ended::Answer(_), _) => Ok(Outcome::Written),
            (Ended::Original(word), _) => Ok(Outcome::Swapped(word)),
            (ended, _) => panic!("{verb:?} ended with {ended:?}"),
        }
    }
}

/// An entry as it travels.
fn entry(head: &EntryHead, value: &[u8]) -> Vec<u64> {
    debug_assert_eq!(head.len as usize, value.len());
    let mut words = Vec::with_capacity(3 + value.len().div_ceil(8));
    words.extend(head.to_words());
    words.resize(3 + value.len().div_ceil(8), 0);
    words[3..].as_mut_bytes()[..value.len()].copy_from_slice(value);
    words
}

/// The value of an entry that was read.
pub(super) fn value_of(landing: &[u64], len: u32) -> &[u8] {
    &landing[3..].as_bytes()[..len as usize]
}
