//! In an epoch: who has died, who has come, and the change to the next epoch.
//!
//! What must always hold: only a change makes a roster, and each gets a number of its own.

use alloc::vec::Vec;

use node::Placement;
use wire::{Copyset, Incarnation, Nanos, NodeId, SwitchEpoch};

use super::contact::Contact;
use super::{Change, Coordinator, Effect, End, NodeSlot, Phase};
use crate::message::Drain;
use crate::roster::{RosterEntry, Session};
use crate::timing::Timing;

impl NodeSlot {
    /// Why the incarnation in this slot is over, if it is. Each reason means that it has no lease: it was not heard for longer
    /// than one runs, or got none for so long, or gave it up, or its process is gone.
    fn end(&self, now: Nanos, timing: Timing) -> Option<End> {
        let entry = self.entry.as_ref()?;
        let replaced = self.caller.as_ref().is_some_and(|it| it.sole && it.answered.is_some() && !it.leaving);
        match () {
            () if entry.leaving => Some(End::Left),
            () if entry.is_silent(now, timing) => Some(End::Silent),
            () if entry.is_lost(now, timing) => Some(End::Behind),
            () if replaced => Some(End::Replaced),
            () => None,
        }
    }
}

impl Coordinator {
    /// Looks at everybody, and begins a new epoch if there is reason to.
    pub(super) fn review(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        match self.phase {
            Phase::Restarting => {}
            Phase::Forming => self.review_forming(now, out),
            Phase::Running if self.is_cut_off(now) => {}
            Phase::Running => {
                self.forget_callers(now);
                self.forget_dumps();
                let timing = self.config.timing;
                let death = self.slots.iter().any(|slot| slot.end(now, timing).is_some());
                let drains = self.config.copies > 1 && self.draining() != self.placed.draining;
                if death || drains || self.is_joined(now) {
                    self.change(now, out);
                }
            }
        }
    }

    /// A node that wants to join can wait a little for others that want to: an epoch costs everybody something. A
    /// death cannot, and takes along whoever waits.
    fn is_joined(&self, now: Nanos) -> bool {
        let waited = |since: Nanos| now.saturating_sub(since) >= self.config.timing.heartbeat();
        let free = |node: NodeId| self.slots[node.index()].entry.is_none();
        self.callers().any(|(node, caller)| free(node) && caller.answered.is_some_and(waited))
    }

    pub(super) fn forget_callers(&mut self, now: Nanos) {
        let timing = self.config.timing;
        for slot in &mut self.slots {
            let gone = |it: &mut Contact| it.leaving || it.is_silent(now, timing);
            drop(slot.caller.take_if(gone));
        }
    }

    /// A home that has left an epoch needs nothing of it any more.
    fn forget_dumps(&mut self) {
        let slots = &self.slots;
        self.dumps.retain(|left, homes| {
            homes.retain(|home, _| slots[home.index()].entry.as_ref().is_some_and(|it| it.epoch <= *left));
            !homes.is_empty()
        });
    }

    /// The epoch ends: whoever is dead is buried, whoever waits is let in.
    pub(super) fn change(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        let latest = self.highest.max(self.roster.epoch);
        let epoch = SwitchEpoch(latest.0.saturating_add(1));
        let admitted: Vec<NodeId> = self.callers().map(|(node, _)| node).collect();
        let (mut changes, mut changed) = (Vec::new(), Copyset::EMPTY);
        let copied = self.copied();
        for node in (0..self.config.nodes).map(|node| NodeId(u16::try_from(node).expect("at most 64 nodes")))
        {
            let before = self.roster.entries[node.index()];
            let ended = self.end(now, node);
            if admitted.contains(&node) {
                self.admit(node, epoch);
            }
            let up = self.slots[node.index()].entry.is_some();
            let entry = &mut self.roster.entries[node.index()];
            if entry.alive && !up {
                self.buried.insert(entry.session);
                entry.alive = false;
            }
            if entry.session != before.session || !entry.alive {
                changed = changed.with(node);
            }
            if before.alive && (!entry.alive || entry.session != before.session) {
                let (why, statistics) = ended.unwrap_or((End::Missing, Vec::new()));
                changes.push((node, Change::Ended { why, statistics }));
            }
            if entry.alive && (!before.alive || entry.session != before.session) {
                changes.push((node, Change::Joined));
            }
        }
        if self.roster.epoch.0 == 0 {
            self.roster.founders = self.config.listed;
        }
        self.roster.epoch = epoch;
        self.placed = self.placement();
        self.roster.keep_copies(&self.placed, changed, &copied);
        self.highest = epoch;
        self.settled = true;
        self.phase = Phase::Restarting;
        out.push(Effect::Restart { epoch, shadow: self.roster.view().shadow, changes });
    }

    /// Who may keep memories with copies, as the nodes are now.
    fn placement(&self) -> Placement {
        let (up, draining) = (self.roster.live(), self.draining());
        Placement { nodes: self.config.nodes, copies: self.config.copies, up, draining }
    }

    /// The nodes that are about to leave.
    fn draining(&self) -> Copyset {
        let drains = |slot: &NodeSlot| slot.entry.as_ref().is_some_and(|entry| entry.draining);
        let draining = self.slots.iter().enumerate().filter(|(_, slot)| drains(slot));
        draining.map(|(node, _)| NodeId(u16::try_from(node).expect("at most 64 nodes"))).collect()
    }

    /// What holds a node that drains: a memory that it has is to be on as many of those that stay as there are to be copies, or on all
    /// of them, and on one at least. None, if it does not drain.
    pub(super) fn drain(&self, node: NodeId) -> Option<Drain> {
        let who = self.placement();
        if !who.draining.contains(node) {
            return None;
        }
        let least = who.staying().clamp(1, who.copies);
        let lacks = |have: Copyset| have.contains(node) && have.without_all(who.draining).len() < least;
        let missing = self.memories().zip(0..).filter(|((have, _), _)| lacks(*have));
        let missing = missing.map(|(_, i)| NodeId(i)).collect();
        Some(Drain { missing, staying: u8::try_from(who.staying()).expect("at most 64 nodes") })
    }

    /// What nodes say that they have whole of memories with copies, in the epoch that ends.
    pub(super) fn copied(&self) -> Vec<(NodeId, Copyset)> {
        let contacts = self.slots.iter().enumerate().filter_map(|(node, slot)| {
            let contact = slot.entry.as_ref().or(slot.caller.as_ref())?;
            let is_now = contact.epoch == self.roster.epoch && contact.epoch.0 > 0;
            is_now.then_some((NodeId(u16::try_from(node).expect("at most 64 nodes")), contact.whole))
        });
        contacts.collect()
    }

    /// Ends an incarnation that is over. Says why, and what it said about itself last.
    fn end(&mut self, now: Nanos, node: NodeId) -> Option<(End, Vec<u8>)> {
        let slot = &mut self.slots[node.index()];
        let why = slot.end(now, self.config.timing)?;
        match why {
            End::Silent => self.counters.silent += 1,
            End::Behind => self.counters.lost += 1,
            End::Left => self.counters.left += 1,
            End::Replaced => self.counters.replaced += 1,
            End::Missing => {}
        }
        slot.entry.take().map(|entry| (why, entry.statistics))
    }

    /// Lets the caller in, if the node's incarnation is not another's and the caller's is not over.
    fn admit(&mut self, node: NodeId, epoch: SwitchEpoch) {
        let at = node.index();
        let Some(caller) = self.slots[at].caller.as_ref().filter(|_| self.slots[at].entry.is_none()) else {
            return;
        };
        let (session, last) = (caller.session, self.roster.entries[at]);
        let goes_on = last.alive && last.session == session && self.goes_on(node, caller);
        let ended = self.buried.contains(&session) || last.session == session && !last.alive;
        if !goes_on && (caller.epoch.0 > 0 || ended) {
            // It was in a rack that went on without it.
            self.buried.insert(session);
            self.slots[at].caller = None;
            return;
        }
        if !goes_on {
            if last.alive && last.session != session {
                self.buried.insert(last.session);
            }
            let returned = last.session != Session::default();
            let incarnation = Incarnation(epoch.0);
            self.roster.entries[at] = RosterEntry { incarnation, session, alive: true, returned };
        }
        self.slots[at].entry = self.slots[at].caller.take();
    }
}
