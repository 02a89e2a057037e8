//! What the figures are given, each constant with its source, and what is said of the method.

use crate::figure::input::{Input, Source, fixed, inputs};
use crate::sizes::Sizes;
use crate::systems::chains::{VALUE, operations};

const TESTBED: [Input; 19] = inputs![
    "atomics of different queue pairs to one region, apart": chains.atomic_apart;
        Source::Calibrated("Figure 4: 8 keys give 1.34x; nobody publishes it (450 ns on one counter, ATC '16, unverified)"),
    "atomics of one queue pair, apart": chains.atomic_alike; Source::Published("NSDI '22: 8.4 million/s on ConnectX-5 (unverified)"),
    "bandwidth of a link, each direction": chains.hardware.bandwidth; Source::Paper("section 4: ConnectX-5"),
    "switch, port to port": chains.hardware.pipeline; Source::Published("product brief of the Onyx switch (unverified)"),
    "PCIe: NIC reads memory": chains.hardware.pcie_read; Source::Published("SIGCOMM '18, PCIe for end hosts"),
    "PCIe: NIC writes memory": chains.hardware.pcie_write; Source::Published("slides of sPIN, 2017 (unverified)"),
    "NIC's work on a message": chains.hardware.nic_sending, and chains.hardware.nic_receiving;
        Source::Published("thesis RWTH 2018: 0.83 us in all; the division is estimated"),
    "posting a message": chains.hardware.post_datagram, and chains.hardware.post_write;
        Source::Estimated("an RPC of 100 ns (NSDI '19), with a doorbell of its own"),
    "a client between a completion and the next verb": chains.step; Source::Estimated("two or three misses, a few hundred instructions"),
    "the benchmark between two operations": chains.think; Source::Estimated("as that is"),
    "metadata server: between two calls": chains.call; Source::Estimated("300 ns each on Clover's eight threads"),
    "metadata server: between two notices": chains.notice; Source::Estimated("100 ns each on four threads"),
    "metadata server: a look at its own memory": chains.local; Source::Estimated("a miss to memory"),
    "software switch: between two packets": chains.forward; Source::Estimated("section 4: the switch is not what bounds"),
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
            let of = [it.chains.lease, it.chains.lifetime, it.chains.rest]
                .map(|time| format!("{} ms", time.0 / 1_000_000));
            of.join(", ")
        },
        Source::Chosen("Clover's epochs are tens of milliseconds"),
    ),
    fixed("threads of the benchmark", |_| "64, one operation each".to_owned(), Source::Paper("section 4.1")),
];

/// What the figures are given.
pub(crate) const INPUTS: &[&[Input]] = &[&TESTBED, &CHOSEN];

/// What the page begins with.
pub(crate) const HEAD: &str = "\
# Figures of steering

The figures of the steering paper (in-network conflict resolution for disaggregated memory) again: the store of chains, queue pairs and the
steering program of rackmem on the paper's testbed in virtual time. This page is written by `rackmem-lab figure`; do not edit it. What the store
and the program are is told in [chains](chains.md).

```sh
cargo run --release -p rackmem-lab-cli --features plots -- figure steering --ops 100000 --out docs/figures --page docs/steering.md
```

";

/// What is said of the sizes.
pub(crate) fn sizes(sizes: &Sizes, seed: u64) -> String {
    format!(
        "Values of {VALUE} B, which with their heads are entries of 1 KiB. {} operations are counted with 64 threads, {} with 8 or fewer. Seed {seed}; \
         every run's own seed follows from it and from the run's parameters.\n",
        operations(sizes.operations, 64),
        operations(sizes.operations, 1),
    )
}

/// What is said of the method.
pub(crate) const METHOD: &str = "
- Two client machines with up to 32 threads each, a server with the memory and the metadata server, and a fourth machine that is the switch: every
  packet goes through its program, in both directions, also without steering. Clients, metadata server, queue pairs and program are those that
  racks run (`crates/chain`, `crates/nic`, `switch::chains`), unchanged.
- Every run is checked as it goes: an append goes behind an entry of its own key, once, and is in the chain when its client hears that it is; a
  get returns nothing older than what was acknowledged when it began. A run in which that fails has no numbers.
- Without steering clients do what Clover's published source does: an append whose compare-and-swap failed reads from entry to entry to the
  tail, then tries again; after seven entries the metadata server is asked. Clover also reads a pointer to the latest entry beside each
  entry, which is not here.
- Calibrated, and so no result: the time between two atomics of different queue pairs to one region, from the 1.34x of 8 keys. What depends on
  it is shown above (steering-nic).
- Estimated, and said to be in the code: processor times of clients, metadata server and switch. Cores that threads share are not
  modelled, nor locks inside of the clients' library.
- Words that are bound are on one queue pair, on which the memory replays 16 atomics, as real NICs do.
  Nothing is deleted, so no chain is closed: the metadata server's own compare-and-swaps would pass beside that queue pair, at its memory.
- *Met* allows 25 %. Causes given under a table are our reading, and were not tested.
";
