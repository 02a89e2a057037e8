//! Sends what may be sent now.
//!
//! What must always hold: a packet follows from its number and the work it belongs to. So a repeated one is the same,
//! but for a READ, and a read of an object, which ask for what is still missing.

use wire::roce::{AtomicEth, Extension, Opcode, Packet, Psn, Reth};
use wire::{Nanos, Rule, Rules};

use super::{Pending, Requester, distance};
use crate::verbs::effect::{Payload, Span};
use crate::verbs::queue_pair::{Context, Health};
use crate::verbs::region::Access;
use crate::verbs::work::{Operation, Remote, Status};

impl Requester {
    /// Sends until the window is full, too many answers are awaited, or nothing is left.
    pub(crate) fn transmit<R: Rules>(&mut self, cx: &mut Context<'_, R>) -> Health {
        while !self.resting && self.next != self.end && self.in_flight() < self.limits.window {
            let index = self.index_of(self.next);
            let pending = self.queue[index];
            let offset = distance(pending.first, self.next);
            let operation = &pending.request.operation;
            if offset == 0 && pending.request.fence && self.outstanding > 0 {
                break;
            }
            let crowded =
                cx.rules.holds(Rule::OutstandingIsLimited) && self.outstanding >= self.limits.outstanding;
            if operation.is_answered() && crowded {
                break;
            }
            let (packet, payload, numbers) = self.make(&pending, offset);
            if let Some(span) = payload
                && !cx.allow(span, Access::LOCAL_READ)
            {
                return self.fail(cx, index, Status::LocalProtection);
            }
            let path = *self.path();
            cx.send(&path, packet, payload.map(Payload::Region));
            self.outstanding += u32::from(operation.is_answered());
            self.next = self.next.plus(numbers);
            if self.next.since(self.sent) > 0 {
                self.sent = self.next;
            }
        }
        if !self.resting {
            if self.in_flight() == 0 {
                self.deadline = Nanos::MAX;
            } else if self.deadline == Nanos::MAX {
                self.deadline = cx.now + self.limits.timeout;
            }
        }
        Health::Fine
    }

    /// The packet with this number: its headers, its payload, and how many numbers it takes.
    fn make(&self, pending: &Pending, offset: u32) -> (Packet, Option<Span>, u32) {
        let psn = pending.first.plus(offset);
        let total = pending.request.operation.len();
        let reth = |remote: Remote, address: u64, length: u32| Reth { address, key: remote.key, length };
        match pending.request.operation {
            Operation::Write { local, remote, immediate } => {
                let location = reth(remote, remote.address, total);
                let (opcode, extension) = match (offset == 0, offset + 1 == pending.packets, immediate) {
                    (true, true, None) => (Opcode::WriteOnly, Extension::Reth(location)),
                    (true, true, Some(data)) => {
                        (Opcode::WriteOnlyImmediate, Extension::RethImmediate(location, data))
                    }
                    (true, false, _) => (Opcode::WriteFirst, Extension::Reth(location)),
                    (false, false, _) => (Opcode::WriteMiddle, Extension::Plain),
                    (false, true, None) => (Opcode::WriteLast, Extension::Plain),
                    (false, true, Some(data)) => (Opcode::WriteLastImmediate, Extension::Immediate(data)),
                };
                self.carry(pending, offset, opcode, extension, local)
            }
            Operation::Send { local, immediate } => {
                let (opcode, extension) = match (offset == 0, offset + 1 == pending.packets, immediate) {
                    (true, true, None) => (Opcode::SendOnly, Extension::Plain),
                    (true, true, Some(data)) => (Opcode::SendOnlyImmediate, Extension::Immediate(data)),
                    (true, false, _) => (Opcode::SendFirst, Extension::Plain),
                    (false, false, _) => (Opcode::SendMiddle, Extension::Plain),
                    (false, true, None) => (Opcode::SendLast, Extension::Plain),
                    (false, true, Some(data)) => (Opcode::SendLastImmediate, Extension::Immediate(data)),
                };
                self.carry(pending, offset, opcode, extension, local)
            }
            Operation::Read { remote, .. } => {
                let end = pending.piece_end(offset, self.limits.read_chunk);
                let from = u64::from(offset) * u64::from(self.mtu().bytes());
                let to = (u64::from(end) * u64::from(self.mtu().bytes())).min(u64::from(total));
                let length = u32::try_from(to - from).expect("a part of a message");
                let location = reth(remote, remote.address.wrapping_add(from), length);
                let packet = self.request(Opcode::ReadRequest, psn, Extension::Reth(location));
                (packet, None, end - offset)
            }
            Operation::CompareSwap { remote, compare, swap, .. } => {
                let word = AtomicEth { address: remote.address, key: remote.key, swap_or_add: swap, compare };
                (self.request(Opcode::CompareSwap, psn, Extension::Atomic(word)), None, 1)
            }
            Operation::FetchAdd { remote, add, .. } => {
                let word =
                    AtomicEth { address: remote.address, key: remote.key, swap_or_add: add, compare: 0 };
                (self.request(Opcode::FetchAdd, psn, Extension::Atomic(word)), None, 1)
            }
            Operation::Atomics { request, .. } => {
                let packet = self.request(Opcode::RaeRequest, psn, Extension::Plain);
                (packet, (request.len > 0).then_some(request), 1)
            }
            Operation::ReadObject { remote, .. } => {
                // The object stays the same; the number says what of the answer is missing.
                let object = reth(remote, remote.address, total);
                let packet = self.request(Opcode::SabreRequest, psn, Extension::Reth(object));
                (packet, None, pending.packets - offset)
            }
        }
    }

    fn request(&self, opcode: Opcode, psn: Psn, extension: Extension) -> Packet {
        Packet { ack_request: true, ..Packet::new(opcode, self.path().peer_queue_pair, psn, extension) }
    }

    /// A packet of a message with its part of the bytes.
    fn carry(
        &self,
        pending: &Pending,
        offset: u32,
        opcode: Opcode,
        extension: Extension,
        local: Span,
    ) -> (Packet, Option<Span>, u32) {
        let mtu = self.mtu();
        let part = mtu.part(local.len, offset);
        let span = local.part(u64::from(offset) * u64::from(mtu.bytes()), part);
        let mut packet = self.request(opcode, pending.first.plus(offset), extension);
        // Every message is acknowledged; inside of one every quarter of a window, so that the window moves on, and
        // the last packet that fits.
        let quarter = (self.limits.window / 4).max(1);
        packet.ack_request = offset + 1 == pending.packets
            || (offset + 1).is_multiple_of(quarter)
            || self.in_flight() + 1 == self.limits.window;
        (packet, (part > 0).then_some(span), 1)
    }
}
