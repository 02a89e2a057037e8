//! What a machine is made of, and where everything is in a node's memory.

use core::fmt;
use core::ops::Range;

use nic::words;

use crate::program::Program;
use crate::timing::Chip;

/// Pages, for the alignment of what is laid out.
const PAGE: u64 = 4096;

/// A machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MachineConfig {
    /// Nodes, one core each.
    pub nodes: usize,
    /// Bytes of a node's memory: stack, program and symmetric heap.
    pub memory: u64,
    /// Bytes of a core's stack.
    pub stack: u64,
    /// Who goes when.
    pub schedule: Schedule,
    /// Instructions after which a machine is stopped, all nodes together.
    pub limit: Option<u64>,
    /// The engine beside each node's memory.
    pub engine: words::LinesConfig,
}

/// Who goes when. Either way a machine does the same each time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// Cores in turn, some thousand instructions each, or until they wait; then everything that is in flight arrives.
    Turns,
    /// Some instructions in a turn, and everything that is in flight takes its time: as this seed says. For tests: what one
    /// seed does not show another does.
    Seeded(u64),
    /// With timing: everything takes the cycles that it takes on this hardware.
    Timed(Chip),
}

impl MachineConfig {
    /// Nodes that a machine can have.
    pub const MOST_NODES: usize = 1024;

    /// A machine of so many nodes: 64 MiB each, 1 MiB of them stack.
    pub const fn nodes(nodes: usize) -> Self {
        Self {
            nodes,
            memory: 64 << 20,
            stack: 1 << 20,
            schedule: Schedule::Turns,
            limit: None,
            engine: words::LinesConfig::PAPER,
        }
    }
}

/// Why there is no such machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// So many nodes.
    Nodes(usize),
    /// The program does not leave space for the stack below it.
    NoRoomForStack {
        /// Where it begins.
        start: u64,
        /// Bytes of the stack.
        stack: u64,
    },
    /// The program's arguments take more than half of the stack.
    Arguments,
    /// The memory is too small.
    Memory {
        /// Bytes that there would be.
        memory: u64,
        /// Bytes that there must be.
        least: u64,
    },
    /// So many bytes for a node are not to be had on this machine.
    TooMuch(u64),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(nodes) => {
                write!(f, "a machine has 1 to {} nodes, not {nodes}", MachineConfig::MOST_NODES)
            }
            Self::NoRoomForStack { start, stack } => {
                write!(
                    f,
                    "the program begins at {start:#x}: below that is no room for {stack} bytes of stack"
                )
            }
            Self::Arguments => f.write_str("the arguments of the program take more than half of the stack"),
            Self::Memory { memory, least } => {
                write!(
                    f,
                    "a node's memory of {memory} bytes does not fit: this program takes {least} at least"
                )
            }
            Self::TooMuch(memory) => {
                write!(f, "a node's memory of {memory} bytes is more than this machine has; give nodes less")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

/// Where everything is in a node's memory: the same on each node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// All of it.
    pub memory: Range<u64>,
    /// The stack pointer at the beginning.
    pub stack_pointer: u64,
    /// The symmetric heap.
    pub heap: Range<u64>,
    /// What is at the stack pointer: number of arguments, their addresses, and themselves, as Linux has it.
    pub(crate) arguments: Vec<u8>,
}

impl Layout {
    /// Lays out a program.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn new(program: &Program, config: &MachineConfig) -> Result<Self, ConfigError> {
        if config.nodes == 0 || config.nodes > MachineConfig::MOST_NODES {
            return Err(ConfigError::Nodes(config.nodes));
        }
        let lowest = program.segments.iter().map(|(address, _)| *address).min().unwrap_or(program.entry);
        let start = lowest / PAGE * PAGE;
        let stack = config.stack.next_multiple_of(PAGE);
        let base = start.checked_sub(stack).ok_or(ConfigError::NoRoomForStack { start, stack })?;
        let heap = program.end.next_multiple_of(PAGE);
        let memory = config.memory / PAGE * PAGE;
        let least = heap - base + PAGE;
        if memory < least {
            return Err(ConfigError::Memory { memory: config.memory, least });
        }
        // Asked for and given back, to be told now.
        if memory > 1 << 40 || Vec::<u8>::new().try_reserve_exact(memory as usize).is_err() {
            return Err(ConfigError::TooMuch(config.memory));
        }
        let (stack_pointer, arguments) = arguments(&program.arguments, start);
        if start - stack_pointer > stack / 2 {
            return Err(ConfigError::Arguments);
        }
        Ok(Self { memory: base..base + memory, stack_pointer, heap: heap..base + memory, arguments })
    }
}

/// Arguments as they are on the stack whose top is given, and the stack pointer below them, a multiple of 16.
fn arguments(arguments: &[String], top: u64) -> (u64, Vec<u8>) {
    let strings: usize = arguments.iter().map(|argument| argument.len() + 1).sum();
    // The number, addresses, the end of those, and empty lists of the environment and of what the kernel says.
    let words = arguments.len() + 5;
    let bytes = ((words * 8 + strings) as u64).next_multiple_of(16);
    let stack_pointer = top.saturating_sub(bytes);
    let mut contents: Vec<u8> = (arguments.len() as u64).to_le_bytes().into();
    let mut at = stack_pointer + words as u64 * 8;
    for argument in arguments {
        contents.extend(at.to_le_bytes());
        at += argument.len() as u64 + 1;
    }
    contents.resize(words * 8, 0);
    for argument in arguments {
        contents.extend(argument.bytes().chain([0]));
    }
    (stack_pointer, contents)
}
