//! The rack itself: all state, and what happens when an event comes up.
//!
//! It runs under [`Rack::run`](super::Rack::run), which polls the workers that [`RackState::advance`] names.
//!
//! What must always hold: virtual time never runs back; the system is called only by an event at its moment, or
//! for a thread at its clock, which is never earlier; every event is pushed after what causes it.

use wire::{Nanos, NodeId};

use super::budget::Budgets;
use super::event::{Event, FlightId, Flights, ServerId};
use super::machine::Machine;
use super::report::Counts;
use super::server::Server;
use super::setup::Setup;
use super::trace::{Observer, Trace};
use super::worker::{Phase, Thread};
use crate::fault::Rules;
use crate::hardware::SwitchPorts;
use crate::queue::EventQueue;
use crate::system::{Action, Call, Fault, Place, Processor, Random, System, ThreadId};

/// Everything but the workers' futures.
pub(super) struct RackState<S: System> {
    pub(super) system: S,
    pub(super) setup: Setup,
    /// The time of the event that happens now. Threads may be ahead of it.
    pub(super) now: Nanos,
    pub(super) queue: EventQueue<Event>,
    pub(super) flights: Flights<S::Message>,
    pub(super) servers: Vec<Server>,
    pub(super) threads: Vec<Thread>,
    pub(super) machines: Vec<Machine>,
    pub(super) ports: SwitchPorts,
    pub(super) switch_up: bool,
    pub(super) rules: Rules<S::Message>,
    /// What the system draws from.
    pub(super) random: Random,
    /// What the fault rules draw from: a rule changes no other draw.
    pub(super) fault_random: Random,
    /// How far a thread may run ahead of the queue; zero: not at all.
    pub(super) run_ahead: Nanos,
    pub(super) faults: Vec<Fault>,
    /// Threads stop here.
    pub(super) end: Nanos,
    /// Operations left until the run stops.
    pub(super) operations_left: u64,
    pub(super) counts: Counts,
    /// What the links had done when the counts began.
    pub(super) links_before: Vec<(Nanos, Nanos)>,
    pub(super) observer: Option<Observer<S::Message>>,
    pub(super) budgets: Option<Budgets>,
    /// A buffer for the copies of a message.
    pub(super) copies: Vec<Nanos>,
    /// The buffer of calls.
    actions: Vec<Action<S::Message>>,
}

/// Why the event loop returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// This thread goes on.
    Poll(ThreadId),
    /// The workers of this node are gone.
    Drop(NodeId),
    /// The next event is later than the end of the run, or there is none.
    Nothing,
}

impl<S: System> RackState<S> {
    pub(super) fn new(setup: Setup, system: S) -> Self {
        let (nodes, threads, agents) = (setup.nodes, setup.threads, setup.agents);
        let node = |index: usize| NodeId(u16::try_from(index).expect("at most 64 nodes"));
        let per_node = |count: usize| (0..nodes * count).map(move |index| Server::new(node(index / count)));
        let mut state = Self {
            now: Nanos::ZERO,
            queue: EventQueue::new(),
            flights: Flights::new(),
            servers: per_node(threads).chain(per_node(agents)).chain(per_node(1)).collect(),
            threads: (0..nodes * threads).map(|_| Thread::new()).collect(),
            machines: (0..nodes).map(|_| Machine::new(&setup.testbed)).collect(),
            ports: SwitchPorts::new(&setup.testbed, node(nodes).0),
            switch_up: true,
            rules: Rules::none(),
            random: Random::new(setup.seed),
            fault_random: Random::new(setup.seed ^ 0xfa17),
            run_ahead: setup.run_ahead.min(setup.lookahead()),
            faults: Vec::new(),
            end: Nanos::MAX,
            operations_left: u64::MAX,
            counts: Counts::default(),
            links_before: vec![(Nanos::ZERO, Nanos::ZERO); nodes],
            observer: None,
            budgets: setup.budget.then(|| Budgets::new(nodes * threads)),
            copies: Vec::new(),
            actions: Vec::new(),
            system,
            setup,
        };
        (0..nodes).for_each(|index| state.arm(node(index)));
        state
    }

    /// Lets events happen until a worker has to do something.
    pub(super) fn advance(&mut self) -> Next {
        loop {
            if self.operations_left == 0 {
                return Next::Nothing;
            }
            if self.end != Nanos::MAX && self.queue.peek_time().is_none_or(|at| at > self.end) {
                return Next::Nothing;
            }
            let Some((at, event)) = self.queue.pop() else { return Next::Nothing };
            self.now = at;
            self.counts.events += 1;
            let next = match event {
                Event::AtSwitch(id) => {
                    self.at_switch(id);
                    None
                }
                Event::Arrive(id) => {
                    self.arrive(id);
                    None
                }
                Event::Handled(server, incarnation) => {
                    self.handled(server, incarnation);
                    None
                }
                Event::Resume(thread, incarnation) => {
                    self.resume(thread, incarnation).then_some(Next::Poll(thread))
                }
                Event::Deadline(node) => {
                    self.deadline(node);
                    None
                }
                Event::Fault(number) => self.fault(self.faults[usize::from(number)]),
            };
            if self.setup.check {
                self.system.invariants();
            }
            if let Some(next) = next {
                return next;
            }
        }
    }

    pub(super) fn server_of(&self, processor: Processor) -> Option<ServerId> {
        let Setup { nodes, threads, agents, .. } = self.setup;
        let index = match processor {
            Processor::Switch => return None,
            Processor::Thread(thread) => usize::from(thread.0),
            Processor::Agent(node, agent) => {
                assert!(usize::from(agent) < agents, "agent {agent} of {agents} on {node}");
                nodes * threads + node.index() * agents + usize::from(agent)
            }
            Processor::Nic(node) => nodes * (threads + agents) + node.index(),
        };
        Some(ServerId(u16::try_from(index).expect("fewer than 2^16 processors")))
    }

    pub(super) fn server(&mut self, id: ServerId) -> &mut Server {
        &mut self.servers[usize::from(id.0)]
    }

    /// An event of this node's is pending until it happens: its threads do not run past it.
    pub(super) fn push_for(&mut self, node: NodeId, at: Nanos, event: Event) {
        if self.run_ahead != Nanos::ZERO {
            self.machines[node.index()].expect_event(at);
        }
        self.queue.push(at, event);
    }

    fn happened(&mut self, node: NodeId) {
        if self.run_ahead != Nanos::ZERO {
            self.machines[node.index()].event_happened(self.now);
        }
    }

    /// A message is visible to its processor, which begins with it or lets it wait.
    fn arrive(&mut self, id: FlightId) {
        let envelope = self.flights.get(id).envelope;
        let Place::Node(node) = envelope.to else { unreachable!("the switch is not a processor's place") };
        self.happened(node);
        if !self.machines[node.index()].up {
            return self.lose_flight(id);
        }
        self.counts.to_nodes += u64::from(envelope.from != envelope.to);
        let server = self.server_of(envelope.receiver).expect("a node's processor receives");
        let it = self.server(server);
        if it.current.is_some() {
            it.inbox.push_back(id);
        } else {
            self.begin(server, id);
        }
    }

    fn begin(&mut self, server: ServerId, id: FlightId) {
        let flight = self.flights.get(id);
        let cost = self.system.cost(&flight.message) + self.setup.poll_cost(&flight.envelope);
        let now = self.now;
        let it = self.server(server);
        it.current = Some(id);
        let (node, incarnation, at) = (it.node, it.incarnation, it.spend(now, cost));
        self.push_for(node, at, Event::Handled(server, incarnation));
    }

    /// A processor has spent the time that its message takes: the handler runs, then comes the next one.
    fn handled(&mut self, server: ServerId, incarnation: u16) {
        let node = self.servers[usize::from(server.0)].node;
        self.happened(node);
        let it = self.server(server);
        if it.incarnation != incarnation {
            return;
        }
        let id = it.current.take().expect("a message is current until it was handled");
        it.handled += 1;
        let flight = self.flights.remove(id);
        if let Some(budgets) = &mut self.budgets {
            let work = self.system.cost(&flight.message) + self.setup.poll_cost(&flight.envelope);
            budgets.follow(id, self.now, work);
        }
        self.observe(self.now, &Trace::Handled { message: &flight.message, envelope: &flight.envelope });
        self.call(Some(server), self.now, |system, call| system.on_message(call, &flight.message));
        self.arm(node);
        let it = self.server(server);
        if let Some(next) = it.inbox.pop_front() {
            self.begin(server, next);
        } else if usize::from(server.0) < self.threads.len() {
            self.schedule(ThreadId(server.0));
        }
    }

    /// Calls the system, and does what it wants done. Returns when the caller's processor is free again.
    pub(super) fn call<R>(
        &mut self,
        by: Option<ServerId>,
        now: Nanos,
        input: impl FnOnce(&mut S, &mut Call<'_, S::Message>) -> R,
    ) -> R {
        let mut actions = core::mem::take(&mut self.actions);
        let mut call = Call { now, actions: &mut actions, charged: Nanos::ZERO, random: &mut self.random };
        let result = input(&mut self.system, &mut call);
        let charged = call.charged;
        if let Some(by) = by {
            self.server(by).spend(now, charged);
        }
        if let Some(budgets) = &mut self.budgets {
            budgets.charged(charged);
        }
        let at = now + charged;
        for action in actions.drain(..) {
            match action {
                Action::Send(message) => self.send(by, at, message),
                Action::Resubmit(message) => self.resubmit(at, message),
                Action::Wake(thread, later) => self.wake(by, at + later, thread),
            }
        }
        self.actions = actions;
        result
    }

    /// Sees to it that the node is called when it wants to be.
    pub(super) fn arm(&mut self, node: NodeId) {
        let wanted = self.system.next_deadline(node);
        let machine = &mut self.machines[node.index()];
        if wanted < machine.armed && machine.up {
            let at = wanted.max(self.now);
            machine.armed = at;
            self.push_for(node, at, Event::Deadline(node));
        }
    }

    fn deadline(&mut self, node: NodeId) {
        self.happened(node);
        let now = self.now;
        let machine = &mut self.machines[node.index()];
        if machine.armed != now || !machine.up {
            return;
        }
        machine.armed = Nanos::MAX;
        if self.system.next_deadline(node) <= now {
            self.observe(now, &Trace::Deadline { node });
            self.begin_budget(now);
            self.call(None, now, |system, call| system.on_deadline(call, node));
        }
        // A machine that is due again at once is called again in a nanosecond, so that time moves on.
        let wanted = self.system.next_deadline(node);
        if wanted != Nanos::MAX {
            let at = wanted.max(now + Nanos(1));
            self.machines[node.index()].armed = at;
            self.push_for(node, at, Event::Deadline(node));
        }
    }

    /// A thread's time has come. True if its worker goes on.
    fn resume(&mut self, thread: ThreadId, incarnation: u16) -> bool {
        let server = &self.servers[usize::from(thread.0)];
        if server.incarnation != incarnation {
            return false;
        }
        let it = &mut self.threads[usize::from(thread.0)];
        it.armed = false;
        if it.phase != Phase::Ready || server.current.is_some() {
            return false;
        }
        if server.free > self.now {
            self.schedule(thread);
            return false;
        }
        self.servers[usize::from(thread.0)].free = self.now;
        true
    }

    /// What is called now follows from no message.
    pub(super) fn begin_budget(&mut self, at: Nanos) {
        if let Some(budgets) = &mut self.budgets {
            budgets.begin(at);
        }
    }

    pub(super) fn observe(&mut self, at: Nanos, what: &Trace<'_, S::Message>) {
        if let Some(observer) = &mut self.observer {
            observer(at, what);
        }
    }
}
