//! Traps: what a program did that the machine does not do, where, and with what in its registers.
//!
//! What must always hold: a trap is precise. Everything before its instruction has happened, nothing of the instruction has.

use core::fmt;

use crate::isa::{REGISTERS, disassemble};
use crate::library::Routine;

/// What was to be done with memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Read.
    Load,
    /// Written.
    Store,
    /// Both, as one.
    Atomic,
}

/// Why an instruction was not executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It is none, or none for user programs.
    Illegal,
    /// It jumps to what is no multiple of four.
    MisalignedTarget(u64),
    /// There is no code.
    NoCode,
    /// The address is no multiple of what is accessed.
    Misaligned(Access, u64, u64),
    /// Nothing is at this address.
    Unmapped(Access, u64, u64),
    /// What is there cannot be changed.
    ReadOnly(Access, u64),
    /// Extension registers below e10 are the translation's (xBGAS, section 2).
    ReservedRegister(u8),
    /// The extended address is none of a node of this machine.
    UnknownNode(u64),
    /// The environment has no such call.
    UnknownCall(u64),
    /// It calls a routine of a library, and the machine was given none.
    NoLibrary,
    /// The environment knows no routine of this number.
    UnknownRoutine(u64),
    /// Instructions of this routine, with so many bytes (of a barrier: nodes), were not counted.
    NotCounted(Routine, u64),
    /// `ebreak`.
    Breakpoint,
}

/// A trap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trap {
    /// Of which node.
    pub node: usize,
    /// The instruction's address.
    pub pc: u64,
    /// The instruction.
    pub word: Option<u32>,
    /// The symbol before it, and how far behind that it is.
    pub place: Option<(String, u64)>,
    /// Why.
    pub cause: Cause,
    /// How many instructions the core had executed.
    pub retired: u64,
    /// Nodes of the machine.
    pub nodes: usize,
    /// The integer registers.
    pub x: [u64; 32],
    /// The extension registers.
    pub e: [u64; 32],
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Atomic => "atomic",
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Illegal => f.write_str("illegal instruction"),
            Self::MisalignedTarget(target) => write!(f, "jump to {target:#x}, which is no multiple of 4"),
            Self::NoCode => f.write_str("no code at this address"),
            Self::Misaligned(access, address, bytes) => {
                write!(f, "misaligned {access} of {bytes} bytes at {address:#x}")
            }
            Self::Unmapped(access, address, bytes) => {
                write!(f, "{access} of {bytes} bytes at {address:#x}, where nothing is")
            }
            Self::ReadOnly(access, address) => write!(f, "{access} at {address:#x}, which is read-only"),
            Self::ReservedRegister(register) => {
                write!(f, "extension register e{register} is reserved: programs have e10 to e31")
            }
            Self::UnknownNode(extended) => write!(f, "extended address {extended:#x} is of no node"),
            Self::UnknownCall(call) => write!(f, "the environment has no call {call}"),
            Self::NoLibrary => f.write_str(
                "a call of a library, of which none was given: this is a program for the software path (riscv run --library NAME)",
            ),
            Self::UnknownRoutine(routine) => write!(f, "there is no routine {routine}"),
            Self::NotCounted(Routine::BarrierAll, nodes) => {
                write!(f, "what a barrier of {nodes} executes in this library was not counted")
            }
            Self::NotCounted(routine, bytes) if routine.is_sized() => {
                write!(f, "what {} of {bytes} bytes executes in this library was not counted", routine.name())
            }
            Self::NotCounted(routine, _) => {
                write!(f, "what {} executes in this library was not counted", routine.name())
            }
            Self::Breakpoint => f.write_str("ebreak"),
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}: {}", self.node, self.cause)?;
        if let Cause::UnknownNode(_) = self.cause {
            write!(f, " (0 is local, 1 to {} are the nodes)", self.nodes)?;
        }
        write!(f, "\n  pc {:#x}", self.pc)?;
        if let Some((symbol, offset)) = &self.place {
            write!(f, " <{symbol}+{offset:#x}>")?;
        }
        if let Some(word) = self.word {
            write!(f, "  {word:08x}  {}", disassemble(word, self.pc))?;
        }
        write!(f, "\n  after {} instructions", self.retired)?;
        for (index, (name, value)) in REGISTERS.iter().zip(self.x).enumerate() {
            f.write_str(if index % 4 == 0 { "\n  " } else { "  " })?;
            write!(f, "{name:>4} {value:016x}")?;
        }
        let set = self.e.iter().enumerate().filter(|(_, value)| **value != 0);
        for (count, (index, value)) in set.enumerate() {
            f.write_str(if count % 4 == 0 { "\n  " } else { "  " })?;
            write!(f, "{:>4} {value:016x}", format!("e{index}"))?;
        }
        Ok(())
    }
}

impl core::error::Error for Trap {}
