//! Messages that nobody waits for ([`crate::Body::can_wait`]): kept until something else goes to the same peer, and then in
//! the same datagram; single packets with the same call of the system, so that what they come to is here when its sender looks.
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
    /// Datagrams without their tags.
    kept: Vec<Datagram>,
    /// When the last message that nobody waits for was kept or sent, if nothing was since.
    since: Option<Nanos>,
    /// When the first of those that are kept was.
    kept_since: Nanos,
    /// How long it takes until something follows, an average of the last times.
    gap: Nanos,
}

impl Coalescing {
    pub(super) const fn new() -> Self {
        Self { kept: Vec::new(), since: None, kept_since: Nanos::ZERO, gap: NEVER }
    }

    /// True if something is kept.
    pub(super) const fn is_kept(&self) -> bool {
        !self.kept.is_empty()
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

    /// True if a datagram that nobody waits for is to be kept: something is likely to follow soon, and there is capacity.
    pub(super) fn may_keep(&self, datagram: &Datagram) -> bool {
        let kept: u64 = self.kept.iter().map(|kept| kept.messages).sum();
        self.gap <= SOON && kept + datagram.messages <= MOST
    }

    /// Keeps it. Returns it if its records travel in a datagram that was kept before.
    pub(super) fn keep(&mut self, datagram: Datagram, most: usize, now: Nanos) -> Option<Datagram> {
        if !self.is_kept() {
            self.kept_since = now;
        }
        if let Some(last) = self.kept.last_mut()
            && join(last, &datagram, most)
        {
            return Some(datagram);
        }
        self.kept.push(datagram);
        None
    }

    /// Nothing has followed in time.
    pub(super) fn give_up(&mut self) {
        if self.since.take().is_some() {
            self.learn(NEVER);
        }
    }

    /// All that is kept, to be sent.
    pub(super) fn take(&mut self) -> Vec<Datagram> {
        std::mem::take(&mut self.kept)
    }
}

/// Puts a datagram's records behind those of another one. False: both together are too long, or one is a single packet.
pub(super) fn join(to: &mut Datagram, from: &Datagram, most: usize) -> bool {
    let (records, start) = (HEAD..from.length, to.length);
    let length = start + records.len();
    if to.single.is_some() || from.single.is_some() || length + TAG > most {
        return false;
    }
    if to.bytes.len() < length + TAG {
        to.bytes.resize(length + TAG, 0);
    }
    to.bytes[start..length].copy_from_slice(&from.bytes[records]);
    to.length = length;
    to.messages += from.messages;
    true
}
