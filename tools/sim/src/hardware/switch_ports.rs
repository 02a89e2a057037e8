//! The switch as everything that passes through it sees it: a pipeline, and a port with a queue towards each
//! node.
//!
//! There is one in the rack. The coherence program is not here: it decides what is routed where. What must
//! always hold: the queues together never hold more than the switch's buffer; what does not fit is dropped and
//! counted.

use wire::Nanos;

use super::link::Link;
use super::testbed::Testbed;

/// The ports of the switch.
#[derive(Clone, Debug)]
pub struct SwitchPorts {
    testbed: Testbed,
    ports: Vec<Link>,
    /// What resubmitted packets come back through.
    resubmission: Link,
    /// When the last of all queues is empty.
    all_sent: Nanos,
    dropped: u64,
}

impl SwitchPorts {
    /// A switch with so many ports, idle.
    ///
    /// # Panics
    /// If the testbed's switch has fewer.
    pub fn new(testbed: &Testbed, ports: u16) -> Self {
        assert!(ports <= testbed.ports, "the switch has {} ports, not {ports}", testbed.ports);
        Self {
            testbed: *testbed,
            ports: (0..ports).map(|_| Link::new(testbed)).collect(),
            resubmission: Link::new(testbed),
            all_sent: Nanos::ZERO,
            dropped: 0,
        }
    }

    /// The last bit of a message, which came in or was made by the program, is in the switch at `now`, and
    /// leaves through this port. Returns when the last bit arrives at the NIC on the other side; `None` if the
    /// buffer has no capacity for it.
    ///
    /// The switch stores and forwards: cutting through is an option of each port, which the papers do not
    /// mention.
    pub fn route(&mut self, now: Nanos, port: u16, bytes: u64) -> Option<Nanos> {
        let ready = now + self.testbed.pipeline;
        let framed = self.testbed.framing.framed(bytes);
        if self.may_overflow(ready, framed) && self.queued(ready) + framed > self.testbed.buffer {
            self.dropped += 1;
            return None;
        }
        let left = self.ports[usize::from(port)].send(ready, bytes);
        self.all_sent = self.all_sent.max(left);
        Some(left + self.testbed.cable)
    }

    /// The program wants to see a packet of this size again. Returns when it does.
    pub fn resubmit(&mut self, now: Nanos, bytes: u64) -> Nanos {
        self.resubmission.send(now, bytes) + self.testbed.resubmit
    }

    /// How many bytes are in the queues, framing included.
    pub fn queued(&self, now: Nanos) -> u64 {
        self.ports.iter().map(|port| port.queued(now)).sum()
    }

    /// Whether it is worth adding the queues up: not if the buffer could hold as many as the longest for each
    /// port.
    fn may_overflow(&self, now: Nanos, framed: u64) -> bool {
        let longest = self.testbed.bandwidth.bytes(self.all_sent.saturating_sub(now).into());
        longest.saturating_mul(self.ports.len() as u64).saturating_add(framed) > self.testbed.buffer
    }

    /// The link from the switch to the node at this port.
    pub fn link(&self, port: u16) -> &Link {
        &self.ports[usize::from(port)]
    }

    /// What was resubmitted.
    pub const fn resubmission(&self) -> &Link {
        &self.resubmission
    }

    /// How many messages the buffer had no capacity for.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}
