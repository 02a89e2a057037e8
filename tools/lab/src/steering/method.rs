//! The inputs of all figures, with their sources, and the page's text about the method.

use crate::figure::input::{Input, Source, fixed, inputs};
use crate::sizes::Sizes;
use crate::systems::chains::{VALUE, operations};

const TESTBED: [Input; 19] = inputs![
    "atomics of different queue pairs to one region, apart": chains.atomic_apart;
        Source::Calibrated("Figure 4: 8 keys give 1.34x; nobody publishes it (450 ns on one counter, ATC '16, unverified)"),
    "atomics of one queue pair, apart": chains.atomic_alike; Source::Published("NSDI '22, table 3: 8.4 million/s on a port of ConnectX-5; taken for a queue pair"),
    "bandwidth of a link, each direction": chains.hardware.bandwidth; Source::Paper("section 4: ConnectX-5"),
    "switch, port to port": chains.hardware.pipeline; Source::Published("product brief of the Onyx switch (unverified)"),
    "PCIe: NIC reads memory": chains.hardware.pcie_read; Source::Published("SIGCOMM '18, PCIe for end hosts"),
    "PCIe: NIC writes memory": chains.hardware.pcie_write; Source::Published("slides of sPIN, 2017 (unverified)"),
    "NIC's work on a message": chains.hardware.nic_sending, and chains.hardware.nic_receiving;
        Source::Published("thesis RWTH 2018: 0.83 us in all; the division is estimated"),
    "posting a message": chains.hardware.post_datagram, and chains.hardware.post_write;
        Source::Estimated("an RPC of 100 ns (NSDI '19), with a doorbell of its own"),
    "a client between a completion and the next verb": chains.step; Source::Estimated("two or three misses, a few hundred instructions"),
    "the benchmark between two operations": chains.think; Source::Estimated("the same as a client's step"),
    "metadata server: between two calls": chains.call; Source::Estimated("300 ns each on Clover's eight threads"),
    "metadata server: between two notices": chains.notice; Source::Estimated("100 ns each on four threads"),
    "metadata server: a look at its own memory": chains.local; Source::Estimated("a miss to memory"),
    "software switch: between two packets": chains.forward;
        Source::Estimated("section 4: the switch is not the bottleneck"),
    "software switch: a packet": chains.program; Source::Estimated("10 million packets/s of a core"),
    "software switch: its control plane": chains.control; Source::Estimated("a message to a process and back"),
    "a connection begins anew": chains.reconnect; Source::Estimated("five commands to the firmware of two NICs"),
    "a NIC repeats after": chains.timeout; Source::Published("InfiniBand: 4.096 us, doubled eight times"),
    "slots that a client asks for": chains.slots; Source::Published("Clover's source"),
];

const CHOSEN: [Input; 3] = [
    fixed(
        "a client whose compare-and-swap failed",
        |_| "reads on to the tail; asks after 7 entries".to_owned(),
        Source::Published("Clover's source; its pointer to the latest entry is left out"),
    ),
    fixed(
        "lease; lifetime of cells; rest of slots",
        |it| {
            let of = [it.chains.lease, it.chains.lifetime, it.chains.quarantine]
                .map(|time| format!("{} ms", time.0 / 1_000_000));
            of.join(", ")
        },
        Source::Chosen("Clover's epochs are tens of milliseconds"),
    ),
    fixed("threads of the benchmark", |_| "64, one operation each".to_owned(), Source::Paper("section 4.1")),
];

/// The inputs of the figures.
pub(crate) const INPUTS: &[&[Input]] = &[&TESTBED, &CHOSEN];

/// The beginning of the page.
pub(crate) const HEAD: &str = "\
# Figures of steering

The figures of the steering paper (in-network conflict resolution for disaggregated memory): rackmem's store of
chains, queue pairs and steering program on the paper's testbed, simulated. [chains](chains.md) explains the
store and the program. `rackmem-lab figure` writes this page; do not edit it.

```sh
cargo run --release -p rackmem-lab-cli --features plots -- figure steering --ops 100000 --out docs/figures --page docs/steering.md
```

";

/// The text about sizes.
pub(crate) fn sizes(sizes: &Sizes, seed: u64) -> String {
    format!(
        "Values of {VALUE} B, in entries of 1 KiB. {} operations are counted with 64 threads, {} with 8 \
         or fewer. Seed {seed}: each run derives its own from it.\n",
        operations(sizes.operations, 64),
        operations(sizes.operations, 1),
    )
}

/// The text about the method.
pub(crate) const METHOD: &str = "
- *What runs*: `crates/chain`, the queue pairs of `crates/nic` and the program of `switch::chains`, for appends
  and steered reads as in live racks. Bound words, and WRITEs in place of compare-and-swaps, are not live.
- *Simulated*: two client machines, a server with memory and metadata server, and a fourth machine as the
  switch. Every packet passes its program, also without steering.
- *Without steering* clients do as Clover's published source: after a failed compare-and-swap they read on to
  the tail and retry, and after seven entries ask the metadata server. Clover's pointer to the latest entry is
  left out.
- *Checked*: each append goes behind an entry of its key, once, and no get is stale. A run that fails has no
  numbers.
- *Calibrated*: the time between two atomics of different queue pairs, 350 ns. It has no source. It was fitted
  to Figure 4 (1.34x with 8 keys) after about 25 combinations of inputs had been tried, and stands on a cliff:
  300 ns gives 1.28x and 400 ns 1.63x for 8 keys.
- *Limits*: cores that threads share, and locks in the clients' library, are not modelled. Processor times are
  estimated. Nothing is deleted: with bound words the metadata server's own compare-and-swaps would bypass their
  queue pair.
- Causes under a table are our reading and were not tested unless they say so.
";
