//! Which blocks the last-level cache holds.
//!
//! What must always hold: no set holds more blocks than it has ways; the one that was used longest ago makes room.

/// The tags of a cache, the last used of each set first.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    sets: Vec<Vec<u64>>,
    ways: usize,
}

impl Cache {
    pub(super) fn new(blocks: u64, ways: usize) -> Self {
        let sets = (blocks / ways as u64).max(1);
        Self { sets: (0..sets).map(|_| Vec::with_capacity(ways)).collect(), ways }
    }

    /// Uses a block. If it was not there it is now; the one that made room for it.
    pub(super) fn touch(&mut self, block: u64) -> (bool, Option<u64>) {
        let at = (block % self.sets.len() as u64) as usize;
        let set = &mut self.sets[at];
        if let Some(position) = set.iter().position(|held| *held == block) {
            set[..=position].rotate_right(1);
            return (true, None);
        }
        let victim = if set.len() == self.ways { set.pop() } else { None };
        set.insert(0, block);
        (false, victim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_was_used_longest_ago_makes_room() {
        let mut cache = Cache::new(4, 4);
        for block in 0..4 {
            assert_eq!(cache.touch(block), (false, None));
        }
        assert_eq!(cache.touch(0), (true, None));
        assert_eq!(cache.touch(9), (false, Some(1)));
        assert_eq!((cache.touch(1), cache.touch(0)), ((false, Some(2)), (true, None)));
    }
}
