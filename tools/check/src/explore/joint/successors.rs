//! What can happen next in a state of the rack, beside packets and threads: time-outs come, places die.

use std::rc::Rc;

use wire::{Copyset, Incarnation, NodeId, SwitchEpoch};

use super::machines::{HOME, Own};
use super::scope::{JointStep, Quick};
use super::world::{Control, DEATH, Doing, RESTART, RETURN};
use super::{Action, Both, Engine, Finds, Outside};
use crate::explore::engine::{Input, Packets};
use crate::explore::world::{Item, World};

impl Engine {
    /// It arrives before anything else does.
    pub(super) fn is_quick(&self, item: Item) -> bool {
        let packet = self.packets.packet(item);
        packet.is_report()
            && match self.scope.quick {
                Quick::Nothing => false,
                Quick::Blocks => !packet.is_lock(),
                Quick::Locks => packet.is_lock(),
                Quick::ButLast => {
                    packet.ends_reports_to().is_none_or(|home| home.0 < self.scope.nodes.into())
                }
            }
    }

    /// Nodes that have not heard of an epoch do.
    pub(super) fn news(&mut self, world: &World, found: &mut Finds<Both>) {
        let control = Rc::clone(self.control(world));
        // Who has come back hears of an epoch that it lives in.
        let incarnations = |node: &NodeId| {
            control.view.incarnations[node.index()] == Some(control.incarnations[node.index()])
        };
        for node in control.up.iter().filter(incarnations) {
            if self.facts(world, node.index()).epoch < control.view.epoch {
                let mut outside = self.outside(world);
                for (plan, thread) in self.scope.threads.iter().zip(&mut outside.threads) {
                    let turn = plan.does.get(usize::from(thread.turn)).copied();
                    if let Doing::Pinned { on_paper, .. } = &mut thread.doing
                        && u16::from(plan.node) == node.0
                    {
                        *on_paper |= match turn.and_then(JointStep::copied) {
                            Some(_) => self.is_anew_for(world, node.index(), turn),
                            None => control.has_lost(HOME),
                        };
                    }
                }
                let next = World { outside: self.intern_outside(outside), ..*world };
                let input = Input::Own(Own::Hear(Rc::clone(&control)));
                let action = Action::Node(node.0 as u8, "hears of the epoch");
                self.node_step(&next, node.index(), input, action, found);
            }
        }
    }

    /// Nothing is in flight, and no thread in the midst of something.
    pub(super) fn is_calm(&self, world: &World) -> bool {
        let control = self.control(world);
        let untold = |node: NodeId| self.facts(world, node.index()).epoch < control.view.epoch;
        let busy = |doing: Doing| {
            matches!(
                doing,
                Doing::Pinned { .. }
                    | Doing::Holding(_)
                    | Doing::Inside { .. }
                    | Doing::Returned(_)
                    | Doing::ToldOfLoss
            )
        };
        world.packets.is_empty()
            && world.again.is_empty()
            && !control.changed
            && !control.up.iter().any(untold)
            && !self.outside(world).threads.iter().any(|thread| busy(thread.doing))
    }

    pub(super) fn time_outs(&mut self, world: &World, found: &mut Finds<Both>) {
        let armed = self.up(world).iter().filter(|node| self.facts(world, node.index()).is_armed);
        let armed: Copyset = armed.collect();
        let before = self.outside(world).more.timed_out;
        // A new round, if all have had theirs: a node that is asked in vain must not be all that happens.
        let before = if armed.without_all(before).is_empty() { Copyset::EMPTY } else { before };
        for node in armed.without_all(before).iter() {
            let mut outside = self.outside(world);
            outside.more.timed_out = before.with(node);
            let next = World { outside: self.intern_outside(outside), ..*world };
            let action = Action::Node(node.0 as u8, "has waited: all that it waits for is overdue");
            self.node_step(&next, node.index(), Input::Own(Own::Fire), action, found);
        }
    }

    /// Places stop and start again, and the control plane does something about it.
    pub(super) fn stops(&mut self, world: &World, found: &mut Finds<Both>) {
        let control = Rc::clone(self.control(world));
        if let Some(next) = self.spend(world, RESTART) {
            let next = self.announce(&next, Control::clone(&control));
            found.push((Action::Other("the switch restarts"), Ok(next)));
        }
        if control.changed {
            let mut after = Control::clone(&control);
            let before = Rc::clone(self.switch.locals.get(world.switch));
            after.dumps.push(self.machines.dump(&before));
            self.hear_of_copies(world, &mut after);
            found.push((Action::Other("a new epoch begins"), Ok(self.announce(world, after))));
        }
        for node in self.scope.dies.iter().copied() {
            let id = NodeId(node.into());
            if let Some(next) = self.spend(world, DEATH)
                && control.up.contains(id)
                && control.up.len() > 1
            {
                found.push((Action::Node(node, "dies"), Ok(self.dies(next, id))));
            }
            if !control.up.contains(id)
                && let Some(next) = self.spend(world, RETURN)
            {
                found.push((Action::Node(node, "comes back"), Ok(self.returns(next, id))));
            }
        }
    }

    /// A new epoch begins for the switch, which knows nothing in it.
    fn announce(&mut self, world: &World, mut control: Control) -> World {
        let mut outside = self.outside(world);
        let anew = control.place_memories(&self.scope);
        let view = &mut control.view;
        view.epoch = SwitchEpoch(view.epoch.0 + 1);
        for (node, incarnation) in view.incarnations.iter_mut().enumerate() {
            *incarnation = control.up.contains(NodeId(node as u16)).then_some(control.incarnations[node]);
        }
        if !control.up.contains(view.shadow) {
            view.shadow = control.up.iter().next().expect("one node is always up");
        }
        self.begin_anew(&mut outside, &anew, view.epoch);
        let empty = self.machines.empty_switch(view);
        let mut next = World { switch: self.intern_switch(empty), ..*world };
        control.changed = false;
        // What was between two passes was inside the switch.
        next.again.clear();
        self.forget_dumps(world, &mut control);
        self.with_control(next, control, outside)
    }

    /// Of epochs in which nobody is any more.
    fn forget_dumps(&self, world: &World, control: &mut Control) {
        let oldest = control.up.iter().map(|node| self.facts(world, node.index()).epoch).min();
        control.dumps.retain(|dump| Some(dump.epoch) >= oldest);
    }

    fn dies(&mut self, mut next: World, node: NodeId) -> World {
        let (mut control, mut outside) = (Control::clone(self.control(&next)), self.outside(&next));
        self.hear_of_copies(&next, &mut control);
        self.lose(&mut outside, &mut control, node);
        control.up = control.up.without(node);
        control.changed = true;
        for (plan, thread) in self.scope.threads.iter().zip(&mut outside.threads) {
            if u16::from(plan.node) == node.0 {
                if let Doing::Freeing { of, .. } | Doing::Returning { of, .. } = thread.doing {
                    outside.more.memory.dead_free = Some(of);
                }
                (thread.doing, thread.turn) = (Doing::Idle, plan.does.len() as u8);
            }
        }
        if node == HOME && outside.more.memory.discipline.take().is_some() {
            outside.more.memory.changes += 1;
        }
        // Whatever it was, it is nothing now.
        next.nodes[node.index()] = 0;
        self.with_control(next, control, outside)
    }

    /// It comes back, with empty memory.
    fn returns(&mut self, mut next: World, node: NodeId) -> World {
        let (mut control, outside) = (Control::clone(self.control(&next)), self.outside(&next));
        let incarnation = &mut control.incarnations[node.index()];
        *incarnation = Incarnation(incarnation.0 + 1);
        let incarnation = *incarnation;
        control.up = control.up.with(node);
        control.changed = true;
        let blank = self.machines.blank(node.index(), incarnation);
        next.nodes[node.index()] = self.intern_local(node.index(), blank);
        self.with_control(next, control, outside)
    }

    fn with_control(&mut self, next: World, control: Control, mut outside: Outside) -> World {
        outside.more.control = self.own.controls.intern(control).0;
        World { outside: self.intern_outside(outside), ..next }
    }
}
