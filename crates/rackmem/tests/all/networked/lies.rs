//! Answers of a node that takes itself for another one: well-formed, to a request that is open, and of another length than was asked
//! for.
//!
//! Runs in tests. Only small reads that are done where the block is (PEEK) bring what their answer says, and not a whole block.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rackmem::transport::{Body, Contents, PeerId};
use wire::{Endpoint, Packet, PacketKind};

/// Bits of the length in what an answer names.
const LEN_BITS: u32 = 12;

/// What one node is told instead of the truth.
#[derive(Default)]
pub(crate) struct Lies {
    are_told: AtomicBool,
    answers: AtomicU64,
    told: AtomicU64,
}

impl Lies {
    /// From now on; returns how many were told.
    pub(crate) fn begin(&self) -> u64 {
        self.are_told.store(true, Ordering::SeqCst);
        self.told.load(Ordering::SeqCst)
    }

    /// Hands a message on, or another one.
    pub(crate) fn tell(&self, from: PeerId, body: Body<'_>, each: &mut dyn FnMut(PeerId, Body<'_>)) {
        let Some((packet, words)) = peeked(body).filter(|_| self.are_told.load(Ordering::SeqCst)) else {
            return each(from, body);
        };
        // A word less, the truth, a word more, the truth.
        let words = match self.answers.fetch_add(1, Ordering::SeqCst) % 4 {
            0 if words > 1 => words - 1,
            2 => words + 1,
            _ => return each(from, body),
        };
        self.told.fetch_add(1, Ordering::SeqCst);
        let bytes = words as u32 * 8;
        let named = (packet.arg >> 32) as u32 >> LEN_BITS << LEN_BITS | bytes;
        let arg = u64::from(named) << 32 | packet.arg & u64::from(u32::MAX);
        let packet = Packet { arg, payload: bytes, ..*packet };
        each(from, Body::Packet(&packet, Contents::own(&vec![0xdead; words])));
    }
}

/// An answer with words to a small read, and how many.
fn peeked<'a>(body: Body<'a>) -> Option<(&'a Packet, usize)> {
    match body {
        Body::Packet(packet, _)
            if packet.kind == PacketKind::Ack && packet.event == PacketKind::Peek && packet.payload > 0 =>
        {
            Some((packet, packet.payload as usize / 8))
        }
        _ => None,
    }
}

/// Who is told to give a copy up says that it has, and does so only a while later: the writer goes on too soon.
#[derive(Default)]
pub(crate) struct Early {
    is_on: AtomicBool,
    /// What was answered, and not handed on yet.
    held: Mutex<VecDeque<(Instant, PeerId, Packet)>>,
}

/// How much later.
const LATER: Duration = Duration::from_millis(2);

impl Early {
    pub(crate) fn begin(&self) {
        self.is_on.store(true, Ordering::SeqCst);
    }

    /// True if the message was answered: it is handed on later, but before what the same requester asks next.
    pub(crate) fn answers(
        &self,
        (from, body): (PeerId, &Body<'_>),
        each: &mut dyn FnMut(PeerId, Body<'_>),
        to_send: &mut Vec<Packet>,
    ) -> bool {
        let Body::Packet(packet, _) = body else { return false };
        let is_next = |(_, _, held): &(_, _, Packet)| held.requester == packet.requester;
        if self.held.lock().unwrap().iter().any(is_next) {
            self.hand_on(Duration::ZERO, each);
        }
        let (Endpoint::CacheAgent(node), true) = (packet.to, self.is_on.load(Ordering::SeqCst)) else {
            return false;
        };
        let invalidates = matches!(packet.event, PacketKind::WriteShared | PacketKind::WriteMiss);
        if packet.kind != packet.event || !invalidates || packet.provider {
            return false;
        }
        let to = Endpoint::Requester(packet.requester.node);
        to_send.push(packet.reply(PacketKind::Ack, Endpoint::CacheAgent(node), to));
        self.held.lock().unwrap().push_back((Instant::now(), from, **packet));
        true
    }

    /// Hands on what was held so long.
    fn hand_on(&self, long: Duration, each: &mut dyn FnMut(PeerId, Body<'_>)) {
        let mut held = self.held.lock().unwrap();
        while held.front().is_some_and(|(since, _, _)| since.elapsed() >= long) {
            let (_, from, packet) = held.pop_front().unwrap();
            each(from, Body::Packet(&packet, Contents::None));
        }
    }

    /// Hands on what was held long enough.
    pub(crate) fn look(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) {
        self.hand_on(LATER, each);
    }
}
