//! Operations on words beyond the reach of loads and stores, on their way: collected into batches, one for each home.
//!
//! On the application's thread. A batch is open until it is full, or until somebody wants to know how one of its operations ended;
//! then it is one packet to its home, and one back. What must always hold: each operation is in one batch, in the order in which
//! the thread began them; a batch is sent once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use live::networked::NetworkedNode;
use live::networked::one_sided::{Far, Ticket, refused_words};
use live::place::{Courier, Failure};
use nic::atomics::Request;
use wire::roce::batch::Writer;
use wire::{GlobalAddr, NodeId};

use crate::error::Error;

/// Batches that a handle may have under way: behind that whoever begins one waits for the oldest.
const MOST_SENT: usize = 1024;

/// Operations that travel together.
pub(super) struct Batch {
    home: NodeId,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    /// Of each operation: the address of its words, for errors; and whether nobody but `flush` will ask how it ended.
    entries: Vec<(GlobalAddr, bool)>,
}

enum Stage {
    Open(Writer),
    Sent(Arc<Ticket>),
    Over(Result<Box<[u64]>, Failure>),
}

/// One operation's place in its batch.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) batch: Arc<Batch>,
    /// Which operation, and which of those that fetch.
    entry: usize,
    fetch: usize,
}

/// What a handle has under way.
#[derive(Default)]
pub(crate) struct Pipeline {
    open: BTreeMap<NodeId, Arc<Batch>>,
    sent: VecDeque<Arc<Batch>>,
    /// The first error of an operation that nobody else asks for.
    failed: Option<Error>,
}

impl Batch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends it, if that was not done.
    fn send(&self, node: &NetworkedNode, courier: &mut Courier) {
        let mut state = self.state();
        if let Stage::Open(writer) = &state.stage {
            let fetches = writer.answer_bytes() / 8;
            let ticket = node.post_batch(courier, self.home, writer.bytes(), (writer.len(), fetches));
            state.stage = Stage::Sent(ticket);
        }
    }

    /// Waits until it is over.
    fn finish(&self, node: &NetworkedNode, courier: &mut Courier) {
        self.send(node, courier);
        while !self.is_over() {
            let ticket = match &self.state().stage {
                Stage::Sent(ticket) => Arc::clone(ticket),
                _ => continue,
            };
            node.await_batch(courier, &ticket);
            if node.lease().is_fenced() && !ticket.is_over() {
                self.state().stage = Stage::Over(Err(Failure::Fenced));
            }
        }
    }

    /// True if its answer is here.
    fn is_over(&self) -> bool {
        let mut state = self.state();
        if let Stage::Sent(ticket) = &state.stage
            && let Some(answer) = ticket.answer()
        {
            state.stage = Stage::Over(answer);
        }
        matches!(state.stage, Stage::Over(_))
    }

    /// How an operation ended: what its word was, if it fetches.
    fn outcome(&self, entry: usize, fetch: usize) -> Option<Result<u64, Error>> {
        let state = self.state();
        let Stage::Over(answer) = &state.stage else { return None };
        let addr = state.entries[entry].0;
        Some(match answer {
            Ok(words) if is_set(words, entry) => Err(Error::Unallocated { addr }),
            Ok(words) => Ok(words.get(refused_words(state.entries.len()) + fetch).copied().unwrap_or(0)),
            Err(why) => Err(crate::handle::failed(*why, addr, 0)),
        })
    }

    /// The first error of an operation that nobody else asks for.
    fn failure(&self) -> Option<Error> {
        let state = self.state();
        let mut silent = state.entries.iter().enumerate().filter(|(_, (_, silent))| *silent);
        match &state.stage {
            Stage::Over(Ok(words)) => {
                let refused = &words[..refused_words(state.entries.len())];
                if refused.iter().all(|bits| *bits == 0) {
                    return None;
                }
                let (_, (addr, _)) = silent.find(|(entry, _)| is_set(refused, *entry))?;
                Some(Error::Unallocated { addr: *addr })
            }
            Stage::Over(Err(why)) => {
                silent.next().map(|(_, (addr, _))| crate::handle::failed(*why, *addr, 0))
            }
            Stage::Open(_) | Stage::Sent(_) => None,
        }
    }
}

fn is_set(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

impl Place {
    /// What the word was, if that is known by now.
    pub(super) fn poll(&self, node: &NetworkedNode, courier: &mut Courier) -> Option<Result<u64, Error>> {
        self.batch.send(node, courier);
        if !self.batch.is_over() {
            node.look(courier);
        }
        self.batch.is_over().then(|| self.batch.outcome(self.entry, self.fetch)).flatten()
    }

    /// Waits for what the word was.
    pub(super) fn wait(&self, node: &NetworkedNode, courier: &mut Courier) -> Result<u64, Error> {
        self.batch.finish(node, courier);
        self.batch.outcome(self.entry, self.fetch).expect("it is over")
    }
}

impl Pipeline {
    /// Adds an operation; `silent`: it fetches nothing, and nobody will ask how it ended.
    pub(super) fn push(
        &mut self,
        node: &NetworkedNode,
        courier: &mut Courier,
        region: &Far,
        request: &Request,
        silent: bool,
    ) -> Place {
        let home = region.addr.home();
        let entry = request.to_wire(!silent);
        loop {
            let batch =
                self.open.entry(home).or_insert_with(|| Arc::new(Batch::new(home, node.batch_bytes())));
            let mut state = batch.state();
            let State { stage, entries } = &mut *state;
            // Another handle may have sent it: whoever has an operation in it may.
            if let Stage::Open(writer) = stage {
                let fetch = writer.answer_bytes() / 8;
                let answer = (refused_words(entries.len() + 1) + fetch + usize::from(!silent)) * 8;
                if answer <= node.batch_bytes() && writer.push(region.key, &entry).is_ok() {
                    entries.push((region.addr, silent));
                    let entry = entries.len() - 1;
                    drop(state);
                    return Place { batch: Arc::clone(batch), entry, fetch };
                }
            }
            drop(state);
            self.send(node, courier, home);
        }
    }

    /// Sends what is collected for a home.
    pub(super) fn send(&mut self, node: &NetworkedNode, courier: &mut Courier, home: NodeId) {
        let Some(batch) = self.open.remove(&home) else { return };
        batch.send(node, courier);
        self.sent.push_back(batch);
        while let Some(oldest) = self.sent.front() {
            if self.sent.len() > MOST_SENT {
                oldest.finish(node, courier);
            } else if !oldest.is_over() {
                break;
            }
            self.failed = self.failed.or(oldest.failure());
            self.sent.pop_front();
        }
    }

    /// Waits until everything is over, and says what went wrong first that nobody else asks for.
    pub(crate) fn flush(&mut self, node: &NetworkedNode, courier: &mut Courier) -> Result<(), Error> {
        while let Some((&home, _)) = self.open.first_key_value() {
            self.send(node, courier, home);
        }
        while let Some(oldest) = self.sent.pop_front() {
            oldest.finish(node, courier);
            self.failed = self.failed.or(oldest.failure());
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.sent.is_empty() && self.failed.is_none()
    }
}

impl Batch {
    fn new(home: NodeId, most: usize) -> Self {
        let state = State { stage: Stage::Open(Writer::new(most)), entries: Vec::new() };
        Self { home, state: Mutex::new(state) }
    }
}
