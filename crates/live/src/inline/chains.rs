//! Chains on an embedded rack: the same verbs, on the same queue pairs, through the rack's switch, delivered by the thread that waits.
//!
//! Memory is within this thread's reach, and it could do without: but then no two operations would ever be in flight at once, and
//! a switch that steers would have nothing to see. So the way is that of a rack of processes, NICs and switch included, and only
//! the network is a queue in memory. It loses nothing; what a NIC repeats, it repeats because a thread was away for long.
//!
//! What must always hold: a thread that waits delivers what is in flight between its node, the switch, and the memory that it asked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chain::{Answer, Appended, Call};
use nic::verbs::Mtu;
use sorted::Map;
use transport::inline::{Hub, InlineTransport};
use transport::{Body, PeerId, Transport as _};
use wire::chain_pair::ChainPair;
use wire::{Discipline, GlobalAddr, Incarnation, Nanos, NodeId, Refusal, SwitchEpoch};

use super::rack::InlineRack;
use crate::actor::{Allocated, Failure, ThreadContext};
use crate::chains::{
    Chains, Connect, Fabric, Introduction, Pools, Ran, Server, ServerCounts, Session, Setup, SteeringCounts,
    Store, Wanted, What, client_id, decide_after, least_quarantine,
};
use crate::config::Steering;
use crate::networked::verbs::chain_work::{Beginning, Ended, Nic, Ticket, Way, Work};
use crate::waiting::{SpinThenPark, Step};

/// Payload of a packet.
pub(super) const MTU: Mtu = Mtu::B4096;
/// A scheduler's slice.
const TIMEOUT: Nanos = Nanos::from_millis(10);
/// The incarnation of all nodes.
pub(super) const INCARNATION: Incarnation = Incarnation(0);
/// The rack's only epoch.
pub(super) const EPOCH: SwitchEpoch = SwitchEpoch(0);

/// What an embedded rack has for chains.
pub(super) struct InlineChains {
    nodes: Box<[Port]>,
    switch: InlineTransport,
    servers: Mutex<Map<GlobalAddr, Arc<Server>>>,
    steering: Option<Steering>,
    introductions: AtomicU64,
}

struct Port {
    nic: Mutex<Nic>,
    transport: InlineTransport,
    /// When the NIC wants to be called.
    due: AtomicU64,
    pools: Pools,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InlineChains {
    pub(super) fn new(nodes: usize, steering: Option<Steering>) -> Self {
        let hub = Hub::default();
        let port = |node: u16| Port {
            nic: Mutex::new(Nic::new(NodeId(node), nodes, MTU, (TIMEOUT, Nanos::MAX))),
            transport: hub.connect(PeerId::node(NodeId(node))),
            due: AtomicU64::new(u64::MAX),
            pools: Pools::default(),
        };
        Self {
            nodes: (0..u16::try_from(nodes).expect("at most 64")).map(port).collect(),
            switch: hub.connect(PeerId::SWITCH),
            servers: Mutex::default(),
            steering,
            introductions: AtomicU64::new(1),
        }
    }

    fn server(&self, addr: GlobalAddr) -> Option<Arc<Server>> {
        lock(&self.servers).get(&addr).cloned()
    }

    /// The same, if it is that of this store, and not of a later one with its address.
    fn server_of(&self, store: &Store) -> Option<Arc<Server>> {
        self.server(store.addr).filter(|server| server.store().is(store))
    }
}

/// One node of an embedded rack.
struct OneNode<'a> {
    rack: &'a InlineRack,
    chains: &'a InlineChains,
    node: NodeId,
}

impl OneNode<'_> {
    fn with_nic<R>(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        action: impl FnOnce(&mut Nic, Nanos, &mut Way<'_>) -> R,
    ) -> R {
        let port = &self.chains.nodes[node.index()];
        let mut nic = lock(&port.nic);
        // Under the lock, so that it does not run back.
        let now = self.rack.now();
        let mut way = Way { transport: &port.transport, outgoing: &mut context.outgoing, is_fenced: false };
        let result = action(&mut nic, now, &mut way);
        port.due.store(nic.next_deadline().0, Ordering::Release);
        result
    }

    /// Delivers what is in flight between these nodes. True if there was anything.
    fn deliver(&self, context: &mut ThreadContext, nodes: [NodeId; 2]) -> bool {
        let mut delivered = 0;
        let InlineChains { switch, .. } = self.chains;
        for node in nodes {
            delivered += switch.receive(&mut |from, body| {
                if let Body::Verbs(packet, len, contents) = body {
                    self.rack.switch.enter().relay.on_packet(
                        self.rack.now(),
                        from,
                        (packet, len, contents),
                        |to, packet, len, contents| {
                            let body = Body::Verbs(packet, len, contents);
                            switch.send(PeerId::node(to), body, &mut context.outgoing);
                        },
                    );
                }
            });
            delivered += self.receive(context, node);
        }
        delivered > 0
    }

    fn receive(&self, context: &mut ThreadContext, node: NodeId) -> usize {
        let port = &self.chains.nodes[node.index()];
        let due = port.due.load(Ordering::Acquire);
        if due <= self.rack.now().0 {
            self.with_nic(node, context, |nic, now, way| nic.on_deadline(now, way));
        }
        port.transport.receive(&mut |_, body| {
            if let Body::Verbs(packet, len, contents) = body {
                self.with_nic(node, context, |nic, now, way| {
                    nic.on_chain_packet(now, packet, len, contents, way);
                });
            }
        })
    }

    fn await_one(&self, context: &mut ThreadContext, ticket: &Ticket) -> Ended {
        let mut spin_then_park = SpinThenPark::with_spins();
        let memory = ticket.asks().unwrap_or(self.node);
        loop {
            let delivered = self.deliver(context, [memory, self.node]);
            if let Some(ended) = ticket.take() {
                return ended;
            }
            if delivered {
                spin_then_park.again();
                continue;
            }
            let clock = || self.rack.now();
            let now = spin_then_park.now(clock);
            match spin_then_park.step(now, Nanos::MAX, &self.rack.oversubscription) {
                Step::Spin => std::hint::spin_loop(),
                // Another thread has it, and delivers nothing for this one: so nobody sleeps for long.
                Step::Yield => spin_then_park.give_way(now, &self.rack.oversubscription, clock),
                Step::Sleep(_) => std::thread::sleep(std::time::Duration::from_micros(50)),
            }
        }
    }
}

impl Fabric for OneNode<'_> {
    fn me(&self) -> NodeId {
        self.node
    }

    fn now(&self) -> Nanos {
        self.rack.now()
    }

    fn incarnation_of(&self, _: NodeId) -> Option<Incarnation> {
        Some(INCARNATION)
    }

    fn is_over(&self, _: NodeId, _: Incarnation) -> bool {
        false
    }

    fn connect(
        &self,
        context: &mut ThreadContext,
        (memory, _): (NodeId, Incarnation),
        connect: Connect,
    ) -> Result<(), Failure> {
        let Connect { thread, to_memory, to_client, outstanding, store, generation } = connect;
        let pair = ChainPair::of_client(self.node, memory, thread);
        let (to_owner, to_peer) = (to_client, to_memory);
        let beginning = Beginning { to_owner, to_peer, outstanding, store, generation };
        self.with_nic(memory, context, |nic, _, _| {
            nic.connect_chain(pair.other(), INCARNATION, beginning.other())
        })?;
        Ok(self.with_nic(self.node, context, |nic, _, _| nic.connect_chain(pair, INCARNATION, beginning))?)
    }

    fn current(&self, _: &mut ThreadContext, store: &Store) -> Result<Arc<Store>, Failure> {
        Ok(self.chains.server_of(store).ok_or(Refusal::Unallocated)?.store())
    }

    fn steering(&self) -> Option<Steering> {
        self.chains.steering
    }

    fn epoch(&self) -> SwitchEpoch {
        EPOCH
    }

    fn next_number(&self) -> u64 {
        self.chains.introductions.fetch_add(1, Ordering::Relaxed)
    }

    fn introduce(&self, _: &mut ThreadContext, said: Introduction) -> Result<(), Failure> {
        let mut switch = self.rack.switch.enter();
        let heard = switch.relay.on_introduction(self.now(), PeerId::node(self.node), &said);
        heard.map(drop).ok_or(Failure::Broken)
    }

    fn post(&self, context: &mut ThreadContext, work: Work) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket::for_work_at(work.home()));
        let work = work.for_ticket(&ticket);
        self.with_nic(self.node, context, |nic, now, way| nic.post_chain(now, work, way));
        ticket
    }

    fn wait(&self, context: &mut ThreadContext, ticket: &Ticket) -> Result<Ended, Failure> {
        match self.await_one(context, ticket) {
            Ended::Failed(why) => Err(why),
            ended => Ok(ended),
        }
    }

    fn execute(&self, context: &mut ThreadContext, work: Work) -> Result<Ended, Failure> {
        let ticket = self.post(context, work);
        self.wait(context, &ticket)
    }

    fn execute_after(&self, context: &mut ThreadContext, first: Work, then: Work) -> Result<Ended, Failure> {
        self.with_nic(self.node, context, |nic, now, way| nic.post_chain(now, first, way));
        self.execute(context, then)
    }

    fn call(
        &self,
        context: &mut ThreadContext,
        store: &Store,
        thread: u16,
        number: u32,
        call: Call,
    ) -> Result<Option<Answer>, Failure> {
        let server = self.chains.server_of(store).ok_or(Refusal::Unallocated)?;
        let answer = server.call(self.now(), client_id(self.node, INCARNATION, thread), number, call);
        self.work(context, &server);
        answer
    }

    fn tell(&self, context: &mut ThreadContext, store: &Store, thread: u16, appends: &[Appended]) {
        if let Some(server) = self.chains.server_of(store) {
            server.told(self.now(), client_id(self.node, INCARNATION, thread), appends);
            self.work(context, &server);
        }
    }

    fn pass_time(&self, context: &mut ThreadContext) {
        self.deliver(context, [self.node; 2]);
        for server in lock(&self.chains.servers).values().cloned().collect::<Vec<_>>() {
            self.work(context, &server);
        }
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

impl OneNode<'_> {
    /// Executes what a server wants of memory, on its node's behalf.
    fn work(&self, context: &mut ThreadContext, server: &Server) {
        let there = OneNode { node: server.store().addr.home(), ..*self };
        while server.work(&there, context) {}
    }
}

impl InlineRack {
    fn chains_of(&self, node: NodeId) -> OneNode<'_> {
        let new = || Box::new(InlineChains::new(self.node_count(), self.steering));
        let chains = self.chains.get_or_init(new);
        OneNode { rack: self, chains, node }
    }

    /// What the switch has done for chains.
    pub fn steering_counts(&self) -> SteeringCounts {
        self.switch.enter().relay.counts()
    }

    /// What the metadata servers on a node have done.
    pub fn chain_counts(&self, node: NodeId) -> ServerCounts {
        let mut sum = ServerCounts::default();
        if let Some(chains) = self.chains.get() {
            let servers = lock(&chains.servers);
            let its = servers.iter().filter(|(addr, _)| addr.home() == node).map(|(_, server)| server);
            its.for_each(|server| sum.add(&server.counts()));
        }
        sum
    }
}

impl Chains for InlineRack {
    fn least_quarantine(&self, lease: Nanos) -> Nanos {
        least_quarantine(lease, self.steering)
    }

    fn begin_chains(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        Allocated { addr, .. }: Allocated,
        (mut setup, zeroed): (Setup, &[bool]),
    ) -> Result<Arc<Store>, Failure> {
        let here = self.chains_of(node);
        let parts = setup.parts();
        for (number, home) in setup.homes.iter_mut().enumerate() {
            let shape = Setup::shape(setup.each, number % parts, parts);
            let memory = self.memory(home.addr.home());
            // Nothing that was written before is to be taken for an entry of this store.
            let region = memory.regions.begin(&memory.home, home.addr, shape, zeroed[number]);
            let key = here.with_nic(home.addr.home(), context, |nic, _, _| nic.export(&region));
            (home.key, home.incarnation) = (key.ok_or(Refusal::OutOfMemory)?, INCARNATION);
        }
        let thread = here.chains.nodes[addr.home().index()].pools.thread()?;
        // All nodes of an embedded rack die at once: nobody backs anybody up.
        let servers = vec![(addr.home(), INCARNATION)];
        let store = Arc::new(Store { servers, ..Store::new(addr, INCARNATION, setup) });
        let decide_after = decide_after(here.steering(), Nanos::ZERO);
        let server = Arc::new(Server::new(Arc::clone(&store), true, thread, decide_after));
        lock(&here.chains.servers).insert(addr, server);
        Ok(store)
    }

    fn open_chains(
        &self,
        node: NodeId,
        _: &mut ThreadContext,
        Wanted { addr, .. }: Wanted,
    ) -> Result<Arc<Store>, Failure> {
        if let Some(server) = self.chains_of(node).chains.server(addr) {
            return Ok(server.store());
        }
        let tag = self.memory(addr.home()).cache.block_size().tag(addr);
        Err(match self.with_node(addr.home(), |node| node.discipline_of(tag)) {
            Some(Discipline::Chain) | None => Refusal::Unallocated.into(),
            Some(_) => Refusal::WrongDiscipline.into(),
        })
    }

    fn end_chains(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        store: &Arc<Store>,
    ) -> Result<Arc<Store>, Failure> {
        let here = self.chains_of(node);
        let server = {
            let mut servers = lock(&here.chains.servers);
            let known = servers.get(&store.addr).is_some_and(|server| server.store().is(store));
            known.then(|| servers.remove(&store.addr)).flatten().ok_or(Refusal::Unallocated)?
        };
        server.end();
        if let Some(over) = server.store().setup.over(here.next_number())
            && here.is_steered()
        {
            here.introduce(context, over)?;
        }
        Ok(Arc::clone(store))
    }

    fn is_of(&self, _: NodeId, _: NodeId, incarnation: Incarnation) -> bool {
        incarnation == INCARNATION
    }

    fn chain_session(&self, node: NodeId, store: &Arc<Store>) -> Result<Session, Failure> {
        self.chains_of(node).chains.nodes[node.index()].pools.take(store, self.steering)
    }

    fn end_session(&self, node: NodeId, session: Session) {
        self.chains_of(node).chains.nodes[node.index()].pools.put_back(session);
    }

    fn run_chain(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        session: &mut Session,
        key: u64,
        what: What<'_>,
    ) -> Result<Ran, Failure> {
        session.run(&self.chains_of(node), context, key, what)
    }
}
