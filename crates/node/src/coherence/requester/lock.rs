//! The per-block reader-writer lock for applications (section 6, "synchronization primitive").
//!
//! Taking it is a coherence event on an entry of its own that is not unlocked until the application releases
//! the lock, so a lock occupies a requester slot while it is held.
//!
//! The entry is a tag beside the block's ([`BlockTag::lock_entry`]), never the block's own: otherwise the holder's own miss
//! on that block would fail for as long as it holds the lock. At most half of a node's slots may be held, because a
//! holder needs others for its misses.

use wire::{BlockTag, PacketKind, Rule, Rules, Seq, SlotId, Status};

use super::{Requesters, Stage, Work};
use crate::coherence::context::Context;
use crate::coherence::copies::waiting::Then;
use crate::coherence::message::Started;
use crate::store::Store;

impl Requesters {
    /// Starts to take the lock of a block. With `once`, a refusal ends the operation.
    pub(crate) fn on_lock<S, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        block: BlockTag,
        write: bool,
        once: bool,
    ) -> Started {
        let entry = block.lock_entry();
        if cx.is_down(block) {
            return self.refuse(cx, Work::Lock { entry, write, once, refusals: 0 });
        }
        let work = Work::Lock { entry, write, once, refusals: 0 };
        match self.occupy_for_lock(cx.config.lock_slots > 0, work) {
            Some(slot) => {
                self.advance_lock(cx, slot, entry, write);
                Started::Slot(slot)
            }
            None => Started::Full,
        }
    }

    fn occupy_for_lock(&mut self, has_own: bool, work: Work) -> Option<SlotId> {
        if has_own {
            let slot = SlotId(self.free_for_locks.pop_first()?);
            self.occupy_slot(slot, work);
            Some(slot)
        } else if self.locks() < SlotId::FOR_LOCKS {
            self.occupy(work)
        } else {
            None
        }
    }

    /// Starts to invalidate every copy of a freed block, in the allocator's own slot.
    pub(crate) fn purge<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, tag: BlockTag) {
        self.occupy_slot(SlotId::RECLAIM, Work::Purge { tag, refusals: 0 });
        self.begin(cx, SlotId::RECLAIM, PacketKind::Purge, tag);
    }

    /// Slots that hold locks or try to.
    fn locks(&self) -> usize {
        let is_lock = |slot: &SlotId| {
            let it = self.slot(*slot);
            matches!(it.work, Work::Lock { .. }) || it.event.is_some_and(|event| event.is_held())
        };
        self.busy_slots().filter(is_lock).count()
    }

    pub(super) fn advance_lock<S, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        entry: BlockTag,
        write: bool,
    ) {
        self.begin(cx, slot, if write { PacketKind::LockWrite } else { PacketKind::LockRead }, entry);
    }

    /// The application releases the lock that it took in this slot.
    ///
    /// # Panics
    /// If no lock is held there.
    pub(crate) fn on_release<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId) {
        let waits = cx.copies.is_on() && cx.rules.holds(Rule::CommitBeforeRelease);
        match if waits { cx.want_batch() } else { Seq::NONE } {
            Seq::NONE => self.release(cx, slot),
            batch => cx.copies.wait(batch, Then::Release(slot)),
        }
    }

    /// What was written under the lock is where it must be.
    pub(crate) fn release<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId) {
        let it = &mut self.slots[slot.index()];
        match it.event.map(|event| event.stage) {
            Some(Stage::Held) => self.unlock(cx, slot, Status::Granted),
            Some(Stage::Orphaned) => {
                it.event = None;
                self.set_free(slot);
            }
            _ => panic!("slot {slot:?} holds no lock: {:?}", it.event),
        }
    }
}
