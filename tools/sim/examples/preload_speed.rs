//! How long it takes to prepare the paper's largest run: 8 nodes whose caches of 1 GiB are full of blocks of 4 KiB, out of
//! 2 million blocks of home memory, and how much memory of this machine that takes.
//!
//! `cargo run --release -p rackmem-sim --example preload_speed [blocks cached on each node]`

use std::time::Instant;

use node::Access;
use sim::coherence::{FlowCc, FlowCcConfig};
use wire::{Discipline, NodeId};

const NODES: u16 = 8;

fn main() {
    let blocks = std::env::args().nth(1).map_or(200_000, |text| text.parse().expect("a number"));
    let mut system = FlowCc::new(FlowCcConfig { memory: 2 << 30, ..FlowCcConfig::new(NODES.into()) });
    let mut preload = system.preload(1);
    let begun = Instant::now();
    for node in (0..NODES).map(NodeId) {
        let part = preload.alloc(node, 1 << 30, node, Discipline::Coherent).expect("there is room");
        for block in 0..blocks {
            let access = if block % 2 == 0 { Access::Shared } else { Access::Modified };
            preload.cache(node, part + block * 4096, access).expect("it is allocated");
        }
    }
    let real = begun.elapsed();
    let total = blocks * u64::from(NODES);
    println!("{total} blocks in {real:.2?}: {:.0} ns each", real.as_nanos() as f64 / total as f64);
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
    }
}
