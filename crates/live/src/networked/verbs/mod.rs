//! One-sided operations between the nodes of a rack of processes: a software NIC in each node's process.
//!
//! Each two nodes have a queue pair ([`nic::verbs`](::nic::verbs)), whose packets travel over the transport like all others. What an
//! application asks for is posted by its own thread; packets that come are handled by whichever thread receives for the node, on
//! this node's memory, without its application, and without its other machines: the device has a lock of its own.
//!
//! | asked for | on the queue pair | done at the home by |
//! | --- | --- | --- |
//! | operations on words | batches of remote atomics, as many as fit a packet | [`execute_fold`](crate::memory::regions::execute_fold): the processor's own atomics |
//! | a whole object | SABRe | [`Object::read`](crate::memory::regions::Object::read): version, copy, version |
//! | writing an object; beginning, opening, ending a region | a call in a SEND, a reply in another | `serving.rs` |
//! | bytes as they are | READ, WRITE | the region's words |
//!
//! | file | holds |
//! | --- | --- |
//! | `nic.rs` | the device, and what its effects need |
//! | `memory.rs`, `bytes.rs` | the bytes that the device names |
//! | `works.rs`, `ticket.rs` | what is in flight, and who waits for it |
//! | `serving.rs` | what is asked of this node by others, and what it does |
//! | `asking.rs` | what application threads call |
//! | `chained.rs` | queue pairs of clients of chains, each thread with its own |
//! | `changes.rs` | what others change in memory while it is copied |
//!
//! What must always hold: an operation is executed once or not at all; if nobody can know which, it fails as
//! [`Failure::Broken`] or because its home is down. Nothing of a former incarnation of either node is executed.

mod asking;
mod bytes;
mod chained;
mod changes;
mod memory;
mod nic;
mod serving;
#[cfg(test)]
mod tests;
mod ticket;
mod works;

/// What is needed by whoever delivers the verbs of chains.
pub(crate) mod chain_work {
    pub(crate) use super::chained::Beginning;
    pub(crate) use super::nic::{Nic, Way};
    pub(crate) use super::ticket::{Ended, Ticket};
    pub(crate) use super::works::{What as Kind, Work};
}

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::nic::connections::Again;
use ::nic::verbs::{Drop, Mtu};
use node::View;
use transport::{Cause, Contents, PeerId};
use wire::chain_pair::ChainPair;
use wire::roce::Packet;
use wire::{Incarnation, Nanos, NodeId};

use self::nic::{Nic, Way};
use super::node::NetworkedNode;
use crate::actor::{Failure, ThreadContext};

pub use self::asking::{Far, HomeIncarnation, Opened, Read, RegionName, Written};
pub use self::ticket::Ticket;
pub use ::nic::regions::refused_words;

/// What a node's NIC has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NicCounts {
    /// Packets that came.
    pub received: u64,
    /// Packets that went.
    pub sent: u64,
    /// Requests that came again, and were answered again.
    pub duplicates: u64,
    /// Times that packets were sent again because something was missing, or no answer came in time.
    pub repeated: u64,
    /// Connections that have failed, and began anew.
    pub broken: u64,
    /// Packets that were dropped, in the order of [`nic::verbs::Drop::ALL`](::nic::verbs::Drop).
    pub dropped: [u64; Drop::ALL.len()],
    /// Messages that were neither a call nor a reply to one.
    pub malformed: u64,
}

impl NicCounts {
    pub(super) const WORDS: usize = 6 + Drop::ALL.len();

    /// All of them, in their order.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        let Self { received, sent, duplicates, repeated, broken, dropped, malformed } = *self;
        [received, sent, duplicates, repeated, broken, malformed].into_iter().chain(dropped)
    }

    /// What was dropped, by cause.
    pub fn dropped_by_cause(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Drop::ALL.map(Drop::name).into_iter().zip(self.dropped).chain([("no_call", self.malformed)])
    }

    pub(super) fn of_words(mut next: impl FnMut() -> u64) -> Self {
        Self {
            received: next(),
            sent: next(),
            duplicates: next(),
            repeated: next(),
            broken: next(),
            malformed: next(),
            dropped: std::array::from_fn(|_| next()),
        }
    }
}

/// What a node has for one-sided operations.
pub(super) struct Verbs {
    nic: Mutex<Nic>,
    /// When the device wants to be called.
    due: AtomicU64,
    /// Somebody has asked this node for something.
    is_asked: AtomicBool,
    /// Held while that is done.
    serving: Mutex<()>,
    /// Payload of a packet.
    packet_bytes: usize,
}

/// The largest packets that a path has capacity for.
pub(super) fn mtu_of(room: usize) -> Mtu {
    let fits = |mtu: &&Mtu| mtu.bytes() as usize <= room;
    Mtu::ALL.iter().rev().find(fits).copied().unwrap_or(Mtu::B256)
}

impl Verbs {
    /// For a node of a rack of so many; packets of the path have capacity for `room` bytes of payload. When they are sent again, and how
    /// long a peer may be silent: see [`Nic::new`].
    pub(super) fn new(me: NodeId, nodes: usize, room: usize, times: (Nanos, Nanos)) -> Self {
        let mtu = mtu_of(room);
        Self {
            nic: Mutex::new(Nic::new(me, nodes, mtu, times)),
            due: AtomicU64::new(u64::MAX),
            is_asked: AtomicBool::new(false),
            serving: Mutex::new(()),
            packet_bytes: mtu.bytes() as usize,
        }
    }

    pub(super) fn enter(&self) -> MutexGuard<'_, Nic> {
        self.nic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The incarnation of another node that is in the rack.
    pub(super) fn incarnation_of(&self, node: NodeId) -> Option<Incarnation> {
        self.enter().connections.incarnations(node).map(|incarnations| incarnations.theirs)
    }

    /// True if that life of another node is over. One that begins with an epoch of which this node has not heard yet is not.
    pub(super) fn is_over(&self, node: NodeId, life: Incarnation) -> bool {
        self.enter().is_over(node, life)
    }

    /// When the device wants to be called.
    pub(super) fn deadline(&self) -> Nanos {
        Nanos(self.due.load(Ordering::Acquire))
    }
}

impl NetworkedNode {
    /// Does something with the device. What it sends is still to be flushed.
    pub(super) fn with_nic<R>(
        &self,
        context: &mut ThreadContext,
        action: impl FnOnce(&mut Nic, Nanos, &mut Way<'_>) -> R,
    ) -> R {
        let mut nic = self.verbs.enter();
        // Under the lock, so that it does not run back.
        let now = self.now();
        let mut way = Way {
            transport: &*self.transport,
            outgoing: &mut context.outgoing,
            is_fenced: self.lease().is_fenced(),
        };
        let result = action(&mut nic, now, &mut way);
        nic.mend_broken(now, &mut way);
        self.verbs.due.store(nic.next_deadline().0, Ordering::Release);
        if !nic.asked.is_empty() {
            self.verbs.is_asked.store(true, Ordering::Release);
        }
        result
    }

    /// A packet of another node's NIC.
    pub(super) fn on_verb_packet(
        &self,
        context: &mut ThreadContext,
        from: PeerId,
        packet: &Packet,
        len: usize,
        contents: Contents<'_>,
    ) {
        match from.as_node() {
            None if from == PeerId::SWITCH && !self.lease().is_fenced() => {
                self.with_nic(context, |nic, now, way| nic.on_chain_packet(now, packet, len, contents, way));
            }
            Some(from) if !self.lease().is_fenced() && ChainPair::of(packet.to).is_none() => {
                self.with_nic(context, |nic, now, way| nic.on_packet(now, from, packet, len, contents, way));
            }
            _ => self.transport.counters().dropped(Cause::Malformed),
        }
    }

    /// A control message of another node: about its connection to this one.
    pub(super) fn on_control_of(&self, context: &mut ThreadContext, from: PeerId, bytes: &[u8]) {
        match (from.as_node(), Again::parse(bytes)) {
            (Some(from), Some(said)) => {
                self.with_nic(context, |nic, now, way| nic.on_again(now, from, &said, way));
            }
            _ => self.transport.counters().dropped(Cause::Malformed),
        }
    }

    /// What the NIC has counted.
    pub fn nic_counts(&self) -> NicCounts {
        let nic = self.verbs.enter();
        let counters = nic.device.counters();
        NicCounts {
            received: counters.received,
            sent: counters.sent,
            duplicates: counters.duplicates,
            repeated: counters.went_back + counters.timed_out,
            broken: counters.broken,
            dropped: counters.dropped,
            malformed: nic.malformed,
        }
    }

    /// Dead nodes whose processes may still write here are looked at once more; and applications, which nobody declares dead.
    pub(super) fn look_at_suspects(&self) {
        let regions = &self.memory().regions;
        self.verbs.enter().suspects.retain(|node| !regions.lose_objects_of(*node));
        regions.look_at_applications();
    }

    /// What is due at the device.
    pub(super) fn run_nic(&self, context: &mut ThreadContext, now: Nanos) {
        if self.verbs.deadline() <= now {
            self.with_nic(context, |nic, now, way| nic.on_deadline(now, way));
            self.flush(context);
        }
    }

    /// A new epoch: connections to nodes that are down, or in another incarnation, have ended, and others begin.
    pub(super) fn begin_connections(&self, context: &mut ThreadContext, view: &View) {
        self.with_nic(context, |nic, now, way| {
            nic.begin_epoch(now, (view.epoch, &view.incarnations), way);
            for peer in std::mem::take(&mut nic.gone) {
                if !self.memory().regions.node_died(peer) {
                    nic.suspects.insert(peer);
                }
            }
        });
        self.flush(context);
    }

    /// This node counts no more: whatever it has in flight has failed.
    pub(super) fn end_connections(&self, context: &mut ThreadContext) {
        self.with_nic(context, |nic, now, way| nic.end_all(now, Failure::Fenced, way));
    }
}
