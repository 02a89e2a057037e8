//! The testbed: what happens next, and to whom.
//!
//! What must always hold: one load and one seed give one run.

use nic::objects::{Counters, Effect};
use wire::Nanos;

use super::chip::{CORES, Chip, EDGES};
use super::event::{Event, Want};
use super::load::{Load, Where};
use super::memory::{Agent, Busy, Memory, Told};
use super::r2p2::R2p2;
use super::reader::Reader;
use super::report::{ObjectsReport, Tally};
use super::requester::{Line, Rgp};
use super::software::Software;
use super::writer::{Writer, begins};
use crate::hardware::Picos;
use crate::queue::EventQueue;
use crate::system::Random;

/// Two chips, and what runs on them.
pub struct Testbed {
    pub(super) chip: Chip,
    pub(super) software: Software,
    pub(super) load: Load,
    /// Its times are picoseconds here: a cycle is not a whole number of nanoseconds.
    queue: EventQueue<Event>,
    pub(super) now: Picos,
    pub(super) memory: Memory,
    pub(super) r2p2s: Vec<R2p2>,
    pub(super) rgps: Vec<Rgp>,
    pub(super) rcps: Vec<Line>,
    /// Cores of the readers' chip, as they post.
    pub(super) posting: Vec<Line>,
    /// The link between the chips, in each direction.
    pub(super) requests: Line,
    pub(super) replies: Line,
    pub(super) readers: Vec<Reader>,
    pub(super) writers: Vec<Writer>,
    pub(super) tally: Tally,
    pub(super) effects: Vec<Effect>,
    told: Vec<Told>,
    /// When what is counted began.
    since: Picos,
}

impl Testbed {
    /// A testbed on which this runs.
    ///
    /// # Panics
    /// If there are more threads than cores, nobody reads, or writers have no objects.
    pub fn new(chip: Chip, software: Software, load: Load, seed: u64) -> Self {
        assert!(
            (1..=CORES).contains(&load.readers) && load.writers <= CORES,
            "more threads than cores: {load:?}"
        );
        assert!(load.outstanding > 0 && load.bytes > 0, "nothing is read: {load:?}");
        assert!(load.objects >= u32::from(load.writers).max(1), "a writer has objects of its own: {load:?}");
        assert!(
            load.location == Where::Remote || load.writers == 0 && load.outstanding == 1,
            "a core's own: {load:?}"
        );
        let blocks = load.method.blocks(load.bytes);
        let slots = u16::from(load.readers) * u16::from(load.outstanding);
        let mut random = Random::new(seed);
        // By chance: evenly spread beginnings would all be in the same sets of the cache.
        let mut reader = |_| Reader::new(random.bits(), random.below(load.objects.into()) as u32, blocks);
        let mut testbed = Self {
            chip,
            software,
            load,
            queue: EventQueue::new(),
            now: Picos::ZERO,
            memory: Memory::new(chip, u64::from(load.objects) * u64::from(blocks)),
            r2p2s: (0..EDGES).map(|_| R2p2::new(load.method)).collect(),
            rgps: (0..EDGES).map(|_| Rgp::default()).collect(),
            rcps: vec![Line::default(); EDGES.into()],
            posting: vec![Line::default(); CORES.into()],
            requests: Line::default(),
            replies: Line::default(),
            readers: (0..slots).map(&mut reader).collect(),
            writers: (0..load.writers).map(|core| Writer::new(core, blocks)).collect(),
            tally: Tally::default(),
            effects: Vec::new(),
            told: Vec::new(),
            since: Picos::ZERO,
        };
        for slot in 0..slots {
            let at = Picos(random.below(100_000));
            testbed.push(at, Event::Begin { slot });
        }
        for core in 0..load.writers {
            testbed.push(begins(core), Event::Write { core });
        }
        testbed
    }

    /// Runs until so many operations more are over: what happened since the report before.
    pub fn run(&mut self, operations: u64) -> ObjectsReport {
        let until = self.tally.operations + operations;
        while self.tally.operations < until {
            let (at, event) = self.queue.pop().expect("readers never end");
            self.now = Picos(at.0);
            self.tally.events += 1;
            self.handle(event);
        }
        self.report()
    }

    /// What happened since [`Testbed::forget`], or the beginning.
    pub fn report(&self) -> ObjectsReport {
        ObjectsReport::new(&self.tally, self.now.since(self.since), self.counters())
    }

    /// Counts from now on.
    pub fn forget(&mut self) {
        self.tally = Tally::default();
        self.since = self.now;
    }

    /// What the engines have counted since the beginning.
    fn counters(&self) -> Counters {
        self.r2p2s.iter().map(|r2p2| r2p2.engine.counters()).fold(Counters::default(), |sum, one| Counters {
            registered: sum.registered + one.registered,
            whole: sum.whole + one.whole,
            torn: sum.torn + one.torn,
            invalidated: sum.invalidated + one.invalidated,
            written: sum.written + one.written,
            changed: sum.changed + one.changed,
            read_again: sum.read_again + one.read_again,
            full: sum.full + one.full,
            refused: sum.refused + one.refused,
            given_up: sum.given_up + one.given_up,
        })
    }

    pub(super) fn push(&mut self, at: Picos, event: Event) {
        self.queue.push(Nanos(at.0), event);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Begin { slot } => self.on_begin(slot),
            Event::Posted { slot, what } => self.on_posted(slot, what),
            Event::Unroll { edge } => self.on_unroll(edge),
            Event::Arrived { r2p2, packet } => self.on_arrived(r2p2, packet),
            Event::Issue { r2p2 } => self.on_issue(r2p2),
            Event::AtBank { block, want } => self.on_bank(block, want),
            Event::Answer { want: Want::Load { core, index }, holds } => self.on_loaded(core, index, holds),
            Event::Answer { want, holds } => match want.agent() {
                Agent::R2p2(r2p2) => self.on_answer(r2p2, want, holds),
                Agent::Core(core) => unreachable!("core {core} is told that it owns {want:?}"),
            },
            Event::Told { r2p2, block } => self.on_told(r2p2, block),
            Event::Swapped { want, block, way } => self.on_swapped(want, block, way),
            Event::Replied { slot, reply } => self.on_replied(slot, reply),
            Event::Completed { slot } => self.on_completed(slot),
            Event::Used { slot, whole } => self.on_used(slot, whole),
            Event::Owned { core, index } => self.on_owned(core, index),
            Event::Write { core } => self.on_write(core),
        }
    }

    /// A request is at the directory of its block.
    fn on_bank(&mut self, block: u64, want: Want) {
        let mut told = core::mem::take(&mut self.told);
        let (now, memory) = (self.now, &mut self.memory);
        let next = match want {
            Want::Own { core, index } => {
                memory.own(now, core, block, &mut told).map(|at| (at, Event::Owned { core, index }))
            }
            Want::Swap { r2p2, .. } => memory
                .atomic(now, r2p2, block, &mut told)
                .map(|(at, way)| (at, Event::Swapped { want, block, way })),
            _ => memory
                .read(now, want.agent(), block, &mut told)
                .map(|(at, holds)| (at, Event::Answer { want, holds })),
        };
        for Told { r2p2, block, at } in told.drain(..) {
            self.push(at, Event::Told { r2p2, block });
        }
        self.told = told;
        match next {
            Ok((at, event)) => self.push(at, event),
            Err(Busy(until)) => self.push(until, Event::AtBank { block, want }),
        }
    }

    /// A compare-and-swap takes place: a lock, or its end. The answer says what was there.
    fn on_swapped(&mut self, want: Want, block: u64, way: Picos) {
        let holds = self.memory.held(block);
        let before = *holds;
        let is_unlock = matches!(want, Want::Swap { slot: None, .. });
        if is_unlock || holds.version.is_multiple_of(2) {
            holds.version += 1;
        }
        self.push(self.now.plus(way), Event::Answer { want, holds: before });
    }
}
