//! A store, as everybody who uses it knows it; and the clients that a process has.
//!
//! What must always hold: each unit is in as many homes' memories as it has copies, at different nodes, and so is each slot; a client is in
//! one thread's hands.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chain::Replica;
use sorted::{Map, Set};
use wire::chain_pair::THREADS;
use wire::chains::{Class, Location, UNITS};
use wire::roce::Key;
use wire::{GlobalAddr, Incarnation, Nanos, NodeId, SwitchEpoch};

use super::Introduction;
use super::session::Session;
use crate::actor::Failure;
use crate::config::Steering;
use crate::memory::regions::Shape;

/// Memory of a store at one node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Home {
    /// Where it is allocated.
    pub addr: GlobalAddr,
    /// What the NIC there calls it.
    pub key: Key,
    /// Which incarnation of the node it is of.
    pub incarnation: Incarnation,
}

/// What a store is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// How long a client's cursor counts.
    pub lease: Nanos,
    /// How long slots stay in quarantine.
    pub quarantine: Nanos,
    /// Units in each home's memory.
    pub each: u32,
    /// Copies of each unit.
    pub copies: u8,
    /// How often other homes have come in the place of dead ones.
    pub generation: u32,
    /// Those homes: the first copy of each part of the units, in their order, then the second one of each.
    pub homes: Vec<Home>,
}

impl Setup {
    /// Units behind those of a home, where there is another home: a slot that begins in the last of them lies there, too.
    const MARGIN: u32 = Class::new(Class::COUNT as u8 - 1).expect("the last one").units() - 1;

    /// True if all first copies are in one memory: a switch that steers sends appends elsewhere in one memory only.
    pub(crate) fn may_be_steered(&self) -> bool {
        self.parts() == 1
    }

    /// What a switch that steers is told when it is over. None: it does not steer it.
    pub(crate) fn over(&self, number: u64) -> Option<Introduction> {
        let Home { addr, key, incarnation } = *self.homes.first().filter(|_| self.may_be_steered())?;
        Some(Introduction::Over { memory: addr.home(), of: incarnation.0 as u16, region: key, number })
    }

    /// What it is told when somebody begins to look for tails. Of a store with copies nobody does: its server's backups would not hear of it.
    pub(crate) fn scan(&self, switch: SwitchEpoch, number: u64) -> Option<Introduction> {
        let [Home { addr, key, incarnation }] = self.homes[..] else { return None };
        Some(Introduction::Scan {
            memory: addr.home(),
            of: incarnation.0 as u16,
            region: key,
            switch,
            number,
        })
    }

    /// True if the copies of each part are at different nodes.
    pub(crate) fn is_spread(&self) -> bool {
        (0..self.parts()).all(|part| {
            let nodes: Map<NodeId, ()> = self.copies_of(part).map(|home| (home.addr.home(), ())).collect();
            self.copies == 1 || nodes.len() == usize::from(self.copies)
        })
    }

    /// The part and the copy that a home has.
    pub(crate) fn copy_at(&self, number: usize) -> (usize, Replica) {
        (number % self.parts(), Replica((number / self.parts()) as u8))
    }

    /// The home that has that copy of a part.
    pub(crate) fn number_of(&self, part: usize, replica: Replica) -> usize {
        usize::from(replica.0) * self.parts() + part
    }

    /// Parts of the units, each in one home's memory, or in that of several, which have copies of it.
    pub fn parts(&self) -> usize {
        self.homes.len() / usize::from(self.copies).max(1)
    }

    /// Into how many parts the units of a store are divided: so many nodes have its homes. Where the switch steers, what has a copy at each of them is in
    /// one part, so that it can be steered.
    pub fn parts_of(nodes: usize, copies: usize, is_steered: bool) -> usize {
        if is_steered && copies == nodes { 1 } else { nodes }
    }

    /// Which of so many nodes have a store's homes: the nodes' numbers, in the order of the homes. A part's copies are at the nodes behind its
    /// own, so that each node has as many first copies as others, where it has a part of its own.
    pub fn home_nodes(parts: usize, nodes: usize, copies: usize) -> impl Iterator<Item = usize> {
        (0..copies).flat_map(move |copy| (0..parts).map(move |part| (part + copy) % nodes))
    }

    /// The homes that have copies of what this one has, itself among them.
    pub(crate) fn copies_of(&self, number: usize) -> impl Iterator<Item = &Home> {
        let part = number % self.parts();
        self.homes.iter().skip(part).step_by(self.parts())
    }

    /// True if it is of a part of which a copy is left, if these homes are up.
    pub(crate) fn has_copies(&self, number: usize, is_up: impl Fn(&Home) -> bool) -> bool {
        self.copies_of(number).any(is_up)
    }

    /// True if of some part no copy is left.
    pub(crate) fn is_lost(&self, is_up: impl Fn(&Home) -> bool) -> bool {
        (0..self.parts()).any(|part| !self.has_copies(part, &is_up))
    }

    /// The nodes that have memory of it, or had. Of one that has come back, what it has anew is of another life than what is still to be
    /// replaced.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, Incarnation)> + use<> {
        let nodes: Set<(NodeId, Incarnation)> =
            self.homes.iter().map(|home| (home.addr.home(), home.incarnation)).collect();
        nodes.into_iter()
    }

    /// What is to be allocated at a home: that with this part of so many.
    pub fn shape(each: u32, number: usize, homes: usize) -> Shape {
        let first = number as u32 * each + 1;
        let margin = if number + 1 < homes { Self::MARGIN } else { 0 };
        Shape::Chain { first, units: each + margin }
    }

    /// The units of a part, and those behind it that are in the same memory.
    pub(crate) fn units_of(each: u32, part: usize, parts: usize) -> Range<u32> {
        let Shape::Chain { first, units } = Self::shape(each, part, parts) else {
            unreachable!("that is what it is made of")
        };
        first..first + units
    }

    /// Units that all homes have together. None: there are not so many numbers.
    pub fn units(each: u32, homes: usize) -> Option<u32> {
        let all = u64::from(each) * homes as u64 + u64::from(Self::MARGIN);
        (all < u64::from(UNITS) && each > 0 && homes > 0).then(|| each * homes as u32)
    }

    /// The home of a copy of a slot, and how many of its bytes may be read; none if it is in no memory.
    pub(super) fn home_of(&self, at: Location, replica: Replica) -> Option<(usize, u32)> {
        let (part, parts) = (((at.unit() - 1) / self.each) as usize, self.parts());
        if part >= parts || replica.0 >= self.copies {
            return None;
        }
        let left = u64::from(Self::units_of(self.each, part, parts).end - at.unit()) * wire::chains::UNIT;
        Some((self.number_of(part, replica), at.class().bytes().min(left) as u32))
    }
}

/// A store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    /// What it is called; the home of this address has the metadata server, as long as that lives.
    pub addr: GlobalAddr,
    /// Which incarnation of that node.
    pub incarnation: Incarnation,
    /// The memory that it began with. What the NIC there calls that names one store: where another one begins at the same address, it
    /// gets another name.
    pub name: Home,
    /// The nodes that have its metadata server, in the order in which they take over.
    pub servers: Vec<(NodeId, Incarnation)>,
    /// What it is made of.
    pub setup: Setup,
}

impl Store {
    /// A store that begins. Its metadata server has a backup for each copy more, at nodes that have memory of it: whatever the copies
    /// outlive, the metadata server does, too.
    pub fn new(addr: GlobalAddr, incarnation: Incarnation, setup: Setup) -> Self {
        let (first, nodes): (_, Vec<_>) = (addr.home(), setup.nodes().collect());
        // The nodes behind the primary's, so that stores with servers at different nodes have their backups at different ones.
        let behind = nodes
            .iter()
            .filter(|(node, _)| *node > first)
            .chain(nodes.iter().filter(|(node, _)| *node < first));
        let backups = behind.copied().take(usize::from(setup.copies) - 1);
        let servers = [(first, incarnation)].into_iter().chain(backups).collect();
        Self { addr, incarnation, name: setup.homes[0], servers, setup }
    }

    /// The same store, of another generation.
    pub(crate) fn with(&self, setup: Setup) -> Self {
        Self { setup, servers: self.servers.clone(), ..*self }
    }

    /// Which of its servers a node is.
    pub(crate) fn place(&self, node: NodeId, incarnation: Incarnation) -> Option<usize> {
        self.servers.iter().position(|server| *server == (node, incarnation))
    }

    /// True if that is the same store, maybe of another generation.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.addr, self.incarnation, self.name) == (other.addr, other.incarnation, other.name)
    }

    /// The one that leads, or is about to: the first one that is in the rack.
    pub(crate) fn server(&self, incarnation_of: impl Fn(NodeId) -> Option<Incarnation>) -> Option<NodeId> {
        let is_up = |(node, its): &&(NodeId, Incarnation)| incarnation_of(*node) == Some(*its);
        self.servers.iter().find(is_up).map(|(node, _)| *node)
    }
}

#[derive(Default)]
struct StoreState {
    idle: Map<GlobalAddr, Vec<Session>>,
    /// Numbers of threads that nobody has.
    free: Vec<u16>,
    next: u16,
}

/// The clients of a node that no thread has in its hands, and those numbers that clients can have.
#[derive(Default)]
pub(crate) struct Pools(Mutex<StoreState>);

impl Pools {
    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a client's queue pairs.
    pub(crate) fn thread(&self) -> Result<u16, Failure> {
        let mut state = self.state();
        match state.free.pop() {
            Some(thread) => Ok(thread),
            None if state.next < THREADS => {
                state.next += 1;
                Ok(state.next - 1)
            }
            None => Err(Failure::NoSlot),
        }
    }

    /// Nobody has that number any more.
    pub(crate) fn give_back(&self, thread: u16) {
        self.state().free.push(thread);
    }

    /// A client of this store: one that knows something already, if there is one.
    pub(crate) fn take(&self, store: &Arc<Store>, steering: Option<Steering>) -> Result<Session, Failure> {
        {
            let mut state = self.state();
            let StoreState { idle, free, .. } = &mut *state;
            let idle = idle.entry(store.addr).or_default();
            // Those of a former store at this address, and those that have failed.
            idle.retain(|session| {
                let counts = session.counts_for(store);
                if !counts {
                    free.push(session.thread());
                }
                counts
            });
            if let Some(session) = idle.pop() {
                return Ok(session);
            }
        }
        Ok(Session::new(Arc::clone(store), self.thread()?, steering))
    }

    /// Gives a client back.
    pub(crate) fn put_back(&self, session: Session) {
        let addr = session.store().addr;
        self.state().idle.entry(addr).or_default().push(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NodeId;

    fn store_of(each: u32, parts: usize, copies: u8) -> Setup {
        let home = |at| Home {
            addr: GlobalAddr::new(NodeId(at as u16), 4096),
            key: Key(1),
            incarnation: Incarnation(0),
        };
        let homes = Setup::home_nodes(parts, parts.max(copies.into()), copies.into()).map(home).collect();
        Setup { lease: Nanos(1), quarantine: Nanos(2), each, copies, generation: 0, homes }
    }

    #[test]
    fn every_slot_lies_in_one_homes_memory_also_at_its_end() {
        let each = 100;
        let setup = store_of(each, 3, 1);
        for class in (0..16).filter_map(Class::new) {
            for unit in 1..=3 * each {
                let (number, bytes) = setup.home_of(Location::new(class, unit), Replica::FIRST).unwrap();
                assert_eq!(number, ((unit - 1) / each) as usize);
                let Shape::Chain { first, units } = Setup::shape(each, number, 3) else { panic!() };
                assert!(unit >= first);
                let end = u64::from(unit - first) * 64 + u64::from(bytes);
                assert!(end <= u64::from(units) * 64, "{class:?} at {unit}");
                assert!(u64::from(bytes) == class.bytes() || number == 2, "only at the end of all memory");
            }
        }
        assert_eq!(setup.home_of(Location::new(Class::new(0).unwrap(), 301), Replica::FIRST), None);
        assert_eq!(Setup::units(each, 3), Some(300));
        assert_eq!(Setup::units(1 << 27, 2), None);
    }

    #[test]
    fn a_metadata_server_has_backups_at_nodes_with_memory_and_the_first_that_is_up_leads() {
        for (server, parts, copies, nodes) in [
            (0, 3, 1, &[0][..]),
            (0, 2, 2, &[0, 1]),
            (1, 3, 2, &[1, 2]),
            (2, 3, 3, &[2, 0, 1]),
            (7, 2, 2, &[7, 0]),
        ] {
            let addr = GlobalAddr::new(NodeId(server), 64);
            let store = Store::new(addr, Incarnation(9), store_of(10, parts, copies));
            let servers: Vec<NodeId> = store.servers.iter().map(|(node, _)| *node).collect();
            assert_eq!(servers, nodes.iter().copied().map(NodeId).collect::<Vec<_>>());
            // The primary is of the incarnation that the store's name says, the others of those that its memories are.
            let up = |down: usize| {
                let its =
                    move |node: NodeId| if node == NodeId(server) { Incarnation(9) } else { Incarnation(0) };
                let servers = servers.clone();
                move |node| (!servers[..down].contains(&node)).then(|| its(node))
            };
            for down in 0..=servers.len() {
                assert_eq!(store.server(up(down)), servers.get(down).copied());
            }
            assert_eq!(
                store.server(|node| Some(Incarnation(u32::from(node == NodeId(server))))),
                servers.get(1).copied()
            );
        }
    }

    #[test]
    fn copies_of_a_slot_are_at_different_nodes_and_a_store_is_lost_with_the_last_copy_of_a_part() {
        for (parts, copies) in [(1, 1), (2, 2), (3, 2), (3, 3), (5, 3), (1, 2), (1, 3)] {
            let (setup, places) = (store_of(10, parts, copies), parts.max(copies.into()));
            assert_eq!(setup.may_be_steered(), parts == 1);
            for unit in 1..=10 * parts as u32 {
                let at = Location::new(Class::new(0).unwrap(), unit);
                let homes = (0..copies).map(|copy| setup.home_of(at, Replica(copy)).unwrap().0);
                let nodes: Vec<NodeId> = homes.clone().map(|home| setup.homes[home].addr.home()).collect();
                let first = (unit - 1) as usize / 10;
                let behind = (0..usize::from(copies)).map(|copy| NodeId(((first + copy) % places) as u16));
                assert_eq!(nodes, behind.collect::<Vec<_>>());
                for home in homes {
                    let its: Vec<NodeId> =
                        setup.copies_of(home).map(|home: &Home| home.addr.home()).collect();
                    assert_eq!(its, nodes);
                }
                assert_eq!(setup.home_of(at, Replica(copies)), None);
            }
            // A node more is down, and another one, behind each other.
            for down in 0..=places {
                let is_up = |home: &Home| usize::from(home.addr.home().0) >= down;
                assert_eq!(setup.is_lost(is_up), down >= usize::from(copies), "{down} of {places} are down");
            }
            assert_eq!(setup.nodes().count(), places);
            // One has died, and has come back, and one copy is made anew there.
            let mut later = setup.clone();
            later.homes[0].incarnation = Incarnation(7);
            assert_eq!(later.nodes().count(), places + usize::from(parts > 1 && copies > 1));
            assert!(later.nodes().any(|its| its == (setup.homes[0].addr.home(), Incarnation(7))));
        }
    }
}
