//! The directory in which the sockets of a rack are, on this machine.
//!
//! What must always hold: it belongs to the user whose processes meet there, and nobody else can enter it.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rackmem::rack_file::runtime_directory;
use status::ask::SOCKET;

use crate::fault::Fault;

/// Sockets at which the switches answer of racks of this user on this machine, whose files name no other directory; with the racks' names, in order. A
/// switch that was killed leaves one at which nobody answers.
pub(super) fn status_sockets() -> Vec<(String, PathBuf)> {
    // Of any name: they differ in the end.
    let one = runtime_directory("");
    let (Some(folder), Some(prefix)) = (one.parent(), one.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let sockets = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().to_str()?.strip_prefix(prefix)?.to_owned();
        let socket = entry.path().join(SOCKET);
        // Only the user's own directory may say what this user's rack is.
        let own = check(&entry.path()).is_ok() && socket.exists();
        own.then_some((name, socket))
    });
    let mut sockets: Vec<_> = sockets.collect();
    sockets.sort();
    sockets
}

/// Makes the directory if there is none.
pub(super) fn prepare(directory: &Path) -> Result<(), Fault> {
    prepared(directory).map_err(Fault::failed)
}

/// The same, with what is wrong as a sentence.
pub(super) fn prepared(directory: &Path) -> Result<(), String> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| failed("make", directory, &error))?;
    check(directory)
}

fn failed(doing: &str, directory: &Path, error: &io::Error) -> String {
    format!(
        "cannot {doing} {}, where the sockets of the rack go: {error}; name another directory with `runtime` in the rack file, or \
         XDG_RUNTIME_DIR",
        directory.display()
    )
}

/// What is wrong with it, if it is not this user's alone.
fn check(directory: &Path) -> Result<(), String> {
    let shown = directory.display();
    let failed = |doing: &str, error: io::Error| failed(doing, directory, &error);
    let found = fs::symlink_metadata(directory).map_err(|error| failed("look at", error))?;
    // The kernel shows a process's own directory there as belonging to the user that the process runs as.
    let own = fs::metadata("/proc/self").map_err(|error| failed("find the user for", error))?.uid();
    let wrong = if !found.is_dir() {
        "is not a directory".to_owned()
    } else if found.uid() != own {
        format!("belongs to user {}, and this process runs as user {own}", found.uid())
    } else if found.mode() & 0o077 != 0 {
        format!("lets others in (mode {:03o}; chmod 700 would do)", found.mode() & 0o777)
    } else {
        return Ok(());
    };
    Err(format!("{shown} {wrong}: remove it, or name another one with `runtime` in the rack file"))
}

/// Removes the directory if nothing is in it any more.
pub(super) fn remove_if_empty(directory: &Path) {
    // Whoever is still in it, or comes after us, removes it later.
    let _ = fs::remove_dir(directory);
}

/// Removes a file that may be gone already.
pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        say!("warning: cannot remove {}: {error}", path.display());
    }
}
