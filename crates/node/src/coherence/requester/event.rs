//! An event is begun, and ended by its unlock.

use wire::{BlockTag, Endpoint, Nanos, Packet, PacketKind, Rule, Rules, SlotId, Status};

use super::next_state::next_state;
use super::wait_queue::{self, QueuePosition};
use super::{Event, Fetch, Requesters, Stage, Unlocking, Wait, Work};
use crate::coherence::config::Retransmission;
use crate::coherence::context::Context;

/// What a time-out is for; section 5.3.1 counts it in round trips.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timeout {
    /// 6 round trips.
    Request,
    /// 3 round trips.
    Unlock,
}

impl Requesters {
    /// Asks for the entry's lock, or waits until the requester may.
    pub(super) fn begin<S, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        slot: SlotId,
        kind: PacketKind,
        tag: BlockTag,
    ) {
        let requester = self.id(slot);
        let it = &mut self.slots[slot.index()];
        assert!(it.event.is_none(), "{requester:?} begins {kind:?} {tag:?} during {:?}", it.event);
        let seq = it.seq.next();
        if cx.rules.holds(Rule::OneUnlockAParity) && it.unlocks[seq.parity()].is_some() {
            it.wait = Wait::UnlockAck;
            return;
        }
        // Picks the provider. It travels with the request so that every copy of it picks the same one.
        let choice = u64::from(cx.random_bits(seq.0));
        let arg = match it.work {
            Work::Fetch(Fetch { peek: Some(words), .. }) if kind == PacketKind::Peek => words.arg(),
            _ => choice,
        };
        let request = Packet {
            // Of a request to the switch: it may wait in the queue.
            provider: kind == PacketKind::ReadMiss && wait_queue::joins_queue(cx.config, &it.work),
            epoch: cx.config.switch_epoch,
            incarnation: cx.config.incarnation,
            arg,
            ..Packet::request(kind, tag, requester, seq)
        };
        it.seq = seq;
        it.wait = Wait::Nothing;
        let deadline = self.timeout(cx, Timeout::Request, 0);
        self.slots[slot.index()].event = Some(Event {
            request,
            sent: cx.now,
            deadline,
            repeats: 0,
            stage: Stage::Asking,
            found: None,
            answered: wire::Copyset::EMPTY,
            answered_alone: false,
            has_data: false,
            early_write_back: false,
            handed: false,
            settled: false,
            follower: None,
        });
        self.arm(deadline);
        cx.counters.events[kind as usize] += 1;
        cx.send(request);
    }

    /// Ends the open event. The thread does not wait for the acknowledgement; the event after next does.
    pub(super) fn unlock<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, slot: SlotId, status: Status) {
        let me = self.node;
        let timeout = self.timeout(cx, Timeout::Unlock, 0);
        let it = &mut self.slots[slot.index()];
        let event = it.event.take().expect("only an open event is unlocked");
        let waits = cx.rules.holds(Rule::UnlocksKeepTheirPlace) && event.handed && !event.settled;
        let deadline = if waits { Nanos::MAX } else { timeout };
        let mut packet = Packet {
            status,
            arg: 0,
            ..event.request.reply(PacketKind::Unlock, event.request.from, Endpoint::Switch)
        };
        let mut after = (packet.global_status, packet.copyset);
        if let Some(found) = event.found {
            packet.in_switch = found.in_switch;
            after = (found.status, found.copyset);
            if let Some(next) = next_state(event.request.kind, found.copyset, me)
                && status.is_granted()
                && !found.void
            {
                after = next;
            }
            if status.is_granted() {
                (packet.global_status, packet.copyset) = after;
            }
        }
        let position = match event.follower {
            Some(follower) => QueuePosition::handed(follower),
            None => QueuePosition::Last,
        };
        // The lock is not released, but handed over.
        packet.repeated = cx.rules.holds(Rule::HandedUnlockSaysSo) && event.follower.is_some();
        it.unlocks[packet.seq.parity()] = Some(Unlocking { packet, deadline, after, waits, position });
        if it.work == Work::None {
            self.set_free(slot);
        }
        self.arm(deadline);
        if !waits {
            cx.send(packet);
        }
        if let Some(follower) = event.follower {
            self.hand_over(cx, &packet, &follower, after);
        }
    }

    /// When to repeat something for the `repeats`+1st time, if it stays unanswered.
    pub(crate) fn timeout<S, R: Rules>(&self, cx: &Context<'_, S, R>, what: Timeout, repeats: u32) -> Nanos {
        match cx.config.retransmission {
            Retransmission::Never => Nanos::MAX,
            Retransmission::AfterRoundTrips { floor, most } => {
                let round_trips = match what {
                    Timeout::Request => 6,
                    Timeout::Unlock => 3,
                };
                let span = Nanos(self.round_trip.bound().0 * round_trips).max(floor);
                let most = if cx.rules.holds(Rule::WaitsAreBounded) { most } else { Nanos::MAX };
                cx.now + Nanos(span.0 << repeats.min(6)).min(most)
            }
        }
    }
}
