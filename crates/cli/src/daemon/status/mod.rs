//! `rackmem status`: asks the switch of a rack how the rack is, and prints it.
//!
//! | file | |
//! | --- | --- |
//! | `socket.rs` | on the switch's side: who connects gets one |
//! | `find.rs` | which rack is meant where none is named |
//! | `table.rs` | the document for people |
//!
//! The crate `status` has the document, and asks for it.

pub(super) mod find;
pub(super) mod socket;
mod table;

use std::io::{self, IsTerminal as _};
use std::thread;
use std::time::{Duration, Instant};

use rackmem::{RackFile, Watch};
use status::document::Status;
use status::locks;

use super::names::asking;
use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::output;
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

/// How long the nodes may take to say what they know of locks.
const MOST_WAIT: Duration = Duration::from_secs(2);
/// Between two looks with `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// How the rack is, for whoever asks the switch's process.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    file: RackFile,
    watch: Watch,
}

impl Answers {
    pub(super) fn new(file: &RackFile, watch: Watch) -> Self {
        Self { file: file.clone(), watch }
    }

    /// None: the switch does not run yet.
    pub(super) fn status(&self) -> Option<Status> {
        let report = self.watch.report()?;
        let file = std::path::absolute(&self.file.path).ok();
        Some(Status { file, ..Status::new(&self.file.name, self.file.transport().name(), &report) })
    }

    /// The same for another machine: with the locks that have names, and without where the file is, which concerns nobody there.
    pub(super) fn status_elsewhere(&self) -> Option<Status> {
        let status = Status { file: None, ..self.status()? };
        Some(with_locks(status, |_| Ok(self.file.clone())))
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

/// Adds what the nodes know of locks that have names, asked through a daemon on this machine.
fn with_locks(status: Status, file: impl FnOnce(&Status) -> Result<RackFile, String>) -> Status {
    let ask = |file: RackFile| asking::ask(&file, MOST_WAIT, locks::all).map_err(|why| why.to_string());
    if !status.nodes.iter().any(|node| node.up) {
        return status;
    }
    match file(&status).and_then(ask) {
        Ok(locks) => Status { locks, locks_unknown: None, ..status },
        // Who has answered over HTTP has asked, too.
        Err(_) if !status.locks.is_empty() || status.locks_unknown.is_some() => status,
        Err(why) => Status { locks_unknown: Some(why), ..status },
    }
}

fn show(args: &Args, meant: &Meant, clear: bool, shown: &mut Shown) -> Result<(), Fault> {
    let status = with_locks(meant.ask()?, |status| meant.file(Some(status)));
    let now = Instant::now();
    let before = shown.replace((status.clone(), now));
    if args.json {
        return output::print_json(&status);
    }
    let text = table::tables(&status, before.map(|(before, then)| (before.locks, now - then)));
    // To the top left, and away with what was there.
    output::print(&if clear { format!("\x1b[H\x1b[2J{text}") } else { text })
}
