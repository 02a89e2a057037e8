//! A request has come: is it its turn?
//!
//! What must always hold: a request is executed when everything before it was, and never twice. A gap is reported
//! once; the requester's time-out covers the case that the report is lost.

use wire::roce::{NakCode, Packet, Syndrome};
use wire::{Nanos, Rule, Rules};

use super::Responder;
use crate::verbs::counters::Drop;
use crate::verbs::effect::Memory;
use crate::verbs::queue_pair::{Context, Health};

/// Why a request is not executed.
pub(super) enum Refusal {
    /// No receive is posted.
    NotReady,
    /// It never will be.
    Nak(NakCode),
}

impl Responder {
    pub(crate) fn on_request<R: Rules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        payload: u32,
        memory: &mut M,
    ) -> Result<Health, Drop> {
        let ahead = packet.psn.since(self.expected);
        if ahead < 0 {
            self.on_duplicate(cx, packet, payload, memory)?;
            cx.counters.duplicates += 1;
            return Ok(Health::Fine);
        }
        if ahead > 0 && cx.rules.holds(Rule::GapsAreRefused) {
            if !self.asked_again {
                self.asked_again = true;
                cx.counters.refuse(NakCode::SequenceError);
                self.answer(cx, self.expected, Syndrome::Nak(NakCode::SequenceError));
            }
            return Err(Drop::OutOfOrder);
        }
        self.expected = packet.psn;
        match self.execute(cx, packet, payload, memory) {
            Ok(()) => {
                self.asked_again = false;
                Ok(Health::Fine)
            }
            Err(Refusal::NotReady) => {
                // What comes behind it is dropped silently until it comes again.
                self.asked_again = true;
                cx.counters.not_ready += 1;
                let timer = self.limits().rnr_timer;
                self.answer(cx, packet.psn, Syndrome::RnrNak(timer));
                Err(Drop::NotReady)
            }
            Err(Refusal::Nak(code)) => {
                self.refused = Some((packet.psn, code));
                cx.counters.refuse(code);
                self.answer(cx, packet.psn, Syndrome::Nak(code));
                Ok(Health::Broken)
            }
        }
    }

    /// A request has come to a queue pair in error. If that refused one for good, the refusal may have been lost, and
    /// is sent again: the standard leaves the requester to its time-out.
    pub(crate) fn refuse_again<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        _packet: &Packet,
    ) -> Result<Health, Drop> {
        let (psn, code) =
            self.refused.filter(|_| cx.rules.holds(Rule::RefusalsAreRepeated)).ok_or(Drop::WrongState)?;
        self.answer(cx, psn, Syndrome::Nak(code));
        Ok(Health::Fine)
    }

    /// Acknowledgements that were held back are due. Being called early is harmless.
    pub(crate) fn on_deadline<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        if self.owed > 0 && cx.now >= self.ack_deadline {
            self.acknowledge(cx);
        }
    }

    /// The requester wishes to be told how far this has come.
    pub(super) fn owe<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        let (every, delay) = (self.limits().ack_every, self.limits().ack_delay);
        self.owed += 1;
        if self.owed >= every || delay == Nanos::ZERO {
            self.acknowledge(cx);
        } else {
            self.ack_deadline = self.ack_deadline.min(cx.now + delay);
        }
    }
}
