//! A client: gets, puts and deletes as machines, and what it knows of chains.
//!
//! In an application's process. Any number of operations are under way; each is at one step. What must always hold: what an
//! operation returns was read under a cursor that counted until then; a slot of this client's is in one operation at a time.

mod cursors;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::marker::PhantomData;

use wire::chain::{Class, EntryHead, EntryKind, EntryVersion, Location, Next, Reply, Word};
use wire::{ChainRules, Faithful, Nanos};

use self::cursors::{Cursor, swap};
use crate::{Answer, Appended, Call, Outcome, Verb};

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
    /// Do this to memory; the outcome goes to [`Client::on_outcome`].
    Verb(OpId, Verb),
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
pub struct Config {
    /// How long a cursor counts: less than slots rest, by more than clocks can differ meanwhile.
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
    Reading(Cursor),
    GettingSlot,
    Writing,
    /// Both steps of an append are posted, on one ordered queue pair; the WRITE's outcome comes first.
    Appending(Cursor),
    Swapping(Cursor),
    Creating,
    /// Then it is over.
    Settling,
    /// Then it goes on.
    Renewing,
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

/// A client.
#[derive(Clone, Debug)]
pub struct Client<R: ChainRules = Faithful> {
    config: Config,
    walk: Walk,
    ops: BTreeMap<OpId, Op>,
    cursors: BTreeMap<u64, Cursor>,
    /// By class.
    slots: [Vec<(Location, EntryVersion)>; Class::COUNT],
    /// Those of them that may have been written to under their number.
    used: BTreeSet<Location>,
    /// A switch may send reads to the tail.
    steered_reads: bool,
    /// For how long a cursor counts for appends: longer than `lease` where a switch steers them.
    appends: Nanos,
    /// Other keys whose tails it asks for with each key's.
    asks_for_more: u32,
    /// An append's compare-and-swap is posted together with its WRITE.
    swaps_at_once: bool,
    rules: PhantomData<R>,
}

impl<R: ChainRules> Client<R> {
    /// A client that knows nothing yet.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            walk: Walk::default(),
            ops: BTreeMap::new(),
            cursors: BTreeMap::new(),
            slots: Default::default(),
            used: BTreeSet::new(),
            steered_reads: false,
            appends: config.lease,
            asks_for_more: 0,
            swaps_at_once: false,
            rules: PhantomData,
        }
    }

    /// From now on, what a read brings may be a later entry of the same chain than the one that was asked for: a switch steers. Then
    /// nothing tells that the one that was asked for is still in use.
    pub fn expect_steered_reads(&mut self) {
        self.steered_reads = true;
    }

    /// From now on, an append goes behind what was known no longer than so long ago: a switch sends it to the tail, and if it does not, the
    /// memory compares the number of the entry's use, and finds another one where the slot was used anew. So it is only to be
    /// shorter than it takes to use a slot 256 times, with a rest each. (Without such a switch an old cursor leads to a long walk.)
    pub fn expect_steered_appends(&mut self, known: Nanos) {
        self.appends = known.max(self.config.lease);
    }

    /// The same, which posts both steps of an append at once where it knows a tail: all of the store's memory is behind one queue pair, which
    /// executes one after the other, and says how they ended in this order. If the first one's outcome is not known, that of the
    /// second one is not known either.
    #[must_use]
    pub fn swapping_at_once(self) -> Self {
        Self { swaps_at_once: true, ..self }
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
    /// If one of this name is under way.
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
            hops: 0,
            asked: 0,
            trips: 0,
        };
        let before = self.ops.insert(id, op);
        assert!(before.is_none(), "{id:?} is under way");
        self.go_on(now, id, out);
    }

    /// Something was done to memory.
    ///
    /// # Panics
    /// If nobody waits for that.
    pub fn on_outcome(&mut self, now: Nanos, id: OpId, outcome: Outcome, out: &mut Vec<Effect>) {
        let op = self.op(id);
        let (key, since) = (op.key, op.since);
        match (op.step, outcome) {
            (Step::Reading(_), Outcome::Unknown) => self.end(id, Done::Failed, out),
            // The slot is still ours: nobody else knows of it, and a WRITE that was not executed never will be.
            (Step::Writing, Outcome::Unknown) => self.end(id, Done::Failed, out),
            // What became of the compare-and-swap comes next.
            (Step::Appending(cursor), Outcome::Written | Outcome::Unknown) => {
                let op = self.op(id);
                (op.is_written, op.step) = (true, Step::Swapping(cursor));
            }
            (Step::Swapping(_), Outcome::Unknown) if R::DOUBTS_ARE_SETTLED => {
                let (at, version) = op.slot.expect("what is swapped in");
                self.call(now, id, Step::Settling, Call::Settle { key, at, version }, out);
            }
            (Step::Swapping(_), Outcome::Unknown) => self.end(id, Done::Failed, out),
            (Step::Reading(cursor), Outcome::Read(head)) => self.on_read(now, id, cursor, since, head, out),
            (Step::Writing, Outcome::Written) => {
                self.op(id).is_written = true;
                self.go_on(now, id, out);
            }
            (Step::Swapping(cursor), Outcome::Swapped(found)) => match Reply::from_bits(found) {
                Reply::Original(found) => self.on_swapped(now, id, cursor, since, found, out),
                reply => self.on_steered(now, id, since, reply, out),
            },
            (step, outcome) => panic!("{id:?} at {step:?} ended with {outcome:?}"),
        }
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
        let counts = !R::CURSORS_EXPIRE || self.counts(now, &cursor);
        let Some(head) = head.filter(|head| counts && is_it(head)) else {
            return self.lose(now, id, out);
        };
        // It says itself where it is. It was in use when it was read: it was the tail.
        let at = if steered { head.at } else { cursor.at };
        let tail = Cursor { at, version: head.word.entry, known: since };
        match head.word.next {
            Next::Tail if self.op(id).request != Request::Get => {
                self.learn_from(now, key, cursor, tail);
                self.op(id).is_walking = false;
                self.go_on(now, id, out);
            }
            Next::Tail => {
                self.learn_from(now, key, cursor, tail);
                let done = match head.kind {
                    EntryKind::Value => Done::Value(head.len),
                    EntryKind::Deleted => Done::Nothing,
                };
                self.end(id, done, out);
            }
            Next::Entry(at, version) => self.follow(now, id, cursor, Cursor { at, version, ..cursor }, out),
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

    fn on_swapped(
        &mut self,
        now: Nanos,
        id: OpId,
        cursor: Cursor,
        since: Nanos,
        found: u64,
        out: &mut Vec<Effect>,
    ) {
        let op = *self.op(id);
        let found = Word::from_bits(found).filter(|word| word.entry == cursor.version);
        match found.map(|word| word.next) {
            Some(Next::Tail) => {
                let (at, version) = op.slot.expect("what was swapped in");
                self.learn_from(now, op.key, cursor, Cursor { at, version, known: since });
                let (_, kind) = op.entry().expect("it appends");
                out.push(Effect::Notice(Appended { key: op.key, behind: cursor.at, at, version, kind }));
                self.appended(id, out);
            }
            Some(Next::Entry(at, version)) => {
                self.op(id).is_walking = self.walk.appends_read;
                self.follow(now, id, cursor, Cursor { at, version, ..cursor }, out);
            }
            Some(Next::Closed) | None => self.lose(now, id, out),
        }
    }

    /// A switch has sent the compare-and-swap somewhere else, or does not know what became of it.
    fn on_steered(&mut self, now: Nanos, id: OpId, since: Nanos, reply: Reply, out: &mut Vec<Effect>) {
        let op = *self.op(id);
        let (at, version) = op.slot.expect("what was swapped in");
        match reply {
            Reply::Steered(behind, _) => {
                self.learn(op.key, Cursor { at, version, known: since });
                let (_, kind) = op.entry().expect("it appends");
                out.push(Effect::Notice(Appended { key: op.key, behind, at, version, kind }));
                self.appended(id, out);
            }
            Reply::Refused if R::REFUSED_ARE_RENEWED => {
                self.call(now, id, Step::Renewing, Call::Renew { at, version }, out);
            }
            Reply::Refused => self.lose(now, id, out),
            Reply::Doubted | Reply::Original(_) => {
                let call = Call::Settle { key: op.key, at, version };
                self.call(now, id, Step::Renewing, call, out);
            }
        }
    }

    /// The metadata server has answered; none: it cannot be reached.
    ///
    /// # Panics
    /// If nobody waits for that.
    pub fn on_answer(&mut self, now: Nanos, id: OpId, answer: Option<Answer>, out: &mut Vec<Effect>) {
        let op = *self.op(id);
        match (op.step, answer) {
            (_, None) => self.end(id, Done::Failed, out),
            (Step::Finding | Step::Creating, Some(Answer::Found(at, version))) => {
                self.learn(op.key, Cursor { at, version, known: op.since });
                self.go_on(now, id, out);
            }
            (Step::Finding, Some(Answer::FoundSome(at, version, others))) => {
                for (key, at, version) in others {
                    if self.cursors.get(&key).is_none_or(|cursor| !self.counts(now, cursor)) {
                        self.learn(key, Cursor { at, version, known: op.since });
                    }
                }
                self.learn(op.key, Cursor { at, version, known: op.since });
                self.go_on(now, id, out);
            }
            (Step::Finding, Some(Answer::Absent)) => match (op.request, op.slot) {
                (Request::Put(_), Some(_)) => {
                    self.op(id).is_absent = true;
                    self.go_on(now, id, out);
                }
                _ => self.end(id, Done::Nothing, out),
            },
            (Step::GettingSlot, Some(Answer::Slots(slots))) => {
                let class = self.class(&op).expect("it was looked at");
                self.slots[usize::from(class.number())].extend(slots);
                if self.slots[usize::from(class.number())].is_empty() {
                    return self.end(id, Done::NoMemory, out);
                }
                self.go_on(now, id, out);
            }
            // The metadata server does not know the slot as ours.
            (Step::Creating, Some(Answer::Absent)) => self.end(id, Done::Failed, out),
            (Step::Creating, Some(Answer::Created)) => {
                let (at, version) = op.slot.expect("what begins the chain");
                self.learn(op.key, Cursor { at, version, known: op.since });
                self.appended(id, out);
            }
            (Step::Settling | Step::Renewing, Some(Answer::Linked)) => self.appended(id, out),
            (step @ (Step::Settling | Step::Renewing), Some(Answer::Free(version))) => {
                let op = self.op(id);
                let (at, _) = op.slot.expect("what was in doubt");
                (op.slot, op.is_written, op.was_posted) = (Some((at, version)), false, false);
                if step == Step::Renewing {
                    self.go_on(now, id, out);
                } else {
                    self.end(id, Done::Failed, out);
                }
            }
            (step, answer) => panic!("{id:?} at {step:?} was answered {answer:?}"),
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
                        self.verb(now, id, Step::Appending(cursor), Verb::Write(at, head), out);
                        out.push(Effect::Verb(id, swap(&cursor, (at, version))));
                    }
                    // So that it can go behind that at once.
                    None if at_once && !op.is_absent => {
                        self.op(id).was_posted = false;
                        self.find(now, id, out);
                    }
                    None => self.verb(now, id, Step::Writing, Verb::Write(at, head), out),
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
            Some(slot) if !op.is_walking => {
                self.verb(now, id, Step::Swapping(cursor), swap(&cursor, slot), out);
            }
            _ => self.verb(now, id, Step::Reading(cursor), Verb::Read(cursor.at), out),
        }
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

    fn verb(&mut self, now: Nanos, id: OpId, step: Step, verb: Verb, out: &mut Vec<Effect>) {
        self.step(now, id, step);
        out.push(Effect::Verb(id, verb));
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
        let op = self.ops.remove(&id).expect("it is under way");
        if let (Some(slot), Some(class)) = (op.slot, self.class(&op)) {
            self.slots[usize::from(class.number())].push(slot);
            if op.was_posted {
                self.used.insert(slot.0);
            }
        }
        out.push(Effect::Done { op: id, done, trips: op.trips });
    }

    fn op(&mut self, id: OpId) -> &mut Op {
        self.ops.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not under way"))
    }
}
