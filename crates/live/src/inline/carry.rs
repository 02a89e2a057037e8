//! How threads carry messages between the places of an embedded rack.

use std::sync::atomic::Ordering;

use node::locks::LockMessage;
use node::{Effect, Message, Moment};
use wire::{Endpoint, LockEnd, Nanos, NodeId};

use super::rack::InlineRack;
use crate::memory::StoreOf;
use crate::memory::locks::LockStoreOf;
use crate::place::{Carrier, Courier, Input, LocksPlace, NodePlace, Place, Visit};
use crate::waiting::{Patience, Step};

/// How often nodes that nobody works on are looked after.
const PATROL: Nanos = Nanos::from_millis(1);

impl Carrier for InlineRack {
    fn now(&self) -> Nanos {
        InlineRack::now(self)
    }

    fn visit<R>(
        &self,
        node: NodeId,
        courier: &mut Courier,
        now: Nanos,
        action: impl FnOnce(&mut Visit<'_, '_, '_>) -> R,
    ) -> R {
        let place = &self.nodes[node.index()];
        let mut machine = place.enter();
        let at = Moment { now: machine.at(now), random: courier.random() };
        let mut store = StoreOf::new(&self.memories, node);
        let mut locks = LockStoreOf::new(&self.memories, node);
        let Courier { effects, lock_effects, .. } = courier;
        let (blocks, locks) = ((&mut store, effects), (&mut locks, lock_effects));
        let result = action(&mut Visit { place: &mut machine, at, blocks, locks });
        self.dispatch(&mut machine, courier);
        self.dispatch_locks(&mut machine.locks, courier);
        self.drain_node(place, &mut machine, node, courier, at.now);
        drop(machine);
        if place.is_waiting() {
            courier.to_run.push(node.index());
        }
        self.carry(courier, now);
        result
    }

    fn leave(&self, node: NodeId, courier: &mut Courier, input: Input) {
        self.nodes[node.index()].leave(input);
        courier.to_run.push(node.index());
        self.carry(courier, self.now());
    }

    /// At this thread's own node, and now and then at those that nobody works on.
    fn run_due(&self, node: NodeId, courier: &mut Courier, now: Nanos) {
        if self.nodes[node.index()].deadline() <= now {
            self.run_deadline(node, courier, now);
        }
        let patrol = self.patrol.load(Ordering::Relaxed);
        if now.0 < patrol {
            return;
        }
        let next = (now + PATROL).0;
        if self.patrol.compare_exchange(patrol, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            for index in 0..self.nodes.len() {
                if self.nodes[index].deadline() <= now {
                    self.run_deadline(NodeId(index as u16), courier, now);
                }
            }
        }
    }

    fn pause(&self, node: NodeId, courier: &mut Courier, patience: &mut Patience) {
        let clock = || InlineRack::now(self);
        let now = patience.now(clock);
        self.run_due(node, courier, now);
        match patience.step(now, self.nodes[node.index()].deadline(), &self.crowding) {
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => patience.give_way(now, &self.crowding, clock),
            Step::Sleep(most) => courier.bell.sleeper.sleep(most),
        }
    }

    fn begin_wait(&self) -> Patience {
        Patience::with_spins()
    }

    fn end_wait(&self, _: &mut Courier) {}

    fn is_fenced(&self) -> bool {
        false
    }
}

impl InlineRack {
    /// Where an endpoint is: nodes by number, then the switch.
    fn place_of(&self, endpoint: Endpoint) -> usize {
        endpoint.node().map_or(self.nodes.len(), NodeId::index)
    }

    /// Runs every place that this thread has left something for, until there is none.
    fn carry(&self, courier: &mut Courier, now: Nanos) {
        while let Some(index) = courier.to_run.pop() {
            if index == self.nodes.len() {
                self.run_switch(courier);
            } else {
                self.run_node(NodeId(index as u16), courier, now);
            }
        }
    }

    fn run_node(&self, node: NodeId, courier: &mut Courier, now: Nanos) {
        let place = &self.nodes[node.index()];
        while place.is_waiting() {
            // Whoever holds the place looks again after letting go.
            let Some(mut machine) = place.try_enter() else { return };
            self.drain_node(place, &mut machine, node, courier, now);
        }
    }

    fn drain_node(
        &self,
        place: &Place<NodePlace>,
        machine: &mut NodePlace,
        node: NodeId,
        courier: &mut Courier,
        now: Nanos,
    ) {
        let mut store = StoreOf::new(&self.memories, node);
        place.drain(
            machine,
            &mut store,
            courier,
            now,
            |machine, courier, at, input| self.on_lock_input(machine, node, courier, at, input),
            |machine, courier| self.dispatch(machine, courier),
        );
    }

    fn on_lock_input(
        &self,
        machine: &mut NodePlace,
        node: NodeId,
        courier: &mut Courier,
        at: Moment,
        input: Input,
    ) {
        let mut store = LockStoreOf::new(&self.memories, node);
        let (mut machines, out) = (machine.machines(), &mut courier.lock_effects);
        match input {
            Input::Lock(message) => machines.on_lock_packet(at, &message, &mut store, out),
            Input::Left(lock) => machines.locks.on_left(at, lock, &mut store, out),
            Input::Message(_) | Input::Unpinned(_) => unreachable!("that is for the node's other machines"),
        }
        self.dispatch_locks(&mut machine.locks, courier);
    }

    /// As [`InlineRack::dispatch`], for locks.
    fn dispatch_locks(&self, locks: &mut LocksPlace, courier: &mut Courier) {
        let Courier { lock_effects, to_run, .. } = courier;
        locks.apply(lock_effects, |message| {
            let to = self.place_of_lock_end(message.packet.to);
            self.put(to, Input::Lock(message));
            to_run.push(to);
        });
    }

    fn place_of_lock_end(&self, end: LockEnd) -> usize {
        end.node().map_or(self.nodes.len(), NodeId::index)
    }

    /// Puts the effects of a node's call where they belong, still under the node's lock: that keeps messages
    /// from one place to another in order.
    fn dispatch(&self, machine: &mut NodePlace, courier: &mut Courier) {
        for effect in courier.effects.drain(..) {
            match effect {
                Effect::Send(message) => {
                    let to = self.place_of(message.packet.to);
                    self.put(to, Input::Message(message));
                    courier.to_run.push(to);
                }
                Effect::Completed { slot, outcome } => machine.completed(slot, outcome),
            }
        }
    }

    fn put(&self, place: usize, input: Input) {
        match self.nodes.get(place) {
            Some(node) => node.leave(input),
            None => self.switch.leave(input),
        }
    }

    fn run_switch(&self, courier: &mut Courier) {
        while self.switch.is_waiting() {
            let Some(mut place) = self.switch.try_enter() else { return };
            loop {
                let mut batch = std::mem::take(&mut courier.batch);
                self.switch.collect(&mut batch);
                if batch.is_empty() {
                    courier.batch = batch;
                    break;
                }
                for input in batch.drain(..) {
                    let Courier { switch_effects, directory_effects, to_run, .. } = courier;
                    let message = match input {
                        Input::Message(message) => message,
                        Input::Lock(LockMessage { packet, data }) => {
                            place.on_lock_packet(&packet, directory_effects, |packet| {
                                let data = data.filter(|_| packet.payload > 0);
                                let to = self.place_of_lock_end(packet.to);
                                self.put(to, Input::Lock(LockMessage { packet, data }));
                                to_run.push(to);
                            });
                            continue;
                        }
                        Input::Unpinned(_) | Input::Left(_) => unreachable!("the switch has no threads"),
                    };
                    place.on_packet(&message.packet, switch_effects, |packet| {
                        let to = self.place_of(packet.to);
                        self.put(to, Input::Message(Message::from(packet)));
                        to_run.push(to);
                    });
                }
                courier.batch = batch;
            }
        }
    }

    fn run_deadline(&self, node: NodeId, courier: &mut Courier, now: Nanos) {
        self.visit(node, courier, now, |it| it.place.node.on_deadline(it.at, it.blocks.0, it.blocks.1));
        // Nothing is lost here, so a lock has nothing to send again.
    }
}
