//! What came out: a table, a file for programs, a drawing.

use std::fs;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::args::Args;
use super::command::rack_name;
use super::protocol::Protocol;
use super::server::program_of;
use super::targets::Target;
use cli::fault::Fault;
use cli::output;
use cli::processes::place::Travelled;
use cli::say;
use cli::ycsb::latency::Latencies;
use cli::ycsb::workload::{OperationKind, Workload};

/// What one system did with one mix.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    workload: String,
    pub(super) throughput_per_s: f64,
    operations: u64,
    latencies: Vec<KindOutcome>,
    /// What an operation costs in messages between processes; of racks only.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Budget>,
}

#[derive(Clone, Debug, Serialize)]
struct KindOutcome {
    op: &'static str,
    p50_ns: u64,
    p99_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Budget {
    messages_per_operation: f64,
    bytes_per_operation: f64,
    wake_ups_per_operation: f64,
    dropped: u64,
}

impl Outcome {
    /// This workload took so long.
    pub(super) fn new(workload: &Workload, took: Duration, latencies: &Latencies) -> Self {
        let operations = latencies.count();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let of = |(kind, p): (OperationKind, cli::ycsb::latency::Percentiles)| KindOutcome {
            op: kind.name(),
            p50_ns: nanos(p.p50),
            p99_ns: nanos(p.p99),
        };
        Self {
            workload: workload.name.clone(),
            throughput_per_s: operations as f64 / took.as_secs_f64().max(1e-9),
            operations,
            latencies: latencies.percentiles().into_iter().map(of).collect(),
            budget: None,
        }
    }

    /// With what the transports did meanwhile.
    pub(super) fn travelled(self, travelled: &Travelled) -> Self {
        let each = |count: u64| count as f64 / self.operations.max(1) as f64;
        let budget = Budget {
            messages_per_operation: each(travelled.messages),
            bytes_per_operation: each(travelled.bytes),
            wake_ups_per_operation: each(travelled.wake_ups),
            dropped: travelled.dropped.iter().sum(),
        };
        Self { budget: Some(budget), ..self }
    }
}

#[derive(Debug, Serialize)]
struct System {
    name: String,
    outcomes: Vec<Outcome>,
}

#[derive(Debug, Serialize)]
struct Verdict {
    what: String,
    least: f64,
    /// None if there is nothing to compare with.
    is: Option<f64>,
    met: Option<bool>,
}

/// The document of `--json` and of `peers.json`.
#[derive(Debug, Serialize)]
pub(super) struct PeersReport {
    command: &'static str,
    version: &'static str,
    client_processes: u16,
    nodes: u16,
    threads_per_node: u16,
    connections: u16,
    depth: u16,
    seed: u64,
    missing: Vec<&'static str>,
    systems: Vec<System>,
    targets: Vec<Verdict>,
}

impl PeersReport {
    pub(super) fn new(args: &Args) -> Self {
        Self {
            command: "lab peers",
            version: env!("CARGO_PKG_VERSION"),
            client_processes: args.nodes.min(args.connections),
            nodes: args.nodes,
            threads_per_node: args.threads,
            connections: args.connections,
            depth: args.depth,
            seed: args.seed,
            missing: Vec::new(),
            systems: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// This program is not installed.
    pub(super) fn missing(&mut self, program: &'static str) {
        say!("{program} is not installed and is left out; on Debian: apt-get install {program}");
        self.missing.push(program);
    }

    /// Adds what a system did.
    pub(super) fn add(&mut self, name: &str, outcome: Outcome) {
        match self.systems.iter_mut().find(|system| system.name == name) {
            Some(system) => system.outcomes.push(outcome),
            None => self.systems.push(System { name: name.to_owned(), outcomes: vec![outcome] }),
        }
    }

    /// Compares with the targets for the mixes that ran.
    pub(super) fn judge(&mut self, targets: &[Target], args: &Args) {
        let redis = program_of(Protocol::Redis);
        let shallow = format!("{redis}, {} connections", args.connections);
        let deep = format!("{shallow}, {} deep", args.depth);
        for target in targets {
            let Some(ours) = self.throughput(&rack_name(args, target.kind), target.workload) else {
                continue;
            };
            let peer = if target.deep { &deep } else { &shallow };
            let is = self.throughput(peer, target.workload).map(|theirs| ours / theirs);
            let what = format!("{} over {}, against {peer}", target.workload, target.kind.name());
            self.targets.push(Verdict {
                what,
                least: target.times,
                is,
                met: is.map(|is| is >= target.times),
            });
        }
    }

    fn throughput(&self, system: &str, workload: &str) -> Option<f64> {
        let system = self.systems.iter().find(|it| it.name == system)?;
        system.outcomes.iter().find(|it| it.workload == workload).map(|it| it.throughput_per_s)
    }

    /// Writes everything.
    pub(super) fn write(&self, args: &Args) -> Result<(), Fault> {
        let failed = |error| Fault::failed(format_args!("cannot write to {}: {error}", args.out.display()));
        let json = serde_json::to_string_pretty(self).map_err(Fault::failed)?;
        fs::write(args.out.join("peers.json"), json + "\n").map_err(failed)?;
        self.draw(args)?;
        if args.json { output::print_json(self) } else { output::print(&self.text()) }
    }

    #[cfg(feature = "plots")]
    fn draw(&self, args: &Args) -> Result<(), Fault> {
        use lab::output::bars::Bars;

        let mut bars = Bars::new("YCSB on one machine, by mix", "operations a second");
        for system in &self.systems {
            let values = system.outcomes.iter().map(|it| (it.workload.as_str(), it.throughput_per_s));
            bars = bars.series(&system.name, values);
        }
        fs::write(args.out.join("peers.svg"), lab::output::plot::bars(&bars))
            .map_err(|error| Fault::failed(format_args!("cannot write to {}: {error}", args.out.display())))
    }

    #[cfg(not(feature = "plots"))]
    fn draw(&self, _: &Args) -> Result<(), Fault> {
        say!("no drawing in this build (build with --features plots)");
        Ok(())
    }

    fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header(["system", "mix", "ops/s", "operation", "p50", "p99", "msg/op", "wake-ups/op"]);
        for system in &self.systems {
            for outcome in &system.outcomes {
                for (at, kind) in outcome.latencies.iter().enumerate() {
                    let once = |text: String| if at == 0 { text } else { String::new() };
                    let budget = |part: fn(&Budget) -> f64| {
                        once(
                            outcome.budget.as_ref().map_or_else(String::new, |it| format!("{:.3}", part(it))),
                        )
                    };
                    table.add_row([
                        once(system.name.clone()),
                        once(outcome.workload.clone()),
                        once(format!("{:.0}", outcome.throughput_per_s)),
                        kind.op.to_owned(),
                        format!("{:.1} µs", kind.p50_ns as f64 / 1e3),
                        format!("{:.1} µs", kind.p99_ns as f64 / 1e3),
                        budget(|it| it.messages_per_operation),
                        budget(|it| it.wake_ups_per_operation),
                    ]);
                }
            }
        }
        for column in [2, 4, 5, 6, 7] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = format!("{table}\n");
        for target in &self.targets {
            let verdict = match (target.is, target.met) {
                (Some(is), Some(met)) => format!("{is:.2}x: {}", if met { "met" } else { "not met" }),
                _ => "nothing to compare with".to_owned(),
            };
            text += &format!("{}: at least {}x; {verdict}\n", target.what, target.least);
        }
        text
    }
}
