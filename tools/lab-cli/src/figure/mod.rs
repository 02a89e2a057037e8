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

use lab::figure::input::{Inputs, declared};
use lab::figure::run::{Watch, measure_all};
use lab::figure::sensitivity::{Sensitivity, sensitivity};
use lab::figure::{Figure, Results, points_of};
use lab::output::Document;
use lab::output::page::claims_table;
use lab::papers::{PAPERS, paper_of};
use lab::systems::measure::{measure, operations};

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
    if let Some(percent) = args.perturb {
        return perturbed(args, &figures, percent);
    }
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
    let (sizes, inputs, points) = (args.sizes(), Inputs::declared(), points_of(figures));
    let interrupt = Interrupt::listen()?;
    say!("{} figures, {} runs, seed {}", figures.len(), points.len(), args.seed);
    let all = points.iter().map(|point| operations(point, &sizes)).sum();
    let progress = Progress::start(all, interrupt);
    let results = measure_all(&points, args.threads(), args.seed, |point, seed| {
        measure(point, &sizes, &inputs, seed, &progress)
    })
    .map_err(|_| Fault::Interrupted)?;
    progress.finish();
    let document = |figure: &&dyn Figure| Document {
        seed: args.seed,
        sizes,
        inputs: declared(paper_of(figure.name()).all_inputs()),
        report: figure.report(&results),
        measured: results.of(&figure.points()).map(|(point, measured)| (*point, measured.clone())).collect(),
    };
    Ok(figures.iter().map(document).collect())
}

/// Moves each input of these figures' papers, and tells which claims change.
fn perturbed(args: &Args, figures: &[&dyn Figure], percent: u8) -> Result<(), Fault> {
    let interrupt = Interrupt::listen()?;
    let watch = Quiet(interrupt);
    let mut all = Vec::new();
    for paper in PAPERS {
        let figures: Vec<&dyn Figure> =
            figures.iter().copied().filter(|figure| paper_of(figure.name()).name == paper.name).collect();
        if figures.is_empty() {
            continue;
        }
        let (sizes, inputs): (_, Vec<_>) = (args.sizes(), paper.all_inputs().collect());
        let began =
            |name: &str, number, count| say!("{}: input {} of {count}, {name}", paper.name, number + 1);
        let how = (sizes, args.seed, percent, args.threads());
        let run = |point: &_, inputs: &Inputs, seed| measure(point, &sizes, inputs, seed, &watch);
        let found =
            sensitivity((paper.name, &inputs), &figures, how, run, began).map_err(|_| Fault::Interrupted)?;
        files::write_sensitivity(args, &found)?;
        all.push(found);
    }
    if args.json { output::print_json(&all) } else { output::print(&told(&all)) }
}

/// Which verdicts change.
fn told(all: &[Sensitivity]) -> String {
    let mut text = String::new();
    for (paper, it) in all.iter().flat_map(|paper| paper.moved.iter().map(move |it| (paper, it))) {
        let (sign, percent) = (if it.up { "+" } else { "-" }, paper.percent);
        let _ = writeln!(
            text,
            "{}: {}: {} {sign}{percent} %: {} -> {}",
            it.figure, it.claim, it.input, it.from, it.to
        );
    }
    text
}

/// Watches whether somebody wants the runs to end.
pub(crate) struct Quiet(pub(crate) Interrupt);

impl Watch for Quiet {
    fn advance(&self, _: u64) -> bool {
        !self.0.requested()
    }
}

/// Reports again on what a figure's file says was measured.
fn again(figure: &dyn Figure, directory: &Path) -> Result<Document, Fault> {
    let old = files::read(directory, figure.name())?;
    let results = Results::new(old.measured.clone());
    match figure.points().iter().find(|point| !results.has(point)) {
        Some(_) => {
            Err(Fault::usage(format_args!("{} was not measured as it is now: run it again", figure.name())))
        }
        None => Ok(Document {
            inputs: declared(paper_of(figure.name()).all_inputs()),
            report: figure.report(&results),
            ..old
        }),
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
        let _ = write!(
            text,
            "\n{}: {}\n\n{}",
            report.figure,
            report.title,
            claims_table(&report.claims, |_| String::new())
        );
    }
    Ok(text)
}

/// All figures that there are.
fn all() -> Vec<&'static dyn Figure> {
    PAPERS.iter().flat_map(|paper| paper.figures).copied().collect()
}
