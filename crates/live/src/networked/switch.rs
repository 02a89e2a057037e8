//! The switch's process: FlowCC, and the coordinator that knows who is alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use membership::coordinator::{Coordinator, CoordinatorConfig, Effect};
use membership::{Message, Timing};
use transport::{Body, Cause, Contents, Outgoing, PeerId, Transport};
use wire::{Nanos, NodeId, SwitchEpoch};

use super::listing::Listing;
use super::log::SwitchLog;
use super::node::now_since;
use super::plane::DataPlane;
use super::report::{MemoryStatus, NodeReport, NodeStatus, SwitchReport, Watch};
use super::verbs::mtu_of;
use crate::actor::SwitchPrograms;
use crate::chains::Introduction;
use crate::config::Config;
use crate::scheduling::Scheduling;
use crate::waiting::{Oversubscription, SpinThenPark, Step, is_all};

/// The longest sleep: nobody is woken for an UNLOCK, and it would be repeated after ten milliseconds.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(5);

/// Between two reports, for whoever watches.
const REPORT_EVERY: Nanos = Nanos::from_millis(150);

/// What the switch's process needs to know.
#[derive(Clone, Debug)]
pub struct SwitchSetup {
    /// The rack's shape; the same in all processes.
    pub rack: Config,
    /// When the rack gives a node up; the same in all processes.
    pub timing: Timing,
    /// How its thread is scheduled.
    pub scheduling: Scheduling,
    /// No epoch of an earlier switch has a number above this, as far as its members cannot tell us.
    pub origin: SwitchEpoch,
    /// A random number that names this incarnation of the switch.
    pub session: u64,
}

/// Why a switch's process has ended its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It was told to.
    Told,
    /// Another process has taken its program over.
    Replaced,
}

/// The switch of a rack of processes, in this process.
pub struct NetworkedSwitch {
    programs: SwitchPrograms,
    /// Where the coherence program is, if not among those.
    plane: Option<Box<dyn DataPlane>>,
    coordinator: Coordinator,
    /// Which node serves each memory with copies, in this epoch.
    servers: Vec<Option<NodeId>>,
    transport: Arc<dyn Transport>,
    started: Instant,
    scheduling: Scheduling,
    oversubscription: Oversubscription,
    outgoing: Outgoing,
    /// The switch is in an epoch, and may know something.
    began: bool,
    entries: usize,
    watch: Watch,
    listing: Listing,
    /// When to report next.
    report_at: Nanos,
    log: SwitchLog,
}

impl NetworkedSwitch {
    /// A switch without entries, that waits for nodes.
    pub fn new(setup: &SwitchSetup, transport: Arc<dyn Transport>) -> Self {
        Self {
            plane: None,
            programs: SwitchPrograms::new(&setup.rack, mtu_of(transport.one_sided_room())),
            coordinator: Coordinator::new(
                CoordinatorConfig {
                    nodes: setup.rack.places(),
                    listed: setup.rack.nodes,
                    copies: setup.rack.copies,
                    origin: setup.origin,
                    session: setup.session,
                    timing: setup.timing,
                },
                Nanos::ZERO,
            ),
            servers: Vec::new(),
            transport,
            started: Instant::now(),
            scheduling: setup.scheduling,
            oversubscription: Oversubscription::of(setup.scheduling),
            outgoing: Outgoing::new(),
            began: false,
            entries: setup.rack.switch_entries,
            watch: Watch::default(),
            listing: Listing::default(),
            report_at: Nanos::ZERO,
            log: SwitchLog::default(),
        }
    }

    /// The coherence program is elsewhere: packets about blocks that come to this process are dropped, for the program
    /// did not know their senders yet, and they repeat what matters.
    #[must_use]
    pub fn with_plane(mut self, plane: Box<dyn DataPlane>) -> Self {
        self.coordinator.hear_of(plane.epoch());
        Self { plane: Some(plane), ..self }
    }

    /// Where it leaves its reports.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Where it says which nodes want to be listed, and is told how many are.
    pub fn listing(&self) -> Listing {
        self.listing.clone()
    }

    fn report(&mut self, now: Nanos) -> SwitchReport {
        let plane = self.plane.as_mut().map(|plane| plane.report());
        let (switch, coordinator) = (&self.programs.coherence, &self.coordinator);
        let roster = coordinator.roster();
        let nodes = (0..roster.entries.len()).filter_map(|node| {
            let node = NodeId(u16::try_from(node).expect("at most 64 nodes"));
            let status = coordinator.status(node, now)?;
            Some(NodeStatus {
                node,
                alive: status.entry.alive,
                incarnation: status.entry.incarnation,
                silence: status.silence,
                epoch: status.epoch,
                drain: status.drain,
                report: NodeReport::parse(status.statistics),
            })
        });
        let memories = coordinator.memories().zip(0..).map(|((kept_by, copied_to), near)| MemoryStatus {
            near: NodeId(near),
            kept_by: kept_by.iter().collect(),
            copied_to: copied_to.iter().collect(),
        });
        SwitchReport {
            copies: coordinator.copies(),
            memories: memories.collect(),
            phase: coordinator.phase(),
            epoch: roster.epoch,
            nodes: nodes.collect(),
            occupancy: plane.as_ref().map_or(switch.occupancy() as u64, |plane| plane.occupancy),
            entries: self.entries as u64,
            packets_received: self.programs.received + plane.as_ref().map_or(0, |plane| plane.taken),
            packets_sent: self.programs.sent,
            program_dropped: plane.as_ref().map_or(switch.counters().all_drops(), |plane| plane.dropped),
            plane,
            chains: self.programs.relay.counts(),
            membership: *coordinator.counters(),
            transport: self.transport.counters().counts(),
        }
    }

    /// Works until told to stop, or until another process has taken its program over.
    ///
    /// # Panics
    /// If its thread may not be scheduled as was set up: see [`Scheduling::check`].
    pub fn run(&mut self, stop: &AtomicBool) -> Ended {
        self.scheduling.ask().expect("was permitted a moment ago");
        let transport = Arc::clone(&self.transport);
        let mut spin_then_park = SpinThenPark::without_spins();
        transport.attend();
        while !stop.load(Ordering::Acquire) {
            let started = self.started;
            let clock = || now_since(started);
            let now = spin_then_park.now(clock);
            if self.coordinator.next_deadline() <= now {
                let mut effects = Vec::new();
                self.coordinator.on_deadline(now, &mut effects);
                self.apply(now, effects);
                let (epoch, counters) = (self.coordinator.roster().epoch, self.coordinator.counters());
                self.log.look(now, epoch, counters, &transport.counters().counts());
            }
            if now >= self.report_at && self.watch.is_watched() {
                self.report_at = now + REPORT_EVERY;
                let report = self.report(now);
                self.watch.leave(report);
            }
            if self.plane.as_mut().is_some_and(|plane| !plane.look()) {
                transport.leave();
                return Ended::Replaced;
            }
            match self.poll(&*transport, now) {
                0 => {}
                messages => {
                    spin_then_park.again();
                    if !is_all(messages) {
                        continue;
                    }
                }
            }
            match spin_then_park.step(now, Nanos::MAX, &self.oversubscription) {
                Step::Spin => std::hint::spin_loop(),
                Step::Yield => spin_then_park.give_way(now, &self.oversubscription, clock),
                Step::Sleep(_) => {
                    let due = self.coordinator.next_deadline().saturating_sub(now_since(self.started));
                    transport.block(due.min(LONGEST_SLEEP));
                }
            }
        }
        transport.leave();
        Ended::Told
    }

    /// Receives a burst, and handles it. Returns how many messages there were.
    fn poll(&mut self, transport: &dyn Transport, now: Nanos) -> usize {
        let mut effects = Vec::new();
        let mut switch_effects = Vec::new();
        let mut directory_effects = Vec::new();
        let Self { programs, plane, coordinator, servers, outgoing, .. } = self;
        let nodes = coordinator.roster().entries.len();
        let messages = transport.receive(&mut |from, body| match body {
            Body::Packet(..) if plane.is_some() => transport.counters().dropped(Cause::OtherIncarnation),
            Body::Packet(packet, _) => {
                programs.on_packet(packet, &mut switch_effects, |packet| {
                    if let Some(to) = packet.to.node().and_then(|memory| has(memory, nodes, servers)) {
                        transport.send(PeerId::node(to), Body::Packet(&packet, Contents::None), outgoing);
                    }
                });
            }
            Body::Lock(packet, _) if let Some(plane) = plane => {
                plane.on_lock_packet(packet, &mut |packet| {
                    if let Some(to) = packet.to.node() {
                        transport.send(PeerId::node(to), Body::Lock(packet, Contents::None), outgoing);
                    }
                });
            }
            Body::Lock(packet, _) => {
                programs.on_lock_packet(packet, &mut directory_effects, |packet| {
                    if let Some(to) = packet.to.node() {
                        transport.send(PeerId::node(to), Body::Lock(packet, Contents::None), outgoing);
                    }
                });
            }
            // NICs talk to each other, but about chains.
            Body::Verbs(packet, len, contents) => {
                let forwarded = programs.relay.on_packet(
                    now,
                    from,
                    (packet, len, contents),
                    |to, packet, len, contents| {
                        transport.send(PeerId::node(to), Body::Verbs(packet, len, contents), outgoing);
                    },
                );
                if !forwarded {
                    transport.counters().dropped(Cause::Malformed);
                }
            }
            Body::Control(bytes) => match (from.as_node(), Message::parse(bytes)) {
                (Some(_), Err(_)) if let Some(said) = Introduction::parse(bytes) => {
                    if let Some(answer) = programs.relay.on_introduction(now, from, &said) {
                        transport.send(from, Body::Control(&answer.encode()), outgoing);
                    }
                }
                (Some(node), Ok(message)) => coordinator.on_message(now, node, message, &mut effects),
                _ => transport.counters().dropped(Cause::Malformed),
            },
        });
        self.apply(now, effects);
        if let Some(node) = self.coordinator.take_unlisted() {
            // It calls again.
            self.coordinator.list(self.listing.listed());
            self.listing.ask_for(node);
        }
        if !self.outgoing.is_empty() {
            transport.flush(&mut self.outgoing);
        }
        messages
    }

    fn apply(&mut self, now: Nanos, mut effects: Vec<Effect>) {
        while !effects.is_empty() {
            for effect in std::mem::take(&mut effects) {
                match effect {
                    Effect::Send(to, message) => {
                        let body = message.encode();
                        self.transport.send(PeerId::node(to), Body::Control(&body), &mut self.outgoing);
                    }
                    Effect::Restart { epoch, shadow, changes } => {
                        self.log.on_epoch(epoch, &changes, self.coordinator.roster().live().len() as u64);
                        // Before anybody else hears of the epoch.
                        let view = self.coordinator.roster().view();
                        self.servers = (0..view.memories.len()).map(|i| view.hosts(i).next()).collect();
                        let (nodes, servers) = (view.incarnations.len(), &self.servers);
                        let server_of = |memory| has(memory, nodes, servers);
                        let dump = match &mut self.plane {
                            Some(plane) => plane.begin_epoch(epoch, shadow, &server_of),
                            None => self.began.then(|| self.programs.coherence.dump()),
                        };
                        self.programs.chip().begin_epoch(epoch, shadow, &view.incarnations);
                        self.began = true;
                        self.coordinator.on_restarted(now, dump.as_ref(), &mut effects);
                    }
                }
            }
        }
    }
}

/// The node that has this memory: its own, or one with copies, which is where the epoch says.
fn has(memory: NodeId, nodes: usize, servers: &[Option<NodeId>]) -> Option<NodeId> {
    match memory.index().checked_sub(nodes) {
        Some(nth) => servers.get(nth).copied().flatten(),
        None => Some(memory),
    }
}
