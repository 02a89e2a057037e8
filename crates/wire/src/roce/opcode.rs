//! What a packet is: the opcodes of the reliable-connected transport, and ours in the manufacturers' range.
//!
//! The upper three bits name the transport service (000 is reliable connected), 11x is left to manufacturers. There
//! SABRes and remote atomics have theirs: `0xC0` to `0xC2`, `0xD0` and `0xD1`. They travel on the same queue pairs, with
//! numbers in the same order, and have the headers of what they resemble: a READ, an atomic.
//!
//! What must always hold: an opcode alone says which headers follow the BTH ([`Opcode::layout`]).

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $bits:literal, $layout:ident;)*) => {
        /// The first byte of a BTH.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Opcode {
            $($(#[$doc])* $name = $bits,)*
        }

        impl Opcode {
            /// Every opcode that is understood.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The opcode of this byte, if it is one that is understood.
            pub const fn from_wire(byte: u8) -> Option<Self> {
                match byte {
                    $($bits => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The headers between the BTH and the payload.
            pub const fn layout(self) -> Layout {
                match self {
                    $(Self::$name => Layout::$layout,)*
                }
            }
        }
    };
}

opcodes! {
    /// The first packet of a message that goes into a posted receive; more follow.
    SendFirst = 0x00, Plain;
    /// One between first and last.
    SendMiddle = 0x01, Plain;
    /// The last.
    SendLast = 0x02, Plain;
    /// The last, with immediate data.
    SendLastImmediate = 0x03, Immediate;
    /// The whole message.
    SendOnly = 0x04, Plain;
    /// The whole message, with immediate data.
    SendOnlyImmediate = 0x05, Immediate;
    /// The first packet of a WRITE, with the place of all of it; more follow.
    WriteFirst = 0x06, Reth;
    /// One between first and last.
    WriteMiddle = 0x07, Plain;
    /// The last.
    WriteLast = 0x08, Plain;
    /// The last, with immediate data: takes a posted receive.
    WriteLastImmediate = 0x09, Immediate;
    /// The whole WRITE.
    WriteOnly = 0x0A, Reth;
    /// The whole WRITE, with immediate data: takes a posted receive.
    WriteOnlyImmediate = 0x0B, RethImmediate;
    /// Asks for bytes.
    ReadRequest = 0x0C, Reth;
    /// The first of them; more follow.
    ReadResponseFirst = 0x0D, Aeth;
    /// Some between first and last.
    ReadResponseMiddle = 0x0E, Plain;
    /// The last.
    ReadResponseLast = 0x0F, Aeth;
    /// All of them.
    ReadResponseOnly = 0x10, Aeth;
    /// Everything up to this PSN has been executed, or this one was refused: the syndrome says.
    Acknowledge = 0x11, Aeth;
    /// What a word was before the atomic with this PSN.
    AtomicAcknowledge = 0x12, AethAtomic;
    /// Compares a 64-bit word and swaps it if it is equal.
    CompareSwap = 0x13, Atomic;
    /// Adds to a 64-bit word.
    FetchAdd = 0x14, Atomic;
    /// Asks for a whole object (SABRe): the address of its version, and the bytes of its data behind that.
    SabreRequest = 0xC0, Reth;
    /// A part of its data.
    SabreResponse = 0xC1, Plain;
    /// Whether the object was whole, and of which version: [`Verdict`](super::Verdict).
    SabreValidation = 0xC2, AethAtomic;
    /// Remote atomics: a [`batch`](super::batch) of them.
    RaeRequest = 0xD0, Plain;
    /// What their words were.
    RaeResponse = 0xD1, Aeth;
}

/// Headers between BTH and payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// None.
    Plain,
    /// Immediate data.
    Immediate,
    /// Address, key and length.
    Reth,
    /// The same, then immediate data.
    RethImmediate,
    /// Address, key and operands.
    Atomic,
    /// Syndrome and message number.
    Aeth,
    /// The same, then the original word.
    AethAtomic,
}

impl Layout {
    /// Bytes of these headers.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Immediate | Self::Aeth => 4,
            Self::Reth => 16,
            Self::RethImmediate => 20,
            Self::Atomic => 28,
            Self::AethAtomic => 12,
        }
    }
}

impl Opcode {
    /// The first byte of the manufacturers' range, which extends to 0xFF.
    pub const MANUFACTURER: u8 = 0xC0;

    /// True if it goes from a responder to a requester.
    pub const fn is_response(self) -> bool {
        matches!(
            self,
            Self::ReadResponseFirst
                | Self::ReadResponseMiddle
                | Self::ReadResponseLast
                | Self::ReadResponseOnly
                | Self::Acknowledge
                | Self::AtomicAcknowledge
                | Self::SabreResponse
                | Self::SabreValidation
                | Self::RaeResponse
        )
    }

    /// True if bytes may stand behind the headers.
    pub const fn carries_payload(self) -> bool {
        !matches!(
            self,
            Self::ReadRequest
                | Self::Acknowledge
                | Self::AtomicAcknowledge
                | Self::CompareSwap
                | Self::FetchAdd
                | Self::SabreRequest
                | Self::SabreValidation
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_its_own_opcode_or_none() {
        let known = (0..=u8::MAX).filter_map(Opcode::from_wire).collect::<alloc::vec::Vec<_>>();
        assert_eq!(known, Opcode::ALL);
        for opcode in Opcode::ALL {
            assert_eq!(Opcode::from_wire(*opcode as u8), Some(*opcode));
        }
    }
}
