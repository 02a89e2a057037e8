//! How the threads of a node's process run its machines and receive for them.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, TryLockError};

use node::locks::{LockEffect, LockMessage};
use node::{Effect, Message, Moment, peeked_bytes};
use transport::{Body, Cause, Contents, PlaceId};
use wire::{Kind, LockEnd, LockKind, LockPacket, Nanos, NodeId, Packet};

use super::node::NetworkedNode;
use crate::memory::StoreOf;
use crate::memory::locks::LockStoreOf;
use crate::place::{Carrier, Courier, Input, NodePlace, Visit};
use crate::waiting::{Patience, Step};

impl Carrier for NetworkedNode {
    fn now(&self) -> Nanos {
        NetworkedNode::now(self)
    }

    fn visit<R>(
        &self,
        node: NodeId,
        courier: &mut Courier,
        now: Nanos,
        action: impl FnOnce(&mut Visit<'_, '_, '_>) -> R,
    ) -> R {
        debug_assert_eq!(node, self.id);
        let mut machine = self.place.enter();
        let at = Moment { now: machine.at(now), random: courier.random() };
        let mut store = StoreOf::alone(&self.memory, self.id, Contents::None);
        let result = self.with_locks_of(&mut machine, courier, Contents::None, |place, effects, locks| {
            action(&mut Visit { place, at, blocks: (&mut store, effects), locks })
        });
        self.dispatch(&mut machine, courier);
        self.finish(machine, courier, at.now);
        result
    }

    fn leave(&self, _: NodeId, courier: &mut Courier, input: Input) {
        self.place.leave(input);
        self.run(courier);
    }

    fn run_due(&self, _: NodeId, courier: &mut Courier, now: Nanos) {
        self.run_nic(courier, now);
        if self.place.deadline() <= now && !self.lease.is_fenced() {
            self.visit(self.id, courier, now, |it| {
                it.all(|mut all, at, blocks, locks| all.on_deadline(at, blocks, locks))
            });
        }
    }

    fn pause(&self, node: NodeId, courier: &mut Courier, patience: &mut Patience) {
        let clock = || NetworkedNode::now(self);
        let now = patience.now(clock);
        self.run_due(node, courier, now);
        if self.poll(courier, now) > 0 {
            return patience.again();
        }
        match patience.step(now, self.deadline(), &self.crowding) {
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => patience.give_way(now, &self.crowding, clock),
            Step::Sleep(most) => match self.blocking.try_lock() {
                Ok(_blocking) => {
                    courier.bell.block_in(&self.transport, most);
                }
                // Another thread sleeps where messages wake it, and rings this one's bell.
                Err(_) => courier.bell.sleeper.sleep(most),
            },
        }
    }

    fn begin_wait(&self) -> Patience {
        self.transport.attend();
        Patience::without_spins()
    }

    fn end_wait(&self, courier: &mut Courier) {
        while self.transport.leave() {
            self.transport.attend();
            self.poll(courier, NetworkedNode::now(self));
        }
    }

    fn is_fenced(&self) -> bool {
        self.lease.is_fenced() || self.leaving.load(Ordering::Acquire)
    }
}

impl NetworkedNode {
    /// When something is due in this process.
    pub(super) fn deadline(&self) -> Nanos {
        self.place.deadline().min(self.one_sided.deadline())
    }

    /// Lets everything go that is to be sent.
    pub(super) fn flush(&self, courier: &mut Courier) {
        if !courier.outgoing.is_empty() {
            self.transport.flush(&mut courier.outgoing);
        }
    }

    /// Receives a burst and lets the machines handle it. Returns how many messages there were.
    pub(super) fn poll(&self, courier: &mut Courier, now: Nanos) -> usize {
        // Whoever handles what came next must not answer it sooner: a switch that steers drops acknowledgements that come out of the order
        // in which memory has executed, and each of their clients would have to ask again, one after the other.
        let turn = match self.receiving.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.flush(courier);
                return 0;
            }
        };
        let mut control = Vec::new();
        let mut machine: Option<MutexGuard<'_, NodePlace>> = None;
        let messages = self.transport.receive(&mut |from, body| match body {
            Body::Control(bytes) if from == PlaceId::SWITCH => control.push(bytes.to_vec()),
            Body::Control(bytes) => self.on_control_of(courier, from, bytes),
            Body::OneSided(packet, len, contents) => self.on_one_sided(courier, from, packet, len, contents),
            Body::Packet(packet, contents) => {
                let machine = machine.get_or_insert_with(|| self.place.enter());
                self.handle(machine, courier, now, packet, contents);
            }
            Body::Lock(packet, region) => {
                let machine = machine.get_or_insert_with(|| self.place.enter());
                self.handle_lock(machine, courier, now, packet, region);
            }
        });
        if let Some(machine) = machine {
            self.finish(machine, courier, now);
        }
        self.flush(courier);
        drop(turn);
        self.serve_calls(courier);
        for bytes in control {
            self.on_control(courier, &bytes);
        }
        messages
    }

    /// Lets the machines handle a packet from another process.
    fn handle(
        &self,
        machine: &mut NodePlace,
        courier: &mut Courier,
        now: Nanos,
        packet: &Packet,
        contents: Contents<'_>,
    ) {
        let block = self.memory.cache.block_size().len();
        let whole = peeked_bytes(packet).map_or(block, |(_, len)| len.min(block));
        if self.lease.is_fenced() || contents.bytes() != 0 && contents.bytes() != whole {
            return self.transport.counters().dropped(Cause::Malformed);
        }
        let at = Moment { now: machine.at(now), random: courier.random() };
        let mut store = StoreOf::alone(&self.memory, self.id, contents);
        let data = (contents.bytes() != 0).then(|| {
            if packet.kind == Kind::Report {
                // A home that rebuilds its directory comes back to what was reported.
                let kept = store.keep_received();
                machine.kept.push(kept);
                kept
            } else {
                StoreOf::received(self.id)
            }
        });
        let message = Message { packet: *packet, data };
        machine.machines().on_packet(at, &message, &mut store, &mut courier.effects);
        machine.show_peeked(packet, &courier.effects, &store);
        self.dispatch(machine, courier);
    }

    /// Runs what was left for the machines, if nobody else does.
    pub(super) fn run(&self, courier: &mut Courier) {
        while self.place.is_waiting() {
            // Whoever holds the place looks again after letting go.
            let Some(machine) = self.place.try_enter() else { return };
            let now = self.now();
            self.finish(machine, courier, now);
        }
    }

    /// Lets the machines handle what they sent to themselves and what was left for them; lets go of the place; lets
    /// go what was sent.
    fn finish(&self, mut machine: MutexGuard<'_, NodePlace>, courier: &mut Courier, now: Nanos) {
        let mut store = StoreOf::alone(&self.memory, self.id, Contents::None);
        self.place.drain(
            &mut machine,
            &mut store,
            courier,
            now,
            |machine, courier, at, input| {
                self.with_locks_of(machine, courier, Contents::None, |place, _, (store, out)| match input {
                    Input::Lock(message) => place.machines().on_lock_packet(at, &message, store, out),
                    Input::Left(lock) => place.locks.machine.on_left(at, lock, store, out),
                    Input::Message(_) | Input::Unpinned(_) => {
                        unreachable!("that is for the node's other machines")
                    }
                });
            },
            |machine, courier| self.dispatch(machine, courier),
        );
        if !machine.kept.is_empty() && !machine.node.is_recovering() {
            machine.kept.drain(..).for_each(|kept| store.let_go(kept));
        }
        if !machine.locks.kept.is_empty() && !machine.locks.machine.is_recovering() {
            machine.locks.kept.clear();
        }
        drop(machine);
        if self.place.is_waiting() {
            self.run(courier);
        }
        self.flush(courier);
    }

    /// Lets the machine for locks handle a packet from another process.
    fn handle_lock(
        &self,
        machine: &mut NodePlace,
        courier: &mut Courier,
        now: Nanos,
        packet: &LockPacket,
        region: Contents<'_>,
    ) {
        if self.lease.is_fenced() {
            return self.transport.counters().dropped(Cause::Malformed);
        }
        let at = Moment { now: machine.at(now), random: courier.random() };
        let data = (region.bytes() != 0).then(|| {
            if packet.kind == LockKind::Report {
                // A home that finds out who has what comes back to what was reported.
                machine.locks.kept.push(region.to_words().into());
                LockStoreOf::kept(self.id, machine.locks.kept.len() - 1)
            } else {
                LockStoreOf::received(self.id)
            }
        });
        let message = LockMessage { packet: *packet, data };
        self.with_locks_of(machine, courier, region, |place, _, (store, out)| {
            place.machines().on_lock_packet(at, &message, store, out);
        });
    }

    /// Does something with the locks, while a message with this region is handled, and sends what follows from it, still
    /// under the place's lock: what it names may change later.
    fn with_locks_of<R>(
        &self,
        machine: &mut NodePlace,
        courier: &mut Courier,
        region: Contents<'_>,
        action: impl FnOnce(&mut NodePlace, &mut Vec<Effect>, (&mut LockStoreOf<'_>, &mut Vec<LockEffect>)) -> R,
    ) -> R {
        let kept = std::mem::take(&mut machine.locks.kept);
        let Courier { effects, lock_effects, outgoing, scratch, .. } = courier;
        let mut later = Vec::new();
        let mut store = LockStoreOf::alone(&self.memory, self.id, region, &kept);
        let result = action(machine, effects, (&mut store, lock_effects));
        let locks = &mut machine.locks;
        locks.apply(lock_effects, |message| {
            let to = match message.packet.to {
                LockEnd::Switch => PlaceId::SWITCH,
                LockEnd::Agent(node) | LockEnd::Home(node) => PlaceId::node(node),
            };
            if to == PlaceId::node(self.id) {
                // It is handled when what came now is gone.
                let received = message.data == Some(LockStoreOf::received(self.id));
                let data = if received {
                    later.push(region.to_words().into_boxed_slice());
                    Some(LockStoreOf::kept(self.id, kept.len() + later.len() - 1))
                } else {
                    message.data
                };
                self.place.leave(Input::Lock(LockMessage { data, ..message }));
            } else if !self.lease.is_fenced() {
                let LockMessage { packet, data } = message;
                let region = data.map_or(Contents::None, |data| store.to_send(data, packet.len, scratch));
                self.transport.send(to, Body::Lock(&packet, region), outgoing);
            }
        });
        locks.kept = kept;
        locks.kept.append(&mut later);
        result
    }

    /// Hands the effects of a call to the transport, still under the place's lock: what they name may change later.
    fn dispatch(&self, machine: &mut NodePlace, courier: &mut Courier) {
        self.end_regions_in(machine.node.ended());
        let store = StoreOf::alone(&self.memory, self.id, Contents::None);
        for effect in courier.effects.drain(..) {
            match effect {
                Effect::Send(message) => {
                    let to = PlaceId::of(message.packet.to);
                    if to == PlaceId::node(self.id) {
                        self.place.leave(Input::Message(message));
                    } else if !self.lease.is_fenced() {
                        let contents = message
                            .data
                            .map_or(Contents::None, |data| store.contents_with(&message.packet, data));
                        let body = Body::Packet(&message.packet, contents);
                        self.transport.send(to, body, &mut courier.outgoing);
                    }
                }
                Effect::Completed { slot, outcome } => machine.completed(slot, outcome),
            }
        }
    }
}
