//! `rackmem rack-file` and `rackmem key`: what a rack of processes needs to begin with.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use rackmem::RackFile;
use rackmem::rack_file::{Given, Key, TransportKind, example};
use rackmem::transport::udp::KeyError;

use crate::fault::Fault;
use crate::output;

/// Ways to carry messages, as flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Transport {
    /// Rings in shared memory: all places on this machine
    Shm,
    /// UDP
    Udp,
}

impl Transport {
    pub(super) fn kind(self) -> TransportKind {
        match self {
            Self::Shm => TransportKind::SharedMemory,
            Self::Udp => TransportKind::Udp,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  rackmem rack-file > rack.toml                                     4 nodes on this machine, over UDP
  rackmem rack-file --address 10.0.0.1,10.0.0.2,10.0.0.3 > rack.toml
                            the switch on the first machine, a node on each of the others";

/// What to write about.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RackFileArgs {
    /// Name of the rack
    #[arg(long, value_name = "NAME", default_value = "rack")]
    name: String,

    /// Nodes of a rack on this machine
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with = "address")]
    nodes: u16,

    /// What carries the messages
    #[arg(long, value_enum, default_value_t = Transport::Udp)]
    transport: Transport,

    /// Addresses of the machines: first the switch's, then each node's
    #[arg(long, value_name = "IP,IP,...", value_delimiter = ',')]
    address: Vec<IpAddr>,

    /// First port; on several machines, all have this one
    #[arg(long, value_name = "PORT", default_value_t = 7400, value_parser = clap::value_parser!(u16).range(1..=65000))]
    port: u16,

    /// Nodes that keep names: the first so many; without it, all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    name_nodes: Option<u16>,

    /// Nodes that keep what is allocated with copies, and names [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=3))]
    copies: Option<u16>,
}

/// Runs `rackmem rack-file`.
pub(crate) fn rack_file(args: &RackFileArgs) -> Result<(), Fault> {
    let addresses: Vec<SocketAddr> = match args.address.as_slice() {
        [] => (0..=args.nodes).map(|place| (Ipv4Addr::LOCALHOST, args.port + place).into()).collect(),
        [only] => {
            return Err(Fault::usage(format_args!(
                "--address {only}: there must be one for the switch and one for each node, with commas between"
            )));
        }
        given => spread(given, args.port),
    };
    let nodes = addresses.len() - 1;
    if let Some(asked) = args.name_nodes.filter(|asked| usize::from(*asked) > nodes) {
        return Err(Fault::usage(format_args!(
            "--name-nodes {asked}: the rack has {nodes} nodes: take 1 to {nodes}"
        )));
    }
    let (name_nodes, copies) = (args.name_nodes, args.copies);
    let written = |transport| {
        example(&args.name, transport, &addresses, Given { name_nodes, copies, ..Given::default() })
    };
    // What can be wrong with flags is wrong with any transport, and this one needs no key file.
    if let Err(error) =
        RackFile::parse(Path::new("--name or --copies"), &written(TransportKind::SharedMemory))
    {
        return Err(Fault::usage(format_args!("--name or --copies: {}", error.mistakes()[0].what)));
    }
    output::print(&written(args.transport.kind()))
}

/// Places of one machine have ports one after the other.
fn spread(machines: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    let ports = machines.iter().enumerate().map(|(index, machine)| {
        let before = machines[..index].iter().filter(|earlier| *earlier == machine).count();
        port.saturating_add(u16::try_from(before).unwrap_or(u16::MAX))
    });
    machines.iter().copied().zip(ports).map(SocketAddr::from).collect()
}

/// Where to write the key.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// The file; it must not be there yet
    #[arg(value_name = "FILE", default_value = "rack.key")]
    file: PathBuf,
}

/// Runs `rackmem key`.
pub(crate) fn key(args: &KeyArgs) -> Result<(), Fault> {
    let key = Key::generate()
        .map_err(|error| Fault::failed(format_args!("the system has no random numbers: {error}")))?;
    key.create(&args.file).map_err(|error| Fault::failed(format_args!("{error}{}", instead_of(&error))))?;
    say!(
        "wrote {}, which only you can read: copy it to all machines of the rack (for example with scp -p)",
        args.file.display()
    );
    Ok(())
}

/// What to do where a key was not written.
fn instead_of(error: &KeyError) -> &'static str {
    match error {
        KeyError::Io { error, .. } if error.kind() == ErrorKind::AlreadyExists => {
            ", and no key is ever written over another file: name another one, or remove it if no rack uses it any more"
        }
        KeyError::Io { error, .. } if error.kind() == ErrorKind::StorageFull => {
            ", and no key was written: make room"
        }
        _ => "; name a file in a folder that exists and that you can write to",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_one_machine_get_ports_of_their_own() {
        let machines: Vec<IpAddr> =
            ["10.0.0.1", "10.0.0.2", "10.0.0.1"].iter().map(|ip| ip.parse().unwrap()).collect();
        let spread: Vec<String> = spread(&machines, 7400).iter().map(ToString::to_string).collect();
        assert_eq!(spread, ["10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.1:7401"]);
    }
}
