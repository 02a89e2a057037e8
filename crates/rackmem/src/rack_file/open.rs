//! From the file to running places: their transports, a node in this process, the switch in this process.
//!
//! What must always hold: all places of a rack are opened from the same file, so they agree on its shape and times.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use membership::Timing;
use transport::{PlaceId, Transport, shm, udp};
use wire::NodeId;

use super::{Placement, RackFile};
use crate::config::{ConfigError, ProcessConfig};
use crate::error::JoinError;
use crate::peers::{PeerEvent, PeerWatch};
use crate::rack::Rack;
use crate::switch_process::SwitchProcess;

/// Why a place of a rack could not be started in this process.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The place could not be opened in shared memory.
    SharedMemory(shm::Error),
    /// The place could not be opened on the network.
    Udp(udp::Error),
    /// An address to listen at was given, and the rack is in shared memory.
    NoAddress(SocketAddr),
    /// The rack is impossible.
    Config(ConfigError),
    /// The rack did not let the node in.
    Join(JoinError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedMemory(error) => error.fmt(f),
            Self::Udp(error) => error.fmt(f),
            Self::NoAddress(address) => write!(
                f,
                "nothing can listen at {address}: the rack is in shared memory; leave the address out, or write transport = \"udp\""
            ),
            Self::Config(error) => error.fmt(f),
            Self::Join(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::SharedMemory(error) => Some(error),
            Self::Udp(error) => Some(error),
            Self::NoAddress(_) => None,
            Self::Config(error) => Some(error),
            Self::Join(error) => Some(error),
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

    /// Connects a place of this rack: from now on others find it.
    ///
    /// # Errors
    /// If the system does not let us, or a living process is this place already.
    ///
    /// # Panics
    /// If the rack has no such node.
    pub fn open(&self, place: PlaceId) -> Result<Arc<dyn Transport>, StartError> {
        self.open_at(place, None)
    }

    /// Connects a place of this rack. With an address it listens there, and not at the one in the file, to which the
    /// others send all the same: for machines whose own address is not the one that others see.
    ///
    /// # Errors
    /// As [`open`](Self::open); and if the rack is in shared memory and an address was given.
    ///
    /// # Panics
    /// If the rack has no such node.
    pub fn open_at(
        &self,
        place: PlaceId,
        listen: Option<SocketAddr>,
    ) -> Result<Arc<dyn Transport>, StartError> {
        let payload = self.config.most_payload();
        match (&self.placement, listen) {
            (Placement::SharedMemory { .. }, Some(address)) => Err(StartError::NoAddress(address)),
            (Placement::SharedMemory { directory }, None) => {
                let config = shm::Config {
                    dir: directory.clone(),
                    me: place,
                    block: payload,
                    ring_bytes: Some(self.config.ring_bytes()),
                    terms: self.terms(),
                };
                Ok(Arc::new(shm::ShmTransport::open(&config).map_err(StartError::SharedMemory)?))
            }
            (Placement::Udp { switch, nodes, key, mtu }, listen) => {
                let nodes = self.nodes().map(PlaceId::node).zip(nodes.iter().copied());
                let places: Vec<_> = nodes.chain([(PlaceId::SWITCH, *switch)]).collect();
                let (mine, peers): (Vec<_>, _) = places.into_iter().partition(|(other, _)| *other == place);
                let listen = listen.unwrap_or_else(|| mine.first().expect("a place of this rack").1);
                let key = key.clone();
                let (mtu, terms) = (*mtu, self.terms());
                let config =
                    udp::Config { me: place, listen, peers, key, mtu, block: payload, company: true, terms };
                Ok(Arc::new(udp::UdpTransport::bind(&config).map_err(StartError::Udp)?))
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
        Self::join_patiently(file, node, ProcessConfig::default().patience)
    }

    /// The same, with as much patience as is given.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_patiently(file: &RackFile, node: NodeId, patience: Duration) -> Result<Self, StartError> {
        let nodes = file.config.nodes;
        if node.index() >= nodes {
            return Err(StartError::Join(JoinError::NoSuchNode { node, nodes }));
        }
        let transport = file.open(PlaceId::node(node))?;
        let process = ProcessConfig { patience, ..file.process() };
        Self::join_over(file.config.clone(), node, &process, transport).map_err(StartError::Join)
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
        patience: Duration,
        mut tell: impl FnMut(PeerEvent),
    ) -> Result<Self, StartError> {
        let nodes = file.config.nodes;
        if node.index() >= nodes {
            return Err(StartError::Join(JoinError::NoSuchNode { node, nodes }));
        }
        let transport = file.open(PlaceId::node(node))?;
        let mut watch = PeerWatch::of_joining(&*transport);
        let process = ProcessConfig { patience, ..file.process() };
        let began = Instant::now();
        let joined = Self::join_over_while(&file.config, node, &process, &transport, &mut || {
            watch.poll().into_iter().for_each(&mut tell);
            began.elapsed() < patience
        });
        // What was refused, or not, while the last attempt was made.
        watch.poll().into_iter().for_each(tell);
        joined.map_err(StartError::Join)
    }
}

impl SwitchProcess {
    /// The switch of the rack that this file describes; with an address, it listens there (see
    /// [`RackFile::open_at`]).
    ///
    /// # Errors
    /// If another process is the switch, or the system does not let us listen.
    pub fn open(file: &RackFile, listen: Option<SocketAddr>) -> Result<Self, StartError> {
        let transport = file.open_at(PlaceId::SWITCH, listen)?;
        Self::new(&file.config, &file.process(), transport).map_err(StartError::Config)
    }
}
