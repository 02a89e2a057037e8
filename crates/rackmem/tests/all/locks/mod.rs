//! Locks that carry their data, on embedded racks: through the public API, with real threads.

mod errors;
mod eviction;
mod exclusion;
mod own_first;
mod poison;

use rackmem::{Config, Directory, NodeId, Rack};

use crate::locks_everywhere::{Nodes, everywhere};

/// A rack of so many nodes, small enough for many.
pub(crate) fn rack(nodes: usize) -> Rack {
    rack_with(Config { nodes, ..config() })
}

pub(crate) fn config() -> Config {
    Config {
        nodes: 2,
        cache: 1 << 20,
        memory: 8 << 20,
        lock_copies: 256 << 10,
        lock_entries: 64,
        ..Config::default()
    }
}

pub(crate) fn rack_with(config: Config) -> Rack {
    Rack::embedded(config).expect("a possible rack")
}

/// The same rack with the entries in the switch, and at the homes.
pub(crate) fn racks(nodes: usize) -> [Rack; 2] {
    [Directory::Auto, Directory::Home].map(|directory| rack_with(Config { nodes, directory, ..config() }))
}

fn both(body: fn(Nodes<'_>)) {
    for rack in racks(3) {
        body(&|id| rack.node(node(id)));
        rack.check_invariants();
    }
}

everywhere!(both);

pub(crate) const fn node(number: u16) -> NodeId {
    NodeId(number)
}
