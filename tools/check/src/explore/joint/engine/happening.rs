//! What can happen next in a state of the rack: packets arrive, time-outs come, places die.

use std::rc::Rc;

use wire::{Copyset, Incarnation, NodeId, SwitchEpoch};

use super::{Engine, Next};
use crate::explore::joint::action::Action;
use crate::explore::joint::machines::{HOME, Input};
use crate::explore::joint::scope::Quick;
use crate::explore::joint::world::{Control, Doing, Outside, World};
use crate::explore::world::Item;

impl Engine {
    /// All that can happen next.
    pub(super) fn expand(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        found.clear();
        if let Some(at) = world.packets.iter().position(|item| self.is_quick(*item)) {
            let (item, mut without) = (world.packets[at], world.clone());
            without.packets.remove(at);
            let next = self.deliver(&without, item, Outside::clone(self.outside(world)));
            return found.push((Action::Deliver(item), next));
        }
        self.deliveries(world, found);
        for thread in 0..self.scope.threads.len() {
            self.thread(world, thread, found);
        }
        self.news(world, found);
        if self.is_calm(world) {
            self.time_outs(world, found);
        }
        self.stops(world, found);
    }

    fn is_quick(&self, item: Item) -> bool {
        let packet = self.packets.of(item);
        packet.is_report()
            && match self.scope.quick {
                Quick::Nothing => false,
                Quick::Blocks => !packet.is_lock(),
                Quick::Locks => packet.is_lock(),
            }
    }

    fn deliveries(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        for (at, item) in world.packets.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| world.packets[before]);
            let waits = match before {
                Some(before) if self.scope.reorder => before == *item,
                Some(before) => self.packets.way(before) == self.packets.way(*item),
                None => false,
            };
            if waits {
                continue;
            }
            let mut without = world.clone();
            without.packets.remove(at);
            let next = self.deliver(&without, *item, Outside::clone(self.outside(world)));
            found.push((Action::Deliver(*item), next));
            if self.packets.of(*item).is_again() {
                continue;
            }
            let left = self.outside(world).left;
            if left.duplicates > 0 {
                let mut outside = Outside::clone(self.outside(world));
                outside.left.duplicates -= 1;
                found.push((Action::Duplicate(*item), self.deliver(world, *item, outside)));
            }
            if left.losses > 0 {
                let mut outside = Outside::clone(self.outside(world));
                outside.left.losses -= 1;
                without.outside = self.outsides.intern(outside).0;
                found.push((Action::Lose(*item), Ok(without)));
            }
        }
    }

    fn deliver(&mut self, world: &World, item: Item, outside: Outside) -> Next {
        let packet = *self.packets.of(item);
        if let Some(node) = packet.to() {
            return self.node_step(world, node.index(), Input::Packet(packet), outside, None);
        }
        let step = self.at_switch(world.switch, item)?;
        let mut next = world.clone();
        next.switch = step.local;
        next.packets.extend_from_slice(&step.sends);
        next.outside = self.outsides.intern(outside).0;
        Ok(next)
    }

    /// A node's machines are called, for this thread if there is one, and their effects taken.
    pub(super) fn node_step(
        &mut self,
        world: &World,
        node: usize,
        input: Input,
        mut outside: Outside,
        thread: Option<usize>,
    ) -> Next {
        let step = self.at_node(world, node, input)?;
        let before = world.nodes[node];
        let mut next = world.clone();
        next.nodes[node] = step.local;
        if node == HOME.index() {
            self.memory_changes((before, step.local), input, step.zeroed, &mut outside)?;
        }
        if let (Some(started), Some(thread)) = (step.started, thread) {
            self.started(&mut outside, thread, started)?;
        }
        if let (true, Some(thread)) = (step.walked_in, thread) {
            self.entered(&next, &mut outside, thread)?;
        }
        for told in &step.told {
            self.told(&next, &mut outside, node, *told)?;
        }
        next.packets.extend_from_slice(&step.sends);
        next.outside = self.outsides.intern(outside).0;
        Ok(next)
    }

    /// Nodes that have not heard of an epoch do.
    fn news(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        let control = Rc::clone(self.control(world));
        // Who has come back hears of an epoch that it lives in.
        let lives = |node: &NodeId| control.view.lives[node.index()] == Some(control.lives[node.index()]);
        for node in control.up.iter().filter(lives) {
            if self.facts(world, node.index()).epoch < control.view.epoch {
                let mut outside = Outside::clone(self.outside(world));
                for (plan, thread) in self.scope.threads.iter().zip(&mut outside.threads) {
                    if let Doing::Pinned { on_paper, .. } = &mut thread.doing
                        && u16::from(plan.node) == node.0
                    {
                        *on_paper |= control.has_lost(HOME);
                    }
                }
                let next = self.node_step(world, node.index(), Input::Hear(world.control), outside, None);
                found.push((Action::Hear(node.0 as u8), next));
            }
        }
    }

    /// Nothing is under way, and no thread in the midst of something.
    fn is_calm(&self, world: &World) -> bool {
        let control = self.control(world);
        let untold = |node: NodeId| self.facts(world, node.index()).epoch < control.view.epoch;
        let busy = |doing: Doing| {
            matches!(
                doing,
                Doing::Pinned { .. } | Doing::Inside { .. } | Doing::Returned(_) | Doing::ToldOfLoss
            )
        };
        world.packets.is_empty()
            && !control.changed
            && !control.up.iter().any(untold)
            && !self.outside(world).threads.iter().any(|thread| busy(thread.doing))
    }

    fn time_outs(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        let armed = self.up(world).iter().filter(|node| self.facts(world, node.index()).is_armed);
        let armed: Copyset = armed.collect();
        let before = self.outside(world).timed_out;
        // A new round, if all have had theirs: a node that is asked in vain must not be all that happens.
        let before = if armed.without_all(before).is_empty() { Copyset::EMPTY } else { before };
        for node in armed.without_all(before).iter() {
            let mut outside = Outside::clone(self.outside(world));
            outside.timed_out = before.with(node);
            let next = self.node_step(world, node.index(), Input::Fire, outside, None);
            found.push((Action::Fire(node.0 as u8), next));
        }
    }

    /// Places stop and start again, and the control plane does something about it.
    fn stops(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        let (control, outside) = (Rc::clone(self.control(world)), Rc::clone(self.outside(world)));
        if outside.left.restarts > 0 {
            let mut outside = Outside::clone(&outside);
            outside.left.restarts -= 1;
            found.push((Action::Restart, Ok(self.announce(world, Control::clone(&control), outside))));
        }
        if control.changed {
            let mut after = Control::clone(&control);
            let before = Rc::clone(self.switches.get(world.switch));
            after.dumps.push(self.machines.dump(&before));
            found.push((Action::Announce, Ok(self.announce(world, after, Outside::clone(&outside)))));
        }
        let Some(node) = self.scope.dies else { return };
        let id = NodeId(node.into());
        if outside.left.deaths > 0 {
            found.push((Action::Die(node), Ok(self.dies(world, id))));
        }
        if outside.left.returns > 0 && !control.up.contains(id) {
            found.push((Action::Return(node), Ok(self.returns(world, id))));
        }
    }

    /// A new epoch begins for the switch, which knows nothing in it.
    fn announce(&mut self, world: &World, mut control: Control, outside: Outside) -> World {
        let view = &mut control.view;
        view.epoch = SwitchEpoch(view.epoch.0 + 1);
        for (node, life) in view.lives.iter_mut().enumerate() {
            *life = control.up.contains(NodeId(node as u16)).then_some(control.lives[node]);
        }
        if !control.up.contains(view.shadow) {
            view.shadow = control.up.iter().next().expect("one node is always up");
        }
        control.changed = false;
        let (epoch, shadow) = (view.epoch, view.shadow);
        let mut next = world.clone();
        next.switch = self.switches.intern(self.machines.empty_switch(epoch, shadow)).0;
        // What was between two passes was inside the switch.
        next.packets.retain(|item| !self.packets.of(*item).is_again());
        self.forget_dumps(world, &mut control);
        next.control = self.controls.intern(control).0;
        next.outside = self.outsides.intern(outside).0;
        next
    }

    /// Of epochs in which nobody is any more.
    fn forget_dumps(&self, world: &World, control: &mut Control) {
        let oldest = control.up.iter().map(|node| self.facts(world, node.index()).epoch).min();
        control.dumps.retain(|dump| Some(dump.epoch) >= oldest);
    }

    fn dies(&mut self, world: &World, node: NodeId) -> World {
        let (mut control, mut outside) =
            (Control::clone(self.control(world)), Outside::clone(self.outside(world)));
        control.up = control.up.without(node);
        control.changed = true;
        outside.left.deaths -= 1;
        for (plan, thread) in self.scope.threads.iter().zip(&mut outside.threads) {
            if u16::from(plan.node) == node.0 {
                if let Doing::Freeing { of, .. } | Doing::Returning { of, .. } = thread.doing {
                    outside.memory.dead_free = Some(of);
                }
                (thread.doing, thread.turn) = (Doing::Idle, plan.does.len() as u8);
            }
        }
        if node == HOME && outside.memory.discipline.take().is_some() {
            outside.memory.changes += 1;
        }
        let mut next = world.clone();
        // Whatever it was, it is nothing now.
        next.nodes[node.index()] = 0;
        next.control = self.controls.intern(control).0;
        next.outside = self.outsides.intern(outside).0;
        next
    }

    /// It comes back, with empty memory.
    fn returns(&mut self, world: &World, node: NodeId) -> World {
        let (mut control, mut outside) =
            (Control::clone(self.control(world)), Outside::clone(self.outside(world)));
        let life = &mut control.lives[node.index()];
        *life = Incarnation(life.0 + 1);
        let life = *life;
        control.up = control.up.with(node);
        control.changed = true;
        outside.left.returns -= 1;
        let blank = self.machines.blank(node.index(), life);
        let mut next = world.clone();
        next.nodes[node.index()] = self.intern_local(node.index(), blank);
        next.control = self.controls.intern(control).0;
        next.outside = self.outsides.intern(outside).0;
        next
    }
}
