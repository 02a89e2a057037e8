//! The flags of `rackmem-lab figure`.

use std::path::PathBuf;
use std::thread;

use clap::{Parser, ValueEnum};
use lab::figure::Figure;
use lab::papers::paper_of;
use lab::sizes::Sizes;

use super::all;
use cli::fault::Fault;

/// How large the runs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Scale {
    /// A twentieth of the operations, and a 32nd of the working set and of the caches
    Small,
    /// A third of the operations.
    Quick,
    /// As many as the committed figures have.
    Full,
}

/// What to run.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Figures, or `concordia`, `gcs`, `sabres`, `rae` or `steering` for all of that paper
    #[arg(value_name = "FIGURE", required_unless_present = "list")]
    names: Vec<String>,

    /// Name the figures that there are
    #[arg(long)]
    pub(super) list: bool,

    /// Where data and drawings go
    #[arg(long, value_name = "DIR", default_value = "lab-out")]
    pub(super) out: PathBuf,

    /// Write a page of all figures there, too
    #[arg(long, value_name = "FILE")]
    pub(super) page: Option<PathBuf>,

    /// Measure nothing: report again on what is in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["ops", "scale", "threads", "seed"])]
    pub(super) from: Option<PathBuf>,

    /// Measure no figures, but which claims change their verdict when an input is moved by so many percent, down and up
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["from", "page"], value_parser = clap::value_parser!(u8).range(1..=90))]
    pub(super) perturb: Option<u8>,

    /// Operations that each run counts, instead of what the scale says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    ops: Option<u64>,

    /// How large the runs are
    #[arg(long, value_enum, default_value = "full")]
    scale: Scale,

    /// Runs at the same time; all cores by default. The results are the same for any number
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Seed: the same seed gives the same numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Print everything as JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    /// The figures asked for, each once, in the order of the paper.
    pub(super) fn figures(&self) -> Result<Vec<&'static dyn Figure>, Fault> {
        let names = |name: &str, figure: &dyn Figure| {
            figure.name() == name
                || figure.name().strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
        };
        if let Some(unknown) = self.names.iter().find(|name| !all().iter().any(|figure| names(name, *figure)))
        {
            return Err(Fault::usage(format_args!(
                "there is no figure {unknown}: see rackmem-lab figure --list"
            )));
        }
        let figures: Vec<_> =
            all().into_iter().filter(|figure| self.names.iter().any(|name| names(name, *figure))).collect();
        let papers = figures.iter().map(|figure| paper_of(figure.name()).name);
        if self.page.is_some() && papers.clone().zip(papers.skip(1)).any(|(one, next)| one != next) {
            return Err(Fault::usage(format_args!(
                "a page is of one paper: leave out --page, or the other paper"
            )));
        }
        Ok(figures)
    }

    /// How large the runs are.
    pub(super) fn sizes(&self) -> Sizes {
        let sizes = match self.scale {
            Scale::Small => Sizes::SMALL,
            Scale::Quick => Sizes::QUICK,
            Scale::Full => Sizes::FULL,
        };
        Sizes { operations: self.ops.unwrap_or(sizes.operations), ..sizes }
    }

    /// How many run at a time.
    pub(super) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(names: &[&str]) -> Result<Vec<&'static str>, Fault> {
        let args = Args::try_parse_from([&["lab"], names].concat()).unwrap();
        args.figures().map(|figures| figures.iter().map(|figure| figure.name()).collect())
    }

    #[test]
    fn the_papers_name_means_all_of_its_figures() {
        assert_eq!(figures(&["concordia"]).unwrap().len(), 13);
        assert_eq!(figures(&["gcs"]).unwrap().len(), 5);
        assert_eq!(figures(&["sabres"]).unwrap().len(), 5);
        assert_eq!(figures(&["steering"]).unwrap().len(), 6);
    }

    #[test]
    fn a_page_is_of_one_paper() {
        assert!(matches!(figures(&["concordia-9", "gcs-7", "--page", "page.md"]), Err(Fault::Usage(_))));
        assert_eq!(figures(&["concordia-9", "gcs-7"]).unwrap(), ["concordia-9", "gcs-7"]);
    }

    #[test]
    fn figures_come_once_and_in_the_papers_order() {
        assert_eq!(
            figures(&["concordia-12", "concordia-9", "concordia-12"]).unwrap(),
            ["concordia-9", "concordia-12"]
        );
    }

    #[test]
    fn a_part_of_a_name_is_no_name() {
        for name in ["concordia-1", "conc", ""] {
            assert!(matches!(figures(&[name]), Err(Fault::Usage(_))), "{name}");
        }
    }
}
