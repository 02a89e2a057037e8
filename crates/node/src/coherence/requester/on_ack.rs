//! An answer to a request: the event is granted piece by piece, or refused.

use switch::coherence::wait_queue;
use wire::{
    Copyset, Endpoint, GlobalStatus, Nanos, Packet, PacketKind, Refusal, Rule, Rules, Seq, SlotId, Status,
};

use super::{Fetch, Found, Leaves, Requesters, Stage, Work, peek};
use crate::coherence::context::Context;
use crate::coherence::copies::waiting::Then;
use crate::coherence::counters::Drop;
use crate::coherence::message::{Message, Outcome};
use crate::store::{Access, FrameId, Store};

impl Requesters {
    pub(crate) fn on_ack<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, message: Message) {
        let packet = message.packet;
        let slot = packet.requester.slot;
        let Some(event) = &mut self.slots[slot.index()].event else {
            return cx.counters.drop(Drop::Stale);
        };
        if event.request.seq != packet.seq && !peek::mistakes(cx.rules, &event.request, &packet) {
            return cx.counters.drop(Drop::Stale);
        }
        if event.stage != Stage::Asking {
            return self.on_late_ack(cx, &packet);
        }
        if event.request.tag != packet.tag || event.request.kind != packet.event {
            return cx.counters.drop(Drop::Nonsense);
        }
        if event.repeats == 0 && event.found.is_none() {
            let sample = cx.now.saturating_sub(event.sent);
            self.round_trip.measured(sample);
        }
        if packet.event == PacketKind::Peek {
            return self.on_peek_ack(cx, slot, &message);
        }
        event.handed |= wait_queue::code_in(packet.arg).is_some();
        match packet.status {
            // A refusal is sticky where it is decided: nothing can have been granted beside it.
            Status::Refused(_) if event.found.is_some() && !event.handed => cx.counters.drop(Drop::Nonsense),
            Status::Refused(why) => self.on_refusal(cx, slot, &packet, why),
            Status::Granted => {
                let found = event.found.get_or_insert(Found {
                    status: packet.global_status,
                    copyset: packet.copyset,
                    in_switch: packet.in_switch,
                    repeated: false,
                    void: false,
                });
                found.repeated |= packet.repeated;
                // Only READ-MISSes share the lock: another one's unlock may have added copies in between.
                found.copyset = found.copyset.union(packet.copyset);
                match packet.from {
                    Endpoint::CacheAgent(node) => event.answered = event.answered.with(node),
                    _ => event.answered_alone = true,
                }
                if let Some(data) = message.data
                    && !event.has_data
                    && let Work::Fetch(Fetch { frame: Some(frame), .. }) = self.slots[slot.index()].work
                {
                    event.has_data = true;
                    cx.store.fill(frame, data);
                }
                self.settle(cx, slot);
            }
        }
    }

    /// An answer to a request that was repeated because the home's acknowledgement did not come. If the block is
    /// shared by now, another reader has unlocked, and its copy is in the home's memory; our owner's copy may
    /// be lost or late, so the agents are told to close.
    fn on_late_ack<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let slot = packet.requester.slot;
        let event = self.slots[slot.index()].event.as_mut().expect("checked by the caller");
        let waits_for_home = matches!(event.stage, Stage::Closing { write_back: true, .. });
        if !waits_for_home
            || event.request.kind != PacketKind::ReadMiss
            || !cx.rules.holds(Rule::SharedStandsForCopy)
            || !packet.status.is_granted()
            || packet.global_status != GlobalStatus::Shared
        {
            return cx.counters.drop(Drop::Stale);
        }
        let owner = event.found.map_or(Copyset::EMPTY, |found| found.copyset);
        event.stage = Stage::Closing { write_back: false, agents: owner.union(packet.copyset), home: true };
        self.send_closing(cx, slot);
    }

    /// The event ends without effect. It is unlocked like any other, and then tried again or given up.
    fn on_refusal<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        packet: &Packet,
        why: Refusal,
    ) {
        let it = &mut self.slots[slot.index()];
        let event = it.event.as_mut().expect("checked by the caller");
        let handed = wait_queue::code_in(packet.arg).is_some();
        let installs = handed && cx.rules.holds(Rule::RefusedInLineInstalls);
        let found = Found {
            status: packet.global_status,
            copyset: packet.copyset,
            in_switch: packet.in_switch,
            repeated: false,
            void: true,
        };
        event.found = Some(found);
        let kind = event.request.kind;
        if handed && why == Refusal::Outdated && self.becomes_a_miss(cx, slot) {
            return;
        }
        cx.counters.refuse(kind, why);
        if cx.rules.holds(Rule::RefusedIsUnlocked) {
            // Who was handed the lock must install what the one before has left.
            self.unlock(cx, slot, if installs { Status::Granted } else { Status::Refused(why) });
        } else {
            self.slots[slot.index()].event = None;
        }
        match self.slots[slot.index()].work {
            Work::Fetch(mut fetch) => {
                fetch.victim = None;
                fetch.refusals += 1;
                self.slots[slot.index()].work = Work::Fetch(fetch);
                if !why.is_transient() {
                    self.complete_fetch(cx, slot, fetch, Outcome::Failed(why));
                } else if why == Refusal::Outdated {
                    // What is cached has changed: look again at once.
                    self.advance_fetch(cx, slot, fetch);
                } else {
                    self.back_off(cx, slot, fetch.refusals);
                }
            }
            Work::Lock { entry, write, once, refusals } => {
                if once && why == Refusal::Locked || !why.is_transient() {
                    self.finish_work(slot);
                    cx.completed(slot, Outcome::Failed(why));
                } else {
                    let refusals = refusals + 1;
                    self.slots[slot.index()].work = Work::Lock { entry, write, once, refusals };
                    self.back_off(cx, slot, refusals);
                }
            }
            Work::Purge { tag, refusals } => {
                self.slots[slot.index()].work = Work::Purge { tag, refusals: refusals + 1 };
                self.back_off(cx, slot, refusals + 1);
            }
            Work::None | Work::Call(_) | Work::Sync => {
                unreachable!("an event is open for fetches, locks and purges only")
            }
        }
    }

    /// If everything has been answered: takes effect on this node, and lets the thread go on.
    pub(super) fn settle<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId) {
        let event = self.slots[slot.index()].event.expect("checked by the caller");
        if !event.is_granted(cx.rules) {
            return;
        }
        match (event.request.kind, self.slots[slot.index()].work) {
            (PacketKind::ReadMiss | PacketKind::WriteMiss, Work::Fetch(mut fetch)) => {
                let frame = fetch.frame.take().expect("a miss has a frame reserved");
                let is_wanted = fetch.leaves == Leaves::No;
                cx.store.publish(frame, fetch.tag, fetch.access, is_wanted);
                if fetch.access == Access::Modified {
                    cx.note_writable(fetch.tag);
                }
                if let (PacketKind::ReadMiss, Some(found)) = (event.request.kind, event.found) {
                    self.reuse.missed(fetch.tag, found.status);
                }
                let outcome = if is_wanted { Outcome::Pinned(frame) } else { Outcome::Retry };
                self.complete_fetch(cx, slot, fetch, outcome);
                self.close(cx, slot);
            }
            (PacketKind::WriteShared, Work::Fetch(fetch)) => {
                let Some((frame, Access::Shared)) = cx.store.lookup(fetch.tag) else {
                    panic!("WRITE-SHARED was granted, so the copy is there and shared: {event:?}");
                };
                if cx.store.upgrade(frame).is_err() {
                    return self.await_unpin(slot, frame);
                }
                cx.note_writable(fetch.tag);
                self.complete_fetch(cx, slot, fetch, Outcome::Pinned(frame));
                self.close(cx, slot);
            }
            (PacketKind::EvictShared | PacketKind::EvictModified, Work::Fetch(fetch)) => {
                self.withdraw_victim(cx, slot, fetch);
            }
            (PacketKind::LockRead | PacketKind::LockWrite, Work::Lock { refusals, .. }) => {
                let it = &mut self.slots[slot.index()];
                let event = it.event.as_mut().expect("it is open");
                event.stage = Stage::Held;
                event.deadline = Nanos::MAX;
                cx.counters.worst_refusals = cx.counters.worst_refusals.max(u64::from(refusals));
                self.finish_work(slot);
                cx.completed(slot, Outcome::Locked);
            }
            (PacketKind::Purge, Work::Purge { .. }) => self.close(cx, slot),
            (kind, work) => panic!("{kind:?} was granted to a slot that does {work:?}"),
        }
    }

    /// The eviction is granted: no more hits in the victim. A modified block goes home first; its bytes stay in
    /// the frame until the home has them.
    fn withdraw_victim<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        mut fetch: Fetch,
    ) {
        let event = self.slots[slot.index()].event.expect("an eviction is open");
        // Not by the victim's frame: while the request was in flight, the block may have been lost to another
        // node and have come back elsewhere in the bucket.
        let now = cx.store.lookup(event.request.tag).map(|(frame, _)| frame);
        let then = fetch.victim;
        let Some(frame) = (if cx.rules.holds(Rule::EvictWhereItIs) { now } else { then }) else {
            panic!("a block cannot leave the cache while its eviction holds the write lock: {event:?}");
        };
        if cx.store.withdraw(frame).is_err() {
            return self.await_unpin(slot, frame);
        }
        let batch = cx.batch_before_giving(event.request.tag);
        cx.note_leaving(frame, event.request.tag, false);
        if cx.copies.has(event.request.tag) {
            cx.copies.wait(batch.unwrap_or(Seq::NONE), Then::Evicted(slot, event.request.seq));
        }
        fetch.victim = None;
        fetch.frame = Some(frame);
        self.slots[slot.index()].work = Work::Fetch(fetch);
        self.close(cx, slot);
    }

    /// Everything is granted, but a thread of this node has the frame pinned: goes on when it is done.
    fn await_unpin(&mut self, slot: SlotId, frame: FrameId) {
        let event = self.slots[slot.index()].event.as_mut().expect("the event is open");
        event.stage = Stage::Unpinning(frame);
        event.deadline = Nanos::MAX;
    }
}
