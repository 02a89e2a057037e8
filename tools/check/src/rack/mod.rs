//! The harness of random runs: a small rack of the real machines that does its worst to them.
//!
//! One thread, one seed: every choice (which packet next, which is lost, which thread does what) comes from the
//! seed, so a run can be repeated. The harness is one for all protocols. What it runs is a [`World`]: blocks
//! ([`coherence`](crate::coherence)), or locks that carry their data ([`locks`](crate::locks)). It brings what they have in
//! common: chance, time, a network that loses, duplicates, reorders, delays, damages and is cut, and a control plane
//! whose switch and nodes stop and start again. After every step the world checks its properties.
//!
//! This is the harness of the protocols' tests. A simulated rack with time, links and queues is another thing.
//!
//! | file | holds |
//! | --- | --- |
//! | `random` | chance, from a seed |
//! | `plan` | what a run is like |
//! | `faults` | what goes wrong, how often it is to, and how often it did |
//! | `tally` | what the faults of many runs came to |
//! | [`template`] | machines that are made over and over again |
//! | `world` | the seam: what a world is, and what it is given |
//! | `network` | packets in flight, and what happens to them |
//! | `control` | what stops and starts again, and who is told |
//! | `run` | the rack, step by step |
//! | `fuzz` | runs that go on until they were worth it |
//! | `knobs` | the numbers of a run, by name |
//! | `shrink` | failing runs are made smaller |
//! | `events` | what happened last to one block or lock |

mod control;
mod events;
mod faults;
mod fuzz;
mod knobs;
mod network;
mod plan;
mod random;
mod run;
mod shrink;
mod tally;
pub mod template;
mod world;

pub use control::{Control, FIRST, Known};
pub use faults::{Counts, Fault, Faults, Restarts};
pub(crate) use fuzz::caught;
pub use fuzz::{Case, Effort, Failure, Verdict};
pub use knobs::{Knob, Knobs};
pub use network::{Order, Place};
pub use plan::{Conditions, Plan};
pub use random::Random;
pub use run::{Rack, Report};
pub use tally::{Tallies, Tally};
pub use world::{Bench, REPEATED, STEP, Sum, Touched, World};
