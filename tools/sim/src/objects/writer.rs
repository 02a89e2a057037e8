//! Writing threads on the chip with the objects: each writes objects of its own, one after the other (section 7.2: concurrent
//! reads, exclusive writes).
//!
//! What must always hold: an object's version is odd from before its first block is written until after its last.

use std::collections::VecDeque;

use super::chip::BLOCK;
use super::event::{Event, Want};
use super::memory::Agent;
use super::testbed::Testbed;
use crate::hardware::Picos;

/// Bytes of a first-level cache (Table 2: 32 KB).
const NEAR: u64 = 32 << 10;

/// A writer.
pub(super) struct Writer {
    object: u32,
    /// 0: to take the object; then its blocks; then to give it back.
    step: u32,
    /// The version that the object will have.
    version: u64,
    /// It goes on when it has a block.
    waits: bool,
    /// Which of the object's blocks it has asked for.
    asked: Vec<bool>,
    /// What it owns, the oldest first.
    near: VecDeque<u64>,
}

impl Writer {
    pub(super) fn new(core: u8, blocks: u32) -> Self {
        Self {
            object: core.into(),
            step: 0,
            version: 0,
            waits: false,
            asked: vec![false; blocks as usize],
            near: VecDeque::new(),
        }
    }
}

impl Testbed {
    /// One step, if the writer has the block for it.
    pub(super) fn on_write(&mut self, core: u8) {
        let (now, chip) = (self.now, self.chip);
        let blocks = self.load.method.blocks(self.load.bytes);
        let Writer { object, step, .. } = self.writers[usize::from(core)];
        let first = u64::from(object) * u64::from(blocks);
        let index = if step == 0 || step > blocks { 0 } else { step - 1 };
        self.ask_for(core, index, first);
        let it = &mut self.writers[usize::from(core)];
        it.waits = !self.memory.is_owner(now, core, first + u64::from(index));
        if it.waits {
            return;
        }
        let holds = self.memory.held(first + u64::from(index));
        let mut after = chip.cycles(chip.store);
        if step == 0 {
            if !holds.version.is_multiple_of(2) {
                // A reader has locked it.
                return self.push(now.plus(chip.cycles(5 * chip.turn)), Event::Write { core });
            }
            holds.version += 1;
            it.version = holds.version + 1;
            after = chip.cycles(chip.turn);
        } else if step <= blocks {
            holds.stamp = it.version;
        } else {
            holds.version = it.version;
            after = after.plus(chip.cycles(chip.turn));
            let next = object + u32::from(self.load.writers);
            it.object = if next < self.load.objects { next } else { core.into() };
        }
        it.step = if step > blocks { 0 } else { step + 1 };
        if (1..blocks).contains(&it.step) {
            let until = (it.step + chip.ahead).min(blocks);
            for ahead in it.step..until {
                self.ask_for(core, ahead, first);
            }
        }
        self.push(now.plus(after), Event::Write { core });
    }

    /// Asks for a block that the writer does not own.
    fn ask_for(&mut self, core: u8, index: u32, first: u64) {
        let block = first + u64::from(index);
        let asked = &mut self.writers[usize::from(core)].asked[index as usize];
        if *asked || self.memory.is_owner(self.now, core, block) {
            return;
        }
        *asked = true;
        let at = self.now.plus(self.memory.way(Agent::Core(core), block));
        self.push(at, Event::AtBank { block, want: Want::Own { core, index } });
    }

    pub(super) fn on_owned(&mut self, core: u8, index: u32) {
        let blocks = u64::from(self.load.method.blocks(self.load.bytes));
        let it = &mut self.writers[usize::from(core)];
        it.asked[index as usize] = false;
        it.near.push_back(u64::from(it.object) * blocks + u64::from(index));
        if it.near.len() as u64 > NEAR / BLOCK
            && let Some(oldest) = it.near.pop_front()
        {
            self.memory.disown(core, oldest);
        }
        if it.waits {
            self.on_write(core);
        }
    }
}

/// When writers begin: one after the other, lest all take the same steps at the same time.
pub(super) const fn begins(core: u8) -> Picos {
    Picos(core as u64 * 7_300)
}
