//! Waiting in the queue: with [`NodeConfig::queue`](crate::NodeConfig::queue) a request that meets a writer is not refused, but
//! follows the last in the queue (see [`switch::coherence::wait_queue`]). The lock comes from the one before, and goes to the one
//! behind:
//!
//! ```text
//!   R1 has the lock       R2: WRITE-MISS       R3: WRITE-MISS
//!        switch ── FOLLOW (R2) ──> R1     switch ── FOLLOW (R3) ──> R2
//!   R1 is done: asks the agents for R2, as the switch would have done, with the metadata that its event leaves,
//!   and unlocks.          R1's cache agent ── ACK + block ──> R2: is done, asks the agents for R3, ...
//!   switch ── UNLOCK-ACK ──> R1 ── HANDOVER ──> R2 ── UNLOCK ──> switch
//!                            R1 <─ HANDOVER-ACK ─ R2
//! ```
//!
//! | what may happen | what is done |
//! | --- | --- |
//! | R2's request comes to the switch again | LAST-REQUEST knows it; its score says whom it follows; R1 is told again |
//! | R1's request comes to the switch again, late | nothing behind R1 is unlocked before R1 is: so it finds what it found before, and the agents know it; then LAST-UNLOCK drops it |
//! | what R1 sends for R2 is lost | R1 sends HANDOVER, which has the metadata, until R2 knows them; then R2 asks by itself |
//! | R1 unlocks before it was told of R2 | the unlock is answered "followed"; R1 waits for FOLLOW, and hands over then |
//! | R1's unlock comes late | it says that the lock was handed over, and changes neither lock nor metadata |
//! | R2 upgrades a copy that R1 has taken | R2 has the lock that it needs for a WRITE-MISS, and goes on as one |
//!
//! A READ-MISS that meets a writer is refused at first, and tries again: in the queue it would have the lock alone. Only
//! when it has been refused [`NodeConfig::refusals_before_queue`] times it waits in the queue, so that writers do not starve readers.
//!
//! What must always hold: each event hands the lock to at most one other, once; unlocks are recorded in the order of the
//! line, and metadata are installed only by who is last in it, or while nobody has been handed the lock behind it; the
//! event after next of a slot waits until the one behind knows what it needs.

use switch::coherence::fan_out::fan_out;
use switch::coherence::{tables, wait_queue};
use wire::{
    Copyset, Endpoint, GlobalStatus, Nanos, NodeId, Packet, PacketKind, Refusal, Rule, Rules, Seq, SlotId,
    Status,
};

use super::event::Timeout;
use super::{Fetch, Found, Requesters, Unlocking, Work};
use crate::coherence::config::NodeConfig;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::store::{Reservation, Store};

/// Where an event that is being unlocked stands in the queue: who is behind it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum QueuePosition {
    /// Nobody that is known.
    Last,
    /// Somebody that this requester has not been told of yet.
    Followed,
    /// This one, and it has the lock.
    Handed {
        follower: Packet,
        /// The unlock is acknowledged, and the follower is told so until it has heard.
        unlocked: bool,
    },
}

/// True if the slot's next READ-MISS is to wait behind a writer: it was refused [`NodeConfig::refusals_before_queue`] times, or so many
/// times more since it did. Only every so often, because whoever waits in the queue is refused by readers.
pub(super) fn joins_queue(config: &NodeConfig, work: &Work) -> bool {
    let Work::Fetch(fetch) = work else { return false };
    config.queue && fetch.refusals % (config.refusals_before_queue + 1) == config.refusals_before_queue
}

impl QueuePosition {
    pub(super) const fn handed(follower: Packet) -> Self {
        Self::Handed { follower, unlocked: false }
    }

    /// Who stands behind.
    pub(super) const fn follower(&self) -> Option<&Packet> {
        match self {
            Self::Handed { follower, .. } => Some(follower),
            Self::Last | Self::Followed => None,
        }
    }

    pub(super) const fn follower_mut(&mut self) -> Option<&mut Packet> {
        match self {
            Self::Handed { follower, .. } => Some(follower),
            Self::Last | Self::Followed => None,
        }
    }
}

impl Requesters {
    /// The requester's node has started a new incarnation: its numbers begin again.
    pub(crate) fn forget(&mut self, node: NodeId) {
        let rows = node.index() * SlotId::PER_NODE * 2;
        self.followed[rows..rows + SlotId::PER_NODE * 2].fill(Seq::NONE);
    }

    /// A request stands behind an event of this node.
    pub(crate) fn on_follow<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let (before, parity) = wait_queue::decode(wait_queue::code_in(packet.arg).unwrap_or(0));
        if !cx.config.queue || before.node != self.node || !packet.event.is_request() {
            return cx.counters.drop(Drop::Nonsense);
        }
        let row = packet.requester.index() * 2 + packet.seq.parity();
        if cx.rules.holds(Rule::HandsOverOnce) && packet.seq <= self.followed[row] {
            return cx.counters.drop(Drop::Stale);
        }
        let it = &mut self.slots[before.slot.index()];
        if let Some(event) = &mut it.event
            && event.request.seq.parity() == parity
            && event.request.tag == packet.tag
        {
            event.follower = Some(*packet);
            return;
        }
        match &mut it.unlocks[parity] {
            Some(Unlocking { packet: unlock, position, after, .. }) if unlock.tag == packet.tag => {
                match position {
                    // The unlock may be in flight without the mark, and install what it says: nothing comes in between.
                    QueuePosition::Last => {
                        unlock.repeated = cx.rules.holds(Rule::HandedUnlockSaysSo);
                        *position = QueuePosition::handed(*packet);
                        let (unlock, after) = (*unlock, *after);
                        self.hand_over(cx, &unlock, packet, after);
                    }
                    QueuePosition::Followed => self.hand_over_late(cx, before.slot, parity, *packet),
                    QueuePosition::Handed { .. } => cx.counters.drop(Drop::Nonsense),
                }
            }
            _ => cx.counters.drop(Drop::Stale),
        }
    }

    /// Gives the lock to the one behind: asks the agents for it, as whoever keeps the entry would have done.
    pub(super) fn hand_over<S, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        unlock: &Packet,
        follower: &Packet,
        after: (GlobalStatus, Copyset),
    ) {
        self.followed[follower.requester.index() * 2 + follower.seq.parity()] = follower.seq;
        cx.counters.handed_over += 1;
        let found = Self::found_for(unlock, follower, after);
        self.forward(cx, &found);
    }

    /// The follower's request with what it finds.
    fn found_for(unlock: &Packet, follower: &Packet, after: (GlobalStatus, Copyset)) -> Packet {
        Packet {
            kind: follower.event,
            status: Status::Granted,
            global_status: after.0,
            copyset: after.1,
            in_switch: true,
            provider: false,
            repeated: false,
            payload: 0,
            arg: wait_queue::with_code(follower.arg, wait_queue::code(unlock.requester, unlock.seq)),
            ..*follower
        }
    }

    /// Check and forward, as in the switch.
    fn forward<S, R: Rules>(&self, cx: &mut Context<'_, S, R>, found: &Packet) {
        let me = Endpoint::Requester(self.node);
        let member = found.copyset.contains(found.requester.node);
        match tables::forward(found.event, found.global_status) {
            Some(to) if tables::check(found.event, found.global_status, member) => {
                fan_out(found, to, me, |packet| cx.send(packet));
            }
            _ => {
                let to = Endpoint::Requester(found.requester.node);
                let status = Status::Refused(Refusal::Outdated);
                cx.send(Packet { status, ..found.reply(PacketKind::Ack, me, to) });
            }
        }
    }

    /// The unlock was acknowledged before the follower was known: it has changed what the switch knows, and left the
    /// lock to the follower.
    fn hand_over_late<S, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        parity: usize,
        follower: Packet,
    ) {
        let deadline = self.timeout(cx, Timeout::Unlock, 0);
        let unlocking = self.slots[slot.index()].unlocks[parity].as_mut().expect("checked by the callers");
        unlocking.packet.repeated = true;
        unlocking.deadline = deadline;
        unlocking.position = QueuePosition::handed(follower);
        let (packet, after) = (unlocking.packet, unlocking.after);
        self.arm(deadline);
        // Clears the note in the switch that somebody follows.
        cx.send(packet);
        self.hand_over(cx, &packet, &follower, after);
    }

    /// An unlock is acknowledged; true if nothing more is to be done for its event.
    pub(super) fn is_unlocked<S, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        packet: &Packet,
    ) -> bool {
        let deadline = self.timeout(cx, Timeout::Unlock, 0);
        let parity = packet.seq.parity();
        let unlocking = self.slots[slot.index()].unlocks[parity].as_mut().expect("checked by the caller");
        match (&mut unlocking.position, packet.provider) {
            _ if unlocking.waits => false,
            (QueuePosition::Last, true) if !cx.rules.holds(Rule::FollowedWaits) => true,
            (QueuePosition::Last, true) => {
                unlocking.position = QueuePosition::Followed;
                // The follower asks until it is served.
                unlocking.deadline = Nanos::MAX;
                false
            }
            (QueuePosition::Last, false) => true,
            (QueuePosition::Handed { unlocked: false, .. }, true) => {
                // Clears the note in the switch that somebody follows.
                unlocking.deadline = deadline;
                cx.send(unlocking.packet);
                self.arm(deadline);
                false
            }
            (QueuePosition::Handed { unlocked, .. }, false) => {
                if !core::mem::replace(unlocked, true) {
                    unlocking.deadline = deadline;
                    let unlocking = *unlocking;
                    self.arm(deadline);
                    self.repeat_unlock(cx, &unlocking);
                }
                false
            }
            (QueuePosition::Followed | QueuePosition::Handed { .. }, _) => false,
        }
    }

    /// Sends what an event that is being unlocked waits to have acknowledged.
    pub(super) fn repeat_unlock<S, R: Rules>(&self, cx: &mut Context<'_, S, R>, unlocking: &Unlocking) {
        let Unlocking { packet, after, position, .. } = unlocking;
        match position {
            QueuePosition::Handed { follower, unlocked: true } => {
                let found = Self::found_for(packet, follower, *after);
                let from = Endpoint::Requester(self.node);
                let to = Endpoint::Requester(follower.requester.node);
                cx.send(found.reply(PacketKind::Handover, from, to));
            }
            QueuePosition::Followed => {}
            QueuePosition::Last | QueuePosition::Handed { unlocked: false, .. } => cx.send(*packet),
        }
    }

    /// The lock is here or on its way, and the unlock of the one before is recorded: now this event's may be. With
    /// the metadata, so that it can ask the agents by itself if what the one before has sent them was lost.
    pub(crate) fn on_handover<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        self.acknowledge_handover(cx, packet);
        let deadline = self.timeout(cx, Timeout::Unlock, 0);
        let it = &mut self.slots[packet.requester.slot.index()];
        if let Some(event) = it.event.as_mut().filter(|event| event.request.seq == packet.seq) {
            (event.handed, event.settled) = (true, true);
            event.found.get_or_insert(Found {
                status: packet.global_status,
                copyset: packet.copyset,
                in_switch: true,
                repeated: false,
                void: false,
            });
            return;
        }
        match &mut it.unlocks[packet.seq.parity()] {
            Some(unlocking) if unlocking.packet.seq == packet.seq && unlocking.waits => {
                (unlocking.waits, unlocking.deadline) = (false, deadline);
                cx.send(unlocking.packet);
                self.arm(deadline);
            }
            _ => {}
        }
    }

    /// Asks the agents for what the event still waits for: the one before in the queue did so once, and what it sent
    /// may be lost.
    pub(super) fn ask_agents<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId) {
        let event = self.slots[slot.index()].event.as_ref().expect("the event is open");
        let found = event.found.expect("a lock is handed over with its metadata");
        let request = Packet {
            global_status: found.status,
            copyset: found.copyset,
            in_switch: true,
            // The replies say that the lock was handed over: to whom that matters, it does not matter by whom.
            arg: wait_queue::with_code(
                event.request.arg,
                wait_queue::code(event.request.requester, event.request.seq),
            ),
            ..event.request
        };
        self.forward(cx, &request);
    }

    /// A WRITE-SHARED whose copy is gone when its turn comes has the lock that a WRITE-MISS needs: it becomes one, if
    /// there is capacity for the block. No agent has seen the event yet, and the switch does not care what its unlock is
    /// of.
    pub(super) fn becomes_a_miss<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
    ) -> bool {
        let it = &self.slots[slot.index()];
        let event = it.event.as_ref().expect("checked by the caller");
        let Work::Fetch(fetch) = it.work else { return false };
        let lost = event.request.kind == PacketKind::WriteShared && cx.store.lookup(fetch.tag).is_none();
        if !lost || fetch.frame.is_some() {
            return false;
        }
        let Reservation::Reserved(frame) = cx.store.reserve(fetch.tag, |frame| self.is_victim(frame)) else {
            return false;
        };
        let it = &mut self.slots[slot.index()];
        it.work = Work::Fetch(Fetch { frame: Some(frame), ..fetch });
        let event = it.event.as_mut().expect("checked above");
        (event.request.kind, event.request.event) = (PacketKind::WriteMiss, PacketKind::WriteMiss);
        if let Some(found) = &mut event.found {
            found.void = false;
        }
        self.ask_agents(cx, slot);
        true
    }

    /// Tells the one before that its HANDOVER has come.
    pub(crate) fn acknowledge_handover<S, R: Rules>(&self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let Some(code) = wait_queue::code_in(packet.arg).filter(|_| cx.config.queue) else { return };
        let (before, _) = wait_queue::decode(code);
        if before.node.index() < cx.config.nodes {
            let (from, to) = (Endpoint::Requester(self.node), Endpoint::Requester(before.node));
            cx.send(packet.reply(PacketKind::HandoverAck, from, to));
        }
    }

    /// The one behind knows all that it needs: it asks by itself from now on, and unlocks when it likes.
    pub(crate) fn on_handover_ack<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) {
        let (before, parity) = wait_queue::decode(wait_queue::code_in(packet.arg).unwrap_or(0));
        if !cx.config.queue || before.node != self.node {
            return cx.counters.drop(Drop::Nonsense);
        }
        let unlocking = &mut self.slots[before.slot.index()].unlocks[parity];
        let Some(Unlocking { position: QueuePosition::Handed { follower, unlocked: true }, .. }) = unlocking
        else {
            return cx.counters.drop(Drop::Stale);
        };
        if follower.requester != packet.requester || follower.seq != packet.seq {
            return cx.counters.drop(Drop::Stale);
        }
        *unlocking = None;
        self.go_on_after_unlock(cx, before.slot);
    }
}
