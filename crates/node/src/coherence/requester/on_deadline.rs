//! A backoff is over, or an answer is overdue.

use wire::{Nanos, Rule, Rules};

use super::event::Timeout;
use super::{Requesters, Stage, Wait};
use crate::coherence::context::Context;
use crate::store::Store;

impl Requesters {
    /// Does everything that is due. Being called early is harmless.
    pub(crate) fn on_deadline<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        if cx.now < self.next_deadline {
            return;
        }
        self.next_deadline = Nanos::MAX;
        for index in 0..self.slots.len() {
            let slot = wire::SlotId(u16::try_from(index).expect("64 slots"));
            self.repeat_unlocks(cx, slot);
            match self.slots[index].wait {
                Wait::Backoff(until) if until <= cx.now => {
                    self.slots[index].wait = Wait::Nothing;
                    self.advance(cx, slot);
                }
                Wait::Backoff(until) => self.arm(until),
                Wait::Nothing | Wait::UnlockAck => self.repeat_event(cx, slot),
            }
        }
    }

    /// Sends again what the open event waits for.
    fn repeat_event<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: wire::SlotId) {
        let Some(event) = &mut self.slots[slot.index()].event else { return };
        if event.deadline > cx.now {
            let deadline = event.deadline;
            return self.arm(deadline);
        }
        event.repeats += 1;
        let (stage, repeats, request) = (event.stage, event.repeats, event.request);
        let event_is_handed = event.handed;
        let deadline = self.timeout(cx, Timeout::Request, repeats);
        self.slots[slot.index()].event.as_mut().expect("it is open").deadline = deadline;
        self.arm(deadline);
        cx.counters.retransmissions += 1;
        match stage {
            Stage::Asking if !cx.rules.holds(Rule::RequestsAreRepeated) => {}
            Stage::Asking if event_is_handed => self.ask_agents(cx, slot),
            Stage::Asking => {
                let choice = u64::from(cx.random_bits(request.arg));
                let arg = if cx.rules.holds(Rule::RepeatsChooseAlike) { request.arg } else { choice };
                cx.send(wire::Packet { arg, ..request });
            }
            Stage::Closing { write_back, .. } => {
                self.send_closing(cx, slot);
                if write_back && request.kind == wire::PacketKind::ReadMiss {
                    // The owner sends the block home again.
                    if event_is_handed {
                        return self.ask_agents(cx, slot);
                    }
                    cx.send(request);
                }
            }
            Stage::Unpinning(_) | Stage::Held | Stage::Orphaned => {}
        }
    }

    fn repeat_unlocks<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: wire::SlotId) {
        for parity in 0..2 {
            let Some(unlocking) = self.slots[slot.index()].unlocks[parity] else { continue };
            if unlocking.deadline > cx.now {
                self.arm(unlocking.deadline);
                continue;
            }
            let deadline = self.timeout(cx, Timeout::Unlock, 0);
            self.slots[slot.index()].unlocks[parity] = Some(super::Unlocking { deadline, ..unlocking });
            self.arm(deadline);
            if cx.rules.holds(Rule::UnlocksAreRepeated) {
                cx.counters.retransmissions += 1;
                self.repeat_unlock(cx, &unlocking);
            }
        }
    }
}
