//! Code that cores execute: words decoded once, for all nodes, because nobody can change them.
//!
//! What must always hold: an operation is what its word decodes to; there is one behind the last, so that running off the end
//! is noticed without a comparison of its own.

use crate::isa::{Kind, Operand, decode};

/// A decoded word: eight bytes, so that eight of them are a line of the host's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    /// Where a result goes: [`SINK`] stands for `zero`.
    pub(crate) rd: u8,
    pub(crate) rs1: u8,
    pub(crate) rs2: u8,
    /// The constant; of what has aq and rl, these; of a control register access, which.
    pub(crate) imm: i32,
}

/// A register that is written and never read: what is written to `zero`.
pub(crate) const SINK: u8 = 32;

const _: () = assert!(size_of::<Op>() == 8);

/// The code of a program.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    start: u64,
    words: Vec<u32>,
    ops: Vec<Op>,
}

impl Code {
    pub(crate) fn new(start: u64, words: Vec<u32>) -> Self {
        let end = Op { kind: Kind::End, rd: 0, rs1: 0, rs2: 0, imm: 0 };
        let ops = words.iter().map(|word| Op::of(*word)).chain([end]).collect();
        Self { start, words, ops }
    }

    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Which operation is at an address, a multiple of four: out of bounds if there is none.
    pub(crate) const fn index(&self, address: u64) -> usize {
        (address.wrapping_sub(self.start).cast_signed() >> 2).cast_unsigned() as usize
    }

    /// The other way round, also out of bounds.
    pub(crate) const fn address(&self, index: usize) -> u64 {
        self.start.wrapping_add((index as u64) << 2)
    }

    /// The word at an address.
    pub(crate) fn word(&self, address: u64) -> Option<u32> {
        address.is_multiple_of(4).then(|| self.words.get(self.index(address)).copied()).flatten()
    }

    /// What the instruction at an address does.
    pub(crate) fn kind(&self, address: u64) -> Kind {
        self.ops.get(self.index(address)).map_or(Kind::End, |op| op.kind)
    }

    /// Its words, with their addresses.
    pub(crate) fn words(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        (self.start..).step_by(4).zip(self.words.iter().copied())
    }
}

impl Op {
    pub(crate) fn of(word: u32) -> Self {
        let Some(row) = decode(word) else {
            return Self { kind: Kind::Illegal, rd: SINK, rs1: 0, rs2: 0, imm: word.cast_signed() };
        };
        let field = |operand: Operand| operand.value(word) as u8;
        let is_plain = |operand: &&Operand| !matches!(operand, Operand::Rd | Operand::Rs1 | Operand::Rs2);
        let constant = row.operands.iter().filter(is_plain).find(|operand| has_constant(**operand));
        let imm = match constant {
            Some(Operand::Upper) => Operand::Upper.value(word) << 12,
            Some(operand) => operand.value(word),
            None if row.has_order_bits() => (word >> 25 & 3).cast_signed(),
            None => 0,
        };
        let writes = row.operands.contains(&Operand::Rd);
        let rd = field(Operand::Rd);
        Self {
            kind: row.kind,
            rd: if writes && rd == 0 { SINK } else { rd },
            rs1: field(Operand::Rs1),
            rs2: field(Operand::Rs2),
            imm,
        }
    }
}

const fn has_constant(operand: Operand) -> bool {
    !matches!(
        operand,
        Operand::Rd
            | Operand::Rs1
            | Operand::Rs2
            | Operand::Ed
            | Operand::Es1
            | Operand::Es2
            | Operand::At
            | Operand::Unsigned5
            | Operand::After
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble::assemble;

    fn op(text: &str) -> Op {
        Op::of(assemble(text, 0).unwrap()[0])
    }

    #[test]
    fn constants_are_ready_to_be_used() {
        assert_eq!(op("lui a0, 0x80000").imm, i32::MIN);
        assert_eq!(op("sd a1, -8(sp)").imm, -8);
        assert_eq!(op("jal ra, 0xfffffffffffff000").imm, -4096);
        assert_eq!(op("srai a0, a0, 63").imm, 63);
        assert_eq!(op("csrrs a0, instret, zero").imm, 0xc02);
        assert_eq!(op("fence rw, w").imm, 0b0011);
        assert_eq!(op("amoadd.w.aqrl a0, a1, (a2)").imm, 0b11);
    }

    #[test]
    fn a_result_for_zero_goes_nowhere() {
        assert_eq!(op("add zero, a0, a1").rd, SINK);
        assert_eq!(op("eaddie e0, a0, 0").rd, 0, "an extension register is none");
    }

    #[test]
    fn addresses_outside_have_no_operation() {
        let code = Code::new(0x1000, vec![0x13; 4]);
        assert_eq!(code.ops()[code.index(0x100c)].kind, Kind::Addi);
        assert_eq!(code.ops()[code.index(0x1010)].kind, Kind::End);
        for address in [0xffc, 0x1014, 0, u64::MAX - 3] {
            assert!(code.ops().get(code.index(address)).is_none(), "{address:#x}");
            assert_eq!(code.address(code.index(address)), address);
        }
    }
}
