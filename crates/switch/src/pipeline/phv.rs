//! The packet header vector: all that a stage knows of a packet.

/// Names a field of the PHV. Made by [`crate::pipeline::ProgramBuilder`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Field(pub(super) u8);

impl Field {
    /// Where outputs go that nobody wants. No program can name it.
    pub(crate) const SINK: Self = Self(Phv::FIELDS as u8);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The PHV of one packet in one pass. Fields that the parser does not set are 0 when the pass begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phv([u64; Self::SLOTS]);

impl Phv {
    /// Fields that a program can have.
    pub const FIELDS: usize = 63;
    /// As many as a field's byte can name, so that no index needs a bounds check; only the first are used.
    const SLOTS: usize = 256;

    /// All fields 0.
    #[inline]
    pub const fn new() -> Self {
        Self([0; Self::SLOTS])
    }

    /// All fields 0 again.
    #[inline]
    pub fn clear(&mut self) {
        self.0[..=Self::FIELDS].fill(0);
    }

    /// The value of a field.
    #[inline]
    pub const fn get(&self, field: Field) -> u64 {
        self.0[field.index()]
    }

    /// Sets a field.
    #[inline]
    pub const fn set(&mut self, field: Field, value: u64) {
        self.0[field.index()] = value;
    }
}

impl Default for Phv {
    fn default() -> Self {
        Self::new()
    }
}
