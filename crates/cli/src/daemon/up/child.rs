//! One process of the rack.
//!
//! What must always hold: it holds the other end of a pipe from us, so that it ends when we do. It is in a process
//! group of its own: Ctrl-C reaches only us, and we end the nodes before the switch.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{self, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rackmem::dataplane::network::Network;

use super::super::log::Format;
use crate::fault::Fault;

/// Which place of the rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Switch,
    Node(u16),
}

impl Part {
    /// Its number in a network: the switch's, then the nodes'.
    fn place(self) -> usize {
        match self {
            Self::Switch => 0,
            Self::Node(id) => 1 + usize::from(id),
        }
    }

    /// How one would start it by hand.
    pub(super) fn command(self, with: &Options<'_>) -> String {
        let (inside, path) = (with.inside(self), with.file.display());
        match self {
            Self::Switch => format!("{inside}rackmem switch --config {path}"),
            Self::Node(id) => format!("{inside}rackmem node --config {path} --id {id}"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("the switch"),
            Self::Node(id) => write!(f, "node {id}"),
        }
    }
}

/// What children are started with.
pub(super) struct Options<'a> {
    pub(super) file: PathBuf,
    /// Each has its place there.
    pub(super) network: Option<&'a Network>,
    /// Where the switch answers HTTP.
    pub(super) metrics: Option<SocketAddr>,
    pub(super) log: Format,
}

impl Options<'_> {
    /// Where a node, or the switch, would be started by hand: what stands before the command.
    pub(super) fn inside(&self, part: Part) -> String {
        let network = self.network.map(|network| network.paths().swap_remove(part.place()));
        network.map_or_else(String::new, |path| format!("nsenter --net={} ", path.display()))
    }
}

/// How a child has died.
#[derive(Clone, Copy, Debug)]
pub(super) struct Death(ExitStatus);

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.signal(), self.0.code()) {
            (Some(signal), _) => write!(f, "was killed by signal {signal}"),
            (None, Some(code)) => write!(f, "ended with exit code {code}"),
            (None, None) => f.write_str("ended"),
        }
    }
}

/// What dies again within this time is not started again at once.
const SETTLED: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Child {
    part: Part,
    process: process::Child,
    /// Closing it asks the process to end.
    pipe: Option<ChildStdin>,
    started: Instant,
    /// When to start it again; none: it lives, as far as is known.
    dead: Option<Instant>,
    pause: Duration,
    /// It has been killed, at some time: what it had in the file system may be there still.
    pub(super) killed: bool,
}

impl Child {
    pub(super) fn start(part: Part, with: &Options<'_>) -> Result<Self, Fault> {
        let (process, pipe) = spawn(part, with)?;
        let started = Instant::now();
        Ok(Self { part, process, pipe, started, dead: None, pause: FIRST_PAUSE, killed: false })
    }

    pub(super) fn part(&self) -> Part {
        self.part
    }

    /// It is a node that has ended as it was told to, or wished: it is not started again. (A switch that has ended is.)
    pub(super) fn has_left(&mut self) -> bool {
        matches!(self.part, Part::Node(_))
            && self.process.try_wait().is_ok_and(|status| status.is_some_and(|status| status.success()))
    }

    /// How it has died, said once for each death.
    pub(super) fn death(&mut self) -> Option<Death> {
        if self.is_dead() {
            return None;
        }
        let status = self.process.try_wait().ok()??;
        self.pause = if self.started.elapsed() > SETTLED { FIRST_PAUSE } else { self.pause };
        self.dead = Some(Instant::now() + self.pause);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        self.killed |= !status.success();
        Some(Death(status))
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.is_some()
    }

    /// Starts it again if it has been dead for long enough.
    pub(super) fn restart_if_due(&mut self, with: &Options<'_>) -> Result<(), Fault> {
        if self.dead.is_some_and(|due| due <= Instant::now()) && !self.has_left() {
            (self.process, self.pipe) = spawn(self.part, with)?;
            (self.started, self.dead) = (Instant::now(), None);
        }
        Ok(())
    }

    pub(super) fn ask_to_end(&mut self) {
        self.pipe = None;
    }

    pub(super) fn has_ended(&mut self) -> bool {
        match self.process.try_wait() {
            Ok(Some(status)) => {
                self.killed |= !status.success();
                true
            }
            _ => false,
        }
    }

    pub(super) fn kill(&mut self) {
        self.killed = true;
        // It may have ended just now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(part: Part, with: &Options<'_>) -> Result<(process::Child, Option<ChildStdin>), Fault> {
    let failed = |error| Fault::failed(format_args!("cannot start {part}: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    match part {
        Part::Switch => command.arg("switch"),
        Part::Node(id) => command.args(["node", "--id", &id.to_string()]),
    };
    command.arg("--owned").arg("--config").arg(&with.file).args(["--log", with.log.name()]);
    if let (Part::Switch, Some(address)) = (part, with.metrics) {
        command.args(["--metrics", &address.to_string()]);
    }
    // All of them are where the file says: these are about one place.
    command.env_remove("RACKMEM_LISTEN").env_remove("RACKMEM_ADVERTISE");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
    let spawned = match with.network {
        Some(network) => network.at(part.place(), || command.spawn()),
        None => command.spawn(),
    };
    let mut process = spawned.map_err(failed)?;
    let pipe = process.stdin.take();
    Ok((process, pipe))
}
