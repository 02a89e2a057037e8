//! What `rackmem-lab bench lock` prints.

use std::fmt::Write as _;

use serde::Serialize;

use super::cached::{Cached, MOST_RATIO};
use super::node::Done;
use super::{least_share, rate};
use crate::bench::pingpong::micros;
use crate::bench::rounds::table;
use cli::processes::TransportKind;
use cli::size::Bytes;

#[derive(Debug, Serialize)]
pub(super) struct LockBenchReport {
    pub(super) transport: TransportKind,
    pub(super) threads: u16,
    pub(super) critical_section_ns: u64,
    pub(super) state_bytes: u64,
    pub(super) locks: u64,
    pub(super) zipf: f64,
    pub(super) millis: u64,
    pub(super) cached: Vec<Cached>,
    pub(super) hand_over: HandOver,
    pub(super) mixes: Vec<Mix>,
}

/// What it takes to get a lock with its data from another node that is done with it.
#[derive(Debug, Serialize)]
pub(super) struct HandOver {
    pub(super) median_ns: f64,
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
    /// The same with a layered lock: lock, data, and the way back.
    pub(super) layered_ns: f64,
    /// Only between processes.
    pub(super) budget: Option<Budget>,
}

/// What a hand-over may take: 1.2 times the bare exchange of its four messages. Measured is one of three in a row, the last with the
/// data.
#[derive(Debug, Serialize)]
pub(super) struct Budget {
    pub(super) bare_exchange_ns: f64,
    pub(super) most_ns: f64,
}

impl Budget {
    /// An exchange is three one-way trips; a hand-over has four.
    pub(super) fn of(bare_exchange_ns: f64) -> Self {
        Self { bare_exchange_ns, most_ns: bare_exchange_ns * 4.0 / 3.0 * 1.2 }
    }
}

/// Operations of one mix, on both kinds of locks.
#[derive(Debug, Serialize)]
pub(super) struct Mix {
    nodes: u16,
    read_percent: u8,
    carried_per_second: f64,
    layered_per_second: f64,
    ratio: f64,
    carried_least_share: f64,
    layered_least_share: f64,
}

impl Mix {
    pub(super) fn of(nodes: u16, read_percent: u8, carried: &[Done], layered: &[Done]) -> Self {
        Self {
            nodes,
            read_percent,
            carried_per_second: rate(carried),
            layered_per_second: rate(layered),
            ratio: rate(carried) / rate(layered),
            carried_least_share: least_share(carried),
            layered_least_share: least_share(layered),
        }
    }

    fn row(&self) -> Vec<String> {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        vec![
            self.nodes.to_string(),
            format!("{} %", self.read_percent),
            per_second(self.carried_per_second),
            per_second(self.layered_per_second),
            format!("{:.1}x", self.ratio),
            percent(self.carried_least_share),
            percent(self.layered_least_share),
        ]
    }
}

fn per_second(rate: f64) -> String {
    match rate {
        1e6.. => format!("{:.2} M/s", rate / 1e6),
        1e3.. => format!("{:.1} k/s", rate / 1e3),
        _ => format!("{rate:.0} /s"),
    }
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "not met" }
}

impl LockBenchReport {
    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = self.cached.iter().map(Cached::row).collect();
        let mut text = format!(
            "A lock that is here already, taken and released\n\n{}\ntarget: at most {MOST_RATIO:.0}x: {}\n\n",
            table(&["", "rackmem", "parking_lot", "ratio"], &rows),
            met(self.cached.iter().all(|cached| cached.ratio <= MOST_RATIO)),
        );
        let hand_over = &self.hand_over;
        let mut rows = vec![
            vec!["carried".to_owned(), micros(hand_over.median_ns)],
            vec!["layered".to_owned(), micros(hand_over.layered_ns)],
        ];
        if let Some(budget) = &hand_over.budget {
            rows.push(vec!["bare exchange".to_owned(), micros(budget.bare_exchange_ns)]);
        }
        // A String takes everything.
        let _ = write!(
            text,
            "A write of {} that another node wrote last, over {}\n\n{}\ncarried: p50 {}, p99 {}\n",
            Bytes(self.state_bytes),
            self.transport.name(),
            table(&["", "median"], &rows),
            micros(hand_over.p50_ns as f64),
            micros(hand_over.p99_ns as f64),
        );
        if let Some(budget) = &hand_over.budget {
            let _ = writeln!(
                text,
                "target: p50 at most 1.2x of a bare exchange of four messages, {}: {}",
                micros(budget.most_ns),
                met(hand_over.p50_ns as f64 <= budget.most_ns),
            );
        }
        let rows: Vec<_> = self.mixes.iter().map(Mix::row).collect();
        let _ = write!(
            text,
            "\n{} locks of {}, zipf {}, {} thread{} a node, {} ns inside, over {}\n\n{}",
            self.locks,
            Bytes(self.state_bytes),
            self.zipf,
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            self.critical_section_ns,
            self.transport.name(),
            table(&["nodes", "reads", "carried", "layered", "ratio", "least share", "layered's"], &rows),
        );
        text
    }
}
