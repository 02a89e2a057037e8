//! A packet arrives: whether it counts, and which of the node's machines it is for.
//!
//! What must always hold: nothing of another epoch of the switch or of a former incarnation of its requester reaches a machine, and nothing
//! that names a node that there is not. What no machine expects is dropped and counted.

use alloc::vec::Vec;

use switch::coherence::wait_queue;
use wire::{Endpoint, Packet, PacketKind, Rule, Rules, SlotId};

use crate::coherence::allocation::Allocation;
use crate::coherence::cache_agent::CacheAgent;
use crate::coherence::context::Context;
use crate::coherence::counters::Drop;
use crate::coherence::home::HomeAgent;
use crate::coherence::message::{Effect, Message};
use crate::coherence::node::{Node, context};
use crate::coherence::requester::Requesters;
use crate::coherence::shadow::Shadow;
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
        if packet.kind >= PacketKind::Prepare && packet.kind <= PacketKind::Refilled {
            if !self.on_packet_of_copies(at, message, store, out) {
                self.counters.drop(Drop::Nonsense);
            }
            return self.go_on_with_batches(at, store, out);
        }
        let (cx, ours) = (&mut context!(self, at, store, out), packet.requester.node == self.config.id);
        let expected = match (packet.to, packet.requester.slot) {
            // About an event of somebody who waits in the queue behind one of ours, or before it.
            (Endpoint::Requester(_), _) if !ours => self.requesters.on_packet_of_others(cx, packet),
            (Endpoint::Requester(_), SlotId::MIGRATION) => {
                self.requesters.on_packet_of_others(cx, packet)
                    || self.home.on_packet_of_move(cx, &mut self.requesters, packet)
            }
            (Endpoint::Requester(_), slot) => {
                let expected = self.requesters.on_packet(cx, message);
                if slot == SlotId::RECLAIM && packet.kind == PacketKind::Ack {
                    self.allocation.on_purged(cx, &mut self.requesters);
                }
                expected
            }
            (Endpoint::CacheAgent(_), _) => match packet.kind {
                PacketKind::ReportAck => {
                    cx.counters.cache_agent_received += 1;
                    self.reporter.on_report_ack(cx, packet);
                    true
                }
                _ => self.cache_agent.on_packet(cx, packet),
            },
            (Endpoint::HomeAgent(id), _) if id != cx.config.id => {
                self.copied.get_mut(&id).is_some_and(|home| {
                    home.ended.clear();
                    home.on_packet(cx, message)
                })
            }
            (Endpoint::HomeAgent(_), _) => self.home.on_packet(cx, message),
            (Endpoint::Allocator(_), _) => self.allocation.on_packet(cx, &mut self.requesters, packet),
            (Endpoint::Shadow(_), _) => {
                self.shadow.as_mut().is_some_and(|shadow| shadow.on_packet(cx, packet))
            }
            (Endpoint::Switch, _) => false,
        };
        if !expected {
            self.counters.drop(Drop::Nonsense);
        }
        self.go_on_with_batches(at, store, out);
    }

    /// Whether the packet counts. If it is of a later incarnation of its requester than is known, the earlier one is forgotten.
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
        let (nodes, me) = (self.config.nodes, self.config.id);
        let is_here = match packet.to {
            Endpoint::HomeAgent(home) if home != me => {
                self.config.is_copied(home) && self.copies.server(home) == Some(me)
            }
            to => to.node() == Some(me),
        };
        let known = packet.requester.node.index() < nodes
            && packet.tag.home().index() < self.config.memories()
            && packet.copyset.iter().all(|node| node.index() < nodes)
            && is_here;
        if !known {
            return Err(Drop::Nonsense);
        }
        let requester = packet.requester.node;
        let known = self.incarnations[requester.index()];
        if self.rules.holds(Rule::IncarnationsAreFenced) && packet.incarnation < known {
            return Err(Drop::FormerIncarnation);
        }
        if packet.incarnation > known {
            self.incarnations[requester.index()] = packet.incarnation;
            self.cache_agent.forget(&mut context!(self, at, store, out), requester);
            self.home.forget(requester);
            self.copied.values_mut().for_each(|home| home.forget(requester));
            self.allocation.forget(requester);
            self.requesters.forget(requester);
        }
        Ok(())
    }
}

// Each of these is false if nobody expects such a packet.

impl Requesters {
    fn on_packet<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, message: &Message) -> bool {
        let packet = &message.packet;
        match packet.kind {
            PacketKind::Ack => self.on_ack(cx, *message),
            PacketKind::Handover if cx.config.queue => self.on_handover(cx, packet),
            PacketKind::UnlockAck => self.on_unlock_ack(cx, packet),
            PacketKind::WriteBackAck => self.on_write_back_ack(cx, packet),
            PacketKind::CloseAck => self.on_close_ack(cx, packet),
            _ => return self.on_packet_of_others(cx, packet),
        }
        true
    }

    fn on_packet_of_others<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &Packet,
    ) -> bool {
        match packet.kind {
            PacketKind::Follow => self.on_follow(cx, packet),
            PacketKind::HandoverAck => self.on_handover_ack(cx, packet),
            _ => return false,
        }
        true
    }
}

impl CacheAgent {
    fn on_packet<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) -> bool {
        cx.counters.cache_agent_received += 1;
        match packet.kind {
            PacketKind::Close => self.on_close(cx, packet),
            kind if kind.is_request() => self.on_request(cx, packet),
            _ => return false,
        }
        true
    }
}

impl HomeAgent {
    fn on_packet<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, message: &Message) -> bool {
        let packet = &message.packet;
        cx.counters.home_received += 1;
        match packet.kind {
            PacketKind::Unlock => self.on_unlock(cx, packet),
            PacketKind::WriteBack => self.on_write_back(cx, message),
            PacketKind::Close => self.on_close(cx, packet),
            PacketKind::Demote => self.on_demote(cx, packet),
            PacketKind::Report => self.on_report(cx, message),
            PacketKind::ChunkRequest | PacketKind::Mark | PacketKind::Free => self.on_call(cx, packet),
            kind if kind.is_request() => self.on_request(cx, packet),
            _ => return false,
        }
        true
    }

    /// It moves entries to the switch and back as one more requester.
    fn on_packet_of_move<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        packet: &Packet,
    ) -> bool {
        match packet.kind {
            // Its unlock must wait for that of the one before, who tells when.
            PacketKind::Ack if cx.config.queue && wait_queue::code_in(packet.arg).is_some() => {}
            PacketKind::Ack => self.on_move_ack(cx, packet),
            PacketKind::Handover if cx.config.queue => {
                requesters.acknowledge_handover(cx, packet);
                self.on_move_ack(cx, packet);
            }
            PacketKind::UnlockAck => self.on_move_unlocked(cx, packet),
            _ => return false,
        }
        true
    }
}

impl Allocation {
    fn on_packet<S: Store, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        requesters: &mut Requesters,
        packet: &Packet,
    ) -> bool {
        let is_ours = packet.requester.node == cx.config.id;
        match (packet.kind, packet.event) {
            (PacketKind::Free, _) => self.on_free_request(cx, packet),
            (PacketKind::HomeReply, PacketKind::ChunkRequest | PacketKind::Mark) if is_ours => {
                self.on_home_reply(cx, requesters, packet);
            }
            (PacketKind::FreeReply, PacketKind::Free) if is_ours => {
                self.on_free_reply(cx, requesters, packet)
            }
            _ => return false,
        }
        true
    }
}

impl Shadow {
    fn on_packet<S: Store, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, packet: &Packet) -> bool {
        match packet.kind {
            PacketKind::AddNotice => self.on_add_notice(cx, packet),
            PacketKind::HotReport => self.on_heat(cx, packet),
            _ => return false,
        }
        true
    }
}
