//! What `rackmem-lab bench lock` prints.

use std::fmt::Write as _;

use serde::Serialize;

use super::cached::{Cached, MOST_RATIO};
use super::hottest::Hottest;
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
    pub(super) own_first: u32,
    pub(super) cached: Vec<Cached>,
    pub(super) hand_over: HandOver,
    /// Only between processes.
    pub(super) grant: Option<Grant>,
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

/// What it takes to get a lock that is free from its home, beside the bare exchange of its two messages.
#[derive(Debug, Serialize)]
pub(super) struct Grant {
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
    pub(super) bare_p50_ns: u64,
}

impl Grant {
    /// What it may be.
    const MOST_RATIO: f64 = 1.1;

    fn text(&self) -> String {
        let [p50, p99, bare] = [self.p50_ns, self.p99_ns, self.bare_p50_ns].map(|nanos| micros(nanos as f64));
        let ratio = self.p50_ns as f64 / self.bare_p50_ns as f64;
        format!(
            "free, granted by its home: p50 {p50}, p99 {p99}\nits two messages, bare: p50 {bare}, ratio {ratio:.2}x\n\
             target: p50 at most {}x: {}\n",
            Self::MOST_RATIO,
            met(ratio <= Self::MOST_RATIO)
        )
    }
}

/// Operations of one mix, on all kinds of locks.
#[derive(Debug, Serialize)]
pub(super) struct Mix {
    pub(super) nodes: u16,
    pub(super) read_percent: u8,
    pub(super) carried: OfMix,
    pub(super) layered: OfMix,
    /// None: it is not installed.
    pub(super) redis: Option<OfMix>,
}

/// On one kind.
#[derive(Debug, Serialize)]
pub(super) struct OfMix {
    per_second: f64,
    /// The share of the thread that got least, against an equal share.
    least_share: f64,
    /// None: nobody writes.
    hottest: Option<Hottest>,
}

impl OfMix {
    pub(super) fn of(done: &[Done], hottest: Option<Hottest>) -> Self {
        Self { per_second: rate(done), least_share: least_share(done), hottest }
    }
}

impl Mix {
    fn row(&self) -> Vec<String> {
        let percent = |of: &OfMix| format!("{:.0} %", of.least_share * 100.0);
        let over = |of: &OfMix| format!("{:.1}x", self.carried.per_second / of.per_second);
        let mut row = vec![self.nodes.to_string(), format!("{} %", self.read_percent)];
        row.push(per_second(self.carried.per_second));
        row.push(percent(&self.carried));
        for other in [Some(&self.layered), self.redis.as_ref()] {
            let cells = |of: &OfMix| [per_second(of.per_second), over(of), percent(of)];
            row.extend(other.map_or_else(|| ["-"; 3].map(str::to_owned), cells));
        }
        row
    }

    /// What becomes of the hottest lock, of each kind.
    fn hottest(&self) -> Vec<Vec<String>> {
        let kinds = [
            ("carried", Some(&self.carried)),
            ("layered", Some(&self.layered)),
            ("Redis", self.redis.as_ref()),
        ];
        let found = kinds.into_iter().filter_map(|(name, of)| Some((name, of?.hottest?)));
        found
            .map(|(name, hottest)| {
                let mut row =
                    vec![self.nodes.to_string(), format!("{} %", self.read_percent), name.to_owned()];
                row.extend(hottest.cells());
                row
            })
            .collect()
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
        if let Some(grant) = &self.grant {
            text.push('\n');
            text.push_str(&grant.text());
        }
        let rows: Vec<_> = self.mixes.iter().map(Mix::row).collect();
        let header = [
            "nodes",
            "reads",
            "carried",
            "least share",
            "layered",
            "ratio",
            "least share",
            "Redis",
            "ratio",
            "least share",
        ];
        let own_first = match self.own_first {
            0 => String::new(),
            threads => format!(", {threads} own first"),
        };
        let _ = write!(
            text,
            "\n{} locks of {}, zipf {}, {} thread{} a node{own_first}, {} ns inside, over {}\n\n{}",
            self.locks,
            Bytes(self.state_bytes),
            self.zipf,
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            self.critical_section_ns,
            self.transport.name(),
            table(&header, &rows),
        );
        if self.mixes.iter().any(|mix| mix.redis.is_none()) {
            text.push_str("\nRedis is not installed: its Debian package is redis-server\n");
        }
        let rows: Vec<_> = self.mixes.iter().flat_map(Mix::hottest).collect();
        if !rows.is_empty() {
            let header = ["nodes", "reads", "locks", "held", "on its way", "idle", "threads wait"];
            let _ = write!(text, "\nParts of the time of the hottest lock\n\n{}", table(&header, &rows));
        }
        text
    }
}
