//! Packets under way between the places of the rack.

use node::LockMessage;
use wire::NodeId;

use crate::rack::{Faults, Injected, Random};

/// Where a machine is: `None` is the switch.
pub type Place = Option<NodeId>;

#[derive(Clone, Copy, Debug)]
struct Flight {
    from: Place,
    message: LockMessage,
}

/// The network between all places.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    under_way: Vec<Flight>,
    /// Packets that come back when the matter is long over.
    put_away: Vec<Flight>,
    pub(super) injected: Injected,
}

impl Network {
    pub(super) fn send(&mut self, from: Place, message: LockMessage) {
        self.under_way.push(Flight { from, message });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.put_away.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// The next packet to arrive, if one does.
    pub(super) fn deliver(
        &mut self,
        random: &mut Random,
        faults: Faults,
        in_order: bool,
    ) -> Option<LockMessage> {
        if !self.put_away.is_empty() && (self.under_way.is_empty() || random.per_mille(15)) {
            return Some(self.put_away.swap_remove(random.below(self.put_away.len())).message);
        }
        if self.under_way.is_empty() {
            return None;
        }
        let mut next = random.below(self.under_way.len());
        if in_order && !random.per_mille(faults.reorder) {
            let ends = |flight: &Flight| (flight.from, flight.message.packet.to.node());
            let pair = ends(&self.under_way[next]);
            next = self.under_way.iter().position(|flight| ends(flight) == pair).expect("there is one");
        }
        if random.per_mille(faults.duplicate) {
            self.injected.duplicated += 1;
            let copy = self.under_way[next];
            if random.per_mille(500) { self.put_away.push(copy) } else { self.under_way.push(copy) }
        }
        let flight = self.under_way.remove(next);
        if random.per_mille(faults.lose) {
            self.injected.lost += 1;
            return None;
        }
        if random.per_mille(faults.delay) {
            self.injected.delayed += 1;
            self.put_away.push(flight);
            return None;
        }
        Some(flight.message)
    }
}
