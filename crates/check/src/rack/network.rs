//! Packets under way.

use std::collections::BTreeMap;

use node::Message;
use wire::{Endpoint, NodeId};

use super::Random;

/// How often things go wrong, in a thousand deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// A packet is lost.
    pub lose: u32,
    /// A packet is delivered, and once more at some other time.
    pub duplicate: u32,
    /// The next packet is any of those under way, not the oldest.
    pub reorder: u32,
    /// A packet is put away for long: it comes back when its event is over, if that takes no longer.
    pub delay: u32,
    /// A packet is damaged: whoever gets it sees that, and drops it.
    pub corrupt: u32,
    /// Two places cannot reach each other for a while, in one direction.
    pub partition: u32,
}

/// What went wrong, by kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names are those of the faults")]
pub struct Injected {
    pub lost: u64,
    pub duplicated: u64,
    pub delayed: u64,
    pub corrupted: u64,
    pub unreachable: u64,
    pub partitions: u64,
}

impl Injected {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.delayed += other.delayed;
        self.corrupted += other.corrupted;
        self.unreachable += other.unreachable;
        self.partitions += other.partitions;
    }

    /// All faults. A partition counts once, and so does each packet that it stopped.
    pub fn total(&self) -> u64 {
        let Self { lost, duplicated, delayed, corrupted, unreachable, partitions } = self;
        lost + duplicated + delayed + corrupted + unreachable + partitions
    }
}

/// `None` is the switch.
type Place = Option<NodeId>;

/// The network between all places.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    under_way: Vec<Message>,
    put_away: Vec<Message>,
    /// Who cannot reach whom, for how many deliveries more.
    cut: BTreeMap<(Place, Place), u32>,
    pub(super) injected: Injected,
}

impl Network {
    pub(super) fn send(&mut self, message: Message) {
        self.under_way.push(message);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.put_away.is_empty()
    }

    /// More is under way than a few requests.
    pub(super) fn is_crowded(&self) -> bool {
        self.under_way.len() > 12
    }

    /// All places can reach each other again.
    pub(super) fn heal(&mut self) {
        self.cut.clear();
    }

    /// The next packet to arrive, if one does.
    pub(super) fn deliver(&mut self, random: &mut Random, faults: Faults, nodes: usize) -> Option<Message> {
        if !self.put_away.is_empty() && (self.under_way.is_empty() || random.per_mille(15)) {
            let message = self.put_away.swap_remove(random.below(self.put_away.len()));
            return Some(message);
        }
        if self.under_way.is_empty() {
            return None;
        }
        let next = if random.per_mille(faults.reorder) { random.below(self.under_way.len()) } else { 0 };
        if random.per_mille(faults.duplicate) {
            self.injected.duplicated += 1;
            let copy = self.under_way[next];
            if random.per_mille(500) { self.put_away.push(copy) } else { self.under_way.push(copy) }
        }
        let message = self.under_way.remove(next);
        if random.per_mille(faults.lose) {
            self.injected.lost += 1;
            return None;
        }
        if faults.corrupt > 0 && random.per_mille(faults.corrupt) {
            self.injected.corrupted += 1;
            return None;
        }
        if faults.partition > 0 && random.per_mille(faults.partition) {
            self.cut_somewhere(random, nodes);
        }
        if !self.cut.is_empty() && self.is_cut(&message) {
            self.injected.unreachable += 1;
            return None;
        }
        if random.per_mille(faults.delay) {
            self.injected.delayed += 1;
            self.put_away.push(message);
            return None;
        }
        Some(message)
    }

    fn cut_somewhere(&mut self, random: &mut Random, nodes: usize) {
        let mut place = || match random.below(nodes + 1) {
            0 => None,
            node => Some(NodeId((node - 1) as u16)),
        };
        let (from, to) = (place(), place());
        if from != to {
            self.injected.partitions += 1;
            self.cut.insert((from, to), 20 + random.below(200) as u32);
        }
    }

    fn is_cut(&mut self, message: &Message) -> bool {
        self.cut.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
        let place = |at: Endpoint| at.node();
        self.cut.contains_key(&(place(message.packet.from), place(message.packet.to)))
    }
}
