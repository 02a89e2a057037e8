//! A node's network interface: what becomes of a message between a processor and the link.
//!
//! There is one in each node. What must always hold: messages of one queue pair leave in the order in which
//! they were posted, and neither the rate of the NIC nor that of a queue pair is exceeded.

use wire::Nanos;

use super::bandwidth::Picos;
use super::calendar::Calendar;
use super::link::Link;
use super::testbed::Testbed;

/// A NIC, with its link to the switch.
#[derive(Clone, Debug)]
pub struct Nic {
    testbed: Testbed,
    link: Link,
    sending: Calendar,
    receiving: Calendar,
    /// The path of received bytes to memory. PCIe keeps the order of writes.
    to_memory: Calendar,
    queue_pairs: Vec<QueuePair>,
    sent: u64,
    received: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct QueuePair {
    /// When its next message may be looked at.
    free: Picos,
    /// When its last message was ready for the link.
    ready: Picos,
    /// When its last message had left.
    left: Picos,
}

impl Nic {
    /// A NIC of this testbed, idle.
    pub fn new(testbed: &Testbed) -> Self {
        Self {
            testbed: *testbed,
            link: Link::new(testbed),
            sending: Calendar::default(),
            receiving: Calendar::default(),
            to_memory: Calendar::default(),
            queue_pairs: Vec::new(),
            sent: 0,
            received: 0,
        }
    }

    /// A processor has rung the doorbell at `now` (its own cost is [`Testbed::post_datagram`] or
    /// [`Testbed::post_write`]). Returns when the message's first bit can enter the link.
    ///
    /// What is not a write comes with the doorbell. A write is fetched from memory: the first packet as a whole
    /// before it goes out, the others meanwhile.
    pub fn post(&mut self, now: Nanos, is_write: bool, bytes: u64, queue_pair: u32) -> Nanos {
        self.post_at(now, is_write, bytes, queue_pair).round_up()
    }

    /// As [`Nic::post`], and then sends it through the NIC's own link. Returns when the last bit has left.
    pub fn send(&mut self, now: Nanos, is_write: bool, bytes: u64, queue_pair: u32) -> Nanos {
        let ready = self.post_at(now, is_write, bytes, queue_pair);
        let pair = &mut self.queue_pairs[queue_pair as usize];
        // The link may let a short message go first; not one that would overtake its own queue pair.
        pair.left = self.link.send_at(ready.max(pair.left), bytes);
        pair.left.round_up()
    }

    fn post_at(&mut self, now: Nanos, is_write: bool, bytes: u64, queue_pair: u32) -> Picos {
        let Testbed { doorbell, sending_rate, queue_pair_rate, nic_sending, pcie_read, .. } = self.testbed;
        self.sent += 1;
        let index = queue_pair as usize;
        if index >= self.queue_pairs.len() {
            self.queue_pairs.resize(index + 1, QueuePair::default());
        }
        let pair = &mut self.queue_pairs[index];
        let seen = Picos::from(now + doorbell).max(pair.free);
        let begun = self.sending.reserve(seen, sending_rate.picos());
        pair.free = begun.plus(queue_pair_rate.picos());
        let mut ready = begun.plus(nic_sending.into());
        if is_write {
            ready = ready.plus(pcie_read.into()).plus(self.testbed.pcie_of_packet(bytes));
        }
        pair.ready = pair.ready.max(ready);
        pair.ready
    }

    /// The last bit of a message has arrived at `now`. Returns when a processor that polls can see it (polling
    /// is [`Testbed::poll`] more).
    pub fn receive(&mut self, now: Nanos, bytes: u64, is_write: bool) -> Nanos {
        let Testbed { receiving_rate, nic_receiving, pcie_write, .. } = self.testbed;
        self.received += 1;
        let begun = self.receiving.reserve(now.into(), receiving_rate.picos());
        let ready = begun.plus(nic_receiving.into());
        // The last packet goes to memory as a whole once it is here; those before it have gone meanwhile. A
        // write is announced by a completion, which follows its bytes on the same ordered path.
        let completion = if is_write { COMPLETION } else { 0 };
        let span = self.testbed.pcie_of_packet(bytes).plus(self.testbed.pcie.picos(completion));
        self.to_memory.reserve(ready, span).plus(span).plus(pcie_write.into()).round_up()
    }

    /// The link from this NIC to the switch.
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// How many messages were posted.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// How many messages were received.
    pub const fn received(&self) -> u64 {
        self.received
    }
}

/// Bytes of an entry in a completion queue, as the NIC's programming manual has it.
const COMPLETION: u64 = 64;
