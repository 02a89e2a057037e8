//! The packets of answers.
//!
//! What must always hold: answers go out in the order of their numbers, but for repeated ones. An answer acknowledges
//! everything before it, so none is owed any more.

use wire::roce::{Aeth, Extension, Opcode, Packet, Psn, Reth, Syndrome};
use wire::{Nanos, Rules};

use super::Responder;
use super::replay::{Answer, Answered};
use crate::verbs::effect::{Payload, Slot, Span};
use crate::verbs::queue_pair::Context;

impl Responder {
    fn aeth(&self, syndrome: Syndrome) -> Aeth {
        Aeth { syndrome, messages: self.messages }
    }

    fn send<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        opcode: Opcode,
        psn: Psn,
        extension: Extension,
        payload: Option<Payload>,
    ) {
        let path = *self.path();
        cx.send(&path, Packet::new(opcode, path.peer_queue_pair, psn, extension), payload);
    }

    /// Everything before this packet is executed, and this is what became of itself.
    pub(super) fn answer<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn, syndrome: Syndrome) {
        self.settled();
        self.send(cx, Opcode::Acknowledge, psn, Extension::Aeth(self.aeth(syndrome)), None);
    }

    /// Everything so far is executed. No credits are kept: a receive that is missing is told by an RNR NAK.
    pub(super) fn acknowledge<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        self.answer(cx, self.expected.before(), Syndrome::NO_CREDITS);
    }

    pub(super) fn settled(&mut self) {
        self.owed = 0;
        self.ack_deadline = Nanos::MAX;
    }

    /// What a word was.
    pub(super) fn answer_atomic<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn, original: u64) {
        let extension = Extension::AethAtomic(self.aeth(Syndrome::NO_CREDITS), original);
        self.send(cx, Opcode::AtomicAcknowledge, psn, extension, None);
    }

    /// The bytes of a READ, in as many packets as they take.
    pub(super) fn answer_read<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn, reth: &Reth) {
        let mtu = self.path().mtu;
        let packets = mtu.packets(reth.length);
        let aeth = Extension::Aeth(self.aeth(Syndrome::NO_CREDITS));
        for packet in 0..packets {
            let (opcode, extension) = match (packet == 0, packet + 1 == packets) {
                (true, true) => (Opcode::ReadResponseOnly, aeth),
                (true, false) => (Opcode::ReadResponseFirst, aeth),
                (false, false) => (Opcode::ReadResponseMiddle, Extension::Plain),
                (false, true) => (Opcode::ReadResponseLast, aeth),
            };
            let len = mtu.part(reth.length, packet);
            let offset = u64::from(packet) * u64::from(mtu.bytes());
            let span = Span { key: reth.key, address: reth.address, len: reth.length }.part(offset, len);
            self.send(cx, opcode, psn.plus(packet), extension, (len > 0).then_some(Payload::Region(span)));
        }
    }

    pub(super) const fn slot(&self, number: u32) -> Slot {
        Slot { queue_pair: self.own, number }
    }

    /// What the words of a batch were.
    pub(super) fn answer_batch<R: Rules>(&mut self, cx: &mut Context<'_, R>, psn: Psn, slot: u32, len: u32) {
        let kept = Payload::Kept { slot: self.slot(slot), offset: 0, len };
        let aeth = Extension::Aeth(self.aeth(Syndrome::NO_CREDITS));
        self.send(cx, Opcode::RaeResponse, psn, aeth, (len > 0).then_some(kept));
    }

    /// An object's data and the verdict, from this of the answer's packets on. Of a torn one only the verdict, or of one that is gone.
    pub(super) fn answer_object<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        answered: &Answered,
        from: u32,
    ) {
        let Answer::Object { len, packets, verdict } = answered.answer else { return };
        let (mtu, slot) = (self.path().mtu, self.slot(answered.slot));
        let last = packets - 1;
        let from = if verdict.version().is_none() { last } else { from };
        for packet in from..last {
            let part = mtu.part(len, packet);
            let kept = Payload::Kept { slot, offset: packet * mtu.bytes(), len: part };
            let payload = (part > 0).then_some(kept);
            self.send(cx, Opcode::SabreResponse, answered.psn.plus(packet), Extension::Plain, payload);
        }
        let extension = Extension::AethAtomic(self.aeth(Syndrome::NO_CREDITS), verdict.to_wire());
        self.send(cx, Opcode::SabreValidation, answered.psn.plus(last), extension, None);
    }
}
