//! A queue pair: a requester and a responder, and the state that they share.
//!
//! At one end of a connection. What must always hold: in ERR nothing is posted that was not flushed; only a connected
//! queue pair sends.

use alloc::vec::Vec;

use wire::roce::{Packet, QpNumber};
use wire::{Nanos, NodeId, Rules};

use super::attributes::{Depth, Mtu, QueuePairState, StateError, ToReceive, ToSend};
use super::completion::{CompletionQueue, CqNumber};
use super::counters::{Counters, Drop};
use super::effect::{Effect, Memory, Payload, Span};
use super::region::{Access, Regions};
use super::requester::Requester;
use super::responder::Responder;
use super::work::{Completion, PostError, Receive, Status, WorkRequest};

/// What every handler gets.
pub(crate) struct Context<'a, R> {
    pub(crate) rules: R,
    pub(crate) now: Nanos,
    pub(crate) regions: &'a Regions,
    pub(crate) queues: &'a mut [CompletionQueue],
    pub(crate) counters: &'a mut Counters,
    pub(crate) out: &'a mut Vec<Effect>,
}

impl<R: Rules> Context<'_, R> {
    pub(crate) fn send(&mut self, path: &Path, packet: Packet, payload: Option<Payload>) {
        self.counters.sent += 1;
        self.out.push(Effect::Send { from: path.own, to: path.peer, packet, payload });
    }

    pub(crate) fn complete(&mut self, queue: CqNumber, completion: Completion) {
        if self.queues[queue.0 as usize].push(completion) {
            self.out.push(Effect::Notify { queue });
        }
    }

    pub(crate) fn allow(&self, span: Span, access: Access) -> bool {
        self.regions.allow_by(self.rules, span, access)
    }
}

/// The connection, as both machines need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) own: QpNumber,
    pub(crate) peer: NodeId,
    pub(crate) peer_queue_pair: QpNumber,
    pub(crate) mtu: Mtu,
}

/// What became of a packet that was taken, or of a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Health {
    Fine,
    /// The queue pair must go to the error state.
    Broken,
}

#[derive(Debug)]
pub(crate) struct QueuePair {
    pub(crate) state: QueuePairState,
    path: Path,
    pub(crate) requester: Requester,
    pub(crate) responder: Responder,
}

impl QueuePair {
    pub(crate) fn new(own: QpNumber, sends: CqNumber, receives: CqNumber, depth: Depth) -> Self {
        Self {
            state: QueuePairState::Reset,
            path: Path { own, peer: NodeId(0), peer_queue_pair: QpNumber::new(0), mtu: Mtu::B1024 },
            requester: Requester::new(own, sends, depth.sends),
            responder: Responder::new(own, receives, depth.receives),
        }
    }

    pub(crate) const fn number(&self) -> QpNumber {
        self.path.own
    }

    /// Where sends and receives are completed.
    pub(crate) const fn queues(&self) -> [CqNumber; 2] {
        [self.requester.completions(), self.responder.completions()]
    }

    // Transitions.

    pub(crate) fn reset(&mut self, queues: &mut [CompletionQueue]) {
        self.requester.reset(queues);
        self.responder.reset(queues);
        self.state = QueuePairState::Reset;
    }

    pub(crate) fn init(&mut self) -> Result<(), StateError> {
        self.go(QueuePairState::Reset, QueuePairState::Init)
    }

    pub(crate) fn ready_to_receive(&mut self, attributes: ToReceive) -> Result<(), StateError> {
        if attributes.ack_every == 0 || attributes.remembered == 0 {
            return Err(StateError::Attributes);
        }
        self.go(QueuePairState::Init, QueuePairState::Rtr)?;
        self.path = Path {
            own: self.path.own,
            peer: attributes.peer,
            peer_queue_pair: attributes.peer_queue_pair,
            mtu: attributes.mtu,
        };
        self.responder.connect(self.path, attributes);
        Ok(())
    }

    pub(crate) fn ready_to_send(&mut self, attributes: ToSend) -> Result<(), StateError> {
        if attributes.outstanding == 0
            || attributes.read_chunk == 0
            || !(1..Requester::MOST_PACKETS).contains(&attributes.window)
        {
            return Err(StateError::Attributes);
        }
        self.go(QueuePairState::Rtr, QueuePairState::Rts)?;
        self.requester.connect(self.path, attributes, self.responder.longest());
        Ok(())
    }

    fn go(&mut self, from: QueuePairState, to: QueuePairState) -> Result<(), StateError> {
        if self.state != from {
            return Err(StateError::From(self.state));
        }
        self.state = to;
        Ok(())
    }

    /// To the error state: everything posted is flushed.
    pub(crate) fn fail<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        self.requester.flush(cx, None);
        self.responder.flush(cx);
        self.state = QueuePairState::Err;
    }

    fn settle<R: Rules>(&mut self, cx: &mut Context<'_, R>, health: Health) {
        if health == Health::Broken {
            self.fail(cx);
            cx.counters.broken += 1;
            cx.out.push(Effect::Broken { queue_pair: self.path.own });
        }
    }

    // Inputs.

    pub(crate) fn on_packet<R: Rules, M: Memory>(
        &mut self,
        cx: &mut Context<'_, R>,
        from: NodeId,
        packet: &Packet,
        payload: u32,
        memory: &mut M,
    ) -> Result<(), Drop> {
        if matches!(self.state, QueuePairState::Reset | QueuePairState::Init) {
            return Err(Drop::WrongState);
        }
        if from != self.path.peer {
            return Err(Drop::UnknownPeer);
        }
        let health = match (packet.opcode.is_response(), self.state) {
            (true, QueuePairState::Rts) => self.requester.on_response(cx, packet, payload)?,
            (false, QueuePairState::Rtr | QueuePairState::Rts) => {
                self.responder.on_request(cx, packet, payload, memory)?
            }
            (false, QueuePairState::Err) => self.responder.refuse_again(cx, packet)?,
            _ => return Err(Drop::WrongState),
        };
        self.settle(cx, health);
        Ok(())
    }

    pub(crate) fn on_deadline<R: Rules>(&mut self, cx: &mut Context<'_, R>) {
        if cx.now < self.next_deadline() {
            return;
        }
        self.responder.on_deadline(cx);
        let health = self.requester.on_deadline(cx);
        self.settle(cx, health);
    }

    pub(crate) fn next_deadline(&self) -> Nanos {
        self.requester.deadline().min(self.responder.deadline())
    }

    pub(crate) fn post_send<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        request: WorkRequest,
    ) -> Result<(), PostError> {
        match self.state {
            QueuePairState::Rts => {
                self.requester.post(cx, request)?;
                let health = self.requester.transmit(cx);
                self.settle(cx, health);
                Ok(())
            }
            QueuePairState::Err => self.requester.post_flushed(cx, request),
            QueuePairState::Reset | QueuePairState::Init | QueuePairState::Rtr => Err(PostError::NotReady),
        }
    }

    pub(crate) fn post_receive<R: Rules>(
        &mut self,
        cx: &mut Context<'_, R>,
        receive: Receive,
    ) -> Result<(), PostError> {
        if self.state == QueuePairState::Reset {
            return Err(PostError::NotReady);
        }
        self.responder.post(cx, receive)?;
        if self.state == QueuePairState::Err {
            self.responder.flush(cx);
        }
        Ok(())
    }

    /// What must hold between calls.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn invariants<R: Rules>(&self, rules: R) {
        self.requester.invariants(rules, self.state);
        self.responder.invariants(self.state);
    }
}

/// A completion of a receive or of a send queue's work, without anything that came with it.
pub(crate) fn ended(queue_pair: QpNumber, id: super::work::WorkId, status: Status) -> Completion {
    Completion {
        id,
        queue_pair,
        status,
        receive: false,
        len: 0,
        immediate: None,
        original: None,
        version: None,
    }
}
