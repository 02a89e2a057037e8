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
    /// Whether it is noted where the time of operations goes ([`RackReport::budget`](super::RackReport::budget)).
    pub budget: bool,
    /// What becomes of blocks on the wire.
    pub blocks: Blocks,
    /// Whether [`System::invariants`](crate::system::System::invariants) is called after every event.
    pub check: bool,
}

/// What becomes of blocks on the wire. All but the first are estimates of protocols that there are not: only times
/// differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Blocks {
    /// They travel.
    #[default]
    Whole,
    /// Whoever asked for a block gets so many bytes first, inlined into a small message, and goes on. The whole block
    /// follows, and takes its time on NICs and links. The model does not check that nobody needs the rest before.
    PartFirst(u32),
    /// They do not: wherever a block would be sent, a small message of so many bytes is.
    Part(u32),
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
            budget: false,
            blocks: Blocks::Whole,
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

    /// The bytes of the small message that a block is, or has before it.
    pub(super) fn first_part(&self, envelope: &Envelope) -> Option<u64> {
        let asked_for = matches!(envelope.receiver, Processor::Thread(_));
        match self.blocks {
            _ if envelope.service == Service::Datagram => None,
            Blocks::PartFirst(part) if asked_for => Some(part.min(envelope.bytes).into()),
            Blocks::Part(part) => Some(part.min(envelope.bytes).into()),
            Blocks::PartFirst(_) | Blocks::Whole => None,
        }
    }

    /// Whether the whole block follows its first part.
    pub(super) const fn rest_follows(&self) -> bool {
        matches!(self.blocks, Blocks::PartFirst(_))
    }

    /// What bytes add to a write's way to the switch in an idle rack.
    pub(super) fn bytes_until_the_switch(&self, bytes: u64) -> Nanos {
        let Testbed { pcie_read, pcie, bandwidth, framing, .. } = self.testbed;
        pcie_read + pcie.span(bytes.min(framing.mtu)) + bandwidth.span(framing.framed(bytes))
    }

    /// The way of a message from its doorbell to the switch in an idle rack: without bytes, and what a block's bytes add.
    pub(super) fn idle_sending(&self, envelope: &Envelope) -> (Nanos, Nanos) {
        let Testbed { doorbell, nic_sending, cable, bandwidth, framing, .. } = self.testbed;
        let way = doorbell + nic_sending + cable;
        match (envelope.service, self.first_part(envelope)) {
            (Service::Write, None) => (way, self.bytes_until_the_switch(envelope.bytes.into())),
            (_, part) => {
                (way + bandwidth.span(framing.framed(part.unwrap_or(envelope.bytes.into()))), Nanos::ZERO)
            }
        }
    }

    /// The same from the switch to where a processor sees it.
    pub(super) fn idle_receiving(&self, envelope: &Envelope) -> (Nanos, Nanos) {
        let Testbed { pipeline, cable, nic_receiving, pcie_write, pcie, bandwidth, framing, .. } =
            self.testbed;
        let way = pipeline + cable + nic_receiving + pcie_write;
        let part = self.first_part(envelope);
        let bytes = part.unwrap_or(envelope.bytes.into());
        let of_bytes = bandwidth.span(framing.framed(bytes)) + pcie.span(bytes.min(framing.mtu));
        match (envelope.service, part) {
            (Service::Write, None) => (way, of_bytes),
            _ => (way + of_bytes, Nanos::ZERO),
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
