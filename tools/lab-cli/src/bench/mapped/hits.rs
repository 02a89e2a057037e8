//! Cached accesses through pointers, against the same on private memory with the same pages.

use serde::Serialize;

use super::node::{Hits, Order};
use super::start;
use crate::bench::hit::Args;
use crate::bench::rounds::{Against, table};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::size::Bytes;

/// A mapped access may take so much of a plain one.
const MOST: f64 = 1.05;

#[derive(Debug, Serialize)]
struct Row {
    footprint: Bytes,
    dependent_loads: Against,
    independent_loads: Against,
    stores: Against,
    atomics: Against,
}

#[derive(Debug, Serialize)]
struct Report {
    accesses_per_round: u64,
    rounds: u64,
    most_ratio: f64,
    rows: Vec<Row>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let interrupt = Interrupt::listen()?;
    let mut rows = Vec::new();
    for footprint in &args.footprints {
        let words = footprint.0 / 8;
        if !words.is_power_of_two() || footprint.0 < 4096 {
            return Err(Fault::usage(format_args!(
                "a footprint of {footprint} is not a power of two of at least 4 KiB"
            )));
        }
        let mut nodes = start(rackmem::BlockSize::DEFAULT, footprint.0, false, &interrupt)?;
        let (accesses, rounds) = (args.accesses, args.rounds);
        let hits: Hits = nodes.ask(0, Order::Hits { bytes: footprint.0, accesses, rounds })?;
        let [dependent_loads, independent_loads, stores, atomics] = hits.map(|pairs| Against::of(&pairs));
        rows.push(Row { footprint: *footprint, dependent_loads, independent_loads, stores, atomics });
    }
    let (accesses_per_round, rounds) = (args.accesses, args.rounds);
    let report = Report { accesses_per_round, rounds, most_ratio: MOST, rows };
    output::show(args.json, "bench hit --mapped", &report, || {
        let kinds = ["dependent loads", "independent loads", "stores", "fetch-adds"];
        let mut header = vec!["footprint"];
        let headers: Vec<String> = kinds.iter().map(|kind| format!("{kind}: plain")).collect();
        for kind in &headers {
            header.extend([kind.as_str(), "mapped", "ratio"]);
        }
        let cells = |row: &Row| {
            let figures = [row.dependent_loads, row.independent_loads, row.stores, row.atomics];
            let each = figures.iter().flat_map(|figure| {
                [
                    format!("{:.2} ns", figure.yardstick),
                    format!("{:.2} ns", figure.measured),
                    format!("{:.2}x", figure.ratio),
                ]
            });
            std::iter::once(row.footprint.to_string()).chain(each).collect()
        };
        let rows: Vec<Vec<String>> = report.rows.iter().map(cells).collect();
        let all = report.rows.iter().flat_map(|row| {
            [row.dependent_loads, row.independent_loads, row.stores, row.atomics].map(|figure| figure.ratio)
        });
        let worst = all.fold(0.0, f64::max);
        let verdict = if worst <= MOST { "met" } else { "missed" };
        format!(
            "Cached 8-byte accesses through pointers into mapped memory, against private memory (medians of {} rounds)\n\n{}\nTarget: at most {MOST}x; the largest is {worst:.2}x: {verdict}\n",
            args.rounds,
            table(&header, &rows)
        )
    })
}
