//! Packets under way.

use node::Message;

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
}

/// The network between all places.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    under_way: Vec<Message>,
    put_away: Vec<Message>,
    /// What happened.
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) delayed: u64,
}

impl Network {
    pub(super) fn send(&mut self, message: Message) {
        self.under_way.push(message);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.put_away.is_empty()
    }

    /// The next packet to arrive, if one does.
    pub(super) fn deliver(&mut self, random: &mut Random, faults: Faults) -> Option<Message> {
        if !self.put_away.is_empty() && (self.under_way.is_empty() || random.per_mille(15)) {
            let message = self.put_away.swap_remove(random.below(self.put_away.len()));
            return Some(message);
        }
        if self.under_way.is_empty() {
            return None;
        }
        let next = if random.per_mille(faults.reorder) { random.below(self.under_way.len()) } else { 0 };
        if random.per_mille(faults.duplicate) {
            self.duplicated += 1;
            let copy = self.under_way[next];
            if random.per_mille(500) { self.put_away.push(copy) } else { self.under_way.push(copy) }
        }
        let message = self.under_way.remove(next);
        if random.per_mille(faults.lose) {
            self.lost += 1;
            return None;
        }
        if random.per_mille(faults.delay) {
            self.delayed += 1;
            self.put_away.push(message);
            return None;
        }
        Some(message)
    }
}
