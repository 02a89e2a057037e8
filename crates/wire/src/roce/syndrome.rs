//! The syndrome byte of an AETH: an acknowledgement with credits, "not ready", or why a request was refused.
//!
//! Bits 6 and 5 say which (00, 01, 11; 10 and bit 7 are reserved), the lower five hold credits, a timer or a code.
//! Section 9.7.5.2 of the InfiniBand specification.

use crate::time::Nanos;

/// What a responder says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syndrome {
    /// Executed. Five bits of credits: [`Syndrome::NO_CREDITS`] says that none are kept.
    Ack(u8),
    /// No receive was posted: ask again after this time.
    RnrNak(RnrTimer),
    /// Refused.
    Nak(NakCode),
}

/// Why a request was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum NakCode {
    /// A packet is missing before this one; the NAK's PSN is that of the missing one.
    SequenceError = 0,
    /// A request that cannot be: too long, of another length than announced, out of its order in a message.
    InvalidRequest = 1,
    /// A wrong key, an address outside its region, a missing permission.
    RemoteAccess = 2,
    /// The responder could not do it for a reason of its own.
    RemoteOperation = 3,
}

/// How long to wait before a request that met no receive is sent again: five bits that stand for 10 us to 655 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RnrTimer(u8);

/// Table 45 of the specification, in units of 10 us. Code 0 is the longest.
const RNR_TABLE: [u32; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048,
    3_072, 4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

impl RnrTimer {
    /// The timer with this five-bit code.
    pub const fn from_code(code: u8) -> Self {
        Self(code & 31)
    }

    /// How long it is.
    pub const fn span(self) -> Nanos {
        Nanos(RNR_TABLE[self.0 as usize] as u64 * 10_000)
    }
}

impl Syndrome {
    /// An acknowledgement that keeps no credits.
    pub const NO_CREDITS: Self = Self::Ack(31);

    /// The byte.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Ack(code) => code & 31,
            Self::RnrNak(timer) => 0x20 | timer.0,
            Self::Nak(code) => 0x60 | code as u8,
        }
    }

    /// The syndrome of this byte, unless it is a reserved one.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        let low = byte & 31;
        Some(match byte >> 5 {
            0 => Self::Ack(low),
            1 => Self::RnrNak(RnrTimer(low)),
            3 => Self::Nak(match low {
                0 => NakCode::SequenceError,
                1 => NakCode::InvalidRequest,
                2 => NakCode::RemoteAccess,
                3 => NakCode::RemoteOperation,
                _ => return None,
            }),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_syndrome_is_written_as_it_was_read() {
        let known = (0..=u8::MAX).filter(|&byte| Syndrome::from_wire(byte).is_some());
        assert_eq!(known.clone().count(), 32 + 32 + 4);
        for byte in known {
            assert_eq!(Syndrome::from_wire(byte).unwrap().to_wire(), byte);
        }
    }

    #[test]
    fn timers_are_as_long_as_the_standard_says() {
        for (code, span) in [(1, 10_000), (5, 60_000), (0, 655_360_000), (32, 655_360_000)] {
            assert_eq!(RnrTimer::from_code(code).span(), Nanos(span), "{code}");
        }
    }
}
