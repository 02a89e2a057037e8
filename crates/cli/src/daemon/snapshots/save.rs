//! `rackmem snapshot`: saves what a name names into a file.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use apps::snapshot::{self, Error, Saved};
use serde::Serialize;

use super::super::status::find::Which;
use super::whole_file::{WholeFile, unwritten};
use super::{Content, attach, failed, unless_stopped};
use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  rackmem snapshot quotas quotas.snap          of the rack that runs on this machine
  rackmem snapshot users users.snap --config lab.toml --json
  rackmem restore users users.snap             brings it back

What a lock guards, and a value, is of one moment; so is a store in locks of up to 2 MiB. Of another store each key is,
of a region each block, of words and objects each of them. It is said which. Whoever writes waits for a copy in memory
at most. An older snapshot in FILE is replaced when the new one is whole; any other file stays.";

/// What to save, and where to.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to save: see rackmem names
    #[arg(value_name = "NAME")]
    name: String,

    /// The file. Only you can read it, if it is new
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    which: Which,

    /// How long to wait for a lock that others have
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u32,

    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

/// How it ended.
#[derive(Serialize, Debug)]
struct Outcome<'a> {
    rack: &'a str,
    name: &'a str,
    file: &'a Path,
    #[serde(flatten)]
    content: Content,
    /// Of what it is one moment.
    moment: String,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let stop = Interrupt::listen()?;
    // What cannot be written is known before anybody waits for anything.
    let file = WholeFile::create(&args.file)?;
    let meant = args.which.meant()?;
    let status = meant.ask().ok();
    let rack = meant.file(status.as_ref()).map_err(Fault::failed)?;
    let mut handle = attach(&rack)?;
    let (name, wait) = (args.name.clone(), Duration::from_secs(args.wait.into()));
    let out = BufWriter::new(file.writer()?);
    // What is in hand when it is to stop is only read.
    let saved = unless_stopped(&stop, Duration::ZERO, move || snapshot::save(&mut handle, &name, wait, out))?;
    let saved = saved.ok_or(Fault::Interrupted)?.map_err(|why| match &why {
        Error::Write(why) => unwritten(&args.file, why),
        why => failed(&rack, why),
    })?;
    file.end()?;
    let Saved { about, moment, bytes, entries, .. } = saved;
    let outcome = Outcome {
        rack: &rack.name,
        name: &args.name,
        file: &args.file,
        content: Content::of(&about, bytes, entries),
        moment: moment.to_string(),
    };
    output::show(args.json, "snapshot", &outcome, || text(&outcome))
}

fn text(outcome: &Outcome<'_>) -> String {
    let Outcome { rack, name, file, content, moment } = outcome;
    format!("{name:?} of rack `{rack}` is in {}: {}, {moment}\n", file.display(), content.text())
}
