//! What the machines are made of, and how long everything takes on them.
//!
//! What must always hold: all numbers of the testbed are here or in [`Testbed`], with their source; one is calibrated, and says so.

use chain::client::Walk;
use wire::Nanos;

use crate::hardware::Testbed;

/// The machines of the paper's testbed (section 4), with two Xeon E5-2640 and a ConnectX-5 each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bench {
    /// NICs, links and PCIe: the ConnectX-5 of [`Testbed::CONCORDIA`], at 100 Gb/s, and in the place of the Tofino the Onyx switch, of
    /// which 300 ns from port to port are promised (product brief, unverified).
    pub hardware: Testbed,

    /// Between two atomics of different queue pairs to one region. The paper: "performance degrades as the number of c&s operations
    /// to the same memory region across different queue pairs increases" (section 4.1, its reference 13), and
    /// "compare-and-swap operations bottleneck quickly when locking is applied across queue pairs" (section 5). How much that is it
    /// does not say, so this is the one number that is *calibrated*: to the 1.34x of 8 keys at 64 threads (Figure 4). It lies where it
    /// must: "Design Guidelines for High Performance RDMA Systems" (ATC '16) has 2.2 million per second on one counter,
    /// which is 450 ns, or nearly a PCIe read (unverified); one queue pair has [`Bench::atomic_alike`].
    pub atomic_apart: Nanos,
    /// Between two atomics of the same queue pair: nothing is locked, and the reads over PCIe overlap. "RDMA is Turing complete" (NSDI
    /// '22, table 3): 8.4 million per second on one port of a ConnectX-5. That it is one queue pair's is our reading.
    pub atomic_alike: Nanos,

    /// Processor time of a client's library between a completion and the next verb: look-ups in its tables, checks. Estimated: two or
    /// three misses to the last-level cache and a few hundred instructions.
    pub step: Nanos,
    /// Processor time of the benchmark between two operations. Estimated, as that is.
    pub think: Nanos,
    /// Between two calls that the metadata server executes: 300 ns each, as an RPC that does something takes 100 (see
    /// [`Testbed::post_datagram`]) and these look tables up, on the eight threads that Clover's published source has for them.
    pub call: Nanos,
    /// And between two notices: 100 ns, on four threads.
    pub notice: Nanos,
    /// What the metadata server needs for a look at its own memory. Estimated: a miss to memory.
    pub local: Nanos,

    /// Between two packets in the software switch: it polls with as many cores as it takes, in one order. Estimated: the paper says that more
    /// client machines would give more throughput, so the switch is not what bounds it.
    pub forward: Nanos,
    /// Processor time from a packet's arrival to its doorbell there. Estimated: 100 ns are what such switches publish for forwarding on a
    /// core (about 10 million packets per second), parsing included.
    pub program: Nanos,
    /// What writing to the switch's control plane takes: a connection that it is told of. Estimated: a message to a process there and back.
    pub control: Nanos,
    /// What it takes to begin a connection anew that broke. Estimated: five commands to the firmware of the NICs at its two ends, of about 100 us
    /// each, and a message there and back.
    pub reconnect: Nanos,

    /// Silence after which a NIC sends again. Timeouts are 4.096 us doubled so often as one likes; this is the eighth doubling.
    pub timeout: Nanos,
    /// How often.
    pub retries: u32,

    /// How long a cursor counts. Ours: Clover's epochs are tens of milliseconds (its published source), and so is this.
    pub lease: Nanos,
    /// How long the switch takes what it knows of slots for true where it steers reads. Ours.
    pub lifetime: Nanos,
    /// How long a slot is in quarantine: more than both, and than a request is in flight, so that reads may be steered.
    pub quarantine: Nanos,
    /// Slots that a client asks for at a time: 16, as in Clover's published source.
    pub slots: u32,
    /// What clients do when the tail is somewhere else: as Clover's published source, which reads on from entry to entry when a
    /// compare-and-swap has failed, and asks the metadata server after seven. (It also reads the server's latest pointer beside each entry, which
    /// is left out: there is no such pointer in `crates/chain`.)
    pub walk: Walk,
    /// How long an append waits for the notice of the one before it, before the metadata server walks. Ours.
    pub append_timeout: Nanos,
}

impl Bench {
    /// The paper's.
    pub const PAPER: Self = Self {
        hardware: Testbed { pipeline: Nanos(300), ..Testbed::CONCORDIA },
        atomic_apart: Nanos(350),
        atomic_alike: Nanos(119),
        step: Nanos(150),
        think: Nanos(100),
        call: Nanos(40),
        notice: Nanos(25),
        local: Nanos(100),
        forward: Nanos(20),
        program: Nanos(100),
        control: Nanos::from_micros(50),
        reconnect: Nanos::from_micros(500),
        timeout: Nanos(1_048_576),
        retries: 7,
        lease: Nanos::from_millis(40),
        lifetime: Nanos::from_millis(20),
        quarantine: Nanos::from_millis(80),
        slots: 16,
        walk: Walk { appends_read: true, ask_after: 7 },
        append_timeout: Nanos::from_micros(500),
    };

    /// Longer than any request is in flight.
    pub const fn longest_flight(&self) -> Nanos {
        Nanos(self.timeout.0 * (self.retries as u64 + 2))
    }
}
