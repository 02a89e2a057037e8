//! `rack.toml`: a rack of processes, as all of them read it when they start. The same file serves the switch, every
//! node, and whoever asks how the rack is.
//!
//! What must always hold: a [`RackFile`] describes a rack that is possible. Whatever is wrong with the text is found
//! when it is read, all of it, and named with its line and with what to write instead.
//!
//! | file | holds |
//! | --- | --- |
//! | `keys.rs` | the keys, and which of them must be the same in all processes |
//! | `parse.rs` | the file as a whole, and `[rack]` |
//! | `placement.rs` | where the places are: `transport`, addresses, key, and what does not go together |
//! | `table.rs` | tables and typed values |
//! | `units.rs` | `"64 MiB"`, `"250 ms"` |
//! | `location.rs` | where a place listens, and what the others use: as the file, the environment or flags say |
//! | `list_reader.rs` | the file again, when a node calls that it did not have |
//! | `open.rs` | from the file to running places |
//! | `error.rs` | mistakes with their lines |
//! | `example.rs` | a file to begin with |

mod error;
mod example;
mod keys;
mod list_reader;
mod location;
mod open;
mod parse;
mod placement;
mod table;
mod units;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use wire::{Nanos, NodeId};

pub use dataplane::{Hook, Ports};
use live::scheduling::Scheduling;
pub use transport::udp::{Advertised, Key};

pub use self::error::{Mistake, RackFileError};
pub use self::example::{Given, GivenKernel, example};
pub use self::keys::{Agreement, Setting};
pub(crate) use self::list_reader::ListReader;
pub use self::location::{Endpoint, Location, advertised};
pub use self::open::StartError;
pub use self::parse::timeout_of;
pub use self::placement::runtime_directory;
pub use self::units::{BYTES, amount};
use crate::config::Config;

/// A rack of processes: how it is set up, and where its places are.
///
/// ```
/// use std::path::Path;
/// use rackmem::rack_file::{Placement, RackFile};
///
/// let text = r#"
///     [rack]
///     name = "lab"
///     transport = "shm"
///     cache = "16 MiB"
///     [[node]]
///     id = 0
///     [[node]]
///     id = 1
/// "#;
/// let rack = RackFile::parse(Path::new("rack.toml"), text)?;
/// assert_eq!((rack.config.nodes, rack.config.cache), (2, 16 << 20));
/// assert!(matches!(rack.placement, Placement::SharedMemory { .. }));
///
/// let error = RackFile::parse(Path::new("rack.toml"), &text.replace("cache", "cash")).unwrap_err();
/// assert!(error.to_string().starts_with("rack.toml:5: `cash` is not a key of [rack]: did you mean `cache`?"));
/// # Ok::<(), rackmem::rack_file::RackFileError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RackFile {
    /// The file.
    pub path: PathBuf,
    /// The rack's name.
    pub name: String,
    /// The shape of the rack.
    pub config: Config,
    /// When a place that is not heard of is given up.
    pub timeout: Nanos,
    /// A node looks at its lease on every access, so that none is ever stale, also on a node that was stopped.
    pub strict: bool,
    /// How the threads are scheduled that answer others.
    pub scheduling: Scheduling,
    /// What carries the messages, and where the places are.
    pub placement: Placement,
    /// Where the rack's sockets are, on each machine for itself. Nobody else may open this directory.
    pub runtime: PathBuf,
    /// Where the switch tells its metrics, if it does.
    pub switch_metrics: Option<SocketAddr>,
    /// Where each node tells its metrics, if it does.
    pub node_metrics: Vec<Option<SocketAddr>>,
}

/// What carries the messages of a rack, and where its places are.
#[derive(Clone, Debug)]
pub enum Placement {
    /// Rings in shared memory: all places are on one machine, and run as one user.
    SharedMemory {
        /// Where they find each other.
        directory: PathBuf,
    },
    /// UDP.
    Udp {
        /// The switch.
        switch: Endpoint,
        /// The nodes.
        nodes: Vec<Endpoint>,
        /// Whoever has it may talk to the rack. There always is one, unless all listen on loopback.
        key: Option<Key>,
        /// The longest datagram that all paths between them carry, IP and UDP headers included.
        mtu: usize,
        /// Where the switch's coherence program runs.
        data_plane: DataPlane,
    },
}

/// Where the coherence program of a rack's switch runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DataPlane {
    /// In the switch's process.
    Process,
    /// In the kernel, at these devices of the switch's machine; whoever starts the switch may name others.
    Kernel {
        /// The devices, and where the programs are there.
        ports: Ports,
        /// The directory, in a file system of bpf, where it is kept when the switch's process has gone; none: it goes, too.
        keep: Option<PathBuf>,
    },
}

impl DataPlane {
    /// Its name in the file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Kernel { .. } => "kernel",
        }
    }
}

/// What carries the messages of a rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransportKind {
    /// Rings in shared memory, on one machine.
    SharedMemory,
    /// UDP.
    Udp,
}

impl TransportKind {
    /// Its name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedMemory => "shm",
            Self::Udp => "udp",
        }
    }
}

/// A file that is longer is none of ours.
const LONGEST_FILE: u64 = 1 << 20;

impl RackFile {
    /// Reads a rack file, and the key file that it names.
    ///
    /// # Errors
    /// Whatever is wrong with it, with lines.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RackFileError> {
        let path = path.as_ref();
        let wrong = |what: String| RackFileError::of_file(path, what);
        let unreadable =
            |error: io::Error| wrong(format!("cannot be read: {error}; {}", instead_of(error.kind(), path)));
        if std::fs::metadata(path).map_err(unreadable)?.len() > LONGEST_FILE {
            return Err(wrong(format!(
                "is longer than {}: that is no rack file",
                units::bytes_text(LONGEST_FILE)
            )));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| wrong("is not UTF-8 text: that is no rack file".to_owned()))?;
        Self::parse(path, &text)
    }

    /// Reads the text of a rack file. The path is for error messages, and for what the text names relative to it.
    ///
    /// # Errors
    /// Whatever is wrong with it, with lines.
    pub fn parse(path: &Path, text: &str) -> Result<Self, RackFileError> {
        parse::parse(path, text)
    }

    /// The nodes of the rack.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u16::try_from(self.config.nodes).expect("at most 64 nodes")).map(NodeId)
    }

    /// Where the switch's coherence program runs.
    pub const fn data_plane(&self) -> &DataPlane {
        match &self.placement {
            Placement::SharedMemory { .. } => &DataPlane::Process,
            Placement::Udp { data_plane, .. } => data_plane,
        }
    }

    /// What carries the messages.
    pub fn transport(&self) -> TransportKind {
        match self.placement {
            Placement::SharedMemory { .. } => TransportKind::SharedMemory,
            Placement::Udp { .. } => TransportKind::Udp,
        }
    }
}

/// What to do about a file that cannot be read. Only what is not there may be written: there may be something worth keeping.
fn instead_of(error: io::ErrorKind, path: &Path) -> String {
    let file = path.display();
    match error {
        io::ErrorKind::NotFound => format!("write one with: rackmem rack-file > {file}"),
        io::ErrorKind::IsADirectory => "name the file that is in it".to_owned(),
        io::ErrorKind::PermissionDenied => {
            format!("its owner lets you with: chmod a+r {file} (the rack's key is in a file of its own)")
        }
        _ => "name another file, or try again".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_not_there_is_to_be_written() {
        use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied};
        let path = Path::new("some/rack.toml");
        for error in [InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied] {
            let instead = instead_of(error, path);
            assert_eq!(instead.contains("> some/rack.toml"), error == NotFound, "{error:?}: {instead}");
        }
        assert!(instead_of(PermissionDenied, path).contains("chmod a+r some/rack.toml"));
        assert!(instead_of(IsADirectory, path).contains("the file that is in it"));
    }
}
