//! A new epoch begins: what is open is cut short, and started again (`recovery/mod.rs`).

use alloc::vec::Vec;

use wire::{Copyset, PacketKind, Refusal, Rule, Rules, Seq, SlotId, SwitchEpoch};

use super::{Event, Requesters, Stage, Wait, Work};
use crate::coherence::context::Context;
use crate::coherence::message::Outcome;
use crate::coherence::recovery::reporter::Held;
use crate::coherence::recovery::saved::{Cut, Saved};
use crate::store::{Access, Store};

impl Requesters {
    /// Cuts all events of epoch `left` short. Returns the locks that stay held.
    pub(crate) fn on_new_epoch<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        gone: Copyset,
        left: SwitchEpoch,
        saved: &mut Saved,
    ) -> Vec<Held> {
        let mut held = Vec::new();
        // No FOLLOW of before comes any more, and a node that has come back counts anew.
        self.followed.fill(Seq::NONE);
        for index in 0..self.slots.len() {
            let slot = SlotId(u16::try_from(index).expect("64 slots"));
            self.slots[index].unlocks = [None; 2];
            if let Some(event) = self.slots[index].event.take() {
                let stays = match event.stage {
                    Stage::Held => self.keep_lock(cx, gone, event, &mut held),
                    Stage::Orphaned => Some(event),
                    _ => {
                        self.cut_short(cx, slot, gone, left, &event, saved);
                        None
                    }
                };
                self.slots[index].event = stays;
            }
            self.start_again(cx, slot, gone);
        }
        held
    }

    /// The lock is held on, at its home from now on; if the home has gone, on paper only.
    fn keep_lock<S, R: Rules>(
        &self,
        cx: &Context<'_, S, R>,
        gone: Copyset,
        mut event: Event,
        held: &mut Vec<Held>,
    ) -> Option<Event> {
        let request = &mut event.request;
        request.epoch = cx.config.switch_epoch;
        if let Some(found) = &mut event.found {
            found.in_switch = false;
        }
        if gone.contains(request.tag.home()) {
            event.stage = Stage::Orphaned;
        } else {
            let (kind, requester, seq, entry) = (request.kind, request.requester, request.seq, request.tag);
            held.push(Held { kind, requester, seq, entry });
        }
        Some(event)
    }

    fn cut_short<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        gone: Copyset,
        left: SwitchEpoch,
        event: &Event,
        saved: &mut Saved,
    ) {
        let request = event.request;
        if gone.contains(request.tag.home()) {
            return;
        }
        match (request.kind, event.stage) {
            // Nobody has what a provider kept for this.
            (PacketKind::WriteMiss, Stage::Asking) if !cx.copies.has(request.tag) => {
                let (requester, seq, tag) = (request.requester, request.seq, request.tag);
                saved.cut(Cut { epoch: left, requester, seq, tag });
            }
            // The thread went on with a copy that the home may not have.
            (PacketKind::ReadMiss, Stage::Closing { write_back: true, .. }) => saved.stale(request.tag),
            // The block is in the frame still, and nobody else has it.
            (PacketKind::EvictModified, Stage::Closing { .. })
                if cx.rules.holds(Rule::CutEvictionIsUndone) =>
            {
                let Work::Fetch(fetch) = &mut self.slots[slot.index()].work else { return };
                if let Some(frame) = fetch.frame.take() {
                    cx.store.publish(frame, request.tag, Access::Modified, false);
                    cx.note_kept(request.tag);
                }
            }
            _ => {}
        }
    }

    fn start_again<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId, gone: Copyset) {
        let it = &mut self.slots[slot.index()];
        it.wait = Wait::Nothing;
        match &mut it.work {
            Work::None => {
                if it.event.is_none() {
                    self.set_free(slot);
                }
            }
            Work::Fetch(fetch) => {
                fetch.victim = None;
                let fetch = *fetch;
                if gone.contains(fetch.tag.home()) {
                    return self.complete_fetch(cx, slot, fetch, Outcome::Failed(Refusal::NodeDown));
                }
                self.back_off(cx, slot, fetch.refusals);
            }
            Work::Lock { entry, refusals, .. } => {
                let (home, refusals) = (entry.home(), *refusals);
                if gone.contains(home) {
                    self.finish_work(slot);
                    return cx.completed(slot, Outcome::Failed(Refusal::NodeDown));
                }
                self.back_off(cx, slot, refusals);
            }
            // The allocator drops the range with the home's chunks.
            Work::Purge { tag, .. } if gone.contains(tag.home()) => self.finish_work(slot),
            Work::Purge { refusals, .. } => {
                let refusals = *refusals;
                self.back_off(cx, slot, refusals);
            }
            // Calls have numbers of their own.
            Work::Call(_) | Work::Sync => {}
        }
    }
}
