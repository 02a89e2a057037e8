//! What `rackmem-lab objects` prints.

use serde::Serialize;

use super::worker::{Done, Kind};
use crate::bench::networked::samples::{Recorder, Samples};
use crate::bench::rounds::{median, table};
use cli::processes::TransportKind;
use cli::size::Bytes;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) command: &'static str,
    pub(super) version: &'static str,
    pub(super) transport: TransportKind,
    pub(super) nodes: u16,
    pub(super) threads: u16,
    pub(super) keys: u64,
    pub(super) value_bytes: u64,
    pub(super) slots: u16,
    pub(super) bucket_bytes: usize,
    pub(super) read_percent: u8,
    pub(super) zipf: f64,
    pub(super) millis: u64,
    pub(super) rounds: usize,
    pub(super) layouts: Vec<Row>,
}

/// One layout.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    layout: Kind,
    operations_per_second: f64,
    /// Against the first layout: the median of the ratios of rounds.
    ratio: f64,
    get_p50_ns: u64,
    get_p99_ns: u64,
    update_p50_ns: u64,
    update_p99_ns: u64,
}

/// Operations per second of all threads together.
fn rate(done: &[Done]) -> f64 {
    done.iter().map(|thread| thread.operations as f64 / (thread.nanos as f64 / 1e9).max(1e-9)).sum()
}

impl Row {
    /// Of rounds, in each of which all layouts took turns.
    pub(super) fn all(layouts: &[Kind], rounds: &[Vec<Vec<Done>>]) -> Vec<Self> {
        let row = |(at, layout): (usize, &Kind)| {
            let (mut gets, mut updates) = (Recorder::new(), Recorder::new());
            let add = |all: &mut Recorder, pick: fn(&Done) -> &Samples| {
                rounds.iter().flat_map(|round| &round[at]).for_each(|done| all.add(pick(done)));
            };
            add(&mut gets, |done| &done.gets);
            add(&mut updates, |done| &done.updates);
            let over =
                |pick: &dyn Fn(&[Vec<Done>]) -> f64| median(rounds.iter().map(|round| pick(round)).collect());
            Self {
                layout: *layout,
                operations_per_second: over(&|round| rate(&round[at])),
                ratio: over(&|round| rate(&round[at]) / rate(&round[0])),
                get_p50_ns: gets.quantile(0.5),
                get_p99_ns: gets.quantile(0.99),
                update_p50_ns: updates.quantile(0.5),
                update_p99_ns: updates.quantile(0.99),
            }
        };
        layouts.iter().enumerate().map(row).collect()
    }
}

fn time(nanos: u64) -> String {
    if nanos < 10_000 { format!("{nanos} ns") } else { format!("{:.1} µs", nanos as f64 / 1e3) }
}

impl Report {
    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = self
            .layouts
            .iter()
            .map(|row| {
                let rate = row.operations_per_second;
                vec![
                    row.layout.name().to_owned(),
                    if rate < 1e6 {
                        format!("{:.1} k/s", rate / 1e3)
                    } else {
                        format!("{:.2} M/s", rate / 1e6)
                    },
                    format!("{:.2}x", row.ratio),
                    time(row.get_p50_ns),
                    time(row.get_p99_ns),
                    time(row.update_p50_ns),
                    time(row.update_p99_ns),
                ]
            })
            .collect();
        format!(
            "{} keys with values of {}, buckets of {} slots ({} B), {} % lookups, zipf {}: {} node{} of {} thread{}, over {}\n\n{}",
            self.keys,
            Bytes(self.value_bytes),
            self.slots,
            self.bucket_bytes,
            self.read_percent,
            self.zipf,
            self.nodes,
            if self.nodes == 1 { "" } else { "s" },
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            self.transport.name(),
            table(&["", "operations", "ratio", "lookup p50", "p99", "update p50", "p99"], &rows)
        )
    }
}
