//! A store's metadata server: the machine, what it wants of memory, who has died, and what a new switch is told.
//!
//! As live racks have it. What must always hold: a client's call is executed once, however often it comes; a dead client is swept
//! after memory has been told to execute nothing of it any more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chain::metadata::{CallId, ClientId, Effect, Metadata, MetadataConfig};
use chain::{Answer, Appended, Call, Verb};
use switch::relay::Introduction;
use wire::chains::ENTRY_HEAD;
use wire::{Incarnation, Nanos, NodeId, Refusal, Rules, SwitchEpoch};

use super::port::{AGAIN, InFlight, Port};
use super::rig::{Packets, Rig, whose};
use super::store::{Answered, Ask, Failure, Result, Store};
use super::{ChainPlan, times};
use crate::regions::Payload;

/// How long an append waits for its predecessor until its chain is walked.
const TIMEOUT: Nanos = Nanos::from_micros(60);
/// Keys whose tails a client is told beside the one that it asks for.
const MOST_TAILS: u32 = 31;
/// Verbs of walks in flight at a time.
const AT_A_TIME: usize = 4;

/// What the switch has heard of, and what follows.
#[derive(Clone, Copy, Debug)]
enum Then {
    Sweep(NodeId, Incarnation),
    Look(u64),
    BeGone,
}

/// What it is at.
#[derive(Debug)]
enum Task {
    Nothing,
    Verbs(Vec<u64>, InFlight),
    /// Memory is told that an incarnation is over.
    Fence {
        node: NodeId,
        incarnation: Incarnation,
        asked: Option<u64>,
    },
    /// The switch is told something, and told again.
    Say {
        said: Introduction,
        again: Nanos,
        then: Then,
    },
}

/// A metadata server.
#[derive(Debug)]
pub(super) struct Server<R: Rules> {
    pub(super) store: Store,
    machine: Metadata<R>,
    /// Each client's last call, and its answer.
    clients: BTreeMap<ClientId, (u32, Option<Answer>)>,
    verbs: VecDeque<(u64, Verb)>,
    /// Keys that were written to.
    warm: BTreeSet<u64>,
    /// Those whose tails the switch is to be told, of what it has heard under this number, when nothing is walked any more.
    looked_for: Option<(u64, Vec<u64>)>,
    port: Port,
    epoch: SwitchEpoch,
    task: Task,
    failed: Option<Failure>,
    has_ended: bool,
    is_gone: bool,
    pub(super) swept: u64,
}

impl<R: Rules> Server<R> {
    pub(super) fn new(rules: R, store: Store, thread: u16, epoch: SwitchEpoch, plan: &ChainPlan) -> Self {
        let config = MetadataConfig {
            units: store.units,
            quarantine: times::quarantine(plan),
            timeout: TIMEOUT,
            decide_after: times::decide_after(plan),
        };
        Self {
            store,
            machine: Metadata::with_rules(rules, config),
            clients: BTreeMap::new(),
            verbs: VecDeque::new(),
            warm: BTreeSet::new(),
            looked_for: None,
            port: Port::new(store, thread, true),
            epoch,
            task: Task::Nothing,
            failed: None,
            has_ended: false,
            is_gone: false,
            swept: 0,
        }
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub(super) const fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(super) const fn thread(&self) -> u16 {
        self.port.thread
    }

    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// True if it does nothing, and waits for nobody but clients and time.
    pub(super) fn is_idle(&self) -> bool {
        let is_over = self.failed.is_some() || self.verbs.is_empty() && self.looked_for.is_none();
        matches!(self.task, Task::Nothing) && is_over && !self.has_ended
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        match &self.task {
            Task::Nothing if self.failed.is_none() => self.machine.next_deadline(),
            Task::Say { again, .. } => *again,
            Task::Verbs(..) => self.port.next_deadline(),
            _ => Nanos::MAX,
        }
    }

    pub(super) fn invariants(&self) {
        self.machine.invariants();
    }

    /// A client's call; refused as locked, if there is no answer yet.
    pub(super) fn call(&mut self, now: Nanos, client: ClientId, number: u32, call: Call) -> Result<Answered> {
        if let Some(why) = self.failed {
            return Err(why);
        }
        let is_new = self.clients.get(&client).is_none_or(|(last, _)| *last != number);
        if is_new {
            let call = match call {
                Call::FindSome { key, more } => Call::FindSome { key, more: more.min(MOST_TAILS) },
                call => call,
            };
            self.clients.insert(client, (number, None));
            let mut effects = Vec::new();
            let id = CallId { client, number: number.into() };
            self.machine.on_call(now, id, call, &mut effects);
            self.apply(effects);
        }
        let answer = self.clients[&client].1.clone();
        answer.map(Answered::Answer).ok_or(Failure::Refused(Refusal::Locked))
    }

    /// A client tells what it has appended.
    pub(super) fn told(&mut self, now: Nanos, client: ClientId, appends: &[Appended]) {
        for append in appends {
            self.warm.insert(append.key);
            let mut effects = Vec::new();
            self.machine.on_notice(now, client, *append, &mut effects);
            self.apply(effects);
        }
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Answer(id, answer) => {
                    if let Some((number, known)) = self.clients.get_mut(&id.client)
                        && u64::from(*number) == id.number
                    {
                        *known = Some(answer);
                    }
                }
                Effect::Verb(key, _, verb) => self.verbs.push_back((key, verb)),
            }
        }
    }

    /// Takes its next step; false if it waits.
    pub(super) fn step<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, me: NodeId) -> bool {
        match std::mem::replace(&mut self.task, Task::Nothing) {
            Task::Nothing => self.begin(rig, me),
            Task::Verbs(keys, mut in_flight) => match in_flight.go_on(rig, me, &mut self.port) {
                Ok(None) => {
                    self.task = Task::Verbs(keys, in_flight);
                    false
                }
                // Its memory may have been given back since then, and what was read is nobody's entry.
                Ok(Some(_)) if self.has_ended => true,
                Ok(Some(outcomes)) => {
                    for (key, (outcome, _)) in keys.iter().zip(outcomes) {
                        let mut effects = Vec::new();
                        self.machine.on_outcome(rig.now(), *key, outcome, &mut effects);
                        self.apply(effects);
                    }
                    true
                }
                Err(why) => {
                    self.failed = Some(why);
                    true
                }
            },
            Task::Fence { node, incarnation, asked } => self.fence(rig, me, (node, incarnation), asked),
            // A switch of a later epoch does not listen: it looks anew.
            Task::Say { said, .. } if said.switch().is_some_and(|named| named != rig.epoch(me)) => true,
            Task::Say { said, again, then } => {
                if rig.common.is_heard(me, said.number()) {
                    self.is_heard(rig.now(), then);
                    return true;
                }
                let is_due = rig.now() >= again;
                if is_due {
                    rig.say(me, said);
                }
                let again = if is_due { rig.now() + AGAIN } else { again };
                self.task = Task::Say { said, again, then };
                is_due
            }
        }
    }

    /// Looks what there is to do.
    fn begin<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, me: NodeId) -> bool {
        let (steered, now) = (rig.plan().is_steered(), rig.now());
        let Store { memory, of, key, .. } = self.store;
        let (home, low) = (memory.home(), of.0 as u16);
        let say = |said, then| Task::Say { said, again: Nanos::ZERO, then };
        if self.has_ended {
            if steered {
                let number = rig.next_number(me);
                let said = Introduction::Over { memory: home, of: low, region: key, number };
                self.task = say(said, Then::BeGone);
            } else {
                self.is_gone = true;
            }
            return true;
        }
        if self.epoch != rig.epoch(me) {
            self.epoch = rig.epoch(me);
            if steered && rig.plan().preload > 0 {
                let number = rig.next_number(me);
                let switch = self.epoch;
                let said = Introduction::Scan { memory: home, of: low, region: key, switch, number };
                self.task = say(said, Then::Look(number));
            }
            return true;
        }
        let incarnations: BTreeSet<(NodeId, Incarnation)> =
            self.clients.keys().map(|client| whose(*client)).collect();
        if let Some((node, incarnation)) = incarnations
            .into_iter()
            .find(|(node, incarnation)| rig.incarnation_of(me, *node) != Some(*incarnation))
            && self.failed.is_none()
        {
            self.task = Task::Fence { node, incarnation, asked: None };
            return true;
        }
        if rig.incarnation_of(me, home) != Some(of) {
            let is_new = self.failed.is_none();
            self.failed = Some(Failure::DOWN);
            return is_new;
        }
        if self.failed.is_some() {
            return false;
        }
        let mut effects = Vec::new();
        self.machine.on_deadline(now, &mut effects);
        self.apply(effects);
        let some = self.verbs.len().min(AT_A_TIME);
        if some == 0 {
            return self.preload(rig, me);
        }
        let (keys, verbs) =
            self.verbs.drain(..some).map(|(key, verb)| (key, (verb, Payload::default()))).unzip();
        self.task = Task::Verbs(keys, InFlight::new(verbs, ENTRY_HEAD));
        true
    }

    /// Tells the switch the tails that were looked for.
    fn preload<M: Packets>(&mut self, rig: &mut Rig<'_, R, M>, me: NodeId) -> bool {
        let Some((number, keys)) = self.looked_for.take() else { return false };
        for key in keys {
            if let Some((at, version)) = self.machine.tail(key) {
                rig.say(me, Introduction::Tail { key, at, version, number });
            }
        }
        true
    }

    fn fence<M: Packets>(
        &mut self,
        rig: &mut Rig<'_, R, M>,
        me: NodeId,
        (node, incarnation): (NodeId, Incarnation),
        asked: Option<u64>,
    ) -> bool {
        let (memory, its) = (self.store.memory.home(), self.store.of);
        let is_dead = |rig: &Rig<'_, R, M>| rig.incarnation_of(me, memory) != Some(its);
        let answer = match asked {
            Some(number) => match rig.common.answer(number) {
                None => {
                    self.task = Task::Fence { node, incarnation, asked };
                    return false;
                }
                Some(answer) => answer.map(drop),
            },
            // It executes nothing any more, of nobody.
            None if is_dead(rig) => Ok(()),
            None => match rig.ask(me, memory, Ask::Fence { node, incarnation }) {
                Ok(number) => {
                    self.task = Task::Fence { node, incarnation, asked: Some(number) };
                    return true;
                }
                Err(why) => Err(why),
            },
        };
        match answer {
            Ok(()) if is_dead(rig) => self.failed = Some(Failure::DOWN),
            Ok(()) if rig.plan().is_steered() => {
                let said = Introduction::End { node, incarnation, number: rig.next_number(me) };
                self.task = Task::Say { said, again: Nanos::ZERO, then: Then::Sweep(node, incarnation) };
            }
            Ok(()) => self.sweep(rig.now(), node, incarnation),
            Err(Failure::Broken) => self.task = Task::Fence { node, incarnation, asked: None },
            Err(why) => self.failed = Some(why),
        }
        true
    }

    fn is_heard(&mut self, now: Nanos, then: Then) {
        match then {
            Then::BeGone => self.is_gone = true,
            Then::Sweep(node, incarnation) => self.sweep(now, node, incarnation),
            Then::Look(number) => {
                let keys: Vec<u64> = self.warm.iter().copied().collect();
                let mut effects = Vec::new();
                keys.iter().for_each(|key| self.machine.scan(*key, &mut effects));
                self.apply(effects);
                self.looked_for = Some((number, keys));
            }
        }
    }

    /// That incarnation is over, and memory executes nothing of it any more.
    fn sweep(&mut self, now: Nanos, node: NodeId, incarnation: Incarnation) {
        let its: Vec<ClientId> =
            self.clients.keys().copied().filter(|client| whose(*client) == (node, incarnation)).collect();
        for client in its {
            self.clients.remove(&client);
            self.swept += 1;
            let mut effects = Vec::new();
            self.machine.on_death(now, client, &mut effects);
            self.apply(effects);
        }
    }
}
