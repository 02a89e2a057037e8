//! The operations, on values.
//!
//! What must always hold: what is said here is all that anybody knows of them; every driver calls [`Operation::apply`].

use wire::roce::batch;
use wire::{Rule, Rules};

use super::Request;

/// How wide a word is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    /// 32 bits.
    Word,
    /// 64 bits.
    Double,
}

impl Width {
    /// Bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Word => 4,
            Self::Double => 8,
        }
    }
}

wire::listed! {
    /// What is done to a word. Minimum and maximum are of signed numbers, as RISC-V's `amomin` and `amomax`.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Operation {
        /// Adds, and wraps around.
        Add,
        /// Bitwise.
        And,
        /// Bitwise.
        Or,
        /// Bitwise.
        Xor,
        /// The smaller of both.
        Min,
        /// The larger of both.
        Max,
        /// The operand, if the word is what was expected.
        CompareSwap,
        /// The operand.
        Swap,
        /// Nothing: a load, which merges with the others.
        Load,
    }
}

impl Operation {
    /// The word may be another one afterwards.
    pub const fn changes(self) -> bool {
        !matches!(self, Self::Load)
    }

    /// What the word is afterwards. All values are sign-extended if they are of 32 bits, and so is the result.
    pub const fn apply(self, width: Width, old: u64, Operands { operand, expected }: Operands) -> u64 {
        let (old, operand, expected) = (width.signed(old), width.signed(operand), width.signed(expected));
        let new = match self {
            Self::Add => old.wrapping_add(operand),
            Self::And => old & operand,
            Self::Or => old | operand,
            Self::Xor => old ^ operand,
            Self::Min => {
                if operand < old {
                    operand
                } else {
                    old
                }
            }
            Self::Max => {
                if operand > old {
                    operand
                } else {
                    old
                }
            }
            Self::CompareSwap => {
                if old == expected {
                    operand
                } else {
                    old
                }
            }
            Self::Swap => operand,
            Self::Load => old,
        };
        width.signed(new.cast_unsigned()).cast_unsigned()
    }
}

/// What an operation takes besides the word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Operands {
    /// The second operand; of [`Operation::CompareSwap`] the new value.
    pub operand: u64,
    /// Of [`Operation::CompareSwap`]: what the word must be.
    pub expected: u64,
}

impl Width {
    /// A value of this width as a number.
    pub const fn signed(self, value: u64) -> i64 {
        match self {
            #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
            Self::Word => value as u32 as i32 as i64,
            Self::Double => value.cast_signed(),
        }
    }

    /// A word out of the double word that it is in.
    pub fn take<R: Rules>(self, rules: R, double: u64, is_upper: bool) -> u64 {
        match self {
            Self::Double => double,
            Self::Word => {
                let half = if is_upper { double >> 32 } else { double & 0xffff_ffff };
                if rules.holds(Rule::WordsAreSigned) { self.signed(half).cast_unsigned() } else { half }
            }
        }
    }

    /// The double word with a word in it exchanged.
    pub fn put<R: Rules>(self, rules: R, double: u64, is_upper: bool, value: u64) -> u64 {
        const LOWER: u64 = 0xffff_ffff;
        match (self, is_upper) {
            (Self::Double, _) => value,
            (Self::Word, _) if !rules.holds(Rule::HalvesAreApart) => value,
            (Self::Word, false) => double & !LOWER | value & LOWER,
            (Self::Word, true) => double & LOWER | value << 32,
        }
    }
}

/// The operation mapping table (section III-B): which operation on the memory a remote one stands for.
pub const fn of_wire(operation: batch::Operation) -> Operation {
    match operation {
        batch::Operation::Add => Operation::Add,
        batch::Operation::And => Operation::And,
        batch::Operation::Or => Operation::Or,
        batch::Operation::Xor => Operation::Xor,
        batch::Operation::Min => Operation::Min,
        batch::Operation::Max => Operation::Max,
        batch::Operation::CompareSwap => Operation::CompareSwap,
        batch::Operation::Swap => Operation::Swap,
        batch::Operation::Load => Operation::Load,
    }
}

impl Operation {
    /// What it is called in a batch: [`of_wire`], the other way round.
    pub const fn to_wire(self) -> batch::Operation {
        match self {
            Self::Add => batch::Operation::Add,
            Self::And => batch::Operation::And,
            Self::Or => batch::Operation::Or,
            Self::Xor => batch::Operation::Xor,
            Self::Min => batch::Operation::Min,
            Self::Max => batch::Operation::Max,
            Self::CompareSwap => batch::Operation::CompareSwap,
            Self::Swap => batch::Operation::Swap,
            Self::Load => batch::Operation::Load,
        }
    }
}

impl Request {
    /// The request that an entry of a batch is.
    pub const fn of_wire(ticket: u64, entry: &batch::Entry) -> Self {
        Self {
            ticket,
            address: entry.address,
            width: if entry.is_wide { Width::Double } else { Width::Word },
            operation: of_wire(entry.operation),
            operands: Operands { operand: entry.operand, expected: entry.expected },
        }
    }

    /// The entry of a batch that this request is.
    pub const fn to_wire(&self, fetches: bool) -> batch::Entry {
        let compares = matches!(self.operation, Operation::CompareSwap);
        batch::Entry {
            address: self.address,
            operation: self.operation.to_wire(),
            is_wide: matches!(self.width, Width::Double),
            fetches,
            operand: self.operands.operand,
            expected: if compares { self.operands.expected } else { 0 },
        }
    }
}
