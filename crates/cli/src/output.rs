//! Standard output, where results go and nothing else.

use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use crate::fault::Fault;

/// Prints a result.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| lost(&error))
}

/// Something could not be written to standard output.
pub(crate) fn lost(error: &io::Error) -> Fault {
    match error.kind() {
        ErrorKind::BrokenPipe => Fault::OutputClosed,
        _ => Fault::failed(format_args!("cannot write the result to standard output: {error}")),
    }
}

/// Prints a result as one JSON document.
pub(crate) fn print_json(result: &impl Serialize) -> Result<(), Fault> {
    let mut text = serde_json::to_string_pretty(result)
        .map_err(|error| Fault::failed(format_args!("cannot write the result as JSON: {error}")))?;
    text.push('\n');
    print(&text)
}
