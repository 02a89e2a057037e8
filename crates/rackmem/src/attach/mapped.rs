//! Words and objects where they are: regions of this machine's nodes that an application has mapped, and how it knows that it may
//! still use them.
//!
//! In the application. What is mapped are the same regions as in nodes ([`live::memory::regions`]), used by the same code; here is
//! only what a node has by being a node of the rack. The application asks its daemon for a region; if the daemon works on it by
//! loads and stores, so may the application: it obtains the memory from the home's process, which gives it to processes of its
//! user only, and which finds out what the application leaves half-written ([`Region::look_at_applications`]).
//!
//! ```text
//! thread      fetch_add ── permitted? ── load, store ──> the home's memory
//! watch       every quarter of the timeout: is the daemon's node in the rack, and these homes? ──> daemon
//! ```
//!
//! What must always hold: nothing is done on mapped memory once the watch has heard that the daemon is gone
//! ([`Error::Detached`](crate::Error::Detached)), or that the home is ([`Error::NodeDown`](crate::Error::NodeDown)), nor while the
//! daemon does not answer: then whoever wants something waits, as it would for an answer. The daemon's node is declared dead after
//! the timeout, and its silence is noticed before that. Nothing of this is left when the rack is dropped.
//!
//! [`Region::look_at_applications`]: live::memory::regions::Region::look_at_applications

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use live::memory::regions::{Region, Regions};
use live::networked::lease::Lease;
use live::networked::verbs::Far;
use wire::{Incarnation, Nanos, NodeId};

use super::answer::{Answer, decode_answers};
use super::line::{Cut, Line};
use super::message::{MOST_OPERATIONS, begin_batch};
use super::operation::Operation;
use crate::error::Error;

/// How long another process may take to give this one its memory.
const OBTAINING: Nanos = Nanos::from_millis(200);

/// What an application has mapped.
pub(super) struct Mapped {
    /// Where the homes' sockets are.
    runtime: PathBuf,
    /// After so long a silence a node is dead.
    timeout: Duration,
    shared: Arc<Shared>,
    watch: Mutex<Option<Watch>>,
}

/// What the application's threads look at.
#[derive(Default)]
struct Shared {
    regions: Regions,
    /// Fenced unless the daemon is there: every operation looks at it.
    lease: Arc<Lease>,
    daemon: Mutex<Daemon>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Daemon {
    #[default]
    Answers,
    /// It has not answered for so long that its node may be dead soon.
    Silent,
    /// It has hung up, or its node is dead.
    Gone,
}

/// The thread that asks the daemon, and what ends it.
struct Watch {
    stream: UnixStream,
    thread: JoinHandle<()>,
}

impl Mapped {
    pub(super) fn new(runtime: PathBuf, timeout: Nanos) -> Self {
        let timeout = Duration::from_nanos(timeout.0);
        Self { runtime, timeout, shared: Arc::default(), watch: Mutex::default() }
    }

    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.shared.lease
    }

    /// Waits while the daemon is silent.
    pub(super) fn await_daemon(&self) -> Result<(), Error> {
        let mut daemon = self.shared.daemon();
        while *daemon == Daemon::Silent {
            daemon = self.shared.changed.wait(daemon).unwrap_or_else(PoisonError::into_inner);
        }
        if *daemon == Daemon::Gone { Err(Error::Detached) } else { Ok(()) }
    }

    /// Maps a region that the daemon has within reach. None: it is not to be had so, and is asked for.
    pub(super) fn map(
        &self,
        far: &Far,
        connect: impl FnOnce() -> Result<Line, Error>,
    ) -> Option<Arc<Region>> {
        // Before anything is mapped, so that nothing ever is without it.
        self.watch(connect)?;
        let obtain = |home, name| transport::shm::borrow(&self.runtime, home, name, OBTAINING);
        let region = self.shared.regions.map_shared(far.addr, far.incarnation, obtain).ok()?;
        (region.shape() == far.shape).then_some(region)
    }

    /// Begins to watch the daemon, unless somebody has.
    fn watch(&self, connect: impl FnOnce() -> Result<Line, Error>) -> Option<()> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if watch.is_none() {
            let line = connect().ok()?;
            let (stream, shared, timeout) = (line.stream().ok()?, Arc::clone(&self.shared), self.timeout);
            let thread = std::thread::Builder::new().name("attached-watch".to_owned());
            let thread = thread.spawn(move || shared.watch(line, timeout)).ok()?;
            *watch = Some(Watch { stream, thread });
        }
        Some(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if let Some(Watch { stream, thread }) =
            self.watch.get_mut().unwrap_or_else(PoisonError::into_inner).take()
        {
            let _ = stream.shutdown(Shutdown::Both);
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn daemon(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, to: Daemon) {
        let mut daemon = self.daemon();
        if *daemon != to {
            *daemon = to;
            self.lease.doubt(to != Daemon::Answers);
            self.changed.notify_all();
        }
    }

    /// Asks, for as long as the daemon is there.
    fn watch(&self, mut line: Line, timeout: Duration) {
        while let Ok(is_leased) = self.look(&mut line, timeout) {
            // One that was silent may be declared dead and not know it yet. One that was not has only not heard the switch.
            if is_leased || *self.daemon() == Daemon::Answers {
                self.set(Daemon::Answers);
            }
            let pause = if *self.daemon() == Daemon::Answers { timeout / 4 } else { timeout / 64 };
            if line.hangs_up_within(pause) {
                break;
            }
        }
        self.set(Daemon::Gone);
    }

    /// Asks once, and waits for the answer. True if the lease of the daemon's node holds.
    fn look(&self, line: &mut Line, timeout: Duration) -> Result<bool, Cut> {
        let mut homes = self.regions.mapped_homes();
        homes.truncate(MOST_OPERATIONS - 1);
        line.send(None, |out| {
            begin_batch(out, homes.len() + 1);
            // Its own node, whatever its incarnation is, and the others.
            Operation::Confirm { node: None }.encode(out);
            homes.iter().for_each(|home| Operation::Confirm { node: Some(*home) }.encode(out));
        })?;
        let came = line.receive(Some(timeout / 2)).map(<[u8]>::to_vec);
        let frame = match came {
            Err(Cut::Late) => {
                self.set(Daemon::Silent);
                line.receive(None)?.to_vec()
            }
            came => came?,
        };
        self.heard(&homes, &frame)
    }

    fn heard(&self, homes: &[(NodeId, Incarnation)], frame: &[u8]) -> Result<bool, Cut> {
        let answers = decode_answers(frame).map_err(|_| Cut::Malformed)?;
        let [own @ (Answer::Done | Answer::Busy), of_homes @ ..] = &answers[..] else {
            return Err(Cut::Gone);
        };
        for ((node, incarnation), answer) in homes.iter().zip(of_homes) {
            match answer {
                Answer::Done | Answer::Busy => {}
                Answer::Failed(Error::NodeDown { .. }) => self.regions.home_died(*node, *incarnation),
                _ => return Err(Cut::Gone),
            }
        }
        Ok(*own == Answer::Done)
    }
}
