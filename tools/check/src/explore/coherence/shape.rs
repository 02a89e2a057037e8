//! Packets in flight as numbers: what they say is interned, their event number and the freshness of the block that
//! they carry stand beside it.

use node::coherence::canonical::canonical_choice;
use node::{DataRef, Message};
use switch::coherence::{Carried, Resubmit, wait_queue};
use wire::{
    BlockTag, Copyset, Endpoint, GlobalStatus, NodeId, Packet, PacketKind, Refusal, RequesterId, Seq, Status,
};

use super::Blocks;
use crate::explore::engine::{Packets, end};
use crate::explore::hashing::Interner;
use crate::explore::world::Item;

/// A packet without its number, and what a resubmitted one carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Shape {
    pub(super) packet: Packet,
    carried: Option<Carried>,
}

/// Event numbers are below this once they are made small.
pub(super) const NUMBERS: u64 = 64;

/// The contents of a block: stale or latest.
pub(super) fn contents(block: u64, latest: bool) -> DataRef {
    DataRef(2 * (block + 1) + u64::from(latest))
}

/// True for the latest contents of any block.
pub(super) fn is_latest(stamp: u64) -> bool {
    stamp & 1 == 1
}

/// What contents become when their block is written elsewhere.
pub(super) fn aged(stamp: u64, block: u64) -> u64 {
    if stamp == contents(block, true).0 { stamp - 1 } else { stamp }
}

pub(super) fn seq_of(item: Item) -> u64 {
    u64::from(item >> 2 & 63)
}

pub(super) fn with_seq(item: Item, seq: u64) -> Item {
    item & !(63 << 2) | (seq as u32) << 2
}

pub(super) struct Shapes {
    known: Interner<Shape>,
    nodes: usize,
    /// Requests wait in a queue.
    queue: bool,
}

impl Shapes {
    pub(super) fn new(nodes: usize, queue: bool) -> Self {
        Self { known: Interner::new(), nodes, queue }
    }

    pub(super) fn of(&self, item: Item) -> &Shape {
        self.known.get(item >> 8)
    }

    fn item(&mut self, packet: Packet, carried: Option<Carried>, data: u32) -> Item {
        assert!(packet.seq.0 < NUMBERS, "numbers are small: {packet:?}");
        let seq = packet.seq.0 as u32;
        let (shape, _) = self.known.intern(Shape { packet: Packet { seq: Seq::NONE, ..packet }, carried });
        assert!(shape < 1 << 24, "there are fewer packets than that");
        shape << 8 | seq << 2 | data
    }

    /// Whom the packet's request follows in a queue: the packet names the parity of an event of that one.
    pub(super) fn follows(&self, item: Item) -> Option<RequesterId> {
        wait_queue::code_in(self.of(item).packet.arg).map(|code| wait_queue::decode(code).0)
    }

    /// The packet after its block was written.
    pub(super) fn aged(&self, item: Item, block: u64) -> Item {
        if item & 3 == 2 && block_of(&self.of(item).packet) == block { item - 1 } else { item }
    }
}

impl Packets<Blocks> for Shapes {
    fn message(&mut self, message: &Message) -> Option<Item> {
        let packet = self.read_fields(&message.packet)?;
        let data = message.data.map_or(0, |data| 1 + u32::from(is_latest(data.0)));
        Some(self.item(packet, None, data))
    }

    fn resubmit(&mut self, again: &Resubmit) -> Item {
        let packet = self.read_fields(&again.packet).expect("requests and unlocks are read");
        self.item(packet, Some(again.carried), 0)
    }

    fn packet(&self, item: Item) -> Message {
        let packet = Packet { seq: Seq(seq_of(item)), ..self.of(item).packet };
        let data = (item & 3 != 0).then(|| contents(block_of(&packet), item & 3 == 2));
        Message { packet, data }
    }

    fn again(&self, item: Item) -> Resubmit {
        let carried = self.of(item).carried.expect("it is between two passes");
        Resubmit { packet: self.packet(item).packet, carried }
    }

    fn to(&self, item: Item) -> Option<NodeId> {
        self.of(item).packet.to.node()
    }

    fn way(&self, item: Item) -> (u16, u16) {
        let place = |endpoint: Endpoint| endpoint.node().map_or(u16::MAX, |node| node.0);
        let packet = &self.of(item).packet;
        (place(packet.from), place(packet.to))
    }

    fn tell(&self, item: Item) -> String {
        let Message { packet, .. } = self.packet(item);
        let Packet { kind, event, requester, seq, from, to, status, global_status, copyset, .. } = packet;
        let of = if kind == event { String::new() } else { format!(" of {event:?}") };
        let flags = [
            (packet.provider, " provider"),
            (packet.in_switch, " in-switch"),
            (packet.repeated, " repeated"),
        ];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        let data = match item & 3 {
            0 => "",
            1 => ", old contents",
            _ => ", latest contents",
        };
        let status = if status.is_granted() { String::new() } else { format!(" {status:?}") };
        format!(
            "{kind:?}{of} #{} of node {} slot {}, {} -> {}: block {}{status} {global_status:?} {copyset:?}{flags}{data}",
            seq.0,
            requester.node.0,
            requester.slot.0,
            end(from),
            end(to),
            block_of(&packet),
        )
    }
}

/// Which of the scope's blocks a packet is about.
fn block_of(packet: &Packet) -> u64 {
    block_number(packet.tag)
}

/// Which of the scope's blocks this is, or whose lock: they are the first ones that an allocator hands out, which
/// leaves the first block of a memory unused.
pub(super) fn block_number(tag: BlockTag) -> u64 {
    (tag.addr().offset() >> super::machines::BLOCK.shift()) - 1
}

impl Shapes {
    /// The packet with only those fields that its receiver reads; `None`: nothing that is explored depends on it.
    fn read_fields(&self, packet: &Packet) -> Option<Packet> {
        let mut it = *packet;
        let request = it.kind.is_request() && !matches!(it.to, Endpoint::CacheAgent(_));
        let chooses = request || it.kind == PacketKind::Follow;
        let choice = if chooses { it.arg } else { it.arg & !u64::from(u32::MAX) };
        it.arg = canonical_choice(choice, self.nodes);
        match it.kind {
            PacketKind::AddNotice | PacketKind::HotReport => return None,
            PacketKind::Ack => {
                it.provider = false;
                // Who has the lock all the same leaves the metadata to whoever stands behind.
                let tells = self.queue && it.status == Status::Refused(Refusal::Outdated);
                if !it.status.is_granted() && !tells {
                    (it.global_status, it.copyset, it.repeated) =
                        (GlobalStatus::Unshared, Copyset::EMPTY, false);
                }
            }
            PacketKind::UnlockAck => {
                let followed = it.provider;
                it = Packet { provider: followed, arg: 0, ..without_metadata(&it) };
            }
            PacketKind::HandoverAck => it = without_metadata(&it),
            PacketKind::WriteBack | PacketKind::WriteBackAck | PacketKind::Close | PacketKind::CloseAck => {
                it = Packet { arg: 0, ..without_metadata(&it) };
            }
            _ => {}
        }
        Some(it)
    }
}

fn without_metadata(packet: &Packet) -> Packet {
    Packet {
        status: Status::Granted,
        provider: false,
        in_switch: false,
        repeated: false,
        global_status: GlobalStatus::Unshared,
        copyset: Copyset::EMPTY,
        ..*packet
    }
}
