//! A lock on its way from this node to others: approved or denied by the directory, received by those who get it.

use wire::{Copyset, LockEnd, LockKind, LockPacket, Mode, Rule, Rules};

use super::record::{Copy, Ending, Lock, Moving, Waiter};
use super::store::LockStore;
use super::{Context, LockDrop};

impl Lock {
    /// Others wait, of whom this node did not know.
    pub(super) fn on_denied<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        let me = cx.config.id;
        let is_mine = |moving: &Moving| {
            // A late word about an earlier MOVE names another set that that knew of.
            !moving.approved
                && moving.packet.term == packet.term
                && (moving.packet.waiting == packet.nodes || !cx.rules.holds(Rule::DenialsNameTheirMove))
        };
        let mine = self.moving.as_ref().is_some_and(is_mine);
        let Some(holding) = self.holding.as_mut().filter(|_| mine) else {
            return cx.counters.drop(LockDrop::Late);
        };
        self.moving = None;
        cx.counters.denied += 1;
        if cx.rules.holds(Rule::DeniedAdopts) {
            // Whoever was sent here since has come after the directory looked.
            let waiting = packet.waiting.union(holding.known.without_all(packet.nodes));
            holding.queue.retain(|waiter| match waiter {
                Waiter::Remote(node, _) => waiting.contains(*node),
                Waiter::Local(_) => true,
            });
            for node in waiting.iter() {
                let queued = |waiter: &Waiter| matches!(waiter, Waiter::Remote(who, _) if *who == node);
                if node != me && !holding.queue.iter().any(queued) {
                    let mode = if packet.writers.contains(node) { Mode::Write } else { Mode::Read };
                    holding.queue.push_back(Waiter::Remote(node, mode));
                }
            }
            holding.known = waiting;
        }
        self.serve(cx);
    }

    /// The directory says that the term is over: only this node's MOVE can have ended it.
    pub(super) fn on_approved<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        if self.is_moving_of(packet.term) {
            // It says so to a MOVE that comes again: something of what the first brought about may be missing.
            let again = self.moving.is_some_and(|moving| moving.again.repeats > 0);
            self.depart(cx);
            if again {
                self.send_what_is_missing(cx);
            }
            self.advance(cx);
        } else {
            cx.counters.drop(LockDrop::Late);
        }
    }

    /// What belongs to a later term says that this node's MOVE has been approved, or that the lock that it frees is no more.
    /// True if it says so for the first time: then [`Lock::advance`] has to follow, when it has been handled.
    pub(super) fn learn<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) -> bool {
        let follows = matches!(
            packet.kind,
            LockKind::Forward
                | LockKind::Granted
                | LockKind::Lent
                | LockKind::Hand
                | LockKind::Data
                | LockKind::Invalidate
                | LockKind::Poll
                | LockKind::Received
                | LockKind::Refused
        );
        if follows && self.freeing.is_some_and(|it| it.term < packet.term) {
            // Of the next lock of this name: this one has ended.
            self.end(cx);
            return true;
        }
        let is_later = |moving: &Moving| !moving.approved && moving.packet.term < packet.term;
        let learned =
            follows && self.moving.as_ref().is_some_and(is_later) && cx.rules.holds(Rule::LaterTermsApprove);
        if learned {
            self.depart(cx);
        }
        learned
    }

    /// Somebody has what was for him.
    pub(super) fn on_received<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        if !self.is_moving_of(packet.term.before()) {
            return cx.counters.drop(LockDrop::Late);
        }
        self.depart(cx);
        if let Some(moving) = &mut self.moving {
            match packet.from {
                LockEnd::Home(_) => moving.home_unreceived = false,
                LockEnd::Agent(node) => moving.unreceived = moving.unreceived.without(node),
                LockEnd::Switch => {}
            }
            if let Some(copy) = &mut self.copy
                && copy.term == packet.term
                && !moving.home_unreceived
                && moving.packet.next.is_none()
            {
                copy.at_home = true;
            }
            if moving.is_received() {
                self.moving = None;
                self.leave_room(cx);
            }
        }
        self.advance(cx);
    }

    /// True if a MOVE that ends this term is in flight, or has been approved.
    pub(super) fn is_moving_of(&self, term: wire::Term) -> bool {
        self.moving.is_some_and(|moving| moving.packet.term == term)
    }

    /// The MOVE has been approved: this node does not hold the lock any more, or again.
    pub(super) fn depart<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let Some(moving) = self.moving.as_mut().filter(|moving| !moving.approved) else { return };
        moving.approved = true;
        if !cx.rules.holds(Rule::MovesAreKept) {
            moving.unreceived = Copyset::EMPTY;
            moving.home_unreceived = false;
        }
        let LockPacket { term, nodes, waiting, next, .. } = moving.packet;
        let (begins, done) = (term.next(), moving.is_received());
        let me = cx.config.id;
        let waits = moving.packet.queue.iter().find(|(node, _)| *node == me).map(|(_, mode)| mode);
        let own = (next == Some(me)).then_some(moving.packet);
        if moving.home_unreceived {
            self.write_back(cx);
        }
        let holding = self.holding.take().expect("a MOVE that is not approved is of a term");
        self.last = Some((holding.term, waiting));
        self.fence = self.fence.max(begins);
        let mut queue = holding.queue;
        for waiter in queue.drain(..) {
            match waiter {
                Waiter::Local(thread) => self.threads.push_back(thread),
                Waiter::Remote(node, _) if waiting.contains(node) => {}
                Waiter::Remote(node, mode) => self.send_on(cx, node, mode),
            }
        }
        self.spare = queue;
        self.copy = nodes.contains(me).then(|| {
            self.ending = next.map(|to| Ending { to, term: begins });
            Copy { term: begins, at_home: self.len == 0 }
        });
        if let Some(mode) = waits {
            self.expect(cx, mode, false, None);
        }
        if done {
            self.moving = None;
        }
        if let Some(packet) = own {
            self.begin_by_hand(cx, &LockPacket { term: begins, ..packet });
        }
        self.end_if_left(cx);
        self.leave_room(cx);
    }

    /// The home gets the data when the directory has approved the MOVE, which named no next writer.
    fn write_back<S: LockStore, R: Rules>(&self, cx: &mut Context<'_, S, R>) {
        let Some(moving) = self.moving else { return };
        let back = moving.packet.reply(LockKind::WriteBack, cx.me(), LockEnd::Home(self.at.home()));
        cx.send(LockPacket { term: moving.packet.term.next(), ..back }, self.data(cx));
    }

    /// Sends once more what was not received: the verdict, with the data.
    pub(super) fn send_what_is_missing<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let Some(moving) = self.moving.filter(|moving| moving.approved) else { return };
        let data = self.data(cx);
        switch::locks::pass_on(&moving.packet, cx.me(), |packet| {
            if packet.to.node().is_some_and(|node| moving.unreceived.contains(node)) {
                cx.send(packet, data);
            }
        });
        if moving.home_unreceived {
            self.write_back(cx);
        }
    }
}
