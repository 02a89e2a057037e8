//! The papers whose figures there are.
//!
//! What must always hold: a figure's name begins with its paper's.

use crate::figure::Figure;
use crate::figure::input::Input;
use crate::sizes::Sizes;
use crate::systems::locks::buckets;
use crate::{concordia, gcs, rae, sabres, steering};

/// A paper.
pub struct Paper {
    /// What one types for all its figures.
    pub name: &'static str,
    /// Its figures, in their order.
    pub figures: &'static [&'static dyn Figure],
    /// What its figures are given, by kind.
    pub inputs: &'static [&'static [Input]],
    /// What its page begins with.
    pub head: &'static str,
    /// What is said of the sizes of a run with this seed.
    pub sizes: fn(&Sizes, u64) -> String,
    /// What is said of the method.
    pub method: &'static str,
}

impl Paper {
    /// All inputs of its figures.
    pub fn all_inputs(&self) -> impl Iterator<Item = &'static Input> {
        self.inputs.iter().copied().flatten()
    }
}

/// All papers.
pub const PAPERS: [&Paper; 5] = [&CONCORDIA, &GCS, &SABRES, &RAE, &STEERING];

/// The paper of a figure.
///
/// # Panics
/// If there is no such figure.
pub fn paper_of(figure: &str) -> &'static Paper {
    let found = PAPERS.into_iter().find(|paper| paper.figures.iter().any(|one| one.name() == figure));
    found.unwrap_or_else(|| panic!("there is no figure {figure}"))
}

const CONCORDIA: Paper = Paper {
    name: "concordia",
    figures: &concordia::FIGURES,
    inputs: concordia::method::INPUTS,
    head: concordia::method::HEAD,
    sizes: concordia::method::sizes,
    method: concordia::method::METHOD,
};

const GCS: Paper = Paper {
    name: "gcs",
    figures: &gcs::FIGURES,
    inputs: gcs::method::INPUTS,
    head: "\
# Figures of GCS

The figures of the GCS paper (generalized cache coherence: locks that carry their data) again, on a rack in virtual time: the
lock machines of rackmem and a layered lock, on hardware with the paper's timing. This page is written by `rackmem-lab figure`; do
not edit it.

```sh
cargo run --release -p rackmem-lab-cli --features plots -- figure gcs --ops 60000 --out docs/figures --page docs/gcs.md
```

",
    sizes: |sizes, seed| {
        format!(
            "Figure 7: {} buckets. {} operations before anything is counted, then {}; of the layered \
             lock a fifth of both. Before a run each thread has had its part of all locks once, to read. Seed {seed}; \
             every run's own seed follows from it and from the run's parameters.\n",
            buckets(sizes),
            sizes.warm_up,
            sizes.operations,
        )
    },
    method: "
- Compute blades with threads, and a memory blade, which is the rack's last node. It runs no thread: its NIC answers, as
  MIND's memory blades serve one-sided requests. Two virtual machines share a server in the paper; here each is a machine.
- The path of a message through the kernels of the blades is MIND's: page fault, request, answer, unmapping. MIND's published
  sums (9 us for a page from the memory blade, 18 us from a blade that has modified it; cited from memory) fix what the parts
  add up to; how they are divided is estimated. No constant was chosen for a figure but one: what a query of the store takes
  besides lock and value, from the paper's 31.2 Mops.
- The layered lock runs on FlowCC in the place of MIND's coherence. Both have their directory in the switch and pages of
  4 KiB. In MIND a modified page is written to the memory blade before the next blade reads it; FlowCC sends it from blade to
  blade, and is charged for the difference. Both refuse a request that meets another of the same page; MIND's fault handler sends
  it again after 50 us, and waits 50 us more each time up to 200 (its published source, `fault_disagg.c`), and so it is here.
- Locks of 128 B stand beside each other, 32 in a page, and regions of 1 KB, four in a page, as an application would allocate
  them. With layered locks, and without combined data, threads of different locks therefore take pages from each other.
- Latencies are those of whole operations: enter, access, leave.
- *Met* allows 25 %. Causes given under a table are our reading, and were not tested.
",
};

const SABRES: Paper = Paper {
    name: "sabres",
    figures: &sabres::FIGURES,
    inputs: sabres::method::INPUTS,
    head: sabres::method::HEAD,
    sizes: sabres::method::sizes,
    method: sabres::method::METHOD,
};

const STEERING: Paper = Paper {
    name: "steering",
    figures: &steering::FIGURES,
    inputs: steering::method::INPUTS,
    head: steering::method::HEAD,
    sizes: steering::method::sizes,
    method: steering::method::METHOD,
};

const RAE: Paper = Paper {
    name: "rae",
    figures: &rae::FIGURES,
    inputs: rae::method::INPUTS,
    head: rae::method::HEAD,
    sizes: rae::method::sizes,
    method: rae::method::METHOD,
};
