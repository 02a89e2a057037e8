//! What application threads do, and what they must find when they are inside.

use node::{LockEffect, LockMessage, LockNode, Moment, Ticket};
use wire::{GlobalAddr, Incarnation, Mode, NodeId, Refusal, Rules};

use super::allocations::is_allocated;
use super::{Locks, PlainLocks};
use crate::rack::{Bench, Control};

/// What a thread wants, or has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Want {
    /// Which lock.
    pub lock: usize,
    /// To read, or to write.
    pub mode: Mode,
    /// In which incarnation of its home: another is another lock.
    pub incarnation: Incarnation,
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
    /// Inside, having asked the allocator to take the region back; and whether it has reclaimed the lock.
    Returning(Want, u64, bool),
    /// Inside of a lock whose region is gone: what it does means nothing to anybody.
    OnPaper(Want),
    /// Waiting for the end of the lock; or, if it was reclaimed and is given up, until it is lost again.
    Freeing(Want, bool),
}

/// The thread that a node tells something.
pub(crate) fn who_is_told(effect: LockEffect) -> usize {
    match effect {
        LockEffect::Entered(it)
        | LockEffect::Busy(it)
        | LockEffect::Failed(it, _)
        | LockEffect::Freed(it) => it.0 as usize,
        LockEffect::Send(_) => unreachable!("packets are sent"),
    }
}

impl<R: Rules> Locks<R> {
    /// Some thread does something; false if none that was asked can.
    pub(super) fn take_turn<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
    ) -> Result<bool, String> {
        let threads = self.threads.len();
        let first = bench.random.below(threads);
        for thread in (0..threads).map(|n| (first + n) % threads) {
            let node = self.node_of(thread);
            if bench.control.works(node) && self.thread_step(bench, thread)? {
                // What a machine was called about is named already.
                self.touched.touch(Some(node));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A thread does something, or has to wait.
    fn thread_step<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
    ) -> Result<bool, String> {
        let busy = !bench.calm;
        match self.threads[thread] {
            Thread::Idle if bench.calm => return Ok(false),
            Thread::Idle => {
                let lock = self.pick(bench, self.node_of(thread));
                let mode = if bench.random.per_mille(self.plan.writes) { Mode::Write } else { Mode::Read };
                let incarnation =
                    bench.control.known_incarnation(self.node_of(thread), self.locks[lock].0.home());
                let allocation = self.allocations.now(lock, incarnation);
                let want = Want { lock, mode, incarnation, allocation, reclaims: false };
                if !self.allocates(bench, want) {
                    self.want(bench, thread, want)?;
                }
            }
            Thread::Waiting(want) if busy && !want.reclaims && bench.random.per_mille(self.plan.cancel) => {
                self.cancel(bench, thread, want)?;
            }
            // They take their time.
            Thread::Inside(..) | Thread::Ending(_) | Thread::OnPaper(_)
                if busy && bench.random.per_mille(300) => {}
            Thread::Inside(want, found) => {
                if !busy || !self.gives_back(bench, thread, (want, found)) {
                    self.leave(bench, thread, want, found)?;
                }
            }
            Thread::Ending(want) => self.end_lock(bench, thread, want, false)?,
            Thread::OnPaper(want) => self.leave_on_paper(bench, thread, want)?,
            Thread::Waiting(_) | Thread::Returning(..) | Thread::Freeing(..) => return Ok(false),
        }
        Ok(true)
    }

    fn want<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
    ) -> Result<(), String> {
        let node = self.node_of(thread);
        let (lock, len) = self.locks[want.lock];
        if self.nodes[node.index()].1.enter(lock, want.mode) {
            bench.note(Some(lock.bits()), || format!("thread {thread} walks in: {want:?}"));
            return self.entered(bench, thread, want);
        }
        let once = bench.random.per_mille(self.plan.once);
        bench.note(Some(lock.bits()), || format!("thread {thread} wants {want:?} once {once}"));
        let who = (Ticket(thread as u32), want.mode, once);
        self.wait(bench, thread, want, |machine, at, store, out| {
            machine.on_lock(at, who, (lock, len), store, out);
        })
    }

    /// A thread asks its node, and waits from now on.
    pub(super) fn wait<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
        asks: impl FnOnce(&mut LockNode<R>, Moment, &mut PlainLocks, &mut Vec<LockEffect>),
    ) -> Result<(), String> {
        self.threads[thread] = Thread::Waiting(want);
        self.waits.begin(thread, want);
        self.losses.begin(thread);
        let lock = self.locks[want.lock].0;
        self.call(bench, (self.node_of(thread), Some(lock)), asks)
    }

    fn cancel<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
    ) -> Result<(), String> {
        let (lock, _) = self.locks[want.lock];
        bench.note(Some(lock.bits()), || format!("thread {thread} gives up {want:?}"));
        self.waits.end(thread);
        self.threads[thread] = Thread::Idle;
        self.seen.cancelled += 1;
        self.call(bench, (self.node_of(thread), Some(lock)), |machine, at, store, out| {
            let waited = machine.on_cancel(at, Ticket(thread as u32), lock, store, out);
            assert!(waited, "a thread that waits is known to its node");
        })
    }

    fn leave<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
        found: u64,
    ) -> Result<(), String> {
        let node = self.node_of(thread);
        let (lock, len) = self.locks[want.lock];
        if len > 0 && self.nodes[node.index()].1.frames[&lock].value != found {
            return Err(format!("the data changed under thread {thread}: {want:?}"));
        }
        let wrote = (want.mode == Mode::Write).then(|| {
            let last = self.truth.entry((want.lock, want.incarnation, want.allocation)).or_default();
            *last = (*last + 1).max(u64::from(want.allocation) * 1_000_000);
            *last
        });
        self.threads[thread] = Thread::Idle;
        if wrote.is_some() {
            self.losses.released(want.lock, want.incarnation);
        }
        bench.note(Some(lock.bits()), || format!("thread {thread} leaves {want:?}, wrote {wrote:?}"));
        self.tell_left(bench, node, want, wrote)
    }

    /// What it writes, nobody may see.
    fn leave_on_paper<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
    ) -> Result<(), String> {
        let node = self.node_of(thread);
        self.threads[thread] = Thread::Idle;
        bench.note(None, || format!("thread {thread} leaves {want:?}, on paper"));
        self.tell_left(bench, node, want, Some(u64::from(want.allocation) * 1_000_000 + 999_999))
    }

    fn tell_left<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        node: NodeId,
        want: Want,
        wrote: Option<u64>,
    ) -> Result<(), String> {
        let (lock, _) = self.locks[want.lock];
        if !self.nodes[node.index()].1.leave(lock, want.mode, wrote) {
            return self.drain(bench, (node, Some(lock)));
        }
        self.call(bench, (node, Some(lock)), |machine, at, store, out| machine.on_left(at, lock, store, out))
    }

    /// A thread is inside: it must find what the last writer has left.
    fn entered<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
    ) -> Result<(), String> {
        let node = self.node_of(thread);
        let (lock, len) = self.locks[want.lock];
        let found = self.nodes[node.index()].1.frames[&lock].value;
        let now = self.allocations.now(want.lock, want.incarnation);
        if want.reclaims {
            return self.reclaimed(bench, thread, want, found);
        }
        // Of a lock without data, nothing is lost if whoever was about to end it dies.
        let nobody_ends_it = len == 0 && self.losses.is_orphan(want.lock, want.incarnation);
        if !is_allocated(now) && !nobody_ends_it {
            return Err(format!("thread {thread} gets into a lock that is no more: {want:?}, now {now}"));
        }
        let want = Want { allocation: now, ..want };
        let last = self.last_release(want.lock, want.incarnation, now);
        self.threads[thread] = Thread::Inside(want, found);
        self.seen.entered += 1;
        self.waits.entered(thread, want)?;
        if len > 0 && found != last {
            return Err(format!(
                "thread {thread} of {node} finds {found} under {want:?}, and the last release left {last}"
            ));
        }
        Ok(())
    }

    /// The number of the last write that was released.
    pub(super) fn last_release(&self, lock: usize, incarnation: Incarnation, allocation: u32) -> u64 {
        self.truth.get(&(lock, incarnation, allocation)).copied().unwrap_or(0)
    }

    /// Whether data may be lost is looked at where a home says so; here, whether the thread waited for such a lock. And there is
    /// no lock without its home.
    fn may_fail(&self, control: &Control, thread: usize, want: Want, why: Refusal) -> bool {
        let ((lock, len), node) = (self.locks[want.lock], self.node_of(thread));
        let alike = |other: NodeId| control.known_incarnation(other, lock.home()) == want.incarnation;
        match why {
            Refusal::WrongDiscipline if !self.allocations.real => false,
            Refusal::Unallocated | Refusal::WrongDiscipline => {
                !is_allocated(want.allocation)
                    || self.allocations.now(want.lock, want.incarnation) != want.allocation
            }
            Refusal::Lost => len > 0 && !want.reclaims && self.losses.may_be_told(thread),
            Refusal::Outdated => want.reclaims,
            Refusal::NodeDown => !alike(node) || !control.known(node).live.contains(lock.home()),
            _ => false,
        }
    }

    /// What a node told its threads.
    pub(super) fn on_told<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        node: NodeId,
        effect: LockEffect,
    ) -> Result<(), String> {
        let thread = who_is_told(effect);
        let note = |bench: &Bench<M>, lock: GlobalAddr| {
            bench.note(Some(lock.bits()), || format!("thread {thread}: {effect:?}"));
        };
        if let Thread::Freeing(want, lost) = self.threads[thread] {
            self.touch(Some(node), Some(self.locks[want.lock].0));
            note(bench, self.locks[want.lock].0);
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
        self.touch(Some(node), Some(self.locks[want.lock].0));
        note(bench, self.locks[want.lock].0);
        match effect {
            LockEffect::Entered(_) => self.entered(bench, thread, want),
            LockEffect::Busy(_) => {
                self.waits.end(thread);
                self.threads[thread] = Thread::Idle;
                self.seen.busy += 1;
                Ok(())
            }
            LockEffect::Failed(_, why) if self.may_fail(&bench.control, thread, want, why) => {
                self.waits.end(thread);
                self.threads[thread] = Thread::Idle;
                match why {
                    Refusal::Lost => self.seen.lost += 1,
                    Refusal::Unallocated | Refusal::WrongDiscipline | Refusal::Outdated => {
                        self.seen.refused += 1
                    }
                    _ => self.seen.down += 1,
                }
                if why == Refusal::Lost { self.reclaim(bench, thread, want) } else { Ok(()) }
            }
            other => Err(format!("thread {thread} wanted {want:?} and was told {other:?}")),
        }
    }
}
