//! One direction of a cable, with the port that sends into it.
//!
//! It runs between a NIC and the switch, and back. What must always hold: bits leave one after the other at the
//! link's bandwidth, and messages that are ready in order leave in order.

use wire::Nanos;

use super::bandwidth::{Bandwidth, Picos};
use super::calendar::Calendar;
use super::testbed::{Framing, Testbed};

/// A link.
#[derive(Clone, Debug)]
pub struct Link {
    bandwidth: Bandwidth,
    framing: Framing,
    calendar: Calendar,
    busy: Picos,
    bytes: u64,
    packets: u64,
}

impl Link {
    /// A link of this testbed, idle.
    pub fn new(testbed: &Testbed) -> Self {
        Self {
            bandwidth: testbed.bandwidth,
            framing: testbed.framing,
            calendar: Calendar::default(),
            busy: Picos::ZERO,
            bytes: 0,
            packets: 0,
        }
    }

    /// Sends a message that is ready at `now`: its bytes, and the framing of its packets. Returns when the last
    /// bit has left. Add [`Testbed::cable`] for when it has arrived.
    ///
    /// Messages may be handed over ahead of time, and then not in the order in which they are ready. One that
    /// is ready earlier goes before those that were handed over before it, if that delays none of them.
    pub fn send(&mut self, now: Nanos, bytes: u64) -> Nanos {
        self.send_at(now.into(), bytes).round_up()
    }

    pub(super) fn send_at(&mut self, ready: Picos, bytes: u64) -> Picos {
        let span = self.bandwidth.picos(self.framing.framed(bytes));
        self.busy = self.busy.plus(span);
        self.bytes += bytes;
        self.packets += self.framing.packets(bytes);
        self.calendar.reserve(ready, span).plus(span)
    }

    /// How many bytes, framing included, are handed over and have not left by `now`.
    pub fn queued(&self, now: Nanos) -> u64 {
        self.bandwidth.bytes(self.calendar.free_from().since(now.into()))
    }

    /// The bytes sent, without framing.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The packets sent. A message that does not fit into one is several.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// How long bits have been sent.
    pub const fn busy(&self) -> Nanos {
        self.busy.round_up()
    }

    /// The share of the time until `now` in which bits were sent.
    pub fn utilisation(&self, now: Nanos) -> f64 {
        if now == Nanos::ZERO { 0.0 } else { self.busy.0 as f64 / Picos::from(now).0 as f64 }
    }
}
