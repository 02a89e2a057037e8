//! Chains on a rack of processes: verbs through the switch's process, calls from node to node, and a thread for each metadata
//! server of this node.
//!
//! What must always hold: calls are answered on the thread that received them and wait for nobody; what has to wait is done on the
//! server's thread. A client of a node that is dead is swept when every memory of the store has ended its connections.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use chain::{Answer, Appended, Call as ChainCall};
use transport::{Body, PlaceId};
use wire::chain_pair::{ChainPair, End};
use wire::{Discipline, GlobalAddr, Incarnation, Nanos, NodeId, Refusal, SwitchEpoch};

use super::node::NetworkedNode;
use super::one_sided::calls::{Call, Reply};
use super::one_sided::chain_work::{Beginning, Ended, Kind, Ticket, Work};
use crate::chain::{
    Ask, Chains, Connect, Fabric, Introduction, Pools, Ran, Server, ServerCounts, Session, Setup, Store,
    What, answer_of, answer_words, client_id, doubt, least_rest, setup_of, setup_words,
};
use crate::config::Steering;
use crate::memory::one_sided::Shape;
use crate::place::{Carrier, Courier, Failure};

/// How often a metadata server looks who has died.
const LOOK: Duration = Duration::from_millis(20);

/// How often the switch is told of a connection, until it has heard.
const AGAIN: Nanos = Nanos::from_millis(5);
/// Introductions that were heard more often than somebody waited.
const MOST_HEARD: usize = 4096;

/// What a node has for chains.
#[derive(Default)]
pub(super) struct ChainSide {
    pools: Pools,
    servers: Mutex<BTreeMap<GlobalAddr, Arc<Server>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How the switch steers.
    steering: Option<Steering>,
    /// Then: longer than any request is under way, also one of a process that was stopped for a while and is not taken for dead.
    doubt: Nanos,
    epoch: AtomicU64,
    introductions: AtomicU32,
    /// Introductions that the switch has heard.
    heard: Mutex<BTreeSet<u64>>,
}

impl ChainSide {
    /// A node that is silent for so long is dead.
    pub(super) fn new(steering: Option<Steering>, timeout: Nanos) -> Self {
        Self { steering, doubt: doubt(steering, timeout), ..Self::default() }
    }

    /// A new epoch: the switch may be another one.
    pub(super) fn begin_epoch(&self, epoch: SwitchEpoch) {
        self.epoch.store(epoch.0.into(), Ordering::Release);
    }

    /// What the switch says. False if that is something else.
    pub(super) fn on_control(&self, bytes: &[u8]) -> bool {
        let Some(Introduction::Heard { number }) = Introduction::parse(bytes) else { return false };
        let mut heard = self.heard();
        if heard.len() >= MOST_HEARD {
            heard.pop_first();
        }
        heard.insert(number);
        true
    }

    fn heard(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<GlobalAddr, Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the servers' threads, which have been told to stop.
    pub(super) fn end(&self) {
        self.servers().values().for_each(|server| server.end());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // It may be one of them that drops the node.
            if thread.thread().id() != std::thread::current().id() {
                // It cannot have panicked without having said so.
                drop(thread.join());
            }
        }
    }

    /// What the servers here have done.
    pub(super) fn counts(&self) -> ServerCounts {
        let mut sum = ServerCounts::default();
        self.servers().values().for_each(|server| sum.add(&server.counts()));
        sum
    }
}

impl Fabric for NetworkedNode {
    fn me(&self) -> NodeId {
        self.id()
    }

    fn now(&self) -> Nanos {
        NetworkedNode::now(self)
    }

    fn life_of(&self, node: NodeId) -> Option<Incarnation> {
        if node == self.id() { Some(self.incarnation) } else { self.one_sided.life_of(node) }
    }

    fn connect(&self, courier: &mut Courier, memory: NodeId, connect: Connect) -> Result<(), Failure> {
        let life = self.life_of(memory).ok_or(Refusal::NodeDown)?;
        let nowhere = GlobalAddr::new(memory, 0);
        self.ask_chain(courier, nowhere, &Ask::Connect(connect))?;
        let Connect { thread, to_memory, to_client, outstanding } = connect;
        let pair = ChainPair::of_client(self.id(), memory, thread);
        let beginning = Beginning { to_owner: to_client, to_peer: to_memory, outstanding };
        self.with_nic(courier, |nic, _, _| nic.connect_chain(pair, life, beginning));
        Ok(())
    }

    fn steering(&self) -> Option<Steering> {
        self.chains.steering
    }

    fn epoch(&self) -> u64 {
        self.chains.epoch.load(Ordering::Acquire)
    }

    fn next_number(&self) -> u64 {
        let number = self.chains.introductions.fetch_add(1, Ordering::Relaxed);
        u64::from(self.incarnation.0) << 32 | u64::from(number)
    }

    fn introduce(&self, courier: &mut Courier, said: Introduction) -> Result<(), Failure> {
        let (Introduction::Begin { number, .. }
        | Introduction::End { number, .. }
        | Introduction::Heard { number }) = said;
        let mut patience = self.begin_wait();
        let mut again = Nanos::ZERO;
        let heard = loop {
            if self.chains.heard().remove(&number) {
                break Ok(());
            }
            if Carrier::is_fenced(self) || self.stop.load(Ordering::Acquire) {
                break Err(Failure::Fenced);
            }
            let now = NetworkedNode::now(self);
            if now >= again {
                again = now + AGAIN;
                self.transport.send(PlaceId::SWITCH, Body::Control(&said.encode()), &mut courier.outgoing);
                self.flush(courier);
            }
            self.pause(self.id(), courier, &mut patience);
        };
        self.end_wait(courier);
        heard
    }

    fn post(&self, courier: &mut Courier, work: Work) -> Arc<Ticket> {
        let ticket = Arc::<Ticket>::default();
        if Carrier::is_fenced(self) {
            ticket.end(Ended::Failed(Failure::Fenced));
            return ticket;
        }
        let work = work.for_ticket(&ticket);
        self.with_nic(courier, |nic, now, way| nic.post_chain(now, work, way));
        self.flush(courier);
        ticket
    }

    fn wait(&self, courier: &mut Courier, ticket: &Ticket) -> Result<Ended, Failure> {
        let patience = self.begin_wait();
        let ended = self.await_ticket(courier, ticket, patience);
        self.end_wait(courier);
        match ended {
            Ended::Failed(why) => Err(why),
            ended => Ok(ended),
        }
    }

    fn execute(&self, courier: &mut Courier, work: Work) -> Result<Ended, Failure> {
        // This thread receives from now on: nobody is woken for the answer.
        let patience = self.begin_wait();
        let ticket = self.post(courier, work);
        let ended = self.await_ticket(courier, &ticket, patience);
        self.end_wait(courier);
        match ended {
            Ended::Failed(why) => Err(why),
            ended => Ok(ended),
        }
    }

    fn execute_after(&self, courier: &mut Courier, first: Work, then: Work) -> Result<Ended, Failure> {
        // It leaves with the other one.
        self.with_nic(courier, |nic, now, way| nic.post_chain(now, first, way));
        self.execute(courier, then)
    }

    fn call(
        &self,
        courier: &mut Courier,
        store: &Store,
        thread: u16,
        number: u32,
        call: ChainCall,
    ) -> Result<Option<Answer>, Failure> {
        if self.life_of(store.addr.home()) != Some(store.life) {
            return Err(Refusal::NodeDown.into());
        }
        match self.ask_chain(courier, store.addr, &Ask::Do { thread, number, call }) {
            Ok(Reply::Words(words)) => answer_of(&words).map(Some).ok_or(Failure::Broken),
            Ok(_) => Err(Failure::Broken),
            Err(Failure::Refused(Refusal::Locked)) => Ok(None),
            Err(why) => Err(why),
        }
    }

    fn tell(&self, courier: &mut Courier, store: &Store, thread: u16, appends: &[Appended]) {
        let home = store.addr.home();
        if home == self.id() {
            if let Some(server) = self.server(store.addr) {
                server.told(self.now(), client_id(home, self.incarnation, thread), appends);
            }
            return;
        }
        if Carrier::is_fenced(self) {
            return;
        }
        let ask = Ask::Told { thread, appends: appends.to_vec() }.words();
        // Nobody answers: it has no number.
        let mut words = Call::Chain { addr: store.addr, words: ask.len() }.words(0);
        words.extend(ask);
        let len = words.len() * 8;
        let work = Work::new(home, Kind::Send, None, words.into(), len);
        self.with_nic(courier, |nic, now, way| nic.post(now, work, way));
        self.flush(courier);
    }

    fn pass_time(&self, courier: &mut Courier) {
        let mut patience = self.begin_wait();
        self.pause(self.id(), courier, &mut patience);
        self.end_wait(courier);
        std::thread::yield_now();
    }
}

impl NetworkedNode {
    /// What the metadata servers on this node have done.
    pub fn chain_counts(&self) -> ServerCounts {
        self.chains.counts()
    }

    fn server(&self, addr: GlobalAddr) -> Option<Arc<Server>> {
        self.chains.servers().get(&addr).cloned()
    }

    /// Asks once; what has to wait is refused as locked.
    fn ask_chain(&self, courier: &mut Courier, addr: GlobalAddr, ask: &Ask) -> Result<Reply, Failure> {
        if Carrier::is_fenced(self) {
            return Err(Failure::Fenced);
        }
        let words = ask.words();
        let reply = if addr.home() == self.id() {
            self.serve_chains(self.id(), addr, &words).expect("only what nobody answers is not answered")
        } else {
            let call = Call::Chain { addr, words: words.len() };
            self.ask_once(courier, addr.home(), call, &words)?
        };
        match reply {
            Reply::Refused(why) => Err(why.into()),
            reply => Ok(reply),
        }
    }

    /// Does what a node has asked for, this one or another. None: nobody waits for an answer.
    pub(super) fn serve_chains(&self, from: NodeId, addr: GlobalAddr, words: &[u64]) -> Option<Reply> {
        let Some(ask) = Ask::parse(words) else { return Some(Reply::Refused(Refusal::NotAnAllocation)) };
        let Some(life) = self.life_of(from) else { return Some(Reply::Refused(Refusal::NodeDown)) };
        if let Ask::Told { thread, appends } = &ask {
            if let Some(server) = self.server(addr) {
                server.told(self.now(), client_id(from, life, *thread), appends);
            }
            return None;
        }
        Some(self.answer_chains(from, life, addr, ask).unwrap_or_else(Reply::Refused))
    }

    fn answer_chains(
        &self,
        from: NodeId,
        life: Incarnation,
        addr: GlobalAddr,
        ask: Ask,
    ) -> Result<Reply, Refusal> {
        match ask {
            Ask::Serve(setup) => {
                let is_up = |node, life| self.life_of(node) == Some(life);
                if !setup.homes.iter().all(|home| is_up(home.addr.home(), home.life)) {
                    return Err(Refusal::NodeDown);
                }
                self.begin_server(addr, setup)
            }
            Ask::Describe => {
                let server = self.server_or_why(addr)?;
                let words = [vec![self.incarnation.0.into()], setup_words(&server.store.setup)];
                Ok(Reply::Words(words.concat().into()))
            }
            Ask::Do { thread, number, call } => {
                let server = self.server_or_why(addr)?;
                match server.call(self.now(), client_id(from, life, thread), number, call) {
                    Ok(Some(answer)) => Ok(Reply::Words(answer_words(&answer).into())),
                    Ok(None) => Err(Refusal::Locked),
                    Err(Failure::Refused(why)) => Err(why),
                    Err(_) => Err(Refusal::NodeDown),
                }
            }
            Ask::Connect(Connect { thread, to_memory, to_client, outstanding }) => {
                let pair = ChainPair { owner: self.id(), peer: from, end: End::Memory, thread };
                let beginning = Beginning { to_owner: to_memory, to_peer: to_client, outstanding };
                let begun = self.one_sided.enter().connect_chain(pair, life, beginning);
                if begun { Ok(Reply::Done(0, 0, 0)) } else { Err(Refusal::NodeDown) }
            }
            Ask::Fence { node, life } => {
                self.one_sided.enter().end_chains_of(node, life);
                Ok(Reply::Done(0, 0, 0))
            }
            Ask::End => {
                let server = self.server_or_why(addr)?;
                self.chains.servers().remove(&addr);
                server.end();
                Ok(Reply::Done(0, 0, 0))
            }
            Ask::Told { .. } => unreachable!("nobody answers that"),
        }
    }

    fn server_or_why(&self, addr: GlobalAddr) -> Result<Arc<Server>, Refusal> {
        if let Some(server) = self.server(addr) {
            return Ok(server);
        }
        match self.with_node(|node| node.discipline_of(self.memory().cache.block_size().tag(addr))) {
            Some(Discipline::Chain) | None => Err(Refusal::Unallocated),
            Some(_) => Err(Refusal::WrongDiscipline),
        }
    }

    fn begin_server(&self, addr: GlobalAddr, setup: Setup) -> Result<Reply, Refusal> {
        let tag = self.memory().cache.block_size().tag(addr);
        if addr.home() != self.id()
            || self.with_node(|node| node.discipline_of(tag)) != Some(Discipline::Chain)
        {
            return Err(Refusal::NotAnAllocation);
        }
        let thread = self.chains.pools.thread().map_err(|_| Refusal::OutOfMemory)?;
        let store = Arc::new(Store { addr, life: self.incarnation, setup });
        let server = Arc::new(Server::new(store, thread, self.chains.doubt));
        let mut servers = self.chains.servers();
        if servers.contains_key(&addr) {
            return Err(Refusal::NotAnAllocation);
        }
        let (node, of) = (self.this.clone(), Arc::clone(&server));
        let name = format!("chains {}", self.id());
        let serve = move || serve_store(&node, &of);
        let Ok(thread) = std::thread::Builder::new().name(name).spawn(serve) else {
            return Err(Refusal::OutOfMemory);
        };
        self.chains.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        servers.insert(addr, server);
        Ok(Reply::Done(0, 0, 0))
    }

    /// Tells every memory of a store that lives of its clients are over, and then sweeps those.
    fn sweep_the_dead(&self, courier: &mut Courier, server: &Server) -> Result<(), Failure> {
        for (node, life) in server.lives() {
            if self.life_of(node) == Some(life) {
                continue;
            }
            for home in &server.store.setup.homes {
                let memory = home.addr.home();
                loop {
                    if self.life_of(memory) != Some(home.life) {
                        return Err(Refusal::NodeDown.into());
                    }
                    match self.ask_chain(courier, GlobalAddr::new(memory, 0), &Ask::Fence { node, life }) {
                        Ok(_) => break,
                        Err(Failure::Broken) => self.pass_time(courier),
                        Err(why) => return Err(why),
                    }
                }
            }
            if self.is_steered() {
                let number = self.next_number();
                self.introduce(courier, Introduction::End { node, life, number })?;
            }
            server.sweep(self.now(), node, life);
        }
        Ok(())
    }
}

/// Does what a server wants of memory, and looks who has died, until the store or the node is gone.
fn serve_store(node: &Weak<NetworkedNode>, server: &Server) {
    let mut courier = Courier::new(server.store.addr.bits());
    loop {
        let Some(node) = node.upgrade() else { return };
        if node.stop.load(Ordering::Acquire) || node.lease().is_fenced() || server.has_ended() {
            return;
        }
        if let Err(why) = node.sweep_the_dead(&mut courier, server) {
            server.fail(why);
        }
        let is_down = |home: &crate::chain::Home| node.life_of(home.addr.home()) != Some(home.life);
        if server.store.setup.homes.iter().any(is_down) {
            server.fail(Refusal::NodeDown.into());
        }
        if !server.work(&*node, &mut courier) {
            drop(node);
            server.wait(LOOK);
        }
    }
}

impl Chains for NetworkedNode {
    fn least_rest(&self, lease: Nanos) -> Nanos {
        least_rest(lease, self.chains.steering)
    }

    fn begin_chains(
        &self,
        _: NodeId,
        courier: &mut Courier,
        addr: GlobalAddr,
        mut setup: Setup,
    ) -> Result<Arc<Store>, Failure> {
        let homes = setup.homes.len();
        for (number, home) in setup.homes.iter_mut().enumerate() {
            let shape = Setup::shape(setup.each, number, homes);
            let call = Call::Begin { addr: home.addr, shape, zeroed: true };
            let life = self.life_of(home.addr.home()).ok_or(Refusal::NodeDown)?;
            // What is in it does not matter: nothing is read that was not written before.
            let reply = self.ask(courier, home.addr.home(), call, &[])?;
            let (key, Shape::Chain { .. }) = reply.region().ok_or(Failure::Broken)? else {
                return Err(Failure::Broken);
            };
            (home.key, home.life) = (key, life);
        }
        self.ask_chain(courier, addr, &Ask::Serve(setup))?;
        self.open_chains(self.id(), courier, addr)
    }

    fn open_chains(&self, _: NodeId, courier: &mut Courier, addr: GlobalAddr) -> Result<Arc<Store>, Failure> {
        let reply = self.ask_chain(courier, addr, &Ask::Describe)?;
        let Reply::Words(words) = reply else { return Err(Failure::Broken) };
        let store = words.split_first().and_then(|(life, words)| {
            let life = Incarnation(u32::try_from(*life).ok()?);
            Some(Store { addr, life, setup: setup_of(words)? })
        });
        store.map(Arc::new).ok_or(Failure::Broken)
    }

    fn end_chains(&self, _: NodeId, courier: &mut Courier, addr: GlobalAddr) -> Result<(), Failure> {
        self.ask_chain(courier, addr, &Ask::End).map(drop)
    }

    fn chain_session(&self, _: NodeId, store: &Arc<Store>) -> Result<Session, Failure> {
        self.chains.pools.take(store, self.chains.steering)
    }

    fn end_session(&self, _: NodeId, session: Session) {
        self.chains.pools.put_back(session);
    }

    fn run_chain(
        &self,
        _: NodeId,
        courier: &mut Courier,
        session: &mut Session,
        key: u64,
        what: What<'_>,
    ) -> Result<Ran, Failure> {
        session.run(self, courier, key, what)
    }
}
