//! Which rack `rackmem status`, `names`, `snapshot`, `restore` and `drain` are about: the one of a file, or the one that runs on this machine.
//!
//! What must always hold: a rack that was not named is shown only if no other one can be meant, and it is said which.

use std::fmt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rackmem::RackFile;
use status::ask;
use status::document::Status;

use super::super::{read, runtime};
use crate::fault::Fault;

/// The file of a rack whose file is not named.
const FILE: &str = "rack.toml";

/// The flags that say which.
#[derive(Debug, clap::Args)]
pub(in super::super) struct Which {
    /// The rack file. Without it: the rack of ./rack.toml if there is that file and it runs, or else the one that runs on
    /// this machine
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The rack with this name that runs on this machine
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    rack: Option<String>,
}

impl Which {
    /// The rack that is meant. If it was not named by its file, the user is told which it is.
    pub(in super::super) fn meant(&self) -> Result<Meant, Fault> {
        if let Some(path) = &self.config {
            return Meant::of(path);
        }
        let meant = meant(self.rack.as_deref())?;
        say!("{meant}");
        Ok(meant)
    }
}

/// A rack.
pub(in super::super) enum Meant {
    /// Of this file.
    Of(Box<RackFile>, PathBuf),
    /// One that runs here, of whatever file.
    Found {
        name: String,
        /// Where its switch answers.
        socket: PathBuf,
        /// The rack of the file in this folder, which does not run.
        instead_of: Option<String>,
    },
}

impl Meant {
    fn of(path: &Path) -> Result<Self, Fault> {
        Ok(Self::Of(Box::new(read(path)?), path.to_owned()))
    }

    /// How it is.
    pub(in super::super) fn ask(&self) -> Result<Status, Fault> {
        match self {
            Self::Of(file, path) => ask::ask(file).map_err(|error| {
                Fault::failed(format_args!(
                    "the switch of rack `{}` does not say how it is: {error}\n  start it with: rackmem switch --config {} (or all of the rack with rackmem up)",
                    file.name,
                    path.display()
                ))
            }),
            Self::Found { name, socket, .. } => ask::ask_at(socket).map_err(|error| {
                Fault::failed(format_args!("the switch of rack `{name}` does not say how it is any more: {error}"))
            }),
        }
    }

    /// Its file: of one that was found, the one that its switch has.
    pub(in super::super) fn file(&self, status: Option<&Status>) -> Result<RackFile, String> {
        let (name, socket) = match self {
            Self::Of(file, _) => return Ok((**file).clone()),
            Self::Found { name, socket, .. } => (name, socket),
        };
        let path = status.and_then(|status| status.file.as_deref()).ok_or_else(|| {
            format!("the switch of rack `{name}` does not say which file it has: name it with --config")
        })?;
        let mut file = RackFile::read(path).map_err(|why| why.to_string())?;
        // The variable that says where it is may be another one here.
        file.runtime = socket.parent().map_or(file.runtime, Path::to_owned);
        Ok(file)
    }
}

impl fmt::Display for Meant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(file, path) => write!(f, "rack `{}` of {}", file.name, path.display()),
            Self::Found { name, socket, instead_of } => {
                if let Some(other) = instead_of {
                    write!(f, "rack `{other}` of ./{FILE} does not run on this machine; ")?;
                }
                write!(f, "rack `{name}`, which answers at {}", socket.display())
            }
        }
    }
}

/// The rack with this name that runs here; without a name that of the file in this folder, or else the one that runs here.
fn meant(name: Option<&str>) -> Result<Meant, Fault> {
    let here = Path::new(FILE);
    let file = if name.is_none() && here.exists() { Some(read(here)?) } else { None };
    if let Some(file) = &file {
        // Its switch may run on another machine.
        if answers(&ask::socket_of(file)) || file.switch_metrics.is_some() {
            return Meant::of(here);
        }
    }
    let mut running = runtime::status_sockets();
    running.retain(|(_, socket)| answers(socket));
    if let Some(name) = name {
        let found = running.iter().position(|(known, _)| known == name);
        let found = found.map(|at| running.swap_remove(at));
        return match found {
            Some((name, socket)) => Ok(Meant::Found { name, socket, instead_of: None }),
            None => Err(Fault::failed(format_args!(
                "--rack {name}: no rack with this name runs on this machine as this user ({}); name its file with --config, if \
                 that says where its `runtime` directory is",
                match running.as_slice() {
                    [] => "none does".to_owned(),
                    others => format!("those that do: {}", names(others)),
                }
            ))),
        };
    }
    match (running.as_slice(), file) {
        ([(name, socket)], file) => {
            let (name, socket) = (name.clone(), socket.clone());
            Ok(Meant::Found { name, socket, instead_of: file.map(|file| file.name) })
        }
        ([], Some(_)) => Meant::of(here),
        ([], None) => Err(Fault::failed(
            "no rack runs on this machine as this user: start one with rackmem up, or name the file of one with --config FILE (also \
             if it runs on another machine, or has a `runtime` directory of its own)",
        )),
        (several, _) => Err(Fault::usage(format_args!(
            "{} racks run on this machine: {}; choose one with --rack NAME",
            several.len(),
            names(several)
        ))),
    }
}

fn names(racks: &[(String, PathBuf)]) -> String {
    racks.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

fn answers(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}
