//! An answer has come: an acknowledgement, a refusal, bytes that were asked for, what words were, or a verdict.
//!
//! What must always hold: an answer acknowledges everything before it that needs no answer of its own. What needs one
//! and did not get it has lost it, and is asked for again.

use wire::roce::{Extension, NakCode, Opcode, Packet, Psn, RnrTimer, Syndrome, Verdict};
use wire::{Rule, Rules};

use super::{Outcome, Requester, distance};
use crate::verbs::counters::Drop;
use crate::verbs::effect::{Effect, Span};
use crate::verbs::queue_pair::{Context, Health};
use crate::verbs::region::Access;
use crate::verbs::work::{Operation, Status};

impl Requester {
    pub(crate) fn on_response<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        payload: u32,
    ) -> Result<Health, Drop> {
        let psn = packet.psn;
        if psn.since(self.unanswered) < 0 {
            return Err(Drop::Stale);
        }
        if psn.since(self.sent) >= 0 {
            return Err(Drop::NeverSent);
        }
        match (packet.opcode, packet.extension) {
            (Opcode::Acknowledge, Extension::Aeth(aeth)) => match aeth.syndrome {
                Syndrome::Ack(_) => Ok(self.on_acknowledge(cx, psn)),
                Syndrome::RnrNak(timer) => self.on_not_ready(cx, psn, timer),
                Syndrome::Nak(NakCode::SequenceError) => Ok(self.on_gap(cx, psn)),
                Syndrome::Nak(NakCode::InvalidRequest) => {
                    Ok(self.on_refusal(cx, psn, Status::RemoteInvalidRequest))
                }
                Syndrome::Nak(NakCode::RemoteAccess) => Ok(self.on_refusal(cx, psn, Status::RemoteAccess)),
                Syndrome::Nak(NakCode::RemoteOperation) => {
                    Ok(self.on_refusal(cx, psn, Status::RemoteOperation))
                }
            },
            (_, Extension::Aeth(aeth) | Extension::AethAtomic(aeth, _))
                if !matches!(aeth.syndrome, Syndrome::Ack(_)) =>
            {
                Err(Drop::BadAnswer)
            }
            (Opcode::AtomicAcknowledge, Extension::AethAtomic(_, original)) => {
                self.on_original(cx, psn, original)
            }
            (Opcode::RaeResponse, _) => self.on_originals(cx, psn, payload),
            (Opcode::SabreResponse, _) => self.on_object(cx, psn, payload),
            (Opcode::SabreValidation, Extension::AethAtomic(_, bits)) => {
                self.on_verdict(cx, psn, Verdict::from_wire(bits))
            }
            _ => self.on_bytes(cx, packet, payload),
        }
    }

    fn on_acknowledge<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn) -> Health {
        let lost = self.acknowledge(cx, psn);
        if lost {
            self.go_back::<R>(cx);
        }
        self.transmit(cx)
    }

    /// Something before this packet did not arrive: everything from it on is sent again.
    fn on_gap<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn) -> Health {
        self.acknowledge(cx, psn.before());
        self.go_back::<R>(cx);
        self.transmit(cx)
    }

    /// The request met no receive: it is sent again when the peer's time has passed.
    fn on_not_ready<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        psn: Psn,
        timer: RnrTimer,
    ) -> Result<Health, Drop> {
        if self.resting {
            return Err(Drop::Stale);
        }
        let index = self.index_of(psn);
        if !self.queue[index].request.operation.takes_receive() {
            return Err(Drop::BadAnswer);
        }
        if self.acknowledge(cx, psn.before()) {
            // The answers before it are lost: they are fetched first, and this request is refused again.
            self.go_back::<R>(cx);
            return Ok(self.transmit(cx));
        }
        if self.rnr_retries == 0 {
            return Ok(self.fail(cx, 0, Status::RnrRetryExceeded));
        }
        if self.limits.rnr_retries < crate::verbs::ToSend::FOREVER {
            self.rnr_retries -= 1;
        }
        self.rewind();
        self.resting = true;
        self.deadline = cx.now + timer.span();
        Ok(Health::Fine)
    }

    /// The responder has refused for good, and executes nothing any more.
    fn on_refusal<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn, status: Status) -> Health {
        self.acknowledge(cx, psn.before());
        // Work before it whose answer is lost cannot be repeated: it is flushed.
        let index = self.index_of(psn);
        self.fail(cx, index, status)
    }

    /// Bytes of a READ.
    fn on_bytes<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        payload: u32,
    ) -> Result<Health, Drop> {
        let psn = packet.psn;
        let index = self.index_of(psn);
        let pending = self.queue[index];
        let Operation::Read { local, .. } = pending.request.operation else { return Err(Drop::BadAnswer) };
        let offset = distance(pending.first, psn);
        let end = pending.piece_end(offset, self.limits.read_chunk);
        let ends = matches!(packet.opcode, Opcode::ReadResponseLast | Opcode::ReadResponseOnly);
        if payload != self.mtu().part(local.len, offset) || ends != (offset + 1 == end) {
            return Err(Drop::BadAnswer);
        }
        if !self.is_turn(cx, psn, index) {
            return self.ask_again(cx);
        }
        let at = local.part(u64::from(offset) * u64::from(self.mtu().bytes()), payload);
        if !place(cx, at) {
            return Ok(self.fail(cx, 0, Status::LocalProtection));
        }
        self.advance(cx, psn);
        if offset + 1 == pending.packets {
            self.complete_front(cx, Outcome::Done);
        }
        Ok(self.transmit(cx))
    }

    /// What words were before a batch of atomics.
    fn on_originals<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        psn: Psn,
        payload: u32,
    ) -> Result<Health, Drop> {
        let index = self.index_of(psn);
        let Operation::Atomics { answer, .. } = self.queue[index].request.operation else {
            return Err(Drop::BadAnswer);
        };
        if payload != answer.len {
            return Err(Drop::BadAnswer);
        }
        if !self.is_turn(cx, psn, index) {
            return self.ask_again(cx);
        }
        if !place(cx, answer) {
            return Ok(self.fail(cx, 0, Status::LocalProtection));
        }
        self.advance(cx, psn);
        self.complete_front(cx, Outcome::Done);
        Ok(self.transmit(cx))
    }

    /// A part of an object's data.
    fn on_object<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        psn: Psn,
        payload: u32,
    ) -> Result<Health, Drop> {
        let index = self.index_of(psn);
        let pending = self.queue[index];
        let Operation::ReadObject { local, .. } = pending.request.operation else {
            return Err(Drop::BadAnswer);
        };
        let offset = distance(pending.first, psn);
        if offset + 1 == pending.packets || payload != self.mtu().part(local.len, offset) {
            return Err(Drop::BadAnswer);
        }
        if !self.is_turn(cx, psn, index) {
            return self.ask_again(cx);
        }
        if !place(cx, local.part(u64::from(offset) * u64::from(self.mtu().bytes()), payload)) {
            return Ok(self.fail(cx, 0, Status::LocalProtection));
        }
        self.advance(cx, psn);
        Ok(self.transmit(cx))
    }

    /// Whether an object was whole. If it was torn, there are no data before the verdict.
    fn on_verdict<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        psn: Psn,
        verdict: Verdict,
    ) -> Result<Health, Drop> {
        let index = self.index_of(psn);
        let pending = self.queue[index];
        let is_last = distance(pending.first, psn) + 1 == pending.packets;
        if !matches!(pending.request.operation, Operation::ReadObject { .. }) || !is_last {
            return Err(Drop::BadAnswer);
        }
        let is_turn = match verdict {
            Verdict::Whole(_) => self.is_turn(cx, psn, index),
            Verdict::Torn | Verdict::Gone => !self.acknowledge(cx, pending.first.before()),
        };
        if !is_turn {
            return self.ask_again(cx);
        }
        self.advance(cx, psn);
        self.complete_front(cx, Outcome::Verdict(verdict));
        Ok(self.transmit(cx))
    }

    /// What a word was before an atomic.
    fn on_original<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        psn: Psn,
        original: u64,
    ) -> Result<Health, Drop> {
        let index = self.index_of(psn);
        let (Operation::CompareSwap { result, .. } | Operation::FetchAdd { result, .. }) =
            self.queue[index].request.operation
        else {
            return Err(Drop::BadAnswer);
        };
        if !self.is_turn(cx, psn, index) {
            return self.ask_again(cx);
        }
        if let Some(at) = result {
            if at.len != 8 || !cx.allow(at, Access::LOCAL_WRITE) {
                return Ok(self.fail(cx, 0, Status::LocalProtection));
            }
            cx.out.push(Effect::Store { at, value: original });
        }
        self.advance(cx, psn);
        self.complete_front(cx, Outcome::Original(original));
        Ok(self.transmit(cx))
    }

    /// An answer that brings something is taken if everything before it is answered.
    fn is_turn<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn, index: usize) -> bool {
        let skips = !cx.rules.holds(Rule::ResponsesComeInTurn) && index == 0;
        psn == self.unanswered || skips || !self.acknowledge(cx, psn.before())
    }

    /// An answer came whose turn it is not: the one before it is lost, or late.
    fn ask_again<R: Rules>(&mut self, cx: &mut Context<'_, R>) -> Result<Health, Drop> {
        if self.went_back {
            return Err(Drop::OutOfOrder);
        }
        self.go_back::<R>(cx);
        Ok(self.transmit(cx))
    }

    /// Everything up to this packet is executed. Completes what needs no answer of its own; true if there is something
    /// that does, and has not got it.
    fn acknowledge<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn) -> bool {
        while psn.since(self.unanswered) >= 0 {
            let Some(front) = self.queue.front() else { return false };
            if front.request.operation.is_answered() && cx.rules.holds(Rule::AnswersAreAwaited) {
                return true;
            }
            let last = front.first.plus(front.packets - 1);
            if psn.since(last) < 0 {
                self.advance(cx, psn);
                return false;
            }
            self.advance(cx, last);
            self.complete_front(cx, Outcome::Done);
        }
        false
    }

    /// Everything up to this packet is answered: that is progress.
    fn advance<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn) {
        // A READ that was requested before going back, and not after it, does not count as outstanding.
        let in_flight = self.next.since(psn) > 0;
        self.unanswered = psn.plus(1);
        if !in_flight {
            self.next = self.unanswered;
        }
        if !(cx.rules.holds(Rule::AnswersAreAwaited) && cx.rules.holds(Rule::ResponsesComeInTurn)) {
            self.outstanding = self.count_outstanding();
        } else if let Some(front) = self.queue.front()
            && front.request.operation.is_answered()
            && in_flight
        {
            let offset = distance(front.first, psn);
            let ends = offset + 1 == front.piece_end(offset, self.limits.read_chunk);
            self.outstanding -= u32::from(ends);
        }
        self.retries = self.limits.retries;
        self.rnr_retries = self.limits.rnr_retries;
        self.went_back = false;
        self.resting = false;
        self.deadline = cx.now + self.limits.timeout;
    }

    /// Goes back to the first unanswered packet, once until something new is heard.
    fn go_back<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        if self.went_back || self.resting || !cx.rules.holds(Rule::PacketsAreRepeated) {
            return;
        }
        self.went_back = true;
        cx.counters.went_back += 1;
        self.rewind();
        self.deadline = cx.now + self.limits.timeout;
    }

    pub(super) fn rewind(&mut self) {
        self.next = self.unanswered;
        self.outstanding = 0;
    }
}

/// Has the payload of this call's packet put here; false if that may not be. Nothing goes anywhere.
fn place<R: Rules>(cx: &mut Context<'_, R>, at: Span) -> bool {
    let may = at.len == 0 || cx.allow(at, Access::LOCAL_WRITE);
    if may && at.len > 0 {
        cx.out.push(Effect::Place { at });
    }
    may
}
