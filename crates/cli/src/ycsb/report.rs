//! The result of a run: a table for people, a document for programs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use rackmem::transport::Cause;
use serde::Serialize;

use super::args::Args;
use super::engine::{Choice, Engine};
use super::measure::Measured;
use super::rack::quarantine;
use super::store::{Appends, ratio};
use super::trips::TripCounts;
use super::workload::{OperationKind, Workload};
use crate::processes::TransportKind;
use crate::processes::place::Travelled;
use crate::size::Bytes;

/// The rack that the workloads ran on.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct RackShape {
    transport: TransportKind,
    pub(crate) nodes: usize,
    pub(crate) threads_per_node: usize,
    pub(crate) block_bytes: Bytes,
    pub(crate) cache_bytes_per_node: Bytes,
    pub(crate) memory_bytes_per_node: Bytes,
    pub(crate) switch_entries: usize,
    pub(crate) directory: &'static str,
    pub(crate) steering: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    chains: Option<ChainShape>,
    pub(crate) seed: u64,
}

/// How chains are kept.
#[derive(Clone, Copy, Serialize, Debug)]
pub(crate) struct ChainShape {
    steer_reads: bool,
    preload: bool,
    /// Milliseconds for which clients use what they know, and for which slots stay in quarantine.
    lease_ms: u32,
    rest_ms: u64,
    /// Nodes whose memories the store has, and in how many of them each record is.
    memories: usize,
    copies: u8,
}

impl RackShape {
    /// What the flags ask for, with this much memory on each node.
    pub(crate) fn new(args: &Args, memory: Bytes) -> Self {
        Self {
            transport: args.transport,
            nodes: args.nodes,
            threads_per_node: args.threads,
            block_bytes: Bytes(args.block_size.bytes()),
            cache_bytes_per_node: args.cache,
            memory_bytes_per_node: memory,
            switch_entries: args.switch_entries,
            directory: args.directory.name(),
            steering: args.steering.name(),
            chains: (args.store == Choice::Chain).then(|| ChainShape {
                steer_reads: args.steer_reads,
                preload: args.preload,
                lease_ms: args.chains().lease,
                rest_ms: quarantine(args).0.div_ceil(1_000_000),
                memories: args.chains().memories,
                copies: args.chains().copies,
            }),
            seed: args.seed,
        }
    }

    /// One line for people.
    pub(crate) fn headline(&self) -> String {
        let counted =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        format!(
            "{} of {}, {} each; blocks of {}; cache of {} a node; directory: {}, \
             {} switch entries; seed {}",
            match self.transport {
                TransportKind::Inline => "embedded rack",
                TransportKind::Shm => "rack of processes over shared memory",
                TransportKind::Udp => "rack of processes over UDP",
                TransportKind::Wire => "rack of processes, the switch in the kernel at its ports",
                TransportKind::WireXdp => "rack of processes, the switch in the drivers of its ports",
                TransportKind::WireProcess => "rack of processes, the switch in a process behind its ports",
            },
            counted(self.nodes, "node"),
            counted(self.threads_per_node, "thread"),
            self.block_bytes,
            self.cache_bytes_per_node,
            self.directory,
            self.switch_entries,
            self.seed
        ) + &self.chains.map_or_else(String::new, |ChainShape { lease_ms, rest_ms, memories, copies, .. }| {
            let place = match (memories, copies) {
                (1, _) => "in the memory of node 0".to_owned(),
                (some, 1) => format!("in the memories of nodes 0 to {}", some - 1),
                (some, copies) => format!("in {copies} copies in the memories of nodes 0 to {}", some - 1),
            };
            format!(
                "\nchains {place}: {}, with what is written while slots stay in quarantine, for {rest_ms} ms; lease of {lease_ms} ms",
                self.memory_bytes_per_node
            )
        })
    }
}

/// The document of `--json`. Times are in nanoseconds, sizes in bytes.
#[derive(Serialize)]
pub(crate) struct YcsbReport {
    command: &'static str,
    version: &'static str,
    #[serde(flatten)]
    rack: RackShape,
    interrupted: bool,
    workloads: Vec<WorkloadReport>,
}

#[derive(Serialize)]
struct WorkloadReport {
    workload: String,
    store: &'static str,
    #[serde(skip)]
    shown_mix: String,
    mix: Vec<Part>,
    request_distribution: &'static str,
    records: u64,
    record_bytes: usize,
    data_bytes: Bytes,
    load_ns: u64,
    run_ns: u64,
    operations: u64,
    complete: bool,
    throughput_per_s: f64,
    latencies: Vec<KindReport>,
    absent: u64,
    cache_hits: u64,
    cache_misses: u64,
    hit_rate: Option<f64>,
    switch_packets: u64,
    home_packets: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    appends: Option<Appends>,
    switch_packets_per_operation: f64,
    home_packets_per_operation: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    travelled: Option<TravelReport>,
}

/// What the transports of all places did.
#[derive(Serialize)]
struct TravelReport {
    messages: u64,
    bytes: u64,
    wake_ups: u64,
    messages_per_operation: f64,
    bytes_per_operation: f64,
    wake_ups_per_operation: f64,
    dropped: BTreeMap<&'static str, u64>,
}

impl TravelReport {
    fn new(travelled: &Travelled, operations: u64) -> Self {
        let each = |count| ratio(count, operations).unwrap_or(0.0);
        let Travelled { messages, bytes, wake_ups, dropped } = *travelled;
        Self {
            messages,
            bytes,
            wake_ups,
            messages_per_operation: each(messages),
            bytes_per_operation: each(bytes),
            wake_ups_per_operation: each(wake_ups),
            dropped: Cause::ALL.iter().map(|cause| cause.name()).zip(dropped).collect(),
        }
    }

    /// One line for people.
    fn line(&self) -> String {
        let mut line = format!(
            "{:.3} messages, {:.0} B, {:.4} wake-ups an operation",
            self.messages_per_operation, self.bytes_per_operation, self.wake_ups_per_operation
        );
        for (cause, count) in self.dropped.iter().filter(|(_, count)| **count > 0) {
            let _ = write!(line, "; {count} dropped ({cause})");
        }
        line
    }
}

#[derive(Serialize)]
struct Part {
    op: &'static str,
    share: f64,
}

#[derive(Serialize)]
struct KindReport {
    op: &'static str,
    count: u64,
    mean_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trips: Option<TripCounts>,
}

impl YcsbReport {
    /// Nothing has run yet.
    pub(crate) fn new(rack: RackShape) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self { command: "ycsb", version, rack, interrupted: false, workloads: Vec::new() }
    }

    /// Adds a workload that ran.
    pub(crate) fn add(&mut self, workload: &Workload, engine: Engine, measured: &Measured) {
        let (operations, traffic) = (measured.latencies.count(), &measured.traffic);
        let throughput_per_s = operations as f64 / measured.took.as_secs_f64().max(1e-9);
        let kind_report = |(kind, p): &(OperationKind, super::latency::Percentiles)| KindReport {
            op: kind.name(),
            count: p.count,
            mean_ns: nanos(p.mean),
            p50_ns: nanos(p.p50),
            p99_ns: nanos(p.p99),
            p999_ns: nanos(p.p999),
            max_ns: nanos(p.max),
            round_trips: measured.trips.of(*kind),
        };
        self.workloads.push(WorkloadReport {
            workload: workload.name.clone(),
            store: engine.name(),
            shown_mix: workload.mix.to_string(),
            mix: workload.mix.parts().map(|(kind, share)| Part { op: kind.name(), share }).collect(),
            request_distribution: workload.requests.name(),
            records: workload.records,
            record_bytes: workload.record_len(),
            data_bytes: workload.data_bytes(),
            load_ns: nanos(measured.load),
            run_ns: nanos(measured.took),
            operations,
            complete: operations == workload.operations,
            throughput_per_s,
            latencies: measured.latencies.percentiles().iter().map(kind_report).collect(),
            absent: measured.absent,
            cache_hits: traffic.hits,
            cache_misses: traffic.misses,
            // A hit through a pointer leaves no trace.
            hit_rate: traffic.hit_rate().filter(|_| engine != Engine::Mapped),
            switch_packets: traffic.switch_packets,
            home_packets: traffic.home_packets,
            appends: matches!(engine, Engine::Chain(_)).then_some(traffic.appends),
            switch_packets_per_operation: ratio(traffic.switch_packets, operations).unwrap_or(0.0),
            home_packets_per_operation: ratio(traffic.home_packets, operations).unwrap_or(0.0),
            travelled: measured.travelled.map(|travelled| TravelReport::new(&travelled, operations)),
        });
    }

    /// Somebody stopped the run.
    pub(crate) fn interrupted(&mut self) {
        self.interrupted = true;
    }

    /// True if nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.workloads.is_empty()
    }

    /// The table, and below it what the workloads were.
    pub(crate) fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        let mut kinds = self.workloads.iter().flat_map(|workload| &workload.latencies);
        let counts_trips = kinds.any(|kind| kind.round_trips.is_some());
        let common = [
            "workload",
            "ops/s",
            "hit rate",
            "switch pkt/op",
            "home pkt/op",
            "operation",
            "count",
            "p50",
            "p99",
            "p99.9",
        ];
        let of_trips = ["round trips: mean", "p50", "p99"];
        table.set_header(common.into_iter().chain(of_trips.into_iter().filter(|_| counts_trips)));
        for workload in &self.workloads {
            for (at, kind) in workload.latencies.iter().enumerate() {
                let once = |text: String| if at == 0 { text } else { String::new() };
                let short = if workload.complete { "" } else { " (stopped)" };
                let mut row = vec![
                    once(format!("{}{short}", workload.workload)),
                    once(thousands(workload.throughput_per_s)),
                    once(
                        workload
                            .hit_rate
                            .map_or_else(|| "-".to_owned(), |rate| format!("{:.2} %", rate * 100.0)),
                    ),
                    once(format!("{:.3}", workload.switch_packets_per_operation)),
                    once(format!("{:.3}", workload.home_packets_per_operation)),
                    kind.op.to_owned(),
                    kind.count.to_string(),
                    micros(kind.p50_ns),
                    micros(kind.p99_ns),
                    micros(kind.p999_ns),
                ];
                if counts_trips {
                    let trips = kind.round_trips.map(|TripCounts { mean, p50, p99, .. }| {
                        [format!("{mean:.2}"), p50.to_string(), p99.to_string()]
                    });
                    row.extend(trips.unwrap_or_else(|| ["-"; 3].map(str::to_owned)));
                }
                table.add_row(row);
            }
        }
        for column in [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = format!("{table}\n");
        for workload in &self.workloads {
            let _ = writeln!(
                text,
                "{}: {}; {} requests; {} records of {} B, {} in all{}",
                workload.workload,
                workload.shown_mix,
                workload.request_distribution,
                workload.records,
                workload.record_bytes,
                workload.data_bytes,
                match workload.store {
                    of if of == Engine::Locked.name() => ", behind locks",
                    of if of == Engine::Mapped.name() => ", in mapped memory",
                    "chain" => ", in chains; updates replace the record",
                    _ => "",
                }
            );
            if let Some(appends) = workload.appends.filter(|appends| *appends != Appends::default()) {
                let _ = writeln!(
                    text,
                    "   steering {}: {} appends steered, {} of them to another entry than they asked for; {} passed as they were, {} refused, {} indeterminate; {} reads sent to the tail",
                    self.rack.steering,
                    appends.steered,
                    appends.moved,
                    appends.unsteered,
                    appends.refused,
                    appends.doubted,
                    appends.reads
                );
            }
            if let Some(travelled) = &workload.travelled {
                let _ = writeln!(text, "   {}", travelled.line());
            }
        }
        text
    }

    /// What must not be: records that were there and were not found.
    pub(crate) fn lost(&self) -> Option<String> {
        let lost: Vec<String> = self
            .workloads
            .iter()
            .filter(|workload| workload.absent > 0)
            .map(|workload| format!("{} in workload {}", workload.absent, workload.workload))
            .collect();
        (!lost.is_empty()).then(|| {
            format!(
                "operations that did not find a record that was inserted before: {}; this is a bug in rackmem: please \
                 report it with the command line and seed {}",
                lost.join(", "),
                self.rack.seed
            )
        })
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A time that spans orders of magnitude, with three digits.
fn micros(nanos: u64) -> String {
    let micros = nanos as f64 / 1e3;
    match micros {
        ..10.0 => format!("{micros:.2} µs"),
        10.0..100.0 => format!("{micros:.1} µs"),
        100.0..10_000.0 => format!("{micros:.0} µs"),
        _ => format!("{:.1} ms", micros / 1e3),
    }
}

/// A whole number in groups of three digits.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
