//! Queue pairs between clients of chains and memory: each thread has its own to each memory, and all their packets pass the switch.
//!
//! At both ends. The client begins a connection, and begins it anew when it broke; memory does as it is told. What must always hold:
//! a connection that begins anew has executed nothing of what came before from then on; what is in flight on one that breaks ends,
//! and nobody knows whether it was done.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use nic::verbs::{Completion, CqNumber, Depth, PostError, Status, ToReceive, ToSend};
use sorted::Map;
use transport::Contents;
use wire::chain_pair::{ChainPair, End};
use wire::chains::{Class, UNIT};
use wire::roce::{Key, Packet, Psn, QpNumber};
use wire::{Incarnation, Nanos, NodeId, Refusal};

use super::changes::{Changes, Copyist};
use super::memory::Served;
use super::nic::{Nic, Way};
use super::ticket::Ended;
use super::works::{What, Work};
use crate::actor::Failure;
use crate::chains::{Home, LAST_PASS};
use crate::memory::regions::{Region, Shape};

/// Work that is posted to a queue pair at a time.
const SENDS: usize = 64;
/// Packets in flight on one: a ring, or a socket's buffer, holds those of some.
const WINDOW: u32 = 32;
/// Packets that one READ request asks for.
const READ_CHUNK: u32 = 16;

/// How long the acknowledgement of a WRITE waits for what comes behind it.
const ACK_DELAY: Nanos = Nanos::from_micros(100);

/// How often a request is sent again until its connection is given up: for about a second.
const RETRIES: u32 = 100;

/// How a connection begins, as both its ends know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beginning {
    /// The first packet to this end.
    pub(crate) to_owner: Psn,
    /// The first packet to the other one.
    pub(crate) to_peer: Psn,
    /// READs and atomics of the client in flight at a time.
    pub(crate) outstanding: u32,
    /// For which store, as it was in which generation.
    pub(crate) store: Home,
    pub(crate) generation: u32,
}

impl Beginning {
    /// As the other end sees it.
    pub(crate) const fn other(self) -> Self {
        Self { to_owner: self.to_peer, to_peer: self.to_owner, ..self }
    }
}

struct Link {
    pair: ChainPair,
    /// Of the other node.
    incarnation: Incarnation,
    is_connected: bool,
    /// Of which store, as it was in which generation.
    of: (Home, u32),
    completions: CqNumber,
    /// Work that waits to be posted.
    waiting: VecDeque<usize>,
}

/// The queue pairs of a node that are about chains.
#[derive(Default)]
pub(crate) struct Chained {
    links: Map<QpNumber, Link>,
    /// Those that have failed in this call.
    broken: Vec<QpNumber>,
    /// Those that may have completed something.
    touched: Vec<QpNumber>,
    /// Lives of nodes that are over as far as this memory goes.
    over: Map<NodeId, Incarnation>,
    /// Stores of which older generations than these are over.
    outdated: BTreeMap<Home, u32>,
}

impl Chained {
    /// A queue pair has failed.
    pub(super) fn break_off(&mut self, number: QpNumber) {
        self.broken.push(number);
        self.touched.push(number);
    }
}

impl Nic {
    /// Begins a connection, or begins it anew: what was in flight has failed.
    ///
    /// # Errors
    /// If that incarnation of the other node is over, or the store is of a later generation.
    pub(crate) fn connect_chain(
        &mut self,
        pair: ChainPair,
        incarnation: Incarnation,
        beginning: Beginning,
    ) -> Result<(), Refusal> {
        debug_assert_eq!(pair.owner, self.me);
        let Beginning { to_owner, to_peer, outstanding, store, generation } = beginning;
        if self.chains.over.get(&pair.peer).is_some_and(|over| incarnation <= *over)
            && pair.end == End::Memory
        {
            return Err(Refusal::NodeDown);
        }
        if self.chains.outdated.get(&store).is_some_and(|least| generation < *least) {
            return Err(Refusal::Outdated);
        }
        let number = pair.number();
        if self.chains.links.contains_key(&number) {
            self.disconnect_chain(number, Failure::Broken);
        } else {
            // Nothing is ever completed at the memory.
            let sends = if pair.end == End::Client { SENDS } else { 0 };
            let completions = self.device.create_completion_queue(sends);
            let depth = Depth { sends, receives: 0 };
            self.device.create_numbered(number, completions, completions, depth);
            let of = (store, generation);
            let link =
                Link { pair, incarnation, is_connected: false, of, completions, waiting: VecDeque::new() };
            self.chains.links.insert(number, link);
        }
        let largest = Class::new(Class::COUNT as u8 - 1).expect("the last one").bytes();
        let receive = ToReceive {
            remembered: outstanding + 1,
            longest: u32::try_from(largest).expect("2 MiB"),
            // What is answered to the compare-and-swap acknowledges the WRITE in front of it.
            ack_delay: ACK_DELAY,
            ..ToReceive::new(pair.peer, pair.other().number(), self.mtu, to_owner)
        };
        let send = ToSend {
            timeout: self.timeout,
            retries: RETRIES,
            outstanding,
            window: WINDOW,
            read_chunk: READ_CHUNK,
            ..ToSend::new(to_peer)
        };
        self.device.init(number).expect("it is new, or was reset");
        self.device.ready_to_receive(number, receive).expect("it was begun");
        self.device.ready_to_send(number, send).expect("it can receive");
        let link = self.chains.links.get_mut(&number).expect("it was made");
        (link.incarnation, link.is_connected, link.of) = (incarnation, true, (store, generation));
        Ok(())
    }

    /// Generations of a store before this one are over: ends all connections of these, at either end. Which is the oldest that counts.
    pub(crate) fn end_chains_before(&mut self, store: Home, generation: u32) -> u32 {
        let least = self.chains.outdated.entry(store).or_insert(generation);
        *least = generation.max(*least);
        let least = *least;
        let its = |(number, link): (&QpNumber, &Link)| {
            (link.of.0 == store && link.of.1 < least && link.is_connected).then_some(*number)
        };
        let its: Vec<QpNumber> = self.chains.links.iter().filter_map(its).collect();
        for number in its {
            self.disconnect_chain(number, Failure::Broken);
        }
        least
    }

    /// What this NIC calls a region.
    pub(crate) fn export(&mut self, region: &Arc<Region>) -> Option<Key> {
        let Self { bytes, device, .. } = self;
        bytes.exported.key_of(device, (region.addr(), region.shape()), Served::new(Arc::clone(region)))
    }

    /// Units of a store's memory that others have changed until a copyist's pass began, from this one on: some of them. With pass 0
    /// they are noted from now on, and with the last one not any more.
    ///
    /// # Errors
    /// If that memory is not there any more, or somebody else copies it by now.
    pub(crate) fn changed(
        &mut self,
        home: &Home,
        (by, pass): (Copyist, u32),
        (first, most): (u32, usize),
    ) -> Result<Vec<Range<u32>>, Refusal> {
        let served = self.bytes.exported.get_mut(home.key);
        let served = served.filter(|served| served.is_alive() && served.addr() == home.addr);
        let served = served.ok_or(Refusal::Unallocated)?;
        let Shape::Chain { first: base, units } = served.shape() else { return Err(Refusal::Unallocated) };
        match pass {
            0 => served.changes = Some(Changes::new(by, u64::from(units) * UNIT)),
            LAST_PASS => drop(served.changes.take_if(|changes| changes.is_for(by))),
            _ => {
                let changes = served.changes.as_mut().and_then(|changes| changes.at(by, pass));
                let offset = u64::from(first.saturating_sub(base)) * UNIT;
                let unit = |byte: u64| base + (byte / UNIT) as u32;
                let changed = changes.ok_or(Refusal::Outdated)?.from(offset).take(most);
                let units = changed.map(|bytes| unit(bytes.start)..unit(bytes.end).min(base + units));
                return Ok(units.collect());
            }
        }
        Ok(Vec::new())
    }

    /// Ends a connection: nothing more is executed that came over it.
    fn disconnect_chain(&mut self, number: QpNumber, why: Failure) {
        let Some(link) = self.chains.links.get_mut(&number) else { return };
        link.is_connected = false;
        link.waiting.clear();
        self.device.reset(number).expect("it is there");
        self.bytes.forget_kept(number);
        for work in self.works.drain_chain(number) {
            if let Some(ticket) = work.ticket {
                ticket.end(Ended::Failed(why));
            }
        }
    }

    /// An incarnation of a node is over: ends all connections with it.
    pub(crate) fn end_chains_of(&mut self, node: NodeId, incarnation: Incarnation) {
        let over = self.chains.over.entry(node).or_insert(incarnation);
        *over = incarnation.max(*over);
        let its = |(number, link): (&QpNumber, &Link)| {
            (link.pair.peer == node && link.incarnation <= incarnation && link.is_connected)
                .then_some(*number)
        };
        let its: Vec<QpNumber> = self.chains.links.iter().filter_map(its).collect();
        for number in its {
            self.disconnect_chain(number, Failure::Refused(Refusal::NodeDown));
        }
    }

    /// All connections have failed for this reason.
    pub(super) fn end_chains(&mut self, why: Failure) {
        let all: Vec<QpNumber> = self.chains.links.keys().copied().collect();
        all.into_iter().for_each(|number| self.disconnect_chain(number, why));
    }

    /// Posts work to a client's queue pair. If that is not connected, it has failed, and was not done.
    pub(crate) fn post_chain(&mut self, now: Nanos, work: Work, way: &mut Way<'_>) {
        let number = work.chain.expect("it names a queue pair");
        match self.chains.links.get_mut(&number).filter(|link| link.is_connected) {
            Some(link) => link.waiting.push_back(self.works.add(work)),
            None => {
                if let Some(ticket) = work.ticket {
                    ticket.end(Ended::Failed(Failure::Broken));
                }
                return;
            }
        }
        self.pump_chain(now, number);
        self.settle(now, Contents::None, way);
    }

    fn pump_chain(&mut self, now: Nanos, number: QpNumber) {
        let Some(link) = self.chains.links.get_mut(&number) else { return };
        while let Some(&at) = link.waiting.front() {
            let request = self.works.request(at, self.bytes.keys);
            match self.device.post_send(now, number, request, &mut self.effects) {
                Ok(()) => {
                    link.waiting.pop_front();
                }
                Err(PostError::QueueFull | PostError::CompletionQueueFull | PostError::NotReady) => break,
                Err(why) => panic!("{request:?}: {why}"),
            }
        }
        self.chains.touched.push(number);
    }

    /// A packet has come through the switch.
    pub(crate) fn on_chain_packet(
        &mut self,
        now: Nanos,
        packet: &Packet,
        len: usize,
        contents: Contents<'_>,
        way: &mut Way<'_>,
    ) {
        // The switch has looked that it is from there. One that is not for this node finds no queue pair.
        let Some(pair) = ChainPair::of(packet.to) else { return };
        self.chains.touched.push(packet.to);
        self.on_packet(now, pair.peer, packet, len, contents, way);
    }

    /// What was completed on a queue pair of chains.
    pub(super) fn poll_chains(&mut self) -> Option<Completion> {
        while let Some(number) = self.chains.broken.pop() {
            let Some(link) = self.chains.links.get_mut(&number) else { continue };
            link.is_connected = false;
            for at in std::mem::take(&mut link.waiting) {
                if let Some(ticket) = self.works.take(at).and_then(|work| work.ticket) {
                    ticket.end(Ended::Failed(Failure::Broken));
                }
            }
        }
        while let Some(number) = self.chains.touched.last() {
            let link = self.chains.links.get(number);
            if let Some(completion) = link.and_then(|link| self.device.poll(link.completions)) {
                return Some(completion);
            }
            self.chains.touched.pop();
        }
        None
    }

    pub(super) fn complete_chain(&mut self, now: Nanos, completion: &Completion) {
        let at = completion.id.0 as usize;
        let Some(work) = self.works.take(at) else { return };
        if let Some(ticket) = work.ticket {
            ticket.end(match (completion.status, work.what, completion.original) {
                (Status::Success, What::CompareSwap { .. }, Some(original)) => Ended::Original(original),
                (Status::Success, ..) => Ended::Answer(work.landing),
                _ => Ended::Failed(Failure::Broken),
            });
        }
        self.pump_chain(now, completion.queue_pair);
    }
}
