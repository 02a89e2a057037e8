//! Miss-status registers that merge, and the direct-mapped cache of lines in front of them.
//!
//! What must always hold: a line has at most one entry that takes requests in; a slot of the cache has at most one line;
//! between a fetch and its release the line belongs to the engine.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::{AllRules, Rule, Rules};

use super::entry::{Entry, Stage};
use super::{LINE, Line, Operands, Operation, Width};

/// Sizes of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinesConfig {
    /// Entries of the miss-status registers.
    pub entries: u8,
    /// Requests that wait in one of them.
    pub subentries: u32,
    /// Lines of the cache, a power of two.
    pub lines: u32,
}

impl LinesConfig {
    /// The paper's: 64 entries of 64 subentries, 64 KiB of 64 B lines (Table I and section III-D).
    pub const PAPER: Self = Self { entries: 64, subentries: 64, lines: 1024 };
}

/// A remote atomic, at the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What the driver knows it by.
    pub ticket: u64,
    /// Of the word, in bytes from the beginning of the memory.
    pub address: u64,
    /// How wide the word is.
    pub width: Width,
    /// What is done to it.
    pub operation: Operation,
    /// With what.
    pub operands: Operands,
}

/// A request that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Which.
    pub ticket: u64,
    /// What the word was before, sign-extended if it is of 32 bits. Whoever does not want it is told only that it is done.
    pub old: u64,
}

/// An entry, in what is said of it to the memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryId(pub u8);

/// What an engine wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Get a line, and let nobody else have it before it is released.
    Fetch {
        /// For this entry.
        entry: EntryId,
        /// The line's number.
        line: u64,
    },
    /// The line is the memory's again. Copies in the node's caches are invalid if it was changed.
    Release {
        /// The line's number.
        line: u64,
        /// What it is now, if that is something else (the W bit).
        changed: Option<Line>,
    },
    /// A request is done.
    Done(Done),
}

/// Why a request was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// All entries, or all subentries of this line's, are in use: it has to wait outside.
    Full,
    /// The address is no multiple of the word's bytes.
    Misaligned,
}

/// What an engine has counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Requests that were taken.
    pub taken: u64,
    /// Of those: that joined what was pending for their line.
    pub merged: u64,
    /// Requests that had to wait outside.
    pub full: u64,
    /// Requests that made no sense.
    pub misaligned: u64,
    /// Lines that were fetched.
    pub fetched: u64,
    /// Lines that were written back.
    pub written: u64,
    /// Entries that had to wait for another line's slot.
    pub blocked: u64,
}

/// The engine beside a memory whose lines it can have for itself.
#[derive(Clone, Debug)]
pub struct Lines<R: Rules = AllRules> {
    config: LinesConfig,
    entries: Vec<Option<Entry>>,
    made: u64,
    counters: Counters,
    rules: R,
}

impl Lines {
    /// An engine with nothing pending.
    ///
    /// # Panics
    /// If it would have no entries or subentries, or its lines are no power of two.
    pub fn new(config: LinesConfig) -> Self {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Lines<R> {
    /// The same, of which some rules may not hold: for checkers.
    pub fn with_rules(rules: R, config: LinesConfig) -> Self {
        assert!(config.entries > 0 && config.subentries > 0, "nothing could be pending: {config:?}");
        assert!(config.lines.is_power_of_two(), "lines are found by some bits of their address: {config:?}");
        let entries = (0..config.entries).map(|_| None).collect();
        Self { config, entries, made: 0, counters: Counters::default(), rules }
    }

    /// What was counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Entries in use.
    pub fn pending(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    fn slot(&self, line: u64) -> u64 {
        line & u64::from(self.config.lines - 1)
    }

    /// A request has come.
    ///
    /// # Errors
    /// [`Refused`]: misaligned, or full: then it is not taken, and to be tried again after [`Effect::Release`] or
    /// [`Effect::Done`].
    pub fn on_request(&mut self, request: Request, out: &mut Vec<Effect>) -> Result<(), Refused> {
        if !request.address.is_multiple_of(request.width.bytes()) {
            self.counters.misaligned += 1;
            return Err(Refused::Misaligned);
        }
        let line = request.address / LINE;
        match self.joinable(line) {
            Joinable::Here(at) => {
                let entry = self.entries[at].as_mut().expect("it was found");
                if entry.pending.len() as u32 == self.config.subentries {
                    self.counters.full += 1;
                    return Err(Refused::Full);
                }
                entry.taken += 1;
                entry.writes |= request.operation.changes();
                if self.rules.holds(Rule::OrderIsKept) {
                    entry.pending.push_back(request);
                } else {
                    entry.pending.push_front(request);
                }
                self.counters.merged += 1;
            }
            Joinable::Nowhere => {
                let Some(free) = self.entries.iter().position(Option::is_none) else {
                    self.counters.full += 1;
                    return Err(Refused::Full);
                };
                self.entries[free] = Some(Entry {
                    line,
                    stage: Stage::Blocked,
                    pending: VecDeque::from([request]),
                    writes: request.operation.changes(),
                    taken: 1,
                    age: self.made,
                });
                self.made += 1;
                if !self.fetch_next(self.slot(line), out) {
                    self.counters.blocked += 1;
                }
            }
        }
        self.counters.taken += 1;
        Ok(())
    }

    /// The entry that takes a request for this line in, if there is one: the youngest of this line. It takes nothing more in
    /// if it has had its turn, and another line waits for its slot.
    fn joinable(&self, line: u64) -> Joinable {
        let of_line = self.all().filter(|(_, entry)| entry.line == line).max_by_key(|(_, entry)| entry.age);
        let Some((at, entry)) = of_line.filter(|_| self.rules.holds(Rule::SameLineMerges)) else {
            return Joinable::Nowhere;
        };
        let others_wait = || {
            let slot = self.slot(line);
            self.all().any(|(_, other)| other.age > entry.age && self.slot(other.line) == slot)
        };
        let had_its_turn =
            self.rules.holds(Rule::TurnIsBounded) && entry.taken >= self.config.subentries && others_wait();
        if had_its_turn { Joinable::Nowhere } else { Joinable::Here(at) }
    }

    fn all(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate().filter_map(|(at, entry)| entry.as_ref().map(|entry| (at, entry)))
    }

    /// Fetches the oldest line that waits for this slot, if the slot is free. Returns whether it did.
    fn fetch_next(&mut self, slot: u64, out: &mut Vec<Effect>) -> bool {
        let here = |entry: &Entry| self.slot(entry.line) == slot;
        let is_taken = self.all().any(|(_, entry)| here(entry) && entry.stage != Stage::Blocked);
        if is_taken && self.rules.holds(Rule::PlaceIsExclusive) {
            return false;
        }
        let waiting = |(_, entry): &(usize, &Entry)| here(entry) && entry.stage == Stage::Blocked;
        let Some((at, _)) = self.all().filter(waiting).min_by_key(|(_, entry)| entry.age) else {
            return false;
        };
        let entry = self.entries[at].as_mut().expect("it was found");
        entry.stage = Stage::Fetched;
        self.counters.fetched += 1;
        out.push(Effect::Fetch { entry: EntryId(at as u8), line: entry.line });
        true
    }

    /// The memory has brought a line.
    ///
    /// # Panics
    /// If it was not asked for it.
    pub fn on_line(&mut self, id: EntryId, contents: Line) {
        let entry =
            self.entries[usize::from(id.0)].as_mut().expect("an entry stays until its line is released");
        assert_eq!(entry.stage, Stage::Fetched, "{id:?} waits for no line");
        entry.stage = Stage::Here(contents);
    }

    /// Executes one operation on a line that is here: to be called again and again, as fast as the NIC's processor is. The
    /// oldest entry goes first. Returns false if there is nothing to execute.
    pub fn execute(&mut self, out: &mut Vec<Effect>) -> bool {
        let is_here = |(_, entry): &(usize, &Entry)| matches!(entry.stage, Stage::Here(_));
        let Some((at, _)) = self.all().filter(is_here).min_by_key(|(_, entry)| entry.age) else {
            return false;
        };
        let entry = self.entries[at].as_mut().expect("it was found");
        let Stage::Here(line) = &mut entry.stage else { unreachable!("it is here") };
        let request = entry.pending.pop_front().expect("an entry without requests is gone");
        let word = &mut line[(request.address % LINE / 8) as usize];
        let is_upper = !request.address.is_multiple_of(8);
        let old = request.width.take(self.rules, *word, is_upper);
        let new = request.operation.apply(request.width, old, request.operands);
        *word = request.width.put(self.rules, *word, is_upper, new);
        out.push(Effect::Done(Done { ticket: request.ticket, old }));
        if entry.pending.is_empty() || !self.rules.holds(Rule::LastLetsGo) {
            let entry = self.entries[at].take().expect("it was looked at");
            let Stage::Here(line) = entry.stage else { unreachable!("it is here") };
            let changed = (entry.writes && self.rules.holds(Rule::ChangedIsWritten)).then_some(line);
            self.counters.written += u64::from(changed.is_some());
            out.push(Effect::Release { line: entry.line, changed });
            self.fetch_next(self.slot(entry.line), out);
        }
        true
    }
}

/// Where a request can join what is pending.
enum Joinable {
    Here(usize),
    Nowhere,
}
