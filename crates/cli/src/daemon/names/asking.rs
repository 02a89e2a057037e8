//! Asking a rack about its names, through a daemon of it on this machine.
//!
//! A daemon does for this process what it does for any application that attaches. What must always hold: a rack that does not answer
//! keeps nobody here for longer than was said.

use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rackmem::attach::socket_of;
use rackmem::{AttachError, NameError, NodeHandle, NodeId, Rack, RackFile};

/// How long a daemon has before the next one is asked.
const NEXT_AFTER: Duration = Duration::from_millis(300);

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

/// Asks something of a rack whose file this is, through a daemon that serves: of one that has not answered after a while the next one is
/// asked, too.
pub(in super::super) fn ask<R: Send + 'static>(
    file: &RackFile,
    most: Duration,
    question: impl Fn(&mut NodeHandle) -> Result<R, NameError> + Clone + Send + 'static,
) -> Result<R, AskError> {
    let until = Instant::now() + most;
    let (answer, answered) = mpsc::channel();
    let nodes = (0..file.config.nodes).map(|node| NodeId(u16::try_from(node).expect("at most 64 nodes")));
    let mut nodes = nodes.filter(|node| socket_of(file, *node).exists()).peekable();
    let (mut asked, mut why) = (0, AskError::NoDaemon);
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        if let Some(node) = nodes.next() {
            let (file, question, answer) = (file.clone(), question.clone(), answer.clone());
            let asking = move || {
                let rack = Rack::attach_by_socket(&file, node).map_err(AskError::Refused);
                // Somebody else may have answered.
                let _ =
                    answer.send(rack.and_then(|rack| question(&mut rack.here()).map_err(AskError::Failed)));
            };
            // If it is late it ends with what it waits for, or with this process. The system may have no thread to spare.
            asked += usize::from(thread::Builder::new().name("asking".to_owned()).spawn(asking).is_ok());
        } else if asked == 0 {
            return Err(why);
        }
        match answered.recv_timeout(if nodes.peek().is_some() { left.min(NEXT_AFTER) } else { left }) {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => (asked, why) = (asked - 1, error),
            Err(_) => {}
        }
    }
    Err(AskError::Late(most))
}
