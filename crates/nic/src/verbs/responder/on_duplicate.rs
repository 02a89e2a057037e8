//! A request that was executed before has come again: its answer was lost, or the network made a copy of it.
//!
//! What must always hold: nothing but a READ is executed again. A repeated READ reads what is there now; its first
//! answer did not arrive, so nobody can have seen anything else. An object is not read again: parts of the first answer may have
//! arrived, and the rest must be of the same version.

use wire::roce::{AtomicEth, Extension, Opcode, Packet, Reth};
use wire::{Rule, Rules};

use super::Responder;
use super::replay::Answer;
use crate::verbs::counters::Drop;
use crate::verbs::effect::{Effect, Memory, Span};
use crate::verbs::queue_pair::Context;
use crate::verbs::region::Access;

impl Responder {
    pub(super) fn on_duplicate<R: Rules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        payload: u32,
        memory: &mut M,
    ) -> Result<(), Drop> {
        match (packet.opcode, packet.extension) {
            (Opcode::ReadRequest, Extension::Reth(reth)) => self.read_again(cx, packet, &reth),
            (_, Extension::Atomic(word)) => self.replay_atomic(cx, packet, &word, memory),
            (Opcode::RaeRequest, _) => self.replay_batch(cx, packet, memory),
            (Opcode::SabreRequest, Extension::Reth(reth)) => self.replay_object(cx, packet, &reth, memory),
            (_, extension) => {
                if let (Extension::Reth(reth), false) =
                    (extension, cx.rules.holds(Rule::WritesAreExecutedOnce))
                {
                    // A mutant.
                    let at = Span { key: reth.key, address: reth.address, len: payload };
                    if payload > 0 && cx.allow(at, Access::REMOTE_WRITE) {
                        cx.out.push(Effect::Place { at });
                    }
                }
                if packet.ack_request {
                    self.owe(cx);
                }
                Ok(())
            }
        }
    }

    fn read_again<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        reth: &Reth,
    ) -> Result<(), Drop> {
        let span = Span { key: reth.key, address: reth.address, len: reth.length };
        let packets = self.path().mtu.packets(reth.length);
        let executed = self.expected.since(packet.psn).unsigned_abs();
        let allowed = reth.length == 0 || cx.allow(span, Access::REMOTE_READ);
        if packets > executed || reth.length > self.limits().longest || !allowed {
            return Err(Drop::NotRemembered);
        }
        self.answer_read(cx, packet.psn, reth);
        Ok(())
    }

    fn replay_atomic<R: Rules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        word: &AtomicEth,
        memory: &mut M,
    ) -> Result<(), Drop> {
        let original = if cx.rules.holds(Rule::AtomicsAreReplayed) {
            let answered = self.replay.recall(packet.psn).ok_or(Drop::NotRemembered)?;
            let Answer::Word(original) = answered.answer else { return Err(Drop::NotRemembered) };
            original
        } else {
            self.change_word(cx, packet.opcode, word, memory).map_err(|_| Drop::NotRemembered)?
        };
        self.answer_atomic(cx, packet.psn, original);
        Ok(())
    }

    fn replay_batch<R: Rules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        memory: &mut M,
    ) -> Result<(), Drop> {
        let answered = *self.replay.recall(packet.psn).ok_or(Drop::NotRemembered)?;
        let Answer::Batch { len } = answered.answer else { return Err(Drop::NotRemembered) };
        if !cx.rules.holds(Rule::BatchesAreReplayed) {
            // A mutant.
            let again = memory.atomics(cx.regions, self.slot(answered.slot));
            again.map_err(|_| Drop::NotRemembered)?;
        }
        self.answer_batch(cx, packet.psn, answered.slot, len);
        Ok(())
    }

    /// Its number says which packets of the answer are missing: those from there on.
    fn replay_object<R: Rules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        reth: &Reth,
        memory: &mut M,
    ) -> Result<(), Drop> {
        let mut answered = *self.replay.recall(packet.psn).ok_or(Drop::NotRemembered)?;
        let Answer::Object { len, verdict, .. } = &mut answered.answer else {
            return Err(Drop::NotRemembered);
        };
        if !cx.rules.holds(Rule::SnapshotsAreKept) && reth.length == *len {
            // A mutant.
            let again = self.snapshot(cx, reth, answered.slot, memory);
            *verdict = again.map_err(|_| Drop::NotRemembered)?;
        }
        let from = packet.psn.since(answered.psn).unsigned_abs();
        self.answer_object(cx, &answered, from);
        Ok(())
    }
}
