//! Puts messages together that came in segments: one [`Reassembly`] for each peer, in the receiver.
//!
//! What must always hold: a message is complete when every byte of it has come, and not before; the memory that a
//! peer can occupy and the time that it can do so are bounded, whatever it sends.

use wire::Nanos;
use zerocopy::IntoBytes as _;

use super::record::{RecordKind, Segment};

/// Messages of a peer that may be incomplete at a time.
const MOST_PARTIAL: usize = 64;
/// Gaps that a message may have at a time.
const MOST_PIECES: usize = 4_096;
/// Buffers kept for the next messages.
const MOST_SPARE: usize = 4;
/// How long the pieces of a message may take.
const LIFETIME: Nanos = Nanos::from_millis(200);

/// The incomplete messages of one peer.
#[derive(Debug)]
pub(super) struct Reassembly {
    partial: Vec<Partial>,
    /// Bytes that they occupy.
    bytes: usize,
    /// The longest message.
    longest: usize,
    spare: Vec<Vec<u64>>,
}

/// A message, complete or not.
#[derive(Debug)]
pub(super) struct Partial {
    number: u64,
    kind: RecordKind,
    total: usize,
    words: Vec<u64>,
    /// What has come, as ranges that neither overlap nor touch, in order.
    pieces: Vec<(usize, usize)>,
    since: Nanos,
}

impl Reassembly {
    /// For messages up to this length.
    pub(super) const fn new(longest: usize) -> Self {
        Self { partial: Vec::new(), bytes: 0, longest, spare: Vec::new() }
    }

    /// True if there is no incomplete message.
    pub(super) const fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    /// Takes a segment. Returns the message if that completes it. Messages that have to make room are counted in
    /// `lost`.
    pub(super) fn on_segment(
        &mut self,
        segment: &Segment<'_>,
        now: Nanos,
        lost: &mut usize,
    ) -> Option<Partial> {
        let total = segment.total as usize;
        if total > self.longest {
            *lost += 1;
            return None;
        }
        // A message's segments come together: the newest message is the likely one.
        let found = self.partial.iter().rposition(|partial| partial.number == segment.number);
        let at = match found {
            Some(at) => at,
            None => {
                self.make_space(total, lost);
                self.begin(segment, now);
                self.partial.len() - 1
            }
        };
        let partial = &mut self.partial[at];
        if partial.total != total || partial.kind != segment.of || partial.pieces.len() >= MOST_PIECES {
            self.remove(at);
            *lost += 1;
            return None;
        }
        partial.add(segment.offset as usize, segment.piece);
        if partial.pieces == [(0, total)] { Some(self.remove(at)) } else { None }
    }

    /// Drops what has waited too long, and returns how many messages that were.
    pub(super) fn expire(&mut self, now: Nanos) -> usize {
        let mut lost = 0;
        while self.partial.first().is_some_and(|oldest| now.saturating_sub(oldest.since) > LIFETIME) {
            self.remove(0);
            lost += 1;
        }
        lost
    }

    /// Forgets everything, and returns how many messages that were: the peer has begun a new session.
    pub(super) fn clear(&mut self) -> usize {
        self.bytes = 0;
        self.partial.drain(..).count()
    }

    /// Takes a message's buffer back.
    pub(super) fn recycle(&mut self, message: Partial) {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(message.words);
        }
    }

    /// Four of the longest messages, or many shorter ones.
    fn budget(&self) -> usize {
        (4 * self.longest).max(1 << 20)
    }

    fn make_space(&mut self, total: usize, lost: &mut usize) {
        while self.partial.len() >= MOST_PARTIAL
            || (self.bytes + total > self.budget() && !self.partial.is_empty())
        {
            self.remove(0);
            *lost += 1;
        }
    }

    fn begin(&mut self, segment: &Segment<'_>, now: Nanos) {
        let total = segment.total as usize;
        let mut words = self.spare.pop().unwrap_or_default();
        words.resize(total.div_ceil(8), 0);
        self.bytes += total;
        let (number, kind) = (segment.number, segment.of);
        self.partial.push(Partial { number, kind, total, words, pieces: Vec::new(), since: now });
    }

    fn remove(&mut self, at: usize) -> Partial {
        let removed = self.partial.remove(at);
        self.bytes -= removed.total;
        removed
    }
}

impl Partial {
    /// The kind of the message, and its content: at a multiple of 8.
    pub(super) fn content(&self) -> (RecordKind, &[u8]) {
        (self.kind, &self.words.as_bytes()[..self.total])
    }

    fn add(&mut self, start: usize, piece: &[u8]) {
        let (mut start, mut end) = (start, start + piece.len());
        self.words.as_mut_bytes()[start..end].copy_from_slice(piece);
        // In order is the common case.
        match self.pieces.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => {
                let first = self.pieces.partition_point(|&(_, e)| e < start);
                let behind = self.pieces.partition_point(|&(s, _)| s <= end);
                if first < behind {
                    start = start.min(self.pieces[first].0);
                    end = end.max(self.pieces[behind - 1].1);
                }
                self.pieces.splice(first..behind, [(start, end)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LIFETIME, MOST_PARTIAL, Reassembly};
    use crate::udp::record::{RecordKind, Segment};
    use wire::Nanos;

    const LONGEST: usize = 1 << 16;

    fn content(number: u64, length: usize) -> Vec<u8> {
        (0..length).map(|at| (at as u64 * 31 + number) as u8).collect()
    }

    fn segment<'a>(number: u64, whole: &'a [u8], from: usize, to: usize) -> Segment<'a> {
        let (offset, total) = (from as u32, whole.len() as u32);
        Segment { of: RecordKind::Control, number, offset, total, piece: &whole[from..to.min(whole.len())] }
    }

    /// Feeds pieces of 80 bytes in this order, and says after how many the message was complete.
    fn feed(whole: &[u8], order: &[usize]) -> Option<usize> {
        let (mut reassembly, mut lost) = (Reassembly::new(LONGEST), 0);
        for (fed, &piece) in (1..).zip(order) {
            let segment = segment(1, whole, piece * 80, piece * 80 + 80);
            if let Some(message) = reassembly.on_segment(&segment, Nanos(0), &mut lost) {
                assert_eq!(message.content(), (RecordKind::Control, whole));
                assert_eq!(lost, 0);
                return Some(fed);
            }
        }
        None
    }

    #[test]
    fn segments_in_any_order_make_the_message() {
        let whole = content(1, 1_003);
        let orders: [Vec<usize>; 4] = [
            (0..13).collect(),
            (0..13).rev().collect(),
            (0..13).map(|at| at * 5 % 13).collect(),
            (0..13).map(|at| (at * 7 + 6) % 13).collect(),
        ];
        for order in orders {
            assert_eq!(feed(&whole, &order), Some(13), "{order:?}");
        }
    }

    #[test]
    fn duplicates_complete_nothing() {
        let whole = content(1, 1_003);
        assert_eq!(feed(&whole, &[0; 40]), None);
        let order: Vec<usize> = (0..13).flat_map(|at| [at, at, 0]).collect();
        assert_eq!(feed(&whole, &order), Some(37), "with the first copy of the last one");
    }

    #[test]
    fn a_message_without_any_one_of_its_segments_is_not_complete() {
        let whole = content(1, 1_003);
        for missing in 0..13 {
            let order: Vec<usize> = (0..13).filter(|&at| at != missing).collect();
            assert_eq!(feed(&whole, &order), None, "without {missing}");
        }
    }

    #[test]
    fn overlaps_are_harmless() {
        let whole = content(1, 400);
        let (mut reassembly, mut lost) = (Reassembly::new(LONGEST), 0);
        let mut complete = None;
        for (from, to) in [(80, 160), (240, 320), (40, 200), (120, 280), (0, 8), (320, 400)] {
            assert!(reassembly.on_segment(&segment(1, &whole, from, to), Nanos(0), &mut lost).is_none());
        }
        complete = complete.or(reassembly.on_segment(&segment(1, &whole, 0, 400), Nanos(0), &mut lost));
        assert_eq!(complete.expect("complete").content().1, whole);
        assert_eq!(lost, 0);
    }

    #[test]
    fn interleaved_messages_do_not_mix() {
        let (mut reassembly, mut lost, mut complete) = (Reassembly::new(LONGEST), 0, 0);
        let messages: Vec<Vec<u8>> = (0..8).map(|number| content(number, 800)).collect();
        for piece in 0..10 {
            for (number, whole) in (0..).zip(&messages) {
                let segment = segment(number, whole, piece * 80, piece * 80 + 80);
                if let Some(message) = reassembly.on_segment(&segment, Nanos(0), &mut lost) {
                    assert_eq!(message.content().1, whole);
                    reassembly.recycle(message);
                    complete += 1;
                }
            }
        }
        assert_eq!((complete, lost, reassembly.is_empty()), (8, 0, true));
    }

    #[test]
    fn a_peer_occupies_bounded_memory() {
        let (mut reassembly, mut lost) = (Reassembly::new(LONGEST), 0);
        let whole = content(0, LONGEST);
        for number in 0..1_000 {
            assert!(reassembly.on_segment(&segment(number, &whole, 0, 80), Nanos(0), &mut lost).is_none());
            assert!(reassembly.bytes <= reassembly.budget() && reassembly.partial.len() <= MOST_PARTIAL);
        }
        assert_eq!(lost + reassembly.partial.len(), 1_000, "each is kept or counted");
    }

    #[test]
    fn a_message_that_nobody_could_send_is_refused() {
        let (mut reassembly, mut lost) = (Reassembly::new(LONGEST), 0);
        let whole = content(0, LONGEST + 8);
        assert!(reassembly.on_segment(&segment(0, &whole, 0, LONGEST + 8), Nanos(0), &mut lost).is_none());
        assert_eq!((lost, reassembly.is_empty()), (1, true));
    }

    #[test]
    fn segments_that_contradict_each_other_end_the_message() {
        let (mut reassembly, mut lost) = (Reassembly::new(LONGEST), 0);
        let (whole, other) = (content(0, 800), content(0, 808));
        assert!(reassembly.on_segment(&segment(0, &whole, 0, 80), Nanos(0), &mut lost).is_none());
        assert!(reassembly.on_segment(&segment(0, &other, 80, 160), Nanos(0), &mut lost).is_none());
        assert_eq!((lost, reassembly.is_empty()), (1, true));
    }

    #[test]
    fn what_does_not_become_complete_in_time_is_dropped() {
        let (mut reassembly, mut lost) = (Reassembly::new(LONGEST), 0);
        let whole = content(0, 800);
        assert!(reassembly.on_segment(&segment(0, &whole, 0, 80), Nanos(5), &mut lost).is_none());
        assert_eq!(reassembly.expire(Nanos(5) + LIFETIME), 0);
        assert_eq!(reassembly.expire(Nanos(6) + LIFETIME), 1);
        assert!(reassembly.is_empty());
    }
}
