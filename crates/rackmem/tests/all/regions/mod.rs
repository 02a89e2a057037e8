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
