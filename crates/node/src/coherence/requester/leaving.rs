//! Blocks leave a cache that has capacity for them: to a requester that is an eviction without a block that needs it.
//!
//! Before a node leaves the rack in order, it sends home what nobody else has, the blocks that it has modified, and waits until
//! what it has given to others has arrived there. And a block whose place in the node's memory changes leaves, and comes back
//! where it belongs.
//!
//! When the node leaves, blocks whose home is this node are left out: their home leaves, too.

use alloc::vec::Vec;

use wire::{BlockTag, Rules};

use super::{Fetch, Leaves, Requesters, Stage, Work};
use crate::coherence::context::Context;
use crate::coherence::message::Started;
use crate::store::{Access, Store};

/// A block that this node has given to another one, and would give to it again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Given {
    pub(crate) tag: BlockTag,
    /// From a copy kept for that; else from the frame that it is in.
    pub(crate) is_kept: bool,
}

impl Requesters {
    /// Starts to send home as many blocks as there are slots for. Returns how many have not arrived: the node may leave
    /// when there are none.
    pub(crate) fn on_leaving<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) -> usize {
        let (me, down) = (self.node, cx.down);
        let mut modified: Vec<BlockTag> = Vec::new();
        cx.store.published(|_, tag, access| {
            let has_copies = cx.copies.has(tag);
            if access == Access::Modified && !has_copies && tag.home() != me && !down.contains(tag.home()) {
                modified.push(tag);
            }
        });
        let in_flight = self
            .busy_slots()
            .filter(|slot| {
                matches!(self.slots[slot.index()].work, Work::Fetch(Fetch { leaves: Leaves::IfModified, .. }))
            })
            .count();
        let mut started = 0;
        for tag in &modified {
            if self.fetching(*tag).is_some() {
                continue;
            }
            let fetch = leave(*tag, Leaves::IfModified);
            let Some(slot) = self.occupy(Work::Fetch(fetch)) else { break };
            started += 1;
            self.advance_fetch(cx, slot, fetch);
        }
        modified.len().max(in_flight + started)
    }

    /// The node may leave when this has nothing left to do, either: blocks that it has given to others must have arrived. It
    /// alone could answer again, and while the others learn that it has left they drop what is on its way. The next event of such
    /// a block is granted when the one before is closed, so one of this node's own tells: its copy is evicted; or, where it has
    /// none, the block is read. Returns how many are left, and the blocks whose answers nobody waits for any more.
    pub(crate) fn on_parting<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        given: Vec<Given>,
    ) -> (usize, Vec<BlockTag>) {
        let is_open = |slot: &&super::Slot| {
            let event = slot.event.filter(|event| !matches!(event.stage, Stage::Held | Stage::Orphaned));
            event.is_some() || slot.unlocks.iter().any(Option::is_some)
        };
        let (mut left, mut arrived) = (self.slots.iter().filter(is_open).count(), Vec::new());
        for Given { tag, is_kept } in given {
            let found = cx.store.lookup(tag);
            if tag.home() == self.node
                || cx.is_down(tag)
                || self.unreadable.contains(&tag)
                || is_kept && found.is_some()
            {
                arrived.push(tag);
                continue;
            }
            left += 1;
            let how = if is_kept { Leaves::Returned } else { Leaves::Always };
            if self.fetching(tag).is_none()
                && let Some(slot) = self.occupy(Work::Fetch(leave(tag, how)))
            {
                self.advance_fetch(cx, slot, leave(tag, how));
            }
        }
        (left, arrived)
    }

    /// Starts to evict a block, if it is cached: the thread that waits for that looks again when it is told to.
    pub(crate) fn on_evict<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        tag: BlockTag,
    ) -> Started {
        if let Some(slot) = self.fetching(tag) {
            return Started::Join(slot);
        }
        let fetch = leave(tag, Leaves::Always);
        if cx.is_down(tag) {
            return self.refuse(cx, Work::Fetch(fetch));
        }
        let Some(slot) = self.occupy(Work::Fetch(fetch)) else { return Started::Full };
        self.advance_fetch(cx, slot, fetch);
        Started::Slot(slot)
    }
}

const fn leave(tag: BlockTag, leaves: Leaves) -> Fetch {
    Fetch { tag, access: Access::Shared, frame: None, victim: None, refusals: 0, peek: None, leaves }
}
