//! Blocks that hold no allocation any more: their home ends, every copy is invalidated, and then
//! the allocator may use them again. One range after the other, in the requester slot [`SlotId::RECLAIM`].

use wire::{BlockTag, NodeId, Packet, PacketKind, Rules, SlotId, Status};

use super::Allocation;
use crate::allocator::BlockRange;
use crate::coherence::context::Context;
use crate::coherence::requester::{Requesters, Work};
use crate::store::Store;

/// A range to reclaim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Job {
    range: BlockRange,
    /// How many blocks of it have been purged.
    purged: u64,
    /// The FREE to answer when it is done.
    free: Packet,
}

impl Job {
    /// Whose memory the range is.
    pub(super) fn home(&self) -> NodeId {
        self.range.home()
    }
}

impl Allocation {
    /// True if blocks of that home are to end, and it has not answered.
    pub(crate) fn takes_back_at(&self, home: NodeId) -> bool {
        let first_has_ended = self.pending[SlotId::RECLAIM.index()].is_none();
        self.reclaim.iter().skip(usize::from(first_has_ended)).any(|job| job.home() == home)
    }

    pub(super) fn reclaim<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        range: BlockRange,
        free: Packet,
    ) {
        self.reclaim.push_back(Job { range, purged: 0, free });
        if self.reclaim.len() == 1 {
            self.begin_reclaim(cx);
        }
    }

    /// First the home ends the blocks' lives: from then on it answers no miss on them with data. Purging them
    /// first would let a late reader fetch them once more in between, and keep what it got.
    pub(super) fn begin_reclaim<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let Some(job) = self.reclaim.front() else { return };
        let (first, bytes) = (job.range.first, job.range.bytes(cx.config.block));
        self.call(cx, SlotId::RECLAIM, PacketKind::Mark, first.home(), |packet| Packet {
            tag: first,
            arg: bytes,
            discipline: None,
            ..packet
        });
    }

    /// The home has ended the range's blocks: now the copies that are still cached.
    pub(super) fn on_ended<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
    ) {
        self.purge_next(cx, requesters);
    }

    /// Goes on when the reclaim slot has purged a block.
    pub(crate) fn on_purged<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
    ) {
        let idle = requesters.slot(SlotId::RECLAIM).work == Work::None;
        if idle
            && self.pending[SlotId::RECLAIM.index()].is_none()
            && let Some(job) = self.reclaim.front_mut()
        {
            job.purged += 1;
            self.purge_next(cx, requesters);
        }
    }

    fn purge_next<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, requesters: &mut Requesters) {
        let job = self.reclaim.front().expect("a range is being reclaimed");
        if job.purged < job.range.blocks {
            let offset = job.purged << cx.config.block.shift();
            let tag = BlockTag::from_bits(job.range.first.bits() + offset);
            return requesters.purge(cx, tag);
        }
        let job = self.reclaim.pop_front().expect("it is there");
        let reclaimed = self.allocator.reclaim(job.range);
        assert!(reclaimed.is_ok(), "{:?} was in quarantine: {reclaimed:?}", job.range);
        self.answer_free(cx, &job.free, Status::Granted);
        self.begin_reclaim(cx);
    }
}
