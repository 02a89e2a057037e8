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
//! | `drain.rs` | `rackmem drain` |
//! | `status/` | `rackmem status`, and the socket that answers it |
//! | `names/` | `rackmem names` |
//! | `snapshots/` | `rackmem snapshot`, `rackmem restore` |
//! | `metrics/` | `--metrics`: Prometheus over HTTP |
//! | `write.rs` | `rackmem rack-file`, `rackmem key` |
//! | `runtime.rs` | the directory of the rack's sockets |
//! | `log.rs` | what operators must know, as lines on standard error |
//! | `peers.rs` | what daemons say about other processes: who is refused, who does not answer |
//! | `owner.rs` | daemons that `rackmem up` has started, and must not outlive it |

pub(crate) mod drain;
mod log;
mod metrics;
pub(crate) mod names;
pub(crate) mod node;
mod owner;
mod peers;
mod runtime;
pub(crate) mod snapshots;
pub(crate) mod status;
pub(crate) mod switch;
pub(crate) mod up;
pub(crate) mod write;

use std::net::SocketAddr;
use std::path::Path;

use rackmem::RackFile;
use rackmem::rack_file::{Advertised, Location, advertised};

use crate::fault::Fault;

/// The rack file of a command.
fn read(path: &Path) -> Result<RackFile, Fault> {
    RackFile::read(path).map_err(Fault::usage)
}

/// Where a place is, where that is not what the rack file says.
#[derive(Debug, clap::Args)]
struct LocationArgs {
    /// Listen here and not where the rack file says: an IP address of this machine, or `0.0.0.0` or `[::]` for all of them, with a port.
    /// RACKMEM_LISTEN does the same
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,

    /// Tell the others to send here, and not where the rack file says: an IP address or a host name, with a port.
    /// RACKMEM_ADVERTISE does the same
    #[arg(long, value_name = "ADDR", value_parser = |given: &str| advertised(given, "--advertise"))]
    advertise: Option<Advertised>,
}

impl LocationArgs {
    /// Flags, and where there are none the environment.
    fn read(&self) -> Result<Location, Fault> {
        let flags = Location { listen: self.listen, advertise: self.advertise.clone() };
        Ok(flags.or(Location::from_environment().map_err(Fault::usage)?))
    }
}
