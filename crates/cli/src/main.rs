//! The command, of which the library beside this file is all.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::command::main::<cli::command::Rackmem>()
}
