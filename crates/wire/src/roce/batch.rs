//! Remote atomics in one packet: the payload of a [`RaeRequest`](super::Opcode::RaeRequest), and of its answer.
//!
//! From whoever operates on words to their home. Operations on words of one memory region are a section; big-endian, like
//! the rest of the transport.
//!
//! ```text
//!   section   key 32 | entries 16 | 0 16
//!     entry   operation 8 | 0 6 | 64 bits 1 | fetches 1 | address 48 | operand 64 | expected 64, compare-and-swap only
//!   answer    what the word was 64, for each entry that fetches, in their order; words of 32 bits sign-extended
//! ```
//!
//! What must always hold: what [`Batch::parse`] accepts is what [`Writer`] would write for its entries, but for where sections
//! end; reading its entries afterwards cannot fail; parsing never panics and allocates nothing.

use alloc::vec::Vec;
use core::fmt;

use super::packet::Key;

/// Bytes before the entries of a section.
pub const SECTION_BYTES: usize = 8;
/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 16;
/// Bytes of an entry that compares and swaps.
pub const COMPARE_SWAP_BYTES: usize = 24;
/// Bytes of an entry's answer, if it fetches.
pub const ANSWER_BYTES: usize = 8;
/// Addresses are below this.
pub const ADDRESSES: u64 = 1 << 48;

const FETCHES: u8 = 1;
const IS_WIDE: u8 = 2;

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $bits:literal,)*) => {
        /// What is done to a word.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Operation {
            $($(#[$doc])* $name = $bits,)*
        }

        impl Operation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The operation that this byte stands for, if it is one.
            pub const fn from_wire(byte: u8) -> Option<Self> {
                match byte {
                    $($bits => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

operations! {
    /// Adds, and wraps around.
    Add = 0,
    /// Bitwise and.
    And = 1,
    /// Bitwise or.
    Or = 2,
    /// Bitwise exclusive or.
    Xor = 3,
    /// The smaller, signed.
    Min = 4,
    /// The larger, signed.
    Max = 5,
    /// The operand, if the word is what is expected.
    CompareSwap = 6,
    /// The operand.
    Swap = 7,
    /// Nothing.
    Load = 8,
}

/// One operation on one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// The word: below 2^48.
    pub address: u64,
    /// What is done.
    pub operation: Operation,
    /// The word has 64 bits, not 32.
    pub is_wide: bool,
    /// What the word was is wanted.
    pub fetches: bool,
    /// The second operand; of a compare-and-swap the new value.
    pub operand: u64,
    /// Of a compare-and-swap: what the word must be. Zero of all others.
    pub expected: u64,
}

impl Entry {
    /// Bytes of it.
    pub const fn bytes(&self) -> usize {
        match self.operation {
            Operation::CompareSwap => COMPARE_SWAP_BYTES,
            _ => ENTRY_BYTES,
        }
    }

    /// Reads the entry that bytes begin with, and returns what is behind it.
    fn split(bytes: &[u8]) -> Result<(Self, &[u8]), BatchError> {
        let (entry, rest) = bytes.split_first_chunk::<ENTRY_BYTES>().ok_or(BatchError::Truncated)?;
        let operation = Operation::from_wire(entry[0]).ok_or(BatchError::Operation)?;
        if entry[1] & !(FETCHES | IS_WIDE) != 0 {
            return Err(BatchError::Reserved);
        }
        let (head, operand) = (u64_at(entry, 0), u64_at(entry, 8));
        let (expected, rest) = match operation {
            Operation::CompareSwap => {
                let (expected, rest) = rest.split_first_chunk::<8>().ok_or(BatchError::Truncated)?;
                (u64::from_be_bytes(*expected), rest)
            }
            _ => (0, rest),
        };
        let entry = Self {
            address: head & (ADDRESSES - 1),
            operation,
            is_wide: entry[1] & IS_WIDE != 0,
            fetches: entry[1] & FETCHES != 0,
            operand,
            expected,
        };
        Ok((entry, rest))
    }
}

/// Why bytes are no batch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BatchError {
    /// There is nothing in it, or in one of its sections.
    Empty,
    /// Shorter than its sections say.
    Truncated,
    /// An operation that is not known.
    Operation,
    /// Reserved bits that are not zero.
    Reserved,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a batch or a section without entries",
            Self::Truncated => "shorter than its sections say",
            Self::Operation => "an operation that is not known",
            Self::Reserved => "reserved bits that are not zero",
        })
    }
}

impl core::error::Error for BatchError {}

/// A batch that is one, in the bytes of its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch<'a> {
    bytes: &'a [u8],
    entries: usize,
    fetches: usize,
}

impl<'a> Batch<'a> {
    /// Looks at all of it.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        if bytes.is_empty() {
            return Err(BatchError::Empty);
        }
        let mut batch = Self { bytes, entries: 0, fetches: 0 };
        let mut rest = bytes;
        while !rest.is_empty() {
            let (_, count, behind) = section(rest)?;
            rest = behind;
            for _ in 0..count {
                let (entry, behind) = Entry::split(rest)?;
                rest = behind;
                batch.entries += 1;
                batch.fetches += usize::from(entry.fetches);
            }
        }
        Ok(batch)
    }

    /// Its entries, with the keys of their regions.
    pub const fn entries(&self) -> Entries<'a> {
        Entries { rest: self.bytes, key: Key(0), left: 0 }
    }

    /// How many entries it has.
    pub const fn len(&self) -> usize {
        self.entries
    }

    /// Never: a batch has an entry.
    pub const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of its answer.
    pub const fn answer_bytes(&self) -> usize {
        self.fetches * ANSWER_BYTES
    }
}

/// Reads the head of a section: its key, its entries, and what is behind.
fn section(bytes: &[u8]) -> Result<(Key, u16, &[u8]), BatchError> {
    let (head, rest) = bytes.split_first_chunk::<SECTION_BYTES>().ok_or(BatchError::Truncated)?;
    let [k0, k1, k2, k3, n0, n1, r0, r1] = *head;
    if (r0, r1) != (0, 0) {
        return Err(BatchError::Reserved);
    }
    match u16::from_be_bytes([n0, n1]) {
        0 => Err(BatchError::Empty),
        count => Ok((Key(u32::from_be_bytes([k0, k1, k2, k3])), count, rest)),
    }
}

/// Entries of a batch, in their order.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
    key: Key,
    left: u16,
}

impl Iterator for Entries<'_> {
    type Item = (Key, Entry);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            (self.key, self.left, self.rest) = section(self.rest).ok()?;
        }
        let (entry, rest) = Entry::split(self.rest).ok()?;
        self.rest = rest;
        self.left -= 1;
        Some((self.key, entry))
    }
}

/// The next entry does not fit: send what there is first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room for the entry in this batch: send it, and begin another")
    }
}

impl core::error::Error for Full {}

/// Collects operations into a batch of at most so many bytes.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    most: usize,
    /// Where the last section begins, and what its head says.
    section: Option<(usize, Key, u16)>,
    entries: usize,
    fetches: usize,
}

impl Writer {
    /// An empty one.
    pub const fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, section: None, entries: 0, fetches: 0 }
    }

    /// Appends an operation on a word of this region, in a new section if the last one is of another region.
    ///
    /// # Errors
    /// If it does not fit; the batch stays as it is.
    ///
    /// # Panics
    /// If the address is not below 2^48.
    pub fn push(&mut self, key: Key, entry: &Entry) -> Result<(), Full> {
        assert!(entry.address < ADDRESSES, "{:#x} is not an address of 48 bits", entry.address);
        let open = self.section.filter(|&(_, of, count)| of == key && count < u16::MAX);
        let head = if open.is_some() { 0 } else { SECTION_BYTES };
        if self.bytes.len() + head + entry.bytes() > self.most {
            return Err(Full);
        }
        let (at, count) = match open {
            Some((at, _, count)) => (at, count + 1),
            None => {
                let at = self.bytes.len();
                self.bytes.extend(key.0.to_be_bytes());
                self.bytes.extend([0; 4]);
                (at, 1)
            }
        };
        self.section = Some((at, key, count));
        self.bytes[at + 4..at + 6].copy_from_slice(&count.to_be_bytes());
        let flags = if entry.is_wide { IS_WIDE } else { 0 } | if entry.fetches { FETCHES } else { 0 };
        let head = u64::from(entry.operation as u8) << 56 | u64::from(flags) << 48 | entry.address;
        self.bytes.extend(head.to_be_bytes());
        self.bytes.extend(entry.operand.to_be_bytes());
        if entry.operation == Operation::CompareSwap {
            self.bytes.extend(entry.expected.to_be_bytes());
        }
        self.entries += 1;
        self.fetches += usize::from(entry.fetches);
        Ok(())
    }

    /// The batch.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many entries it has.
    pub const fn len(&self) -> usize {
        self.entries
    }

    /// True if it has none: it must not be sent.
    pub const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of its answer.
    pub const fn answer_bytes(&self) -> usize {
        self.fetches * ANSWER_BYTES
    }

    /// Begins another, in the same memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.section, self.entries, self.fetches) = (None, 0, 0);
    }
}

/// Appends what a word was to an answer.
pub fn push_answer(answer: &mut Vec<u8>, old: u64) {
    answer.extend(old.to_be_bytes());
}

/// What the words were, out of an answer: one for each entry that fetches. Bytes that are no whole word are left out.
pub fn answers(answer: &[u8]) -> impl ExactSizeIterator<Item = u64> + '_ {
    answer.as_chunks::<ANSWER_BYTES>().0.iter().map(|word| u64::from_be_bytes(*word))
}

fn u64_at(bytes: &[u8; ENTRY_BYTES], at: usize) -> u64 {
    u64::from_be_bytes(core::array::from_fn(|i| bytes[at + i]))
}
