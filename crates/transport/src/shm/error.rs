//! Why a peer of the rack could not be opened in shared memory: what is wrong, where, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::PeerId;

/// Why [`ShmTransport::open`](super::ShmTransport::open) failed.
#[derive(Debug)]
pub enum Error {
    /// The directory is a symbolic link, or no directory.
    NotADirectory(PathBuf),
    /// The directory belongs to another user.
    Foreign {
        /// The directory.
        dir: PathBuf,
        /// Its user.
        owner: u32,
        /// Ours.
        us: u32,
    },
    /// Others may get into the directory.
    Open {
        /// The directory.
        dir: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A living process is this peer already.
    InUse {
        /// The peer.
        peer: PeerId,
        /// The file that it has locked.
        lock: PathBuf,
    },
    /// The name of the socket is longer than the system allows.
    TooLong(PathBuf),
    /// The ring that was asked for cannot hold two of the largest messages.
    RingTooSmall {
        /// Bytes asked for.
        ring: usize,
        /// Bytes of the largest message in a ring.
        message: usize,
    },
    /// A block larger than a packet can carry.
    BlockTooLarge(u64),
    /// The system refused something.
    System {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADirectory(dir) => {
                write!(
                    f,
                    "{} is not a directory: remove it, or choose another one for the rack",
                    dir.display()
                )
            }
            Self::Foreign { dir, owner, us } => write!(
                f,
                "{} belongs to user {owner}, and this process runs as user {us}: all peers of a rack that share \
                 memory run as one user; choose a directory of that user",
                dir.display()
            ),
            Self::Open { dir, mode } => write!(
                f,
                "{} lets others in (permissions {mode:03o}): run `chmod 700 {0}`, or choose another directory",
                dir.display()
            ),
            Self::InUse { peer, lock } => write!(
                f,
                "a living process is {peer} of this rack already (it holds {}): end it first, or choose another \
                 directory or node",
                lock.display()
            ),
            Self::TooLong(path) => {
                write!(
                    f,
                    "{} is too long for the name of a socket: choose a shorter directory",
                    path.display()
                )
            }
            Self::RingTooSmall { ring, message } => write!(
                f,
                "a ring of {ring} bytes cannot carry messages of {message} bytes: it has to be a power of two, at \
                 least twice as large"
            ),
            Self::BlockTooLarge(block) => {
                write!(
                    f,
                    "blocks of {block} bytes: at most {} can travel with a packet",
                    wire::packet::MAX_PAYLOAD
                )
            }
            Self::System { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
