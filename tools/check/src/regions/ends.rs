//! How operations end, and frees.

use nic::verbs::Status;
use node::Outcome;
use wire::{GlobalAddr, Rules};

use super::begin::does_change;
use super::nic::Work;
use super::threads::Doing;
use super::world::Regions;
use crate::rack::Bench;

impl<R: Rules> Regions<R> {
    pub(super) fn work_ends<M: Copy>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        work: &Work,
        completion: Option<(Status, Option<u64>)>,
    ) {
        let doing = std::mem::replace(&mut self.threads[thread], Doing::Idle);
        bench.note(None, || format!("thread {thread} is told {completion:?} of {doing:?}"));
        let landing = work.landing.words();
        match (doing, completion) {
            (Doing::Changing { changes }, Some((Status::Success, _))) => {
                for (at, change) in changes.iter().flatten().enumerate() {
                    if landing[0] >> at & 1 == 1 {
                        self.seen.refused += 1;
                        self.truth.refused(change.word);
                        continue;
                    }
                    let old = landing[1 + at];
                    self.seen.changes += 1;
                    self.truth.done(change.word, change.since, old, does_change(&change.request, old));
                }
            }
            (Doing::Changing { changes }, _) => {
                self.seen.indeterminate += 1;
                changes.iter().flatten().for_each(|change| self.truth.indeterminate(change.word));
            }
            (Doing::Reading { object, since }, Some((Status::Success, Some(version)))) => {
                self.seen.reads += 1;
                self.truth.is_whole(object, since, version, landing);
            }
            (Doing::Reading { .. }, Some((Status::Torn, _))) => self.seen.torn += 1,
            (Doing::Reading { object, .. }, Some((Status::Gone, _))) => {
                self.seen.refused += 1;
                if self.truth.region(object.0).incarnations {
                    self.truth.fails(|| format!("object {object:?} is said to be gone, and lives"));
                }
            }
            (Doing::Reading { .. }, _) => self.seen.indeterminate += 1,
            (doing, _) => self.truth.fails(|| format!("thread {thread} gets {work:?}, and is {doing:?}")),
        }
    }

    /// What the allocator says; `None` if it was too busy to be asked.
    pub(crate) fn on_free_told<M: Copy>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        outcome: Option<Outcome>,
    ) {
        let Doing::Freeing { addr, incarnation } = self.threads[thread] else {
            return self.truth.fails(|| format!("thread {thread} frees nothing, and is told {outcome:?}"));
        };
        bench.note(Some(addr.bits()), || format!("thread {thread} is told {outcome:?} of freeing {addr}"));
        self.threads[thread] = match outcome {
            None => Doing::ToFree { addr, incarnation },
            Some(Outcome::Freed) => {
                self.seen.freed += 1;
                Doing::Idle
            }
            // Its allocator, or its home, has died.
            Some(_) if bench.control.has_lost_a_node() => Doing::Idle,
            Some(other) => {
                self.truth.fails(|| format!("thread {thread} frees {addr}, and is told {other:?}"));
                Doing::Idle
            }
        };
    }

    /// A thread, and what it wants to be freed.
    pub(crate) fn next_free(&mut self) -> Option<(usize, GlobalAddr)> {
        self.frees.pop()
    }
}
