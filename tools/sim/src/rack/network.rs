//! A message's life: posted, at the switch, at its receiver's NIC.
//!
//! ```text
//!  processor ── post ──> NIC ──> link ──> switch ingress ──> program or egress queue ──> link ──> NIC ──> processor
//!                             fault rules               fault rules (what the program sends)
//! ```
//!
//! What must always hold: what one processor sends to one place over one kind of service arrives in that order,
//! unless a fault rule says otherwise. Messages between processors of one node do not touch the network, and no
//! fault rule sees them.

use wire::Nanos;

use super::event::{Event, Flight, FlightId, ServerId};
use super::state::RackState;
use super::trace::Trace;
use crate::system::{Envelope, Place, Service, System};

impl<S: System> RackState<S> {
    /// A call wants this sent. `by` pays for posting what it sends itself; what it sends on behalf of another
    /// processor takes that one's time.
    pub(super) fn send(&mut self, by: Option<ServerId>, at: Nanos, message: S::Message) {
        let envelope = self.system.envelope(&message);
        let flight = Flight { message, envelope };
        let Place::Node(node) = envelope.from else {
            self.observe(at, &Trace::Sent { message: &message, envelope: &envelope });
            return self.leave_switch(at, flight);
        };
        if envelope.to == envelope.from {
            self.observe(at, &Trace::Sent { message: &message, envelope: &envelope });
            let id = self.flights.insert(flight);
            self.counts.local += 1;
            let arrives = at + self.setup.hand_over;
            if let Some(budgets) = &mut self.budgets {
                budgets.sent(id, (arrives, self.setup.hand_over), (arrives, Nanos::ZERO, Nanos::ZERO));
            }
            return self.push_for(node, arrives, Event::Arrive(id));
        }
        let cost = self.setup.post_cost(&envelope);
        let posted = match self.server_of(envelope.sender) {
            Some(sender) if by.is_none_or(|by| by == sender) => self.server(sender).spend(at, cost),
            Some(sender) => {
                self.server(sender).spend(at, cost);
                at + cost
            }
            None => at,
        };
        self.observe(posted, &Trace::Sent { message: &message, envelope: &envelope });
        self.counts.sent(&envelope);
        if !self.machines[node.index()].up {
            return self.lose(&flight);
        }
        let queue_pair = self.setup.queue_pair(&envelope);
        let is_write = envelope.service == Service::Write;
        let nic = &mut self.machines[node.index()].nic;
        let left = match self.setup.first_part(&envelope) {
            None => nic.send(posted, is_write, envelope.bytes.into(), queue_pair),
            Some(part) => {
                let left = nic.send(posted, false, part, queue_pair);
                if self.setup.rest_follows() {
                    nic.send(posted, is_write, envelope.bytes.into(), queue_pair);
                }
                left
            }
        };
        self.copies(posted, flight, |state, flight, delay| {
            let id = state.flights.insert(flight);
            let arrives = left + state.setup.testbed.cable + delay;
            if let Some(budgets) = &mut state.budgets {
                let (way, transfer) = state.setup.idle_sending(&envelope);
                budgets.sent(id, (posted, cost), (arrives, way, transfer));
            }
            state.queue.push(arrives, Event::AtSwitch(id));
        });
    }

    /// Lets the fault rules decide on a message, and does `deliver` with every copy that is left of it.
    fn copies(
        &mut self,
        at: Nanos,
        flight: Flight<S::Message>,
        deliver: impl Fn(&mut Self, Flight<S::Message>, Nanos),
    ) {
        if self.rules.is_empty() {
            return deliver(self, flight, Nanos::ZERO);
        }
        let mut copies = core::mem::take(&mut self.copies);
        let Envelope { from, to, .. } = flight.envelope;
        self.rules.apply(at, &flight.message, from, to, &mut self.fault_random, &mut copies);
        if copies.is_empty() {
            self.lose(&flight);
        }
        for delay in &copies {
            deliver(self, flight, *delay);
        }
        self.copies = copies;
    }

    /// A message is at the switch's ingress.
    pub(super) fn at_switch(&mut self, id: FlightId) {
        if !self.switch_up {
            return self.lose_flight(id);
        }
        if self.flights.get(id).envelope.to != Place::Switch {
            return self.route(id, self.now, Nanos::ZERO);
        }
        let flight = self.flights.remove(id);
        if let Some(budgets) = &mut self.budgets {
            budgets.follow(id, self.now, Nanos::ZERO);
        }
        self.counts.switch_passes += 1;
        self.observe(self.now, &Trace::Handled { message: &flight.message, envelope: &flight.envelope });
        self.call(None, self.now, |system, call| system.on_message(call, &flight.message));
    }

    /// The switch's program sends a message.
    fn leave_switch(&mut self, at: Nanos, flight: Flight<S::Message>) {
        self.counts.sent(&flight.envelope);
        self.copies(at, flight, |state, flight, delay| {
            let id = state.flights.insert(flight);
            if let Some(budgets) = &mut state.budgets {
                budgets.sent(id, (at, Nanos::ZERO), (at, Nanos::ZERO, Nanos::ZERO));
            }
            state.route(id, at, delay);
        });
    }

    /// A message goes through the pipeline to its egress queue, and on to its receiver.
    fn route(&mut self, id: FlightId, at: Nanos, delay: Nanos) {
        let envelope = self.flights.get(id).envelope;
        let Place::Node(node) = envelope.to else { unreachable!("only nodes have ports") };
        let is_write = envelope.service == Service::Write;
        let part = self.setup.first_part(&envelope);
        let (bytes, whole) = (part.unwrap_or(envelope.bytes.into()), part.is_none());
        let Some(arrives) = self.ports.route(at, node.0, bytes) else { return self.lose_flight(id) };
        let nic = &mut self.machines[node.index()].nic;
        let visible = nic.receive(arrives, bytes, is_write && whole);
        if !whole && self.setup.rest_follows() {
            let later = at + self.setup.bytes_until_the_switch(envelope.bytes.into());
            if let Some(arrives) = self.ports.route(later, node.0, envelope.bytes.into()) {
                self.machines[node.index()].nic.receive(arrives, envelope.bytes.into(), true);
            }
        }
        if let Some(budgets) = &mut self.budgets {
            let (way, transfer) = self.setup.idle_receiving(&envelope);
            budgets.moved(id, visible + delay, way, transfer);
        }
        self.push_for(node, visible + delay, Event::Arrive(id));
    }

    /// The program of the switch lets a message through the pipeline once more.
    pub(super) fn resubmit(&mut self, at: Nanos, message: S::Message) {
        let envelope = self.system.envelope(&message);
        assert_eq!(envelope.to, Place::Switch, "only the switch resubmits");
        let id = self.flights.insert(Flight { message, envelope });
        self.counts.resubmits += 1;
        let back = self.ports.resubmit(at, envelope.bytes.into());
        if let Some(budgets) = &mut self.budgets {
            budgets.sent(id, (at, Nanos::ZERO), (back, back.saturating_sub(at), Nanos::ZERO));
        }
        self.queue.push(back, Event::AtSwitch(id));
    }

    pub(super) fn lose_flight(&mut self, id: FlightId) {
        let flight = self.flights.remove(id);
        self.lose(&flight);
    }

    /// A message is lost: by a fault rule, with the machine that had it, or in a full queue.
    pub(super) fn lose(&mut self, flight: &Flight<S::Message>) {
        self.observe(self.now, &Trace::Lost { message: &flight.message, envelope: &flight.envelope });
        self.counts.lost += 1;
    }
}
