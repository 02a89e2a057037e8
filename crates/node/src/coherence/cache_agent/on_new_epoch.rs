//! A new epoch begins: no request of the old one will come any more (`recovery/mod.rs`).

use wire::{Copyset, Incarnation, RequesterId, Rules, Seq, SwitchEpoch};

use super::{Answer, CacheAgent, Executed};
use crate::coherence::context::Context;
use crate::coherence::recovery::saved::{Retained, Saved};
use crate::store::{Access, Store};

impl CacheAgent {
    /// Empties LAST-EXECUTED. What answers of epoch `left` say about contents is saved for the homes.
    pub(crate) fn on_new_epoch<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        gone: Copyset,
        left: SwitchEpoch,
        incarnations: &[Incarnation],
        saved: &mut Saved,
    ) {
        for (row, executed) in self.last.iter_mut().enumerate() {
            match executed.answer {
                Answer::Retained(data, tag) => {
                    let requester = RequesterId::of(row / 2);
                    let node = requester.node;
                    if gone.contains(node) || gone.contains(tag.home()) || cx.copies.has(tag) {
                        // Its home has it, or will before it decides anything; or its requester will never say whether it was granted.
                        cx.store.discard(data);
                    } else {
                        let (incarnation, seq) = (incarnations[node.index()], executed.seq);
                        saved.retained(Retained { epoch: left, requester, incarnation, seq, tag, data });
                    }
                }
                // The copy that was to go home may be lost; so the one that stayed here goes.
                Answer::FromFrame(tag)
                    if matches!(cx.store.lookup(tag), Some((_, Access::Shared)))
                        && !cx.copies.has(tag)
                        && !gone.contains(tag.home()) =>
                {
                    saved.stale(tag);
                }
                _ => {}
            }
            *executed = Executed { seq: Seq::NONE, answer: Answer::None };
        }
        self.parked.clear();
        self.held.clear();
        self.heat.clear();
    }
}
