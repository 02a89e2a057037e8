//! What can happen next in a state of the rack.

use node::canonical::Timer;
use node::{FrameId, Outcome, Started};

use super::{Engine, Next, Step};
use crate::explore::flowcc::action::Action;
use crate::explore::flowcc::machines::Input;
use crate::explore::flowcc::scope::Turn;
use crate::explore::flowcc::shape::is_latest;
use crate::explore::flowcc::world::{Doing, World};
use crate::explore::world::Item;

impl Engine {
    /// All that can happen next.
    pub(super) fn expand(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        found.clear();
        self.deliveries(world, found);
        if let Some(item) = world.again.as_slice().first() {
            let mut next = *world;
            next.again.remove(0);
            self.switch_step(
                next,
                kind::AGAIN << 32 | u64::from(*item),
                *item,
                Action::Resubmit(*item),
                found,
            );
        }
        for thread in 0..self.size.threads {
            self.thread(world, thread, found);
        }
        self.timers(world, found);
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
            let may_be_doubled = {
                let kind = self.shapes.of(*item).packet.kind;
                self.scope.twice.is_none_or(|only| only == kind)
            };
            if world.left.duplicates > 0 && may_be_doubled {
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

    fn deliver(&mut self, next: World, item: Item, action: Action, found: &mut Vec<(Action, Next)>) {
        let key = kind::PACKET << 32 | u64::from(item);
        match self.shapes.of(item).packet.to.node() {
            None => self.switch_step(next, key, item, action, found),
            Some(node) => {
                let input = Input::Packet(self.shapes.packet(item));
                self.node_step(next, node.index(), key, input, None, action, found);
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
        let next = self.at_switch(before.switch, key, item).and_then(|steps| {
            let (mut next, step) = (before, &steps[0]);
            next.switch = step.local;
            step.sends.iter().try_for_each(|item| next.packets.push(*item))?;
            step.again.iter().try_for_each(|item| next.again.push(*item))?;
            Ok(next)
        });
        found.push((action, next));
    }

    /// An input at a node; `thread` is the one whose turn it is.
    #[allow(clippy::too_many_arguments, reason = "all of them are what the step is about")]
    fn node_step(
        &mut self,
        before: World,
        node: usize,
        key: u64,
        input: Input,
        thread: Option<(usize, u8)>,
        action: Action,
        found: &mut Vec<(Action, Next)>,
    ) {
        match self.at_node(node, before.nodes[node], key, input) {
            Err(what) => found.push((action, Err(what))),
            Ok(steps) => {
                for step in steps.iter() {
                    let next = self.after(before, node, step, thread);
                    found.push((action, next));
                }
            }
        }
    }

    fn after(&self, before: World, node: usize, step: &Step, thread: Option<(usize, u8)>) -> Next {
        let mut next = before;
        next.nodes[node] = step.local;
        step.sends.iter().try_for_each(|item| next.packets.push(*item))?;
        if let (Some((at, turn)), Some(started)) = (thread, step.started) {
            next.threads[at].doing = match started {
                Started::Slot(slot) => Doing::Waiting { slot: slot.0 as u8, turn, overtaken: false },
                Started::Join(slot) => Doing::Joining { slot: slot.0 as u8 },
                Started::Pinned(frame) => Doing::Pinned { frame: frame.0 as u8, turn },
                Started::Retry | Started::Full => Doing::Idle,
            };
        }
        for (slot, outcome) in &step.completed {
            self.complete(&mut next, node, *slot, *outcome)?;
        }
        Ok(next)
    }

    fn complete(&self, next: &mut World, node: usize, slot: u8, outcome: Outcome) -> Result<(), String> {
        let size = self.size.threads;
        for (thread, plan) in next.threads[..size].iter_mut().zip(self.scope.threads) {
            if usize::from(plan.node) != node {
                continue;
            }
            thread.doing = match (thread.doing, outcome) {
                (Doing::Joining { slot: waits_for }, _) if waits_for == slot => Doing::Idle,
                (Doing::Waiting { slot: waits_for, turn, overtaken }, outcome) if waits_for == slot => {
                    match outcome {
                        Outcome::Peeked(data) if !is_latest(data.0) && !overtaken => {
                            return Err(format!("a thread of node {node} peeks at old contents"));
                        }
                        Outcome::Peeked(_) => {
                            thread.turns -= 1;
                            Doing::Idle
                        }
                        Outcome::Pinned(frame) => Doing::Pinned { frame: frame.0 as u8, turn },
                        Outcome::Retry => Doing::Idle,
                        Outcome::Locked => Doing::Holding { slot, turn },
                        outcome => return Err(format!("an operation of node {node} ended with {outcome:?}")),
                    }
                }
                (doing, _) => doing,
            };
        }
        let held = next.threads[..size].iter().zip(self.scope.threads).filter_map(|(thread, plan)| {
            let Doing::Holding { turn, .. } = thread.doing else { return None };
            Some(plan.may[usize::from(turn)])
        });
        let held: Vec<Turn> = held.collect();
        let alone = held.iter().all(|it| match it {
            Turn::LockWrite(block) => {
                let same = |it: &&Turn| matches!(it, Turn::LockRead(b) | Turn::LockWrite(b) if b == block);
                held.iter().filter(same).count() == 1
            }
            _ => true,
        });
        if alone { Ok(()) } else { Err(format!("a lock is held by several: {held:?}")) }
    }

    fn thread(&mut self, world: &World, at: usize, found: &mut Vec<(Action, Next)>) {
        let (thread, plan) = (world.threads[at], self.scope.threads[at]);
        let node = usize::from(plan.node);
        match thread.doing {
            Doing::Idle if thread.turns > 0 => {
                for (turn, what) in (0..).zip(plan.may) {
                    let key = kind::TURN << 32 | turn_key(*what);
                    let action = Action::Begin(at as u8, turn);
                    self.node_step(*world, node, key, Input::Turn(*what), Some((at, turn)), action, found);
                }
            }
            Doing::Pinned { frame, turn } => {
                let mut next = *world;
                next.threads[at].doing = Doing::Idle;
                next.threads[at].turns -= 1;
                let (block, write) = match plan.may[usize::from(turn)] {
                    Turn::Write(block) => (block, true),
                    Turn::Read(block) | Turn::LockRead(block) | Turn::LockWrite(block) => (block, false),
                };
                if write {
                    self.write(&mut next, u64::from(block));
                }
                let key =
                    kind::ACCESS << 32 | u64::from(frame) << 16 | u64::from(block) << 8 | u64::from(write);
                let frame = FrameId(u32::from(frame));
                let input = Input::Access { frame, block, write };
                self.node_step(next, node, key, input, None, Action::Access(at as u8, turn), found);
            }
            Doing::Holding { slot, .. } => {
                let mut next = *world;
                next.threads[at].doing = Doing::Idle;
                next.threads[at].turns -= 1;
                let input = Input::Release(wire::SlotId(u16::from(slot)));
                let key = kind::RELEASE << 32 | u64::from(slot);
                self.node_step(next, node, key, input, None, Action::Release(at as u8), found);
            }
            Doing::Idle | Doing::Waiting { .. } | Doing::Joining { .. } => {}
        }
    }

    /// All that there is of the block is old from now on.
    fn write(&mut self, next: &mut World, block: u64) {
        for at in 0..self.size.nodes {
            next.nodes[at] = self.age(at, next.nodes[at], block);
        }
        let shapes = &self.shapes;
        next.packets.as_mut_slice().iter_mut().for_each(|item| *item = shapes.aged(*item, block));
        for (thread, plan) in next.threads.iter_mut().zip(self.scope.threads) {
            if let Doing::Waiting { turn, overtaken, .. } = &mut thread.doing
                && self.scope.peeks
                && plan.may[usize::from(*turn)] == Turn::Read(block as u8)
            {
                *overtaken = true;
            }
        }
    }

    fn timers(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        let busy = |doing| matches!(doing, Doing::Pinned { .. } | Doing::Holding { .. });
        // Where nothing is lost, nobody may depend on a time-out: live racks have none.
        let nothing_else = self.scope.losses > 0
            && world.packets.as_slice().is_empty()
            && world.again.as_slice().is_empty()
            && !world.threads.iter().any(|thread| busy(thread.doing));
        for node in 0..self.size.nodes {
            let timers = self.nodes[node].facts[world.nodes[node] as usize].timers.clone();
            for timer in &timers {
                let timer = *timer;
                let overlaps = |other: &Timer| matches!((timer, other), (Timer::Backoff(slot), Timer::Unlock(its, _)) if slot == *its);
                if self.scope.patient && timers.iter().any(overlaps) {
                    continue;
                }
                let mut next = *world;
                let free = matches!(timer, Timer::Backoff(_) | Timer::Epoch) || nothing_else;
                if !free {
                    if world.left.premature == 0 {
                        continue;
                    }
                    next.left.premature -= 1;
                }
                let key = kind::FIRE << 32 | timer_key(timer);
                let action = Action::Fire(node as u8, timer);
                self.node_step(next, node, key, Input::Fire(timer), None, action, found);
            }
        }
    }

    /// What nobody in the rack decides: which entries move, which blocks are freed.
    fn control(&mut self, world: &World, found: &mut Vec<(Action, Next)>) {
        for block in 0..self.scope.blocks {
            let low = u64::from(block);
            if world.left.adds > 0 {
                let mut next = *world;
                next.left.adds -= 1;
                let key = kind::HOT << 32 | low;
                self.node_step_if_it_changes(next, key, Input::Hot(block), Action::Hot(block), found);
            }
            if world.left.removes > 0 {
                let mut next = *world;
                next.left.removes -= 1;
                let key = kind::COLD << 32 | low;
                self.node_step_if_it_changes(next, key, Input::Cold(block), Action::Cold(block), found);
            }
            // Its life is over, so nobody accesses it any more; but events may still be closing.
            let done = world.threads[..self.size.threads].iter().all(|thread| thread.is_done());
            if world.left.purges > block && done {
                let mut next = *world;
                next.left.purges = block;
                let key = kind::PURGE << 32 | low;
                self.node_step(next, 0, key, Input::Purge(block), None, Action::Purge(block), found);
            }
        }
    }

    fn node_step_if_it_changes(
        &mut self,
        before: World,
        key: u64,
        input: Input,
        action: Action,
        found: &mut Vec<(Action, Next)>,
    ) {
        let at = found.len();
        self.node_step(before, 0, key, input, None, action, found);
        if matches!(&found[at].1, Ok(next) if next.nodes[0] == before.nodes[0]) {
            found.truncate(at);
        }
    }
}

/// The kinds of input, as the upper half of a key.
pub(super) mod kind {
    pub(in crate::explore::flowcc) const PACKET: u64 = 0;
    pub(in crate::explore::flowcc) const AGAIN: u64 = 1;
    pub(in crate::explore::flowcc) const TURN: u64 = 2;
    pub(in crate::explore::flowcc) const ACCESS: u64 = 3;
    pub(in crate::explore::flowcc) const RELEASE: u64 = 4;
    pub(in crate::explore::flowcc) const FIRE: u64 = 5;
    pub(in crate::explore::flowcc) const HOT: u64 = 6;
    pub(in crate::explore::flowcc) const COLD: u64 = 7;
    pub(in crate::explore::flowcc) const PURGE: u64 = 8;
}

fn turn_key(turn: Turn) -> u64 {
    match turn {
        Turn::Read(block) => u64::from(block),
        Turn::Write(block) => 1 << 8 | u64::from(block),
        Turn::LockRead(block) => 2 << 8 | u64::from(block),
        Turn::LockWrite(block) => 3 << 8 | u64::from(block),
    }
}

fn timer_key(timer: Timer) -> u64 {
    match timer {
        Timer::Backoff(slot) => u64::from(slot.0),
        Timer::Event(slot) => 1 << 8 | u64::from(slot.0),
        Timer::Unlock(slot, parity) => (2 + parity as u64) << 8 | u64::from(slot.0),
        Timer::Move => 4 << 8,
        Timer::Epoch => 5 << 8,
    }
}
