//! A child as a place of a rack: one node of it, or its switch.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rackmem::transport::{Cause, Counts, PeerId, Transport};
use rackmem::{
    BlockSize, Config, ConfigError, Nanos, NodeId, ProcessConfig, Rack, Scheduling, SwitchProcess, Timing,
    Watch,
};
use serde::{Deserialize, Serialize};

use super::child::{Reason, in_background};
use super::rendezvous::{AtPorts, Rendezvous};
use crate::ycsb::Directory;

/// When a silent node is given up. Commands fill the machine, and know by other means when a process has ended.
const TIMEOUT: Nanos = Nanos(5_000_000_000);

/// How a rack is set up, in a form that processes can tell each other.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct RackSpec {
    /// How many nodes.
    pub nodes: usize,
    /// A power of two.
    pub block_bytes: u64,
    /// Bytes of each node's cache.
    pub cache: u64,
    /// Bytes of each node's memory.
    pub memory: u64,
    /// On how many nodes what is allocated with copies is kept.
    pub copies: usize,
    /// Blocks that the switch has capacity for.
    pub switch_entries: usize,
    /// Where the directory is.
    pub directory: Directory,
    /// Requests for busy blocks wait at the home.
    pub queue: bool,
    /// Reads may look at a block without becoming a sharer.
    pub peek: bool,
    /// Bytes of copies for locks on each node, and of the largest region.
    pub lock_copies: u64,
    /// The same.
    pub lock_region: u64,
    /// Threads of the node that has a lock which go before another node.
    pub own_first: u32,
    /// How the switch steers packets of chains; none: it does not.
    pub steering: Option<Steers>,
    /// Of what the rack draws by chance.
    pub seed: u64,
}

/// What a switch does with packets of chains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Steers {
    /// Keys whose tails it holds.
    pub keys: usize,
    /// It sends reads to the tail, too.
    pub reads: bool,
    /// It is told tails when it was restarted.
    pub preload: bool,
}

impl RackSpec {
    /// What a rack has that is not about locks: as by default.
    pub const LOCK_COPIES: u64 = 8 << 20;
    /// The same.
    pub const LOCK_REGION: u64 = 64 << 10;

    /// The block size, which is one.
    pub fn block(&self) -> BlockSize {
        BlockSize::new(self.block_bytes).expect("a block size, as bytes")
    }

    /// Finds out what is wrong with it, before any process is started.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.config().check()
    }

    /// The configuration of the rack, which leaves nothing else open.
    pub fn config(&self) -> Config {
        Config {
            nodes: self.nodes,
            block_size: self.block(),
            cache: self.cache,
            memory: self.memory,
            copies: self.copies,
            switch_entries: self.switch_entries,
            directory: self.directory.into(),
            queue: self.queue,
            peek: self.peek,
            lock_copies: self.lock_copies,
            lock_region: self.lock_region,
            own_first: self.own_first,
            steering: self.steering.map(|how| how.keys),
            steer_reads: self.steering.is_some_and(|how| how.reads),
            preload: self.steering.is_some_and(|how| how.preload),
            seed: self.seed,
            ..Config::default()
        }
    }
}

/// Which place of which rack a child is.
#[derive(Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// None: the switch.
    node: Option<u16>,
    rack: RackSpec,
    rendezvous: Rendezvous,
}

/// A child that has taken its assignment.
pub enum Joined {
    /// The switch, at work in a thread of its own. It reports for as long as somebody has the watch.
    Switch {
        /// How it is reached.
        transport: Arc<dyn Transport>,
        /// Whether it is looked at.
        watch: Watch,
    },
    /// A node.
    Node(NodeId, Rack),
}

impl Assignment {
    /// The assignments of a rack with their names: the switch's, then the nodes'.
    pub fn all(rack: &RackSpec, rendezvous: &Rendezvous) -> Vec<(String, Self)> {
        let nodes = 0..u16::try_from(rack.nodes).expect("at most 64 nodes");
        [None]
            .into_iter()
            .chain(nodes.map(Some))
            .map(|node| {
                let name = node.map_or_else(|| "the switch".to_owned(), |node| format!("node {node}"));
                (name, Self { node, rack: rack.clone(), rendezvous: rendezvous.clone() })
            })
            .collect()
    }

    /// How the rack is set up.
    pub fn rack(&self) -> &RackSpec {
        &self.rack
    }

    /// Which place this is.
    pub fn place(&self) -> PeerId {
        self.node.map_or(PeerId::SWITCH, |node| PeerId::node(NodeId(node)))
    }

    /// Opens the place's transport, and nothing else.
    pub fn connect(&self) -> Result<Arc<dyn Transport>, Reason> {
        self.rendezvous.open(self.place(), &self.rack.config())
    }

    /// Becomes the place: a node returns when the rack has begun with it.
    pub fn take(&self) -> Result<Joined, Reason> {
        self.take_as(Scheduling::Fair, false)
    }

    /// The same, with those who answer scheduled so, and faults of mapped memory resolved in place or not.
    pub fn take_as(&self, scheduling: Scheduling, faults_in_place: bool) -> Result<Joined, Reason> {
        let timing = Timing::new(TIMEOUT);
        let process = ProcessConfig { timing, scheduling, faults_in_place, ..ProcessConfig::default() };
        self.take_with(&process, |transport| transport)
    }

    /// The same, with something around the transport.
    pub fn take_with(
        &self,
        process: &ProcessConfig,
        around: impl FnOnce(Arc<dyn Transport>) -> Arc<dyn Transport>,
    ) -> Result<Joined, Reason> {
        let config = self.rack.config();
        let (transport, at_ports) = self.rendezvous.open_as(self.place(), &config)?;
        let transport = around(transport);
        match self.node {
            None => {
                let mut switch = SwitchProcess::new(&config, process, Arc::clone(&transport))
                    .map_err(|error| error.to_string())?;
                if let Some(AtPorts { udp, ports, claim }) = at_ports {
                    switch =
                        switch.at_ports(&config, udp, &ports, claim).map_err(|error| error.to_string())?;
                }
                let watch = switch.watch();
                in_background("switch", move || {
                    switch.run(&AtomicBool::new(false));
                })?;
                Ok(Joined::Switch { transport, watch })
            }
            Some(node) => Rack::join_over(config, NodeId(node), process, transport)
                .map(|rack| Joined::Node(NodeId(node), rack))
                .map_err(|error| error.to_string()),
        }
    }
}

/// What transports have done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Travelled {
    /// Messages sent.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Threads woken for them.
    pub wake_ups: u64,
    /// Dropped, by cause, in the order of [`rackmem::transport::Cause::ALL`].
    pub dropped: [u64; Cause::ALL.len()],
}

impl Travelled {
    /// What this transport has sent so far. Everything that is received was sent by another one.
    pub fn of(counts: &Counts) -> Self {
        Self {
            messages: counts.sent,
            bytes: counts.sent_bytes,
            wake_ups: counts.wake_ups,
            dropped: counts.dropped,
        }
    }

    /// Adds what another transport did.
    pub fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.wake_ups += other.wake_ups;
        self.dropped.iter_mut().zip(other.dropped).for_each(|(mine, others)| *mine += others);
    }

    /// What was done since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            messages: self.messages - earlier.messages,
            bytes: self.bytes - earlier.bytes,
            wake_ups: self.wake_ups - earlier.wake_ups,
            dropped: std::array::from_fn(|cause| self.dropped[cause] - earlier.dropped[cause]),
        }
    }
}
