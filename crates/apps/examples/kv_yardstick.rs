//! YCSB C on an embedded rack against the same reads of a sharded concurrent hash map in plain local memory
//! (`dashmap`): the same keys in the same order, the same values copied out to the caller, the same number of
//! threads, in turns. Caches are warm: every node has read every record before.
//!
//! `cargo run --release -p rackmem-apps --example kv_yardstick [NODES [THREADS [RECORDS [READS]]]]`

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use apps::kv::{KvConfig, KvStore};
use dashmap::DashMap;
use rackmem::{Config, NodeId, Rack, block_on};
use random::Random;

/// Bytes of a record, as in YCSB: 10 fields of 100.
const RECORD: usize = 1000;
const ROUNDS: usize = 5;
/// Skew of the requests, as in YCSB.
const THETA: f64 = 0.99;

/// Record numbers by zipf's law, scattered over all records.
fn requests(records: usize, reads: usize, seed: u64) -> Vec<u32> {
    let mut cumulated: Vec<f64> = Vec::with_capacity(records);
    let mut sum = 0.0;
    for rank in 1..=records {
        sum += (rank as f64).powf(-THETA);
        cumulated.push(sum);
    }
    let mut random = Random::new(seed);
    (0..reads)
        .map(|_| {
            let at = (random.bits() >> 11) as f64 / (1u64 << 53) as f64 * sum;
            let rank = cumulated.partition_point(|upto| *upto < at).min(records - 1);
            (rank.wrapping_mul(2_654_435_761) % records) as u32
        })
        .collect()
}

/// Operations per second of all threads together.
fn throughput<W: Send>(
    workers: Vec<W>,
    requests: &[Vec<u32>],
    read: impl Fn(&mut W, usize, &mut Vec<u8>) + Sync,
) -> f64 {
    let start = Barrier::new(workers.len() + 1);
    let total: usize = requests.iter().map(Vec::len).sum();
    let mut seconds = 0.0;
    std::thread::scope(|scope| {
        let running: Vec<_> = workers
            .into_iter()
            .zip(requests)
            .map(|(mut worker, requests)| {
                let (start, read) = (&start, &read);
                scope.spawn(move || {
                    let mut value = Vec::with_capacity(RECORD);
                    start.wait();
                    for record in requests {
                        read(&mut worker, *record as usize, &mut value);
                        black_box(&value);
                    }
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        running.into_iter().for_each(|thread| thread.join().expect("a reader panicked"));
        seconds = began.elapsed().as_secs_f64();
    });
    total as f64 / seconds
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut argument = |default: usize| arguments.next().unwrap_or(Ok(default));
    let (nodes, threads, records, reads) =
        (argument(8)?, argument(1)?, argument(40_000)?, argument(400_000)?);
    let total = nodes * threads;
    let config = Config { nodes, memory: 256 << 20, ..Config::default() };
    println!(
        "{records} records of {RECORD} B ({} MiB), {nodes} nodes x {threads} threads, {} MiB of cache a node, zipf {THETA}",
        (records * RECORD) >> 20,
        config.cache >> 20
    );
    let keys: Vec<Vec<u8>> = (0..records).map(|n| format!("user{n:016}").into_bytes()).collect();
    let value = |n: usize| vec![n as u8; RECORD];

    let rack = Rack::embedded(config)?;
    let mut loader = rack.node(NodeId(0));
    let store = block_on(KvStore::create(
        &mut loader,
        &KvConfig { expected_keys: records as u64, ..KvConfig::default() },
    ))?;
    let map: DashMap<Vec<u8>, Vec<u8>> = DashMap::new();
    for (n, key) in keys.iter().enumerate() {
        block_on(store.put(&mut loader, key, &value(n)))?;
        map.insert(key.clone(), value(n));
    }
    let requests: Vec<Vec<u32>> = (0..total).map(|t| requests(records, reads, t as u64 + 1)).collect();
    let handles = || (0..total).map(|t| rack.node(NodeId((t % nodes) as u16))).collect::<Vec<_>>();
    let on_rack = || {
        throughput(handles(), &requests, |node, record, into| {
            let found =
                block_on(store.get(node, &keys[record], into)).expect("reads of live records succeed");
            assert!(found && into[0] == record as u8);
        })
    };
    let on_map = || {
        throughput(vec![(); total], &requests, |(), record, into| {
            let found = map.get(&keys[record]).expect("it was inserted");
            into.clear();
            into.extend_from_slice(&found);
        })
    };
    // Warm caches: every worker reads every record once.
    let every: Vec<Vec<u32>> = (0..total).map(|_| (0..records as u32).collect()).collect();
    throughput(handles(), &every, |node, record, into| {
        block_on(store.get(node, &keys[record], into)).expect("reads of live records succeed");
    });
    let before = rack.counters();
    let mut ratios: Vec<(f64, f64, f64)> = (0..ROUNDS)
        .map(|_| {
            let (rack, map) = (on_rack(), on_map());
            (rack / map, rack, map)
        })
        .collect();
    let after = rack.counters();
    let (hits, misses) = (after.hits() - before.hits(), after.misses() - before.misses());
    ratios.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, rack, map) = ratios[ROUNDS / 2];
    println!(
        "rackmem: {:.2} M reads/s, hit rate {:.2} %",
        rack / 1e6,
        100.0 * hits as f64 / (hits + misses).max(1) as f64
    );
    println!("dashmap: {:.2} M reads/s", map / 1e6);
    println!("rackmem / dashmap: {ratio:.2} (median of {ROUNDS} rounds, in turns)");
    Ok(())
}
