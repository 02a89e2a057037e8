//! The inputs of all figures, with their sources, and the page's text about the method.

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
    "header of a packet, bytes": chip.header; Source::Estimated("more than 10 would contradict Figure 7b"),
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
            let engine = nic::objects::SabreConfig::PAPER;
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

/// The inputs of the figures.
pub(crate) const INPUTS: &[&[Input]] = &[&CHIP, &SOFTWARE, &ENGINE];

/// The beginning of the page.
pub(crate) const HEAD: &str = "\
# Figures of SABRes

The figures of the SABRes paper (single-site atomic bulk reads): rackmem's SABRe engine beside the memory of a
simulated soNUMA chip, with the paper's timing. `rackmem-lab figure` writes this page; do not edit it.

```sh
cargo run --release -p rackmem-lab-cli --features plots -- figure sabres --out docs/figures --page docs/sabres.md
```

";

/// The text about sizes.
pub(crate) fn sizes(sizes: &Sizes, seed: u64) -> String {
    let of = |bytes| operations(sizes.operations, bytes, Method::Sabre);
    format!(
        "Operations counted: {} of 128 B, {} of 1 KB, {} of 8 KB; a fortieth with checksums. Seed \
         {seed}: each run derives its own from it.\n",
        of(128),
        of(1024),
        of(8192)
    )
}

/// The text about the method.
pub(crate) const METHOD: &str = "
- *What runs*: the SABRe engine of `crates/nic/src/objects`, one at each R2P2. Only the lab and tests run it;
  live racks read objects by other means ([one-sided.md](one-sided.md)).
- *Simulated*: two connected 16-core chips, each with a mesh, caches, four memory channels and four R2P2s.
- *Checked*: an R2P2 learns of a write before it takes place. Accepted objects are compared with memory; a run
  that accepts a torn one has no numbers.
- *Calibrated*: the RMC's pipelines and the cores' posting and polling (section 2.3), stripping a block (Figure
  1), FaRM's time before a transfer (Figure 1), and how much of it SABRes save (Figure 9a).
- *Estimated*: the R2P2's port, packet headers, how a core uses a block, where memory controllers are, how
  writers write.
- *Limits*: of the mesh only the ports at both ends of a path are modelled.
- Causes under a table are our reading and were not tested unless they say so.
";
