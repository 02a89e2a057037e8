//! A node tells every live home what it knows of that home's blocks.
//!
//! One packet at a time for each home, numbered, repeated until it is acknowledged. The first says nothing; its
//! acknowledgement says in which epoch the home has last rebuilt its directory, so that what was saved before
//! can be thrown away, and what was asked for since, in vain. The last one says that there is no more, and is
//! acknowledged when the home has rebuilt its directory.
//!
//! | `event` | reports | fields |
//! | --- | --- | --- |
//! | REPORT | copies, in the aligned group of 64 blocks that starts at the tag | `arg`: bitmap; status |
//! | WRITE-BACK | a shared copy that the home may not have | the block |
//! | WRITE-MISS, provider | a retained answer | requester, `arg`: its event; the block |
//! | WRITE-MISS | a request that was cut short | requester, `arg`: its event |
//! | LOCK-READ, LOCK-WRITE | a lock that is held | requester, `arg`: its event |
//! | CLOSE | no more | |

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sorted::Map;
use wire::{
    BlockSize, BlockTag, Copyset, Endpoint, GlobalStatus, Nanos, NodeId, Packet, PacketKind, RequesterId,
    Rule, Rules, Seq, SlotId,
};

use super::saved::{Cut, Retained, Saved};
use crate::coherence::config::Retransmission;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::store::{Access, FrameId, Store};

/// Blocks that one report of copies is about.
pub(crate) const GROUP: u32 = 64;
/// Between two copies of a report on a transport that loses nothing: the home may not be in the epoch yet.
const TIMEOUT: Nanos = Nanos::from_millis(1);

/// A lock that an application holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Held {
    pub(crate) kind: PacketKind,
    pub(crate) requester: RequesterId,
    pub(crate) seq: Seq,
    pub(crate) entry: BlockTag,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Item {
    Nothing,
    Copies { first: BlockTag, access: Access, blocks: u64 },
    Stale(BlockTag),
    Retained(Retained),
    Cut(Cut),
    Held(Held),
    NoMore,
}

/// What is reported to one home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Stream {
    /// The first one is in flight.
    items: VecDeque<Item>,
    /// Its number.
    seq: Seq,
    deadline: Nanos,
}

/// The reports of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Reporter {
    node: NodeId,
    pub(crate) saved: Saved,
    streams: Map<NodeId, Stream>,
    /// Published frames that go when the thread that has them pinned is done.
    condemned: Vec<(FrameId, BlockTag)>,
}

impl Reporter {
    pub(crate) fn new(node: NodeId) -> Self {
        let (streams, condemned) = (Map::new(), Vec::new());
        Self { node, saved: Saved::default(), streams, condemned }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.streams.is_empty()
    }

    #[inline]
    pub(crate) fn next_deadline(&self) -> Nanos {
        if self.is_quiet() {
            return Nanos::MAX;
        }
        self.streams.values().map(|stream| stream.deadline).min().unwrap_or(Nanos::MAX)
    }

    /// When everything in flight is sent again: for checkers that know no time.
    pub(crate) fn set_deadlines(&mut self, due: Nanos) {
        self.streams.values_mut().for_each(|stream| stream.deadline = due);
    }

    /// Starts to report to all live homes. Copies of blocks of nodes that are `gone` are dropped.
    pub(crate) fn start<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        live: Copyset,
        gone: Copyset,
        held: &[Held],
    ) {
        let mut copies: Map<(BlockTag, bool), u64> = Map::new();
        let mut orphaned = Vec::new();
        let (condemned, copied) = (&self.condemned, &*cx.copies);
        cx.store.published(|frame, tag, access| {
            if gone.contains(tag.home()) {
                orphaned.push((frame, tag));
            } else if !condemned.contains(&(frame, tag)) {
                let access = copied.access(tag, access);
                let (first, bit) = group(cx.config.block, tag);
                *copies.entry((first, access == Access::Modified)).or_insert(0) |= 1 << bit;
            }
        });
        if cx.rules.holds(Rule::OrphanedCopiesAreDropped) {
            orphaned.into_iter().for_each(|(frame, tag)| self.condemn(cx, frame, tag));
        }
        self.streams.clear();
        let homes: Vec<NodeId> = live.iter().chain(cx.copies.served()).collect();
        for home in homes.iter().copied() {
            let mut items: VecDeque<Item> = [Item::Nothing].into();
            items.extend(held.iter().filter(|held| held.entry.home() == home).map(|held| Item::Held(*held)));
            self.streams.insert(home, Stream { items, seq: Seq(1), deadline: Nanos::MAX });
        }
        for ((first, modified), blocks) in copies {
            let access = if modified { Access::Modified } else { Access::Shared };
            if let Some(stream) = self.streams.get_mut(&first.home()) {
                stream.items.push_back(Item::Copies { first, access, blocks });
            }
        }
        homes.into_iter().for_each(|home| self.send(cx, home));
    }

    /// Drops a copy: at once, or when the thread that has it pinned is done.
    fn condemn<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, frame: FrameId, tag: BlockTag) {
        if self.condemned.contains(&(frame, tag)) {
            return;
        }
        match cx.store.withdraw(frame) {
            Ok(()) => {
                cx.note_leaving(frame, tag, true);
                cx.store.release(frame);
            }
            Err(crate::Pinned) => self.condemned.push((frame, tag)),
        }
    }

    /// A thread has finished its access to a frame.
    pub(crate) fn on_unpinned<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, frame: FrameId) {
        let Some(at) = self.condemned.iter().position(|(condemned, _)| *condemned == frame) else { return };
        let (_, tag) = self.condemned.swap_remove(at);
        if cx.store.tag_of(frame) == Some(tag) {
            self.condemn(cx, frame, tag);
        }
        if self.condemned.is_empty() {
            let waits = |stream: &Stream| stream.items.front() == Some(&Item::NoMore);
            let homes = self.streams.iter().filter(|(_, stream)| waits(stream)).map(|(home, _)| *home);
            homes.collect::<Vec<_>>().into_iter().for_each(|home| self.send(cx, home));
        }
    }

    /// Sends what is next for a home.
    fn send<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, home: NodeId) {
        let Some(stream) = self.streams.get_mut(&home) else { return };
        let span = match cx.config.retransmission {
            Retransmission::Never => TIMEOUT,
            Retransmission::AfterRoundTrips { floor, .. } => floor,
        };
        stream.deadline = cx.now + span;
        let item = *stream.items.front().expect("a stream ends with its last acknowledgement");
        if item == Item::NoMore && !self.condemned.is_empty() {
            // The home might give a block of theirs a new incarnation, while threads here still hit in the old one.
            return;
        }
        let is_settled = !cx.config.is_copied(home) || cx.copies.is_settled();
        if item == Item::NoMore && !is_settled && cx.rules.holds(Rule::HomeAwaitsBatches) {
            // Its memory may not have yet what this node or a dead one has written.
            return;
        }
        let about = |event, tag, requester, arg| Packet {
            event,
            tag,
            requester,
            arg,
            seq: stream.seq,
            from: Endpoint::CacheAgent(self.node),
            to: Endpoint::HomeAgent(home),
            epoch: cx.config.switch_epoch,
            ..Packet::request(PacketKind::Report, tag, requester, stream.seq)
        };
        let me = RequesterId { node: self.node, slot: SlotId::MIGRATION };
        let nowhere = BlockTag::from_bits(wire::GlobalAddr::new(home, 0).bits());
        let own = |packet| Packet { incarnation: cx.config.incarnation, ..packet };
        match item {
            Item::Nothing => cx.send(own(about(PacketKind::Report, nowhere, me, 0))),
            Item::NoMore => cx.send(own(about(PacketKind::Close, nowhere, me, 0))),
            Item::Copies { first, access, blocks } => {
                let global_status = match access {
                    Access::Shared => GlobalStatus::Shared,
                    Access::Modified => GlobalStatus::Modified,
                };
                cx.send(Packet { global_status, ..own(about(PacketKind::Report, first, me, blocks)) });
            }
            Item::Stale(tag) => match cx.store.lookup(tag) {
                Some((frame, _)) => {
                    let data = cx.store.contents(frame);
                    cx.send_block(own(about(PacketKind::WriteBack, tag, me, 0)), data);
                }
                // It belonged to no allocation, and was dropped.
                None => cx.send(own(about(PacketKind::Report, nowhere, me, 0))),
            },
            Item::Retained(it) => {
                let packet = about(PacketKind::WriteMiss, it.tag, it.requester, it.seq.0);
                cx.send_block(Packet { provider: true, incarnation: it.incarnation, ..packet }, it.data);
            }
            Item::Cut(it) => cx.send(own(about(PacketKind::WriteMiss, it.tag, it.requester, it.seq.0))),
            Item::Held(it) => cx.send(own(about(it.kind, it.entry, it.requester, it.seq.0))),
        }
    }

    /// A home has taken a report.
    pub(crate) fn on_report_ack<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let Endpoint::HomeAgent(home) = packet.from else { return cx.counters.drop(Drop::Nonsense) };
        let Some(stream) = self.streams.get_mut(&home).filter(|stream| stream.seq == packet.seq) else {
            return cx.counters.drop(Drop::Stale);
        };
        stream.seq = stream.seq.next();
        match stream.items.pop_front().expect("something was in flight") {
            Item::Nothing => {
                let rebuilt = wire::SwitchEpoch(u32::try_from(packet.arg).unwrap_or(0));
                self.saved.keep_only(cx, home, rebuilt);
                self.add_saved::<S, R>(cx, home);
            }
            Item::Copies { first, blocks, .. } => self.drop_ended(cx, first, blocks & packet.arg),
            Item::NoMore => {
                self.streams.remove(&home);
                return self.saved.settled(cx, home);
            }
            _ => {}
        }
        self.send(cx, home);
    }

    /// What kept this node from saying to homes of memory with copies that there is no more is over.
    pub(crate) fn say_no_more<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let waits = |(home, stream): &(&NodeId, &Stream)| {
            cx.config.is_copied(**home) && stream.items.front() == Some(&Item::NoMore)
        };
        let homes: Vec<NodeId> = self.streams.iter().filter(waits).map(|(home, _)| *home).collect();
        homes.into_iter().for_each(|home| self.send(cx, home));
    }

    fn add_saved<S: Store, R: Rules>(&mut self, cx: &Context<'_, S, R>, home: NodeId) {
        let stream = self.streams.get_mut(&home).expect("the caller has it");
        if !cx.rules.holds(Rule::CopiesAreReported) {
            stream.items.retain(|item| !matches!(item, Item::Copies { .. }));
        }
        if !cx.rules.holds(Rule::HeldLocksAreReported) {
            stream.items.retain(|item| !matches!(item, Item::Held(_)));
        }
        if let Some(saved) = self.saved.of(home) {
            let shared = |tag: &BlockTag| matches!(cx.store.lookup(*tag), Some((_, Access::Shared)));
            let stale = saved
                .stale
                .iter()
                .copied()
                .filter(shared)
                .filter(|_| cx.rules.holds(Rule::StaleHomeIsMended));
            stream.items.extend(stale.map(Item::Stale));
            let retained = saved.retained.iter().filter(|_| cx.rules.holds(Rule::RetainedAnswersAreReported));
            stream.items.extend(retained.map(|it| Item::Retained(*it)));
            stream.items.extend(saved.cut.iter().map(|it| Item::Cut(*it)));
        }
        stream.items.push_back(Item::NoMore);
    }

    /// The home says that these blocks belong to no allocation: whoever was to purge them may have died.
    fn drop_ended<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, first: BlockTag, blocks: u64) {
        if !cx.rules.holds(Rule::EndedCopiesAreDropped) {
            return;
        }
        for bit in (0..GROUP).filter(|bit| blocks >> bit & 1 == 1) {
            let tag = member(cx.config.block, first, bit);
            if let Some((frame, _)) = cx.store.lookup(tag) {
                self.condemn(cx, frame, tag);
            }
        }
    }

    /// Repeats what is overdue.
    pub(crate) fn on_deadline<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        if self.streams.is_empty() {
            return;
        }
        let now = cx.now;
        let overdue = self.streams.iter().filter(|(_, stream)| stream.deadline <= now);
        let overdue: Vec<NodeId> = overdue.map(|(home, _)| *home).collect();
        for home in overdue {
            cx.counters.retransmissions += 1;
            self.send(cx, home);
        }
    }
}

/// The group that a block is in, and its bit there.
fn group(block: BlockSize, tag: BlockTag) -> (BlockTag, u32) {
    let number = tag.addr().offset() >> block.shift();
    let bit = number % u64::from(GROUP);
    let first = BlockTag::from_bits(tag.bits() - (bit << block.shift()));
    (first, u32::try_from(bit).expect("less than 64"))
}

/// A block of a group.
pub(crate) fn member(block: BlockSize, first: BlockTag, bit: u32) -> BlockTag {
    BlockTag::from_bits(first.bits() + (u64::from(bit) << block.shift()))
}
