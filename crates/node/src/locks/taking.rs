//! A lock comes to this node: a copy to read, or the right to write with the queue.

use alloc::collections::VecDeque;

use wire::{Copyset, LockEnd, LockKind, LockPacket, Mode, Rule, Rules, Term, WaitList};

use super::record::{Again, Copy, Ending, Holding, Lock, Waiter};
use super::store::LockStore;
use super::{Context, LockDrop, LockMessage};

impl Lock {
    /// A copy to read. If a writer waits for its end, it says so.
    pub(super) fn on_granted<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        message: &LockMessage,
    ) {
        let packet = &message.packet;
        let (term, mover) = (packet.term, packet.node);
        // What a home serves names no readers.
        let served = packet.nodes.is_empty();
        if mover == cx.config.id && !served {
            // This node's own MOVE, approved: it keeps a copy.
            if self.is_moving_of(term.before()) {
                self.depart(cx);
                self.advance(cx);
            }
            return;
        }
        let from_home = served || packet.len == 0;
        let is_late = term < self.fence && cx.rules.holds(Rule::EndedCopiesAreRefused) || self.holds();
        let is_there = self.copy.is_some_and(|copy| copy.term == term);
        let wanted = self.request.is_some_and(|request| request.mode == Mode::Read);
        if !is_there && !is_late && wanted && !self.takes_data(cx, message) {
            return;
        }
        if mover != cx.config.id {
            self.say_received(cx, packet);
        }
        if is_there {
            cx.counters.drop(LockDrop::Late);
            if self.request.is_some_and(|request| request.mode == Mode::Read) {
                self.request = None;
                self.advance(cx);
            }
            return;
        }
        if is_late {
            // The writer that waits for its end may not have heard.
            if let Some(next) = packet.next
                && term < self.fence
            {
                self.say_ended(cx, next, term);
            }
            cx.counters.drop(LockDrop::Late);
            self.leaves_data(cx, term);
            return self.ask_again(cx);
        }
        if !wanted {
            match packet.next {
                Some(next) => {
                    self.fence = self.fence.max(term.next());
                    self.say_ended(cx, next, term);
                }
                None => cx.counters.drop(LockDrop::Late),
            }
            self.leaves_data(cx, term);
            return self.ask_again(cx);
        }
        self.settle(cx);
        self.settle_reclaims(cx, term);
        self.request = None;
        self.copy = Some(Copy { term, at_home: from_home });
        // Those that waited to read are let in before the copy ends.
        while self.threads.front().is_some_and(|thread| thread.mode == Mode::Read) {
            let thread = self.threads.pop_front().expect("there is one");
            cx.store.admit(self.at, Mode::Read);
            cx.out.push(super::LockEffect::Entered(thread.ticket));
        }
        self.ending = packet.next.map(|to| Ending { to, term });
        self.end_if_left(cx);
        self.advance(cx);
    }

    /// What came cannot be taken, and it may be all that comes: this node stands in a queue once, so a late copy of an
    /// earlier request may have stood there for the one that counts.
    pub(super) fn ask_again<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let Some(request) = self.request.as_mut().filter(|_| cx.rules.holds(Rule::RefusedReadersAskAgain))
        else {
            return;
        };
        request.again = Again::first(cx);
        self.send_request(cx);
    }

    /// What came before has arrived where it should, or nobody would have sent this.
    fn settle<S, R>(&mut self, cx: &mut Context<'_, S, R>) {
        self.moving = None;
        self.cut = None;
        self.arrived = None;
        if let Some(verdict) = self.verdict.take() {
            // Its data are not needed any more.
            self.say_received(cx, &verdict);
        }
    }

    /// Whoever moved the lock need not send it again.
    fn say_received<S, R>(&self, cx: &mut Context<'_, S, R>, packet: &LockPacket) {
        let (term, to) = (packet.term, LockEnd::Agent(packet.node));
        cx.send(LockPacket { term, to, ..self.packet(cx, LockKind::Received) }, None);
    }

    /// The home lends the lock for writing: nobody had it, but for readers.
    pub(super) fn on_lent<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        message: &LockMessage,
    ) {
        let packet = &message.packet;
        if let Some(holding) = &mut self.holding
            && holding.term == packet.term
        {
            if holding.lacks_data
                && let Some(data) = message.data
            {
                holding.lacks_data = false;
                // It was asked for the data only.
                self.request = None;
                cx.store.fill(self.at, data);
                self.serve(cx);
            }
            return;
        }
        if packet.term < self.fence && cx.rules.holds(Rule::OldTenuresAreRefused) {
            return cx.counters.drop(LockDrop::Late);
        }
        if self.holds() && cx.rules.holds(Rule::LaterTermsApprove) {
            // Nobody else has what is here.
            return cx.counters.drop(LockDrop::Nonsense);
        }
        self.settle(cx);
        let had_copy = self.copy.is_some();
        self.begin(cx, packet.term, packet.nodes, false);
        match message.data {
            // Its own threads may be reading the very same data.
            Some(_) if had_copy => {}
            Some(data) => cx.store.fill(self.at, data),
            None => {}
        }
        if !had_copy && message.data.is_none() && self.len > 0 {
            // A late copy of a request had it lent, and this node's copy has ended since.
            self.holding.as_mut().expect("it has begun").lacks_data = true;
            self.expect(cx, Mode::Write, false, None);
            self.send_request(cx);
        }
        self.serve(cx);
    }

    /// The holder hands the lock over, with data and queue.
    pub(super) fn on_hand<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        message: &LockMessage,
    ) {
        let packet = &message.packet;
        if packet.node == cx.config.id {
            // Its own: after readers elsewhere it goes on here.
            if self.is_moving_of(packet.term.before()) {
                self.depart(cx);
                self.advance(cx);
            }
            return;
        }
        if packet.term < self.fence && cx.rules.holds(Rule::OldTenuresAreRefused) {
            self.say_received(cx, packet);
            return cx.counters.drop(LockDrop::Late);
        }
        if self.holds() && cx.rules.holds(Rule::LaterTermsApprove) {
            self.say_received(cx, packet);
            return cx.counters.drop(LockDrop::Nonsense);
        }
        if !self.takes_data(cx, message) {
            return;
        }
        self.say_received(cx, packet);
        self.settle(cx);
        self.copy = None;
        self.ending = None;
        self.begin_by_hand(cx, packet);
        self.serve(cx);
    }

    /// A term with a queue begins.
    pub(super) fn begin_by_hand<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        self.begin(cx, packet.term, packet.nodes, true);
        if packet.queue.is_empty() {
            // Threads of this node, and behind them whoever was sent here before the lock came: so they stand already.
            return;
        }
        let me = cx.config.id;
        let holding = self.holding.as_mut().expect("it has begun");
        // First the thread that this node stood in the queue for; the others where its number comes once more, or last.
        let is_own = |waiter: &Waiter| matches!(waiter, Waiter::Local(_));
        let (mut own, sent): (VecDeque<Waiter>, VecDeque<Waiter>) =
            core::mem::take(&mut holding.queue).into_iter().partition(is_own);
        holding.queue.extend(own.pop_front());
        for (node, mode) in packet.queue.iter() {
            if node == me {
                holding.queue.append(&mut own);
            } else {
                holding.queue.push_back(Waiter::Remote(node, mode));
            }
        }
        holding.queue.append(&mut own);
        // Whoever was sent here before the queue came.
        let handed = packet.queue.nodes();
        let is_new = |waiter: &Waiter| matches!(waiter, Waiter::Remote(node, _) if !handed.contains(*node));
        holding.queue.extend(sent.into_iter().filter(is_new));
        holding.known = holding.known.union(handed);
    }

    fn begin<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        term: Term,
        readers: Copyset,
        by_hand: bool,
    ) {
        self.take_room(cx);
        self.refuse_other_length(cx);
        self.settle_reclaims(cx, term);
        self.fence = self.fence.max(term.next());
        self.request = None;
        self.copy = None;
        self.ending = None;
        let early = self.early.take().filter(|early| early.term == term);
        let ended = early
            .filter(|_| cx.rules.holds(Rule::EarlyAnswersAreKept))
            .map_or(Copyset::EMPTY, |early| early.ended);
        let sent = early.map_or(WaitList::EMPTY, |early| early.queue);
        let mut queue = core::mem::take(&mut self.spare);
        queue.extend(self.threads.drain(..).map(Waiter::Local));
        queue.extend(sent.iter().map(|(node, mode)| Waiter::Remote(node, mode)));
        // Whoever is inside to read is waited for like everybody else.
        let _ = cx.store.close(self.at);
        self.holding = Some(Holding {
            term,
            awaiting: readers.without_all(ended).without(cx.config.id),
            by_hand,
            lacks_data: false,
            queue,
            known: sent.nodes(),
            preference: cx.config.preference,
            again: Again::first(cx),
        });
    }
}
