//! Machines stop and come back.
//!
//! What must always hold: nothing of a stopped node acts; what was on its way to it, or waited in it, is lost; its
//! workers are dropped. A message that it had sent is on its way all the same.

use wire::{Nanos, NodeId};

use super::event::{Event, FlightId};
use super::state::{Next, RackState};
use super::trace::Trace;
use super::worker::Phase;
use crate::system::{Fault, System};

impl<S: System> RackState<S> {
    /// This will happen then.
    pub(super) fn schedule_fault(&mut self, at: Nanos, fault: Fault) {
        let number = u16::try_from(self.faults.len()).expect("fewer than 2^16 faults in a run");
        self.faults.push(fault);
        self.queue.push(at.max(self.now), Event::Fault(number));
    }

    pub(super) fn fault(&mut self, fault: Fault) -> Option<Next> {
        self.observe(self.now, &Trace::Fault(fault));
        let mut next = None;
        match fault {
            Fault::NodeStops(node) => {
                self.stop(node);
                next = Some(Next::Drop(node));
            }
            Fault::NodeRestarts(node) => self.machines[node.index()].up = true,
            Fault::SwitchStops => self.switch_up = false,
            Fault::SwitchRestarts => self.switch_up = true,
            Fault::ShadowStops | Fault::ShadowRestarts => {}
        }
        self.begin_budget(self.now);
        self.call(None, self.now, |system, call| system.on_fault(call, fault));
        for index in 0..self.machines.len() {
            self.arm(NodeId(u16::try_from(index).expect("at most 64 nodes")));
        }
        next
    }

    fn stop(&mut self, node: NodeId) {
        let machine = &mut self.machines[node.index()];
        machine.up = false;
        machine.armed = Nanos::MAX;
        let mut lost: Vec<FlightId> = Vec::new();
        for (index, server) in self.servers.iter_mut().enumerate().filter(|(_, server)| server.node == node) {
            server.incarnation = server.incarnation.wrapping_add(1);
            lost.extend(server.current.take());
            lost.extend(server.inbox.drain(..));
            if let Some(thread) = self.threads.get_mut(index) {
                (thread.phase, thread.armed) = (Phase::Idle, false);
            }
        }
        lost.into_iter().for_each(|id| self.lose_flight(id));
    }
}
