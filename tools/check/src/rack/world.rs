//! The seam between the harness and what runs on it.
//!
//! A *world* is the machines of a rack, their application threads, and what must hold of them. The harness brings chance,
//! time, the network, the faults and the control plane: the [`Bench`]. A world is written for any kind of packet on the
//! network that its own packets can be put into, so that worlds can be parts of a larger one.
//!
//! What must always hold: a world draws all its chance from the bench, and sends all its packets over it.

use node::{Moment, Retransmission, View};
use wire::{Copyset, Nanos, NodeId, Rules, SwitchEpoch};

use super::events::Events;
use super::network::Network;
use super::{Conditions, Control, Counts, Faults, Knobs, Known, Place, Plan, Random, Restarts};

/// When machines send again what was not answered.
///
/// As on live racks, nothing waits for longer than ten times the shortest wait. While somebody has an entry's lock and waits without
/// a bound, all others are refused. A run that comes to rest within its steps shows that nobody waits for longer.
pub const REPEATED: Retransmission =
    Retransmission::AfterRoundTrips { floor: Nanos::from_micros(60), most: Nanos::from_micros(600) };

/// What passes in a step, where nobody says otherwise.
pub const STEP: Nanos = Nanos(1000);

/// What the harness brings, where packets are of kind `M`.
#[derive(Clone, Debug)]
pub struct Bench<M> {
    /// What the run is like.
    pub plan: Conditions,
    /// Where every choice comes from.
    pub random: Random,
    /// Virtual time.
    pub now: Nanos,
    /// What stops, and who knows.
    pub control: Control,
    /// What went wrong so far.
    pub counts: Counts,
    /// No more faults, and no new work.
    pub calm: bool,
    /// Nothing stops any more, so that the work gets on.
    pub(super) stops_end: bool,
    pub(super) network: Network<M>,
    events: Events,
    /// What the last step changed.
    pub(super) touched: Touched,
}

/// The places that a step changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touched {
    /// Nodes, with their stores.
    pub nodes: Copyset,
    /// The switch.
    pub switch: bool,
}

impl Touched {
    pub(crate) const NOTHING: Self = Self { nodes: Copyset::EMPTY, switch: false };

    /// The step changes this place, too.
    pub(crate) fn touch(&mut self, place: Place) {
        match place {
            None => self.switch = true,
            Some(node) => self.nodes = self.nodes.with(node),
        }
    }

    /// True if the step changed nothing.
    pub fn is_nothing(&self) -> bool {
        self.nodes.is_empty() && !self.switch
    }

    /// True if more than one place changed.
    pub fn is_several(&self) -> bool {
        self.nodes.len() + usize::from(self.switch) > 1
    }
}

impl<M: Copy> Bench<M> {
    pub(super) fn new(plan: Conditions, seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            now: Nanos(1),
            control: Control::new(plan.nodes, plan.copies),
            counts: Counts::default(),
            calm: false,
            stops_end: false,
            network: Network::default(),
            events: Events::default(),
            touched: Touched::NOTHING,
            plan,
        }
    }

    /// What a machine is told when it is called.
    pub fn moment(&mut self) -> Moment {
        Moment { now: self.now, random: self.random.bits() as u32 }
    }

    /// A machine sends a packet.
    pub fn send(&mut self, from: Place, to: Place, message: impl Into<M>) {
        self.network.send(from, to, message.into());
    }

    /// What a step changes must be told, or it is not looked at.
    pub fn touch(&mut self, place: Place) {
        self.touched.touch(place);
    }

    /// What the step changed.
    pub fn touched(&self) -> Touched {
        self.touched
    }

    pub(super) fn touch_nothing(&mut self) {
        self.touched = Touched::NOTHING;
    }

    /// Something happens: to a block or a lock, or to the rack.
    pub fn note(&self, about: Option<u64>, what: impl FnOnce() -> String) {
        let watched = self.events.note(about);
        if self.plan.trace || watched {
            let line = format!("{:>9} {}", self.now.0, what());
            if self.plan.trace {
                eprintln!("{line}");
            }
            if watched {
                self.events.keep(line);
            }
        }
    }

    /// From now on, the last events are kept of a block or lock, and of the rack.
    pub(super) fn watch(&mut self, about: Option<u64>) {
        self.events.watch(about);
    }

    pub(super) fn end_faults(&mut self) {
        self.calm = true;
        self.network.heal();
        self.events.end_faults();
    }

    pub(super) fn end_stops(&mut self) {
        self.note(None, || "=== nothing stops any more".to_owned());
        self.stops_end = true;
    }

    /// What is down comes back all the same, or it might be the only home.
    pub(super) fn starts_what_is_down(&self) -> bool {
        self.stops_end && !self.calm
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.events.kept()
    }

    pub(super) fn last_about(&self) -> Option<u64> {
        self.events.last_about()
    }

    /// No fault happens any more.
    fn is_spent(&self) -> bool {
        self.calm || self.counts.total() >= self.plan.most_faults
    }

    pub(super) fn faults(&self) -> Faults {
        if self.is_spent() { Faults::default() } else { self.plan.faults }
    }

    pub(super) fn restarts(&self) -> Restarts {
        if self.is_spent() || self.stops_end { Restarts::default() } else { self.plan.restarts }
    }

    /// The epoch that a node is in.
    pub fn epoch_of(&self, node: NodeId) -> SwitchEpoch {
        self.control.known(node).epoch
    }

    /// Where a machine is that packets name. `None`: a home that nobody serves any more.
    pub fn place_of(&self, end: wire::Endpoint) -> Option<Place> {
        match end.node() {
            Some(memory) if memory.index() >= self.plan.nodes => {
                self.view().hosts(memory.index() - self.plan.nodes).next().map(Some)
            }
            place => Some(place),
        }
    }

    /// The rack as it was announced last.
    pub fn view(&self) -> &View {
        self.control.view()
    }
}

/// What was done in runs, and can be added up.
pub trait Sum: Clone + Default {
    /// Adds another run's.
    fn add(&mut self, other: &Self);
}

/// What runs on a bench, where packets are of kind `M`.
pub trait World<M>: Sized {
    /// What runs of it are like.
    type Plan: Knobs;
    /// Its packets, with what they carry.
    type Message: Copy + Into<M>;
    /// What was done in a run, faults aside.
    type Seen: Sum;

    /// Which rules of the protocols hold, or not.
    type Rules: Rules;

    /// Everything at rest.
    fn new(rules: Self::Rules, plan: &Plan<Self::Plan>) -> Self;

    /// A packet has arrived at a place that is up.
    ///
    /// # Errors
    /// What does not hold.
    fn deliver(&mut self, bench: &mut Bench<M>, to: Place, message: &Self::Message) -> Result<(), String>;

    /// Packets between two passes through the switch.
    fn second_passes(&self) -> usize;

    /// One of them is passed.
    fn second_pass(&mut self, bench: &mut Bench<M>);

    /// An application thread takes its next step; false if none can.
    ///
    /// # Errors
    /// What does not hold.
    fn act(&mut self, bench: &mut Bench<M>) -> Result<bool, String>;

    /// When a node wants to be called.
    fn next_deadline(&self, node: NodeId) -> Nanos;

    /// A node is called because that has passed; or early, which is harmless.
    ///
    /// # Errors
    /// What does not hold.
    fn on_deadline(&mut self, bench: &mut Bench<M>, node: NodeId) -> Result<(), String>;

    /// The switch has lost all that it knew.
    fn on_switch_stopped(&mut self, bench: &mut Bench<M>);

    /// The memories with copies that a node has whole, and in which epoch it says so.
    fn whole_memories(&self, _node: NodeId) -> (SwitchEpoch, Copyset) {
        (SwitchEpoch(0), Copyset::EMPTY)
    }

    /// A node has died, with its threads and all that it had.
    fn on_node_stopped(&mut self, bench: &mut Bench<M>, node: NodeId);

    /// A node comes back, with empty memory. It does nothing before it hears of an epoch.
    fn on_node_started(&mut self, bench: &mut Bench<M>, node: NodeId);

    /// The shadow of the switch's table, on this node, has lost it.
    fn on_shadow_restarted(&mut self, _bench: &mut Bench<M>, _shadow: NodeId) {}

    /// A new epoch is about to begin; the bench's view is still the one before.
    fn on_epoch_ends(&mut self, _bench: &mut Bench<M>) {}

    /// A new epoch begins, and the switch is in it.
    fn on_epoch_begins(&mut self, bench: &mut Bench<M>);

    /// A node hears of the epoch; what it knew `before`.
    ///
    /// # Errors
    /// What does not hold.
    fn on_new_epoch(&mut self, bench: &mut Bench<M>, node: NodeId, before: &Known) -> Result<(), String>;

    /// True if nothing is to be done.
    fn is_quiet(&self, bench: &Bench<M>) -> bool;

    /// Checks what the last step can have broken.
    ///
    /// # Errors
    /// What does not hold.
    fn check_after(&mut self, bench: &Bench<M>, step: usize) -> Result<(), String>;

    /// Checks everything that must hold when nothing is in flight.
    ///
    /// # Errors
    /// What does not hold.
    fn check_at_rest(&mut self, bench: &Bench<M>) -> Result<(), String>;

    /// Operations of application threads that took place.
    fn operations(&self) -> u64;

    /// What was done so far.
    fn seen(&self, bench: &Bench<M>) -> Self::Seen;

    /// Who waits for whom where a run is stuck, in a page; and the block or lock that more is to be told of.
    fn describe(&self, bench: &Bench<M>) -> (String, Option<u64>);
}
