//! The command's side: rounds, and what is done to processes in them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rackmem::dataplane::network::Network;
use random::Dice;
use serde::Serialize;

use super::events::LOOK_EVERY;
use super::judge::{Values, judge};
use super::log::{self, Did, Entry};
use super::node::{Event, Order, Task, Word};
use super::waiting::Waiting;
use super::{Args, Harm};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::place::{Assignment, RackSpec, Steers};
use cli::processes::rendezvous::RuntimeDir;
use cli::processes::{Rendezvous, Workers};
use cli::ycsb::Directory;

/// The switch is the first child.
pub(super) const SWITCH: usize = 0;

/// A soak in flight.
pub(super) struct Soak<'a> {
    pub(super) args: &'a Args,
    pub(super) interrupt: &'a Interrupt,
    pub(super) workers: Workers<Order, Event>,
    pub(super) tasks: Vec<Task>,
    pub(super) histories: PathBuf,
    /// Whether each place is part of the rack, as far as it has said.
    pub(super) joined: Vec<bool>,
    network: Option<Arc<Network>>,
    pub(super) words: Vec<Word>,
    /// Words that are being allocated: by their places among the words, the new key, and who was asked.
    pub(super) wanted: BTreeMap<usize, (u64, usize)>,
    pub(super) keys: u64,
    pub(super) incarnations: u64,
    /// Places that began another incarnation in this round. Their memory is not allocated from before the next one: a client
    /// may still be using an address of the former incarnation, and that would be another word's.
    pub(super) reborn: Vec<usize>,
    /// The first client of each place as it is now, and the clients of nodes that have died in this round.
    pub(super) first_clients: Vec<u64>,
    pub(super) died: Vec<Range<u64>>,
    /// What somebody has answered: all copies are there, and how many stores it looks after.
    pub(super) has_copies: Option<(bool, u64)>,
    pub(super) random: Dice,
    /// What the words held at the end of the last round.
    pub(super) values: Values,
}

/// What a round has shown.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    round: u64,
    harm: Harm,
    victim: String,
    operations: u64,
    unknown: u64,
    words_lost: u64,
    worst_wait_ms: u64,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let harm = match self.harm {
            Harm::Switch | Harm::Node => "killed",
            Harm::Pause => "stopped for too long",
            Harm::Cut => "cut off",
        };
        write!(
            f,
            "round {}: {} {harm}: {} operations, linearizable; {} never returned, {} words died, longest wait {} ms",
            self.round, self.victim, self.operations, self.unknown, self.words_lost, self.worst_wait_ms
        )
    }
}

impl<'a> Soak<'a> {
    pub(super) fn start(args: &'a Args, interrupt: &'a Interrupt) -> Result<Self, Fault> {
        let runtime = RuntimeDir::new()?;
        let nodes = usize::from(args.nodes);
        let spec = RackSpec {
            nodes,
            block_bytes: 4096,
            cache: 1 << 20,
            memory: if args.chains { 256 << 20 } else { 16 << 20 },
            copies: args.copies.into(),
            switch_entries: 4096,
            directory: Directory::Auto,
            queue: false,
            peek: true,
            lock_copies: RackSpec::LOCK_COPIES,
            lock_region: RackSpec::LOCK_REGION,
            own_first: 0,
            steering: args.steered.then_some(Steers { keys: usize::MAX, reads: false, preload: false }),
            seed: args.seed,
        };
        let mut rendezvous = Rendezvous::new(args.transport, nodes, &runtime)?;
        if let Some(keep) = &args.keep {
            rendezvous = rendezvous.with_kept(keep.clone());
        }
        let histories = runtime.path().to_owned();
        let assignments = Assignment::all(&spec, &rendezvous);
        let named: Vec<(String, Task)> = (0..)
            .zip(assignments)
            .map(|(at, (name, assignment))| {
                let task = Task {
                    assignment,
                    threads: args.threads,
                    first_client: at * u64::from(args.threads),
                    loss_per_mille: args.loss_per_mille,
                    timeout: args.timeout(),
                    rate: args.rate,
                    mapped: args.mapped,
                    copies: args.copies,
                    chains: args.chains,
                    steered: args.steered,
                    stuck: args.stuck(),
                    histories: histories.clone(),
                    seed: args.seed.wrapping_mul(1000).wrapping_add(at),
                };
                (name, task)
            })
            .collect();
        let tasks = named.iter().map(|(_, task)| task.clone()).collect::<Vec<_>>();
        let mut soak = Self {
            args,
            interrupt,
            workers: Workers::start(named, runtime, interrupt)?,
            network: rendezvous.network().cloned(),
            joined: vec![false; tasks.len()],
            first_clients: tasks.iter().map(|task| task.first_client).collect(),
            died: Vec::new(),
            has_copies: None,
            tasks,
            histories,
            words: vec![Word { key: 0, addr: 0 }; args.words as usize],
            wanted: BTreeMap::new(),
            keys: 0,
            incarnations: 0,
            reborn: Vec::new(),
            random: Dice::new(args.seed),
            values: Values::new(),
        };
        soak.begin().map_err(|fault| soak.with_evidence(fault))?;
        Ok(soak)
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.hear_until("all places to be joined", |soak| soak.joined.iter().all(|joined| *joined))?;
        let wanted = if self.args.chains { 1 } else { self.words.len() };
        (0..wanted).try_for_each(|slot| self.want(slot))?;
        self.hear_until("words to be allocated", |soak| soak.wanted.is_empty())
    }

    /// One round.
    pub(super) fn round(&mut self, round: u64) -> Result<Told, Fault> {
        let harm = self.args.harm(round);
        let victim = match harm {
            Harm::Switch => SWITCH,
            Harm::Node | Harm::Pause | Harm::Cut => 1 + self.dice(u64::from(self.args.nodes)),
        };
        let keys_before = self.keys;
        self.reborn.clear();
        self.died.clear();
        let spread = self.args.round() / 4;
        let harm_at = spread + spread.mul_f64(self.dice(1000) as f64 / 1000.0);
        let back_after = match harm {
            Harm::Switch | Harm::Node => Duration::from_millis(50 + self.dice(500) as u64),
            Harm::Pause => self.args.timeout() * 2,
            // Every other one is too short for anybody to be given up.
            Harm::Cut => self.args.timeout().mul_f64([0.25, 2.0][self.dice(2)]),
        };
        self.all_nodes(|| Order::Go { round })?;
        self.hear_for(harm_at)?;
        let name = self.workers.name(victim).to_owned();
        match harm {
            Harm::Switch | Harm::Node => {
                self.workers.kill(victim);
                self.joined[victim] = false;
                self.hear_for(back_after)?;
                self.restart(victim)?;
            }
            Harm::Cut => {
                self.joined[victim] = false;
                self.plug(victim, false)?;
                self.ask_others(victim)?;
                self.hear_for(back_after)?;
                self.plug(victim, true)?;
                self.workers.order(victim, Order::Continued)?;
            }
            Harm::Pause => {
                // It will find out that it was declared dead, say so, and be started anew. Or that it was not: on a
                // machine that is full the switch may have been too slow to blame anybody.
                self.joined[victim] = false;
                self.workers.pause(victim, true)?;
                self.ask_others(victim)?;
                self.hear_for(back_after)?;
                self.workers.pause(victim, false)?;
                self.workers.order(victim, Order::Continued)?;
            }
        }
        self.hear_for(self.args.round().saturating_sub(harm_at + back_after))?;
        // A node that came back, or was fenced, joins anew before the round ends, and works a little.
        self.hear_until("nodes to come back", |soak| soak.joined.iter().all(|joined| *joined))?;
        self.go_again(victim, round)?;
        self.hear_until("words to be allocated", |soak| soak.wanted.is_empty())?;
        self.wait_for_copies()?;
        let mut audited = self.halt()?;
        let mut clients = self.histories(round)?;
        let values: Values = audited.iter().map(|entry| (entry.key, read_value(entry))).collect();
        clients.push((u64::MAX / 4, std::mem::take(&mut audited)));
        // What was put into a store is there.
        let forgives = self.args.copies > 1 && !self.args.chains;
        let judged = judge(&self.values, &clients, if forgives { &self.died } else { &[] })?;
        self.forget_histories()?;
        self.values = values;
        Ok(Told {
            round,
            harm,
            victim: name,
            operations: judged.operations,
            unknown: judged.unknown,
            words_lost: self.keys - keys_before,
            worst_wait_ms: u64::try_from(judged.worst.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Only then may another node die.
    fn wait_for_copies(&mut self) -> Result<(), Fault> {
        let mut waiting = Waiting::default();
        let asked = if self.args.chains { 1..self.joined.len() } else { SWITCH..SWITCH + 1 };
        while self.args.copies > 1 {
            let (mut all, mut looked_after) = (true, 0);
            for at in asked.clone() {
                self.has_copies = None;
                self.workers.order(at, Order::Copies)?;
                self.hear_until("somebody to say who has copies", |soak| {
                    soak.has_copies.is_some() || !soak.joined[at]
                })?;
                let (whole, stores) = self.has_copies.unwrap_or((false, 0));
                (all, looked_after) = (all && whole, looked_after + stores);
            }
            if all && (looked_after == 1 || !self.args.chains) {
                break;
            }
            self.within(&waiting, "copies to be made anew")?;
            waiting.look(Instant::now());
            self.hear_for(LOOK_EVERY)?;
        }
        Ok(())
    }

    /// Pulls the cable of a node, or puts it back.
    fn plug(&self, victim: usize, plugged: bool) -> Result<(), Fault> {
        let network = self.network.as_ref().expect("cables are cut where there are some");
        let done = network.plug(victim - 1, plugged);
        done.map_err(|error| Fault::failed(format_args!("the cable of node {}: {error}", victim - 1)))
    }

    /// A node that has just come back takes part in the round's end, for a quarter of its time.
    fn go_again(&mut self, victim: usize, round: u64) -> Result<(), Fault> {
        if victim != SWITCH {
            self.workers.order(victim, Order::Words(self.words.clone()))?;
            self.workers.order(victim, Order::Go { round })?;
        }
        self.hear_for(self.args.round() / 4)
    }

    /// Stops all clients, and lets a node read all words.
    fn halt(&mut self) -> Result<Vec<Entry>, Fault> {
        self.all_nodes(|| Order::Halt)?;
        let mut busy: Vec<usize> = (1..self.joined.len()).filter(|at| self.joined[*at]).collect();
        let mut waiting = Waiting::default();
        while !busy.is_empty() {
            self.within(&waiting, "clients to stop")?;
            if let Some((at, event)) = self.hear(&mut waiting)? {
                if matches!(event, Event::Idle | Event::Fenced) {
                    busy.retain(|busy| *busy != at);
                }
                self.on_event(at, event)?;
            }
        }
        self.hear_until("nodes to come back", |soak| soak.joined.iter().all(|joined| *joined))?;
        loop {
            if let Some(audited) = self.audit()? {
                return Ok(audited);
            }
            self.hear_until("nodes to come back", |soak| soak.joined.iter().all(|joined| *joined))?;
        }
    }

    /// Lets a node read all words. None: it was declared dead meanwhile, as it may be at any time on a machine that is
    /// full; another one has to.
    fn audit(&mut self) -> Result<Option<Vec<Entry>>, Fault> {
        let auditor = 1 + self.dice(u64::from(self.args.nodes));
        self.workers.order(auditor, Order::Words(self.words.clone()))?;
        self.workers.order(auditor, Order::Audit)?;
        // For each word anew: how many there are says nothing about how long one may take.
        let mut waiting = Waiting::default();
        loop {
            self.within(&waiting, "a word to be read")?;
            match self.hear(&mut waiting)? {
                Some((_, Event::Looked)) => waiting = Waiting::default(),
                Some((_, Event::Audited(values))) => {
                    let entry = |(key, value, invoke, ret)| Entry {
                        key,
                        did: Did::Read(value),
                        invoke,
                        ret: Some(ret),
                    };
                    return Ok(Some(values.into_iter().map(entry).collect()));
                }
                Some((at, event)) => {
                    let fenced = matches!(event, Event::Fenced);
                    self.on_event(at, event)?;
                    if fenced && at == auditor {
                        return Ok(None);
                    }
                }
                None => {}
            }
        }
    }

    /// The histories of a round, by client.
    fn histories(&self, round: u64) -> Result<Vec<(u64, Vec<Entry>)>, Fault> {
        let failed = |error| Fault::failed(format_args!("cannot read the histories: {error}"));
        let prefix = format!("history-{round}-");
        let mut histories = Vec::new();
        for file in std::fs::read_dir(&self.histories).map_err(failed)? {
            let file = file.map_err(failed)?;
            let name = file.file_name().into_string().unwrap_or_default();
            if let Some(client) = name.strip_prefix(&prefix).and_then(|client| client.parse().ok()) {
                histories.push((client, log::read(&file.path()).map_err(failed)?));
            }
        }
        Ok(histories)
    }

    /// A round was right: its histories say nothing any more.
    fn forget_histories(&self) -> Result<(), Fault> {
        let failed = |error| Fault::failed(format_args!("cannot remove the histories: {error}"));
        for file in std::fs::read_dir(&self.histories).map_err(failed)? {
            let file = file.map_err(failed)?;
            if file.file_name().to_string_lossy().starts_with("history-") {
                std::fs::remove_file(file.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    pub(super) fn all_nodes(&mut self, order: impl Fn() -> Order) -> Result<(), Fault> {
        (1..self.joined.len())
            .filter(|at| self.joined[*at])
            .collect::<Vec<_>>()
            .into_iter()
            .try_for_each(|at| self.workers.order(at, order()))
    }

    /// A number below `bound`.
    pub(super) fn dice(&mut self, bound: u64) -> usize {
        self.random.below(bound) as usize
    }
}

fn read_value(entry: &Entry) -> u64 {
    match entry.did {
        Did::Read(value) | Did::Wrote(value) | Did::Changed(_, value) => value,
        Did::Synced => unreachable!("an audit only reads"),
    }
}
