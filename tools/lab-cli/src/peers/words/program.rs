//! The programs that do with other libraries what a rack does: compiled into a folder that goes with the command, and run by the
//! library's own launcher.
//!
//! What must always hold: a launcher that was started has ended, with its processes, before this returns.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::report::{Measured, System};
use super::{IN_FLIGHT, WORDS};
use crate::bench::word::Operation;
use crate::peers::server::installed;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::TransportKind;

/// Starting and ending take a second or two; a run takes some measurements besides.
const TIMEOUT: Duration = Duration::from_secs(60);
/// For a launcher that was told to end.
const TO_END: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

const HEADER: &str = include_str!("../../../peers/words.h");

/// What the program is written with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Library {
    OpenShmem,
    Mpi,
}

impl Library {
    pub(super) const ALL: [Self; 2] = [Self::OpenShmem, Self::Mpi];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OpenShmem => "OpenSHMEM",
            Self::Mpi => "MPI",
        }
    }

    const fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::OpenShmem => ("words_shmem.c", include_str!("../../../peers/words_shmem.c")),
            Self::Mpi => ("words_mpi.c", include_str!("../../../peers/words_mpi.c")),
        }
    }

    pub(super) const fn compiler(self) -> &'static str {
        match self {
            Self::OpenShmem => "oshcc",
            Self::Mpi => "mpicc",
        }
    }

    pub(super) const fn launcher(self) -> &'static str {
        match self {
            Self::OpenShmem => "oshrun",
            Self::Mpi => "mpirun",
        }
    }

    /// What chooses the path. MPI's windows are in shared memory by themselves where all processes are on one machine.
    const fn path(self, kind: TransportKind) -> &'static [&'static str] {
        match (self, kind) {
            (Self::Mpi, TransportKind::Udp) => {
                &["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "osc", "pt2pt"]
            }
            _ => &[],
        }
    }
}

/// One of them.
pub(super) struct Program {
    peer: Library,
    launcher: PathBuf,
    program: PathBuf,
}

/// How it is run.
pub(super) struct Setting {
    /// Over shared memory, or over a network.
    pub(super) kind: TransportKind,
    pub(super) processes: u16,
    pub(super) millis: u64,
    /// The words' home computes.
    pub(super) busy: bool,
}

impl Program {
    /// Compiles it in this folder. None: it is not installed.
    pub(super) fn compile(library: Library, folder: &Path) -> Result<Option<Self>, Fault> {
        Self::compile_source(library, library.source(), folder)
    }

    /// The same of another source.
    pub(super) fn compile_source(
        library: Library,
        (name, source): (&str, &str),
        folder: &Path,
    ) -> Result<Option<Self>, Fault> {
        let (Some(compiler), Some(launcher)) = (installed(library.compiler()), installed(library.launcher()))
        else {
            return Ok(None);
        };
        let (source_at, program) = (folder.join(name), folder.join(library.compiler().to_owned() + "-words"));
        let written = fs::write(folder.join("words.h"), HEADER).and_then(|()| fs::write(&source_at, source));
        written
            .map_err(|error| Fault::failed(format_args!("cannot write to {}: {error}", folder.display())))?;
        let compiled =
            Command::new(&compiler).args(["-O2", "-o"]).args([&program, &source_at]).output().map_err(
                |error| Fault::failed(format_args!("cannot start {}: {error}", compiler.display())),
            )?;
        if !compiled.status.success() {
            return Err(Fault::failed(format_args!(
                "{} does not compile {name}: {}",
                compiler.display(),
                String::from_utf8_lossy(&compiled.stderr)
            )));
        }
        Ok(Some(Self { peer: library, launcher, program }))
    }

    /// Runs it, and gives what its processes say they have measured.
    pub(super) fn run(&self, setting: &Setting, interrupt: &Interrupt) -> Result<Vec<Measured>, Fault> {
        let mut launcher = self.launcher(setting.kind);
        launcher
            .args(["-np", &setting.processes.to_string()])
            .arg(&self.program)
            .args([WORDS, IN_FLIGHT, setting.millis].map(|number| number.to_string()))
            .arg(if setting.busy { "busy" } else { "idle" });
        let most = TIMEOUT + 30 * Duration::from_millis(setting.millis);
        let measured = parse(self.peer, &self.launch(launcher, most, interrupt)?);
        if measured.is_empty() {
            return Err(Fault::failed(format_args!(
                "the program for {} has measured nothing",
                self.peer.name()
            )));
        }
        Ok(measured)
    }

    /// Runs it with two processes, of which the one that operates does so as often, under a program that counts its instructions.
    pub(super) fn run_under(
        &self,
        kind: TransportKind,
        words: u64,
        (operation, times): (Operation, u64),
        under: &[OsString],
        interrupt: &Interrupt,
    ) -> Result<(), Fault> {
        let mut launcher = self.launcher(kind);
        let arguments = [words, times, 1].map(|number| number.to_string());
        let what = if operation == Operation::Add { "add" } else { "fetch" };
        launcher.args(["-np", "1"]).arg(&self.program).args(&arguments).arg(what);
        launcher.args([":", "-np", "1"]).args(under).arg(&self.program).args(&arguments).arg(what);
        self.launch(launcher, TIMEOUT, interrupt).map(drop)
    }

    /// Runs one that calls routines with so many processes, of which the one that calls, the last, is under a program that counts: what it
    /// prints.
    pub(super) fn run_routines(
        &self,
        kind: TransportKind,
        processes: u64,
        arguments: &[String],
        under: &[OsString],
        interrupt: &Interrupt,
    ) -> Result<Vec<String>, Fault> {
        let mut launcher = self.launcher(kind);
        if processes > 1 {
            launcher.args(["-np", &(processes - 1).to_string()]).arg(&self.program).args(arguments).arg(":");
        }
        launcher.args(["-np", "1"]).args(under).arg(&self.program).args(arguments);
        self.launch(launcher, TIMEOUT, interrupt)
    }

    /// Which version of the library it is, as its launcher says.
    pub(super) fn version(&self) -> String {
        let said = Command::new(&self.launcher).arg("--version").output();
        let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        format!("{}: {}", self.peer.name(), said.lines().next().unwrap_or("of no known version"))
    }

    pub(super) fn peer(&self) -> Library {
        self.peer
    }

    /// The launcher, which is yet to be told what to run.
    fn launcher(&self, kind: TransportKind) -> Command {
        let mut launcher = Command::new(&self.launcher);
        launcher
            .args(self.peer.path(kind))
            .arg("--oversubscribe")
            .env("UCX_TLS", if kind == TransportKind::Shm { "posix,self" } else { "tcp,self" })
            .env("UCX_NET_DEVICES", "lo")
            .env("UCX_WARN_UNUSED_ENV_VARS", "n")
            // It refuses to run for root otherwise.
            .envs(["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"].map(|name| (name, "1")))
            // Sockets live below it, and their paths must be short.
            .env("TMPDIR", env::temp_dir())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        launcher
    }

    /// What its processes print, until they have all ended.
    fn launch(
        &self,
        mut launcher: Command,
        most: Duration,
        interrupt: &Interrupt,
    ) -> Result<Vec<String>, Fault> {
        let name = self.peer.name();
        let failed = |error| Fault::failed(format_args!("cannot run the program for {name}: {error}"));
        let mut child = launcher.spawn().map_err(failed)?;
        let said = child.stdout.take().expect("standard output is a pipe");
        let lines =
            thread::spawn(move || BufReader::new(said).lines().map_while(Result::ok).collect::<Vec<_>>());
        let ended = wait(&mut child, most, interrupt);
        let lines = lines.join().expect("reading lines does not panic");
        match ended? {
            true => Ok(lines),
            false => Err(Fault::failed(format_args!("the program for {name} failed, and has said why"))),
        }
    }
}

/// Waits until a launcher has ended: whether it succeeded. One that takes too long is told to end, and so are its processes.
fn wait(child: &mut Child, most: Duration, interrupt: &Interrupt) -> Result<bool, Fault> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if began.elapsed() < most && !interrupt.requested() => thread::sleep(BETWEEN_LOOKS),
            _ => break,
        }
    }
    // It ends its processes first.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let told = Instant::now();
    while told.elapsed() < TO_END && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(BETWEEN_LOOKS);
    }
    let _ = child.kill();
    let _ = child.wait();
    if interrupt.requested() {
        return Err(Fault::Interrupted);
    }
    Err(Fault::failed(format_args!("a program of a peer did not end within {most:?}")))
}

/// What the processes' lines come to: rates are added up, of latencies it is the worst process's.
fn parse(library: Library, lines: &[String]) -> Vec<Measured> {
    let mut all: Vec<Measured> = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [what, _, operations, nanos, p50, p99] = words[..] else { continue };
        let Some((operation, hot, timed, busy)) = kind_of(what) else { continue };
        let numbers: Option<Vec<u64>> =
            [operations, nanos, p50, p99].iter().map(|it| it.parse().ok()).collect();
        let Some([operations, nanos, p50, p99]) = numbers.as_deref().and_then(|it| it.first_chunk().copied())
        else {
            continue;
        };
        let fresh = Measured {
            system: System::Peer(library),
            operation,
            hot,
            busy,
            per_second: 0.0,
            p50_ns: None,
            p99_ns: None,
        };
        let at = all.iter().position(|of| of.is_alike(&fresh)).unwrap_or_else(|| {
            all.push(fresh);
            all.len() - 1
        });
        let of = &mut all[at];
        if timed || busy {
            of.p50_ns = of.p50_ns.max(Some(p50));
            of.p99_ns = of.p99_ns.max(Some(p99));
        }
        if !timed {
            of.per_second += operations as f64 / (nanos as f64 / 1e9).max(1e-9);
        }
    }
    all
}

/// What a measurement is of: the operation, on one word or not; single ones were timed; the home computed.
fn kind_of(what: &str) -> Option<(Operation, bool, bool, bool)> {
    let (what, hot) = what.strip_suffix("-hot").map_or((what, false), |what| (what, true));
    Some(match what {
        "blocking" => (Operation::FetchAdd, hot, false, false),
        "timed" => (Operation::FetchAdd, hot, true, false),
        "busy" => (Operation::FetchAdd, hot, false, true),
        "post" => (Operation::Post, hot, false, false),
        "add" => (Operation::Add, hot, false, false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_processes_are_one_figure_for_each_operation() {
        let lines = [
            "blocking 1 1000 1000000000 0 0",
            "some other line",
            "blocking 2 500 500000000 0 0",
            "timed 1 100 1000 7 9",
            "timed 2 100 1000 8 8",
            "add-hot 1 10 1000000000 0 0",
            "busy 1 50 1000000000 20 30",
            "blocking-hot 1 x 1 0 0",
        ];
        let all = parse(Library::Mpi, &lines.map(str::to_owned));
        let [blocking, add, busy] = &all[..] else { panic!("{all:?}") };
        assert_eq!((blocking.per_second, blocking.p50_ns, blocking.p99_ns), (2000.0, Some(8), Some(9)));
        assert_eq!((add.operation, add.hot, add.per_second, add.p50_ns), (Operation::Add, true, 10.0, None));
        assert_eq!((busy.busy, busy.per_second, busy.p50_ns), (true, 50.0, Some(20)));
    }
}
