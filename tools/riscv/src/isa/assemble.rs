//! Text as words: what the disassembler writes, with labels, `;` between instructions, comments behind `#`, and six pseudo-instructions (`li`, `mv`, `j`,
//! `ret`, `nop`, `.word`). Tests and examples are written in it, so that they need no tool chain.
//!
//! What must always hold: nothing is guessed; a line that is not understood is an error that names it.

use core::fmt;
use std::collections::BTreeMap;

use super::disassemble::ORDER;
use super::operand::{CSRS, ORDERED, Operand, REGISTERS};
use super::table::{Row, TABLE};

/// A line that is no instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// Which, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl core::error::Error for Error {}

/// What an operand is read with: where its instruction is, and where labels are.
struct Context<'a> {
    address: u64,
    labels: &'a BTreeMap<&'a str, u64>,
}

/// The words of a program whose first instruction is at an address.
///
/// # Errors
/// The first line that is not understood.
pub fn assemble(text: &str, address: u64) -> Result<Vec<u32>, Error> {
    let (mut labels, mut lines, mut at) = (BTreeMap::new(), Vec::new(), address);
    for (line, text) in (1..).zip(text.lines()) {
        for mut rest in text.split('#').next().unwrap_or_default().split(';').map(str::trim) {
            while let Some((label, behind)) = rest.split_once(':') {
                if labels.insert(label.trim(), at).is_some() {
                    return Err(Error { line, why: format!("the label `{label}` is there twice") });
                }
                rest = behind.trim();
            }
            if !rest.is_empty() {
                let words = expand(rest).map_err(|why| Error { line, why })?;
                at += 4 * words.len() as u64;
                lines.push((line, words));
            }
        }
    }
    let mut words = Vec::new();
    for (line, instructions) in lines {
        for text in instructions {
            let context = Context { address: address + 4 * words.len() as u64, labels: &labels };
            words.push(instruction(&text, &context).map_err(|why| Error { line, why })?);
        }
    }
    Ok(words)
}

/// Pseudo-instructions as instructions.
fn expand(text: &str) -> Result<Vec<String>, String> {
    let (name, rest) = split_name(text);
    let operands: Vec<&str> = rest.split(',').map(str::trim).collect();
    Ok(match (name, operands.as_slice()) {
        ("li", &[register, value]) => load_constant(register, number(value)?),
        ("mv", &[to, from]) => vec![format!("addi {to}, {from}, 0")],
        ("j", &[target]) => vec![format!("jal zero, {target}")],
        ("ret", _) => vec!["jalr zero, 0(ra)".into()],
        ("nop", _) => vec!["addi zero, zero, 0".into()],
        _ => vec![text.into()],
    })
}

/// A constant in a register: upper twenty bits and lower twelve, or what is above the lower twelve first, shifted.
fn load_constant(register: &str, value: i64) -> Vec<String> {
    let low = value << 52 >> 52;
    if value == low {
        return vec![format!("addi {register}, zero, {value}")];
    }
    if let Ok(value) = i32::try_from(value) {
        let upper = (i64::from(value).wrapping_sub(low) >> 12) & 0xf_ffff;
        // `addiw` wraps around where the upper part does: 0x7fff_ffff is 0x80000 << 12, less 1.
        return vec![format!("lui {register}, {upper}"), format!("addiw {register}, {register}, {low}")];
    }
    let mut instructions = load_constant(register, value.wrapping_sub(low) >> 12);
    instructions.push(format!("slli {register}, {register}, 12"));
    instructions.push(format!("addi {register}, {register}, {low}"));
    instructions
}

fn split_name(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(name, rest)| (name, rest.trim()))
}

fn instruction(text: &str, context: &Context<'_>) -> Result<u32, String> {
    let (name, rest) = split_name(text);
    if name == ".word" {
        let value = number(rest)?;
        return u32::try_from(value).map_err(|_| format!("{value:#x} is no word"));
    }
    let (row, mut word) = row(name).ok_or_else(|| format!("there is no instruction `{name}`"))?;
    let mut given = rest.split(',').map(str::trim).filter(|text| !text.is_empty());
    for operand in row.operands {
        let text = given.next().ok_or_else(|| format!("`{name}` takes {} operands", row.operands.len()))?;
        word |= bits(*operand, text, context).ok_or_else(|| format!("`{text}` is no operand of `{name}`"))?;
    }
    given.next().map_or(Ok(word), |more| Err(format!("`{name}` takes no operand `{more}`")))
}

/// An instruction by its name, and its bits with aq and rl.
fn row(name: &str) -> Option<(&'static Row, u32)> {
    TABLE.iter().find_map(|row| {
        let suffix = name.strip_prefix(row.name)?;
        let order = if row.has_order_bits() { ORDER.iter().position(|order| *order == suffix)? } else { 0 };
        (row.has_order_bits() || suffix.is_empty()).then_some((row, row.pattern.bits | (order as u32) << 25))
    })
}

fn bits(operand: Operand, text: &str, context: &Context<'_>) -> Option<u32> {
    match operand {
        Operand::Rd | Operand::Rs1 | Operand::Rs2 => operand.place(register(text)?),
        Operand::Ed | Operand::Es1 | Operand::Es2 => operand.place(text.strip_prefix('e')?.parse().ok()?),
        Operand::At => operand.place(register(text.strip_prefix('(')?.strip_suffix(')')?.trim())?),
        Operand::Near | Operand::NearStore => {
            let (offset, base) = text.strip_suffix(')')?.split_once('(')?;
            let base = Operand::Rs1.place(register(base.trim())?)?;
            Some(operand.place(i32::try_from(number(offset.trim()).ok()?).ok()?)? | base)
        }
        Operand::BranchTo | Operand::JumpTo => {
            let target = match context.labels.get(text) {
                Some(target) => *target,
                None => number(text).ok()?.cast_unsigned(),
            };
            operand.place(i32::try_from(target.wrapping_sub(context.address).cast_signed()).ok()?)
        }
        Operand::Before | Operand::After => operand.place(fence(text)?),
        Operand::Csr => match CSRS.iter().find(|(_, name)| *name == text) {
            Some((csr, _)) => operand.place(csr.cast_signed()),
            None => operand.place(i32::try_from(number(text).ok()?).ok()?),
        },
        _ => operand.place(i32::try_from(number(text).ok()?).ok()?),
    }
}

fn fence(text: &str) -> Option<i32> {
    if text == "0" {
        return Some(0);
    }
    text.chars().try_fold(0, |set, letter| {
        let index = ORDERED.iter().position(|ordered| *ordered == letter)?;
        Some(set | 0b1000 >> index)
    })
}

fn register(text: &str) -> Option<i32> {
    let by_number = || text.strip_prefix('x')?.parse().ok().filter(|number| *number < 32);
    let by_name = || REGISTERS.iter().position(|name| *name == text).map(|number| number as i32);
    by_name().or_else(by_number)
}

/// A number: decimal, or hexadecimal behind `0x`, up to 64 bits.
fn number(text: &str) -> Result<i64, String> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    value.map(|value| value.cast_signed().wrapping_mul(sign)).map_err(|_| format!("`{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::disassemble;

    /// Bits of a word that its text does not say: reserved fields of fences.
    fn unsaid(word: u32) -> u32 {
        match word & 0x707f {
            0x000f => 0xf00f_ff80 & !0x7000,
            0x100f => 0xffff_ff80 & !0x7000,
            _ => 0,
        }
    }

    #[test]
    fn what_the_disassembler_writes_is_assembled_to_the_same_word() {
        const ADDRESS: u64 = 0x8000_0000;
        let mut random = random::Random::new(1);
        for row in TABLE {
            for _ in 0..2000 {
                let word = random.bits() as u32 & !row.pattern.mask | row.pattern.bits;
                let text = disassemble(word, ADDRESS).to_string();
                assert_eq!(assemble(&text, ADDRESS), Ok(vec![word & !unsaid(word)]), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_instruction_is_written_as_the_word_that_it_is() {
        for word in [0, 0xffff_ffff, 0x0000_6077, 0x0000_406b] {
            let text = disassemble(word, 0).to_string();
            assert!(text.starts_with(".word"), "{text}");
            assert_eq!(assemble(&text, 0), Ok(vec![word]));
        }
    }

    #[test]
    fn labels_are_distances() {
        let words =
            assemble("again: addi a0, a0, -1\n bne a0, zero, again\n j out\n nop\n out: ret", 0x100).unwrap();
        let text: Vec<_> =
            (0x100..).step_by(4).zip(&words).map(|(at, word)| disassemble(*word, at).to_string()).collect();
        assert_eq!(
            text,
            [
                "addi a0, a0, -1",
                "bne a0, zero, 0x100",
                "jal zero, 0x110",
                "addi zero, zero, 0",
                "jalr zero, 0(ra)"
            ]
        );
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        for (text, why) in [
            ("nop\nmul a0, a1", "takes 3 operands"),
            ("nop\nadd a0, a1, a2, a3", "takes no operand"),
            ("nop\naddi a0, a0, 5000", "no operand"),
            ("nop\nfadd a0, a1, a2", "no instruction"),
            ("nop\nbeq a0, a0, nowhere", "no operand"),
        ] {
            let error = assemble(text, 0).unwrap_err();
            assert_eq!(error.line, 2, "{error}");
            assert!(error.why.contains(why), "{error}");
        }
    }
}
