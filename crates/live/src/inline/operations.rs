//! What application threads ask of their node when a hit will not do, and how they wait for it.

use node::{Access, FrameId, Outcome, Started};
use wire::{BlockTag, Discipline, GlobalAddr, NodeId, Refusal, SlotId};

use super::courier::Courier;
use super::place::Input;
use super::rack::InlineRack;
use crate::waiting::{Patience, Step};

/// What became of a fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetched {
    /// The block is in this frame, pinned for the calling thread.
    Pinned(FrameId),
    /// The block came, but another thread was quicker: try the hit again.
    Retry,
}

impl InlineRack {
    /// Gets a block into the node's cache, with the access asked for.
    ///
    /// # Errors
    /// If the block may not be accessed at all.
    pub fn fetch(
        &self,
        node: NodeId,
        courier: &mut Courier,
        tag: BlockTag,
        access: Access,
    ) -> Result<Fetched, Refusal> {
        let mut patience = Patience::default();
        loop {
            let now = self.now();
            self.run_due(node, courier, now);
            let bell = courier.bell_of_this_thread();
            let started = self.visit(node, courier, now, |place, at, store, out| {
                let started = place.node.on_access(at, tag, access, store, out);
                if let Started::Slot(slot) | Started::Join(slot) = started {
                    place.wait_for(slot, bell);
                }
                started
            });
            match started {
                Started::Pinned(frame) => return Ok(Fetched::Pinned(frame)),
                Started::Retry => return Ok(Fetched::Retry),
                Started::Full => self.pause(node, courier, &mut patience),
                Started::Slot(_) | Started::Join(_) => {
                    return match self.await_outcome(node, courier) {
                        Outcome::Pinned(frame) => Ok(Fetched::Pinned(frame)),
                        Outcome::Failed(why) => Err(why),
                        _ => Ok(Fetched::Retry),
                    };
                }
            }
        }
    }

    /// Takes the application lock of a block; with `once`, gives up at the first refusal. Returns the slot that
    /// the lock occupies.
    ///
    /// # Errors
    /// [`Refusal::Locked`] with `once`; else if the block cannot be locked at all. `None`: this node holds
    /// locks in all its slots.
    pub fn lock(
        &self,
        node: NodeId,
        courier: &mut Courier,
        block: BlockTag,
        write: bool,
        once: bool,
    ) -> Result<SlotId, Option<Refusal>> {
        let now = self.now();
        let bell = courier.bell_of_this_thread();
        let started = self.visit(node, courier, now, |place, at, store, out| {
            let started = place.node.on_lock(at, block, write, once, store, out);
            if let Started::Slot(slot) = started {
                place.wait_for(slot, bell);
            }
            started
        });
        let Started::Slot(slot) = started else { return Err(None) };
        match self.await_outcome(node, courier) {
            Outcome::Locked => Ok(slot),
            Outcome::Failed(why) => Err(Some(why)),
            other => panic!("a lock operation ended with {other:?}"),
        }
    }

    /// Releases a lock taken by [`InlineRack::lock`].
    pub fn unlock(&self, node: NodeId, courier: &mut Courier, slot: SlotId) {
        let now = self.now();
        self.visit(node, courier, now, |place, at, store, out| place.node.on_release(at, slot, store, out));
    }

    /// Allocates. Returns the address, and whether the bytes are zero already.
    ///
    /// # Errors
    /// If the home cannot provide the memory.
    pub fn alloc(
        &self,
        node: NodeId,
        courier: &mut Courier,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) -> Result<(GlobalAddr, bool), Refusal> {
        let outcome = self.call(node, courier, |place, at, store, out| {
            place.node.on_alloc(at, len, home, discipline, store, out)
        });
        match outcome {
            Outcome::Allocated { addr, zeroed } => Ok((addr, zeroed)),
            Outcome::Failed(why) => Err(why),
            other => panic!("an allocation ended with {other:?}"),
        }
    }

    /// Frees.
    ///
    /// # Errors
    /// If no allocation starts there.
    pub fn free(&self, node: NodeId, courier: &mut Courier, addr: GlobalAddr) -> Result<(), Refusal> {
        let outcome =
            self.call(node, courier, |place, at, store, out| place.node.on_free(at, addr, store, out));
        match outcome {
            Outcome::Freed => Ok(()),
            Outcome::Failed(why) => Err(why),
            other => panic!("a free ended with {other:?}"),
        }
    }

    /// Tells a node's agents that a pin they wait for is gone.
    pub fn unpinned(&self, node: NodeId, courier: &mut Courier, frame: FrameId) {
        self.nodes[node.index()].leave(Input::Unpinned(frame));
        courier.to_run.push(node.index());
        self.carry(courier, self.now());
        // Somebody wanted the block, and has it now. Two threads that hand a block to each other, each asking for
        // it back at once, would keep its entry locked for everybody else: whoever has had its turn steps back.
        std::thread::yield_now();
    }

    fn call(
        &self,
        node: NodeId,
        courier: &mut Courier,
        mut start: impl FnMut(
            &mut super::node_place::NodePlace,
            node::Moment,
            &mut crate::memory::StoreOf<'_>,
            &mut Vec<node::Effect>,
        ) -> Started,
    ) -> Outcome {
        let mut patience = Patience::default();
        loop {
            let now = self.now();
            let bell = courier.bell_of_this_thread();
            let started = self.visit(node, courier, now, |place, at, store, out| {
                let started = start(place, at, store, out);
                if let Started::Slot(slot) = started {
                    place.wait_for(slot, bell);
                }
                started
            });
            match started {
                Started::Slot(_) => return self.await_outcome(node, courier),
                _ => self.pause(node, courier, &mut patience),
            }
        }
    }

    /// Waits until the bell rings, running what is due meanwhile.
    fn await_outcome(&self, node: NodeId, courier: &mut Courier) -> Outcome {
        let mut patience = Patience::default();
        loop {
            if let Some(outcome) = courier.bell.heard() {
                return outcome;
            }
            self.pause(node, courier, &mut patience);
        }
    }

    fn pause(&self, node: NodeId, courier: &mut Courier, patience: &mut Patience) {
        let now = self.now();
        self.run_due(node, courier, now);
        match patience.step(now, self.nodes[node.index()].deadline(), &self.crowding) {
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => {
                std::thread::yield_now();
                self.crowding.yielded(now, self.now());
            }
            Step::Sleep(most) => courier.bell.sleeper.sleep(most),
        }
    }
}
