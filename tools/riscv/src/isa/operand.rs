//! Operands: where they are in a word, and how they are written.
//!
//! What must always hold: [`Operand::place`] and [`Operand::value`] are each other's inverses on the operand's range.

/// What an instruction names besides itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A register, written.
    Rd,
    /// A register, read.
    Rs1,
    /// A register, read.
    Rs2,
    /// An extension register in rd's place.
    Ed,
    /// An extension register in rs1's place.
    Es1,
    /// An extension register in rs2's place.
    Es2,
    /// Twelve bits, signed.
    Immediate,
    /// A shift of a double word.
    Shift6,
    /// A shift of a word.
    Shift5,
    /// `offset(rs1)` of loads.
    Near,
    /// `offset(rs1)` of stores.
    NearStore,
    /// `(rs1)`.
    At,
    /// Where a branch leads: twelve bits, in steps of two bytes.
    BranchTo,
    /// Where a jump leads: twenty bits, in steps of two bytes.
    JumpTo,
    /// The upper twenty bits of a word.
    Upper,
    /// What a fence orders before it.
    Before,
    /// What a fence orders behind it.
    After,
    /// A control register.
    Csr,
    /// A constant in rs1's place.
    Unsigned5,
}

const RD: u32 = 0x1f << 7;
const RS1: u32 = 0x1f << 15;
const RS2: u32 = 0x1f << 20;
const UPPER_12: u32 = 0xfff << 20;
const STORED_12: u32 = 0x7f << 25 | RD;

impl Operand {
    /// Its bits in the word, but for the register of [`Operand::Near`] and [`Operand::NearStore`]: [`Operand::bits`].
    const fn field(self) -> u32 {
        match self {
            Self::Rd | Self::Ed => RD,
            Self::Rs1 | Self::Es1 | Self::Unsigned5 | Self::At => RS1,
            Self::Rs2 | Self::Es2 | Self::Shift5 => RS2,
            Self::Immediate | Self::Near | Self::Csr => UPPER_12,
            Self::Shift6 => 0x3f << 20,
            Self::NearStore | Self::BranchTo => STORED_12,
            Self::JumpTo | Self::Upper => 0xf_ffff << 12,
            Self::Before => 0xf << 24,
            Self::After => 0xf << 20,
        }
    }

    /// All its bits in the word.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Near | Self::NearStore => self.field() | RS1,
            _ => self.field(),
        }
    }

    /// Its value: the number of a register, a constant, a distance in bytes. Of [`Operand::Near`] and [`Operand::NearStore`]: the
    /// offset.
    pub const fn value(self, word: u32) -> i32 {
        let signed = word.cast_signed();
        match self {
            Self::Immediate | Self::Near => signed >> 20,
            Self::NearStore => signed >> 25 << 5 | (signed >> 7 & 0x1f),
            Self::BranchTo => {
                (signed >> 31 << 12)
                    | (signed >> 7 & 1) << 11
                    | (signed >> 25 & 0x3f) << 5
                    | (signed >> 8 & 0xf) << 1
            }
            Self::JumpTo => {
                (signed >> 31 << 20)
                    | (signed >> 12 & 0xff) << 12
                    | (signed >> 20 & 1) << 11
                    | (signed >> 21 & 0x3ff) << 1
            }
            _ => {
                let field = self.field();
                ((word & field) >> field.trailing_zeros()).cast_signed()
            }
        }
    }

    /// The bits of a value, if it has this operand's range.
    pub const fn place(self, value: i32) -> Option<u32> {
        let bits = value.cast_unsigned();
        let (fits, placed) = match self {
            Self::Immediate | Self::Near => (is_signed(value, 12), bits << 20),
            Self::NearStore => (is_signed(value, 12), (bits >> 5 & 0x7f) << 25 | (bits & 0x1f) << 7),
            Self::BranchTo => (
                is_signed(value, 13) && value & 1 == 0,
                (bits >> 12 & 1) << 31
                    | (bits >> 5 & 0x3f) << 25
                    | (bits >> 1 & 0xf) << 8
                    | (bits >> 11 & 1) << 7,
            ),
            Self::JumpTo => (
                is_signed(value, 21) && value & 1 == 0,
                (bits >> 20 & 1) << 31
                    | (bits >> 1 & 0x3ff) << 21
                    | (bits >> 11 & 1) << 20
                    | (bits >> 12 & 0xff) << 12,
            ),
            _ => {
                let (field, lowest) = (self.field(), self.field().trailing_zeros());
                (value >= 0 && bits <= field >> lowest, bits << lowest)
            }
        };
        if fits { Some(placed) } else { None }
    }
}

const fn is_signed(value: i32, bits: u32) -> bool {
    let most = 1 << (bits - 1);
    -most <= value && value < most
}

/// What the integer registers are called, by the calling convention.
pub const REGISTERS: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6",
    "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

/// The control registers that user programs read.
pub(super) const CSRS: [(u32, &str); 4] =
    [(0x8c0, "routine"), (0xc00, "cycle"), (0xc01, "time"), (0xc02, "instret")];

/// What a fence can order, most significant bit first.
pub(super) const ORDERED: [char; 4] = ['i', 'o', 'r', 'w'];

#[cfg(test)]
mod tests {
    use crate::isa::TABLE;

    #[test]
    fn what_is_placed_is_what_is_read() {
        for operand in TABLE.iter().flat_map(|row| row.operands) {
            let mut fitting = 0;
            for value in -0x11_0000..0x11_0000 {
                if let Some(bits) = operand.place(value) {
                    assert_eq!(operand.value(bits), value, "{operand:?}");
                    assert_eq!(
                        operand.value(bits | !operand.field()),
                        value,
                        "{operand:?} reads others' bits"
                    );
                    fitting += 1;
                }
            }
            let of_field = 1 << operand.field().count_ones();
            assert_eq!(fitting, of_field, "{operand:?}");
        }
    }
}
