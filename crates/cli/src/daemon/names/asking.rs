//! Asking a rack about its names, through a daemon of it on this machine.
//!
//! A daemon does for this process what it does for any application that attaches. What must always hold: a rack that does not answer
//! keeps nobody here for longer than was said.

use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rackmem::attach::socket_of;
use rackmem::{AttachError, NameError, NodeHandle, NodeId, Rack, RackFile};

/// Why the names of a rack are not known.
#[derive(Debug)]
pub(in super::super) enum AskError {
    /// No daemon of the rack has a socket on this machine.
    NoDaemon,
    /// There are some, and this is why the last one did not serve.
    Refused(AttachError),
    /// It serves, and what was asked for failed.
    Failed(NameError),
    /// There is no answer yet.
    Late(Duration),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDaemon => f.write_str(
                "no node of the rack runs as a daemon on this machine, and only one can be asked: start one with rackmem node --id N, \
                 or ask where one runs",
            ),
            Self::Refused(why) => write!(f, "no daemon on this machine can be asked: {why}"),
            Self::Failed(why) => write!(f, "{why}"),
            Self::Late(most) => write!(
                f,
                "no answer within {} s: a node is stopped, or cut off; rackmem status shows which, once it is declared dead",
                most.as_secs()
            ),
        }
    }
}

/// Asks something of a rack whose file this is, through the first daemon that serves: which is told, too.
pub(in super::super) fn ask<R: Send + 'static>(
    file: &RackFile,
    most: Duration,
    question: impl FnOnce(&mut NodeHandle) -> Result<R, NameError> + Send + 'static,
) -> Result<R, AskError> {
    let (answer, answered) = mpsc::channel();
    let file = file.clone();
    // If it is late it ends with this process.
    let asking = thread::Builder::new().name("names".to_owned()).spawn(move || {
        let asked = attach(&file).and_then(|rack| question(&mut rack.here()).map_err(AskError::Failed));
        let _ = answer.send(asked);
    });
    match asking {
        Ok(_) => answered.recv_timeout(most).unwrap_or(Err(AskError::Late(most))),
        // The system has no thread to spare.
        Err(_) => Err(AskError::Late(Duration::ZERO)),
    }
}

fn attach(file: &RackFile) -> Result<Rack, AskError> {
    let nodes = (0..file.config.nodes).map(|node| NodeId(u16::try_from(node).expect("at most 64 nodes")));
    let mut why = AskError::NoDaemon;
    for node in nodes.filter(|node| socket_of(file, *node).exists()) {
        match Rack::attach_by_socket(file, node) {
            Ok(rack) => return Ok(rack),
            Err(refused) => why = AskError::Refused(refused),
        }
    }
    Err(why)
}
