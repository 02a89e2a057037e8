//! A rack whose places have transports of their own, and can be killed, cut off and restarted one by one.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::lies::{Early, Lies};
use rackmem::transport::inline::Hub;
use rackmem::transport::{Body, Contents, Counters, Outgoing, PeerId, Transport};
use rackmem::{
    Config, Nanos, NodeId, ProcessConfig, Rack, Scheduling, SteeringCounts, SwitchProcess, SwitchReport,
    Timing, Watch,
};
use simulated::fault::{Rules, drop_per_mille, duplicate_per_mille, reorder};
use simulated::faulty::{Faulty, Passing};

/// Long enough for a machine with many more threads than processors not to declare a living node dead.
const TIMEOUT: Nanos = Nanos::from_millis(2000);

/// A transport that can be cut off from all others, and over which lies can be told.
struct Cable {
    inner: Arc<dyn Transport>,
    cut: AtomicBool,
    /// It is cut after so many messages more. 0: it is not, by itself.
    left: AtomicU64,
    /// What is sent to this node is lost, but for the membership's messages.
    muted: AtomicUsize,
    lies: Lies,
    early: Early,
}

impl Cable {
    /// A message passes, but for those of the membership, which come when they come. True if it still does.
    fn passes(&self, body: &Body<'_>) -> bool {
        if !matches!(body, Body::Control(_)) && self.left.load(Ordering::SeqCst) > 0 {
            let was = self.left.fetch_sub(1, Ordering::SeqCst);
            self.cut.fetch_or(was == 1, Ordering::SeqCst);
        }
        !self.cut.load(Ordering::SeqCst)
    }
}

impl Transport for Cable {
    fn me(&self) -> PeerId {
        self.inner.me()
    }
    fn send(&self, to: PeerId, body: Body<'_>, out: &mut Outgoing) {
        let muted = to != PeerId::SWITCH && to.index() == self.muted.load(Ordering::SeqCst);
        if self.passes(&body) && (!muted || matches!(body, Body::Control(_))) {
            self.inner.send(to, body, out);
        }
    }
    fn flush(&self, out: &mut Outgoing) {
        self.inner.flush(out);
    }
    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
        let mut answers = Vec::new();
        let received = self.inner.receive(&mut |from, body| {
            if self.passes(&body) && !self.early.answers((from, &body), each, &mut answers) {
                self.lies.tell(from, body, each);
            }
        });
        self.early.look(each);
        if !answers.is_empty() {
            let mut out = Outgoing::new();
            for packet in &answers {
                self.inner.send(PeerId::of(packet.to), Body::Packet(packet, Contents::None), &mut out);
            }
            self.inner.flush(&mut out);
        }
        received
    }
    fn attend(&self) {
        self.inner.attend();
    }
    fn leave(&self) -> bool {
        self.inner.leave()
    }
    fn wait(&self, most: Nanos) {
        self.inner.wait(most);
    }
    fn block(&self, most: Nanos) {
        self.inner.block(most);
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}

struct SwitchThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    watch: Watch,
}

pub(crate) struct Processes {
    hub: Hub,
    config: Config,
    pub(crate) nodes: Vec<Rack>,
    cables: Vec<Arc<Cable>>,
    switch: Option<SwitchThread>,
    faulty: bool,
    process: ProcessConfig,
    /// Nodes of one process map memory at different addresses, and racks one after the other.
    #[allow(dead_code, reason = "kept until the rack has ended")]
    mapping: Option<MutexGuard<'static, ()>>,
}

static MAPPING: Mutex<()> = Mutex::new(());
/// Where the first node of a rack maps memory; racks that do not have the usual addresses.
const MAP_BASE: u64 = 0x3000_0000_0000;

/// Every hundredth message is lost, every hundredth comes twice, and neighbours overtake each other.
fn faults() -> Rules<Passing> {
    Rules::none()
        .with(drop_per_mille(10))
        .with(duplicate_per_mille(10, Nanos::from_micros(500)))
        .with(reorder(Nanos::from_micros(20)))
}

fn connect(hub: &Hub, place: PeerId, faulty: bool) -> Arc<dyn Transport> {
    let plain = Arc::new(hub.connect(place));
    if faulty { Arc::new(Faulty::new(plain, faults(), place.index() as u64)) } else { plain }
}

impl Processes {
    pub(crate) fn start(nodes: usize) -> Self {
        Self::start_on(nodes, false)
    }

    pub(crate) fn start_on(nodes: usize, faulty: bool) -> Self {
        Self::start_steered(nodes, faulty, None)
    }

    /// With a switch that holds so many keys of chains.
    pub(crate) fn start_steered(nodes: usize, faulty: bool, steering: Option<usize>) -> Self {
        let shape = Config { nodes, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
        // Where messages are lost, answers of both kinds are.
        let config = Config { steering, peek: faulty, ..shape };
        Self::start_as(config, faulty, Scheduling::Fair)
    }

    /// With small reads done where the block is.
    pub(crate) fn start_peeking(nodes: usize) -> Self {
        let config = Config { nodes, memory: 4 << 20, cache: 1 << 20, peek: true, ..Config::default() };
        Self::start_as(config, false, Scheduling::Fair)
    }

    /// With those who answer scheduled so.
    pub(crate) fn start_scheduled(nodes: usize, scheduling: Scheduling) -> Self {
        let config = Config { nodes, memory: 4 << 20, cache: 1 << 20, ..Config::default() };
        Self::start_as(config, false, scheduling)
    }

    /// A rack like that.
    pub(crate) fn start_with(faulty: bool, config: Config) -> Self {
        Self::start_as(config, faulty, Scheduling::Fair)
    }

    /// One with this time until a node is taken for dead.
    pub(crate) fn start_patient(faulty: bool, config: Config, timeout: Nanos) -> Self {
        let process = ProcessConfig { timing: Timing::new(timeout), ..ProcessConfig::default() };
        Self::start_process(config, faulty, process)
    }

    /// One whose nodes map memory, each at addresses of its own; whoever has a fault resolves it, or a thread of the node does.
    pub(crate) fn start_mapped(faulty: bool, config: Config, in_place: bool) -> Self {
        let mapping = MAPPING.lock().unwrap_or_else(PoisonError::into_inner);
        let process = ProcessConfig {
            timing: Timing::new(TIMEOUT),
            map_base: MAP_BASE,
            faults_in_place: in_place,
            ..ProcessConfig::default()
        };
        let mut rack = Self::start_process(config, faulty, process);
        rack.mapping = Some(mapping);
        rack
    }

    fn start_as(config: Config, faulty: bool, scheduling: Scheduling) -> Self {
        let process = ProcessConfig { timing: Timing::new(TIMEOUT), scheduling, ..ProcessConfig::default() };
        Self::start_process(config, faulty, process)
    }

    fn start_process(config: Config, faulty: bool, process: ProcessConfig) -> Self {
        let (hub, nodes) = (Hub::default(), config.nodes);
        let switch = Some(start_switch(&hub, &config, faulty, &process));
        let mut rack = Self {
            hub,
            config,
            nodes: Vec::new(),
            cables: Vec::new(),
            switch,
            faulty,
            process,
            mapping: None,
        };
        // All at once: the rack waits for all before it begins.
        let joined: Vec<_> = std::thread::scope(|scope| {
            let rack = &rack;
            let threads: Vec<_> = (0..nodes).map(|node| scope.spawn(move || rack.join(node))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        (rack.nodes, rack.cables) = joined.into_iter().unzip();
        rack
    }

    fn join(&self, node: usize) -> (Rack, Arc<Cable>) {
        let node = NodeId(node as u16);
        let inner = connect(&self.hub, PeerId::node(node), self.faulty);
        let cable = Arc::new(Cable {
            inner,
            cut: AtomicBool::new(false),
            left: AtomicU64::new(0),
            muted: AtomicUsize::new(usize::MAX),
            lies: Lies::default(),
            early: Early::default(),
        });
        // Racks that do not map leave it to their first node.
        let apart = if self.process.map_base == MAP_BASE { u64::from(node.0) } else { 0 };
        let map_base = self.process.map_base + ((apart * self.config.memories() as u64) << 39);
        let process = ProcessConfig { map_base, ..self.process };
        (Rack::join_over(self.config.clone(), node, &process, cable.clone()).unwrap(), cable)
    }

    /// The process ends without a word.
    pub(crate) fn kill(&mut self, node: usize) {
        self.cut_off(node);
        self.nodes.remove(node);
        self.cables.remove(node);
    }

    pub(crate) fn cut_off(&mut self, node: usize) {
        self.cables[node].cut.store(true, Ordering::SeqCst);
    }

    /// It is cut off when so many messages more have come there or left, but for those of the membership.
    pub(crate) fn cut_off_after(&mut self, node: usize, messages: u64) {
        self.cables[node].left.store(messages, Ordering::SeqCst);
    }

    /// From now on, what this node sends to that one is lost.
    pub(crate) fn mute(&self, node: usize, towards: usize) {
        self.cables[node].muted.store(PeerId::node(NodeId(towards as u16)).index(), Ordering::SeqCst);
    }

    pub(crate) fn is_cut_off(&self, node: usize) -> bool {
        self.cables[node].cut.load(Ordering::SeqCst)
    }

    pub(crate) fn reconnect(&mut self, node: usize) {
        self.cables[node].cut.store(false, Ordering::SeqCst);
    }

    /// Has every other answer with words to this node's small reads be one to a read of another length. Returns how many were
    /// so far.
    pub(crate) fn lie_to(&self, node: usize) -> u64 {
        self.cables[node].lies.begin()
    }

    /// From now on every node says that it has given a copy up before it does.
    pub(crate) fn answer_early(&self) {
        self.cables.iter().for_each(|cable| cable.early.begin());
    }

    pub(crate) fn rejoin(&mut self, node: usize) {
        (self.nodes[node], self.cables[node]) = self.join(node);
    }

    /// What the switch last said that it has done for chains.
    pub(crate) fn steering_counts(&self) -> SteeringCounts {
        let watch = &self.switch.as_ref().expect("it runs").watch;
        watch.report().map(|report| report.chains).unwrap_or_default()
    }

    /// What the switch says of memories with copies, in the epoch that the nodes have heard of: all of them are on as many nodes as they
    /// are to be.
    pub(crate) fn has_all_copies(&self) -> bool {
        self.copies().is_some_and(|report| report.copies_missing() == 0)
    }

    /// The same of the memory that this node serves first: the node has it whole.
    pub(crate) fn has_copy_at(&self, node: usize) -> bool {
        self.copies().is_some_and(|report| report.memories[node].kept_by.contains(&NodeId(node as u16)))
    }

    fn copies(&self) -> Option<SwitchReport> {
        let watch = &self.switch.as_ref().expect("it runs").watch;
        let epoch = self.nodes.iter().map(Rack::epoch).max().unwrap_or(0);
        watch.report().filter(|report| report.epoch.0 >= epoch)
    }

    pub(crate) fn restart_switch(&mut self) {
        stop(self.switch.take());
        self.switch = Some(start_switch(&self.hub, &self.config, self.faulty, &self.process));
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.nodes.clear();
        stop(self.switch.take());
    }
}

fn start_switch(hub: &Hub, config: &Config, faulty: bool, process: &ProcessConfig) -> SwitchThread {
    let transport = connect(hub, PeerId::SWITCH, faulty);
    let stop = Arc::new(AtomicBool::new(false));
    let mut switch = SwitchProcess::new(config, process, transport).unwrap();
    let stopped = Arc::clone(&stop);
    let watch = switch.watch();
    SwitchThread {
        stop,
        thread: std::thread::spawn(move || {
            switch.run(&stopped);
        }),
        watch,
    }
}

fn stop(switch: Option<SwitchThread>) {
    if let Some(switch) = switch {
        switch.stop.store(true, Ordering::SeqCst);
        switch.thread.join().unwrap();
    }
}

/// Looks until there is something, for a while.
pub(crate) fn until<T>(look: impl FnMut() -> Option<T>) -> T {
    until_or_say(look, || "it did not happen".to_owned())
}

/// The same; and what there is to be said if it never comes.
pub(crate) fn until_or_say<T>(mut look: impl FnMut() -> Option<T>, say: impl Fn() -> String) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}", say());
        std::thread::sleep(Duration::from_millis(5));
    }
}
