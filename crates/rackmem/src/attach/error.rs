//! Why an application could not attach to a node.

use std::fmt;
use std::io;
use std::path::PathBuf;

use transport::Reason;
use wire::NodeId;

/// Why an application could not attach.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttachError {
    /// The rack has no such node.
    NoSuchNode {
        /// The node asked for.
        node: NodeId,
        /// How many nodes there are.
        nodes: usize,
    },
    /// Nobody serves applications there.
    NoDaemon {
        /// The node asked for.
        node: NodeId,
        /// Where its daemon would be.
        socket: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Whoever serves there is another user.
    OtherUser {
        /// Where.
        socket: PathBuf,
    },
    /// The daemon serves as many as it can.
    Full {
        /// The node asked for.
        node: NodeId,
    },
    /// The daemon and this process refuse each other, as they have different rack files or are of different versions.
    Disagrees {
        /// The node asked for.
        node: NodeId,
        /// What differs.
        reason: Reason,
    },
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchNode { node, nodes } => {
                write!(f, "this rack has nodes 0 to {}, and no {node}", nodes - 1)
            }
            Self::NoDaemon { node, socket, source } => write!(
                f,
                "no daemon of {node} serves applications at {}: {source}; start it with `rackmem node --id {}`",
                socket.display(),
                node.0
            ),
            Self::OtherUser { socket } => {
                write!(f, "whoever serves applications at {} is another user", socket.display())
            }
            Self::Full { node } => write!(
                f,
                "the daemon of {node} serves {} threads of applications already: drop handles, or end applications",
                super::MOST_ATTACHED
            ),
            Self::Disagrees { node, reason } => write!(f, "the daemon of {node} is refused: {reason}"),
        }
    }
}

impl std::error::Error for AttachError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoDaemon { source, .. } => Some(source),
            _ => None,
        }
    }
}
