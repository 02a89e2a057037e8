//! What every handler gets: the moment, the store, and the effects that it may cause.

use alloc::vec::Vec;

use wire::{BlockTag, Copyset, Endpoint, Incarnation, Nanos, Packet};

use crate::coherence::config::{NodeConfig, Retransmission};
use crate::coherence::copies::Copies;
use crate::coherence::counters::Counters;
use crate::coherence::message::{Effect, Message, Outcome};
use crate::store::DataRef;

pub(crate) struct Context<'a, S, R> {
    pub(crate) rules: R,
    pub(crate) now: Nanos,
    pub(crate) random: u32,
    pub(crate) config: &'a NodeConfig,
    pub(crate) counters: &'a mut Counters,
    /// The nodes that are down.
    pub(crate) down: Copyset,
    /// The lives that the nodes are in, and behind them those of memories with copies.
    pub(crate) incarnations: &'a [Incarnation],
    /// What this node knows of memory with copies.
    pub(crate) copies: &'a mut Copies,
    pub(crate) store: &'a mut S,
    pub(crate) out: &'a mut Vec<Effect>,
}

impl<S, R> Context<'_, S, R> {
    /// Sends a packet without a block. The sender's view of the two incarnations goes into every packet that a
    /// machine originates; what it forwards keeps those of the request.
    pub(crate) fn send(&mut self, packet: Packet) {
        if matches!(packet.from, Endpoint::HomeAgent(_)) {
            self.counters.home_sent += 1;
        }
        self.out.push(Effect::Send(Message { packet, data: None }));
    }

    /// Sends a packet with a block.
    pub(crate) fn send_block(&mut self, packet: Packet, data: DataRef) {
        let payload = u32::try_from(self.config.block.bytes()).expect("a block has at most 1 MiB");
        if matches!(packet.from, Endpoint::HomeAgent(_)) {
            self.counters.home_sent += 1;
        }
        self.out.push(Effect::Send(Message { packet: Packet { payload, ..packet }, data: Some(data) }));
    }

    /// Sends a packet with so many bytes of a block.
    pub(crate) fn send_words(&mut self, packet: Packet, data: DataRef, len: u32) {
        self.out.push(Effect::Send(Message { packet: Packet { payload: len, ..packet }, data: Some(data) }));
    }

    /// When to send again what nobody has measured the round trip of.
    pub(crate) fn repeat_at(&self) -> Nanos {
        match self.config.retransmission {
            Retransmission::Never => Nanos::MAX,
            Retransmission::AfterRoundTrips { floor, .. } => self.now + floor,
        }
    }

    /// True if the block's home is down.
    pub(crate) fn is_down(&self, tag: BlockTag) -> bool {
        self.down.contains(tag.home())
    }

    pub(crate) fn completed(&mut self, slot: wire::SlotId, outcome: Outcome) {
        self.out.push(Effect::Completed { slot, outcome });
    }

    /// A random number below `bound`, different for different `salt`s of one call.
    pub(crate) fn random_below(&self, bound: u64, salt: u64) -> u64 {
        let mixed = random::mix(u64::from(self.random) ^ salt.wrapping_mul(random::GOLDEN));
        // Multiply-shift on 32 random bits: the bounds here are far below that.
        ((mixed >> 32) * bound) >> 32
    }

    /// 32 random bits, different for different `salt`s of one call.
    pub(crate) fn random_bits(&self, salt: u64) -> u32 {
        (random::mix(u64::from(self.random) ^ salt.wrapping_mul(random::GOLDEN)) >> 32) as u32
    }
}
