//! What operations cost an application that is attached to a daemon's node, beside what the same takes in a process that is a
//! node of the rack: memory, locks, words, objects, chains, and the key-value store. Words and objects where they are (mapped), as
//! an application has those of its machine, and through the socket.
//!
//! ```sh
//! rackmem up --nodes 2 &        # the last node is left to an application
//! cargo run --release -p rackmem-apps --example attached -- $XDG_RUNTIME_DIR/rackmem-up/rack.toml
//! ```

use std::time::{Duration, Instant};

use apps::kv::{KvConfig, KvStore};
use rackmem::attach::Batch;
use rackmem::{
    ChainsConfig, Discipline, GlobalAddr, Locked, NodeHandle, NodeId, Objects, Rack, RackFile, Retry, Words,
    block_on,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Operations that are measured, after a tenth as many that are not.
const ROUNDS: u32 = 20_000;
/// Operations in a batch.
const BATCH: u32 = 64;

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

fn operations(memory: &mut NodeHandle, addr: GlobalAddr) -> Outcome {
    let mut block = [7; 4096];
    measure("read of a word", 1, |_| Ok(memory.read_word(addr).map(drop)?))?;
    measure("write of a word", 1, |round| Ok(memory.write_word(addr, round.into())?))?;
    measure("update of a word", 1, |_| {
        Ok(memory.update(addr, 8, |window| window.set_word(0, window.word(0) + 1))?)
    })?;
    measure("read of 4 KiB", 1, |_| Ok(memory.read(addr, &mut block)?))?;
    let mut batch = Batch::new();
    (0..BATCH).for_each(|word| assert!(batch.read(addr + 8 * u64::from(word), 8)));
    measure("read of a word, 64 in a batch", BATCH, |_| Ok(memory.run(&batch).map(drop)?))?;
    let home = addr.home();
    let value = Locked::new(memory, home, [0_u64; 8])?;
    measure("write of 64 bytes under their lock", 1, |_| {
        value.write(memory)?[0] += 1;
        Ok(())
    })?;
    measure("read of 64 bytes under their lock", 1, |_| Ok(value.read(memory).map(drop)?))?;
    one_sided(memory, home)?;
    let (mut chains, mut found) = (memory.chains(&ChainsConfig::at(home, 4 << 20))?, Vec::new());
    chains.put(memory, 1, &[7; 100])?;
    measure("get of 100 bytes from a chain", 1, |_| Ok(chains.get(memory, 1, &mut found).map(drop)?))?;
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

/// What is never cached.
fn one_sided(memory: &mut NodeHandle, home: NodeId) -> Outcome {
    let words: Words<u64> = memory.words(8, home)?;
    measure("fetch-add", 1, |_| Ok(words.fetch_add(memory, 0, 1).map(drop)?))?;
    measure("add, 64 until a flush", BATCH, |_| {
        (0..BATCH).try_for_each(|at| words.add(memory, at as usize % 8, 1))?;
        Ok(memory.flush()?)
    })?;
    let objects: Objects<[u8; 500]> = memory.objects(8, home)?;
    measure("read of an object of 500 bytes", 1, |_| {
        Ok(objects.read(memory, 1, Retry::Forever).map(drop)?)
    })?;
    measure("write of an object of 500 bytes", 1, |_| Ok(objects.write(memory, 1, &[7; 500]).map(drop)?))
}

fn main() -> Outcome {
    let path = std::env::args().nth(1).unwrap_or_else(|| "rack.toml".to_owned());
    let file = RackFile::read(path)?;
    // The store has memory on every node: all must be there.
    let last = NodeId(u16::try_from(file.config.nodes - 1)?);
    let rack = Rack::join(&file, last)?;
    println!("attached to node 0, words and objects mapped:");
    let mut app = Rack::attach(&file, NodeId(0))?.here();
    let addr = app.alloc(4096, NodeId(0), Discipline::Coherent)?;
    operations(&mut app, addr)?;
    drop(app);
    println!("attached to node 0, words and objects by the socket:");
    one_sided(&mut Rack::attach_by_socket(&file, NodeId(0))?.here(), NodeId(0))?;
    println!("joined as {last}:");
    let mut here = rack.here();
    let addr = here.alloc(4096, last, Discipline::Coherent)?;
    operations(&mut here, addr)?;
    drop(here);
    rack.leave(Duration::from_secs(5));
    Ok(())
}
