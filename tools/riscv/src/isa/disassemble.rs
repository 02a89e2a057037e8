//! Words as text: one instruction, as the GNU assembler writes it without pseudo-instructions; remote atomics as `name rd, rs1,
//! rs2`.

use core::fmt;

use super::operand::{CSRS, ORDERED, Operand, REGISTERS};
use super::table::decode;

/// A word at an address, to be displayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    word: u32,
    address: u64,
}

/// A word as text. Targets of jumps are written as addresses. What is no instruction is `.word`.
pub const fn disassemble(word: u32, address: u64) -> Text {
    Text { word, address }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { word, address } = *self;
        let Some(row) = decode(word) else { return write!(f, ".word {word:#010x}") };
        f.write_str(row.name)?;
        if row.has_order_bits() {
            f.write_str(ORDER[(word >> 25 & 3) as usize])?;
        }
        for (index, operand) in row.operands.iter().enumerate() {
            f.write_str(if index == 0 { " " } else { ", " })?;
            let value = operand.value(word);
            let register = |number: i32| REGISTERS[(number & 0x1f) as usize];
            match operand {
                Operand::Rd | Operand::Rs1 | Operand::Rs2 => f.write_str(register(value))?,
                Operand::Ed | Operand::Es1 | Operand::Es2 => write!(f, "e{value}")?,
                Operand::At => write!(f, "({})", register(value))?,
                Operand::Near | Operand::NearStore => {
                    write!(f, "{value}({})", register(Operand::Rs1.value(word)))?;
                }
                Operand::BranchTo | Operand::JumpTo => {
                    write!(f, "{:#x}", address.wrapping_add_signed(i64::from(value)))?;
                }
                Operand::Upper => write!(f, "{value:#x}")?,
                Operand::Before | Operand::After => fence(f, value)?,
                Operand::Csr => {
                    match CSRS.iter().find(|(number, _)| i64::from(*number) == i64::from(value)) {
                        Some((_, name)) => f.write_str(name)?,
                        None => write!(f, "{value:#x}")?,
                    }
                }
                Operand::Immediate | Operand::Shift6 | Operand::Shift5 | Operand::Unsigned5 => {
                    write!(f, "{value}")?
                }
            }
        }
        Ok(())
    }
}

/// How aq and rl are written behind a name.
pub(super) const ORDER: [&str; 4] = ["", ".rl", ".aq", ".aqrl"];

fn fence(f: &mut fmt::Formatter<'_>, set: i32) -> fmt::Result {
    if set == 0 {
        return f.write_str("0");
    }
    for (index, letter) in ORDERED.into_iter().enumerate() {
        if set & 0b1000 >> index != 0 {
            write!(f, "{letter}")?;
        }
    }
    Ok(())
}
