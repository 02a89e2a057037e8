//! Before a node leaves the rack in order, it sends home what nobody else has: the blocks that it has modified. To a
//! requester that is an eviction without a block that needs the capacity.
//!
//! Blocks whose home is this node are left out: their home leaves, too.

use alloc::vec::Vec;

use wire::{BlockTag, Rules};

use super::{Fetch, Requesters, Work};
use crate::coherence::context::Context;
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
            .filter(|slot| matches!(self.slots[slot.index()].work, Work::Fetch(Fetch { leaves: true, .. })))
            .count();
        let mut started = 0;
        for tag in &modified {
            if self.fetching(*tag).is_some() {
                continue;
            }
            let fetch = Fetch {
                tag: *tag,
                access: Access::Shared,
                frame: None,
                victim: None,
                refusals: 0,
                peek: None,
                leaves: true,
            };
            let Some(slot) = self.occupy(Work::Fetch(fetch)) else { break };
            started += 1;
            self.advance_fetch(cx, slot, fetch);
        }
        modified.len().max(in_flight + started)
    }
}
