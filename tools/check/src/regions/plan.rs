//! What is drawn of a run for words and objects.

use crate::rack::{Knob, Knobs, Random};

/// What only one-sided operations have.
#[derive(Clone, Copy, Debug)]
pub struct RegionsPlan {
    /// Of a thousand turns of threads, those of threads that use words and objects.
    pub turns: u32,
    /// Of a thousand operations of a thread, those that end a region.
    pub ends: u32,
    /// How often a device sends again what is not answered, before it gives its queue pair up.
    pub retries: usize,
    /// Keys that mean something after their regions have ended.
    pub kept: usize,
}

impl Knobs for RegionsPlan {
    fn knobs(&mut self) -> Vec<Knob<'_>> {
        vec![
            Knob::rate("words", &mut self.turns, 1000),
            Knob::rate("region-ends", &mut self.ends, 1000),
            Knob::size("retries", &mut self.retries, 1, 255),
            Knob::size("kept-keys", &mut self.kept, 1, 4096),
        ]
    }
}

impl RegionsPlan {
    /// The seed draws everything.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x0e51_0ded);
        let mut of = |choices: [usize; 4]| choices[random.below(4)];
        Self {
            turns: of([100, 250, 250, 500]) as u32,
            ends: of([20, 40, 80, 160]) as u32,
            retries: of([2, 5, 255, 255]),
            kept: of([1, 2, 8, 64]),
        }
    }
}
