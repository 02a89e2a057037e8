//! How much memory a rack takes of the system, against what was asked for: all caches full, all of the allocated
//! memory written.
//!
//! `cargo run --release -p rackmem --example memory_use`

use rackmem::{Config, Discipline, NodeId, Rack};

/// Resident bytes of this process, as the kernel says.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this example needs Linux's /proc");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("the kernel reports VmRSS");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number of KiB") << 10
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config { nodes: 8, cache: 64 << 20, memory: 128 << 20, ..Config::default() };
    let data: u64 = 96 << 20;
    let before = resident();
    let rack = Rack::embedded(config.clone())?;
    let mut node = rack.node(NodeId(0));
    let block = config.block_size.bytes();
    let addr = node.alloc(data, NodeId(1), Discipline::Coherent)?;
    for offset in (0..data).step_by(usize::try_from(block)?) {
        node.write_word(addr + offset, offset)?;
    }
    for reader in 0..8 {
        let mut node = rack.node(NodeId(reader));
        for offset in (0..data).step_by(usize::try_from(block)?) {
            assert_eq!(node.read_word(addr + offset)?, offset);
        }
    }
    let used = resident() - before;
    let asked = 8 * config.cache + data;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "asked for: 8 caches of {:.0} MiB and {:.0} MiB of data = {:.0} MiB",
        mib(config.cache),
        mib(data),
        mib(asked)
    );
    println!("resident: {:.0} MiB, {:+.1} %", mib(used), (used as f64 / asked as f64 - 1.0) * 100.0);
    println!(
        "metadata: {} B a cached block, 16 B an entry at a home, 19 B an entry in the switch",
        rackmem::METADATA_BYTES_PER_FRAME
    );
    let directory: usize = rack.counters().nodes.iter().map(|node| node.directory_bytes).sum();
    println!("directories of the homes: {:.2} MiB for {} blocks", mib(directory as u64), data / block);
    Ok(())
}
