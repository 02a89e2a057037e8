//! What must hold in every state, and what when everything is over; and all else that the engine is told.

use wire::{Copyset, LockKind, NodeId};

use super::machines::LockFacts;
use super::shape::lock_at;
use super::{Call, Engine, Finds, Regions, Step};
use crate::explore::engine::Successors;
use crate::explore::world::{Item, World};

impl Successors<Regions> for Engine {
    fn may_come_twice(&self, item: Item) -> bool {
        self.scope.twice.is_none_or(|only| only == self.packets.of(item).packet.kind)
    }

    fn thread(&mut self, world: &World, thread: usize, found: &mut Finds<Regions>) {
        self.go_on(world, thread, found);
    }

    fn others(&mut self, world: &World, found: &mut Finds<Regions>) {
        self.news(world, found);
        // Where nothing is lost, nobody may depend on a time-out: live racks have none.
        let nothing_else = found.is_empty() && self.scope.repeats();
        self.timers(world, nothing_else, found);
        self.control(world, found);
    }

    fn take(&mut self, next: &mut World, _: &Call<Regions>, step: &Step<Regions>) -> Result<(), String> {
        if !step.told.told.is_empty() {
            let mut outside = self.outside(next);
            step.told.told.iter().try_for_each(|told| self.tell_thread(&mut outside, *told))?;
            next.outside = self.intern_outside(outside);
        }
        Ok(())
    }

    /// Not if its receiver will drop it whatever happens.
    fn counts(&self, world: &World, item: Item) -> bool {
        let packet = &self.packets.of(item).packet;
        let epoch = match packet.to.node() {
            None => self.switch_facts(world).epoch,
            Some(node) => self.facts(world, node.index()).epoch,
        };
        packet.epoch >= epoch || !self.own.fences_epochs
    }

    fn renumber(&mut self, world: &mut World) {
        self.make_small(world);
    }

    fn check(&self, world: &World) -> Result<(), String> {
        for lock in 0..self.scope.locks {
            let wrong = |what: String| Err(format!("lock {lock}: {what}"));
            let facts = |node: usize| &self.facts(world, node).locks[usize::from(lock)];
            let nodes: Vec<&LockFacts> = (0..self.nodes.len()).map(facts).collect();
            exclusive(&nodes).or_else(wrong)?;
            holds(&nodes).or_else(wrong)?;
            self.known(world, lock, &nodes).or_else(wrong)?;
        }
        Ok(())
    }

    fn is_over(&self, world: &World) -> bool {
        let epoch = self.switch_facts(world).epoch;
        let mut nodes = (0..self.nodes.len()).map(|node| self.facts(world, node));
        nodes.all(|facts| facts.is_quiet && facts.epoch == epoch) && self.all_are_done(&self.outside(world))
    }

    fn check_at_rest(&mut self, world: &World) -> Result<(), String> {
        let locals = self.locals(world);
        self.machines.check_at_rest(&locals, self.switch.locals.get(world.switch))
    }
}

/// Whoever is inside to write, or may walk in, excludes all others on all other nodes; and finds what was released last.
fn exclusive(nodes: &[&LockFacts]) -> Result<(), String> {
    for (at, it) in nodes.iter().enumerate() {
        if (it.readers || it.writer) && !it.is_latest {
            return Err(format!("threads of node {at} may be inside, and find old data"));
        }
        let others = nodes.iter().enumerate().filter(|(other, _)| *other != at);
        if it.writer && others.clone().any(|(_, other)| other.readers || other.writer) {
            return Err(format!("node {at} may write, and others may be inside"));
        }
    }
    Ok(())
}

/// A term is one node's; one may write, and then nobody has a copy of before.
fn holds(nodes: &[&LockFacts]) -> Result<(), String> {
    for (at, it) in nodes.iter().enumerate() {
        let Some(holding) = &it.holding else { continue };
        for (other, its) in nodes.iter().enumerate().filter(|(other, _)| *other != at) {
            if its.holding.as_ref().is_some_and(|its| its.term == holding.term) {
                return Err(format!("nodes {at} and {other} both have term {:?}", holding.term));
            }
            let may_write = holding.complete && !holding.moving;
            if may_write && its.holding.as_ref().is_some_and(|its| its.complete && !its.moving) {
                return Err(format!("nodes {at} and {other} may both write"));
            }
            if may_write && its.copy.is_some_and(|copy| copy <= holding.term) {
                return Err(format!("node {at} may write, and node {other} has a copy"));
            }
        }
    }
    Ok(())
}

impl Engine {
    /// No wake-up is lost: who waits, and stands among those who wait in the directory, is known to somebody who will do
    /// something about it: the holder, one of before that sends it on, a packet in flight, or, where packets are repeated,
    /// itself.
    fn known(&self, world: &World, lock: u8, nodes: &[&LockFacts]) -> Result<(), String> {
        let in_switch = self.switch_facts(world).entries[usize::from(lock)];
        let Some(entry) = in_switch.or(nodes[0].entry) else { return Ok(()) };
        if self.scope.repeats() || entry.waiting.is_empty() {
            return Ok(());
        }
        let mut known = Copyset::EMPTY;
        for (at, it) in nodes.iter().enumerate() {
            known = known.union(it.parked);
            if let Some(holding) = &it.holding {
                known = known.union(if holding.term == entry.term { holding.known } else { holding.late });
            }
            if !it.asked {
                known = known.with(NodeId(at as u16));
            }
        }
        for item in world.packets.as_slice().iter().chain(world.again.as_slice()) {
            let packet = &self.packets.of(*item).packet;
            if packet.lock != lock_at(lock) {
                continue;
            }
            known = known.union(packet.queue.nodes());
            known = match packet.kind {
                LockKind::Acquire | LockKind::Forward | LockKind::Serve | LockKind::Lend => {
                    known.with(packet.node)
                }
                LockKind::Granted | LockKind::Lent | LockKind::Hand => {
                    packet.to.node().map_or(known, |to| known.with(to))
                }
                LockKind::Move | LockKind::Denied => known.union(packet.waiting),
                _ => known,
            };
        }
        let forgotten = entry.waiting.without_all(known);
        if forgotten.is_empty() {
            return Ok(());
        }
        Err(format!("{forgotten:?} wait, and nobody knows of them: {entry:?}"))
    }
}
