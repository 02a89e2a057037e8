//! A node on the bench: one input at a time, and what came of it.

use check::coherence::PlainStore;
use node::allocator::ChunkSize;
use node::coherence::home::directory::Entry;
use node::{
    Access, Backoff, DataRef, Drop, Effect, FrameId, Message, Moment, Node, NodeConfig, Outcome,
    Retransmission, Started,
};
use wire::{
    BlockTag, Copyset, Discipline, GlobalAddr, GlobalStatus, Nanos, NodeId, Packet, PacketKind, SlotId,
};

use crate::coherence::packets::{
    BLOCK, EPOCH, INCARNATION, ME, NODES, at_home, call, granted, home_of, mine, requester, unlock,
    unlock_ack,
};

/// The shortest time-out.
pub(crate) const FLOOR: Nanos = Nanos::from_micros(60);
/// The longest time-out.
pub(crate) const MOST: Nanos = Nanos::from_millis(10);
/// The bounds of the first and of every backoff.
pub(crate) const BACKOFF: Backoff = Backoff { first: Nanos::from_micros(2), most: Nanos::from_micros(40) };

/// A node with a cache of two frames.
pub(crate) struct Rig {
    pub(crate) node: Node,
    pub(crate) store: PlainStore,
    pub(crate) now: Nanos,
    pub(crate) random: u32,
    /// The last number of the requester that sets entries of the home.
    seq: u64,
}

/// What one call of the node caused.
#[derive(Debug)]
#[must_use]
pub(crate) struct Effects(Vec<Effect>);

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut NodeConfig)) -> Self {
        let mut config = NodeConfig {
            block: BLOCK,
            chunk: ChunkSize::new(4 * BLOCK.bytes()).unwrap(),
            retransmission: Retransmission::AfterRoundTrips { floor: FLOOR, most: MOST },
            backoff: BACKOFF,
            switch_epoch: EPOCH,
            incarnation: INCARNATION,
            ..NodeConfig::new(ME, NODES, 64 * BLOCK.bytes())
        };
        change(&mut config);
        let store = PlainStore::new(BLOCK, 1);
        Self { node: Node::new(config), store, now: Nanos::from_micros(1), random: 12345, seq: 0 }
    }

    /// A node whose home has eight live blocks, `mine(1)` to `mine(8)`, allocated by node 0.
    pub(crate) fn home() -> Self {
        Self::home_with(|_| {})
    }

    pub(crate) fn home_with(change: impl FnOnce(&mut NodeConfig)) -> Self {
        let mut rig = Self::with(change);
        let chunk = call(PacketKind::ChunkRequest, mine(0), 1, 8 * BLOCK.bytes(), Some(Discipline::Coherent));
        assert!(rig.packet(chunk).only().packet.status.is_granted());
        let _ = rig.packet(call(PacketKind::Mark, mine(1), 2, 8 * BLOCK.bytes(), Some(Discipline::Coherent)));
        rig.store.zeroed.clear();
        rig
    }

    // Inputs

    fn input<R>(
        &mut self,
        input: impl FnOnce(&mut Node, Moment, &mut PlainStore, &mut Vec<Effect>) -> R,
    ) -> (R, Effects) {
        let at = Moment { now: self.now, random: self.random };
        let mut out = Vec::new();
        let result = input(&mut self.node, at, &mut self.store, &mut out);
        self.node.invariants(&self.store);
        (result, Effects(out))
    }

    /// A packet arrives, with or without a block.
    pub(crate) fn packet(&mut self, message: impl Into<Message>) -> Effects {
        let message = message.into();
        self.input(|node, at, store, out| node.on_packet(at, &message, store, out)).1
    }

    /// A packet arrives that must be dropped for this cause, and change nothing.
    #[track_caller]
    pub(crate) fn drops(&mut self, why: Drop, message: impl Into<Message>) {
        let (message, before) = (message.into(), self.state());
        let mut expected = self.node.counters().dropped;
        expected[why as usize] += 1;
        let out = self.packet(message);
        assert!(out.0.is_empty(), "{why:?} expected of {message:?}: {out:?}");
        assert_eq!(self.node.counters().dropped, expected, "drops by cause; {why:?} expected of {message:?}");
        assert_eq!(self.state(), before, "what is dropped changes nothing: {message:?}");
    }

    /// All that can be seen of the node from outside.
    fn state(&self) -> String {
        let entries: Vec<_> = self.node.directory().entries(ME).collect();
        format!("{:#?} {:#?} {entries:#?} {:?}", self.node, self.store, self.node.memory_in_use())
    }

    /// So much time passes; then the node is called.
    pub(crate) fn wait(&mut self, span: Nanos) -> Effects {
        self.now += span;
        self.input(|node, at, store, out| node.on_deadline(at, store, out)).1
    }

    pub(crate) fn access(&mut self, tag: BlockTag, access: Access) -> (Started, Effects) {
        self.input(|node, at, store, out| node.on_access(at, tag, access, store, out))
    }

    /// A thread needs a block; the request that this sends.
    #[track_caller]
    pub(crate) fn miss(&mut self, tag: BlockTag, access: Access) -> Packet {
        let (started, out) = self.access(tag, access);
        assert!(matches!(started, Started::Slot(_)), "{started:?}");
        out.only().packet
    }

    /// A thread wants a block's lock; the request that this sends.
    #[track_caller]
    pub(crate) fn lock(&mut self, tag: BlockTag, write: bool, once: bool) -> Packet {
        let (started, out) =
            self.input(|node, at, store, out| node.on_lock(at, tag, write, once, store, out));
        assert!(matches!(started, Started::Slot(_)), "{started:?}");
        out.only().packet
    }

    pub(crate) fn release(&mut self, slot: SlotId) -> Effects {
        self.input(|node, at, store, out| node.on_release(at, slot, store, out)).1
    }

    pub(crate) fn alloc(&mut self, len: u64, home: NodeId) -> Effects {
        let discipline = Discipline::Coherent;
        self.input(|node, at, store, out| node.on_alloc(at, len, home, discipline, store, out)).1
    }

    pub(crate) fn free(&mut self, addr: GlobalAddr) -> Effects {
        self.input(|node, at, store, out| node.on_free(at, (addr, None), store, out)).1
    }

    /// The thread that has the frame pinned is done.
    pub(crate) fn unpin(&mut self, frame: FrameId) -> Effects {
        if !self.store.unpin(frame) {
            return Effects(Vec::new());
        }
        self.input(|node, at, store, out| node.on_unpinned(at, frame, store, out)).1
    }

    /// The node is about to leave: how much has not arrived, of what it has and of what it has given to others.
    pub(crate) fn leave(&mut self) -> (usize, Effects) {
        self.input(|node, at, store, out| match node.on_leaving(at, store, out) {
            0 => node.on_parting(at, store, out),
            left => left,
        })
    }

    /// A new epoch begins.
    pub(crate) fn input_epoch(&mut self, view: &node::View) -> Effects {
        self.input(|node, at, store, out| node.on_new_epoch(at, view, None, store, out)).1
    }

    // Whole events

    /// Brings a block into the cache, with this stamp; the event is over.
    pub(crate) fn cache(&mut self, tag: BlockTag, access: Access, stamp: u64) -> FrameId {
        let frame = self.cache_pinned(tag, access, stamp);
        assert!(self.unpin(frame).0.is_empty());
        frame
    }

    /// The same, and the thread that asked for it is still accessing it.
    #[track_caller]
    pub(crate) fn cache_pinned(&mut self, tag: BlockTag, access: Access, stamp: u64) -> FrameId {
        let request = self.miss(tag, access);
        let out = self.packet(carrying(granted(&request, home_of(tag), GlobalStatus::Unshared, []), stamp));
        self.unlocked(&out);
        out.frame()
    }

    /// The unlock that was sent is acknowledged.
    #[track_caller]
    pub(crate) fn unlocked(&mut self, out: &Effects) {
        let ack = unlock_ack(&out.one(PacketKind::Unlock).packet);
        assert!(self.packet(ack).0.is_empty(), "nothing waited for the acknowledgement");
    }

    /// Gives an entry of this home this state, through an event of node 3 that asks everybody who has a copy.
    pub(crate) fn set_entry<const N: usize>(
        &mut self,
        tag: BlockTag,
        status: GlobalStatus,
        copyset: [u16; N],
    ) {
        self.seq += 1;
        let purge = at_home(PacketKind::Purge, tag, requester(3, 20), self.seq);
        let _ = self.packet(purge);
        assert_eq!(self.packet(unlock(&purge, status, copyset)).kinds(), [PacketKind::UnlockAck]);
    }

    // Views

    pub(crate) fn entry(&self, tag: BlockTag) -> Entry {
        self.node.directory().get(tag)
    }

    /// The state of an entry of this home, and who has a copy.
    pub(crate) fn metadata(&self, tag: BlockTag) -> (GlobalStatus, Copyset) {
        (self.entry(tag).status, self.entry(tag).copyset)
    }

    /// How a block is cached, and its stamp.
    pub(crate) fn cached(&self, tag: BlockTag) -> Option<(Access, u64)> {
        let published = |frame: &check::coherence::Frame| {
            frame.published.filter(|(holds, _)| *holds == tag).map(|(_, access)| (access, frame.stamp))
        };
        self.store.frames.iter().find_map(published)
    }

    /// The wait until the next deadline.
    pub(crate) fn due(&self) -> Nanos {
        self.node.next_deadline().saturating_sub(self.now)
    }
}

impl Effects {
    /// The packets sent.
    pub(crate) fn sent(&self) -> Vec<Message> {
        let sent = |effect: &Effect| match effect {
            Effect::Send(message) => Some(*message),
            Effect::Completed { .. } => None,
        };
        self.0.iter().filter_map(sent).collect()
    }

    /// The only effect, which is a packet.
    #[track_caller]
    pub(crate) fn only(&self) -> Message {
        match self.0[..] {
            [Effect::Send(message)] => message,
            _ => panic!("one packet expected: {self:?}"),
        }
    }

    /// The one packet of this kind.
    #[track_caller]
    pub(crate) fn one(&self, kind: PacketKind) -> Message {
        let mut sent = self.sent();
        sent.retain(|message| message.packet.kind == kind);
        let [message] = sent[..] else { panic!("one {kind:?} expected: {self:?}") };
        message
    }

    /// The kinds of the packets sent.
    pub(crate) fn kinds(&self) -> Vec<PacketKind> {
        self.sent().iter().map(|message| message.packet.kind).collect()
    }

    /// How operations ended.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |effect: &Effect| match effect {
            Effect::Completed { outcome, .. } => Some(*outcome),
            Effect::Send(_) => None,
        };
        self.0.iter().filter_map(outcome).collect()
    }

    /// The frame that the one operation got pinned.
    #[track_caller]
    pub(crate) fn frame(&self) -> FrameId {
        let [Outcome::Pinned(frame)] = self.outcomes()[..] else { panic!("a frame expected: {self:?}") };
        frame
    }

    /// Nothing was sent, and no operation ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl PartialEq for Effects {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// A packet with a block of this stamp.
pub(crate) fn carrying(packet: Packet, stamp: u64) -> Message {
    let payload = u32::try_from(BLOCK.bytes()).unwrap();
    Message { packet: Packet { payload, ..packet }, data: Some(DataRef(stamp)) }
}
