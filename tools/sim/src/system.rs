//! The seam between a simulated rack and what runs on it.
//!
//! The rack has the hardware: processors, NICs, links, a switch, and the order of all that happens in virtual
//! time. A [`System`] has the software: the state machines of a memory system, for all nodes and the switch. FlowCC
//! is one (`coherence`), each baseline of the lab is another.
//!
//! What must always hold: a system does nothing but answer calls. It has no clock, no order of its own, and no
//! randomness but [`Call::random`], so that one seed gives one run.

use core::any::Any;
use core::fmt::Debug;

use node::{Access, Window};
pub use random::Random;
use wire::{Discipline, GlobalAddr, Mode, Nanos, NodeId, Refusal};

/// An application thread of the rack. Thread `t` runs on node `t / threads of a node`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadId(pub u16);

/// Where a message comes from or goes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// The program of the switch. (Everything between two nodes passes through the switch, too, but only as a
    /// packet to be routed.)
    Switch,
    /// A node, through its NIC.
    Node(NodeId),
}

/// What executes a message's handler, one message at a time, in order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Processor {
    /// The switch's pipeline: it takes packets at line rate and has no queue.
    Switch,
    /// The core of an application thread. A message is handled when the thread polls, that is at once while it
    /// waits, and between two of its operations otherwise.
    Thread(ThreadId),
    /// A background thread of a node, by number.
    Agent(NodeId, u8),
    /// The NIC itself: one-sided operations, which cost no processor time.
    Nic(NodeId),
}

/// How a message travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// From where.
    pub from: Place,
    /// To where.
    pub to: Place,
    /// Who posts it, for the time that this takes.
    pub sender: Processor,
    /// Who handles it.
    pub receiver: Processor,
    /// Bytes above Ethernet: headers of ours and payload.
    pub bytes: u32,
    /// How it is posted.
    pub service: Service,
}

/// How a message is posted and received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// A raw packet: small, inlined into the doorbell write, polled for by the receiver.
    Datagram,
    /// A reliable connection's write with its notification: fetched from memory by the sending NIC, written to
    /// memory by the receiving one.
    Write,
}

/// What a call may do besides changing the system's own state.
#[derive(Debug)]
pub struct Call<'a, M> {
    /// The time.
    pub now: Nanos,
    /// What the call wants done, in order.
    pub actions: &'a mut Vec<Action<M>>,
    /// Processor time that the call takes on top of what [`System::cost`] said.
    pub charged: Nanos,
    /// The run's generator.
    pub random: &'a mut Random,
}

impl<M> Call<'_, M> {
    /// Sends a message.
    pub fn send(&mut self, message: M) {
        self.actions.push(Action::Send(message));
    }

    /// Sends a message through the switch's pipeline once more. Only the switch can.
    pub fn resubmit(&mut self, message: M) {
        self.actions.push(Action::Resubmit(message));
    }

    /// Lets a waiting thread try its operation again.
    pub fn wake(&mut self, thread: ThreadId) {
        self.wake_after(thread, Nanos::ZERO);
    }

    /// The same, of a thread that looks only so much later.
    pub fn wake_after(&mut self, thread: ThreadId, later: Nanos) {
        self.actions.push(Action::Wake(thread, later));
    }

    /// Takes processor time.
    pub fn charge(&mut self, time: Nanos) {
        self.charged += time;
    }

    /// Calls a part of the system as if it were all of it.
    pub fn inside<P, T>(&mut self, wrap: impl Fn(P) -> M, input: impl FnOnce(&mut Call<'_, P>) -> T) -> T {
        let mut actions = Vec::new();
        let mut part =
            Call { now: self.now, actions: &mut actions, charged: Nanos::ZERO, random: &mut *self.random };
        let result = input(&mut part);
        self.charged += part.charged;
        self.actions.extend(actions.into_iter().map(|action| match action {
            Action::Send(message) => Action::Send(wrap(message)),
            Action::Resubmit(message) => Action::Resubmit(wrap(message)),
            Action::Wake(thread, later) => Action::Wake(thread, later),
        }));
        result
    }
}

/// What a call wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action<M> {
    /// Send this.
    Send(M),
    /// Send this through the switch's pipeline once more (only from the switch).
    Resubmit(M),
    /// Let this thread try its operation again, so much later.
    Wake(ThreadId, Nanos),
}

/// What an application thread wants.
pub enum Operation<'a> {
    /// Look at, or with [`Access::Modified`] change, `len` bytes inside one block, atomically. The closure runs
    /// once, at the moment at which the operation takes effect. A system that keeps no bytes shows it zeroes.
    Touch {
        /// The first byte.
        addr: GlobalAddr,
        /// How many bytes.
        len: usize,
        /// Whether the closure changes them.
        access: Access,
        /// What to do with them.
        with: &'a mut dyn FnMut(&Window<'_>),
    },
    /// Allocate.
    Alloc {
        /// Bytes.
        len: u64,
        /// Whose memory.
        home: NodeId,
        /// What for.
        discipline: Discipline,
    },
    /// Free the allocation that starts here.
    Free {
        /// Its first byte.
        addr: GlobalAddr,
    },
    /// Take the application lock of a block.
    Lock {
        /// The block.
        addr: GlobalAddr,
        /// For writing.
        write: bool,
        /// Give up at the first refusal.
        once: bool,
    },
    /// Release a lock.
    Unlock {
        /// What [`Outcome::Locked`] said.
        token: u64,
    },
    /// Something about a lock that carries its data.
    Region(RegionOperation<'a>),
    /// Something that only this system understands: one that is no memory is asked like that.
    Own(&'a mut dyn Any),
}

/// What an application thread wants of a lock that carries its data: a region of bytes.
pub enum RegionOperation<'a> {
    /// Get into it.
    Enter {
        /// Its first byte.
        addr: GlobalAddr,
        /// How many. All threads of a rack name one length.
        len: u32,
        /// To read together with others, or to write alone.
        mode: Mode,
        /// How much the thread wants it.
        want: Want,
    },
    /// Look at the bytes, or change them: the thread is inside. The closure runs once.
    Show {
        /// What [`Outcome::Locked`] said.
        token: u64,
        /// The first byte, from the region's.
        start: usize,
        /// How many.
        len: usize,
        /// What to do with them.
        with: &'a mut dyn FnMut(&Window<'_>),
    },
    /// Leave it.
    Leave {
        /// What [`Outcome::Locked`] said.
        token: u64,
    },
    /// End it, for good: the thread is inside to write, and never leaves.
    End {
        /// What [`Outcome::Locked`] said.
        token: u64,
        /// The thread has reclaimed it, and it is lost again.
        lost: bool,
    },
}

/// How much a thread wants to get into a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// It waits as long as it takes.
    Waits,
    /// It waits for nobody who has it: [`Refusal::Locked`].
    Tries,
    /// It was told that the lock is lost, and wants it all the same. [`Refusal::Outdated`] if it is not lost any more.
    Reclaims,
}

/// How far an operation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It has taken effect. The thread goes on after this time of its own.
    Done(Outcome, Nanos),
    /// Not yet. The thread waits until it is woken ([`Call::wake`]), and then tries the same operation again.
    Waits,
    /// It cannot be done.
    Failed(Refusal),
}

/// What an operation returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing more.
    Done,
    /// A new allocation, and whether it reads as zeroes already.
    Allocated(GlobalAddr, bool),
    /// A lock is held; the token releases it.
    Locked(u64),
}

/// A memory system made of state machines: everything that runs on a rack's nodes and in its switch, but for the
/// applications.
pub trait System {
    /// What travels.
    type Message: Copy + Debug;

    /// How this message travels.
    fn envelope(&self, message: &Self::Message) -> Envelope;

    /// The processor time that handling it takes, known before it is handled.
    fn cost(&self, message: &Self::Message) -> Nanos;

    /// A message has come through to its processor.
    fn on_message(&mut self, call: &mut Call<'_, Self::Message>, message: &Self::Message);

    /// A thread tries an operation, for the first time or after it was woken.
    fn attempt(
        &mut self,
        call: &mut Call<'_, Self::Message>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress;

    /// The next moment at which this node wants [`System::on_deadline`]; [`Nanos::MAX`] if never.
    fn next_deadline(&self, node: NodeId) -> Nanos;

    /// Does what is due on this node.
    fn on_deadline(&mut self, call: &mut Call<'_, Self::Message>, node: NodeId);

    /// Something was stopped or came back. What is stopped loses its state; the rack loses its messages.
    fn on_fault(&mut self, _call: &mut Call<'_, Self::Message>, _fault: Fault) {}

    /// Asserts what must hold between any two events. Small runs call it after every one.
    ///
    /// # Panics
    /// If it does not hold: a bug in the system.
    fn invariants(&mut self) {}
}

/// A machine stops, or begins a new incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A node stops: its threads, its agents, its memory.
    NodeStops(NodeId),
    /// The node is back, with nothing of what it knew.
    NodeRestarts(NodeId),
    /// The switch stops: nothing gets from one place to another.
    SwitchStops,
    /// The switch is back, empty.
    SwitchRestarts,
    /// The node that keeps the shadow of the switch's directory loses it, and goes on otherwise.
    ShadowStops,
    /// The shadow is kept again, from nothing.
    ShadowRestarts,
}
