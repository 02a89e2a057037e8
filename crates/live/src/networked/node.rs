//! A node's process: joining the rack, being declared dead, leaving.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use membership::member::{Effect as Membership, Member, MemberConfig};
use membership::{Message, Session, Timing};
use node::{Node, Outcome, Pinned, Retransmission, Store, View};
use switch::coherence::Dump;
use transport::{Body, Cause, Contents, Outgoing, PeerId, Refusal, Transport};
use wire::{Incarnation, Nanos, NodeId, SwitchEpoch};

use super::chains::ChainSide;
use super::draining::Told;
use super::lease::Lease;
use super::log::NodeLog;
use super::mapped::MappedMemory;
use super::names::NameServer;
use super::report::NodeReport;
use super::verbs::Verbs;
use crate::actor::{Actor, Driver, NodeMachines, ThreadContext};
use crate::config::Config;
use crate::memory::{NodeMemory, StoreOf};
use crate::scheduling::Scheduling;
use crate::waiting::Oversubscription;

/// The shortest time after which a packet is sent again: a preempted process is away for a scheduler's slice.
const RETRANSMISSION_FLOOR: Nanos = Nanos::from_millis(10);
/// The longest. On a machine that is much too full round trips take tenths of a second; six of those, doubled for a few
/// losses, would be a minute. Ten packets a second for what a node waits for overload nobody.
const RETRANSMISSION_MOST: Nanos = Nanos::from_millis(100);

/// How long a node that is not dead may be silent before the connection to it begins anew.
const LEAST_SILENCE: Nanos = Nanos::from_millis(2_500);

/// What a node needs to know to join.
#[derive(Clone, Debug)]
pub struct NodeSetup {
    /// The rack's shape; the same in all processes.
    pub rack: Config,
    /// Which node this is.
    pub id: NodeId,
    /// When the rack gives a node up; the same in all processes.
    pub timing: Timing,
    /// How its service thread is scheduled.
    pub scheduling: Scheduling,
    /// A random number that names this incarnation of the node.
    pub session: Session,
    /// Where mapped memory lies in this process; the same in all that exchange pointers into it.
    pub map_base: u64,
    /// Faults there are resolved by the threads that have them.
    pub faults_in_place: bool,
}

/// Why a node could not join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// The switch did not answer, or did not begin.
    NoAnswer,
    /// The switch's list of nodes does not have this one.
    Unlisted,
    /// The switch has other settings, or is of another version: that does not change by waiting.
    Refused(Refusal),
}

/// A node of a rack of processes, in this process.
pub struct NetworkedNode {
    pub(super) id: NodeId,
    /// Which incarnation of it this process is.
    pub(super) incarnation: Incarnation,
    pub(super) memory: Arc<NodeMemory>,
    pub(super) actor: Actor<NodeMachines>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) verbs: Verbs,
    pub(super) chains: ChainSide,
    /// This node, for threads that it begins.
    pub(super) this: Weak<Self>,
    pub(super) lease: Arc<Lease>,
    pub(super) oversubscription: Oversubscription,
    pub(super) member: Mutex<Member>,
    /// When it wants to be called, as of its last call: the service thread looks at this in every round.
    member_due: AtomicU64,
    pub(super) started: Instant,
    /// Held from receiving a burst until what follows from it is sent.
    pub(super) receiving: Mutex<()>,
    /// Held by the thread that sleeps in the transport.
    pub(super) blocking: Mutex<()>,
    pub(super) stop: AtomicBool,
    /// The application wants to leave: it does nothing any more.
    pub(super) leaving: AtomicBool,
    /// Whether it drains. Taken before the membership.
    pub(super) told: Mutex<Told>,
    /// Hits that handles have reported.
    hits: AtomicU64,
    service: Mutex<Option<JoinHandle<()>>>,
    /// Who answers for the names of this node.
    pub(super) names: OnceLock<NameServer>,
    /// Where memory is mapped.
    pub(super) mapping: Mutex<MappedMemory>,
    pub(super) scheduling: Scheduling,
    /// The rack, in the epoch that this node has begun last. Whoever has this waits for nothing.
    view: Mutex<Arc<View>>,
    /// The node has had an incarnation before this one: what was named there is lost.
    returned: bool,
    /// How many nodes the rack began with.
    founders: usize,
    /// Nodes are or were in the rack up to this one, as far as this node knows.
    known: AtomicUsize,
    /// Taken after the membership, and last.
    log: Mutex<NodeLog>,
}

impl NetworkedNode {
    /// Joins the rack: waits until the coordinator has begun an epoch with this node in it, as long as `go_on` says so, which is asked
    /// several times a second and told why it has not. The incarnation is the same all the time: the coordinator may begin with it at
    /// any moment, and to it another one would be another process.
    ///
    /// # Errors
    /// If `go_on` says that it is enough, or it cannot happen; [`JoinError::NoAnswer`] also if this incarnation was taken for dead
    /// before it knew of the rack.
    ///
    /// # Panics
    /// If the system gives no thread.
    pub fn join(
        setup: &NodeSetup,
        transport: Arc<dyn Transport>,
        go_on: &mut dyn FnMut(&JoinError) -> bool,
    ) -> Result<Arc<Self>, JoinError> {
        let started = Instant::now();
        let mut member = Member::new(
            MemberConfig {
                node: setup.id,
                nodes: setup.rack.places(),
                session: setup.session,
                // A transport has what only one process can have: the node's port, or the lock of its socket.
                sole: true,
                timing: setup.timing,
            },
            Nanos::ZERO,
        );
        let view = await_view(&mut member, &*transport, started, go_on)?;
        let incarnation = view.incarnations[setup.id.index()].expect("a member is alive in its first view");
        let returned = member.roster().entries[setup.id.index()].returned;
        // This process may know of nodes that were added, or not: what the rack began with, the switch says.
        let rack = &Config { nodes: member.roster().founders, ..setup.rack.clone() };
        let mut config = rack.node(setup.id);
        config.incarnation = incarnation;
        config.copies = rack.copies;
        config.refill = rack.refill;
        config.retransmission =
            Retransmission::AfterRoundTrips { floor: RETRANSMISSION_FLOOR, most: RETRANSMISSION_MOST };
        let locks =
            node::locks::LockNodeConfig { retransmission: config.retransmission, ..rack.locks(setup.id) };
        let room = transport.one_sided_room();
        // If it is dead, that is to be known before: then others do what it was asked, or it is said that it is dead.
        let silence = Nanos(setup.timing.timeout.0.saturating_mul(2)).max(LEAST_SILENCE);
        let node = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            chains: ChainSide::new(rack.steers(), setup.timing.timeout, rack.refill),
            verbs: Verbs::new(setup.id, rack.places(), room, (RETRANSMISSION_FLOOR, silence)),
            incarnation,
            id: setup.id,
            memory: Arc::new(rack.memory_with_copies()),
            actor: Actor::new(NodeMachines::new(Node::new(config), locks), Nanos::MAX),
            transport,
            lease: Arc::default(),
            oversubscription: Oversubscription::of(setup.scheduling),
            member_due: AtomicU64::new(member.next_deadline().0),
            member: Mutex::new(member),
            started,
            receiving: Mutex::new(()),
            blocking: Mutex::new(()),
            stop: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            told: Mutex::default(),
            hits: AtomicU64::new(0),
            service: Mutex::new(None),
            names: OnceLock::new(),
            mapping: Mutex::new(MappedMemory::reserve(setup, rack.memories())),
            scheduling: setup.scheduling,
            view: Mutex::new(Arc::new(view.clone())),
            returned,
            founders: rack.nodes,
            known: AtomicUsize::new(rack.nodes),
            log: Mutex::default(),
        });
        node.log().on_joined(setup.id, view.epoch, incarnation);
        let mut context = ThreadContext::new(setup.session.0);
        node.begin(&mut context, &view, None);
        let service = std::thread::Builder::new().name(format!("rackmem {}", setup.id));
        let served = Arc::downgrade(&node);
        let scheduling = setup.scheduling;
        let thread = service.spawn(move || super::service::serve(&served, context, scheduling));
        *node.service.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(thread.expect("the system gives a thread"));
        Ok(node)
    }

    /// Nanoseconds since this process began to join.
    pub fn now(&self) -> Nanos {
        now_since(self.started)
    }

    /// Which node this is.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// True if this peer is alive, as far as this node knows.
    pub fn is_alive(&self, peer: NodeId) -> bool {
        self.verbs.incarnation_of(peer).is_some()
    }

    /// True if the node has had an incarnation before this one, whose memory is lost.
    pub const fn has_returned(&self) -> bool {
        self.returned
    }

    /// How many nodes the rack began with: the same number in all of its processes.
    pub const fn founders(&self) -> usize {
        self.founders
    }

    /// How many nodes the rack has had so far, as far as this node knows: those that were added, too.
    pub fn nodes_known(&self) -> usize {
        self.known.load(Ordering::Relaxed)
    }

    /// The incarnation of the node that this process is.
    pub const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The epoch that the node is in.
    pub fn epoch(&self) -> SwitchEpoch {
        self.member().epoch()
    }

    /// The rack, in the epoch that this node has begun last.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The node's memory, for hits.
    pub const fn memory(&self) -> &Arc<NodeMemory> {
        &self.memory
    }

    /// Until when what is cached here counts.
    pub fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Accesses that needed no message, as far as handles have said; and adds some.
    pub fn hits(&self, more: u64) -> u64 {
        self.hits.fetch_add(more, Ordering::Relaxed) + more
    }

    /// The transport of its messages.
    pub fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// Looks at the node's machines, between two inputs.
    pub fn with_node<R>(&self, look: impl FnOnce(&Node) -> R) -> R {
        look(&self.actor.enter().node)
    }

    /// Leaves the rack in order: sends home what only this node has cached, tells the coordinator, and stops serving.
    /// Operations fail from now on. Blocks whose home this node is are gone for the others. Takes no longer than
    /// `timeout`; true if everything has arrived by then.
    pub fn leave(&self, timeout: Duration) -> bool {
        self.leaving.store(true, Ordering::Release);
        let mut context = ThreadContext::new(self.now().0);
        let began = Instant::now();
        let mut left = 1;
        while left > 0 && began.elapsed() < timeout && !self.lease.is_fenced() {
            let now = self.now();
            let mut machines = self.actor.enter();
            let at = machines.at(now, &mut context);
            let (mut all, kept) = machines.all();
            let (blocks, locks) = (&mut self.store(self.id), &mut self.store(self.id).of_locks(kept));
            left = all.on_leaving(at, (blocks, &mut context.effects), (locks, &mut context.lock_effects));
            if left == 0 {
                left = all.node.on_parting(at, blocks, &mut context.effects);
            }
            self.deliver(self.id, machines, &mut context);
            let mut waiting = self.begin_wait();
            self.pause(self.id, &mut context, &mut waiting);
            self.end_wait(&mut context);
        }
        let mut effects = Vec::new();
        self.with_member(|member| member.leave(self.now(), &mut effects));
        self.apply(&mut context, effects);
        self.fence(&mut context);
        self.end_service();
        let epoch = self.member().epoch();
        self.log().on_left(self.id, epoch);
        self.note_left(left == 0);
        left == 0
    }

    /// Ends the service thread, and waits for it: it may hold the last reference to the node and to its transport. To
    /// the others this node has died, unless it has left before.
    pub fn end_service(&self) {
        self.stop.store(true, Ordering::Release);
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It may be the service thread itself that drops the node.
        if let Some(service) = service.filter(|it| it.thread().id() != std::thread::current().id()) {
            // It cannot have panicked without having said so.
            drop(service.join());
        }
        self.end_mapping();
        if self.chains.has_servers() && !self.lease.is_fenced() {
            // Their threads may wait for others, who answer no more.
            self.fence(&mut ThreadContext::new(self.now().0));
        }
        self.chains.end();
    }

    /// A message of the coordinator.
    pub(super) fn on_control(&self, context: &mut ThreadContext, bytes: &[u8]) {
        if self.chains.on_control(bytes) {
            return;
        }
        let Ok(message) = Message::parse(bytes) else {
            return self.transport.counters().dropped(Cause::Malformed);
        };
        let mut effects = Vec::new();
        self.with_member(|member| member.on_message(self.now(), message, &mut effects));
        self.apply(context, effects);
    }

    /// What is due in the membership. Returns when it wants to be called next.
    pub(super) fn on_member_deadline(&self, context: &mut ThreadContext, now: Nanos) -> Nanos {
        let due = Nanos(self.member_due.load(Ordering::Relaxed));
        if due > now {
            return due;
        }
        let mut member = self.member();
        let mut effects = Vec::new();
        let report = self.report();
        member.set_statistics(&report.encode());
        member.set_whole(self.actor.enter().node.whole_memories());
        member.on_deadline(now, &mut effects);
        let locks = self.actor.enter().locks.machine.counters().lost;
        self.log().look(now, (self.id, member.epoch()), &report, locks);
        let next = member.next_deadline();
        self.member_due.store(next.0, Ordering::Relaxed);
        drop(member);
        self.look_at_suspects();
        // Whoever left something while the report was made relies on that.
        self.run(context);
        self.apply(context, effects);
        next
    }

    /// What it puts into its beats.
    pub fn report(&self) -> NodeReport {
        NodeReport {
            hits: self.hits.load(Ordering::Relaxed),
            mapped: self.mapped_counts(),
            nic: self.nic_counts(),
            chains: self.chain_counts(),
            transport: self.transport.counters().counts(),
            ..NodeReport::of(&self.actor.enter().node)
        }
    }

    /// Lets the member do something, and notes when it wants to be called next.
    pub(super) fn with_member(&self, action: impl FnOnce(&mut Member)) {
        let mut member = self.member();
        action(&mut member);
        self.member_due.store(member.next_deadline().0, Ordering::Relaxed);
    }

    pub(super) fn member(&self) -> std::sync::MutexGuard<'_, Member> {
        self.member.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn log(&self) -> std::sync::MutexGuard<'_, NodeLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn apply(&self, context: &mut ThreadContext, effects: Vec<Membership>) {
        let at = || (self.id, self.member().epoch());
        for effect in effects {
            match effect {
                Membership::Send(message) => send_control(&*self.transport, &message),
                Membership::Begin { view, dump } => {
                    self.log().on_epoch(self.id, view.epoch, view.live().len() as u64);
                    self.begin(context, &view, dump.as_ref());
                }
                Membership::Leased { until } => {
                    self.lease.extend(until);
                    self.resume_pages();
                    let (node, epoch) = at();
                    self.log().on_leased(node, epoch);
                }
                // Whoever must know asks the lease. Who leaves gives it up.
                Membership::Suspended if self.leaving.load(Ordering::Acquire) => {}
                Membership::Suspended => {
                    let (node, epoch) = at();
                    self.log().on_suspended(node, epoch);
                    self.suspend_pages(context);
                }
                Membership::Fenced => {
                    let (node, epoch) = at();
                    self.log().on_fenced(node, epoch);
                    self.fence(context);
                }
                Membership::Left => self.fence(context),
            }
        }
    }

    /// A new epoch.
    fn begin(&self, context: &mut ThreadContext, view: &View, dump: Option<&Dump>) {
        let mut machines = self.actor.enter();
        let at = machines.at(self.now(), context);
        let (mut all, kept) = machines.all();
        let (blocks, locks) = (&mut self.store(self.id), &mut self.store(self.id).of_locks(kept));
        let (out, lock_out) = (&mut context.effects, &mut context.lock_effects);
        all.on_new_epoch(at, (view, dump), (blocks, out), (locks, lock_out));
        {
            let mut known = self.view.lock().unwrap_or_else(PoisonError::into_inner);
            // As the machines do, it ignores one that comes late.
            if view.epoch > known.epoch {
                *known = Arc::new(view.clone());
            }
        }
        self.deliver(self.id, machines, context);
        let added = view.live().iter().map(|node| node.index() + 1).max();
        self.known.fetch_max(added.unwrap_or(0), Ordering::Relaxed);
        self.chains.begin_epoch(view.epoch);
        self.begin_connections(context, view);
    }

    /// This incarnation is over: nothing here counts any more.
    fn fence(&self, context: &mut ThreadContext) {
        self.lease.fence();
        let mut machines = self.actor.enter();
        machines.see(self.now());
        machines.ring_all(Outcome::Retry);
        self.deliver(self.id, machines, context);
        self.end_connections(context);
        self.drop_copies();
    }

    /// Ends hits in everything that is cached; what a thread is writing in goes when this is called again. Returns
    /// true if nothing is left.
    pub(super) fn drop_copies(&self) -> bool {
        let mut machine = self.actor.enter();
        self.memory.locks.close_all();
        if let Some(pages) = self.memory.pages() {
            pages.end_holds();
            pages.suspend();
        }
        let mut store = StoreOf::alone(&self.memory, self.id, Contents::None);
        let mut frames = Vec::new();
        store.published(|frame, _, _| frames.push(frame));
        let mut left = 0;
        for frame in frames {
            match store.withdraw(frame) {
                Ok(()) => store.release(frame),
                Err(Pinned) => left += 1,
            }
        }
        machine.node.forget_changes(&mut store);
        drop(machine);
        left == 0
    }
}

impl Drop for NetworkedNode {
    fn drop(&mut self) {
        self.end_service();
    }
}

pub(super) fn now_since(started: Instant) -> Nanos {
    Nanos(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

fn send_control(transport: &dyn Transport, message: &Message) {
    let mut out = Outgoing::new();
    transport.send(PeerId::SWITCH, Body::Control(&message.encode()), &mut out);
    transport.flush(&mut out);
}

/// Beats until the coordinator has begun an epoch with this member, or it is enough.
fn await_view(
    member: &mut Member,
    transport: &dyn Transport,
    started: Instant,
    go_on: &mut dyn FnMut(&JoinError) -> bool,
) -> Result<View, JoinError> {
    const ASK_EVERY: Duration = Duration::from_millis(100);
    let handshakes = transport.handshakes();
    let refusal = || handshakes.as_ref()?.refusal(PeerId::SWITCH).filter(|one| one.reason.is_final());
    // Of an earlier attempt to join, with the same transport.
    let former = refusal();
    let mut ask_after = ASK_EVERY;
    while !member.is_over() {
        if started.elapsed() >= ask_after {
            let why = if member.is_unlisted() { JoinError::Unlisted } else { JoinError::NoAnswer };
            if !go_on(&why) {
                return Err(why);
            }
            ask_after = started.elapsed() + ASK_EVERY;
        }
        if let Some(refusal) = refusal().filter(|one| former.as_ref() != Some(one)) {
            return Err(JoinError::Refused(refusal));
        }
        let now = now_since(started);
        let mut effects = Vec::new();
        if member.next_deadline() <= now {
            member.on_deadline(now, &mut effects);
        }
        transport.receive(&mut |from, body| {
            if let (PeerId::SWITCH, Body::Control(bytes)) = (from, body)
                && let Ok(message) = Message::parse(bytes)
            {
                member.on_message(now, message, &mut effects);
            }
        });
        let quiet = effects.is_empty();
        for effect in effects {
            match effect {
                Membership::Send(message) => send_control(transport, &message),
                Membership::Begin { view, .. } => return Ok(view),
                _ => {}
            }
        }
        if quiet {
            transport.wait(member.next_deadline().saturating_sub(now).min(Nanos::from_millis(10)));
        }
    }
    Err(JoinError::NoAnswer)
}
