//! How a simulated rack is set up.

use wire::{Copyset, Nanos};

use crate::hardware::Testbed;
use crate::system::{Envelope, Place, Processor, Service};

/// A rack's hardware and how it is run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Nodes, 1 to 64.
    pub nodes: usize,
    /// Application threads on each.
    pub threads: usize,
    /// Background threads on each: [`Processor::Agent`] has numbers below this.
    pub agents: usize,
    /// What everything takes.
    pub testbed: Testbed,
    /// Fixes the run.
    pub seed: u64,
    /// How far threads may run ahead of the event queue: zero for exact order, [`Nanos::MAX`] for as far as is
    /// sound.
    pub run_ahead: Nanos,
    /// From one processor of a node to another: a cache line written by one core and found by the other, which
    /// polls for it. Two transfers of a line between cores of one Xeon E5 v4 socket, 50 ns each (core-to-core
    /// latencies of Broadwell-EP as measured with MLC are 45 to 60 ns within a socket).
    pub hand_over: Nanos,
    /// Whether [`System::invariants`](crate::system::System::invariants) is called after every event.
    pub check: bool,
}

impl Setup {
    /// The paper's rack with so many nodes, and four threads and two agents on each (Concordia, sections 6 and 7).
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes,
            threads: 4,
            agents: 2,
            testbed: Testbed::CONCORDIA,
            seed: 1,
            run_ahead: Nanos::MAX,
            hand_over: Nanos(100),
            check: false,
        }
    }

    /// The same, in exact order: for histories and checks.
    #[must_use]
    pub fn exact(self) -> Self {
        Self { run_ahead: Nanos::ZERO, ..self }
    }

    /// The shortest time in which something that happens elsewhere can reach a node: from the switch's ingress
    /// through its pipeline, over the link and through the NIC, with nothing in the way and no bytes to carry.
    pub fn lookahead(&self) -> Nanos {
        let Testbed { pipeline, cable, nic_receiving, pcie_write, .. } = self.testbed;
        pipeline + cable + nic_receiving + pcie_write
    }

    /// What posting takes of a processor.
    pub(super) const fn post_cost(&self, envelope: &Envelope) -> Nanos {
        match (envelope.sender, envelope.service) {
            (Processor::Switch | Processor::Nic(_), _) => Nanos::ZERO,
            (_, Service::Datagram) => self.testbed.post_datagram,
            (_, Service::Write) => self.testbed.post_write,
        }
    }

    /// What finding a message takes of a processor.
    pub(super) const fn poll_cost(&self, envelope: &Envelope) -> Nanos {
        match envelope.receiver {
            Processor::Switch | Processor::Nic(_) => Nanos::ZERO,
            Processor::Thread(_) | Processor::Agent(..) => self.testbed.poll,
        }
    }

    /// One queue pair of the sender's NIC for each processor and place, so that a processor's messages to a place
    /// keep their order.
    pub(super) fn queue_pair(&self, envelope: &Envelope) -> u32 {
        let Self { nodes, threads, agents, .. } = *self;
        let sender = match envelope.sender {
            Processor::Thread(thread) => usize::from(thread.0) % threads,
            Processor::Agent(_, agent) => threads + usize::from(agent),
            Processor::Switch | Processor::Nic(_) => threads + agents,
        };
        let to = match envelope.to {
            Place::Switch => nodes,
            Place::Node(node) => node.index(),
        };
        u32::try_from(sender * (nodes + 1) + to).expect("fewer than 2^16 processors, at most 64 nodes")
    }

    pub(super) fn assert_possible(&self) {
        assert!((1..=Copyset::NODES).contains(&self.nodes), "a rack has 1 to 64 nodes, not {}", self.nodes);
        let processors = self.nodes * (self.threads + self.agents + 1);
        assert!(processors <= usize::from(u16::MAX), "{processors} processors cannot be numbered");
    }
}
