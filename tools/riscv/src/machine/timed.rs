//! What happens when, with timing.
//!
//! Time goes on in windows that are so short that nothing which a node sends in one reaches another node in it (`Chip::lookahead`).
//! So within a window each node goes on by itself: what has come to it and its core, in the order of their times. What it sends is
//! handed over between windows.
//!
//! What must always hold: at a node nothing happens before what happened there already; a core executes no instruction at a time
//! at which something is still to come.

use std::collections::BTreeMap;

use nic::words::{Done, EntryId};

use super::engine::{Beside, Held};
use super::fabric::Packet;
use super::node::{CoreState, Node};
use super::{Failure, Machine, Observer};
use crate::core::{Port, Stop, run};
use crate::timing::{Accesses, Chip, Hierarchy, Ports, barrier, bytes_of_answer, bytes_of_request, hops};
use nic::words::LINE;

/// Nodes in time.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    chip: Chip,
    paces: Vec<Pace>,
    /// What was sent in this window: to whom, and when it is there.
    sent: Vec<(usize, u64, Packet)>,
}

/// A node in time.
#[derive(Clone, Debug)]
struct Pace {
    /// What will happen, by its time; what was known first is first.
    events: BTreeMap<(u64, u64), Event>,
    known: u64,
    hierarchy: Hierarchy,
    ports: Ports,
    /// The engine's core executes, and an [`Event::Execute`] is there.
    is_executing: bool,
    /// When it has done so.
    busy: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A packet's last flit is at the port.
    Came(Packet),
    /// It is unpacked.
    Unpacked(Packet),
    /// A line is there for the engine.
    Line(EntryId, u64),
    /// The engine's core may execute an operation.
    Execute,
}

/// A core's way to memory: not to lines that the engine holds, and through the caches.
struct Path<'a> {
    held: Held<'a>,
    hierarchy: &'a mut Hierarchy,
    now: u64,
    /// Cycles that the core waits.
    waits: u64,
}

impl Path<'_> {
    fn access(&mut self, address: u64, changes: bool) -> bool {
        let may = self.held.may_read(address);
        if may {
            let line = address.wrapping_sub(self.held.base) / LINE;
            self.waits += self.hierarchy.access(self.now, line, changes);
        }
        may
    }
}

impl Port for Path<'_> {
    fn may_read(&mut self, address: u64) -> bool {
        self.access(address, false)
    }

    fn may_write(&mut self, address: u64) -> bool {
        self.access(address, true)
    }
}

impl Pace {
    fn push(&mut self, at: u64, event: Event) {
        self.events.insert((at, self.known), event);
        self.known += 1;
    }

    fn next(&self) -> u64 {
        self.events.first_key_value().map_or(u64::MAX, |((at, _), _)| *at)
    }
}

impl Timed {
    pub(super) fn new(chip: Chip, nodes: usize) -> Self {
        let pace = Pace {
            events: BTreeMap::new(),
            known: 0,
            hierarchy: Hierarchy::new(chip),
            ports: Ports::default(),
            is_executing: false,
            busy: 0,
        };
        Self { chip, paces: vec![pace; nodes], sent: Vec::new() }
    }

    /// Cycles of a barrier, from when the last has come.
    pub(super) fn barrier(&self, nodes: usize) -> u64 {
        barrier(&self.chip, nodes)
    }

    pub(super) fn accesses(&self, node: usize) -> Accesses {
        *self.paces[node].hierarchy.accesses()
    }

    /// Nothing will happen.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.paces.iter().all(|pace| pace.events.is_empty())
    }

    /// A packet is sent. To its own node it is only packed and unpacked.
    pub(super) fn send(&mut self, from: usize, to: usize, now: u64, packet: Packet) {
        let pace = &mut self.paces[from];
        if from == to {
            pace.push(now + 2 * self.chip.packetizer, Event::Unpacked(packet));
        } else {
            let hops = hops(self.paces.len(), from, to);
            let there = self.paces[from].ports.send(&self.chip, now, hops, bytes(&self.chip, &packet));
            self.sent.push((to, there, packet));
        }
    }
}

fn bytes(chip: &Chip, packet: &Packet) -> u64 {
    match packet {
        Packet::Request(_, entry) => bytes_of_request(chip, entry),
        Packet::Answer { is_posted, .. } => bytes_of_answer(chip, *is_posted),
    }
}

impl Machine {
    fn time(&mut self) -> &mut Timed {
        self.timed.as_mut().expect("this is with timing")
    }

    /// When a core executes its next instruction.
    fn next_of_core(&self, index: usize) -> u64 {
        let node = &self.nodes[index];
        if node.state == CoreState::Running { node.core.clock() } else { u64::MAX }
    }

    /// The next window.
    pub(super) fn window(&mut self, observer: &mut impl Observer) -> Result<(), Failure> {
        let next = |index| {
            self.next_of_core(index).min(self.timed.as_ref().map_or(u64::MAX, |t| t.paces[index].next()))
        };
        let begin = (0..self.nodes.len()).map(next).min().unwrap_or(u64::MAX);
        let end = begin.saturating_add(self.time().chip.lookahead());
        for index in 0..self.nodes.len() {
            self.go_on(index, end, observer)?;
        }
        let timed = self.time();
        for (to, at, packet) in timed.sent.drain(..) {
            debug_assert!(at >= end, "{packet:?} is there at {at}, within the window that ends at {end}");
            timed.paces[to].push(at, Event::Came(packet));
        }
        Ok(())
    }

    /// A node goes on until a time.
    fn go_on(&mut self, index: usize, end: u64, observer: &mut impl Observer) -> Result<(), Failure> {
        loop {
            let core = self.next_of_core(index);
            let event = self.time().paces[index].next();
            if core.min(event) >= end {
                return Ok(());
            }
            if event <= core {
                let ((now, _), event) =
                    self.time().paces[index].events.pop_first().expect("it was looked at");
                self.on_event(index, now, event);
            } else {
                self.execute_until(index, event.min(end), observer)?;
            }
        }
    }

    /// A core executes until a time, or until it waits.
    fn execute_until(&mut self, index: usize, end: u64, observer: &mut impl Observer) -> Result<(), Failure> {
        loop {
            self.show(index, observer);
            let timed = self.timed.as_mut().expect("this is with timing");
            let Node { core, memory, engine, .. } = &mut self.nodes[index];
            let held = Held { base: self.layout.memory.start, lines: engine.held() };
            let hierarchy = &mut timed.paces[index].hierarchy;
            let mut path = Path { held, hierarchy, now: core.clock(), waits: 0 };
            let kind = self.program.code.kind(core.pc);
            let stop = run::<_, true>(core, &self.program.code, memory, &mut path, 1);
            core.stalled += path.waits;
            match stop {
                Stop::Budget => {
                    core.stalled += timed.chip.beyond(kind);
                    if core.clock() >= end {
                        return Ok(());
                    }
                }
                Stop::Held => {
                    // Something will happen at this node: the engine releases what it holds.
                    core.stall_until(end);
                    return Ok(());
                }
                stop => return self.on_stop(index, stop, observer),
            }
        }
    }

    fn on_event(&mut self, index: usize, now: u64, event: Event) {
        let timed = self.timed.as_mut().expect("this is with timing");
        let (chip, pace) = (timed.chip, &mut timed.paces[index]);
        match event {
            Event::Came(packet) => {
                let unpacked = pace.ports.receive(&chip, now, bytes(&chip, &packet));
                pace.push(unpacked, Event::Unpacked(packet));
            }
            Event::Unpacked(Packet::Answer { old, is_posted }) => self.on_answer(index, old, is_posted, now),
            Event::Unpacked(Packet::Request(ticket, entry)) => {
                self.nodes[index].engine.on_packet(ticket, entry);
                self.take_in(index, now);
            }
            Event::Line(entry, line) => {
                let node = &mut self.nodes[index];
                node.engine.on_line(entry, line, &node.memory);
                if !pace.is_executing {
                    pace.is_executing = true;
                    pace.push(now.max(pace.busy), Event::Execute);
                }
            }
            Event::Execute => self.on_execute(index, now),
        }
    }

    /// The engine's core executes an operation, and what was full may have capacity then.
    fn on_execute(&mut self, index: usize, now: u64) {
        let timed = self.timed.as_mut().expect("this is with timing");
        let (chip, pace) = (timed.chip, &mut timed.paces[index]);
        let Node { core, memory, engine, .. } = &mut self.nodes[index];
        let mut answers = core::mem::take(&mut self.answers);
        let caches = Some((&mut pace.hierarchy, now));
        let reservation = &mut core.reservation;
        pace.is_executing =
            engine.execute(&mut Beside { memory, reservation, answers: &mut answers, caches });
        if pace.is_executing {
            pace.busy = now + chip.operation;
            pace.push(now + chip.operation, Event::Execute);
            for Done { ticket, old } in answers.drain(..) {
                let packet = Packet::Answer { old, is_posted: ticket & 1 == 1 };
                timed.send(index, (ticket >> 1) as usize, now + chip.operation, packet);
            }
            self.take_in(index, now);
        }
        self.answers = answers;
    }

    /// The engine takes in what it has capacity for, and asks the memory for lines.
    fn take_in(&mut self, index: usize, now: u64) {
        let timed = self.timed.as_mut().expect("this is with timing");
        let pace = &mut timed.paces[index];
        let Node { core, memory, engine, .. } = &mut self.nodes[index];
        let (reservation, mut answers) = (&mut core.reservation, Vec::new());
        while engine.take_in(&mut Beside { memory, reservation, answers: &mut answers, caches: None }) {}
        while let Some((entry, line)) = engine.asks() {
            let there = now + pace.hierarchy.fetch(now, line);
            pace.push(there, Event::Line(entry, line));
        }
    }
}
