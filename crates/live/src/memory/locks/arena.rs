//! Which words of the arena belong to which copy: a buddy allocator over [`Segments`](super::segments::Segments).
//!
//! What must always hold: pieces are powers of two, lie at multiples of their size in their segment, and do not overlap.
//! Pieces that were given back last stay whole, and are taken again first: copies of one length come and go in turns. They are
//! joined with their buddies before there is another segment.

use sorted::Set;

/// The smallest piece: a cache line.
const SMALLEST: usize = 8;
/// Classes of sizes: 64 bytes to 2 MiB.
const CLASSES: usize = 16;
/// Most pieces of a class that stay whole.
const RECENT: usize = 256;

/// The free pieces.
pub(super) struct Arena {
    /// By class, where those begin that were given back last.
    recent: [Vec<usize>; CLASSES],
    /// The others.
    free: [Set<usize>; CLASSES],
    /// Segments that have been handed in.
    segments: usize,
}

impl Arena {
    pub(super) fn new() -> Self {
        let recent = std::array::from_fn(|_| Vec::new());
        Self { recent, free: std::array::from_fn(|_| Set::new()), segments: 0 }
    }

    /// Words of the piece that so many words take.
    pub(super) fn size(words: usize) -> usize {
        SMALLEST << class(words)
    }

    /// A piece for so many words. `segment` says where a numbered segment begins, and how many words it has: a multiple
    /// of the largest piece.
    pub(super) fn take(&mut self, words: usize, segment: impl Fn(usize) -> (usize, usize)) -> usize {
        let class = class(words);
        if let Some(at) = self.recent[class].pop() {
            return at;
        }
        loop {
            if let Some(from) = (class..CLASSES).find(|class| !self.free[*class].is_empty()) {
                let at = self.free[from].pop_first().expect("it is not empty");
                for half in (class..from).rev() {
                    self.free[half].insert(at + (SMALLEST << half));
                }
                return at;
            }
            if self.recent.iter().any(|pieces| !pieces.is_empty()) {
                self.join_all();
                continue;
            }
            let (start, size) = segment(self.segments);
            self.segments += 1;
            let largest = SMALLEST << (CLASSES - 1);
            assert!(size.is_multiple_of(largest), "{size} words are no whole pieces");
            self.free[CLASSES - 1].extend((start..start + size).step_by(largest));
        }
    }

    /// A piece for so many words is free again.
    pub(super) fn give(&mut self, at: usize, words: usize) {
        let class = class(words);
        if self.recent[class].len() < RECENT {
            debug_assert!(!self.recent[class].contains(&at), "a piece is given back once");
            self.recent[class].push(at);
        } else {
            self.join(at, class);
        }
    }

    fn join_all(&mut self) {
        for class in 0..CLASSES {
            for at in std::mem::take(&mut self.recent[class]) {
                self.join(at, class);
            }
        }
    }

    /// Joins a free piece with its buddies.
    fn join(&mut self, mut at: usize, class: usize) {
        // Segments begin at multiples of the largest piece, so buddies are found by their numbers.
        for class in class..CLASSES {
            let buddy = at ^ (SMALLEST << class);
            if class == CLASSES - 1 || !self.free[class].remove(&buddy) {
                let new = self.free[class].insert(at);
                assert!(new, "a piece is given back once");
                return;
            }
            at = at.min(buddy);
        }
    }
}

fn class(words: usize) -> usize {
    let class = words.next_multiple_of(SMALLEST).next_power_of_two().max(SMALLEST) / SMALLEST;
    let class = class.ilog2() as usize;
    assert!(class < CLASSES, "{words} words are more than a region has");
    class
}

/// Words of the largest piece: what segments are multiples of.
pub(super) const LARGEST: usize = SMALLEST << (CLASSES - 1);

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: usize) -> (usize, usize) {
        (number * LARGEST, LARGEST)
    }

    #[test]
    fn pieces_do_not_overlap_and_what_was_given_back_is_whole_again() {
        let mut arena = Arena::new();
        let lens = [1, 8, 9, 100, 5000, 131_072, 17, 1];
        let mut taken: Vec<(usize, usize)> = lens.map(|len| (arena.take(len, segment), len)).to_vec();
        let mut ranges: Vec<_> = taken.iter().map(|(at, len)| (*at, at + Arena::size(*len))).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:?}");
        taken.rotate_left(3);
        for (at, len) in taken {
            arena.give(at, len);
        }
        let segments = arena.segments;
        for _ in 0..segments {
            arena.take(LARGEST, segment);
        }
        assert_eq!(arena.segments, segments, "all of it came back in pieces of the largest size");
    }

    #[test]
    fn pieces_that_come_and_go_in_any_order_do_not_overlap_and_none_is_lost() {
        let (mut arena, mut state) = (Arena::new(), 1_u64);
        let mut below = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % most
        };
        let mut taken: Vec<(usize, usize)> = Vec::new();
        for round in 0..20_000 {
            // Many, few, many again: more than stay whole are given back in a row.
            if taken.len() < 1 + round / 100 % 64 {
                let len = 1 << below(17);
                let at = arena.take(len, segment);
                let apart = |(other, size): &(usize, usize)| {
                    at + Arena::size(len) <= *other || other + Arena::size(*size) <= at
                };
                assert!(taken.iter().all(apart), "{len} words at {at} are free: {taken:?}");
                taken.push((at, len));
            } else {
                let (at, len) = taken.swap_remove(below(taken.len()));
                arena.give(at, len);
            }
        }
        taken.into_iter().for_each(|(at, len)| arena.give(at, len));
        let segments = arena.segments;
        assert!((0..segments).all(|_| arena.take(LARGEST, segment) < segments * LARGEST));
        assert_eq!(arena.segments, segments, "all of it came back in pieces of the largest size");
    }
}
