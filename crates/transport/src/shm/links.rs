//! The two ends of what connects this peer with the others: links, through which it sends, and incoming rings.
//!
//! Threads that send and receive use them; the acceptor puts them here and takes them away. What must always hold:
//! nobody waits here for a peer, and a ring that was closed hands over nothing more.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rustix::net::{Shutdown, shutdown};

use super::ring::{Consumer, Producer};
use super::waker::Waker;
use crate::PeerId;

/// The way to another peer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) producer: Producer,
    pub(super) waker: Arc<Waker>,
    pub(super) connection: Arc<OwnedFd>,
}

/// The links to all peers, a lock each.
#[derive(Debug)]
pub(super) struct Links([Mutex<Option<Link>>; PeerId::COUNT]);

impl Links {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(None)))
    }

    /// A thread that panicked while it held the lock has at worst left a record that was never published.
    pub(super) fn to(&self, peer: PeerId) -> MutexGuard<'_, Option<Link>> {
        self.0[peer.index()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the link away if it is the one of this connection.
    pub(super) fn remove(&self, peer: PeerId, connection: &Arc<OwnedFd>) {
        let mut link = self.to(peer);
        if link.as_ref().is_some_and(|link| Arc::ptr_eq(&link.connection, connection)) {
            *link = None;
        }
    }
}

/// Ends a connection, so that both doormen hear of it.
pub(super) fn hang_up(connection: impl AsFd) {
    // If it has ended already, that is what was wanted.
    let _ = shutdown(connection, Shutdown::Both);
}

/// A ring that another peer fills.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) from: PeerId,
    pub(super) consumer: Consumer,
    pub(super) connection: Arc<OwnedFd>,
    /// Nothing more is to be taken from it: its producer broke the rules, or has a new ring.
    closed: AtomicBool,
    /// Its producer is gone: what it has left is taken, and then it is over.
    ended: AtomicBool,
}

impl Incoming {
    pub(super) const fn new(from: PeerId, consumer: Consumer, connection: Arc<OwnedFd>) -> Self {
        Self { from, consumer, connection, closed: AtomicBool::new(false), ended: AtomicBool::new(false) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Release);
    }

    /// True if nothing will come from it any more.
    pub(super) fn is_over(&self) -> bool {
        // What a process has published before it died is seen by whoever sees that it is gone.
        self.is_closed() || self.ended.load(Acquire) && !self.consumer.has_something()
    }

    fn has_something(&self) -> bool {
        !self.is_closed() && self.consumer.has_something()
    }
}

/// All incoming rings.
#[derive(Debug)]
pub(super) struct Arrivals {
    rings: RwLock<Vec<Arc<Incoming>>>,
    /// Goes up whenever `rings` changes, so that the receiver need not lock it to know.
    changes: AtomicU64,
}

impl Arrivals {
    pub(super) const fn new() -> Self {
        Self { rings: RwLock::new(Vec::new()), changes: AtomicU64::new(0) }
    }

    /// A new ring, in the place of the one that its producer had in a former incarnation. That one is closed before this one
    /// is here.
    pub(super) fn add(&self, new: Arc<Incoming>) {
        self.change(|rings| {
            for old in rings.iter().filter(|old| old.from == new.from) {
                old.closed.store(true, Release);
            }
            rings.retain(|old| old.from != new.from);
            rings.push(new);
        });
    }

    /// This ring is not used any more.
    pub(super) fn close(&self, ring: &Arc<Incoming>) {
        ring.closed.store(true, Release);
        self.change(|rings| rings.retain(|one| !Arc::ptr_eq(one, ring)));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Incoming>>)) {
        let mut rings = self.rings.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut rings);
        self.changes.fetch_add(1, AcqRel);
    }

    /// Brings a receiver's own list up to date. `seen` is the state of its last look.
    pub(super) fn refresh(&self, seen: &mut u64, list: &mut Vec<Arc<Incoming>>) {
        if self.changes.load(Acquire) == *seen {
            return;
        }
        let rings = self.rings.read().unwrap_or_else(PoisonError::into_inner);
        *seen = self.changes.load(Relaxed);
        list.clone_from(&rings);
    }

    /// True if there is something in any ring.
    pub(super) fn have_something(&self) -> bool {
        let rings = self.rings.read().unwrap_or_else(PoisonError::into_inner);
        rings.iter().any(|ring| ring.has_something())
    }
}
