//! The key-value store in an application that is attached to a daemon's node, and what its operations cost there, beside
//! what the same takes in a process that is a node of the rack.
//!
//! ```sh
//! rackmem up --nodes 2 &        # the last node is left to an application
//! cargo run --release -p rackmem-apps --example attached -- $XDG_RUNTIME_DIR/rackmem-up/rack.toml
//! ```

use std::time::{Duration, Instant};

use apps::kv::{KvConfig, KvStore};
use rackmem::attach::Batch;
use rackmem::{Discipline, GlobalAddr, Memory, NodeId, Rack, RackFile, block_on};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Operations that are measured, after a tenth as many that are not.
const ROUNDS: u32 = 20_000;

fn measure(what: &str, per_round: u32, mut round: impl FnMut(u32) -> Outcome) -> Outcome {
    for number in 0..ROUNDS / 10 {
        round(number)?;
    }
    let mut took: Vec<Duration> = Vec::new();
    for number in 0..ROUNDS {
        let began = Instant::now();
        round(number)?;
        took.push(began.elapsed());
    }
    took.sort_unstable();
    let at = |share: f64| took[(f64::from(ROUNDS) * share) as usize].as_nanos() as f64 / f64::from(per_round);
    println!("{what:34} median {:8.0} ns   99th percentile {:8.0} ns", at(0.5), at(0.99));
    Ok(())
}

fn operations<M: Memory>(memory: &mut M, addr: GlobalAddr) -> Outcome {
    let mut block = [7; 4096];
    measure("read of a word", 1, |_| Ok(block_on(memory.read_word(addr)).map(drop)?))?;
    measure("write of a word", 1, |round| Ok(block_on(memory.write_word(addr, round.into()))?))?;
    measure("update of a word", 1, |_| {
        Ok(block_on(memory.update(addr, 8, |window| window.set_word(0, window.word(0) + 1)))?)
    })?;
    measure("read of 4 KiB", 1, |_| Ok(block_on(memory.read(addr, &mut block))?))?;
    let store = block_on(KvStore::create(memory, &KvConfig { expected_keys: 1000, ..KvConfig::default() }))?;
    for key in 0..1000u32 {
        block_on(store.put(memory, &key.to_le_bytes(), &[7; 100]))?;
    }
    let mut value = Vec::new();
    measure("get of a value of 100 bytes", 1, |round| {
        Ok(block_on(store.get(memory, &(round % 1000).to_le_bytes(), &mut value)).map(drop)?)
    })?;
    measure("put of a value of 100 bytes", 1, |round| {
        Ok(block_on(store.put(memory, &(round % 1000).to_le_bytes(), &[8; 100])).map(drop)?)
    })
}

fn main() -> Outcome {
    let path = std::env::args().nth(1).unwrap_or_else(|| "rack.toml".to_owned());
    let file = RackFile::read(path)?;
    // The store has memory on every node: all must be there.
    let last = NodeId(u16::try_from(file.config.nodes - 1)?);
    let rack = Rack::join(&file, last)?;
    println!("attached to node 0:");
    let mut app = Rack::attach(&file, NodeId(0))?.here();
    let addr = app.alloc(4096, NodeId(0), Discipline::Coherent)?;
    operations(&mut app, addr)?;
    let mut batch = Batch::new();
    let words = 64;
    (0..words).for_each(|word| assert!(batch.read(addr + 8 * word, 8)));
    measure("read of a word, 64 in a batch", words as u32, |_| Ok(app.run(&batch).map(drop)?))?;
    println!("joined as {last}:");
    let mut here = rack.here();
    let addr = here.alloc(4096, last, Discipline::Coherent)?;
    operations(&mut here, addr)?;
    drop(here);
    rack.leave(Duration::from_secs(5));
    Ok(())
}
