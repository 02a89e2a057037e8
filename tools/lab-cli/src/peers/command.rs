//! Who is measured, in which order: for each mix every server, then every rack.

use super::args::Args;
use super::client::{Event, Order, Task};
use super::protocol::Protocol;
use super::report::{Outcome, PeersReport};
use super::server::{Server, program_of};
use super::{locks, targets, words};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::place::RackSpec;
use cli::processes::rendezvous::RuntimeDir;
use cli::processes::{OnInterrupt, TransportKind, Workers};
use cli::say;
use cli::ycsb::engine::Engine;
use cli::ycsb::latency::Latencies;
use cli::ycsb::measure::{Measured, Setting, part_start};
use cli::ycsb::phase::Span;
use cli::ycsb::rack::memory_for;
use cli::ycsb::workload::{OperationKind, Workload};
use cli::ycsb::{Directory, networked};
use rackmem::dataplane::network::Network;

/// Loads send ahead: they are not measured.
const LOAD_DEPTH: usize = 16;

/// Who asks a server.
#[derive(Clone, Copy)]
struct Clients {
    processes: usize,
    /// All of them together.
    connections: u16,
    seed: u64,
}

/// A server with its client processes. The server is the last child.
pub(crate) struct Peer {
    protocol: Protocol,
    workers: Workers<Order, Event>,
    clients: usize,
    /// There as long as they are in it.
    _network: Option<Network>,
}

impl Peer {
    /// A Redis at one node of a network, and a client process at each of so many others. None: it is not installed.
    pub(crate) fn redis_across(
        processes: u16,
        connections: u16,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, Fault> {
        let failed = |error| Fault::failed(format_args!("no network for the server: {error}"));
        let processes = usize::from(processes);
        let network = Network::new(1 + processes).map_err(failed)?;
        let Some(server) = Server::across(Protocol::Redis, &network) else { return Ok(None) };
        let clients = Clients { processes, connections, seed: 42 };
        Self::start(Protocol::Redis, server, clients, Some(network), interrupt).map(Some)
    }

    fn start(
        protocol: Protocol,
        server: Server,
        of: Clients,
        network: Option<Network>,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        let clients = of.processes;
        let name = program_of(protocol);
        let address = server.address;
        let server = vec![(name.to_owned(), server)];
        let mut workers = Workers::start(server, RuntimeDir::new()?, interrupt)?;
        let connected = |_, event| Ok(matches!(event, Event::Connected).then_some(()));
        workers.answers([0], OnInterrupt::End, connected)?;
        // Behind the switch's and the server's.
        let mut networks = network.iter().flat_map(|network| network.paths().into_iter().skip(2));
        for number in 0..clients as u64 {
            let part = |number| part_start(u64::from(of.connections), clients as u64, number);
            let connections = usize::try_from(part(number + 1) - part(number)).expect("some connections");
            let (seed, network) = (of.seed, networks.next());
            let task = Task { protocol, server: address, connections, seed, number, network };
            workers.add(format!("client {number} of {name}"), &task)?;
        }
        workers.answers(1..=clients, OnInterrupt::End, connected)?;
        Ok(Self { protocol, workers, clients, _network: network })
    }

    /// Inserts all records.
    pub(crate) fn load(&mut self, workload: &Workload) -> Result<(), Fault> {
        let clients = self.clients as u64;
        self.phase(workload, |number| {
            let part = |number| part_start(workload.records, clients, number);
            let (from, to) = (part(number), part(number + 1));
            Order::Load { workload: workload.clone(), from, to, depth: LOAD_DEPTH }
        })
        .map(drop)
    }

    /// Operations a second of such a mix, where no connection sends ahead.
    pub(crate) fn rate(&mut self, workload: &Workload) -> Result<f64, Fault> {
        Ok(self.run(workload, workload.operations, 1)?.throughput_per_s)
    }

    fn run(&mut self, workload: &Workload, operations: u64, depth: usize) -> Result<Outcome, Fault> {
        let clients = self.clients as u64;
        let (span, latencies, absent) = self.phase(workload, |number| {
            let part = |number| part_start(operations, clients, number);
            Order::Run { workload: workload.clone(), operations: part(number + 1) - part(number), depth }
        })?;
        if absent > 0 {
            return Err(Fault::failed(format_args!(
                "{} did not find {absent} records that were written before",
                program_of(self.protocol)
            )));
        }
        Ok(Outcome::new(workload, span.took(), &latencies))
    }

    fn phase(
        &mut self,
        workload: &Workload,
        order: impl Fn(u64) -> Order,
    ) -> Result<(Span, Latencies, u64), Fault> {
        (1..=self.clients).try_for_each(|at| self.workers.order(at, order(at as u64 - 1)))?;
        let parts = self.workers.answers(1..=self.clients, OnInterrupt::End, |_, event| match event {
            Event::Done { span, latencies, absent } => {
                Ok(Some((span, Latencies::of_recorded(&workload.mix, &latencies), absent)))
            }
            Event::Connected => Ok(None),
        })?;
        let all = parts.into_iter().reduce(|mut all, part| {
            all.0 = all.0.with(part.0);
            all.1.add(&part.1);
            all.2 += part.2;
            all
        });
        all.ok_or_else(|| Fault::failed("no client has answered"))
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    if args.locks {
        return locks::run(args);
    }
    if args.words {
        return words::run(args);
    }
    let workloads = args.workloads()?;
    output::prepare_directory("--out", &args.out)?;
    let interrupt = Interrupt::listen()?;
    let mut report = PeersReport::new(args);
    let mut peers = Vec::new();
    let processes = usize::from(args.nodes.min(args.connections));
    let clients = Clients { processes, connections: args.connections, seed: args.seed };
    for protocol in [Protocol::Redis, Protocol::Memcached] {
        match Server::find(protocol) {
            Some(server) => peers.push(Peer::start(protocol, server, clients, None, &interrupt)?),
            None => report.missing(program_of(protocol)),
        }
    }
    if let Some(workload) = workloads.first() {
        say!("loading {} records into {} servers", workload.records, peers.len());
        peers.iter_mut().try_for_each(|peer| peer.load(workload))?;
    }
    for (ordinal, workload) in (0..).zip(&workloads) {
        for peer in &mut peers {
            let name = program_of(peer.protocol);
            for depth in [1, usize::from(args.depth)] {
                if depth > 1 && peer.protocol != Protocol::Redis {
                    continue;
                }
                // A server's caches are warm after a tenth.
                peer.run(workload, workload.operations / 10 + 1, depth)?;
                let outcome = peer.run(workload, workload.operations, depth)?;
                let ahead = if depth > 1 { format!(", {depth} deep") } else { String::new() };
                let name = format!("{name}, {} connections{ahead}", args.connections);
                say!("workload {}: {name}: {:.0}/s", workload.name, outcome.throughput_per_s);
                report.add(&name, outcome);
            }
        }
        for kind in [TransportKind::Shm, TransportKind::Udp] {
            let outcome = on_rack(args, kind, ordinal, workload, &interrupt)?;
            report.add(&rack_name(args, kind), outcome);
        }
    }
    drop(peers);
    report.judge(&targets::TARGETS, args);
    report.write(args)
}

/// What a rack is called in results.
pub(super) fn rack_name(args: &Args, kind: TransportKind) -> String {
    format!("rackmem over {}, {} nodes", kind.name(), args.nodes)
}

fn on_rack(
    args: &Args,
    kind: TransportKind,
    ordinal: u64,
    workload: &Workload,
    interrupt: &Interrupt,
) -> Result<Outcome, Fault> {
    let workload = Args::on_rack(workload);
    let spec = spec(args, &workload);
    let setting =
        Setting { seed: args.seed, ordinal, history: None, warm_up: workload.operations, interrupt };
    let measured = measure_whole(kind, &spec, args.threads.into(), &workload, &setting)?;
    let outcome = Outcome::new(&workload, measured.took, &measured.latencies);
    Ok(match measured.travelled {
        Some(travelled) => outcome.travelled(&travelled),
        None => outcome,
    })
}

/// A workload on coherent memory of a rack of its own, to its end, that has found all records.
pub(crate) fn measure_whole(
    kind: TransportKind,
    spec: &RackSpec,
    threads: usize,
    workload: &Workload,
    setting: &Setting<'_>,
) -> Result<Measured, Fault> {
    let measured = networked::measure(kind, spec, (threads, Engine::Coherent), workload, setting)?
        .filter(|_| !setting.interrupt.requested())
        .ok_or(Fault::Interrupted)?;
    if measured.absent > 0 {
        return Err(Fault::failed(format_args!(
            "{} records that were written before were not found: this is a bug in rackmem",
            measured.absent
        )));
    }
    Ok(measured)
}

/// A rack with the defaults of `rackmem ycsb`, but that conflicting writes wait in a queue: between processes a refusal
/// costs a round trip; and with caches that hold all records without turning any of them out. (Servers hold all of
/// them, too. A cache that is not much larger than the data would have some crowded buckets, and each of their misses
/// costs as much as twenty reads.) Where records are read less than twice as often as they are written, copies are not worth it: small reads
/// are done where the block is. With B that would be an eighth more messages.
fn spec(args: &Args, workload: &Workload) -> RackSpec {
    let config = rackmem::Config::default();
    let nodes = usize::from(args.nodes);
    RackSpec {
        nodes,
        block_bytes: config.block_size.bytes(),
        cache: (workload.data_bytes().0 * 5 / 2).next_power_of_two().max(config.cache),
        memory: memory_for(nodes, config.block_size, workload).0,
        copies: 1,
        switch_entries: config.switch_entries,
        directory: Directory::Auto,
        queue: true,
        peek: workload.mix.share(OperationKind::Read) < 2.0 / 3.0,
        lock_copies: RackSpec::LOCK_COPIES,
        lock_region: RackSpec::LOCK_REGION,
        own_first: 0,
        steering: None,
        seed: args.seed,
    }
}
