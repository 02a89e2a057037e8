//! The engine beside a node's memory, and what drives it: packets go in, lines come and go, answers come out.
//!
//! The engine is `nic::words::Lines`. A packet carries an entry of a batch, as on the wire; the
//! operation mapping table is [`Request::of_wire`].
//!
//! What must always hold: the core has no access to a line between its fetch and its release; packets are taken in in the order in
//! which they came.

use std::collections::VecDeque;

use nic::words::{self, Done, Effect, EntryId, LINE, Lines, Refused, Request};
use wire::roce::batch::Entry;

use crate::core::Port;
use crate::memory::Memory;
use crate::timing::Hierarchy;

/// An engine with its inbox.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    lines: Lines,
    inbox: VecDeque<(u64, Entry)>,
    /// Lines that the memory was asked for.
    asked: VecDeque<(EntryId, u64)>,
    held: Vec<u64>,
    effects: Vec<Effect>,
}

/// What a node's core may access: all but the lines that the engine holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held<'a> {
    pub(super) base: u64,
    pub(super) lines: &'a [u64],
}

impl Port for Held<'_> {
    #[inline(always)]
    fn may_read(&mut self, address: u64) -> bool {
        self.lines.is_empty() || !self.lines.contains(&(address.wrapping_sub(self.base) / LINE))
    }

    #[inline(always)]
    fn may_write(&mut self, address: u64) -> bool {
        self.may_read(address)
    }
}

/// What is next to an engine: its node's memory, and the reservation that a change ends.
pub(super) struct Beside<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) reservation: &'a mut Option<u64>,
    pub(super) answers: &'a mut Vec<Done>,
    /// With timing: the caches of the node, and when this is.
    pub(super) caches: Option<(&'a mut Hierarchy, u64)>,
}

impl Engine {
    pub(super) fn new(config: words::LinesConfig) -> Self {
        Self {
            lines: Lines::new(config),
            inbox: VecDeque::new(),
            asked: VecDeque::new(),
            held: Vec::new(),
            effects: Vec::new(),
        }
    }

    pub(super) const fn counters(&self) -> &words::Counters {
        self.lines.counters()
    }

    pub(super) fn held(&self) -> &[u64] {
        &self.held
    }

    /// A packet has come.
    pub(super) fn on_packet(&mut self, ticket: u64, entry: Entry) {
        self.inbox.push_back((ticket, entry));
    }

    /// Nothing is to be done.
    pub(super) fn is_idle(&self) -> bool {
        self.inbox.is_empty() && self.held.is_empty()
    }

    /// Takes in the oldest packet, if there is capacity for it.
    pub(super) fn take_in(&mut self, beside: &mut Beside<'_>) -> bool {
        let Some((ticket, entry)) = self.inbox.front() else { return false };
        match self.lines.on_request(Request::of_wire(*ticket, entry), &mut self.effects) {
            Ok(()) => {
                self.inbox.pop_front();
                self.apply(beside);
                true
            }
            Err(Refused::Full) => false,
            Err(Refused::Misaligned) => unreachable!("a core sends no misaligned request: {entry:?}"),
        }
    }

    /// The memory brings the line that it was asked for first.
    fn bring(&mut self, beside: &Beside<'_>) -> bool {
        let Some((entry, line)) = self.asks() else { return false };
        self.on_line(entry, line, beside.memory);
        true
    }

    /// Executes one operation, if there is one on a line that is here.
    pub(super) fn execute(&mut self, beside: &mut Beside<'_>) -> bool {
        let executed = self.lines.execute(&mut self.effects);
        self.apply(beside);
        executed
    }

    /// The next line that the memory is asked for: whoever calls this brings it by [`Engine::on_line`].
    pub(super) fn asks(&mut self) -> Option<(EntryId, u64)> {
        self.asked.pop_front()
    }

    /// The memory brings a line.
    pub(super) fn on_line(&mut self, entry: EntryId, line: u64, memory: &Memory) {
        self.lines.on_line(entry, memory.line(line));
    }

    /// Does everything that is to be done. Whatever has come is taken in before anything is executed, so that it can merge.
    pub(super) fn settle(&mut self, beside: &mut Beside<'_>) {
        while !self.is_idle() {
            while self.take_in(beside) {}
            while self.bring(beside) {}
            while self.execute(beside) {}
        }
    }

    /// Does one thing of three, if it can be done.
    pub(super) fn step(&mut self, which: u64, beside: &mut Beside<'_>) {
        match which % 3 {
            0 => self.take_in(beside),
            1 => self.bring(beside),
            _ => self.execute(beside),
        };
    }

    fn apply(&mut self, beside: &mut Beside<'_>) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Fetch { entry, line } => {
                    self.held.push(line);
                    self.asked.push_back((entry, line));
                }
                Effect::Release { line, changed } => {
                    let at = self.held.iter().position(|held| *held == line).expect("it was fetched");
                    self.held.swap_remove(at);
                    if let Some((caches, now)) = &mut beside.caches {
                        caches.release(*now, line, changed.is_some());
                    }
                    if let Some(contents) = changed {
                        beside.memory.set_line(line, contents);
                        beside.reservation.take_if(|address| beside.memory.offset(*address) / LINE == line);
                    }
                }
                Effect::Done(done) => beside.answers.push(done),
            }
        }
    }
}
