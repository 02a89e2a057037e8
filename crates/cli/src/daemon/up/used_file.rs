//! Where the rack of `rackmem up` is: a rack file that was given, or one that is made for as long as the rack runs.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use rackmem::attach::socket_of;
use rackmem::rack_file::{TransportKind, example, runtime_directory};
use rackmem::transport::udp::unused_addresses;
use rackmem::{NodeId, RackFile};

use super::super::{owner, runtime};
use super::child::{Child, Part};
use crate::fault::Fault;

/// The name of a rack that was not given one.
const NAME: &str = "up";

/// A rack file, and whether it goes when the rack does.
pub(super) struct UsedRackFile {
    pub(super) file: PathBuf,
    /// Locked: then this process has made the file.
    made: Option<File>,
}

impl UsedRackFile {
    /// The user's own file.
    pub(super) fn given(path: &Path) -> Self {
        Self { file: path.to_owned(), made: None }
    }

    /// A file of our own.
    pub(super) fn made(nodes: u16, with_process: u16, transport: TransportKind) -> Result<Self, Fault> {
        let directory = runtime_directory(NAME);
        runtime::prepare(&directory)?;
        let lock = owner::lock_file(&directory);
        let failed = |path: &Path, error: io::Error| {
            Fault::failed(format_args!("cannot write {}: {error}", path.display()))
        };
        let made = File::create(&lock).map_err(|error| failed(&lock, error))?;
        match made.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Fault::failed(format_args!(
                    "`rackmem up` runs already ({} is locked): end it, or run another rack with --config",
                    lock.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&lock, error)),
        }
        let file = owner::own_file(&directory);
        let addresses = unused_addresses(usize::from(nodes) + 1)
            .map_err(|error| Fault::failed(format_args!("cannot find free ports: {error}")))?;
        // Whoever reads the file finds the sockets beside it, whatever their own runtime directory is.
        let text = example(NAME, transport, &addresses, Some("."), Some(with_process.max(1)));
        fs::write(&file, text).map_err(|error| failed(&file, error))?;
        Ok(Self { file, made: Some(made) })
    }

    /// Takes away what is left when all children have ended.
    pub(super) fn clear(&self, file: &RackFile, children: &[Child]) {
        let directory = &file.runtime;
        let clear_node = |id: NodeId| {
            remove_sockets(directory, &format!("node-{}", id.0));
            runtime::remove(&socket_of(file, id));
        };
        for child in children.iter().filter(|child| child.killed) {
            match child.part() {
                Part::Switch => {
                    remove_sockets(directory, "switch");
                    runtime::remove(&runtime::status_socket(file));
                }
                Part::Node(id) => clear_node(NodeId(id)),
            }
        }
        if self.made.is_some() {
            // Applications that were killed have left theirs; of those that still run nobody needs them, for the rack is over.
            file.nodes().skip(children.len().saturating_sub(1)).for_each(clear_node);
            runtime::remove(&self.file);
            runtime::remove(&owner::lock_file(directory));
        }
        runtime::remove_if_empty(directory);
    }
}

/// Where the other processes of a machine find one.
fn remove_sockets(directory: &Path, name: &str) {
    runtime::remove(&directory.join(format!("{name}.sock")));
    runtime::remove(&directory.join(format!("{name}.lock")));
}
