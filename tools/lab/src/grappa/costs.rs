//! What takes how much processor time in Grappa. One set for all figures.
//!
//! Posting a message and finding one are the hardware's, and come on top; so is the hand-over between cores.

use wire::Nanos;

use super::message::{Body, Message};

/// Processor times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// A core accesses its own memory: an access to main memory that misses the processor's caches. 100 ns is what
    /// machines of this generation take.
    pub access: Nanos,
    /// A worker is suspended or resumed: one switch between user-level threads. The Grappa paper has 50 ns.
    pub switch: Nanos,
    /// A message is put into the list for its destination, or taken out of a list or buffer and called: an allocation
    /// or a copy of some ten words, and a compare-and-swap on a list that other cores use. Taken as one access to main
    /// memory.
    pub list: Nanos,
    /// MPI on one side of a small message: matching, progress, completion, beyond posting and polling. A ping-pong of
    /// small messages over MPI takes some 1.2 us one way where bare verbs take some 0.8: 0.2 us on either side.
    pub mpi: Nanos,
    /// One pass of an idle core's scheduler, which polls MPI, looks after its buffers, flushes the lists of the nodes
    /// that it is partner for, and starts the worker that sends: four things of the size of a switch. A message finds
    /// the core in the middle of one and waits for the next.
    pub idle: Nanos,
}

impl Costs {
    /// What each field says.
    pub const PAPER: Self =
        Self { access: Nanos(100), switch: Nanos(50), list: Nanos(100), mpi: Nanos(200), idle: Nanos(200) };

    /// What the asker does before its delegate leaves: the message goes into a list, the worker is suspended.
    pub(super) fn asking(&self) -> Nanos {
        self.list + self.switch
    }

    /// Of handling a message that has come over the network, or that leaves over it from here.
    pub(super) fn handling(&self, message: &Message, remote: bool, leaves: bool) -> Nanos {
        let mut cost = self.idle + self.list;
        if remote {
            cost += self.mpi;
        }
        if leaves {
            cost += self.mpi;
        }
        if message.to != message.destination {
            return cost + self.list;
        }
        match message.body {
            Body::Delegate { .. } => cost + self.access + self.list,
            Body::Lock { .. } | Body::Unlock { .. } => cost + self.access + self.list,
            Body::Reply | Body::LockReply { .. } => cost + self.switch,
        }
    }
}
