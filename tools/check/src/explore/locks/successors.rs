//! What can happen next in a state of the rack: what threads do, time-outs, and what happens from outside.

use std::rc::Rc;

use node::{LockEffect, Ticket};
use wire::{Mode, Refusal};

use super::machines::{Own, with_allocation, with_contents};
use super::scope::LocksStep;
use super::shape::{LATEST, STALE};
use super::world::{CANCEL, Doing, LEAVE, PREMATURE, RESTART, VACANCY};
use super::{Action, Engine, Finds, Outside, Regions};
use crate::explore::engine::Input;
use crate::explore::world::World;

impl Engine {
    /// A node tells one of its threads something.
    pub(super) fn tell_thread(&self, next: &mut Outside, told: LockEffect) -> Result<(), String> {
        let at = crate::locks::who_is_told(told);
        let doing = next.threads[at].doing;
        let turn_of = |turn: u8| self.scope.threads[at].may[usize::from(turn)];
        let is_over = match (doing, told) {
            (Doing::Waiting(turn), LockEffect::Entered(_)) => {
                next.threads[at].doing = Doing::Inside(turn);
                return Ok(());
            }
            (Doing::Waiting(turn), LockEffect::Busy(_)) => turn_of(turn).wants().2,
            (Doing::Ending, LockEffect::Freed(_)) => true,
            (Doing::Waiting(turn), LockEffect::Failed(_, Refusal::Unallocated)) => {
                self.is_given_back(next) && !matches!(turn_of(turn), LocksStep::Anew(_))
            }
            _ => false,
        };
        if !is_over {
            return Err(format!("thread {at} is {doing:?}, and is told {told:?}"));
        }
        let thread = &mut next.threads[at];
        (thread.doing, thread.turn) = (Doing::Idle, thread.turn + 1);
        Ok(())
    }

    fn frees(&self, thread: usize) -> bool {
        self.scope.threads[thread].may.iter().any(|it| it.ends())
    }

    /// The region is no allocation's any more, or was not.
    fn is_given_back(&self, outside: &Outside) -> bool {
        (0..self.threads()).any(|thread| {
            let ends = outside.threads[thread].doing == Doing::Ending;
            ends || self.frees(thread) && self.is_done(outside, thread)
        })
    }

    pub(super) fn go_on(&mut self, world: &World, at: usize, found: &mut Finds<Regions>) {
        let (mut outside, plan) = (self.outside(world), self.scope.threads[at]);
        let node = usize::from(plan.node);
        let (who, ticket) = (at as u8, Ticket(at as u32));
        match outside.threads[at].doing {
            Doing::Idle if outside.threads[at].turn < plan.turns => {
                for (turn, what) in (0..).zip(plan.may) {
                    let (lock, mode, once) = what.wants();
                    outside.threads[at].doing = Doing::Idle;
                    let too_early = match what {
                        LocksStep::Free(_) => !self.others_are_done(&outside, at),
                        LocksStep::Anew(_) => !self.is_given_back(&outside),
                        _ => false,
                    };
                    if too_early {
                        continue;
                    }
                    outside.threads[at].doing = Doing::Waiting(turn);
                    let mut next = World { outside: self.intern_outside(outside), ..*world };
                    if matches!(what, LocksStep::Anew(_)) {
                        self.set_allocation(&mut next, lock, true);
                    }
                    let input = Input::Own(Own::Want(ticket, lock, mode, once));
                    self.node_step(&next, node, input, Action::Thread(who, turn, "begins"), found);
                }
            }
            Doing::Inside(turn) => {
                let what = plan.may[usize::from(turn)];
                let (lock, mode, _) = what.wants();
                let mut next = *world;
                let thread = &mut outside.threads[at];
                let input = if what.ends() {
                    thread.doing = Doing::Ending;
                    // The allocation is given back first. Nobody needs what was there any more; whoever has the region next
                    // begins with a write.
                    self.set_allocation(&mut next, lock, false);
                    self.set_contents(&mut next, lock, LATEST);
                    Own::End(ticket, lock)
                } else {
                    (thread.doing, thread.turn) = (Doing::Idle, thread.turn + 1);
                    if mode == Mode::Write {
                        self.set_contents(&mut next, lock, STALE);
                    }
                    Own::Leave(lock, mode)
                };
                next.outside = self.intern_outside(outside);
                self.node_step(&next, node, Input::Own(input), Action::Thread(who, turn, "leaves"), found);
            }
            Doing::Idle | Doing::Waiting(_) | Doing::Ending => {}
        }
    }

    fn others_are_done(&self, outside: &Outside, at: usize) -> bool {
        let comes_later =
            |other: usize| self.scope.threads[other].may.iter().any(|it| matches!(it, LocksStep::Anew(_)));
        let mut others = (0..self.threads()).filter(|other| *other != at && !comes_later(*other));
        others.all(|other| self.is_done(outside, other))
    }

    /// At the locks' home, the region belongs to an allocation, or to none.
    fn set_allocation(&mut self, next: &mut World, lock: u8, allocated: bool) {
        let it = with_allocation(self.nodes[0].locals.get(next.nodes[0]), lock, allocated);
        next.nodes[0] = self.intern_local(0, it);
    }

    /// All contents of the region become these.
    fn set_contents(&mut self, next: &mut World, lock: u8, contents: u64) {
        for (at, local) in next.nodes.iter_mut().enumerate().take(self.nodes.len()) {
            let key = (at, *local, lock, contents);
            *local = if let Some(number) = self.own.changed.get(&key) {
                *number
            } else {
                let it = with_contents(self.nodes[at].locals.get(*local), lock, contents);
                let number = self.intern_local(at, it);
                self.own.changed.insert(key, number);
                number
            };
        }
        let packets = next.packets.as_mut_slice().iter_mut().chain(next.again.as_mut_slice());
        packets.for_each(|item| *item = self.packets.with_contents(*item, lock, contents));
    }

    /// Nodes that have not heard of the switch's new incarnation do.
    pub(super) fn news(&mut self, world: &World, found: &mut Finds<Regions>) {
        let epoch = self.switch_facts(world).epoch;
        for node in 0..self.nodes.len() {
            if self.facts(world, node).epoch < epoch {
                let action = Action::Node(node as u8, "hears of the epoch");
                self.node_step(world, node, Input::Own(Own::Hear(epoch)), action, found);
            }
        }
    }

    pub(super) fn timers(&mut self, world: &World, nothing_else: bool, found: &mut Finds<Regions>) {
        let next = if nothing_else { Some(*world) } else { self.spend(world, PREMATURE) };
        let Some(next) = next else { return };
        for node in 0..self.nodes.len() {
            for timer in self.facts(world, node).timers.clone() {
                let action = Action::Fire(node as u8, timer);
                self.node_step(&next, node, Input::Own(Own::Fire(timer)), action, found);
            }
        }
    }

    /// What happens to threads, nodes and the switch from outside.
    pub(super) fn control(&mut self, world: &World, found: &mut Finds<Regions>) {
        if let Some(next) = self.spend(world, CANCEL) {
            for at in 0..self.threads() {
                let mut outside = self.outside(&next);
                let thread = &mut outside.threads[at];
                let Doing::Waiting(turn) = thread.doing else { continue };
                (thread.doing, thread.turn) = (Doing::Idle, thread.turn + 1);
                let (lock, ..) = self.scope.threads[at].may[usize::from(turn)].wants();
                let next = World { outside: self.intern_outside(outside), ..next };
                let input = Input::Own(Own::Cancel(Ticket(at as u32), lock));
                let action = Action::Thread(at as u8, turn, "gives up");
                self.node_step(&next, self.node_of(at), input, action, found);
            }
        }
        if let Some(next) = self.spend(world, LEAVE) {
            for node in 0..self.nodes.len() {
                let action = Action::Node(node as u8, "sends home what it has");
                self.node_step_if_it_changes(&next, node, Own::Leaving, action, found);
            }
        }
        let before = Rc::clone(self.switch.locals.get(world.switch));
        if let Some(mut next) = self.spend(world, RESTART) {
            next.again.clear();
            let after = self.machines.restart(&before);
            next.switch = self.intern_switch(after);
            found.push((Action::Other("the switch restarts"), Ok(next)));
        }
        if let Some(mut next) = self.spend(world, VACANCY) {
            let after = self.machines.vacate(&before);
            next.switch = self.intern_switch(after);
            found.push((Action::Other("the switch gets room for an entry"), Ok(next)));
        }
    }
}
