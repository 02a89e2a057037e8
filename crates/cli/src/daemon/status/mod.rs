//! `rackmem status`: asks the switch of a rack how the rack is, and prints it.
//!
//! | file | |
//! | --- | --- |
//! | `document.rs` | how a rack is, as one document |
//! | `socket.rs` | on the switch's side: who connects gets one |
//! | `ask.rs` | on this side: over that socket, or over HTTP from another machine |
//! | `table.rs` | the document for people |

pub(super) mod ask;
pub(super) mod document;
pub(super) mod socket;
mod table;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rackmem::{RackFile, Watch};

use super::{listen, owner, read};
use crate::fault::Fault;
use crate::output;
use document::Status;

const EXAMPLES: &str = "\
Examples:
  rackmem status                          the rack of ./rack.toml, or else the one that `rackmem up` runs
  rackmem status --config lab.toml --json
  rackmem status --watch                  again every second, until Ctrl-C";

/// Which rack, and how to show it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The rack file [default: rack.toml, or else that of `rackmem up`]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print one JSON document instead of tables. Times are in nanoseconds, sizes in bytes
    #[arg(long)]
    json: bool,

    /// Again every second
    #[arg(long)]
    watch: bool,
}

/// Between two looks with `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// How the rack is, for whoever asks the switch's process.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    rack: String,
    transport: &'static str,
    watch: Watch,
}

impl Answers {
    pub(super) fn new(file: &RackFile, watch: Watch) -> Self {
        Self { rack: file.name.clone(), transport: file.transport().name(), watch }
    }

    /// None: the switch does not run yet.
    pub(super) fn status(&self) -> Option<Status> {
        self.watch.report().map(|report| Status::new(&self.rack, self.transport, &report))
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let path = args.config.clone().unwrap_or_else(usual_file);
    let file = read(&path)?;
    if !args.watch {
        return show(args, &file, &path, false);
    }
    let stop = listen()?;
    let clear = io::stdout().is_terminal() && !args.json;
    let mut shown_before = false;
    while !stop.requested() {
        match show(args, &file, &path, clear) {
            Err(Fault::Failed(message)) if shown_before => say!("{message}"),
            done => done?,
        }
        shown_before = true;
        let again = Instant::now() + EVERY;
        while !stop.requested() && Instant::now() < again {
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// The rack file that is meant where none is named.
fn usual_file() -> PathBuf {
    let here = PathBuf::from("rack.toml");
    let up = owner::own_file(&super::up::runtime_directory());
    if !here.exists() && up.exists() { up } else { here }
}

fn show(args: &Args, file: &RackFile, path: &Path, clear: bool) -> Result<(), Fault> {
    let status = ask::ask(file).map_err(|error| {
        Fault::failed(format_args!(
            "the switch of rack `{}` does not say how it is: {error}\n  start it with: rackmem switch --config {} (or all of the rack with rackmem up)",
            file.name,
            path.display()
        ))
    })?;
    if args.json {
        return output::print_json(&status);
    }
    let text = table::tables(&status);
    // To the top left, and away with what was there.
    output::print(&if clear { format!("\x1b[H\x1b[2J{text}") } else { text })
}
