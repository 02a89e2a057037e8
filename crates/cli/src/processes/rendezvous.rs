//! How the processes of a rack find each other, and over what they talk.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use rackmem::dataplane::network::{self, Network};
use rackmem::dataplane::{Claim, Hook, Kernel, Ports};
use rackmem::transport::{PeerId, Terms, Transport, shm, udp};
use rackmem::{Config, NodeId};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// What carries the messages of a rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// The whole rack in one process: the sender's thread runs the receiver's machine
    #[value(alias = "embedded")]
    Inline,
    /// One process a node and one for the switch, with rings in shared memory
    Shm,
    /// The same, with authenticated UDP datagrams on loopback
    Udp,
    /// The same, each process in a network of its own, and the switch's program in the kernel at its ports (as root)
    Wire,
    /// The same network, with the switch's program in its process
    WireProcess,
    /// The same network, with the switch's program in the drivers of its ports where that can be (as root)
    WireXdp,
}

impl TransportKind {
    /// Its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Shm => "shm",
            Self::Udp => "udp",
            Self::Wire => "wire",
            Self::WireProcess => "wire-process",
            Self::WireXdp => "wire-xdp",
        }
    }

    /// True if each place has a network of its own.
    pub const fn has_cables(self) -> bool {
        matches!(self, Self::Wire | Self::WireProcess | Self::WireXdp)
    }

    /// True if the switch's program is in the kernel.
    pub const fn in_kernel(self) -> bool {
        matches!(self, Self::Wire | Self::WireXdp)
    }
}

/// What every place of one rack has to know to reach the others.
#[derive(Clone, Serialize, Deserialize)]
pub enum Rendezvous {
    /// In this directory.
    Shm {
        /// Where they listen.
        dir: PathBuf,
    },
    /// At these addresses, the switch's first, under this key; with coalescing, messages that can wait do.
    Udp {
        /// What they authenticate packets with.
        key: [u8; 32],
        /// The switch's, then the nodes'.
        addresses: Vec<SocketAddr>,
        /// Whether other processes want their cores.
        coalescing: bool,
        /// Networks of their own.
        wire: Option<Wire>,
    },
}

/// Where the networks are that the places of a rack are in.
#[derive(Clone, Serialize, Deserialize)]
pub struct Wire {
    /// The switch's, then the nodes'.
    paths: Vec<PathBuf>,
    /// The switch's program is in the kernel.
    kernel: bool,
    /// Each packet to and from the switch is a datagram, as the kernel needs it.
    alone: bool,
    /// Its program is in the drivers of its ports.
    in_driver: bool,
    /// Where its program stays if its process dies.
    keep: Option<PathBuf>,
    /// They are there as long as the command that made them.
    #[serde(skip)]
    network: Option<Arc<Network>>,
}

/// The places of a rack of so many nodes: the switch, then the nodes.
fn places(nodes: usize) -> impl Iterator<Item = PeerId> {
    let nodes = u16::try_from(nodes).expect("at most 64 nodes");
    [PeerId::SWITCH].into_iter().chain((0..nodes).map(|node| PeerId::node(NodeId(node))))
}

impl Rendezvous {
    /// A rendezvous that nobody else knows of. What it needs of the file system is in `dir`.
    pub fn new(kind: TransportKind, nodes: usize, dir: &RuntimeDir) -> Result<Self, Fault> {
        match kind {
            TransportKind::Inline => unreachable!("a rack in one process needs no rendezvous"),
            TransportKind::Shm => Ok(Self::Shm { dir: dir.path().join("rings") }),
            TransportKind::Udp => {
                let failed = |error| Fault::failed(format_args!("no free UDP port on loopback: {error}"));
                let addresses = udp::unused_addresses(places(nodes).count()).map_err(failed)?;
                Ok(Self::Udp { key: random_bytes()?, addresses, coalescing: true, wire: None })
            }
            TransportKind::Wire | TransportKind::WireProcess | TransportKind::WireXdp => {
                let failed = |error| Fault::failed(format_args!("no network for the rack: {error}"));
                let in_driver = kind == TransportKind::WireXdp;
                let network = Network::new(nodes).and_then(|network| match in_driver {
                    true => network.with_programs_in_drivers(),
                    false => Ok(network),
                });
                let network = Arc::new(network.map_err(failed)?);
                let (paths, addresses) = (network.paths(), network.addresses());
                let kernel = kind.in_kernel();
                let (alone, network) = (kernel, Some(network));
                let wire = Some(Wire { paths, kernel, alone, in_driver, keep: None, network });
                Ok(Self::Udp { key: random_bytes()?, addresses, coalescing: true, wire })
            }
        }
    }

    /// The same, but no message waits for another one to travel with.
    pub fn without_coalescing(self) -> Self {
        match self {
            Self::Shm { .. } => self,
            Self::Udp { key, addresses, wire, .. } => Self::Udp { key, addresses, coalescing: false, wire },
        }
    }

    /// The same, but packets to and from the switch travel alone also where its program is in its process.
    pub fn with_packets_alone(self) -> Self {
        match self {
            Self::Udp { key, addresses, coalescing, wire: Some(wire) } => {
                let wire = Some(Wire { alone: true, ..wire });
                Self::Udp { key, addresses, coalescing, wire }
            }
            other => other,
        }
    }

    /// The same, and the switch's program in the kernel outlives its process, in this directory.
    pub fn with_kept(mut self, directory: PathBuf) -> Self {
        if let Self::Udp { wire: Some(wire), .. } = &mut self {
            wire.keep = Some(directory);
        }
        self
    }

    /// The network that was made for this rack.
    pub fn network(&self) -> Option<&Arc<Network>> {
        match self {
            Self::Udp { wire: Some(wire), .. } => wire.network.as_ref(),
            _ => None,
        }
    }

    /// Opens the transport of one of the places of this rack.
    pub fn open(&self, me: PeerId, rack: &Config) -> Result<Arc<dyn Transport>, String> {
        Ok(self.open_as(me, rack)?.0)
    }

    /// Opens the transport of one of the places of this rack. If it is the switch, and its program belongs into the kernel:
    /// what that takes.
    pub fn open_as(
        &self,
        me: PeerId,
        rack: &Config,
    ) -> Result<(Arc<dyn Transport>, Option<AtPorts>), String> {
        match self {
            Self::Shm { dir } => {
                let config = shm::ShmConfig {
                    dir: dir.clone(),
                    me,
                    block: rack.most_payload(),
                    ring_bytes: Some(rack.ring_bytes()),
                    terms: Terms::default(),
                };
                let transport = shm::ShmTransport::open(&config).map_err(|error| error.to_string())?;
                Ok((Arc::new(transport), None))
            }
            Self::Udp { key, addresses, coalescing, wire } => {
                let all: Vec<(PeerId, SocketAddr)> =
                    places(addresses.len() - 1).zip(addresses.iter().copied()).collect();
                let at = all.iter().position(|(place, _)| *place == me).ok_or("no place of this rack")?;
                let listen = all[at].1;
                if let Some(wire) = wire {
                    let entered = network::enter(&wire.paths[at]);
                    entered.map_err(|error| format!("cannot enter the network of {me}: {error}"))?;
                }
                let config = udp::UdpConfig {
                    me,
                    listen,
                    peers: all
                        .into_iter()
                        .filter(|(place, _)| *place != me)
                        .map(|(place, address)| (place, address.into()))
                        .collect(),
                    unlisted: Vec::new(),
                    naming: udp::Naming::default(),
                    key: Some(udp::Key::from_bytes(*key)),
                    mtu: wire.as_ref().map_or(udp::UdpConfig::usual_mtu(listen), |_| network::MTU),
                    block: rack.most_payload(),
                    coalescing: *coalescing,
                    singles: wire.as_ref().is_some_and(|wire| wire.alone),
                    terms: Terms::default(),
                };
                let udp = udp::UdpTransport::bind(&config).map_err(|error| error.to_string())?;
                let udp = Arc::new(udp);
                let at_ports = match wire {
                    Some(Wire { kernel: true, in_driver, keep, .. }) if me == PeerId::SWITCH => {
                        let hook = in_driver.then_some(Hook::Driver);
                        let ports = Ports { devices: Network::ports(addresses.len() - 1), hook };
                        // A former process of the switch has ended: it had the address. The number is keyed at random.
                        let me = RandomState::new().hash_one(std::process::id());
                        let claim = keep.as_ref().map(|keep| Kernel::claim(keep, listen, &ports, me));
                        let claim = claim.transpose().map_err(|error| error.to_string())?;
                        Some(AtPorts { udp: Arc::clone(&udp), ports, claim })
                    }
                    _ => None,
                };
                Ok((udp, at_ports))
            }
        }
    }
}

/// What a switch takes whose program is in the kernel.
pub struct AtPorts {
    /// Its transport.
    pub udp: Arc<udp::UdpTransport>,
    /// The devices at which its nodes are.
    pub ports: Ports,
    /// To what outlives its process, if anything does.
    pub claim: Option<Claim>,
}

/// Bytes that nobody can guess, from the system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Fault::failed(format_args!("the system gives no random bytes: {error}")))?;
    Ok(bytes)
}

/// A directory for one command, which only its user can enter. Removed when this is dropped.
#[derive(Debug)]
pub struct RuntimeDir(PathBuf);

impl RuntimeDir {
    /// A new one among the system's temporary files.
    pub fn new() -> Result<Self, Fault> {
        Self::below(&std::env::temp_dir())
    }

    /// A new one that is kept in memory, where the system has such a place.
    pub fn in_memory() -> Result<Self, Fault> {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::below(memory) } else { Self::new() }
    }

    fn below(parent: &Path) -> Result<Self, Fault> {
        let name = random_bytes::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let path = parent.join(format!("rackmem-{}-{name}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(Fault::failed(format_args!(
                "cannot create the runtime directory {}: {error}; TMPDIR says where temporary files go",
                path.display()
            ))),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Removes such a directory. It may be gone already, or go at this moment.
    pub fn remove(path: &Path) -> io::Result<()> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for RuntimeDir {
    fn drop(&mut self) {
        if let Err(error) = Self::remove(&self.0) {
            say!("warning: cannot remove {}: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_runtime_directory_is_its_users_alone_and_goes_with_all_that_is_in_it() {
        let dir = RuntimeDir::new().unwrap();
        let path = dir.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("file"), "something").unwrap();
        drop(dir);
        assert!(!path.exists());
    }

    #[test]
    fn places_over_udp_have_addresses_of_their_own_on_loopback() {
        let dir = RuntimeDir::new().unwrap();
        let Ok(Rendezvous::Udp { addresses, .. }) = Rendezvous::new(TransportKind::Udp, 5, &dir) else {
            panic!("a rendezvous over UDP")
        };
        let mut ports: Vec<u16> = addresses.iter().map(SocketAddr::port).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!((ports.len(), addresses.iter().all(|address| address.ip().is_loopback())), (6, true));
    }
}
