//! What the actor of a node has under its lock.

use std::sync::Arc;

use node::locks::{LockEffect, LockMessage, LockNode, Ticket};
use node::{DataRef, Effect, Moment, Node, Outcome, RackNode};
use wire::{Nanos, Packet, PacketKind, Refusal, SlotId};

use super::context::{ThreadContext, Waker};
use crate::memory::StoreOf;
use crate::memory::locks::LockStoreOf;

/// The node's machines, and the threads that wait for them.
pub(crate) struct NodeMachines {
    pub(crate) node: Node,
    pub(crate) locks: NodeLocks,
    /// Whom to tell when the operation in a slot is over: first the thread that started it.
    waiting: [Vec<Arc<Waker>>; SlotId::PER_NODE],
    /// Contents that came with messages and are still needed.
    pub(crate) kept: Vec<DataRef>,
    /// The latest time that the node was told: threads read the clock before they enter.
    pub(crate) now: Nanos,
}

impl NodeMachines {
    pub(crate) fn new(node: Node, locks: node::locks::LockNodeConfig) -> Self {
        Self {
            node,
            locks: NodeLocks::new(LockNode::new(locks)),
            waiting: std::array::from_fn(|_| Vec::new()),
            kept: Vec::new(),
            now: Nanos::ZERO,
        }
    }

    /// All machines of the node, for one call; and the data of locks that came with messages and are still needed.
    pub(crate) fn all(&mut self) -> (RackNode<'_>, &[Box<[u64]>]) {
        let NodeLocks { machine, kept, .. } = &mut self.locks;
        (RackNode { node: &mut self.node, locks: machine }, kept)
    }

    /// Time as the node sees it: it never runs back.
    pub(crate) fn see(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    /// For a call of a thread that comes now.
    pub(crate) fn at(&mut self, now: Nanos, context: &mut ThreadContext) -> Moment {
        self.see(now);
        self.again(context)
    }

    /// For one more call of the same thread.
    pub(crate) fn again(&self, context: &mut ThreadContext) -> Moment {
        Moment { now: self.now, random: context.random() }
    }

    /// The thread waits for the operation in this slot.
    pub(crate) fn wait_for(&mut self, slot: SlotId, waker: Arc<Waker>) {
        self.waiting[slot.index()].push(waker);
    }

    /// The operation is over: the thread that started it gets the outcome, those that joined try again.
    pub(crate) fn completed(&mut self, slot: SlotId, outcome: Outcome) {
        let mut outcome = Some(outcome);
        for waker in self.waiting[slot.index()].drain(..) {
            waker.ring(outcome.take().unwrap_or(Outcome::Retry));
        }
    }

    /// If the packet has ended a read with words alone, the thread that waits for them gets them now: they go with the packet.
    pub(crate) fn show_peeked(&self, packet: &Packet, effects: &[Effect], store: &StoreOf<'_>) {
        if packet.event != PacketKind::Peek {
            return;
        }
        for effect in effects {
            if let Effect::Completed { slot, outcome: Outcome::Peeked(data) } = effect
                && let Some(waker) = self.waiting[slot.index()].first()
            {
                waker.show(store.contents_with(packet, *data));
            }
        }
    }

    /// The slots that threads wait for, and how many do.
    pub(crate) fn waited_for(&self) -> impl Iterator<Item = (usize, usize)> {
        self.waiting.iter().map(Vec::len).enumerate().filter(|(_, threads)| *threads > 0)
    }

    /// Every thread that waits gets this outcome.
    pub(crate) fn ring_all(&mut self, outcome: Outcome) {
        self.waiting.iter_mut().flat_map(|wakers| wakers.drain(..)).for_each(|waker| waker.ring(outcome));
        std::mem::take(&mut self.locks.waiting).into_iter().for_each(|(_, waker)| waker.ring(outcome));
    }
}

/// The node's locks, and the threads that wait for them.
pub(crate) struct NodeLocks {
    pub(crate) machine: LockNode,
    /// Few, and in no order.
    waiting: Vec<(Ticket, Arc<Waker>)>,
    next: u32,
    /// Data that came with messages and are still needed.
    pub(crate) kept: Vec<Box<[u64]>>,
}

impl NodeLocks {
    fn new(machine: LockNode) -> Self {
        Self { machine, waiting: Vec::new(), next: 0, kept: Vec::new() }
    }

    /// A ticket for a thread that is going to wait.
    pub(crate) fn ticket_for(&mut self, waker: Arc<Waker>) -> Ticket {
        loop {
            let ticket = Ticket(self.next);
            self.next = self.next.wrapping_add(1);
            if !self.waiting.iter().any(|(other, _)| *other == ticket) {
                self.waiting.push((ticket, waker));
                return ticket;
            }
        }
    }

    /// Keeps the data that came with the message that is being handled.
    pub(crate) fn keep(&mut self, store: &StoreOf<'_>) -> DataRef {
        self.kept.push(store.received.to_words().into());
        LockStoreOf::kept(store.me, self.kept.len() - 1)
    }

    /// The thread waits no longer.
    pub(crate) fn forget(&mut self, ticket: Ticket) -> Option<Arc<Waker>> {
        let at = self.waiting.iter().position(|(other, _)| *other == ticket)?;
        Some(self.waiting.swap_remove(at).1)
    }

    /// Tells a thread what has become of its lock, or hands over what is to be sent.
    pub(crate) fn apply<'a>(&mut self, effect: &'a LockEffect) -> Option<&'a LockMessage> {
        let (ticket, outcome) = match *effect {
            LockEffect::Send(ref message) => return Some(message),
            LockEffect::Entered(ticket) => (ticket, Outcome::Locked),
            LockEffect::Busy(ticket) => (ticket, Outcome::Failed(Refusal::Locked)),
            LockEffect::Failed(ticket, why) => (ticket, Outcome::Failed(why)),
            LockEffect::Freed(ticket) => (ticket, Outcome::Freed),
        };
        if let Some(waker) = self.forget(ticket) {
            waker.ring(outcome);
        }
        None
    }
}
