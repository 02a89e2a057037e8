//! The switch in its place.

use switch::flowcc::{Effect, Switch};
use wire::Packet;

/// The switch's machine, and what passes through it.
pub(crate) struct SwitchPlace {
    pub(crate) switch: Switch,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl SwitchPlace {
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
