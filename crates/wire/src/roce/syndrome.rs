//! The syndrome byte of an AETH: an acknowledgement with credits, "not ready", or why a request was refused.
//!
//! Bits 6 and 5 say which (00, 01, 11; 10 and bit 7 are reserved), the lower five hold credits, a timer or a code.
//! Section 9.7.5.2 of the InfiniBand specification.

use crate::time::Nanos;

/// What a responder says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syndrome {
    /// Executed. Five bits of credits: [`Syndrome::credits`] encodes them, [`Syndrome::NO_CREDITS`] says that no
    /// credits are kept.
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

/// Table 46: how many receives the codes 0 to 30 stand for. 31 says that no credits are kept.
const CREDIT_TABLE: [u32; 31] = [
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048,
    3_072, 4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768,
];

impl RnrTimer {
    /// The timer with this five-bit code.
    pub const fn from_code(code: u8) -> Self {
        Self(code & 31)
    }

    /// The shortest timer that is at least `span`, or the longest.
    pub fn at_least(span: Nanos) -> Self {
        let code = (1..32).find(|&code| Self(code).span() >= span);
        Self(code.unwrap_or(0))
    }

    /// How long it is.
    pub const fn span(self) -> Nanos {
        Nanos(RNR_TABLE[self.0 as usize] as u64 * 10_000)
    }
}

impl Syndrome {
    /// An acknowledgement that keeps no credits.
    pub const NO_CREDITS: Self = Self::Ack(31);

    /// An acknowledgement that says that at least the largest encodable number up to `receives` is posted.
    pub fn credits(receives: usize) -> Self {
        let code = CREDIT_TABLE.iter().rposition(|&count| count as usize <= receives).unwrap_or(0);
        Self::Ack(u8::try_from(code).expect("31 codes"))
    }

    /// How many receives an acknowledgement announces, if it does.
    pub fn receives(self) -> Option<u32> {
        match self {
            Self::Ack(code) => CREDIT_TABLE.get(usize::from(code)).copied(),
            Self::RnrNak(_) | Self::Nak(_) => None,
        }
    }

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
    fn timers_and_credits_are_rounded_to_the_safe_side() {
        assert_eq!(RnrTimer::at_least(Nanos(1)).span(), Nanos(10_000));
        assert_eq!(RnrTimer::at_least(Nanos(41_000)).span(), Nanos(60_000));
        assert_eq!(RnrTimer::at_least(Nanos::MAX).span(), Nanos(655_360_000));
        assert_eq!(Syndrome::credits(0), Syndrome::Ack(0));
        assert_eq!(Syndrome::credits(5).receives(), Some(4));
        assert_eq!(Syndrome::credits(1 << 20).receives(), Some(32_768));
        assert_eq!(Syndrome::NO_CREDITS.receives(), None);
    }
}
