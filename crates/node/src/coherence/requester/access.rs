//! A thread missed: get the block into the cache with the access that it needs.

use wire::{BlockTag, PacketKind, Refusal, Rules, SlotId};

use super::{Fetch, Leaves, Requesters, Wait, Work};
use crate::coherence::context::Context;
use crate::coherence::message::{Outcome, Started};
use crate::store::{Access, Reservation, Store};

impl Requesters {
    /// Starts the fetch of a block, unless it is there by now or another slot is fetching it. A read says which words it is
    /// for, if these alone will do.
    pub(crate) fn on_access<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        tag: BlockTag,
        access: Access,
        words: Option<(usize, usize)>,
    ) -> Started {
        if let Some((frame, have)) = cx.store.lookup(tag) {
            if have >= access {
                return cx.store.pin(frame).map_or(Started::Retry, |()| Started::Pinned(frame));
            }
            if cx.copies.access(tag, have) >= access {
                return cx.unprotect(frame, tag).map_or(Started::Retry, |()| Started::Pinned(frame));
            }
        }
        if let Some(slot) = self.fetching(tag) {
            return Started::Join(slot);
        }
        let peek = words.and_then(|words| self.as_peek(cx, tag, words));
        let fetch = Fetch { tag, access, frame: None, victim: None, refusals: 0, peek, leaves: Leaves::No };
        if cx.is_down(tag) {
            return self.refuse(cx, Work::Fetch(fetch));
        }
        let Some(slot) = self.occupy(Work::Fetch(fetch)) else { return Started::Full };
        self.advance_fetch(cx, slot, fetch);
        Started::Slot(slot)
    }

    /// The block's home is down: nobody could grant this.
    pub(super) fn refuse<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, work: Work) -> Started {
        let Some(slot) = self.occupy(work) else { return Started::Full };
        self.finish_work(slot);
        cx.completed(slot, Outcome::Failed(Refusal::NodeDown));
        Started::Slot(slot)
    }

    /// Looks at what is there now, and takes the next step: called at the start, after every event of the
    /// fetch that is over, and after every wait.
    pub(super) fn advance_fetch<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        mut fetch: Fetch,
    ) {
        fetch.victim = None;
        let event = match cx.store.lookup(fetch.tag) {
            Some((frame, access))
                if fetch.leaves == Leaves::Always
                    || fetch.leaves == Leaves::IfModified && access == Access::Modified =>
            {
                fetch.victim = Some(frame);
                Some((evict(cx.copies.access(fetch.tag, access)), fetch.tag))
            }
            // It is gone, or the home has it by now; or it is here again.
            found if fetch.leaves != Leaves::No && (fetch.leaves != Leaves::Returned || found.is_some()) => {
                return self.complete_fetch(cx, slot, fetch, Outcome::Retry);
            }
            Some((frame, have)) if have >= fetch.access => {
                let outcome = cx.store.pin(frame).map_or(Outcome::Retry, |()| Outcome::Pinned(frame));
                return self.complete_fetch(cx, slot, fetch, outcome);
            }
            Some((frame, have)) if cx.copies.access(fetch.tag, have) >= fetch.access => {
                let unprotected = cx.unprotect(frame, fetch.tag);
                let outcome = unprotected.map_or(Outcome::Retry, |()| Outcome::Pinned(frame));
                return self.complete_fetch(cx, slot, fetch, outcome);
            }
            Some(_) => Some((PacketKind::WriteShared, fetch.tag)),
            None if fetch.peek.is_some() => Some((PacketKind::Peek, fetch.tag)),
            None if let Some(frame) = fetch.frame => {
                cx.store.assign(frame, fetch.tag);
                Some((miss(fetch.access), fetch.tag))
            }
            None => match cx.store.reserve(fetch.tag, |frame| self.is_victim(frame)) {
                Reservation::Reserved(frame) => {
                    fetch.frame = Some(frame);
                    Some((miss(fetch.access), fetch.tag))
                }
                // Its home is gone, and it goes as soon as the thread that has it pinned has said so.
                Reservation::Evict { tag, .. } if cx.is_down(tag) => None,
                Reservation::Evict { frame, tag, access } => {
                    fetch.victim = Some(frame);
                    Some((evict(cx.copies.access(tag, access)), tag))
                }
                Reservation::Busy => None,
            },
        };
        self.slots[slot.index()].work = Work::Fetch(fetch);
        match event {
            Some((kind, tag)) => self.begin(cx, slot, kind, tag),
            None => self.back_off(cx, slot, fetch.refusals),
        }
    }

    /// Tells the thread, and gives back what the fetch still has reserved.
    pub(super) fn complete_fetch<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        fetch: Fetch,
        outcome: Outcome,
    ) {
        if let Some(frame) = fetch.frame {
            cx.store.release(frame);
        }
        cx.counters.worst_refusals = cx.counters.worst_refusals.max(u64::from(fetch.refusals));
        if fetch.leaves == Leaves::Returned && matches!(outcome, Outcome::Failed(_)) {
            self.unreadable.push(fetch.tag);
        }
        self.finish_work(slot);
        cx.completed(slot, outcome);
    }

    /// Waits a random while, longer after more refusals (the first one counts), and bounded (PROTOCOLS.md,
    /// FlowCC 7).
    pub(super) fn back_off<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId, refusals: u32) {
        let backoff = cx.config.backoff;
        let bound = (backoff.first.0 << refusals.saturating_sub(1).min(20)).clamp(1, backoff.most.0.max(1));
        let wait = cx.random_below(bound, u64::from(slot.0));
        let until = cx.now + wire::Nanos(wait);
        self.slots[slot.index()].wait = Wait::Backoff(until);
        self.arm(until);
    }
}

const fn miss(access: Access) -> PacketKind {
    match access {
        Access::Shared => PacketKind::ReadMiss,
        Access::Modified => PacketKind::WriteMiss,
    }
}

const fn evict(access: Access) -> PacketKind {
    match access {
        Access::Shared => PacketKind::EvictShared,
        Access::Modified => PacketKind::EvictModified,
    }
}
