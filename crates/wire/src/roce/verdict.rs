//! How a SABRe ends: the eight bytes behind the AETH of a [`SabreValidation`](super::Opcode::SabreValidation).
//!
//! From the home of an object to whoever reads it. A writer makes the version of an object odd while it writes, so no
//! whole object has an odd version, and no flag is needed: an even number is the version of what was read, an odd one says
//! that it was torn, and one of them that the object is gone, and it is no use to try again.
//!
//! What must always hold: eight bytes are always a verdict, and only an even number is the verdict "whole".

/// What became of a SABRe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The data are those of this version, which is even.
    Whole(u64),
    /// Somebody was writing: there are no data.
    Torn,
    /// There is no such object any more, or nothing whole will come of it before somebody writes it anew.
    Gone,
}

/// The number that says so.
const GONE: u64 = u64::MAX - 2;

impl Verdict {
    /// The verdict on an object that was found with this version before and after its data were read.
    pub const fn of_version(version: u64) -> Self {
        if version.is_multiple_of(2) { Self::Whole(version) } else { Self::Torn }
    }

    /// The eight bytes, as a number. Torn is all ones, gone is all but one of them.
    pub const fn to_wire(self) -> u64 {
        match self {
            Self::Whole(version) => version,
            Self::Torn => u64::MAX,
            Self::Gone => GONE,
        }
    }

    /// The verdict that these eight bytes are.
    pub const fn from_wire(bits: u64) -> Self {
        if bits == GONE { Self::Gone } else { Self::of_version(bits) }
    }

    /// The version, if it is whole.
    pub const fn version(self) -> Option<u64> {
        match self {
            Self::Whole(version) => Some(version),
            Self::Torn | Self::Gone => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_even_versions_are_whole() {
        for version in [0, 2, 1 << 63, u64::MAX - 1] {
            let whole = Verdict::of_version(version);
            assert_eq!(whole, Verdict::Whole(version));
            assert_eq!(Verdict::from_wire(whole.to_wire()), whole);
        }
        for odd in [1, 3, u64::MAX] {
            assert_eq!(Verdict::of_version(odd), Verdict::Torn);
        }
        for in_vain in [Verdict::Torn, Verdict::Gone] {
            assert_eq!(Verdict::from_wire(in_vain.to_wire()), in_vain);
        }
    }
}
