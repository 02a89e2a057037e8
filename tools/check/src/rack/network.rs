//! Packets in flight between the places of a rack, whatever protocol they are of.
//!
//! What must always hold: a packet arrives, or a fault is counted that it fell to.

use std::collections::BTreeMap;

use wire::NodeId;

use super::{Counts, Fault, Faults, Random};

/// Where a machine is: `None` is the switch.
pub type Place = Option<NodeId>;

/// Which packet comes next, where no fault has it otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The oldest of all.
    Oldest,
    /// The oldest between any two places.
    OfEachPair,
    /// Any.
    None,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    from: Place,
    to: Place,
    /// Where what it carries is kept, while the order of packets changes.
    at: usize,
}

/// The network between all places.
#[derive(Clone, Debug)]
pub(super) struct Network<M> {
    in_flight: Vec<Flight>,
    put_away: Vec<Flight>,
    /// What flights carry, and places without a flight.
    messages: Vec<M>,
    unused: Vec<usize>,
    /// Who cannot reach whom, for how many deliveries more.
    cut: BTreeMap<(Place, Place), u32>,
}

impl<M> Default for Network<M> {
    fn default() -> Self {
        let (in_flight, put_away) = (Vec::new(), Vec::new());
        Self { in_flight, put_away, messages: Vec::new(), unused: Vec::new(), cut: BTreeMap::new() }
    }
}

impl<M: Copy> Network<M> {
    pub(super) fn send(&mut self, from: Place, to: Place, message: M) {
        let at = self.keep(message);
        self.in_flight.push(Flight { from, to, at });
    }

    fn keep(&mut self, message: M) -> usize {
        match self.unused.pop() {
            Some(at) => {
                self.messages[at] = message;
                at
            }
            None => {
                self.messages.push(message);
                self.messages.len() - 1
            }
        }
    }

    /// A flight is over: where it went to, and what it carried.
    fn end(&mut self, flight: Flight) -> (Place, M) {
        self.unused.push(flight.at);
        (flight.to, self.messages[flight.at])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty() && self.put_away.is_empty()
    }

    /// More is in flight than a few requests.
    pub(super) fn is_crowded(&self) -> bool {
        self.in_flight.len() > 12
    }

    /// All places can reach each other again.
    pub(super) fn heal(&mut self) {
        self.cut.clear();
    }

    /// The next packet to arrive, if one does, and where.
    pub(super) fn deliver(
        &mut self,
        random: &mut Random,
        (order, faults): (Order, Faults),
        nodes: usize,
        counts: &mut Counts,
    ) -> Option<(Place, M)> {
        // The more there are, the sooner one comes back, or most would never come.
        let comes_back = 15 + self.put_away.len() as u32;
        if !self.put_away.is_empty() && (self.in_flight.is_empty() || random.per_mille(comes_back)) {
            let flight = self.put_away.swap_remove(random.below(self.put_away.len()));
            return Some(self.end(flight));
        }
        if self.in_flight.is_empty() {
            return None;
        }
        let next = self.next(random, order, faults.reorder, counts);
        if random.per_mille(faults.duplicate) {
            counts.note(Fault::Duplicated);
            let flight = self.in_flight[next];
            let copy = Flight { at: self.keep(self.messages[flight.at]), ..flight };
            if random.per_mille(500) { self.put_away.push(copy) } else { self.in_flight.push(copy) }
        }
        let flight = self.in_flight.remove(next);
        if random.per_mille(faults.lose) {
            counts.note(Fault::Lost);
            self.end(flight);
            return None;
        }
        if faults.corrupt > 0 && random.per_mille(faults.corrupt) {
            counts.note(Fault::Corrupted);
            self.end(flight);
            return None;
        }
        if faults.partition > 0 && random.per_mille(faults.partition) {
            self.cut_somewhere(random, nodes, counts);
        }
        if !self.cut.is_empty() && self.is_cut(&flight) {
            counts.note(Fault::Unreachable);
            self.end(flight);
            return None;
        }
        if random.per_mille(faults.delay) {
            counts.note(Fault::Delayed);
            self.put_away.push(flight);
            return None;
        }
        Some(self.end(flight))
    }

    fn next(&self, random: &mut Random, order: Order, reorder: u32, counts: &mut Counts) -> usize {
        let all = self.in_flight.len();
        let first_of_pair = |drawn: usize| {
            let Flight { from, to, .. } = self.in_flight[drawn];
            let is_pair = |flight: &Flight| (flight.from, flight.to) == (from, to);
            self.in_flight.iter().position(is_pair).expect("it is one of them")
        };
        let (next, first) = match order {
            Order::Oldest if random.per_mille(reorder) => (random.below(all), 0),
            Order::Oldest => (0, 0),
            Order::OfEachPair => {
                let drawn = random.below(all);
                let first = first_of_pair(drawn);
                (if random.per_mille(reorder) { drawn } else { first }, first)
            }
            Order::None => {
                let drawn = random.below(all);
                (drawn, drawn)
            }
        };
        if next != first {
            counts.note(Fault::Reordered);
        }
        next
    }

    fn cut_somewhere(&mut self, random: &mut Random, nodes: usize, counts: &mut Counts) {
        let mut place = || match random.below(nodes + 1) {
            0 => None,
            node => Some(NodeId((node - 1) as u16)),
        };
        let (from, to) = (place(), place());
        if from != to {
            counts.note(Fault::Partition);
            self.cut.insert((from, to), 20 + random.below(200) as u32);
        }
    }

    fn is_cut(&mut self, flight: &Flight) -> bool {
        self.cut.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
        self.cut.contains_key(&(flight.from, flight.to))
    }
}
