//! One device, and packets made by hand: connected to a peer that does not run. What must always hold: every call leaves
//! the device's invariants in place.
#![allow(dead_code, reason = "each test uses its part")]

use nic::verbs::*;
use wire::roce::*;
use wire::{AllRules, Nanos, NodeId};

use crate::pair::NodeMemory;

pub(crate) const BASE: u64 = 0x1000;
pub(crate) const PEER: NodeId = NodeId(1);
pub(crate) const PEER_QUEUE_PAIR: QpNumber = QpNumber::new(77);
pub(crate) const FIRST: u32 = 0xff_fffe;

/// One device, connected to nobody who runs.
pub(crate) struct Lone {
    pub(crate) device: Device<AllRules>,
    pub(crate) memory: NodeMemory,
    pub(crate) key: Key,
    pub(crate) pair: QpNumber,
    pub(crate) queue: CqNumber,
    pub(crate) now: Nanos,
}

pub(crate) fn lone(receive: impl Fn(&mut ToReceive), send: impl Fn(&mut ToSend)) -> Lone {
    let mut device = Device::new(8);
    let mut memory = NodeMemory::default();
    let region = Region { base: BASE, len: 8192, access: Access::ALL };
    let key = device.register(region).unwrap();
    memory.add(key, region);
    let queue = device.create_completion_queue(64);
    let pair = device.create_queue_pair(queue, queue, Depth { sends: 16, receives: 16 });
    device.init(pair).unwrap();
    let mut to_receive = ToReceive::new(PEER, PEER_QUEUE_PAIR, Mtu::B256, Psn::new(FIRST));
    receive(&mut to_receive);
    device.ready_to_receive(pair, to_receive).unwrap();
    let mut to_send = ToSend { timeout: Nanos(1000), ..ToSend::new(Psn::new(FIRST)) };
    send(&mut to_send);
    device.ready_to_send(pair, to_send).unwrap();
    Lone { device, memory, key, pair, queue, now: Nanos(1) }
}

pub(crate) fn plain() -> Lone {
    lone(|_| {}, |_| {})
}

impl Lone {
    /// A packet whose number is `offset` after the first.
    pub(crate) fn packet(&self, opcode: Opcode, offset: i32, extension: Extension) -> Packet {
        let psn = Psn::new(FIRST.wrapping_add_signed(offset));
        Packet { ack_request: true, ..Packet::new(opcode, self.pair, psn, extension) }
    }

    pub(crate) fn feed_packet(&mut self, packet: &Packet, payload: u32) -> Vec<Effect> {
        let mut out = Vec::new();
        self.device.on_packet(self.now, PEER, packet, payload, &mut self.memory, &mut out);
        self.device.invariants();
        out
    }

    pub(crate) fn feed(
        &mut self,
        opcode: Opcode,
        offset: i32,
        extension: Extension,
        payload: u32,
    ) -> Vec<Effect> {
        let packet = self.packet(opcode, offset, extension);
        self.feed_packet(&packet, payload)
    }

    pub(crate) fn reth(&self, address: u64, length: u32) -> Reth {
        Reth { address, key: self.key, length }
    }

    pub(crate) fn write_only(&mut self, offset: i32, len: u32) -> Vec<Effect> {
        let reth = self.reth(BASE, len);
        self.feed(Opcode::WriteOnly, offset, Extension::Reth(reth), len)
    }

    pub(crate) fn add(&mut self, offset: i32, add: u64) -> Vec<Effect> {
        let word = AtomicEth { address: BASE, key: self.key, swap_or_add: add, compare: 0 };
        self.feed(Opcode::FetchAdd, offset, Extension::Atomic(word), 0)
    }

    pub(crate) fn acknowledge(&mut self, offset: i32, syndrome: Syndrome) -> Vec<Effect> {
        let extension = Extension::Aeth(Aeth { syndrome, messages: 0 });
        self.feed(Opcode::Acknowledge, offset, extension, 0)
    }

    pub(crate) fn post(&mut self, id: u64, operation: Operation) -> Vec<Effect> {
        let mut out = Vec::new();
        let request = WorkRequest::new(WorkId(id), operation);
        self.device.post_send(self.now, self.pair, request, &mut out).unwrap();
        self.device.invariants();
        out
    }

    pub(crate) fn post_write(&mut self, id: u64, len: u32) -> Vec<Effect> {
        let remote = Remote { key: Key(0x101), address: 0 };
        self.post(id, Operation::Write { local: self.span(len), remote, immediate: None })
    }

    pub(crate) fn post_read(&mut self, id: u64, len: u32) -> Vec<Effect> {
        let remote = Remote { key: Key(0x101), address: 0x9000 };
        self.post(id, Operation::Read { local: self.span(len), remote })
    }

    pub(crate) fn span(&self, len: u32) -> Span {
        Span { key: self.key, address: BASE, len }
    }

    pub(crate) fn deadline(&mut self, now: Nanos) -> Vec<Effect> {
        self.now = now;
        let mut out = Vec::new();
        self.device.on_deadline(now, &mut out);
        self.device.invariants();
        out
    }

    /// Called when it wanted to be, if it did, the device does nothing, and wants no more.
    pub(crate) fn nothing_is_due(&mut self) -> bool {
        let due = self.device.next_deadline();
        due == Nanos::MAX || self.deadline(due).is_empty() && self.device.next_deadline() == Nanos::MAX
    }

    pub(crate) fn ended(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.device.poll(self.queue)).map(|completion| completion.id.0).collect()
    }

    pub(crate) fn dropped(&self, why: Drop) -> u64 {
        self.device.counters().dropped[why as usize]
    }
}

/// Opcode and distance from the first number of every packet that is sent.
pub(crate) fn sent(effects: &[Effect]) -> Vec<(Opcode, i32)> {
    let packets = effects.iter().filter_map(|effect| match effect {
        Effect::Send { packet, .. } => Some((packet.opcode, packet.psn.since(Psn::new(FIRST)))),
        _ => None,
    });
    packets.collect()
}

pub(crate) fn syndromes(effects: &[Effect]) -> Vec<Syndrome> {
    let syndromes = effects.iter().filter_map(|effect| match effect {
        Effect::Send { packet, .. } => match packet.extension {
            Extension::Aeth(aeth) | Extension::AethAtomic(aeth, _) => Some(aeth.syndrome),
            _ => None,
        },
        _ => None,
    });
    syndromes.collect()
}

pub(crate) fn placed(effects: &[Effect]) -> Vec<Span> {
    let spans = effects.iter().filter_map(|effect| match effect {
        Effect::Place { at } => Some(*at),
        _ => None,
    });
    spans.collect()
}

pub(crate) fn originals(effects: &[Effect]) -> Vec<u64> {
    let originals = effects.iter().filter_map(|effect| match effect {
        Effect::Send { packet, .. } => match packet.extension {
            Extension::AethAtomic(_, original) => Some(original),
            _ => None,
        },
        _ => None,
    });
    originals.collect()
}

pub(crate) const NAK: Syndrome = Syndrome::Nak(NakCode::SequenceError);
