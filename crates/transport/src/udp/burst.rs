//! Datagrams that a thread is filling: a part of [`crate::Outgoing`].
//!
//! Small messages for one peer share a datagram, whatever was sent to other peers in between. What must always
//! hold: messages for one peer leave in the order in which they were taken.

use super::envelope;
use super::single::Single;
use super::tag::TAG;
use crate::peer::PeerId;

/// Memory kept for the next burst.
const MOST_SPARE: usize = 4 << 20;

/// A datagram being filled.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(super) to: PeerId,
    /// Messages that end in it.
    pub(super) messages: u64,
    /// One of them cannot wait.
    pub(super) urgent: bool,
    /// It is one packet, without a record around it.
    pub(super) single: Option<Single>,
    /// Bytes so far, the head included.
    pub(super) length: usize,
    /// Longer than that.
    pub(super) bytes: Vec<u8>,
}

/// The datagrams of a burst.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    /// The first `used` are filled, the others are spare.
    datagrams: Vec<Datagram>,
    used: usize,
    /// The datagram of each peer that is being filled, by peer.
    open: Vec<Option<usize>>,
}

impl Burst {
    /// An empty one.
    pub(crate) const fn new() -> Self {
        Self { datagrams: Vec::new(), used: 0, open: Vec::new() }
    }

    /// True if nothing was sent.
    pub(crate) const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Where the next record for this peer goes, which takes so many bytes. No datagram becomes longer than `most`,
    /// its tag included. `urgent`: the message cannot wait.
    pub(super) fn record(
        &mut self,
        to: PeerId,
        size: usize,
        most: usize,
        ends_message: bool,
        urgent: bool,
    ) -> &mut [u8] {
        debug_assert!(
            envelope::HEAD + size + TAG <= most && size.is_multiple_of(8),
            "a record of {size} in {most}"
        );
        if self.open.is_empty() {
            self.open.resize(PeerId::COUNT, None);
        }
        let room = |at: usize| self.datagrams[at].length + size + TAG <= most;
        let at = match self.open[to.index()] {
            Some(at) if room(at) => at,
            _ => self.begin(to),
        };
        let datagram = &mut self.datagrams[at];
        let start = datagram.length;
        datagram.length += size;
        datagram.messages += u64::from(ends_message);
        datagram.urgent |= urgent;
        let needed = datagram.length + TAG;
        if datagram.bytes.len() < needed {
            datagram.bytes.resize(needed.next_power_of_two().clamp(256, most.max(256)), 0);
        }
        &mut datagram.bytes[start..start + size]
    }

    /// Where a single packet for this peer goes, in a datagram of its own.
    pub(super) fn single(&mut self, to: PeerId, kind: Single, urgent: bool) -> &mut [u8] {
        let bytes = kind.bytes();
        let at = self.begin(to);
        self.open[to.index()] = None;
        let datagram = &mut self.datagrams[at];
        (datagram.messages, datagram.urgent, datagram.single) = (1, urgent, Some(kind));
        datagram.length += bytes;
        let needed = datagram.length + TAG;
        if datagram.bytes.len() < needed {
            datagram.bytes.resize(needed.next_power_of_two(), 0);
        }
        &mut datagram.bytes[envelope::HEAD..][..bytes]
    }

    /// The datagrams, to be completed and sent.
    pub(super) fn datagrams(&mut self) -> &mut [Datagram] {
        &mut self.datagrams[..self.used]
    }

    /// One of them does not leave with this burst.
    pub(super) fn remove(&mut self, at: usize) -> Datagram {
        assert!(at < self.used, "datagram {at} of {}", self.used);
        let datagram = self.datagrams.remove(at);
        self.used -= 1;
        self.open[datagram.to.index()] = None;
        datagram
    }

    /// One more leaves with it, at this place.
    pub(super) fn insert(&mut self, at: usize, datagram: Datagram) {
        assert!(at <= self.used, "datagram {at} of {}", self.used);
        self.datagrams.insert(at, datagram);
        self.used += 1;
    }

    /// A datagram that is not needed now.
    pub(super) fn spare(&mut self, datagram: Datagram) {
        self.datagrams.push(datagram);
    }

    /// Begins the next burst.
    pub(super) fn clear(&mut self) {
        for datagram in &self.datagrams[..self.used] {
            self.open[datagram.to.index()] = None;
        }
        self.used = 0;
        if self.datagrams.len() > 64 {
            let mut kept = 0;
            self.datagrams.retain(|datagram| {
                kept += datagram.bytes.len();
                kept <= MOST_SPARE
            });
        }
    }

    fn begin(&mut self, to: PeerId) -> usize {
        if self.open.is_empty() {
            self.open.resize(PeerId::COUNT, None);
        }
        let at = self.used;
        match self.datagrams.get_mut(at) {
            Some(spare) => {
                (spare.to, spare.messages, spare.length) = (to, 0, envelope::HEAD);
                (spare.urgent, spare.single) = (false, None);
            }
            None => {
                let bytes = Vec::new();
                self.datagrams.push(Datagram {
                    to,
                    messages: 0,
                    urgent: false,
                    single: None,
                    length: envelope::HEAD,
                    bytes,
                });
            }
        }
        self.used += 1;
        self.open[to.index()] = Some(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::Burst;
    use crate::peer::PeerId;
    use wire::NodeId;

    const MOST: usize = 256;

    #[test]
    fn small_messages_for_one_peer_share_a_datagram_whatever_goes_elsewhere() {
        let mut burst = Burst::new();
        let peers = [PeerId::node(NodeId(0)), PeerId::node(NodeId(1)), PeerId::SWITCH];
        for round in 0..2 {
            for _ in 0..2 {
                for peer in peers {
                    burst.record(peer, 72, MOST, true, true).fill(1);
                }
            }
            assert_eq!(burst.datagrams().len(), 3, "round {round}");
            assert!(burst.datagrams().iter().all(|datagram| datagram.messages == 2));
            burst.clear();
            assert!(burst.is_empty());
        }
    }

    #[test]
    fn no_datagram_is_longer_than_the_path_allows() {
        let mut burst = Burst::new();
        for size in (8..=MOST - 48).step_by(8) {
            burst.record(PeerId::SWITCH, size, MOST, true, true).fill(1);
        }
        assert!(burst.datagrams().iter().all(|datagram| datagram.length + super::TAG <= MOST));
        assert_eq!(burst.datagrams().iter().map(|datagram| datagram.messages).sum::<u64>(), 26);
    }

    #[test]
    fn a_full_datagram_is_not_filled_again_when_a_smaller_message_would_fit() {
        let mut burst = Burst::new();
        for size in [200, 104, 8] {
            burst.record(PeerId::SWITCH, size, MOST, true, true).fill(1);
        }
        let lengths: Vec<usize> = burst.datagrams().iter().map(|datagram| datagram.length).collect();
        assert_eq!(lengths, [232, 32 + 104 + 8]);
    }
}
