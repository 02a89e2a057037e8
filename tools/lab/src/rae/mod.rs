//! The figures of the RAE paper: remote atomics as instructions, against the same programs with a library.
//!
//! | file | figures |
//! | --- | --- |
//! | `shares` | 1 and 2: atomic instructions, and those that are remote |
//! | `routines` | 3: instructions of an operation |
//! | `kernels` | 7, 8 and 10: run time, instructions and misses of whole kernels, and of their accesses |
//! | `landing` | 9: where requests land |
//! | `data` | misses against the size of data, and other graphs |
//! | `own` | throughput against nodes, and merging against heat: ours |
//! | `method` | the constants of all of them |
//!
//! What must always hold: figures hold no constants; all share those of `method`, and a library's numbers as counted.

mod data;
mod kernels;
mod landing;
pub mod method;
mod own;
mod routines;
mod shares;

use crate::figure::measured::Measured;
use crate::figure::point::{Kernel, Load, Point, Program, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// All figures, in their order.
pub const FIGURES: [&dyn Figure; 11] = [
    &shares::Atomics,
    &shares::Remote,
    &routines::Routines,
    &kernels::Time,
    &kernels::Instructions,
    &landing::Landing,
    &kernels::Misses,
    &data::Sizes,
    &data::Graphs,
    &own::Nodes,
    &own::Merging,
];

/// Nodes: Table I.
const NODES: u8 = 6;

const fn load(kernel: Kernel) -> Load {
    Load::Program(Program { kernel, nodes: NODES })
}

fn points(subjects: &[Subject], kernels: &[Kernel]) -> Vec<Point> {
    let of = |subject| kernels.iter().map(move |kernel| Point::new(subject, load(*kernel)));
    subjects.iter().copied().flat_map(of).collect()
}

/// A report without anything yet.
fn report(figure: &dyn Figure, note: &str) -> FigureReport {
    FigureReport {
        figure: figure.name().to_owned(),
        title: figure.title().to_owned(),
        notes: vec![note.to_owned()],
        charts: Vec::new(),
        tables: Vec::new(),
        claims: Vec::new(),
        remarks: Vec::new(),
    }
}

/// A row for each kernel, and their average.
fn rows(kernels: &[Kernel], numbers: impl Fn(Kernel) -> Vec<f64>) -> Vec<(String, Vec<f64>)> {
    let mut rows: Vec<(String, Vec<f64>)> =
        kernels.iter().map(|kernel| (kernel.name().to_owned(), numbers(*kernel))).collect();
    let columns = rows.first().map_or(0, |(_, row)| row.len());
    let averages = (0..columns).map(|column| average(rows.iter().map(|(_, row)| row[column])));
    let averages = averages.collect();
    rows.push(("average".to_owned(), averages));
    rows
}

fn average(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) =
        numbers.into_iter().fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

/// How much less the first is than the second, in percent of that.
fn saved(ours: f64, theirs: f64) -> f64 {
    100.0 * (1.0 - ours / theirs)
}

fn at(results: &Results, subject: Subject, kernel: Kernel) -> &Measured {
    results.at(subject, load(kernel))
}

/// Accesses of other nodes' memory, and of one's own through the engine.
fn accesses(it: &Measured) -> u64 {
    it.count("atomics") + it.count("loads") + it.count("stores")
}

/// Instructions that an access takes by itself: one sets the extension register, one accesses.
const ACCESS: u64 = 2;
