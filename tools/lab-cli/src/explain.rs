//! `rackmem-lab explain`: a scenario on a tiny simulated rack, drawn as a message sequence.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use lab::explain::{self, SCENARIOS, Scenario};

use cli::fault::Fault;
use cli::output;

const EXAMPLES: &str = "\
Examples:
  rackmem-lab explain --list                            what can be shown
  rackmem-lab explain read-miss                         as text, with times
  rackmem-lab explain lost-unlock --svg lost.svg        as a picture
  rackmem-lab explain --svg docs/explain                all of them, as pictures in a directory";

/// What to show, and how.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to show; see --list
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "svg"])]
    scenario: Option<String>,

    /// Print what can be shown
    #[arg(long, conflicts_with_all = ["scenario", "svg"])]
    list: bool,

    /// Draw into this file; without a scenario, draw all of them into this directory
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    if args.list {
        let width = SCENARIOS.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
        let line = |scenario: &Scenario| format!("{:width$}  {}\n", scenario.name, scenario.title);
        return output::print(&SCENARIOS.iter().map(line).collect::<String>());
    }
    let Some(name) = &args.scenario else {
        let directory = args.svg.as_ref().expect("clap asks for one of the three");
        output::prepare_directory("--svg", directory)?;
        for scenario in SCENARIOS {
            draw(scenario, &directory.join(format!("{}.svg", scenario.name)))?;
        }
        return output::print(&format!("{} pictures in {}\n", SCENARIOS.len(), directory.display()));
    };
    let Some(scenario) = explain::find(name) else {
        let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        return Err(Fault::usage(format_args!(
            "there is no scenario '{name}': choose one of {} (rackmem-lab explain --list says what they show)",
            names.join(", ")
        )));
    };
    if let Some(path) = &args.svg {
        return draw(scenario, path);
    }
    let chart = explain::play(scenario);
    output::print(&format!("{}\n{}\n", explain::terminal::draw(&chart), scenario.about))
}

fn draw(scenario: &Scenario, path: &PathBuf) -> Result<(), Fault> {
    let svg = explain::svg::draw(&explain::play(scenario));
    std::fs::write(path, svg).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &std::path::Path, error: &std::io::Error) -> Fault {
    Fault::usage(format_args!("cannot write {}: {error}; choose another path with --svg", path.display()))
}
