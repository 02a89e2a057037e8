//! Reading threads: each begins its next operation when the one before is over, and tries again at once what was torn.
//!
//! What must always hold: an operation is counted when its method says that the object is whole; what the blocks really are of is
//! looked at besides, and counted if the method was wrong.

use super::chip::{BLOCK, Position};
use super::event::{Event, Job, Want};
use super::load::{Choice, Method, Where, Work};
use super::memory::Sample;
use super::testbed::Testbed;
use crate::hardware::Picos;
use crate::system::Random;

/// What a reader waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Locking,
    Reading,
}

/// One operation in flight.
pub(super) struct Reader {
    random: Random,
    object: u32,
    /// The object's first block.
    pub(super) first: u64,
    /// A new operation, and no other attempt.
    is_new: bool,
    phase: Phase,
    since: Picos,
    posted: Picos,
    /// Where its SABRe is.
    pub(super) r2p2: u8,
    /// Replies that are still to come.
    pub(super) left: u32,
    /// When the last of its data is where it belongs.
    pub(super) written: Picos,
    pub(super) verdict: bool,
    pub(super) blocks: Vec<Sample>,
    /// Of its own chip's memory: blocks that it has asked for, and when it has done with those that came.
    asked: u32,
    done: Picos,
}

impl Reader {
    pub(super) fn new(seed: u64, object: u32, blocks: u32) -> Self {
        Self {
            random: Random::new(seed),
            object,
            first: 0,
            is_new: true,
            phase: Phase::Reading,
            since: Picos::ZERO,
            posted: Picos::ZERO,
            r2p2: 0,
            left: 0,
            written: Picos::ZERO,
            verdict: true,
            blocks: vec![Sample::default(); blocks as usize],
            asked: 0,
            done: Picos::ZERO,
        }
    }

    /// Whether its blocks are of several versions.
    fn differs(&self) -> bool {
        let stamp = self.blocks[0].stamp;
        self.blocks.iter().any(|block| block.stamp != stamp)
    }
}

impl Testbed {
    pub(super) fn on_begin(&mut self, slot: u16) {
        let load = self.load;
        let now = self.now;
        let reader = &mut self.readers[usize::from(slot)];
        let mut ready = now;
        if reader.is_new {
            reader.is_new = false;
            reader.object = match load.choice {
                Choice::InTurn => (reader.object + 1) % load.objects,
                Choice::Any => reader.random.below(load.objects.into()) as u32,
            };
            reader.first = u64::from(reader.object) * u64::from(load.method.blocks(load.bytes));
            reader.since = now;
            let is_remote = load.location == Where::Remote;
            let before = self.software.before(&self.chip, load.method, load.work, is_remote);
            self.tally.framework += before.0;
            ready = now.plus(before);
        }
        match load.location {
            Where::Local => self.begin_loads(slot, ready),
            Where::Remote if load.method == Method::LockAndRead => self.attempt(slot, ready, Phase::Locking),
            Where::Remote => self.attempt(slot, ready, Phase::Reading),
        }
    }

    fn attempt(&mut self, slot: u16, ready: Picos, phase: Phase) {
        let left = self.replies_of(phase);
        let reader = &mut self.readers[usize::from(slot)];
        reader.posted = ready;
        reader.phase = phase;
        reader.left = left;
        reader.written = Picos::ZERO;
        self.post(ready, slot, if phase == Phase::Locking { Job::Lock } else { Job::Transfer });
    }

    pub(super) fn on_completed(&mut self, slot: u16) {
        let (now, load, chip) = (self.now, self.load, self.chip);
        let reader = &mut self.readers[usize::from(slot)];
        self.tally.transfer += now.since(reader.posted).0;
        if reader.phase == Phase::Locking {
            if reader.verdict {
                return self.attempt(slot, now, Phase::Reading);
            }
            self.tally.refused += 1;
            return self.on_begin(slot);
        }
        let differs = reader.differs();
        let header = reader.blocks[0];
        let whole = match load.method {
            Method::Read | Method::LockAndRead => true,
            Method::Sabre | Method::WithoutSpeculation => reader.verdict,
            // An odd version is of a writer.
            Method::LineVersions => !differs && header.version == header.stamp,
            Method::Checksum => !differs,
        };
        let is_torn = differs || load.method.is_sabre() && header.version != header.stamp;
        self.tally.torn += u64::from(whole && is_torn);
        if load.method == Method::LockAndRead {
            let block = reader.first;
            self.post(now, slot, Job::Unlock { block });
        }
        let check = self.software.check(&chip, load.method, load.bytes);
        let application = if whole {
            self.software.application(&chip, load.method, load.work, load.bytes)
        } else {
            Picos::ZERO
        };
        self.tally.check += check.0;
        self.tally.application += application.0;
        self.push(now.plus(check).plus(application), Event::Used { slot, whole });
    }

    pub(super) fn on_used(&mut self, slot: u16, whole: bool) {
        if whole {
            let reader = &mut self.readers[usize::from(slot)];
            reader.is_new = true;
            let span = self.now.since(reader.since);
            self.tally.count(span);
        } else {
            self.tally.refused += 1;
        }
        self.on_begin(slot);
    }

    /// A core reads an object of its own chip: a chunk at a time if it strips versions, else as far ahead as it can.
    fn begin_loads(&mut self, slot: u16, ready: Picos) {
        let software = self.software;
        let blocks = self.load.method.blocks(self.load.bytes);
        let (ahead, enter) = match self.load.method {
            Method::LineVersions => (software.chunk, self.chip.cycles(software.enter)),
            _ => (software.window, Picos::ZERO),
        };
        let reader = &mut self.readers[usize::from(slot)];
        reader.posted = ready;
        reader.done = ready.plus(enter);
        reader.left = blocks;
        reader.asked = 0;
        self.ask_ahead(slot, ready, ahead);
    }

    fn ask_ahead(&mut self, slot: u16, at: Picos, count: u32) {
        let core = self.core_of(slot);
        let reader = &mut self.readers[usize::from(slot)];
        let from = reader.asked;
        let to = (from + count).min(reader.blocks.len() as u32);
        reader.asked = to;
        let first = reader.first;
        for index in from..to {
            let block = first + u64::from(index);
            let want = Want::Load { core, index };
            let way = self.chip.way(Position::tile(core), Position::bank(block));
            self.push(at.plus(way), Event::AtBank { block, want });
        }
    }

    /// A block has come to a core that loads it.
    pub(super) fn on_loaded(&mut self, core: u8, index: u32, holds: Sample) {
        let (now, load, software, chip) = (self.now, self.load, self.software, self.chip);
        let slot = u16::from(core) * u16::from(load.outstanding);
        let strips = load.method == Method::LineVersions;
        let work = chip.cycles(if strips { software.strip } else { software.look });
        let reader = &mut self.readers[usize::from(slot)];
        reader.blocks[index as usize] = holds;
        reader.left -= 1;
        reader.done = reader.done.max(now).plus(work);
        let (done, left, asked) = (reader.done, reader.left, reader.asked);
        let came = reader.blocks.len() as u32 - left;
        match (left, strips) {
            (0, _) => {
                // What was stripped is a copy in the first-level cache, which is used then; without versions it was used where it lay.
                let blocks = u64::from(load.bytes).div_ceil(BLOCK);
                let near = if strips && load.work == Work::Lookup { blocks * software.look } else { 0 };
                self.tally.torn += u64::from(self.readers[usize::from(slot)].differs());
                self.tally.check += done.since(self.readers[usize::from(slot)].posted).0;
                self.tally.application += chip.cycles(near).0;
                self.push(done.plus(chip.cycles(near)), Event::Used { slot, whole: true });
            }
            (_, true) if came == asked => self.ask_ahead(slot, done, software.chunk),
            (_, true) => {}
            (_, false) => self.ask_ahead(slot, done, 1),
        }
    }
}
