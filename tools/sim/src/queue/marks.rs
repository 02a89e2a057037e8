//! Which slots of a level hold events: a bit map, and a map of its words.
//!
//! It runs inside the event queue. What must always hold: a word's bit in the summary is set exactly while the
//! word is not zero. So the first slot is found by looking at two words.

/// How many bits of a time choose the slot of a level.
pub(super) const DIGIT: u32 = 12;
/// How many slots a level has.
pub(super) const SLOTS: usize = 1 << DIGIT;

const WORDS: usize = SLOTS / u64::BITS as usize;
const _: () = assert!(WORDS <= u64::BITS as usize, "one word must be enough for the summary");

/// A bit for each slot of a level.
pub(super) struct Marks {
    words: [u64; WORDS],
    summary: u64,
}

impl Marks {
    /// All slots empty.
    pub(super) const fn new() -> Self {
        Self { words: [0; WORDS], summary: 0 }
    }

    /// Whether all slots are empty.
    pub(super) const fn is_empty(&self) -> bool {
        self.summary == 0
    }

    /// The first slot that is not empty.
    pub(super) fn first(&self) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let word = self.summary.trailing_zeros();
        Some((word * u64::BITS + self.words[word as usize].trailing_zeros()) as usize)
    }

    /// This slot holds an event now.
    pub(super) fn set(&mut self, slot: usize) {
        let (word, bit) = (slot / 64, slot % 64);
        self.words[word] |= 1 << bit;
        self.summary |= 1 << word;
    }

    /// This slot is empty now.
    pub(super) fn clear(&mut self, slot: usize) {
        let (word, bit) = (slot / 64, slot % 64);
        self.words[word] &= !(1 << bit);
        // Without a branch: whether the word is zero now is as good as random.
        self.summary &= !(u64::from(self.words[word] == 0) << word);
    }
}
