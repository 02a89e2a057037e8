//! What delivers verbs and calls: the seam between clients and the kinds of racks.
//!
//! What must always hold: what was posted ends; a call that comes again with its number is the same call.

use std::sync::Arc;

use chain::metadata::ClientId;
use chain::{Answer, Appended, Call};
use wire::{GlobalAddr, Incarnation, Nanos, NodeId, SwitchEpoch};

use super::Introduction;
use super::ask::Connect;
use super::session::{Ran, Session, What};
use super::store::{Setup, Store};
use crate::actor::{Allocated, Failure, ThreadContext};
use crate::config::Steering;
use crate::networked::verbs::chain_work::{Ended, Ticket, Work};

/// One node of a rack, as its clients of chains see it.
pub(crate) trait Fabric {
    /// Which node.
    fn me(&self) -> NodeId;

    /// The time, as this process counts it.
    fn now(&self) -> Nanos;

    /// A number of 32 bits that nobody knows before.
    fn random(&self, context: &mut ThreadContext) -> u32 {
        context.random()
    }

    /// The incarnation of another node, or of this one, that is in the rack.
    fn incarnation_of(&self, node: NodeId) -> Option<Incarnation>;

    /// True if that life of a node is over. One of which this node has not heard yet is not, nor is it in the rack as far as this node
    /// knows: whoever takes that for dead goes on without memory that others write to.
    fn is_over(&self, node: NodeId, life: Incarnation) -> bool;

    /// Begins a connection to memory of that life of a node, or begins it anew, at both ends.
    fn connect(
        &self,
        context: &mut ThreadContext,
        memory: (NodeId, Incarnation),
        connect: Connect,
    ) -> Result<(), Failure>;

    /// What a store is made of by now.
    fn current(&self, context: &mut ThreadContext, store: &Store) -> Result<Arc<Store>, Failure>;

    /// How the switch steers, if it does.
    fn steering(&self) -> Option<Steering>;

    /// True if it does.
    fn is_steered(&self) -> bool {
        self.steering().is_some()
    }

    /// The rack's epoch. In another one the switch may be another one, and know no connections.
    fn epoch(&self) -> SwitchEpoch;

    /// A number for an introduction: larger than all that this node has used.
    fn next_number(&self) -> u64;

    /// Tells the switch of connections, and waits until it has heard it. Broken: what it names the switch by is over, and what it tells
    /// of is to begin anew.
    fn introduce(&self, context: &mut ThreadContext, said: Introduction) -> Result<(), Failure>;

    /// Posts a verb.
    fn post(&self, context: &mut ThreadContext, work: Work) -> Arc<Ticket>;

    /// Waits for how it ended.
    fn wait(&self, context: &mut ThreadContext, ticket: &Ticket) -> Result<Ended, Failure>;

    /// The same at once.
    fn execute(&self, context: &mut ThreadContext, work: Work) -> Result<Ended, Failure>;

    /// The same, after other work on the same queue pair: if this succeeds, the other one has, too.
    fn execute_after(&self, context: &mut ThreadContext, first: Work, then: Work) -> Result<Ended, Failure>;

    /// Asks the metadata server. None: it does not know yet; ask again.
    fn call(
        &self,
        context: &mut ThreadContext,
        store: &Store,
        thread: u16,
        number: u32,
        call: Call,
    ) -> Result<Option<Answer>, Failure>;

    /// Tells it of appends.
    fn tell(&self, context: &mut ThreadContext, store: &Store, thread: u16, appends: &[Appended]);

    /// Waits for a moment, and does what is to be done meanwhile.
    fn pass_time(&self, context: &mut ThreadContext);
}

/// How the metadata server knows a client.
pub(crate) fn client_id(node: NodeId, incarnation: Incarnation, thread: u16) -> ClientId {
    ClientId(u64::from(incarnation.0) << 16 | u64::from(node.0) << 10 | u64::from(thread))
}

/// Whose client that is.
pub(crate) fn whose(client: ClientId) -> (NodeId, Incarnation) {
    (NodeId((client.0 >> 10 & 63) as u16), Incarnation((client.0 >> 16) as u32))
}

/// A store that somebody looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Its address.
    pub addr: GlobalAddr,
    /// In which life of that node it was named: one with copies outlives that, and another one may be at the address by then. None:
    /// whatever is there.
    pub life: Option<Incarnation>,
    /// Also if all copies of something are dead, so that nobody can use it: to free what is left.
    pub failed_too: bool,
}

/// What application threads do with chains, on whatever kind of rack.
pub trait Chains {
    /// The shortest time for which slots of a store may rest whose clients use what they know for so long.
    fn least_quarantine(&self, lease: Nanos) -> Nanos;

    /// Begins a store in memory that was allocated for it, in the incarnations of its homes that the setup names, whose bytes are known
    /// to be zero or not: what the homes' NICs call it is found out here.
    ///
    /// # Errors
    /// If a node is down.
    fn begin_chains(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        root: Allocated,
        setup: (Setup, &[bool]),
    ) -> Result<Arc<Store>, Failure>;

    /// The store that is looked for.
    ///
    /// # Errors
    /// If there is none, or its metadata server or its memory is down.
    fn open_chains(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        wanted: Wanted,
    ) -> Result<Arc<Store>, Failure>;

    /// The store ends: its memory, which is what it was made of at last, is about to be given back.
    ///
    /// # Errors
    /// As for [`Chains::open_chains`].
    fn end_chains(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        store: &Arc<Store>,
    ) -> Result<Arc<Store>, Failure>;

    /// True if what was allocated at a home in this incarnation is still what it was: the home is in the rack, in the same one.
    fn is_of(&self, node: NodeId, home: NodeId, incarnation: Incarnation) -> bool;

    /// A client for one thread.
    ///
    /// # Errors
    /// If as many threads of the node have one as can.
    fn chain_session(&self, node: NodeId, store: &Arc<Store>) -> Result<Session, Failure>;

    /// Gives it back.
    fn end_session(&self, node: NodeId, session: Session);

    /// Does an operation, and waits for its end.
    ///
    /// # Errors
    /// If something that it needs is down, and then every later operation of this client fails, too.
    fn run_chain(
        &self,
        node: NodeId,
        context: &mut ThreadContext,
        session: &mut Session,
        key: u64,
        what: What<'_>,
    ) -> Result<Ran, Failure>;
}
