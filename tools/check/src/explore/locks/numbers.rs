//! The numbers of requests, made small: nodes count their requests for a lock without end, and all that anybody asks of two
//! numbers is which of them is the later one, or whether they are one.
//!
//! So the numbers of a node's requests for a lock are replaced by 1, 2 and so on, in their order, as many as somebody still
//! has: a packet, a request that is open, a thread that came after one. Zero stays zero: no request. Where no lock ends,
//! nothing is refused, and all are zero. How many a node has asked becomes the last of them, as far as anybody can
//! tell: the next one is later than all.

use wire::{GlobalAddr, NodeId};

use super::Engine;
use super::shape::is_request;
use crate::explore::world::{Item, World};

/// Numbers that somebody has: whose, for which lock.
pub(super) type Numbers = Vec<(NodeId, GlobalAddr, u32)>;

/// The number as one of so many.
fn rank(used: &Numbers, who: NodeId, lock: GlobalAddr, number: u32) -> u32 {
    let earlier = used.iter().filter(|(node, at, it)| (*node, *at) == (who, lock) && *it <= number);
    u32::try_from(earlier.count()).expect("there are few")
}

impl Engine {
    /// Replaces numbers of requests.
    pub(super) fn make_small(&mut self, world: &mut World) {
        let mut used = Numbers::new();
        if self.scope.ends_locks() {
            for node in 0..self.nodes.len() {
                used.extend_from_slice(&self.facts(world, node).numbers);
            }
            let packets = world.packets.as_slice().iter();
            used.extend(packets.filter_map(|item| self.number_of(*item)));
            used.retain(|(.., number)| *number > 0);
            used.sort_unstable();
            used.dedup();
        }
        for at in 0..world.packets.as_slice().len() {
            let item = world.packets.as_slice()[at];
            let Some((who, lock, number)) = self.number_of(item) else { continue };
            let new = rank(&used, who, lock, number);
            if new != number {
                world.packets.as_mut_slice()[at] = self.packets.renumbered(item, new);
            }
        }
        for node in 0..self.nodes.len() {
            let facts = self.facts(world, node);
            let mut numbers = facts.numbers.iter().chain(&facts.asked);
            if numbers.any(|(who, lock, number)| rank(&used, *who, *lock, *number) != *number) {
                world.nodes[node] = self.with_numbers(node, world.nodes[node], &used);
            }
        }
    }

    fn number_of(&self, item: Item) -> Option<(NodeId, GlobalAddr, u32)> {
        let packet = &self.packets.of(item).packet;
        is_request(packet.kind).then_some((packet.node, packet.lock, packet.number))
    }

    fn with_numbers(&mut self, node: usize, local: u32, used: &Numbers) -> u32 {
        let key = (node, local, used.clone());
        if let Some(number) = self.own.renumbered.get(&key) {
            return *number;
        }
        let mut it = (**self.nodes[node].locals.get(local)).clone();
        it.state.renumber(NodeId(node as u16), |who, lock, number| rank(used, who, lock, number));
        let number = self.intern_local(node, it);
        self.own.renumbered.insert(key, number);
        number
    }
}
