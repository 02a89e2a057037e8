//! What this node has changed goes to all who keep copies of it, as one batch after the other.
//!
//! What must always hold: a batch has what each of its blocks was at one moment; the next one begins when it is committed
//! everywhere.

use alloc::vec::Vec;

use wire::{
    BlockTag, Copyset, Endpoint, Incarnation, Nanos, NodeId, Packet, PacketKind, RequesterId, Rule, Rules,
    Seq, SlotId,
};

use super::NOWHERE;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::recovery::View;
use crate::store::{Access, DataRef, Store};

/// So many blocks are on their way to one node at a time. It says what it has when it has all, and after every half of these.
pub(super) const WINDOW: usize = 32;

/// Blocks that are to be committed together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Batch {
    seq: Seq,
    phase: Phase,
    blocks: Vec<(BlockTag, DataRef)>,
    participants: Vec<Participant>,
    /// When what stays unanswered is sent again.
    pub(super) deadline: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Some blocks are not protected yet: threads are writing in them.
    Collecting,
    Preparing,
    Committing,
}

/// A node that keeps copies of some of the blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Participant {
    node: NodeId,
    incarnation: Incarnation,
    /// Which blocks, in the order in which they are sent.
    blocks: Vec<usize>,
    sent: usize,
    /// So many have arrived.
    taken: usize,
    has_committed: bool,
}

impl Batch {
    pub(super) fn is_collecting(&self) -> bool {
        self.phase == Phase::Collecting
    }

    fn has(&self, tag: BlockTag) -> bool {
        self.blocks.iter().any(|(it, _)| *it == tag)
    }
}

impl<S: Store, R: Rules> Context<'_, S, R> {
    /// The batch that has everything which this node has changed by now. It begins as soon as it can.
    pub(crate) fn want_batch(&mut self) -> Seq {
        let open = self.copies.batch.as_ref();
        if self.copies.changed.is_empty() && self.copies.given.is_empty() {
            return open.map_or(Seq::NONE, |batch| batch.seq);
        }
        let next = match open {
            Some(batch) if batch.is_collecting() => batch.seq,
            _ => self.copies.begun.next(),
        };
        self.copies.wanted = self.copies.wanted.max(next);
        next
    }

    /// The batch after which others may see this block as it is; `None`: they may now.
    pub(crate) fn batch_before_giving(&mut self, tag: BlockTag) -> Option<Seq> {
        if !self.copies.has(tag) || !self.rules.holds(Rule::CommitBeforeGiving) {
            return None;
        }
        if self.copies.changed.contains(&tag) || self.copies.given.contains_key(&tag) {
            return Some(self.want_batch());
        }
        self.copies.batch.as_ref().filter(|batch| batch.has(tag)).map(|batch| batch.seq)
    }

    /// Goes on with the batch as far as it comes.
    pub(super) fn advance_batch(&mut self) {
        loop {
            let Some(batch) = &self.copies.batch else {
                if self.copies.wanted <= self.copies.begun {
                    return;
                }
                self.copies.begun = self.copies.begun.next();
                self.copies.batch = Some(Batch {
                    seq: self.copies.begun,
                    phase: Phase::Collecting,
                    blocks: Vec::new(),
                    participants: Vec::new(),
                    deadline: Nanos::MAX,
                });
                continue;
            };
            let is_over = match batch.phase {
                Phase::Collecting => {
                    if !self.collect() {
                        return;
                    }
                    self.prepare();
                    continue;
                }
                Phase::Preparing => batch.participants.iter().all(|to| to.taken == to.blocks.len()),
                Phase::Committing => batch.participants.iter().all(|to| to.has_committed),
            };
            if !is_over {
                return;
            }
            if batch.phase == Phase::Preparing {
                self.copies.prepared = batch.seq;
                self.commit();
            } else {
                let batch = self.copies.batch.take().expect("it is there");
                self.copies.committed = batch.seq;
                self.discard_all(batch.blocks);
            }
        }
    }

    /// Protects what was changed. False if threads are writing in some of it: they will say when they are done.
    fn collect(&mut self) -> bool {
        let changed: Vec<BlockTag> = self.copies.changed.iter().copied().collect();
        for tag in changed {
            let Some((frame, Access::Modified)) = self.store.lookup(tag) else {
                panic!("{tag:?} was changed here, and is not here");
            };
            if self.rules.holds(Rule::BatchesProtect) && self.store.downgrade(frame).is_err() {
                continue;
            }
            // Nobody writes in it any more; readers may have it pinned, and do no harm.
            let data = self.store.retain(frame);
            self.copies.changed.remove(&tag);
            self.copies.owned.insert(tag);
            let batch = self.copies.batch.as_mut().expect("the caller has it");
            batch.blocks.push((tag, data));
        }
        self.copies.changed.is_empty()
    }

    /// It is one moment: everything goes to those who keep copies.
    fn prepare(&mut self) {
        let given = core::mem::take(&mut self.copies.given);
        let mut batch = self.copies.batch.take().expect("the caller has it");
        batch.blocks.extend(given.iter().map(|(tag, data)| (*tag, *data)));
        for (at, (tag, _)) in batch.blocks.iter().enumerate() {
            for node in self.copies.keepers(tag.home()) {
                match batch.participants.iter_mut().find(|to| to.node == node) {
                    Some(to) => to.blocks.push(at),
                    None => batch.participants.push(Participant {
                        node,
                        incarnation: self.incarnations[node.index()],
                        blocks: alloc::vec![at],
                        sent: 0,
                        taken: 0,
                        has_committed: false,
                    }),
                }
            }
        }
        self.counters.batches += 1;
        self.counters.batched += batch.blocks.len() as u64;
        batch.phase = Phase::Preparing;
        self.copies.batch = Some(batch);
        self.send_batch();
    }

    fn commit(&mut self) {
        self.copies.batch.as_mut().expect("the caller has it").phase = Phase::Committing;
        self.send_batch();
    }

    /// Sends what the participants lack, as far as that may be on its way at a time.
    fn send_batch(&mut self) {
        let deadline = self.repeat_at();
        let Some(mut batch) = self.copies.batch.take() else { return };
        batch.deadline = deadline;
        let everybody: Copyset = batch.participants.iter().map(|to| to.node).collect();
        let requester = RequesterId { node: self.config.id, slot: SlotId::MIGRATION };
        for to in &mut batch.participants {
            let about = |kind, tag| Packet {
                from: Endpoint::CacheAgent(requester.node),
                to: Endpoint::HomeAgent(to.node),
                epoch: self.config.switch_epoch,
                incarnation: self.config.incarnation,
                copyset: everybody,
                ..Packet::request(kind, tag, requester, batch.seq)
            };
            match batch.phase {
                Phase::Collecting => {}
                Phase::Preparing => {
                    while to.sent < to.blocks.len().min(to.taken + WINDOW) {
                        let (tag, data) = batch.blocks[to.blocks[to.sent]];
                        let arg = (to.sent as u64) << 32 | to.blocks.len() as u64;
                        let packet = Packet { arg, ..about(PacketKind::Prepare, tag) };
                        to.sent += 1;
                        self.send_block(packet, data);
                    }
                }
                Phase::Committing => {
                    if !to.has_committed {
                        let packet = about(PacketKind::Commit, batch.blocks[to.blocks[0]].0);
                        self.send(packet);
                    }
                }
            }
        }
        self.copies.batch = Some(batch);
    }

    /// A participant says what it has.
    pub(super) fn on_prepared(&mut self, packet: &Packet) {
        let Some(to) = self.participant(packet, Phase::Preparing) else {
            return self.counters.drop(Drop::Stale);
        };
        let taken = usize::try_from(packet.arg).unwrap_or(usize::MAX);
        if taken > to.sent {
            return self.counters.drop(Drop::Nonsense);
        }
        to.taken = to.taken.max(taken);
        if to.sent < to.blocks.len() {
            self.send_batch();
        }
    }

    pub(super) fn on_committed(&mut self, packet: &Packet) {
        match self.participant(packet, Phase::Committing) {
            Some(to) => to.has_committed = true,
            None => self.counters.drop(Drop::Stale),
        }
    }

    /// Whoever answers, if the open batch is that one, and in this phase.
    fn participant(&mut self, answer: &Packet, phase: Phase) -> Option<&mut Participant> {
        let batch = self.copies.batch.as_mut().filter(|it| (it.seq, it.phase) == (answer.seq, phase))?;
        batch.participants.iter_mut().find(|to| Some(to.node) == answer.from.node())
    }

    /// Sends again what stays unanswered.
    pub(super) fn repeat_batch(&mut self) {
        if let Some(batch) = &mut self.copies.batch
            && batch.deadline <= self.now
        {
            batch.participants.iter_mut().for_each(|to| to.sent = to.taken);
            self.counters.retransmissions += 1;
            self.send_batch();
        }
    }

    /// Whoever is gone takes part no more; the others get in the new epoch what they lack.
    pub(super) fn batch_on_new_epoch(&mut self, view: &View, gone: Copyset) {
        if let Some(batch) = &mut self.copies.batch {
            if batch.is_collecting() {
                for (_, data) in batch.blocks.extract_if(.., |(tag, _)| gone.contains(tag.home())) {
                    self.store.discard(data);
                }
            } else if self.rules.holds(Rule::BatchesEndWithMemories) {
                // Those who take part have counted on so many blocks.
                let ended = batch.blocks.iter_mut().filter(|(tag, _)| gone.contains(tag.home()));
                ended.for_each(|(tag, _)| *tag = NOWHERE);
            }
            batch.participants.retain(|to| view.incarnations[to.node.index()] == Some(to.incarnation));
            batch.participants.iter_mut().for_each(|to| to.sent = to.taken);
            self.send_batch();
        }
    }

    fn discard_all(&mut self, blocks: Vec<(BlockTag, DataRef)>) {
        blocks.into_iter().for_each(|(_, data)| self.store.discard(data));
    }
}
