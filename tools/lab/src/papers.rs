//! The papers, their figures, and the text of their pages.
//!
//! What must always hold: a figure's name begins with its paper's.

use crate::figure::Figure;
use crate::figure::input::Input;
use crate::sizes::Sizes;
use crate::systems::locks::buckets;
use crate::{concordia, gcs, rae, sabres, steering};

/// A paper.
pub struct Paper {
    /// The name that selects all its figures on the command line.
    pub name: &'static str,
    /// Its figures, in their order.
    pub figures: &'static [&'static dyn Figure],
    /// The inputs of its figures, by kind.
    pub inputs: &'static [&'static [Input]],
    /// The beginning of its page.
    pub head: &'static str,
    /// The text about the sizes of a run with this seed.
    pub sizes: fn(&Sizes, u64) -> String,
    /// The text about the method.
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

The figures of the GCS paper (generalized cache coherence: locks that carry their data) on a simulated rack with
the paper's timing. `rackmem-lab figure` writes this page; do not edit it.

```sh
cargo run --release -p rackmem-lab-cli --features plots -- figure gcs --ops 60000 --out docs/figures --page docs/gcs.md
```

",
    sizes: |sizes, seed| {
        format!(
            "Figure 7: {} buckets. {} operations to warm up, then {} counted; a fifth of both for the \
             layered lock. Threads first read their share of the locks once. Seed {seed}: each run \
             derives its own from it.\n",
            buckets(sizes),
            sizes.warm_up,
            sizes.operations,
        )
    },
    method: "
- *What runs*: the lock code of `crates/node` and `crates/switch`, and a layered lock on coherent pages.
- *Simulated*: compute blades, each a machine (the paper puts two on a server), and a memory blade whose NIC
  answers.
- *Layered lock*: FlowCC stands in for MIND's coherence; both have the directory in the switch and pages of 4
  KiB. FlowCC is charged for MIND's detour of modified pages through the memory blade. Refused faults wait as in
  MIND's published source.
- *Hand-over*: data leave beside the MOVE and take one hop; a NIC writes them, and no processor is charged. In the
  paper they follow the approval of the move.
- *Layout*: 32 locks of 128 B or four regions of 1 KB share a page, so threads of different locks compete for
  pages.
- *Calibrated*: a store's query, to 31.2 Mops. *Estimated*: the steps of MIND's faults, of which only the sums
  are published (9 us from the memory blade, 18 us from another blade; cited from memory).
- Latencies are of whole operations: enter, access, leave.
- Causes under a table are our reading and were not tested unless they say so.
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
