//! How threads deliver messages between the actors of an embedded rack.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use node::locks::LockMessage;
use node::{DataRef, Effect, Message};
use wire::{LockKind, LockPacket, Nanos, NodeId, region_bytes};

use super::rack::InlineRack;
use crate::actor::{Actor, AtNode, Driver, Input, NodeMachines, ThreadContext, drain};
use crate::memory::StoreOf;
use crate::memory::locks::LockStoreOf;
use crate::waiting::{SpinThenPark, Step};

/// How often nodes that nobody works on are looked after.
const PATROL: Nanos = Nanos::from_millis(1);

impl Driver for InlineRack {
    fn now(&self) -> Nanos {
        InlineRack::now(self)
    }

    fn actor(&self, node: NodeId) -> &Actor<NodeMachines> {
        &self.nodes[node.index()]
    }

    fn store(&self, node: NodeId) -> StoreOf<'_> {
        StoreOf::new(&self.memories, node)
    }

    fn dispatch(&self, machines: &mut NodeMachines, _: &StoreOf<'_>, context: &mut ThreadContext) {
        let ThreadContext { effects, lock_effects, to_run, .. } = context;
        for effect in effects.drain(..) {
            match effect {
                Effect::Send(message) => {
                    self.put(message.packet.to.node(), Input::Message(message), to_run);
                }
                Effect::Completed { slot, outcome } => machines.completed(slot, outcome),
            }
        }
        for message in lock_effects.iter().filter_map(|effect| machines.locks.apply(effect)) {
            self.put_about_lock(&message.packet, message.data, to_run);
        }
        lock_effects.clear();
    }

    fn deliver(&self, node: NodeId, mut machines: MutexGuard<'_, NodeMachines>, context: &mut ThreadContext) {
        drain(self, node, &mut machines, context);
        let now = machines.now;
        drop(machines);
        if self.nodes[node.index()].is_waiting() {
            context.to_run.push(node.index());
        }
        self.run_actors(context, now);
    }

    fn leave(&self, node: NodeId, context: &mut ThreadContext, input: Input) {
        self.nodes[node.index()].leave(input);
        context.to_run.push(node.index());
        self.run_actors(context, self.now());
    }

    /// At this thread's own node, and now and then at those that nobody works on.
    fn run_due(&self, node: NodeId, context: &mut ThreadContext, now: Nanos) {
        if self.nodes[node.index()].deadline() <= now {
            self.run_deadline(node, context, now);
        }
        let patrol = self.patrol.load(Ordering::Relaxed);
        if now.0 < patrol {
            return;
        }
        let next = (now + PATROL).0;
        if self.patrol.compare_exchange(patrol, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            for index in 0..self.nodes.len() {
                if self.nodes[index].deadline() <= now {
                    self.run_deadline(NodeId(index as u16), context, now);
                }
            }
        }
    }

    fn pause(&self, node: NodeId, context: &mut ThreadContext, spin_then_park: &mut SpinThenPark) {
        let clock = || InlineRack::now(self);
        let now = spin_then_park.now(clock);
        self.run_due(node, context, now);
        match spin_then_park.step(now, self.nodes[node.index()].deadline(), &self.oversubscription) {
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => spin_then_park.give_way(now, &self.oversubscription, clock),
            Step::Sleep(most) => context.waker.sleeper.sleep(most),
        }
    }

    fn begin_wait(&self) -> SpinThenPark {
        SpinThenPark::with_spins()
    }

    fn end_wait(&self, _: &mut ThreadContext) {}

    fn is_fenced(&self) -> bool {
        false
    }
}

impl InlineRack {
    /// A thread at one of its nodes.
    pub fn at<'a>(&'a self, node: NodeId, context: &'a mut ThreadContext) -> AtNode<'a> {
        AtNode { driver: self, node, context }
    }

    /// Runs every actor that this thread has left something for, until there is none.
    fn run_actors(&self, context: &mut ThreadContext, now: Nanos) {
        while let Some(index) = context.to_run.pop() {
            if index == self.nodes.len() {
                self.run_switch(context);
            } else {
                self.run_node(NodeId(index as u16), context, now);
            }
        }
    }

    fn run_node(&self, node: NodeId, context: &mut ThreadContext, now: Nanos) {
        while self.nodes[node.index()].is_waiting() {
            // A thread that holds the actor's lock looks again after letting go.
            let Some(mut machines) = self.nodes[node.index()].try_enter() else { return };
            machines.see(now);
            drain(self, node, &mut machines, context);
        }
    }

    /// Leaves something for a node, or for the switch, which this thread runs afterwards.
    #[inline(always)]
    fn put(&self, node: Option<NodeId>, input: Input, to_run: &mut Vec<usize>) {
        let index = node.map_or(self.nodes.len(), NodeId::index);
        match self.nodes.get(index) {
            Some(node) => node.leave(input),
            None => self.switch.leave(input),
        }
        to_run.push(index);
    }

    fn run_switch(&self, context: &mut ThreadContext) {
        while self.switch.is_waiting() {
            let Some(mut programs) = self.switch.try_enter() else { return };
            loop {
                let mut batch = std::mem::take(&mut context.batch);
                self.switch.collect(&mut batch);
                if batch.is_empty() {
                    context.batch = batch;
                    break;
                }
                for input in &batch {
                    let ThreadContext { switch_effects, directory_effects, to_run, .. } = context;
                    let message = match input {
                        Input::Message(message) => message,
                        Input::Lock(LockMessage { packet, .. }) => {
                            programs.on_lock_packet(packet, directory_effects, |packet| {
                                self.put_about_lock(packet, None, to_run);
                            });
                            continue;
                        }
                        Input::Unpinned(_) | Input::Left(_) => unreachable!("the switch has no threads"),
                    };
                    programs.on_packet(&message.packet, switch_effects, |packet| {
                        self.put(packet.to.node(), Input::Message(Message::from(packet)), to_run);
                    });
                }
                batch.clear();
                context.batch = batch;
            }
        }
    }

    /// Leaves a message about a lock. Here data are where all can name them, and stay there until they were received. So nothing has
    /// to be sent beside a MOVE: whom the directory lets have it gets the name.
    fn put_about_lock(&self, packet: &LockPacket, data: Option<DataRef>, to_run: &mut Vec<usize>) {
        let LockPacket { kind, lock, len, node, to, .. } = *packet;
        if kind == LockKind::Data {
            return;
        }
        let mut message = LockMessage { packet: *packet, data };
        if matches!(kind, LockKind::Hand | LockKind::Granted) && len > 0 && data.is_none() {
            message.packet.payload = region_bytes(len);
            message.data = Some(LockStoreOf::copy_of(&self.memories[node.index()], node, lock));
        }
        self.put(to.node(), Input::Lock(message), to_run);
    }

    fn run_deadline(&self, node: NodeId, context: &mut ThreadContext, now: Nanos) {
        let mut machines = self.actor(node).enter();
        let at = machines.at(now, context);
        machines.node.on_deadline(at, &mut self.store(node), &mut context.effects);
        self.deliver(node, machines, context);
        // Nothing is lost here, so a lock has nothing to send again.
    }
}
