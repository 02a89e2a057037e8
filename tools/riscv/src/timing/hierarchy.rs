//! L1, L2 and the memory of a node: what an access of its core costs, and what a line costs its engine.
//!
//! The directory is the paper's (section III-C): it knows what the caches of the node have, and a line that the engine has changed is
//! invalid there.
//!
//! What must always hold: a line that was changed by the engine is in no cache of the core.

use super::cache::Cache;
use super::chip::Chip;

use nic::words::LINE;

/// The caches and the memory's channel.
#[derive(Clone, Debug)]
pub(crate) struct Hierarchy {
    chip: Chip,
    first: Cache,
    second: Cache,
    /// When the channel is free again.
    channel: u64,
    accesses: Accesses,
}

/// What a core's accesses found.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Accesses {
    /// All of them.
    pub all: u64,
    /// Those that did not find their line in the first level.
    pub first_missed: u64,
    /// Those that did not find it in the second either.
    pub second_missed: u64,
}

impl Hierarchy {
    pub(crate) fn new(chip: Chip) -> Self {
        Self {
            chip,
            first: Cache::new(chip.first_level / LINE, chip.ways),
            second: Cache::new(chip.second_level / LINE, chip.ways),
            channel: 0,
            accesses: Accesses::default(),
        }
    }

    pub(crate) const fn accesses(&self) -> &Accesses {
        &self.accesses
    }

    /// The core accesses a line: how many cycles it waits.
    #[inline]
    pub(crate) fn access(&mut self, now: u64, line: u64, changes: bool) -> u64 {
        self.accesses.all += 1;
        if self.first.touch(line, changes) {
            return 0;
        }
        self.miss(now, line, changes)
    }

    #[cold]
    fn miss(&mut self, now: u64, line: u64, changes: bool) -> u64 {
        self.accesses.first_missed += 1;
        if let Some(old) = self.first.fill(line, changes) {
            // The second level has what the first had, unless it gave way there: then it goes to the memory.
            if !self.second.touch(old, true) {
                self.occupy(now);
            }
        }
        if self.second.touch(line, false) {
            return self.chip.second_level_cycles;
        }
        self.accesses.second_missed += 1;
        let waits = self.occupy(now);
        if self.second.fill(line, false).is_some() {
            self.occupy(now);
        }
        self.chip.second_level_cycles + waits + self.chip.memory_cycles
    }

    /// Takes the channel for a line: how long until it is free for that.
    fn occupy(&mut self, now: u64) -> u64 {
        let begin = self.channel.max(now);
        self.channel = begin + self.chip.channel_cycles;
        begin - now
    }

    /// The engine fetches a line: after how many cycles it is there.
    pub(crate) fn fetch(&mut self, now: u64, line: u64) -> u64 {
        if self.first.touch(line, false) | self.second.touch(line, false) {
            self.chip.second_level_cycles
        } else {
            self.occupy(now) + self.chip.memory_cycles
        }
    }

    /// The engine releases a line.
    pub(crate) fn release(&mut self, now: u64, line: u64, is_changed: bool) {
        if is_changed {
            self.first.invalidate(line);
            self.second.invalidate(line);
            self.occupy(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_costs_what_the_level_costs_that_has_it() {
        let chip = Chip::PAPER;
        let mut hierarchy = Hierarchy::new(chip);
        let cold = hierarchy.access(0, 7, false);
        assert_eq!(cold, chip.second_level_cycles + chip.memory_cycles);
        assert_eq!(hierarchy.access(200, 7, false), 0);
        // As many lines of its set as the first level has ways push it out of that, not out of the second.
        for way in 1..=8 {
            hierarchy.access(1000 * way, 7 + way * 32, false);
        }
        assert_eq!(hierarchy.access(10_000, 7, false), chip.second_level_cycles);
        assert_eq!(*hierarchy.accesses(), Accesses { all: 11, first_missed: 10, second_missed: 9 });
    }

    #[test]
    fn a_line_that_the_engine_has_changed_comes_from_memory_again() {
        let chip = Chip::PAPER;
        let mut hierarchy = Hierarchy::new(chip);
        hierarchy.access(0, 7, true);
        assert_eq!(hierarchy.fetch(500, 7), chip.second_level_cycles, "a cache has it");
        hierarchy.release(600, 7, true);
        assert_eq!(hierarchy.access(1000, 7, false), chip.second_level_cycles + chip.memory_cycles);
    }

    #[test]
    fn lines_wait_for_the_channel_one_after_the_other() {
        let chip = Chip::PAPER;
        let mut hierarchy = Hierarchy::new(chip);
        let times: Vec<u64> = (0..3).map(|line| hierarchy.fetch(10, line)).collect();
        assert_eq!(times, [84, 84 + 7, 84 + 14]);
    }
}
