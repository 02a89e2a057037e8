//! The packet header vector: all that a stage knows of a packet.

/// Names a field of the PHV. Made by [`crate::pipeline::ProgramBuilder`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Field(pub(super) u8);

impl Field {
    /// Where outputs go that nobody wants. No program can name it.
    pub(super) const SINK: Self = Self(Phv::FIELDS as u8);

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The PHV of one packet in one pass. Fields that the parser does not set are 0 when the pass begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phv([u64; Self::SLOTS]);

impl Phv {
    /// Fields that a program can have.
    pub const FIELDS: usize = Self::SLOTS - 1;
    /// A power of two, so that a masked index needs no bounds check.
    const SLOTS: usize = 64;

    /// All fields 0.
    #[inline]
    pub const fn new() -> Self {
        Self([0; Self::SLOTS])
    }

    /// All fields 0 again.
    #[inline]
    pub const fn clear(&mut self) {
        self.0 = [0; Self::SLOTS];
    }

    /// The value of a field.
    #[inline]
    pub const fn get(&self, field: Field) -> u64 {
        self.0[field.index() & (Self::SLOTS - 1)]
    }

    /// Sets a field.
    #[inline]
    pub const fn set(&mut self, field: Field, value: u64) {
        self.0[field.index() & (Self::SLOTS - 1)] = value;
    }
}

impl Default for Phv {
    fn default() -> Self {
        Self::new()
    }
}
