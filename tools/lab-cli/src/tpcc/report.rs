//! What comes out: medians of the rounds, and what was checked.

use std::collections::BTreeMap;

use apps::tpcc::Transaction;
use serde::Serialize;

use super::node::Ran;
use crate::bench::nodes::Counted;
use crate::bench::rounds::{median, table};
use crate::bench::samples::Recorder;
use cli::processes::TransportKind;
use cli::size::Bytes;

/// Transactions of one kind that have committed.
#[derive(Clone, Serialize)]
struct Times {
    transaction: &'static str,
    count: u64,
    median_us: f64,
    slow_us: f64,
}

/// One round on the rack, and on plain memory.
#[derive(Clone, Serialize)]
pub(super) struct Round {
    seconds: f64,
    committed: u64,
    /// New orders that were undone because of an item that nobody has, as specified.
    undone: u64,
    new_orders_per_minute: f64,
    /// Of all attempts, those in vain.
    abort_percent: f64,
    /// The locks that were taken, and how often.
    aborts: BTreeMap<String, u64>,
    times: Vec<Times>,
    messages_per_transaction: f64,
    /// None where messages have no bytes.
    bytes_per_transaction: Option<f64>,
    plain_new_orders_per_minute: f64,
    plain_abort_percent: f64,
    /// The rack's new orders, as a part of the plain memory's.
    ratio: f64,
}

/// Transactions by kind.
fn times(ran: &Ran) -> Vec<Times> {
    let of = |(transaction, samples): (&Transaction, &Vec<_>)| {
        let mut all = Recorder::new();
        samples.iter().for_each(|samples| all.add(samples));
        let micros = |part| all.quantile(part) as f64 / 1e3;
        Times {
            transaction: transaction.name(),
            count: samples.iter().map(|samples| samples.count()).sum(),
            median_us: micros(0.5),
            slow_us: micros(0.99),
        }
    };
    Transaction::ALL.iter().zip(&ran.times).map(of).collect()
}

/// Transactions that have ended, new orders in a minute, and aborts in percent.
fn rates(ran: &Ran, times: &[Times]) -> (u64, f64, f64) {
    let committed: u64 = times.iter().map(|times| times.count).sum();
    let per_minute = times[0].count as f64 / (ran.nanos as f64 / 6e10);
    let aborts: u64 = ran.conflicts.values().sum();
    let attempts = committed + ran.undone + aborts;
    (committed, per_minute, 100.0 * aborts as f64 / attempts as f64)
}

impl Round {
    pub(super) fn of(ran: &Ran, plain: &Ran, counted: Counted, transport: TransportKind) -> Self {
        let of_kinds = times(ran);
        let (committed, new_orders_per_minute, abort_percent) = rates(ran, &of_kinds);
        let (_, plain_new_orders_per_minute, plain_abort_percent) = rates(plain, &times(plain));
        let per_transaction = |count: u64| count as f64 / (committed + ran.undone) as f64;
        Self {
            seconds: ran.nanos as f64 / 1e9,
            committed,
            undone: ran.undone,
            new_orders_per_minute,
            abort_percent,
            aborts: ran.conflicts.clone(),
            times: of_kinds,
            messages_per_transaction: per_transaction(counted.messages),
            bytes_per_transaction: (transport != TransportKind::Inline)
                .then(|| per_transaction(counted.bytes)),
            plain_new_orders_per_minute,
            plain_abort_percent,
            ratio: new_orders_per_minute / plain_new_orders_per_minute,
        }
    }
}

/// All of it.
#[derive(Serialize)]
pub(super) struct TpccReport {
    pub(super) warehouses: u64,
    /// A warehouse has so many times fewer rows than specified.
    pub(super) rows_shrunk_by: u64,
    pub(super) rows: u64,
    pub(super) distribution_percent: u64,
    pub(super) nodes: u16,
    pub(super) threads: u16,
    pub(super) transport: TransportKind,
    pub(super) block_bytes: u64,
    /// Nodes that keep all of it.
    pub(super) copies: u16,
    pub(super) load_seconds: f64,
    /// So often all conditions were found to hold. Otherwise there is no report.
    pub(super) checks: u64,
    pub(super) rounds: Vec<Round>,
}

impl TpccReport {
    pub(super) fn text(&self) -> String {
        let Self { warehouses, rows_shrunk_by, rows, distribution_percent, nodes, threads, .. } = self;
        let of = |pick: fn(&Round) -> f64| median(self.rounds.iter().map(pick).collect());
        let size = match rows_shrunk_by {
            1 => "the specified rows".to_owned(),
            shrunk => format!("1/{shrunk} of the specified rows (so not comparable with others' results)"),
        };
        let messages = of(|round| round.messages_per_transaction);
        let messages = match self.rounds[0].bytes_per_transaction {
            Some(_) => {
                let bytes = of(|round| round.bytes_per_transaction.unwrap_or_default());
                format!("{messages:.1} messages and {bytes:.0} bytes reach nodes")
            }
            None => format!("the switch's program sends {messages:.1} messages"),
        };
        let plural = |count: u16, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        format!(
            "TPC-C, {warehouses} warehouses with {size}: {} of {} over {}, blocks of {}{}, distribution {distribution_percent} % (medians of {} rounds)\n\n\
             loaded           {rows} rows in {:.1} s\n\
             new orders       {:.0} a minute\n\
             aborted          {:.2} % of all attempts{}\n\
             plain memory     {:.0} new orders a minute, {:.2} % aborted: the rack is {:.2}x as fast\n\
             per transaction  {messages}\n\
             consistency      all conditions of clause 3.3.2 held after loading and after each round\n\n{}",
            plural(*nodes, "node"),
            plural(*threads, "thread"),
            self.transport.name(),
            Bytes(self.block_bytes),
            if self.copies > 1 { format!(", {} copies", self.copies) } else { String::new() },
            self.rounds.len(),
            self.load_seconds,
            of(|round| round.new_orders_per_minute),
            of(|round| round.abort_percent),
            self.causes(),
            of(|round| round.plain_new_orders_per_minute),
            of(|round| round.plain_abort_percent),
            of(|round| round.ratio),
            self.times(),
        )
    }

    /// The locks that most aborts are about.
    fn causes(&self) -> String {
        let mut all: BTreeMap<&str, u64> = BTreeMap::new();
        for (lock, count) in self.rounds.iter().flat_map(|round| &round.aborts) {
            *all.entry(lock).or_default() += count;
        }
        let sum: u64 = all.values().sum();
        let mut causes: Vec<_> = all.into_iter().collect();
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let share =
            |(lock, count): &(&str, u64)| format!("{lock} {:.0} %", 100.0 * *count as f64 / sum as f64);
        let shown: Vec<String> = causes.iter().take(4).map(share).collect();
        if shown.is_empty() { String::new() } else { format!(", by the lock: {}", shown.join(", ")) }
    }

    fn times(&self) -> String {
        let row = |kind: usize| {
            let of = |pick: fn(&Times) -> f64| {
                let all = self.rounds.iter().map(|round| pick(&round.times[kind])).collect();
                format!("{:.1}", median(all))
            };
            let count: u64 = self.rounds.iter().map(|round| round.times[kind].count).sum();
            let name = self.rounds[0].times[kind].transaction.to_owned();
            vec![name, count.to_string(), of(|times| times.median_us), of(|times| times.slow_us)]
        };
        let rows: Vec<_> = (0..Transaction::ALL.len()).map(row).collect();
        table(&["transaction", "committed", "median us", "99 % us"], &rows)
    }
}
