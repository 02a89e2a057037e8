//! Before the first epoch: waiting for nodes, and finding out who was in the rack when this coordinator is not the
//! rack's first.
//!
//! What must always hold: no incarnation is left out that may have a lease of an earlier coordinator.

use alloc::vec::Vec;

use wire::{Nanos, NodeId};

use super::contact::Contact;
use super::{Coordinator, Effect};

impl Coordinator {
    pub(super) fn review_forming(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        self.forget_callers(now);
        let ready = if self.settled { self.has_gathered(now) } else { self.is_recovered(now) };
        let anybody = self.callers().any(|(node, caller)| caller.epoch.0 == 0 || self.goes_on(node, caller));
        if ready && anybody {
            self.change(now, out);
        }
    }

    /// Whoever can be in the rack: its BEATs are not from the past.
    pub(super) fn callers(&self) -> impl Iterator<Item = (NodeId, &Contact)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(node, slot)| {
            let caller = slot.caller.as_ref().filter(|it| it.answered.is_some() && !it.leaving)?;
            Some((NodeId(u16::try_from(node).expect("at most 64 nodes")), caller))
        })
    }

    /// True if the caller is alive in the last roster that is known. It is of the coordinator before this one.
    pub(super) fn goes_on(&self, node: NodeId, caller: &Contact) -> bool {
        !self.settled && caller.epoch.0 > 0 && self.roster.is_alive(node, caller.session)
    }

    /// All nodes are here, or those that are have waited long enough.
    fn has_gathered(&self, now: Nanos) -> bool {
        let first = self.callers().filter_map(|(_, caller)| caller.answered).min();
        let waited = first.is_some_and(|first| now >= first + self.config.timing.form);
        waited || self.all_listed_call()
    }

    fn all_listed_call(&self) -> bool {
        self.callers().filter(|(node, _)| self.is_listed(*node)).count() == self.config.listed
    }

    /// It is known who was in the rack, and nobody who is not heard can have a lease.
    ///
    /// After the timeout the leases of an earlier coordinator have run out. Before that, somebody with a lease says
    /// more: it was never declared dead, and nobody new got a lease without it hearing of that first. So its view,
    /// or a later one that is known, names all who may have leases; if all of those are heard, there is nothing
    /// to wait for.
    fn is_recovered(&self, now: Nanos) -> bool {
        // Also of those that have not answered yet.
        let claims = self.slots.iter().filter_map(|slot| slot.caller.as_ref()).map(|caller| caller.epoch);
        if claims.max().unwrap_or_default() > self.roster.epoch {
            return false;
        }
        if self.roster.epoch.0 == 0 {
            // So a node that is taken off the list may have a lease that nobody waits for: lists only get longer.
            let alone = self.callers().all(|(_, caller)| caller.sole);
            return self.all_listed_call() && alone || self.leases_are_over(now) && self.has_gathered(now);
        }
        let up = |node: NodeId, caller: &Contact| caller.leased && self.goes_on(node, caller);
        let heard = |node: NodeId| {
            let caller = self.callers().find(|(it, _)| *it == node);
            caller.is_some_and(|(_, caller)| up(node, caller) || caller.epoch.0 == 0 && caller.sole)
        };
        let witness = self.callers().any(|(node, caller)| up(node, caller));
        witness && self.roster.live().iter().all(heard) || self.leases_are_over(now)
    }

    fn leases_are_over(&self, now: Nanos) -> bool {
        now.saturating_sub(self.born) >= self.config.timing.timeout
    }
}
