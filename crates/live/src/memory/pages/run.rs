//! Blocks that are used one behind the other: what is done to one is soon done to the next.

use wire::{BlockSize, GlobalAddr};

/// How many blocks in a row are expected behind the one that something was just done to: four times as many each time.
#[derive(Default)]
pub struct Run {
    last: u64,
    ahead: u64,
}

impl Run {
    /// At first, and at most: half of what a node can have on its way is left to others.
    const FIRST: u64 = 2;
    const MOST: u64 = 31;

    /// How many blocks behind the one at this address are to have the same done to them.
    pub fn ahead(&mut self, block: BlockSize, addr: GlobalAddr) -> usize {
        let number = addr.bits() >> block.shift();
        let goes_on = number > self.last && number <= self.last + 1 + self.ahead;
        self.ahead = if goes_on { (self.ahead * 4).clamp(Self::FIRST, Self::MOST) } else { 0 };
        self.last = number;
        self.ahead as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NodeId;

    #[test]
    fn what_goes_on_in_a_row_is_expected_to_go_on_more_and_more_and_what_does_not_is_not() {
        let mut run = Run::default();
        let mut at = |block: u64| run.ahead(BlockSize::DEFAULT, GlobalAddr::new(NodeId(1), block << 12));
        assert_eq!(at(100), 0);
        assert_eq!(at(101), 2);
        // It was done to 102 and 103, too.
        assert_eq!([at(104), at(113), at(145), at(150)], [8, 31, 31, 31]);
        assert_eq!([at(150), at(20), at(90)], [0, 0, 0], "the same one again, and others");
        assert_eq!(at(91), 2);
    }
}
