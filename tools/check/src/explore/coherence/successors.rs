//! What can happen next in a state of the rack: what threads do, time-outs, and what nobody in the rack decides.

use node::coherence::canonical::Timer;
use node::{FrameId, Outcome, Started};
use wire::SlotId;

use super::machines::Own;
use super::scope::CoherenceStep;
use super::shape::is_latest;
use super::world::{ADD, Doing, PREMATURE, PURGE, REMOVE};
use super::{Action, Blocks, Call, Engine, Finds, Outside, Step};
use crate::explore::engine::Input;
use crate::explore::world::World;

impl Engine {
    /// Takes in what a node tells its threads.
    pub(super) fn tell_threads(
        &mut self,
        next: &mut World,
        call: &Call<Blocks>,
        step: &Step<Blocks>,
    ) -> Result<(), String> {
        if step.told.started.is_none() && step.told.completed.is_empty() {
            return Ok(());
        }
        let mut outside = self.outside(next);
        if let (Some((at, turn)), Some(started)) = (call.thread, step.told.started) {
            outside.threads[at].doing = match started {
                Started::Slot(slot) => Doing::Waiting { slot: slot.0 as u8, turn, overtaken: false },
                Started::Join(slot) => Doing::Joining { slot: slot.0 as u8 },
                Started::Pinned(frame) => Doing::Pinned { frame: frame.0 as u8, turn },
                Started::Retry | Started::Full => Doing::Idle,
            };
        }
        for (slot, outcome) in &step.told.completed {
            self.complete(&mut outside, call.node, *slot, *outcome)?;
        }
        next.outside = self.intern_outside(outside);
        Ok(())
    }

    fn complete(&self, next: &mut Outside, node: usize, slot: u8, outcome: Outcome) -> Result<(), String> {
        for (thread, plan) in next.threads.iter_mut().zip(self.scope.threads) {
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
                            thread.turn += 1;
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
        let held = next.threads.iter().zip(self.scope.threads).filter_map(|(thread, plan)| {
            let Doing::Holding { turn, .. } = thread.doing else { return None };
            Some(plan.may[usize::from(turn)])
        });
        let held: Vec<CoherenceStep> = held.collect();
        let alone = held.iter().all(|it| match it {
            CoherenceStep::LockWrite(block) => {
                let same = |it: &&CoherenceStep| matches!(it, CoherenceStep::LockRead(b) | CoherenceStep::LockWrite(b) if b == block);
                held.iter().filter(same).count() == 1
            }
            _ => true,
        });
        if alone { Ok(()) } else { Err(format!("a lock is held by several: {held:?}")) }
    }

    pub(super) fn go_on(&mut self, world: &World, at: usize, found: &mut Finds<Blocks>) {
        let (mut outside, plan) = (self.outside(world), self.scope.threads[at]);
        let (node, who) = (usize::from(plan.node), at as u8);
        let thread = &mut outside.threads[at];
        let doing = std::mem::take(&mut thread.doing);
        match doing {
            Doing::Idle if thread.turn < plan.turns => {
                for (turn, what) in (0..).zip(plan.may) {
                    let action = Action::Thread(who, turn, "begins");
                    self.node_step(world, node, Input::Own(Own::Turn(*what)), action, found);
                }
            }
            Doing::Pinned { frame, turn } => {
                thread.turn += 1;
                let (block, write) = match plan.may[usize::from(turn)] {
                    CoherenceStep::Write(block) => (block, true),
                    CoherenceStep::Read(block)
                    | CoherenceStep::LockRead(block)
                    | CoherenceStep::LockWrite(block) => (block, false),
                };
                let mut next = *world;
                if write {
                    self.write(&mut next, &mut outside, u64::from(block));
                }
                next.outside = self.intern_outside(outside);
                let input = Input::Own(Own::Access { frame: FrameId(frame.into()), block, write });
                self.node_step(&next, node, input, Action::Thread(who, turn, "does"), found);
            }
            Doing::Holding { slot, turn } => {
                thread.turn += 1;
                let next = World { outside: self.intern_outside(outside), ..*world };
                let input = Input::Own(Own::Release(SlotId(slot.into())));
                self.node_step(&next, node, input, Action::Thread(who, turn, "releases its lock"), found);
            }
            Doing::Idle | Doing::Waiting { .. } | Doing::Joining { .. } => {}
        }
    }

    /// All that there is of the block is old from now on.
    fn write(&mut self, next: &mut World, outside: &mut Outside, block: u64) {
        for at in 0..self.nodes.len() {
            next.nodes[at] = self.age(at, next.nodes[at], block);
        }
        let packets = &self.packets;
        next.packets.as_mut_slice().iter_mut().for_each(|item| *item = packets.aged(*item, block));
        for (thread, plan) in outside.threads.iter_mut().zip(self.scope.threads) {
            if let Doing::Waiting { turn, overtaken, .. } = &mut thread.doing
                && self.scope.peeks
                && plan.may[usize::from(*turn)] == CoherenceStep::Read(block as u8)
            {
                *overtaken = true;
            }
        }
    }

    pub(super) fn timers(&mut self, world: &World, found: &mut Finds<Blocks>) {
        let busy = |doing| matches!(doing, Doing::Pinned { .. } | Doing::Holding { .. });
        // Where nothing is lost, nobody may depend on a time-out: live racks have none.
        let nothing_else = self.scope.losses > 0
            && world.packets.is_empty()
            && world.again.is_empty()
            && !self.outside(world).threads.iter().any(|thread| busy(thread.doing));
        let premature = self.spend(world, PREMATURE);
        for node in 0..self.nodes.len() {
            let timers = self.facts(world, node).timers.clone();
            for timer in &timers {
                let timer = *timer;
                let overlaps = |other: &Timer| matches!((timer, other), (Timer::Backoff(slot), Timer::Unlock(its, _)) if slot == *its);
                if self.scope.patient && timers.iter().any(overlaps) {
                    continue;
                }
                let free = matches!(timer, Timer::Backoff(_) | Timer::Epoch) || nothing_else;
                let next = if free { Some(*world) } else { premature };
                let Some(next) = next else { continue };
                let action = Action::Fire(node as u8, timer);
                self.node_step(&next, node, Input::Own(Own::Fire(timer)), action, found);
            }
        }
    }

    /// What nobody in the rack decides: which entries move, which blocks are freed.
    pub(super) fn control(&mut self, world: &World, found: &mut Finds<Blocks>) {
        let (add, remove) = (self.spend(world, ADD), self.spend(world, REMOVE));
        for block in 0..self.scope.blocks {
            if let Some(next) = &add {
                let action = Action::Block(block, "to move to the switch");
                self.node_step_if_it_changes(next, 0, Own::Hot(block), action, found);
            }
            if let Some(next) = &remove {
                let action = Action::Block(block, "to move back to its home");
                self.node_step_if_it_changes(next, 0, Own::Cold(block), action, found);
            }
            // Its incarnation is over, so nobody accesses it any more; but events may still be closing.
            let mut outside = self.outside(world);
            if outside.left.times(PURGE) > block && self.all_are_done(&outside) {
                outside.left = outside.left.with(PURGE, block);
                let next = World { outside: self.intern_outside(outside), ..*world };
                let action = Action::Block(block, "to be purged");
                self.node_step(&next, 0, Input::Own(Own::Purge(block)), action, found);
            }
        }
    }
}
