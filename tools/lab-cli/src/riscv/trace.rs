//! What a run shows while it runs: consoles on standard output, with `--trace` every instruction on standard error.
//!
//! What must always hold: with `--json` standard output is one document; consoles go to standard error then. What could not be written is
//! known at the end: a program runs on, since its result does not depend on who listens.

use std::io::{self, Write};

use riscv::isa::{REGISTERS, disassemble};
use riscv::machine::Observer;

use cli::interrupt::Interrupt;
use cli::say;

/// Who looks on.
#[derive(Debug)]
pub(super) struct Onlooker {
    pub(super) traces: bool,
    pub(super) is_json: bool,
    /// Somebody may ask the run to stop.
    interrupt: Interrupt,
    /// Why something that programs wrote is lost.
    pub(super) lost: Option<io::Error>,
    /// Registers of each node before its last instruction.
    before: Vec<[u64; 32]>,
}

impl Onlooker {
    pub(super) fn new((traces, is_json): (bool, bool), interrupt: Interrupt, nodes: usize) -> Self {
        Self { traces, is_json, interrupt, lost: None, before: vec![[0; 32]; nodes] }
    }
}

impl Observer for Onlooker {
    fn on_console(&mut self, _: usize, bytes: &[u8]) {
        if self.is_json {
            // As all that is said there: whoever does not listen misses it.
            let _ = io::stderr().write_all(bytes);
        } else if let Err(error) = io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
            self.lost.get_or_insert(error);
        }
    }

    fn stops(&self) -> bool {
        self.interrupt.requested()
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
