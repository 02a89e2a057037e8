//! What makes two states one; what must hold in every state, and what when everything is over.

use std::rc::Rc;

use node::Access;
use wire::{Discipline, NodeId};

use super::Engine;
use crate::explore::joint::machines::{HOME, Input, Local};
use crate::explore::joint::world::{Doing, Outside, World};
use crate::explore::world::Item;

impl Engine {
    /// Packets in order, without those that nobody will take whatever happens.
    pub(super) fn make_canonical(&mut self, world: &mut World) {
        let mut packets = std::mem::take(&mut world.packets);
        packets.retain(|item| self.counts(world, *item));
        if self.scope.reorder {
            packets.sort_unstable();
        } else {
            // Stable: packets between the same two places keep their order.
            packets.sort_by_key(|item| self.packets.way(*item));
        }
        world.packets = packets;
    }

    fn counts(&self, world: &World, item: Item) -> bool {
        let packet = self.packets.of(item);
        let epoch = match packet.to() {
            None => self.switches.get(world.switch).epoch,
            Some(node) if !self.up(world).contains(node) => return false,
            Some(node) => self.facts(world, node.index()).epoch,
        };
        packet.epoch() >= epoch || !self.machines.fences_epochs(packet.is_lock())
    }

    /// The home's memory before and after a step: when it comes to life it is zeroed, it ends if
    /// somebody frees it, and only who owns it writes it.
    pub(super) fn memory_changes(
        &self,
        (before, after): (u32, u32),
        input: Input,
        zeroed: bool,
        outside: &mut Outside,
    ) -> Result<(), String> {
        let facts = |local: u32| &self.nodes[HOME.index()].facts[local as usize];
        let (before, after) = (facts(before), facts(after));
        let is_born = before.discipline.is_none() && after.discipline.is_some();
        if zeroed != is_born {
            return Err(format!(
                "memory is zeroed: {zeroed}; it was {:?}, and is {:?}",
                before.discipline, after.discipline
            ));
        }
        if before.discipline != after.discipline {
            if !is_born && after.discipline.is_some() {
                return Err(format!("memory that was {:?} is {:?}", before.discipline, after.discipline));
            }
            if !is_born && !outside.frees(outside.memory.changes) {
                return Err(format!("memory ends that nobody has freed: {:?}", outside.memory));
            }
            let memory = &mut outside.memory;
            memory.changes += 1;
            (memory.discipline, memory.hollow, memory.dead_free) = (after.discipline, false, None);
            if is_born {
                memory.latest = 0;
            }
        }
        let may_write = match input.is_of_locks() {
            true => before.discipline == Some(Discipline::Locked),
            // A block's last contents may come home while it ends.
            false => before.discipline.is_none_or(|it| it == Discipline::Coherent),
        };
        if before.memory != after.memory && !may_write {
            let by = if input.is_of_locks() { "a lock" } else { "a block" };
            return Err(format!("{by} is written to memory that is {:?}", before.discipline));
        }
        Ok(())
    }

    /// What must hold in every state: a block's copies are the latest, one may be written only if it is the only one,
    /// and there is none if the home says that the memory is something else.
    pub(super) fn check(&self, world: &World) -> Result<(), String> {
        let (control, outside) = (self.control(world), self.outside(world));
        if control.up.contains(HOME) && self.facts(world, HOME.index()).has_lost && !control.has_lost_a_node()
        {
            return Err("the block is lost, and no node has died".into());
        }
        let copies = control.up.iter().filter(|node| self.knows_memory(world, *node));
        let copies = copies.filter_map(|node| Some((node, self.facts(world, node.index()).copy?)));
        let copies: Vec<_> = copies.collect();
        let memory = outside.memory;
        for (node, (access, write)) in &copies {
            if memory.discipline.is_some_and(|it| it != Discipline::Coherent) {
                return Err(format!(
                    "{node} has the block as {access:?}, which obeys {:?}",
                    memory.discipline
                ));
            }
            if *write != memory.latest {
                return Err(format!(
                    "{node} has write {write} of the block, and the last one is {}",
                    memory.latest
                ));
            }
            if *access == Access::Modified && copies.len() > 1 {
                return Err(format!("{node} may write the block, and others have it: {copies:?}"));
            }
        }
        Ok(())
    }

    /// The memory that this node knows is the one that is there, or was before its home died: whoever has not heard of
    /// that may have a copy of a block that is no more, and may not be rid of it before the thread that accesses it is
    /// done.
    pub(super) fn knows_memory(&self, world: &World, node: NodeId) -> bool {
        let control = self.control(world);
        let threads = self.scope.threads.iter().zip(&self.outside(world).threads);
        let mut its = threads.filter(|(plan, _)| u16::from(plan.node) == node.0);
        !control.has_lost(HOME)
            || control.view.lives[HOME.index()] == Some(control.lives[HOME.index()])
                && control.up.contains(HOME)
                && self.facts(world, node.index()).epoch == control.view.epoch
                && !its.any(|(_, thread)| matches!(thread.doing, Doing::Pinned { on_paper: true, .. }))
    }

    /// True if everything is over.
    pub(super) fn is_at_rest(&self, world: &World) -> bool {
        let control = self.control(world);
        world.packets.is_empty()
            && !control.changed
            && (0..self.scope.threads.len()).all(|thread| self.is_over(world, thread))
            && control.up.iter().all(|node| {
                let facts = self.facts(world, node.index());
                facts.is_quiet && facts.epoch == control.view.epoch
            })
    }

    /// What must hold then.
    pub(super) fn check_at_rest(&mut self, world: &World) -> Result<(), String> {
        let memory = self.outside(world).memory;
        if !self.checked_at_rest.insert((world.nodes, world.switch, world.control, memory)) {
            return Ok(());
        }
        let locals = self.nodes.iter().zip(world.nodes).map(|(place, local)| &**place.locals.get(local));
        let locals: Vec<&Local> = locals.collect();
        let control = Rc::clone(self.control(world));
        self.machines.check_at_rest(&locals, self.switches.get(world.switch), &control, &memory)
    }

    /// What cannot go on, for messages.
    pub(super) fn describe(&self, world: &World) -> String {
        let mut text = format!("{:?}\n{:?}\n", self.control(world), self.outside(world));
        for (node, (place, local)) in self.nodes.iter().zip(world.nodes).enumerate() {
            text += &format!("node {node}: {:?}\n", place.locals.get(local));
        }
        text + &format!("switch: {:?}\n", self.switches.get(world.switch))
    }
}
