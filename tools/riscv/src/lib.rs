//! RISC-V cores whose remote atomics are instructions: RAE, the remote atomic extension, on xBGAS's extended addresses.
//!
//! A program runs on every node of a machine. One instruction of it adds to a word of another node's memory; the engine beside that
//! memory ([`nic::words::Lines`]) does it. Live racks fold requests instead: a software NIC cannot own a line that threads of its
//! host change.
//!
//! ```
//! use riscv::machine::{MachineConfig, Console, Machine};
//! use riscv::program::Program;
//!
//! // Every node adds 1 to the same word, the first of node 0's heap. `zero` is 0, so e12 becomes 0 + 1: node 0.
//! let program = Program::assembled("
//!         li a7, 1004        # where is the heap?
//!         ecall
//!         mv a2, a0
//!         eaddie e12, zero, 1
//!         li a3, 1
//!         eamoadd.d a4, a2, a3
//!         li a7, 93          # exit with what the word was
//!         mv a0, a4
//!         ecall
//! ").unwrap();
//! let mut machine = Machine::new(program, &MachineConfig::nodes(4)).unwrap();
//! let mut codes = machine.run(&mut Console::default()).unwrap();
//! codes.sort();
//! assert_eq!(codes, [0, 1, 2, 3]);
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | [`isa`] | the instruction set: table, disassembler, assembler |
//! | [`program`] | what a machine is started with: ELF files, or text |
//! | `code` | decoded words |
//! | [`memory`] | a node's memory |
//! | `core` | registers, and the loop |
//! | [`trap`] | what a program did that the machine does not do |
//! | [`library`] | the software path: what routines of an OpenSHMEM library execute |
//! | [`prebuilt`] | our own programs |
//! | [`machine`] | nodes, engines, packets, the environment |
//! | [`timing`] | how long everything takes |
#![forbid(unsafe_code)]

mod code;
mod core;
pub mod isa;
pub mod library;
pub mod machine;
pub mod memory;
pub mod prebuilt;
pub mod program;
pub mod timing;
pub mod trap;
