//! What can happen next in a state of the rack.

use std::rc::Rc;

use node::locks::canonical::Timer;
use node::{LockEffect, Ticket};
use wire::{Mode, Refusal};

use super::{Engine, Next, Step};
use crate::explore::locks::action::Action;
use crate::explore::locks::machines::Input;
use crate::explore::locks::scope::Turn;
use crate::explore::locks::shape::{LATEST, STALE, lock_number};
use crate::explore::locks::world::{Doing, World};
use crate::explore::world::Item;

impl Engine {
    /// All that can happen next.
    pub(super) fn expand(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        found.clear();
        self.deliveries(world, found);
        self.second_passes(world, found);
        for thread in 0..self.size.threads {
            self.thread(world, thread, found);
        }
        self.news(world, found);
        // Where nothing is lost, nobody may depend on a time-out: live racks have none.
        let nothing_else = found.is_empty() && self.scope.repeats();
        self.timers(world, nothing_else, found);
        self.control(world, found);
    }

    fn deliveries(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        let packets = world.packets.as_slice();
        for (at, item) in packets.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| packets[before]);
            let waits = match before {
                Some(before) if self.scope.reorder => before == *item,
                Some(before) => self.shapes.way(before) == self.shapes.way(*item),
                None => false,
            };
            if waits {
                continue;
            }
            let mut without = *world;
            without.packets.remove(at);
            self.deliver(without, *item, Action::Deliver(*item), found);
            let kind = self.shapes.of(*item).packet.kind;
            if world.left.duplicates > 0 && self.scope.twice.is_none_or(|only| only == kind) {
                let mut with = *world;
                with.left.duplicates -= 1;
                self.deliver(with, *item, Action::Duplicate(*item), found);
            }
            if world.left.losses > 0 {
                let mut next = without;
                next.left.losses -= 1;
                found.push((Action::Lose(*item), Ok(next)));
            }
        }
    }

    fn second_passes(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        for (at, item) in world.again.as_slice().iter().enumerate() {
            let mut next = *world;
            next.again.remove(at);
            let key = kind::AGAIN << 32 | u64::from(*item);
            self.switch_step(next, key, *item, Action::Resubmit(*item), found);
        }
    }

    fn deliver(&mut self, next: World, item: Item, action: Action, found: &mut Vec<(Action, Next)>) {
        let key = kind::PACKET << 32 | u64::from(item);
        match self.shapes.of(item).packet.to.node() {
            None => self.switch_step(next, key, item, action, found),
            Some(node) => {
                let input = Input::Packet(self.shapes.packet(item));
                self.node_step(next, node.index(), key, input, action, found);
            }
        }
    }

    fn switch_step(
        &mut self,
        before: World,
        key: u64,
        item: Item,
        action: Action,
        found: &mut Vec<(Action, Next)>,
    ) {
        let next = self.at_switch(before.switch, key, item).and_then(|step| {
            let mut next = before;
            next.switch = step.local;
            step.sends.iter().try_for_each(|item| next.packets.push(*item))?;
            step.again.iter().try_for_each(|item| next.again.push(*item))?;
            Ok(next)
        });
        found.push((action, next));
    }

    fn node_step(
        &mut self,
        before: World,
        node: usize,
        key: u64,
        input: Input,
        action: Action,
        found: &mut Vec<(Action, Next)>,
    ) {
        let step = self.at_node(node, before.nodes[node], key, input);
        let next = step.and_then(|step| self.after(before, node, &step));
        found.push((action, next));
    }

    fn after(&mut self, before: World, node: usize, step: &Step) -> Next {
        let mut next = before;
        next.nodes[node] = step.local;
        step.sends.iter().try_for_each(|item| next.packets.push(*item))?;
        for told in &step.told {
            self.tell_thread(&mut next, *told)?;
        }
        Ok(next)
    }

    /// A node tells one of its threads something.
    fn tell_thread(&mut self, next: &mut World, told: LockEffect) -> Result<(), String> {
        let (LockEffect::Entered(ticket)
        | LockEffect::Busy(ticket)
        | LockEffect::Failed(ticket, _)
        | LockEffect::Freed(ticket)) = told
        else {
            unreachable!("packets are sent")
        };
        let at = ticket.0 as usize;
        let doing = next.threads[at].doing;
        let done = |next: &mut World| {
            next.threads[at].doing = Doing::Idle;
            next.threads[at].turns -= 1;
        };
        let turn_of = |turn: u8| self.scope.threads[at].may[usize::from(turn)];
        match (doing, told) {
            (Doing::Waiting { turn }, LockEffect::Entered(_)) => {
                next.threads[at].doing = Doing::Inside { turn };
                Ok(())
            }
            (Doing::Waiting { turn }, LockEffect::Busy(_)) if turn_of(turn).wants().2 => {
                done(next);
                Ok(())
            }
            (Doing::Ending { .. }, LockEffect::Freed(_)) => {
                done(next);
                Ok(())
            }
            (Doing::Waiting { turn }, LockEffect::Failed(_, Refusal::Unallocated))
                if self.is_given_back(next) && !matches!(turn_of(turn), Turn::Anew(_)) =>
            {
                done(next);
                Ok(())
            }
            (doing, told) => Err(format!("thread {at} is {doing:?}, and is told {told:?}")),
        }
    }

    fn frees(&self, thread: usize) -> bool {
        self.scope.threads[thread].may.iter().any(|it| it.ends())
    }

    /// The region is no allocation's any more, or was not.
    fn is_given_back(&self, world: &World) -> bool {
        (0..self.size.threads).any(|thread| {
            let ends = matches!(world.threads[thread].doing, Doing::Ending { .. });
            ends || self.frees(thread) && world.threads[thread].is_done()
        })
    }

    fn thread(&mut self, world: &World, at: usize, found: &mut Vec<(Action, Next)>) {
        let (thread, plan) = (world.threads[at], self.scope.threads[at]);
        let node = usize::from(plan.node);
        let ticket = Ticket(at as u32);
        match thread.doing {
            Doing::Idle if thread.turns > 0 => {
                for (turn, what) in (0..).zip(plan.may) {
                    let (lock, mode, once) = what.wants();
                    let too_early = match what {
                        Turn::Free(_) => !self.others_are_done(world, at),
                        Turn::Anew(_) => !self.is_given_back(world),
                        _ => false,
                    };
                    if too_early {
                        continue;
                    }
                    let mut next = *world;
                    next.threads[at].doing = Doing::Waiting { turn };
                    if matches!(what, Turn::Anew(_)) {
                        next.nodes[0] = self.with_allocation(next.nodes[0], lock, true);
                    }
                    let key = kind::WANT << 32 | thread_key(at, lock, mode) | u64::from(once) << 24;
                    let input = Input::Want(ticket, lock, mode, once);
                    self.node_step(next, node, key, input, Action::Begin(at as u8, turn), found);
                }
            }
            Doing::Inside { turn } => {
                let what = plan.may[usize::from(turn)];
                let (lock, mode, _) = what.wants();
                let mut next = *world;
                let action = Action::Leave(at as u8, turn);
                if what.ends() {
                    next.threads[at].doing = Doing::Ending { turn };
                    // The allocation is given back first. Nobody needs what was there any more; whoever has the region next
                    // begins with a write.
                    next.nodes[0] = self.with_allocation(next.nodes[0], lock, false);
                    self.set_contents(&mut next, lock, LATEST);
                    let key = kind::END << 32 | thread_key(at, lock, mode);
                    self.node_step(next, node, key, Input::End(ticket, lock), action, found);
                    return;
                }
                next.threads[at].doing = Doing::Idle;
                next.threads[at].turns -= 1;
                if mode == Mode::Write {
                    self.set_contents(&mut next, lock, STALE);
                }
                let key = kind::LEAVE << 32 | thread_key(0, lock, mode);
                self.node_step(next, node, key, Input::Leave(lock, mode), action, found);
            }
            Doing::Idle | Doing::Waiting { .. } | Doing::Ending { .. } => {}
        }
    }

    fn others_are_done(&self, world: &World, at: usize) -> bool {
        let comes_later =
            |other: usize| self.scope.threads[other].may.iter().any(|it| matches!(it, Turn::Anew(_)));
        let mut others = (0..self.size.threads).filter(|other| *other != at && !comes_later(*other));
        others.all(|other| world.threads[other].is_done())
    }

    /// All contents of the region become these.
    fn set_contents(&mut self, next: &mut World, lock: u8, contents: u64) {
        for at in 0..self.size.nodes {
            next.nodes[at] = self.with_contents(at, next.nodes[at], lock, contents);
        }
        let shapes = &self.shapes;
        let packets = next.packets.as_mut_slice().iter_mut().chain(next.again.as_mut_slice());
        packets.for_each(|item| *item = shapes.with_contents(*item, lock, contents));
    }

    /// Nodes that have not heard of the switch's new life do.
    fn news(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        let epoch = self.switch.facts[world.switch as usize].epoch;
        for node in 0..self.size.nodes {
            if self.nodes[node].facts[world.nodes[node] as usize].epoch < epoch {
                let key = kind::HEAR << 32 | u64::from(epoch.0);
                self.node_step(*world, node, key, Input::Hear(epoch), Action::Hear(node as u8), found);
            }
        }
    }

    fn timers(&mut self, world: &World, nothing_else: bool, found: &mut Vec<(Action, Next)>) {
        if !nothing_else && world.left.premature == 0 {
            return;
        }
        for node in 0..self.size.nodes {
            let timers = self.nodes[node].facts[world.nodes[node] as usize].timers.clone();
            for timer in timers {
                let mut next = *world;
                next.left.premature -= u8::from(!nothing_else);
                let key = kind::FIRE << 32 | timer_key(timer);
                let action = Action::Fire(node as u8, timer);
                self.node_step(next, node, key, Input::Fire(timer), action, found);
            }
        }
    }

    /// What happens to threads, nodes and the switch from outside.
    fn control(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        for at in 0..if world.left.cancels > 0 { self.size.threads } else { 0 } {
            let Doing::Waiting { turn } = world.threads[at].doing else { continue };
            let (lock, mode, _) = self.scope.threads[at].may[usize::from(turn)].wants();
            let mut next = *world;
            next.left.cancels -= 1;
            next.threads[at].doing = Doing::Idle;
            next.threads[at].turns -= 1;
            let node = usize::from(self.scope.threads[at].node);
            let key = kind::CANCEL << 32 | thread_key(at, lock, mode);
            let input = Input::Cancel(Ticket(at as u32), lock);
            self.node_step(next, node, key, input, Action::Cancel(at as u8, turn), found);
        }
        for node in 0..if world.left.leaves > 0 { self.size.nodes } else { 0 } {
            let at = found.len();
            let mut next = *world;
            next.left.leaves -= 1;
            let action = Action::Leaving(node as u8);
            self.node_step(next, node, kind::LEAVING << 32, Input::Leaving, action, found);
            if matches!(&found[at].1, Ok(next) if next.nodes[node] == world.nodes[node]) {
                found.truncate(at);
            }
        }
        let before = Rc::clone(self.switch.locals.get(world.switch));
        if world.left.restarts > 0 {
            let mut next = *world;
            next.left.restarts -= 1;
            next.again.clear();
            let after = self.machines.restart(&before);
            next.switch = self.intern_switch(after);
            found.push((Action::Restart, Ok(next)));
        }
        if world.left.vacancies > 0 {
            let mut next = *world;
            next.left.vacancies -= 1;
            let after = self.machines.vacate(&before);
            next.switch = self.intern_switch(after);
            found.push((Action::Vacancy, Ok(next)));
        }
    }
}

/// The kinds of input, as the upper half of a key.
pub(super) mod kind {
    pub(in crate::explore::locks) const PACKET: u64 = 0;
    pub(in crate::explore::locks) const AGAIN: u64 = 1;
    pub(in crate::explore::locks) const WANT: u64 = 2;
    pub(in crate::explore::locks) const LEAVE: u64 = 3;
    pub(in crate::explore::locks) const CANCEL: u64 = 4;
    pub(in crate::explore::locks) const END: u64 = 5;
    pub(in crate::explore::locks) const FIRE: u64 = 6;
    pub(in crate::explore::locks) const LEAVING: u64 = 7;
    pub(in crate::explore::locks) const HEAR: u64 = 8;
}

fn thread_key(thread: usize, lock: u8, mode: Mode) -> u64 {
    u64::from(lock) << 16 | u64::from(mode == Mode::Write) << 8 | thread as u64
}

fn timer_key(timer: Timer) -> u64 {
    let (kind, what) = match timer {
        Timer::Request(lock) => (0, lock_number(lock).into()),
        Timer::Readers(lock) => (1, lock_number(lock).into()),
        Timer::Move(lock) => (2, lock_number(lock).into()),
        Timer::Free(lock) => (3, lock_number(lock).into()),
        Timer::Report(lock) => (4, lock_number(lock).into()),
        Timer::LastReport(node) => (5, node.0),
    };
    kind << 16 | u64::from(what)
}
