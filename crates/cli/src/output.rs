//! Standard output, where results go and nothing else; and directories for results that are many files.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use serde::Serialize;

use crate::fault::Fault;

/// Prints a result.
pub fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| lost(&error))
}

/// Something could not be written to standard output.
pub fn lost(error: &io::Error) -> Fault {
    match error.kind() {
        ErrorKind::BrokenPipe => Fault::OutputClosed,
        _ => Fault::failed(format_args!("cannot write the result to standard output: {error}")),
    }
}

/// Prints a result as one JSON document.
pub fn print_json(result: &impl Serialize) -> Result<(), Fault> {
    let mut text = serde_json::to_string_pretty(result)
        .map_err(|error| Fault::failed(format_args!("cannot write the result as JSON: {error}")))?;
    text.push('\n');
    print(&text)
}

/// Prints what a command has found: with `json` one document that says which command, of which version; otherwise its text.
pub fn show(
    json: bool,
    command: &str,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Fault> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        command: &'a str,
        version: &'a str,
        #[serde(flatten)]
        report: &'a T,
    }
    if json {
        print_json(&Document { command, version: env!("CARGO_PKG_VERSION"), report })
    } else {
        print(&text())
    }
}

/// Makes a directory for results, and finds out before any work is done whether something can be written there.
pub fn prepare_directory(flag: &str, directory: &Path) -> Result<(), Fault> {
    let shown = directory.display();
    if directory.exists() && !directory.is_dir() {
        return Err(Fault::usage(format_args!(
            "{flag} {shown}: that is no directory, and several files are to be written: name a directory, or one to be made"
        )));
    }
    let probe = directory.join(format!(".rackmem-{}", std::process::id()));
    let tried = fs::create_dir_all(directory).and_then(|()| {
        let written = File::create_new(&probe).and_then(|mut file| file.write_all(b"room?\n"));
        // Whatever became of it: nothing may be left of it.
        let removed = fs::remove_file(&probe);
        written.and(removed)
    });
    tried.map_err(|error| {
        let instead = match error.kind() {
            ErrorKind::StorageFull => "make room, or name a directory elsewhere",
            _ => "name a directory that you can write to",
        };
        Fault::usage(format_args!("{flag} {shown}: cannot be written to: {error}; {instead}"))
    })
}
