//! Where the time of operations goes, along the chains of messages that they waited for.
//!
//! A message that is sent while another one is handled goes on with that one's path; a thread that is woken by a message
//! takes the path over. A thread is woken by the last of the messages that it waits for, so its path is the longest one.
//! Kept only on demand ([`Setup::budget`](super::Setup::budget)).
//!
//! What must always hold: what is noted here changes nothing that happens. Each nanosecond of a path has one of the
//! causes of [`Budget`].

use wire::Nanos;

use super::event::FlightId;
use crate::system::ThreadId;

/// The time of many operations, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// How many operations.
    pub operations: u64,
    /// All of their time.
    pub total: Nanos,
    /// The accesses themselves, with what they need in place.
    pub access: Nanos,
    /// Work on messages: posting them, finding them, handlers, and hand-over between processors of a node.
    pub handling: Nanos,
    /// Messages wait for a processor that does something else.
    pub busy: Nanos,
    /// The way of messages without bytes: doorbells, NICs, cables, the switch's pipeline.
    pub way: Nanos,
    /// What blocks take beyond that: fetched from memory, on two links, written to memory.
    pub transfer: Nanos,
    /// Messages wait for NICs and links.
    pub queues: Nanos,
}

impl Budget {
    /// What is left of the total: refused requests and their back-off, locks, lines, other threads' fetches.
    pub fn waiting(&self) -> Nanos {
        let known = [self.access, self.handling, self.busy, self.way, self.transfer, self.queues];
        Nanos(self.total.0.saturating_sub(known.iter().map(|part| part.0).sum()))
    }

    fn add(&mut self, path: &Path) {
        self.handling += path.handling;
        self.busy += path.busy;
        self.way += path.way;
        self.transfer += path.transfer;
        self.queues += path.queues;
    }
}

/// What a chain of messages has taken so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Path {
    /// Everything before has its cause.
    at: Nanos,
    handling: Nanos,
    busy: Nanos,
    way: Nanos,
    transfer: Nanos,
    queues: Nanos,
}

impl Path {
    /// Handled until then, with so much work; the rest was waiting for the processor.
    fn handled(&mut self, until: Nanos, work: Nanos) {
        let span = until.saturating_sub(self.at);
        self.handling += work.min(span);
        self.busy += span.saturating_sub(work);
        self.at = until;
    }

    /// On its way until then, which takes so much without bytes, and so much for the bytes; the rest was in queues.
    fn moved(&mut self, until: Nanos, way: Nanos, transfer: Nanos) {
        let span = until.saturating_sub(self.at);
        self.way += way.min(span);
        self.transfer += transfer.min(span.saturating_sub(way));
        self.queues += span.saturating_sub(way + transfer);
        self.at = until;
    }
}

/// The paths of everything in flight.
#[derive(Default)]
pub(super) struct Budgets {
    /// What the call that is made now follows from.
    cause: Path,
    flights: Vec<Path>,
    threads: Vec<Budget>,
    pub(super) sum: Budget,
}

impl Budgets {
    pub(super) fn new(threads: usize) -> Self {
        Self { threads: vec![Budget::default(); threads], ..Self::default() }
    }

    /// A call follows from nothing before.
    pub(super) fn begin(&mut self, at: Nanos) {
        self.cause = Path { at, ..Path::default() };
    }

    /// A call follows from a message, which has been worked on for so long.
    pub(super) fn follow(&mut self, id: FlightId, now: Nanos, work: Nanos) {
        self.cause = self.flights[id.index()];
        self.cause.handled(now, work);
    }

    /// The call has taken this time of its processor.
    pub(super) fn charged(&mut self, time: Nanos) {
        self.cause.handled(self.cause.at + time, time);
    }

    /// A message of the call was posted at `posted`, with so much work, and has been moved until `until`.
    pub(super) fn sent(
        &mut self,
        id: FlightId,
        (posted, work): (Nanos, Nanos),
        (until, way, transfer): (Nanos, Nanos, Nanos),
    ) {
        let mut path = self.cause;
        path.handled(posted, work);
        path.moved(until, way, transfer);
        if id.index() >= self.flights.len() {
            self.flights.resize(id.index() + 1, Path::default());
        }
        self.flights[id.index()] = path;
    }

    /// A message that is in flight has been moved until `until`.
    pub(super) fn moved(&mut self, id: FlightId, until: Nanos, way: Nanos, transfer: Nanos) {
        self.flights[id.index()].moved(until, way, transfer);
    }

    /// The call wakes a thread, which hears of it `later`.
    pub(super) fn woke(&mut self, thread: ThreadId, later: Nanos) {
        let mut path = self.cause;
        path.handled(path.at + later, later);
        self.threads[usize::from(thread.0)].add(&path);
    }

    /// A thread had what it needs, and accesses it for this long.
    pub(super) fn accessed(&mut self, thread: ThreadId, time: Nanos) {
        self.threads[usize::from(thread.0)].access += time;
    }

    /// A thread's operation is over; it took this long.
    pub(super) fn finished(&mut self, thread: ThreadId, latency: Nanos) {
        let it = core::mem::take(&mut self.threads[usize::from(thread.0)]);
        let sum = &mut self.sum;
        sum.operations += 1;
        sum.total += latency;
        for (sum, part) in [
            (&mut sum.access, it.access),
            (&mut sum.handling, it.handling),
            (&mut sum.busy, it.busy),
            (&mut sum.way, it.way),
            (&mut sum.transfer, it.transfer),
            (&mut sum.queues, it.queues),
        ] {
            *sum += part;
        }
    }
}
