//! Which lines a cache has: tags, the last used of a set first. Values are in memory: a node has one core.
//!
//! What must always hold: a line is in its set once or not at all.

/// Of an entry: it is a line.
const VALID: u64 = 1;
/// It was changed.
const DIRTY: u64 = 2;

/// A set-associative cache that replaces the least recently used.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    ways: usize,
    sets: u64,
    entries: Vec<u64>,
}

impl Cache {
    /// # Panics
    /// If its sets are no power of two.
    pub(super) fn new(lines: u64, ways: usize) -> Self {
        let sets = lines / ways as u64;
        assert!(
            sets.is_power_of_two(),
            "sets are found by some bits of an address: {lines} lines, {ways} ways"
        );
        Self { ways, sets, entries: vec![0; lines as usize] }
    }

    fn set(&mut self, line: u64) -> &mut [u64] {
        let first = (line & (self.sets - 1)) as usize * self.ways;
        &mut self.entries[first..first + self.ways]
    }

    /// Uses a line, if it is here. Returns whether it is.
    #[inline]
    pub(super) fn touch(&mut self, line: u64, changes: bool) -> bool {
        let set = self.set(line);
        let Some(at) = set.iter().position(|entry| entry & !DIRTY == line << 2 | VALID) else { return false };
        set[..=at].rotate_right(1);
        if changes {
            set[0] |= DIRTY;
        }
        true
    }

    /// Takes in a line that is not here. Returns the one that gives way, if it was changed.
    pub(super) fn fill(&mut self, line: u64, changes: bool) -> Option<u64> {
        let set = self.set(line);
        set.rotate_right(1);
        let old = core::mem::replace(&mut set[0], line << 2 | VALID | if changes { DIRTY } else { 0 });
        (old & DIRTY != 0).then_some(old >> 2)
    }

    /// A line is not here any more.
    pub(super) fn invalidate(&mut self, line: u64) {
        let set = self.set(line);
        if let Some(at) = set.iter().position(|entry| entry & !DIRTY == line << 2 | VALID) {
            set[at] = 0;
            set[at..].rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_of_a_set_gives_way() {
        // Two sets of two ways: even lines share one.
        let mut cache = Cache::new(4, 2);
        assert_eq!((cache.fill(0, true), cache.fill(2, false)), (None, None));
        assert!(cache.touch(0, false));
        assert_eq!(cache.fill(4, false), None, "2 gives way, and was not changed");
        assert!(!cache.touch(2, false));
        assert_eq!(cache.fill(6, false), Some(0), "0 was changed");
        assert!(cache.touch(4, false) && cache.touch(6, false));
    }

    #[test]
    fn what_is_invalidated_is_gone_and_leaves_its_place() {
        let mut cache = Cache::new(4, 2);
        cache.fill(1, true);
        cache.fill(3, true);
        cache.invalidate(3);
        assert!(!cache.touch(3, false) && cache.touch(1, false));
        assert_eq!(cache.fill(5, false), None);
        assert!(cache.touch(1, false));
    }
}
