//! The application's side: a rack whose node is a daemon's, and what its handles ask that for.
//!
//! Every handle has a connection of its own, made when it is first used, and a thread of the daemon behind it. A handle that is
//! attached differs from others in what it does when its cache does not have a block: and its cache never has one. What must
//! always hold: all connections of a rack are to one process of the daemon. Another one has none of the locks that this
//! one held.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use live::memory::regions::Region;
use live::networked::Draining;
use live::networked::lease::Lease;
use live::networked::verbs::Far;
use sorted::Map;
use wire::{Nanos, NodeId};

use super::answer::Answer;
use super::conversation::Conversation;
use super::error::AttachError;
use super::mapped::Mapped;
use super::message::Welcome;
use super::operation::Operation;
use super::{MOST_ATTACHED, socket_of};
use crate::config::Config;
use crate::drain::DrainOrder;
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::rack::Rack;
use crate::rack_file::{RackFile, TransportKind};

/// The daemon that an application uses, for all its handles.
pub(crate) struct Attached {
    socket: PathBuf,
    welcome: Welcome,
    started: Instant,
    /// The connection by which the daemon was found, for the first handle that needs one, and for whoever asks about the node.
    first: Mutex<Option<Conversation>>,
    /// The locks that threads have, by the numbers of their copies: through which connection, and what the daemon calls them.
    held: Mutex<Map<u32, Held>>,
    /// Words and objects that are used where they are. None: all are asked for.
    mapped: Option<Mapped>,
}

/// A lock that the daemon holds.
pub(super) struct Held {
    pub(super) conversation: Arc<Conversation>,
    pub(super) lock: u32,
    /// With a thread inside to write, as the daemon has found.
    pub(super) died: Option<NodeId>,
}

/// What a handle of such a rack has beside what every handle has.
pub(crate) struct Asking {
    attached: Arc<Attached>,
    conversation: OnceLock<Arc<Conversation>>,
    /// What an update works on.
    pub(super) words: Vec<AtomicU64>,
}

impl Rack {
    /// Attaches to a node whose daemon (`rackmem node`) runs on this machine, as the same user. The application has no node,
    /// cache or memory of its own; it uses the daemon's, through a socket. All that a handle can do of a process that has
    /// joined, it can do here; each operation takes a round trip to the daemon. Words and objects of nodes on this machine, of a
    /// rack over shared memory without strict leases, are mapped, and used where they are.
    ///
    /// ```no_run
    /// use rackmem::{Discipline, Locked, NodeId, Rack, RackFile};
    ///
    /// let rack = Rack::attach(&RackFile::read("rack.toml")?, NodeId(0))?;
    /// let mut here = rack.here();
    /// let counter = here.alloc(8, NodeId(0), Discipline::Coherent)?;
    /// here.update(counter, 8, |window| window.set_word(0, window.word(0) + 1))?;
    /// let quota = Locked::new(&mut here, NodeId(0), 10_u64)?;
    /// *quota.write(&mut here).expect("nobody panics") -= 1;
    /// let of_another_thread = here.clone();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such daemon, it is another user's or another rack's, or it serves as many as it can.
    pub fn attach(file: &RackFile, node: NodeId) -> Result<Self, AttachError> {
        // With a strict lease every access asks the node whose lease it is.
        let may_map = file.transport() == TransportKind::SharedMemory && !file.strict;
        let mapped = may_map.then(|| Mapped::new(file.runtime.clone(), file.timeout));
        Self::attach_with(file, node, mapped)
    }

    /// The same, and nothing is mapped: every operation asks the daemon, words and objects, too.
    ///
    /// # Errors
    /// As for [`Rack::attach`].
    pub fn attach_by_socket(file: &RackFile, node: NodeId) -> Result<Self, AttachError> {
        Self::attach_with(file, node, None)
    }

    fn attach_with(file: &RackFile, node: NodeId, mapped: Option<Mapped>) -> Result<Self, AttachError> {
        let nodes = file.config.nodes;
        if node.index() >= nodes {
            return Err(AttachError::NoSuchNode { node, nodes });
        }
        let socket = socket_of(file, node);
        let (first, welcome) = Conversation::open(&socket, node, &file.terms())?;
        let Welcome { nodes, block, memory, .. } = welcome;
        let config = Config { nodes, block_size: block, memory, ..file.config.clone() };
        let attached = Attached {
            socket,
            welcome,
            started: Instant::now(),
            first: Mutex::new(Some(first)),
            held: Mutex::default(),
            mapped,
        };
        Ok(Self::of_attached(attached, config))
    }
}

impl Attached {
    /// The epoch of the rack when the application attached: that of now, or an earlier one.
    pub(crate) const fn epoch(&self) -> u32 {
        self.welcome.epoch
    }

    pub(crate) const fn node(&self) -> NodeId {
        self.welcome.node
    }

    /// Time since it was attached to.
    pub(crate) fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// True if the daemon is gone: nobody answers there, or another process of it does.
    pub(crate) fn is_detached(&self) -> bool {
        matches!(self.connect(), Err(Error::Detached))
    }

    /// Has the daemon's node drain, or stay, and asks how far it has come: all of that through one connection, as the daemon does not end
    /// before whoever asks has heard of it.
    pub(crate) fn ask_to_drain(&self, order: DrainOrder) -> Result<Draining, Error> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let conversation = first.take().map_or_else(|| self.connect(), Ok)?;
        let answer = conversation.ask_one(&Operation::Drain(order));
        match answer? {
            Answer::Draining(state) => {
                *first = Some(conversation);
                Ok(state)
            }
            _ => Err(conversation.cut()),
        }
    }

    /// What every access to mapped memory looks at.
    pub(crate) fn lease(&self) -> Arc<Lease> {
        self.mapped.as_ref().map_or_else(Arc::default, |mapped| Arc::clone(mapped.lease()))
    }

    /// Waits while the daemon is silent.
    pub(crate) fn await_daemon(&self) -> Result<(), Error> {
        self.mapped.as_ref().map_or(Ok(()), Mapped::await_daemon)
    }

    /// A region that the daemon has within reach, if this process has it so, too.
    pub(super) fn map(&self, far: &Far) -> Option<Arc<Region>> {
        self.mapped.as_ref()?.map(far, || self.connect().map(Conversation::into_line))
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Map<u32, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for one more handle.
    fn connect(&self) -> Result<Conversation, Error> {
        let Welcome { node, terms, session, .. } = &self.welcome;
        match Conversation::open(&self.socket, *node, terms) {
            Ok((conversation, welcome)) if welcome.session == *session => Ok(conversation),
            Err(AttachError::Full { .. }) => Err(Error::TooManyAttached { most: MOST_ATTACHED }),
            _ => Err(Error::Detached),
        }
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached")
            .field("node", &self.node())
            .field("socket", &self.socket)
            .field("held", &self.held().len())
            .finish_non_exhaustive()
    }
}

impl Asking {
    pub(crate) fn new(attached: &Arc<Attached>) -> Box<Self> {
        let (attached, conversation) = (Arc::clone(attached), OnceLock::new());
        Box::new(Self { attached, conversation, words: Vec::new() })
    }

    pub(crate) fn attached(&self) -> &Attached {
        &self.attached
    }

    pub(super) fn conversation(&self) -> Result<&Arc<Conversation>, Error> {
        if let Some(conversation) = self.conversation.get() {
            return Ok(conversation);
        }
        let first = self.attached.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let made = first.map_or_else(|| self.attached.connect(), Ok)?;
        Ok(self.conversation.get_or_init(|| Arc::new(made)))
    }
}

impl NodeHandle {
    /// True if a daemon does what this handle is asked for.
    #[inline]
    pub(crate) const fn is_attached(&self) -> bool {
        self.asking.is_some()
    }

    /// Of a handle that is attached.
    pub(super) fn asking(&self) -> &Asking {
        self.asking.as_ref().expect("whoever comes here has seen that it is attached")
    }

    pub(super) fn conversation(&self) -> Result<&Arc<Conversation>, Error> {
        self.asking().conversation()
    }

    /// Asks for one operation, whose answer `take` knows.
    pub(super) fn ask<R>(
        &self,
        operation: &Operation<'_>,
        take: impl FnOnce(Answer) -> Option<R>,
    ) -> Result<R, Error> {
        let conversation = self.conversation()?;
        take(conversation.ask_one(operation)?).ok_or_else(|| conversation.cut())
    }
}
