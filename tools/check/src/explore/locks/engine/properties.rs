//! What makes two states one; what must hold in every state, and what when everything is over.

use wire::{Copyset, LockEnd, LockKind, NodeId, SwitchEpoch};

use super::Engine;
use crate::explore::locks::machines::{Local, LockFacts};
use crate::explore::locks::shape::lock_at;
use crate::explore::locks::world::World;
use crate::explore::world::Item;

impl Engine {
    /// Packets in order, without those that their receivers will drop whatever happens; and small numbers.
    pub(super) fn make_canonical(&mut self, world: &mut World) {
        let mut at = 0;
        while self.fences_epochs && at < world.packets.as_slice().len() {
            let packet = self.shapes.of(world.packets.as_slice()[at]).packet;
            if packet.epoch < self.epoch_of(world, packet.to) {
                world.packets.remove(at);
            } else {
                at += 1;
            }
        }
        self.renumber(world);
        world.again.as_mut_slice().sort_unstable();
        if self.scope.reorder {
            world.packets.as_mut_slice().sort_unstable();
        } else {
            // Stable: packets between the same two places keep their order.
            let way = |item: &Item| self.shapes.way(*item);
            world.packets.as_mut_slice().sort_by_key(way);
        }
    }

    fn epoch_of(&self, world: &World, end: LockEnd) -> SwitchEpoch {
        match end.node() {
            None => self.switch.facts[world.switch as usize].epoch,
            Some(node) => self.nodes[node.index()].facts[world.nodes[node.index()] as usize].epoch,
        }
    }

    /// What must hold in every state.
    pub(super) fn check(&self, world: &World) -> Result<(), String> {
        for lock in 0..self.scope.locks {
            let wrong = |what: String| Err(format!("lock {lock}: {what}"));
            let facts = |at: usize| &self.nodes[at].facts[world.nodes[at] as usize].locks[usize::from(lock)];
            let nodes: Vec<&LockFacts> = (0..self.size.nodes).map(facts).collect();
            self.exclusive(&nodes).or_else(wrong)?;
            self.reigns(&nodes).or_else(wrong)?;
            self.known(world, lock, &nodes).or_else(wrong)?;
        }
        Ok(())
    }

    /// Whoever is inside to write, or may walk in, excludes all others on all other nodes; and finds what was released last.
    fn exclusive(&self, nodes: &[&LockFacts]) -> Result<(), String> {
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

    /// A tenure is one node's; one may write, and then nobody has a copy of before.
    fn reigns(&self, nodes: &[&LockFacts]) -> Result<(), String> {
        for (at, it) in nodes.iter().enumerate() {
            let Some(reign) = &it.reign else { continue };
            for (other, its) in nodes.iter().enumerate().filter(|(other, _)| *other != at) {
                if its.reign.as_ref().is_some_and(|its| its.tenure == reign.tenure) {
                    return Err(format!("nodes {at} and {other} both have reign {:?}", reign.tenure));
                }
                let may_write = reign.complete && !reign.moving;
                if may_write && its.reign.as_ref().is_some_and(|its| its.complete && !its.moving) {
                    return Err(format!("nodes {at} and {other} may both write"));
                }
                if may_write && its.copy.is_some_and(|copy| copy <= reign.tenure) {
                    return Err(format!("node {at} may write, and node {other} has a copy"));
                }
            }
        }
        Ok(())
    }

    /// No wake-up is lost: who waits, and stands among those who wait in the directory, is known to somebody who will do
    /// something about it: the holder, one of before that sends it on, a packet under way, or, where packets are repeated,
    /// itself.
    fn known(&self, world: &World, lock: u8, nodes: &[&LockFacts]) -> Result<(), String> {
        let in_switch = self.switch.facts[world.switch as usize].entries[usize::from(lock)];
        let Some(entry) = in_switch.or(nodes[0].entry) else { return Ok(()) };
        if self.scope.repeats() || entry.waiting.is_empty() {
            return Ok(());
        }
        let mut known = Copyset::EMPTY;
        for (at, it) in nodes.iter().enumerate() {
            known = known.union(it.parked);
            if let Some(reign) = &it.reign {
                known = known.union(if reign.tenure == entry.tenure { reign.known } else { reign.late });
            }
            if !it.asked {
                known = known.with(NodeId(at as u16));
            }
        }
        for item in world.packets.as_slice().iter().chain(world.again.as_slice()) {
            let packet = &self.shapes.of(*item).packet;
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

    /// True if everything is over.
    pub(super) fn is_at_rest(&self, world: &World) -> bool {
        let epoch = self.switch.facts[world.switch as usize].epoch;
        world.packets.as_slice().is_empty()
            && world.again.as_slice().is_empty()
            && world.threads[..self.size.threads].iter().all(|thread| thread.is_done())
            && self.facts(world).all(|(_, facts)| facts.is_quiet && facts.epoch == epoch)
    }

    /// What must hold then.
    pub(super) fn check_at_rest(&mut self, world: &World) -> Result<(), String> {
        if !self.checked_at_rest.insert((world.nodes, world.switch)) {
            return Ok(());
        }
        let locals = self.nodes.iter().zip(world.nodes).map(|(place, local)| &**place.locals.get(local));
        let locals: Vec<&Local> = locals.collect();
        self.machines.check_at_rest(&locals, self.switch.locals.get(world.switch))
    }

    /// What cannot go on, for messages.
    pub(super) fn describe(&self, world: &World) -> String {
        let mut text = String::new();
        for (node, (place, local)) in self.nodes.iter().zip(world.nodes).enumerate() {
            text += &format!("node {node}: {:?}\n", place.locals.get(local));
        }
        text + &format!("switch: {:?}\n", self.switch.locals.get(world.switch))
    }
}
