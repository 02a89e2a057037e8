//! Every instruction that the cores know: its bits, its name, its operands. Decoder, disassembler and assembler read this
//! table, and nothing else says how an instruction is encoded.
//!
//! Base: RV64I, M, A, Zicsr and Zifencei, as in the unprivileged specification. Address extension: xBGAS 2.0.0, sections 3.1 to
//! 3.3 (`ele` and `ese` move extension registers to and from local memory). Remote atomics: the encoding of the tool chain of
//! the RAE paper, R-type without aq and rl.
//!
//! What must always hold: no word matches two rows.

use super::operand::Operand::{self, *};

/// Bits of an instruction that say what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The bits that are compared.
    pub mask: u32,
    /// What they are.
    pub bits: u32,
}

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// What it does.
    pub kind: Kind,
    /// What it is called.
    pub name: &'static str,
    /// Which words it is.
    pub pattern: Pattern,
    /// What is written behind its name.
    pub operands: &'static [Operand],
}

macro_rules! instructions {
    ($($kind:ident $name:literal $pattern:expr, [$($operand:expr),*];)*) => {
        /// What an instruction does.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Kind {
            $(#[doc = concat!("`", $name, "`")] $kind,)*
            /// No instruction.
            Illegal,
            /// Behind the last word of the code.
            End,
        }

        /// All instructions.
        pub static TABLE: &[Row] = &[
            $(Row { kind: Kind::$kind, name: $name, pattern: $pattern, operands: &[$($operand),*] },)*
        ];
    };
}

const fn opcode(opcode: u32) -> Pattern {
    Pattern { mask: 0x7f, bits: opcode }
}

/// I, S and B types: told apart by funct3.
const fn i(opcode: u32, funct3: u32) -> Pattern {
    Pattern { mask: 0x707f, bits: opcode | funct3 << 12 }
}

const fn r(opcode: u32, funct3: u32, funct7: u32) -> Pattern {
    Pattern { mask: 0xfe00_707f, bits: opcode | funct3 << 12 | funct7 << 25 }
}

/// Shifts by a constant of six bits.
const fn shift(funct3: u32, funct6: u32) -> Pattern {
    Pattern { mask: 0xfc00_707f, bits: 0x13 | funct3 << 12 | funct6 << 26 }
}

/// Atomics: bits 26 and 25 are aq and rl.
const fn a(funct3: u32, funct5: u32) -> Pattern {
    Pattern { mask: 0xf800_707f, bits: 0x2f | funct3 << 12 | funct5 << 27 }
}

const fn lr(funct3: u32) -> Pattern {
    Pattern { mask: 0xf9f0_707f, bits: 0x2f | funct3 << 12 | 0b00010 << 27 }
}

const fn exactly(bits: u32) -> Pattern {
    Pattern { mask: u32::MAX, bits }
}

instructions! {
    Lui "lui" opcode(0x37), [Rd, Upper];
    Auipc "auipc" opcode(0x17), [Rd, Upper];
    Jal "jal" opcode(0x6f), [Rd, JumpTo];
    Jalr "jalr" i(0x67, 0), [Rd, Near];
    Beq "beq" i(0x63, 0), [Rs1, Rs2, BranchTo];
    Bne "bne" i(0x63, 1), [Rs1, Rs2, BranchTo];
    Blt "blt" i(0x63, 4), [Rs1, Rs2, BranchTo];
    Bge "bge" i(0x63, 5), [Rs1, Rs2, BranchTo];
    Bltu "bltu" i(0x63, 6), [Rs1, Rs2, BranchTo];
    Bgeu "bgeu" i(0x63, 7), [Rs1, Rs2, BranchTo];
    Lb "lb" i(0x03, 0), [Rd, Near];
    Lh "lh" i(0x03, 1), [Rd, Near];
    Lw "lw" i(0x03, 2), [Rd, Near];
    Ld "ld" i(0x03, 3), [Rd, Near];
    Lbu "lbu" i(0x03, 4), [Rd, Near];
    Lhu "lhu" i(0x03, 5), [Rd, Near];
    Lwu "lwu" i(0x03, 6), [Rd, Near];
    Sb "sb" i(0x23, 0), [Rs2, NearStore];
    Sh "sh" i(0x23, 1), [Rs2, NearStore];
    Sw "sw" i(0x23, 2), [Rs2, NearStore];
    Sd "sd" i(0x23, 3), [Rs2, NearStore];
    Addi "addi" i(0x13, 0), [Rd, Rs1, Immediate];
    Slti "slti" i(0x13, 2), [Rd, Rs1, Immediate];
    Sltiu "sltiu" i(0x13, 3), [Rd, Rs1, Immediate];
    Xori "xori" i(0x13, 4), [Rd, Rs1, Immediate];
    Ori "ori" i(0x13, 6), [Rd, Rs1, Immediate];
    Andi "andi" i(0x13, 7), [Rd, Rs1, Immediate];
    Slli "slli" shift(1, 0b00_0000), [Rd, Rs1, Shift6];
    Srli "srli" shift(5, 0b00_0000), [Rd, Rs1, Shift6];
    Srai "srai" shift(5, 0b01_0000), [Rd, Rs1, Shift6];
    Add "add" r(0x33, 0, 0), [Rd, Rs1, Rs2];
    Sub "sub" r(0x33, 0, 0b010_0000), [Rd, Rs1, Rs2];
    Sll "sll" r(0x33, 1, 0), [Rd, Rs1, Rs2];
    Slt "slt" r(0x33, 2, 0), [Rd, Rs1, Rs2];
    Sltu "sltu" r(0x33, 3, 0), [Rd, Rs1, Rs2];
    Xor "xor" r(0x33, 4, 0), [Rd, Rs1, Rs2];
    Srl "srl" r(0x33, 5, 0), [Rd, Rs1, Rs2];
    Sra "sra" r(0x33, 5, 0b010_0000), [Rd, Rs1, Rs2];
    Or "or" r(0x33, 6, 0), [Rd, Rs1, Rs2];
    And "and" r(0x33, 7, 0), [Rd, Rs1, Rs2];
    Addiw "addiw" i(0x1b, 0), [Rd, Rs1, Immediate];
    Slliw "slliw" r(0x1b, 1, 0), [Rd, Rs1, Shift5];
    Srliw "srliw" r(0x1b, 5, 0), [Rd, Rs1, Shift5];
    Sraiw "sraiw" r(0x1b, 5, 0b010_0000), [Rd, Rs1, Shift5];
    Addw "addw" r(0x3b, 0, 0), [Rd, Rs1, Rs2];
    Subw "subw" r(0x3b, 0, 0b010_0000), [Rd, Rs1, Rs2];
    Sllw "sllw" r(0x3b, 1, 0), [Rd, Rs1, Rs2];
    Srlw "srlw" r(0x3b, 5, 0), [Rd, Rs1, Rs2];
    Sraw "sraw" r(0x3b, 5, 0b010_0000), [Rd, Rs1, Rs2];
    Fence "fence" i(0x0f, 0), [Before, After];
    FenceI "fence.i" i(0x0f, 1), [];
    Ecall "ecall" exactly(0x0000_0073), [];
    Ebreak "ebreak" exactly(0x0010_0073), [];

    Mul "mul" r(0x33, 0, 1), [Rd, Rs1, Rs2];
    Mulh "mulh" r(0x33, 1, 1), [Rd, Rs1, Rs2];
    Mulhsu "mulhsu" r(0x33, 2, 1), [Rd, Rs1, Rs2];
    Mulhu "mulhu" r(0x33, 3, 1), [Rd, Rs1, Rs2];
    Div "div" r(0x33, 4, 1), [Rd, Rs1, Rs2];
    Divu "divu" r(0x33, 5, 1), [Rd, Rs1, Rs2];
    Rem "rem" r(0x33, 6, 1), [Rd, Rs1, Rs2];
    Remu "remu" r(0x33, 7, 1), [Rd, Rs1, Rs2];
    Mulw "mulw" r(0x3b, 0, 1), [Rd, Rs1, Rs2];
    Divw "divw" r(0x3b, 4, 1), [Rd, Rs1, Rs2];
    Divuw "divuw" r(0x3b, 5, 1), [Rd, Rs1, Rs2];
    Remw "remw" r(0x3b, 6, 1), [Rd, Rs1, Rs2];
    Remuw "remuw" r(0x3b, 7, 1), [Rd, Rs1, Rs2];

    LrW "lr.w" lr(2), [Rd, At];
    ScW "sc.w" a(2, 0b00011), [Rd, Rs2, At];
    AmoSwapW "amoswap.w" a(2, 0b00001), [Rd, Rs2, At];
    AmoAddW "amoadd.w" a(2, 0b00000), [Rd, Rs2, At];
    AmoXorW "amoxor.w" a(2, 0b00100), [Rd, Rs2, At];
    AmoAndW "amoand.w" a(2, 0b01100), [Rd, Rs2, At];
    AmoOrW "amoor.w" a(2, 0b01000), [Rd, Rs2, At];
    AmoMinW "amomin.w" a(2, 0b10000), [Rd, Rs2, At];
    AmoMaxW "amomax.w" a(2, 0b10100), [Rd, Rs2, At];
    AmoMinuW "amominu.w" a(2, 0b11000), [Rd, Rs2, At];
    AmoMaxuW "amomaxu.w" a(2, 0b11100), [Rd, Rs2, At];
    LrD "lr.d" lr(3), [Rd, At];
    ScD "sc.d" a(3, 0b00011), [Rd, Rs2, At];
    AmoSwapD "amoswap.d" a(3, 0b00001), [Rd, Rs2, At];
    AmoAddD "amoadd.d" a(3, 0b00000), [Rd, Rs2, At];
    AmoXorD "amoxor.d" a(3, 0b00100), [Rd, Rs2, At];
    AmoAndD "amoand.d" a(3, 0b01100), [Rd, Rs2, At];
    AmoOrD "amoor.d" a(3, 0b01000), [Rd, Rs2, At];
    AmoMinD "amomin.d" a(3, 0b10000), [Rd, Rs2, At];
    AmoMaxD "amomax.d" a(3, 0b10100), [Rd, Rs2, At];
    AmoMinuD "amominu.d" a(3, 0b11000), [Rd, Rs2, At];
    AmoMaxuD "amomaxu.d" a(3, 0b11100), [Rd, Rs2, At];

    Csrrw "csrrw" i(0x73, 1), [Rd, Csr, Rs1];
    Csrrs "csrrs" i(0x73, 2), [Rd, Csr, Rs1];
    Csrrc "csrrc" i(0x73, 3), [Rd, Csr, Rs1];
    Csrrwi "csrrwi" i(0x73, 5), [Rd, Csr, Unsigned5];
    Csrrsi "csrrsi" i(0x73, 6), [Rd, Csr, Unsigned5];
    Csrrci "csrrci" i(0x73, 7), [Rd, Csr, Unsigned5];

    Elb "elb" i(0x77, 0), [Rd, Near];
    Elh "elh" i(0x77, 1), [Rd, Near];
    Elw "elw" i(0x77, 2), [Rd, Near];
    Eld "eld" i(0x77, 3), [Rd, Near];
    Elbu "elbu" i(0x77, 4), [Rd, Near];
    Elhu "elhu" i(0x77, 5), [Rd, Near];
    Ele "ele" i(0x77, 7), [Ed, Near];
    Esb "esb" i(0x7b, 0), [Rs2, NearStore];
    Esh "esh" i(0x7b, 1), [Rs2, NearStore];
    Esw "esw" i(0x7b, 2), [Rs2, NearStore];
    Esd "esd" i(0x7b, 3), [Rs2, NearStore];
    Ese "ese" i(0x7b, 7), [Es2, NearStore];
    Erlb "erlb" r(0x33, 0, 0b101_0101), [Rd, Rs1, Es2];
    Erlh "erlh" r(0x33, 1, 0b101_0101), [Rd, Rs1, Es2];
    Erlw "erlw" r(0x33, 2, 0b101_0101), [Rd, Rs1, Es2];
    Erld "erld" r(0x33, 3, 0b101_0101), [Rd, Rs1, Es2];
    Erlbu "erlbu" r(0x33, 4, 0b101_0101), [Rd, Rs1, Es2];
    Erlhu "erlhu" r(0x33, 5, 0b101_0101), [Rd, Rs1, Es2];
    Erle "erle" r(0x33, 7, 0b101_0101), [Ed, Rs1, Es2];
    Ersb "ersb" r(0x33, 0, 0b010_0010), [Rs1, Rs2, Ed];
    Ersh "ersh" r(0x33, 1, 0b010_0010), [Rs1, Rs2, Ed];
    Ersw "ersw" r(0x33, 2, 0b010_0010), [Rs1, Rs2, Ed];
    Ersd "ersd" r(0x33, 3, 0b010_0010), [Rs1, Rs2, Ed];
    Erse "erse" r(0x33, 7, 0b010_0010), [Es1, Rs2, Ed];
    Eaddi "eaddi" i(0x7b, 6), [Rd, Es1, Immediate];
    Eaddie "eaddie" i(0x7b, 5), [Ed, Rs1, Immediate];
    Eaddix "eaddix" i(0x03, 7), [Ed, Es1, Immediate];

    EamoXorW "eamoxor.w" r(0x6b, 6, 1), [Rd, Rs1, Rs2];
    EamoAndW "eamoand.w" r(0x6b, 6, 2), [Rd, Rs1, Rs2];
    EamoOrW "eamoor.w" r(0x6b, 6, 3), [Rd, Rs1, Rs2];
    EamoMinW "eamomin.w" r(0x6b, 6, 4), [Rd, Rs1, Rs2];
    EamoMaxW "eamomax.w" r(0x6b, 6, 5), [Rd, Rs1, Rs2];
    EamoCasW "eamocas.w" r(0x6b, 6, 6), [Rd, Rs1, Rs2];
    EamoAddW "eamoadd.w" r(0x6b, 6, 7), [Rd, Rs1, Rs2];
    EamoXorD "eamoxor.d" r(0x6b, 7, 1), [Rd, Rs1, Rs2];
    EamoAndD "eamoand.d" r(0x6b, 7, 2), [Rd, Rs1, Rs2];
    EamoOrD "eamoor.d" r(0x6b, 7, 3), [Rd, Rs1, Rs2];
    EamoMinD "eamomin.d" r(0x6b, 7, 4), [Rd, Rs1, Rs2];
    EamoMaxD "eamomax.d" r(0x6b, 7, 5), [Rd, Rs1, Rs2];
    EamoCasD "eamocas.d" r(0x6b, 7, 6), [Rd, Rs1, Rs2];
    EamoAddD "eamoadd.d" r(0x6b, 7, 7), [Rd, Rs1, Rs2];
}

impl Row {
    /// Its bits 26 and 25 are aq and rl, and written behind its name.
    pub const fn has_order_bits(&self) -> bool {
        self.pattern.bits & 0x7f == 0x2f
    }
}

/// The instruction that a word is.
pub fn decode(word: u32) -> Option<&'static Row> {
    TABLE.iter().find(|row| word & row.pattern.mask == row.pattern.bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_two_instructions() {
        for (at, one) in TABLE.iter().enumerate() {
            for other in &TABLE[at + 1..] {
                let both = one.pattern.mask & other.pattern.mask;
                assert_ne!(
                    one.pattern.bits & both,
                    other.pattern.bits & both,
                    "{} and {}",
                    one.name,
                    other.name
                );
            }
        }
    }

    #[test]
    fn operands_fill_just_the_bits_that_the_pattern_leaves() {
        for row in TABLE {
            let of_operands = row.operands.iter().fold(0, |bits, operand| bits | operand.bits());
            let of_order = if row.has_order_bits() { 0b11 << 25 } else { 0 };
            let fence = matches!(row.kind, Kind::Fence | Kind::FenceI);
            let taken = of_operands | of_order | row.pattern.mask;
            assert_eq!(of_operands & row.pattern.mask, 0, "{}", row.name);
            // Reserved fields of fences are ignored (unprivileged specification, section 2.7).
            assert!(fence || taken == u32::MAX, "{}: {taken:#x}", row.name);
        }
    }
}
