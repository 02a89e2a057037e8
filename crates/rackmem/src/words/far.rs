//! Operations on words beyond the reach of loads and stores, on their way: collected into batches, one for each home.
//!
//! On the application's thread. A batch is open until it is full, or until somebody wants to know how one of its operations ended;
//! then it is one packet to its home, and one back. Additions to one word, one right after the other, are one entry of it. What must
//! always hold: each operation is in one batch, in the order in which the thread began them; a batch is sent once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use live::actor::{Failure, ThreadContext};
use live::networked::NetworkedNode;
use live::networked::verbs::{Far, HomeIncarnation, Ticket, refused_words};
use nic::words::Request;
use wire::roce::Key;
use wire::roce::batch::{Entry, Operation, SECTION_BYTES, Writer};
use wire::{GlobalAddr, Incarnation, NodeId};

use crate::attach::AskedWords;
use crate::error::Error;

/// Batches that a handle may have in flight: behind that whoever begins one waits for the oldest.
const MOST_SENT: usize = 1024;

/// Operations that travel together.
pub(super) struct Batch {
    home: HomeIncarnation,
    state: Mutex<FarState>,
}

struct FarState {
    stage: Stage,
    /// Of each entry: the address of its words, for errors; and whether nobody but `flush` will ask how it ended.
    entries: Vec<(GlobalAddr, bool)>,
}

enum Stage {
    Open(Collected),
    Sent(Arc<Ticket>),
    Over(Result<Box<[u64]>, Failure>),
}

/// What is to be sent.
struct Collected {
    writer: Writer,
    /// The last entry, which is still to be written: what is added to the same word next belongs to it.
    last: Option<(Key, Entry)>,
}

/// Where an operation's outcome is to be found in its batch's answer.
#[derive(Clone, Copy)]
struct Spot {
    /// Which entry, and which of those that fetch.
    entry: u32,
    fetch: u32,
    /// What others of the same entry add before it.
    plus: u64,
}

/// One operation's place in its batch.
#[derive(Clone)]
pub(super) struct BatchIndex {
    batch: Arc<Batch>,
    spot: Spot,
}

/// A batch that is not full.
enum Open {
    /// Nobody else knows of it, so nobody has to be kept out.
    Own(FarState),
    /// Whoever has an operation in it may send it.
    Shared(Arc<Batch>),
    /// For all homes: the daemon that is asked sorts them.
    Asked(Arc<AskedWords>),
}

/// What a handle has in flight.
#[derive(Default)]
pub(crate) struct Pipeline {
    open: Vec<(HomeIncarnation, Open)>,
    sent: VecDeque<Arc<Batch>>,
    /// The first error of an operation that nobody else asks for.
    failed: Option<Error>,
    /// Memory of batches that are over.
    spare: Option<Writer>,
    spare_entries: Vec<Vec<(GlobalAddr, bool)>>,
}

impl Collected {
    /// Entries so far are this many. None: it does not fit.
    fn push(
        &mut self,
        key: Key,
        entry: &Entry,
        (room, entries): (usize, &mut Vec<(GlobalAddr, bool)>),
        (addr, silent): (GlobalAddr, bool),
    ) -> Option<Spot> {
        if let Some((of, last)) = &mut self.last
            && (last.operation, entry.operation) == (Operation::Add, Operation::Add)
            && (*of, last.address, last.is_wide) == (key, entry.address, entry.is_wide)
            && let Some(at) = entries.last_mut()
        {
            let plus = last.operand;
            last.operand = plus.wrapping_add(entry.operand);
            if !last.is_wide {
                last.operand &= u64::from(u32::MAX);
            }
            last.fetches |= entry.fetches;
            at.1 |= silent;
            return Some(Spot { entry: entries.len() as u32 - 1, fetch: self.fetches(), plus });
        }
        self.write_last();
        // Whether it will fetch is not known for good: additions to come may want to know.
        let answer = (refused_words(entries.len() + 1) + self.fetches() as usize + 1) * 8;
        if answer > room || self.writer.bytes().len() + SECTION_BYTES + entry.bytes() > room {
            return None;
        }
        self.last = Some((key, *entry));
        entries.push((addr, silent));
        Some(Spot { entry: entries.len() as u32 - 1, fetch: self.fetches(), plus: 0 })
    }

    /// How many entries fetch, before the last.
    fn fetches(&self) -> u32 {
        (self.writer.answer_bytes() / 8) as u32
    }

    fn write_last(&mut self) {
        if let Some((key, last)) = self.last.take() {
            self.writer.push(key, &last).expect("it was looked at that it fits");
        }
    }

    fn post(
        &mut self,
        node: &NetworkedNode,
        context: &mut ThreadContext,
        home: HomeIncarnation,
    ) -> Arc<Ticket> {
        self.write_last();
        let counts = (self.writer.len(), self.fetches() as usize);
        node.post_batch(context, home, self.writer.bytes(), counts)
    }
}

impl FarState {
    /// How an operation ended: what its word was, if it fetches.
    fn outcome(&self, spot: Spot) -> Option<Result<u64, Error>> {
        let Stage::Over(answer) = &self.stage else { return None };
        let Spot { entry, fetch, plus } = spot;
        let (entry, fetch) = (entry as usize, fetch as usize);
        let addr = self.entries[entry].0;
        Some(match answer {
            Ok(words) if words[entry / 64] >> (entry % 64) & 1 == 1 => Err(Error::Unallocated { addr }),
            Ok(words) => {
                let was = words.get(refused_words(self.entries.len()) + fetch).copied().unwrap_or(0);
                Ok(was.wrapping_add(plus))
            }
            Err(why) => Err(crate::handle::failed(*why, addr, 0)),
        })
    }

    /// True if its answer is here.
    fn is_over(&mut self) -> bool {
        if let Stage::Sent(ticket) = &self.stage
            && let Some(answer) = ticket.answer()
        {
            self.stage = Stage::Over(answer);
        }
        matches!(self.stage, Stage::Over(_))
    }
}

impl Batch {
    fn state(&self) -> MutexGuard<'_, FarState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends it, if that was not done.
    fn send(&self, node: &NetworkedNode, context: &mut ThreadContext) {
        let mut state = self.state();
        if let Stage::Open(collected) = &mut state.stage {
            state.stage = Stage::Sent(collected.post(node, context, self.home));
        }
    }

    /// Waits until it is over.
    fn finish(&self, node: &NetworkedNode, context: &mut ThreadContext) {
        self.send(node, context);
        while !self.is_over() {
            let ticket = match &self.state().stage {
                Stage::Sent(ticket) => Arc::clone(ticket),
                _ => continue,
            };
            node.await_batch(context, &ticket);
            if node.lease().is_fenced() && !ticket.is_over() {
                self.state().stage = Stage::Over(Err(Failure::Fenced));
            }
        }
    }

    /// True if its answer is here.
    fn is_over(&self) -> bool {
        self.state().is_over()
    }

    /// The first error of an operation that nobody else asks for.
    fn failure(&self) -> Option<Error> {
        let state = self.state();
        let Stage::Over(answer) = &state.stage else { return None };
        if let Ok(words) = answer
            && words[..refused_words(state.entries.len())].iter().all(|refused| *refused == 0)
        {
            return None;
        }
        let silent = (0..).zip(&state.entries).filter(|(_, (_, silent))| *silent);
        silent.into_iter().find_map(|(entry, _)| state.outcome(Spot { entry, fetch: 0, plus: 0 })?.err())
    }
}

impl Open {
    /// None: it is full, or somebody has sent it.
    fn push(
        &mut self,
        home: HomeIncarnation,
        key: Key,
        entry: &Entry,
        room: usize,
        of: (GlobalAddr, bool),
    ) -> Option<Spot> {
        let push = |state: &mut FarState| match &mut state.stage {
            Stage::Open(collected) => collected.push(key, entry, (room, &mut state.entries), of),
            _ => None,
        };
        match self {
            Self::Shared(batch) => push(&mut batch.state()),
            Self::Asked(_) => unreachable!("an attached handle asks its daemon"),
            Self::Own(state) if of.1 => push(state),
            Self::Own(state) => {
                // From now on somebody else may ask for an operation of it.
                let none = FarState { stage: Stage::Over(Err(Failure::Broken)), entries: Vec::new() };
                let mut state = std::mem::replace(state, none);
                let spot = push(&mut state);
                *self = Self::Shared(Arc::new(Batch { home, state: Mutex::new(state) }));
                spot
            }
        }
    }
}

impl BatchIndex {
    /// What the word was, if that is known by now.
    pub(super) fn poll(
        &self,
        node: &NetworkedNode,
        context: &mut ThreadContext,
    ) -> Option<Result<u64, Error>> {
        self.batch.send(node, context);
        if !self.batch.is_over() {
            node.look(context);
        }
        self.outcome()
    }

    /// Waits for what the word was.
    pub(super) fn wait(&self, node: &NetworkedNode, context: &mut ThreadContext) -> Result<u64, Error> {
        if let Some(outcome) = self.outcome() {
            return outcome;
        }
        self.batch.finish(node, context);
        self.outcome().expect("it is over")
    }

    fn outcome(&self) -> Option<Result<u64, Error>> {
        let mut state = self.batch.state();
        if state.is_over() { state.outcome(self.spot) } else { None }
    }
}

impl Pipeline {
    /// Adds an operation. If it fetches nothing, and nobody will ask how it ended (`silent`), it has no place.
    pub(super) fn push(
        &mut self,
        node: &NetworkedNode,
        context: &mut ThreadContext,
        region: &Far,
        request: &Request,
        silent: bool,
    ) -> Option<BatchIndex> {
        let (home, room) = (region.home(), node.batch_bytes());
        let (entry, of) = (request.to_wire(!silent), (region.addr, silent));
        loop {
            let at = match self.open.iter().position(|(to, _)| *to == home) {
                Some(at) => at,
                None => self.begin(home, room),
            };
            let open = &mut self.open[at].1;
            if let Some(spot) = open.push(home, region.key, &entry, room, of) {
                return match open {
                    Open::Shared(batch) if !silent => Some(BatchIndex { batch: Arc::clone(batch), spot }),
                    _ => None,
                };
            }
            self.send(node, context, home);
        }
    }

    fn begin(&mut self, home: HomeIncarnation, room: usize) -> usize {
        let writer = self.spare.take().unwrap_or_else(|| Writer::new(room));
        let collected = Collected { writer, last: None };
        let entries = self.spare_entries.pop().unwrap_or_default();
        self.open.push((home, Open::Own(FarState { stage: Stage::Open(collected), entries })));
        self.open.len() - 1
    }

    /// Sends what is collected for a home.
    pub(super) fn send(&mut self, node: &NetworkedNode, context: &mut ThreadContext, home: HomeIncarnation) {
        let Some(at) = self.open.iter().position(|(to, _)| *to == home) else { return };
        let batch = match self.open.swap_remove(at).1 {
            Open::Own(FarState { stage: Stage::Open(mut collected), entries }) => {
                let stage = Stage::Sent(collected.post(node, context, home));
                collected.writer.clear();
                self.spare = Some(collected.writer);
                Arc::new(Batch { home, state: Mutex::new(FarState { stage, entries }) })
            }
            Open::Own(_) | Open::Asked(_) => unreachable!("nobody else could send it"),
            Open::Shared(batch) => {
                batch.send(node, context);
                batch
            }
        };
        self.sent.push_back(batch);
        while let Some(oldest) = self.sent.front() {
            if self.sent.len() > MOST_SENT {
                oldest.finish(node, context);
            } else if !oldest.is_over() {
                break;
            }
            self.end_oldest();
        }
    }

    /// The oldest is over.
    fn end_oldest(&mut self) {
        let Some(oldest) = self.sent.pop_front() else { return };
        self.failed = self.failed.or(oldest.failure());
        if let Some(batch) = Arc::into_inner(oldest) {
            let mut entries = batch.state.into_inner().unwrap_or_else(PoisonError::into_inner).entries;
            entries.clear();
            self.spare_entries.push(entries);
        }
    }

    /// Waits until everything is over, and says what went wrong first that nobody else asks for.
    pub(crate) fn flush(&mut self, node: &NetworkedNode, context: &mut ThreadContext) -> Result<(), Error> {
        while let Some(&(home, _)) = self.open.first() {
            self.send(node, context, home);
        }
        while let Some(oldest) = self.sent.front() {
            oldest.finish(node, context);
            self.end_oldest();
        }
        self.take_failure()
    }

    /// What went wrong first that nobody else asks for.
    pub(crate) fn take_failure(&mut self) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// What a daemon is to be asked for.
    pub(crate) fn asked(&self) -> Option<&Arc<AskedWords>> {
        match self.open.first() {
            Some((_, Open::Asked(batch))) => Some(batch),
            _ => None,
        }
    }

    pub(crate) fn begin_asked(&mut self, batch: Arc<AskedWords>) {
        let nobody = HomeIncarnation { node: NodeId(0), incarnation: Incarnation(0) };
        self.open.push((nobody, Open::Asked(batch)));
    }

    /// It was asked for, and failed so.
    pub(crate) fn end_asked(&mut self, failure: Option<Error>) {
        self.open.clear();
        self.failed = self.failed.or(failure);
    }

    /// Nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.sent.is_empty() && self.failed.is_none()
    }
}

#[cfg(test)]
mod tests {
    use wire::roce::batch::Batch as Parsed;

    use super::*;

    const KEY: Key = Key(7);

    fn entry(operation: Operation, address: u64, is_wide: bool, fetches: bool) -> Entry {
        Entry { address, operation, is_wide, fetches, operand: u64::from(u32::MAX) - 1, expected: 0 }
    }

    struct Rig {
        collected: Collected,
        entries: Vec<(GlobalAddr, bool)>,
        room: usize,
    }

    impl Rig {
        fn new(room: usize) -> Self {
            let collected = Collected { writer: Writer::new(room), last: None };
            Self { collected, entries: Vec::new(), room }
        }

        /// The entry, which of those that fetch it is, and what is added before.
        fn push(&mut self, entry: &Entry) -> Option<(u32, u32, u64)> {
            let of = (GlobalAddr::new(NodeId(1), 4096), !entry.fetches);
            let spot = self.collected.push(KEY, entry, (self.room, &mut self.entries), of);
            spot.map(|spot| (spot.entry, spot.fetch, spot.plus))
        }

        fn written(&mut self) -> Vec<Entry> {
            self.collected.write_last();
            let parsed = Parsed::parse(self.collected.writer.bytes()).unwrap();
            parsed.entries().map(|(_, entry)| entry).collect()
        }
    }

    #[test]
    fn additions_to_one_word_in_a_row_are_one_entry_that_fetches_if_one_of_them_does() {
        const ONCE: u64 = u32::MAX as u64 - 1;
        let mut rig = Rig::new(256);
        let add = |fetches| entry(Operation::Add, 8, true, fetches);
        assert_eq!(rig.push(&add(false)), Some((0, 0, 0)));
        assert_eq!(rig.push(&add(true)), Some((0, 0, ONCE)));
        assert_eq!(rig.push(&add(false)), Some((0, 0, 2 * ONCE)));
        assert_eq!(rig.push(&entry(Operation::Add, 16, true, true)), Some((1, 1, 0)));
        let written = rig.written();
        assert_eq!(written.len(), 2);
        assert_eq!((written[0].operand, written[0].fetches), (3 * ONCE, true));
        assert!(rig.entries[0].1, "flush has to say how the silent ones ended");
        assert!(!rig.entries[1].1);
    }

    #[test]
    fn nothing_else_is_folded_and_all_keep_their_order() {
        let mut rig = Rig::new(4096);
        let all = [
            entry(Operation::Add, 8, true, false),
            entry(Operation::Add, 16, true, false),
            entry(Operation::Add, 8, true, false),
            entry(Operation::Or, 8, true, false),
            entry(Operation::Or, 8, true, false),
            entry(Operation::Add, 8, true, false),
            entry(Operation::Add, 8, false, false),
            entry(Operation::Swap, 8, false, true),
            entry(Operation::Add, 8, false, true),
        ];
        for (at, entry) in (0..).zip(&all) {
            assert_eq!(rig.push(entry).map(|spot| spot.0), Some(at));
        }
        assert_eq!(rig.written(), all);
    }

    #[test]
    fn what_is_added_to_a_word_of_32_bits_stays_in_it() {
        let mut rig = Rig::new(256);
        let add = entry(Operation::Add, 4, false, false);
        rig.push(&add);
        rig.push(&add);
        assert_eq!(rig.written()[0].operand, u64::from(u32::MAX) - 3);
    }

    #[test]
    fn what_was_accepted_fits_the_packet_and_so_does_its_answer_also_if_all_want_to_know() {
        for room in [40, 64, 256, 1024, 4096] {
            for operation in [Operation::Add, Operation::CompareSwap, Operation::Load] {
                let mut rig = Rig::new(room);
                let mut accepted = 0;
                for at in 0.. {
                    let first = entry(operation, at * 8, true, false);
                    if rig.push(&first).is_none() {
                        break;
                    }
                    // An addition that finds its place in the entry before.
                    if operation == Operation::Add {
                        rig.push(&Entry { fetches: true, ..first }).expect("it takes no room");
                    }
                    accepted += 1;
                }
                let written = rig.written().len();
                let answer = refused_words(written) * 8 + rig.collected.writer.answer_bytes();
                assert_eq!(written, accepted);
                assert!(answer <= room, "{answer} of {room}");
                assert!(rig.collected.writer.bytes().len() <= room);
            }
        }
    }
}
