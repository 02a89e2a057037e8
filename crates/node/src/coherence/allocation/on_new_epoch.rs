//! A new epoch begins: calls are made again, under their old numbers; what had to do with homes that are gone
//! is over (`recovery/mod.rs`).

use wire::{Copyset, Refusal, Rules, SlotId};

use super::Allocation;
use crate::coherence::context::Context;
use crate::coherence::message::Outcome;
use crate::coherence::requester::{Requesters, Work};
use crate::store::Store;

impl Allocation {
    pub(crate) fn on_new_epoch<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        gone: Copyset,
    ) {
        for node in gone.iter() {
            self.allocator.forget_home(node);
            if !cx.config.is_copied(node) {
                self.forget(node);
            }
        }
        let first_is_gone = self.reclaim.front().is_some_and(|job| gone.contains(job.home()));
        self.reclaim.retain(|job| !gone.contains(job.home()));
        for index in 0..self.pending.len() {
            let Some(pending) = &mut self.pending[index] else { continue };
            let slot = SlotId(u16::try_from(index).expect("64 slots"));
            if pending.packet.to.node().is_some_and(|home| gone.contains(home)) {
                self.pending[index] = None;
                if slot != SlotId::RECLAIM {
                    self.give_up(cx, requesters, slot);
                }
                continue;
            }
            pending.packet.epoch = cx.config.switch_epoch;
            if pending.waits {
                continue;
            }
            pending.deadline = cx.repeat_at();
            self.due = self.due.min(pending.deadline);
            cx.send(pending.packet);
        }
        if first_is_gone {
            self.begin_reclaim(cx);
        }
    }

    /// The home of a call is gone.
    fn give_up<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        slot: SlotId,
    ) {
        let work = requesters.slot(slot).work;
        assert!(matches!(work, Work::Call(_)), "slot {slot:?} made a call, and does {work:?}");
        requesters.finish_work(slot);
        cx.completed(slot, Outcome::Failed(Refusal::NodeDown));
    }
}
