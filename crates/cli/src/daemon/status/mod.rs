//! `rackmem status`: asks the switch of a rack how the rack is, and prints it.
//!
//! | file | |
//! | --- | --- |
//! | `document.rs` | how a rack is, as one document |
//! | `socket.rs` | on the switch's side: who connects gets one |
//! | `find.rs` | which rack is meant where none is named |
//! | `ask.rs` | on this side: over that socket, or over HTTP from another machine |
//! | `locks.rs` | locks that have names, which the nodes know of, and not the switch |
//! | `table.rs` | the document for people |

pub(super) mod ask;
pub(super) mod document;
pub(super) mod find;
mod locks;
pub(super) mod socket;
mod table;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rackmem::{RackFile, Watch};

use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::output;
use document::Status;
use find::{Meant, Which};

const EXAMPLES: &str = "\
Examples:
  rackmem status                          the rack that runs on this machine
  rackmem status --rack lab               the one with this name, if several do
  rackmem status --config lab.toml --json also if its switch runs on another machine
  rackmem status --watch                  again every second, until Ctrl-C";

/// Which rack, and how to show it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

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
    file: Option<PathBuf>,
    watch: Watch,
}

impl Answers {
    pub(super) fn new(file: &RackFile, watch: Watch) -> Self {
        let path = std::path::absolute(&file.path).ok();
        Self { rack: file.name.clone(), transport: file.transport().name(), file: path, watch }
    }

    /// None: the switch does not run yet.
    pub(super) fn status(&self) -> Option<Status> {
        let report = self.watch.report()?;
        Some(Status { file: self.file.clone(), ..Status::new(&self.rack, self.transport, &report) })
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let meant = args.which.meant()?;
    if !args.watch {
        return show(args, &meant, false, &mut None);
    }
    let stop = Interrupt::listen()?;
    let clear = io::stdout().is_terminal() && !args.json;
    let mut shown = None;
    while !stop.requested() {
        match show(args, &meant, clear, &mut shown) {
            Err(Fault::Failed(message)) if shown.is_some() => say!("{message}"),
            done => done?,
        }
        let again = Instant::now() + EVERY;
        while !stop.requested() && Instant::now() < again {
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// What was shown before, and when.
type Shown = Option<(Status, Instant)>;

fn show(args: &Args, meant: &Meant, clear: bool, shown: &mut Shown) -> Result<(), Fault> {
    let mut status = meant.ask()?;
    if status.nodes.iter().any(|node| node.up) {
        match meant.file(Some(&status)).and_then(|file| locks::ask(&file).map_err(|why| why.to_string())) {
            Ok(locks) => status.locks = locks,
            Err(why) => status.locks_unknown = Some(why),
        }
    }
    let now = Instant::now();
    let before = shown.replace((status.clone(), now));
    if args.json {
        return output::print_json(&status);
    }
    let text = table::tables(&status, before.map(|(before, then)| (before.locks, now - then)));
    // To the top left, and away with what was there.
    output::print(&if clear { format!("\x1b[H\x1b[2J{text}") } else { text })
}
