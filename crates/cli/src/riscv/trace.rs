//! What a run shows while it runs: consoles on standard output, with `--trace` every instruction on standard error.
//!
//! What must always hold: with `--json` standard output is one document; consoles go to standard error then.

use std::io::{self, Write};

use riscv::isa::{REGISTERS, disassemble};
use riscv::machine::Observer;

/// Who looks on.
#[derive(Debug)]
pub(super) struct Onlooker {
    pub(super) traces: bool,
    pub(super) is_json: bool,
    /// Registers of each node before its last instruction.
    before: Vec<[u64; 32]>,
}

impl Onlooker {
    pub(super) fn new(traces: bool, is_json: bool, nodes: usize) -> Self {
        Self { traces, is_json, before: vec![[0; 32]; nodes] }
    }
}

impl Observer for Onlooker {
    fn on_console(&mut self, _: usize, bytes: &[u8]) {
        // Whoever does not listen misses it: the program's result does not depend on that.
        let _ = if self.is_json {
            io::stderr().write_all(bytes)
        } else {
            io::stdout().write_all(bytes).and_then(|()| io::stdout().flush())
        };
    }

    fn traces(&self) -> bool {
        self.traces
    }

    fn on_instruction(&mut self, node: usize, pc: u64, word: u32, x: &[u64; 32]) {
        let before = &mut self.before[node];
        let mut changed = String::new();
        for ((name, old), new) in REGISTERS.iter().zip(*before).zip(*x) {
            if old != new {
                changed = format!("  [{name} {new:#x}]{changed}");
            }
        }
        *before = *x;
        say!("{node:3} {pc:x}  {word:08x}  {:32}{changed}", disassemble(word, pc).to_string());
    }
}
