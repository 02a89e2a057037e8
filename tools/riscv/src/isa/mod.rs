//! The instruction set: words, what they mean, how they are written.
//!
//! | file | what |
//! | --- | --- |
//! | `table` | every instruction: bits, name, operands |
//! | `operand` | where operands are in a word |
//! | `disassemble` | words as text |
//! | `assemble` | text as words: what tests, traces and examples are written in |
//!
//! What must always hold: a word that is an instruction is assembled again from its text.

pub mod assemble;
mod disassemble;
mod operand;
mod table;

pub use disassemble::{Text, disassemble};
pub use operand::{Operand, REGISTERS};
pub use table::{Kind, Pattern, Row, TABLE, decode};
