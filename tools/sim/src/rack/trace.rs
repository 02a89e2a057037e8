//! What an observer of a run is told: for drawing message sequences, and for finding out why a run failed.

use wire::{Nanos, NodeId};

use crate::system::{Envelope, Fault, Outcome, ThreadId};

/// Something that happened.
#[derive(Debug)]
pub enum Trace<'a, M> {
    /// A message was posted, or left the switch's program.
    Sent {
        /// What.
        message: &'a M,
        /// Its way.
        envelope: &'a Envelope,
    },
    /// Its receiver has handled it; or the switch's program has.
    Handled {
        /// What.
        message: &'a M,
        /// Its way.
        envelope: &'a Envelope,
    },
    /// It was lost: by a fault rule, with a machine that stopped, or because a queue was full.
    Lost {
        /// What.
        message: &'a M,
        /// Its way.
        envelope: &'a Envelope,
    },
    /// A thread's operation took effect.
    Done {
        /// Whose.
        thread: ThreadId,
        /// What it returned.
        outcome: Outcome,
    },
    /// A thread's operation cannot be done yet.
    Waits {
        /// Whose.
        thread: ThreadId,
    },
    /// A node was called because it wanted to be.
    Deadline {
        /// Which.
        node: NodeId,
    },
    /// A machine stopped or came back.
    Fault(Fault),
}

/// Is told what happens, and when.
pub type Observer<M> = Box<dyn FnMut(Nanos, &Trace<'_, M>)>;
