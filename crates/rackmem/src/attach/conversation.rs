//! The application's side of a connection: questions, and their answers.
//!
//! What must always hold: once a connection is cut, everything fails with [`Error::Detached`]; and no answer is taken for that of
//! another question: a conversation in which something did not go as it must is cut.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use live::waiting::Oversubscription;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use transport::{Reason, Terms, WIRE_VERSION};
use wire::{GlobalAddr, NodeId};

use super::answer::{Answer, decode_answers};
use super::error::AttachError;
use super::line::{Cut, Line};
use super::message::{self, MOST_OPERATIONS, Welcome, put_hello};
use super::operation::Operation;
use crate::error::Error;

/// How long a daemon may take to greet.
const MOST_GREETING: Duration = Duration::from_secs(5);

/// A connection. Handles own one each; locks that are held through it, and operations that are on their way, keep it.
pub(crate) struct Conversation {
    state: Mutex<ClientState>,
}

struct ClientState {
    line: Line,
    /// Something did not go as it must: nothing is said any more.
    cut: bool,
    /// An update is in flight, and what would be said now comes after it.
    updating: bool,
    /// What is to be said then, encoded.
    later: Vec<Vec<u8>>,
}

impl Conversation {
    /// Connects, and greets.
    pub(super) fn open(socket: &Path, node: NodeId, terms: &Terms) -> Result<(Self, Welcome), AttachError> {
        let failed = |source| AttachError::NoDaemon { node, socket: socket.to_path_buf(), source };
        let stream = UnixStream::connect(socket).map_err(failed)?;
        if !socket_peercred(&stream).is_ok_and(|peer| peer.uid == geteuid()) {
            return Err(AttachError::OtherUser { socket: socket.to_path_buf() });
        }
        let mut line = Line::new(stream, Arc::<Oversubscription>::default()).map_err(failed)?;
        // Both greet before they hear the other one, so that each knows why it is refused.
        let gone = |_| failed(io::ErrorKind::ConnectionReset.into());
        // One that is full may have hung up already; what it has said is there.
        let hello = line.send(Some(MOST_GREETING), |out| put_hello(out, terms));
        let greeting = line.receive(Some(MOST_GREETING)).map_err(gone)?;
        let disagrees = |reason| AttachError::Disagrees { node, reason };
        let welcome = match Welcome::decode(greeting) {
            Ok(Ok(Some(welcome))) => welcome,
            Ok(Ok(None)) => return Err(AttachError::Full { node }),
            Ok(Err(theirs)) => return Err(disagrees(Reason::Version { ours: WIRE_VERSION, theirs })),
            Err(_) => return Err(disagrees(Reason::Malformed)),
        };
        hello.map_err(gone)?;
        let differences = terms.compare(&welcome.terms);
        if !differences.is_empty() {
            return Err(disagrees(Reason::Settings(differences)));
        }
        if welcome.node != node {
            return Err(disagrees(Reason::Malformed));
        }
        let state = ClientState { line, cut: false, updating: false, later: Vec::new() };
        Ok((Self { state: Mutex::new(state) }, welcome))
    }

    /// The connection, for who says something else.
    pub(super) fn into_line(self) -> Line {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).line
    }

    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for so many operations.
    pub(super) fn ask(&self, operations: usize, encoded: &[u8]) -> Result<Vec<Answer>, Error> {
        self.state().ask_batch(operations, encoded)
    }

    /// Asks for one operation.
    pub(super) fn ask_one(&self, operation: &Operation<'_>) -> Result<Answer, Error> {
        let answers = self.state().ask(1, |out| {
            message::begin_batch(out, 1);
            operation.encode(out);
        })?;
        match answers.into_iter().next() {
            Some(Answer::Failed(error)) => Err(error),
            Some(answer) => Ok(answer),
            None => Err(Error::Detached),
        }
    }

    /// Asks for something that has no answer but that it is done.
    pub(super) fn done(&self, operation: &Operation<'_>) -> Result<(), Error> {
        match self.ask_one(operation)? {
            Answer::Done => Ok(()),
            _ => Err(self.cut()),
        }
    }

    /// Asks for something whose outcome nobody is told; after the update that is in flight, if one is. A connection that is cut
    /// has given back whatever this would give back.
    pub(super) fn tell(&self, operation: &Operation<'_>) {
        let mut state = self.state();
        let mut encoded = Vec::new();
        operation.encode(&mut encoded);
        if state.updating {
            state.later.push(encoded);
        } else {
            let _ = state.ask_batch(1, &encoded);
        }
    }

    /// Asks for a range, and for its block until the range is back. From here on other things are said later.
    pub(super) fn begin_update(&self, addr: GlobalAddr, len: usize) -> Result<Vec<u8>, Error> {
        let mut state = self.state();
        let given = state.ask(1, |out| message::put_update(out, addr, len))?;
        match given.into_iter().next() {
            Some(Answer::Bytes(bytes)) if bytes.len() == len => {
                state.updating = true;
                Ok(bytes)
            }
            Some(Answer::Failed(error)) => Err(error),
            _ => Err(state.cut()),
        }
    }

    /// Gives the range back.
    pub(super) fn end_update(&self, bytes: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        state.updating = false;
        let answer = state.ask(1, |out| message::put_changed(out, bytes));
        for told in std::mem::take(&mut state.later) {
            let _ = state.ask_batch(1, &told);
        }
        match answer?.into_iter().next() {
            Some(Answer::Done) => Ok(()),
            Some(Answer::Failed(error)) => Err(error),
            _ => Err(state.cut()),
        }
    }

    /// Nothing is said any more.
    pub(super) fn cut(&self) -> Error {
        self.state().cut()
    }
}

impl ClientState {
    fn ask_batch(&mut self, operations: usize, encoded: &[u8]) -> Result<Vec<Answer>, Error> {
        debug_assert!(operations <= MOST_OPERATIONS, "{operations} operations");
        self.ask(operations, |out| {
            message::begin_batch(out, operations);
            out.extend(encoded);
        })
    }

    /// Sends a request, and returns its answers, as many as there must be.
    fn ask(&mut self, answers: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<Answer>, Error> {
        if self.cut {
            return Err(Error::Detached);
        }
        let asked = (|| {
            self.line.send(None, fill)?;
            let answers = self.line.receive(None)?;
            decode_answers(answers).map_err(|_| Cut::Malformed)
        })();
        match asked {
            Ok(came) if came.len() == answers => Ok(came),
            _ => Err(self.cut()),
        }
    }

    fn cut(&mut self) -> Error {
        self.cut = true;
        self.line.cut();
        Error::Detached
    }
}
