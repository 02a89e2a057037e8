//! Processes, network and switch, and the loop that runs them.

use std::collections::BTreeMap;

use membership::coordinator::{self, Coordinator, Phase};
use membership::member::{self, Member};
use membership::{Message, Session, Timing};
use switch::coherence::{Dump, EntryView};
use wire::{BlockTag, Copyset, GlobalStatus, Nanos, NodeId, SwitchEpoch};

use super::Random;
use super::chaos::Chaos;
use super::clock::Clock;
use super::properties::Seen;

pub(crate) const TIMEOUT: Nanos = Nanos::from_millis(1000);
pub(crate) const TIMING: Timing = Timing::new(TIMEOUT);
/// Entries of a home in the switch: several parts of a view.
const ENTRIES: u64 = 1000;

/// What the network does, in parts of a thousand.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Faults {
    pub(crate) lose: u32,
    pub(crate) double: u32,
    /// Late by up to three timeouts.
    pub(crate) late: u32,
}

/// One process of a node.
pub(crate) struct Process {
    pub(crate) node: NodeId,
    pub(crate) session: Session,
    pub(crate) member: Member,
    pub(crate) clock: Clock,
    pub(crate) sole: bool,
    pub(crate) killed: bool,
    pub(crate) stopped_until: u64,
    pub(crate) begun: Vec<SwitchEpoch>,
    pub(crate) fenced: bool,
    pub(crate) left: bool,
}

pub(crate) struct Control {
    pub(crate) coordinator: Coordinator,
    pub(crate) clock: Clock,
    pub(crate) stopped_until: u64,
    /// The incarnation of the switch beside it.
    pub(crate) switch: Option<SwitchEpoch>,
    /// The epochs that it has made, in order.
    pub(crate) made: Vec<SwitchEpoch>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Coordinator(NodeId),
    /// Every process of the node: worse than any address would do.
    Node(NodeId),
    /// What a stopped process finds when it goes on.
    Process(usize),
}

struct InFlight {
    at: u64,
    to: To,
    bytes: Vec<u8>,
}

pub(crate) struct Rig {
    pub(crate) now: u64,
    pub(crate) nodes: u16,
    /// The first so many may be in the rack: a list that all coordinators have.
    pub(crate) listed: u16,
    pub(crate) copies: usize,
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    pub(crate) processes: Vec<Process>,
    pub(crate) control: Option<Control>,
    /// Directions that are cut, and until when: from a node (true), or to it.
    pub(crate) cut: BTreeMap<(NodeId, bool), u64>,
    /// Nodes that large messages do not reach, and until when: no VIEW does.
    pub(crate) narrow: BTreeMap<NodeId, u64>,
    pub(crate) seen: Seen,
    pub(crate) chaos: Option<Chaos>,
    network: Vec<InFlight>,
    /// What each node sent last.
    sent: BTreeMap<NodeId, Vec<u8>>,
    /// Steps at this very moment.
    steps: u32,
}

impl Rig {
    /// An empty rack: no process runs.
    pub(crate) fn new(seed: u64, nodes: u16) -> Self {
        Self {
            now: 1,
            nodes,
            listed: nodes,
            copies: 2,
            random: Random::new(seed),
            faults: Faults::default(),
            processes: Vec::new(),
            control: None,
            cut: BTreeMap::new(),
            narrow: BTreeMap::new(),
            seen: Seen::default(),
            chaos: None,
            network: Vec::new(),
            sent: BTreeMap::new(),
            steps: 0,
        }
    }

    /// A rack that has formed, of nodes that were alone from the start.
    pub(crate) fn formed(seed: u64, nodes: u16) -> Self {
        let mut rig = Self::new(seed, nodes);
        rig.start_coordinator();
        for node in 0..nodes {
            rig.start(NodeId(node), true);
        }
        rig.run_for(Nanos::from_millis(100));
        assert!(rig.is_settled(), "a rack without faults forms at once");
        rig
    }

    pub(crate) fn start_coordinator(&mut self) {
        let clock = Clock::draw(&mut self.random);
        // Grows faster than any run makes epochs.
        let origin = SwitchEpoch(u32::try_from(self.now / 1_000_000).unwrap());
        let config = coordinator::CoordinatorConfig {
            copies: self.copies,
            nodes: self.nodes.into(),
            listed: self.listed.into(),
            origin,
            session: self.random.bits(),
            timing: TIMING,
        };
        let coordinator = Coordinator::new(config, clock.at(self.now));
        self.seen.new_coordinator();
        self.control = Some(Control { coordinator, clock, stopped_until: 0, switch: None, made: Vec::new() });
    }

    /// The list becomes longer.
    pub(crate) fn list(&mut self, nodes: u16) {
        self.listed = nodes.min(self.nodes);
        if let Some(control) = &mut self.control {
            control.coordinator.list(self.listed.into());
        }
    }

    /// Starts a process of the node; returns which it is.
    pub(crate) fn start(&mut self, node: NodeId, sole: bool) -> usize {
        let (session, clock) = (Session(self.random.bits()), Clock::draw(&mut self.random));
        let config = member::MemberConfig { node, nodes: self.nodes.into(), session, sole, timing: TIMING };
        let member = Member::new(config, clock.at(self.now));
        self.processes.push(Process {
            node,
            session,
            member,
            clock,
            sole,
            killed: false,
            stopped_until: 0,
            begun: Vec::new(),
            fenced: false,
            left: false,
        });
        self.processes.len() - 1
    }

    pub(crate) fn leave(&mut self, process: usize) {
        let mut out = Vec::new();
        let it = &mut self.processes[process];
        it.member.leave(it.clock.at(self.now), &mut out);
        self.after_member(process, out);
    }

    pub(crate) fn drain(&mut self, process: usize, draining: bool) {
        let mut out = Vec::new();
        let it = &mut self.processes[process];
        it.member.set_draining(it.clock.at(self.now), draining, &mut out);
        self.after_member(process, out);
    }

    /// The process has got these memories, in the epoch in which it is.
    pub(crate) fn has_got(&mut self, process: usize, memories: Copyset) {
        let it = &mut self.processes[process];
        it.member.set_whole((it.member.epoch(), memories));
    }

    pub(crate) fn stop_for(&mut self, process: usize, span: Nanos) {
        self.processes[process].stopped_until = self.now + span.0;
    }

    pub(crate) fn cut(&mut self, node: NodeId, from: bool, span: Nanos) {
        self.cut.insert((node, from), self.now + span.0);
    }

    /// What the node sent last comes once more.
    pub(crate) fn repeat(&mut self, node: NodeId) {
        let bytes = self.sent[&node].clone();
        self.network.push(InFlight { at: self.now, to: To::Coordinator(node), bytes });
    }

    pub(crate) fn coordinator(&self) -> &Coordinator {
        &self.control.as_ref().expect("it runs").coordinator
    }

    /// The processes that run, and are not over.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|it| !it.killed && !it.member.is_over())
    }

    /// Every node with a running process is in the coordinator's epoch by one of them, with a lease, and nobody
    /// else is.
    pub(crate) fn is_settled(&self) -> bool {
        let Some(control) = &self.control else { return false };
        let roster = control.coordinator.roster();
        let fits = |node: u16| {
            let mut running = self.running().filter(|it| it.node.0 == node).peekable();
            let nobody = running.peek().is_none();
            let mut of_it =
                running.filter(|it| it.member.roster() == roster && it.member.holds(it.clock.at(self.now)));
            let session = of_it.next().map(|it| it.session);
            match session {
                Some(session) => roster.is_alive(NodeId(node), session) && of_it.next().is_none(),
                None => nobody && !roster.entries[usize::from(node)].alive,
            }
        };
        control.coordinator.phase() == Phase::Running && (0..self.nodes).all(fits)
    }

    /// Runs until then, or until this holds; true if it does.
    pub(crate) fn run_until(&mut self, most: Nanos, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + most.0;
        while !done(self) {
            if !self.step(end) {
                return done(self);
            }
        }
        true
    }

    pub(crate) fn run_for(&mut self, span: Nanos) {
        self.run_until(span, |_| false);
    }

    /// The next thing that happens, if it is not after `end`.
    fn step(&mut self, end: u64) -> bool {
        #[derive(Clone, Copy)]
        enum Next {
            Message(usize),
            Process(usize),
            Coordinator,
            Chaos,
        }
        let mut due: Vec<(u64, Next)> = Vec::new();
        for (at, message) in self.network.iter().enumerate() {
            due.push((message.at, Next::Message(at)));
        }
        for (at, it) in self.processes.iter().enumerate().filter(|(_, it)| !it.killed) {
            let deadline = it.clock.when(it.member.next_deadline());
            if deadline < u64::MAX {
                due.push((deadline.max(it.stopped_until), Next::Process(at)));
            }
        }
        if let Some(control) = &self.control {
            let deadline = control.clock.when(control.coordinator.next_deadline());
            due.push((deadline.max(control.stopped_until), Next::Coordinator));
        }
        due.extend(self.chaos.as_ref().map(|chaos| (chaos.next, Next::Chaos)));
        let first = due.iter().map(|(at, _)| (*at).max(self.now)).min().unwrap_or(u64::MAX);
        if first > end {
            self.now = end;
            self.check();
            return false;
        }
        due.retain(|(at, _)| (*at).max(self.now) == first);
        self.steps = if first == self.now { self.steps + 1 } else { 0 };
        assert!(self.steps < 10_000, "a machine asks for ever to be called at once");
        self.now = first;
        match due[self.random.below(due.len() as u64) as usize].1 {
            Next::Message(at) => self.deliver(at),
            Next::Process(at) => {
                let mut out = Vec::new();
                let it = &mut self.processes[at];
                it.member.on_deadline(it.clock.at(self.now), &mut out);
                self.after_member(at, out);
            }
            Next::Coordinator => {
                let mut out = Vec::new();
                let control = self.control.as_mut().expect("it has a deadline");
                control.coordinator.on_deadline(control.clock.at(self.now), &mut out);
                self.after_coordinator(out);
            }
            Next::Chaos => self.wreak(),
        }
        self.check();
        true
    }

    fn deliver(&mut self, at: usize) {
        let InFlight { to, bytes, .. } = self.network.swap_remove(at);
        let message = Message::parse(&bytes).expect("the network changes no bytes");
        match to {
            To::Coordinator(from) => {
                let Some(control) = &mut self.control else { return };
                if control.stopped_until > self.now {
                    // Sockets buffer some of it.
                    if self.random.per_mille(500) {
                        let at = control.stopped_until;
                        self.network.push(InFlight { at, to, bytes });
                    }
                    return;
                }
                let mut out = Vec::new();
                control.coordinator.on_message(control.clock.at(self.now), from, message, &mut out);
                self.after_coordinator(out);
            }
            To::Node(node) => {
                for at in 0..self.processes.len() {
                    if self.processes[at].node == node {
                        self.deliver_to(at, &message);
                    }
                }
            }
            To::Process(at) => self.deliver_to(at, &message),
        }
    }

    fn deliver_to(&mut self, at: usize, message: &Message) {
        let it = &mut self.processes[at];
        if it.killed || it.member.is_over() {
            return;
        }
        if it.stopped_until > self.now {
            let until = it.stopped_until;
            self.network.push(InFlight { at: until, to: To::Process(at), bytes: message.encode() });
            return;
        }
        let mut out = Vec::new();
        it.member.on_message(it.clock.at(self.now), message.clone(), &mut out);
        self.after_member(at, out);
    }

    fn after_member(&mut self, process: usize, out: Vec<member::Effect>) {
        let node = self.processes[process].node;
        for effect in out {
            match effect {
                member::Effect::Send(message) => self.send(To::Coordinator(node), &message),
                member::Effect::Begin { view, dump } => {
                    self.check_begin(process, &view, dump.as_ref());
                    self.processes[process].begun.push(view.epoch);
                    if self.chaos.is_some() {
                        let memories = (0..).zip(&view.memories);
                        let got = memories.filter(|(_, kept)| kept.by.union(kept.to).contains(node));
                        self.has_got(process, got.map(|(i, _)| NodeId(i)).collect());
                    }
                }
                member::Effect::Fenced => self.processes[process].fenced = true,
                member::Effect::Left => self.processes[process].left = true,
                member::Effect::Leased { .. } | member::Effect::Suspended => {}
            }
        }
    }

    fn after_coordinator(&mut self, out: Vec<coordinator::Effect>) {
        for effect in out {
            match effect {
                coordinator::Effect::Send(node, message) => self.send(To::Node(node), &message),
                coordinator::Effect::Restart { epoch, shadow, changes } => {
                    self.check_decision(epoch, shadow, &changes);
                    let control = self.control.as_mut().expect("it just spoke");
                    let dump = control.switch.map(|epoch| directory(epoch, self.nodes));
                    control.switch = Some(epoch);
                    control.made.push(epoch);
                    let mut out = Vec::new();
                    let now = control.clock.at(self.now);
                    control.coordinator.on_restarted(now, dump.as_ref(), &mut out);
                    self.after_coordinator(out);
                }
            }
        }
    }

    fn send(&mut self, to: To, message: &Message) {
        let direction = match to {
            To::Coordinator(node) => (node, true),
            To::Node(node) => (node, false),
            To::Process(at) => (self.processes[at].node, false),
        };
        if let To::Coordinator(node) = to {
            self.sent.insert(node, message.encode());
        }
        let is_cut = self.cut.get(&direction).is_some_and(|until| *until > self.now);
        let large = matches!(message, Message::View(_));
        let is_cut = is_cut || large && self.narrow.get(&direction.0).is_some_and(|until| *until > self.now);
        if is_cut || self.random.per_mille(self.faults.lose) {
            return;
        }
        let copies = if self.random.per_mille(self.faults.double) { 2 } else { 1 };
        for _ in 0..copies {
            let late = self.random.per_mille(self.faults.late);
            let delay =
                if late { self.random.below(3 * TIMEOUT.0) } else { 10_000 + self.random.below(90_000) };
            self.network.push(InFlight { at: self.now + delay, to, bytes: message.encode() });
        }
    }
}

/// What the switch knows at the end of this epoch.
pub(crate) fn directory(epoch: SwitchEpoch, nodes: u16) -> Dump {
    let tag = |home: u16, block: u64| BlockTag::from_bits(u64::from(home) << 48 | block << 12);
    let entry = |block: u64| EntryView {
        lock: if block.is_multiple_of(7) { 1 << 15 } else { 0 },
        status: GlobalStatus::Shared,
        copyset: Copyset::from_bits(u64::from(epoch.0) + block),
    };
    let homes = (0..nodes).flat_map(|home| (0..ENTRIES).map(move |block| (home, block)));
    let entries: Vec<_> = homes.map(|(home, block)| (tag(home, block), entry(block))).collect();
    let queued = entries.iter().filter(|(_, entry)| entry.lock > 0).map(|(tag, _)| *tag).collect();
    Dump { epoch, entries, holders: Copyset::from_bits(u64::from(epoch.0)), queued }
}
