//! `rackmem snapshot` and `rackmem restore`: what a name of a running rack names, saved into a file and brought back.
//!
//! The work is done by [`apps::snapshot`], on a handle that is attached to a daemon of the rack on this machine. What must always hold: a
//! file is there whole or not at all, and the rack is not changed for a file that is not whole.
//!
//! | file | |
//! | --- | --- |
//! | `save.rs` | `rackmem snapshot` |
//! | `restore.rs` | `rackmem restore` |
//! | `whole_file.rs` | a file that is written beside the one whose place it takes |

pub(crate) mod restore;
pub(crate) mod save;
mod whole_file;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use apps::snapshot::{About, Error};
use rackmem::{NameError, NodeHandle, RackFile};
use serde::Serialize;

use super::names::asking;
use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::size::Bytes;

/// How long a rack may take until one of its daemons serves.
const MOST_WAIT: Duration = Duration::from_secs(10);

/// Between two looks at whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Does something in a thread of its own, so that Ctrl-C ends the command also while the rack does not answer, or a lock is not to be
/// had. None: the thread has not ended within `grace` after Ctrl-C.
fn unless_stopped<R: Send + 'static>(
    stop: &Interrupt,
    grace: Duration,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<Option<R>, Fault> {
    let (done, answer) = mpsc::channel();
    // Nobody may listen any more.
    let working = move || drop(done.send(work()));
    let thread = thread::Builder::new().name("snapshot".to_owned()).spawn(working);
    thread.map_err(|why| Fault::failed(format_args!("the system gives no thread: {why}")))?;
    let mut until = None;
    loop {
        match answer.recv_timeout(LOOK_EVERY) {
            Ok(result) => return Ok(Some(result)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Fault::Crashed(
                    "a thread panicked: what it says above is a bug of rackmem".into(),
                ));
            }
            Err(RecvTimeoutError::Timeout) if stop.requested() => {
                if Instant::now() >= *until.get_or_insert_with(|| Instant::now() + grace) {
                    return Ok(None);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// A way into the rack.
fn attach(file: &RackFile) -> Result<NodeHandle, Fault> {
    let attached = asking::ask(file, MOST_WAIT, |handle| Ok(handle.clone()));
    attached.map_err(|why| Fault::failed(format_args!("rack `{}` cannot be used: {why}", file.name)))
}

/// What kept a name from being saved or brought back.
fn failed(file: &RackFile, why: &Error) -> Fault {
    match why {
        Error::Name(NameError::Unusable { .. }) => Fault::usage(why),
        _ => Fault::failed(format_args!("rack `{}`: {why}", file.name)),
    }
}

/// What is in a file, for programs and people.
#[derive(Serialize, Debug)]
struct Content {
    /// What kind of thing it is.
    kind: String,
    discipline: String,
    tag: String,
    version: u32,
    /// Bytes of content.
    bytes: u64,
    /// Keys, or regions behind a lock.
    entries: Option<u64>,
}

impl Content {
    fn of(about: &About, bytes: u64, entries: u64) -> Self {
        let has_entries = about.kind.has_entries();
        Self {
            kind: about.kind.to_string(),
            discipline: format!("{:?}", about.spec.discipline),
            tag: about.spec.tag.clone(),
            version: about.spec.version,
            bytes,
            entries: has_entries.then_some(entries),
        }
    }

    fn text(&self) -> String {
        let (kind, bytes) = (&self.kind, Bytes(self.bytes));
        match self.entries {
            None => format!("{kind}, {bytes}"),
            Some(1) => format!("{kind}, 1 entry, {bytes}"),
            Some(entries) => format!("{kind}, {entries} entries, {bytes}"),
        }
    }
}
