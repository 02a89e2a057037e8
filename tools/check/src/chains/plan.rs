//! What is drawn of a run for chains.

use crate::rack::{Knob, Knobs, Random};

/// What only chains have.
#[derive(Clone, Copy, Debug)]
pub struct ChainPlan {
    /// Stores that there are at a time: none, in most runs.
    pub stores: usize,
    /// Of a thousand turns of threads, those of threads and servers of chains.
    pub turns: u32,
    /// Units of a store's memory: each is a block.
    pub units: usize,
    /// Keys of a store.
    pub keys: usize,
    /// Of a thousand operations of a thread, those that end its store.
    pub ends: u32,
    /// What the switch sends to tails: nothing, appends, or reads, too.
    pub steering: usize,
    /// A metadata server tells a switch that may be another one where tails are.
    pub preload: u32,
    /// How often a request is sent again until its connection is given up.
    pub retries: usize,
}

impl Knobs for ChainPlan {
    fn knobs(&mut self) -> Vec<Knob<'_>> {
        vec![
            Knob::size("stores", &mut self.stores, 0, 4),
            Knob::rate("chains", &mut self.turns, 1000),
            Knob::size("units", &mut self.units, 1, 64),
            Knob::size("keys", &mut self.keys, 1, 8),
            Knob::rate("store-ends", &mut self.ends, 1000),
            Knob::size("steering", &mut self.steering, 0, 2),
            Knob::rate("preload", &mut self.preload, 1),
            Knob::size("chain-retries", &mut self.retries, 1, 8),
        ]
    }
}

impl ChainPlan {
    /// The seed draws everything. One run in three has stores.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xc1_0fe2);
        let mut of = |choices: [usize; 6]| choices[random.below(6)];
        Self {
            stores: of([0, 0, 0, 0, 1, 2]),
            turns: of([150, 300, 300, 300, 500, 500]) as u32,
            units: of([6, 8, 8, 12, 12, 16]),
            keys: of([1, 1, 2, 2, 3, 3]),
            ends: of([5, 10, 10, 20, 20, 40]) as u32,
            steering: of([0, 0, 1, 1, 2, 2]),
            preload: of([0, 0, 0, 1, 1, 1]) as u32,
            retries: of([1, 2, 4, 4, 4, 4]),
        }
    }

    pub(super) const fn is_steered(&self) -> bool {
        self.steering > 0
    }
}
