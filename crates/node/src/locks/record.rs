//! What an agent knows of a lock.

use alloc::collections::VecDeque;

use wire::{Copyset, GlobalAddr, LockEnd, LockKind, LockPacket, Mode, Nanos, NodeId, Rules, Term, WaitList};

use super::store::{Full, LockStore};
use super::transfer::Transfer;
use super::{Context, LockEffect, Ticket};
use crate::coherence::config::Retransmission;

/// A thread of this node that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Thread {
    pub(super) ticket: Ticket,
    pub(super) mode: Mode,
    pub(super) once: bool,
    /// It knows that the data are lost, and wants the lock all the same; and only if they are.
    pub(super) reclaims: bool,
    /// The number of the last request that was asked before it came: what becomes of that says nothing to it.
    pub(super) after: u32,
}

/// Whoever waits where a node holds the lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Waiter {
    Local(Thread),
    Remote(NodeId, Mode),
}

/// What this node has asked the directory for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Request {
    /// A refusal names it: one of what was asked before is none of this.
    pub(super) number: u32,
    pub(super) mode: Mode,
    pub(super) once: bool,
    /// Somebody has the lock, as was answered to a request that wants it `once`.
    pub(super) busy: bool,
    /// Asked of the home, which has lost the lock: for a thread that knows, and names the loss. `NONE`: not known yet.
    pub(super) reclaims: Option<Term>,
    pub(super) again: Again,
}

/// When something is sent again, and how often it was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Again {
    pub(super) at: Nanos,
    pub(super) repeats: u8,
}

impl Again {
    /// Not before somebody says so.
    pub(super) const NEVER: Self = Self { at: Nanos::MAX, repeats: 0 };

    /// Waits double up to eight times the shortest: a lock may be held for long, and nothing be lost.
    pub(super) fn after<S, R>(cx: &Context<'_, S, R>, repeats: u8) -> Self {
        let at = match cx.config.retransmission {
            Retransmission::Never => Nanos::MAX,
            Retransmission::AfterRoundTrips { floor, most } => {
                cx.now + Nanos(floor.0 << repeats.min(3)).min(most)
            }
        };
        Self { at, repeats }
    }

    pub(super) fn first<S, R>(cx: &Context<'_, S, R>) -> Self {
        Self::after(cx, 0)
    }

    /// If it is due: counts, and sets the next time.
    pub(super) fn is_due<S, R>(&mut self, cx: &mut Context<'_, S, R>) -> bool {
        if self.at > cx.now {
            return false;
        }
        *self = Self::after(cx, self.repeats.saturating_add(1));
        cx.counters.repeated += 1;
        true
    }
}

/// This node may write, or will, and keeps the queue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Holding {
    pub(super) term: Term,
    /// Readers that have not said yet that their copies are gone.
    pub(super) awaiting: Copyset,
    /// They were told by whoever had the lock before, not by the directory.
    pub(super) by_hand: bool,
    /// The data have not come.
    pub(super) lacks_data: bool,
    pub(super) queue: VecDeque<Waiter>,
    /// Nodes that the directory has sent here.
    pub(super) known: Copyset,
    /// Threads of this node that may still go first.
    pub(super) preference: u32,
    pub(super) again: Again,
}

impl Holding {
    /// True if threads may write.
    pub(super) const fn is_complete(&self) -> bool {
        self.awaiting.is_empty() && !self.lacks_data
    }

    /// Threads of this node in the queue.
    pub(super) fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.queue.iter().filter_map(|waiter| match waiter {
            Waiter::Local(thread) => Some(thread),
            Waiter::Remote(..) => None,
        })
    }

    /// The same, for whoever gives requests other numbers.
    pub(super) fn threads_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.queue.iter_mut().filter_map(|waiter| match waiter {
            Waiter::Local(thread) => Some(thread),
            Waiter::Remote(..) => None,
        })
    }
}

/// The lock is on its way to others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Moving {
    /// What was asked of the directory.
    pub(super) packet: LockPacket,
    pub(super) approved: bool,
    /// Nodes that have not said that they received it.
    pub(super) unreceived: Copyset,
    /// Nor has the home.
    pub(super) home_unreceived: bool,
    pub(super) again: Again,
}

impl Moving {
    pub(super) const fn is_received(&self) -> bool {
        self.unreceived.is_empty() && !self.home_unreceived
    }
}

/// The end of a lock, asked of its home.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Freeing {
    pub(super) ticket: Ticket,
    /// This node's term.
    pub(super) term: Term,
    /// It was reclaimed, and shall be lost again.
    pub(super) lost: bool,
    pub(super) again: Again,
}

/// A lock was on its way when a new epoch began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Cut {
    /// Which term it was to begin.
    pub(super) term: Term,
    /// Whose.
    pub(super) next: Option<NodeId>,
}

/// A report to the lock's home.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct LockReport {
    pub(super) packet: LockPacket,
    /// With the data.
    pub(super) with_data: bool,
    pub(super) again: Again,
}

/// What has come for a term that has not begun.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Early {
    pub(super) term: Term,
    /// Readers that have said that their copies are gone.
    pub(super) ended: Copyset,
    /// Nodes that the directory has sent to stand in its queue.
    pub(super) queue: WaitList,
}

/// A copy that ends as soon as its readers have left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Ending {
    /// Who wants to write.
    pub(super) to: NodeId,
    /// In which term.
    pub(super) term: Term,
}

/// A copy that threads may read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Copy {
    /// Of these data.
    pub(super) term: Term,
    /// The home has them, too.
    pub(super) at_home: bool,
}

/// What this node knows of a lock.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Lock {
    pub(super) at: GlobalAddr,
    pub(super) len: u32,
    /// The length that the threads name that wait, where it is another one: of the region that is there now, or a wrong one.
    pub(super) next_len: Option<u32>,
    /// The store has capacity for it.
    pub(super) has_capacity: bool,
    /// It waits for capacity.
    pub(super) wants_capacity: bool,
    /// What comes of an earlier term than this is refused.
    pub(super) fence: Term,
    /// Locks that were here have ended, and the terms of the next one begin no earlier. A request that says so was asked since.
    pub(super) since: Term,
    pub(super) copy: Option<Copy>,
    pub(super) holding: Option<Holding>,
    pub(super) request: Option<Request>,
    pub(super) moving: Option<Moving>,
    pub(super) ending: Option<Ending>,
    /// Data that are in the copy already, though the directory has not said that they count.
    pub(super) arrived: Option<Transfer>,
    /// What it has said of data that have not come.
    pub(super) verdict: Option<LockPacket>,
    /// Threads that wait, while this node does not hold the lock.
    pub(super) threads: VecDeque<Thread>,
    /// What has come for a term that has not begun here.
    pub(super) early: Option<Early>,
    /// The last term, and of whom it knew.
    pub(super) last: Option<(Term, Copyset)>,
    /// What was said of it to its home in a new epoch, until the home has answered.
    pub(super) report: Option<LockReport>,
    /// The MOVE that a new epoch has cut short, with the term that it was to begin: only here are data that were on their
    /// way. Until the home has answered.
    pub(super) cut: Option<Cut>,
    /// A thread that is in it to write wants it to be no more.
    pub(super) freeing: Option<Freeing>,
    /// The number of the last request.
    pub(super) asked: u32,
    /// What was the queue of the last term, empty: the next one need not allocate.
    pub(super) spare: VecDeque<Waiter>,
    /// When it is in the list of what is due.
    pub(super) scheduled: Nanos,
}

impl Lock {
    pub(super) const fn new(at: GlobalAddr, len: u32) -> Self {
        Self {
            at,
            len,
            next_len: None,
            has_capacity: false,
            wants_capacity: false,
            fence: Term::NONE,
            since: Term::NONE,
            copy: None,
            holding: None,
            request: None,
            moving: None,
            ending: None,
            arrived: None,
            verdict: None,
            threads: VecDeque::new(),
            early: None,
            last: None,
            report: None,
            cut: None,
            freeing: None,
            asked: 0,
            spare: VecDeque::new(),
            scheduled: Nanos::MAX,
        }
    }

    /// What has come for this term, which has not begun; `None` if nothing of it counts any more.
    pub(super) fn early_for(&mut self, term: Term) -> Option<&mut Early> {
        if term < self.fence || self.early.is_some_and(|early| early.term > term) {
            return None;
        }
        let none = Early { term, ended: Copyset::EMPTY, queue: WaitList::EMPTY };
        let early = self.early.get_or_insert(none);
        if early.term < term {
            *early = none;
        }
        Some(early)
    }

    /// When something has to be sent again.
    pub(super) fn due(&self) -> Nanos {
        let request = self.request.map(|request| request.again.at);
        let holding = self
            .holding
            .as_ref()
            .filter(|holding| !holding.awaiting.is_empty())
            .map(|holding| holding.again.at);
        let moving = self.moving.map(|moving| moving.again.at);
        let report = self.report.map(|report| report.again.at);
        let freeing = self.freeing.map(|freeing| freeing.again.at);
        request
            .into_iter()
            .chain(holding)
            .chain(moving)
            .chain(report)
            .chain(freeing)
            .min()
            .unwrap_or(Nanos::MAX)
    }

    /// True if this node has nothing of it, and wants nothing.
    pub(super) fn is_vacant(&self) -> bool {
        !self.has_capacity && self.request.is_none() && self.threads.is_empty()
    }

    /// True if this node has it only for those that it was passed on to, and wants nothing.
    pub(super) fn is_passed_on(&self) -> bool {
        let has_more =
            self.copy.is_some() || self.holds() || self.arrived.is_some() || self.request.is_some();
        (self.moving.is_some() || self.cut.is_some()) && !has_more && self.threads.is_empty()
    }

    /// A packet about this lock.
    pub(super) fn packet<S, R>(&self, cx: &Context<'_, S, R>, kind: LockKind) -> LockPacket {
        LockPacket { from: cx.me(), ..LockPacket::new(kind, self.at, self.len, cx.config.id) }
    }

    /// The lock is still this node's: its MOVE, if there is one, may yet be denied.
    pub(super) fn holds(&self) -> bool {
        self.holding.is_some()
    }

    /// Goes on with whatever is next.
    pub(super) fn advance<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        if self.holds() {
            return self.serve(cx);
        }
        if self.copy.is_some() && self.ending.is_none() {
            while self.threads.front().is_some_and(|thread| thread.mode == Mode::Read) {
                let thread = self.threads.pop_front().expect("there is one");
                cx.store.admit(self.at, Mode::Read);
                cx.out.push(LockEffect::Entered(thread.ticket));
            }
            if self.threads.is_empty() {
                return self.keep(cx, Mode::Read);
            }
            // A writer is next: readers that come now stand behind it.
            let _ = cx.store.close(self.at);
        }
        // Of a lock whose home was lost, threads may still be inside: the next one of that name waits for them.
        if self.copy.is_none() && self.has_capacity && !cx.store.close(self.at).is_none() {
            return;
        }
        if self.next_len.is_some() {
            self.leave_room(cx);
            if self.has_capacity {
                // Whoever reads what this node has passed on may still be on the way to it.
                return;
            }
            self.len = self.next_len.take().expect("it was there");
        }
        if let Some(thread) = self.threads.front().copied() {
            self.ask(cx, &thread);
        }
    }

    /// Asks the directory, or the home of a lost lock, if nothing is asked already.
    fn ask<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, thread: &Thread) {
        if self.request.is_some() || !self.make_space(cx) {
            return;
        }
        self.expect(cx, thread.mode, thread.once, thread.reclaims.then_some(Term::NONE));
        self.send_request(cx);
    }

    /// From now on something is asked for.
    pub(super) fn expect<S, R>(
        &mut self,
        cx: &Context<'_, S, R>,
        mode: Mode,
        once: bool,
        reclaims: Option<Term>,
    ) {
        self.asked = self.asked.wrapping_add(1).max(1);
        let (number, again) = (self.asked, Again::first(cx));
        self.request = Some(Request { number, mode, once, busy: false, reclaims, again });
    }

    pub(super) fn send_request<S, R>(&self, cx: &mut Context<'_, S, R>) {
        let Some(Request { number, mode, once, reclaims, .. }) = self.request else { return };
        cx.counters.requests += 1;
        if let Some(term) = reclaims {
            let reclaim = LockPacket { mode, term, number, ..self.packet(cx, LockKind::Reclaim) };
            return cx.send(LockPacket { to: LockEnd::Home(self.at.home()), ..reclaim }, None);
        }
        let has_copy = self.copy.is_some() && self.ending.is_none();
        let acquire = LockPacket { mode, once, has_copy, number, ..self.packet(cx, LockKind::Acquire) };
        cx.send(LockPacket { term: self.since, ..acquire }, None);
    }

    /// True if there is capacity for a copy.
    fn make_space<S: LockStore, R>(&mut self, cx: &mut Context<'_, S, R>) -> bool {
        if !self.has_capacity {
            match cx.store.reserve(self.at, self.len, false) {
                Ok(()) => self.has_capacity = true,
                Err(Full::Evict(victim)) => cx.victim = Some(victim),
                Err(Full::Busy) => {}
            }
        }
        self.wants_capacity = !self.has_capacity;
        self.has_capacity
    }

    /// Capacity for what has come, asked or not.
    pub(super) fn take_room<S: LockStore, R>(&mut self, cx: &mut Context<'_, S, R>) {
        if !self.has_capacity {
            cx.store.reserve(self.at, self.len, true).expect("there is room for what has come");
            self.has_capacity = true;
        }
        self.wants_capacity = false;
    }

    /// Gives the capacity back, if nothing needs it any more.
    pub(super) fn leave_room<S: LockStore, R>(&mut self, cx: &mut Context<'_, S, R>) {
        let needed = self.copy.is_some() || self.holds() || self.request.is_some() || self.moving.is_some();
        let needed = needed || self.report.is_some() || self.cut.is_some() || self.arrived.is_some();
        // Of a lock whose home is gone, the last one out gives it back.
        if self.has_capacity && !needed && cx.store.close(self.at).is_none() {
            cx.store.release(self.at);
            self.has_capacity = false;
            cx.freed_room = true;
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        let queue =
            self.holding.as_ref().is_none_or(|holding| holding.is_complete() && holding.queue.is_empty());
        let nothing_asked = self.request.is_none() && self.moving.is_none() && self.ending.is_none();
        let nothing_asked =
            nothing_asked && self.report.is_none() && self.freeing.is_none() && self.verdict.is_none();
        queue && nothing_asked && self.threads.is_empty() && !self.wants_capacity
    }

    /// Asserts what must always hold.
    pub(super) fn invariants(&self) {
        assert!(
            self.threads.is_empty() || !self.holds(),
            "where a node holds the lock, its threads are in the queue: {self:?}"
        );
        assert!(self.copy.is_none() || self.has_capacity, "a copy has room: {self:?}");
        assert!(!self.holds() || self.has_capacity, "so has the holder: {self:?}");
        assert!(self.arrived.is_none() || self.has_capacity && !self.holds(), "so have data: {self:?}");
        assert!(self.ending.is_none() || self.copy.is_some(), "what ends is a copy: {self:?}");
        assert!(self.next_len.is_none() || !self.threads.is_empty(), "threads name lengths: {self:?}");
        if let Some(moving) = self.moving {
            assert!(moving.approved || self.holds(), "a MOVE that is not approved is of a term: {self:?}");
        }
        if let Some(holding) = &self.holding {
            assert!(holding.term < self.fence, "a term that has begun begins no more: {self:?}");
            let queued = holding.queue.iter().filter_map(|waiter| match waiter {
                Waiter::Remote(node, _) => Some(*node),
                Waiter::Local(_) => None,
            });
            assert!(queued.clone().all(|node| holding.known.contains(node)), "who waits is known: {self:?}");
        }
    }
}
