//! How the threads of a node's process run its machines and receive for them.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, TryLockError};

use node::locks::LockMessage;
use node::{Effect, Message, peeked_bytes};
use transport::{Body, Cause, Contents, PeerId};
use wire::{LockKind, LockPacket, Nanos, NodeId, Packet, PacketKind};

use super::node::NetworkedNode;
use crate::actor::{Actor, AtNode, Driver, Input, NodeMachines, ThreadContext, drain};
use crate::memory::StoreOf;
use crate::memory::locks::LockStoreOf;
use crate::waiting::{SpinThenPark, Step};

impl Driver for NetworkedNode {
    fn now(&self) -> Nanos {
        NetworkedNode::now(self)
    }

    fn actor(&self, _: NodeId) -> &Actor<NodeMachines> {
        &self.actor
    }

    fn store(&self, _: NodeId) -> StoreOf<'_> {
        StoreOf::alone(&self.memory, self.id, Contents::None)
    }

    fn dispatch(&self, machines: &mut NodeMachines, store: &StoreOf<'_>, context: &mut ThreadContext) {
        self.end_regions_in(machines.node.ended());
        let here = PeerId::node(self.id);
        let ThreadContext { effects, lock_effects, outgoing, scratch, .. } = context;
        for effect in effects.drain(..) {
            match effect {
                Effect::Send(message) => {
                    // A memory that nobody serves any more: the epoch that says so is on its way.
                    let Some(to) = machines.node.place_of(message.packet.to) else { continue };
                    let to = to.map_or(PeerId::SWITCH, PeerId::node);
                    if to == here {
                        self.actor.leave(Input::Message(message));
                    } else if !self.lease.is_fenced() {
                        let contents = message
                            .data
                            .map_or(Contents::None, |data| store.contents_with(&message.packet, data));
                        self.transport.send(to, Body::Packet(&message.packet, contents), outgoing);
                    }
                }
                Effect::Completed { slot, outcome } => machines.completed(slot, outcome),
            }
        }
        for effect in lock_effects.iter() {
            let Some(&LockMessage { ref packet, mut data }) = machines.locks.apply(effect) else { continue };
            let to = packet.to.node().map_or(PeerId::SWITCH, PeerId::node);
            if to == here {
                // It is handled when what came now is gone.
                if data == Some(LockStoreOf::received(self.id)) {
                    data = Some(machines.locks.keep(store));
                }
                self.actor.leave(Input::Lock(LockMessage { packet: *packet, data }));
            } else if !self.lease.is_fenced() {
                let locks = store.of_locks(&machines.locks.kept);
                let region = data.map_or(Contents::None, |data| locks.to_send(data, packet.len, scratch));
                let payload = u32::try_from(region.bytes()).expect("at most the region");
                // Of a sized region, only what counts travels.
                let counted;
                let packet = if payload == packet.payload {
                    packet
                } else {
                    counted = LockPacket { payload, ..*packet };
                    &counted
                };
                self.transport.send(to, Body::Lock(packet, region), outgoing);
            }
        }
        lock_effects.clear();
    }

    fn deliver(&self, node: NodeId, machines: MutexGuard<'_, NodeMachines>, context: &mut ThreadContext) {
        let mut machines = machines;
        loop {
            drain(self, node, &mut machines, context);
            if !machines.kept.is_empty() && !machines.node.is_recovering() {
                let mut store = self.store(node);
                machines.kept.drain(..).for_each(|kept| store.let_go(kept));
            }
            if !machines.locks.kept.is_empty() && !machines.locks.machine.is_recovering() {
                machines.locks.kept.clear();
            }
            drop(machines);
            // A thread that found the actor taken left its message to us: so look again after letting go, as often as it takes.
            let Some(again) = self.actor.is_waiting().then(|| self.actor.try_enter()).flatten() else {
                break;
            };
            machines = again;
            machines.see(self.now());
        }
        self.flush(context);
    }

    fn leave(&self, _: NodeId, context: &mut ThreadContext, input: Input) {
        self.actor.leave(input);
        self.run(context);
    }

    fn run_due(&self, _: NodeId, context: &mut ThreadContext, now: Nanos) {
        self.run_nic(context, now);
        if self.actor.deadline() <= now && !self.lease.is_fenced() {
            let mut machines = self.actor.enter();
            let at = machines.at(now, context);
            let (mut all, kept) = machines.all();
            let (blocks, locks) = (&mut self.store(self.id), &mut self.store(self.id).of_locks(kept));
            all.on_deadline(at, (blocks, &mut context.effects), (locks, &mut context.lock_effects));
            self.deliver(self.id, machines, context);
        }
        self.end_holds(context, now);
    }

    fn pause(&self, node: NodeId, context: &mut ThreadContext, spin_then_park: &mut SpinThenPark) {
        let clock = || NetworkedNode::now(self);
        let now = spin_then_park.now(clock);
        self.run_due(node, context, now);
        if self.poll(context, now) > 0 {
            return spin_then_park.again();
        }
        match spin_then_park.step(now, self.deadline(), &self.oversubscription) {
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => spin_then_park.give_way(now, &self.oversubscription, clock),
            Step::Sleep(most) => match self.blocking.try_lock() {
                Ok(_blocking) => {
                    context.waker.block_in(&self.transport, most);
                }
                // Another thread sleeps where messages wake it, and rings this one's waker.
                Err(_) => context.waker.sleeper.sleep(most),
            },
        }
    }

    fn begin_wait(&self) -> SpinThenPark {
        self.transport.attend();
        SpinThenPark::without_spins()
    }

    fn end_wait(&self, context: &mut ThreadContext) {
        while self.transport.leave() {
            self.transport.attend();
            self.poll(context, NetworkedNode::now(self));
        }
    }

    fn is_fenced(&self) -> bool {
        self.lease.is_fenced() || self.leaving.load(Ordering::Acquire)
    }
}

impl NetworkedNode {
    /// A thread at this node.
    pub fn at<'a>(&'a self, context: &'a mut ThreadContext) -> AtNode<'a> {
        AtNode { driver: self, node: self.id, context }
    }

    /// When something is due in this process.
    pub(super) fn deadline(&self) -> Nanos {
        let holds = self.memory.pages().map_or(Nanos::MAX, |pages| pages.deadline());
        self.actor.deadline().min(self.verbs.deadline()).min(holds)
    }

    /// Lets everything go that is to be sent.
    pub(super) fn flush(&self, context: &mut ThreadContext) {
        if !context.outgoing.is_empty() {
            self.transport.flush(&mut context.outgoing);
        }
    }

    /// Receives a burst and lets the machines handle it. Returns how many messages there were.
    pub(super) fn poll(&self, context: &mut ThreadContext, now: Nanos) -> usize {
        // Whoever handles what came next must not answer it sooner: a switch that steers drops acknowledgements that come out of the order
        // in which memory has executed, and each of their clients would have to ask again, one after the other.
        let turn = match self.receiving.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.flush(context);
                return 0;
            }
        };
        let mut control = Vec::new();
        let mut machines = None;
        let messages = self.transport.receive(&mut |from, body| match body {
            Body::Control(bytes) if from == PeerId::SWITCH => control.push(bytes.to_vec()),
            Body::Control(bytes) => self.on_control_of(context, from, bytes),
            Body::Verbs(packet, len, contents) => self.on_verb_packet(context, from, packet, len, contents),
            Body::Packet(packet, contents) => {
                let machines = machines.get_or_insert_with(|| self.actor.enter());
                self.handle(machines, context, now, packet, contents);
            }
            Body::Lock(packet, region) => {
                let machines = machines.get_or_insert_with(|| self.actor.enter());
                self.handle_lock(machines, context, now, packet, region);
            }
        });
        if let Some(machines) = machines {
            self.deliver(self.id, machines, context);
        }
        self.flush(context);
        drop(turn);
        self.serve_calls(context);
        for bytes in control {
            self.on_control(context, &bytes);
        }
        messages
    }

    /// Lets the machines handle a packet from another process.
    fn handle(
        &self,
        machines: &mut NodeMachines,
        context: &mut ThreadContext,
        now: Nanos,
        packet: &Packet,
        contents: Contents<'_>,
    ) {
        let block = self.memory.cache.block_size().len();
        let whole = peeked_bytes(packet).map_or(block, |(_, len)| len.min(block));
        if self.lease.is_fenced() || contents.bytes() != 0 && contents.bytes() != whole {
            return self.transport.counters().dropped(Cause::Malformed);
        }
        let at = machines.at(now, context);
        let mut store = StoreOf::alone(&self.memory, self.id, contents);
        let data = (contents.bytes() != 0).then(|| {
            if packet.kind == PacketKind::Report {
                // A home that rebuilds its directory comes back to what was reported.
                let kept = store.keep_received();
                machines.kept.push(kept);
                kept
            } else {
                StoreOf::received(self.id)
            }
        });
        let message = Message { packet: *packet, data };
        machines.all().0.on_packet(at, &message, &mut store, &mut context.effects);
        machines.show_peeked(packet, &context.effects, &store);
        self.dispatch(machines, &store, context);
    }

    /// The same, of one about a lock.
    fn handle_lock(
        &self,
        machines: &mut NodeMachines,
        context: &mut ThreadContext,
        now: Nanos,
        packet: &LockPacket,
        region: Contents<'_>,
    ) {
        if self.lease.is_fenced() {
            return self.transport.counters().dropped(Cause::Malformed);
        }
        let at = machines.at(now, context);
        let store = StoreOf::alone(&self.memory, self.id, region);
        let data = (region.bytes() != 0).then(|| {
            if packet.kind == LockKind::Report {
                // A home that finds out who has what comes back to what was reported.
                machines.locks.keep(&store)
            } else {
                LockStoreOf::received(self.id)
            }
        });
        let message = LockMessage { packet: *packet, data };
        let (mut all, kept) = machines.all();
        all.on_lock_packet(at, &message, &mut store.of_locks(kept), &mut context.lock_effects);
        self.dispatch(machines, &store, context);
    }

    /// Runs what was left for the machines, if nobody else does.
    pub(super) fn run(&self, context: &mut ThreadContext) {
        // A thread that holds the actor's lock looks again after letting go.
        if self.actor.is_waiting()
            && let Some(mut machines) = self.actor.try_enter()
        {
            machines.see(self.now());
            self.deliver(self.id, machines, context);
        }
    }
}
