//! Application threads: they make stores, use them, end them, and give their memory back.
//!
//! As the library does it. What must always hold: whoever ends a store, or finds out first that it is over, gives back what is left of it.

use nic::regions::Call;
use node::Outcome;
use wire::{Discipline, GlobalAddr, Incarnation, Nanos, NodeId, Refusal, Rules};

use super::rig::{Packets, Rig};
use super::session::{Progress, Session};
use super::store::{Answered, Ask, Failure, Store};
use crate::history::Op;

/// An allocation, and in which incarnation of its home it was made.
pub(super) type Allocated = (GlobalAddr, Incarnation);

/// What a thread is doing, beside using a store.
#[derive(Debug)]
pub(super) enum Doing {
    /// Nothing.
    Idle,
    /// Wants memory for a store: for its address first, which it has then.
    Allocating { root: Option<Allocated>, home: NodeId, asked: bool },
    /// Has the memory made a region.
    Beginning { store: Store, root: Allocated, zeroed: bool, asked: Option<u64> },
    /// Has a metadata server made.
    Founding { store: Store, asked: u64 },
    /// Wants to know what a store is made of.
    Opening { root: GlobalAddr, asked: u64 },
    /// Ends a store.
    Ending { store: Store, asked: Option<u64> },
    /// Gives memory back.
    Freeing { left: Vec<Allocated>, asked: bool },
}

/// A thread.
#[derive(Debug)]
pub(super) struct Thread<R: Rules> {
    pub(super) node: NodeId,
    /// To the allocator.
    pub(super) guest: usize,
    pub(super) doing: Doing,
    pub(super) session: Option<Session<R>>,
    /// Until then it has no core.
    pub(super) asleep: Nanos,
}

/// Of a thousand steps of a client, those behind which its thread loses its core; and for how long at most.
const SLEEPS: u32 = 10;
const LONGEST_SLEEP: Nanos = Nanos::from_micros(1500);

impl<R: Rules> Thread<R> {
    pub(super) const fn new(node: NodeId, guest: usize) -> Self {
        Self { node, guest, doing: Doing::Idle, session: None, asleep: Nanos::ZERO }
    }

    /// Its node has died.
    pub(super) fn dies(&mut self) {
        (self.doing, self.session) = (Doing::Idle, None);
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.doing, Doing::Idle) && self.session.as_ref().is_none_or(Session::is_idle)
    }

    /// When it wants to go on.
    pub(super) fn next_deadline(&self, calm: bool) -> Nanos {
        let session = self.session.as_ref().map_or(Nanos::MAX, Session::next_deadline);
        if calm || session == Nanos::MAX { session } else { session.max(self.asleep) }
    }

    /// Takes its next step; false if it waits.
    pub(super) fn step<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>) -> bool {
        let me = self.node;
        if rig.now() < self.asleep && !rig.bench.calm {
            return false;
        }
        match std::mem::replace(&mut self.doing, Doing::Idle) {
            Doing::Idle => {
                let acts = self.use_store(rig);
                if acts && self.session.is_some() && !rig.bench.calm && rig.bench.random.per_mille(SLEEPS) {
                    self.asleep = rig.now() + Nanos(rig.bench.random.below(LONGEST_SLEEP.0 as usize) as u64);
                }
                acts
            }
            Doing::Allocating { root, home, asked: false } => {
                let bytes = match root {
                    None => wire::chains::UNIT,
                    Some(_) => rig.plan().units as u64 * wire::chains::UNIT,
                };
                let whom = (me, self.guest);
                let asked = rig.blocks.alloc_for(rig.bench, whom, bytes, (home, Discipline::Chain));
                self.doing = Doing::Allocating { root, home, asked };
                asked
            }
            Doing::Beginning { store, root, zeroed, asked: None } => {
                let shape = Store::shape(store.units as usize);
                // Nothing that was written before is to be taken for an entry of this store.
                let call = Call::Begin { addr: store.memory, incarnation: store.of, shape, zeroed };
                match rig.ask(me, store.memory.home(), Ask::Region(call)) {
                    Ok(asked) => {
                        self.doing = Doing::Beginning { store, root, zeroed, asked: Some(asked) };
                    }
                    Err(_) => self.give_back(vec![(store.memory, store.of), root]),
                }
                true
            }
            Doing::Beginning { store, root, zeroed, asked: Some(asked) } => {
                match rig.common.answer(asked) {
                    None => {
                        self.doing = Doing::Beginning { store, root, zeroed, asked: Some(asked) };
                        return false;
                    }
                    Some(Ok(Answered::Region(key))) => {
                        let store = Store { key, ..store };
                        match rig.ask(me, root.0.home(), Ask::Serve(store)) {
                            Ok(asked) => self.doing = Doing::Founding { store, asked },
                            Err(_) => self.give_back(vec![(store.memory, store.of), root]),
                        }
                    }
                    Some(Err(Failure::Refused(Refusal::Locked))) => {
                        self.doing = Doing::Beginning { store, root, zeroed, asked: None };
                    }
                    // Nobody has seen it.
                    Some(_) => self.give_back(vec![(store.memory, store.of), root]),
                }
                true
            }
            Doing::Founding { store, asked } => match rig.common.answer(asked) {
                None => {
                    self.doing = Doing::Founding { store, asked };
                    false
                }
                Some(Ok(Answered::Store(store))) => {
                    rig.common.public.push(store);
                    true
                }
                // There may be a server.
                Some(_) => {
                    self.doing = Doing::Ending { store, asked: None };
                    true
                }
            },
            Doing::Opening { root, asked } => match rig.common.answer(asked) {
                None => {
                    self.doing = Doing::Opening { root, asked };
                    false
                }
                Some(Ok(Answered::Store(store))) => {
                    let thread = rig.common.take_thread(me);
                    self.session = Some(Session::new(store, thread, rig.common));
                    rig.common.seen.clients += 1;
                    true
                }
                Some(_) => true,
            },
            Doing::Ending { store, asked } => self.end(rig, store, asked),
            Doing::Freeing { left, asked: false } => self.free(rig, left),
            doing @ (Doing::Allocating { .. } | Doing::Freeing { .. }) => {
                self.doing = doing;
                false
            }
        }
    }

    fn give_back(&mut self, left: Vec<Allocated>) {
        self.doing = Doing::Freeing { left, asked: false };
    }

    /// Uses its store, or another one, or makes one.
    fn use_store<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>) -> bool {
        let me = self.node;
        let plan = rig.plan();
        let Some(session) = &mut self.session else {
            return !rig.bench.calm && self.find_store(rig);
        };
        match session.step(rig, me) {
            Progress::Waits => false,
            Progress::Goes => true,
            Progress::Failed(why) => {
                let (store, thread) = (session.port.store, session.port.thread);
                rig.bench.note(None, || format!("a client of {store:?} at {me} has failed: {why:?}"));
                rig.common.free_thread(me, thread);
                self.session = None;
                self.is_over(rig, store);
                true
            }
            Progress::Idle if rig.bench.calm => {
                // Whatever was is read once more in the end.
                let key = session.last_reads;
                session.last_reads += 1;
                if key < plan.keys as u64 {
                    session.begin(rig.bench.now, rig.common, key, Op::Read { value: None });
                }
                key < plan.keys as u64
            }
            Progress::Idle => {
                let drawn = rig.bench.random.below(1000) as u32;
                let key = rig.bench.random.below(plan.keys) as u64;
                if drawn < plan.ends {
                    let (store, thread) = (session.port.store, session.port.thread);
                    rig.common.free_thread(me, thread);
                    self.session = None;
                    // One thread ends it.
                    if let Some(at) = rig.common.public.iter().position(|it| it.number == store.number) {
                        rig.common.public.remove(at);
                        rig.common.seen.ended += 1;
                        self.doing = Doing::Ending { store, asked: None };
                    }
                    return true;
                }
                let what = match drawn % 20 {
                    0 => Op::Delete,
                    1..=10 => Op::Insert { value: rig.common.truth.unique() },
                    _ => Op::Read { value: None },
                };
                session.begin(rig.bench.now, rig.common, key, what);
                true
            }
        }
    }

    /// A client of a store has failed: if the store is over, the first who finds out gives back what is left.
    fn is_over<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, store: Store) {
        if let Some(at) = rig.common.public.iter().position(|it| it.number == store.number) {
            rig.common.public.remove(at);
            rig.common.seen.lost += 1;
            self.doing = Doing::Ending { store, asked: None };
        }
    }

    fn find_store<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>) -> bool {
        let (me, stores) = (self.node, rig.common.public.len());
        let nodes = rig.bench.plan.nodes;
        if stores < rig.plan().stores && rig.bench.random.per_mille(200) {
            let home = NodeId(rig.bench.random.below(nodes) as u16);
            self.doing = Doing::Allocating { root: None, home, asked: false };
            return true;
        }
        if stores == 0 {
            return false;
        }
        let store = rig.common.public[rig.bench.random.below(stores)];
        let root = store.root;
        match rig.ask(me, root.home(), Ask::Describe(root)) {
            Ok(asked) => self.doing = Doing::Opening { root, asked },
            // It will not be there again.
            Err(_) if rig.incarnation_of(me, root.home()) != Some(store.incarnation) => {
                self.is_over(rig, store)
            }
            Err(_) => {}
        }
        true
    }

    fn end<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, store: Store, asked: Option<u64>) -> bool {
        let (me, root) = (self.node, store.root);
        let left = vec![(store.memory, store.of), (root, store.incarnation)];
        match asked {
            None if rig.incarnation_of(me, root.home()) != Some(store.incarnation) => self.give_back(left),
            None => match rig.ask(me, root.home(), Ask::End(store)) {
                Ok(number) => self.doing = Doing::Ending { store, asked: Some(number) },
                Err(_) => self.give_back(left),
            },
            Some(number) => match rig.common.answer(number) {
                None => {
                    self.doing = Doing::Ending { store, asked };
                    return false;
                }
                // Maybe it has ended.
                Some(Err(Failure::Broken)) => self.doing = Doing::Ending { store, asked: None },
                Some(_) => self.give_back(left),
            },
        }
        true
    }

    fn free<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, mut left: Vec<Allocated>) -> bool {
        // What was at a node that has died is gone.
        left.retain(|(addr, incarnation)| rig.bench.control.incarnation(addr.home()) == *incarnation);
        let Some((addr, _)) = left.first().copied() else { return true };
        let asked = rig.blocks.free_for(rig.bench, (self.node, self.guest), addr);
        self.doing = Doing::Freeing { left, asked };
        asked
    }

    /// What the allocator says.
    pub(super) fn on_told<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, outcome: Outcome) {
        let (guest, me) = (self.guest, self.node);
        rig.bench.note(None, || format!("guest {guest} of {me} is told {outcome:?} of {:?}", self.doing));
        match (std::mem::replace(&mut self.doing, Doing::Idle), outcome) {
            (
                Doing::Allocating { root, home, asked: true },
                Outcome::Allocated { addr, zeroed, incarnation },
            ) => {
                if !rig.bench.control.remembers(home, incarnation) {
                    return self.give_back(root.into_iter().collect());
                }
                match root {
                    None => {
                        let home = NodeId(rig.bench.random.below(rig.bench.plan.nodes) as u16);
                        self.doing =
                            Doing::Allocating { root: Some((addr, incarnation)), home, asked: false };
                    }
                    Some(root) => {
                        let store = Store {
                            number: rig.common.truth.unique(),
                            root: root.0,
                            incarnation: root.1,
                            memory: addr,
                            key: wire::roce::Key(0),
                            of: incarnation,
                            units: rig.plan().units as u32,
                        };
                        self.doing = Doing::Beginning { store, root, zeroed, asked: None };
                    }
                }
            }
            (Doing::Allocating { root, .. }, _) => self.give_back(root.into_iter().collect()),
            (Doing::Freeing { mut left, .. }, outcome) => {
                let (addr, _) = left.remove(0);
                match outcome {
                    Outcome::Freed => rig.common.seen.freed += 1,
                    // Its allocator, or its home, has died.
                    _ if rig.bench.control.has_lost_a_node() => {}
                    other => rig.common.truth.fails(|| format!("{me} frees {addr}, and is told {other:?}")),
                }
                self.give_back(left);
            }
            (doing, outcome) => {
                rig.common.truth.fails(|| format!("a thread that is {doing:?} is told {outcome:?}"));
            }
        }
    }
}
