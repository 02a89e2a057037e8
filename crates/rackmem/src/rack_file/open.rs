//! From the file to running places: their transports, a node in this process, the switch in this process.
//!
//! What must always hold: all places of a rack are opened from the same file, so they agree on its shape and times.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dataplane::{Claim, Kernel};
use membership::Timing;
use transport::{PeerId, Transport, shm, udp};
use wire::NodeId;

use super::list_reader::ListReader;
use super::location::{ADVERTISE, LISTEN, Location};
use super::{DataPlane, Placement, RackFile};
use crate::config::{ConfigError, ProcessConfig};
use crate::error::JoinError;
use crate::peers::{PeerEvent, PeerWatch};
use crate::rack::{Rack, random_session};
use crate::switch_process::SwitchProcess;

/// How long a process may take to end whose program this one has claimed.
const MOST_ENDING: Duration = Duration::from_secs(5);

/// Why a place of a rack could not be started in this process.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The place could not be opened in shared memory.
    SharedMemory(shm::Error),
    /// The place could not be opened on the network.
    Udp(udp::Error),
    /// An address was given, and the rack is in shared memory.
    NoAddress(String),
    /// The environment says where this place is, and that cannot be.
    Location(String),
    /// The switch's program was to be in the kernel, and the rack's file says that it is in the process.
    DataPlane,
    /// The switch's program is to be in the kernel, and something is in the way.
    Kernel(dataplane::kernel::Error),
    /// The rack is impossible.
    Config(ConfigError),
    /// The rack did not let the node in.
    Join(JoinError),
    /// The same, and something that can be corrected keeps this place from reaching others.
    Hindered {
        /// What came of it.
        error: JoinError,
        /// Why, and what to do about it.
        why: String,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedMemory(error) => error.fmt(f),
            Self::Udp(error) => error.fmt(f),
            Self::NoAddress(address) => write!(
                f,
                "nothing can listen at {address}: the rack is in shared memory; leave the address out (--listen, --advertise, {LISTEN}, {ADVERTISE}), or write transport = \"udp\""
            ),
            Self::Location(what) => f.write_str(what),
            Self::DataPlane => f.write_str(
                "the rack's file has the switch's program in its process: write data_plane = \"kernel\" under [switch], in the files of all places",
            ),
            Self::Kernel(error) => error.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Join(error) => error.fmt(f),
            Self::Hindered { error, why } => write!(f, "{error}\n{why}"),
        }
    }
}

/// A place's transport, as what it is.
enum Open {
    SharedMemory(Arc<dyn Transport>),
    Udp(Arc<udp::UdpTransport>),
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::SharedMemory(error) => Some(error),
            Self::Udp(error) => Some(error),
            Self::NoAddress(_) | Self::Location(_) | Self::DataPlane => None,
            Self::Kernel(error) => Some(error),
            Self::Config(error) => Some(error),
            Self::Join(error) | Self::Hindered { error, .. } => Some(error),
        }
    }
}

impl RackFile {
    /// What a process of this rack needs to know beside its shape.
    pub fn process(&self) -> ProcessConfig {
        ProcessConfig {
            timing: Timing::new(self.timeout),
            strict: self.strict,
            scheduling: self.scheduling,
            ..ProcessConfig::default()
        }
    }

    /// Connects a place of this rack: from now on others find it. It is where the file says, or the environment
    /// (`RACKMEM_LISTEN`, `RACKMEM_ADVERTISE`).
    ///
    /// # Errors
    /// If the system does not let us, or a living process is this place already.
    ///
    /// # Panics
    /// If the rack has no such node.
    pub fn open(&self, place: PeerId) -> Result<Arc<dyn Transport>, StartError> {
        self.open_at(place, &Location::from_environment()?)
    }

    /// Connects a place of this rack that is not where the file says: with `listen` it listens there, and with `advertise`
    /// it tells the others to send there.
    ///
    /// # Errors
    /// As [`open`](Self::open); and if the rack is in shared memory and an address was given.
    ///
    /// # Panics
    /// If the rack has no such node.
    pub fn open_at(&self, place: PeerId, location: &Location) -> Result<Arc<dyn Transport>, StartError> {
        let open = self.open_as(place, location)?;
        Ok(match open {
            Open::SharedMemory(transport) => transport,
            Open::Udp(transport) => transport,
        })
    }

    /// The nodes that may be added.
    fn unlisted(&self) -> impl Iterator<Item = PeerId> + use<> {
        let ids = self.config.nodes..self.config.places();
        ids.map(|id| PeerId::node(NodeId(u16::try_from(id).expect("at most 64 nodes"))))
    }

    /// Claims what is kept of the switch's programs, if they are to be kept.
    fn claim(
        &self,
        location: &Location,
        data_plane: &DataPlane,
    ) -> Result<Option<Claim>, dataplane::kernel::Error> {
        let DataPlane::Kernel { keep: Some(directory), ports } = data_plane else { return Ok(None) };
        let Placement::Udp { switch, .. } = &self.placement else { return Ok(None) };
        let address = location.listen.unwrap_or(switch.listen);
        Kernel::claim(directory, address, ports, random_session()).map(Some)
    }

    fn open_as(&self, place: PeerId, location: &Location) -> Result<Open, StartError> {
        let payload = self.config.most_payload();
        match (&self.placement, location.given()) {
            (Placement::SharedMemory { .. }, Some(address)) => Err(StartError::NoAddress(address)),
            (Placement::SharedMemory { directory }, None) => {
                let config = shm::ShmConfig {
                    dir: directory.clone(),
                    me: place,
                    block: payload,
                    ring_bytes: Some(self.config.ring_bytes()),
                    terms: self.terms(),
                };
                let transport = shm::ShmTransport::open(&config).map_err(StartError::SharedMemory)?;
                Ok(Open::SharedMemory(Arc::new(transport)))
            }
            (Placement::Udp { switch, nodes, key, mtu, data_plane }, _) => {
                let nodes = self.nodes().map(PeerId::node).zip(nodes);
                let (mine, peers): (Vec<_>, Vec<_>) =
                    nodes.chain([(PeerId::SWITCH, switch)]).partition(|(other, _)| *other == place);
                let (_, mine) = mine.first().expect("a place of this rack");
                let listen = location.listen.unwrap_or(mine.listen);
                let peers = peers.into_iter().map(|(place, it)| (place, it.advertise.clone())).collect();
                // The others have the file.
                let advertise = location.advertise.clone().filter(|it| *it != mine.advertise);
                let naming = udp::Naming { advertise, ..udp::Naming::default() };
                let key = key.clone();
                let (mtu, block, terms) = (*mtu, payload, self.terms());
                let config = udp::UdpConfig {
                    me: place,
                    listen,
                    peers,
                    unlisted: self.unlisted().collect(),
                    naming,
                    key,
                    mtu,
                    block,
                    coalescing: true,
                    singles: matches!(data_plane, DataPlane::Kernel { .. }),
                    terms,
                };
                Ok(Open::Udp(Arc::new(udp::UdpTransport::bind(&config).map_err(StartError::Udp)?)))
            }
        }
    }
}

impl Rack {
    /// Joins the rack that this file describes as one of its nodes. Returns when the rack has begun with this node
    /// in it, which its switch decides.
    ///
    /// ```no_run
    /// use rackmem::{Discipline, NodeId, Rack, RackFile};
    ///
    /// let rack = Rack::join(&RackFile::read("rack.toml")?, NodeId(3))?;
    /// let mut here = rack.here();
    /// let counter = here.alloc(8, NodeId(0), Discipline::Coherent)?;
    /// here.write_word(counter, 1)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If another process is this node, the system does not let us listen, or the rack's switch does not answer.
    pub fn join(file: &RackFile, node: NodeId) -> Result<Self, StartError> {
        Self::join_within(file, node, ProcessConfig::default().join_timeout)
    }

    /// The same, within the time given.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_within(file: &RackFile, node: NodeId, join_timeout: Duration) -> Result<Self, StartError> {
        Self::join_at(file, node, &Location::from_environment()?, join_timeout)
    }

    /// The same for a node that is not where the file says: for applications with flags of their own.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_at(
        file: &RackFile,
        node: NodeId,
        location: &Location,
        join_timeout: Duration,
    ) -> Result<Self, StartError> {
        Self::join_with(file, node, location, |transport| {
            let process = ProcessConfig { join_timeout, ..file.process() };
            Self::join_over(file.config.clone(), node, &process, Arc::clone(transport))
        })
    }

    fn join_with(
        file: &RackFile,
        node: NodeId,
        location: &Location,
        join: impl FnOnce(&Arc<dyn Transport>) -> Result<Self, JoinError>,
    ) -> Result<Self, StartError> {
        let nodes = file.config.nodes;
        if node.index() >= nodes {
            return Err(StartError::Join(JoinError::NoSuchNode { node, nodes }));
        }
        let transport = file.open_at(PeerId::node(node), location)?;
        join(&transport).map_err(|error| match transport.hindrance() {
            Some(why) => StartError::Hindered { error, why },
            None => StartError::Join(error),
        })
    }

    /// The same, and tells meanwhile what a person would want to know: whom it waits for, and who is refused and why.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use rackmem::{NodeId, Rack, RackFile};
    ///
    /// let file = RackFile::read("rack.toml")?;
    /// let rack = Rack::join_watched(&file, NodeId(3), Duration::from_secs(60), |event| eprintln!("{event}"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_watched(
        file: &RackFile,
        node: NodeId,
        join_timeout: Duration,
        mut tell: impl FnMut(PeerEvent),
    ) -> Result<Self, StartError> {
        Self::join_with(file, node, &Location::from_environment()?, |transport| {
            let mut watch = PeerWatch::of_joining(&**transport);
            let process = ProcessConfig { join_timeout, ..file.process() };
            let began = Instant::now();
            let joined = Self::join_over_while(&file.config, node, &process, transport, &mut || {
                watch.poll().into_iter().for_each(&mut tell);
                began.elapsed() < join_timeout
            });
            // What was refused, or not, while the last attempt was made.
            watch.poll().into_iter().for_each(tell);
            joined
        })
    }
}

impl SwitchProcess {
    /// The switch of the rack that this file describes, at this location (see [`RackFile::open_at`]).
    ///
    /// # Errors
    /// If another process is the switch, or the system does not let us listen; and if its program belongs into the kernel, and
    /// the kernel or a port does not let us.
    pub fn open(file: &RackFile, location: &Location) -> Result<Self, StartError> {
        Self::open_in(file, location, file.data_plane())
    }

    /// The same, with its coherence program in the kernel or in the process, whatever the file says.
    ///
    /// # Errors
    /// As [`open`](Self::open); and for the kernel, if the file does not say so: then nodes send what no program there knows.
    pub fn open_in(file: &RackFile, location: &Location, data_plane: &DataPlane) -> Result<Self, StartError> {
        let new = |transport| {
            let switch = Self::new(&file.config, &file.process(), transport).map_err(StartError::Config)?;
            Ok(switch.with_list(ListReader::new(file)))
        };
        if *data_plane != DataPlane::Process && *file.data_plane() == DataPlane::Process {
            return Err(StartError::DataPlane);
        }
        let claim = file.claim(location, data_plane).map_err(StartError::Kernel)?;
        let until = Instant::now() + if claim.is_some() { MOST_ENDING } else { Duration::ZERO };
        let open = loop {
            match file.open_as(PeerId::SWITCH, location) {
                // Whoever had what is claimed ends, and has the address until then.
                Err(StartError::Udp(error)) if error.is_in_use() && Instant::now() < until => {
                    thread::sleep(Duration::from_millis(5));
                }
                opened => break opened?,
            }
        };
        match (open, data_plane) {
            (Open::SharedMemory(transport), _) => new(transport),
            (Open::Udp(transport), DataPlane::Process) => new(transport),
            (Open::Udp(transport), DataPlane::Kernel { ports, .. }) => {
                let switch = new(Arc::clone(&transport) as _)?;
                switch.at_ports(&file.config, transport, ports, claim).map_err(StartError::Kernel)
            }
        }
    }
}
