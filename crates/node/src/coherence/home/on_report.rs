//! After a restart, every live node reports what it has of this home's blocks (`recovery/mod.rs`).

use sorted::{Map, Set};
use switch::coherence::Dump;
use wire::{
    BlockTag, Copyset, Discipline, Endpoint, GlobalStatus, NodeId, Packet, PacketKind, RequesterId, Rule,
    Rules, Seq, SwitchEpoch,
};

use super::migration::Migration;
use super::rebuild::Knowledge;
use super::{Decided, Decision, HomeAgent};
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::message::Message;
use crate::coherence::recovery::reporter::{GROUP, member};
use crate::store::{DataRef, Store};

/// A directory that is being rebuilt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Rebuilding {
    /// The nodes that may have more to report.
    pub(super) awaited: Copyset,
    /// The last report of each node.
    pub(super) streams: Map<NodeId, Stream>,
    /// Copies, and which of them may be written.
    pub(super) copies: Map<BlockTag, (Copyset, Copyset)>,
    /// Retained answers, by the event that they were for.
    pub(super) retained: Map<(RequesterId, Seq), (BlockTag, DataRef)>,
    /// Events that were cut short.
    pub(super) cut: Set<(RequesterId, Seq)>,
    /// Calls that wait until the directory is rebuilt, by requester.
    pub(super) calls: Map<usize, Packet>,
}

/// What came from one node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Stream {
    /// The last report.
    pub(super) report: Packet,
    /// What was said to it.
    answer: u64,
}

impl HomeAgent {
    /// A new epoch begins: nothing is decided until everybody has reported.
    pub(crate) fn on_new_epoch<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        live: Copyset,
        gone: Copyset,
        dump: Option<&Dump>,
    ) {
        if self.knowledge.is_none() || !cx.rules.holds(Rule::KnowledgeIsKept) {
            self.knowledge = Some(Knowledge::freeze(self, cx.config.nodes, dump));
        }
        let knowledge = self.knowledge.as_mut().expect("it was just made");
        knowledge.died = knowledge.died.union(gone);
        for node in gone.iter() {
            self.forget(node);
            self.chunks.orphan(node, cx.config.switch_epoch);
        }
        self.decided.fill(Decided::NOTHING);
        self.written_back.fill(Seq::NONE);
        self.directory.forget_locks();
        self.warm.clear();
        self.migration = Migration::after(&self.migration);
        // Calls that wait for an earlier rebuild are forgotten: their callers repeat them in the new epoch.
        self.rebuilding = Some(Rebuilding {
            awaited: live,
            streams: Map::new(),
            copies: Map::new(),
            retained: Map::new(),
            cut: Set::new(),
            calls: Map::new(),
        });
    }

    /// Who has not reported everything yet; `None`: nobody is waited for.
    pub(crate) fn rebuilding_from(&self) -> Option<Copyset> {
        self.rebuilding.as_ref().map(|rebuilding| rebuilding.awaited)
    }

    /// True until everybody has reported.
    pub(crate) fn is_rebuilding(&self) -> bool {
        self.rebuilding.is_some()
    }

    /// A node reports, one thing after the other.
    pub(crate) fn on_report<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, message: &Message) {
        let packet = &message.packet;
        let Endpoint::CacheAgent(node) = packet.from else { return cx.counters.drop(Drop::Nonsense) };
        let Some(rebuilding) = &mut self.rebuilding else {
            // The last acknowledgement was lost.
            return match packet.event {
                PacketKind::Close => self.acknowledge_report(cx, packet, 0),
                _ => cx.counters.drop(Drop::Stale),
            };
        };
        if !rebuilding.awaited.contains(node) {
            // It has said that there is no more; the answer follows when the directory is rebuilt.
            return cx.counters.drop(Drop::Duplicate);
        }
        let last = rebuilding.streams.get(&node).copied();
        let number = last.map_or(Seq::NONE, |last| last.report.seq);
        if let Some(last) = last.filter(|_| packet.seq == number) {
            return self.acknowledge_report(cx, packet, last.answer);
        }
        if packet.seq != number.next() {
            return cx.counters.drop(Drop::Stale);
        }
        if packet.tag.home() != self.node {
            return cx.counters.drop(Drop::Nonsense);
        }
        if packet.event == PacketKind::Close {
            rebuilding.awaited = rebuilding.awaited.without(node);
            rebuilding.streams.insert(node, Stream { report: *packet, answer: 0 });
            if rebuilding.awaited.is_empty() {
                self.rebuild(cx);
            }
            return;
        }
        let answer = if number == Seq::NONE {
            u64::from(self.rebuilt.0)
        } else if let Some(answer) = self.take_report(cx, node, message) {
            answer
        } else {
            return cx.counters.drop(Drop::Nonsense);
        };
        if let Some(rebuilding) = &mut self.rebuilding {
            rebuilding.streams.insert(node, Stream { report: *packet, answer });
        }
        self.acknowledge_report(cx, packet, answer);
    }

    /// Notes what a report says. `None`: nothing that a report can say.
    fn take_report<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        node: NodeId,
        message: &Message,
    ) -> Option<u64> {
        let packet = &message.packet;
        let rebuilding = self.rebuilding.as_mut()?;
        let event = (packet.requester, Seq(packet.arg));
        match (packet.event, message.data) {
            (PacketKind::Report, None) => {
                let mut ended = 0;
                for bit in (0..GROUP).filter(|bit| packet.arg >> bit & 1 == 1) {
                    let tag = member(cx.config.block, packet.tag, bit);
                    if self.chunks.discipline_of(tag) != Some(Discipline::Coherent) {
                        ended |= 1 << bit;
                        continue;
                    }
                    let (copies, writable) = rebuilding.copies.entry(tag).or_default();
                    *copies = copies.with(node);
                    if packet.global_status == GlobalStatus::Modified {
                        *writable = writable.with(node);
                    }
                }
                return Some(ended);
            }
            _ if packet.requester.node != node && !packet.provider => return None,
            (PacketKind::WriteBack, Some(data)) if self.directory.covers(packet.tag) => {
                // The latest: the reporter has it cached.
                cx.store.write_home(packet.tag, data);
            }
            (PacketKind::WriteMiss, Some(data)) if self.directory.covers(packet.tag) => {
                rebuilding.retained.insert(event, (packet.tag, data));
            }
            (PacketKind::WriteMiss, None) => {
                rebuilding.cut.insert(event);
            }
            (PacketKind::LockRead | PacketKind::LockWrite, None) if packet.tag.is_lock_entry() => {
                self.take_lock(cx.rules, packet)?;
            }
            _ => return None,
        }
        Some(0)
    }

    /// An application holds this lock; unless it has released it since.
    fn take_lock<R: Rules>(&mut self, rules: R, packet: &Packet) -> Option<()> {
        let seq = Seq(packet.arg);
        let row = Self::row(packet.requester, seq);
        if self.decided[row].seq >= seq {
            return Some(());
        }
        let for_reading = packet.event.takes_read_lock(rules);
        if !self.directory.entry(packet.tag).try_lock(for_reading) {
            return None;
        }
        let held = Packet { seq, ..*packet };
        self.decided[row] = Decided::new(&held, Decision::Granted);
        Some(())
    }

    pub(super) fn acknowledge_report<S, R: Rules>(
        &self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
        answer: u64,
    ) {
        let Some(node) = packet.from.node() else { return };
        let ack = packet.reply(PacketKind::ReportAck, self.me(), Endpoint::CacheAgent(node));
        cx.send(Packet { arg: answer, ..ack });
    }

    /// The epoch in which the directory was last rebuilt.
    pub(super) fn note_rebuilt(&mut self, epoch: SwitchEpoch) {
        self.rebuilt = epoch;
        self.knowledge = None;
    }
}
