//! One client of a store: one operation at a time, on the thread that wants it.
//!
//! What must always hold: an operation that fails because something is down has been the client's last, for nobody knows what
//! became of its slots; whatever else is said to have failed was not done.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chain::client::{Client, ClientConfig, Done, Effect, OpId, Request, Walk};
use chain::{Answer, Appended, Call, Outcome, Verb};
use wire::chains::{Class, ENTRY_HEAD};
use wire::{Nanos, Refusal};

use super::fabric::Fabric;
use super::pauses::{Pauses, TIMEOUT};
use super::port::{Aimed, Amount, Port, value_of};
use super::relay::BINDING;
use super::store::{Setup, Store};
use super::times;
use crate::actor::{Failure, ThreadContext};
use crate::config::Steering;

/// Slots that a client asks for at a time.
const SLOTS: u32 = 16;
/// Entries that an operation follows until it asks where the tail is: what it has asked for costs as much as two more. Where reads are
/// steered, the next one is sent to the tail as soon as that is acknowledged, and the metadata server knows no better.
const ASK_AFTER: u32 = 3;
const ASK_AFTER_STEERED: u32 = 16;
/// Other keys whose tails a client asks for where reads are steered, so that it can use them for long.
const MORE: u32 = 31;
/// Keys whose chains a client remembers.
const CURSORS: usize = 1 << 16;
/// READs and atomics in flight on a client's queue pair: a long READ is asked for in pieces.
const OUTSTANDING: u32 = 2;
/// Appends that are told together, and how long one of them waits for others.
const TOLD: usize = 8;
const UNTOLD: Nanos = Nanos::from_millis(2);
/// How late clients tell that are held up, or the metadata server finds out by itself.
const LATE: Nanos = Nanos::from_millis(250);

/// Where the next client's numbers of calls begin: not where those of a former client with its number have ended, whose last answer the
/// metadata server still has.
static FIRST_CALL: AtomicU32 = AtomicU32::new(1);

/// What a client is to do.
#[derive(Debug)]
pub enum What<'a> {
    /// Read the value into this.
    Get(&'a mut Vec<u8>),
    /// Store this.
    Put(&'a [u8]),
    /// Remove it.
    Delete,
}

/// What it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ran {
    /// How it ended: a value, nothing, stored or removed, no memory.
    pub done: Done,
    /// Round trips that it took.
    pub trips: u32,
}

/// A client, in one thread's hands.
pub struct Session {
    port: Port,
    machine: Client,
    ops: u64,
    calls: u32,
    /// Appends that the metadata server has not been told of.
    untold: Vec<Appended>,
    untold_since: Nanos,
    landing: Box<[u64]>,
    failed: Option<Failure>,
}

impl Session {
    /// A client on a rack whose switch steers like that.
    pub(super) fn new(store: Arc<Store>, thread: u16, steering: Option<Steering>) -> Self {
        let Setup { lease, quarantine, copies, homes, .. } = &store.setup;
        let is_steered = steering.is_some() && store.setup.may_be_steered();
        let config = ClientConfig { lease: *lease, slots: SLOTS, cursors: CURSORS };
        let reads = homes.len() == 1 && steering.is_some_and(|how| how.reads);
        let ask_after = if reads { ASK_AFTER_STEERED } else { ASK_AFTER };
        let mut machine =
            Client::new(config).walking(Walk { ask_after, ..Walk::default() }).with_copies(*copies);
        if homes.len() == 1 {
            // One queue pair, whose requests are executed in their order, if the switch leaves them there.
            if BINDING.lets_clients_swap_at_once() {
                machine = machine.swapping_at_once();
            }
        }
        if is_steered {
            machine.expect_steered_appends(times::old_cursors(*quarantine));
        }
        if reads {
            machine.expect_steered_reads();
            machine = machine.asking_for_more(MORE);
        }
        Self {
            port: Port::new(store, thread, OUTSTANDING),
            machine,
            ops: 0,
            calls: FIRST_CALL.fetch_add(0x9e37_79b9, Ordering::Relaxed),
            untold: Vec::new(),
            untold_since: Nanos::ZERO,
            landing: Box::default(),
            failed: None,
        }
    }

    /// Whose client it is.
    pub fn store(&self) -> &Arc<Store> {
        &self.port.store
    }

    pub(super) const fn thread(&self) -> u16 {
        self.port.thread
    }

    pub(super) fn counts_for(&self, store: &Store) -> bool {
        self.failed.is_none() && self.port.store.is(store)
    }

    /// Does an operation.
    pub(crate) fn run<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        key: u64,
        what: What<'_>,
    ) -> Result<Ran, Failure> {
        if let Some(why) = self.failed {
            return Err(why);
        }
        let ran = self.until_done(fabric, context, key, what);
        self.failed = ran.err();
        if !self.untold.is_empty()
            && (self.untold.len() >= TOLD || fabric.now().saturating_sub(self.untold_since) >= UNTOLD)
        {
            self.tell(fabric, context);
        }
        ran
    }

    fn until_done<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        key: u64,
        what: What<'_>,
    ) -> Result<Ran, Failure> {
        let (request, value): (_, &[u8]) = match &what {
            What::Get(_) => (Request::Get, &[]),
            What::Put(value) => (Request::Put(value.len() as u32), value),
            What::Delete => (Request::Delete, &[]),
        };
        let began = fabric.now();
        // What rests comes back; others may have had it by then, or have told late that it may rest.
        let room = self.store().setup.quarantine + self.store().setup.quarantine + LATE;
        let mut trips = 0;
        loop {
            let (done, took) = self.once(fabric, context, key, request, value)?;
            trips += took;
            let waited = fabric.now().saturating_sub(began);
            match done {
                // Its connection broke, and nothing was done.
                Done::Failed if waited < TIMEOUT => {}
                Done::Failed => return Err(Failure::Broken),
                Done::NoMemory if waited < room && Class::of_value(value.len() as u32).is_some() => {
                    self.tell(fabric, context);
                    // Each time that it asks, all chains are walked.
                    let until = fabric.now() + Nanos(self.store().setup.quarantine.0 / 8);
                    while fabric.now() < until {
                        fabric.pass_time(context);
                    }
                }
                done => {
                    if let (Done::Value(len), What::Get(into)) = (done, what) {
                        into.clear();
                        into.extend_from_slice(value_of(&self.landing, len));
                    }
                    return Ok(Ran { done, trips });
                }
            }
        }
    }

    /// Does it once.
    fn once<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        key: u64,
        request: Request,
        value: &[u8],
    ) -> Result<(Done, u32), Failure> {
        self.ops += 1;
        let (op, mut out) = (OpId(self.ops), Vec::new());
        self.machine.begin(fabric.now(), op, key, request, &mut out);
        let mut effects = VecDeque::from(std::mem::take(&mut out));
        loop {
            match effects.pop_front().expect("an operation goes on until it is done") {
                Effect::Verb(id, replica, verb) if matches!(effects.front(), Some(Effect::Verb(..))) => {
                    let more = effects.iter().take_while(|effect| matches!(effect, Effect::Verb(..))).count();
                    let mut verbs = vec![(replica, verb)];
                    verbs.extend(effects.drain(..more).map(|effect| match effect {
                        Effect::Verb(_, replica, verb) => (replica, verb),
                        _ => unreachable!("those are verbs"),
                    }));
                    for outcome in self.together(fabric, context, &verbs, value)? {
                        self.machine.on_outcome(fabric.now(), id, outcome, &mut out);
                    }
                }
                Effect::Verb(id, replica, verb) => {
                    let Self { port, landing, .. } = self;
                    let amount = match (verb, request) {
                        // What an append reads on its way is what follows.
                        (Verb::Read(_), Request::Put(_) | Request::Delete) => Amount::Heads,
                        _ => Amount::Entries(value),
                    };
                    let outcome = port.execute(fabric, context, (replica, verb), amount, landing)?;
                    self.machine.on_outcome(fabric.now(), id, outcome, &mut out);
                }
                Effect::Call(id, call) => {
                    self.tell(fabric, context);
                    let answer = self.call(fabric, context, call)?;
                    self.machine.on_answer(fabric.now(), id, Some(answer), &mut out);
                }
                Effect::Notice(append) => {
                    if self.untold.is_empty() {
                        self.untold_since = fabric.now();
                    }
                    self.untold.push(append);
                }
                Effect::Done { done, trips, .. } => return Ok((done, trips)),
            }
            effects.extend(out.drain(..));
        }
    }

    /// Both steps of an append, or WRITEs to copies: what becomes of each.
    fn together<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        verbs: &[Aimed],
        value: &[u8],
    ) -> Result<Vec<Outcome>, Failure> {
        match *verbs {
            [(_, write), (_, swap @ Verb::CompareSwap { .. })] => {
                self.port.execute_both(fabric, context, (write, swap), value).map(Vec::from)
            }
            ref writes => self.port.execute_all(fabric, context, writes, value),
        }
    }

    /// Asks until there is an answer: the same call, however often.
    fn call<F: Fabric>(
        &mut self,
        fabric: &F,
        context: &mut ThreadContext,
        call: Call,
    ) -> Result<Answer, Failure> {
        self.calls = self.calls.wrapping_add(1);
        let mut pauses = Pauses::new(fabric.now());
        loop {
            let (store, thread) = (&self.port.store, self.port.thread);
            match fabric.call(context, store, thread, self.calls, call) {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) | Err(Failure::Broken) => {
                    let until = pauses.after(fabric.now()).ok_or(Failure::Broken)?;
                    while fabric.now() < until {
                        fabric.pass_time(context);
                    }
                }
                Err(why) => {
                    let leader = self.port.store.server(|node| fabric.incarnation_of(node));
                    if why != Failure::Refused(Refusal::NodeDown) || leader.is_some() {
                        return Err(why);
                    }
                    // All that were servers are dead. Others may have become some.
                    self.port.learn(fabric, context)?;
                }
            }
        }
    }

    fn tell<F: Fabric>(&mut self, fabric: &F, context: &mut ThreadContext) {
        if !self.untold.is_empty() {
            fabric.tell(context, &self.port.store, self.port.thread, &self.untold);
            self.untold.clear();
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { port, ops, failed, .. } = self;
        f.debug_struct("Session")
            .field("store", &port.store.addr)
            .field("thread", &port.thread)
            .field("operations", ops)
            .field("failed", failed)
            .finish_non_exhaustive()
    }
}

/// The longest value.
pub const LONGEST_VALUE: usize = (1 << 20) as usize;
const _: () = assert!(LONGEST_VALUE + ENTRY_HEAD as usize <= 2 << 20);
