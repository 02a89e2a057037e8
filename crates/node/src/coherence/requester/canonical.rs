//! What of a node's requesters tells one state from another, for checkers that explore all states.

use alloc::vec::Vec;

use wire::{Nanos, Packet, RequesterId, Seq, SlotId};

use super::{Requesters, Slot, Stage, Wait, Work};
use crate::coherence::canonical::{FAR, Timer, Use, canonical_choice};
use crate::coherence::config::NodeConfig;
use crate::coherence::round_trip::RoundTrip;

/// The slots that are not as they were at first; times, counts and measurements are left out.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RequestersState {
    slots: Vec<(u16, Slot)>,
    followed: Vec<(u32, Seq)>,
}

const UNUSED: Slot =
    Slot { work: Work::None, wait: Wait::Nothing, event: None, seq: Seq::NONE, unlocks: [None, None] };

impl Requesters {
    pub(crate) fn save(&self, config: &NodeConfig) -> RequestersState {
        let used = self.slots.iter().enumerate().filter(|(_, slot)| **slot != UNUSED);
        let slots = used.map(|(index, slot)| {
            let mut slot = slot.clone();
            slot.forget_time(config);
            (u16::try_from(index).expect("64 slots"), slot)
        });
        let followed = self.followed.iter().enumerate().filter(|(_, seq)| **seq != Seq::NONE);
        let followed = followed.map(|(row, seq)| (u32::try_from(row).expect("8192 rows"), *seq));
        RequestersState { slots: slots.collect(), followed: followed.collect() }
    }

    pub(crate) fn load(&mut self, state: &RequestersState) {
        self.slots.fill(UNUSED);
        self.busy = 0;
        for (index, slot) in &state.slots {
            if slot.work != Work::None || slot.event.is_some() {
                self.busy |= 1 << index;
            }
            self.slots[usize::from(*index)] = slot.clone();
        }
        self.followed.fill(Seq::NONE);
        for (row, seq) in &state.followed {
            self.followed[*row as usize] = *seq;
        }
        self.round_trip = RoundTrip::default();
        self.next_deadline = FAR;
    }

    /// Makes this timer, and no other, due at once.
    pub(crate) fn make_due(&mut self, timer: Timer) {
        let due = match timer {
            Timer::Backoff(slot) => match &mut self.slots[slot.index()].wait {
                Wait::Backoff(until) => until,
                _ => return,
            },
            Timer::Event(slot) => match &mut self.slots[slot.index()].event {
                Some(event) => &mut event.deadline,
                None => return,
            },
            Timer::Unlock(slot, parity) => match &mut self.slots[slot.index()].unlocks[parity] {
                Some(unlocking) => &mut unlocking.deadline,
                None => return,
            },
            Timer::Move | Timer::Epoch => return,
        };
        *due = Nanos::ZERO;
        self.next_deadline = Nanos::ZERO;
    }
}

impl Slot {
    fn forget_time(&mut self, config: &NodeConfig) {
        let far = |deadline: &mut Nanos| *deadline = if *deadline == Nanos::MAX { Nanos::MAX } else { FAR };
        match &mut self.work {
            // How often the owner is asked for again.
            Work::Fetch(fetch) if fetch.peek.is_some() => {}
            // What they still decide is when a READ-MISS joins the queue.
            Work::Fetch(fetch) if config.queue => fetch.refusals %= config.refusals_before_queue + 1,
            Work::Fetch(fetch) => fetch.refusals = 0,
            Work::Lock { refusals, .. } | Work::Purge { refusals, .. } => *refusals = 0,
            Work::None | Work::Call(_) | Work::Sync => {}
        }
        if let Wait::Backoff(until) = &mut self.wait {
            *until = FAR;
        }
        if let Some(event) = &mut self.event {
            (event.sent, event.repeats) = (Nanos::ZERO, 0);
            far(&mut event.deadline);
            event.request.arg = canonical_choice(event.request.arg, config.nodes);
        }
        for unlocking in self.unlocks.iter_mut().flatten() {
            far(&mut unlocking.deadline);
        }
    }
}

impl Slot {
    /// The requests that stand behind its events.
    fn followers(&self) -> impl Iterator<Item = &Packet> {
        let open = self.event.iter().filter_map(|event| event.follower.as_ref());
        open.chain(self.unlocks.iter().flatten().filter_map(|unlocking| unlocking.position.follower()))
    }

    fn followers_mut(&mut self) -> impl Iterator<Item = &mut Packet> {
        let open = self.event.iter_mut().filter_map(|event| event.follower.as_mut());
        open.chain(
            self.unlocks.iter_mut().flatten().filter_map(|unlocking| unlocking.position.follower_mut()),
        )
    }
}

impl RequestersState {
    pub(crate) fn timers(&self, mut found: impl FnMut(Timer)) {
        for (index, slot) in &self.slots {
            let id = SlotId(*index);
            match slot.wait {
                Wait::Backoff(_) => found(Timer::Backoff(id)),
                Wait::Nothing | Wait::UnlockAck => {
                    if slot.event.is_some_and(|event| event.deadline != Nanos::MAX) {
                        found(Timer::Event(id));
                    }
                }
            }
            for (parity, unlocking) in slot.unlocks.iter().enumerate() {
                if unlocking.is_some_and(|unlocking| unlocking.deadline != Nanos::MAX) {
                    found(Timer::Unlock(id, parity));
                }
            }
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.slots.iter().all(|(_, slot)| {
            slot.work == Work::None
                && slot.event.is_none_or(|event| event.stage == Stage::Held)
                && slot.unlocks.iter().all(Option::is_none)
        })
    }

    pub(crate) fn numbers(&self, node: wire::NodeId, found: &mut dyn FnMut(RequesterId, Seq, Use)) {
        for (index, slot) in &self.slots {
            let id = RequesterId { node, slot: SlotId(*index) };
            found(id, slot.seq, Use::Last);
            let packets = slot.unlocks.iter().flatten().map(|unlocking| unlocking.packet.seq);
            for seq in packets.chain(slot.event.map(|event| event.request.seq)) {
                found(id, seq, Use::InFlight);
            }
            slot.followers().for_each(|follower| found(follower.requester, follower.seq, Use::InFlight));
        }
        for (row, seq) in &self.followed {
            found(RequesterId::of(*row as usize / 2), *seq, Use::Remembered);
        }
    }

    pub(crate) fn renumber(&mut self, node: wire::NodeId, to: &dyn Fn(RequesterId, Seq, Use) -> Seq) {
        for (index, slot) in &mut self.slots {
            let id = RequesterId { node, slot: SlotId(*index) };
            let packet = |packet: &mut Packet| packet.seq = to(id, packet.seq, Use::InFlight);
            if let Some(event) = &mut slot.event {
                packet(&mut event.request);
            }
            slot.unlocks.iter_mut().flatten().for_each(|unlocking| packet(&mut unlocking.packet));
            slot.followers_mut().for_each(|it| it.seq = to(it.requester, it.seq, Use::InFlight));
            slot.seq = to(id, slot.seq, Use::Last);
        }
        self.slots.retain(|(_, slot)| *slot != UNUSED);
        for (row, seq) in &mut self.followed {
            *seq = to(RequesterId::of(*row as usize / 2), *seq, Use::Remembered);
        }
        self.followed.retain(|(_, seq)| *seq != Seq::NONE);
    }
}
