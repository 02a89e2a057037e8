//! The application's side: a handle that asks the daemon.
//!
//! What must always hold: once the connection is cut, every operation fails with [`Error::Detached`]; and no answer is taken
//! for that of another question: a conversation in which something did not go as it must is cut.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use live::waiting::Oversubscription;
use node::Window;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use transport::{Reason, Terms, WIRE_VERSION};
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId};

use super::error::AttachError;
use super::line::{Cut, Line};
use super::message::{self, Answer, MOST_BYTES, Operation, Welcome, put_hello};
use super::socket_of;
use crate::addresses::{aligned, in_range, inside_block};
use crate::error::Error;
use crate::memory::memory_of;
use crate::rack::Rack;
use crate::rack_file::RackFile;

/// How long a daemon may take to greet.
const MOST_GREETING: Duration = Duration::from_secs(5);

/// One thread's handle on the rack's memory, through the daemon of a node on this machine.
///
/// What is atomic is what [`NodeHandle`](crate::NodeHandle) says; it costs a round trip to the daemon, hit or not.
pub struct AttachedHandle {
    conversation: Arc<Conversation>,
    socket: PathBuf,
    welcome: Welcome,
    started: Instant,
    /// What an update works on.
    words: Vec<AtomicU64>,
}

/// A connection, and the locks that are held through it.
pub(super) struct Conversation {
    state: Mutex<ClientState>,
}

struct ClientState {
    line: Line,
    /// Something did not go as it must: nothing is said any more.
    cut: bool,
    /// An update is in flight, and what would be said now comes after it.
    updating: bool,
    unlock_later: Vec<u32>,
}

impl Rack {
    /// Attaches to a node whose daemon (`rackmem node`) runs on this machine, as the same user. The application has no node,
    /// cache or memory of its own; it uses the daemon's, through a socket.
    ///
    /// ```no_run
    /// use rackmem::{Discipline, NodeId, Rack, RackFile};
    ///
    /// let mut here = Rack::attach(&RackFile::read("rack.toml")?, NodeId(0))?;
    /// let counter = here.alloc(8, NodeId(0), Discipline::Coherent)?;
    /// here.update(counter, 8, |window| window.set_word(0, window.word(0) + 1))?;
    /// let of_another_thread = here.another()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such daemon, it is another user's or another rack's, or it serves as many as it can.
    pub fn attach(file: &RackFile, node: NodeId) -> Result<AttachedHandle, AttachError> {
        let nodes = file.config.nodes;
        if node.index() >= nodes {
            return Err(AttachError::NoSuchNode { node, nodes });
        }
        AttachedHandle::at(&socket_of(file, node), node, &file.terms())
    }
}

impl AttachedHandle {
    fn at(socket: &Path, node: NodeId, terms: &Terms) -> Result<Self, AttachError> {
        let failed = |source| AttachError::NoDaemon { node, socket: socket.to_path_buf(), source };
        let stream = UnixStream::connect(socket).map_err(failed)?;
        if !socket_peercred(&stream).is_ok_and(|peer| peer.uid == geteuid()) {
            return Err(AttachError::OtherUser { socket: socket.to_path_buf() });
        }
        let mut line = Line::new(stream, Arc::<Oversubscription>::default()).map_err(failed)?;
        // Both greet before they hear the other one, so that each knows why it is refused.
        line.send(Some(MOST_GREETING), |out| put_hello(out, terms))
            .map_err(|_| AttachError::Refused { node })?;
        let greeting = line.receive(Some(MOST_GREETING)).map_err(|_| AttachError::Refused { node })?;
        let (welcome, reason) = match Welcome::decode(greeting) {
            Ok(Ok(welcome)) => {
                let differences = terms.compare(&welcome.terms);
                let reason = (!differences.is_empty()).then_some(Reason::Settings(differences));
                let other = (welcome.node != node).then_some(Reason::Malformed);
                (Some(welcome), reason.or(other))
            }
            Ok(Err(theirs)) => (None, Some(Reason::Version { ours: WIRE_VERSION, theirs })),
            Err(_) => (None, Some(Reason::Malformed)),
        };
        let welcome = match (welcome, reason) {
            (Some(welcome), None) => welcome,
            (_, reason) => {
                let reason = reason.unwrap_or(Reason::Malformed);
                return Err(AttachError::Disagrees { node, reason });
            }
        };
        let state = ClientState { line, cut: false, updating: false, unlock_later: Vec::new() };
        Ok(Self {
            conversation: Arc::new(Conversation { state: Mutex::new(state) }),
            socket: socket.to_path_buf(),
            welcome,
            started: Instant::now(),
            words: Vec::new(),
        })
    }

    /// Another one, for another thread.
    ///
    /// # Errors
    /// As [`Rack::attach`].
    pub fn another(&self) -> Result<Self, AttachError> {
        Self::at(&self.socket, self.welcome.node, &self.welcome.terms)
    }

    /// The node that this handle is on.
    pub fn id(&self) -> NodeId {
        self.welcome.node
    }

    /// How many nodes the rack has.
    pub fn nodes(&self) -> usize {
        self.welcome.nodes
    }

    /// The rack's unit of coherence and of atomicity.
    pub fn block_size(&self) -> BlockSize {
        self.welcome.block
    }

    /// Reads an aligned word.
    ///
    /// # Errors
    /// Those of [`NodeHandle::read_word`](crate::NodeHandle::read_word), and [`Error::Detached`], as everything here.
    pub fn read_word(&mut self, addr: GlobalAddr) -> Result<u64, Error> {
        aligned(addr)?;
        let bytes = self.bytes(addr, 8)?;
        Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| Error::Detached)?))
    }

    /// Writes an aligned word.
    ///
    /// # Errors
    /// As for [`AttachedHandle::read_word`].
    pub fn write_word(&mut self, addr: GlobalAddr, value: u64) -> Result<(), Error> {
        aligned(addr)?;
        self.done(&Operation::Write { addr, bytes: &value.to_ne_bytes() })
    }

    /// Reads bytes, block by block.
    ///
    /// # Errors
    /// Those of [`NodeHandle::read`](crate::NodeHandle::read).
    pub fn read(&mut self, addr: GlobalAddr, into: &mut [u8]) -> Result<(), Error> {
        in_range(addr, into.len() as u64, self.welcome.nodes, self.welcome.memory)?;
        let mut at = addr;
        let mut rest = into;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at_mut(self.left_in_message(at).min(rest.len()));
            piece.copy_from_slice(&self.bytes(at, piece.len())?);
            at = GlobalAddr::from_bits(at.bits() + piece.len() as u64);
            rest = behind;
        }
        Ok(())
    }

    /// Writes bytes, block by block.
    ///
    /// # Errors
    /// Those of [`NodeHandle::write`](crate::NodeHandle::write).
    pub fn write(&mut self, addr: GlobalAddr, bytes: &[u8]) -> Result<(), Error> {
        in_range(addr, bytes.len() as u64, self.welcome.nodes, self.welcome.memory)?;
        let mut at = addr;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(self.left_in_message(at).min(rest.len()));
            self.done(&Operation::Write { addr: at, bytes: piece })?;
            at = GlobalAddr::from_bits(at.bits() + piece.len() as u64);
            rest = behind;
        }
        Ok(())
    }

    /// Looks at `len` bytes inside one block, as they were at one moment.
    ///
    /// # Errors
    /// Those of [`NodeHandle::inspect`](crate::NodeHandle::inspect).
    pub fn inspect<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        inside_block(addr, len, self.welcome.block)?;
        let bytes = self.bytes(addr, len)?;
        Ok(look(&self.window(addr, &bytes)))
    }

    /// Changes `len` bytes inside one block, atomically with everything else that happens to the block anywhere in the rack.
    /// It takes two round trips, between which the daemon keeps the block for this thread; for half of the rack's timeout at
    /// most, or the connection is cut. The closure runs once. Its changes are all there when this returns `Ok`, and none of
    /// them if the application dies meanwhile. With [`Error::Detached`] they may be there or not.
    ///
    /// # Errors
    /// Those of [`NodeHandle::update`](crate::NodeHandle::update).
    pub fn update<R>(
        &mut self,
        addr: GlobalAddr,
        len: usize,
        change: impl FnOnce(&Window<'_>) -> R,
    ) -> Result<R, Error> {
        inside_block(addr, len, self.welcome.block)?;
        let conversation = self.conversation();
        let mut bytes = conversation.state().begin_update(addr, len)?;
        // If the closure panics, the daemon must not wait for what it would have written.
        let in_flight = InFlight(&conversation);
        let window = self.window(addr, &bytes);
        let changed = change(&window);
        window.read(0, &mut bytes);
        std::mem::forget(in_flight);
        let mut state = conversation.state();
        state.updating = false;
        let answer = state.ask(1, |out| message::put_changed(out, &bytes));
        let later = std::mem::take(&mut state.unlock_later);
        let unlocked = state.unlock(&later);
        match answer?.into_iter().next() {
            Some(Answer::Done) => unlocked.map(|()| changed),
            Some(Answer::Failed(error)) => Err(error),
            _ => Err(state.cut()),
        }
    }

    /// Allocates `len` bytes of zeroes in the memory of `home`. They stay when this application has ended.
    ///
    /// # Errors
    /// Those of [`NodeHandle::alloc`](crate::NodeHandle::alloc).
    pub fn alloc(&mut self, len: u64, home: NodeId, discipline: Discipline) -> Result<GlobalAddr, Error> {
        match self.ask_one(&Operation::Alloc { len, home, discipline })? {
            Answer::Allocated(addr) => Ok(addr),
            _ => Err(self.conversation.state().cut()),
        }
    }

    /// Gives an allocation back.
    ///
    /// # Errors
    /// Those of [`NodeHandle::free`](crate::NodeHandle::free).
    pub fn free(&mut self, addr: GlobalAddr) -> Result<(), Error> {
        self.done(&Operation::Free { addr })
    }

    pub(super) fn conversation(&self) -> Arc<Conversation> {
        Arc::clone(&self.conversation)
    }

    /// Asks for so many operations.
    pub(super) fn ask(&self, operations: usize, encoded: &[u8]) -> Result<Vec<Answer>, Error> {
        self.conversation.state().ask(operations, |out| {
            message::begin_batch(out, operations);
            out.extend(encoded);
        })
    }

    /// Asks for one operation.
    pub(super) fn ask_one(&self, operation: &Operation<'_>) -> Result<Answer, Error> {
        let answers = self.conversation.state().ask(1, |out| {
            message::begin_batch(out, 1);
            operation.encode(out);
        })?;
        match answers.into_iter().next() {
            Some(Answer::Failed(error)) => Err(error),
            Some(answer) => Ok(answer),
            None => Err(Error::Detached),
        }
    }

    fn done(&self, operation: &Operation<'_>) -> Result<(), Error> {
        match self.ask_one(operation)? {
            Answer::Done => Ok(()),
            _ => Err(self.conversation.state().cut()),
        }
    }

    fn bytes(&self, addr: GlobalAddr, len: usize) -> Result<Vec<u8>, Error> {
        match self.ask_one(&Operation::Read { addr, len })? {
            Answer::Bytes(bytes) if bytes.len() == len => Ok(bytes),
            _ => Err(self.conversation.state().cut()),
        }
    }

    /// A copy of bytes of a block, as aligned as they are there.
    fn window(&mut self, addr: GlobalAddr, bytes: &[u8]) -> Window<'_> {
        let start = (addr.bits() % 8) as usize;
        let words = (start + bytes.len()).div_ceil(8);
        if self.words.len() < words {
            self.words.resize_with(words, AtomicU64::default);
        }
        let window = Window::new(&self.words, start, bytes.len());
        window.write(0, bytes);
        window
    }

    /// Bytes from here that one message may carry, without an end in the middle of a block: that would cut in two what is
    /// atomic.
    fn left_in_message(&self, addr: GlobalAddr) -> usize {
        MOST_BYTES - self.welcome.block.offset_in_block(addr)
    }
}

/// An update whose closure runs.
struct InFlight<'a>(&'a Conversation);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.state().cut();
    }
}

impl Conversation {
    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases a lock; after the update that is in flight, if one is.
    pub(super) fn unlock(&self, number: u32) {
        let mut state = self.state();
        if state.updating {
            state.unlock_later.push(number);
        } else {
            // A connection that is cut has released it.
            let _ = state.unlock(&[number]);
        }
    }
}

impl ClientState {
    /// Sends a request, and returns its answers, as many as there must be.
    fn ask(&mut self, answers: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<Answer>, Error> {
        if self.cut {
            return Err(Error::Detached);
        }
        let asked = (|| {
            self.line.send(None, fill)?;
            let answers = self.line.receive(None)?;
            message::decode_answers(answers).map_err(|_| Cut::Malformed)
        })();
        match asked {
            Ok(came) if came.len() == answers => Ok(came),
            _ => Err(self.cut()),
        }
    }

    /// Asks for a range, and for its block until the range is back. From here on locks are released later: nothing else may
    /// be said.
    fn begin_update(&mut self, addr: GlobalAddr, len: usize) -> Result<Vec<u8>, Error> {
        let given = self.ask(1, |out| message::put_update(out, addr, len))?;
        match given.into_iter().next() {
            Some(Answer::Bytes(bytes)) if bytes.len() == len => {
                self.updating = true;
                Ok(bytes)
            }
            Some(Answer::Failed(error)) => Err(error),
            _ => Err(self.cut()),
        }
    }

    fn unlock(&mut self, numbers: &[u32]) -> Result<(), Error> {
        if numbers.is_empty() {
            return Ok(());
        }
        self.ask(numbers.len(), |out| {
            message::begin_batch(out, numbers.len());
            numbers.iter().for_each(|lock| Operation::Unlock { lock: *lock }.encode(out));
        })
        .map(drop)
    }

    fn cut(&mut self) -> Error {
        self.cut = true;
        self.line.cut();
        Error::Detached
    }
}

memory_of!(AttachedHandle, |handle: &AttachedHandle| Nanos(handle.started.elapsed().as_nanos() as u64));
