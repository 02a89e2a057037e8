//! All states found so far. They are kept in full, as words one after the other, so that two states are never
//! taken for one; the table beside them holds their numbers.

use std::hash::Hasher;

use super::hashing::Mixer;

const EMPTY: u32 = u32::MAX;

/// The states, by number: the number is the order in which they were found.
pub(super) struct States {
    words: Vec<u32>,
    /// Where each state's words begin; and the end.
    starts: Vec<u64>,
    table: Vec<u32>,
}

impl States {
    pub(super) fn new() -> Self {
        Self { words: Vec::new(), starts: vec![0], table: vec![EMPTY; 1 << 10] }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn get(&self, number: u32) -> &[u32] {
        let at = number as usize;
        &self.words[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Bytes taken.
    pub(super) fn bytes(&self) -> usize {
        4 * self.words.capacity() + 8 * self.starts.capacity() + 4 * self.table.capacity()
    }

    /// The state's number, and whether it is new.
    pub(super) fn insert(&mut self, words: &[u32]) -> (u32, bool) {
        if self.len() * 8 > self.table.len() * 5 {
            self.grow();
        }
        let mut at = self.place(words);
        loop {
            match self.table[at] {
                EMPTY => break,
                number if self.get(number) == words => return (number, false),
                _ => at = (at + 1) & (self.table.len() - 1),
            }
        }
        let number = u32::try_from(self.len()).expect("fewer than 2^32 states");
        self.table[at] = number;
        self.words.extend_from_slice(words);
        self.starts.push(self.words.len() as u64);
        (number, true)
    }

    fn place(&self, words: &[u32]) -> usize {
        let mut mixer = Mixer::default();
        words.iter().for_each(|word| mixer.write_u32(*word));
        let mixed = mixer.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 20) as usize & (self.table.len() - 1)
    }

    fn grow(&mut self) {
        let size = self.table.len() * 2;
        self.table.clear();
        self.table.resize(size, EMPTY);
        for number in 0..self.len() as u32 {
            let mut at = self.place(self.get(number));
            while self.table[at] != EMPTY {
                at = (at + 1) & (size - 1);
            }
            self.table[at] = number;
        }
    }
}
