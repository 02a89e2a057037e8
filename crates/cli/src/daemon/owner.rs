//! A daemon that `rackmem up` has started, and its starter. The starter holds the other end of the daemon's standard
//! input and never writes to it. When that end closes, the starter wants the daemon to end, or is dead.
//!
//! What must always hold: the kernel closes that end however the starter dies, so an owned daemon never outlives it
//! for long, and the last one takes away what the starter could not.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::thread;

use rackmem::RackFile;
use rackmem::dataplane::Claim;
use rackmem::rack_file::DataPlane;
use tracing::warn;

use super::runtime;
use crate::fault::Fault;
use crate::interrupt::Interrupt;

/// The rack file that `rackmem up` writes where none was given.
pub(super) fn own_file(runtime: &Path) -> PathBuf {
    runtime.join("rack.toml")
}

/// The key of its rack, beside it, if it needs one.
pub(super) const OWN_KEY: &str = "rack.key";

/// Locked for as long as the `rackmem up` lives that wrote this file.
pub(super) fn lock_file(runtime: &Path) -> PathBuf {
    runtime.join("up.lock")
}

/// Ends this daemon when its starter has gone.
pub(super) fn watch(stop: &Interrupt) -> Result<(), Fault> {
    let stop = stop.clone();
    let watcher = thread::Builder::new().name("owner".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        let mut ignored = [0; 64];
        loop {
            match input.read(&mut ignored) {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => {}
            }
        }
        stop.request();
    });
    watcher.map(drop).map_err(|error| Fault::failed(format_args!("the system gives no thread: {error}")))
}

/// Takes away what is kept of a switch's programs in the kernel, if its rack is one of `rackmem up` alone.
pub(super) fn remove_kept(file: &RackFile) {
    let DataPlane::Kernel { keep: Some(directory), .. } = file.data_plane() else { return };
    if let Err(error) = Claim::remove(directory) {
        warn!(target: "rackmem", "{} stays, and the switch's program with it: {error}", directory.display());
    }
}

/// Takes away what a starter that has died has left. `path` is the file that this daemon was started with.
pub(super) fn clean_up(file: &RackFile, path: &Path) {
    if path == own_file(&file.runtime) {
        let lock = lock_file(&file.runtime);
        // A starter that lives does that itself; and if the lock is a new one's, the file is, too.
        let orphaned = File::open(&lock).is_ok_and(|lock| lock.try_lock().is_ok());
        if orphaned {
            let _ = fs::remove_file(path);
            let _ = fs::remove_file(path.with_file_name(OWN_KEY));
            let _ = fs::remove_file(&lock);
            remove_kept(file);
        }
    }
    runtime::remove_if_empty(&file.runtime);
}
