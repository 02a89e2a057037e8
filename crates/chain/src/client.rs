//! A client: gets, puts and deletes as machines, and what it knows of chains.
//!
//! In an application's process. Any number of operations are in flight; each is at one step. What must always hold: what an
//! operation returns was read under a cursor that counted until then, and is in all copies; a slot of this client's is in one operation at
//! a time.
//!
//! | file | holds |
//! | --- | --- |
//! | `client.rs` | operations, step by step; what READs and WRITEs bring |
//! | `linking.rs` | putting an entry behind the tail, in all copies |
//! | `awaiting.rs` | where a switch has sent an append behind what may not be in all copies yet |
//! | `answers.rs` | what the metadata server answers |
//! | `cursors.rs` | what is known of chains |

mod answers;
mod awaiting;
mod cursors;
mod linking;

use alloc::vec::Vec;

use sorted::{Map, Set};
use wire::chains::{Class, EntryHead, EntryKind, EntryVersion, Location, Next, Word};
use wire::{AllRules, Nanos, Rule, Rules};

use self::awaiting::Awaited;
use self::cursors::{Cursor, swap};
use self::linking::Link;
use crate::{Appended, Call, Outcome, Replica, Verb};

/// The caller's name for an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(pub u64);

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Reads the value.
    Get,
    /// Stores a value of so many bytes.
    Put(u32),
    /// Removes it.
    Delete,
}

/// How an operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// The value of so many bytes, which was read last.
    Value(u32),
    /// The key has no value.
    Nothing,
    /// It is stored, or removed.
    Appended,
    /// There is no memory for the value.
    NoMemory,
    /// The memory, or the metadata server, cannot be reached. Nothing was done.
    Failed,
}

/// What the client wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Do this to that copy; the outcome goes to [`Client::on_outcome`]. Several of one operation are WRITEs to copies, whose outcomes may come in
    /// any order, or both steps of an append.
    Verb(OpId, Replica, Verb),
    /// Ask the metadata server; the answer goes to [`Client::on_answer`].
    Call(OpId, Call),
    /// Tell the metadata server.
    Notice(Appended),
    /// The operation is over.
    Done {
        /// Which.
        op: OpId,
        /// How it ended.
        done: Done,
        /// Round trips that it took.
        trips: u32,
    },
}

/// How a client works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientConfig {
    /// How long a cursor counts: less than slots stay in quarantine, by more than clocks can differ meanwhile.
    pub lease: Nanos,
    /// Slots that are asked for at a time.
    pub slots: u32,
    /// Keys whose cursors are remembered.
    pub cursors: usize,
}

/// What an operation does when the tail is somewhere else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Walk {
    /// An append whose compare-and-swap failed reads its way to the tail before it tries again, as Clover does. Otherwise it
    /// tries at each entry that it learns of: fewer round trips where atomics cost no more than reads.
    pub appends_read: bool,
    /// Entries that an operation follows before it asks the metadata server where the tail is, and again after so many more; after
    /// twice as many from every fourth time on, since what the metadata server has not heard of yet it cannot tell.
    pub ask_after: u32,
}

impl Default for Walk {
    fn default() -> Self {
        Self { appends_read: false, ask_after: u32::MAX }
    }
}

/// What an operation waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Finding,
    Reading(Cursor, Replica),
    GettingSlot,
    Writing(Writes),
    /// Both steps of an append are posted, on one ordered queue pair; the WRITE's outcome comes first.
    Appending(Cursor),
    Swapping(Link),
    /// A switch has sent it behind what may not be in all copies yet.
    Awaiting(Awaited),
    /// It asks the metadata server for help with that.
    Asking(Awaited),
    Creating,
    /// Then it is over.
    Settling,
    /// Then it goes on.
    Renewing,
}

/// WRITEs of an entry to its copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Writes {
    in_flight: u8,
    written: u8,
    /// What became of one of them is not known.
    indeterminate: bool,
}

#[derive(Clone, Copy, Debug)]
struct Op {
    key: u64,
    request: Request,
    step: Step,
    /// When this step began.
    since: Nanos,
    /// Where the new entry goes, and whether it is there.
    slot: Option<(Location, EntryVersion)>,
    is_written: bool,
    /// A WRITE to it under this number was posted before, maybe by another operation.
    was_posted: bool,
    /// The key has no chain, as the metadata server said before the entry was written.
    is_absent: bool,
    /// Its compare-and-swap has failed, and it reads its way to the tail.
    is_walking: bool,
    /// Something follows this one in the first copy; and how often the last copy did not say so.
    behind: Option<(Location, EntryVersion)>,
    waits: u32,
    /// Entries that it has followed since it asked last, and how often it has asked.
    hops: u32,
    asked: u32,
    trips: u32,
}

impl Op {
    const fn entry(&self) -> Option<(u32, EntryKind)> {
        match self.request {
            Request::Get => None,
            Request::Put(len) => Some((len, EntryKind::Value)),
            Request::Delete => Some((0, EntryKind::Deleted)),
        }
    }
}

/// How often an append looks whether what it is to go behind is in all copies, until it asks the metadata server to bring it there.
const LOOKS: u32 = 4;

/// A client.
#[derive(Clone, Debug)]
pub struct Client<R: Rules = AllRules> {
    config: ClientConfig,
    walk: Walk,
    /// Copies of each slot.
    copies: u8,
    ops: Map<OpId, Op>,
    cursors: Map<u64, Cursor>,
    /// By class.
    slots: [Vec<(Location, EntryVersion)>; Class::COUNT],
    /// Those of them that may have been written to under their number.
    used: Set<Location>,
    /// A switch may send reads to the tail.
    steered_reads: bool,
    /// A switch may send appends to the tail.
    steered_appends: bool,
    /// For how long a cursor counts for appends: longer than `lease` where a switch steers them.
    appends: Nanos,
    /// Other keys whose tails it asks for with each key's.
    asks_for_more: u32,
    /// An append's compare-and-swap is posted together with its WRITE.
    swaps_at_once: bool,
    rules: R,
}

impl Client {
    /// A client that knows nothing yet.
    pub fn new(config: ClientConfig) -> Self {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Client<R> {
    /// The same, of which some rules may not hold: for checkers.
    pub fn with_rules(rules: R, config: ClientConfig) -> Self {
        Self {
            config,
            walk: Walk::default(),
            copies: 1,
            ops: Map::new(),
            cursors: Map::new(),
            slots: Default::default(),
            used: Set::new(),
            steered_reads: false,
            steered_appends: false,
            appends: config.lease,
            asks_for_more: 0,
            swaps_at_once: false,
            rules,
        }
    }

    /// From now on, what a read brings may be a later entry of the same chain than the one that was asked for: a switch steers. Then
    /// nothing tells that the one that was asked for is still in use.
    pub fn expect_steered_reads(&mut self) {
        self.steered_reads = true;
    }

    /// From now on, an append goes behind what was known no longer than so long ago: a switch sends it to the tail, and if it does not, the
    /// memory compares the number of the entry's use, and finds another one where the slot was used anew. So it is only to be
    /// shorter than it takes to use a slot 256 times, with a quarantine each. (Without such a switch an old cursor leads to a long walk.)
    /// Where there are copies, whoever appends walks, and a cursor counts for no longer than it does for reads.
    pub fn expect_steered_appends(&mut self, known: Nanos) {
        self.steered_appends = true;
        self.appends = if self.copies == 1 { known.max(self.config.lease) } else { self.config.lease };
    }

    /// The same, which posts both steps of an append at once where it knows a tail: all of the store's memory is behind one queue pair, which
    /// executes one after the other, and says how they ended in this order. If the first one's outcome is not known, that of the
    /// second one is not known either.
    ///
    /// So it is not for clients of a switch that binds words to queue pairs of its own (`switch::chains::binding`): there the
    /// compare-and-swap may be executed before the WRITE, and the entry is in the chain and not in memory. Whoever makes clients asks the
    /// switch's binding, which says whether they may (`switch::chains::Binding::lets_clients_swap_at_once`).
    #[must_use]
    pub fn swapping_at_once(self) -> Self {
        Self { swaps_at_once: true, ..self }
    }

    /// The same, of a store that has so many copies of each slot.
    ///
    /// # Panics
    /// If that is none, or several and both steps of an append are posted at once: copies are behind several queue pairs.
    #[must_use]
    pub fn with_copies(self, copies: u8) -> Self {
        assert!(copies == 1 || copies > 1 && !self.swaps_at_once, "{copies} copies");
        Self { copies, ..self }
    }

    /// The same, which asks for so many other keys' tails with each key's. That pays where an old cursor leads no further from the tail.
    #[must_use]
    pub fn asking_for_more(self, keys: u32) -> Self {
        Self { asks_for_more: keys, ..self }
    }

    /// The same, on its way to tails like this.
    #[must_use]
    pub fn walking(self, walk: Walk) -> Self {
        Self { walk, ..self }
    }

    /// Begins an operation.
    ///
    /// # Panics
    /// If one of this name is in flight.
    pub fn begin(&mut self, now: Nanos, id: OpId, key: u64, request: Request, out: &mut Vec<Effect>) {
        let op = Op {
            key,
            request,
            step: Step::Finding,
            since: now,
            slot: None,
            is_written: false,
            was_posted: false,
            is_absent: false,
            is_walking: false,
            behind: None,
            waits: 0,
            hops: 0,
            asked: 0,
            trips: 0,
        };
        let before = self.ops.insert(id, op);
        assert!(before.is_none(), "{id:?} is in flight");
        self.go_on(now, id, out);
    }

    /// Something was done to memory.
    ///
    /// # Panics
    /// If nobody waits for that.
    pub fn on_outcome(&mut self, now: Nanos, id: OpId, outcome: Outcome, out: &mut Vec<Effect>) {
        let op = self.op(id);
        let since = op.since;
        match (op.step, outcome) {
            (Step::Reading(..), Outcome::Unknown | Outcome::Superseded) => self.end(id, Done::Failed, out),
            (Step::Reading(_, Replica::FIRST), Outcome::Dead) => self.end(id, Done::Failed, out),
            // Then the one in front of it is the last.
            (Step::Reading(cursor, Replica(dead)), Outcome::Dead) => {
                op.trips -= 1;
                self.read(now, id, cursor, Replica(dead - 1), out);
            }
            (Step::Reading(cursor, _), Outcome::Read(head)) => {
                self.on_read(now, id, cursor, since, head, out)
            }
            (
                Step::Writing(writes),
                Outcome::Written | Outcome::Unknown | Outcome::Superseded | Outcome::Dead,
            ) => self.on_written(now, id, writes, outcome, out),
            // What became of the compare-and-swap comes next.
            (Step::Appending(cursor), Outcome::Written | Outcome::Unknown) => {
                (op.is_written, op.step) = (true, Step::Swapping(Link::new(cursor, since)));
            }
            (Step::Swapping(link), outcome) => self.on_linking(now, id, link, outcome, out),
            (Step::Awaiting(awaited), outcome) => self.on_looked(now, id, awaited, outcome, out),
            (step, outcome) => panic!("{id:?} at {step:?} ended with {outcome:?}"),
        }
    }

    /// A WRITE of an operation's entry to one of its copies is over.
    fn on_written(&mut self, now: Nanos, id: OpId, writes: Writes, outcome: Outcome, out: &mut Vec<Effect>) {
        let writes = Writes {
            in_flight: writes.in_flight - 1,
            written: writes.written + u8::from(outcome == Outcome::Written),
            indeterminate: writes.indeterminate || matches!(outcome, Outcome::Unknown | Outcome::Superseded),
        };
        let rules = self.rules;
        let op = self.op(id);
        op.step = Step::Writing(writes);
        if writes.in_flight > 0 {
            return;
        }
        // Otherwise the slot is still ours: nobody else knows of it, and a WRITE that was not executed never will be.
        op.is_written =
            writes.written > 0 && !(writes.indeterminate && rules.holds(Rule::AllCopiesAreWritten));
        if op.is_written { self.go_on(now, id, out) } else { self.end(id, Done::Failed, out) }
    }

    fn on_read(
        &mut self,
        now: Nanos,
        id: OpId,
        cursor: Cursor,
        since: Nanos,
        head: Option<EntryHead>,
        out: &mut Vec<Effect>,
    ) {
        let key = self.op(id).key;
        let steered = self.steered_reads;
        let is_it = |head: &EntryHead| {
            let is_asked_for = head.word.entry == cursor.version && (!steered || head.at == cursor.at);
            (is_asked_for || steered && head.at != cursor.at) && head.key == key
        };
        let counts = !self.rules.holds(Rule::CursorsExpire) || self.counts(now, &cursor);
        let Some(head) = head.filter(|head| counts && is_it(head)) else {
            return self.lose(now, id, out);
        };
        // It says itself where it is. It was in use when it was read: it was the tail.
        let at = if steered { head.at } else { cursor.at };
        let tail = Cursor { at, version: head.word.entry, known: since };
        match head.word.next {
            Next::Tail if self.op(id).request != Request::Get => {
                self.learn_from(now, key, cursor, tail);
                self.on_tail(now, id, cursor, out);
            }
            Next::Tail => {
                self.learn_from(now, key, cursor, tail);
                let done = match head.kind {
                    EntryKind::Value => Done::Value(head.len),
                    EntryKind::Deleted => Done::Nothing,
                };
                self.end(id, done, out);
            }
            Next::Entry(at, version) => {
                if self.op(id).behind.take().is_some() {
                    // Here it follows in all copies.
                    self.op(id).is_walking = self.walk.appends_read;
                }
                self.follow(now, id, cursor, Cursor { at, version, ..cursor }, out);
            }
            Next::Closed => self.lose(now, id, out),
        }
    }

    /// What follows where the tail was thought to be.
    fn follow(&mut self, now: Nanos, id: OpId, from: Cursor, cursor: Cursor, out: &mut Vec<Effect>) {
        let ask_after = self.walk.ask_after;
        let op = self.op(id);
        op.hops += 1;
        let after = ask_after.checked_shl(op.asked / 4).filter(|after| *after >= ask_after);
        let (key, appends) = (op.key, op.slot.is_some());
        let is_far = op.hops >= after.unwrap_or(u32::MAX);
        // What is too old to be read may be far behind the tail.
        let asks = is_far || appends && !self.counts(now, &cursor);
        self.learn_from(now, key, from, cursor);
        if asks {
            let op = self.op(id);
            (op.hops, op.asked) = (0, op.asked + 1);
            self.find(now, id, out);
        } else {
            self.go_on(now, id, out);
        }
    }

    /// Does the next step.
    fn go_on(&mut self, now: Nanos, id: OpId, out: &mut Vec<Effect>) {
        let op = *self.op(id);
        if let Some((len, kind)) = op.entry() {
            let Some(class) = self.class(&op) else { return self.end(id, Done::NoMemory, out) };
            let Some((at, version)) = op.slot else {
                match self.slots[usize::from(class.number())].pop() {
                    Some(slot) => {
                        let was_posted = self.used.remove(&slot.0);
                        let op = self.op(id);
                        (op.slot, op.was_posted) = (Some(slot), was_posted);
                        self.go_on(now, id, out);
                    }
                    None => {
                        let call = Call::Slots { class, count: self.config.slots };
                        self.call(now, id, Step::GettingSlot, call, out);
                    }
                }
                return;
            };
            if !op.is_written {
                let cursor = self.cursors.get(&op.key).copied().filter(|cursor| self.takes(now, &op, cursor));
                let head = EntryHead { word: Word::tail(version), key: op.key, at, len, kind };
                self.op(id).was_posted = true;
                // What was written there before under this number would be taken for the entry, and others appended behind it, until the
                // WRITE overwrites that.
                let at_once = self.swaps_at_once && !op.was_posted;
                return match cursor.filter(|_| at_once) {
                    Some(cursor) => {
                        self.step(now, id, Step::Appending(cursor));
                        out.push(Effect::Verb(id, Replica::FIRST, Verb::Write(at, head)));
                        out.push(Effect::Verb(id, Replica::FIRST, swap(&cursor, (at, version))));
                    }
                    // So that it can go behind that at once.
                    None if at_once && !op.is_absent => {
                        self.op(id).was_posted = false;
                        self.find(now, id, out);
                    }
                    None => self.write(now, id, at, head, out),
                };
            }
            if op.is_absent {
                self.op(id).is_absent = false;
                let call = Call::Create { key: op.key, at, version };
                return self.call(now, id, Step::Creating, call, out);
            }
        }
        let Some(cursor) = self.cursors.get(&op.key).copied().filter(|cursor| self.takes(now, &op, cursor))
        else {
            return self.find(now, id, out);
        };
        match op.slot {
            Some(_) if !op.is_walking => self.begin_link(now, id, cursor, out),
            _ => self.read(now, id, cursor, self.last(), out),
        }
    }

    /// The copy that is read.
    fn last(&self) -> Replica {
        if self.rules.holds(Rule::GetsReadTheLastCopy) { Replica(self.copies - 1) } else { Replica::FIRST }
    }

    fn read(&mut self, now: Nanos, id: OpId, cursor: Cursor, replica: Replica, out: &mut Vec<Effect>) {
        self.step(now, id, Step::Reading(cursor, replica));
        out.push(Effect::Verb(id, replica, Verb::Read(cursor.at)));
    }

    /// To all copies at once.
    fn write(&mut self, now: Nanos, id: OpId, at: Location, head: EntryHead, out: &mut Vec<Effect>) {
        let writes = Writes { in_flight: self.copies, written: 0, indeterminate: false };
        self.step(now, id, Step::Writing(writes));
        out.extend((0..self.copies).map(|copy| Effect::Verb(id, Replica(copy), Verb::Write(at, head))));
    }

    fn class(&self, op: &Op) -> Option<Class> {
        op.entry().and_then(|(len, _)| Class::of_value(len))
    }

    /// The cursor led nowhere.
    fn lose(&mut self, now: Nanos, id: OpId, out: &mut Vec<Effect>) {
        let key = self.op(id).key;
        self.cursors.remove(&key);
        self.go_on(now, id, out);
    }

    fn call(&mut self, now: Nanos, id: OpId, step: Step, call: Call, out: &mut Vec<Effect>) {
        self.step(now, id, step);
        out.push(Effect::Call(id, call));
    }

    fn find(&mut self, now: Nanos, id: OpId, out: &mut Vec<Effect>) {
        let key = self.op(id).key;
        let call = match self.asks_for_more {
            0 => Call::Find { key },
            more => Call::FindSome { key, more },
        };
        self.call(now, id, Step::Finding, call, out);
    }

    fn step(&mut self, now: Nanos, id: OpId, step: Step) {
        let op = self.op(id);
        (op.step, op.since) = (step, now);
        op.trips += 1;
    }

    /// The operation's entry is in the chain.
    fn appended(&mut self, id: OpId, out: &mut Vec<Effect>) {
        self.op(id).slot = None;
        self.end(id, Done::Appended, out);
    }

    fn end(&mut self, id: OpId, done: Done, out: &mut Vec<Effect>) {
        let op = self.ops.remove(&id).expect("it is in flight");
        if let (Some(slot), Some(class)) = (op.slot, self.class(&op)) {
            self.slots[usize::from(class.number())].push(slot);
            if op.was_posted {
                self.used.insert(slot.0);
            }
        }
        out.push(Effect::Done { op: id, done, trips: op.trips });
    }

    fn op(&mut self, id: OpId) -> &mut Op {
        self.ops.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not in flight"))
    }
}
