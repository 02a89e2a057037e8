//! What a home answers to calls about regions, by itself.
//!
//! What must always hold: a region begins only in memory of the home's present incarnation.

use std::cell::RefCell;

use nic::regions::{Call, Home, Reply, Shape, serve};
use wire::roce::Key;
use wire::{AllRules, Discipline, GlobalAddr, Incarnation, NodeId, Refusal, Rule, Rules, Without};

const ME: NodeId = NodeId(1);
const BEFORE: Incarnation = Incarnation(4);
const NOW: Incarnation = Incarnation(5);
const SHAPE: Shape = Shape::Words { count: 4 };

/// A home in its fifth incarnation, whose whole memory is a live block of words.
#[derive(Default)]
struct Later {
    begun: Vec<GlobalAddr>,
    looked_at: RefCell<Vec<GlobalAddr>>,
}

impl Home for Later {
    type Region = GlobalAddr;

    fn memory(&self) -> (NodeId, u64) {
        (ME, 1 << 16)
    }

    fn incarnation(&self) -> Incarnation {
        NOW
    }

    fn discipline_of(&self, addr: GlobalAddr) -> Option<Discipline> {
        self.looked_at.borrow_mut().push(addr);
        Some(Discipline::Word)
    }

    fn region_at(&self, addr: GlobalAddr) -> Option<(GlobalAddr, bool)> {
        self.begun.contains(&addr).then_some((addr, true))
    }

    fn first_in(&self, _: GlobalAddr, _: u64) -> Option<GlobalAddr> {
        None
    }

    fn find(&self, addr: GlobalAddr) -> Option<(GlobalAddr, Shape)> {
        self.begun.contains(&addr).then_some((addr, SHAPE))
    }

    fn begin(&mut self, addr: GlobalAddr, _: Shape, _: bool) -> GlobalAddr {
        self.begun.push(addr);
        addr
    }

    fn key_of(&mut self, _: &GlobalAddr) -> Option<Key> {
        Some(Key(7))
    }

    fn end(&mut self, addr: GlobalAddr) -> Option<bool> {
        let at = self.begun.iter().position(|begun| *begun == addr)?;
        self.begun.remove(at);
        Some(true)
    }

    fn write(&mut self, _: &Call, _: &[u64]) -> Result<u64, Refusal> {
        Err(Refusal::Unallocated)
    }
}

/// Node 0 allocated in one incarnation of the home. What becomes of it?
fn begins<R: Rules>(rules: R, home: &mut Later, incarnation: Incarnation) -> Reply {
    let addr = GlobalAddr::new(ME, 4096);
    serve(rules, home, &Call::Begin { addr, incarnation, shape: SHAPE, zeroed: true }, &[])
}

#[test]
fn a_region_begins_in_the_incarnation_in_which_its_memory_was_allocated() {
    let mut home = Later::default();
    assert_eq!(begins(AllRules, &mut home, NOW), Reply::of_region(Key(7), SHAPE));
    assert_eq!(home.begun.len(), 1);
}

/// The block is live, of the same discipline: only the incarnation says that it is another allocation.
#[test]
fn memory_that_died_with_its_home_is_not_looked_for_in_the_next_incarnation() {
    for incarnation in [BEFORE, Incarnation(6)] {
        let mut home = Later::default();
        assert_eq!(begins(AllRules, &mut home, incarnation), Reply::Refused(Refusal::NodeDown));
        assert!(home.begun.is_empty() && home.looked_at.borrow().is_empty());
    }
}

#[test]
fn without_the_rule_it_is_made_of_the_memory_of_somebody_else() {
    let mut home = Later::default();
    let reply = begins(Without(Rule::RegionsBeginInTheirIncarnation), &mut home, BEFORE);
    assert_eq!(reply, Reply::of_region(Key(7), SHAPE));
    assert_eq!(home.begun.len(), 1);
}
