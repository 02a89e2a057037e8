//! What maps are ordered by.

/// A key: as bits it has the order that it has as itself, and no two keys have the same bits.
pub trait Key: Copy + Ord {
    /// How many bits it has. Pairs of keys have at most 128.
    const BITS: u32;

    /// It, as bits.
    fn bits(self) -> u128;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Key for $number {
            const BITS: u32 = <$number>::BITS;

            fn bits(self) -> u128 {
                self as u128
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 usize);

impl Key for bool {
    const BITS: u32 = 1;

    fn bits(self) -> u128 {
        u128::from(self)
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    const BITS: u32 = {
        assert!(A::BITS + B::BITS <= 128, "a key fits into 128 bits");
        A::BITS + B::BITS
    };

    fn bits(self) -> u128 {
        // Names the constant, so that it is checked.
        let _ = Self::BITS;
        self.0.bits() << B::BITS | self.1.bits()
    }
}

/// Makes keys of types that are numbers, ids or pairs in another coat: `key!(NodeId: u16 = |it| it.0)`.
#[macro_export]
macro_rules! key {
    ($($type:ty: $as:ty = |$it:ident| $value:expr),* $(,)?) => {$(
        impl $crate::Key for $type {
            const BITS: u32 = <$as as $crate::Key>::BITS;

            fn bits(self) -> u128 {
                let $it = self;
                let value: $as = $value;
                value.bits()
            }
        }
    )*};
}
