//! The switch in its place.

use switch::Chip;
use switch::flowcc::Effect;
use switch::locks::Effect as LockEffect;
use wire::{LockPacket, Packet};

use crate::config::RackConfig;

/// The switch's machine, and what passes through it.
pub(crate) struct SwitchPlace {
    pub(crate) chip: Chip,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl SwitchPlace {
    /// A switch without entries.
    pub(crate) fn new(config: &RackConfig) -> Self {
        Self { chip: config.chip(), received: 0, sent: 0 }
    }

    /// Runs a packet about a lock through all its passes. What is sent with a payload takes along what came with the packet.
    pub(crate) fn on_lock_packet(
        &mut self,
        packet: &LockPacket,
        effects: &mut Vec<LockEffect>,
        mut send: impl FnMut(LockPacket),
    ) {
        let Self { chip, received, sent } = self;
        *received += 1;
        chip.on_lock_packet(packet, effects, |packet| {
            *sent += 1;
            send(packet);
        });
    }

    /// Runs a packet about a block through all its passes.
    pub(crate) fn on_packet(
        &mut self,
        packet: &Packet,
        effects: &mut Vec<Effect>,
        mut send: impl FnMut(Packet),
    ) {
        let Self { chip, received, sent } = self;
        *received += 1;
        chip.on_packet(packet, effects, |packet| {
            *sent += 1;
            send(packet);
        });
    }
}
