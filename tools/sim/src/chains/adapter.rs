//! A NIC's engines and its link.
//!
//! In each of the four machines. What must always hold: neither the NIC's message rate nor its link's bandwidth is exceeded.

use wire::Nanos;

use crate::hardware::{Calendar, Link, Picos, Testbed};

/// A NIC. What processors and PCIe add is its owner's to add.
#[derive(Clone, Debug)]
pub(super) struct Adapter {
    hardware: Testbed,
    sending: Calendar,
    receiving: Calendar,
    link: Link,
}

impl Adapter {
    pub(super) fn new(hardware: &Testbed) -> Self {
        Self {
            hardware: *hardware,
            sending: Calendar::default(),
            receiving: Calendar::default(),
            link: Link::new(hardware),
        }
    }

    /// A message of so many bytes is at the NIC: when its last bit has left.
    pub(super) fn leaves(&mut self, ready: Nanos, bytes: u64) -> Nanos {
        let Testbed { sending_rate, nic_sending, .. } = self.hardware;
        let begun = self.sending.reserve(ready.into(), sending_rate.picos());
        self.link.send(begun.plus(Picos::from(nic_sending)).round_up(), bytes)
    }

    /// The last bit of a message is here: when the NIC knows what it is.
    pub(super) fn arrives(&mut self, now: Nanos) -> Nanos {
        let Testbed { receiving_rate, nic_receiving, .. } = self.hardware;
        let begun = self.receiving.reserve(now.into(), receiving_rate.picos());
        begun.plus(Picos::from(nic_receiving)).round_up()
    }

    pub(super) const fn link(&self) -> &Link {
        &self.link
    }
}
