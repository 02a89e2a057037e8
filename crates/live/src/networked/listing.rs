//! The list of nodes, which may become longer while the rack runs: the switch's thread says who wants to be on it, and
//! another thread, which may wait for a file, says how long it is.
//!
//! What must always hold: the switch's thread never waits here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;

use wire::NodeId;

/// Nobody wants to be listed.
const NOBODY: u16 = u16::MAX;

/// How many nodes are listed, and who wants to be.
#[derive(Clone, Debug, Default)]
pub struct Listing(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    wanted: AtomicU16,
    listed: AtomicUsize,
    /// Who looks at the list.
    reader: Mutex<Option<Thread>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { wanted: AtomicU16::new(NOBODY), listed: AtomicUsize::new(0), reader: Mutex::default() }
    }
}

impl Listing {
    /// This thread is woken when a node wants to be listed.
    pub fn attend(&self) {
        *self.0.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
    }

    /// A node that wants to join and is not listed, and has not been told of before.
    pub fn take(&self) -> Option<NodeId> {
        let node = self.0.wanted.swap(NOBODY, Ordering::Relaxed);
        (node != NOBODY).then_some(NodeId(node))
    }

    /// So many nodes are listed. A list that is no longer than before changes nothing; then this returns false.
    pub fn list(&self, nodes: usize) -> bool {
        self.0.listed.fetch_max(nodes, Ordering::Relaxed) < nodes
    }

    pub(super) fn listed(&self) -> usize {
        self.0.listed.load(Ordering::Relaxed)
    }

    /// A node wants to be listed.
    pub(super) fn ask_for(&self, node: NodeId) {
        self.0.wanted.store(node.0, Ordering::Relaxed);
        // It has it but for a moment, when it begins.
        if let Ok(reader) = self.0.reader.try_lock()
            && let Some(reader) = &*reader
        {
            reader.unpark();
        }
    }
}
