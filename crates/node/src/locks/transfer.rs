//! The data of a MOVE, and what the directory says of it: they come apart, in any order.
//!
//! A MOVE is a header. The holder sends the data to whom it names, right beside it, and the directory sends them the verdict:
//! HAND or GRANTED. Nothing is taken before both are there.
//!
//! ```text
//!   holder ──── MOVE ────► directory ──── HAND ────► next writer
//!      └──────────────────── DATA ──────────────────────►
//! ```
//! What must always hold: data count for the one MOVE that the directory has approved. One that was denied may have sent
//! others: threads of the holder may have written since. MOVEs of one term differ in whom they know of, and each one knows
//! of more.

use wire::{Copyset, LockKind, LockPacket, Rule, Rules, Term};

use super::record::Lock;
use super::store::LockStore;
use super::{Context, LockDrop, LockMessage};

/// Which MOVE something belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Transfer {
    /// The term that it begins.
    term: Term,
    /// Whom the holder knew of.
    known: Copyset,
}

impl Transfer {
    fn of(packet: &LockPacket) -> Self {
        Self { term: packet.term, known: packet.waiting }
    }

    /// True if it was sent after that one.
    fn is_after(self, other: Self) -> bool {
        self.term > other.term
            || self.term == other.term
                && self.known != other.known
                && other.known.without_all(self.known).is_empty()
    }
}

impl Lock {
    /// The data of a MOVE that the directory may yet deny. Nobody is inside, and nothing else is in the copy: whoever sends
    /// them has heard from all who had one.
    pub(super) fn on_data<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        message: &LockMessage,
    ) {
        let transfer = Transfer::of(&message.packet);
        let waits = !self.holds() && self.copy.is_none() && transfer.term >= self.fence;
        let is_newer = self.arrived.is_none_or(|there| transfer.is_after(there));
        // Of a MOVE that is not over: only a late copy of what came before it.
        let is_free = self.moving.is_none_or(|moving| moving.packet.term.next() < transfer.term);
        match message.data.filter(|_| waits && is_newer && is_free) {
            Some(data) => {
                self.moving = None;
                self.cut = None;
                self.take_room(cx);
                cx.store.fill(self.at, data);
                self.arrived = Some(transfer);
            }
            None => cx.counters.drop(LockDrop::Late),
        }
        self.follow_verdict(cx);
    }

    /// True if the data of what the directory has approved are in this node's copy by now; otherwise that waits for them.
    pub(super) fn takes_data<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        message: &LockMessage,
    ) -> bool {
        let transfer = Transfer::of(&message.packet);
        if let Some(data) = message.data {
            self.take_room(cx);
            cx.store.fill(self.at, data);
            return true;
        }
        let same = |there: Transfer| {
            there == transfer || there.term == transfer.term && !cx.rules.holds(Rule::DataAreOfTheirMove)
        };
        if self.len == 0 || self.arrived.is_some_and(same) || !cx.rules.holds(Rule::VerdictsAwaitData) {
            self.take_room(cx);
            return true;
        }
        self.verdict = Some(message.packet);
        false
    }

    /// The verdict of a MOVE whose data are not wanted, or not any more: they need no capacity.
    pub(super) fn leaves_data<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, term: Term) {
        if self.arrived.take_if(|there| there.term <= term).is_some() {
            self.leave_room(cx);
        }
    }

    /// If a verdict waits, and its data are there, or are wanted no more, it is followed.
    pub(super) fn follow_verdict<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        // Asked after every packet, and nearly always so.
        if self.arrived.is_none() && self.verdict.is_none() {
            return;
        }
        self.leaves_data(cx, self.fence.before());
        let (arrived, fence, holds) = (self.arrived, self.fence, self.holds());
        let follows = |packet: &mut LockPacket| {
            let transfer = Transfer::of(packet);
            arrived == Some(transfer) || transfer.term < fence || holds
        };
        let Some(packet) = self.verdict.take_if(follows) else { return };
        let message = LockMessage { packet, data: None };
        match packet.kind {
            LockKind::Hand => self.on_hand(cx, &message),
            _ => self.on_granted(cx, &message),
        }
    }
}
