//! What the metadata server answers a client.
//!
//! What must always hold: a slot whose entry was indeterminate has another number before it is written to again, or is in its chain.

use alloc::vec::Vec;

use wire::{Nanos, Rules};

use super::cursors::Cursor;
use super::{Client, Done, Effect, OpId, Request, Step};
use crate::Answer;

impl<R: Rules> Client<R> {
    /// The metadata server has answered; none: it cannot be reached.
    ///
    /// # Panics
    /// If nobody waits for that.
    pub fn on_answer(&mut self, now: Nanos, id: OpId, answer: Option<Answer>, out: &mut Vec<Effect>) {
        let op = *self.op(id);
        match (op.step, answer) {
            (_, None) => self.end(id, Done::Failed, out),
            (Step::Finding | Step::Creating, Some(Answer::Found(at, version))) => {
                self.learn(op.key, Cursor { at, version, known: op.since });
                self.go_on(now, id, out);
            }
            (Step::Finding, Some(Answer::FoundSome(at, version, others))) => {
                for (key, at, version) in others {
                    if self.cursors.get(&key).is_none_or(|cursor| !self.counts(now, cursor)) {
                        self.learn(key, Cursor { at, version, known: op.since });
                    }
                }
                self.learn(op.key, Cursor { at, version, known: op.since });
                self.go_on(now, id, out);
            }
            (Step::Finding, Some(Answer::Absent)) => match (op.request, op.slot) {
                (Request::Put(_), Some(_)) => {
                    self.op(id).is_absent = true;
                    self.go_on(now, id, out);
                }
                _ => self.end(id, Done::Nothing, out),
            },
            (Step::Asking(awaited), Some(answer)) => self.on_asked(now, id, awaited, &answer, out),
            (Step::GettingSlot, Some(Answer::Slots(slots))) => {
                let class = self.class(&op).expect("it was looked at");
                self.slots[usize::from(class.number())].extend(slots);
                if self.slots[usize::from(class.number())].is_empty() {
                    return self.end(id, Done::NoMemory, out);
                }
                self.go_on(now, id, out);
            }
            // The metadata server does not know the slot as ours.
            (Step::Creating, Some(Answer::Absent)) => self.end(id, Done::Failed, out),
            (Step::Creating, Some(Answer::Created)) => {
                let (at, version) = op.slot.expect("what begins the chain");
                self.learn(op.key, Cursor { at, version, known: op.since });
                self.appended(id, out);
            }
            (Step::Settling | Step::Renewing, Some(Answer::Linked)) => self.appended(id, out),
            (step @ (Step::Settling | Step::Renewing), Some(Answer::Free(version))) => {
                let op = self.op(id);
                let (at, _) = op.slot.expect("what was indeterminate");
                (op.slot, op.is_written, op.was_posted) = (Some((at, version)), false, false);
                if step == Step::Renewing {
                    self.go_on(now, id, out);
                } else {
                    self.end(id, Done::Failed, out);
                }
            }
            (step, answer) => panic!("{id:?} at {step:?} was answered {answer:?}"),
        }
    }
}
