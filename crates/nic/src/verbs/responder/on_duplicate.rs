//! A request that was executed before has come again: its answer was lost, or the network made a copy of it.
//!
//! What must always hold: nothing but a READ is executed again. A repeated READ reads what is there now; its first
//! answer did not arrive, so nobody can have seen anything else.

use wire::VerbsRules;
use wire::roce::{AtomicEth, Extension, Opcode, Packet, Reth};

use super::Responder;
use crate::verbs::counters::Drop;
use crate::verbs::effect::{Effect, Memory, Span};
use crate::verbs::queue_pair::Context;
use crate::verbs::region::Access;

impl Responder {
    pub(super) fn on_duplicate<R: VerbsRules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        payload: u32,
        memory: &mut M,
    ) -> Result<(), Drop> {
        match packet.extension {
            Extension::Reth(reth) if packet.opcode == Opcode::ReadRequest => {
                self.read_again(cx, packet, &reth)
            }
            Extension::Atomic(word) => self.replay_atomic(cx, packet, &word, memory),
            extension => {
                if let (Extension::Reth(reth), false) = (extension, R::WRITES_ARE_EXECUTED_ONCE) {
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

    fn read_again<R: VerbsRules>(
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

    fn replay_atomic<R: VerbsRules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        word: &AtomicEth,
        memory: &mut M,
    ) -> Result<(), Drop> {
        let original = if R::ATOMICS_ARE_REPLAYED {
            self.replay.recall(packet.psn).ok_or(Drop::NotRemembered)?
        } else {
            self.change_word(cx, packet.opcode, word, memory).map_err(|_| Drop::NotRemembered)?
        };
        self.answer_atomic(cx, packet.psn, original);
        Ok(())
    }
}
