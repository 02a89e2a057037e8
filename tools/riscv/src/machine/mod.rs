//! The machine: nodes with a core each, their memories with an engine beside each, and packets between them.
//!
//! ```text
//!   core ── loads, stores, atomics ──> memory <──lines── engine (nic::words::Lines)
//!     └── extended addresses: an entry of a batch ──> fabric ──> engine of the node that they name
//!     └── ecall ──> environment
//! ```
//! Without timing cores take turns; how long the turns are and when packets arrive is the [`Schedule`]. With timing (`timed`)
//! everything takes its cycles. Instructions, their results, engines and the environment are the same.
//!
//! | file | what |
//! | --- | --- |
//! | `config` | what a machine is made of, and the layout of memory |
//! | `node` | core, memory, engine, and what the core waits for |
//! | `engine` | what drives the engine of `crates/nic` |
//! | `fabric` | packets in flight |
//! | `environment` | calls of programs |
//! | `timed` | what happens when, with timing |
//! | `report` | observers, failures, counters |
//!
//! What must always hold: the same program and configuration do the same each time.

mod config;
mod engine;
mod environment;
mod fabric;
mod node;
mod report;
mod timed;

pub use config::{ConfigError, Layout, MachineConfig, Schedule};
pub use nic::words::LinesConfig as EngineConfig;
pub use report::{Console, Failure, NodeStats, Observer, Sent, Stats};

use nic::words::Done;
use random::Random;

use self::engine::{Beside, Engine, Held};
use self::environment::{After, call};
use self::fabric::{Fabric, Packet};
use self::node::{CoreState, Node, Outgoing};
use self::timed::Timed;
use crate::core::{Core, Stop, What, run};
use crate::library::{Library, Routine};
use crate::memory::Memory;
use crate::program::Program;
use crate::trap::{Cause, Trap};

/// Instructions of a turn.
const TURN: u64 = 20_000;

/// A machine with a program on each node.
#[derive(Clone, Debug)]
pub struct Machine {
    program: Program,
    layout: Layout,
    limit: Option<u64>,
    nodes: Vec<Node>,
    fabric: Fabric,
    /// Of [`Schedule::Seeded`].
    random: Option<Random>,
    rounds: u64,
    answers: Vec<Done>,
    /// Of [`Schedule::Timed`].
    timed: Option<Timed>,
    /// Whose routines programs call.
    routines: Option<Library>,
    /// Of each node: what it had counted when its program asked for that to be noted.
    marks: Vec<Vec<(u64, NodeStats)>>,
}

impl Machine {
    /// A machine that is about to begin.
    ///
    /// # Errors
    /// If the program does not fit.
    pub fn new(program: Program, config: &MachineConfig) -> Result<Self, ConfigError> {
        let layout = Layout::new(&program, config)?;
        let node = |_| {
            let bytes = layout.memory.end - layout.memory.start;
            let mut memory = Memory::new(layout.memory.start, bytes, program.read_only.clone());
            for (address, bytes) in &program.segments {
                memory.put(*address, bytes);
            }
            memory.put(layout.stack_pointer, &layout.arguments);
            let mut core = Core::new(program.entry, config.nodes as u64);
            core.give(2, layout.stack_pointer);
            Node {
                core,
                memory,
                engine: Engine::new(config.engine),
                state: CoreState::Running,
                sent: node::Sent::default(),
            }
        };
        let nodes = (0..config.nodes).map(node).collect();
        let (random, timed) = match config.schedule {
            Schedule::Turns => (None, None),
            Schedule::Seeded(seed) => (Some(Random::new(seed)), None),
            Schedule::Timed(chip) => (None, Some(Timed::new(chip, config.nodes))),
        };
        let fabric = Fabric::new(config.nodes);
        Ok(Self {
            program,
            layout,
            limit: config.limit,
            nodes,
            fabric,
            random,
            rounds: 0,
            answers: Vec::new(),
            timed,
            routines: None,
            marks: vec![Vec::new(); config.nodes],
        })
    }

    /// The same, with a library whose routines are charged to programs for the software path.
    #[must_use]
    pub fn with_library(mut self, library: Library) -> Self {
        self.routines = Some(library);
        self
    }

    /// Runs until all programs have exited. Returns their codes.
    ///
    /// # Errors
    /// The first trap, or that it does not come to an end.
    pub fn run(&mut self, observer: &mut impl Observer) -> Result<Vec<i32>, Failure> {
        loop {
            if observer.stops() {
                return Err(Failure::Stopped);
            }
            if self.timed.is_some() {
                self.window(observer)?;
            } else {
                for index in 0..self.nodes.len() {
                    self.turn(index, observer)?;
                }
                if self.random.is_some() { self.some_steps() } else { self.settle() }
            }
            self.rounds += 1;
            if let Some(ended) = self.meet() {
                return ended;
            }
            if let Some(limit) = self.limit
                && self.nodes.iter().map(|node| node.core.retired).sum::<u64>() >= limit
            {
                return Err(Failure::Limit(limit));
            }
        }
    }

    /// A core's turn.
    fn turn(&mut self, index: usize, observer: &mut impl Observer) -> Result<(), Failure> {
        let limit =
            self.nodes[index].core.retired + self.random.as_mut().map_or(TURN, |random| 1 + random.below(8));
        // A seed says how many instructions exactly, and who traces sees each of them.
        let single = self.random.is_some() || observer.traces();
        while self.nodes[index].state == CoreState::Running && self.nodes[index].core.retired < limit {
            self.show(index, observer);
            let Node { core, memory, engine, .. } = &mut self.nodes[index];
            let budget = limit - core.retired;
            let mut held = Held { base: self.layout.memory.start, lines: engine.held() };
            let code = &self.program.code;
            let stop = if single {
                run::<_, true>(core, code, memory, &mut held, 1)
            } else {
                run::<_, false>(core, code, memory, &mut held, budget)
            };
            if stop == Stop::Held {
                break;
            }
            self.on_stop(index, stop, observer)?;
        }
        Ok(())
    }

    /// Shows whoever wants to see it what a core executes next.
    fn show(&self, index: usize, observer: &mut impl Observer) {
        if observer.traces() {
            let core = &self.nodes[index].core;
            if let Some(word) = self.program.code.word(core.pc) {
                observer.on_instruction(index, core.pc, word, &core.registers());
            }
        }
    }

    /// A core has stopped.
    fn on_stop(&mut self, index: usize, stop: Stop, observer: &mut impl Observer) -> Result<(), Failure> {
        match stop {
            Stop::Budget | Stop::Held => {}
            Stop::Drain => self.nodes[index].state = CoreState::Draining,
            Stop::Remote(remote) => {
                let sent = &mut self.nodes[index].sent;
                match remote.what {
                    What::Load { .. } => sent.loads += 1,
                    What::Store { .. } => sent.stores += 1,
                    What::Atomic { .. } => sent.atomics += 1,
                }
                sent.to_itself += u64::from(remote.node == index);
                let offset = remote.address - self.layout.memory.start;
                let is_atomic = matches!(remote.what, What::Atomic { .. });
                let clock = self.nodes[index].core.clock();
                observer.on_request(&Sent { from: index, clock, to: remote.node, offset, is_atomic });
                self.send(index, Outgoing::of(remote, offset));
            }
            Stop::Call => match call(&mut self.nodes[index], index, &self.layout) {
                Ok(After::GoOn | After::Waits) => {}
                Ok(After::EndsAll(code)) => {
                    for node in
                        self.nodes.iter_mut().filter(|node| !matches!(node.state, CoreState::Exited(_)))
                    {
                        node.state = CoreState::Exited(code);
                    }
                }
                Ok(After::Marked(number)) => {
                    let stats = self.stats_of(index);
                    self.marks[index].push((number, stats));
                    observer.on_mark(index, number);
                }
                Ok(After::Written(bytes)) => observer.on_console(index, &bytes),
                Err(cause) => return Err(self.trap(index, cause)),
            },
            Stop::Routine(what) => {
                let charge = self.charge(what).map_err(|cause| self.trap(index, cause))?;
                let Node { core, sent, .. } = &mut self.nodes[index];
                sent.routines += 1;
                sent.charged += charge;
                // The instruction that says so is one of them.
                core.retired += charge - 1;
                core.finish();
            }
            Stop::Trap(cause) => return Err(self.trap(index, cause)),
        }
        Ok(())
    }

    /// Instructions of the routine that a program says it calls.
    fn charge(&self, what: u64) -> Result<u64, Cause> {
        let (number, bytes) = (what & 0xff, what >> 8);
        let routine = Routine::numbered(number).ok_or(Cause::UnknownRoutine(number))?;
        // All nodes meet.
        let size = if routine == Routine::BarrierAll { self.nodes.len() as u64 } else { bytes };
        let library = self.routines.as_ref().ok_or(Cause::NoLibrary)?;
        library.instructions(routine, size).ok_or(Cause::NotCounted(routine, size))
    }

    /// Sends a core's request. What is not posted, the core waits for.
    fn send(&mut self, from: usize, outgoing: Outgoing) {
        let Outgoing { node: to, entry, pending } = outgoing;
        let ticket = (from as u64) << 1 | u64::from(pending.is_none());
        let node = &mut self.nodes[from];
        let now = node.core.clock();
        match pending {
            Some(pending) => node.state = CoreState::Waiting(pending),
            None => {
                node.core.posted += 1;
                node.core.finish();
            }
        }
        let packet = Packet::Request(ticket, entry);
        if let Some(timed) = &mut self.timed {
            timed.send(from, to, now, packet);
        } else if let Some(random) = &mut self.random {
            self.fabric.send(from, to, self.rounds + fabric::delay(random), packet);
        } else {
            self.nodes[to].engine.on_packet(ticket, entry);
        }
    }

    /// An answer has come; with timing, now.
    fn on_answer(&mut self, to: usize, old: u64, is_posted: bool, now: u64) {
        if is_posted {
            self.nodes[to].on_stored(now);
        } else if let Some(outgoing) = self.nodes[to].on_answer(old, now) {
            self.send(to, outgoing);
        }
    }

    /// Everything that is in flight arrives and is done.
    fn settle(&mut self) {
        let mut answers = core::mem::take(&mut self.answers);
        loop {
            for node in self.nodes.iter_mut().filter(|node| !node.engine.is_idle()) {
                let Node { core, memory, engine, .. } = node;
                let reservation = &mut core.reservation;
                engine.settle(&mut Beside { memory, reservation, answers: &mut answers, caches: None });
            }
            if answers.is_empty() {
                break;
            }
            for Done { ticket, old } in answers.drain(..) {
                self.on_answer((ticket >> 1) as usize, old, ticket & 1 == 1, 0);
            }
        }
        self.answers = answers;
    }

    /// Some of what is in flight arrives, and some of what has arrived is done: as the seed says.
    fn some_steps(&mut self) {
        while let Some((to, packet)) = self.fabric.arrived(self.rounds) {
            match packet {
                Packet::Request(ticket, entry) => self.nodes[to].engine.on_packet(ticket, entry),
                Packet::Answer { old, is_posted } => self.on_answer(to, old, is_posted, 0),
            }
        }
        let mut answers = core::mem::take(&mut self.answers);
        let random = self.random.as_mut().expect("this is for seeds");
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let Node { core, memory, engine, .. } = node;
            for _ in 0..random.below(6) {
                let reservation = &mut core.reservation;
                engine.step(
                    random.below(3),
                    &mut Beside { memory, reservation, answers: &mut answers, caches: None },
                );
            }
            for Done { ticket, old } in answers.drain(..) {
                let packet = Packet::Answer { old, is_posted: ticket & 1 == 1 };
                self.fabric.send(index, (ticket >> 1) as usize, self.rounds + fabric::delay(random), packet);
            }
        }
        self.answers = answers;
    }

    /// Lets cores go on that have met at a barrier. If nothing will happen any more: how it has ended.
    fn meet(&mut self) -> Option<Result<Vec<i32>, Failure>> {
        let (mut waiting, mut exited) = (0, 0);
        for node in &self.nodes {
            match node.state {
                CoreState::AtBarrier => waiting += 1,
                CoreState::Exited(_) => exited += 1,
                CoreState::Running | CoreState::Waiting(_) | CoreState::Draining => return None,
            }
        }
        if exited == 0 {
            let last = self.nodes.iter().map(|node| node.core.clock()).max().unwrap_or(0);
            let met = self.timed.as_ref().map_or(0, |timed| last + timed.barrier(waiting));
            for node in &mut self.nodes {
                node.core.stall_until(met);
                node.core.finish();
                node.state = CoreState::Running;
            }
            return None;
        }
        if waiting > 0 {
            let those = |wanted: fn(&CoreState) -> bool| {
                let nodes = self.nodes.iter().enumerate().filter(|(_, node)| wanted(&node.state));
                nodes.map(|(index, _)| index).collect()
            };
            return Some(Err(Failure::Stuck {
                waiting: those(|state| *state == CoreState::AtBarrier),
                exited: those(|state| matches!(state, CoreState::Exited(_))),
            }));
        }
        let nothing_comes = self.timed.as_ref().is_none_or(Timed::is_empty);
        let at_rest =
            nothing_comes && self.fabric.is_empty() && self.nodes.iter().all(|node| node.engine.is_idle());
        let code = |node: &Node| if let CoreState::Exited(code) = node.state { code } else { 0 };
        at_rest.then(|| Ok(self.nodes.iter().map(code).collect()))
    }

    #[cold]
    fn trap(&self, index: usize, cause: Cause) -> Failure {
        let core = &self.nodes[index].core;
        Failure::Trap(Box::new(Trap {
            node: index,
            pc: core.pc,
            word: self.program.code.word(core.pc),
            place: self.program.place(core.pc).map(|(name, offset)| (name.to_owned(), offset)),
            cause,
            retired: core.retired,
            nodes: self.nodes.len(),
            x: core.registers(),
            e: core.e,
        }))
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        Stats {
            nodes: (0..self.nodes.len()).map(|index| self.stats_of(index)).collect(),
            rounds: self.rounds,
        }
    }

    /// What each node has counted between two marks of its program: from the first to the last of these numbers. Nothing, if there is a
    /// node without them.
    pub fn between(&self, first: u64, last: u64) -> Option<Vec<NodeStats>> {
        let of_node = |marks: &Vec<(u64, NodeStats)>| {
            let (_, begin) = marks.iter().find(|(number, _)| *number == first)?;
            let (_, end) = marks.iter().rfind(|(number, _)| *number == last)?;
            Some(end.since(begin))
        };
        self.marks.iter().map(of_node).collect()
    }

    fn stats_of(&self, index: usize) -> NodeStats {
        let node = &self.nodes[index];
        NodeStats {
            instructions: node.core.retired,
            local_atomics: node.core.local_atomics,
            remote_loads: node.sent.loads,
            remote_stores: node.sent.stores,
            remote_atomics: node.sent.atomics,
            to_itself: node.sent.to_itself,
            cycles: node.core.clock(),
            waited: node.sent.waited,
            routines: node.sent.routines,
            charged: node.sent.charged,
            caches: self.timed.as_ref().map(|timed| timed.accesses(index)).unwrap_or_default(),
            engine: *node.engine.counters(),
        }
    }

    /// A node's integer registers.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn registers(&self, node: usize) -> [u64; 32] {
        self.nodes[node].core.registers()
    }

    /// A node's memory.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn memory(&self, node: usize) -> &Memory {
        &self.nodes[node].memory
    }

    /// A node's memory, to prepare it.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn memory_mut(&mut self, node: usize) -> &mut Memory {
        &mut self.nodes[node].memory
    }

    /// Where everything is in each node's memory.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }
}
