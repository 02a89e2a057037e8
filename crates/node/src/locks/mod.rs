//! The locks that carry their data, on a node (GCS, sections 3 and 4): its agent, which has locks for the node's threads,
//! and the home of the locks in its memory.
//!
//! | file | holds |
//! | --- | --- |
//! | `store.rs` | the seam to whoever holds the bytes, and lets threads in |
//! | `record.rs` | what the agent knows of a lock |
//! | `threads.rs` | a thread wants a lock, has left, waits no longer |
//! | `serving.rs` | who is next, where the lock may be written: a thread here, or a node elsewhere |
//! | `moving.rs` | the lock on its way to others |
//! | `transfer.rs` | its data and the directory's verdict, which come apart |
//! | `taking.rs` | the lock comes, for reading or for writing |
//! | `ending.rs` | a copy ends, because somebody wants to write |
//! | `freeing.rs` | the lock's end |
//! | `reclaiming.rs` | a lost lock is taken again |
//! | `capacity.rs` | copies that have to go, so that others fit |
//! | `home.rs` | the data of locks that nobody has, and the directory of those that the switch does not keep |
//! | `inspect.rs` | what a checker sees |
//! | `deadlines.rs` | what was not answered is sent again |
//! | `recovery.rs` | a new incarnation of the switch |
//! | `rebuild.rs` | what a home makes of what all nodes have reported then |
//! | `canonical.rs` | a state as a value, for checkers |
//!
//! A node has a lock not at all, *shared* (it has a copy, and threads may read), or it *holds* the lock: it may write, once the
//! copies of others have ended, and it keeps the queue of whoever waits. Threads of the node enter and leave without
//! this machine as long as nobody waits: see [`LockStore`]. A lock stays where it was used last until another node asks.
//!
//! # Who is served
//! The queue at the holder has the node's own threads and other nodes, in the order in which they came. Readers at
//! its head are served together, wherever they are, and then the first writer behind them, who gets the queue. Threads
//! of a node whose turn is not the first stand behind all others again when the queue moves to their node. So
//! whoever waits is passed by every other waiter a bounded number of times. [`LockNodeConfig::preference`] lets a bounded
//! number of the node's own threads go first.
//!
//! # What must always hold
//! - One node may write, or some may read.
//! - What is at a lock's term: every grant names the term that it belongs to. A node takes nothing of a
//!   term that it has left, or whose end it has confirmed: that is what makes late and repeated packets harmless.
//! - Whoever may write, or read, has the data of the last release.

pub mod canonical;
mod capacity;
mod deadlines;
mod ending;
mod freeing;
mod home;
mod inspect;
mod moving;
mod rebuild;
mod reclaiming;
mod record;
mod recovery;
mod serving;
pub mod store;
mod taking;
mod threads;
mod transfer;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sorted::{Map, Set};
use switch::locks::Directory;
use wire::{
    AllRules, Copyset, GlobalAddr, Incarnation, LockEnd, LockKind, LockPacket, Nanos, NodeId, Refusal, Rule,
    Rules, SwitchEpoch, Term,
};

use crate::coherence::config::Retransmission;
use crate::store::{DataRef, Moment};
use capacity::After;
use home::HomeLock;
pub use inspect::{HolderView, LockView};
use record::Lock;
pub use store::{Full, LockStore, Users};

/// How a node's locks are set up. The same on all nodes of a rack, but for the id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockNodeConfig {
    /// This node.
    pub id: NodeId,
    /// How many nodes the rack has.
    pub nodes: usize,
    /// Whether entries go to the switch, as far as they fit; else their homes keep them all.
    pub in_switch: bool,
    /// How many threads of the holder may go before a node that waits, one after another.
    pub preference: u32,
    /// When lost packets are sent again.
    pub retransmission: Retransmission,
    /// The incarnation of the switch.
    pub epoch: SwitchEpoch,
    /// A lock stays where it was used last. Only false to see what that is worth.
    pub keeps: bool,
}

impl LockNodeConfig {
    /// The paper's settings, over a transport that loses nothing.
    pub const fn new(id: NodeId, nodes: usize) -> Self {
        Self {
            id,
            nodes,
            in_switch: true,
            preference: 0,
            retransmission: Retransmission::Never,
            epoch: SwitchEpoch(0),
            keeps: true,
        }
    }
}

/// Names a thread of this node that waits. What the number means is the driver's business.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u32);

/// A packet about a lock, with the region's bytes if it has a payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LockMessage {
    /// The packet.
    pub packet: LockPacket,
    /// What the payload says. The bytes stay as they are until the packet cannot count any more.
    pub data: Option<DataRef>,
}

/// What the machine asks its driver to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockEffect {
    /// Deliver this to `packet.to`, after everything that this node sent there before.
    Send(LockMessage),
    /// This thread is in.
    Entered(Ticket),
    /// Somebody has the lock, and this thread did not want to wait.
    Busy(Ticket),
    /// It cannot be had.
    Failed(Ticket, Refusal),
    /// The lock and its region are no more; to the thread that asked for that.
    Freed(Ticket),
}

wire::listed! {
    /// Why a packet was dropped.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum LockDrop {
        /// Of another incarnation of the switch.
        Epoch,
        /// Not for this node, or not what anybody would send.
        Nonsense,
        /// Of a term that this node has left, or of a matter that is closed.
        Late,
        /// A home that does not have the data that a request needs, or not yet.
        NotCurrent,
    }
}

/// What was counted since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockCounters {
    /// Threads that asked this machine, and did not just enter.
    pub asked: u64,
    /// Requests sent to the directory, repeated ones too.
    pub requests: u64,
    /// Times that a lock went on from here.
    pub moves: u64,
    /// Of those, times that the directory said no.
    pub denied: u64,
    /// Copies that ended for a writer elsewhere.
    pub ended: u64,
    /// Copies given up for lack of capacity.
    pub evicted: u64,
    /// Packets sent again.
    pub repeated: u64,
    /// Locks of this home whose only current data died.
    pub lost: u64,
    drops: [u64; LockDrop::ALL.len()],
}

impl LockCounters {
    /// Packets dropped for this reason.
    pub const fn dropped(&self, cause: LockDrop) -> u64 {
        self.drops[cause as usize]
    }

    fn drop(&mut self, cause: LockDrop) {
        self.drops[cause as usize] += 1;
    }
}

/// The machines of one node for its locks.
#[derive(Clone)]
pub struct LockNode<R: Rules = AllRules> {
    rules: R,
    config: LockNodeConfig,
    counters: LockCounters,
    /// By address; one for every lock that this node has touched in this incarnation of the switch: what it has left, it must know.
    locks: Map<GlobalAddr, Lock>,
    /// Locks for which there was no capacity, in the order in which they want it.
    roomless: VecDeque<GlobalAddr>,
    /// Locks with something to repeat, and when.
    due: Set<(Nanos, GlobalAddr)>,
    /// Locks in this node's memory.
    homes: Map<GlobalAddr, HomeLock>,
    directory: Directory<R>,
    /// Where the terms of new locks of this home begin: behind those of all that are no more. Nodes that had something of an
    /// old one at the same place take nothing of a term that they have left, nor does anybody take what is late.
    ended: Term,
    /// How often the switch was asked to keep an entry, in this epoch.
    installs: u32,
    /// Homes that have not answered that all reports are in.
    last_reports: Map<NodeId, recovery::LastReport>,
    /// Of these, the ones to whom it must not be said yet.
    freeing_at: Copyset,
    /// Until everybody has reported to this home.
    rebuilding: Option<recovery::Rebuilding>,
    /// What this home has answered to reports of this epoch.
    decided: Map<(GlobalAddr, NodeId), recovery::Decision>,
    /// The nodes that are up.
    live: Copyset,
    incarnations: Vec<Incarnation>,
}

/// What every handler gets.
struct Context<'a, S, R> {
    rules: R,
    now: Nanos,
    config: &'a LockNodeConfig,
    counters: &'a mut LockCounters,
    store: &'a mut S,
    out: &'a mut Vec<LockEffect>,
    /// A copy that has to go, so that this lock has capacity.
    victim: Option<GlobalAddr>,
    /// A copy has gone.
    freed_room: bool,
}

impl<S, R> Context<'_, S, R> {
    fn send(&mut self, packet: LockPacket, data: Option<DataRef>) {
        let payload = if data.is_some() { wire::region_bytes(packet.len) } else { 0 };
        let packet = LockPacket { payload, epoch: self.config.epoch, ..packet };
        self.out.push(LockEffect::Send(LockMessage { packet, data }));
    }

    /// What the lock that has handled its input leaves to be done. Its turn is noted here, where the lock is at hand.
    fn after(&self, it: &mut Lock) -> After {
        // Where nothing is sent again nothing is ever due.
        let due = if self.config.retransmission == Retransmission::Never { Nanos::MAX } else { it.due() };
        let was = core::mem::replace(&mut it.scheduled, due);
        After { victim: self.victim, wants_capacity: it.wants_capacity, was_due: was, due }
    }

    const fn me(&self) -> LockEnd {
        LockEnd::Agent(self.config.id)
    }
}

impl LockNode {
    /// A node without locks.
    pub fn new(config: LockNodeConfig) -> Self {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> LockNode<R> {
    /// A node without locks, for which some rules may not hold: for checkers.
    ///
    /// # Panics
    /// If the rack has no nodes, or more than a set of nodes can name, or not this one.
    pub fn with_rules(rules: R, config: LockNodeConfig) -> Self {
        assert!(
            (1..=wire::Copyset::NODES).contains(&config.nodes),
            "a rack has 1 to 64 nodes, not {}",
            config.nodes
        );
        assert!(config.id.index() < config.nodes, "{} of {} nodes", config.id, config.nodes);
        let directory = Directory::with_rules(
            rules,
            &switch::locks::DirectoryConfig {
                at: LockEnd::Home(config.id),
                nodes: config.nodes,
                entries: 16,
                epoch: config.epoch,
            },
        );
        Self {
            rules,
            config,
            counters: LockCounters::default(),
            locks: Map::new(),
            roomless: VecDeque::new(),
            due: Set::new(),
            homes: Map::new(),
            ended: Term::NONE,
            installs: 0,
            directory: directory.expect("a small directory fits any chip"),
            last_reports: Map::new(),
            freeing_at: Copyset::EMPTY,
            rebuilding: None,
            decided: Map::new(),
            live: Copyset::from_bits(u64::MAX >> (wire::Copyset::NODES - config.nodes)),
            incarnations: alloc::vec![Incarnation(0); config.nodes],
        }
    }

    /// A packet for this node's agent or home has arrived.
    pub fn on_packet<S: LockStore>(
        &mut self,
        at: Moment,
        message: &LockMessage,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let packet = &message.packet;
        if self.rules.holds(Rule::LockEpochsAreFenced) && packet.epoch != self.config.epoch {
            return self.counters.drop(LockDrop::Epoch);
        }
        if !self.is_sensible(message) {
            return self.counters.drop(LockDrop::Nonsense);
        }
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        match packet.to {
            LockEnd::Switch => unreachable!("only what is for this node is sensible"),
            LockEnd::Home(_) => self.on_home_packet(at, message, store, out),
            LockEnd::Agent(_) if packet.kind == LockKind::LastReport => self.on_last_reported(packet),
            LockEnd::Agent(_) => {
                let lock =
                    self.locks.entry(packet.lock).or_insert_with(|| Lock::new(packet.lock, packet.len));
                if !lock.takes_length(&mut cx, packet) {
                    return;
                }
                let learned = lock.learn(&mut cx, packet);
                match packet.kind {
                    LockKind::Forward => lock.on_forward(&mut cx, packet),
                    LockKind::Granted => lock.on_granted(&mut cx, message),
                    LockKind::Lent => lock.on_lent(&mut cx, message),
                    LockKind::Hand => lock.on_hand(&mut cx, message),
                    LockKind::Data => lock.on_data(&mut cx, message),
                    LockKind::Invalidate => lock.on_invalidate(&mut cx, packet),
                    LockKind::Invalidated => lock.on_invalidated(&mut cx, packet),
                    LockKind::Poll => lock.on_poll(&mut cx, packet),
                    LockKind::Denied => lock.on_denied(&mut cx, packet),
                    LockKind::Approved => lock.on_approved(&mut cx, packet),
                    LockKind::Received => lock.on_received(&mut cx, packet),
                    LockKind::Busy => lock.on_busy(&mut cx),
                    LockKind::Refused => lock.on_refused(&mut cx, packet),
                    LockKind::Freed => lock.on_freed(&mut cx, packet),
                    LockKind::Reported => lock.on_reported(&mut cx, packet),
                    _ => cx.counters.drop(LockDrop::Nonsense),
                }
                lock.follow_verdict(&mut cx);
                if learned || lock.next_len.is_some() {
                    lock.advance(&mut cx);
                }
                let after = cx.after(lock);
                self.after(at, packet.lock, after, store, out);
            }
        }
    }

    /// A packet for this node that the rack could send.
    fn is_sensible(&self, message: &LockMessage) -> bool {
        let LockPacket { kind, to, from, lock, node, next, len, payload, .. } = message.packet;
        let nodes = self.config.nodes;
        let everyone = u64::MAX >> (64 - nodes);
        let sets = message.packet.nodes.union(message.packet.waiting).union(message.packet.writers);
        to.node() == Some(self.config.id)
            && (payload == 0 || kind.may_carry_data() && wire::locks::is_whole(payload, len))
            && (payload != 0) == message.data.is_some()
            && from.node().is_none_or(|from| from.index() < nodes)
            && node.index() < nodes
            && lock.home().index() < nodes
            && next.is_none_or(|next| next.index() < nodes)
            && sets.union(message.packet.queue.nodes()).bits() & !everyone == 0
            && (!matches!(to, LockEnd::Home(_)) || lock.home() == self.config.id)
    }

    /// The next moment at which [`LockNode::on_deadline`] has something to do.
    pub fn next_deadline(&self) -> Nanos {
        let locks = self.due.first().map_or(Nanos::MAX, |(due, _)| *due);
        if self.last_reports.is_empty() {
            return locks;
        }
        self.last_reports.values().fold(locks, |next, last| next.min(last.again.at))
    }

    /// Asserts what must always hold between calls.
    ///
    /// # Panics
    /// If it does not, with the state that shows it.
    pub fn invariants(&self) {
        self.locks.values().for_each(Lock::invariants);
    }

    /// True if nothing will happen without input: no thread waits, nothing is asked or on its way.
    pub fn is_quiet(&self) -> bool {
        !self.is_recovering() && self.locks.values().all(Lock::is_quiet)
    }

    /// How this node has a lock: to write, to read, or not at all.
    pub fn held(&self, lock: GlobalAddr) -> Option<wire::Mode> {
        let it = self.locks.get(&lock)?;
        match &it.holding {
            Some(holding) => holding.is_complete().then_some(wire::Mode::Write),
            None => it.copy.map(|_| wire::Mode::Read),
        }
    }

    /// How it is set up.
    pub const fn config(&self) -> &LockNodeConfig {
        &self.config
    }

    /// What was counted since the start.
    pub const fn counters(&self) -> &LockCounters {
        &self.counters
    }
}

fn context<'a, S, R>(
    rules: R,
    config: &'a LockNodeConfig,
    counters: &'a mut LockCounters,
    at: Moment,
    store: &'a mut S,
    out: &'a mut Vec<LockEffect>,
) -> Context<'a, S, R> {
    Context { rules, now: at.now, config, counters, store, out, victim: None, freed_room: false }
}

sorted::key!(Ticket: u32 = |it| it.0);
