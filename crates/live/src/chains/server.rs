//! A store's metadata server, or a backup of it: the machine under a lock, and what it wants of memory.
//!
//! On the nodes that [`Store::servers`](Store) names. Calls are answered on whichever thread received them; verbs are executed by a thread
//! of the server's own, or, on an embedded rack, by whoever has asked. What must always hold: a client's call is executed once,
//! however often it comes; a dead client is swept after every memory has been told to execute nothing of it any more, and a backup
//! takes over after the same was done to the servers before it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chain::metadata::{ClientId, Metadata, MetadataConfig};
use chain::server::{Batch, Followed, Server as Machine, ServerId};
use chain::{Answer, Appended, Call, Outcome};
use sorted::{Map, Set};
use wire::chains::{EntryVersion, Location, UNIT};
use wire::{AllRules, Incarnation, Nanos, NodeId, Refusal};

use super::fabric::{Fabric, whose};
use super::port::{Aimed, Port};
use super::store::{Setup, Store};
use crate::actor::{Failure, ThreadContext};

/// How long an append waits for its predecessor until its chain is walked.
const TIMEOUT: Nanos = Nanos::from_millis(20);
/// Bytes that a client gets at a time: of large slots one, of small ones as many as it asks for.
const HANDFUL: u64 = 64 << 10;
/// Keys whose tails a client is told beside the one that it asks for.
const MOST_TAILS: u32 = 31;
/// Appends after which what was written to before counts half.
const COOLING: u32 = 1 << 16;
/// Verbs of walks in flight at a time.
const AT_A_TIME: usize = 16;
/// How long it waits until it looks for memory again.
const TRY_AGAIN: Nanos = Nanos::from_millis(200);
/// Inputs that a backup is sent at a time.
const BATCH: usize = 128;
/// READs and atomics in flight on the server's queue pairs.
const OUTSTANDING: u32 = 16;

/// What a metadata server has done, and what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerCounts {
    /// Stores.
    pub stores: u64,
    /// Keys that have chains.
    pub keys: u64,
    /// Bytes that were ever given to clients.
    pub bytes_made: u64,
    /// Of those, bytes that are free.
    pub bytes_free: u64,
    /// Calls of clients.
    pub calls: u64,
    /// Appends that it was told of.
    pub appends: u64,
    /// Verbs of its walks.
    pub walked: u64,
    /// Clients that died, and whose slots came back.
    pub swept: u64,
    /// Copies of parts that have no memory now, as theirs has died; and backups of metadata servers that are none any more.
    pub missing: u64,
    /// Bytes that those copies of parts had, as far as the store uses them.
    pub bytes_missing: u64,
    /// Copies of parts that were made anew.
    pub recopied: u64,
    /// Bytes that were copied for that.
    pub bytes_recopied: u64,
}

impl ServerCounts {
    pub(crate) const WORDS: usize = 12;

    pub(crate) fn words(&self) -> [u64; Self::WORDS] {
        let Self { stores, keys, bytes_made, bytes_free, calls, appends, walked, swept, .. } = *self;
        let Self { missing, bytes_missing, recopied, bytes_recopied, .. } = *self;
        [
            stores,
            keys,
            bytes_made,
            bytes_free,
            calls,
            appends,
            walked,
            swept,
            missing,
            bytes_missing,
            recopied,
            bytes_recopied,
        ]
    }

    pub(crate) fn of_words(mut next: impl FnMut() -> u64) -> Self {
        Self {
            stores: next(),
            keys: next(),
            bytes_made: next(),
            bytes_free: next(),
            calls: next(),
            appends: next(),
            walked: next(),
            swept: next(),
            missing: next(),
            bytes_missing: next(),
            recopied: next(),
            bytes_recopied: next(),
        }
    }

    /// Adds those of another store.
    pub fn add(&mut self, other: &Self) {
        let sum = self.words().into_iter().zip(other.words());
        let mut sum = sum.map(|(mine, others)| mine + others);
        *self = Self::of_words(|| sum.next().expect("as many as WORDS"));
    }
}

struct ServerState {
    machine: Machine,
    /// Lives of nodes from which somebody has asked for something, whether the machine knows of that or not.
    lives: Set<(NodeId, Incarnation)>,
    counts: ServerCounts,
    /// How often keys were written to lately.
    heat: Map<u64, u32>,
    /// Appends since it was halved.
    warmed: u32,
    /// When it next looks for memory in the place of what has died.
    next_try: Nanos,
    /// Something that it needs is down, for good.
    failed: Option<Failure>,
}

/// A metadata server.
pub(crate) struct Server {
    store: Mutex<Arc<Store>>,
    state: Mutex<ServerState>,
    came: Condvar,
    /// Executes its verbs.
    port: Mutex<Port>,
    has_ended: AtomicBool,
}

impl Server {
    /// The first one of a store that begins, or a backup, with the number of its queue pairs.
    /// Where the switch steers, `decide_after` is longer than any request is in flight; otherwise it is zero.
    pub(crate) fn new(store: Arc<Store>, leads: bool, thread: u16, decide_after: Nanos) -> Self {
        let machine = machine_of(&store.setup, decide_after);
        let machine = if leads {
            Machine::primary(AllRules, machine, &ids(&store.servers[1..]))
        } else {
            Machine::backup(AllRules, machine)
        };
        Self::with(store, thread, machine)
    }

    /// A backup of a store that there is: what its primary knew when that one's clock said `at`.
    pub(crate) fn joins(
        store: Arc<Store>,
        thread: u16,
        decide_after: Nanos,
        (now, at): (Nanos, Nanos),
        words: &[u64],
    ) -> Option<Self> {
        let machine = machine_of(&store.setup, decide_after);
        let machine = Machine::from_words((AllRules, machine), (now, at), words)?;
        Some(Self::with(store, thread, machine))
    }

    fn with(store: Arc<Store>, thread: u16, machine: Machine) -> Self {
        let state = ServerState {
            machine,
            lives: Set::new(),
            counts: ServerCounts::default(),
            heat: Map::new(),
            warmed: 0,
            next_try: Nanos::ZERO,
            failed: None,
        };
        Self {
            port: Mutex::new(Port::new(Arc::clone(&store), thread, OUTSTANDING).reading_as_asked()),
            store: Mutex::new(store),
            state: Mutex::new(state),
            came: Condvar::new(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// The store as it is by now.
    pub(crate) fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// It is this by now.
    pub(crate) fn adopt(&self, now: Store) {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if now.setup.generation > store.setup.generation {
            *store = Arc::new(now);
        }
    }

    /// True now and then: memory in the place of what has died may not be had at once.
    pub(crate) fn may_try(&self, now: Nanos) -> bool {
        let mut state = self.state();
        let may = now >= state.next_try;
        if may {
            state.next_try = now + TRY_AGAIN;
        }
        may
    }

    /// So many copies of parts were made anew, or so many bytes of one were copied.
    pub(crate) fn count_recopied(&self, copies: u64, bytes: u64) {
        let counts = &mut self.state().counts;
        counts.recopied += copies;
        counts.bytes_recopied += bytes;
    }

    /// Units that were ever given to clients: nobody has written behind those.
    pub(crate) fn units_made(&self) -> u32 {
        self.state().machine.machine().memory().0
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it has done so far. What a backup knows of, the primary counts.
    pub(crate) fn counts(&self) -> ServerCounts {
        let state = self.state();
        if !state.machine.leads() {
            return state.counts;
        }
        let machine = state.machine.machine();
        let (made, free) = machine.memory();
        ServerCounts {
            stores: 1,
            keys: machine.keys() as u64,
            bytes_made: u64::from(made) * UNIT,
            bytes_free: u64::from(free) * UNIT,
            ..state.counts
        }
    }

    /// A client's call. None: there is no answer yet.
    ///
    /// # Errors
    /// If something that it needs is down.
    pub(crate) fn call(
        &self,
        now: Nanos,
        client: ClientId,
        number: u32,
        call: Call,
    ) -> Result<Option<Answer>, Failure> {
        let mut state = self.state();
        if let Some(why) = state.failed {
            return Err(why);
        }
        if self.has_ended() {
            // Whoever leads now will say.
            return Ok(None);
        }
        let call = match call {
            Call::Slots { class, count } => {
                let handful = u32::try_from((HANDFUL / class.bytes()).max(1)).unwrap_or(1);
                Call::Slots { class, count: count.min(handful) }
            }
            Call::FindSome { key, more } => Call::FindSome { key, more: more.min(MOST_TAILS) },
            call => call,
        };
        state.lives.insert(whose(client));
        let before = state.machine.happened();
        let answer = state.machine.call(now, client, number, call);
        let is_first =
            state.machine.happened() > before || matches!(call, Call::Find { .. } | Call::FindSome { .. });
        state.counts.calls += u64::from(is_first);
        if state.machine.has_work() {
            self.came.notify_all();
        }
        Ok(answer)
    }

    /// A client tells what it has appended.
    pub(crate) fn told(&self, now: Nanos, client: ClientId, appends: &[Appended]) {
        let mut state = self.state();
        for append in appends {
            state.counts.appends += 1;
            *state.heat.entry(append.key).or_default() += 1;
            state.warmed += 1;
            if state.warmed >= COOLING {
                state.warmed = 0;
                state.heat.retain(|_, heat| {
                    *heat /= 2;
                    *heat > 0
                });
            }
            state.machine.told(now, client, *append);
        }
        if state.machine.has_work() {
            self.came.notify_all();
        }
    }

    /// Follows the chains of the so many keys that are written to most to their ends; which those are.
    pub(crate) fn scan_hottest(&self, most: usize) -> Vec<u64> {
        let mut state = self.state();
        let mut keys: Vec<(u32, u64)> = state.heat.iter().map(|(key, heat)| (*heat, *key)).collect();
        keys.sort_unstable_by(|one, other| other.cmp(one));
        keys.truncate(most);
        keys.iter().for_each(|(_, key)| state.machine.scan(*key));
        keys.into_iter().map(|(_, key)| key).collect()
    }

    /// What it takes for the tail of a key's chain.
    pub(crate) fn tail(&self, key: u64) -> Option<(Location, EntryVersion)> {
        self.state().machine.machine().tail(key)
    }

    /// Executes some of what the machine wants of memory, if nobody else does. True if there was anything.
    pub(crate) fn work<F: Fabric>(&self, fabric: &F, context: &mut ThreadContext) -> bool {
        let mut port = match self.port.try_lock() {
            Ok(port) => port,
            Err(std::sync::TryLockError::Poisoned(port)) => port.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return false,
        };
        let store = self.store();
        if port.store.setup != store.setup {
            port.reformed(store);
        }
        let verbs: Vec<(u64, Aimed)> = {
            let mut state = self.state();
            if state.failed.is_some() {
                return false;
            }
            state.machine.wake(fabric.now());
            let verbs = state.machine.verbs(AT_A_TIME);
            state.counts.walked += verbs.len() as u64;
            verbs.into_iter().map(|(key, replica, verb)| (key, (replica, verb))).collect()
        };
        if verbs.is_empty() {
            return false;
        }
        match execute(&mut port, fabric, context, &verbs) {
            // Its memory may have been given back since then, and what was read is nobody's entry.
            Ok(_) if self.has_ended() => {}
            Ok(outcomes) => {
                let mut state = self.state();
                for ((key, _), outcome) in verbs.iter().zip(outcomes) {
                    state.machine.ended(fabric.now(), *key, outcome);
                }
            }
            Err(why) => self.fail(why),
        }
        true
    }

    /// It cannot go on: something that it needs is down.
    pub(crate) fn fail(&self, why: Failure) {
        self.state().failed = Some(why);
    }

    /// Why it cannot, if so.
    pub(crate) fn failed(&self) -> Option<Failure> {
        self.state().failed
    }

    /// Lives of nodes that have clients here.
    pub(crate) fn incarnations(&self) -> Set<(NodeId, Incarnation)> {
        let state = self.state();
        state.lives.iter().copied().chain(state.machine.clients().map(whose)).collect()
    }

    /// That incarnation is over, and no memory executes anything of it any more.
    pub(crate) fn sweep(&self, now: Nanos, node: NodeId, incarnation: Incarnation) {
        let mut state = self.state();
        state.lives.remove(&(node, incarnation));
        let its: Vec<ClientId> =
            state.machine.clients().filter(|client| whose(*client) == (node, incarnation)).collect();
        for client in its {
            state.counts.swept += 1;
            state.machine.dies(now, client);
        }
    }

    /// True if it answers clients: it is the primary, or has taken over.
    pub(crate) fn leads(&self) -> bool {
        self.state().machine.leads()
    }

    /// The servers before it are gone, and every memory has been told to execute nothing of them any more. These are behind it.
    pub(crate) fn take_over(&self, behind: &[(NodeId, Incarnation)]) {
        self.state().machine.lead(&ids(behind));
    }

    /// The nodes of its backups, in their order; of one that is about to be, too.
    pub(crate) fn backups(&self) -> Vec<NodeId> {
        self.state().machine.backups().into_iter().map(|id| NodeId(id.0)).collect()
    }

    /// What a backup lacks, or some of it.
    pub(crate) fn for_backup(&self, node: NodeId) -> Option<Batch> {
        self.state().machine.for_backup(ServerId(node.0), BATCH)
    }

    /// A backup has so many inputs; or it is none any more.
    pub(crate) fn backup_has(&self, node: NodeId, inputs: Option<u64>) {
        let mut state = self.state();
        match inputs {
            Some(inputs) => state.machine.backup_has(ServerId(node.0), inputs),
            None => state.machine.backup_is_gone(ServerId(node.0)),
        }
    }

    /// A backup more: what it is to know first, and as of when.
    pub(crate) fn add_backup(&self, now: Nanos, node: NodeId) -> (Nanos, Vec<u64>) {
        let mut state = self.state();
        (state.machine.clock(now), state.machine.add_backup(ServerId(node.0)))
    }

    /// It knows that, and what came since. True if it is a backup from now on.
    pub(crate) fn backup_joins(&self, node: NodeId) -> bool {
        self.state().machine.backup_joins(ServerId(node.0))
    }

    /// A backup hears what has happened to the primary. How much it knows by now.
    ///
    /// # Errors
    /// If it is the primary, or another one than that of whoever sends this.
    pub(crate) fn follow(&self, now: Nanos, batch: Batch) -> Result<u64, Refusal> {
        match self.state().machine.follow(now, batch) {
            Followed::Has(inputs) => Ok(inputs),
            Followed::Leads | Followed::Refused => Err(Refusal::NotAnAllocation),
        }
    }

    /// Waits until there may be something to do, at most so long.
    pub(crate) fn wait(&self, most: Duration) {
        let state = self.state();
        if !state.machine.has_work() && !self.has_ended() {
            drop(self.came.wait_timeout(state, most));
        }
    }

    /// The store has ended.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.came.notify_all();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

/// What the machine calls servers: by their nodes.
fn ids(servers: &[(NodeId, Incarnation)]) -> Vec<ServerId> {
    servers.iter().map(|(node, _)| ServerId(node.0)).collect()
}

/// A machine that knows nothing yet.
fn machine_of(setup: &Setup, decide_after: Nanos) -> Metadata {
    let Setup { quarantine, each, copies, .. } = setup;
    let decide_after = if setup.may_be_steered() { decide_after } else { Nanos::ZERO };
    let units = Setup::units(*each, setup.parts()).expect("it was looked at");
    let config = MetadataConfig { units, quarantine: *quarantine, timeout: TIMEOUT, decide_after };
    Metadata::new(config).with_copies(*copies)
}

/// All of them at once; nothing else counts then.
fn execute<F: Fabric>(
    port: &mut Port,
    fabric: &F,
    context: &mut ThreadContext,
    verbs: &[(u64, Aimed)],
) -> Result<Vec<Outcome>, Failure> {
    let mut in_flight = Vec::with_capacity(verbs.len());
    for (_, aimed) in verbs {
        in_flight.push(port.post(fabric, context, *aimed)?);
    }
    in_flight.into_iter().map(|posted| port.wait(fabric, context, &posted)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::{Home, client_id};
    use wire::GlobalAddr;
    use wire::roce::Key;

    #[test]
    fn who_has_only_asked_where_a_chain_is_is_looked_after_when_it_dies_as_whoever_has_slots() {
        let (addr, its) = (GlobalAddr::new(NodeId(1), 64), Incarnation(0));
        let (lease, quarantine) = (Nanos(1), Nanos(2));
        let homes = vec![Home { addr, key: Key(1), incarnation: its }];
        let setup = Setup { lease, quarantine, each: 100, copies: 1, generation: 0, homes };
        let server = Server::new(Arc::new(Store::new(addr, its, setup)), true, 0, Nanos::ZERO);
        let life = (NodeId(2), Incarnation(3));
        let answer = server.call(Nanos(1), client_id(life.0, life.1, 0), 1, Call::Find { key: 7 });
        assert_eq!(answer, Ok(Some(Answer::Absent)));
        assert!(server.incarnations().contains(&life));
        server.sweep(Nanos(2), life.0, life.1);
        assert!(server.incarnations().is_empty());
    }
}
