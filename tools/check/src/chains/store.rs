//! A store, as everybody who uses it knows it, and what is asked of other nodes for it.

use chain::{Answer, Appended, Call};
use nic::regions::Shape;
use wire::roce::{Key, Psn};
use wire::{GlobalAddr, Incarnation, NodeId, Refusal};

/// A store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Store {
    /// Which one, for whoever looks from outside: no machine sees it.
    pub(super) number: u64,
    /// What it is called; the home of this address has the metadata server.
    pub(super) root: GlobalAddr,
    /// Which incarnation of that node.
    pub(super) incarnation: Incarnation,
    /// Its memory.
    pub(super) memory: GlobalAddr,
    /// What the NIC there calls it.
    pub(super) key: Key,
    /// Which incarnation of that node.
    pub(super) of: Incarnation,
    /// Units of it.
    pub(super) units: u32,
}

impl Store {
    /// True if this is the same one, as far as machines know: another one may have its address when it has ended.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.root, self.memory, self.key, self.of) == (other.root, other.memory, other.key, other.of)
    }

    /// What is to be allocated.
    pub(super) const fn shape(units: usize) -> Shape {
        Shape::Chain { first: 1, units: units as u32 }
    }
}

/// What is asked, as on live racks.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Ask {
    /// Something about the region that is a store's memory.
    Region(nic::regions::Call),
    /// Be the metadata server of a new store.
    Serve(Store),
    /// What is the store with this address made of?
    Describe(GlobalAddr),
    /// A client's call. The same number again: the same call, whose answer was lost.
    Do { of: Store, thread: u16, number: u32, call: Call },
    /// A client tells what it has appended. Nobody answers.
    Told { of: Store, thread: u16, appends: Vec<Appended> },
    /// Memory: a client's connection begins, or begins anew.
    Connect { thread: u16, to_memory: Psn, to_client: Psn },
    /// Memory: that incarnation of a node is over; execute nothing of it any more.
    Fence { node: NodeId, incarnation: Incarnation },
    /// The store ends.
    End(Store),
}

/// What is answered.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Answered {
    Done,
    Region(Key),
    Store(Store),
    Answer(Answer),
}

/// Why something cannot be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// The connection broke: nobody knows whether it was done.
    Broken,
    Refused(Refusal),
}

impl Failure {
    pub(super) const DOWN: Self = Self::Refused(Refusal::NodeDown);
}

pub(super) type Result<T> = core::result::Result<T, Failure>;
