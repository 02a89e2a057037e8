//! The memory of a store, in slots of sixteen sizes.
//!
//! ```text
//!   free ── give ──> given to a client ── link ──> in a chain ── replace ──> in quarantine ── wake ──> free, for the next use
//!                          └────────────── take back, renew ──────────────────────────────────┘
//! ```
//!
//! What must always hold: each slot that was ever made is in exactly one of these states; units belong to one slot.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sorted::{Map, Set};
use wire::Nanos;
use wire::chains::{Class, EntryVersion, Location};

use super::ClientId;
use crate::words::{Words, put_all, slot};

/// The slots. A slot keeps its size for ever.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    units: u32,
    /// The number of a slot's first use.
    first: EntryVersion,
    /// The first unit that was never given away.
    next: u32,
    free: [Vec<(Location, EntryVersion)>; Class::COUNT],
    given: Map<Location, (ClientId, EntryVersion)>,
    linked: Set<Location>,
    quarantined: VecDeque<(Nanos, Location, EntryVersion)>,
}

impl Slots {
    pub(super) fn new(units: u32, first: EntryVersion) -> Self {
        Self {
            units,
            first,
            next: 1,
            free: Default::default(),
            given: Map::new(),
            linked: Set::new(),
            quarantined: VecDeque::new(),
        }
    }

    /// Gives a client so many slots of a class, if there are; if there is none, a larger one: slots keep their size for ever, and
    /// memory that was used for large values would be of no use to small ones.
    pub(super) fn give(
        &mut self,
        client: ClientId,
        class: Class,
        count: u32,
    ) -> Vec<(Location, EntryVersion)> {
        let mut slots = Vec::new();
        while (slots.len() as u32) < count {
            let mut slot = self.free[usize::from(class.number())].pop().or_else(|| self.make(class));
            if slot.is_none() && slots.is_empty() {
                slot = self.free[usize::from(class.number())..].iter_mut().find_map(Vec::pop);
            }
            let Some(slot) = slot else { break };
            self.given.insert(slot.0, (client, slot.1));
            slots.push(slot);
        }
        slots
    }

    /// A slot of memory that nobody ever had.
    fn make(&mut self, class: Class) -> Option<(Location, EntryVersion)> {
        let end = self.next.checked_add(class.units()).filter(|end| *end <= self.units + 1)?;
        let slot = (Location::new(class, self.next), self.first);
        self.next = end;
        Some(slot)
    }

    pub(super) fn is_given(&self, client: ClientId, at: Location, version: EntryVersion) -> bool {
        self.given.get(&at) == Some(&(client, version))
    }

    /// The slot is in a chain.
    pub(super) fn link(&mut self, at: Location) {
        if self.given.remove(&at).is_some() {
            self.linked.insert(at);
        }
    }

    pub(super) fn is_linked(&self, at: Location) -> bool {
        self.linked.contains(&at)
    }

    /// It is not the tail any more, and is in quarantine until then.
    pub(super) fn quarantine(&mut self, at: Location, version: EntryVersion, until: Nanos) {
        if self.linked.remove(&at) {
            self.quarantined.push_back((until, at, version));
        }
    }

    /// What was in quarantine long enough is free.
    pub(super) fn wake(&mut self, now: Nanos) {
        while let Some((until, at, version)) = self.quarantined.front().copied()
            && until <= now
        {
            self.quarantined.pop_front();
            self.put_back(at, version);
        }
    }

    fn put_back(&mut self, at: Location, version: EntryVersion) {
        self.free[usize::from(at.class().number())].push((at, version.next()));
    }

    pub(super) fn next_waking(&self) -> Nanos {
        self.quarantined.front().map_or(Nanos::MAX, |(until, ..)| *until)
    }

    /// The client goes on with the slot, in another use of it.
    pub(super) fn renew(&mut self, client: ClientId, at: Location) -> EntryVersion {
        let given = self.given.get_mut(&at).expect("it is given");
        debug_assert_eq!(given.0, client);
        given.1 = given.1.next();
        given.1
    }

    /// True if the client has slots that are in no chain.
    pub(super) fn has(&self, client: ClientId) -> bool {
        self.given.values().any(|(owner, _)| *owner == client)
    }

    /// The client is gone, and what it has is in no chain.
    pub(super) fn take_back(&mut self, client: ClientId) {
        let its: Vec<(Location, EntryVersion)> = self
            .given
            .iter()
            .filter(|(_, (owner, _))| *owner == client)
            .map(|(at, (_, version))| (*at, *version))
            .collect();
        for (at, version) in its {
            self.given.remove(&at);
            self.put_back(at, version);
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u64>) {
        let Self { units: _, first: _, next, free, given, linked, quarantined } = self;
        out.push((*next).into());
        for class in free {
            put_all(out, class.iter(), |out, (at, version)| out.push(slot(*at, *version)));
        }
        put_all(out, given.iter(), |out, (at, (client, version))| {
            out.extend([slot(*at, *version), client.0])
        });
        put_all(out, linked.iter(), |out, at| out.push(at.to_bits().into()));
        put_all(out, quarantined.iter(), |out, (until, at, version)| {
            out.extend([until.0, slot(*at, *version)])
        });
    }

    /// Those of a store with so many units.
    pub(super) fn take(words: &mut Words<'_>, units: u32, first: EntryVersion) -> Option<Self> {
        let mut slots = Self::new(units, first);
        slots.next = u32::try_from(words.word()?).ok().filter(|next| (1..=units + 1).contains(next))?;
        for class in &mut slots.free {
            *class = words.all(Words::slot)?;
        }
        slots.given = words.all(|words| {
            let (at, version) = words.slot()?;
            Some((at, (words.client()?, version)))
        })?;
        slots.linked = words.all(Words::location)?;
        slots.quarantined = words.all(|words| {
            let until = words.time()?;
            words.slot().map(|(at, version)| (until, at, version))
        })?;
        Some(slots)
    }

    /// Units that were ever given away, and those that are free now.
    pub(super) fn memory(&self) -> (u32, u32) {
        let free = self.free.iter().flatten().map(|(at, _)| at.class().units()).sum();
        (self.next - 1, free)
    }

    pub(super) fn invariants(&self) {
        let free = self.free.iter().flatten().map(|(at, _)| *at);
        let quarantined = self.quarantined.iter().map(|(_, at, _)| *at);
        let all: Vec<Location> = free
            .chain(quarantined)
            .chain(self.given.keys().copied())
            .chain(self.linked.iter().copied())
            .collect();
        let units: u32 = all.iter().map(|at| at.class().units()).sum();
        let distinct: Set<Location> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len(), "a slot is in two states");
        assert_eq!(units, self.next - 1, "a slot is lost");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_all_memory_is_in_large_slots_a_small_value_gets_one_of_them() {
        let (small, large) = (Class::of_value(1).unwrap(), Class::of_value(1000).unwrap());
        let mut slots = Slots::new(4 * large.units(), EntryVersion(1));
        let client = ClientId(1);
        let given = slots.give(client, large, 9);
        assert_eq!(given.len(), 4);
        assert!(slots.give(client, small, 9).is_empty(), "nothing is free");
        slots.take_back(client);
        let given = slots.give(client, small, 9);
        assert_eq!(given.len(), 1, "one at a time");
        assert_eq!((given[0].0.class(), given[0].1), (large, EntryVersion(2)));
        slots.invariants();
        assert_eq!(slots.give(client, large, 9).len(), 3);
    }
}
