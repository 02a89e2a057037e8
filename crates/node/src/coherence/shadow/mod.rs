//! The shadow node: a copy of the switch's TAG array in memory, with the heat that the switch has no capacity to
//! count (Concordia, section 5.2.2). One node of the rack keeps it.
//!
//! It learns of new entries from the switch's copies of ADD answers, and of heat from the cache agents' reports
//! at the end of every epoch. It takes cold entries out again by asking their homes: one at once where a
//! collision shows that a hotter block wants its place, and some at the end of an epoch when the switch is
//! nearly full.
//!
//! What must always hold: it only ever asks. Nothing is decided by what it believes, so that a wrong belief
//! (a lost report, an entry that went) costs a wasted message.

use alloc::vec::Vec;

use sorted::Map;
use switch::coherence::set_of;
use wire::{BlockTag, Endpoint, NodeId, Packet, PacketKind, RequesterId, Rules, Seq, SlotId, Status};

use crate::coherence::context::Context;

/// The share of the switch's entries that is kept free for blocks that become hot: one in eight.
const FREE_SHARE: usize = 8;
/// Entries cool by half in so many epochs. An agent with many hot blocks reports each only once in a while.
const COOLING: u32 = 16;
/// How many entries are taken out in one epoch at most.
const MOST_PER_EPOCH: usize = 256;

/// The state of the shadow.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shadow {
    node: NodeId,
    /// Heat of the switch's entries. By hash set, so that the rivals for a place
    /// stand together.
    entries: Map<(usize, BlockTag), u32>,
    /// Epochs since the entries cooled.
    epochs: u32,
}

impl Shadow {
    pub(crate) fn new(node: NodeId) -> Self {
        Self { node, entries: Map::new(), epochs: 0 }
    }

    /// The switch has this entry.
    pub(crate) fn learn(&mut self, capacity: usize, tag: BlockTag) {
        self.entries.entry((set_of(capacity, tag), tag)).or_insert(1);
    }

    /// The switch has answered an ADD-TO-SWITCH.
    pub(crate) fn on_add_notice<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let set = set_of(cx.config.switch_entries, packet.tag);
        if packet.status == Status::Granted {
            self.entries.entry((set, packet.tag)).or_insert(1);
            return;
        }
        let first = (set, BlockTag::from_bits(0));
        let last = (set, BlockTag::from_bits(u64::MAX));
        let coldest = self.entries.range(first..=last).min_by_key(|(_, heat)| **heat).map(|(key, _)| *key);
        if let Some(key) = coldest {
            self.demote(cx, key);
        }
    }

    /// A cache agent reports how often it had to invalidate a block of the switch, and the seven behind it, since its
    /// last report of them.
    pub(crate) fn on_heat<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        for (at, count) in (0..).zip(packet.arg.to_le_bytes()).filter(|(_, count)| *count > 0) {
            let offset: u64 = at << cx.config.block.shift();
            let tag = BlockTag::from_bits(packet.tag.bits().wrapping_add(offset));
            let set = set_of(cx.config.switch_entries, tag);
            if let Some(heat) = self.entries.get_mut(&(set, tag)) {
                *heat = heat.saturating_add(u32::from(count));
            }
        }
    }

    /// Takes out the coldest entries if too few are free, and lets all others cool now and then.
    pub(crate) fn on_epoch<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let capacity = cx.config.switch_entries;
        let wanted = capacity - capacity / FREE_SHARE;
        let surplus = self.entries.len().saturating_sub(wanted).min(MOST_PER_EPOCH);
        if surplus > 0 {
            let mut by_heat: Vec<_> = self.entries.iter().map(|(key, heat)| (*heat, *key)).collect();
            by_heat.select_nth_unstable(surplus - 1);
            for (_, key) in by_heat.drain(..surplus) {
                self.demote(cx, key);
            }
        }
        self.epochs += 1;
        if self.epochs.is_multiple_of(COOLING) {
            self.entries.values_mut().for_each(|heat| *heat /= 2);
        }
    }

    /// Asks the block's home to take it back.
    fn demote<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, key: (usize, BlockTag)) {
        self.entries.remove(&key);
        let requester = RequesterId { node: self.node, slot: SlotId::MIGRATION };
        cx.send(Packet {
            from: Endpoint::Shadow(self.node),
            to: Endpoint::HomeAgent(key.1.home()),
            epoch: cx.config.switch_epoch,
            incarnation: cx.config.incarnation,
            ..Packet::request(PacketKind::Demote, key.1, requester, Seq::NONE)
        });
    }
}
