//! Racks of processes: the switch and the nodes as daemons, all of them with one command, and how the rack is.
//!
//! What must always hold: a daemon that ends, however it was asked to, leaves no file behind; one whose starter has
//! died ends by itself.
//!
//! | file | command |
//! | --- | --- |
//! | `switch.rs` | `rackmem switch` |
//! | `node.rs` | `rackmem node` |
//! | `up/` | `rackmem up` |
//! | `status/` | `rackmem status`, and the socket that answers it |
//! | `metrics/` | `--metrics`: Prometheus over HTTP |
//! | `write.rs` | `rackmem rack-file`, `rackmem key` |
//! | `runtime.rs` | the directory of the rack's sockets |
//! | `peers.rs` | what daemons say about other processes: who is refused, who does not answer |
//! | `owner.rs` | daemons that `rackmem up` has started, and must not outlive it |

mod metrics;
pub(crate) mod node;
mod owner;
mod peers;
mod runtime;
pub(crate) mod status;
pub(crate) mod switch;
pub(crate) mod up;
pub(crate) mod write;

use std::path::Path;

use rackmem::RackFile;

use crate::fault::Fault;
use crate::interrupt::Interrupt;

/// The rack file of a command.
fn read(path: &Path) -> Result<RackFile, Fault> {
    RackFile::read(path).map_err(Fault::usage)
}

/// Ctrl-C as a flag.
fn listen() -> Result<Interrupt, Fault> {
    Interrupt::listen().map_err(|error| Fault::failed(format_args!("cannot listen for Ctrl-C: {error}")))
}
