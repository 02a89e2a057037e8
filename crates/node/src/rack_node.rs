//! A node with all its machines: coherence with the allocator ([`Node`]), and locks ([`LockNode`]).
//!
//! Runs on every server of a rack. A driver holds the machines, with a store for each; whatever one of them must know of
//! the other passes here. What must always hold:
//! - A region is locked only while all its blocks are live, and of that discipline: the node's table of live blocks says so.
//! - When blocks of its memory end, the locks in them end, too: nothing of them is written there any more.
//! - All machines of a node are in the same epoch. In a new one, homes know what is free before they judge what is lost.

use alloc::vec::Vec;

use switch::coherence::Dump;
use wire::{AllRules, GlobalAddr, Mode, Nanos, Refusal, Rules};

use crate::coherence::message::{Effect, Message};
use crate::coherence::node::Node;
use crate::coherence::recovery::View;
use crate::locks::store::{Full, LockStore, Users};
use crate::locks::{LockEffect, LockMessage, LockNode};
use crate::store::{DataRef, Moment, Store};

/// The machines of a node, for one call.
pub struct RackNode<'a, R: Rules = AllRules> {
    /// Coherence, and the allocator.
    pub node: &'a mut Node<R>,
    /// The locks that carry their data.
    pub locks: &'a mut LockNode<R>,
}

impl<R: Rules> RackNode<'_, R> {
    /// A packet about blocks or allocations has arrived.
    pub fn on_packet<S: Store>(
        &mut self,
        at: Moment,
        message: &Message,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) {
        self.node.on_packet(at, message, store, out);
        for range in self.node.ended() {
            self.locks.on_blocks_ended(range.first.addr(), range.bytes(self.node.config().block));
        }
        for home in self.locks.awaited_frees().iter() {
            if !self.node.takes_back_at(home) {
                self.locks.on_frees_done(at.now, home);
            }
        }
    }

    /// A packet about a lock has arrived.
    pub fn on_lock_packet<S: LockStore>(
        &mut self,
        at: Moment,
        message: &LockMessage,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        self.locks.on_packet(at, message, &mut Allocated { node: self.node, store }, out);
    }

    /// A new epoch begins: see [`Node::on_new_epoch`] and [`LockNode::on_new_epoch`].
    ///
    /// # Panics
    /// As they do.
    pub fn on_new_epoch<S: Store, T: LockStore>(
        &mut self,
        at: Moment,
        (view, dump): (&View, Option<&Dump>),
        (store, out): (&mut S, &mut Vec<Effect>),
        (locks, lock_out): (&mut T, &mut Vec<LockEffect>),
    ) {
        let is_new = view.epoch > self.node.config().switch_epoch;
        self.node.on_new_epoch(at, view, dump, store, out);
        if is_new {
            self.locks
                .await_frees(view.live().iter().filter(|home| self.node.takes_back_at(*home)).collect());
        }
        self.locks.on_new_epoch(at, view, locks, lock_out);
    }

    /// Does what is due.
    pub fn on_deadline<S: Store, T: LockStore>(
        &mut self,
        at: Moment,
        (store, out): (&mut S, &mut Vec<Effect>),
        (locks, lock_out): (&mut T, &mut Vec<LockEffect>),
    ) {
        self.node.on_deadline(at, store, out);
        self.locks.on_deadline(at, locks, lock_out);
    }

    /// The node is about to leave the rack: see [`Node::on_leaving`]. Returns how many blocks and locks have not arrived yet.
    pub fn on_leaving<S: Store, T: LockStore>(
        &mut self,
        at: Moment,
        (store, out): (&mut S, &mut Vec<Effect>),
        (locks, lock_out): (&mut T, &mut Vec<LockEffect>),
    ) -> usize {
        self.node.on_leaving(at, store, out) + self.locks.on_leaving(at, locks, lock_out)
    }

    /// The next moment at which [`RackNode::on_deadline`] has something to do.
    pub fn next_deadline(&self) -> Nanos {
        self.node.next_deadline().min(self.locks.next_deadline())
    }
}

/// A lock store, where the node knows what is allocated.
struct Allocated<'a, R: Rules, S> {
    node: &'a Node<R>,
    store: &'a mut S,
}

impl<R: Rules, S: LockStore> LockStore for Allocated<'_, R, S> {
    fn reserve(&mut self, lock: GlobalAddr, len: u32, must: bool) -> Result<(), Full> {
        self.store.reserve(lock, len, must)
    }

    fn release(&mut self, lock: GlobalAddr) {
        self.store.release(lock);
    }

    fn fill(&mut self, lock: GlobalAddr, data: DataRef) {
        self.store.fill(lock, data);
    }

    fn contents(&self, lock: GlobalAddr) -> DataRef {
        self.store.contents(lock)
    }

    fn open(&mut self, lock: GlobalAddr, mode: Mode) {
        self.store.open(lock, mode);
    }

    fn close(&mut self, lock: GlobalAddr) -> Users {
        self.store.close(lock)
    }

    fn admit(&mut self, lock: GlobalAddr, mode: Mode) {
        self.store.admit(lock, mode);
    }

    fn may_lock(&self, lock: GlobalAddr, len: u32) -> Result<(), Refusal> {
        self.node.may_lock(lock, len)
    }

    fn home_contents(&self, lock: GlobalAddr, len: u32) -> DataRef {
        self.store.home_contents(lock, len)
    }

    fn write_home(&mut self, lock: GlobalAddr, len: u32, data: DataRef) {
        self.store.write_home(lock, len, data);
    }
}
