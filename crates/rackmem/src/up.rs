//! A rack of processes of this machine that an application starts, joins and ends: by the command `rackmem up`, which does the work.
//!
//! What must always hold: the processes end when their [`Processes`] are dropped, and when this process dies, however it does: the
//! command holds the other end of a pipe from us, which the kernel closes then.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, process};

use wire::NodeId;

use crate::rack::{MOST_NODES, Rack};
use crate::rack_file::{RackFile, RackFileError, StartError, runtime_directory};

/// The environment variable that says where the command is.
const COMMAND: &str = "RACKMEM_COMMAND";
/// The variable that says how much daemons log, and what they do if nobody has said it.
const LOG: (&str, &str) = ("RACKMEM_LOG", "warn");
/// The longest that a rack may take to come up.
const MOST_STARTING: Duration = Duration::from_secs(60);
/// The longest that the command may take to end: it gives its children five seconds, twice.
const MOST_ENDING: Duration = Duration::from_secs(15);

/// The processes of a rack that [`Rack::up`] has started. They end when this is dropped, and what is in their memories is gone.
#[derive(Debug)]
#[must_use = "the processes end when this is dropped"]
pub struct Processes {
    command: Child,
    /// The rack's.
    name: String,
    /// They are to end: what they say of that is not passed on.
    ends: Arc<AtomicBool>,
}

/// A rack that [`Rack::up_with`] is to start.
#[derive(Clone, Copy, Debug)]
pub struct Up<'a> {
    /// How many nodes, this process's included.
    pub nodes: u16,
    /// How many of them, the last ones, get no process: this process joins as the last one, others may join as the rest.
    pub seats: u16,
    /// The command that starts them, as for [`Rack::up`].
    pub command: Option<&'a Path>,
    /// Bytes that every node caches; none is the default of racks.
    pub cache: Option<u64>,
    /// Bytes that every node contributes; none is the default of racks.
    pub memory: Option<u64>,
    /// How many nodes keep what is allocated with copies, and names; none is 1.
    pub copies: Option<u64>,
}

impl Default for Up<'_> {
    fn default() -> Self {
        Self { nodes: 4, seats: 1, command: None, cache: None, memory: None, copies: None }
    }
}

/// Why there is no rack.
#[derive(Debug)]
#[non_exhaustive]
pub enum UpError {
    /// There are as few as no other process, or more than a rack can have.
    Nodes {
        /// How many were asked for.
        nodes: u16,
        /// How many of them for applications.
        seats: u16,
    },
    /// The command cannot be started.
    Command {
        /// What it was called by.
        command: OsString,
        /// Why.
        error: io::Error,
    },
    /// The command has ended, or the rack has not come up.
    NotUp {
        /// What was said about it.
        said: String,
    },
    /// Its rack file cannot be read.
    File(RackFileError),
    /// This process cannot join it.
    Join(StartError),
}

impl fmt::Display for UpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes { nodes, seats } => write!(
                f,
                "a rack of processes cannot have {nodes} nodes of which {seats} are for applications: take 2 to {MOST_NODES} nodes; one is this process, and one is none of theirs"
            ),
            Self::Command { command, error } => write!(
                f,
                "cannot start the command `{}`: {error}; build it (cargo build --release -p rackmem-cli), and name it in the call, with \
                 {COMMAND}, or put it on the PATH",
                command.display()
            ),
            Self::NotUp { said } => write!(f, "the rack has not come up: {said}"),
            Self::File(error) => error.fmt(f),
            Self::Join(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for UpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Command { error, .. } => Some(error),
            Self::File(error) => Some(error),
            Self::Join(error) => Some(error),
            Self::Nodes { .. } | Self::NotUp { .. } => None,
        }
    }
}

impl Rack {
    /// Starts a rack of so many nodes on this machine, over shared memory, and joins it as the last one; the others and the switch are
    /// processes. `command` is the `rackmem` that starts them; none is the one that the environment variable `RACKMEM_COMMAND`
    /// names, or else the one on the `PATH`. What they log goes to standard error: warnings, or what `RACKMEM_LOG` says.
    ///
    /// ```no_run
    /// let (rack, processes) = rackmem::Rack::up(4, None)?;
    /// let mut here = rack.here();
    /// let hits = here.named::<rackmem::Words<u64>>("hits").open_or(|| 16)?;
    /// drop((here, rack, processes)); // and nothing of it is left
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UpError`]; then nothing is left of it.
    pub fn up(nodes: u16, command: Option<&Path>) -> Result<(Self, Processes), UpError> {
        Self::up_with(&Up { nodes, command, ..Up::default() })
    }

    /// The same of another shape.
    ///
    /// # Errors
    /// As for [`Rack::up`]; [`UpError::NotUp`] if the sizes are impossible.
    pub fn up_with(up: &Up<'_>) -> Result<(Self, Processes), UpError> {
        let (nodes, seats) = (up.nodes, up.seats);
        static STARTED: AtomicU32 = AtomicU32::new(0);
        if !(2..=MOST_NODES).contains(&usize::from(nodes)) || !(1..nodes).contains(&seats) {
            return Err(UpError::Nodes { nodes, seats });
        }
        let name = format!("up-{}-{}", process::id(), STARTED.fetch_add(1, Relaxed));
        let processes = Processes::start(&name, up)?;
        let file = processes.file().map_err(UpError::File)?;
        let rack = Self::join(&file, NodeId(nodes - 1)).map_err(UpError::Join)?;
        Ok((rack, processes))
    }
}

impl Processes {
    /// The file of their rack: with it other processes attach, and it is asked how the rack is.
    ///
    /// # Errors
    /// If it is not there any more: the processes have ended.
    pub fn file(&self) -> Result<RackFile, RackFileError> {
        RackFile::read(runtime_directory(&self.name).join("rack.toml"))
    }

    /// When all of them are a rack, which waits for this process.
    fn start(name: &str, up: &Up<'_>) -> Result<Self, UpError> {
        let called = match up.command {
            Some(path) => path.into(),
            None => std::env::var_os(COMMAND).unwrap_or_else(|| "rackmem".into()),
        };
        let mut started = Command::new(&called);
        started.args([
            "up",
            "--owned",
            "--seats",
            &up.seats.to_string(),
            "--name",
            name,
            "--nodes",
            &up.nodes.to_string(),
        ]);
        for (flag, given) in [("--cache", up.cache), ("--memory", up.memory), ("--copies", up.copies)] {
            given.iter().for_each(|number| _ = started.arg(flag).arg(number.to_string()));
        }
        if std::env::var_os(LOG.0).is_none() {
            started.env(LOG.0, LOG.1);
        }
        started.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for this process to decide about.
        std::os::unix::process::CommandExt::process_group(&mut started, 0);
        let mut command = started.spawn().map_err(|error| UpError::Command { command: called, error })?;
        let (output, errors) = (command.stdout.take(), command.stderr.take());
        let ends = Arc::new(AtomicBool::new(false));
        let this = Self { command, name: name.to_owned(), ends: Arc::clone(&ends) };
        let (Some(output), Some(errors)) = (output, errors) else { unreachable!("both are pipes") };
        let said = pass_on(errors, ends);
        match until_up(output) {
            Ok(()) => Ok(this),
            Err(why) => {
                drop(this);
                let last = said.join().unwrap_or_default();
                Err(UpError::NotUp { said: last.unwrap_or_else(|| why.to_owned()) })
            }
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Nodes that leave take memory with them, which is an error at any other time.
        self.ends.store(true, Relaxed);
        // The end of its input asks it to end.
        self.command.stdin = None;
        let until = Instant::now() + MOST_ENDING;
        while matches!(self.command.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        // Nothing, if it has ended; its children notice, if it has not.
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

/// Waits until the command says that the rack is up.
fn until_up(output: ChildStdout) -> Result<(), &'static str> {
    let (say, is_up) = channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(output).lines();
        // The last line of what it says then.
        if lines.any(|line| line.is_ok_and(|line| line.contains("Ctrl-C"))) {
            // Nobody waits any more: it has taken too long.
            let _ = say.send(());
        }
    });
    is_up.recv_timeout(MOST_STARTING).map_err(|why| match why {
        RecvTimeoutError::Timeout => "it takes more than a minute",
        RecvTimeoutError::Disconnected => "its command has ended",
    })
}

/// Passes on what the processes log. The thread says what was the error at last, if there was one.
fn pass_on(errors: ChildStderr, ends: Arc<AtomicBool>) -> JoinHandle<Option<String>> {
    thread::spawn(move || {
        let mut last = None;
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            if !ends.load(Relaxed) {
                // Whoever has closed it does not want to know.
                let _ = writeln!(io::stderr(), "{line}");
            }
            last = line.strip_prefix("error: ").map(str::to_owned).or(last);
        }
        last
    })
}
