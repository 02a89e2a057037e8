//! `rackmem restore`: brings back what `rackmem snapshot` has saved.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use apps::snapshot::{Error, Existing, Restored, Snapshot};
use rackmem::RackFile;
use serde::Serialize;

use super::super::status::find::Which;
use super::{Content, attach, failed, unless_stopped};
use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  rackmem restore quotas quotas.snap              makes it; nothing has this name, or it was lost
  rackmem restore quotas quotas.snap --replace    puts it in the place of what has this name
  rackmem restore users.old users.snap            under another name
  rackmem restore users users.snap --copies       it outlives nodes

All of FILE is read and checked before anything is changed. What has the name is replaced only if it is of the same kind
and shape. Programs that use it go on.";

/// What to bring back, and from where.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The name to bring it back under
    #[arg(value_name = "NAME")]
    name: String,

    /// The file that rackmem snapshot has written
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    which: Which,

    /// Replace what has this name
    #[arg(long)]
    replace: bool,

    /// Make it with copies, in a rack that keeps some
    #[arg(long)]
    copies: bool,

    /// How long to wait for a lock that others have
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u32,

    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

/// For how long what is in hand may take after Ctrl-C.
const GRACE: Duration = Duration::from_secs(1);

/// How it ended.
#[derive(Serialize, Debug)]
struct Outcome<'a> {
    rack: &'a str,
    name: &'a str,
    file: &'a Path,
    /// The name that it had when it was saved.
    was: String,
    #[serde(flatten)]
    content: Content,
    /// It was made; otherwise something had this name, and has other contents now.
    made: bool,
    copies: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let stop = Interrupt::listen()?;
    let shown = args.file.display();
    let of_file = |why: &dyn std::fmt::Display| Fault::usage(format_args!("{shown}: {why}"));
    let file = File::open(&args.file).map_err(|why| of_file(&why))?;
    let snapshot = Snapshot::open(Stoppable { file, stop: stop.clone() });
    let mut snapshot = match snapshot {
        Err(_) if stop.requested() => return Err(Fault::Interrupted),
        opened => opened.map_err(|why| of_file(&why))?,
    };
    let kind = snapshot.about().kind;
    if args.copies && !kind.can_have_copies() {
        return Err(Fault::usage(format_args!("--copies: what is in {shown} ({kind}) cannot have copies")));
    }
    let meant = args.which.meant()?;
    let status = meant.ask().ok();
    let rack = meant.file(status.as_ref()).map_err(Fault::failed)?;
    let mut handle = attach(&rack)?;
    if args.copies {
        let keeps = handle.keep_copies(true);
        keeps.map_err(|why| Fault::failed(format_args!("--copies: rack `{}`: {why}", rack.name)))?;
    }
    let existing = if args.replace { Existing::Replace } else { Existing::Keep };
    let wait = Duration::from_secs(args.wait.into());
    let name = args.name.clone();
    let restored =
        unless_stopped(&stop, GRACE, move || snapshot.restore(&mut handle, &name, existing, wait))?;
    let restored = restored.ok_or_else(|| {
        say!(
            "{:?} may have a part of {shown} now: what was in hand had not ended a second after Ctrl-C",
            args.name
        );
        Fault::Interrupted
    })?;
    let Restored { about, made, copies, bytes, entries, .. } =
        restored.map_err(|why| unrestored(args, &rack, &why, &stop))?;
    if args.copies && !copies {
        say!("note: {:?} was there without copies, and has none", args.name);
    }
    let outcome = Outcome {
        rack: &rack.name,
        name: &args.name,
        file: &args.file,
        content: Content::of(&about, bytes, entries),
        was: about.name,
        made,
        copies,
    };
    output::show(args.json, "restore", &outcome, || text(&outcome))
}

/// Why it did not come back, and what is left.
fn unrestored(args: &Args, rack: &RackFile, why: &Error, stop: &Interrupt) -> Fault {
    match why {
        _ if stop.requested() => {
            if let Error::Partly { .. } = why {
                say!("{why}");
            }
            Fault::Interrupted
        }
        Error::Exists { .. } => Fault::failed(format_args!(
            "rack `{}`: {why}; with --replace its contents become those of {}",
            rack.name,
            args.file.display()
        )),
        why if why.is_of_file() => Fault::failed(format_args!("{}: {why}", args.file.display())),
        why => failed(rack, why),
    }
}

fn text(outcome: &Outcome<'_>) -> String {
    let Outcome { rack, name, file, content, made, copies, .. } = outcome;
    let how = if *made { "was made" } else { "was replaced" };
    let copies = if *copies { ", with copies" } else { "" };
    format!("{name:?} of rack `{rack}` {how} from {}: {}{copies}\n", file.display(), content.text())
}

/// A file whose reading ends with Ctrl-C.
struct Stoppable {
    file: File,
    stop: Interrupt,
}

impl Read for Stoppable {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.requested() {
            return Err(io::Error::other("stopped by Ctrl-C"));
        }
        self.file.read(into)
    }
}

impl Seek for Stoppable {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
