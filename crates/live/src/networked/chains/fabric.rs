//! What clients and metadata servers of a node ask of the rack: verbs through the switch's process, calls from node to node.
//!
//! What must always hold: what was posted ends, also when the node is fenced.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chain::words::answer_of;
use chain::{Answer, Appended, Call as ChainCall};
use transport::{Body, PeerId};
use wire::chain_pair::ChainPair;
use wire::{GlobalAddr, Incarnation, Nanos, NodeId, Refusal, SwitchEpoch};

use crate::actor::{Driver, Failure, ThreadContext};
use crate::chains::{Ask, Connect, Fabric, Introduction, Store, client_id};
use crate::config::Steering;
use crate::networked::node::NetworkedNode;
use crate::networked::verbs::chain_work::{Beginning, Ended, Kind, Ticket, Work};
use nic::regions::{Call, Reply};

/// How often the switch is told of a connection, until it has heard.
const AGAIN: Nanos = Nanos::from_millis(5);

impl Fabric for NetworkedNode {
    fn me(&self) -> NodeId {
        self.id()
    }

    fn now(&self) -> Nanos {
        NetworkedNode::now(self)
    }

    fn incarnation_of(&self, node: NodeId) -> Option<Incarnation> {
        if node == self.id() { Some(self.incarnation) } else { self.verbs.incarnation_of(node) }
    }

    fn is_over(&self, node: NodeId, life: Incarnation) -> bool {
        if node == self.id() { life != self.incarnation } else { self.verbs.is_over(node, life) }
    }

    fn connect(
        &self,
        context: &mut ThreadContext,
        (memory, incarnation): (NodeId, Incarnation),
        connect: Connect,
    ) -> Result<(), Failure> {
        let nowhere = GlobalAddr::new(memory, 0);
        self.ask_life(context, (memory, incarnation, nowhere), &Ask::Connect(connect))?;
        let Connect { thread, to_memory, to_client, outstanding, store, generation } = connect;
        let pair = ChainPair::of_client(self.id(), memory, thread);
        let (to_owner, to_peer) = (to_client, to_memory);
        let beginning = Beginning { to_owner, to_peer, outstanding, store, generation };
        let begun = self.with_nic(context, |nic, _, _| nic.connect_chain(pair, incarnation, beginning));
        Ok(begun?)
    }

    fn current(&self, context: &mut ThreadContext, store: &Store) -> Result<Arc<Store>, Failure> {
        self.as_it_is(context, store, false)
    }

    fn steering(&self) -> Option<Steering> {
        self.chains.steering
    }

    fn epoch(&self) -> SwitchEpoch {
        SwitchEpoch(self.chains.epoch.load(Ordering::Acquire))
    }

    fn next_number(&self) -> u64 {
        let number = self.chains.introductions.fetch_add(1, Ordering::Relaxed);
        u64::from(self.incarnation.0) << 32 | u64::from(number)
    }

    fn introduce(&self, context: &mut ThreadContext, said: Introduction) -> Result<(), Failure> {
        let number = said.number();
        let mut spin_then_park = self.begin_wait();
        let mut again = Nanos::ZERO;
        let heard = loop {
            // A switch of a later epoch does not listen.
            if said.switch().is_some_and(|named| named != self.epoch()) {
                break Err(Failure::Broken);
            }
            if self.chains.heard().remove(&number) {
                break Ok(());
            }
            if Driver::is_fenced(self) || self.stop.load(Ordering::Acquire) {
                break Err(Failure::Fenced);
            }
            let now = NetworkedNode::now(self);
            if now >= again {
                again = now + AGAIN;
                self.transport.send(PeerId::SWITCH, Body::Control(&said.encode()), &mut context.outgoing);
                self.flush(context);
            }
            self.pause(self.id(), context, &mut spin_then_park);
        };
        self.end_wait(context);
        heard
    }

    fn post(&self, context: &mut ThreadContext, work: Work) -> Arc<Ticket> {
        let ticket = Arc::<Ticket>::default();
        if Driver::is_fenced(self) {
            ticket.end(Ended::Failed(Failure::Fenced));
            return ticket;
        }
        let work = work.for_ticket(&ticket);
        self.with_nic(context, |nic, now, way| nic.post_chain(now, work, way));
        self.flush(context);
        ticket
    }

    fn wait(&self, context: &mut ThreadContext, ticket: &Ticket) -> Result<Ended, Failure> {
        self.await_ticket(context, ticket, self.begin_wait())
    }

    fn execute(&self, context: &mut ThreadContext, work: Work) -> Result<Ended, Failure> {
        // This thread receives from now on: nobody is woken for the answer.
        let spin_then_park = self.begin_wait();
        let ticket = self.post(context, work);
        self.await_ticket(context, &ticket, spin_then_park)
    }

    fn execute_after(&self, context: &mut ThreadContext, first: Work, then: Work) -> Result<Ended, Failure> {
        // It leaves with the other one.
        self.with_nic(context, |nic, now, way| nic.post_chain(now, first, way));
        self.execute(context, then)
    }

    fn call(
        &self,
        context: &mut ThreadContext,
        store: &Store,
        thread: u16,
        number: u32,
        call: ChainCall,
    ) -> Result<Option<Answer>, Failure> {
        let leader = || store.server(|node| self.incarnation_of(node));
        let Some(to) = leader() else { return Err(Refusal::NodeDown.into()) };
        let ask = Ask::Do { store: store.name, thread, number, call };
        match self.ask_chain(context, (to, store.addr), &ask) {
            Ok(Reply::Words(words)) => answer_of(&words).map(Some).ok_or(Failure::Broken),
            Ok(_) => Err(Failure::Broken),
            Err(Failure::Refused(Refusal::Locked)) => Ok(None),
            // It has died meanwhile, and another one takes over.
            Err(Failure::Refused(Refusal::NodeDown)) if leader().is_some_and(|next| next != to) => Ok(None),
            Err(why) => Err(why),
        }
    }

    fn tell(&self, context: &mut ThreadContext, store: &Store, thread: u16, appends: &[Appended]) {
        let Some(to) = store.server(|node| self.incarnation_of(node)) else { return };
        if to == self.id() {
            if let Some(server) = self.server_of(store.addr, &store.name) {
                server.told(self.now(), client_id(to, self.incarnation, thread), appends);
            }
            return;
        }
        if Driver::is_fenced(self) {
            return;
        }
        let ask = Ask::Told { store: store.name, thread, appends: appends.to_vec() }.words();
        // Nobody answers: it has no number.
        let mut words = Call::Chain { addr: store.addr, words: ask.len() }.words(0);
        words.extend(ask);
        let len = words.len() * 8;
        let work = Work::new(to, Kind::Send, None, words.into(), len);
        self.with_nic(context, |nic, now, way| nic.post(now, work, way));
        self.flush(context);
    }

    fn pass_time(&self, context: &mut ThreadContext) {
        let mut spin_then_park = self.begin_wait();
        self.pause(self.id(), context, &mut spin_then_park);
        self.end_wait(context);
        std::thread::yield_now();
    }
}
