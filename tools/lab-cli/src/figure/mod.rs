//! `rackmem-lab figure`: the figures of the papers, on a simulated rack.
//!
//! | file | concern |
//! | --- | --- |
//! | `args` | flags |
//! | `progress` | how far the runs are |
//! | `files` | what is written |

mod args;
mod files;
mod progress;

use std::fmt::Write;
use std::path::Path;

use lab::figure::run::measure_all;
use lab::figure::{Figure, Results, points_of};
use lab::output::Document;
use lab::output::page::claims_table;
use lab::papers::{PAPERS, paper_of};
use lab::systems::measure::measure;

pub(crate) use args::Args;

use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::say;
use progress::Progress;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    if args.list {
        return output::print(&list());
    }
    let figures = args.figures()?;
    files::prepare(args)?;
    let documents = match &args.from {
        Some(directory) => {
            figures.iter().map(|figure| again(*figure, directory)).collect::<Result<_, _>>()?
        }
        None => measured(args, &figures)?,
    };
    files::write(args, &documents)?;
    if args.json { output::print_json(&documents) } else { output::print(&summary(&documents)?) }
}

/// Measures figures.
fn measured(args: &Args, figures: &[&dyn Figure]) -> Result<Vec<Document>, Fault> {
    let (sizes, points) = (args.sizes(), points_of(figures));
    let interrupt = Interrupt::listen()?;
    say!("{} figures, {} runs, seed {}", figures.len(), points.len(), args.seed);
    let progress = Progress::start(points.len() as u64 * (sizes.warm_up + sizes.operations), interrupt);
    let results = measure_all(&points, args.threads(), args.seed, |point, seed| {
        measure(point, &sizes, seed, &progress)
    })
    .map_err(|_| Fault::Interrupted)?;
    progress.finish();
    let document = |figure: &&dyn Figure| Document {
        seed: args.seed,
        sizes,
        constants: (paper_of(figure.name()).constants)(),
        report: figure.report(&results),
        measured: results.of(&figure.points()).map(|(point, measured)| (*point, measured.clone())).collect(),
    };
    Ok(figures.iter().map(document).collect())
}

/// Reports again on what a figure's file says was measured.
fn again(figure: &dyn Figure, directory: &Path) -> Result<Document, Fault> {
    let old = files::read(directory, figure.name())?;
    let results = Results::new(old.measured.clone());
    match figure.points().iter().find(|point| !results.has(point)) {
        Some(_) => {
            Err(Fault::usage(format_args!("{} was not measured as it is now: run it again", figure.name())))
        }
        None => Ok(Document { report: figure.report(&results), ..old }),
    }
}

/// All figures with what they are about.
fn list() -> String {
    let mut text = String::new();
    for paper in PAPERS {
        let _ = writeln!(text, "{:<18} all of these:", paper.name);
        for figure in paper.figures {
            let _ = writeln!(text, "{:<18} {}", figure.name(), figure.title());
        }
    }
    text
}

/// The claims of all figures.
fn summary(documents: &[Document]) -> Result<String, Fault> {
    let mut text = String::new();
    for document in documents {
        let report = &document.report;
        let _ = write!(text, "\n{}: {}\n\n{}", report.figure, report.title, claims_table(&report.claims));
    }
    Ok(text)
}

/// All figures that there are.
fn all() -> Vec<&'static dyn Figure> {
    PAPERS.iter().flat_map(|paper| paper.figures).copied().collect()
}
