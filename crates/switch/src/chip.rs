//! The switch as one machine: the three programs that share its chip, each with packets of its own, in one epoch.
//!
//! A view: whoever has the programs keeps them where it likes, and gives them to each call. Runs wherever a switch does.
//! What must always hold: all programs are in the same epoch, for who begins one tells them all. A packet of chains goes
//! to the relay itself, which nothing else of the chip has to do with.

use alloc::vec::Vec;

use wire::{AllRules, Incarnation, LockPacket, NodeId, Packet, Rules, SwitchEpoch};

use crate::coherence::{self, Switch};
use crate::locks::{self, Directory};
use crate::relay::Relay;

/// The programs of a switch.
#[derive(Debug)]
pub struct Chip<'a, R: Rules = AllRules> {
    /// Coherence: the directory of hot blocks.
    pub coherence: &'a mut Switch<R>,
    /// The directory of the locks that carry their data.
    pub locks: &'a mut Directory<R>,
    /// What is between clients of chains and memory, and may steer.
    pub relay: &'a mut Relay<R>,
}

impl<R: Rules> Chip<'_, R> {
    /// A new epoch, with these incarnations of nodes: the directories are empty, and packets of any other epoch are dropped. The relay
    /// forgets what is over with a node; a switch that stopped has lost it with the rest.
    pub fn begin_epoch(&mut self, epoch: SwitchEpoch, shadow: NodeId, incarnations: &[Option<Incarnation>]) {
        self.coherence.restart(epoch);
        self.coherence.set_shadow(shadow);
        self.locks.restart(epoch);
        self.relay.begin_epoch(epoch, incarnations);
    }

    /// Runs a packet about a block through all its passes. A resubmitted packet re-enters the pipeline before any other.
    /// `effects` is a buffer that is empty before and after.
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        effects: &mut Vec<coherence::Effect>,
        mut send: impl FnMut(Packet),
    ) {
        debug_assert!(effects.is_empty());
        self.coherence.on_packet(packet, effects);
        while let Some(effect) = effects.pop() {
            match effect {
                coherence::Effect::Resubmit(again) => {
                    debug_assert!(effects.is_empty(), "a packet is resubmitted or sent, not both");
                    self.coherence.on_resubmit(again, effects);
                }
                coherence::Effect::Send(packet) => send(packet),
            }
        }
    }

    /// The same of a packet about a lock.
    pub fn on_lock_packet(
        &mut self,
        packet: &LockPacket,
        effects: &mut Vec<locks::Effect>,
        mut send: impl FnMut(&LockPacket),
    ) {
        self.locks.on_packet(packet, effects);
        // A packet is resubmitted or sent, not both.
        if let [locks::Effect::Resubmit(again)] = effects[..] {
            effects.clear();
            self.locks.on_resubmit(&again, effects);
        }
        for effect in effects.iter() {
            let locks::Effect::Send(packet) = effect else { unreachable!("a packet is resubmitted once") };
            send(packet);
        }
        effects.clear();
    }

    /// Asserts what must always hold between packets.
    ///
    /// # Panics
    /// If it does not.
    pub fn invariants(&self) {
        self.coherence.invariants();
    }
}
