//! A node's memory: one range of addresses, a part of it read-only.
//!
//! ```text
//!   base                                                                    base + bytes
//!     | stack (grows down) | code, read-only | data | symmetric heap ........... |
//! ```
//! A stack that grows too far leaves the memory, and traps. All nodes have the same layout, so an address means the same on
//! each of them.
//!
//! What must always hold: an access that is misaligned, outside, or a store into the read-only part changes nothing.

use core::ops::Range;

use nic::words::{LINE, Line, WORDS};

/// The bytes of a node, as double words: what the engine takes are lines of them.
#[derive(Clone, Debug)]
pub struct Memory {
    base: u64,
    words: Vec<u64>,
    /// Double words that nobody changes.
    read_only: Range<usize>,
}

/// Why an access is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The address is no multiple of what is accessed.
    Misaligned,
    /// It is outside of the memory.
    Unmapped,
    /// Nobody stores there.
    ReadOnly,
}

impl Memory {
    /// A memory of zeros.
    ///
    /// # Panics
    /// If it does not consist of whole lines.
    pub fn new(base: u64, bytes: u64, read_only: Range<u64>) -> Self {
        assert!(
            base.is_multiple_of(LINE) && bytes.is_multiple_of(LINE),
            "memory is lines: {base:#x}, {bytes:#x}"
        );
        let word = |address: u64| (address.saturating_sub(base) / 8) as usize;
        let read_only = word(read_only.start)..word(read_only.end.next_multiple_of(8));
        Self { base, words: vec![0; (bytes / 8) as usize], read_only }
    }

    /// Its addresses.
    pub const fn addresses(&self) -> Range<u64> {
        self.base..self.base + self.words.len() as u64 * 8
    }

    /// Where an address is from the beginning of the memory: what requests to its engine say.
    pub const fn offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.base)
    }

    /// Says whether an access is allowed.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self, address: u64, bytes: u64, changes: bool) -> Result<(), Refused> {
        let word = self.offset(address) / 8;
        if !address.is_multiple_of(bytes) {
            Err(Refused::Misaligned)
        } else if word >= self.words.len() as u64 {
            Err(Refused::Unmapped)
        } else if changes && self.is_read_only(word as usize) {
            Err(Refused::ReadOnly)
        } else {
            Ok(())
        }
    }

    #[inline(always)]
    const fn is_read_only(&self, word: usize) -> bool {
        word.wrapping_sub(self.read_only.start) < self.read_only.end - self.read_only.start
    }

    /// Reads 2^`LOG` bytes, zero-extended. None: see [`Memory::check`].
    ///
    /// The lowest bits of the offset are rotated to the top, so that misaligned addresses are out of bounds as well.
    #[inline(always)]
    pub fn load<const LOG: u32>(&self, address: u64) -> Option<u64> {
        let index = self.offset(address).rotate_right(LOG);
        let word = *self.words.get((index >> (3 - LOG)) as usize)?;
        Some(if LOG == 3 { word } else { word >> shift::<LOG>(index) & mask::<LOG>() })
    }

    /// Writes the lowest 2^`LOG` bytes of a value. None: see [`Memory::check`].
    #[inline(always)]
    pub fn store<const LOG: u32>(&mut self, address: u64, value: u64) -> Option<()> {
        let index = self.offset(address).rotate_right(LOG);
        let at = (index >> (3 - LOG)) as usize;
        if self.is_read_only(at) {
            return None;
        }
        let word = self.words.get_mut(at)?;
        *word = if LOG == 3 {
            value
        } else {
            let (shift, mask) = (shift::<LOG>(index), mask::<LOG>());
            *word & !(mask << shift) | (value & mask) << shift
        };
        Some(())
    }

    /// A line, by its number from the beginning of the memory.
    ///
    /// # Panics
    /// If there is no such line.
    pub fn line(&self, line: u64) -> Line {
        let (lines, _) = self.words.as_chunks::<WORDS>();
        lines[line as usize]
    }

    /// Writes a line.
    ///
    /// # Panics
    /// If there is no such line.
    pub fn set_line(&mut self, line: u64, contents: Line) {
        let (lines, _) = self.words.as_chunks_mut::<WORDS>();
        lines[line as usize] = contents;
    }

    /// Copies bytes into it, read-only or not: what a loader does.
    ///
    /// # Panics
    /// If they are not all inside.
    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        for (offset, byte) in (self.offset(address)..).zip(bytes) {
            let shift = offset % 8 * 8;
            let word = &mut self.words[(offset / 8) as usize];
            *word = *word & !(0xff << shift) | u64::from(*byte) << shift;
        }
    }

    /// Bytes of it; None if they are not all inside.
    pub fn bytes(&self, address: u64, count: u64) -> Option<Vec<u8>> {
        let end = address.checked_add(count)?;
        let inside = self.addresses();
        (inside.start <= address && end <= inside.end).then(|| {
            (address..end).filter_map(|address| self.load::<0>(address)).map(|byte| byte as u8).collect()
        })
    }
}

/// How far up in its double word something of 2^`LOG` bytes is.
const fn shift<const LOG: u32>(index: u64) -> u64 {
    (index & ((1 << (3 - LOG)) - 1)) << (LOG + 3)
}

const fn mask<const LOG: u32>() -> u64 {
    u64::MAX >> (64 - (8 << LOG))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let mut memory = Memory::new(0x1000, 0x1000, 0x1400..0x1500);
        memory.put(0x1000, &(0..=255).collect::<Vec<u8>>());
        memory
    }

    #[test]
    fn loads_take_the_bytes_in_little_endian_order() {
        let memory = memory();
        assert_eq!(memory.load::<0>(0x1011), Some(0x11));
        assert_eq!(memory.load::<1>(0x1012), Some(0x1312));
        assert_eq!(memory.load::<2>(0x1014), Some(0x1716_1514));
        assert_eq!(memory.load::<3>(0x1018), Some(0x1f1e_1d1c_1b1a_1918));
    }

    #[test]
    fn stores_change_their_bytes_only() {
        let mut memory = memory();
        memory.store::<0>(0x1021, 0xfff).unwrap();
        memory.store::<1>(0x1022, 0xaaaa_bbbb).unwrap();
        memory.store::<2>(0x1024, 0xcccc_cccc_dddd_dddd).unwrap();
        assert_eq!(memory.load::<3>(0x1020), Some(0xdddd_dddd_bbbb_ff20));
        assert_eq!(memory.load::<3>(0x1018), Some(0x1f1e_1d1c_1b1a_1918));
        assert_eq!(memory.load::<3>(0x1028), Some(0x2f2e_2d2c_2b2a_2928));
    }

    #[test]
    fn what_is_misaligned_or_outside_is_refused_in_every_width() {
        let mut memory = memory();
        for address in [0x1001, 0x1007, 0xfff, 0x0, 0x2000, u64::MAX, 0x8000_0000_0000_1000] {
            let (aligned, outside) = (address % 2 == 0, !(0x1000..0x2000).contains(&address));
            let refused =
                Some(if aligned || address % 8 == 0 { Refused::Unmapped } else { Refused::Misaligned });
            assert_eq!(memory.load::<1>(address), None, "{address:#x}");
            assert_eq!(memory.load::<2>(address), None, "{address:#x}");
            assert_eq!(memory.load::<3>(address), None, "{address:#x}");
            assert_eq!(memory.store::<3>(address, 1), None, "{address:#x}");
            assert_eq!(memory.check(address, 8, false).err(), refused, "{address:#x}");
            assert_eq!(memory.load::<0>(address).is_none(), outside, "{address:#x}");
        }
    }

    #[test]
    fn nobody_stores_into_what_is_read_only() {
        let mut memory = memory();
        for (address, writable) in [(0x13f8, true), (0x1400, false), (0x14f8, false), (0x1500, true)] {
            assert_eq!(memory.store::<3>(address, 7).is_some(), writable, "{address:#x}");
            assert_eq!(memory.load::<3>(address), Some(if writable { 7 } else { 0 }));
            assert_eq!(memory.check(address, 8, true).is_ok(), writable);
        }
    }
}
