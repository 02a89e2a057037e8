//! What application threads do, and what they must find when they are inside.

use node::{LockEffect, Ticket};
use wire::{Incarnation, LockRules, Mode, NodeId, Refusal};

use super::allocations::is_allocated;
use super::run::LockRack;

/// What a thread wants, or has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Want {
    /// Which lock.
    pub lock: usize,
    /// To read, or to write.
    pub mode: Mode,
    /// In which life of its home: another is another lock.
    pub life: Incarnation,
    /// Of which allocation, when it was asked for or, if the thread is inside, now. Odd: of none.
    pub allocation: u32,
    /// It was told that the lock is lost, and wants it all the same.
    pub reclaims: bool,
}

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Thread {
    /// Something else.
    Idle,
    /// Waiting until it may enter.
    Waiting(Want),
    /// Inside, where it found this number.
    Inside(Want, u64),
    /// Inside, having given the region back.
    Ending(Want),
    /// Waiting for the end of the lock; or, if it was reclaimed and is given up, until it is lost again.
    Freeing(Want, bool),
}

impl<R: LockRules> LockRack<R> {
    /// Some thread does something.
    pub(super) fn thread_step(&mut self, calm: bool) -> Result<(), String> {
        let thread = self.random.below(self.threads.len());
        let node = thread / self.plan.threads;
        if !self.control.works(NodeId(node as u16)) {
            return Ok(());
        }
        match self.threads[thread] {
            Thread::Idle if calm => Ok(()),
            Thread::Idle => {
                let lock = self.random.below(self.locks.len());
                let mode = if self.random.per_mille(self.plan.writes) { Mode::Write } else { Mode::Read };
                let life = self.control.life(NodeId(node as u16), self.locks[lock].0.home());
                let allocation = self.allocations.now(lock, life);
                let want = Want { lock, mode, life, allocation, reclaims: false };
                if self.allocates(want) {
                    return Ok(());
                }
                self.want(thread, want)
            }
            Thread::Waiting(want) => {
                if !calm && !want.reclaims && self.random.per_mille(self.plan.cancel) {
                    return self.cancel(thread, node, want);
                }
                Ok(())
            }
            Thread::Inside(want, found) => {
                if !calm && self.random.per_mille(300) {
                    return Ok(());
                }
                if !calm && self.gives_back(thread, want) {
                    return Ok(());
                }
                self.leave(thread, node, want, found)
            }
            Thread::Ending(_) if !calm && self.random.per_mille(300) => Ok(()),
            Thread::Ending(want) => self.end_lock(thread, want, false),
            Thread::Freeing(..) => Ok(()),
        }
    }

    fn want(&mut self, thread: usize, want: Want) -> Result<(), String> {
        let node = thread / self.plan.threads;
        let (lock, len) = self.locks[want.lock];
        if self.nodes[node].1.enter(lock, want.mode) {
            self.tell(|| format!("thread {thread} walks in: {want:?}"));
            return self.entered(thread, want);
        }
        let once = self.random.per_mille(self.plan.once);
        self.tell(|| format!("thread {thread} wants {want:?} once {once}"));
        self.threads[thread] = Thread::Waiting(want);
        self.waits.begin(thread, want);
        self.losses.begin(thread);
        let at = self.moment();
        let (machine, store) = &mut self.nodes[node];
        let ticket = Ticket(thread as u32);
        machine.on_lock(at, (ticket, want.mode, once), (lock, len), store, &mut self.out);
        self.drain(node)
    }

    fn cancel(&mut self, thread: usize, node: usize, want: Want) -> Result<(), String> {
        let (lock, _) = self.locks[want.lock];
        let at = self.moment();
        let (machine, store) = &mut self.nodes[node];
        let waited = machine.on_cancel(at, Ticket(thread as u32), lock, store, &mut self.out);
        assert!(waited, "a thread that waits is known to its node");
        self.tell(|| format!("thread {thread} gives up {want:?}"));
        self.waits.end(thread);
        self.threads[thread] = Thread::Idle;
        self.report.cancelled += 1;
        self.drain(node)
    }

    fn leave(&mut self, thread: usize, node: usize, want: Want, found: u64) -> Result<(), String> {
        let (lock, len) = self.locks[want.lock];
        if len > 0 && self.nodes[node].1.frames[&lock].value != found {
            return Err(format!("the data changed under thread {thread}: {want:?}"));
        }
        let wrote = (want.mode == Mode::Write).then(|| {
            let last = self.truth.entry((want.lock, want.life, want.allocation)).or_default();
            *last += 1;
            *last
        });
        self.threads[thread] = Thread::Idle;
        if wrote.is_some() {
            self.losses.released(want.lock, want.life);
        }
        self.tell(|| format!("thread {thread} leaves {want:?}, wrote {wrote:?}"));
        if self.nodes[node].1.leave(lock, want.mode, wrote) {
            let at = self.moment();
            let (machine, store) = &mut self.nodes[node];
            machine.on_left(at, lock, store, &mut self.out);
        }
        self.drain(node)
    }

    /// A thread is inside: it must find what the last writer has left.
    fn entered(&mut self, thread: usize, want: Want) -> Result<(), String> {
        let node = thread / self.plan.threads;
        let (lock, len) = self.locks[want.lock];
        let found = self.nodes[node].1.frames[&lock].value;
        let now = self.allocations.now(want.lock, want.life);
        if want.reclaims {
            return self.reclaimed(thread, want, found);
        }
        // Of a lock without data, nothing is lost if whoever was about to end it dies.
        let nobody_ends_it = len == 0 && self.losses.is_orphan(want.lock, want.life);
        if !is_allocated(now) && !nobody_ends_it {
            return Err(format!("thread {thread} gets into a lock that is no more: {want:?}, now {now}"));
        }
        let want = Want { allocation: now, ..want };
        let last = self.last_release(want.lock, want.life, now);
        self.threads[thread] = Thread::Inside(want, found);
        self.report.entered += 1;
        self.waits.entered(thread, want)?;
        if len > 0 && found != last {
            return Err(format!(
                "thread {thread} of node {node} finds {found} under {want:?}, and the last release left {last}"
            ));
        }
        Ok(())
    }

    /// The number of the last write that was released.
    pub(super) fn last_release(&self, lock: usize, life: Incarnation, allocation: u32) -> u64 {
        self.truth.get(&(lock, life, allocation)).copied().unwrap_or(0)
    }

    /// Data are lost if a node has died that had something of them, and nobody has them; and there is no lock without its
    /// home.
    fn may_fail(&self, thread: usize, want: Want, why: Refusal) -> bool {
        let ((lock, len), node) = (self.locks[want.lock], NodeId((thread / self.plan.threads) as u16));
        let alike = |other: NodeId| self.control.life(other, lock.home()) == want.life;
        match why {
            Refusal::Unallocated => {
                !is_allocated(want.allocation)
                    || self.allocations.now(want.lock, want.life) != want.allocation
            }
            Refusal::Lost => len > 0 && !want.reclaims && self.losses.may_be_told(thread),
            Refusal::Outdated => want.reclaims,
            Refusal::NodeDown => !alike(node) || !self.control.is_known_up(node, lock.home()),
            _ => false,
        }
    }

    /// What a node told its threads.
    pub(super) fn on_told(&mut self, effect: LockEffect) -> Result<(), String> {
        let (LockEffect::Entered(ticket)
        | LockEffect::Busy(ticket)
        | LockEffect::Failed(ticket, _)
        | LockEffect::Freed(ticket)) = effect
        else {
            unreachable!("packets are sent")
        };
        let thread = ticket.0 as usize;
        if let Thread::Freeing(want, lost) = self.threads[thread] {
            self.tell(|| format!("thread {thread}: {effect:?}"));
            return match effect {
                LockEffect::Freed(_) => {
                    self.freed(thread, want, lost);
                    Ok(())
                }
                other => Err(format!("thread {thread} ends {want:?} and was told {other:?}")),
            };
        }
        let Thread::Waiting(want) = self.threads[thread] else {
            return Err(format!("thread {thread} does not wait, and is told {effect:?}"));
        };
        self.tell(|| format!("thread {thread}: {effect:?}"));
        match effect {
            LockEffect::Entered(_) => self.entered(thread, want),
            LockEffect::Busy(_) => {
                self.waits.end(thread);
                self.threads[thread] = Thread::Idle;
                self.report.busy += 1;
                Ok(())
            }
            LockEffect::Failed(_, why) if self.may_fail(thread, want, why) => {
                self.waits.end(thread);
                self.threads[thread] = Thread::Idle;
                match why {
                    Refusal::Lost => self.report.lost += 1,
                    Refusal::Unallocated | Refusal::Outdated => self.report.refused += 1,
                    _ => self.report.down += 1,
                }
                if why == Refusal::Lost { self.reclaim(thread, want) } else { Ok(()) }
            }
            other => Err(format!("thread {thread} wanted {want:?} and was told {other:?}")),
        }
    }
}
