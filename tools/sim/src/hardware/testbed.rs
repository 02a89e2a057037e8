//! Every constant of the simulated hardware, each with its source.
//!
//! The whole rack computes with one value of [`Testbed`]. What must always hold: nothing here is tuned to a
//! figure of a paper. A constant is what a data sheet or a published measurement says, or follows from such
//! numbers as its comment tells.
//!
//! # How the latencies were found
//! Only sums can be measured from outside. A thesis on InfiniBand for real-time simulation (RWTH Aachen, 2018)
//! has `ib_send_lat` between two ConnectX-4 at 100 Gb/s, with half a meter of cable between them, on the same
//! generation of processors as the testbed: 0.83 us one way for 32 B (inlined), 1.52-1.61 us for 1 KiB,
//! 2.25-2.28 us for 4 KiB, and 4.56-4.58 us for 32 KiB. So whatever is not inlined costs a fetch of 0.5 us,
//! each byte is paid three times (PCIe, link, PCIe) within a packet, and once beyond the first: this is what
//! [`super::Nic`] does. A test holds the model against these four numbers. (The product brief of ConnectX-5
//! promises a little less than its predecessor: "sub-600 ns", without saying for what.)
//!
//! How the 0.83 us divide into doorbell, NIC and PCIe is less certain, and matters less: every message pays the
//! sum. Numbers for which no source has been found are called *estimated*. Sources that were cited from memory, and not
//! looked up again for this file, are called *unverified*: the number is plausible, its source may say it otherwise.

use wire::Nanos;

use super::bandwidth::{Bandwidth, MessageRate, Picos};

/// What a rack is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Testbed {
    /// Of each direction of each link. ConnectX-5 and Tofino: 100 Gb/s (section 7 of the paper).
    pub bandwidth: Bandwidth,
    /// How a message is cut into packets.
    pub framing: Framing,
    /// The time from one end of a cable to the other: 3 m of passive copper, which reaches every machine of a
    /// rack, at 5 ns/m.
    pub cable: Nanos,

    /// From the last bit into the switch to the first out of it, if no other packet is in the way. NetCache and
    /// NetChain call it less than a microsecond on Tofino, without a number. Estimated: what is left of the
    /// round trips in the table of [`super`] when everything else is accounted for, and what a pipeline of 12
    /// stages for each direction at 1.2 GHz takes, with about 20 cycles a stage.
    pub pipeline: Nanos,
    /// From one pass of the program to the next of the same packet. It passes parser and ingress stages again,
    /// but neither the traffic manager nor the egress stages: half of `pipeline`. Estimated, as that is.
    pub resubmit: Nanos,
    /// How many bytes wait in all queues of the switch together. Tofino's data sheets: 22 MB, shared by all
    /// ports. Unverified. No run of the figures comes near it.
    pub buffer: u64,
    /// Ports of the testbed's Tofino: 32 (section 7).
    pub ports: u16,

    /// How many messages a NIC sends. Product brief of ConnectX-5: up to 200 million messages per second.
    pub sending_rate: MessageRate,
    /// How many messages a NIC receives. The brief does not tell directions apart.
    pub receiving_rate: MessageRate,
    /// How many messages leave from one queue pair. "Datacenter RPCs can be General and Fast" (NSDI '19): one
    /// core, which has one queue pair, handles 10 million RPCs in a second, each of which is a message sent. It
    /// may be more.
    pub queue_pair_rate: MessageRate,

    /// Processor time to post a small message: it is written into the doorbell, 64 B at a time. "Design
    /// Guidelines for High Performance RDMA Systems" (ATC '16) calls these uncached writes the main cost of
    /// posting. Estimated from the NSDI '19 paper: 100 ns for an RPC are a message received, its work, and a
    /// message sent whose doorbell is shared with others of its batch; alone, a message has the doorbell to
    /// itself. The number itself, 80 ns, is not in either paper.
    pub post_datagram: Nanos,
    /// Processor time to post a write. The work request is as large as a small message with its data: the same.
    /// Estimated, as that is.
    pub post_write: Nanos,
    /// From the processor's doorbell to the NIC: one way over PCIe for a posted write without a transfer to
    /// memory behind it. Two thirds of `pcie_write`. Estimated.
    pub doorbell: Nanos,
    /// From a NIC's request for bytes in memory to the first of them. "Understanding PCIe Performance for End
    /// Host Networking" (SIGCOMM '18): 547 ns in the median for 64 B on a Xeon E5 with its NIC; the thesis
    /// above: 500 ns.
    pub pcie_read: Nanos,
    /// From a NIC's write to where a processor sees it. The slides of sPIN (2017) draw 250 ns for
    /// PCIe between NIC and memory; about half of a read's round trip, as it must be. Unverified.
    pub pcie_write: Nanos,
    /// PCIe 3.0 x16: 15.75 GB/s, of which 256 in 282 bytes are payload (largest payload of 256 B, and 26 B for
    /// header, framing, sequence number and checksum; SIGCOMM '18, unverified). More than the link's, so it adds
    /// time and no bottleneck.
    pub pcie: Bandwidth,
    /// Work of the NIC on a message sent. With `nic_receiving`, what is left of the 0.83 us; how the two share it is
    /// estimated.
    pub nic_sending: Nanos,
    /// Work of the NIC on a message received: more than for one sent, since queue pair and memory must be found
    /// first.
    pub nic_receiving: Nanos,
    /// Processor time to find a message that has come: one miss to the last-level cache, where the NIC has put
    /// it (about 20 ns on these processors), and a look at the completion. Estimated.
    pub poll: Nanos,

    /// Clock of a core. Xeon E5-2650 v4: 2.2 GHz (section 7).
    pub cycles_per_microsecond: u64,
    /// Cores of a machine: two processors of 12 (section 7).
    pub cores: u16,
}

/// How a message is cut into packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// The most bytes of a message in a packet. The largest path MTU of RoCE: 4096.
    pub mtu: u64,
    /// Bytes on the link besides: preamble 8, Ethernet header 14, checksum 4, gap 12, IPv4 20, UDP 8. (What
    /// RoCE adds to this, 16 to 32 B, belongs to the message: raw packets do not have it.)
    pub overhead: u64,
}

impl Framing {
    /// How many packets a message is. An empty one is one.
    pub const fn packets(self, bytes: u64) -> u64 {
        if bytes <= self.mtu { 1 } else { bytes.div_ceil(self.mtu) }
    }

    /// How many bytes a message is on the link.
    pub const fn framed(self, bytes: u64) -> u64 {
        bytes + self.packets(bytes) * self.overhead
    }
}

impl Testbed {
    /// The testbed of Concordia (section 7): 8 machines with two Xeon E5-2650 v4 and a ConnectX-5 each, and a
    /// Tofino.
    pub const CONCORDIA: Self = Self {
        bandwidth: Bandwidth::megabits(100_000),
        framing: Framing { mtu: 4096, overhead: 66 },
        cable: Nanos(15),
        pipeline: Nanos(400),
        resubmit: Nanos(200),
        buffer: 22_000_000,
        ports: 32,
        sending_rate: MessageRate::millions(200),
        receiving_rate: MessageRate::millions(200),
        queue_pair_rate: MessageRate::millions(10),
        post_datagram: Nanos(80),
        post_write: Nanos(80),
        doorbell: Nanos(170),
        pcie_read: Nanos(500),
        pcie_write: Nanos(250),
        pcie: Bandwidth::megabits(114_400),
        nic_sending: Nanos(120),
        nic_receiving: Nanos(150),
        poll: Nanos(40),
        cycles_per_microsecond: 2_200,
        cores: 24,
    };

    /// So many cycles of a core.
    pub const fn cycles(&self, count: u64) -> Nanos {
        Nanos((count * 1_000).div_ceil(self.cycles_per_microsecond))
    }

    /// How long a message's first or last packet takes over PCIe.
    pub(super) fn pcie_of_packet(&self, bytes: u64) -> Picos {
        self.pcie.picos(bytes.min(self.framing.mtu))
    }
}
