//! Engines that pass messages in bulk, step by step: what PowerGraph and Grappa's graphs run on.
//!
//! In a *phase* every thread works, fills buffers with items for others, and then meets them all: nobody leaves before
//! every item has been taken out of its buffer by the thread that it is for.
//!
//! ```text
//!   thread ── buffer ──> carrier ══ network ══> carrier ──> thread: takes the items out
//!            hand-over    of its node            of the other     hand-over
//! ```
//!
//! Carriers are background threads, or cores that are partners for another node ([`Carriers`]). Buffers for a thread of
//! the same node have no carrier, and what a thread has for itself needs no message. Threads meet by messages of their
//! nodes to node 0, which knows when all buffers are empty: barriers of such engines count what was sent and received.
//!
//! Not there: any answer to loss. TCP and MPI are reliable.
//!
//! What must always hold: every item is taken out once, in the phase in which it was sent.

mod port;

use sim::system::{
    Call, Envelope, Operation, Outcome, Place, Processor, Progress, Service, System, ThreadId,
};
use wire::{Nanos, NodeId, Refusal};

pub use port::Port;

/// Something for a vertex.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Item {
    /// The vertex.
    pub vertex: u32,
    /// A number for it; none: it becomes active.
    pub value: Option<f64>,
}

/// Who passes on what threads have for other nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carriers {
    /// Two background threads of each node, one for each direction. The threads of a node share its memory: who leaves a
    /// phase first has the items of all of them.
    Threads,
    /// The core of each node that is its partner for the other one.
    Partners,
}

/// Processor times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// A thread puts an item into a buffer.
    pub put: Nanos,
    /// A thread takes an item out of a buffer, and does what it says.
    pub take: Nanos,
    /// A carrier has an item in its hands before it leaves its node.
    pub carry: Nanos,
    /// A carrier sends, or receives, a buffer or a message without items.
    pub buffer: Nanos,
    /// And each KiB of it.
    pub kibibyte: Nanos,
}

/// How an engine passes messages.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeConfig {
    /// Nodes, 1 to 64.
    pub nodes: usize,
    /// Threads on each.
    pub threads: usize,
    /// Who passes on what threads have for other nodes.
    pub carriers: Carriers,
    /// Bytes of a buffer: it is sent when it is full, or when its thread has no more.
    pub buffer: u32,
    /// Bytes of an item on the wire.
    pub item: u32,
    /// What takes how much processor time.
    pub costs: Costs,
}

impl ExchangeConfig {
    /// Items of a full buffer.
    fn capacity(&self) -> usize {
        (self.buffer / self.item).max(1) as usize
    }
}

/// What travels. Items stay here, under the number of their buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// A buffer.
    Buffer {
        /// Whose.
        from: ThreadId,
        /// For whom.
        to: ThreadId,
        /// Where it is.
        leg: Leg,
        /// Which.
        number: u32,
        /// How many items.
        items: u32,
    },
    /// All threads of a node are there.
    Arrived(NodeId),
    /// A node has taken the last item out.
    Settled(NodeId),
    /// A node's threads may leave.
    Leave(NodeId),
}

/// The way of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leg {
    /// To the carrier of its node.
    Out,
    /// To the carrier of the other node.
    Across,
    /// To the thread.
    In,
}

/// What a thread asks for.
#[derive(Debug)]
pub(super) enum Request {
    /// These items are for that thread.
    Send(ThreadId, Vec<Item>),
    /// This thread has no more, and adds a number.
    Meet(u64),
    /// All have met: what they have added up to, and what there is for this thread.
    Met(u64, Vec<Item>),
}

/// How far a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Working,
    Waiting,
    Leaving,
}

/// The machines of a rack whose threads exchange items.
pub struct Exchange {
    config: ExchangeConfig,
    phases: Vec<Phase>,
    /// Buffers on their way, by number; the free ones have no items.
    buffers: Vec<Vec<Item>>,
    free: Vec<u32>,
    /// What each thread has taken out in this phase, and what it took out in the last one.
    taken: Vec<Vec<Item>>,
    ready: Vec<Vec<Item>>,
    /// Threads of each node that wait.
    waiting: Vec<usize>,
    /// Nodes that have arrived.
    arrived: usize,
    /// What was added up in this phase, and in the last one.
    brought: u64,
    sum: u64,
}

impl Exchange {
    /// Where nothing was sent yet.
    ///
    /// # Panics
    /// If there are no nodes, more than 64, or no threads.
    pub fn new(config: ExchangeConfig) -> Self {
        let ExchangeConfig { nodes, threads, .. } = config;
        assert!((1..=wire::Copyset::NODES).contains(&nodes), "a rack has 1 to 64 nodes, not {nodes}");
        assert!(threads > 0, "a node has threads");
        Self {
            phases: vec![Phase::Working; nodes * threads],
            buffers: Vec::new(),
            free: Vec::new(),
            taken: vec![Vec::new(); nodes * threads],
            ready: vec![Vec::new(); nodes * threads],
            waiting: vec![0; nodes],
            arrived: 0,
            brought: 0,
            sum: 0,
            config,
        }
    }

    /// What it was made with.
    pub const fn config(&self) -> &ExchangeConfig {
        &self.config
    }

    fn node_of(&self, thread: ThreadId) -> NodeId {
        NodeId(u16::try_from(usize::from(thread.0) / self.config.threads).expect("at most 64 nodes"))
    }

    fn threads_of(&self, node: NodeId) -> impl Iterator<Item = ThreadId> + use<> {
        let (first, count) = (node.index() * self.config.threads, self.config.threads);
        (first..first + count).map(|thread| ThreadId(u16::try_from(thread).expect("fewer than 2^16 threads")))
    }

    /// Who passes on at `node` what it has for `other`, or from there.
    fn carrier(&self, node: NodeId, other: NodeId, out: bool) -> Processor {
        match self.config.carriers {
            Carriers::Threads => Processor::Agent(node, u8::from(out)),
            Carriers::Partners => {
                let partner = self.threads_of(node).nth(other.index() % self.config.threads);
                Processor::Thread(partner.expect("a node has so many threads"))
            }
        }
    }

    fn bytes(&self, items: u32) -> u32 {
        /// A header, and the checksum and addresses of a transport.
        const BESIDE: u32 = 64;
        BESIDE + items * self.config.item
    }

    fn in_flight(&self) -> usize {
        self.buffers.len() - self.free.len()
    }

    fn wrap(&mut self, items: Vec<Item>) -> u32 {
        if let Some(number) = self.free.pop() {
            self.buffers[number as usize] = items;
            return number;
        }
        self.buffers.push(items);
        u32::try_from(self.buffers.len() - 1).expect("fewer than 2^32 buffers")
    }

    /// If all threads are there and all buffers are empty, they leave.
    fn leave_together(&mut self, call: &mut Call<'_, Message>) {
        if self.arrived < self.config.nodes || self.in_flight() > 0 {
            return;
        }
        (self.sum, self.brought, self.arrived) = (self.brought, 0, 0);
        // Nobody has left yet, so these are all items of this phase and none of the next one.
        core::mem::swap(&mut self.taken, &mut self.ready);
        (0..self.config.nodes).for_each(|node| call.send(Message::Leave(NodeId(node as u16))));
    }
}

impl System for Exchange {
    type Message = Message;

    fn envelope(&self, message: &Message) -> Envelope {
        let between = |from: NodeId, to: NodeId, sender, receiver, bytes, service| Envelope {
            from: Place::Node(from),
            to: Place::Node(to),
            sender,
            receiver,
            bytes,
            service,
        };
        // What has no items is small, and goes between carriers.
        let small = |from, to| {
            let (sender, receiver) = (self.carrier(from, to, true), self.carrier(to, from, false));
            between(from, to, sender, receiver, self.bytes(0), Service::Datagram)
        };
        match *message {
            Message::Buffer { from, to, leg, items, .. } => {
                let (here, there) = (self.node_of(from), self.node_of(to));
                let (out, into) = (self.carrier(here, there, true), self.carrier(there, here, false));
                let (from, to) = (Processor::Thread(from), Processor::Thread(to));
                let bytes = self.bytes(items);
                match leg {
                    Leg::Out => between(here, here, from, out, bytes, Service::Datagram),
                    Leg::Across => between(here, there, out, into, bytes, Service::Write),
                    Leg::In => between(there, there, into, to, bytes, Service::Datagram),
                }
            }
            Message::Arrived(from) | Message::Settled(from) => small(from, NodeId(0)),
            Message::Leave(to) => small(NodeId(0), to),
        }
    }

    fn cost(&self, message: &Message) -> Nanos {
        let Costs { take, carry, buffer, kibibyte, .. } = self.config.costs;
        let passing = |items| buffer + Nanos(kibibyte.0 * u64::from(self.bytes(items)) / 1024);
        match *message {
            Message::Buffer { leg: Leg::Out, items, .. } => passing(items) + times(carry, items),
            Message::Buffer { leg: Leg::Across, items, .. } => passing(items),
            Message::Buffer { leg: Leg::In, items, .. } => times(take, items),
            // Both of its sides.
            Message::Arrived(_) | Message::Settled(_) | Message::Leave(_) => times(buffer, 2),
        }
    }

    fn on_message(&mut self, call: &mut Call<'_, Message>, message: &Message) {
        match *message {
            Message::Buffer { from, to, leg: Leg::Out, number, items } => {
                call.send(Message::Buffer { from, to, leg: Leg::Across, number, items });
            }
            Message::Buffer { from, to, leg: Leg::Across, number, items } => {
                call.send(Message::Buffer { from, to, leg: Leg::In, number, items });
            }
            Message::Buffer { to, leg: Leg::In, number, .. } => {
                let items = core::mem::take(&mut self.buffers[number as usize]);
                self.free.push(number);
                self.taken[usize::from(to.0)].extend(items);
                if self.arrived == self.config.nodes && self.in_flight() == 0 {
                    call.send(Message::Settled(self.node_of(to)));
                }
            }
            Message::Arrived(_) => {
                self.arrived += 1;
                self.leave_together(call);
            }
            Message::Settled(_) => self.leave_together(call),
            Message::Leave(node) => {
                for thread in self.threads_of(node) {
                    self.phases[usize::from(thread.0)] = Phase::Leaving;
                    call.wake(thread);
                }
            }
        }
    }

    fn attempt(
        &mut self,
        call: &mut Call<'_, Message>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        let Operation::Own(request) = operation else { return Progress::Failed(Refusal::WrongDiscipline) };
        let request = request.downcast_mut::<Request>().expect("a port asks");
        match request {
            Request::Send(to, items) => {
                let (to, items) = (*to, core::mem::take(items));
                let count = u32::try_from(items.len()).expect("a buffer is smaller");
                if to == thread {
                    self.taken[usize::from(to.0)].extend(items);
                    return Progress::Done(Outcome::Done, times(self.config.costs.take, count));
                }
                let leg = if self.node_of(to) == self.node_of(thread) { Leg::In } else { Leg::Out };
                let number = self.wrap(items);
                call.send(Message::Buffer { from: thread, to, leg, number, items: count });
                Progress::Done(Outcome::Done, Nanos::ZERO)
            }
            Request::Meet(brought) => {
                let (phase, node) = (self.phases[usize::from(thread.0)], self.node_of(thread));
                match phase {
                    Phase::Working => {
                        self.phases[usize::from(thread.0)] = Phase::Waiting;
                        self.brought += *brought;
                        self.waiting[node.index()] += 1;
                        if self.waiting[node.index()] == self.config.threads {
                            self.waiting[node.index()] = 0;
                            call.send(Message::Arrived(node));
                        }
                        Progress::Waits
                    }
                    Phase::Waiting => Progress::Waits,
                    Phase::Leaving => {
                        self.phases[usize::from(thread.0)] = Phase::Working;
                        let items = match self.config.carriers {
                            Carriers::Partners => core::mem::take(&mut self.ready[usize::from(thread.0)]),
                            Carriers::Threads => {
                                let all = self.threads_of(node);
                                all.flat_map(|it| core::mem::take(&mut self.ready[usize::from(it.0)]))
                                    .collect()
                            }
                        };
                        *request = Request::Met(self.sum, items);
                        Progress::Done(Outcome::Done, Nanos::ZERO)
                    }
                }
            }
            Request::Met(..) => unreachable!("{thread:?} has met the others"),
        }
    }

    fn next_deadline(&self, _node: NodeId) -> Nanos {
        Nanos::MAX
    }

    fn on_deadline(&mut self, _call: &mut Call<'_, Message>, _node: NodeId) {}
}

fn times(each: Nanos, count: u32) -> Nanos {
    Nanos(each.0 * u64::from(count))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use sim::rack::{Ended, Rack, Setup, Until};
    use sim::system::Random;

    use super::*;

    const NODES: usize = 3;
    const THREADS: usize = 2;
    const PHASES: u32 = 20;

    fn config(carriers: Carriers) -> ExchangeConfig {
        let each = Nanos(100);
        let costs = Costs { put: each, take: each, carry: each, buffer: Nanos(1_000), kibibyte: each };
        ExchangeConfig { nodes: NODES, threads: THREADS, carriers, buffer: 80, item: 16, costs }
    }

    /// Threads send random numbers of items to random threads. What was sent and what was received: phase, whom it was for or
    /// who had it, and a number; and what the threads of a phase have added up.
    #[expect(clippy::type_complexity, reason = "once")]
    fn run(carriers: Carriers) -> (Vec<(u32, u16, u32)>, Vec<(u32, u16, u32)>, Vec<(u32, u64)>) {
        let setup = Setup { threads: THREADS, ..Setup::new(NODES) };
        let mut rack = Rack::new(setup, Exchange::new(config(carriers)));
        let all = Rc::new(RefCell::new((Vec::new(), Vec::new(), Vec::new())));
        for thread in 0..(NODES * THREADS) as u16 {
            let all = Rc::clone(&all);
            rack.spawn(ThreadId(thread), move |handle| async move {
                let (mut port, mut random) = (Port::new(handle), Random::new(thread.into()));
                for phase in 0..PHASES {
                    let mut items = Vec::new();
                    for _ in 0..random.below(40) {
                        let (to, number) =
                            (random.below((NODES * THREADS) as u64) as u16, random.bits() as u32);
                        all.borrow_mut().0.push((phase, to, number));
                        let item = Item { vertex: number, value: Some(f64::from(phase)) };
                        items.push((ThreadId(to), item));
                    }
                    let work = Nanos(random.below(20_000));
                    let (sum, received) = port.phase(work, items, u64::from(phase)).await;
                    all.borrow_mut().2.push((phase, sum));
                    for Item { vertex, value } in received {
                        assert_eq!(value, Some(f64::from(phase)), "an item of this phase");
                        all.borrow_mut().1.push((phase, thread, vertex));
                    }
                }
            });
        }
        assert_eq!(rack.run(Until::WorkersDone).ended, Ended::WorkersDone);
        let (mut sent, mut received, sums) = all.take();
        sent.sort_unstable();
        received.sort_unstable();
        (sent, received, sums)
    }

    #[test]
    fn every_item_is_received_once_by_its_thread_and_in_its_phase() {
        let (sent, received, sums) = run(Carriers::Partners);
        assert!(sent.len() > 1_000);
        assert_eq!(sent, received);
        assert!(sums.iter().all(|(phase, sum)| *sum == u64::from(*phase) * (NODES * THREADS) as u64));
    }

    #[test]
    fn where_threads_share_memory_one_of_them_has_what_there_is_for_the_node() {
        let (sent, received, _) = run(Carriers::Threads);
        let of_nodes = |all: Vec<(u32, u16, u32)>| {
            let mut all: Vec<_> = all
                .into_iter()
                .map(|(phase, thread, number)| (phase, thread / THREADS as u16, number))
                .collect();
            all.sort_unstable();
            all
        };
        assert_eq!(of_nodes(sent), of_nodes(received));
    }

    #[test]
    fn what_goes_to_another_node_takes_two_carriers_and_what_stays_takes_none() {
        let exchange = Exchange::new(config(Carriers::Threads));
        let leg = |leg| Message::Buffer { from: ThreadId(0), to: ThreadId(5), leg, number: 0, items: 4 };
        let [out, across, into] = [Leg::Out, Leg::Across, Leg::In].map(|it| exchange.envelope(&leg(it)));
        assert_eq!(out.receiver, Processor::Agent(NodeId(0), 1));
        assert_eq!((across.sender, across.receiver), (out.receiver, Processor::Agent(NodeId(2), 0)));
        assert_eq!((into.sender, into.receiver), (across.receiver, Processor::Thread(ThreadId(5))));
        assert_eq!(across.bytes, 64 + 4 * 16);
        // A buffer, and an eighth of a KiB of it; four items besides on the way out, and alone on the way in.
        assert_eq!([Leg::Out, Leg::Across, Leg::In].map(|it| exchange.cost(&leg(it)).0), [1_412, 1_012, 400]);
    }
}
