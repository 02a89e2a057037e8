//! What makes two states one: small numbers, and contents that are only latest or stale.

use node::coherence::canonical::Use;
use switch::coherence;

use super::Engine;
use super::machines::{Local, age};
use super::numbers::InFlight;
use super::shape::{seq_of, with_seq};
use crate::explore::world::{Item, NODES, World};

impl Engine {
    pub(super) fn make_small(&mut self, world: &mut World) {
        let mut in_flight = InFlight::new(self.own.knows_parities);
        for node in 0..self.nodes.len() {
            for (requester, seq, how) in &self.facts(world, node).numbers {
                if *how == Use::InFlight {
                    in_flight.add(usize::from(*requester), u64::from(*seq));
                }
            }
        }
        for requester in &self.switch_facts(world).scored {
            in_flight.keep_parity(usize::from(*requester));
        }
        let items = || world.packets.as_slice().iter().chain(world.again.as_slice());
        for item in items() {
            in_flight.add(self.packets.of(*item).packet.requester.index(), seq_of(*item));
            if let Some(before) = self.packets.follows(*item) {
                in_flight.keep_parity(before.index());
            }
        }
        for at in 0..self.nodes.len() {
            world.nodes[at] = self.renumber_node(at, world.nodes[at], &in_flight);
        }
        world.switch = self.renumber_switch(world, &in_flight);
        let small = |item: &mut Item| {
            let requester = self.packets.of(*item).packet.requester.index();
            *item = with_seq(*item, in_flight.small(requester, seq_of(*item), Use::InFlight));
        };
        world.again.as_mut_slice().iter_mut().for_each(small);
        world.packets.as_mut_slice().iter_mut().for_each(small);
    }

    fn renumber_node(&mut self, at: usize, local: u32, in_flight: &InFlight) -> u32 {
        if !small_key(
            (at, local),
            &self.nodes[at].facts[local as usize].numbers,
            in_flight,
            &mut self.own.key,
        ) {
            return local;
        }
        if let Some(number) = self.own.renumbered.get(self.own.key.as_slice()) {
            return *number;
        }
        let mut it = Local::clone(self.nodes[at].locals.get(local));
        it.state.renumber(&in_flight.of());
        let number = self.intern_local(at, it);
        self.own.renumbered.insert(self.own.key.as_slice().into(), number);
        number
    }

    fn renumber_switch(&mut self, world: &World, in_flight: &InFlight) -> u32 {
        let place = (NODES, world.switch);
        if !small_key(place, &self.switch.facts[world.switch as usize].numbers, in_flight, &mut self.own.key)
        {
            return world.switch;
        }
        if let Some(number) = self.own.renumbered.get(self.own.key.as_slice()) {
            return *number;
        }
        let mut it = coherence::canonical::State::clone(self.switch.locals.get(world.switch));
        let to = in_flight.of();
        it.renumber(&|requester, seq| to(requester, seq, Use::Remembered));
        let number = self.intern_switch(it);
        self.own.renumbered.insert(self.own.key.as_slice().into(), number);
        number
    }

    pub(super) fn age(&mut self, at: usize, local: u32, block: u64) -> u32 {
        let key = (at, local, block);
        if let Some(number) = self.own.aged.get(&key) {
            return *number;
        }
        let it = age(self.nodes[at].locals.get(local), block);
        let number = self.intern_local(at, it);
        self.own.aged.insert(key, number);
        number
    }
}

/// Makes the key of a place's state and its small numbers; false if those are what it has.
fn small_key(
    (place, local): (usize, u32),
    numbers: &[(u16, u8, Use)],
    in_flight: &InFlight,
    key: &mut Vec<u8>,
) -> bool {
    key.clear();
    key.push(place as u8);
    key.extend_from_slice(&local.to_le_bytes());
    let mut differs = false;
    for (requester, seq, how) in numbers {
        let small = in_flight.small(usize::from(*requester), u64::from(*seq), *how) as u8;
        differs |= small != *seq;
        key.push(small);
    }
    differs
}
