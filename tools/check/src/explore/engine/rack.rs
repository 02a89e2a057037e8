//! What a protocol brings along, so that its racks can be explored: machines, packets, threads, and what must hold.

use std::fmt::Debug;
use std::hash::Hash;

use wire::NodeId;

use super::{Call, Finds, Step};
use crate::explore::world::{Item, Left, Outside, World};

/// A protocol's rack: the types of all that is in it. The value is whatever a search keeps of it beside.
pub(in crate::explore) trait Rack: Sized {
    type Scope: Copy;
    /// The state of one node: its machines, its stores.
    type Local: Eq + Hash + Debug;
    /// The state of the switch.
    type Switch: Eq + Hash + Debug;
    /// What is asked of a node's state again and again, and of the switch's.
    type Facts;
    type SwitchFacts;
    type Message: Copy;
    /// What a packet is between two passes through the switch.
    type Again: Copy;
    /// What happens at a node, beside packets.
    type Input: Clone + Eq + Hash;
    /// What comes of it, beside packets.
    type Told: Default;
    /// What a thread is doing; by default nothing, and its next turn may begin.
    type Doing: Copy + Eq + Hash + Debug + Default;
    /// What there is outside of all components beside threads.
    type More: Copy + Eq + Hash + Debug;
    type Timer: Copy + Debug;
    type Machines: Machines<Self> + ?Sized;
    type Packets: Packets<Self>;
    type Coverage: Clone + Default;

    /// Second passes come in the order of the first ones.
    const PASSES_IN_ORDER: bool;

    /// A thread's turn, for a trace.
    fn turn(scope: &Self::Scope, thread: usize, turn: u8) -> String;

    /// Notes what was reached: by this node, or by the switch.
    fn note(
        _reached: &mut Self::Coverage,
        _node: Option<usize>,
        _sends: &[Self::Message],
        _told: &Self::Told,
    ) {
    }
}

/// A packet at a node, or whatever else happens there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::explore) enum Input<P, I> {
    Packet(P),
    Own(I),
}

/// What came of an input.
pub(in crate::explore) struct After<R: Rack, T> {
    pub(in crate::explore) local: T,
    pub(in crate::explore) sends: Vec<R::Message>,
    pub(in crate::explore) again: Vec<R::Again>,
    pub(in crate::explore) told: R::Told,
}

/// The machines, whatever rules they keep: the engine knows only these. What must hold: the same state and input give the
/// same. What is wrong, they say in a panic.
pub(in crate::explore) trait Machines<R: Rack> {
    /// Everything that can come of an input: more than one thing where chance decides.
    fn at_node(
        &mut self,
        node: usize,
        local: &R::Local,
        input: Input<R::Message, R::Input>,
    ) -> Vec<After<R, R::Local>>;

    fn at_switch(&mut self, state: &R::Switch, input: Result<R::Message, R::Again>) -> After<R, R::Switch>;

    fn facts(&mut self, node: usize, local: &R::Local) -> R::Facts;

    fn switch_facts(&mut self, state: &R::Switch) -> R::SwitchFacts;
}

/// Packets in flight, as numbers.
pub(in crate::explore) trait Packets<R: Rack> {
    /// `None`: nothing that is explored depends on it.
    fn message(&mut self, message: &R::Message) -> Option<Item>;

    fn resubmit(&mut self, again: &R::Again) -> Item;

    fn packet(&self, item: Item) -> R::Message;

    fn again(&self, item: Item) -> R::Again;

    /// The node that it goes to; `None`: the switch.
    fn to(&self, item: Item) -> Option<NodeId>;

    /// From which component to which it goes: between the same two, packets may have an order.
    fn way(&self, item: Item) -> (u16, u16);

    /// For a trace.
    fn tell(&self, item: Item) -> String;
}

/// What the engine is told of a scope.
pub(in crate::explore) struct Plan {
    /// Where threads run, and how many turns they have.
    pub(in crate::explore) threads: Vec<(u8, u8)>,
    /// Packets pass each other; otherwise they keep their order between the same two components.
    pub(in crate::explore) reorder: bool,
    /// What may happen.
    pub(in crate::explore) left: Left,
}

/// What is outside of all components of a rack.
pub(in crate::explore) type OutsideOf<R> = Outside<<R as Rack>::Doing, <R as Rack>::More>;

/// What can happen, what makes two states one, and what must hold: of a protocol's engine.
pub(in crate::explore) trait Successors<R: Rack> {
    /// A packet that arrives before anything else happens, so that there is no state in which it is in flight.
    fn first(&self, _world: &World) -> Option<usize> {
        None
    }

    /// Whether this packet can arrive now.
    fn may_arrive(&self, _world: &World, _item: Item) -> bool {
        true
    }

    /// Whether this packet may come twice.
    fn may_come_twice(&self, _item: Item) -> bool {
        true
    }

    /// What a thread can do.
    fn thread(&mut self, world: &World, thread: usize, found: &mut Finds<R>);

    /// What else can happen, when packets and threads have been looked at: time-outs, restarts.
    fn others(&mut self, world: &World, found: &mut Finds<R>);

    /// Takes in what a step at a node tells, beside its packets.
    fn take(&mut self, next: &mut World, call: &Call<R>, step: &Step<R>) -> Result<(), String>;

    /// Whether anybody will take this packet, whatever happens.
    fn counts(&self, _world: &World, _item: Item) -> bool {
        true
    }

    /// Gives what is alike the same numbers.
    fn renumber(&mut self, _world: &mut World) {}

    /// What must hold in every state.
    fn check(&self, world: &World) -> Result<(), String>;

    /// Nothing is in flight: is everything over?
    fn is_over(&self, world: &World) -> bool;

    /// What must hold then.
    fn check_at_rest(&mut self, world: &World) -> Result<(), String>;
}
