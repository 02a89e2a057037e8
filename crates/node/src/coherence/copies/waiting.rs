//! What waits until this node's changes are committed, and goes on then.
//!
//! What must always hold: it goes on after the batch that has all that was changed before it came. Whoever only wants to know that its
//! writes survive goes on when all participants hold that batch; what others can act upon, when it is in memory everywhere.

use alloc::vec::Vec;

use wire::{Endpoint, Packet, PacketKind, Rules, Seq, SlotId};

use super::Copies;
use crate::coherence::context::Context;
use crate::coherence::message::{Effect, Message, Outcome, Started};
use crate::coherence::node::{Node, context};
use crate::coherence::requester::Work;
use crate::store::{Moment, Store};

/// What a thread waits for, or has left to this node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Then {
    /// The block lock in this slot is released.
    Release(SlotId),
    /// The eviction in this slot, under this number, has its block in memory.
    Evicted(SlotId, Seq),
    /// The call in this slot, with this number, is made.
    Call(SlotId, Seq),
    /// The thread that has called `sync` in this slot goes on.
    Synced(SlotId),
}

impl Copies {
    /// This goes on after that batch.
    pub(crate) fn wait(&mut self, batch: Seq, then: Then) {
        self.waiting.push((batch, then));
    }

    /// The cache agent answers after that batch.
    pub(crate) fn answer_after(&mut self, batch: Seq, packet: &Packet) {
        self.answers.push((batch, *packet));
    }

    /// True if an answer to this very request waits.
    pub(crate) fn will_answer(&self, packet: &Packet) -> bool {
        let is_it = |it: &Packet| (it.requester, it.seq) == (packet.requester, packet.seq);
        self.answers.iter().any(|(_, it)| is_it(it))
    }
}

impl<R: Rules> Node<R> {
    /// A thread wants to know that what this node has written is in all copies.
    pub fn on_sync<S: Store>(&mut self, at: Moment, store: &mut S, out: &mut Vec<Effect>) -> Started {
        let Some(slot) = self.requesters.occupy(Work::Sync) else { return Started::Full };
        if !self.copies.is_on() {
            self.requesters.finish_work(slot);
            out.push(Effect::Completed { slot, outcome: Outcome::Synced });
            return Started::Slot(slot);
        }
        let batch = context!(self, at, store, out).want_batch();
        self.copies.wait(batch, Then::Synced(slot));
        self.go_on_with_batches(at, store, out);
        Started::Slot(slot)
    }

    /// This node counts no more, and its cache is dropped: nobody has a use for what it has changed.
    pub fn forget_changes<S: Store>(&mut self, store: &mut S) {
        let copies = &mut self.copies;
        copies.changed.clear();
        copies.owned.clear();
        core::mem::take(&mut copies.given).values().for_each(|data| store.discard(*data));
    }

    /// A packet about batches.
    pub(crate) fn on_packet_of_copies<S: Store>(
        &mut self,
        at: Moment,
        message: &Message,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> bool {
        let packet = &message.packet;
        let cx = &mut context!(self, at, store, out);
        if !cx.copies.is_on() {
            return false;
        }
        match (packet.kind, packet.to) {
            (PacketKind::Prepare, Endpoint::HomeAgent(_)) => cx.on_prepare(message),
            (PacketKind::Prepared, Endpoint::CacheAgent(_)) => cx.on_prepared(packet),
            (PacketKind::Commit, Endpoint::HomeAgent(_)) => cx.on_commit(packet),
            (PacketKind::Committed, Endpoint::CacheAgent(_)) => cx.on_committed(packet),
            (PacketKind::Inquire, Endpoint::HomeAgent(_)) => cx.on_inquire(packet),
            (PacketKind::Inquired, Endpoint::HomeAgent(_)) => cx.on_inquired(packet),
            (
                kind @ (PacketKind::Replicate
                | PacketKind::Replicated
                | PacketKind::Refill
                | PacketKind::Refilled),
                Endpoint::HomeAgent(_),
            ) => {
                let Some(home) = self.copied.get_mut(&packet.tag.home()) else { return false };
                return match kind {
                    PacketKind::Replicate => home.on_replicate(cx, packet),
                    PacketKind::Replicated => home.on_replicated(cx, packet),
                    PacketKind::Refill => home.on_refill(cx, packet),
                    _ => home.on_refilled(cx, message),
                };
            }
            _ => return false,
        }
        true
    }

    /// Repeats what is overdue.
    pub(crate) fn on_deadline_of_copies<S: Store>(
        &mut self,
        at: Moment,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) {
        let cx = &mut context!(self, at, store, out);
        cx.repeat_batch();
        cx.repeat_inquiries();
        cx.repeat_refills();
    }

    /// After every input: batches go on as far as they come, and what waits for them, too.
    pub(crate) fn go_on_with_batches<S: Store>(&mut self, at: Moment, store: &mut S, out: &mut Vec<Effect>) {
        if !self.copies.is_on() {
            return;
        }
        loop {
            let cx = &mut context!(self, at, store, out);
            cx.advance_batch();
            let (prepared, committed) = (cx.copies.prepared, cx.copies.committed);
            let is_due = |batch: &Seq| *batch <= committed;
            let goes_on = |(batch, then): &(Seq, Then)| {
                is_due(batch) || matches!(then, Then::Synced(_)) && *batch <= prepared
            };
            if let Some(next) = cx.copies.answers.iter().position(|(batch, _)| is_due(batch)) {
                let (_, packet) = cx.copies.answers.remove(next);
                self.cache_agent.answer_now(cx, &packet);
                continue;
            }
            let Some(next) = cx.copies.waiting.iter().position(goes_on) else { break };
            match cx.copies.waiting.remove(next).1 {
                Then::Release(slot) => self.requesters.release(cx, slot),
                Then::Evicted(slot, seq) => self.requesters.on_evicted(cx, slot, seq),
                Then::Call(slot, seq) => self.allocation.make_call(cx, slot, seq),
                Then::Synced(slot) => {
                    self.requesters.finish_work(slot);
                    cx.completed(slot, Outcome::Synced);
                }
            }
        }
        if !self.copies.has_told && self.copies.is_settled() {
            self.copies.has_told = true;
            self.reporter.say_no_more(&mut context!(self, at, store, out));
        }
    }
}
