//! The requester: numbers packets, sends them, and completes work as answers come.
//!
//! At the end of a connection where work is posted. Every piece of work has its packet numbers from the beginning, so
//! that any packet can be made again from its number alone (`transmit.rs`); nothing is kept of a packet that was sent.
//!
//! ```text
//!        answered      in flight           to be sent       not numbered
//!   ──────────────┬──────────────────┬───────────────────┬───────────────
//!             unanswered            next                 end
//! ```
//!
//! What must always hold: unanswered <= next <= end on the circle; a deadline is named if and only if something is
//! in flight, or waits for the peer to post a receive.

mod on_deadline;
mod on_response;
mod transmit;

use alloc::collections::VecDeque;

use wire::roce::{Psn, QpNumber, Verdict};
use wire::{Nanos, Rule, Rules};

use super::attributes::{Mtu, QueuePairState, ToSend};
use super::completion::{CompletionQueue, CqNumber};
use super::queue_pair::{Context, Health, Path, ended};
use super::work::{Operation, PostError, Status, WorkRequest};

/// Work that was posted and has not ended.
#[derive(Clone, Copy, Debug)]
struct Pending {
    request: WorkRequest,
    first: Psn,
    packets: u32,
}

impl Pending {
    /// Behind the last packet of the request that covers this one: of a long READ a piece, else all of it.
    fn piece_end(&self, packet: u32, read_chunk: u32) -> u32 {
        match self.request.operation {
            Operation::Read { .. } => {
                ((packet / read_chunk + 1).saturating_mul(read_chunk)).min(self.packets)
            }
            _ => self.packets,
        }
    }
}

/// How work ended that did not fail.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Done,
    /// A word was this.
    Original(u64),
    /// An object has come, or not.
    Verdict(Verdict),
}

#[derive(Debug)]
pub(crate) struct Requester {
    own: QpNumber,
    path: Option<Path>,
    limits: ToSend,
    longest: u32,
    completions: CqNumber,
    depth: usize,
    queue: VecDeque<Pending>,
    /// The first packet that is not answered.
    unanswered: Psn,
    /// The next packet to send.
    next: Psn,
    /// Behind the last packet that was ever sent.
    sent: Psn,
    /// Behind the last packet of what is posted.
    end: Psn,
    /// Requests that are answered by more than an acknowledgement, between `unanswered` and `next`.
    outstanding: u32,
    /// Times left that silence may be met with repetition.
    retries: u32,
    /// Times left that a request may meet no receive.
    rnr_retries: u8,
    deadline: Nanos,
    /// Waits, until the deadline, for the peer to post a receive.
    resting: bool,
    /// Went back to `unanswered` already, and has heard nothing new since.
    went_back: bool,
}

impl Requester {
    /// Packets that may be numbered at a time: a quarter of the circle, so that early and late are told apart.
    pub(crate) const MOST_PACKETS: u32 = 1 << 22;

    pub(crate) fn new(own: QpNumber, completions: CqNumber, depth: usize) -> Self {
        let zero = Psn::new(0);
        Self {
            own,
            path: None,
            limits: ToSend::new(zero),
            longest: 0,
            completions,
            depth,
            queue: VecDeque::new(),
            unanswered: zero,
            next: zero,
            sent: zero,
            end: zero,
            outstanding: 0,
            retries: 0,
            rnr_retries: 0,
            deadline: Nanos::MAX,
            resting: false,
            went_back: false,
        }
    }

    pub(crate) fn connect(&mut self, path: Path, limits: ToSend, longest: u32) {
        self.path = Some(path);
        // A READ request asks for no more than the peer answers, which takes what this end takes.
        let read_chunk = limits.read_chunk.min((longest / path.mtu.bytes()).max(1));
        self.limits = ToSend { read_chunk, ..limits };
        self.longest = longest;
        let first = limits.first_psn;
        (self.unanswered, self.next, self.sent, self.end) = (first, first, first, first);
        self.retries = limits.retries;
        self.rnr_retries = limits.rnr_retries;
    }

    pub(crate) fn reset(&mut self, queues: &mut [CompletionQueue]) {
        queues[self.completions.0 as usize].release(self.queue.len());
        *self = Self::new(self.own, self.completions, self.depth);
    }

    pub(crate) const fn completions(&self) -> CqNumber {
        self.completions
    }

    pub(crate) const fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// Accepts work and numbers its packets.
    pub(crate) fn post<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        request: WorkRequest,
    ) -> Result<(), PostError> {
        let operation = &request.operation;
        let packets = match operation {
            Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => 1,
            Operation::Atomics { request, answer } => {
                if request.len.max(answer.len) > self.mtu().bytes() {
                    return Err(PostError::TooLong);
                }
                1
            }
            Operation::Read { .. } => self.mtu().packets(operation.len()),
            _ if operation.len() > self.longest => return Err(PostError::TooLong),
            // The verdict takes a number, too.
            Operation::ReadObject { .. } => self.mtu().packets(operation.len()) + 1,
            Operation::Write { .. } | Operation::Send { .. } => self.mtu().packets(operation.len()),
        };
        if packets >= Self::MOST_PACKETS {
            return Err(PostError::TooLong);
        }
        if self.queue.len() == self.depth || self.numbered() + packets > Self::MOST_PACKETS {
            return Err(PostError::QueueFull);
        }
        self.reserve(cx)?;
        self.queue.push_back(Pending { request, first: self.end, packets });
        self.end = self.end.plus(packets);
        Ok(())
    }

    /// Accepts work in the error state: it ends at once.
    pub(crate) fn post_flushed<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        request: WorkRequest,
    ) -> Result<(), PostError> {
        self.reserve(cx)?;
        cx.complete(self.completions, ended(self.own, request.id, Status::Flushed));
        Ok(())
    }

    fn reserve<R>(&self, cx: &mut Context<'_, R>) -> Result<(), PostError> {
        let room = cx.queues[self.completions.0 as usize].reserve();
        if room { Ok(()) } else { Err(PostError::CompletionQueueFull) }
    }

    fn path(&self) -> &Path {
        self.path.as_ref().expect("a queue pair that sends is connected")
    }

    fn mtu(&self) -> Mtu {
        self.path().mtu
    }

    /// Packets that are numbered and not answered.
    fn numbered(&self) -> u32 {
        distance(self.unanswered, self.end)
    }

    fn in_flight(&self) -> u32 {
        distance(self.unanswered, self.next)
    }

    /// Which work a numbered packet belongs to.
    fn index_of(&self, psn: Psn) -> usize {
        let first = self.queue.front().expect("a numbered packet belongs to work").first;
        let offset = distance(first, psn);
        self.queue.partition_point(|pending| distance(first, pending.first) <= offset) - 1
    }

    /// The oldest work has succeeded, or was in vain, with this.
    fn complete_front<R: Rules>(&mut self, cx: &mut Context<'_, R>, outcome: Outcome) {
        let Pending { request, .. } = self.queue.pop_front().expect("it was looked at");
        let status = match outcome {
            Outcome::Verdict(Verdict::Torn) => Status::Torn,
            Outcome::Verdict(Verdict::Gone) => Status::Gone,
            _ => Status::Success,
        };
        if request.signaled || status != Status::Success {
            let mut completion = ended(self.own, request.id, status);
            completion.len = if status == Status::Success { request.operation.len() } else { 0 };
            match outcome {
                Outcome::Done => {}
                Outcome::Original(original) => completion.original = Some(original),
                Outcome::Verdict(verdict) => completion.version = verdict.version(),
            }
            cx.complete(self.completions, completion);
        } else {
            cx.queues[self.completions.0 as usize].release(1);
        }
    }

    /// Ends all work: the one that failed with its status, the others as flushed.
    pub(crate) fn flush<R: Rules>(&mut self, cx: &mut Context<'_, R>, failed: Option<(usize, Status)>) {
        for (index, pending) in self.queue.drain(..).enumerate() {
            let status = match failed {
                Some((at, status)) if at == index => status,
                _ => Status::Flushed,
            };
            cx.complete(self.completions, ended(self.own, pending.request.id, status));
        }
        self.next = self.end;
        self.unanswered = self.end;
        self.sent = self.end;
        self.outstanding = 0;
        self.resting = false;
        self.deadline = Nanos::MAX;
    }

    /// This work has failed, and with it the queue pair.
    fn fail<R: Rules>(&mut self, cx: &mut Context<'_, R>, index: usize, status: Status) -> Health {
        self.flush(cx, Some((index, status)));
        Health::Broken
    }

    /// Requests that are answered by more than an acknowledgement and are in flight, counted anew.
    fn count_outstanding(&self) -> u32 {
        let mut count = 0;
        for pending in self.queue.iter().filter(|pending| pending.request.operation.is_answered()) {
            let mut from = 0;
            while from < pending.packets {
                let end = pending.piece_end(from, self.limits.read_chunk);
                let last = pending.first.plus(end - 1);
                // Its last answer is awaited, and its request was sent.
                count += u32::from(last.since(self.unanswered) >= 0 && last.since(self.next) < 0);
                from = end;
            }
        }
        count
    }

    pub(crate) fn invariants<R: Rules>(&self, rules: R, state: QueuePairState) {
        if state == QueuePairState::Rts {
            let numbered = self.numbered();
            assert!(self.in_flight() <= numbered, "next is behind the end: {self:?}");
            assert!(distance(self.unanswered, self.sent) <= numbered, "more was sent than posted: {self:?}");
            assert!(self.sent.since(self.next) >= 0, "what is in flight was sent: {self:?}");
            assert_eq!(self.outstanding, self.count_outstanding(), "{self:?}");
            let waits = self.resting || self.in_flight() > 0;
            let never = !rules.holds(Rule::PacketsAreRepeated) || self.limits.timeout == Nanos::MAX;
            assert!(never || waits == (self.deadline != Nanos::MAX), "{self:?}");
            assert_eq!(self.queue.is_empty(), numbered == 0, "{self:?}");
            if let Some(front) = self.queue.front() {
                let answered = distance(front.first, self.unanswered);
                assert!(answered < front.packets, "the oldest work is not answered: {self:?}");
            }
        } else {
            assert!(self.queue.is_empty() && self.deadline == Nanos::MAX, "{state:?}: {self:?}");
        }
    }
}

/// How many packets `to` is after `from`, which is not after it.
fn distance(from: Psn, to: Psn) -> u32 {
    u32::try_from(to.since(from)).expect("not before it")
}
