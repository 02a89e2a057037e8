//! Global addresses and the blocks that they fall into.
//!
//! `node: 16 bits | offset: 48 bits`. The node is the address's *home*: its memory backs the address. Blocks
//! are the unit of coherence; their size is fixed per rack.

use core::fmt;

use crate::ids::NodeId;

/// Bits of an address that are the offset in its home's memory.
pub const OFFSET_BITS: u32 = 48;
/// Largest offset in a home's memory.
pub const MAX_OFFSET: u64 = (1 << OFFSET_BITS) - 1;

/// A byte address in the rack's one memory. Address 0 (node 0, offset 0) is never allocated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GlobalAddr(u64);

impl GlobalAddr {
    /// The address that no allocation ever has.
    pub const NULL: Self = Self(0);

    /// The byte at `offset` in the memory of `home`.
    ///
    /// # Panics
    /// If `offset` does not fit in 48 bits.
    pub const fn new(home: NodeId, offset: u64) -> Self {
        assert!(offset <= MAX_OFFSET, "an offset has 48 bits");
        Self((home.0 as u64) << OFFSET_BITS | offset)
    }

    /// The address with this 64-bit form.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The 64-bit form: node in the top 16 bits, offset below.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The node whose memory backs this address.
    pub const fn home(self) -> NodeId {
        NodeId((self.0 >> OFFSET_BITS) as u16)
    }

    /// Bytes from the start of the home's memory.
    pub const fn offset(self) -> u64 {
        self.0 & MAX_OFFSET
    }

    /// True for [`GlobalAddr::NULL`].
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address `bytes` further on, if that is still in the same home's range.
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.offset().checked_add(bytes) {
            Some(offset) if offset <= MAX_OFFSET => Some(Self(self.0 & !MAX_OFFSET | offset)),
            _ => None,
        }
    }
}

impl core::ops::Add<u64> for GlobalAddr {
    type Output = Self;

    /// # Panics
    /// If the sum leaves the home's 48-bit range.
    fn add(self, bytes: u64) -> Self {
        self.checked_add(bytes).expect("an address stays inside its home's 48-bit range")
    }
}

impl fmt::Debug for GlobalAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:#x}", self.home().0, self.offset())
    }
}

impl fmt::Display for GlobalAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A text is no address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoAddress;

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no address: write node and offset as 3:0x1000, with a node of 16 bits and an offset of 48",
        )
    }
}

impl core::error::Error for NoAddress {}

impl core::str::FromStr for GlobalAddr {
    type Err = NoAddress;

    /// Reads what [`GlobalAddr`] prints.
    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let (home, offset) = text.split_once(":0x").ok_or(NoAddress)?;
        let is_plain = |digits: &str| !digits.is_empty() && !digits.starts_with('+');
        if !is_plain(home) || !is_plain(offset) {
            return Err(NoAddress);
        }
        let home = home.parse().map_err(|_| NoAddress)?;
        let offset = u64::from_str_radix(offset, 16).map_err(|_| NoAddress)?;
        if offset <= MAX_OFFSET { Ok(Self::new(NodeId(home), offset)) } else { Err(NoAddress) }
    }
}

/// The size of a block: a power of two from 64 B to 1 MiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct BlockSize(u8);

impl BlockSize {
    /// 64 bytes.
    pub const MIN: Self = Self(6);
    /// 1 MiB.
    pub const MAX: Self = Self(20);
    /// 4 KiB, the size the paper found best (Concordia, section 6).
    pub const DEFAULT: Self = Self(12);

    /// The block size of `bytes` bytes, if that is a power of two from 64 B to 1 MiB.
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes.is_power_of_two() {
            let shift = bytes.trailing_zeros() as u8;
            if shift >= Self::MIN.0 && shift <= Self::MAX.0 {
                return Some(Self(shift));
            }
        }
        None
    }

    /// Bytes in a block.
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }

    /// Bytes in a block, for indexing.
    pub const fn len(self) -> usize {
        1 << self.0
    }

    /// Never: a block has at least 64 bytes.
    pub const fn is_empty(self) -> bool {
        false
    }

    /// 64-bit words in a block.
    pub const fn words(self) -> usize {
        1 << (self.0 - 3)
    }

    /// Base-2 logarithm of the bytes in a block.
    pub const fn shift(self) -> u32 {
        self.0 as u32
    }

    /// The block that `addr` falls into.
    pub const fn tag(self, addr: GlobalAddr) -> BlockTag {
        BlockTag(addr.bits() & !(self.bytes() - 1))
    }

    /// Where in its block `addr` is, in bytes.
    pub const fn offset_in_block(self, addr: GlobalAddr) -> usize {
        (addr.bits() & (self.bytes() - 1)) as usize
    }
}

impl Default for BlockSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..10 => write!(f, "{} B", self.bytes()),
            10..20 => write!(f, "{} KiB", self.bytes() >> 10),
            _ => write!(f, "{} MiB", self.bytes() >> 20),
        }
    }
}

/// What a directory entry is kept for: a block's data, or the reader-writer lock that applications may take
/// on that block.
///
/// A data tag is the address of the block's first byte. The lock of the same block is an entry of its own
/// (its tag has bit 0 set, which no block address has): if applications locked the data entry itself, the
/// holder's own miss on that block would be refused for ever (PROTOCOLS.md, FlowCC 8).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockTag(u64);

impl BlockTag {
    const LOCK_BIT: u64 = 1;

    /// The tag with this 64-bit form.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The 64-bit form.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The first byte of the block.
    pub const fn addr(self) -> GlobalAddr {
        GlobalAddr(self.0 & !Self::LOCK_BIT)
    }

    /// The node whose memory backs the block, and whose home agent keeps its entry while the switch does not.
    pub const fn home(self) -> NodeId {
        GlobalAddr(self.0).home()
    }

    /// The entry of this block's application lock.
    pub const fn lock_entry(self) -> Self {
        Self(self.0 | Self::LOCK_BIT)
    }

    /// True for the entry of an application lock.
    pub const fn is_lock_entry(self) -> bool {
        self.0 & Self::LOCK_BIT != 0
    }
}

impl fmt::Debug for BlockTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.addr(), if self.is_lock_entry() { "/lock" } else { "" })
    }
}

/// How an allocation is kept consistent. An allocation states it once, and an address obeys one discipline
/// all its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Discipline {
    /// Cached by nodes, kept coherent by FlowCC; plain reads and writes.
    Coherent = 1,
    /// Never cached data: only the block's application lock may be used.
    LockOnly = 2,
    /// Regions that move with their locks: only whoever holds a region's lock accesses it.
    Locked = 3,
    /// Never cached: words in their home's memory, which anybody changes by atomic operations there.
    Word = 4,
    /// Never cached: objects in their home's memory, each with a version, read whole or not at all.
    Object = 5,
    /// Never cached: entries of chains in their homes' memory, which nothing but a NIC there looks after.
    Chain = 6,
}

impl Discipline {
    /// The discipline with this wire form.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Coherent),
            2 => Some(Self::LockOnly),
            3 => Some(Self::Locked),
            4 => Some(Self::Word),
            5 => Some(Self::Object),
            6 => Some(Self::Chain),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_printed_and_nothing_else() {
        for addr in [
            GlobalAddr::NULL,
            GlobalAddr::new(NodeId(3), 4096),
            GlobalAddr::new(NodeId(u16::MAX), MAX_OFFSET),
        ] {
            assert_eq!(alloc::format!("{addr}").parse(), Ok(addr));
        }
        for text in [
            "",
            "3",
            "3:",
            "3:0x",
            ":0x10",
            "3:10",
            "+3:0x10",
            "3:0x+10",
            "65536:0x0",
            "3:0x1000000000000",
            " 3:0x1",
        ] {
            assert_eq!(text.parse::<GlobalAddr>(), Err(NoAddress), "{text:?}");
        }
    }

    #[test]
    fn an_address_keeps_its_node_and_offset_apart() {
        let addr = GlobalAddr::new(NodeId(0xffff), MAX_OFFSET);
        assert_eq!(addr.home(), NodeId(0xffff));
        assert_eq!(addr.offset(), MAX_OFFSET);
        assert_eq!(addr.checked_add(1), None, "an address never spills into the next node");
        assert_eq!(GlobalAddr::new(NodeId(3), 0x1ff0).checked_add(0x20).unwrap().offset(), 0x2010);
    }

    #[test]
    fn block_sizes_are_powers_of_two_from_64_bytes_to_1_mib() {
        for bad in [0, 1, 32, 63, 65, 4095, 2 << 20] {
            assert_eq!(BlockSize::new(bad), None, "{bad}");
        }
        for good in [64, 4096, 1 << 20] {
            assert_eq!(BlockSize::new(good).unwrap().bytes(), good);
        }
    }

    #[test]
    fn a_blocks_lock_has_an_entry_of_its_own_with_the_same_home() {
        let tag = BlockSize::DEFAULT.tag(GlobalAddr::new(NodeId(5), 0x12345));
        assert_eq!(tag.addr().offset(), 0x12000);
        let lock = tag.lock_entry();
        assert_ne!(tag, lock);
        assert!(lock.is_lock_entry() && !tag.is_lock_entry());
        assert_eq!(lock.home(), NodeId(5));
        assert_eq!(lock.addr(), tag.addr());
    }
}
