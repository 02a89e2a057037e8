//! What must hold in every state, and what when everything is over; and all else that the engine is told.

use std::rc::Rc;

use node::Access;
use wire::{Copyset, Discipline, NodeId};

use super::machines::HOME;
use super::world::{Control, Doing};
use super::{Both, Call, Engine, Finds, Outside, Step};
use crate::explore::engine::{Input, Packets, Successors};
use crate::explore::world::{Item, World};

impl Engine {
    pub(super) fn control(&self, world: &World) -> &Rc<Control> {
        self.own.controls.get(self.outside(world).more.control)
    }

    pub(super) fn up(&self, world: &World) -> Copyset {
        self.control(world).up
    }

    /// The home's memory before and after a step: when it comes to life it is zeroed, it ends if
    /// somebody frees it, and only who owns it writes it.
    fn memory_changes(
        &self,
        (before, after): (u32, u32),
        of_locks: bool,
        zeroed: bool,
        outside: &mut Outside,
    ) -> Result<(), String> {
        let facts = |local: u32| self.facts_of(HOME.index(), local);
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
            if !is_born && !outside.frees(outside.more.memory.changes) {
                return Err(format!("memory ends that nobody has freed: {:?}", outside.more.memory));
            }
            let memory = &mut outside.more.memory;
            memory.changes += 1;
            (memory.discipline, memory.hollow, memory.dead_free) = (after.discipline, false, None);
            if is_born {
                memory.latest = 0;
            }
        }
        let may_write = match of_locks {
            true => before.discipline == Some(Discipline::Locked),
            // A block's last contents may come home while it ends.
            false => before.discipline.is_none_or(|it| it == Discipline::Coherent),
        };
        if before.memory != after.memory && !may_write {
            let by = if of_locks { "a lock" } else { "a block" };
            return Err(format!("{by} is written to memory that is {:?}", before.discipline));
        }
        Ok(())
    }

    /// The memory that this node knows is the one that is there, or was before its home died: whoever has not heard of
    /// that may have a copy of a block that is no more, and may not be rid of it before the thread that accesses it is
    /// done.
    pub(super) fn knows_memory(&self, world: &World, node: NodeId) -> bool {
        let control = self.control(world);
        let outside = self.outside(world);
        let threads = self.scope.threads.iter().zip(&outside.threads);
        let mut its = threads.filter(|(plan, _)| u16::from(plan.node) == node.0);
        !control.has_lost(HOME)
            || control.view.incarnations[HOME.index()] == Some(control.incarnations[HOME.index()])
                && control.up.contains(HOME)
                && self.facts(world, node.index()).epoch == control.view.epoch
                && !its.any(|(_, thread)| matches!(thread.doing, Doing::Pinned { on_paper: true, .. }))
    }
}

impl Successors<Both> for Engine {
    fn first(&self, world: &World) -> Option<usize> {
        let items = world.packets.as_slice();
        items.iter().position(|item| self.is_quick(*item) && self.may_arrive(world, *item))
    }

    fn may_arrive(&self, world: &World, item: Item) -> bool {
        let to = self.packets.to(item).filter(|_| self.scope.copies > 1);
        to.is_none_or(|node| self.packets.packet(item).epoch() <= self.facts(world, node.index()).epoch)
    }

    fn thread(&mut self, world: &World, thread: usize, found: &mut Finds<Both>) {
        self.go_on(world, thread, found);
    }

    fn others(&mut self, world: &World, found: &mut Finds<Both>) {
        self.news(world, found);
        if self.is_calm(world) {
            self.time_outs(world, found);
        }
        self.stops(world, found);
    }

    fn take(&mut self, next: &mut World, call: &Call<Both>, step: &Step<Both>) -> Result<(), String> {
        let before = self.outside(next);
        let mut outside = before;
        if call.node == HOME.index() {
            let of_locks = match call.input {
                Input::Packet(item) => self.packets.packet(*item).is_lock(),
                Input::Own(own) => own.is_of_locks(),
            };
            self.memory_changes((call.before, step.local), of_locks, step.told.zeroed, &mut outside)?;
        }
        if let (Some(started), Some((thread, _))) = (step.told.started, call.thread) {
            self.started(&mut outside, thread, started)?;
        }
        if let (true, Some((thread, _))) = (step.told.walked_in, call.thread) {
            self.entered(next, &mut outside, thread)?;
        }
        if self.scope.copies > 1 {
            self.find_copies(&mut outside, call.node, step.local)?;
        }
        for told in &step.told.told {
            self.told(next, &mut outside, call.node, *told)?;
        }
        if outside != before {
            next.outside = self.intern_outside(outside);
        }
        Ok(())
    }

    /// Not if nobody will take it whatever happens.
    fn counts(&self, world: &World, item: Item) -> bool {
        let packet = self.packets.packet(item);
        let epoch = match self.packets.to(item) {
            None => *self.switch_facts(world),
            Some(node) if !self.up(world).contains(node) => return false,
            Some(node) => self.facts(world, node.index()).epoch,
        };
        packet.epoch() >= epoch || !self.own.fences_epochs(packet.is_lock())
    }

    /// What must hold in every state: a block's copies are the latest, one may be written only if it is the only one,
    /// and there is none if the home says that the memory is something else.
    fn check(&self, world: &World) -> Result<(), String> {
        let (control, outside) = (self.control(world), self.outside(world));
        if control.up.contains(HOME) && self.facts(world, HOME.index()).has_lost && !control.has_lost_a_node()
        {
            return Err("the block is lost, and no node has died".into());
        }
        let copies = control.up.iter().filter(|node| self.knows_memory(world, *node));
        let copies = copies.filter_map(|node| Some((node, self.facts(world, node.index()).copy?)));
        let copies: Vec<_> = copies.collect();
        let memory = outside.more.memory;
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
        self.check_copied(world, &outside)
    }

    fn is_over(&self, world: &World) -> bool {
        let control = self.control(world);
        !control.changed
            && (0..self.threads()).all(|thread| self.ends(world, thread))
            && control.up.iter().all(|node| {
                let facts = self.facts(world, node.index());
                facts.is_quiet && facts.epoch == control.view.epoch
            })
    }

    fn check_at_rest(&mut self, world: &World) -> Result<(), String> {
        let (locals, control) = (self.locals(world), Rc::clone(self.control(world)));
        let outside = self.outside(world);
        let (memory, copied) = (outside.more.memory, Rc::clone(self.copied(&outside)));
        let switch = self.switch.locals.get(world.switch);
        self.machines.check_at_rest(&locals, switch, &control, &memory, &copied)
    }
}
