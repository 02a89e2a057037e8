//! A counter that processes share: the program of `docs/start.md`.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rackmem::{GlobalAddr, Locked, NodeId, Rack, RackFile};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [file, node] => count(file.as_ref(), node.parse()?, None),
        [file, node, address] => count(file.as_ref(), node.parse()?, Some(address.parse()?)),
        _ => Err("tell me: RACK_FILE NODE [ADDRESS]".into()),
    }
}

/// Joins as a node, and adds 1 to the counter, thirty times. Without an address it makes the counter.
pub fn count(file: &Path, node: u16, address: Option<u64>) -> Outcome {
    let rack = Rack::join(&RackFile::read(file)?, NodeId(node))?;
    let mut here = rack.here(); // a handle for one thread; each thread takes its own
    let counter: Locked<u64> = match address {
        None => Locked::new(&mut here, NodeId(0), 0)?, // in the memory of node 0
        Some(address) => Locked::at(&here, GlobalAddr::from_bits(address))?,
    };
    println!("node {node} counts at {}", counter.addr().bits());
    for _ in 0..30 {
        let mut value = counter.write(&mut here)?;
        *value += 1;
        println!("node {node}: {}", *value);
        drop(value); // here the lock is released; it stays on this node until another one asks
        sleep(Duration::from_millis(500));
    }
    rack.leave(Duration::from_secs(5)); // what only this node has goes home
    Ok(())
}
