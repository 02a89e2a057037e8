//! What makes two states one: small numbers, sorted packets, contents that are only latest or stale.

use node::canonical::Use;
use switch::flowcc;
use wire::Endpoint;

use super::{Engine, Facts};
use crate::explore::flowcc::machines::{Local, age};
use crate::explore::flowcc::numbers::UnderWay;
use crate::explore::flowcc::shape::{Shapes, seq_of, with_seq};
use crate::explore::flowcc::world::World;
use crate::explore::world::Item;

impl Engine {
    pub(super) fn make_canonical(&mut self, world: &mut World) {
        let mut under_way = UnderWay::new(self.knows_parities);
        let nodes = self.nodes.iter().zip(world.nodes).map(|(place, local)| &place.facts[local as usize]);
        for facts in nodes {
            for (requester, seq, how) in &facts.numbers {
                if *how == Use::UnderWay {
                    under_way.add(usize::from(*requester), u64::from(*seq));
                }
            }
        }
        for requester in &self.switch.facts[world.switch as usize].scored {
            under_way.keep_parity(usize::from(*requester));
        }
        let items = || world.packets.as_slice().iter().chain(world.again.as_slice());
        for item in items() {
            under_way.add(self.shapes.of(*item).packet.requester.index(), seq_of(*item));
            if let Some(before) = self.shapes.follows(*item) {
                under_way.keep_parity(before.index());
            }
        }
        for at in 0..self.size.nodes {
            world.nodes[at] = self.renumber_node(at, world.nodes[at], &under_way);
        }
        world.switch = self.renumber_switch(world.switch, &under_way);
        let small = |item: &mut Item| {
            let requester = self.shapes.of(*item).packet.requester.index();
            *item = with_seq(*item, under_way.small(requester, seq_of(*item), Use::UnderWay));
        };
        world.again.as_mut_slice().iter_mut().for_each(small);
        world.packets.as_mut_slice().iter_mut().for_each(small);
        if self.scope.reorder {
            world.packets.as_mut_slice().sort_unstable();
        } else {
            // Stable: packets between the same two places keep their order.
            let way = |item: &Item| self.shapes.way(*item);
            world.packets.as_mut_slice().sort_by_key(way);
        }
    }

    fn renumber_node(&mut self, at: usize, local: u32, under_way: &UnderWay) -> u32 {
        let place = &self.nodes[at];
        if !small_key(&place.facts[local as usize], local, under_way, &mut self.key) {
            return local;
        }
        if let Some(number) = place.renumbered.get(self.key.as_slice()) {
            return *number;
        }
        let mut it = Local::clone(place.locals.get(local));
        it.state.renumber(&under_way.of());
        let number = self.intern_local(at, it);
        self.nodes[at].renumbered.insert(self.key.as_slice().into(), number);
        number
    }

    fn renumber_switch(&mut self, state: u32, under_way: &UnderWay) -> u32 {
        if !small_key(&self.switch.facts[state as usize], state, under_way, &mut self.key) {
            return state;
        }
        if let Some(number) = self.switch.renumbered.get(self.key.as_slice()) {
            return *number;
        }
        let mut it = flowcc::canonical::State::clone(self.switch.locals.get(state));
        let to = under_way.of();
        it.renumber(&|requester, seq| to(requester, seq, Use::Remembered));
        let number = self.intern_switch(it);
        self.switch.renumbered.insert(self.key.as_slice().into(), number);
        number
    }

    pub(super) fn age(&mut self, at: usize, local: u32, block: u64) -> u32 {
        let key = (local, (at as u64) << 32 | block);
        if let Some(number) = self.aged.get(&key) {
            return *number;
        }
        let it = age(self.nodes[at].locals.get(local), block);
        let number = self.intern_local(at, it);
        self.aged.insert(key, number);
        number
    }
}

/// Makes the key of a local state and its small numbers; false if those are what it has.
fn small_key(facts: &Facts, local: u32, under_way: &UnderWay, key: &mut Vec<u8>) -> bool {
    key.clear();
    key.extend_from_slice(&local.to_le_bytes());
    let mut differs = false;
    for (requester, seq, how) in &facts.numbers {
        let small = under_way.small(usize::from(*requester), u64::from(*seq), *how) as u8;
        differs |= small != *seq;
        key.push(small);
    }
    differs
}

impl Shapes {
    /// From which place to which a packet goes.
    pub(super) fn way(&self, item: Item) -> (u16, u16) {
        let place = |endpoint: Endpoint| endpoint.node().map_or(u16::MAX, |node| node.0);
        let packet = &self.of(item).packet;
        (place(packet.from), place(packet.to))
    }
}
