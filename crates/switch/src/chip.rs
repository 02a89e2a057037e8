//! The switch as one machine: the programs that share its chip, each with packets of its own, in one epoch.
//!
//! Runs wherever a switch does. What must always hold: all programs are in the same epoch, for who begins one tells them all.
//! What is between clients of chains and memory ([`crate::relay`]) is beside them; it comes as RoCE packets, between other
//! machines than these two programs serve: whoever carries those packets has that machine, and tells it of epochs.

use alloc::vec::Vec;

use wire::{Faithful, LockPacket, LockRules, NodeId, Packet, Rules, SwitchEpoch};

use crate::flowcc::{self, Switch};
use crate::locks::{self, Directory};

/// The programs of a switch that nodes talk to.
#[derive(Clone, Debug)]
pub struct Chip<R: Rules = Faithful, L: LockRules = Faithful> {
    /// Coherence: the directory of hot blocks.
    pub flowcc: Switch<R>,
    /// The directory of the locks that carry their data.
    pub locks: Directory<L>,
}

impl<R: Rules, L: LockRules> Chip<R, L> {
    /// A new epoch: all that the chip knew is gone, and packets of any other epoch are dropped.
    pub fn restart(&mut self, epoch: SwitchEpoch, shadow: NodeId) {
        self.flowcc.restart(epoch);
        self.flowcc.set_shadow(shadow);
        self.locks.restart(epoch);
    }

    /// Runs a packet about a block through all its passes. A resubmitted packet re-enters the pipeline before any other.
    /// `effects` is a buffer that is empty before and after.
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        effects: &mut Vec<flowcc::Effect>,
        mut send: impl FnMut(Packet),
    ) {
        debug_assert!(effects.is_empty());
        self.flowcc.on_packet(packet, effects);
        while let Some(effect) = effects.pop() {
            match effect {
                flowcc::Effect::Resubmit(again) => {
                    debug_assert!(effects.is_empty(), "a packet is resubmitted or sent, not both");
                    self.flowcc.on_resubmit(again, effects);
                }
                flowcc::Effect::Send(packet) => send(packet),
            }
        }
    }

    /// The same of a packet about a lock. What is sent with a payload takes along what came with the packet.
    pub fn on_lock_packet(
        &mut self,
        packet: &LockPacket,
        effects: &mut Vec<locks::Effect>,
        mut send: impl FnMut(LockPacket),
    ) {
        self.locks.on_packet(packet, effects);
        // A packet is resubmitted or sent, not both.
        if let [locks::Effect::Resubmit(again)] = effects[..] {
            effects.clear();
            self.locks.on_resubmit(&again, effects);
        }
        for effect in effects.drain(..) {
            let locks::Effect::Send(packet) = effect else { unreachable!("a packet is resubmitted once") };
            send(packet);
        }
    }

    /// Asserts what must always hold between packets.
    ///
    /// # Panics
    /// If it does not.
    pub fn invariants(&self) {
        self.flowcc.invariants();
    }
}
