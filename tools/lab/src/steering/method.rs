//! The constants of all figures, as they stand in the code, and what is said of the method.

use sim::chains::Bench;
use switch::chains::Config;

use crate::concordia::method::listed;
use crate::output::document::Constant;
use crate::sizes::Sizes;
use crate::systems::chains::{VALUE, operations};

/// All constants that results depend on.
pub fn constants() -> Vec<Constant> {
    let parts = [
        ("", "`sim::chains::Bench`", format!("{:#?}", Bench::PAPER)),
        ("hardware: ", "`sim::hardware::Testbed`", format!("{:#?}", Bench::PAPER.hardware)),
        ("program: ", "`switch::chains::Config`", format!("{:#?}", Config::default())),
    ];
    listed(&parts)
}

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
