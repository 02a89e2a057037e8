//! `rackmem-lab riscv disasm`: the instructions of a program, with its symbols.

use std::fmt::Write as _;
use std::path::PathBuf;

use riscv::isa::disassemble;

use cli::fault::Fault;
use cli::output;

/// Which program.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A 64-bit RISC-V ELF file
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let program = super::load(&args.program)?;
    let mut text = String::new();
    for (address, word) in program.words() {
        if let Some((symbol, 0)) = program.place(address) {
            let _ = writeln!(text, "\n{symbol}:");
        }
        let _ = writeln!(text, "{address:12x}  {word:08x}  {}", disassemble(word, address));
    }
    output::print(text.trim_start_matches('\n'))
}
