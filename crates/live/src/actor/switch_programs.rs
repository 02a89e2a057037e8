//! What the actor of the switch has under its lock.

use nic::verbs::Mtu;
use switch::Chip;
use switch::coherence::{Effect, Switch};
use switch::locks::{Directory, Effect as LockEffect};
use wire::{LockPacket, Packet};

use crate::chains::Relay;
use crate::config::Config;

/// The switch's programs, and what passes through them.
pub(crate) struct SwitchPrograms {
    pub(crate) coherence: Switch,
    pub(crate) locks: Directory,
    pub(crate) relay: Relay,
    /// Of blocks and locks.
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl SwitchPrograms {
    /// A switch without entries. A packet of chains carries so many bytes at most.
    ///
    /// # Panics
    /// If the chip has no capacity for its programs.
    pub(crate) fn new(config: &Config, mtu: Mtu) -> Self {
        let (coherence, locks) = config.directories();
        let relay = Relay::new(config.places(), config.steers(), mtu);
        Self { coherence, locks, relay, received: 0, sent: 0 }
    }

    /// All of them, as one machine.
    pub(crate) fn chip(&mut self) -> Chip<'_> {
        let Self { coherence, locks, relay, .. } = self;
        Chip { coherence, locks, relay: &mut relay.0 }
    }

    /// Runs a packet about a lock through all its passes.
    pub(crate) fn on_lock_packet(
        &mut self,
        packet: &LockPacket,
        effects: &mut Vec<LockEffect>,
        mut send: impl FnMut(&LockPacket),
    ) {
        self.received += 1;
        let mut sent = 0;
        self.chip().on_lock_packet(packet, effects, |packet| {
            sent += 1;
            send(packet);
        });
        self.sent += sent;
    }

    /// Runs a packet about a block through all its passes.
    pub(crate) fn on_packet(
        &mut self,
        packet: &Packet,
        effects: &mut Vec<Effect>,
        mut send: impl FnMut(Packet),
    ) {
        self.received += 1;
        let mut sent = 0;
        self.chip().on_packet(packet, effects, |packet| {
            sent += 1;
            send(packet);
        });
        self.sent += sent;
    }
}
