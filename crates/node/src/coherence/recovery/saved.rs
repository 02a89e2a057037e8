//! What a node saves of the epoch that it leaves, for the homes that have to know.
//!
//! What must always hold: whatever is saved for a home is kept until that home has rebuilt its directory; and
//! it is thrown away if the home has rebuilt it without, in an epoch after the one that it was saved from. Its
//! blocks have moved on since, and an old answer must not overwrite them. And there is no more of it than of one epoch:
//! however often a recovery is cut short, the next one takes no longer.

use alloc::vec::Vec;

use sorted::{Map, Set};
use wire::{BlockTag, Copyset, Incarnation, NodeId, RequesterId, Rule, Rules, Seq, SwitchEpoch};

use crate::coherence::context::Context;
use crate::store::{DataRef, Store};

/// A WRITE-MISS's answer of which this node kept a copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Retained {
    pub(crate) epoch: SwitchEpoch,
    pub(crate) requester: RequesterId,
    /// The incarnation that its node was in.
    pub(crate) incarnation: Incarnation,
    pub(crate) seq: Seq,
    pub(crate) tag: BlockTag,
    pub(crate) data: DataRef,
}

/// A WRITE-MISS of this node that was cut short before it was granted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cut {
    pub(crate) epoch: SwitchEpoch,
    pub(crate) requester: RequesterId,
    pub(crate) seq: Seq,
    pub(crate) tag: BlockTag,
}

/// For one home.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ForHome {
    pub(crate) retained: Vec<Retained>,
    pub(crate) cut: Vec<Cut>,
    /// Blocks whose shared copy here may be newer than the home's memory.
    pub(crate) stale: Set<BlockTag>,
}

/// For all homes.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Saved(Map<NodeId, ForHome>);

impl Saved {
    pub(crate) fn retained(&mut self, retained: Retained) {
        self.0.entry(retained.tag.home()).or_default().retained.push(retained);
    }

    pub(crate) fn cut(&mut self, cut: Cut) {
        self.0.entry(cut.tag.home()).or_default().cut.push(cut);
    }

    pub(crate) fn stale(&mut self, tag: BlockTag) {
        self.0.entry(tag.home()).or_default().stale.insert(tag);
    }

    /// What is saved for a home.
    pub(crate) fn of(&self, home: NodeId) -> Option<&ForHome> {
        self.0.get(&home)
    }

    /// These nodes are not what they were: nobody asks for what was saved for them, or for their requests.
    pub(crate) fn forget<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, gone: Copyset) {
        for (home, saved) in &mut self.0 {
            let gone_with = |it: &Retained| {
                gone.contains(*home)
                    || gone.contains(it.requester.node)
                    || !cx.rules.holds(Rule::SavingsAreKept)
            };
            for retained in saved.retained.extract_if(.., |it| gone_with(it)) {
                cx.store.discard(retained.data);
            }
        }
        self.0.retain(|home, _| !gone.contains(*home) && cx.rules.holds(Rule::SavingsAreKept));
    }

    /// The home has last rebuilt its directory in `rebuilt`: older savings are settled. In later epochs it has decided
    /// nothing, so nobody was granted anything there, and nothing was answered.
    pub(crate) fn keep_only<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        home: NodeId,
        rebuilt: SwitchEpoch,
    ) {
        let Some(saved) = self.0.get_mut(&home) else { return };
        let counts = |epoch: SwitchEpoch| {
            (epoch >= rebuilt || !cx.rules.holds(Rule::OldSavingsAreDropped))
                && (epoch <= rebuilt || !cx.rules.holds(Rule::VainRequestsAreForgotten))
        };
        for retained in saved.retained.extract_if(.., |it| !counts(it.epoch)) {
            cx.store.discard(retained.data);
        }
        saved.cut.retain(|cut| counts(cut.epoch));
    }

    /// The home has rebuilt its directory, with all that was saved for it.
    pub(crate) fn settled<S: Store, R>(&mut self, cx: &mut Context<'_, S, R>, home: NodeId) {
        for retained in self.0.remove(&home).unwrap_or_default().retained {
            cx.store.discard(retained.data);
        }
    }
}
