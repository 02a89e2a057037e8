//! What the figures are given, each constant with its source, and what is said of the method.

use sim::objects::Method;

use crate::figure::input::{Input, Source, fixed, inputs};
use crate::sizes::Sizes;
use crate::systems::objects::operations;

const CHIP: [Input; 17] = inputs![
    "clock of cores, MHz": chip.cycles_per_microsecond; Source::Paper("Table 2: 2 GHz"),
    "clock of the RMC, MHz": chip.rmc_cycles_per_microsecond; Source::Paper("Table 2: 1 GHz"),
    "hop on the mesh, cycles": chip.hop; Source::Paper("Table 2"),
    "first-level cache, cycles": chip.first_level; Source::Paper("Table 2"),
    "bank of the last-level cache, cycles": chip.bank; Source::Paper("Table 2"),
    "memory": chip.memory; Source::Paper("Table 2"),
    "a channel of the memory": chip.channel; Source::Paper("Table 2: 25.6 GB/s"),
    "port of an R2P2, cycles": chip.port; Source::Estimated("what is left of 90 ns for an average access (section 5.1)"),
    "peak of an R2P2": chip.r2p2; Source::Paper("section 5.1: 20 GB/s"),
    "blocks that an R2P2 has asked for": chip.outstanding; Source::Estimated("twice what 20 GB/s and 90 ns need"),
    "between the chips": chip.between; Source::Paper("Table 2: 35 ns"),
    "bandwidth between the chips": chip.link; Source::Paper("Table 2: 100 GB/s"),
    "header of a packet, bytes": chip.header; Source::Estimated("more than 10 would not let Figure 7b be what it is"),
    "pipelines of the RMC, cycles": chip.pipeline;
        Source::Calibrated("section 2.3: a read is 3 to 4 accesses to local memory"),
    "posting and polling of a core, cycles": chip.post, and chip.poll;
        Source::Calibrated("section 2.3: a read is 3 to 4 accesses to local memory"),
    "a writer: eight stores, cycles": chip.store; Source::Estimated("one store a cycle"),
    "a writer: between objects, cycles": chip.turn; Source::Estimated("a compare-and-swap of its own line"),
];

const SOFTWARE: [Input; 6] = inputs![
    "stripping a block, cycles": software.strip; Source::Calibrated("Figure 1: the check is half of a look-up of 8 KB"),
    "stripping: beginning and end, cycles": software.enter; Source::Estimated("a call, the rest of an unrolled loop"),
    "using a block that is near, cycles": software.look; Source::Estimated("section 7.2: 16 readers of 8 KB stay below 80 GB/s"),
    "CRC64 of a byte, cycles": software.crc; Source::Paper("section 2.1: about a dozen"),
    "FaRM's look-up, cycles": software.lookup; Source::Calibrated("Figure 1 at 128 B, and Figure 9a at 128 B"),
    "FaRM's buffer and larger code, cycles": software.buffering; Source::Calibrated("Figure 1 at 128 B, and Figure 9a at 128 B"),
];

const ENGINE: [Input; 3] = [
    fixed(
        "stream buffers, and blocks of each",
        |_| {
            let engine = nic::objects::Config::PAPER;
            format!("{}, {}", engine.transfers, engine.depth)
        },
        Source::Paper("section 5.1"),
    ),
    fixed(
        "blocks that a loop asks for ahead",
        |it| format!("{} stripping, {} otherwise", it.software.chunk, it.software.window),
        Source::Paper("section 7.3: chunks of 1 KB; Table 2: a reorder buffer of 128"),
    ),
    fixed(
        "how writers write",
        |_| "objects of their own, in order, without a pause".to_owned(),
        Source::Chosen("the paper does not say"),
    ),
];

/// What the figures are given.
pub(crate) const INPUTS: &[&[Input]] = &[&CHIP, &SOFTWARE, &ENGINE];

/// What the page begins with.
pub(crate) const HEAD: &str = "\
# Figures of SABRes

The figures of the SABRes paper (single-site atomic bulk reads) again: the SABRe engine of rackmem beside the memory of a soNUMA
chip in virtual time, with the paper's timing. This page is written by `rackmem-lab figure`; do not edit it.

```sh
cargo run --release -p rackmem-lab-cli --features plots -- figure sabres --out docs/figures --page docs/sabres.md
```

";

/// What is said of the sizes.
pub(crate) fn sizes(sizes: &Sizes, seed: u64) -> String {
    let of = |bytes| operations(sizes.operations, bytes, Method::Sabre);
    format!(
        "Operations that are counted: {} of 128 B, {} of 1 KB, {} of 8 KB, and a fortieth of that with checksums. Seed {seed}; every run's own \
         seed follows from it and from the run's parameters.\n",
        of(128),
        of(1024),
        of(8192)
    )
}

/// What is said of the method.
pub(crate) const METHOD: &str = "
- Two 16-core chips, connected directly (35 ns, 100 GB/s). On each: a mesh, a bank of the last-level cache on each tile, four memory
  channels, and at the edge four R2P2s and four back ends of RGP and RCP. The engine at each R2P2 is the one of `crates/nic` that live racks
  run, unchanged. Reading takes 90 ns on average, which is the memory's 50 ns, the mesh, the bank and the port together; a test adds
  them up.
- An R2P2 is told of a write before it takes place, and after the reply that carried what is overwritten. Every object that a method calls
  whole is compared with what its blocks really were; a run in which one is torn has no numbers.
- Published (Table 2 and sections 5 and 6): clocks, caches, mesh, memory, link, R2P2s, stream buffers. Estimated, and said to be in the code:
  the pipelines' depth and the cores' posting and polling (from \"3 to 4 times an access to local memory\"), the R2P2's port (what is left of 90 ns),
  packet headers (8 B), how a core uses a block (8 ns, from section 7.2), where memory controllers are, how writers write.
- Calibrated, and so no result: what stripping a block costs (12.5 ns, from the 50 % of Figure 1), what FaRM and the application take before the
  transfer (from the 10 % of Figure 1) and how much less that is with SABRes (from the 35 % of Figure 9a at 128 B).
- Links inside the mesh are not modelled one by one: only the ports at both ends are taken.
- *Met* allows 25 %. Causes given under a table are our reading, and were not tested.
";
