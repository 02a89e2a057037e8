//! A node that keeps copies: it holds the blocks of batches until they are committed.
//!
//! What must always hold: a batch goes into memory as a whole, and once.

use alloc::vec::Vec;

use wire::{BlockTag, Copyset, Endpoint, Packet, PacketKind, Rule, Rules, Seq};

use super::batch::WINDOW;
use super::{Life, NOWHERE};
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::message::Message;
use crate::store::{DataRef, Store};

/// A batch of another node that is not committed here.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Held {
    pub(super) seq: Seq,
    /// Who takes part.
    pub(super) participants: Copyset,
    /// Those that have come, by their places.
    blocks: Vec<Option<(BlockTag, DataRef)>>,
    /// So many have come of the first ones, with no gap.
    taken: usize,
    /// How many blocks it has here.
    of: usize,
}

impl Held {
    fn is_whole(&self) -> bool {
        self.taken == self.of
    }

    /// Takes a block, if it is a new one.
    fn take(&mut self, at: usize, block: BlockTag, keep: impl FnOnce() -> DataRef) -> bool {
        self.blocks.resize(self.blocks.len().max(at + 1), None);
        if self.blocks[at].is_some() {
            return false;
        }
        self.blocks[at] = Some((block, keep()));
        self.taken += self.blocks[self.taken..].iter().take_while(|block| block.is_some()).count();
        true
    }
}

impl<S: Store, R: Rules> Context<'_, S, R> {
    /// A block of a batch.
    pub(super) fn on_prepare(&mut self, message: &Message) {
        let packet = &message.packet;
        let (Some(data), life) = (message.data, life_of(packet)) else {
            return self.counters.drop(Drop::Nonsense);
        };
        let (at, of) = ((packet.arg >> 32) as usize, packet.arg as u32 as usize);
        let is_block = !packet.tag.is_lock_entry()
            && self.config.block.offset_in_block(packet.tag.addr()) == 0
            && packet.tag.addr().offset() < self.config.memory;
        // It may be a batch of before the last epoch, in which this node has ceased to keep some of its blocks: those are not taken
        // into memory.
        if at >= of || !is_block || !(self.copies.has(packet.tag) || packet.tag == NOWHERE) {
            return self.counters.drop(Drop::Nonsense);
        }
        if self.copies.ended.get(&life).is_some_and(|(seq, _)| packet.seq <= *seq) {
            return self.counters.drop(Drop::Stale);
        }
        let held = self.copies.held.entry(life).or_insert_with(|| Held {
            seq: packet.seq,
            participants: packet.copyset,
            blocks: Vec::new(),
            taken: 0,
            of,
        });
        // Nobody sends more ahead than that.
        if held.seq != packet.seq || held.of != of || at >= held.taken + WINDOW {
            return self.counters.drop(Drop::Nonsense);
        }
        let before = held.taken;
        let is_new = held.take(at, packet.tag, || self.store.keep(data));
        // Whoever sends a block twice may have missed an answer.
        if is_new && !held.is_whole() && before / (WINDOW / 2) == held.taken / (WINDOW / 2) {
            return;
        }
        let arg = held.taken as u64;
        let to = Endpoint::CacheAgent(packet.requester.node);
        let me = Endpoint::HomeAgent(self.config.id);
        self.send(Packet { arg, ..packet.reply(PacketKind::Prepared, me, to) });
    }

    /// All participants hold the batch.
    pub(super) fn on_commit(&mut self, packet: &Packet) {
        let life = life_of(packet);
        let is_over = self.copies.ended.get(&life).is_some_and(|(seq, _)| packet.seq <= *seq);
        if !is_over {
            let held = self.copies.held.get(&life);
            if !held.is_some_and(|held| held.seq == packet.seq && held.is_whole()) {
                return self.counters.drop(Drop::Nonsense);
            }
            self.end_batch(life, true);
        }
        let to = Endpoint::CacheAgent(packet.requester.node);
        self.send(packet.reply(PacketKind::Committed, Endpoint::HomeAgent(self.config.id), to));
    }

    /// A batch of another node takes effect here, or is dropped.
    pub(super) fn end_batch(&mut self, life: Life, takes_effect: bool) {
        let Some(held) = self.copies.held.remove(&life) else { return };
        self.copies.ended.insert(life, (held.seq, takes_effect));
        for (tag, data) in held.blocks.into_iter().flatten() {
            if takes_effect && self.keeps(tag) {
                self.store.write_home(tag, data);
                self.note_committed(tag);
            }
            self.store.discard(data);
        }
    }

    fn keeps(&self, tag: BlockTag) -> bool {
        self.copies.keepers(tag.home()).any(|node| node == self.config.id)
    }

    /// A new epoch begins: what batches have of memories that are gone gets nowhere.
    pub(super) fn held_on_new_epoch(&mut self, gone: Copyset) {
        if self.rules.holds(Rule::BatchesEndWithMemories) {
            let blocks = self.copies.held.values_mut().flat_map(|held| held.blocks.iter_mut().flatten());
            let ended = blocks.filter(|(tag, _)| gone.contains(tag.home()));
            ended.for_each(|(tag, _)| *tag = NOWHERE);
        }
    }

    /// True if this node may say that it holds the whole of it.
    pub(super) fn holds_whole(&self, held: &Held) -> bool {
        held.is_whole() || !self.rules.holds(Rule::BatchesAreWhole)
    }
}

/// Whose batch it is.
fn life_of(packet: &Packet) -> Life {
    (packet.requester.node, packet.incarnation)
}
