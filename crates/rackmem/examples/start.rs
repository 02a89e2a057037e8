//! A counter that processes share by its name: the program of `docs/start.md`.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rackmem::{FromBytes, Immutable, IntoBytes, KnownLayout, Locked, NodeId, Rack, RackFile};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What the lock guards: plain numbers, which move as bytes.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[zerocopy(crate = "rackmem::zerocopy")]
#[repr(C)]
struct Tally {
    count: u64,
    /// The node that counted last.
    by: u64,
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [file, node] => count(file.as_ref(), node.parse()?),
        _ => Err("tell me: RACK_FILE NODE".into()),
    }
}

/// Joins as a node, and adds 1 to the counter, thirty times.
pub fn count(file: &Path, node: u16) -> Outcome {
    let rack = Rack::join(&RackFile::read(file)?, NodeId(node))?;
    let mut here = rack.here(); // a handle for one thread; each thread takes its own
    // Whoever comes first makes it; all others find it.
    let tally = here.named::<Locked<Tally>>("tally").tag("tally", 1).open_or(|| Tally { count: 0, by: 0 })?;
    println!("node {node} counts at {}", tally.addr());
    for _ in 0..30 {
        let mut value = tally.write(&mut here)?;
        *value = Tally { count: value.count + 1, by: node.into() };
        println!("node {node}: {}", value.count);
        drop(value); // here the lock is released; it stays on this node until another one asks
        sleep(Duration::from_millis(500));
    }
    rack.leave(Duration::from_secs(5)); // what only this node has goes home
    Ok(())
}
