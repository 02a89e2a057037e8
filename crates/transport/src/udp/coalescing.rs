//! Messages that nobody waits for ([`crate::Body::can_wait`]): kept until something else goes to the same peer, and then in
//! the same datagram.
//!
//! A datagram costs its sender, the system and its receiver some microseconds, however short it is: to tell that a block is unlocked
//! would cost as much as to ask for it. What must always hold: messages for one peer leave in the order in which they
//! were taken. What is kept leaves at most [`LONGEST`] later, or as soon as somebody looks again; and while anything is kept
//! somebody does: a thread that attends, or the waiting one between its naps. Where nothing is likely to follow soon,
//! nothing is kept.

use wire::Nanos;

use super::burst::Datagram;
use super::envelope::HEAD;
use super::tag::TAG;
use crate::peer::PeerId;

/// How long something is kept at most: about as long as the waiting thread naps.
pub(super) const LONGEST: Nanos = Nanos::from_micros(200);
/// Something is kept where the next message has lately come within this time.
const SOON: Nanos = Nanos::from_micros(100);
/// What is taken for its time if it did not come.
const NEVER: Nanos = Nanos(2 * LONGEST.0);
/// Messages kept for one peer.
const MOST: u64 = 8;

/// What is kept for one peer, and what is known about when something follows.
#[derive(Debug)]
pub(super) struct Coalescing {
    /// Without records if nothing is.
    kept: Datagram,
    /// When the last message that nobody waits for was kept or sent, if nothing was since.
    since: Option<Nanos>,
    /// When the first of those that are kept was.
    kept_since: Nanos,
    /// How long it takes until something follows, an average of the last times.
    gap: Nanos,
}

impl Coalescing {
    pub(super) const fn new(to: PeerId) -> Self {
        let kept = Datagram { to, messages: 0, urgent: false, single: None, length: HEAD, bytes: Vec::new() };
        Self { kept, since: None, kept_since: Nanos::ZERO, gap: NEVER }
    }

    /// True if something is kept.
    pub(super) const fn is_kept(&self) -> bool {
        self.kept.length > HEAD
    }

    /// True if it wants to know when the next message comes.
    pub(super) const fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// When what is kept has to leave.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.is_kept().then(|| self.kept_since + LONGEST)
    }

    /// A message for the peer is here.
    pub(super) fn followed(&mut self, now: Nanos) {
        if let Some(since) = self.since.take() {
            self.learn(now.saturating_sub(since));
        }
    }

    fn learn(&mut self, gap: Nanos) {
        self.gap = Nanos((3 * self.gap.0 + gap.0.min(NEVER.0)) / 4);
    }

    /// A message that nobody waits for is here: when does the next one come?
    pub(super) const fn wonder(&mut self, now: Nanos) {
        self.since = Some(now);
    }

    /// Keeps the records of a datagram that nobody waits for, if something is likely to follow soon and there is capacity. False: it is to
    /// be sent.
    pub(super) fn keep(&mut self, datagram: &mut Datagram, most: usize, now: Nanos) -> bool {
        let fits = self.kept.length + datagram.length - HEAD + TAG <= most;
        if self.gap > SOON || self.kept.messages + datagram.messages > MOST || !fits {
            return false;
        }
        if self.is_kept() {
            self.kept.bytes.truncate(self.kept.length);
            self.kept.bytes.extend_from_slice(&datagram.bytes[HEAD..datagram.length]);
            self.kept.length = self.kept.bytes.len();
            self.kept.messages += datagram.messages;
        } else {
            std::mem::swap(&mut self.kept.bytes, &mut datagram.bytes);
            (self.kept.length, self.kept.messages) = (datagram.length, datagram.messages);
            self.kept_since = now;
        }
        true
    }

    /// Puts what is kept in front of a datagram's records. False: both together are too long.
    pub(super) fn join(&mut self, datagram: &mut Datagram, most: usize) -> bool {
        let kept = self.kept.length - HEAD;
        let (records, length) = (HEAD..datagram.length, datagram.length + kept);
        if length + TAG > most {
            return false;
        }
        if datagram.bytes.len() < length + TAG {
            datagram.bytes.resize(length + TAG, 0);
        }
        datagram.bytes.copy_within(records, HEAD + kept);
        datagram.bytes[HEAD..HEAD + kept].copy_from_slice(&self.kept.bytes[HEAD..HEAD + kept]);
        datagram.length = length;
        datagram.messages += self.kept.messages;
        (self.kept.length, self.kept.messages) = (HEAD, 0);
        true
    }

    /// Nothing has followed in time.
    pub(super) fn give_up(&mut self) {
        if self.since.take().is_some() {
            self.learn(NEVER);
        }
    }

    /// What is kept, to be sent alone.
    pub(super) fn take(&mut self) -> Datagram {
        let empty = Self::new(self.kept.to).kept;
        let mut taken = std::mem::replace(&mut self.kept, empty);
        let sealed = taken.length + TAG;
        taken.bytes.resize(sealed.max(taken.bytes.len()), 0);
        taken
    }
}
