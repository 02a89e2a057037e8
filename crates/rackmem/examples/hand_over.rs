//! What a hand-over costs: two nodes write the same locks of 1 KiB in turns, so that every write moves a lock with its
//! data, and nobody stays inside.
//!
//! ```text
//! cargo run --release -p rackmem --example hand_over          # an embedded rack: all machines on one thread
//! cargo run --release -p rackmem --example hand_over shm      # a switch and nodes with transports of their own
//! valgrind --tool=callgrind target/release/examples/hand_over 100
//! ```
//!
//! With a number it makes so many rounds of 128 hand-overs and prints nothing, for counting instructions: the difference of
//! two runs. With `shm` the places are threads and not processes; what they do, and the messages, are the same.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rackmem::transport::{PeerId, Terms, Transport, shm};
use rackmem::{Config, Discipline, GlobalAddr, NodeHandle, NodeId, ProcessConfig, Rack, SwitchProcess};

const LOCKS: u64 = 64;
const BYTES: u64 = 1024;
const ROUNDS: usize = 500;

/// Writes all locks once, at one node after the other; returns how long each took.
fn round(region: GlobalAddr, nodes: &mut [NodeHandle], times: &mut Vec<u64>) {
    for node in nodes {
        for lock in 0..LOCKS {
            let lock = node.rwlock(region + lock * BYTES, BYTES as usize).expect("it is allocated");
            let began = Instant::now();
            let mut state = lock.write(node).expect("nobody stays inside");
            times.push(began.elapsed().as_nanos() as u64);
            let first = u64::from_le_bytes(state[..8].try_into().expect("8 bytes")) + 1;
            state[..8].copy_from_slice(&first.to_le_bytes());
        }
    }
}

fn measure(mut nodes: Vec<NodeHandle>, rounds: Option<usize>) {
    let region = nodes[0].alloc(LOCKS * BYTES, NodeId(1), Discipline::Locked).expect("there is room");
    let mut times = Vec::with_capacity(rounds.unwrap_or(ROUNDS) * 2 * LOCKS as usize);
    (0..rounds.unwrap_or(ROUNDS)).for_each(|_| round(region, &mut nodes, &mut times));
    if rounds.is_none() {
        times.sort_unstable();
        let part = |per_cent: usize| times[times.len() * per_cent / 100];
        println!("a hand-over: p10 {} ns, p50 {} ns, p90 {} ns", part(10), part(50), part(90));
    }
}

/// A rack whose places have transports of their own.
fn over_shared_memory(config: &Config, rounds: Option<usize>) {
    let dir = std::env::temp_dir().join(format!("rackmem-hand-over-{}", std::process::id()));
    let open = |me| -> Arc<dyn Transport> {
        let config = shm::ShmConfig {
            dir: PathBuf::from(&dir),
            me,
            block: 4096,
            ring_bytes: None,
            terms: Terms::default(),
        };
        Arc::new(shm::ShmTransport::open(&config).expect("shared memory"))
    };
    let process = ProcessConfig::default();
    let mut switch = SwitchProcess::new(config, &process, open(PeerId::SWITCH)).expect("a possible rack");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| switch.run(&stop));
        let join = |node| {
            let (config, process, transport) = (config.clone(), &process, open(PeerId::node(node)));
            scope.spawn(move || Rack::join_over(config, node, process, transport).expect("it joins"))
        };
        let racks = [join(NodeId(0)), join(NodeId(1))].map(|rack| rack.join().expect("a rack"));
        measure(racks.iter().map(Rack::here).collect(), rounds);
        drop(racks);
        stop.store(true, Ordering::Release);
    });
    std::fs::remove_dir_all(&dir).expect("it is there");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.iter().find_map(|argument| argument.parse().ok());
    let config = Config { nodes: 2, cache: 1 << 20, memory: 8 << 20, ..Config::default() };
    if arguments.iter().any(|argument| argument == "shm") {
        return over_shared_memory(&config, rounds);
    }
    let rack = Rack::embedded(config).expect("a possible rack");
    measure(vec![rack.node(NodeId(0)), rack.node(NodeId(1))], rounds);
}
