//! What a hand-over costs: two nodes write the same locks of 1 KiB in turns, so that every write moves a lock with its
//! data, and nobody stays inside.
//!
//! ```text
//! cargo run --release -p rackmem --example hand_over          # an embedded rack: all machines on one thread
//! cargo run --release -p rackmem --example hand_over shm      # a switch and nodes with transports of their own
//! cargo run --release -p rackmem --example hand_over regions      # 64 regions of 64 B against one of 4 KiB; also `shm regions`
//! cargo run --release -p rackmem --example hand_over shm mapped   # regions behind pointers, against the same in the lock's own copy
//! cargo run --release -p rackmem --example hand_over free         # locks that nobody has, granted by their home; also `shm free`
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
use rackmem::{
    Config, Directory, Discipline, GlobalAddr, LockedRegions, NodeHandle, NodeId, ProcessConfig, Rack,
    SwitchProcess,
};

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

fn measure(mut nodes: Vec<NodeHandle>, is_free: bool, rounds: Option<usize>) {
    let alloc = |node: &mut NodeHandle| node.alloc(LOCKS * BYTES, NodeId(1), Discipline::Locked);
    let mut region = alloc(&mut nodes[0]).expect("there is room");
    let mut times = Vec::with_capacity(rounds.unwrap_or(ROUNDS) * 2 * LOCKS as usize);
    for _ in 0..rounds.unwrap_or(ROUNDS) {
        if is_free {
            // Others, which nobody has had: one of the nodes takes them, and the other is their home.
            region = alloc(&mut nodes[0]).expect("there is room");
            round(region, &mut nodes[..1], &mut times);
        } else {
            round(region, &mut nodes, &mut times);
        }
    }
    if rounds.is_none() {
        times.sort_unstable();
        let part = |per_cent: usize| times[times.len() * per_cent / 100];
        let name = if is_free { "a grant of a free lock" } else { "a hand-over" };
        println!("{name}: p10 {} ns, p50 {} ns, p90 {} ns", part(10), part(50), part(90));
    }
}

/// The same of locks over several regions: these against those, in turns. What else is done to them is the same.
fn compare_regions(nodes: &mut [NodeHandle]) {
    const COUNTED: usize = 20;
    let shapes = [(64, 64), (1, 4096)];
    let make = |node: &mut NodeHandle, (count, bytes): (usize, usize)| {
        let lock = LockedRegions::new(node, NodeId(1), 8 << 10).expect("there is room");
        let mut regions = lock.write(node).expect("nobody has it");
        (0..count).for_each(|_| assert!(regions.push(bytes).is_ok(), "there is room"));
        lock.addr()
    };
    let locks = shapes.map(|shape| [(); LOCKS as usize].map(|()| make(&mut nodes[0], shape)));
    let mut medians = [Vec::new(), Vec::new()];
    for _ in 0..=COUNTED {
        for (locks, medians) in locks.iter().zip(&mut medians) {
            let mut times: Vec<u64> = Vec::new();
            for node in &mut *nodes {
                for addr in locks {
                    let lock = LockedRegions::at(node, *addr, 8 << 10).expect("it is there");
                    let began = Instant::now();
                    let mut regions = lock.write(node).expect("nobody stays inside");
                    times.push(began.elapsed().as_nanos() as u64);
                    let last = regions.len() - 1;
                    regions.values_mut::<u64>(last).expect("whole words")[0] += 1;
                }
            }
            times.sort_unstable();
            medians.push(times[times.len() / 2]);
        }
    }
    let [many, one] = medians.map(|mut rounds| {
        // The first one finds everything where it was made.
        rounds.remove(0);
        rounds.sort_unstable();
        rounds[COUNTED / 2]
    });
    println!("64 regions of 64 B: {many} ns; one of 4 KiB: {one} ns; {:.2}x", many as f64 / one as f64);
}

/// Takes locks over so many pages of memory that they have taken in, and writes a word of it: in the lock's copy, or through a pointer.
fn compare_mapped(nodes: &mut [NodeHandle]) {
    const TIMES: usize = 400;
    for pages in [1, 16, 250] {
        let bytes = pages * 4096;
        let lock = LockedRegions::new(&mut nodes[0], NodeId(1), bytes + 4096).expect("there is room");
        let memory = nodes[0].alloc(bytes as u64, NodeId(1), Discipline::Locked).expect("there is room");
        let taken_in =
            lock.write(&mut nodes[0]).expect("nobody has it").take_in(&mut nodes[0], memory, bytes);
        assert_eq!(taken_in, Ok(0), "it is memory for a lock");
        let locks = [0, 1]
            .map(|node| LockedRegions::at(&nodes[node], lock.addr(), bytes + 4096).expect("it is there"));
        let mapped = [0, 1].map(|node| locks[node].map().expect("nodes have addresses of their own"));
        let mut medians = [[0; 2]; 2];
        for (moves, medians) in medians.iter_mut().enumerate() {
            let mut times = [Vec::new(), Vec::new()];
            for turn in 0..4 * TIMES {
                // By turns one way and the other one: on one node, or on that which has not been there.
                let (node, way) = (turn % 2 * moves, turn / 2 % 2);
                let began = Instant::now();
                if way == 0 {
                    let mut regions = locks[node].write(&mut nodes[node]).expect("nobody stays inside");
                    regions.values_mut::<u64>(0).expect("whole words")[0] += 1;
                } else {
                    let mut regions = mapped[node].write(&mut nodes[node]).expect("nobody stays inside");
                    regions.get_mut(0).expect("it was taken in")[0] += 1;
                }
                times[way].push(began.elapsed().as_nanos() as u64);
            }
            for (times, median) in times.iter_mut().zip(medians) {
                times.sort_unstable();
                *median = times[times.len() / 2];
            }
        }
        let [[here, here_mapped], [moved, moved_mapped]] = medians;
        println!(
            "{pages} pages: here {here} ns, mapped {here_mapped} ns; handed over {moved} ns, mapped {moved_mapped} ns"
        );
    }
}

/// A rack whose places have transports of their own.
fn over_shared_memory(config: &Config, measure: impl FnOnce(Vec<NodeHandle>)) {
    let dir = std::env::temp_dir().join(format!("rackmem-hand-over-{}", std::process::id()));
    let open = |me| -> Arc<dyn Transport> {
        let config = shm::ShmConfig {
            dir: PathBuf::from(&dir),
            me,
            // The largest that travels: regions with their list.
            block: if config.lock_region == Config::default().lock_region {
                16 << 10
            } else {
                config.lock_region
            },
            ring_bytes: None,
            terms: Terms::default(),
        };
        Arc::new(shm::ShmTransport::open(&config).expect("shared memory"))
    };
    // Nodes of one process map memory apart from each other.
    let process = |node: u64| ProcessConfig { map_base: (1 + node) << 44, ..ProcessConfig::default() };
    let mut switch = SwitchProcess::new(config, &process(0), open(PeerId::SWITCH)).expect("a possible rack");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| switch.run(&stop));
        let join = |node: NodeId| {
            let (config, process, transport) =
                (config.clone(), process(node.0.into()), open(PeerId::node(node)));
            scope.spawn(move || Rack::join_over(config, node, &process, transport).expect("it joins"))
        };
        let racks = [join(NodeId(0)), join(NodeId(1))].map(|rack| rack.join().expect("a rack"));
        measure(racks.iter().map(Rack::here).collect());
        drop(racks);
        stop.store(true, Ordering::Release);
    });
    std::fs::remove_dir_all(&dir).expect("it is there");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.iter().find_map(|argument| argument.parse().ok());
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let config = Config { nodes: 2, cache: 1 << 20, memory: 64 << 20, ..Config::default() };
    // The home of a free lock is asked, and answers.
    let config = match has("free") {
        true => Config { directory: Directory::Home, lock_copies: 64 << 20, ..config },
        false => config,
    };
    let config = match has("mapped") {
        true => Config { lock_region: 1 << 20, lock_copies: 64 << 20, ..config },
        false => config,
    };
    let measure = |mut nodes: Vec<NodeHandle>| match (has("regions"), has("mapped")) {
        (true, _) => compare_regions(&mut nodes),
        (_, true) => compare_mapped(&mut nodes),
        _ => measure(nodes, has("free"), rounds),
    };
    if has("shm") {
        return over_shared_memory(&config, measure);
    }
    let rack = Rack::embedded(config).expect("a possible rack");
    measure(vec![rack.node(NodeId(0)), rack.node(NodeId(1))]);
}
