//! A small rack that does its worst: the real machines, a plain store, and a network that loses, duplicates and
//! reorders whatever it likes.
//!
//! One thread, one seed: every choice (which packet next, which is lost, which thread does what) comes from the
//! seed, so a run can be repeated. Blocks carry a stamp instead of bytes: the number of the last write. After
//! every step the [properties](crate::properties) are checked.
//!
//! This is the harness of the protocol's tests. A simulated rack with time, links and queues is another thing.
//!
//! | file | holds |
//! | --- | --- |
//! | `plan` | what a run is like |
//! | `store` | frames and home memory with stamps |
//! | `network` | packets under way, and what happens to them |
//! | `threads`, `workload` | application threads that allocate, read, write, lock and free |
//! | `control` | what stops and starts again, and who is told |
//! | `coverage` | what the machines were seen to do |
//! | `run` | the rack, step by step |
//! | `fuzz` | runs that go on until they were worth it |

mod control;
mod coverage;
mod fuzz;
mod network;
mod plan;
mod run;
mod store;
mod threads;
mod workload;

pub use control::Stops;
pub use coverage::Coverage;
pub use fuzz::{Effort, Failure, run_seed};
pub use network::{Faults, Injected};
pub use plan::{Plan, Restarts};
pub(crate) use run::Touched;
pub use run::{Rack, Report};
pub use store::{Frame, PlainStore};
pub use threads::Thread;

/// A small, value-stable random generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// True so many times in a thousand.
    pub fn per_mille(&mut self, times: u32) -> bool {
        self.below(1000) < times as usize
    }
}
