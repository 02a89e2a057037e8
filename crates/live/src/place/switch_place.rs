//! The switch in its place.

use switch::flowcc::{Effect, Switch};
use switch::locks::{Directory, Effect as LockEffect};
use wire::{LockPacket, Packet};

use crate::config::RackConfig;

/// The switch's machine, and what passes through it.
pub(crate) struct SwitchPlace {
    pub(crate) switch: Switch,
    /// The second program on the chip.
    pub(crate) locks: Directory,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl SwitchPlace {
    /// A switch without entries.
    pub(crate) fn new(config: &RackConfig) -> Self {
        Self { switch: config.switch(), locks: config.lock_directory(), received: 0, sent: 0 }
    }

    /// Runs a packet about a lock through all its passes. What is sent with a payload takes along what came with the packet.
    pub(crate) fn on_lock_packet(
        &mut self,
        packet: &LockPacket,
        effects: &mut Vec<LockEffect>,
        mut send: impl FnMut(LockPacket),
    ) {
        self.received += 1;
        self.locks.on_packet(packet, effects);
        // A packet is resubmitted or sent, not both.
        if let [LockEffect::Resubmit(again)] = effects[..] {
            effects.clear();
            self.locks.on_resubmit(&again, effects);
        }
        for effect in effects.drain(..) {
            let LockEffect::Send(packet) = effect else { unreachable!("a packet is resubmitted once") };
            self.sent += 1;
            send(packet);
        }
    }

    /// Runs a packet through all its passes. A resubmitted packet re-enters the pipeline before any other.
    pub(crate) fn on_packet(
        &mut self,
        packet: &Packet,
        effects: &mut Vec<Effect>,
        mut send: impl FnMut(Packet),
    ) {
        self.received += 1;
        debug_assert!(effects.is_empty());
        self.switch.on_packet(packet, effects);
        while let Some(effect) = effects.pop() {
            match effect {
                Effect::Resubmit(again) => {
                    debug_assert!(effects.is_empty(), "a packet is resubmitted or sent, not both");
                    self.switch.on_resubmit(again, effects);
                }
                Effect::Send(packet) => {
                    self.sent += 1;
                    send(packet);
                }
            }
        }
    }
}
