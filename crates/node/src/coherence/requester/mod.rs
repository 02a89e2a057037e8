//! The requesters of a node: they turn misses, evictions, block locks and purges into coherence events, and
//! drive each event to its end (Concordia, section 5.1.1, "requester-driven coherence control").
//!
//! A requester is a slot from a bounded pool. It works on one operation of one application thread, and has at
//! most one event open and, beside it, one unlock of the event before unacknowledged.
//!
//! | file | what happens |
//! | --- | --- |
//! | `access.rs` | a thread needs a block: find what is missing, make room, ask |
//! | `lock.rs` | a thread takes or releases a block's application lock |
//! | `event.rs` | an event is begun, closed, unlocked |
//! | `on_ack.rs` | answers arrive: grants, refusals, data |
//! | `on_closing.rs` | write-backs and closes are acknowledged, unlocks are |
//! | `on_deadline.rs` | a backoff is over, or something was lost |
//! | `leaving.rs` | what only this node has is sent home before the node leaves the rack |
//! | `wait_queue.rs` | with `queue`: the lock comes from the requester before, and goes to the one behind |
//! | `on_new_epoch.rs` | the switch or a node was restarted: everything is started again |
//! | `peek.rs` | with `peeks`: words are read where the block is |
//! | `inspect.rs` | what a checker sees |
//! | `next_state.rs` | Figure 6: the metadata that an unlock installs |
//!
//! What must always hold: every event that was requested is unlocked exactly once, after its last answer; a
//! slot never begins event n+2 before the unlock of n is acknowledged; no two slots fetch the same block; a
//! thread that was promised a frame gets it pinned.

mod access;
pub(crate) mod canonical;
mod event;
pub(crate) mod inspect;
pub(crate) mod leaving;
mod lock;
pub(crate) mod next_state;
mod on_ack;
mod on_closing;
mod on_deadline;
mod on_new_epoch;
pub(crate) mod peek;
mod wait_queue;

use alloc::boxed::Box;
use alloc::vec::Vec;

use sorted::Set;
use wire::{
    BlockTag, Copyset, GlobalStatus, Nanos, NodeId, Packet, PacketKind, RequesterId, Rule, Rules, Seq, SlotId,
};

use crate::coherence::allocation::Call;
use crate::coherence::round_trip::RoundTrip;
use crate::store::{Access, FrameId};

/// The pool.
pub(crate) struct Requesters {
    node: NodeId,
    slots: Box<[Slot]>,
    /// Bit `i`: slot `i` has work or an open event.
    busy: u64,
    /// Of the slots behind those of all nodes, those that hold no block lock.
    free_for_locks: Set<u16>,
    /// The last event of every requester and parity that a requester here has handed a lock to.
    followed: Box<[Seq]>,
    /// Measured on events that were answered without being repeated.
    pub(crate) round_trip: RoundTrip,
    /// Whether copies are read again.
    reuse: peek::Reuse,
    /// Blocks that this node has given away, and that cannot be read any more (`leaving.rs`).
    unreadable: Vec<BlockTag>,
    /// No slot wants to be called before this.
    next_deadline: Nanos,
}

/// One requester.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Slot {
    /// What it is doing, and for whom.
    pub(crate) work: Work,
    /// What it waits for besides answers.
    pub(crate) wait: Wait,
    /// The open event.
    event: Option<Event>,
    /// The last event's number.
    seq: Seq,
    /// Unlocks that are not acknowledged, by parity.
    unlocks: [Option<Unlocking>; 2],
}

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Work {
    /// None: the thread is served. An event may still be closing.
    None,
    /// Get a block into the cache.
    Fetch(Fetch),
    /// Take a block's application lock.
    Lock {
        entry: BlockTag,
        write: bool,
        /// Give up at the first refusal.
        once: bool,
        refusals: u32,
    },
    /// Invalidate all copies of a freed block.
    Purge { tag: BlockTag, refusals: u32 },
    /// Allocate or free: the slot only lends its number to the call.
    Call(Call),
    /// Wait until what this node has written is in all copies.
    Sync,
}

/// A block on its way into the cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Fetch {
    pub(crate) tag: BlockTag,
    pub(crate) access: Access,
    /// Reserved for it.
    frame: Option<FrameId>,
    /// Being evicted for it.
    victim: Option<FrameId>,
    refusals: u32,
    /// Read where they are, as long as it is not given up.
    peek: Option<peek::Words>,
    /// It is to leave the cache instead.
    leaves: Leaves,
}

/// Whether a block is to leave the cache (`leaving.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Leaves {
    /// No: it is wanted.
    No,
    /// If nobody else has it, because the node leaves the rack.
    IfModified,
    /// In any case.
    Always,
    /// It has left: it is read once more, to know that whoever it was given to has it.
    Returned,
}

/// Why a slot with work has no event open.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Wait {
    /// It has one, or no work.
    Nothing,
    /// It was refused, and tries again then.
    Backoff(Nanos),
    /// The unlock of the event before the last one is not acknowledged.
    UnlockAck,
}

/// A coherence event: from the request to the unlock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Event {
    request: Packet,
    sent: Nanos,
    /// When the request, or what the stage waits for, is sent again.
    deadline: Nanos,
    repeats: u32,
    stage: Stage,
    /// The metadata that the answers name, and who keeps the entry.
    found: Option<Found>,
    /// Cache agents that have answered.
    answered: Copyset,
    /// The home or the switch has answered.
    answered_alone: bool,
    has_data: bool,
    /// The home has acknowledged a write-back of this event while answers were still missing.
    early_write_back: bool,
    /// The lock came from the requester before in the queue.
    handed: bool,
    /// That one says that its unlock is recorded.
    settled: bool,
    /// The request that stands behind this event in the queue.
    follower: Option<Packet>,
}

/// What an event found under its lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Found {
    status: GlobalStatus,
    copyset: Copyset,
    in_switch: bool,
    /// Another copy of the request may be in flight to an agent.
    repeated: bool,
    /// The lock came through, but the event turned out to be refused: it leaves what it found.
    void: bool,
}

/// How far an event has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    /// Waiting for answers.
    Asking,
    /// All answers are there, but a thread is writing in the frame that must go.
    Unpinning(FrameId),
    /// The thread goes on; the unlock waits for these acknowledgements.
    Closing {
        /// The home's, that it has the copy written back.
        write_back: bool,
        /// Of agents that were told to close.
        agents: Copyset,
        /// Of the home agent, that was told to close.
        home: bool,
    },
    /// The application holds the block lock.
    Held,
    /// It does, but the lock's home is gone, and the lock with it.
    Orphaned,
}

/// An unlock in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Unlocking {
    packet: Packet,
    deadline: Nanos,
    /// The metadata that the event leaves, for whoever stands behind it.
    after: (GlobalStatus, Copyset),
    /// It is not sent before the unlock of the one before in the queue is recorded.
    waits: bool,
    position: wait_queue::QueuePosition,
}

impl core::fmt::Debug for Requesters {
    /// The slots that have something to do, or an unlock in flight.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let active = |slot: &Slot| {
            slot.work != Work::None || slot.event.is_some() || slot.unlocks.iter().any(Option::is_some)
        };
        f.debug_map().entries(self.slots.iter().enumerate().filter(|(_, slot)| active(slot))).finish()
    }
}

impl Requesters {
    pub(crate) fn new(config: &crate::coherence::config::NodeConfig) -> Self {
        let (node, nodes) = (config.id, config.nodes);
        let followed = core::iter::repeat_n(Seq::NONE, nodes * SlotId::PER_NODE * 2).collect();
        let more = SlotId::PER_NODE..SlotId::PER_NODE + config.lock_slots;
        let slots = (0..more.end)
            .map(|_| Slot {
                work: Work::None,
                wait: Wait::Nothing,
                event: None,
                seq: Seq::NONE,
                unlocks: [None, None],
            })
            .collect();
        let reuse = peek::Reuse::new(&config.peeks);
        Self {
            node,
            slots,
            followed,
            busy: 0,
            free_for_locks: more.map(|slot| u16::try_from(slot).expect("few")).collect(),
            round_trip: RoundTrip::default(),
            reuse,
            unreadable: Vec::new(),
            next_deadline: Nanos::MAX,
        }
    }

    pub(crate) fn id(&self, slot: SlotId) -> RequesterId {
        RequesterId { node: self.node, slot }
    }

    pub(crate) fn slot(&self, slot: SlotId) -> &Slot {
        &self.slots[slot.index()]
    }

    /// The moment at which some slot wants to be called.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Nanos {
        self.next_deadline
    }

    /// Asks to be called at `deadline`, or before.
    pub(crate) fn arm(&mut self, deadline: Nanos) {
        self.next_deadline = self.next_deadline.min(deadline);
    }

    /// Takes a free slot for an application thread.
    pub(crate) fn occupy(&mut self, work: Work) -> Option<SlotId> {
        let index = (!self.busy).trailing_zeros() as usize;
        if index >= SlotId::FOR_THREADS {
            return None;
        }
        let slot = SlotId(u16::try_from(index).expect("64 slots"));
        self.occupy_slot(slot, work);
        Some(slot)
    }

    /// Puts work into a slot that has none.
    pub(crate) fn occupy_slot(&mut self, slot: SlotId, work: Work) {
        let it = &mut self.slots[slot.index()];
        assert!(it.work == Work::None && it.event.is_none(), "slot {slot:?} is busy with {:?}", it.work);
        it.work = work;
        if slot.index() < SlotId::PER_NODE {
            self.busy |= 1 << slot.0;
        }
    }

    /// The slot's work has come a step further.
    pub(crate) fn set_work(&mut self, slot: SlotId, work: Work) {
        self.slots[slot.index()].work = work;
    }

    /// The work is done. The slot is free once its event, if any, is closed.
    pub(crate) fn finish_work(&mut self, slot: SlotId) {
        let it = &mut self.slots[slot.index()];
        it.work = Work::None;
        it.wait = Wait::Nothing;
        if it.event.is_none() {
            self.set_free(slot);
        }
    }

    /// The slot has neither work nor an event.
    fn set_free(&mut self, slot: SlotId) {
        if slot.index() < SlotId::PER_NODE {
            self.busy &= !(1 << slot.0);
        } else {
            self.free_for_locks.insert(slot.0);
        }
    }

    /// The slots that are busy, lowest first; not those that are for block locks alone.
    fn busy_slots(&self) -> impl Iterator<Item = SlotId> + use<> {
        let mut rest = self.busy;
        core::iter::from_fn(move || {
            let index = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (index < 64).then_some(SlotId(index as u16))
        })
    }

    /// The slot that fetches this block. Slots that peek do not: they bring nothing that others could use.
    fn fetching(&self, tag: BlockTag) -> Option<SlotId> {
        self.busy_slots().find(|slot| self.slots[slot.index()].work.fetches(tag))
    }

    fn is_victim(&self, frame: FrameId) -> bool {
        self.busy_slots().any(
            |slot| matches!(self.slots[slot.index()].work, Work::Fetch(fetch) if fetch.victim == Some(frame)),
        )
    }

    /// True if every event is closed and every unlock acknowledged; held locks do not count.
    pub(crate) fn is_quiet(&self) -> bool {
        self.slots.iter().all(|slot| {
            slot.work == Work::None
                && slot.event.is_none_or(|event| event.is_held())
                && slot.unlocks.iter().all(Option::is_none)
        })
    }

    pub(crate) fn invariants(&self) {
        for (index, slot) in self.slots.iter().enumerate() {
            let busy = match index {
                0..SlotId::PER_NODE => self.busy >> index & 1 == 1,
                more => !self.free_for_locks.contains(&(more as u16)),
            };
            let idle = slot.work == Work::None && slot.event.is_none();
            assert_eq!(busy, !idle, "slot {index}: {:?} {:?}", slot.work, slot.event);
            if let Some(event) = &slot.event {
                assert_eq!(event.request.seq, slot.seq, "slot {index}: an open event has the last number");
                assert!(
                    slot.unlocks[slot.seq.parity()].is_none(),
                    "slot {index}: event {:?} began before the unlock of the one of its parity was acknowledged",
                    slot.seq
                );
            }
            if let Work::Fetch(fetch) = slot.work
                && fetch.peek.is_none()
            {
                let twice = self.slots[..index].iter().any(|other| other.work.fetches(fetch.tag));
                assert!(!twice, "two slots fetch {:?}", fetch.tag);
            }
        }
    }
}

impl Work {
    fn fetches(&self, tag: BlockTag) -> bool {
        matches!(self, Self::Fetch(fetch) if fetch.tag == tag && fetch.peek.is_none())
    }
}

impl Event {
    /// True while an application holds the lock that this event took.
    fn is_held(&self) -> bool {
        matches!(self.stage, Stage::Held | Stage::Orphaned)
    }

    /// The nodes whose cache agents must answer before the event is granted as a whole, given what was found.
    fn awaited<R: Rules>(&self, rules: R, found: &Found) -> Copyset {
        if !rules.holds(Rule::AllSharersAnswer) {
            return Copyset::EMPTY;
        }
        let me = self.request.requester.node;
        match self.request.kind {
            PacketKind::WriteMiss | PacketKind::Purge => found.copyset,
            PacketKind::WriteShared => found.copyset.without(me),
            // One agent answers, whichever it is; or the home, the switch.
            _ => Copyset::EMPTY,
        }
    }

    /// True if nothing more has to be waited for before the thread may go on.
    fn is_granted<R: Rules>(&self, rules: R) -> bool {
        let Some(found) = &self.found else { return false };
        let awaited = self.awaited(rules, found);
        let data = matches!(self.request.kind, PacketKind::ReadMiss | PacketKind::WriteMiss);
        (!data || self.has_data)
            && awaited.without_all(self.answered).is_empty()
            && (!awaited.is_empty() || self.answered_alone || !self.answered.is_empty())
    }
}
