//! Blocks leave a cache that has capacity for them: to a requester that is an eviction without a block that needs it.
//!
//! Before a node leaves the rack in order, it sends home what nobody else has, the blocks that it has modified. And a block
//! whose place in the node's memory changes leaves, and comes back where it belongs.
//!
//! When the node leaves, blocks whose home is this node are left out: their home leaves, too.

use alloc::vec::Vec;

use wire::{BlockTag, Rules};

use super::{Fetch, Leaves, Requesters, Work};
use crate::coherence::context::Context;
use crate::coherence::message::Started;
use crate::store::{Access, Store};

impl Requesters {
    /// Starts to send home as many blocks as there are slots for. Returns how many have not arrived: the node may leave
    /// when there are none.
    pub(crate) fn on_leaving<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) -> usize {
        let (me, down) = (self.node, cx.down);
        let mut modified: Vec<BlockTag> = Vec::new();
        cx.store.published(|_, tag, access| {
            if access == Access::Modified && tag.home() != me && !down.contains(tag.home()) {
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
