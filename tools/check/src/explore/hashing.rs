//! Hashing and interning. Values are compared in full wherever they are looked up: a hash only says where to
//! look, so two states are never taken for one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;

/// Multiply and rotate: fast, the same in every run, and good enough for tables.
#[derive(Clone, Copy, Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        // The multiplication leaves the low bits poor; tables use them.
        self.0 ^ self.0 >> 32
    }
}

pub(super) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Gives equal values one number.
pub(super) struct Interner<T> {
    values: Vec<Rc<T>>,
    numbers: Table<Rc<T>, u32>,
}

impl<T: Hash + Eq> Interner<T> {
    pub(super) fn new() -> Self {
        Self { values: Vec::new(), numbers: Table::default() }
    }

    /// The value's number, and whether it is new.
    pub(super) fn intern(&mut self, value: T) -> (u32, bool) {
        if let Some(number) = self.numbers.get(&value) {
            return (*number, false);
        }
        let number = u32::try_from(self.values.len()).expect("fewer than 2^32 local states");
        let value = Rc::new(value);
        self.values.push(Rc::clone(&value));
        self.numbers.insert(value, number);
        (number, true)
    }

    pub(super) fn get(&self, number: u32) -> &Rc<T> {
        &self.values[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}
