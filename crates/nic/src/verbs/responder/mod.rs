//! The responder: executes requests in the order of their numbers, each once, and answers.
//!
//! At the end of a connection whose memory it is. `on_request.rs` decides whether a packet's turn has come,
//! `execute.rs` does what it asks, `on_duplicate.rs` answers what came again, `answer.rs` makes the packets.
//!
//! What must always hold: what is named by an effect lies in a region that allows it, checked when the effect is made;
//! a message is placed wholly in one region or one receive; the number that is expected moves only forward.

mod answer;
mod execute;
mod on_duplicate;
mod on_request;
mod replay;

use alloc::collections::VecDeque;

use wire::roce::{Key, NakCode, Psn, QpNumber};
use wire::{Nanos, Rules};

use self::replay::Replay;
use super::attributes::{QueuePairState, ToReceive};
use super::completion::{CompletionQueue, CqNumber};
use super::queue_pair::{Context, Path, ended};
use super::work::{Completion, PostError, Receive, Status};

/// A message of several packets that is coming in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Message {
    None,
    /// A WRITE: where the next bytes go, and how many are left.
    Write {
        key: Key,
        address: u64,
        left: u32,
        total: u32,
    },
    /// A SEND: the receive that it goes into, and how much of it is full.
    Send {
        receive: Receive,
        placed: u32,
    },
}

#[derive(Debug)]
pub(crate) struct Responder {
    own: QpNumber,
    path: Option<Path>,
    limits: Option<ToReceive>,
    completions: CqNumber,
    depth: usize,
    receives: VecDeque<Receive>,
    /// The number of the next packet to execute.
    expected: Psn,
    /// Messages completed, modulo 2^24.
    messages: u32,
    message: Message,
    replay: Replay,
    /// Said already that `expected` is missing, or was not ready.
    asked_again: bool,
    /// Wishes for an acknowledgement that were not answered yet.
    owed: u32,
    ack_deadline: Nanos,
    /// The request that was refused for good.
    refused: Option<(Psn, NakCode)>,
}

impl Responder {
    pub(crate) fn new(own: QpNumber, completions: CqNumber, depth: usize) -> Self {
        Self {
            own,
            path: None,
            limits: None,
            completions,
            depth,
            receives: VecDeque::new(),
            expected: Psn::new(0),
            messages: 0,
            message: Message::None,
            replay: Replay::new(1),
            asked_again: false,
            owed: 0,
            ack_deadline: Nanos::MAX,
            refused: None,
        }
    }

    pub(crate) fn connect(&mut self, path: Path, limits: ToReceive) {
        self.path = Some(path);
        self.expected = limits.first_psn;
        self.replay = Replay::new(limits.remembered);
        self.limits = Some(limits);
    }

    pub(crate) fn reset(&mut self, queues: &mut [CompletionQueue]) {
        let open = usize::from(matches!(self.message, Message::Send { .. }));
        queues[self.completions.0 as usize].release(self.receives.len() + open);
        *self = Self::new(self.own, self.completions, self.depth);
    }

    pub(crate) fn longest(&self) -> u32 {
        self.limits().longest
    }

    pub(crate) const fn completions(&self) -> CqNumber {
        self.completions
    }

    pub(crate) const fn deadline(&self) -> Nanos {
        self.ack_deadline
    }

    /// Accepts a buffer for a message.
    pub(crate) fn post<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        receive: Receive,
    ) -> Result<(), PostError> {
        if self.receives.len() == self.depth {
            return Err(PostError::QueueFull);
        }
        if !cx.queues[self.completions.0 as usize].reserve() {
            return Err(PostError::CompletionQueueFull);
        }
        self.receives.push_back(receive);
        Ok(())
    }

    /// Ends all receives as flushed.
    pub(crate) fn flush<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        if let Message::Send { receive, .. } = core::mem::replace(&mut self.message, Message::None) {
            self.end_receive(cx, receive, Status::Flushed, 0, None);
        }
        while let Some(receive) = self.receives.pop_front() {
            self.end_receive(cx, receive, Status::Flushed, 0, None);
        }
        self.owed = 0;
        self.ack_deadline = Nanos::MAX;
    }

    fn end_receive<R: Rules>(
        &self,
        cx: &mut Context<'_, R>,
        receive: Receive,
        status: Status,
        len: u32,
        immediate: Option<u32>,
    ) {
        let completion = Completion { receive: true, len, immediate, ..ended(self.own, receive.id, status) };
        cx.complete(self.completions, completion);
    }

    fn limits(&self) -> &ToReceive {
        self.limits.as_ref().expect("a queue pair that receives is connected")
    }

    fn path(&self) -> &Path {
        self.path.as_ref().expect("a queue pair that receives is connected")
    }

    pub(crate) fn invariants(&self, state: QueuePairState) {
        assert_eq!(self.owed > 0, self.ack_deadline != Nanos::MAX, "{self:?}");
        assert!(self.receives.len() <= self.depth, "{self:?}");
        assert!(self.replay.is_bounded(), "{self:?}");
        match self.message {
            Message::None => {}
            Message::Write { left, total, .. } => assert!(0 < left && left < total, "{self:?}"),
            Message::Send { receive, placed } => assert!(placed <= receive.local.len, "{self:?}"),
        }
        if state == QueuePairState::Err {
            assert!(self.receives.is_empty() && self.message == Message::None, "{self:?}");
        } else {
            assert!(self.refused.is_none(), "{self:?}");
        }
    }
}
