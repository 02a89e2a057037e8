//! Work requests that are posted or wait to be, and the bytes that they send and get.
//!
//! At the node that asks. The device names the bytes by key, work and offset. What must always hold: a piece of work stays, and
//! with it its bytes, until the device has completed it: packets may have to be sent again.

use std::sync::Arc;

use nic::verbs::{Operation, Remote, Span, WorkId, WorkRequest};
use wire::roce::{Key, QpNumber};
use wire::{Incarnation, NodeId};

use super::ticket::Ticket;

/// What a piece of work does, beside sending what it has to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A call, or a reply to one.
    Send,
    /// A batch of remote atomics with an answer of so many bytes.
    Atomics { answer: u32 },
    /// Reads an object of so many bytes.
    ReadObject { remote: Remote, len: u32 },
    /// Reads bytes as they are.
    Read { remote: Remote, len: u32 },
    /// Writes them.
    Write { remote: Remote },
    /// Swaps a word, if it is what is expected.
    CompareSwap { remote: Remote, compare: u64, swap: u64 },
}

/// A piece of work.
pub(crate) struct Work {
    pub(super) peer: NodeId,
    /// The only incarnation of that node that it is for: it names a key that was told then.
    pub(super) incarnation: Option<Incarnation>,
    pub(super) what: What,
    /// The queue pair of a client of chains, if it is one's.
    pub(super) chain: Option<QpNumber>,
    /// Who wants to know; nobody, of replies and of calls, whose reply is what is waited for.
    pub(super) ticket: Option<Arc<Ticket>>,
    /// What is sent.
    pub(super) source: Box<[u64]>,
    pub(super) source_bytes: usize,
    /// What comes back.
    pub(super) landing: Box<[u64]>,
}

impl Work {
    pub(crate) fn new(
        peer: NodeId,
        what: What,
        ticket: Option<Arc<Ticket>>,
        source: Box<[u64]>,
        source_bytes: usize,
    ) -> Self {
        debug_assert_eq!(source.len(), source_bytes.div_ceil(8));
        let landing = match what {
            What::Send | What::Write { .. } | What::CompareSwap { .. } => 0,
            What::Atomics { answer: len } | What::ReadObject { len, .. } | What::Read { len, .. } => len,
        };
        Self {
            peer,
            incarnation: None,
            what,
            chain: None,
            ticket,
            source,
            source_bytes,
            landing: vec![0; (landing as usize).div_ceil(8)].into(),
        }
    }

    /// A verb on the queue pair of a client of chains.
    pub(crate) fn of_chain(
        peer: NodeId,
        what: What,
        source: Box<[u64]>,
        source_bytes: usize,
        chain: QpNumber,
    ) -> Self {
        Self { chain: Some(chain), ..Self::new(peer, what, None, source, source_bytes) }
    }

    /// Only in this incarnation of the other node.
    pub(super) fn in_incarnation(self, incarnation: Incarnation) -> Self {
        Self { incarnation: Some(incarnation), ..self }
    }

    /// Whose memory it is for.
    pub(crate) const fn home(&self) -> NodeId {
        self.peer
    }

    /// Somebody wants to know how it ends.
    pub(crate) fn for_ticket(self, ticket: &Arc<Ticket>) -> Self {
        Self { ticket: Some(Arc::clone(ticket)), ..self }
    }

    fn request(&self, at: usize, keys: Keys) -> WorkRequest {
        let address = address_of(at, 0);
        let source = Span { key: keys.source, address, len: self.source_bytes as u32 };
        let landing = |len| Span { key: keys.landing, address, len };
        let operation = match self.what {
            What::Send => Operation::Send { local: source, immediate: None },
            What::Atomics { answer } => Operation::Atomics { request: source, answer: landing(answer) },
            What::ReadObject { remote, len } => Operation::ReadObject { local: landing(len), remote },
            What::Read { remote, len } => Operation::Read { local: landing(len), remote },
            What::Write { remote } => Operation::Write { local: source, remote, immediate: None },
            What::CompareSwap { remote, compare, swap } => {
                Operation::CompareSwap { remote, compare, swap, result: None }
            }
        };
        WorkRequest::new(WorkId(at as u64), operation)
    }
}

/// The keys by which the device names the bytes of works.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    /// What is sent.
    pub(super) source: Key,
    /// What comes back.
    pub(super) landing: Key,
}

/// Where the bytes of a piece of work, or of a receive, are: below 2^56.
pub(super) const fn address_of(at: usize, offset: u64) -> u64 {
    (at as u64) << 32 | offset
}

/// The piece of work, or the receive, and the offset that an address stands for.
pub(super) const fn place_of(address: u64) -> (usize, usize) {
    ((address >> 32) as usize, (address & 0xffff_ffff) as usize)
}

/// All that is in flight, by number.
#[derive(Default)]
pub(super) struct Works {
    works: Vec<Option<Work>>,
    free: Vec<usize>,
}

impl Works {
    pub(super) fn add(&mut self, work: Work) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.works[at] = Some(work);
                at
            }
            None => {
                self.works.push(Some(work));
                self.works.len() - 1
            }
        }
    }

    pub(super) fn request(&self, at: usize, keys: Keys) -> WorkRequest {
        self.get(at).expect("it waits to be posted").request(at, keys)
    }

    pub(super) fn get(&self, at: usize) -> Option<&Work> {
        self.works.get(at)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Work> {
        self.works.get_mut(at)?.as_mut()
    }

    pub(super) fn take(&mut self, at: usize) -> Option<Work> {
        let work = self.works.get_mut(at)?.take()?;
        self.free.push(at);
        Some(work)
    }

    /// Everything that is in flight to this node on the connection between the two.
    pub(super) fn drain(&mut self, peer: NodeId) -> Vec<Work> {
        self.drain_if(|work| work.peer == peer && work.chain.is_none())
    }

    /// Everything that is in flight on the queue pair of a client of chains.
    pub(super) fn drain_chain(&mut self, chain: QpNumber) -> Vec<Work> {
        self.drain_if(|work| work.chain == Some(chain))
    }

    fn drain_if(&mut self, is_one: impl Fn(&Work) -> bool) -> Vec<Work> {
        let found: Vec<usize> =
            (0..self.works.len()).filter(|at| self.works[*at].as_ref().is_some_and(&is_one)).collect();
        found.into_iter().filter_map(|at| self.take(at)).collect()
    }
}
