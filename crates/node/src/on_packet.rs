//! A packet arrives: whether it counts, and which of the node's machines it is for.
//!
//! What must always hold: nothing of another epoch of the switch or of a former life of its requester reaches a machine, and nothing
//! that names a node that there is not. What no machine expects is dropped and counted.

use alloc::vec::Vec;

use switch::flowcc::line;
use wire::{Endpoint, Kind, Packet, Rule, Rules, SlotId};

use crate::context::Context;
use crate::counters::Drop;
use crate::message::{Effect, Message};
use crate::node::{Node, context};
use crate::store::{Moment, Store};

impl<R: Rules> Node<R> {
    /// A packet for one of this node's endpoints has arrived.
    pub fn on_packet<S: Store>(
        &mut self,
        at: Moment,
        message: &Message,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) {
        let packet = &message.packet;
        self.home.ended.clear();
        if let Err(why) = self.admit(at, packet, store, out) {
            return self.counters.drop(why);
        }
        let expected = match packet.to {
            Endpoint::Requester(_) => self.for_requester(at, message, store, out),
            Endpoint::CacheAgent(_) => self.for_cache_agent(at, packet, store, out),
            Endpoint::HomeAgent(_) => self.for_home(at, message, store, out),
            Endpoint::Allocator(_) => self.for_allocator(at, packet, store, out),
            Endpoint::Shadow(_) => self.for_shadow(at, packet, store, out),
            Endpoint::Switch => false,
        };
        if !expected {
            self.counters.drop(Drop::Nonsense);
        }
    }

    /// Whether the packet counts. If it is of a later life of its requester than is known, the earlier one is forgotten.
    fn admit<S: Store>(
        &mut self,
        at: Moment,
        packet: &Packet,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> Result<(), Drop> {
        if self.rules.holds(Rule::EpochsAreFenced) && packet.epoch != self.config.switch_epoch {
            return Err(Drop::WrongEpoch);
        }
        let nodes = self.config.nodes;
        let known = packet.requester.node.index() < nodes
            && packet.tag.home().index() < nodes
            && packet.copyset.iter().all(|node| node.index() < nodes)
            && packet.to.node() == Some(self.config.id);
        if !known {
            return Err(Drop::Nonsense);
        }
        let requester = packet.requester.node;
        let known = self.lives[requester.index()];
        if self.rules.holds(Rule::LivesAreFenced) && packet.incarnation < known {
            return Err(Drop::FormerLife);
        }
        if packet.incarnation > known {
            self.lives[requester.index()] = packet.incarnation;
            self.cache_agent.forget(&mut context!(self, at, store, out), requester);
            self.home.forget(requester);
            self.allocation.forget(requester);
            self.requesters.forget(requester);
        }
        Ok(())
    }

    /// False, here and below: nobody expects such a packet.
    fn for_requester<S: Store>(
        &mut self,
        at: Moment,
        message: &Message,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> bool {
        let packet = &message.packet;
        let cx = &mut context!(self, at, store, out);
        match packet.kind {
            // About an event of somebody who stands in line behind one of ours, or before it.
            Kind::Follow => self.requesters.on_follow(cx, packet),
            Kind::HandoverAck => self.requesters.on_handover_ack(cx, packet),
            _ if packet.requester.node != cx.config.id => return false,
            _ if packet.requester.slot == SlotId::MIGRATION => {
                return self.for_migration(at, packet, store, out);
            }
            Kind::Ack => {
                self.requesters.on_ack(cx, *message);
                if packet.requester.slot == SlotId::RECLAIM {
                    self.allocation.on_purged(cx, &mut self.requesters);
                }
            }
            Kind::Handover if cx.config.queue => self.requesters.on_handover(cx, packet),
            Kind::UnlockAck => self.requesters.on_unlock_ack(cx, packet),
            Kind::WriteBackAck => self.requesters.on_write_back_ack(cx, packet),
            Kind::CloseAck => self.requesters.on_close_ack(cx, packet),
            _ => return false,
        }
        true
    }

    /// For the home, which moves entries to the switch and back as one more requester.
    fn for_migration<S: Store>(
        &mut self,
        at: Moment,
        packet: &Packet,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> bool {
        let cx = &mut context!(self, at, store, out);
        match packet.kind {
            // Its unlock must wait for that of the one before, who tells when.
            Kind::Ack if cx.config.queue && line::code_in(packet.arg).is_some() => {}
            Kind::Ack => self.home.on_move_ack(cx, packet),
            Kind::Handover if cx.config.queue => {
                self.requesters.acknowledge_handover(cx, packet);
                self.home.on_move_ack(cx, packet);
            }
            Kind::UnlockAck => self.home.on_move_unlocked(cx, packet),
            _ => return false,
        }
        true
    }

    fn for_cache_agent<S: Store>(
        &mut self,
        at: Moment,
        packet: &Packet,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> bool {
        let cx = &mut context!(self, at, store, out);
        cx.counters.cache_agent_received += 1;
        match packet.kind {
            Kind::Close => self.cache_agent.on_close(cx, packet),
            Kind::ReportAck => self.reporter.on_report_ack(cx, packet),
            kind if kind.is_request() => self.cache_agent.on_request(cx, packet),
            _ => return false,
        }
        true
    }

    fn for_home<S: Store>(
        &mut self,
        at: Moment,
        message: &Message,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> bool {
        let packet = &message.packet;
        let cx = &mut context!(self, at, store, out);
        cx.counters.home_received += 1;
        match packet.kind {
            Kind::Unlock => self.home.on_unlock(cx, packet),
            Kind::WriteBack => self.home.on_write_back(cx, message),
            Kind::Close => self.home.on_close(cx, packet),
            Kind::Demote => self.home.on_demote(cx, packet),
            Kind::Report => self.home.on_report(cx, message),
            Kind::ChunkRequest | Kind::Mark | Kind::Free => self.home.on_call(cx, packet),
            kind if kind.is_request() => self.home.on_request(cx, packet),
            _ => return false,
        }
        true
    }

    fn for_allocator<S: Store>(
        &mut self,
        at: Moment,
        packet: &Packet,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> bool {
        let cx = &mut context!(self, at, store, out);
        let is_ours = packet.requester.node == cx.config.id;
        match (packet.kind, packet.event) {
            (Kind::Free, _) => self.allocation.on_free_request(cx, packet),
            (Kind::HomeReply, Kind::ChunkRequest | Kind::Mark) if is_ours => {
                self.allocation.on_home_reply(cx, &mut self.requesters, packet);
            }
            (Kind::FreeReply, Kind::Free) if is_ours => {
                self.allocation.on_free_reply(cx, &mut self.requesters, packet);
            }
            _ => return false,
        }
        true
    }

    fn for_shadow<S: Store>(
        &mut self,
        at: Moment,
        packet: &Packet,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> bool {
        let cx = &mut context!(self, at, store, out);
        match (&mut self.shadow, packet.kind) {
            (Some(shadow), Kind::AddNotice) => shadow.on_add_notice(cx, packet),
            (Some(shadow), Kind::HotReport) => shadow.on_heat(cx, packet),
            _ => return false,
        }
        true
    }
}
