//! What happens on the testbed, and what travels.

use chain::{Answer, Appended, Call, Outcome};
use wire::chains::{EntryVersion, Location};
use wire::roce::Packet;

/// A machine, which is a port of the Onyx switch and a node of the rack, by this number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Machine {
    ClientA = 0,
    ClientB = 1,
    Server = 2,
    Tor = 3,
}

impl Machine {
    pub(super) const COUNT: u16 = 4;
    pub(super) const CLIENTS: [Self; 2] = [Self::ClientA, Self::ClientB];

    /// The one with this number.
    pub(super) const fn of(node: u16) -> Self {
        match node {
            0 => Self::ClientA,
            1 => Self::ClientB,
            2 => Self::Server,
            _ => Self::Tor,
        }
    }

    pub(super) const fn client(number: usize) -> Self {
        Self::CLIENTS[number]
    }
}

/// The first words of an entry, and the first one of its value.
pub(super) type Words = [u64; 4];

/// A packet of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roce {
    pub(super) from: Machine,
    pub(super) to: Machine,
    pub(super) packet: Packet,
    pub(super) payload: u32,
    pub(super) words: Words,
    /// Where these were read.
    pub(super) at: Option<Location>,
}

/// What travels.
#[derive(Clone, Debug)]
pub(super) enum SimMessage {
    Roce(Roce),
    /// To the metadata server, from a thread.
    Call(u16, Call),
    Answer(u16, Answer),
    Notice(Machine, Appended),
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A thread goes on to its next operation.
    Begin { thread: u16 },
    /// The control plane of the switch has been told of a thread's connection.
    Connected { thread: u16 },
    /// And of one that goes on with its operation.
    Known { thread: u16 },
    /// A thread's connection that broke begins anew.
    Reconnected { thread: u16 },
    /// The program in the switch sees a sim_message.
    AtTor(SimMessage),
    /// The server's NIC executes a request.
    Execute(Roce),
    /// A client's processor can see an answer.
    Seen(Roce),
    /// It has taken note of it.
    Step { thread: u16, outcome: Outcome },
    /// The metadata server can see a sim_message.
    AtMetadata(SimMessage),
    /// It has come to it.
    Serve(SimMessage),
    /// It has read an entry of this key.
    Walked { key: u64, outcome: Outcome },
    /// The control plane of the switch has been told of a key's tail.
    Found { key: u64, at: Location, version: EntryVersion },
    /// A thread has the answer to a call.
    Answered { thread: u16, answer: Answer },
    /// Whoever waits for a deadline looks.
    Tick,
}
