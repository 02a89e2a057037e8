//! What came out.

use std::time::Duration;

use serde::Serialize;

use super::measure::Question;
use super::node::Operation;
use crate::bench::pingpong::micros;
use crate::bench::rounds::table;
use cli::processes::TransportKind;

/// What half of the blocking operations may take on words whose home's process computes on every core.
pub(crate) const BUSY_P50: Duration = Duration::from_micros(50);

/// One operation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) operation: Operation,
    /// All on one word.
    pub(crate) hot: bool,
    /// Operations that a thread has in flight.
    pub(super) in_flight: u64,
    /// Of all threads together.
    pub(crate) per_second: f64,
    /// For one thread.
    pub(crate) nanos: f64,
    /// Of single ones, the clock included.
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(super) yardstick_ns: Option<f64>,
    /// Of the medians of rounds in which both were measured.
    pub(super) ratio: Option<f64>,
}

/// A blocking fetch-add on words whose home computes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Busy {
    pub(crate) per_second: f64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    most_p50_ns: u64,
    met: bool,
}

impl Busy {
    pub(super) fn new(per_second: f64, p50_ns: u64, p99_ns: u64) -> Self {
        let most = BUSY_P50.as_nanos() as u64;
        Self { per_second, p50_ns, p99_ns, most_p50_ns: most, met: p50_ns < most }
    }
}

#[derive(Serialize)]
pub(super) struct WordBenchReport {
    transport: TransportKind,
    nodes: u16,
    words: u64,
    millis: u64,
    rounds: u64,
    yardstick: &'static str,
    figures: Vec<Figure>,
    pub(super) busy: Option<Busy>,
}

impl WordBenchReport {
    pub(super) fn new(question: &Question<'_>) -> Self {
        Self {
            transport: question.transport,
            nodes: question.nodes,
            words: question.words,
            millis: question.millis,
            rounds: question.rounds,
            yardstick: if question.is_near() { "a bare AtomicU64" } else { "the bare exchange" },
            figures: Vec::new(),
            busy: None,
        }
    }

    pub(super) fn set(&mut self, figures: Vec<Figure>) {
        self.figures = figures;
    }

    pub(super) fn text(&self) -> String {
        let Self { nodes, words, transport, .. } = self;
        let transport = transport.name();
        if let Some(busy) = &self.busy {
            return format!(
                "Blocking fetch_add of {} nodes on {words} words of a node that computes on every core, over {transport}\n\n\
                 {:.0} a second: p50 {}, p99 {}\ntarget: p50 under {BUSY_P50:?}: {}\n",
                nodes - 1,
                busy.per_second,
                micros(busy.p50_ns as f64),
                micros(busy.p99_ns as f64),
                if busy.met { "met" } else { "not met" },
            );
        }
        let time = |nanos: f64| if nanos < 1000.0 { format!("{nanos:.1} ns") } else { micros(nanos) };
        let timed = |nanos: Option<u64>| nanos.map_or_else(String::new, |nanos| time(nanos as f64));
        let rows: Vec<Vec<String>> = self
            .figures
            .iter()
            .map(|figure| {
                vec![
                    figure.operation.name().to_owned(),
                    if figure.hot { "one" } else { "random" }.to_owned(),
                    figure.in_flight.to_string(),
                    format!("{:.3} M", figure.per_second / 1e6),
                    time(figure.nanos),
                    timed(figure.p50_ns),
                    timed(figure.p99_ns),
                    figure.yardstick_ns.map_or_else(String::new, time),
                    figure.ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}x")),
                ]
            })
            .collect();
        let header =
            ["", "word", "in flight", "a second", "each", "p50", "p99", self.yardstick, "against it"];
        format!(
            "Operations of {} nodes on {words} words of another, over {transport}\n\n{}",
            nodes - 1,
            table(&header, &rows)
        )
    }
}
