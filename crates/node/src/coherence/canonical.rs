//! A node's state as a value, for checkers that explore all states of a small rack.
//!
//! A [`State`] holds what decides about the future, and nothing else: no times, no counters, no heat, no
//! measurements, and only rows and entries that are not as they were at first. Two nodes with equal states behave
//! alike from there on, if no epoch ends and nothing is allocated: the allocator's side stays as it is. What that leaves
//! out is in [`rest`].
//!
//! Time is taken out like this: in a saved state everything that is armed is due in the far future, and
//! [`Node::fire`] makes one [`Timer`] due and calls the node. Numbers of events only count for what they are
//! compared with; [`State::numbers`] and [`State::renumber`] let the checker, who sees all places, make them small.

pub mod rest;

use alloc::vec::Vec;

use wire::{BlockTag, NodeId, RequesterId, Rules, Seq, SlotId};

use crate::coherence::cache_agent::canonical::CacheAgentState;
use crate::coherence::context::Context;
use crate::coherence::home::canonical::HomeState;
use crate::coherence::message::Effect;
use crate::coherence::node::{Node, context};
use crate::coherence::requester::canonical::RequestersState;
use crate::store::{DataRef, Moment, Store};
use wire::Nanos;

/// When whatever is armed in a saved state is due.
pub(crate) const FAR: Nanos = Nanos(1 << 40);
/// The time of every call: long after the start, long before anything is due.
pub const NOW: Nanos = Nanos(1 << 30);

/// What decides about the future of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    node: NodeId,
    requesters: RequestersState,
    cache_agent: CacheAgentState,
    home: HomeState,
}

/// Something that happens when its time has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// A refused operation tries again.
    Backoff(SlotId),
    /// What an open event waits for is asked for again.
    Event(SlotId),
    /// The unlock of an event of this parity is sent again.
    Unlock(SlotId, usize),
    /// The packet of a migration is sent again.
    Move,
    /// An epoch ends while migrations wait for it.
    Epoch,
}

/// What a number is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Some packet with it is in flight, or may be sent again.
    InFlight,
    /// Packets are compared with it.
    Remembered,
    /// It is the last one that its requester has used.
    Last,
}

/// The number that stands for all random numbers that choose alike, in a rack of up to three nodes: a request can
/// find two providers at most, and the number's upper bit tells them apart. The upper half of `arg` stays: it says whom
/// a request follows in a queue.
pub fn canonical_choice(arg: u64, nodes: usize) -> u64 {
    let choice = if nodes > 2 && arg >> 31 & 1 == 1 { u64::from(u32::MAX) } else { 0 };
    arg & !u64::from(u32::MAX) | choice
}

impl<R: Rules> Node<R> {
    /// The node's state.
    pub fn save(&self) -> State {
        State {
            node: self.config().id,
            requesters: self.requesters.save(self.config()),
            cache_agent: self.cache_agent.save(),
            home: self.home.save(),
        }
    }

    /// Takes on the state of a node with the same configuration.
    pub fn load(&mut self, state: &State) {
        self.requesters.load(&state.requesters);
        self.cache_agent.load(&state.cache_agent);
        self.home.load(&state.home);
        self.next_epoch = FAR;
    }

    /// Lets one timer of a loaded state go off.
    pub fn fire<S: Store>(&mut self, timer: Timer, random: u32, store: &mut S, out: &mut Vec<Effect>) {
        match timer {
            Timer::Move => self.home.make_move_due(),
            Timer::Epoch => self.next_epoch = Nanos::ZERO,
            _ => self.requesters.make_due(timer),
        }
        self.on_deadline(Moment { now: NOW, random }, store, out);
    }

    /// Purges a block, as the allocator does when the block's incarnation has ended.
    pub fn purge<S: Store>(&mut self, at: Moment, tag: BlockTag, store: &mut S, out: &mut Vec<Effect>) {
        self.requesters.purge(&mut context!(self, at, store, out), tag);
    }
}

impl State {
    /// What is armed.
    pub fn timers(&self) -> Vec<Timer> {
        let mut timers = Vec::new();
        self.requesters.timers(|timer| timers.push(timer));
        self.home.timers(|timer| timers.push(timer));
        timers
    }

    /// True if no operation, event, unlock or migration is in flight.
    pub fn is_quiet(&self) -> bool {
        self.requesters.is_quiet() && self.home.is_quiet() && self.cache_agent.parked() == 0
    }

    /// Names every event number in the state.
    pub fn numbers(&self, found: &mut dyn FnMut(RequesterId, Seq, Use)) {
        self.requesters.numbers(self.node, found);
        self.cache_agent.numbers(found);
        self.home.numbers(self.node, found);
    }

    /// Replaces every event number. A row that remembers [`Seq::NONE`] is as it was at first.
    pub fn renumber(&mut self, to: &dyn Fn(RequesterId, Seq, Use) -> Seq) {
        self.requesters.renumber(self.node, to);
        self.cache_agent.renumber(to);
        self.home.renumber(self.node, to);
    }

    /// Replaces the names of contents.
    pub fn map_data(&mut self, to: &dyn Fn(DataRef) -> DataRef) {
        self.cache_agent.map_data(to);
    }

    /// How many answers are retained.
    pub fn retained(&self) -> usize {
        self.cache_agent.retained()
    }
}
