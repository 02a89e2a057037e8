//! Locks apart from the data that they guard: a rack with both kinds of machines. It is GCS "without combined data" (GCS,
//! section 5.2): a lock of no bytes is taken first, then the coherence protocol fetches the data, page by page.
//!
//! It runs inside a [`Rack`](sim::rack::Rack). Both kinds share a node's background threads, as MIND's cache controller has
//! one of them for both.
//!
//! What must always hold: an operation on a lock is the locks', all others are the memory's.

use sim::coherence::{self, FlowCc};
use sim::locks::{self, Locks};
use sim::system::{Call, Envelope, Operation, Progress, System, ThreadId};
use wire::{Nanos, NodeId};

/// Locks, and coherent memory.
pub struct Apart {
    /// Locks without data.
    pub locks: Locks,
    /// The data.
    pub memory: FlowCc,
}

/// What travels.
#[derive(Clone, Copy, Debug)]
pub enum SimMessage {
    /// About a lock.
    Lock(locks::SimMessage),
    /// About a block.
    Block(coherence::SimMessage),
}

impl System for Apart {
    type Message = SimMessage;

    fn envelope(&self, sim_message: &SimMessage) -> Envelope {
        match sim_message {
            SimMessage::Lock(sim_message) => self.locks.envelope(sim_message),
            SimMessage::Block(sim_message) => self.memory.envelope(sim_message),
        }
    }

    fn cost(&self, sim_message: &SimMessage) -> Nanos {
        match sim_message {
            SimMessage::Lock(sim_message) => self.locks.cost(sim_message),
            SimMessage::Block(sim_message) => self.memory.cost(sim_message),
        }
    }

    fn on_message(&mut self, call: &mut Call<'_, SimMessage>, sim_message: &SimMessage) {
        match sim_message {
            SimMessage::Lock(sim_message) => {
                call.inside(SimMessage::Lock, |call| self.locks.on_message(call, sim_message))
            }
            SimMessage::Block(sim_message) => {
                call.inside(SimMessage::Block, |call| self.memory.on_message(call, sim_message))
            }
        }
    }

    fn attempt(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        match operation {
            Operation::Lock { .. } | Operation::Unlock { .. } => {
                call.inside(SimMessage::Lock, |call| self.locks.attempt(call, thread, operation))
            }
            _ => call.inside(SimMessage::Block, |call| self.memory.attempt(call, thread, operation)),
        }
    }

    fn next_deadline(&self, node: NodeId) -> Nanos {
        self.locks.next_deadline(node).min(self.memory.next_deadline(node))
    }

    fn on_deadline(&mut self, call: &mut Call<'_, SimMessage>, node: NodeId) {
        if self.locks.next_deadline(node) <= call.now {
            call.inside(SimMessage::Lock, |call| self.locks.on_deadline(call, node));
        }
        if self.memory.next_deadline(node) <= call.now {
            call.inside(SimMessage::Block, |call| self.memory.on_deadline(call, node));
        }
    }

    fn invariants(&mut self) {
        self.locks.invariants();
        self.memory.invariants();
    }
}
