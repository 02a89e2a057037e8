//! The constants of all figures, as they stand in the code, and what is said of the method.

use sim::objects::{Chip, Method, Software};

use crate::concordia::method::listed;
use crate::output::document::Constant;
use crate::sizes::Sizes;
use crate::systems::objects::operations;

/// All constants that results depend on.
pub fn constants() -> Vec<Constant> {
    let parts = [
        ("", "`sim::objects::Chip`", format!("{:#?}", Chip::PAPER)),
        ("software, cycles: ", "`sim::objects::Software`", format!("{:#?}", Software::PAPER)),
        ("engine: ", "`nic::objects::Config`", format!("{:#?}", nic::objects::Config::PAPER)),
    ];
    listed(&parts)
}

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
