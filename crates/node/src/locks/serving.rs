//! Who is next, where a lock may be written: a thread of this node, or another node.

use wire::{Copyset, LockEnd, LockKind, LockPacket, Mode, NodeId, Rule, Rules, WaitList};

use super::record::{Again, Lock, Moving, Thread, Waiter};
use super::store::{LockStore, Users};
use super::{Context, LockDrop, LockEffect};
use crate::coherence::config::Retransmission;

impl Lock {
    /// Lets in whoever is next, or lets the lock go on.
    pub(super) fn serve<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let indeterminate = self.is_indeterminate(cx.rules);
        if self.moving.is_some_and(|moving| !moving.approved) || self.freeing.is_some() || indeterminate {
            return;
        }
        loop {
            let Some(holding) = self
                .holding
                .as_mut()
                .filter(|holding| holding.is_complete() || !cx.rules.holds(Rule::WriterAwaitsReaders))
            else {
                return;
            };
            let Some(next) = holding.queue.front().copied() else {
                return self.keep(cx, Mode::Write);
            };
            let users = cx.store.close(self.at);
            match next {
                Waiter::Local(thread) if thread.mode == Mode::Read && !users.writer || users.is_none() => {
                    self.admit_first(cx);
                }
                Waiter::Local(_) => return,
                // What this node asked for itself, in a late copy.
                Waiter::Remote(node, _) if node == cx.config.id => {
                    holding.queue.pop_front();
                }
                // The home takes a MOVE only when it has heard from everybody.
                Waiter::Remote(..) if self.report.is_some() => return,
                Waiter::Remote(_, mode) => {
                    let stays = if mode == Mode::Read { users.writer } else { !users.is_none() };
                    if stays && cx.rules.holds(Rule::HolderLeavesFirst) {
                        return;
                    }
                    if !self.prefer_own(cx, users) {
                        return self.move_on(cx, users);
                    }
                }
            }
        }
    }

    /// Lets the first thread of the queue in.
    fn admit_first<S: LockStore, R>(&mut self, cx: &mut Context<'_, S, R>) {
        let holding = self.holding.as_mut().expect("this node holds the lock");
        let Some(Waiter::Local(thread)) = holding.queue.pop_front() else {
            unreachable!("a thread is first")
        };
        cx.store.admit(self.at, thread.mode);
        cx.out.push(LockEffect::Entered(thread.ticket));
    }

    /// Puts a thread of this node before whoever is first, if that is allowed so often.
    fn prefer_own<S, R>(&mut self, _: &Context<'_, S, R>, users: Users) -> bool {
        let holding = self.holding.as_mut().expect("this node holds the lock");
        let own = holding.queue.iter().position(|waiter| matches!(waiter, Waiter::Local(_)));
        let Some(at) = own.filter(|_| users.is_none() && holding.preference > 0) else { return false };
        holding.preference -= 1;
        let thread = holding.queue.remove(at).expect("it is there");
        holding.queue.push_front(thread);
        true
    }

    /// Asks the directory to let the lock go on: to the readers at the head of the queue, and to the first writer behind
    /// them, with the rest.
    fn move_on<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, users: Users) {
        let me = cx.config.id;
        let holding = self.holding.as_mut().expect("this node holds the lock");
        let (mut readers, mut next, mut rest) = (Copyset::EMPTY, None, WaitList::EMPTY);
        let mut own_readers = users.readers > 0;
        // Until the MOVE is approved, everybody may have to wait here on, but for those that are let in now.
        for _ in 0..holding.queue.len() {
            let waiter = holding.queue.pop_front().expect("so many wait");
            let served = match waiter {
                Waiter::Local(Thread { ticket, mode: Mode::Read, .. }) if next.is_none() => {
                    cx.store.admit(self.at, Mode::Read);
                    cx.out.push(LockEffect::Entered(ticket));
                    own_readers = true;
                    true
                }
                Waiter::Remote(node, Mode::Read) if next.is_none() => {
                    readers = readers.with(node);
                    false
                }
                Waiter::Local(_) if next.is_none() => {
                    next = Some(me);
                    false
                }
                Waiter::Remote(node, _) if next.is_none() => {
                    next = Some(node);
                    false
                }
                Waiter::Local(Thread { mode, .. }) => {
                    if !rest.nodes().contains(me) {
                        rest.push(me, mode);
                    }
                    false
                }
                Waiter::Remote(node, mode) => {
                    if !rest.nodes().contains(node) {
                        rest.push(node, mode);
                    }
                    false
                }
            };
            if !served {
                holding.queue.push_back(waiter);
            }
        }
        // A copy stays here if nobody ends it, or if it is being read.
        if next.is_none() || own_readers && next != Some(me) {
            readers = readers.with(me);
        }
        if !cx.rules.holds(Rule::QueueGoesAlong) {
            rest = WaitList::EMPTY;
        }
        let readers = if next == Some(me) { readers.without(me) } else { readers };
        self.send_move(cx, readers, next, rest);
    }

    /// Sends a MOVE of everything that this term knows.
    pub(super) fn send_move<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        readers: Copyset,
        next: Option<NodeId>,
        rest: WaitList,
    ) {
        let me = cx.config.id;
        let holding = self.holding.as_ref().expect("this node holds the lock");
        let packet = LockPacket {
            mode: Mode::Write,
            term: holding.term,
            nodes: readers,
            waiting: holding.known,
            next,
            queue: rest,
            to: LockEnd::Switch,
            ..self.packet(cx, LockKind::Move)
        };
        let unreceived = next.map_or(readers, |next| readers.with(next)).without(me);
        self.moving = Some(Moving {
            packet,
            approved: false,
            unreceived,
            home_unreceived: next.is_none() && self.len > 0 && cx.rules.holds(Rule::DataGoesHome),
            again: Again::first(cx),
        });
        cx.counters.moves += 1;
        if !cx.rules.holds(Rule::GateClosesFirst) {
            cx.store.open(self.at, Mode::Write);
        }
        if let Some(data) = self.data(cx) {
            let term = packet.term.next();
            let header = LockPacket {
                mode: Mode::Read,
                term,
                waiting: packet.waiting,
                ..self.packet(cx, LockKind::Data)
            };
            for to in unreceived.iter() {
                cx.send(LockPacket { to: LockEnd::Agent(to), ..header }, Some(data));
            }
        }
        cx.send(packet, None);
    }

    /// The data that travel with this lock.
    pub(super) fn data<S: LockStore, R>(&self, cx: &Context<'_, S, R>) -> Option<crate::store::DataRef> {
        (self.len > 0).then(|| cx.store.contents(self.at))
    }

    /// The directory sends somebody to this node's queue.
    pub(super) fn on_forward<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        let LockPacket { node, mode, term, .. } = *packet;
        if let Some(holding) = self.holding.as_mut()
            && (holding.term == term || !cx.rules.holds(Rule::ForwardsAreOfThisTerm))
        {
            if holding.known.contains(node) {
                // It may want more by now than it did. What is on its way to it stays as it is.
                let waits = |waiter: &&mut Waiter| matches!(waiter, Waiter::Remote(who, _) if *who == node);
                if mode == Mode::Write
                    && self.moving.is_none()
                    && let Some(waiter) = holding.queue.iter_mut().find(waits)
                {
                    *waiter = Waiter::Remote(node, mode);
                }
                return;
            }
            holding.known = holding.known.with(node);
            holding.queue.push_back(Waiter::Remote(node, mode));
            self.serve(cx);
            let waits = self.moving.is_none();
            if packet.once && waits && self.holds() {
                self.say_busy(cx, node);
            }
            return;
        }
        // It was sent while the MOVE was between its passes, and nobody else knows of it.
        match self.last {
            Some((last, known)) if last == term && !known.contains(node) => self.send_on(cx, node, mode),
            _ => self.keep_early(cx, packet),
        }
    }

    /// The directory has sent somebody to a queue that is on its way here.
    fn keep_early<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &LockPacket) {
        let LockPacket { node, mode, term, .. } = *packet;
        let early = if cx.rules.holds(Rule::EarlyForwardsAreKept) { self.early_for(term) } else { None };
        let Some(early) = early.filter(|_| node != cx.config.id) else {
            return cx.counters.drop(LockDrop::Late);
        };
        let asks_again = early.queue.nodes().contains(node);
        if !asks_again {
            early.queue.push(node, mode);
        }
        if packet.once {
            self.say_busy(cx, node);
        }
        // A late copy of a request took the lock, which nobody here wants any more: if what that brought was lost, only this
        // says so, and nothing else brings it again.
        if asks_again && self.request.is_none() && cx.config.retransmission != Retransmission::Never {
            cx.counters.repeated += 1;
            self.send_on(cx, cx.config.id, Mode::Write);
        }
    }

    /// Whoever did not want to wait has to.
    fn say_busy<S, R>(&self, cx: &mut Context<'_, S, R>, node: NodeId) {
        cx.send(LockPacket { to: LockEnd::Agent(node), ..self.packet(cx, LockKind::Busy) }, None);
    }

    /// Sends somebody who waited here back to the directory, which knows who holds it now.
    pub(super) fn send_on<S, R>(&self, cx: &mut Context<'_, S, R>, node: NodeId, mode: Mode) {
        cx.send(LockPacket { mode, node, ..self.packet(cx, LockKind::Acquire) }, None);
    }
}
