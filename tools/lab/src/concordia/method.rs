//! The inputs of all figures, with their sources, and the page's text about the method.

use crate::figure::claim::number;
use crate::figure::input::{Input, Source, fixed, inputs};
use crate::figure::point::Subject;
use crate::sizes::Sizes;
use crate::systems::graph::scale;
use crate::systems::transactions;

/// NICs, links and switch, as all of the rack's figures have them.
macro_rules! rack_inputs {
    () => {
        inputs![
            "bandwidth of a link, each direction": rack.bandwidth; Source::Paper("section 7: 100 Gb/s"),
            "cable": rack.cable; Source::Estimated("3 m of copper at 5 ns/m"),
            "pipeline of the switch; recirculated, half of it": rack.pipeline, and rack.resubmit;
                Source::Estimated("12 stages each way at 1.2 GHz, 20 cycles each; NetCache: under 1 us"),
            "messages of a queue pair": rack.queue_pair_rate; Source::Published("NSDI '19, Datacenter RPCs: one core, one queue pair"),
            "messages of a NIC, each direction": rack.sending_rate, and rack.receiving_rate;
                Source::Published("product brief of ConnectX-5"),
            "posting a message": rack.post_datagram, and rack.post_write;
                Source::Estimated("an RPC of 100 ns (NSDI '19), with a doorbell of its own"),
            "doorbell to NIC": rack.doorbell; Source::Estimated("two thirds of a write over PCIe"),
            "PCIe: NIC reads memory": rack.pcie_read; Source::Published("SIGCOMM '18, PCIe for end hosts: 547 ns; thesis RWTH 2018: 500 ns"),
            "PCIe: NIC writes memory": rack.pcie_write; Source::Published("slides of sPIN, 2017 (unverified)"),
            "PCIe bandwidth": rack.pcie; Source::Published("PCIe 3.0 x16, payload of 256 B (SIGCOMM '18)"),
            "NIC's work on a message sent": rack.nic_sending;
                Source::Published("thesis RWTH 2018: 0.83 us in all; the division is estimated"),
            "NIC's work on a message received": rack.nic_receiving;
                Source::Published("thesis RWTH 2018: 0.83 us in all; the division is estimated"),
            "finding a message": rack.poll; Source::Estimated("a miss to the last-level cache, and a look"),
            "hand-over between processors of a node": hand_over;
                Source::Published("two transfers of a line between cores of a Broadwell-EP, 45 to 60 ns each"),
        ]
    };
}
pub(crate) use rack_inputs;

const fn is_flowcc(subject: Subject) -> bool {
    !is_gam(subject) && !is_grappa(subject) && !is_powergraph(subject)
}

const fn is_powergraph(subject: Subject) -> bool {
    matches!(subject, Subject::PowerGraph)
}

const fn is_gam(subject: Subject) -> bool {
    matches!(subject, Subject::Gam | Subject::GamLarge | Subject::GamOneThread)
}

const fn is_grappa(subject: Subject) -> bool {
    matches!(subject, Subject::Grappa)
}

const RACK: [Input; 14] = rack_inputs!();

const SYSTEMS: [Input; 14] = inputs![
    "FlowCC: access to a block in the cache": flowcc.access;
        Source::Calibrated("Figure 12 at 100 % locality: 133 Mops of 32 threads"); is_flowcc,
    "FlowCC: from a miss to its request": flowcc.miss; Source::Counted("callgrind, a cycle an instruction"); is_flowcc,
    "FlowCC: a requester takes an answer in": flowcc.answer, and flowcc.closing, and flowcc.unlocked;
        Source::Counted("callgrind, a cycle an instruction"); is_flowcc,
    "FlowCC: a cache agent gives a copy": flowcc.give; Source::Counted("callgrind, a cycle an instruction"); is_flowcc,
    "FlowCC: a home decides": flowcc.decide, and flowcc.settle;
        Source::Counted("callgrind, a cycle an instruction"); is_flowcc,
    "FlowCC: release, and what else only sends": flowcc.release, and flowcc.other;
        Source::Counted("callgrind, a cycle an instruction"); is_flowcc,
    "GAM: local access": gam.access; Source::Calibrated("Figure 12 at 100 % locality: 23 Mops of 32 threads"); is_gam,
    "GAM: a lock with what is done under it": gam.step;
        Source::Paper("section 7.2.2: four of them are an access"); is_gam,
    "GAM: a work request": gam.work_request; Source::Estimated("two calls of the allocator, two new lines"); is_gam,
    "Grappa: access to a core's own memory": grappa.access; Source::Estimated("a miss to memory"); is_grappa,
    "Grappa: switch between workers": grappa.switch; Source::Published("the Grappa paper"); is_grappa,
    "Grappa: a message into a list, or out": grappa.list; Source::Estimated("an access to memory"); is_grappa,
    "Grappa: MPI, each side": grappa.mpi; Source::Estimated("ping-pongs of MPI and of verbs, half the difference"); is_grappa,
    "Grappa: a pass of an idle scheduler": grappa.idle; Source::Estimated("four things of the size of a switch"); is_grappa,
];

const APPLICATIONS: [Input; 8] = inputs![
    "transactions: the engine's own work, for each access": transactions;
        Source::Counted("46 us for a transaction of some 300 accesses on plain memory (tpcc.md)"),
    "graphs: an edge, in every system": graph.edge;
        Source::Published("HotOS '15, COST, table 2: 300 s for 20 times 1.47 billion edges on one core"),
    "graphs: a vertex, in every system": graph.vertex;
        Source::Estimated("a multiplication, a comparison, a division, two stores"),
    "PowerGraph: what its engine adds to an edge, gathering and scattering": powergraph.edge;
        Source::Published("SIGMOD '14, Satish et al.: on one node 3.6 times native code (unverified)"); is_powergraph,
    "PowerGraph: an item into a buffer": powergraph.put; Source::Estimated("a copy of 12 B, and checks"); is_powergraph,
    "PowerGraph: an item out of a buffer": powergraph.take;
        Source::Estimated("a look-up in a hash table that misses to memory, a lock, a copy"); is_powergraph,
    "PowerGraph: TCP, a buffer, each side": powergraph.buffer;
        Source::Estimated("a system call, an interrupt, a wake-up; over IPoIB a small message takes 10 to 15 us"); is_powergraph,
    "PowerGraph: TCP, a KiB, each side": powergraph.kibibyte; Source::Estimated("20 Gb/s of a core over IPoIB"); is_powergraph,
];

const CHOSEN: [Input; 8] = [
    fixed(
        "GAM: background threads for coherence",
        |_| "2".to_owned(),
        Source::Paper("section 7.1; a line with one, as GAM's public code has it, stands beside"),
    ),
    fixed(
        "cache: where blocks may lie",
        |_| "8 ways, random sets; `rackmem`: an even hash".to_owned(),
        Source::Calibrated("Figure 9: GAM leads without sharing; with the even hash Concordia does"),
    ),
    fixed(
        "caches and directory before a run",
        |_| "filled from a random history, shared blocks in the switch".to_owned(),
        Source::Chosen("concordia-cold begins with nothing, and warms up by running"),
    ),
    fixed(
        "entries of the switch",
        |_| sim::coherence::FlowCcConfig::new(8).switch_entries.to_string(),
        Source::Paper("section 7; concordia-directory has 2, 8 and 32 times too few"),
    ),
    fixed(
        "what is shared in Figures 11, 12 and 14",
        |_| "Figure 12: 20 %; Figure 14: 262,144 keys as hot as 64 million".to_owned(),
        Source::Chosen("the paper does not say; the store's cache is larger than in proportion"),
    ),
    fixed(
        "graphs",
        |_| "Graph500's, 4.34 drawn edges a vertex, in both directions; caches have room for all".to_owned(),
        Source::Chosen("LiveJournal's degree in the paper, 34.7 million edges of 4 million vertices"),
    ),
    fixed(
        "PowerGraph: partition, and buffers",
        |_| "a grid of nodes; 63,000 B for each thread and node, 12 B an item".to_owned(),
        Source::Published("PowerGraph's source: its own choice for 4 and 8 nodes"),
    ),
    fixed(
        "Grappa: buffers of graphs",
        |_| "16 KiB, 32 B a message".to_owned(),
        Source::Chosen("its source: from 1 KiB to 512 KiB; a function, an address, a program of two words"),
    ),
];

/// The inputs of the figures.
pub(crate) const INPUTS: &[&[Input]] = &[&RACK, &SYSTEMS, &APPLICATIONS, &CHOSEN];

/// The beginning of the page.
pub(crate) const HEAD: &str = "\
# Concordia's figures

The figures of the Concordia paper (FAST '21) on a simulated rack with the paper's timing. `rackmem-lab figure`
writes this page; do not edit it.

```sh
cargo run --release -p rackmem-lab-cli --features plots -- figure concordia --out docs/figures --page docs/concordia.md
```

";

/// The text about the method.
pub(crate) const METHOD: &str = "
- *What runs*: the protocol code of `crates/node` and `crates/switch` (Concordia, home-only, `rackmem`), and our
  own versions of GAM, Grappa and PowerGraph. GAM has two coherence threads a node (section 7.1); the line \"GAM, one
  coherence thread\" stands beside it in Figure 9.
- *Simulated*: links, NICs, PCIe, switch and processors.
- *Load*: GAM's published micro benchmark, not scaled down: 32 threads with 65,536 locations of 4 KiB each. Each
  location is, with the probability of the sharing ratio, in a pool of 256 MiB that all threads share. So a
  node's footprint falls from 1 GiB, the size of its cache, to 256 MiB.
- *Start*: caches and directory are filled before a run; concordia-cold shows the same without.
- *Calibrated*: FlowCC's and GAM's local accesses, to Figure 12; random sets in Concordia's cache, to GAM's lead
  without sharing in Figure 9.
- *Chosen after results were seen*: a larger cache under the store (in proportion, Concordia was behind Grappa).
  Claims that depend on it confirm nothing independently.
- Causes under a table are our reading and were not tested unless they say so.
";

/// The text about sizes.
pub(crate) fn sizes(sizes: &Sizes, seed: u64) -> String {
    let tpcc = transactions::scale(sizes);
    let (warm_up, counted) = transactions::transactions(sizes);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    format!(
        "Micro benchmark: {} nodes of {} threads, {} MiB of data a thread, {} MiB of cache a node. {} \
         operations to warm up, then {} counted. Key-value store: {} keys, {} MiB of cache a node. \
         PageRank: 2^{} and 2^{} vertices. \
         TPC-C: {} warehouses with 1/{} of the specified rows, {} transactions to warm up, then {} counted. Seed \
         {seed}: each run derives its own from it, so results do not depend on the number of cores.\n",
        sizes.nodes,
        sizes.threads,
        number(mib(sizes.places)),
        mib(sizes.cache),
        sizes.warm_up,
        sizes.operations,
        sizes.keys,
        mib(sizes.store_cache),
        scale(sizes, false),
        scale(sizes, true),
        tpcc.warehouses,
        tpcc.shrink,
        warm_up,
        counted,
    )
}
