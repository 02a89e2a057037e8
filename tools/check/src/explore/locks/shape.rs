//! Packets in flight as numbers: what they say is interned, the freshness of the data that they carry stands beside it.

use node::{DataRef, LockMessage};
use switch::locks::Resubmit;
use wire::{Copyset, GlobalAddr, LockKind, LockPacket, Mode, NodeId, Status};

use super::Regions;
use crate::explore::engine::{Packets, lock_end};
use crate::explore::hashing::Interner;
use crate::explore::world::Item;

/// A packet; and of a MOVE between its passes, whether it is approved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Shape {
    pub(super) packet: LockPacket,
    pub(super) approved: Option<bool>,
}

/// The contents of a region: as they were before the last release, and as that left them.
pub(super) const STALE: u64 = 0;
pub(super) const LATEST: u64 = 1;

/// Items: shape (24 bits), contents (8: none, stale, latest).
pub(super) struct Shapes {
    known: Interner<Shape>,
}

/// The scope's locks by number. The first region of a memory is nobody's.
pub(super) fn lock_at(lock: u8) -> GlobalAddr {
    GlobalAddr::new(NodeId(0), 4096 + 64 * u64::from(lock))
}

/// Which of the scope's locks this is.
pub(super) fn lock_number(lock: GlobalAddr) -> u8 {
    u8::try_from(lock.offset().saturating_sub(4096) / 64).expect("there are few locks")
}

/// What is refused by its number, and whoever is asked to keep an entry. What other packets say of a number is left from those,
/// and nobody reads it. (A FORWARD is refused if it is about a region of another length. Here regions have one.)
const fn is_numbered(kind: LockKind) -> bool {
    is_request(kind) || matches!(kind, LockKind::Install | LockKind::Installed)
}

/// Packets whose number is one of a node's requests for a lock.
pub(super) const fn is_request(kind: LockKind) -> bool {
    matches!(kind, LockKind::Acquire | LockKind::Serve | LockKind::Lend | LockKind::Refused | LockKind::Free)
}

impl Shapes {
    pub(super) fn new() -> Self {
        Self { known: Interner::new() }
    }

    pub(super) fn of(&self, item: Item) -> &Shape {
        self.known.get(item >> 8)
    }

    /// The packet with another number.
    pub(super) fn renumbered(&mut self, item: Item, number: u32) -> Item {
        let mut shape = *self.of(item);
        shape.packet.number = number;
        self.known.intern(shape).0 << 8 | item & 255
    }

    fn item(&mut self, shape: Shape, data: Option<DataRef>) -> Item {
        let (shape, _) = self.known.intern(shape);
        assert!(shape < 1 << 24, "there are fewer packets than that");
        shape << 8 | data.map_or(0, |data| 1 + u32::from(data.0 == LATEST))
    }

    /// The packet with these contents, if it is about this lock and has any.
    pub(super) fn with_contents(&self, item: Item, lock: u8, contents: u64) -> Item {
        let carries = item & 255 != 0 && self.of(item).packet.lock == lock_at(lock);
        let stands = 1 + u32::from(contents == LATEST);
        if carries { item & !255 | stands } else { item }
    }
}

impl Packets<Regions> for Shapes {
    fn message(&mut self, message: &LockMessage) -> Option<Item> {
        let mut packet = message.packet;
        if !is_numbered(packet.kind) {
            packet.number = 0;
        }
        Some(self.item(Shape { packet, approved: None }, message.data))
    }

    fn resubmit(&mut self, again: &Resubmit) -> Item {
        self.item(Shape { packet: again.packet, approved: Some(again.approved) }, None)
    }

    fn packet(&self, item: Item) -> LockMessage {
        let data = [None, Some(DataRef(STALE)), Some(DataRef(LATEST))][(item & 255) as usize];
        LockMessage { packet: self.of(item).packet, data }
    }

    fn again(&self, item: Item) -> Resubmit {
        let Shape { packet, approved } = *self.of(item);
        Resubmit { packet, approved: approved.expect("it is between two passes") }
    }

    fn to(&self, item: Item) -> Option<NodeId> {
        self.of(item).packet.to.node()
    }

    fn way(&self, item: Item) -> (u16, u16) {
        let place = |end: wire::LockEnd| end.node().map_or(u16::MAX, |node| node.0);
        let packet = &self.of(item).packet;
        (place(packet.from), place(packet.to))
    }

    fn tell(&self, item: Item) -> String {
        let LockMessage { packet, data } = self.packet(item);
        let LockPacket { kind, mode, lock, node, term, from, to, .. } = packet;
        let set = |name: &str, nodes: Copyset| match nodes.is_empty() {
            true => String::new(),
            false => format!(", {name} {nodes:?}"),
        };
        let mut text =
            format!("{kind:?} t{}, {} -> {}: node {}", term.0, lock_end(from), lock_end(to), node.0);
        text += if mode == Mode::Write { " to write" } else { "" };
        if lock.offset() > 4096 {
            text += &format!(" lock {}", lock_number(lock));
        }
        text += &set("nodes", packet.nodes);
        text += &set("waiting", packet.waiting);
        text += &set("writers", packet.writers);
        if let Some(next) = packet.next {
            text += &format!(", next {}", next.0);
        }
        if !packet.queue.is_empty() {
            text += &format!(", queue {:?}", packet.queue);
        }
        for (set, name) in [(packet.once, ", once"), (packet.has_copy, ", has a copy")] {
            text += if set { name } else { "" };
        }
        if packet.status != Status::Granted {
            text += &format!(", {:?}", packet.status);
        }
        if let Some(data) = data {
            text += if data.0 == LATEST { ", latest data" } else { ", old data" };
        }
        match self.of(item).approved {
            Some(true) => text + ", approved",
            Some(false) => text + ", not approved",
            None => text,
        }
    }
}
