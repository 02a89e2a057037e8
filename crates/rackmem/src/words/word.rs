//! What can be a word: 32 bits or 64.

use nic::words::Width;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

/// A word of 32 or 64 bits. Minimum and maximum are of signed numbers whatever the type says, as RISC-V's `amomin` and `amomax`.
pub trait Word: Copy + PartialEq + sealed::Sealed {
    #[doc(hidden)]
    const WIDTH: Width;
    #[doc(hidden)]
    fn bits(self) -> u64;
    #[doc(hidden)]
    fn of_bits(bits: u64) -> Self;
}

impl Word for u64 {
    const WIDTH: Width = Width::Double;

    #[inline(always)]
    fn bits(self) -> u64 {
        self
    }

    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        bits
    }
}

impl Word for i64 {
    const WIDTH: Width = Width::Double;

    #[inline(always)]
    fn bits(self) -> u64 {
        self.cast_unsigned()
    }

    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        bits.cast_signed()
    }
}

impl Word for u32 {
    const WIDTH: Width = Width::Word;

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half has the word")]
    fn of_bits(bits: u64) -> Self {
        bits as u32
    }
}

impl Word for i32 {
    const WIDTH: Width = Width::Word;

    #[inline(always)]
    fn bits(self) -> u64 {
        i64::from(self).cast_unsigned()
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half has the word")]
    fn of_bits(bits: u64) -> Self {
        bits as i32
    }
}
