//! From the grant to the acknowledged unlock.

use wire::{Copyset, Endpoint, GlobalStatus, Packet, PacketKind, Rule, Rules, SlotId, Status};

use super::event::Timeout;
use super::{Event, Requesters, Stage, Wait, Work};
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::store::Store;

impl Requesters {
    /// The thread is served; the event is unlocked when nothing of it can act any more:
    ///
    /// - a copy that was sent home is there. Until then the home's memory is stale, and the unlock would make
    ///   it count (PROTOCOLS.md, FlowCC 1);
    /// - no copy of a repeated READ-MISS can reach an agent that has not seen one yet. READ-MISSes share the
    ///   lock, so a repeated one may have been sent to another agent than the first, whose copy, arriving
    ///   late, would downgrade an owner or overwrite the home's memory after the event. (Write events repeat
    ///   to the same agents, all of which answer before the event ends.)
    pub(super) fn close<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId) {
        let deadline = self.timeout(cx, Timeout::Request, 0);
        let event = self.slots[slot.index()].event.as_mut().expect("the event is open");
        let found = event.found.expect("a granted event has found the metadata");
        let kind = event.request.kind;
        let sends_home = cx.rules.holds(Rule::ReadWaitsForHome)
            && kind == PacketKind::ReadMiss
            // The memory of a block with copies has what its owner gives away.
            && !cx.copies.has(event.request.tag)
            && found.status == GlobalStatus::Modified
            && !event.early_write_back;
        let repeated =
            cx.rules.holds(Rule::RepeatedReadIsClosed) && kind == PacketKind::ReadMiss && found.repeated;
        let agents = if repeated { found.copyset } else { Copyset::EMPTY };
        let stage = Stage::Closing {
            write_back: sends_home || kind == PacketKind::EvictModified,
            agents,
            home: repeated,
        };
        event.stage = stage;
        event.deadline = deadline;
        event.repeats = 0;
        self.arm(deadline);
        self.send_closing(cx, slot);
        if !cx.rules.holds(Rule::EvictionWaitsForHome) && kind == PacketKind::EvictModified {
            let event = self.slots[slot.index()].event.as_mut().expect("it is open");
            event.stage = Stage::Closing { write_back: false, agents, home: repeated };
        }
        self.unlock_if_closed(cx, slot);
    }

    /// Sends what the open event still waits to have acknowledged.
    pub(super) fn send_closing<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId) {
        let it = &self.slots[slot.index()];
        let event = it.event.expect("the event is open");
        let Stage::Closing { write_back, agents, home } = event.stage else { return };
        let request = Packet { arg: 0, ..event.request };
        let home_agent = Endpoint::HomeAgent(request.tag.home());
        if write_back && cx.copies.has(request.tag) {
            // It is on its way, in a batch.
            return;
        }
        if write_back && request.kind == PacketKind::EvictModified {
            let Work::Fetch(super::Fetch { frame: Some(frame), .. }) = it.work else {
                panic!("an eviction keeps its frame until the home has the block: {:?}", it.work);
            };
            let data = cx.store.contents(frame);
            cx.send_block(request.reply(PacketKind::WriteBack, request.from, home_agent), data);
        }
        if write_back && cx.rules.holds(Rule::CopyBeforeClose) {
            // First the copy: an agent that is told to close takes, and sends, none any more.
            return;
        }
        for node in agents.iter() {
            cx.send(request.reply(PacketKind::Close, request.from, Endpoint::CacheAgent(node)));
        }
        if home {
            cx.send(request.reply(PacketKind::Close, request.from, home_agent));
        }
    }

    /// The home has the copy of a modified block.
    pub(crate) fn on_write_back_ack<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) {
        let slot = packet.requester.slot;
        match &mut self.slots[slot.index()].event {
            Some(Event { request, stage: Stage::Closing { write_back, .. }, .. })
                if request.seq == packet.seq =>
            {
                *write_back = false;
                self.send_closing(cx, slot);
                self.unlock_if_closed(cx, slot);
            }
            // The home was quicker than the owner's answer.
            Some(Event { request, stage: Stage::Asking, early_write_back, .. })
                if request.seq == packet.seq =>
            {
                *early_write_back = true;
            }
            _ => cx.counters.drop(Drop::Stale),
        }
    }

    /// A block that this slot evicts is in all copies: nothing needs to be sent home.
    pub(crate) fn on_evicted<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        seq: wire::Seq,
    ) {
        if let Some(Event { request, stage: Stage::Closing { write_back, .. }, .. }) =
            &mut self.slots[slot.index()].event
            && request.seq == seq
        {
            *write_back = false;
            self.unlock_if_closed(cx, slot);
        }
    }

    /// An agent will not execute late copies of the request.
    pub(crate) fn on_close_ack<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let slot = packet.requester.slot;
        match &mut self.slots[slot.index()].event {
            Some(Event { request, stage: Stage::Closing { agents, home, .. }, .. })
                if request.seq == packet.seq =>
            {
                match packet.from {
                    Endpoint::CacheAgent(node) => *agents = agents.without(node),
                    _ => *home = false,
                }
                self.unlock_if_closed(cx, slot);
            }
            _ => cx.counters.drop(Drop::Stale),
        }
    }

    fn unlock_if_closed<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId) {
        let event = self.slots[slot.index()].event.as_ref().expect("the event is open");
        let Stage::Closing { write_back: false, agents: Copyset::EMPTY, home: false } = event.stage else {
            return;
        };
        self.unlock(cx, slot, Status::Granted);
        match self.slots[slot.index()].work {
            // The victim is gone: now the block that needs its frame.
            Work::Fetch(fetch) => self.advance_fetch(cx, slot, fetch),
            Work::Purge { .. } => self.finish_work(slot),
            Work::None => {}
            work => panic!("an event was closed for a slot that does {work:?}"),
        }
    }

    /// The unlock has been executed: nothing of the event is left anywhere.
    pub(crate) fn on_unlock_ack<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let slot = packet.requester.slot;
        let it = &mut self.slots[slot.index()];
        let unlocking = &mut it.unlocks[packet.seq.parity()];
        if !unlocking.is_some_and(|unlocking| unlocking.packet.seq == packet.seq) {
            return cx.counters.drop(Drop::Stale);
        }
        if !self.is_unlocked(cx, slot, packet) {
            return;
        }
        let it = &mut self.slots[slot.index()];
        it.unlocks[packet.seq.parity()] = None;
        self.go_on_after_unlock(cx, slot);
    }

    /// The slot may begin the event after next.
    pub(super) fn go_on_after_unlock<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
    ) {
        let it = &mut self.slots[slot.index()];
        if it.wait == Wait::UnlockAck {
            it.wait = Wait::Nothing;
            self.advance(cx, slot);
        }
    }

    /// Goes on with a slot's work after a wait.
    pub(super) fn advance<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId) {
        match self.slots[slot.index()].work {
            Work::Fetch(fetch) => self.advance_fetch(cx, slot, fetch),
            Work::Lock { entry, write, .. } => self.advance_lock(cx, slot, entry, write),
            Work::Purge { tag, .. } => self.begin(cx, slot, PacketKind::Purge, tag),
            Work::None | Work::Call(_) | Work::Sync => {}
        }
    }

    /// A thread has finished its access to a frame that granted events of ours wait for.
    pub(crate) fn on_unpinned<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        frame: crate::FrameId,
    ) {
        for slot in self.busy_slots() {
            let event = &self.slots[slot.index()].event;
            if event.as_ref().is_some_and(|event| event.stage == Stage::Unpinning(frame)) {
                self.settle(cx, slot);
            }
        }
    }
}
