//! Words and objects on embedded racks: through the public API, with real threads.

mod errors;
mod objects;
mod words;

use rackmem::{Config, NodeId, Rack};

pub(crate) fn rack(nodes: usize) -> Rack {
    let config = Config { nodes, cache: 1 << 20, memory: 8 << 20, ..Config::default() };
    Rack::embedded(config).expect("a possible rack")
}

pub(crate) const fn node(number: u16) -> NodeId {
    NodeId(number)
}

/// Small pseudo-random numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
}
