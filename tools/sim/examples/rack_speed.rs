//! How fast a whole rack is simulated: 8 nodes with 4 threads each, half reads, 8 bytes at a time, anywhere in a shared
//! set that every cache has capacity for. Prints events and operations per second of real time.
//!
//! `cargo run --release -p rackmem-sim --example rack_speed [operations] [blocks] [home|switch|auto]`

use std::time::Instant;

use node::{Access, Directory};
use sim::coherence::{self, FlowCc};
use sim::rack::{Handle, Rack, Setup, Until};
use sim::system::{Random, ThreadId};
use wire::{Discipline, GlobalAddr, NodeId};

const NODES: u16 = 8;

async fn work(mut handle: Handle<FlowCc>, parts: Vec<GlobalAddr>, blocks: u64) {
    let mut random = Random::new(u64::from(handle.thread().0));
    loop {
        let since = handle.now();
        let block = random.below(blocks);
        let addr = parts[(block % u64::from(NODES)) as usize] + (block / u64::from(NODES)) * 4096;
        let access = if random.below(2) == 0 { Access::Shared } else { Access::Modified };
        handle.touch(addr, 8, access, &mut |_| {}).await.expect("the block is allocated");
        handle.finished(since);
    }
}

/// Seconds that this process has had a processor: what counts on a machine that does other things, too.
fn processor_time() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanos: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos as f64 / 1e9)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, default: u64| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let (operations, blocks) = (number(0, 200_000), number(1, 64_000));
    let directory = match arguments.get(2).map(String::as_str) {
        None | Some("auto") => Directory::Auto,
        Some("switch") => Directory::Switch,
        Some("home") => Directory::Home,
        Some(other) => panic!("no directory is called {other}"),
    };
    let nodes = usize::from(NODES);
    let mut rack = Rack::new(
        Setup::new(nodes),
        FlowCc::new(coherence::FlowCcConfig { directory, ..coherence::FlowCcConfig::new(nodes) }),
    );
    let begun = Instant::now();
    let parts = rack.with_system_mut(|system| {
        let mut preload = system.preload(1);
        let part = |node| {
            let len = blocks.div_ceil(NODES.into()) * 4096;
            preload.alloc(NodeId(node), len, NodeId(node), Discipline::Coherent).expect("there is room")
        };
        (0..NODES).map(part).collect::<Vec<_>>()
    });
    println!("preloaded in {:.2?}", begun.elapsed());
    for thread in 0..NODES * 4 {
        let parts = parts.clone();
        rack.spawn(ThreadId(thread), move |handle| work(handle, parts, blocks));
    }
    rack.run(Until::Operations(operations / 4));
    rack.measure_from_here();
    let (begun, on_processor) = (Instant::now(), processor_time());
    let report = rack.run(Until::Operations(operations));
    let real = begun.elapsed().as_secs_f64();
    let processor = processor_time().zip(on_processor).map_or(real, |(now, then)| now - then);
    let events = report.counts.events as f64;
    println!(
        "{} events, {:.2} M/s ({:.2} M/s of processor time); {:.3} M operations/s; {:.1} events an operation",
        report.counts.events,
        events / real / 1e6,
        events / processor / 1e6,
        report.counts.operations as f64 / real / 1e6,
        events / report.counts.operations as f64,
    );
    println!(
        "virtual: {}, {:.2} M operations/s, p50 {}, p99 {}",
        report.time,
        report.operations_per_second() / 1e6,
        report.counts.latency.per_mille(500),
        report.counts.latency.per_mille(990),
    );
    let share = |agent: usize| report.agents.iter().map(|agents| agents[agent]).sum::<f64>() / nodes as f64;
    println!("cache agents {:.2}, home agents {:.2} of their time", share(0), share(1));
}
