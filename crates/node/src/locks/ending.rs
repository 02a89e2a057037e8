//! A copy ends, because somebody wants to write; the writer waits for all of them.

use wire::{LockEnd, LockKind, LockPacket, NodeId, Rule, Rules, Term};

use super::record::{Ending, Lock, Moving};
use super::store::LockStore;
use super::{Context, LockDrop};

impl Lock {
    /// A writer has taken the lock: this node's copy of before ends.
    pub(super) fn on_invalidate<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        let (term, Some(writer)) = (packet.term, packet.next) else {
            return cx.counters.drop(LockDrop::Nonsense);
        };
        if !cx.rules.holds(Rule::PassedOnStays) {
            let is_over = |moving: &mut Moving| moving.packet.term.next() < term && !moving.home_unreceived;
            self.moving.take_if(is_over);
            self.leave_room(cx);
        }
        match self.copy {
            // One that came with its end: its answer follows.
            Some(copy) if copy.term >= term => {}
            Some(_) => {
                self.ending = Some(Ending { to: writer, term });
                let users = cx.store.close(self.at);
                if packet.once && !users.is_none() {
                    let busy = self.packet(cx, LockKind::Busy);
                    cx.send(LockPacket { to: LockEnd::Agent(writer), ..busy }, None);
                }
                self.end_if_left(cx);
            }
            None if self.holds() => cx.counters.drop(LockDrop::Late),
            None => {
                // A copy that is still on its way is not taken.
                self.fence = self.fence.max(term.next());
                self.say_ended(cx, writer, term);
            }
        }
        self.advance(cx);
    }

    /// If a copy is to end, and its readers have left, it does.
    pub(super) fn end_if_left<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let Some(Ending { to, term }) = self.ending else { return };
        if !cx.store.close(self.at).is_none() && cx.rules.holds(Rule::ReadersLeaveFirst) {
            return;
        }
        self.ending = None;
        self.copy = None;
        self.fence = self.fence.max(term.next());
        cx.counters.ended += 1;
        self.say_ended(cx, to, term);
        self.leave_room(cx);
    }

    pub(super) fn say_ended<S, R>(&self, cx: &mut Context<'_, S, R>, writer: NodeId, term: Term) {
        let ended = LockPacket { term, ..self.packet(cx, LockKind::Invalidated) };
        cx.send(LockPacket { to: LockEnd::Agent(writer), ..ended }, None);
    }

    /// A reader's copy of before this term is gone.
    pub(super) fn on_invalidated<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        let (term, reader) = (packet.term, packet.node);
        // If this node's MOVE was to it, it has what it got: nothing is sent again, least of all what is being written by then.
        if let Some(moving) = self.moving.as_mut().filter(|moving| moving.packet.term.next() == term) {
            moving.unreceived = moving.unreceived.without(reader);
            if moving.approved && moving.is_received() {
                self.moving = None;
            }
        }
        match &mut self.holding {
            Some(holding) if holding.term == term => {
                holding.awaiting = holding.awaiting.without(reader);
                self.serve(cx);
            }
            _ => match self.early_for(term) {
                Some(early) => early.ended = early.ended.with(reader),
                None => cx.counters.drop(LockDrop::Late),
            },
        }
    }

    /// A writer has no answer of this node.
    pub(super) fn on_poll<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        let Some(writer) = packet.next else { return cx.counters.drop(LockDrop::Nonsense) };
        if self.copy.is_none() && !self.holds() && self.fence > packet.term {
            self.say_ended(cx, writer, packet.term);
        }
    }
}
