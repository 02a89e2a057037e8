//! What threads do, and what they are told: as the library does it, and whether it can be so.

use std::rc::Rc;

use node::{Access, FrameId, LockEffect, Outcome, Started};
use wire::{Discipline, Mode, NodeId, Refusal, SlotId};

use super::coverage::Ending;
use super::machines::{FIRST, HOME, Own, ToThread, block, region};
use super::scope::JointStep;
use super::world::{Doing, Memory};
use super::{Action, Both, Engine, Finds, Outside};
use crate::explore::engine::Input;
use crate::explore::world::World;

/// What is written inside of a lock that is no more: nobody may see it.
const ON_PAPER: u64 = 999;

/// The allocation is one of an incarnation of its home that is over.
const NO_CHANGE: u8 = u8::MAX;

/// What a thread writes in this turn.
fn write_of(thread: usize, turn: u8) -> u64 {
    (thread as u64 + 1) * 10 + u64::from(turn)
}

impl Engine {
    pub(super) fn turn_of(&self, outside: &Outside, thread: usize) -> Option<JointStep> {
        self.scope.threads[thread].does.get(usize::from(outside.threads[thread].turn)).copied()
    }

    fn done(&mut self, outside: &mut Outside, thread: usize, ending: Ending) {
        self.coverage.note(ending);
        outside.threads[thread].doing = Doing::Idle;
        outside.threads[thread].turn += 1;
    }

    /// True if the thread will do nothing more, unless something dies.
    pub(super) fn ends(&self, world: &World, thread: usize) -> bool {
        let outside = &self.outside(world);
        let node = usize::from(self.scope.threads[thread].node);
        match self.turn_of(outside, thread) {
            None => true,
            Some(JointStep::AllocateAnew(_)) => {
                outside.threads[thread].doing == Doing::Idle && self.facts(world, node).epoch <= FIRST
            }
            // It is somebody else's, who has not got it yet, or has freed it.
            Some(JointStep::Free) => {
                outside.threads[thread].doing == Doing::Idle && outside.more.memory.discipline.is_none()
            }
            Some(_) => false,
        }
    }

    /// What a thread can do next.
    pub(super) fn go_on(&mut self, world: &World, thread: usize, found: &mut Finds<Both>) {
        let plan = self.scope.threads[thread];
        let node = usize::from(plan.node);
        let outside = self.outside(world);
        let Some(turn) = self.turn_of(&outside, thread) else { return };
        if self.facts(world, node).epoch < FIRST || self.ends(world, thread) {
            return;
        }
        let at = outside.threads[thread].turn;
        let who = thread as u8;
        let memory = outside.more.memory;
        let mut after = outside;
        let doing = &mut after.threads[thread].doing;
        let (input, does) = match *doing {
            Doing::Idle => {
                let input = match turn {
                    JointStep::Allocate(discipline) | JointStep::AllocateAnew(discipline) => {
                        Own::Allocate(HOME, discipline)
                    }
                    JointStep::Free => Own::Free,
                    JointStep::SendHome => {
                        self.done(&mut after, thread, Ending::SentHome);
                        Own::SendHome
                    }
                    JointStep::Read => Own::Fetch(block(), Access::Shared),
                    JointStep::Write => Own::Fetch(block(), Access::Modified),
                    JointStep::ReadCopied(nth) => Own::Fetch(self.scope.block(nth), Access::Shared),
                    JointStep::WriteCopied(nth) => Own::Fetch(self.scope.block(nth), Access::Modified),
                    JointStep::Guard(nth) => Own::Lock(self.scope.block(nth)),
                    JointStep::AllocateCopied(nth) => {
                        Own::Allocate(self.scope.block(nth).home(), Discipline::Coherent)
                    }
                    JointStep::Sync => Own::Sync,
                    JointStep::Enter(_)
                    | JointStep::Take
                    | JointStep::EnterAndFree
                    | JointStep::TakeAndFree => {
                        *doing = Doing::Waiting(memory.changes, false);
                        Own::Enter(who, turn.enters().expect("it does"))
                    }
                };
                (input, "begins")
            }
            Doing::Holding(slot) => {
                self.give_up(world, &mut after, thread, turn);
                self.done(&mut after, thread, Ending::Guarded);
                (Own::Release(SlotId(slot)), "releases it")
            }
            Doing::Pinned { frame, .. } if turn.copied().is_some() => {
                match self.access_copied(world, &mut after, thread, turn) {
                    Ok((tag, wrote)) => {
                        self.done(&mut after, thread, Ending::Accessed);
                        (Own::Access(tag, FrameId(frame), wrote), "accesses the block")
                    }
                    Err(what) => return found.push((Action::Thread(who, at, "accesses it"), Err(what))),
                }
            }
            Doing::Pinned { frame, on_paper } => {
                let wrote = (turn == JointStep::Write).then(|| write_of(thread, at));
                match wrote {
                    _ if on_paper || !self.knows_memory(world, NodeId(plan.node.into())) => {}
                    Some(wrote) => after.more.memory.latest = wrote,
                    None => {
                        let copy = self.facts(world, node).copy;
                        if copy.is_none_or(|(_, write)| write != memory.latest) {
                            let what = format!(
                                "thread {thread} reads {copy:?}, and the last write is {}",
                                memory.latest
                            );
                            found.push((Action::Thread(who, at, "accesses the block"), Err(what)));
                            return;
                        }
                    }
                }
                self.done(&mut after, thread, Ending::Accessed);
                (Own::Access(block(), FrameId(frame), wrote), "accesses the block")
            }
            Doing::ToldOfLoss => {
                *doing = Doing::Waiting(memory.changes, true);
                (Own::Reclaim(who), "takes what is lost")
            }
            Doing::Inside { frees: true, .. } => (Own::Free, "wants it freed"),
            Doing::Inside { of, .. } => {
                let mode = turn.enters().expect("it is inside");
                let is_there = of == memory.changes;
                let value = self.facts(world, node).value;
                if is_there && !memory.hollow && value != Some(memory.latest) {
                    let what = format!("the data changed under thread {thread}: {value:?}, {memory:?}");
                    found.push((Action::Thread(who, at, "leaves"), Err(what)));
                    return;
                }
                let wrote =
                    (mode == Mode::Write).then(|| if is_there { write_of(thread, at) } else { ON_PAPER });
                if let Some(wrote) = wrote
                    && is_there
                {
                    (after.more.memory.latest, after.more.memory.hollow) = (wrote, false);
                }
                let how = if is_there { Ending::Entered } else { Ending::LeftOnPaper };
                self.done(&mut after, thread, how);
                (Own::Leave(mode, wrote), "leaves")
            }
            Doing::Returned(lost) => {
                *doing = Doing::Ending(lost);
                (Own::End(who, lost), "ends the lock")
            }
            _ => return,
        };
        let before = World { outside: self.intern_outside(after), ..*world };
        self.node_step(&before, node, Input::Own(input), Action::Thread(who, at, does), found);
        // Somebody was in the way, and nothing else has changed.
        if matches!(found.last(), Some((_, Ok(next))) if next == world) {
            found.pop();
        }
    }

    /// A thread's operation has begun.
    pub(super) fn started(
        &mut self,
        outside: &mut Outside,
        thread: usize,
        started: Started,
    ) -> Result<(), String> {
        let turn = self.turn_of(outside, thread).expect("it has one");
        let since = outside.more.memory.changes;
        let upto = self.copied(outside).writes as u8;
        let doing = &mut outside.threads[thread].doing;
        *doing = match (started, turn, *doing) {
            (Started::Slot(slot), _, Doing::Inside { of, taken, .. }) => {
                Doing::Returning { of, taken, slot: slot.0 }
            }
            (
                Started::Slot(slot),
                JointStep::Allocate(_) | JointStep::AllocateAnew(_) | JointStep::AllocateCopied(_),
                _,
            ) => Doing::Allocating(slot.0, since),
            (Started::Slot(slot), JointStep::Guard(_), _) => Doing::Locking(slot.0),
            (Started::Slot(slot), JointStep::Sync, _) => Doing::Syncing { slot: slot.0, upto },
            (Started::Slot(slot), JointStep::Free, _) => Doing::Freeing { of: since, slot: slot.0 },
            (Started::Slot(slot), _, _) => Doing::Fetching(slot.0, since),
            (Started::Join(slot), ..) => Doing::Joining(slot.0),
            (Started::Pinned(frame), ..) => Doing::Pinned { frame: frame.0, on_paper: false },
            (Started::Retry, ..) => Doing::Idle,
            (Started::Full, ..) => return Err("every slot is taken, by so few threads".into()),
        };
        Ok(())
    }

    /// A node tells its threads something.
    pub(super) fn told(
        &mut self,
        world: &World,
        outside: &mut Outside,
        node: usize,
        told: ToThread,
    ) -> Result<(), String> {
        match told {
            ToThread::Lock(effect) => self.told_of_lock(world, outside, effect),
            ToThread::Block(slot, outcome) => {
                for thread in 0..self.scope.threads.len() {
                    if usize::from(self.scope.threads[thread].node) == node {
                        self.told_of_block(world, outside, thread, slot, outcome)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn told_of_block(
        &mut self,
        world: &World,
        outside: &mut Outside,
        thread: usize,
        slot: SlotId,
        outcome: Outcome,
    ) -> Result<(), String> {
        let control = Rc::clone(self.control(world));
        let (died, home_died) = (control.has_lost_a_node(), control.has_lost(HOME));
        let memory = outside.more.memory;
        let copied = self.turn_of(outside, thread).and_then(JointStep::copied);
        match (outside.threads[thread].doing, outcome) {
            (Doing::Allocating(its, _), Outcome::Allocated { addr, .. })
                if its == slot.0 && copied.is_some() =>
            {
                self.allocated_copied(outside, copied.expect("the guard has looked"), addr)?;
                self.done(outside, thread, Ending::Allocated(Discipline::Coherent));
            }
            (Doing::Locking(its), Outcome::Locked) if its == slot.0 => {
                self.take_up(world, outside, thread)?;
                outside.threads[thread].doing = Doing::Holding(slot.0);
            }
            (Doing::Allocating(its, _), Outcome::Allocated { addr, .. }) if its == slot.0 => {
                let Some(JointStep::Allocate(discipline) | JointStep::AllocateAnew(discipline)) =
                    self.turn_of(outside, thread)
                else {
                    unreachable!("it allocates")
                };
                if addr != region() {
                    return Err(format!("thread {thread} gets {addr}, which there is not"));
                }
                self.done(outside, thread, Ending::Allocated(discipline));
            }
            (Doing::Allocating(its, since), Outcome::Failed(why)) if its == slot.0 => {
                // Somebody else has the block, or its chunk.
                let others =
                    outside.threads.iter().filter(|it| matches!(it.doing, Doing::Allocating(..))).count() > 1;
                let is_taken = memory.changes > 0 || since != memory.changes || others;
                let may = match why {
                    _ if copied.is_some() => died,
                    Refusal::OutOfMemory => is_taken,
                    Refusal::NodeDown => home_died,
                    _ => died,
                };
                if !may {
                    return Err(format!("thread {thread} gets no memory: {why:?}, {memory:?}"));
                }
                self.done(outside, thread, Ending::NotAllocated(why));
                outside.threads[thread].turn = self.scope.threads[thread].does.len() as u8;
            }
            (Doing::Freeing { of, slot: its }, Outcome::Freed) if its == slot.0 => {
                if of == memory.changes && !home_died {
                    return Err(format!("thread {thread} has freed what is still allocated: {memory:?}"));
                }
                self.done(outside, thread, Ending::Freed);
            }
            (Doing::Freeing { slot: its, .. }, Outcome::Failed(why)) if its == slot.0 && died => {
                self.done(outside, thread, Ending::NotFreed(why));
            }
            (Doing::Returning { of, taken, slot: its }, outcome) if its == slot.0 => {
                let is_gone = of != memory.changes;
                outside.threads[thread].doing = match outcome {
                    Outcome::Freed if !is_gone && !home_died => {
                        return Err(format!("thread {thread} has freed what is still allocated: {memory:?}"));
                    }
                    Outcome::Freed => Doing::Returned(false),
                    Outcome::Failed(why) if died => {
                        self.coverage.note(Ending::NotFreed(why));
                        if taken { Doing::Returned(true) } else { Doing::Inside { of, taken, frees: false } }
                    }
                    other => {
                        return Err(format!(
                            "thread {thread} wanted the memory freed, and is told {other:?}"
                        ));
                    }
                };
            }
            (Doing::Fetching(its, _), Outcome::Pinned(frame)) if its == slot.0 => {
                outside.threads[thread].doing = Doing::Pinned { frame: frame.0, on_paper: false };
            }
            (Doing::Fetching(its, _) | Doing::Locking(its), Outcome::Retry) | (Doing::Joining(its), _)
                if its == slot.0 =>
            {
                outside.threads[thread].doing = Doing::Idle;
            }
            (Doing::Syncing { slot: its, upto }, Outcome::Synced) if its == slot.0 => {
                self.promise(world, outside, thread, upto.into())?;
                self.done(outside, thread, Ending::Synced);
            }
            (Doing::Locking(its), Outcome::Failed(why)) if its == slot.0 => {
                if copied.is_some_and(|nth| self.is_kept(outside, nth)) {
                    return Err(format!("thread {thread} is refused a block lock: {why:?}"));
                }
                self.done(outside, thread, Ending::NotAccessed(why));
            }
            (Doing::Fetching(its, since), Outcome::Failed(why)) if its == slot.0 => {
                let may = match why {
                    _ if copied.is_some_and(|nth| self.is_kept(outside, nth)) => false,
                    _ if copied.is_some() => true,
                    Refusal::Lost => died,
                    Refusal::NodeDown => home_died,
                    _ => may_be_refused(memory, since, Discipline::Coherent, why),
                };
                if !may {
                    return Err(format!("thread {thread} is refused the block: {why:?}, {memory:?}"));
                }
                self.done(outside, thread, Ending::NotAccessed(why));
            }
            (
                Doing::Allocating(its, _)
                | Doing::Freeing { slot: its, .. }
                | Doing::Fetching(its, _)
                | Doing::Locking(its)
                | Doing::Syncing { slot: its, .. },
                other,
            ) if its == slot.0 => {
                return Err(format!("thread {thread} is told {other:?}"));
            }
            _ => {}
        }
        Ok(())
    }

    fn told_of_lock(
        &mut self,
        world: &World,
        outside: &mut Outside,
        effect: LockEffect,
    ) -> Result<(), String> {
        let thread = crate::locks::who_is_told(effect);
        let control = Rc::clone(self.control(world));
        match (outside.threads[thread].doing, effect) {
            (Doing::Waiting(..), LockEffect::Entered(_)) => self.entered(world, outside, thread),
            (Doing::Ending(lost), LockEffect::Freed(_)) => {
                self.done(outside, thread, if lost { Ending::GivenUp } else { Ending::Ended });
                Ok(())
            }
            (Doing::Waiting(since, takes), LockEffect::Failed(_, why)) => {
                let may = match why {
                    Refusal::Lost => control.has_lost_a_node() && !takes,
                    Refusal::Outdated => takes,
                    Refusal::NodeDown => control.has_lost(HOME),
                    _ => may_be_refused(outside.more.memory, since, Discipline::Locked, why),
                };
                if !may {
                    return Err(format!(
                        "thread {thread} is refused the lock: {why:?}, {:?}",
                        outside.more.memory
                    ));
                }
                let reclaims = self.turn_of(outside, thread).is_some_and(JointStep::reclaims);
                if why == Refusal::Lost && reclaims {
                    self.coverage.note(Ending::NotEntered(why));
                    outside.threads[thread].doing = Doing::ToldOfLoss;
                } else {
                    self.done(outside, thread, Ending::NotEntered(why));
                }
                Ok(())
            }
            (doing, told) => Err(format!("thread {thread} is {doing:?}, and is told {told:?}")),
        }
    }

    /// A thread is inside: there is such a lock, nobody else is inside whom it excludes, and it finds what the last one
    /// left.
    pub(super) fn entered(
        &mut self,
        world: &World,
        outside: &mut Outside,
        thread: usize,
    ) -> Result<(), String> {
        let Doing::Waiting(_, taken) = outside.threads[thread].doing else {
            return Err(format!("thread {thread} does not want to enter, and is let in"));
        };
        let memory = outside.more.memory;
        let turn = self.turn_of(outside, thread).expect("it waits");
        if !self.knows_memory(world, NodeId(self.scope.threads[thread].node.into())) {
            let doing = Doing::Inside { of: NO_CHANGE, taken, frees: turn.frees_inside() };
            outside.threads[thread].doing = doing;
            return Ok(());
        }
        if memory.discipline != Some(Discipline::Locked) {
            return Err(format!("thread {thread} gets into a lock that is no more: {memory:?}"));
        }
        for other in (0..self.scope.threads.len()).filter(|other| *other != thread) {
            let beside = match outside.threads[other].doing {
                Doing::Inside { of, .. } | Doing::Returning { of, .. } => of == memory.changes,
                _ => false,
            };
            let its = self.turn_of(outside, other).and_then(JointStep::enters);
            if beside && (its == Some(Mode::Write) || turn.enters() == Some(Mode::Write)) {
                return Err(format!("thread {thread} is let in beside thread {other}"));
            }
        }
        let value = self.facts(world, usize::from(self.scope.threads[thread].node)).value;
        if taken {
            self.coverage.note(Ending::Taken);
            outside.more.memory.hollow = true;
        } else if value != Some(memory.latest) || memory.hollow {
            return Err(format!("thread {thread} finds {value:?}, and the last release left {memory:?}"));
        }
        let frees = turn.frees_inside();
        outside.threads[thread].doing = Doing::Inside { of: memory.changes, taken, frees };
        Ok(())
    }
}

/// Whether the memory was not what it takes, at some moment since.
fn may_be_refused(memory: Memory, since: u8, discipline: Discipline, why: Refusal) -> bool {
    matches!(why, Refusal::Unallocated | Refusal::WrongDiscipline)
        && (memory.changes != since || memory.discipline != Some(discipline))
}
