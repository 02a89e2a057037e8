//! The daemon's side: who may attach, and what has come of them.
//!
//! What must always hold: only processes of the same user are served, [`MOST_ATTACHED`] threads of theirs at a time, each
//! by a thread of its own; when this is dropped, all of those have ended, and the socket is gone.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use live::scheduling::Scheduling;
use live::waiting::Oversubscription;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use sorted::Map;
use transport::{Handshakes, PeerId, Reason, WIRE_VERSION};
use wire::NodeId;

use super::line::{Cut, Line};
use super::message::{Welcome, decode_hello, put_full};
use super::{MOST_ATTACHED, serving, socket_of};
use crate::peers::PeerWatch;
use crate::rack::{Rack, random_session};
use crate::rack_file::RackFile;

/// Between two attempts to accept, where the system has run out of something.
const PAUSE: Duration = Duration::from_millis(100);

/// Applications that use a node of this process. Dropping it ends their connections, and waits for what they have in flight.
pub struct Attachments {
    shared: Arc<Shared>,
    socket: PathBuf,
    listener: Arc<UnixListener>,
    accepting: Option<JoinHandle<()>>,
}

/// What has come of attached applications.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AttachCounts {
    /// Connections of applications: of threads, and of processes that have something mapped.
    pub attached: u64,
    /// Those that ever were.
    pub accepted: u64,
    /// Operations done for them.
    pub operations: u64,
    /// Connections that were ended because of what came through them.
    pub malformed: u64,
    /// Connections that were ended because the application kept a block for too long, or did not take its answers.
    pub late: u64,
    /// Those that were not served: of another user, with another rack file, of another version, or one too many.
    pub refused: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) attached: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) operations: AtomicU64,
    pub(super) malformed: AtomicU64,
    pub(super) late: AtomicU64,
    pub(super) refused: AtomicU64,
}

pub(super) struct Shared {
    pub(super) counters: Counters,
    /// How the threads are scheduled that work for applications.
    scheduling: Scheduling,
    pub(super) oversubscription: Arc<Oversubscription>,
    /// How long an application may keep a block, or not take an answer.
    pub(super) hold: Duration,
    pub(super) stop: AtomicBool,
    /// No other process has it, nor had it.
    session: u64,
    /// The settings that applications must have, and who had others.
    handshakes: Arc<Handshakes>,
    served: Mutex<Connections>,
}

/// The connections that are served, by number. Each goes with its thread.
#[derive(Default)]
struct Connections {
    live: Map<u64, Served>,
    last: u64,
}

/// A connection and the thread for it.
struct Served {
    stream: UnixStream,
    thread: JoinHandle<()>,
}

impl Shared {
    fn served(&self) -> MutexGuard<'_, Connections> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rack {
    /// Lets applications of this user attach to `node`, which is in this process ([`Rack::attach`]). The rack file says
    /// where they come to: in its runtime directory, which must exist.
    ///
    /// # Errors
    /// If the system gives no socket there, or no thread.
    ///
    /// # Panics
    /// If the node is not in this process.
    pub fn serve_applications(&self, file: &RackFile, node: NodeId) -> io::Result<Attachments> {
        let socket = socket_of(file, node);
        // This process is that node of the rack, so whoever made the socket is dead.
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = Arc::new(UnixListener::bind(&socket)?);
        let shared = Arc::new(Shared {
            counters: Counters::default(),
            scheduling: file.scheduling,
            oversubscription: Arc::new(Oversubscription::of(file.scheduling)),
            hold: Duration::from_nanos(file.timeout.0 / 2),
            stop: AtomicBool::new(false),
            session: random_session(),
            handshakes: Arc::new(Handshakes::new(file.terms(), |_| None)),
            served: Mutex::default(),
        });
        // Looked at now, and not when the first one comes.
        assert!(self.peers().is_some(), "applications are served by a node of a rack of processes");
        let first = self.node(node);
        let mut attachments = Attachments {
            shared: Arc::clone(&shared),
            socket,
            listener: Arc::clone(&listener),
            accepting: None,
        };
        let accept = thread::Builder::new().name("attach".to_owned());
        attachments.accepting = Some(accept.spawn(move || {
            while !shared.stop.load(Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => admit(&shared, stream, || first.clone()),
                    Err(_) if shared.stop.load(Relaxed) => {}
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        })?);
        Ok(attachments)
    }
}

/// Lets an application in, or not.
fn admit(shared: &Arc<Shared>, stream: UnixStream, handle: impl FnOnce() -> crate::NodeHandle) {
    let mut served = shared.served();
    let peer = socket_peercred(&stream);
    let ours = peer.as_ref().is_ok_and(|peer| peer.uid == geteuid());
    let who = peer.map_or_else(|_| "unknown".to_owned(), |peer| format!("process {}", peer.pid.as_raw_pid()));
    let kept = stream.try_clone();
    let (true, Ok(kept)) = (ours, kept) else {
        shared.counters.refused.fetch_add(1, Relaxed);
        return;
    };
    let Ok(mut line) = Line::new(stream, Arc::clone(&shared.oversubscription)) else { return };
    if served.live.len() >= MOST_ATTACHED {
        shared.counters.refused.fetch_add(1, Relaxed);
        // If it does not take that, it is gone.
        let _ = line.send(Some(Duration::ZERO), put_full);
        return;
    }
    let handle = handle();
    let welcome = Welcome {
        node: handle.id(),
        nodes: handle.nodes(),
        block: handle.block_size(),
        memory: handle.inner.config.memory,
        session: shared.session,
        epoch: handle.inner.epoch(),
        terms: shared.handshakes.terms().clone(),
    };
    if line.send(Some(Duration::ZERO), |out| welcome.encode(out)).is_err() {
        return;
    }
    served.last += 1;
    let (counted, number) = (Arc::clone(shared), served.last);
    let thread = thread::Builder::new().name("attached".to_owned()).spawn(move || {
        counted.scheduling.ask().expect("was permitted when the node joined");
        match agree(&counted, &mut line, who)
            .map_or_else(|cut| cut, |()| served_to_the_end(&counted, &mut line, handle))
        {
            Cut::Gone => {}
            Cut::Malformed => drop(counted.counters.malformed.fetch_add(1, Relaxed)),
            Cut::Late => drop(counted.counters.late.fetch_add(1, Relaxed)),
            Cut::Refused => drop(counted.counters.refused.fetch_add(1, Relaxed)),
        }
        line.cut();
        drop(line);
        // The last that it does: nobody waits for it any more. A panic leaves it to whoever ends them all.
        counted.served().live.remove(&number);
    });
    match thread {
        Ok(thread) => drop(served.live.insert(number, Served { stream: kept, thread })),
        Err(_) => drop(shared.counters.refused.fetch_add(1, Relaxed)),
    }
}

/// Serves an application that has greeted as it should.
fn served_to_the_end(shared: &Shared, line: &mut Line, handle: crate::NodeHandle) -> Cut {
    shared.counters.attached.fetch_add(1, Relaxed);
    shared.counters.accepted.fetch_add(1, Relaxed);
    let cut = serving::serve(shared, line, handle);
    shared.counters.attached.fetch_sub(1, Relaxed);
    cut
}

/// Hears the application's greeting. An error: it is not served.
fn agree(shared: &Shared, line: &mut Line, who: String) -> Result<(), Cut> {
    let objection = match decode_hello(line.receive(Some(shared.hold))?) {
        Ok(Ok(terms)) => shared.handshakes.objection(&terms),
        Ok(Err(theirs)) => Some(Reason::Version { ours: WIRE_VERSION, theirs }),
        Err(_) => Some(Reason::Malformed),
    };
    let Some(reason) = objection else {
        shared.handshakes.accept(PeerId::OBSERVER);
        return Ok(());
    };
    let malformed = reason == Reason::Malformed;
    shared.handshakes.refuse(PeerId::OBSERVER, who, reason);
    Err(if malformed { Cut::Malformed } else { Cut::Refused })
}

impl Attachments {
    /// What there is to tell about applications that wanted to attach.
    pub fn peers(&self) -> PeerWatch {
        PeerWatch::of_applications(Arc::clone(&self.shared.handshakes))
    }

    /// What has come of applications so far.
    pub fn counts(&self) -> AttachCounts {
        let Counters { attached, accepted, operations, malformed, late, refused } = &self.shared.counters;
        let of = |count: &AtomicU64| count.load(Relaxed);
        AttachCounts {
            attached: of(attached),
            accepted: of(accepted),
            operations: of(operations),
            malformed: of(malformed),
            late: of(late),
            refused: of(refused),
        }
    }

    /// Ends all connections, and lets nobody in any more. Does not wait for operations that are in flight: they may take until
    /// a home answers, or until the node leaves the rack.
    pub fn end(&self) {
        self.shared.stop.store(true, Relaxed);
        // It may be gone already.
        let _ = fs::remove_file(&self.socket);
        // Ends `accept`.
        let _ = rustix::net::shutdown(self.listener.as_fd(), rustix::net::Shutdown::Both);
        for served in self.shared.served().live.values() {
            let _ = served.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Attachments {
    fn drop(&mut self) {
        self.end();
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let served = std::mem::take(&mut self.shared.served().live);
        for served in served.into_values() {
            // One that was let in while the others were ended.
            let _ = served.stream.shutdown(Shutdown::Both);
            let _ = served.thread.join();
        }
    }
}
