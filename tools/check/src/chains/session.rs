//! One client of a store: one operation at a time.
//!
//! As live racks drive it. What must always hold: an operation that fails because something is down has been the client's last, for
//! nobody knows what became of its slots; whatever else is said to have failed was not done.

use std::collections::VecDeque;

use chain::client::{Client, ClientConfig, Done, Effect, OpId, Request, Walk};
use chain::{Appended, Call, Outcome, Verb};
use switch::chains::Binding;
use wire::chains::ENTRY_HEAD;
use wire::{Nanos, NodeId, Rules};

use super::port::{InFlight, Port};
use super::rig::{Common, Packets, Rig};
use super::store::{Answered, Ask, Failure, Result, Store};
use super::{ChainPlan, times};
use crate::history::Op;
use crate::regions::Payload;

/// Slots that a client asks for at a time.
const SLOTS: u32 = 2;
/// Entries that an operation follows until it asks where the tail is.
const ASK_AFTER: u32 = 3;
const ASK_AFTER_STEERED: u32 = 16;
/// Other keys whose tails a client asks for where reads are steered.
const MORE: u32 = 2;
/// Keys whose chains a client remembers.
const CURSORS: usize = 2;
/// Appends that are told together, and how long one of them waits for others.
const TOLD: usize = 3;
const UNTOLD: Nanos = Nanos::from_micros(100);
/// The first pause of a client that is to ask again, and the longest.
const FIRST_PAUSE: Nanos = Nanos::from_micros(5);
const LONGEST_PAUSE: Nanos = Nanos::from_micros(200);
/// How often an operation is tried that has failed and was not done.
const TRIES: u32 = 4;
/// Words of the longest value: its entry fills a unit.
const MOST_WORDS: usize = 5;
/// How its program binds words to queue pairs.
pub(super) const BINDING: Binding = Binding::NONE;

/// What an operation waits for.
#[derive(Debug)]
enum Wait {
    Nothing,
    Verbs(OpId, InFlight),
    /// An answer; or until it asks again.
    Call {
        id: OpId,
        call: Call,
        number: u32,
        asked: Option<u64>,
        again: Nanos,
        pause: Nanos,
    },
    /// Until it tries again.
    Again(Nanos),
}

#[derive(Debug)]
struct Running {
    at: usize,
    key: u64,
    request: Request,
    value: u64,
    /// What was read last.
    landing: Payload,
    effects: VecDeque<Effect>,
    wait: Wait,
    tries: u32,
}

/// How far a client has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// It waits.
    Waits,
    /// It has done something.
    Goes,
    /// It has nothing to do.
    Idle,
    /// That was its last operation.
    Failed(Failure),
}

/// A client.
#[derive(Debug)]
pub(super) struct Session<R: Rules> {
    /// For whoever looks from outside.
    client: u64,
    pub(super) port: Port,
    machine: Client<R>,
    ops: u64,
    calls: u32,
    /// Appends that the metadata server has not been told of.
    untold: Vec<Appended>,
    untold_since: Nanos,
    running: Option<Running>,
    /// Keys that it has read since the faults ended.
    pub(super) last_reads: u64,
}

impl<R: Rules> Session<R> {
    pub(super) fn new(store: Store, thread: u16, common: &mut Common<R>) -> Self {
        let plan: ChainPlan = common.plan;
        let config = ClientConfig { lease: times::LEASE, slots: SLOTS, cursors: CURSORS };
        let reads = plan.steering > 1;
        let ask_after = if reads { ASK_AFTER_STEERED } else { ASK_AFTER };
        let mut machine =
            Client::with_rules(common.rules, config).walking(Walk { ask_after, ..Walk::default() });
        // One queue pair, whose requests are executed in their order, if the switch leaves them there.
        if BINDING.lets_clients_swap_at_once() {
            machine = machine.swapping_at_once();
        }
        if plan.is_steered() {
            machine.expect_steered_appends(times::old_cursors(&plan));
        }
        if reads {
            machine.expect_steered_reads();
            machine = machine.asking_for_more(MORE);
        }
        common.first_call = common.first_call.wrapping_add(0x9e37_79b9);
        Self {
            client: common.truth.unique(),
            port: Port::new(store, thread, false),
            machine,
            ops: 0,
            calls: common.first_call,
            untold: Vec::new(),
            untold_since: Nanos::ZERO,
            running: None,
            last_reads: 0,
        }
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        match &self.running {
            Some(Running { wait: Wait::Call { asked: None, again, .. } | Wait::Again(again), .. }) => *again,
            Some(Running { wait: Wait::Verbs(..), .. }) => self.port.next_deadline(),
            _ => Nanos::MAX,
        }
    }

    /// Begins an operation.
    pub(super) fn begin(&mut self, now: Nanos, common: &mut Common<R>, key: u64, what: Op) {
        let at = common.truth.begins(now, self.client, (self.port.store.number, key), what);
        let (request, value) = match what {
            Op::Insert { value } => (Request::Put((1 + value as u32 % MOST_WORDS as u32) * 8), value),
            Op::Delete => (Request::Delete, 0),
            _ => (Request::Get, 0),
        };
        let running = Running {
            at,
            key,
            request,
            value,
            landing: Payload::default(),
            effects: VecDeque::new(),
            wait: Wait::Again(now),
            tries: 0,
        };
        self.running = Some(running);
    }

    /// Takes its next step.
    pub(super) fn step<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, me: NodeId) -> Progress {
        match self.go_on(rig, me) {
            Ok(progress) => progress,
            Err(why) => {
                rig.common.seen.indeterminate += 1;
                Progress::Failed(why)
            }
        }
    }

    fn go_on<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, me: NodeId) -> Result<Progress> {
        let Some(running) = &mut self.running else { return Ok(Progress::Idle) };
        let now = rig.now();
        let mut out = Vec::new();
        match &mut running.wait {
            Wait::Again(until) if now < *until => return Ok(Progress::Waits),
            Wait::Again(_) => {
                self.ops += 1;
                self.machine.begin(now, OpId(self.ops), running.key, running.request, &mut out);
            }
            Wait::Nothing => {}
            Wait::Verbs(id, in_flight) => {
                let Some(outcomes) = in_flight.go_on(rig, me, &mut self.port)? else {
                    return Ok(Progress::Waits);
                };
                let now = rig.now();
                // If the second step's outcome is not known, that of the first one is not either.
                let is_unknown = outcomes.iter().any(|(outcome, _)| *outcome == Outcome::Unknown);
                for (outcome, payload) in outcomes {
                    if let Outcome::Read(_) = outcome {
                        running.landing = payload;
                    }
                    let outcome = if is_unknown { Outcome::Unknown } else { outcome };
                    self.machine.on_outcome(now, *id, outcome, &mut out);
                }
            }
            Wait::Call { asked: None, again, .. } if now < *again => return Ok(Progress::Waits),
            Wait::Call { call, number, asked: asked @ None, again, .. } => {
                let Store { root, incarnation, .. } = self.port.store;
                if rig.incarnation_of(me, root.home()) != Some(incarnation) {
                    return Err(Failure::DOWN);
                }
                *again = Nanos::MAX;
                let Port { thread, store, .. } = self.port;
                let ask = Ask::Do { of: store, thread, number: *number, call: *call };
                *asked = Some(rig.ask(me, root.home(), ask)?);
                return Ok(Progress::Goes);
            }
            Wait::Call { id, asked: asked @ Some(_), again, pause, .. } => {
                let Some(answer) = rig.common.answer(asked.expect("it was looked at")) else {
                    return Ok(Progress::Waits);
                };
                match answer {
                    Ok(Answered::Answer(answer)) => {
                        self.machine.on_answer(now, *id, Some(answer), &mut out);
                    }
                    Ok(other) => panic!("a call was answered {other:?}"),
                    Err(Failure::Broken | Failure::Refused(wire::Refusal::Locked)) => {
                        (*asked, *again) = (None, now + *pause);
                        *pause = Nanos(2 * pause.0).min(LONGEST_PAUSE);
                        return Ok(Progress::Goes);
                    }
                    Err(why) => return Err(why),
                }
            }
        }
        running.wait = Wait::Nothing;
        running.effects.extend(out);
        self.next_effect(rig, me);
        Ok(Progress::Goes)
    }

    fn next_effect<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, me: NodeId) {
        let running = self.running.as_mut().expect("it runs");
        let now = rig.now();
        // Those between outcomes of verbs that were posted together may be none.
        match running.effects.pop_front() {
            None => {}
            Some(Effect::Verb(id, _, verb)) => {
                let mut verbs = vec![verb];
                while let Some(Effect::Verb(_, _, verb)) = running.effects.front() {
                    verbs.push(*verb);
                    running.effects.pop_front();
                }
                let len = match running.request {
                    Request::Get => wire::chains::UNIT as u32,
                    // What an append reads on its way is what follows.
                    _ => ENTRY_HEAD,
                };
                let verbs = verbs.into_iter().map(|verb| (verb, entry(&verb, running.value))).collect();
                running.wait = Wait::Verbs(id, InFlight::new(verbs, len));
            }
            Some(Effect::Call(id, call)) => {
                self.calls = self.calls.wrapping_add(1);
                let (number, pause) = (self.calls, FIRST_PAUSE);
                running.wait = Wait::Call { id, call, number, asked: None, again: now, pause };
                self.tell(rig, me);
            }
            Some(Effect::Notice(append)) => {
                if self.untold.is_empty() {
                    self.untold_since = now;
                }
                self.untold.push(append);
            }
            Some(Effect::Done { done, .. }) => self.done(rig, me, done),
        }
    }

    fn done<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, me: NodeId, done: Done) {
        let running = self.running.as_mut().expect("it runs");
        let (now, calm) = (rig.now(), rig.bench.calm);
        let (truth, seen) = (&mut rig.common.truth, &mut rig.common.seen);
        match (running.request, done) {
            (Request::Get, Done::Value(len)) => {
                seen.gets += 1;
                let words = running.landing.words();
                let value = words.get(3..3 + len as usize / 8).filter(|words| !words.is_empty());
                match value {
                    Some(value) => truth.reads(now, running.at, Some(value)),
                    None => truth.fails(|| format!("a get returns {len} bytes, and has read {words:?}")),
                }
            }
            (Request::Get, Done::Nothing) => {
                seen.gets += 1;
                truth.reads(now, running.at, None);
            }
            (Request::Put(_), Done::Appended) => {
                seen.puts += 1;
                truth.ends(now, running.at);
            }
            (Request::Delete, Done::Appended | Done::Nothing) => {
                seen.deletes += 1;
                truth.ends(now, running.at);
            }
            // Its connection broke, and nothing was done.
            (_, Done::Failed) if running.tries < TRIES => {
                running.tries += 1;
                running.wait = Wait::Again(now);
                seen.failed += 1;
                return;
            }
            (_, Done::NoMemory) if running.tries < TRIES && !calm => {
                running.tries += 1;
                running.wait = Wait::Again(now + Nanos(times::quarantine(&rig.common.plan).0 / 8));
                self.tell(rig, me);
                return;
            }
            (_, Done::Failed | Done::NoMemory) => {
                seen.no_memory += u64::from(done == Done::NoMemory);
                truth.was_not_done(running.at);
            }
            (request, done) => panic!("{request:?} ended with {done:?}"),
        }
        self.running = None;
        if self.untold.len() >= TOLD || now.saturating_sub(self.untold_since) >= UNTOLD {
            self.tell(rig, me);
        }
    }

    fn tell<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, me: NodeId) {
        if !self.untold.is_empty() {
            let Port { thread, store, .. } = self.port;
            let ask = Ask::Told { of: store, thread, appends: std::mem::take(&mut self.untold) };
            // If the metadata server is down, nobody misses it.
            let _ = rig.ask(me, store.root.home(), ask);
        }
    }
}

/// An entry as it travels.
fn entry(verb: &Verb, value: u64) -> Payload {
    let Verb::Write(_, head) = verb else { return Payload::default() };
    let mut words = head.to_words().to_vec();
    words.resize(3 + head.len as usize / 8, value);
    Payload::of(&words)
}
