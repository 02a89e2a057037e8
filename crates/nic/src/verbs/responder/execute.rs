//! Executes a request whose turn has come.
//!
//! What must always hold: a message's whole extent is checked before its first byte is placed, and its key again with
//! every packet, because regions may be deregistered in between; whatever does not fit is refused before anything is
//! changed by the packet.

use wire::Rules;
use wire::roce::{AtomicEth, Extension, NakCode, Opcode, Packet, Reth, Verdict};

use super::on_request::Refusal;
use super::replay::{Answer, Answered};
use super::{Message, Responder};
use crate::verbs::effect::{Effect, Memory, Refused, Span};
use crate::verbs::queue_pair::Context;
use crate::verbs::region::Access;
use crate::verbs::work::Status;

const INVALID: Refusal = Refusal::Nak(NakCode::InvalidRequest);
const NO_ACCESS: Refusal = Refusal::Nak(NakCode::RemoteAccess);

/// Bytes of an object's version, before its data.
const VERSION_BYTES: u32 = 8;

fn refuse(why: Refused) -> Refusal {
    Refusal::Nak(why.into())
}

/// Which packet of its message one is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    first: bool,
    last: bool,
}

impl Part {
    const FIRST: Self = Self { first: true, last: false };
    const MIDDLE: Self = Self { first: false, last: false };
    const LAST: Self = Self { first: false, last: true };
    const ONLY: Self = Self { first: true, last: true };
}

impl Responder {
    pub(super) fn execute<R: Rules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        payload: u32,
        memory: &mut M,
    ) -> Result<(), Refusal> {
        let part = match packet.opcode {
            Opcode::SendFirst | Opcode::WriteFirst => Part::FIRST,
            Opcode::SendMiddle | Opcode::WriteMiddle => Part::MIDDLE,
            Opcode::SendLast | Opcode::SendLastImmediate | Opcode::WriteLast | Opcode::WriteLastImmediate => {
                Part::LAST
            }
            _ => Part::ONLY,
        };
        let mtu = self.path().mtu.bytes();
        let fits = match part {
            Part { last: false, .. } => payload == mtu,
            Part { first: false, .. } => (1..=mtu).contains(&payload),
            _ => payload <= mtu,
        };
        // A message is not begun inside of another, and not gone on with before it was begun.
        if !fits || part.first != (self.message == Message::None) {
            return Err(INVALID);
        }
        match (packet.opcode, packet.extension) {
            (Opcode::RaeRequest, _) => return self.change_words(cx, packet, memory),
            (Opcode::SabreRequest, Extension::Reth(reth)) => {
                return self.read_object(cx, packet, &reth, memory);
            }
            (Opcode::ReadRequest, Extension::Reth(reth)) => return self.read(cx, packet, &reth),
            (opcode @ (Opcode::CompareSwap | Opcode::FetchAdd), Extension::Atomic(word)) => {
                let original = self.change_word(cx, opcode, &word, memory)?;
                self.replay.remember(cx.rules, packet.psn, Answer::Word(original));
                self.executed(1, true);
                self.settled();
                self.answer_atomic(cx, packet.psn, original);
                return Ok(());
            }
            (
                Opcode::SendFirst
                | Opcode::SendMiddle
                | Opcode::SendLast
                | Opcode::SendLastImmediate
                | Opcode::SendOnly
                | Opcode::SendOnlyImmediate,
                _,
            ) => self.send_into_receive(cx, packet, payload, part)?,
            _ => self.write(cx, packet, payload, part)?,
        }
        self.executed(1, part.last);
        if packet.ack_request {
            self.owe(cx);
        }
        Ok(())
    }

    fn executed(&mut self, packets: u32, message_ends: bool) {
        self.expected = self.expected.plus(packets);
        self.messages = (self.messages + u32::from(message_ends)) & 0x00ff_ffff;
    }

    fn read<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        reth: &Reth,
    ) -> Result<(), Refusal> {
        if reth.length > self.limits().longest {
            return Err(INVALID);
        }
        let span = Span { key: reth.key, address: reth.address, len: reth.length };
        if reth.length > 0 && !cx.allow(span, Access::REMOTE_READ) {
            return Err(NO_ACCESS);
        }
        self.executed(self.path().mtu.packets(reth.length), true);
        self.settled();
        self.answer_read(cx, packet.psn, reth);
        Ok(())
    }

    /// Changes a word through the driver, and returns what it was.
    pub(super) fn change_word<R: Rules, M: Memory>(
        &self,
        cx: &Context<'_, R>,
        opcode: Opcode,
        word: &AtomicEth,
        memory: &mut M,
    ) -> Result<u64, Refusal> {
        if !word.address.is_multiple_of(8) {
            return Err(INVALID);
        }
        let &AtomicEth { address, key, swap_or_add, compare } = word;
        if !cx.allow(Span { key, address, len: 8 }, Access::REMOTE_ATOMIC) {
            return Err(NO_ACCESS);
        }
        Ok(match opcode {
            Opcode::CompareSwap => memory.compare_swap(key, address, compare, swap_or_add),
            _ => memory.fetch_add(key, address, swap_or_add),
        })
    }

    /// Changes words through the driver, which keeps what they were.
    fn change_words<R: Rules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        memory: &mut M,
    ) -> Result<(), Refusal> {
        let slot = self.replay.next_slot();
        let len = memory.atomics(cx.regions, self.slot(slot)).map_err(refuse)?;
        self.replay.remember(cx.rules, packet.psn, Answer::Batch { len });
        self.executed(1, true);
        self.settled();
        self.answer_batch(cx, packet.psn, slot, len);
        Ok(())
    }

    fn read_object<R: Rules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        reth: &Reth,
        memory: &mut M,
    ) -> Result<(), Refusal> {
        let slot = self.replay.next_slot();
        let verdict = self.snapshot(cx, reth, slot, memory)?;
        let packets = self.path().mtu.packets(reth.length) + 1;
        let answer = Answer::Object { len: reth.length, packets, verdict };
        self.replay.remember(cx.rules, packet.psn, answer);
        self.executed(packets, true);
        self.settled();
        self.answer_object(cx, &Answered { psn: packet.psn, slot, answer }, 0);
        Ok(())
    }

    /// Has the driver keep an object as it is now.
    pub(super) fn snapshot<R: Rules, M: Memory>(
        &self,
        cx: &Context<'_, R>,
        reth: &Reth,
        slot: u32,
        memory: &mut M,
    ) -> Result<Verdict, Refusal> {
        let &Reth { address, key, length } = reth;
        let with_version = length.checked_add(VERSION_BYTES).filter(|_| length <= self.limits().longest);
        let len = with_version.ok_or(INVALID)?;
        if !address.is_multiple_of(u64::from(VERSION_BYTES)) {
            return Err(INVALID);
        }
        if !cx.allow(Span { key, address, len }, Access::REMOTE_READ) {
            return Err(NO_ACCESS);
        }
        memory.snapshot(key, address, length, self.slot(slot)).map_err(refuse)
    }

    fn write<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        payload: u32,
        part: Part,
    ) -> Result<(), Refusal> {
        let (key, address, left, total) = match (packet.extension, self.message) {
            (Extension::Reth(reth) | Extension::RethImmediate(reth, _), Message::None) => {
                (reth.key, reth.address, reth.length, reth.length)
            }
            (_, Message::Write { key, address, left, total }) => (key, address, left, total),
            _ => return Err(INVALID),
        };
        // Neither more nor less than announced.
        let fits = if part.last { payload == left } else { payload < left };
        if !fits || total > self.limits().longest {
            return Err(INVALID);
        }
        let immediate = packet.immediate();
        if immediate.is_some() && self.receives.is_empty() {
            return Err(Refusal::NotReady);
        }
        if left > 0 && !cx.allow(Span { key, address, len: left }, Access::REMOTE_WRITE) {
            return Err(NO_ACCESS);
        }
        if payload > 0 {
            cx.out.push(Effect::Place { at: Span { key, address, len: payload } });
        }
        self.message = if part.last {
            Message::None
        } else {
            let (address, left) = (address.wrapping_add(u64::from(payload)), left - payload);
            Message::Write { key, address, left, total }
        };
        if let (Some(data), Some(_)) = (immediate, self.receives.front()) {
            let receive = self.receives.pop_front().expect("it was looked at");
            self.end_receive(cx, receive, Status::Success, total, Some(data));
        }
        Ok(())
    }

    fn send_into_receive<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        packet: &Packet,
        payload: u32,
        part: Part,
    ) -> Result<(), Refusal> {
        let (receive, placed) = match self.message {
            Message::None => (self.receives.pop_front().ok_or(Refusal::NotReady)?, 0),
            Message::Send { receive, placed } => (receive, placed),
            Message::Write { .. } => return Err(INVALID),
        };
        self.message = Message::None;
        if payload > receive.local.len - placed {
            self.end_receive(cx, receive, Status::LocalLength, 0, None);
            return Err(INVALID);
        }
        let at = receive.local.part(u64::from(placed), payload);
        if payload > 0 {
            if !cx.allow(at, Access::LOCAL_WRITE) {
                self.end_receive(cx, receive, Status::LocalProtection, 0, None);
                return Err(Refusal::Nak(NakCode::RemoteOperation));
            }
            cx.out.push(Effect::Place { at });
        }
        let placed = placed + payload;
        if part.last {
            self.end_receive(cx, receive, Status::Success, placed, packet.immediate());
        } else {
            self.message = Message::Send { receive, placed };
        }
        Ok(())
    }
}
