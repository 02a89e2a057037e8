//! Where the rack of `rackmem up` is: a rack file that was given, or one that is made for as long as the rack runs.

use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rackmem::attach::socket_of;
use rackmem::dataplane::network::{self, Network};
use rackmem::rack_file::{Given, GivenKernel, Key, example, runtime_directory};
use rackmem::transport::udp::unused_addresses;
use rackmem::{NodeId, RackFile};
use status::ask;

use super::super::{owner, runtime};
use super::Transport;
use super::child::{Child, Part};
use crate::fault::Fault;

/// A rack file, and whether it goes when the rack does.
pub(super) struct UsedRackFile {
    pub(super) file: PathBuf,
    /// Locked: then this process has made the file.
    made: Option<File>,
    /// That of the rack alone, with a namespace for each place.
    pub(super) network: Option<Network>,
}

impl UsedRackFile {
    /// The user's own file.
    pub(super) fn given(path: &Path) -> Self {
        Self { file: path.to_owned(), made: None, network: None }
    }

    /// A file of our own.
    pub(super) fn made(
        name: &str,
        nodes: u16,
        with_process: u16,
        (transport, keep): (Transport, Option<&Path>),
        shape: Given<'_>,
    ) -> Result<Self, Fault> {
        let directory = runtime_directory(name);
        runtime::prepare(&directory)?;
        let lock = owner::lock_file(&directory);
        let made = File::create(&lock).map_err(|error| failed(&lock, error))?;
        match made.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Fault::failed(format_args!(
                    "`rackmem up` runs already ({} is locked): end it, or run another rack with --name or --config",
                    lock.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&lock, error)),
        }
        let mut place = Self { file: owner::own_file(&directory), made: Some(made), network: None };
        place.write((name, nodes, with_process), (transport, keep), shape).inspect_err(|_| place.forget())?;
        Ok(place)
    }

    /// Writes the file of such a rack, and what it needs beside it.
    fn write(
        &mut self,
        (name, nodes, with_process): (&str, u16, u16),
        (transport, keep): (Transport, Option<&Path>),
        shape: Given<'_>,
    ) -> Result<(), Fault> {
        let (addresses, ports) = if transport == Transport::Wire {
            let network = Network::new(usize::from(nodes))
                .map_err(|error| Fault::failed(format_args!("no network for the rack: {error}")))?;
            let addresses = network.addresses();
            self.network = Some(network);
            self.write_key()?;
            (addresses, Some(Network::ports(usize::from(nodes)).join(" ")))
        } else {
            let addresses = unused_addresses(usize::from(nodes) + 1)
                .map_err(|error| Fault::failed(format_args!("cannot find free ports: {error}")))?;
            (addresses, None)
        };
        // Whoever reads the file finds the sockets beside it, whatever their own runtime directory is.
        let (runtime, name_nodes) = (Some("."), Some(with_process.max(1)));
        // Whoever reads the file may be anywhere.
        let keep =
            keep.map(|keep| std::path::absolute(keep).map_err(|error| failed(keep, error))).transpose()?;
        let keep = keep.as_deref().map(|keep| keep.to_string_lossy());
        let kernel = ports.as_deref().map(|ports| GivenKernel {
            key: owner::OWN_KEY,
            mtu: network::MTU,
            ports,
            keep: keep.as_deref(),
        });
        let text =
            example(name, transport.kind(), &addresses, Given { runtime, name_nodes, kernel, ..shape });
        fs::write(&self.file, text).map_err(|error| failed(&self.file, error))
    }

    fn write_key(&self) -> Result<(), Fault> {
        let path = self.file.with_file_name(owner::OWN_KEY);
        // What a rack that was killed has left opens no other one.
        runtime::remove(&path);
        let key = Key::generate().map_err(|error| failed(&path, error))?;
        key.create(&path).map_err(|error| Fault::failed(format_args!("cannot write the rack's key: {error}")))
    }

    /// Takes away what is left when all children have ended. What applications
    /// have left that were killed, too; who still runs needs it no more, for the rack is over.
    pub(super) fn clear(&self, file: &RackFile, children: &[Child], applications: Range<u16>) {
        let directory = &file.runtime;
        let killed = children.iter().filter(|child| child.killed).map(Child::part);
        for part in killed.chain(applications.map(Part::Node)) {
            let name = match part {
                Part::Switch => "switch".to_owned(),
                Part::Node(id) => format!("node-{id}"),
            };
            runtime::remove(&directory.join(format!("{name}.sock")));
            runtime::remove(&directory.join(format!("{name}.lock")));
            if let Part::Node(id) = part {
                runtime::remove(&socket_of(file, NodeId(id)));
            }
            if part == Part::Switch {
                runtime::remove(&ask::socket_of(file));
            }
        }
        self.forget();
        runtime::remove_if_empty(directory);
    }

    /// Takes away what was made, also where there can be no such rack; nothing of the user's.
    pub(super) fn forget(&self) {
        let (Some(_), Some(directory)) = (&self.made, self.file.parent()) else { return };
        runtime::remove(&self.file);
        runtime::remove(&directory.join(owner::OWN_KEY));
        runtime::remove(&owner::lock_file(directory));
        runtime::remove_if_empty(directory);
    }
}

fn failed(path: &Path, error: io::Error) -> Fault {
    Fault::failed(format_args!("cannot write {}: {error}", path.display()))
}
