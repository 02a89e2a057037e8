//! `rackmem-lab bench lock`: locks that carry their data.
//!
//! Four questions, each with its yardstick in the same run:
//!
//! | question | yardstick |
//! | --- | --- |
//! | what does a lock cost that is here already? | an uncontended `parking_lot::RwLock` |
//! | what does it take to hand one over, with its data? | the bare exchange of three messages, one with the data, over the same transport |
//! | what does it take to grant one that is free, with its data? | the bare exchange of two messages, one with the data |
//! | how many operations a second does a mix get? | a reader-writer lock with a wait queue, layered on coherent memory of the same rack; Redis |
//!
//! | file | holds |
//! | --- | --- |
//! | `cached` | the first |
//! | `node` | what a node's threads do with both kinds of locks |
//! | `redis` | the mixes on Redis |
//! | `hottest` | what becomes of the lock that is asked for most |
//! | `report` | what comes out |

mod cached;
mod hottest;
mod node;
mod redis;
mod report;

pub(crate) use node::Threads;

use std::time::Duration;

use rackmem::BlockSize;

use self::hottest::{Hottest, Span};
pub(in crate::bench) use self::node::BenchLock;
use self::node::{Done, Load, Order, Part, Setup, Traced};
use self::report::{Budget, Grant, HandOver, LockBenchReport, Mix, OfMix};
use super::bare::Bare;
use super::nodes::{Nodes, spec};
use super::rounds::median;
use super::samples::{Recorder, Samples};
use crate::peers::RedisServer;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;
use cli::ycsb::Directory;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Numbers of nodes to measure
    #[arg(long, value_delimiter = ',', default_value = "2,4", value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: Vec<u16>,

    /// Threads on each node
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,

    /// Per cent of operations that only read
    #[arg(long, value_delimiter = ',', default_value = "100,50,0", value_parser = clap::value_parser!(u8).range(0..=100))]
    read_ratio: Vec<u8>,

    /// Nanoseconds that a thread stays inside, beside looking at the state
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    critical_section: u64,

    /// Bytes that each lock guards
    #[arg(long, default_value = "1KiB")]
    state_size: Bytes,

    /// Locks, spread over the nodes
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    locks: u64,

    /// How skewed the choice of the lock is: 0 for not at all
    #[arg(long, default_value_t = 0.99)]
    zipf: f64,

    /// Threads of the node that has a lock which go before a node that waits, each time it comes there
    #[arg(long, default_value_t = 0)]
    own_first: u32,

    /// What carries the messages
    #[arg(long, value_enum, default_value = "inline")]
    transport: TransportKind,

    /// Milliseconds per measurement of a mix
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    millis: u64,

    /// Rounds of hand-overs, and of cached locks; the medians are printed
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(3..=1000))]
    rounds: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Threads that the layered lock tells apart.
const MOST_THREADS: u64 = lab::layered::THREADS as u64;

/// The longest state: what a message carries.
const MOST_STATE: u64 = 1 << 20;

impl Args {
    fn check(&self) -> Result<(), Fault> {
        let most = self.nodes.iter().max().map_or(0, |nodes| u64::from(*nodes) * u64::from(self.threads));
        if most > MOST_THREADS {
            return Err(Fault::usage(format_args!(
                "--nodes and --threads ask for {most} threads: the layered lock knows {MOST_THREADS}"
            )));
        }
        let state = self.state_size;
        if state.0 == 0 || state.0 > MOST_STATE || !state.0.is_multiple_of(8) {
            return Err(Fault::usage(format_args!(
                "--state-size {state} is not possible: choose a multiple of 8 B up to 1 MiB"
            )));
        }
        if !(0.0..=10.0).contains(&self.zipf) {
            return Err(Fault::usage(format_args!("--zipf {} is not between 0 and 10", self.zipf)));
        }
        Ok(())
    }

    fn load(&self, nodes: u16, read_percent: u8) -> Load {
        Load {
            locks_per_node: self.locks.div_ceil(u64::from(nodes)),
            state_bytes: self.state_size.0,
            read_percent: u64::from(read_percent),
            theta: self.zipf,
            critical_nanos: self.critical_section,
            millis: self.millis,
        }
    }

    /// A rack with capacity for all locks on every node, for both kinds.
    fn spec(&self, nodes: u16, load: &Load) -> RackSpec {
        let block = BlockSize::DEFAULT.bytes();
        let state = self.state_size.0.next_multiple_of(block);
        let all = load.locks_per_node * u64::from(nodes);
        RackSpec {
            nodes: usize::from(nodes),
            // Twice what is there, as buckets fill unevenly.
            cache: (2 * all * (state + block)).next_power_of_two().max(64 << 20),
            memory: (load.locks_per_node * (2 * state + block) + (MOST_THREADS + 4096) * block)
                .next_power_of_two()
                .max(64 << 20),
            switch_entries: 375_000,
            queue: true,
            peek: true,
            lock_copies: (4 * all * self.state_size.0.next_power_of_two().max(64)).max(8 << 20),
            lock_region: self.state_size.0.max(RackSpec::LOCK_REGION),
            own_first: self.own_first,
            ..spec(BlockSize::DEFAULT)
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    args.check()?;
    let interrupt = Interrupt::listen()?;
    let cached = cached::measure(args.rounds)?;
    let mut bare = match args.transport {
        TransportKind::Inline => None,
        transport => {
            let block = BlockSize::new(args.state_size.0.next_power_of_two().max(BlockSize::MIN.bytes()));
            let block = block.expect("a state is at most as large as a block may be");
            Some(Bare::start(transport, block, &interrupt)?)
        }
    };
    let hand_over = hand_over(args, bare.as_mut(), &interrupt)?;
    let grant = grant(args, bare.as_mut(), &interrupt)?;
    drop(bare);
    let redis = RedisServer::start(&interrupt)?;
    let mut mixes = Vec::new();
    for nodes in &args.nodes {
        mixes.extend(mixes_on(args, *nodes, redis.as_ref(), &interrupt)?);
    }
    let report = LockBenchReport {
        transport: args.transport,
        threads: args.threads,
        critical_section_ns: args.critical_section,
        state_bytes: args.state_size.0,
        locks: args.locks,
        zipf: args.zipf,
        millis: args.millis,
        own_first: args.own_first,
        cached,
        hand_over,
        grant,
        mixes,
    };
    output::show(args.json, "bench lock", &report, || report.text())
}

/// Updates per second of one state under one lock that carries it, by one thread on each of so many nodes; and the share of
/// the one that got least, against an equal share.
pub(crate) fn record_updates(
    transport: TransportKind,
    nodes: u16,
    state_bytes: u64,
    lasts: Duration,
    interrupt: &Interrupt,
) -> Result<(f64, f64), Fault> {
    /// So skewed that all take the first lock.
    const ALL_THE_SAME: f64 = 64.0;
    let millis = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
    let load = Load {
        locks_per_node: 1,
        state_bytes,
        read_percent: 0,
        theta: ALL_THE_SAME,
        critical_nanos: 0,
        millis,
    };
    let spec = RackSpec { nodes: usize::from(nodes), ..spec(BlockSize::DEFAULT) };
    let mut rack = Locks::start(transport, &spec, 1, &load, interrupt)?;
    let warm_up = rack.run(BenchLock::Carried, &Load { millis: millis / 5 + 10, ..load.clone() })?;
    let done = rack.run(BenchLock::Carried, &load)?;
    let written = warm_up.iter().chain(&done).map(|thread| thread.writes).sum();
    rack.check(BenchLock::Carried, written)?;
    Ok((rate(&done), least_share(&done)))
}

/// A rack whose threads have locks.
pub(in crate::bench) struct Locks(Nodes<Threads>);

impl Locks {
    fn start(
        transport: TransportKind,
        spec: &RackSpec,
        threads: u16,
        load: &Load,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        let setup = Setup { threads, load: load.clone() };
        let mut nodes = Nodes::start(transport, spec, &setup, interrupt)?;
        let parts: Vec<Part> = nodes.ask_all(&Order::Make)?;
        nodes.ask_all::<()>(&Order::Open(parts))?;
        Ok(Self(nodes))
    }

    /// What every thread has done; all of them ran at once.
    fn run(&mut self, kind: BenchLock, load: &Load) -> Result<Vec<Done>, Fault> {
        let done: Vec<Vec<Done>> = self.0.ask_all(&Order::Run(kind, load.clone()))?;
        Ok(done.concat())
    }

    /// The same, and what all threads did with the hottest lock.
    fn trace(&mut self, kind: BenchLock, load: &Load) -> Result<Traced, Fault> {
        let traced: Vec<Traced> = self.0.ask_all(&Order::Trace(kind, load.clone()))?;
        Ok(traced.concat())
    }

    /// A rack of two nodes with so many locks on each, of 1 KiB.
    pub(in crate::bench) fn of_two(
        transport: TransportKind,
        locks_per_node: u64,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        let load = Load {
            locks_per_node,
            state_bytes: 1024,
            read_percent: 0,
            theta: 0.0,
            critical_nanos: 0,
            millis: 0,
        };
        Self::start(transport, &spec(BlockSize::DEFAULT), 1, &load, interrupt)
    }

    /// The times in which a node writes states that another one wrote last.
    pub(in crate::bench) fn hand_overs(&mut self, kind: BenchLock, count: u64) -> Result<Samples, Fault> {
        self.0.ask::<Samples>(1, Order::WriteAll(kind, count))?;
        self.0.ask(0, Order::WriteAll(kind, count))
    }

    /// The sum of all states is how often they were written.
    pub(in crate::bench) fn check(&mut self, kind: BenchLock, written: u64) -> Result<(), Fault> {
        sound(kind.name(), self.0.ask(0, Order::Sum(kind))?, written)
    }
}

/// Two nodes that take turns, beside the bare exchange.
fn hand_over(args: &Args, mut bare: Option<&mut Bare>, interrupt: &Interrupt) -> Result<HandOver, Fault> {
    const NODES: u16 = 2;
    let load = args.load(NODES, 0);
    let count = load.locks_per_node * u64::from(NODES);
    let mut rack = Locks::start(args.transport, &args.spec(NODES, &load), 1, &load, interrupt)?;
    let (mut carried, mut layered, mut exchanged) = (Vec::new(), Vec::new(), Vec::new());
    let mut all = Recorder::new();
    // The first round finds everything at home.
    for round in 0..=args.rounds {
        if let Some(bare) = &mut bare {
            exchanged.push(bare.exchange(count)?.mean());
        }
        let samples = rack.hand_overs(BenchLock::Carried, count)?;
        carried.push(samples.mean());
        if round > 0 {
            all.add(&samples);
        }
        layered.push(rack.hand_overs(BenchLock::Layered, count)?.mean());
        if interrupt.requested() {
            return Err(Fault::Interrupted);
        }
    }
    let of = |means: &[f64]| median(means[1..].to_vec());
    for kind in BenchLock::BOTH {
        rack.check(kind, 2 * count * (args.rounds + 1))?;
    }
    Ok(HandOver {
        median_ns: of(&carried),
        p50_ns: all.quantile(0.5),
        p99_ns: all.quantile(0.99),
        layered_ns: of(&layered),
        budget: (!exchanged.is_empty()).then(|| Budget::of(of(&exchanged))),
    })
}

/// A node that takes locks of another one, which nobody has: the home keeps the directory, so that is a request and its answer.
fn grant(args: &Args, bare: Option<&mut Bare>, interrupt: &Interrupt) -> Result<Option<Grant>, Fault> {
    const NODES: u16 = 2;
    let Some(bare) = bare else { return Ok(None) };
    let load = args.load(NODES, 0);
    let spec = args.spec(NODES, &load);
    // Room for all that are ever taken.
    let rounds = args.rounds + 2;
    let (memory, lock_copies) = (rounds * spec.memory, rounds * spec.lock_copies);
    let spec = RackSpec { directory: Directory::Home, memory, lock_copies, ..spec };
    let mut rack = Locks::start(args.transport, &spec, 1, &load, interrupt)?;
    let (mut granted, mut exchanged) = (Recorder::new(), Recorder::new());
    for round in 0..=args.rounds {
        let now = bare.exchange_of_two(load.locks_per_node)?;
        let base: u64 = rack.0.ask(0, Order::MakeFree)?;
        let taken: Samples = rack.0.ask(1, Order::TakeFree(base))?;
        if round > 0 {
            exchanged.add(&now);
            granted.add(&taken);
        }
        if interrupt.requested() {
            return Err(Fault::Interrupted);
        }
    }
    let [p50_ns, p99_ns] = [0.5, 0.99].map(|part| granted.quantile(part));
    Ok(Some(Grant { p50_ns, p99_ns, bare_p50_ns: exchanged.quantile(0.5) }))
}

/// All mixes on a rack of so many nodes, and on Redis.
fn mixes_on(
    args: &Args,
    nodes: u16,
    redis: Option<&RedisServer>,
    interrupt: &Interrupt,
) -> Result<Vec<Mix>, Fault> {
    let load = args.load(nodes, 0);
    let spec = args.spec(nodes, &load);
    let mut rack = Locks::start(args.transport, &spec, args.threads, &load, interrupt)?;
    let mut written = [0; BenchLock::BOTH.len()];
    let mut mixes = Vec::new();
    for read_percent in &args.read_ratio {
        let load = args.load(nodes, *read_percent);
        // Also that of the hottest lock: what is noted of it takes memory.
        let short = Load { millis: (load.millis / 5).max(10), ..load.clone() };
        let is_written = *read_percent < 100;
        let mut done = Vec::new();
        for (kind, written) in BenchLock::BOTH.into_iter().zip(&mut written) {
            let before = rack.run(kind, &short)?;
            let during = rack.run(kind, &load)?;
            let traced = if is_written { rack.trace(kind, &short)? } else { Vec::new() };
            let (then, spans): (Vec<Done>, Vec<Vec<Span>>) = traced.into_iter().unzip();
            let all = before.iter().chain(&during).chain(&then);
            *written += all.map(|thread| thread.writes).sum::<u64>();
            rack.check(kind, *written)?;
            done.push(OfMix::of(&during, Hottest::of(&spans)));
            if interrupt.requested() {
                return Err(Fault::Interrupted);
            }
        }
        let redis = redis.map(|server| {
            let clients = (nodes, args.threads);
            let (during, _) = redis::run(server, clients, &load, false)?;
            let spans = if is_written { redis::run(server, clients, &short, true)?.1 } else { Vec::new() };
            Ok::<_, Fault>(OfMix::of(&during, Hottest::of(&spans)))
        });
        let redis = redis.transpose()?;
        let layered = done.pop().expect("both kinds ran");
        let carried = done.pop().expect("both kinds ran");
        mixes.push(Mix { nodes, read_percent: *read_percent, carried, layered, redis });
    }
    Ok(mixes)
}

/// What threads wrote has to be there.
fn sound(name: &str, found: u64, written: u64) -> Result<(), Fault> {
    if found == written {
        return Ok(());
    }
    Err(Fault::failed(format_args!(
        "{written} writes were done under {name} locks, and {found} arrived: a bug in rackmem"
    )))
}

/// Operations per second of all threads together.
fn rate(done: &[Done]) -> f64 {
    done.iter().map(|thread| thread.per_second()).sum()
}

/// The share of the thread that got least, against an equal share.
fn least_share(done: &[Done]) -> f64 {
    let least = done.iter().map(|thread| thread.all()).min().unwrap_or(0);
    let sum: u64 = done.iter().map(|thread| thread.all()).sum();
    least as f64 * done.len() as f64 / sum.max(1) as f64
}
