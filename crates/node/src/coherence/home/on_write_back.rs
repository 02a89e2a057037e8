//! A copy of a modified block comes home: because its owner evicts it, or because somebody reads it.

use wire::{Endpoint, Packet, PacketKind, Rule, Rules};

use super::HomeAgent;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::message::Message;
use crate::store::Store;

impl HomeAgent {
    /// Takes the copy, once for every event. A late duplicate would bring back old bytes: write-backs carry the
    /// requester and number of their event (PROTOCOLS.md, FlowCC 1).
    pub(crate) fn on_write_back<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        message: &Message,
    ) {
        let packet = &message.packet;
        let Some(data) = message.data else { return cx.counters.drop(Drop::Nonsense) };
        if packet.tag.home() != self.node || !self.directory.covers(packet.tag) {
            return cx.counters.drop(Drop::Nonsense);
        }
        let last = &mut self.written_back[Self::row(packet.requester, packet.seq)];
        if packet.seq < *last {
            return cx.counters.drop(Drop::Stale);
        }
        if packet.seq > *last || !cx.rules.holds(Rule::WriteBackOnce) {
            *last = packet.seq;
            cx.store.write_home(packet.tag, data);
        }
        self.acknowledge(cx, packet, PacketKind::WriteBackAck);
    }

    /// The event is about to be unlocked: no late write-back of it counts.
    pub(crate) fn on_close<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) {
        let last = &mut self.written_back[Self::row(packet.requester, packet.seq)];
        if cx.rules.holds(Rule::ClosedTakesNoWriteBack) {
            *last = packet.seq.max(*last);
        }
        self.acknowledge(cx, packet, PacketKind::CloseAck);
    }

    fn acknowledge<S: Store, R: Rules>(&self, cx: &mut Context<'_, S, R>, packet: &Packet, kind: PacketKind) {
        cx.send(packet.reply(kind, self.me(), Endpoint::Requester(packet.requester.node)));
    }
}
